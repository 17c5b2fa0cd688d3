//! What a document may define: a workflow, a task, an action, a prompt, a model or a type of artifacts.
//!
//! A document says what it is by `kind`, or by a key that only one of them has: `nodes`, `steps`, an
//! action's kind, `template`, `model`, `media_type`.

use super::action::{ACTION, ACTION_PARTS, ISOLATIONS};
use super::node::{LISTED_NODE, NODE, TASK, TASK_KEYS};
use super::policy::{BUDGET, ON_ERROR, TRANSITION, TRANSITION_CHOICES};
use super::{COUNT, Choice, Form, Key, POSITIVE, Shape, key, word};

const HEAD: &[Key] = &[
    key("wonder", Form::Format, "The version of the format: 1. The first key of the file."),
    key("name", Form::Name, "The name by which others refer to it.").required(),
];

const WORKFLOW_KINDS: Form = Form::Words(&[
    word("graph", "Transitions say what comes next."),
    word("dag", "`needs` say what must have ended before."),
    word("workflow", "Either, by whether a node has `needs`."),
]);

const CONCURRENCY: &Shape = &Shape {
    name: "concurrency",
    about: "How many runs of the workflow may be under way at once.",
    keys: &[&[
        key("limit", POSITIVE, "How many.").required(),
        key("key", Form::Expression, "Runs with the same key share the limit; it reads `input`."),
        key("hold_while_waiting", Form::Bool, "A run that waits for a person keeps its place.")
            .default("false"),
    ]],
    choices: &[],
};

const TRANSITIONS: &Shape = &Shape {
    name: "listed_transition",
    about: "A directed edge between two nodes.",
    keys: &[&[key("from", Form::Text, "The ref of the node it leaves.").required()], TRANSITION],
    choices: TRANSITION_CHOICES,
};

const WORKFLOW: &[Key] = &[
    key("kind", WORKFLOW_KINDS, "What the document defines.").default("by its keys"),
    key("id", Form::Text, "The stored id."),
    key("version", POSITIVE, "The stored version."),
    key("description", Form::Text, "What it does, for people."),
    key("project_id", Form::Text, "The project it belongs to."),
    key("library_id", Form::Text, "The library it belongs to.").not_yet(),
    key("tags", Form::OneOrList(&Form::Text), "Words to find it by."),
    key("labels", Form::Map(&Form::Text), "Labels of its runs."),
    key("input_schema", Form::JsonSchema, "The schema of `input`."),
    key("context_schema", Form::JsonSchema, "The schema of `state`."),
    key("output_schema", Form::JsonSchema, "The schema of the run's output."),
    key("output_mapping", Form::Mapping, "The run's output, laid over `output`."),
    key("initial_node", Form::Text, "The ref of the node a run starts at.").default("the first"),
    key(
        "nodes",
        Form::Either(&[Form::Map(&Form::Object(NODE)), Form::List(&Form::Object(LISTED_NODE))]),
        "The nodes by ref, or as a list.",
    )
    .required(),
    key("transitions", Form::List(&Form::Object(TRANSITIONS)), "Transitions, beside those under `next`."),
    key("timeout", Form::Duration, "How long a run may take.").default("1h"),
    key(
        "on_timeout",
        Form::Words(&[
            word("human_gate", "The run pauses, and a person may give it more time."),
            word("cancel_all", "Its tokens are cancelled and the run is `timed_out`."),
            word("fail", "The run fails."),
        ]),
        "What happens when the time is over.",
    )
    .default("human_gate"),
    key("on_error", ON_ERROR, "What to do about failures that no node took care of."),
    key("budget", Form::Object(BUDGET), "What a run may spend."),
    key("concurrency", Form::Object(CONCURRENCY), "How many runs may be under way at once."),
    key(
        "fail_fast",
        Form::Bool,
        "The first failure cancels the rest (dag); else what does not need it goes on.",
    )
    .default("false"),
    key("max_parallel", POSITIVE, "How many tasks may be out at once.").default("no bound"),
    key("mutations_max", Form::Count(0, u32::MAX as i64), "How often a run may change itself.").default("20"),
    key("nodes_max", POSITIVE, "How many nodes it may have in all.").default("200000"),
    key("triggers", Form::Json, "What starts it, on a server.").not_yet(),
    key("context_tables", Form::Bool, "Keep `state` in typed tables too.").default("false").not_yet(),
    key("tasks", Form::NameMap(&Form::Object(TASK)), "Tasks by name."),
    key("actions", Form::NameMap(&Form::Object(ACTION)), "Actions by name."),
    key(
        "tools",
        Form::NameMap(&Form::Object(ACTION)),
        "Actions that models may call, by name; kept with `actions`.",
    ),
    key("prompts", Form::NameMap(&Form::Object(PROMPT)), "Prompts by name."),
    key("models", Form::NameMap(&Form::Object(MODEL)), "Model profiles by name."),
    key("artifact_types", Form::NameMap(&Form::Object(ARTIFACT_TYPE)), "Types of artifacts by name."),
    key(
        "mcp_servers",
        Form::NameMap(&Form::Object(MCP_SERVER)),
        "MCP servers by name; those of the settings (`[mcp_servers.NAME]`) need only be named.",
    ),
    key("created_at", Form::Text, "When it was stored."),
    key("updated_at", Form::Text, "When it was last stored."),
];

