//! The thirteen kinds of action, and the action itself.

use super::policy::RETRY_FORM;
use super::{COUNT, Choice, Form, Key, POSITIVE, Shape, Word, key, word};

const NODE_TIMEOUTS: &[Word] =
    &[word("fail", "It fails as `timeout`."), word("retry", "It is tried again, up to 3 times.")];

const EXECUTION: &Shape = &Shape {
    name: "execution",
    about: "How the action is run.",
    keys: &[&[
        key("timeout", Form::Duration, "How long one try may take."),
        key("on_timeout", Form::Words(NODE_TIMEOUTS), "What happens when the time is over."),
        key("retry_policy", RETRY_FORM, "Tries on network errors, rate limits and the like.")
            .default("3 tries"),
    ]],
    choices: &[],
};

const EFFECTS: &[Word] = &[
    word("none", "Nothing: it may run again."),
    word("idempotent", "Running it again changes nothing more."),
    word("once", "It must not run twice; a lost answer is for a person to judge."),
];

/// Inside every action's object, whatever its kind.
const COMMON: &[Key] = &[
    key("execution", Form::Object(EXECUTION), "How the action is run."),
    key("effects", Form::Words(EFFECTS), "What happens in the world if it runs twice.").default("by kind"),
    key("requires", Form::JsonSchema, "The schema of its input."),
    key("produces", Form::JsonSchema, "The schema of its result."),
];

const TIMEOUT: &[Key] = &[key("timeout", Form::Duration, "How long one try may take (`execution.timeout`).")];

const EFFORTS: &[Word] =
    &[word("low", "A little."), word("medium", "Some."), word("high", "As long as it takes.")];

const CACHES: &[Word] = &[
    word("auto", "What stays the same is marked for the provider's cache."),
    word("off", "Nothing is marked."),
];

/// What a model may call, one entry each.
pub(super) const TOOLS: Form = Form::List(&Form::Either(&[Form::NameAt, Form::Object(TOOL)]));

const TOOL: &Shape = &Shape {
    name: "tool",
    about: "Something that a model may call, other than an action by its name.",
    keys: &[&[
        key("mcp", Form::Text, "An MCP server of `mcp_servers`: its tools."),
        key("only", Form::OneOrList(&Form::Text), "With `mcp`: these and no others.").default("all"),
        key("workflow", Form::NameAt, "A workflow: a child run, with its input schema."),
        key("description", Form::Text, "With `workflow`: what it does, for the model.")
            .default("the workflow's own"),
        key("requires", Form::JsonSchema, "With `workflow`: the schema of its input.")
            .default("the workflow's own"),
        key("ask", Form::Text, "A person: a gate whose answer is the result."),
    ]],
    choices: &[Choice::ExactlyOne("kind of tool", &["mcp", "workflow", "ask"])],
};

const LLM_CALL: &Shape = &Shape {
    name: "llm_call",
    about: "Asks a model: one request, one answer.",
    keys: &[
        &[
            key("model", Form::Text, "The name of a model profile; a call that runs needs one."),
            key("prompt", Form::Template, "The prompt."),
            key("prompt_spec", Form::NameAt, "The name of a prompt, instead of `prompt`."),
            key("system", Form::Template, "The system prompt."),
            key(
                "messages",
                Form::Templates,
                "Earlier messages, as `{role, content}`; a text that is only `{{ state.history }}` is the list itself.",
            ),
            key("output_schema", Form::JsonSchema, "The answer must be JSON that fits this."),
            key("tools", TOOLS, "What the model may call. Its calls come back in `result.tool_calls`."),
            key(
                "tool_choice",
                Form::Template,
                "Whether it has to call a tool: `auto`, `none`, `required`, or the name of one.",
            )
            .default("auto"),
            key(
                "on_violation",
                Form::Words(&[
                    word("fail", "The call fails as `contract_violation`."),
                    word("return", "It is a result, with what is wrong in `result.violations`."),
                ]),
                "What an answer means that breaks `output_schema`.",
            )
            .default("fail"),
            key("max_tokens", COUNT, "The most tokens it may answer with."),
            key("temperature", Form::Number, "How freely it answers."),
            key("stop", Form::OneOrList(&Form::Text), "Texts at which it stops."),
            key("reasoning", Form::Words(EFFORTS), "How long it may think first.").default("the model's own"),
            key("cache", Form::Words(CACHES), "Whether the provider keeps what stays the same.")
                .default("auto"),
            key(
                "images",
                Form::OneOrList(&Form::Template),
                "Pictures to look at: paths, relative to where the run was started, and URLs.",
            ),
        ],
        TIMEOUT,
        COMMON,
    ],
    choices: &[
        Choice::AtMostOne(&["prompt", "prompt_spec"]),
        Choice::AtLeastOne("prompt", &["prompt", "prompt_spec", "messages"]),
    ],
};

