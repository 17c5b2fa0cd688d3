//! What stands in a `*.test.yaml`: cases of a workflow, with mocks for all that would reach out, and what has to come
//! of them. It is no definition, so it has a schema of its own.

use super::{COUNT, Choice, Form, Key, Shape, key, word};

const MOCKED_ERROR: &Shape = &Shape {
    name: "mocked_error",
    about: "A failure instead of a result.",
    keys: &[&[
        key("kind", Form::ErrorKind, "The kind of error.").required(),
        key("message", Form::Text, "What it says."),
        key("details", Form::Json, "What else is known of it: `{status: 503}`, `{retry_after_ms: 2000}`."),
    ]],
    choices: &[],
};

const MOCKED_USAGE: &Shape = &Shape {
    name: "mocked_usage",
    about: "What the call is said to have used.",
    keys: &[&[
        key("input_tokens", COUNT, "Tokens in.").default("0"),
        key("cached_input_tokens", COUNT, "Those of them that came from the provider's cache.").default("0"),
        key("cache_write_tokens", COUNT, "Those of them that were written to it.").default("0"),
        key("output_tokens", COUNT, "Tokens out.").default("0"),
        key("reasoning_tokens", COUNT, "Those of them that were reasoning.").default("0"),
        key("cost_usd", Form::Money, "Dollars.").default("by the profile's prices"),
    ]],
    choices: &[],
};

const TOOL_CALL: &Shape = &Shape {
    name: "mocked_tool_call",
    about: "A tool that the model asks for.",
    keys: &[&[
        key("tool", Form::Text, "The tool, by our name for it.").required(),
        key("arguments", Form::Json, "What it is to be called with, a map.").default("{}"),
        key("id", Form::Text, "The id of the call.").default("made up"),
    ]],
    choices: &[],
};

/// What one try of a mocked action gives.
pub(crate) const MOCKED: &Shape = &Shape {
    name: "mocked",
    about: "What one try gives.",
    keys: &[&[
        key("output", Form::Json, "The result as it is; what such an action gives beside it is filled in."),
        key("text", Form::Text, "What a model says, a command prints or a server answers."),
        key("json", Form::Json, "The same as JSON."),
        key("tool_calls", Form::List(&Form::Object(TOOL_CALL)), "The tools that the model asks for."),
        key("error", Form::Either(&[Form::ErrorKind, Form::Object(MOCKED_ERROR)]), "A failure instead."),
        key("delay", Form::Duration, "How long it takes, in virtual time.").default("0s"),
        key("usage", Form::Object(MOCKED_USAGE), "What it is said to have used."),
    ]],
    choices: &[
        Choice::AtMostOne(&["output", "error"]),
        Choice::AtMostOne(&["output", "text"]),
        Choice::AtMostOne(&["output", "json"]),
        Choice::AtMostOne(&["output", "tool_calls"]),
        Choice::AtMostOne(&["error", "text"]),
        Choice::AtMostOne(&["error", "json"]),
        Choice::AtMostOne(&["error", "tool_calls"]),
        Choice::AtMostOne(&["json", "tool_calls"]),
    ],
};

const ANSWER: &Shape = &Shape {
    name: "gate_answer",
    about: "How a gate is answered.",
    keys: &[&[
        key("answer", Form::Json, "The answer, as the gate's form asks for it.").required(),
        key("by", Form::Text, "Who answers.").default("tester"),
        key("after", Form::Duration, "So long after it opened, in virtual time.").default("0s"),
    ]],
    choices: &[],
};

const SIGNAL: &Shape = &Shape {
    name: "signal",
    about: "An outside event that the run is told of.",
    keys: &[&[
        key("event", Form::Text, "Its name, as a `wait_event` says it; `tell` goes to the agent that works then, as `wonder tell` does.").required(),
        key("key", Form::Json, "The key that tells one such event from another."),
        key("payload", Form::Json, "What it carries."),
        key("at", Form::Duration, "When, after the start.").default("when it is waited for"),
        key("after", Form::Duration, "So long after it is first waited for.").default("0s"),
    ]],
    choices: &[Choice::AtMostOne(&["at", "after"])],
};

