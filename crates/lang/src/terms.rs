//! The words of the language, each with how it is written and what it does: for those who explain them, suggest
//! them and hold texts against them. Functions of expressions are listed by [`crate::expr::functions`], filters,
//! tests and functions of templates by [`crate::template`]; what every text may begin with is here.

/// One word: a function, a macro, a filter or a test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Term {
    pub name: &'static str,
    /// How it is written.
    pub usage: &'static str,
    pub about: &'static str,
    /// Something to try: it reads nothing from around it.
    pub example: &'static str,
}

pub(crate) const fn term(
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    example: &'static str,
) -> Term {
    Term { name, usage, about, example }
}

/// A name that an expression or a template may begin with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Root {
    pub name: &'static str,
    pub about: &'static str,
    /// Where it can be read.
    pub visible: &'static str,
    /// What it has, if that is known; empty: whatever was put there.
    pub fields: &'static [(&'static str, &'static str)],
}

const ERROR_FIELDS: &[(&str, &str)] = &[
    ("kind", "The kind of error, such as `timeout`."),
    ("message", "What happened, for people."),
    ("node", "The ref of the node that failed."),
    ("attempt", "Which attempt of the task it was, from 1."),
    ("details", "More, by kind: the status of a request, the exit code of a command."),
];

/// Every root, in the order in which messages list them.
pub const ROOTS: &[Root] = &[
    Root {
        name: "input",
        about: "The run's input. In a task, the task's; in a template of an action with an `input_mapping`, what that gives. `input.feedback` is always there.",
        visible: "everywhere",
        fields: &[],
    },
    Root {
        name: "state",
        about: "What nodes have written: `state.<ref>` unless they say otherwise. In a task, what its steps have written.",
        visible: "everywhere",
        fields: &[],
    },
    Root {
        name: "output",
        about: "What has been written of the run's output. In a task, of the task's.",
        visible: "everywhere",
        fields: &[],
    },
    Root {
        name: "result",
        about: "What just came back.",
        visible: "in an output mapping, and in the transitions of the node that just completed",
        fields: &[],
    },
    Root {
        name: "error",
        about: "The failure that a rule is about.",
        visible: "in `on_error`",
        fields: ERROR_FIELDS,
    },
    Root {
        name: "_branch",
        about: "The branch of a fan-out.",
        visible: "where a fan-out leads to, up to its fan-in",
        fields: &[
            ("index", "Which branch it is, from 0."),
            ("total", "How many branches there are."),
            ("item", "The item of `foreach`."),
            ("fan_out_node_id", "The ref of the node that fanned out."),
            ("output", "What the branch has written, or the last result."),
            ("parent", "The branch around it."),
        ],
    },
    Root {
        name: "needs",
        about: "The results of the nodes that a node of a dag needs, by ref; null for one that was skipped.",
        visible: "in a dag: at nodes, and in the workflow's `output_mapping`, where all nodes are in it",
        fields: &[],
    },
    Root {
        name: "run",
        about: "The run itself.",
        visible: "everywhere but in tasks that nodes name",
        fields: &[
            ("id", "Its id."),
            ("workflow", "The name of its workflow."),
            ("version", "The version of its workflow."),
            ("started_at", "When it started, as RFC 3339."),
        ],
    },
    Root {
        name: "_last_error",
        about: "The last failure on the way here that was taken care of; null at first. Also `state._last_error`.",
        visible: "at nodes and transitions",
        fields: ERROR_FIELDS,
    },
    Root {
        name: "secret",
        about: "Secrets by name: from the environment, `.env` or a file, never stored.",
        visible: "in templates of actions that a worker performs",
        fields: &[],
    },
];

/// What an action gives whose fields nobody knows before the run, in words; None: see [`result_fields`].
pub fn result_about(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "mcp_tool" => "the tool's structured content, or its text",
        "update_context" => "the values set, by target path",
        "assert" | "sleep" => "none (null)",
        "artifact_read" => {
            "what is in it: JSON as a value, text as a text, anything else as `{base64, media_type, bytes}`"
        }
        "human_gate" => "the answer; with `quorum`, the list of answers",
        "workflow_call" => {
            "the child's output; with `on_failure: catch`, of a failure a map with its `error`"
        }
        "wait_event" => "what the event carries",
        "mock" => "its `output`; `{}` without one",
        _ => return None,
    })
}

/// The root of this name.
pub fn root(name: &str) -> Option<&'static Root> {
    ROOTS.iter().find(|root| root.name == name)
}

/// What an action of this kind gives; empty: whatever it is told, or nothing.
pub fn result_fields(kind: &str) -> &'static [(&'static str, &'static str)] {
    match kind {
        "shell" => &[
            ("exit_code", "The exit code."),
            ("stdout", "What it wrote."),
            ("stderr", "What it complained about."),
            ("json", "`stdout` as a value, if it is JSON; else null."),
            (
                "artifacts",
                "References of the files that it left in `WONDER_ARTIFACTS`; absent if there are none.",
            ),
        ],
        "artifact_write" => &[
            ("artifact", "Its address: `blake3:` and the hash of what is in it."),
            ("name", "Its name."),
            ("type", "The name of its type; null without one."),
            ("media_type", "What it is, as `text/markdown`."),
            ("bytes", "How many bytes it has."),
        ],
        "http_request" => &[
            ("status", "The status."),
            ("headers", "The headers, in small letters."),
            ("body", "The body as text."),
            ("json", "The body as a value, if it is JSON; else null."),
        ],
        "llm_call" => &[
            ("text", "The answer."),
            ("json", "The answer as a value, with `output_schema`."),
            (
                "tool_calls",
                "The tools it asks for: `id`, `tool`, `arguments`, `effects`, `server`, `name`, `error`.",
            ),
            ("violations", "With `on_violation: return`, what is wrong with the answer."),
            ("message", "The whole message."),
            ("usage", "The tokens it used."),
            ("model", "The model that answered."),
            ("finish_reason", "Why it stopped."),
            ("request_id", "What the provider calls the request; null if it does not say."),
        ],
        _ => &[],
    }
}