const COMPACT: &Shape = &Shape {
    name: "compact",
    about: "When the beginning of a long conversation is put in short.",
    keys: &[&[
        key("above_tokens", POSITIVE, "When a turn took more tokens than this.").required(),
        key("keep_last", POSITIVE, "How many of the last messages stay as they are, at least.").default("8"),
        key("model", Form::Text, "The profile that writes the summary.").default("the agent's"),
    ]],
    choices: &[],
};

/// Written out by the reader: see `build/agent.rs`.
pub(super) const AGENT: &Shape = &Shape {
    name: "agent",
    about: "Turns of a model and its tools until it is done; written out as a child workflow.",
    keys: &[&[
        key("model", Form::Text, "The name of a model profile.").required(),
        key("system", Form::Template, "The system prompt."),
        key("prompt", Form::Template, "What it is to do."),
        key("messages", Form::Templates, "A conversation to go on with, instead of `prompt`: `{{ state.history }}`."),
        key("tools", TOOLS, "What it may call: actions, MCP servers, workflows, people."),
        key(
            "approve",
            Form::Map(&Form::Text),
            "By tool, `server/tool` or server, and `default`: `never`, `always`, `auto` (asks where the effect is \
             `once`), or an expression over `tool` and `arguments`.",
        )
        .default("auto"),
        key("max_turns", POSITIVE, "How many turns it may have; then it ends with what there is.").default("40"),
        key("max_parallel", POSITIVE, "How many of a turn's calls may be under way at once.").default("all"),
        key("output_schema", Form::JsonSchema, "The answer must be JSON that fits this."),
        key("repair", COUNT, "How often an answer that does not fit goes back to the model.").default("2"),
        key("compact", Form::Object(COMPACT), "Puts the beginning of a long conversation in short."),
        key("max_tokens", COUNT, "The most tokens of one answer."),
        key("temperature", Form::Number, "How freely it answers."),
        key("reasoning", Form::Words(EFFORTS), "How long it may think first.").default("the model's own"),
        key("timeout", Form::Duration, "How long one turn may take.").default("10m"),
    ]],
    choices: &[Choice::ExactlyOne("beginning", &["prompt", "messages"])],
};

const MCP_TOOL: &Shape = &Shape {
    name: "mcp_tool",
    about: "Calls a tool of an MCP server.",
    keys: &[
        &[
            key("server", Form::Template, "The server's name, in `mcp_servers` of the file or the settings.")
                .required(),
            key("tool", Form::Template, "The tool's name.").required(),
            key("arguments", Form::Templates, "Its arguments."),
        ],
        TIMEOUT,
        COMMON,
    ],
    choices: &[],
};

const HTTP_REQUEST: &Shape = &Shape {
    name: "http_request",
    about: "Makes an HTTP request.",
    keys: &[
        &[
            key("method", Form::Template, "The method.").default("GET"),
            key("url", Form::Template, "The address; values put into it are percent-encoded.").required(),
            key("query", Form::Templates, "Query parameters."),
            key("headers", Form::Templates, "Headers."),
            key("json", Form::Templates, "The body, as JSON."),
            key("body", Form::Template, "The body, as text."),
            key("expect", Form::OneOrList(&Form::Json), "Statuses that are no failure: `204`, `\"2xx\"`.")
                .default("2xx"),
            key("max_bytes", COUNT, "The largest answer that is read.").default("8388608, which is 8 MiB"),
            key("allow_private", Form::Bool, "May reach private addresses.").default("false"),
        ],
        TIMEOUT,
        COMMON,
    ],
    choices: &[Choice::AtMostOne(&["json", "body"])],
};

const LIMITS: &Shape = &Shape {
    name: "limits",
    about: "What a command may use.",
    keys: &[&[
        key("cpu", COUNT, "Seconds of processor time."),
        key("memory", COUNT, "Bytes of memory."),
        key("files", COUNT, "Open files."),
        key("output_bytes", COUNT, "Bytes of output that are kept."),
    ]],
    choices: &[],
};

pub(super) const ISOLATIONS: &[Word] = &[
    word("none", "A process like any other."),
    word("process", "With resource limits and a clean environment."),
    word("sandbox", "In a sandbox: no network unless allowed, read-only root."),
    word("container", "In a container of `image`."),
];