const OUTCOMES: Form = Form::OneOrList(&Form::Object(MOCKED));

/// What cases may have in common, and each of them for itself.
const WORLD: &[Key] = &[
    key(
        "mocks",
        Form::Map(&OUTCOMES),
        "What nodes give, by ref: `build`, `build/step`, `fix/think` in a called workflow, `judge[1]` in a branch. Of a \
         list each try takes the next, and the last repeats.",
    ),
    key("tools", Form::Map(&OUTCOMES), "The same for every node of that name in a called workflow."),
    key("models", Form::Map(&OUTCOMES), "The same for every `llm_call` that uses that profile, in order."),
    key(
        "gates",
        Form::Map(&Form::OneOrList(&Form::Object(ANSWER))),
        "How gates are answered, by node or title, in order; the last repeats.",
    ),
    key("signals", Form::OneOrList(&Form::Object(SIGNAL)), "Outside events, at a time or when waited for."),
    key(
        "cassette",
        Form::Text,
        "A directory that `wonder run --record` wrote; it answers what is not mocked.",
    ),
];

const STATUSES: Form = Form::Words(&[
    word("completed", "It came to its end."),
    word("failed", "It failed."),
    word("cancelled", "It was cancelled."),
    word("timed_out", "Its time was over."),
    word("waiting", "It waits for a person or an event that did not come."),
    word("paused", "It was paused."),
]);

const EXPECT: &Shape = &Shape {
    name: "expect",
    about: "What has to come of it.",
    keys: &[&[
        key("status", STATUSES, "How the run stands when nothing happens any more.").default("completed"),
        key(
            "output",
            Form::Json,
            "A part of the output: of a map the keys that are written, of a list each item.",
        ),
        key("output_exactly", Form::Json, "The whole output."),
        key("state", Form::Json, "A part of the run's `state`."),
        key(
            "called",
            Form::Json,
            "A part of the `state` of the run that a node called last, by node: an agent's conversation is \
             `{fix: {messages: […]}}`.",
        ),
        key("error", Form::ErrorKind, "The kind of the failure."),
        key("message", Form::Text, "A part of its message."),
        key(
            "path",
            Form::List(&Form::Text),
            "The nodes in the order in which they began; those of called workflows too if one of them is named.",
        ),
        key("visits", Form::Map(&COUNT), "How often nodes were visited: `{fix/think: 3}`."),
        key("max_turns", COUNT, "At most so many visits of any agent's `think`."),
        key("events", Form::OneOrList(&Form::Text), "Kinds of events that were recorded, in this order."),
        key("cost", Form::Money, "What it cost, in dollars."),
        key("max_cost", Form::Money, "What it cost at most."),
        key("took", Form::Duration, "How long it took, in virtual time."),
    ]],
    choices: &[Choice::AtMostOne(&["output", "output_exactly"])],
};

const CASE: &Shape = &Shape {
    name: "case",
    about: "One run of the workflow.",
    keys: &[
        &[
            key("name", Form::Text, "What it shows.").required(),
            key("input", Form::Json, "The run's input.").default("{}"),
        ],
        WORLD,
        &[key("expect", Form::Object(EXPECT), "What has to come of it.").default("{status: completed}")],
    ],
    choices: &[],
};

pub(crate) const TEST_DOCUMENT: &Shape = &Shape {
    name: "test",
    about: "Cases of a workflow.",
    keys: &[
        &[
            key("wonder", Form::Format, "The version of the format: 1."),
            key("workflow", Form::Text, "The file with the workflow, beside this one.")
                .default("the file of the same name: `hello.test.yaml` tests `hello.yaml`"),
            key("start", Form::Name, "Which of its workflows is started.").default("the first"),
        ],
        WORLD,
        &[key("cases", Form::List(&Form::Object(CASE)), "The cases.").required()],
    ],
    choices: &[],
};