pub(crate) const WORKFLOW_DOCUMENT: &Shape = &Shape {
    name: "workflow",
    about: "A graph of nodes.",
    keys: &[HEAD, WORKFLOW],
    choices: &[Choice::AtMostOne(&["project_id", "library_id"])],
};

pub(crate) const TASK_DOCUMENT: &Shape = &Shape {
    name: "task_document",
    about: "A task that workflows name.",
    keys: &[
        HEAD,
        &[key("kind", Form::Words(&[word("task", "A task.")]), "What the document defines.")],
        TASK_KEYS,
    ],
    choices: &[Choice::AtMostOne(&["project_id", "library_id"])],
};

pub(crate) const ACTION_DOCUMENT: &Shape = &Shape {
    name: "action_document",
    about: "An action that steps name.",
    keys: &[HEAD, ACTION_PARTS[0], ACTION_PARTS[1], ACTION_PARTS[2], ACTION_PARTS[3]],
    choices: ACTION.choices,
};

const PROMPT_KEYS: &[Key] = &[
    key("id", Form::Text, "The stored id."),
    key("version", POSITIVE, "The stored version."),
    key("system", Form::Template, "The system prompt."),
    key("template", Form::Template, "The prompt.").required(),
    key("requires", Form::JsonSchema, "The schema of what the template reads."),
    key("produces", Form::JsonSchema, "The schema of the answer."),
    key("examples", Form::List(&Form::Json), "Examples, for people and tests."),
];

const PROMPT: &Shape =
    &Shape { name: "prompt", about: "A prompt that actions name.", keys: &[PROMPT_KEYS], choices: &[] };

pub(crate) const PROMPT_DOCUMENT: &Shape = &Shape {
    name: "prompt_document",
    about: "A prompt that actions name.",
    keys: &[
        HEAD,
        &[key("kind", Form::Words(&[word("prompt", "A prompt.")]), "What the document defines.")],
        PROMPT_KEYS,
    ],
    choices: &[],
};

const PRICES: &Shape = &Shape {
    name: "prices",
    about: "Dollars per million tokens.",
    keys: &[&[
        key("input", Form::Money, "Tokens in.").default("0"),
        key("output", Form::Money, "Tokens out.").default("0"),
        key("cached_input", Form::Money, "Tokens in that the provider had cached.").default("`input`"),
        key("cache_write", Form::Money, "Tokens in that the provider puts into its cache.")
            .default("`input`"),
    ]],
    choices: &[],
};

const RATE: &Shape = &Shape {
    name: "rate",
    about: "What may be asked of a model in a minute. A call that has to wait is not tried again for it.",
    keys: &[&[key("rpm", POSITIVE, "Requests."), key("tpm", COUNT, "Tokens, in and out.")]],
    choices: &[Choice::AtLeastOne("rate", &["rpm", "tpm"])],
};