const SHELL: &Shape = &Shape {
    name: "shell",
    about: "Runs a command.",
    keys: &[
        &[
            key(
                "command",
                Form::Either(&[Form::Template, Form::List(&Form::Template)]),
                "One text for a shell (values put into it are quoted), or a list of arguments.",
            )
            .required(),
            key("cwd", Form::Template, "The working directory."),
            key("env", Form::Templates, "Environment variables."),
            key("stdin", Form::Template, "What it reads."),
            key("expect_exit", Form::OneOrList(&Form::Count(-255, 255)), "Exit codes that are no failure.")
                .default("0"),
            key("isolation", Form::Words(ISOLATIONS), "How far it is kept apart.").default("none"),
            key("limits", Form::Object(LIMITS), "What it may use."),
            key("image", Form::Template, "The container's image."),
            key("network", Form::Bool, "May use the network."),
        ],
        TIMEOUT,
        COMMON,
    ],
    choices: &[],
};

const UPDATE_CONTEXT: &Shape = &Shape {
    name: "update_context",
    about: "Sets values in the run's context.",
    keys: &[
        &[key("set", Form::Writes, "Target paths and expressions, in order, each seeing those before it.")
            .required()],
        TIMEOUT,
        COMMON,
    ],
    choices: &[],
};

const ASSERT: &Shape = &Shape {
    name: "assert",
    about: "Fails unless something holds.",
    keys: &[
        &[
            key("that", Form::Expression, "Must be true."),
            key("message", Form::Template, "What to say if not."),
            key("value", Form::Expression, "Must fit `schema`."),
            key("schema", Form::JsonSchema, "What `value` must fit."),
            key("score", Form::Expression, "Must reach `score_at_least`."),
            key(
                "score_at_least",
                Form::Either(&[Form::Number, Form::Expression]),
                "A number, or an expression giving one.",
            ),
        ],
        TIMEOUT,
        COMMON,
    ],
    choices: &[
        Choice::ExactlyOne("test", &["that", "value", "score"]),
        Choice::With("value", "schema"),
        Choice::With("schema", "value"),
        Choice::With("score", "score_at_least"),
        Choice::With("score_at_least", "score"),
    ],
};

const ARTIFACT_WRITE: &Shape = &Shape {
    name: "artifact_write",
    about: "Keeps a file with the run.",
    keys: &[
        &[
            key("type", Form::Template, "The name of its type, from `artifact_types`."),
            key("name", Form::Template, "Its name: `report.md`, `plots/first.png`.").required(),
            key("content", Form::Templates, "What is in it: a text, or JSON."),
            key("path", Form::Template, "The file to take, instead of `content`; in the working directory."),
        ],
        TIMEOUT,
        COMMON,
    ],
    choices: &[Choice::ExactlyOne("source", &["content", "path"])],
};

const ARTIFACT_READ: &Shape = &Shape {
    name: "artifact_read",
    about: "Reads a file kept with the run.",
    keys: &[
        &[key(
            "ref",
            Form::Template,
            "The reference that `artifact_write` gave, or a name: the newest of it.",
        )
        .required()],
        TIMEOUT,
        COMMON,
    ],
    choices: &[],
};

const HUMAN_GATE: &Shape = &Shape {
    name: "human_gate",
    about: "Waits for a person's answer.",
    keys: &[
        &[
            key("title", Form::Template, "The question, in one line.").required(),
            key("body", Form::Template, "More about it."),
            key(
                "form",
                Form::Either(&[Form::JsonSchema, Form::Expression]),
                "The schema of the answer, or an expression giving one.",
            )
            .default("any answer"),
            key(
                "assignees",
                Form::OneOrList(&Form::Template),
                "Who is asked; nobody else is kept from answering.",
            )
            .default("anybody"),
            key("quorum", POSITIVE, "How many must answer; the result is then the list of answers."),
            key("timeout", Form::Duration, "How long to wait."),
            key(
                "on_timeout",
                Form::Words(&[
                    word("fail", "The node fails as `timeout`."),
                    word("default", "`default` is the answer."),
                    word("escalate", "It goes to the people in `escalate`, and the clock starts anew."),
                ]),
                "What happens when the time is over.",
            )
            .default("fail"),
            key("default", Form::Json, "The answer when nobody answered."),
            key("escalate", Form::OneOrList(&Form::Template), "Who is asked next."),
            key("remind_every", Form::Duration, "How often to remind."),
        ],
        COMMON,
    ],
    choices: &[],
};

