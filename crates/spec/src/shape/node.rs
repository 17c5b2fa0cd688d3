//! Nodes, tasks and steps.

use super::action::{AGENT, KIND_NAMES, KINDS};
use super::policy::{BUDGET, ESTIMATE, FOREACH, NEXT, ON_ERROR, RETRY_FORM, STRATEGY};
use super::{BOUND, COUNT, Choice, Form, Key, POSITIVE, Shape, Word, key, word};

const ADAPTIVE: &[Word] = &[word("adaptive", "Three times the 99th percentile of past durations.")];

const MAY_MUTATE: &Shape = &Shape {
    name: "may_mutate",
    about: "The node's result may add nodes to the run.",
    keys: &[&[key("max_nodes", POSITIVE, "How many.").default("10")]],
    choices: &[],
};

const VERDICTS: &[Word] = &[
    word("continue", "The step runs."),
    word("skip", "The step is left out."),
    word("succeed", "The task ends here, with what it has."),
    word("fail", "The task fails as `assertion_failed`."),
];

const CONDITION: &Shape = &Shape {
    name: "condition",
    about: "What to do with the step.",
    keys: &[&[
        key("if", Form::Expression, "The test.").required(),
        key("then", Form::Words(VERDICTS), "If it is true.").default("continue"),
        key("else", Form::Words(VERDICTS), "If not.").default("skip"),
    ]],
    choices: &[],
};

const CONDITION_FORM: Form = Form::Either(&[Form::Expression, Form::Object(CONDITION)]);

pub(super) const STEP: &Shape = &Shape {
    name: "step",
    about: "A point in a task; executes exactly one action.",
    keys: &[
        &[
            key("ref", Form::Text, "Its name in the task.").default("`step_n`, counting from 1"),
            key("id", Form::Text, "The stored id."),
            key("ordinal", COUNT, "Its place in the task.").default("as written"),
            key("action", Form::NameAt, "The name of an action."),
            key("action_version", POSITIVE, "The version of that action, as in `action: name@3`.")
                .default("the one that is here"),
            key(
                "input_mapping",
                INPUT_MAPPING,
                "The action's input: by key, or one expression for all of it.",
            )
            .default("what its texts name"),
            key("output_mapping", Form::Writes, "Where the result goes.").default("`state.<ref>: result`"),
            key(
                "on_failure",
                Form::Words(&[
                    word("abort", "The task fails."),
                    word(
                        "retry",
                        "The task is tried again from its first step, as far as its `retry` allows.",
                    ),
                    word("continue", "The next step runs; the error is in `state._errors.<ref>`."),
                ]),
                "What a failure of the action means.",
            )
            .default("abort"),
            key("condition", CONDITION_FORM, "Whether the step runs."),
            key("when", CONDITION_FORM, "The short name of `condition`."),
            key(
                "artifact_above",
                POSITIVE,
                "A result of more bytes goes to an artifact; `{head, artifact, bytes}` stands in its place.",
            )
            .default("never, and 262144 for `mcp_tool`"),
        ],
        KINDS,
    ],
    choices: &[STEP_WORK, Choice::AtMostOne(&["condition", "when"])],
};

