//! Retries, responses to failures, budgets, fan-outs and fan-ins.

use super::{BOUND, COUNT, Choice, Form, Key, POSITIVE, Shape, Word, key, word};

pub(super) const BACKOFFS: &[Word] = &[
    word("none", "No wait between tries."),
    word("linear", "The initial delay times the number of the try."),
    word("exponential", "The initial delay, doubled each time."),
];

const DELAYS: &[Key] = &[
    key("backoff", Form::Words(BACKOFFS), "How the wait between tries grows.").default("exponential"),
    key("initial_delay", Form::Duration, "The wait before the second try.").default("1s"),
    key("max_delay", Form::Duration, "The longest wait between two tries.").default("1m"),
];

pub(super) const RETRY: &Shape = &Shape {
    name: "retry",
    about: "How often to try, and how long to wait in between.",
    keys: &[
        &[key("max_attempts", Form::Count(1, 1_000_000), "Attempts in all, the first included.").required()],
        DELAYS,
    ],
    choices: &[],
};

pub(super) const RETRY_FORM: Form = Form::Either(&[Form::Count(1, 1_000_000), Form::Object(RETRY)]);

const ON_EXCEEDED: &[Word] = &[
    word("pause", "The run waits at a gate, where a person may raise the budget."),
    word("downgrade", "Nodes that have not started use their profile's `cheaper` model."),
    word("fail", "The node fails as `budget_exceeded`."),
];

pub(super) const BUDGET: &Shape = &Shape {
    name: "budget",
    about: "A bound on what a run or a node may spend.",
    keys: &[&[
        key("usd", Form::Money, "Dollars."),
        key("tokens", COUNT, "Model tokens, in and out."),
        key("calls", COUNT, "Model calls."),
        key("wall", Form::Duration, "Time on the clock."),
        key("warn_at", Form::Share, "The share of the budget at which a warning is recorded.").default("0.8"),
        key("on_exceeded", Form::Words(ON_EXCEEDED), "What happens when it is used up.").default("pause"),
    ]],
    choices: &[Choice::AtLeastOne("bound", &["usd", "tokens", "calls", "wall"])],
};

pub(super) const ESTIMATE: &Shape = &Shape {
    name: "estimate",
    about: "What a node is expected to cost; the order of a dag's nodes goes by it.",
    keys: &[&[
        key("usd", Form::Money, "Dollars."),
        key("duration", Form::Duration, "Time from dispatch to result."),
    ]],
    choices: &[],
};

const M_OF_N: &Shape = &Shape {
    name: "strategy",
    about: "Fires at the M-th arrival.",
    keys: &[&[key("m_of_n", POSITIVE, "How many must arrive.").required()]],
    choices: &[],
};

pub(super) const STRATEGY: Form = Form::Either(&[
    Form::Words(&[word("all", "When every one of them is done."), word("any", "At the first that arrives.")]),
    Form::Object(M_OF_N),
]);

const BRANCH_FAILURES: &[Word] = &[
    word("fail", "The fan-in fails at the first failed branch."),
    word("continue", "The others go on; it fails only if none arrives."),
];

pub(super) const FOREACH: &Shape = &Shape {
    name: "foreach",
    about: "One token per item of a list.",
    keys: &[&[
        key("items", Form::Expression, "An expression giving the list.").required(),
        key("as", Form::Ref, "The name by which expressions read the item, beside `_branch.item`."),
        key("max_parallel", POSITIVE, "How many branches may be under way at once."),
        key("on_branch_failure", Form::Words(BRANCH_FAILURES), "What a failed branch means (in a dag).")
            .default("fail"),
        key("keep_failed", Form::Bool, "Leave `{error: ...}` in a failed branch's slot (in a dag).")
            .default("false"),
    ]],
    choices: &[],
};

const MERGES: &[Word] = &[
    word("append", "A list, in branch order."),
    word("merge_object", "One map; of equal keys the later branch's wins."),
    word("keyed_by_branch", "A map by branch index."),
    word("last_wins", "What the last branch to arrive brought."),
];

const MERGE: &Shape = &Shape {
    name: "merge",
    about: "What the branches brought, written one level out.",
    keys: &[&[
        key("source", Form::Expression, "What to read from each branch.").default("_branch.output"),
        key("target", Form::Text, "The target path: `state.votes`.").required(),
        key("strategy", Form::Words(MERGES), "How the parts are put together.").default("append"),
        key("keep_failed", Form::Bool, "Leave `{error: ...}` in a failed branch's slot.").default("false"),
    ]],
    choices: &[],
};

const SYNCHRONIZATION: &Shape = &Shape {
    name: "synchronization",
    about: "A fan-in: where the branches of a group come together. `{}` means \"as written on the other transition\".",
    keys: &[&[
        key("strategy", STRATEGY, "When it fires.").default("all"),
        key("sibling_group", Form::Text, "The node or transition that fanned out.").default("the innermost"),
        key("timeout", Form::Duration, "How long to wait after the first arrival."),
        key(
            "on_timeout",
            Form::Words(&[
                word("fail", "The fan-in fails."),
                word("proceed_with_available", "It fires with the branches that have arrived."),
            ]),
            "What happens when the time is over.",
        )
        .default("fail"),
        key(
            "on_early_complete",
            Form::Words(&[
                word("cancel", "Branches still under way are cancelled."),
                word("abandon", "A task that is out may finish; nothing more."),
            ]),
            "What becomes of the others when it fires early.",
        )
        .default("cancel"),
        key("on_branch_failure", Form::Words(BRANCH_FAILURES), "What a failed branch means.").default("fail"),
        key("merge", Form::Object(MERGE), "What to keep of what the branches brought."),
    ]],
    choices: &[],
};