const FROM_CONTEXT: &Shape = &Shape {
    name: "from_context",
    about: "A workflow named by the context.",
    keys: &[&[key("from_context", Form::Expression, "An expression giving its name.").required()]],
    choices: &[],
};

const WORKFLOW_CALL: &Shape = &Shape {
    name: "workflow_call",
    about: "Runs another workflow.",
    keys: &[
        &[
            key(
                "workflow",
                Form::Either(&[Form::Template, Form::Object(FROM_CONTEXT)]),
                "Its name, or `{from_context: EXPR}`; with `file`, which workflow of that file.",
            )
            .default("with `file`, the first in it"),
            key("file", Form::Text, "The file that it is in, relative to this one; read when a run starts."),
            key(
                "with",
                Form::Templates,
                "Its input: texts are templates, and one that is only `{{ state.list }}` is the value itself. The \
                 `input_mapping` is then what they see.",
            )
            .default("what `input_mapping` gives"),
            key(
                "on_failure",
                Form::Words(&[
                    word("propagate", "Its failure is the node's."),
                    word("catch", "The result has its `error`."),
                ]),
                "What its failure means.",
            )
            .default("propagate"),
            key("inherit_timeout", Form::Bool, "It has no more time than this run has left.")
                .default("false"),
            key("inherit_artifacts", Form::Bool, "It reads this run's artifacts by name too.")
                .default("false"),
        ],
        TIMEOUT,
        COMMON,
    ],
    choices: &[Choice::AtLeastOne("workflow", &["workflow", "file"])],
};

const WAIT_EVENT: &Shape = &Shape {
    name: "wait_event",
    about: "Waits for an event from outside.",
    keys: &[
        &[
            key("event", Form::Template, "The event's name.").required(),
            key("key", Form::Expression, "An expression giving the correlation key."),
            key(
                "take",
                Form::Words(&[
                    word("first", "The first that fits; it waits for it."),
                    word("kept", "All that have come so far, as a list; it does not wait."),
                ]),
                "Which events.",
            )
            .default("first"),
            key("timeout", Form::Duration, "How long to wait."),
            key(
                "on_timeout",
                Form::Words(&[
                    word("fail", "The node fails as `timeout`."),
                    word("default", "`default` is the payload."),
                ]),
                "What happens when the time is over.",
            )
            .default("fail"),
            key("default", Form::Json, "The payload when no event came."),
        ],
        COMMON,
    ],
    choices: &[],
};

const SLEEP: &Shape = &Shape {
    name: "sleep",
    about: "Waits for a time; the wait survives a restart.",
    keys: &[
        &[
            key("for", Form::DurationTemplate, "A duration: `5m`, `{{ state.minutes }}m`."),
            key("until", Form::Expression, "An expression giving a time."),
        ],
        COMMON,
    ],
    choices: &[Choice::ExactlyOne("time", &["for", "until"])],
};

const MOCK_ERROR: &Shape = &Shape {
    name: "mock_error",
    about: "A scripted failure.",
    keys: &[&[
        key("kind", Form::ErrorKind, "The kind of error.").required(),
        key("message", Form::Template, "What it says."),
    ]],
    choices: &[],
};

const MOCK_USAGE: &Shape = &Shape {
    name: "mock_usage",
    about: "What the scripted call is said to have used.",
    keys: &[&[
        key("input_tokens", COUNT, "Tokens in.").default("0"),
        key("output_tokens", COUNT, "Tokens out.").default("0"),
        key("cost_usd", Form::Money, "Dollars.").default("0"),
    ]],
    choices: &[],
};

const OUTCOME: &[Key] = &[
    key("output", Form::Templates, "The result: JSON whose texts are templates."),
    key(
        "error",
        Form::Either(&[Form::ErrorKind, Form::Object(MOCK_ERROR)]),
        "A failure instead of a result.",
    ),
    key("delay", Form::Duration, "How long it takes."),
    key("usage", Form::Object(MOCK_USAGE), "What it is said to have used."),
];

const MOCK_OUTCOME: &Shape = &Shape {
    name: "outcome",
    about: "What one try gives.",
    keys: &[OUTCOME],
    choices: &[Choice::AtMostOne(&["output", "error"])],
};