const MODEL_KEYS: &[Key] = &[
    key("id", Form::Text, "The stored id."),
    key("version", POSITIVE, "The stored version."),
    key(
        "provider",
        Form::Text,
        "Who serves it: `openai`, `anthropic`, `gemini`, `ollama` or `openai_compatible`.",
    )
    .default("by the model's name"),
    key("model", Form::Text, "The provider's name for it.").required(),
    key("base_url", Form::Text, "Where it is: `https://host/v1`.").default("the provider's own"),
    key("api_key", Form::Template, "Its key: `{{ secret.NAME }}`; it goes to `base_url` and nowhere else.")
        .default("the provider's usual variable, such as OPENAI_API_KEY"),
    key("headers", Form::Map(&Form::Template), "Headers of every call; they may read secrets."),
    key("rate", Form::Object(RATE), "How much may be asked of it; all runs of a process share it."),
    key(
        "parameters",
        Form::Map(&Form::Json),
        "Of every call: `max_tokens`, `temperature`, `stop`, `reasoning`, `wire`, and fields of the provider's own.",
    ),
    key("fallbacks", Form::OneOrList(&Form::NameAt), "Profiles to switch to, in order."),
    key("cheaper", Form::NameAt, "The profile to downgrade to."),
    key("prices", Form::Object(PRICES), "Dollars per million tokens.")
        .default("nothing for `ollama`, else not known"),
    key("max_output_tokens", POSITIVE, "The most tokens it can answer with."),
];

const MODEL: &Shape =
    &Shape { name: "model", about: "A model profile that actions name.", keys: &[MODEL_KEYS], choices: &[] };

pub(crate) const MODEL_DOCUMENT: &Shape = &Shape {
    name: "model_document",
    about: "A model profile that actions name.",
    keys: &[
        HEAD,
        &[key("kind", Form::Words(&[word("model", "A model profile.")]), "What the document defines.")],
        MODEL_KEYS,
    ],
    choices: &[],
};

const SAMPLING: &Shape = &Shape {
    name: "sampling",
    about: "What an MCP server may ask of a model while it performs a call. Without it, it may ask nothing.",
    keys: &[&[
        key("model", Form::Text, "The name of a model profile.").required(),
        key("max_tokens", POSITIVE, "The most tokens of one answer.").default("the profile's"),
        key("max_calls", Form::Count(1, 1_000), "How often, while it performs one call.").default("5"),
    ]],
    choices: &[],
};

const MCP_SERVER: &Shape = &Shape {
    name: "mcp_server",
    about: "An MCP server: a program that is started when it is needed and shared, or an address. Its texts may read secrets.",
    keys: &[&[
        key("command", Form::List(&Form::Template), "The program and its arguments, no shell."),
        key("env", Form::Map(&Form::Template), "Environment variables, beside the ordinary ones."),
        key("cwd", Form::Template, "The working directory.").default("where the run was started"),
        key("isolation", Form::Words(ISOLATIONS), "How far it is kept apart.").default("none"),
        key("image", Form::Template, "The container's image."),
        key("network", Form::Bool, "May use the network, in a sandbox or a container.").default("false"),
        key("url", Form::Template, "Its address, instead of `command`: streamable HTTP."),
        key("headers", Form::Map(&Form::Template), "Headers of every request to `url`."),
        key("timeout", Form::Duration, "How long one request to it may take, its start included.")
            .default("1m to start and to list its tools, 10m a call"),
        key("sampling", Form::Object(SAMPLING), "Lets it ask a model, within the run's budget."),
    ]],
    choices: &[Choice::ExactlyOne("way to reach it", &["command", "url"])],
};

const ARTIFACT_TYPE_KEYS: &[Key] = &[
    key("id", Form::Text, "The stored id."),
    key("version", POSITIVE, "The stored version."),
    key(
        "schema",
        Form::JsonSchema,
        "The schema of what is in them: they are JSON, and checked when written.",
    ),
    key("media_type", Form::Text, "What they are, as `text/markdown`.")
        .default("`application/json` with a `schema`, else by the content"),
];

const ARTIFACT_TYPE: &Shape = &Shape {
    name: "artifact_type",
    about: "What artifacts of one kind are.",
    keys: &[ARTIFACT_TYPE_KEYS],
    choices: &[],
};

pub(crate) const ARTIFACT_TYPE_DOCUMENT: &Shape = &Shape {
    name: "artifact_type_document",
    about: "What artifacts of one kind are.",
    keys: &[
        HEAD,
        &[key(
            "kind",
            Form::Words(&[word("artifact_type", "A type of artifacts.")]),
            "What the document defines.",
        )],
        ARTIFACT_TYPE_KEYS,
    ],
    choices: &[],
};