const STEP_WORK: Choice = Choice::ExactlyOne("kind of work", STEP_WORK_KEYS);
const STEP_WORK_KEYS: &[&str] = &[
    "action",
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
const NODE_WORK_KEYS: &[&str] = &[
    "task",
    "steps",
    "agent",
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
const _: () =
    assert!(STEP_WORK_KEYS.len() == KIND_NAMES.len() + 1 && NODE_WORK_KEYS.len() == KIND_NAMES.len() + 3);

const INPUT_MAPPING: Form = Form::Either(&[Form::Mapping, Form::Expression]);

const STEPS: Form = Form::List(&Form::Object(STEP));

pub(super) const TASK_KEYS: &[Key] = &[
    key("id", Form::Text, "The stored id."),
    key("version", POSITIVE, "The stored version."),
    key("description", Form::Text, "What it does, for people."),
    key("tags", Form::OneOrList(&Form::Text), "Words to find it by."),
    key("project_id", Form::Text, "The project it belongs to."),
    key("library_id", Form::Text, "The library it belongs to.").not_yet(),
    key("input_schema", Form::JsonSchema, "The schema of its input."),
    key("output_schema", Form::JsonSchema, "The schema of its output."),
    key(
        "retry",
        RETRY_FORM,
        "Attempts in all, the first included, when a step asks for another by `on_failure: retry`.",
    )
    .default("not"),
    key("timeout", Form::Duration, "How long it may take."),
    key("steps", STEPS, "What it does, in order.").required(),
    key("created_at", Form::Text, "When it was stored."),
    key("updated_at", Form::Text, "When it was last stored."),
];

pub(super) const TASK: &Shape = &Shape {
    name: "task",
    about: "A list of steps that one worker runs in memory.",
    keys: &[TASK_KEYS],
    choices: &[Choice::AtMostOne(&["project_id", "library_id"])],
};

const NODE_KEYS: &[Key] = &[
    key("name", Form::Text, "Its name, for people."),
    key("id", Form::Text, "The stored id."),
    key("task", Form::NameAt, "The name of the task it executes."),
    key("task_version", POSITIVE, "The version of that task, as in `task: name@3`.")
        .default("the one that is here"),
    key(
        "inline",
        Form::Words(&[
            word("action", "As one action on the node."),
            word("steps", "As `steps` on the node."),
        ]),
        "With `task`: how the task was written before `validate --expand` wrote it out.",
    ),
    key("steps", STEPS, "The task itself, as a list of steps."),
    key("input_mapping", INPUT_MAPPING, "The task's input: by key, or one expression for all of it.")
        .default("what the node's texts name"),
    key("output_mapping", Form::Writes, "Where the result goes.").default("`state.<ref>: result`"),
    key("timeout", Form::DurationOr(ADAPTIVE), "How long the task may take."),
    key(
        "on_timeout",
        Form::Words(&[
            word("fail", "The node fails as `timeout`, also when an action ran out of its own time."),
            word("retry", "Up to 3 more attempts."),
        ]),
        "What happens when the time is over.",
    )
    .default("fail; after the timeout of an action up to 3 more attempts"),
    key(
        "retry",
        RETRY_FORM,
        "Of an action or `steps` on the node: attempts in all, the first included, whatever way it failed.",
    )
    .default("not"),
    key(
        "fan_out",
        Form::Words(&[
            word("first_match", "The first transition that fits is taken."),
            word("all", "All that fit are taken, as one group."),
        ]),
        "Which of the transitions are taken.",
    )
    .default("first_match"),
    key("on_error", ON_ERROR, "What to do about failures, in order."),
    key("budget", Form::Object(BUDGET), "What the node may spend."),
    key(
        "may_mutate",
        Form::Either(&[Form::Bool, Form::Object(MAY_MUTATE)]),
        "Its result may add nodes to the run.",
    ),
    key("estimate", Form::Object(ESTIMATE), "What it is expected to take."),
    key("agent", Form::Object(AGENT), "Turns of a model and its tools until it is done."),
    key(
        "max_visits",
        BOUND,
        "How often one lineage may come here; then transitions that lead here stop fitting.",
    )
    .default("no bound"),
    key(
        "next",
        Form::OneOrList(&Form::Either(&[Form::Text, Form::Object(NEXT)])),
        "The ways out of the node; a text is a node's ref.",
    ),
    key(
        "needs",
        Form::OneOrList(&Form::Text),
        "The nodes that must have ended before. Makes the workflow a dag.",
    ),
    key("join", STRATEGY, "How many of its needs must complete (dag).").default("all"),
    key("when", Form::Expression, "The node is skipped unless this is true (dag)."),
    key("foreach", Form::Object(FOREACH), "The node runs once per item (dag)."),
];

pub(super) const NODE: &Shape = &Shape {
    name: "node",
    about: "A point in the graph; executes exactly one task.",
    keys: &[NODE_KEYS, KINDS],
    choices: &[NODE_WORK, Choice::With("task_version", "task")],
};

/// A node in a list has its ref inside.
pub(super) const LISTED_NODE: &Shape = &Shape {
    name: "listed_node",
    about: "A point in the graph; executes exactly one task.",
    keys: &[&[key("ref", Form::Text, "Its name in the workflow.").required()], NODE_KEYS, KINDS],
    choices: &[NODE_WORK, Choice::With("task_version", "task")],
};

const NODE_WORK: Choice = Choice::ExactlyOne("kind of work", NODE_WORK_KEYS);