pub(super) const TRANSITION: &[Key] = &[
    key("id", Form::Text, "The stored id."),
    key("ref", Form::Text, "Its own name.").default("`from.n`, counting from 0"),
    key("to", Form::Text, "The ref of the node it leads to.").required(),
    key("priority", Form::Count(i64::MIN, i64::MAX), "The lowest is looked at first.").default("as written"),
    key(
        "on",
        Form::Words(&[
            word("success", "The node completed."),
            word("failure", "The node failed, and no response took care of it."),
            word("any", "Either."),
        ]),
        "After which end of the node it may be taken.",
    )
    .default("success"),
    key("when", Form::Expression, "It is taken only if this is true."),
    key("condition", Form::Expression, "The long name of `when`."),
    key("spawn_count", POSITIVE, "Makes this many tokens, as one group."),
    key("foreach", Form::Object(FOREACH), "Makes one token per item, as one group."),
    key("max_iterations", BOUND, "How often one lineage may take it: a number, or an expression giving one."),
    key("synchronization", Form::Object(SYNCHRONIZATION), "Arrives at a fan-in."),
];

pub(super) const TRANSITION_CHOICES: &[Choice] =
    &[Choice::AtMostOne(&["when", "condition"]), Choice::AtMostOne(&["spawn_count", "foreach"])];

/// A transition under its node.
pub(super) const NEXT: &Shape = &Shape {
    name: "transition",
    about: "A way out of the node.",
    keys: &[TRANSITION],
    choices: TRANSITION_CHOICES,
};

const CHANGE: &Shape = &Shape {
    name: "change",
    about: "Overrides for the next attempt.",
    keys: &[&[
        key("model", Form::Text, "Another model profile."),
        key("system", Form::Template, "Another system prompt."),
        key("tools", Form::List(&Form::NameAt), "Other tools.").not_yet(),
        key("input", Form::Mapping, "Laid over the task's input, key by key."),
    ]],
    choices: &[],
};

pub(crate) const RESPONSES: &[Word] = &[
    word("retry", "Another attempt."),
    word("switch_model", "The next of the profile's `fallbacks`."),
    word("stricter_prompt", "Again, with the violation and the schema appended."),
    word("change", "Again, with overrides."),
    word("loop_with_feedback", "Again, with the judgement in `input.feedback`."),
    word("add_validator", "A validator node is put behind this one, which runs again."),
    word("add_review", "A gate is put behind this node, which runs again."),
    word("downgrade_model", "Nodes that have not started use their profile's `cheaper` model."),
    word("pause", "The run waits at a gate."),
    word("goto", "The token moves to another node."),
    word("skip", "The node counts as skipped, and routing goes on."),
    word("escalate", "A person decides: retry, skip or cancel."),
    word("fail", "No response."),
];

const SKIP: &Shape = &Shape {
    name: "skip",
    about: "The node counts as skipped.",
    keys: &[&[key("output", Form::Json, "Its result.")]],
    choices: &[],
};

const FEEDBACK: &Shape = &Shape {
    name: "loop_with_feedback",
    about: "Again, with the judgement in `input.feedback`.",
    keys: &[&[key("to", Form::Text, "From this node on.").default("the node itself")]],
    choices: &[],
};

const VALIDATOR: &Shape = &Shape {
    name: "add_validator",
    about: "A validator node behind this one.",
    keys: &[&[key("task", Form::NameAt, "The task that validates.").required()]],
    choices: &[],
};

const STRICTER: &Shape = &Shape {
    name: "stricter_prompt",
    about: "Again, with the violation and the schema appended.",
    keys: &[&[key("append", Form::Text, "A text to append as well.")]],
    choices: &[],
};

const RESPONSE: &Shape = &Shape {
    name: "response",
    about: "A response with what it needs.",
    keys: &[&[
        key("goto", Form::Text, "The ref of the node to go to."),
        key("change", Form::Object(CHANGE), "Overrides for the next attempt."),
        key("skip", Form::Object(SKIP), "Counts as skipped, with this output."),
        key("loop_with_feedback", Form::Object(FEEDBACK), "Again, with the judgement in `input.feedback`."),
        key(
            "add_validator",
            Form::Either(&[Form::NameAt, Form::Object(VALIDATOR)]),
            "A validator behind this node.",
        ),
        key("stricter_prompt", Form::Object(STRICTER), "Again, with a stricter prompt."),
    ]],
    choices: &[Choice::ExactlyOne(
        "response",
        &["goto", "change", "skip", "loop_with_feedback", "add_validator", "stricter_prompt"],
    )],
};

const RULE: &Shape = &Shape {
    name: "rule",
    about: "What to do about a failure.",
    keys: &[
        &[
            key("when", Form::Expression, "Applies if this is true; it reads `error`.").default("always"),
            key("do", Form::Either(&[Form::Words(RESPONSES), Form::Object(RESPONSE)]), "The response.")
                .required(),
            key(
                "max",
                Form::Count(1, u32::MAX as i64),
                "More attempts by this rule, the first not counted: 2 is three in all.",
            )
            .default("1"),
            key("to", Form::Text, "Of `loop_with_feedback` and `goto`: the node to go to."),
            key("output", Form::Json, "Of `skip`: the node's result."),
            key("append", Form::Text, "Of `stricter_prompt`: a text to append."),
            key("task", Form::NameAt, "Of `add_validator`: the task that validates."),
        ],
        DELAYS,
    ],
    choices: &[],
};

pub(super) const ON_ERROR: Form = Form::OneOrList(&Form::Object(RULE));