const MOCK: &Shape = &Shape {
    name: "mock",
    about: "Does what the script says.",
    keys: &[
        OUTCOME,
        &[key("outcomes", Form::List(&Form::Object(MOCK_OUTCOME)), "One per try; the last repeats.")],
        TIMEOUT,
        COMMON,
    ],
    choices: &[
        Choice::AtMostOne(&["output", "error"]),
        Choice::AtMostOne(&["outcomes", "output"]),
        Choice::AtMostOne(&["outcomes", "error"]),
        Choice::AtMostOne(&["outcomes", "delay"]),
        Choice::AtMostOne(&["outcomes", "usage"]),
    ],
};

/// The kinds, as keys of a node, a step or an action.
pub(crate) const KINDS: &[Key] = &[
    key("llm_call", Form::Object(LLM_CALL), "Asks a model."),
    key("mcp_tool", Form::Object(MCP_TOOL), "Calls a tool of an MCP server."),
    key(
        "http_request",
        Form::Either(&[Form::Template, Form::Object(HTTP_REQUEST)]),
        "Makes an HTTP request; a text is its URL.",
    ),
    key(
        "shell",
        Form::Either(&[Form::Template, Form::List(&Form::Template), Form::Object(SHELL)]),
        "Runs a command; a text or a list is the command.",
    ),
    key("update_context", Form::Object(UPDATE_CONTEXT), "Sets values in the run's context."),
    key(
        "assert",
        Form::Either(&[Form::Expression, Form::Object(ASSERT)]),
        "Fails unless something holds; a text is what must be true.",
    ),
    key("artifact_write", Form::Object(ARTIFACT_WRITE), "Keeps a file with the run."),
    key(
        "artifact_read",
        Form::Either(&[Form::Template, Form::Object(ARTIFACT_READ)]),
        "Reads a file kept with the run; a text is its reference.",
    ),
    key(
        "human_gate",
        Form::Either(&[Form::Template, Form::Object(HUMAN_GATE)]),
        "Waits for a person's answer; a text is the question.",
    ),
    key(
        "workflow_call",
        Form::Either(&[Form::Template, Form::Object(WORKFLOW_CALL)]),
        "Runs another workflow; a text is its name.",
    ),
    key(
        "wait_event",
        Form::Either(&[Form::Template, Form::Object(WAIT_EVENT)]),
        "Waits for an event; a text is its name.",
    ),
    key(
        "sleep",
        Form::Either(&[Form::DurationTemplate, Form::Object(SLEEP)]),
        "Waits for a time; a text is the duration.",
    ),
    key("mock", Form::Object(MOCK), "Does what the script says."),
];

pub(super) const KIND_NAMES: &[&str] = &[
    "llm_call",
    "mcp_tool",
    "http_request",
    "shell",
    "update_context",
    "assert",
    "artifact_write",
    "artifact_read",
    "human_gate",
    "workflow_call",
    "wait_event",
    "sleep",
    "mock",
];

pub(crate) fn is_kind(key: &str) -> bool {
    KIND_NAMES.contains(&key)
}

/// What `kind` of an action may be: its kind, with `implementation`, or what its document defines.
pub(crate) fn stored_kinds() -> impl Iterator<Item = &'static str> {
    KIND_NAMES.iter().copied().chain(["action"])
}

/// The key of a kind of action.
pub(crate) fn kind_key(kind: &str) -> Option<&'static Key> {
    KINDS.iter().find(|key| key.name == kind)
}

const ACTION_WORK: &[&str] = &[
    "implementation",
    "llm_call",
    "mcp_tool",
    "http_request",
    "shell",
    "update_context",
    "assert",
    "artifact_write",
    "artifact_read",
    "human_gate",
    "workflow_call",
    "wait_event",
    "sleep",
    "mock",
];
const _: () = assert!(ACTION_WORK.len() == KIND_NAMES.len() + 1);

pub(super) const ACTION_KEYS: &[Key] = &[
    key("kind", Form::ActionKind, "As it is stored: the kind of action, with `implementation`."),
    key(
        "implementation",
        Form::Implementation,
        "As it is stored: what stands under the kind's own key otherwise.",
    ),
    key("description", Form::Text, "What it does, for people."),
    key("id", Form::Text, "The stored id."),
    key("version", POSITIVE, "The stored version."),
];

/// An action with a name.
pub(crate) const ACTION: &Shape = &Shape {
    name: "action",
    about: "One atomic operation, which steps name.",
    keys: &[ACTION_KEYS, KINDS, TIMEOUT, COMMON],
    choices: &[Choice::ExactlyOne("kind of action", ACTION_WORK), Choice::With("implementation", "kind")],
};

pub(super) const ACTION_PARTS: [&[Key]; 4] = [ACTION_KEYS, KINDS, TIMEOUT, COMMON];
