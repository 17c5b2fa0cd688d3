//! The lower part of a plan, in sentences: each section has a name and its lines.

use wonder_core::cost::dollars;
use wonder_core::def::{OnExceeded, Strategy, SyncTimeout, WorkflowTimeout};
use wonder_plan::{
    BudgetPlan, CallPlan, Callee, ChoicePlan, DurationPlan, FanInPlan, FanOutPlan, LoopPlan, Missing, Need,
    Outline, Plan, Total, WaitKind, WaitPlan,
};

use super::super::paint::Tone;
use super::super::words::{brief, count, duration};

/// Names that are listed one by one.
const NAMES_MAX: usize = 8;
/// Lines of a section, and reasons of a total.
const LINES_MAX: usize = 6;

pub(super) type Section = (&'static str, Tone, Vec<String>);

pub(super) fn sections(plan: &Plan) -> Vec<Section> {
    let outline = &plan.outline;
    let path = &outline.critical_path;
    let mut all: Vec<Section> = vec![(
        "critical",
        Tone::Plain,
        vec![format!("{}, {}", chain(&path.nodes, " → "), duration(path.duration_ms))],
    )];
    if let Some(places) = outline.max_parallel {
        all.push(("places", Tone::Plain, vec![order(outline, places)]));
    }
    all.push(("fan-out", Tone::Plain, few(&outline.fan_outs, fan_out)));
    all.push(("loop", Tone::Plain, few(&outline.loops, looped)));
    all.push(("choice", Tone::Plain, few(&outline.choices, chosen)));
    all.push(("waits", Tone::Plain, few(&outline.waits, wait)));
    all.push(("calls", Tone::Plain, few(&outline.calls, |call| called(call, &plan.called))));
    all.push(("duration", Tone::Plain, took(&outline.duration)));
    all.push(("cost", Tone::Plain, costs(outline)));
    all.push(("budget", Tone::Plain, budgets(outline)));
    all.push(("ends", Tone::Attention, outline.stops.iter().map(|why| brief(why, 300)).collect()));
    let missing: Vec<String> = plan.missing.iter().map(absent).collect();
    match missing.is_empty() {
        true => all.push(("missing", Tone::Good, vec!["nothing".to_owned()])),
        false => all.push(("missing", Tone::Attention, missing)),
    }
    all.retain(|(_, _, lines)| !lines.is_empty());
    all
}

fn few<T>(list: &[T], say: impl Fn(&T) -> String) -> Vec<String> {
    let mut lines: Vec<String> = list.iter().take(LINES_MAX).map(say).collect();
    if list.len() > LINES_MAX {
        lines.push(format!("and {} more", list.len() - LINES_MAX));
    }
    lines
}

/// The first and the last of many.
fn chain(names: &[wonder_core::def::Name], between: &str) -> String {
    let shown = |names: &[wonder_core::def::Name]| names.join(between);
    match names.len() {
        0..=NAMES_MAX => shown(names),
        len => {
            let (first, last) = (shown(&names[..NAMES_MAX - 2]), shown(&names[len - 1..]));
            format!("{first}{between}… {} more …{between}{last}", len - NAMES_MAX + 1)
        }
    }
}

fn order(outline: &Outline, places: u32) -> String {
    let least = duration(outline.duration.lower_bound_ms);
    match outline.ready_order.is_empty() {
        true => format!("{places} at once; at least {least}"),
        false => {
            format!("{places} at once, in the order {}; at least {least}", chain(&outline.ready_order, ", "))
        }
    }
}

fn fan_out(fan_out: &FanOutPlan) -> String {
    let branches = &fan_out.branches;
    let to = chain(&fan_out.to, ", ");
    let mut text = match (&branches.each_of, branches.exact) {
        (Some(each_of), Some(exact)) => format!("{to} for each of {exact}: {}", brief(each_of, 40)),
        (Some(each_of), None) if branches.by_data => {
            format!("{to} for each of {}, by data (at most {})", brief(each_of, 40), branches.at_most)
        }
        (Some(each_of), None) => {
            format!("{to} for each of {}, at most {}", brief(each_of, 40), branches.at_most)
        }
        (None, Some(exact)) if fan_out.to.len() == 1 => {
            let times = if exact == 1 { "once".to_owned() } else { format!("{exact} times") };
            format!("{} to {to}, {times}", fan_out.node)
        }
        (None, Some(_)) => format!("{} to {to}", fan_out.node),
        (None, None) => format!("{} to those of {to} that fit", fan_out.node),
    };
    if let Some(max) = fan_out.max_parallel {
        text.push_str(&format!(", {max} at once"));
    }
    if let Some(join) = &fan_out.fan_in {
        text.push_str(&format!("; {}", fan_in(join)));
    }
    text
}

fn fan_in(join: &FanInPlan) -> String {
    let who = match join.strategy {
        Strategy::All => "all join".to_owned(),
        Strategy::Any => "the first goes on".to_owned(),
        Strategy::MOfN(wanted) => format!("the first {wanted} go on"),
    };
    let within = match (join.timeout_ms, join.on_timeout) {
        (None, _) => String::new(),
        (Some(ms), SyncTimeout::Fail) => format!(", within {}", duration(ms)),
        (Some(ms), SyncTimeout::ProceedWithAvailable) => format!(", or those there after {}", duration(ms)),
    };
    format!("{who} at {}{within}", join.node)
}

fn looped(found: &LoopPlan) -> String {
    let nodes = chain(&found.nodes, " → ");
    let first = found.nodes.first().map_or("", |node| &**node);
    let expected = match found.passes_expected {
        0 => "not expected to be gone through".to_owned(),
        1 => "1 pass expected".to_owned(),
        passes => format!("{passes} passes expected"),
    };
    match found.turns_max {
        Some(turns) => format!("{nodes} → {first}, {expected}; at most {} back", count(turns, "turn")),
        None => format!("{nodes} → {first}, {expected}; no bound is written"),
    }
}

fn chosen(choice: &ChoicePlan) -> String {
    let node = &choice.node;
    if choice.among.first() == Some(node) && choice.among.len() == 1 && choice.counted == choice.among {
        return format!("{node} runs if the run's data says so, and is counted");
    }
    let ways = match choice.among.as_slice() {
        [only] => format!("{only} or not"),
        ways => chain(ways, " or "),
    };
    match choice.counted.as_slice() {
        [] => format!("{node}: {ways}, by data; no way is counted"),
        [one] => format!("{node}: {ways}, by data; {one} is counted"),
        more => format!("{node}: {ways}, by data; {} are counted", chain(more, ", ")),
    }
}

fn wait(wait: &WaitPlan) -> String {
    let what = brief(&wait.what, 50);
    let what = match wait.kind {
        WaitKind::Person => format!("{} for a person: {what}", wait.node),
        WaitKind::Event => format!("{} for the event {what}", wait.node),
        WaitKind::Sleep => return format!("{} sleeps {what}", wait.node),
    };
    match wait.at_most_ms {
        Some(ms) => format!("{what}, at most {}", duration(ms)),
        None => format!("{what}, as long as it takes"),
    }
}

fn called(call: &CallPlan, called: &[Outline]) -> String {
    let (node, workflow) = (&call.node, brief(&call.workflow, 40));
    let child = called.iter().find(|child| child.workflow == call.workflow);
    match (call.callee, child) {
        (Callee::Planned, Some(child)) => {
            let (expected, worst) = (&child.cost.expected_usd_micros, &child.cost.worst_usd_micros);
            let nodes = count(child.nodes.len() as u64, "node");
            let time = duration(child.duration.expected_ms);
            format!("{node}: {workflow}, {nodes}, {time}, {}; at worst {}", money(expected), money(worst))
        }
        (Callee::Recursive, _) => format!("{node}: {workflow}, which called it"),
        (Callee::TooDeep, _) => format!("{node}: {workflow}, deeper than runs may nest"),
        (Callee::ByData, _) => format!("{node}: a workflow that the run names ({workflow})"),
        _ => format!("{node}: {workflow}, which is not defined here"),
    }
}

/// An amount; with a sign that it is not all, if it has no bound.
fn money(total: &Total) -> String {
    match total.bound() {
        Some(bound) => dollars(bound),
        None => format!("{} and more", dollars(total.known)),
    }
}

fn took(plan: &DurationPlan) -> Vec<String> {
    let then = match plan.on_timeout {
        WorkflowTimeout::HumanGate => "then a person is asked",
        WorkflowTimeout::CancelAll => "then it is cancelled",
        WorkflowTimeout::Fail => "then it fails",
    };
    let (expected, worst) = (duration(plan.expected_ms), duration(plan.worst.known));
    let whole = match plan.by_timeout {
        true if plan.expected_ms > plan.worst.known => {
            format!("{expected} expected, more than the {worst} that its timeout allows; {then}")
        }
        true if plan.worst.known > plan.timeout_ms => {
            let timeout = duration(plan.timeout_ms);
            format!("{expected} expected; at worst {worst}: its timeout of {timeout} ({then}), and its waits")
        }
        true => format!("{expected} expected; at worst {worst} (its timeout; {then})"),
        false => format!("{expected} expected; at worst {worst}"),
    };
    with_reasons(whole, "and as long as waits take", &plan.worst)
}

fn with_reasons(mut first: String, word: &str, total: &Total) -> Vec<String> {
    if total.unbounded.is_empty() {
        return vec![first];
    }
    first.push_str(&format!(", {word}:"));
    let reasons = few(&total.unbounded, |why| format!("- {}", brief(why, 160)));
    std::iter::once(first).chain(reasons).collect()
}

fn costs(outline: &Outline) -> Vec<String> {
    let cost = &outline.cost;
    let (expected, worst) = (&cost.expected_usd_micros, &cost.worst_usd_micros);
    let mut lines = match (expected.known, worst.known, worst.unbounded.is_empty()) {
        (0, 0, true) => vec!["nothing that is counted".to_owned()],
        (.., true) => vec![format!("{} expected; at worst {}", money(expected), dollars(worst.known))],
        (.., false) => {
            let whole = format!("{} expected; at worst {}", money(expected), dollars(worst.known));
            with_reasons(whole, "and more by", worst)
        }
    };
    if !cost.cannot_start.is_empty() {
        let nodes = chain(&cost.cannot_start, ", ");
        lines.push(format!("a budget is too small for one attempt of {nodes}"));
    }
    lines
}

fn budgets(outline: &Outline) -> Vec<String> {
    let Some(BudgetPlan { budget, expected_fits, worst_fits }) = &outline.budget else { return Vec::new() };
    let limits = [
        budget.usd_micros.map(dollars),
        budget.tokens.map(|tokens| count(tokens, "token")),
        budget.calls.map(|calls| count(calls, "call")),
        budget.wall_ms.map(duration),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    let then = match budget.on_exceeded {
        OnExceeded::Pause => "it pauses and asks",
        OnExceeded::Downgrade => "it goes on with cheaper models",
        OnExceeded::Fail => "it fails",
    };
    let enough = match (expected_fits, worst_fits) {
        (_, true) => "enough whatever happens".to_owned(),
        (true, false) => format!("enough for what is expected, not for the worst; then {then}"),
        (false, false) => format!("not enough for what is expected; then {then}"),
    };
    vec![format!("{}: {enough}", limits.join(", "))]
}

fn absent(missing: &Missing) -> String {
    let what = match missing.need {
        Need::Secret => "secret",
        Need::Key => "key",
        Need::Model => "model",
        Need::Price => "price of model",
        Need::Action => "action",
        Need::Workflow => "workflow",
        Need::Program => "program",
    };
    let nodes = match missing.nodes.as_slice() {
        [one, two, _, more @ ..] => format!("{one}, {two} and {} more", more.len() + 1),
        few => few.join(", "),
    };
    format!("{what} {} ({nodes}): {}", missing.name, missing.help)
}
