//! A run as people read it: one line an event, with the virtual time, a short name, who it is about and
//! what matters of it. Long values are cut; a trace is for reading, the log is for replaying.

use std::fmt::Write;

use serde::Serialize;
use wonder_core::command::Overrides;
use wonder_core::cost::{Allowance, Spend};
use wonder_core::error::Failure;
use wonder_core::event::{
    Clocked, Event, EventKind, EventWait, GateRecord, NewChild, NewGroup, NewToken, Patch, PatchValue,
    PauseReason, Report, RuleRef, RunChange, TaskRetry, Then, TokenId,
};
use wonder_core::graph::Mutation;
use wonder_core::time::Time;
use wonder_core::value::Value;

use crate::names::Names;

/// Characters of a value or message that are shown.
const SHOWN_MAX: usize = 60;
/// The width of the column of times.
const TIME_WIDTH: usize = 8;

/// Milliseconds as people write them: `0ms`, `1.5s`, `2m30s`, `1h`.
pub fn human(ms: u64) -> String {
    if ms < 1_000 {
        return format!("{ms}ms");
    }
    let mut text = String::new();
    let mut rest = ms;
    for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000)] {
        if rest >= size {
            let _ = write!(text, "{}{unit}", rest / size);
            rest %= size;
        }
    }
    if rest > 0 {
        let _ = match rest % 1_000 {
            0 => write!(text, "{}s", rest / 1_000),
            part => write!(text, "{}.{}s", rest / 1_000, format!("{part:03}").trim_end_matches('0')),
        };
    }
    text
}

/// A whole line: the time since the start, then who says it if it is not the root, then the event.
pub fn line(start: Time, at: Time, run: Option<&str>, text: &str) -> String {
    let time = human(at.since(start));
    let run = run.map(|run| format!("({run}) ")).unwrap_or_default();
    format!("{time:TIME_WIDTH$} {run}{text}").trim_end().to_owned()
}

/// A value on one line, cut where it is long.
pub fn brief(value: &Value) -> String {
    cut(&value.to_string())
}

pub fn cut(text: &str) -> String {
    let text = text.replace('\n', "⏎");
    match text.char_indices().nth(SHOWN_MAX) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// What an event says, without its time.
pub fn event(event: &Event, names: &Names, start: Time) -> String {
    let describer = Describer { names, start };
    let (name, rest) = describer.describe(&event.kind);
    format!("{name} {rest}").trim_end().to_owned()
}

struct Describer<'a> {
    names: &'a Names,
    start: Time,
}

impl Describer<'_> {
    fn token(&self, token: TokenId) -> String {
        self.names.label(token)
    }

    fn by_token(&self, token: Option<TokenId>) -> String {
        token.map(|token| format!(" {}", self.token(token))).unwrap_or_default()
    }

    fn time(&self, at: Time) -> String {
        human(at.since(self.start))
    }

    /// One kind, one line: a flat table, so that a new kind cannot be forgotten here. The name is the
    /// stored one, or a shorter one for what a run says most.
    fn describe(&self, kind: &EventKind) -> (&'static str, String) {
        let name = kind.name();
        match kind {
            EventKind::TokenCreated(NewToken {
                token, parent, via, last_error, feedback, carried, ..
            }) => {
                let mut text = self.token(*token);
                push(&mut text, parent.map(|parent| format!("from {}", self.token(parent))));
                push(&mut text, via.as_ref().map(|via| format!("via {via}")));
                push(&mut text, last_error.as_ref().map(|failure| format!("after {}", failure.kind)));
                push(&mut text, shown("feedback", feedback));
                push(&mut text, shown("carries", carried));
                ("created", text)
            }
            EventKind::TaskDispatched { token, attempt, generation, input, taken, reserved } => {
                let mut text = self.token(*token);
                push(&mut text, (*attempt > 1).then(|| format!("attempt {attempt}")));
                push(&mut text, (*generation > 0).then(|| format!("generation {generation}")));
                push(&mut text, allowance("reserves", reserved));
                push(&mut text, (!input.is_null()).then(|| brief(input)));
                for part in taken {
                    push(&mut text, Some(format!("with {}", part.from.join("."))));
                }
                ("dispatched", text)
            }
            EventKind::TaskRetrying(TaskRetry {
                token,
                failure,
                wake_at,
                rule,
                generation,
                overrides,
                feedback,
                report,
            }) => {
                let mut text = self.token(*token);
                push(&mut text, Some(failure_text(failure)));
                push(&mut text, Some(format!("by {}, at {}", rule_text(*rule), self.time(*wake_at))));
                push(&mut text, (*generation > 0).then(|| format!("generation {generation}")));
                push(&mut text, overrides_text(overrides));
                push(&mut text, shown("feedback", feedback));
                push(&mut text, report_text(report.as_ref()));
                ("retrying", text)
            }
            EventKind::TaskCompleted { token, result, patches, then, report, .. } => {
                let mut text = self.token(*token);
                push(&mut text, (!result.is_null()).then(|| brief(result)));
                push(&mut text, patches_text(patches));
                push(&mut text, then_text(*then));
                push(&mut text, report_text(report.as_ref()));
                ("completed", text)
            }
            EventKind::StepFailed { token, step, failure, .. } => {
                ("step_failed", format!("{} {step}: {}", self.token(*token), failure_text(failure)))
            }
            EventKind::TaskFailed { token, failure, timed_out, handled, report } => {
                let mut text = format!("{} {}", self.token(*token), failure_text(failure));
                push(&mut text, handled.then(|| "(handled)".to_owned()));
                push(&mut text, report_text(report.as_ref()));
                (if *timed_out { "failed_by_timeout" } else { "failed" }, text)
            }
            EventKind::TokenSkipped { token, output, patches, then, failure, report, .. } => {
                let mut text = self.token(*token);
                push(&mut text, failure.as_ref().map(failure_text));
                push(&mut text, shown("output", output));
                push(&mut text, patches_text(patches));
                push(&mut text, then_text(*then));
                push(&mut text, report_text(report.as_ref()));
                ("skipped", text)
            }
            EventKind::TokenTimedOut {
                token,
                node,
                timeout_type,
                timeout_duration_ms,
                policy_applied,
                ends,
                ..
            } => {
                let who = match (token, node) {
                    (Some(token), _) => self.token(*token),
                    (None, Some(node)) => node.to_string(),
                    (None, None) => "run".to_owned(),
                };
                let after = human(*timeout_duration_ms);
                let mut text = format!(
                    "{who} {} after {after}: {}",
                    stored_name(timeout_type),
                    stored_name(policy_applied)
                );
                push(&mut text, ends.then(|| "(ends)".to_owned()));
                ("timed_out", text)
            }
            EventKind::TokenCancelled { token, reason, report } => {
                let mut text = format!("{} {}", self.token(*token), stored_name(reason));
                push(&mut text, report_text(report.as_ref()));
                ("cancelled", text)
            }
            EventKind::TokenAbandoned { token, late } => {
                (if *late { "late" } else { "abandoned" }, self.token(*token))
            }
            EventKind::LateReport { token, report, .. } => {
                let report = report_text(Some(report)).map(|report| format!(" {report}")).unwrap_or_default();
                ("late_report", self.token(*token) + &report)
            }
            EventKind::ContextUpdated { token, patches } => {
                ("updated", format!("{} {}", self.token(*token), patches_text(patches).unwrap_or_default()))
            }
            EventKind::SleepStarted { token, until, deadline, .. } => {
                let mut text = format!("{} until {}", self.token(*token), self.time(*until));
                push(&mut text, deadline.map(|at| format!("but no longer than {}", self.time(at))));
                ("sleeping", text)
            }
            EventKind::EventAwaited(EventWait { token, event, key, deadline, .. }) => {
                let mut text = format!("{} {event}", self.token(*token));
                push(&mut text, shown("key", key));
                push(&mut text, deadline.map(|at| format!("until {}", self.time(at))));
                ("awaiting", text)
            }
            EventKind::EventReceived { event, key, payload, token } => {
                let mut text = event.to_string();
                push(&mut text, shown("key", key));
                push(&mut text, (!payload.is_null()).then(|| brief(payload)));
                push(&mut text, Some(token.map_or("kept".to_owned(), |t| format!("for {}", self.token(t)))));
                ("event_received", text)
            }
            EventKind::EventTaken { token, received } => {
                ("event_taken", format!("{} of seq {received}", self.token(*token)))
            }
            EventKind::TokenReleased { token, generation, overrides, resumed } => {
                let mut text = self.token(*token);
                push(&mut text, (*generation > 0).then(|| format!("generation {generation}")));
                push(&mut text, overrides_text(overrides));
                push(&mut text, resumed.then(|| "(resumed)".to_owned()));
                ("released", text)
            }
            EventKind::ChildStarted(NewChild {
                token,
                child,
                workflow,
                input,
                timeout_ms,
                allowance: bound,
                ..
            }) => {
                let mut text = format!("{} {workflow} as {child}", self.token(*token));
                push(&mut text, bound.as_ref().and_then(|bound| allowance("may spend", bound)));
                push(&mut text, timeout_ms.map(|ms| format!("within {}", human(ms))));
                push(&mut text, (!input.is_null()).then(|| brief(input)));
                ("child_started", text)
            }
            EventKind::ChildCompleted { token, child, outcome, spend, .. } => {
                let mut text = format!("{} {child} {outcome}", self.token(*token));
                push(&mut text, spend_text(spend));
                ("child_completed", text)
            }
            EventKind::FanOut(NewGroup {
                group,
                token,
                transition,
                total,
                items,
                max_parallel,
                joins_at,
                timeout_ms,
                ..
            }) => {
                let mut text = format!("{} ×{total} as group {group}", self.token(*token));
                push(&mut text, transition.as_ref().map(|t| format!("by {t}")));
                push(&mut text, max_parallel.map(|n| format!("{n} at a time")));
                push(&mut text, joins_at.as_ref().map(|node| format!("joins at {node}")));
                push(&mut text, timeout_ms.map(|ms| format!("within {}", human(ms))));
                push(&mut text, shown("items", items));
                ("fan_out", text)
            }
            EventKind::BranchArrived { token, group, branch, .. } => {
                ("arrived", format!("{} branch {branch} of group {group}", self.token(*token)))
            }
            EventKind::FanIn { group, node, arrived, total, patches } => {
                let mut text = format!("group {group} at {node}: {arrived} of {total}");
                push(&mut text, patches_text(patches));
                ("fan_in", text)
            }
            EventKind::FanInFailed { group, failure, handled } => {
                let mut text = format!("group {group} {}", failure_text(failure));
                push(&mut text, handled.then(|| "(handled)".to_owned()));
                ("fan_in_failed", text)
            }
            EventKind::GroupClosed { group, kept } => {
                ("group_closed", format!("group {group}{}", if *kept { " (kept)" } else { "" }))
            }
            EventKind::RunQueued { workflow, start, .. } | EventKind::RunStarted { workflow, start, .. } => {
                let mut text = workflow.to_string();
                push(&mut text, start.allowance.as_ref().and_then(|bound| allowance("may spend", bound)));
                push(&mut text, Some(brief(&start.input)));
                (name, text)
            }
            EventKind::GateOpened { gate, token, record, report, .. } => {
                let mut text = format!("{gate}{} {}", self.by_token(*token), gate_text(record));
                push(&mut text, report_text(report.as_ref()));
                (name, text)
            }
            EventKind::GateAnswered { gate, by, answer, closes } => (
                name,
                format!("{gate} by {by} {}{}", brief(answer), if *closes { "" } else { " (more wanted)" }),
            ),
            EventKind::GateClosed { gate, by } => (name, format!("{gate} by {by}")),
            EventKind::GateReminded { gate } => (name, gate.to_string()),
            EventKind::GateReassigned { gate, assignees } => {
                (name, format!("{gate} to {}", assignees.join(", ")))
            }
            EventKind::TimeoutWarning { of, elapsed_ms, timeout_ms } => {
                (name, format!("{} {} of {}", clock_text(*of), human(*elapsed_ms), human(*timeout_ms)))
            }
            EventKind::RunMutated { token, reason, what } => {
                (name, format!("{}{}: {}", change_text(what), self.by_token(*token), cut(reason)))
            }
            EventKind::BudgetWarning { node, spent } => {
                let node = node.as_ref().map(|node| format!("{node} ")).unwrap_or_default();
                (name, format!("{node}{}", spend_text(spent).unwrap_or_default()))
            }
            EventKind::BudgetExceeded { token, node, message } => {
                let node = node.as_ref().map(|node| format!(" node {node}")).unwrap_or_default();
                let who = self.by_token(*token) + &node;
                (
                    name,
                    if who.is_empty() {
                        cut(message)
                    } else {
                        format!("{}: {}", who.trim_start(), cut(message))
                    },
                )
            }
            EventKind::BudgetRaised { usd_micros, tokens, calls, of_parent, .. } => {
                let rest = Allowance { usd_micros: 0, tokens: *tokens, calls: *calls };
                let mut text = format!("by {}", dollars(*usd_micros));
                push(&mut text, allowance("and", &rest));
                push(&mut text, of_parent.then(|| "of what the parent allows".to_owned()));
                (name, text)
            }
            EventKind::WorkflowExtended { by_ms } => (name, format!("by {}", human(*by_ms))),
            EventKind::RunPaused { reason, by } | EventKind::RunResumed { reason, by } => {
                (name, format!("{} by {by}", pause_text(*reason)))
            }
            EventKind::RunCancelling { reason, deadline } => {
                (name, format!("{}, until {}", cut(reason), self.time(*deadline)))
            }
            EventKind::RunCompleted { output } => (name, brief(output)),
            EventKind::RunFailed { failure } | EventKind::RunTimedOut { failure } => {
                (name, failure_text(failure))
            }
            EventKind::RunCancelled { reason } => (name, cut(reason)),
            EventKind::RunRetried { by, version: None } => (name, format!("by {by}")),
            EventKind::RunRetried { by, version: Some(version) } => {
                (name, format!("by {by} with version {version}"))
            }
            EventKind::RunForked { from, node, input, .. } => (
                name,
                format!(
                    "from {from} at {node}{}",
                    if input.is_null() { String::new() } else { brief(input) }
                ),
            ),
            EventKind::RunReleased | EventKind::RunYielded | EventKind::RunContinued => (name, String::new()),
        }
    }
}

fn push(text: &mut String, more: Option<String>) {
    if let Some(more) = more.filter(|more| !more.is_empty()) {
        text.push(' ');
        text.push_str(&more);
    }
}

fn shown(what: &str, value: &Value) -> Option<String> {
    (!value.is_null()).then(|| format!("{what}={}", brief(value)))
}

/// A unit variant by its stored name.
fn stored_name(what: &impl Serialize) -> String {
    serde_json::to_value(what).ok().and_then(|json| json.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Routing on is what one expects, and the next lines say where to.
fn then_text(then: Then) -> Option<String> {
    match then {
        Then::Routes => None,
        Then::Arrives(group) => Some(format!("to the fan-in of group {group}")),
        Then::Ends => Some("(terminal)".to_owned()),
    }
}

fn failure_text(failure: &Failure) -> String {
    format!("{}: {}", failure.kind, cut(&failure.message))
}

fn rule_text(rule: RuleRef) -> String {
    match rule {
        RuleRef::Task => "task.retry".to_owned(),
        RuleRef::Action => "action.on_timeout".to_owned(),
        RuleRef::Node(at) => format!("node rule {at}"),
        RuleRef::Workflow(at) => format!("workflow rule {at}"),
        RuleRef::Default(at) => format!("default rule {at}"),
    }
}

fn overrides_text(overrides: &Overrides) -> Option<String> {
    let mut text = String::new();
    push(&mut text, overrides.model.as_ref().map(|model| format!("model={model}")));
    push(&mut text, overrides.system.as_ref().map(|system| format!("system={}", cut(system))));
    push(&mut text, overrides.tools.as_ref().map(|tools| format!("tools={}", tools.join(","))));
    push(&mut text, (!overrides.append.is_empty()).then(|| format!("appends {}", overrides.append.len())));
    push(&mut text, shown("input", &overrides.input));
    let answers = overrides.answers.iter().map(|answered| format!("answer={}", answered.answer));
    push(&mut text, (!overrides.answers.is_empty()).then(|| answers.collect::<Vec<_>>().join(" ")));
    push(&mut text, (overrides.downgrades > 0).then(|| format!("downgrades={}", overrides.downgrades)));
    (!text.is_empty()).then(|| text.trim_start().to_owned())
}

fn patches_text(patches: &[Patch]) -> Option<String> {
    let told = patches.iter().map(|patch| match &patch.value {
        PatchValue::Value(value) => format!("{}={}", patch.to, brief(value)),
        PatchValue::Result(path) if path.is_empty() => format!("{}=result", patch.to),
        PatchValue::Result(path) => format!("{}=result.{}", patch.to, path.join(".")),
    });
    (!patches.is_empty()).then(|| format!("→ {}", told.collect::<Vec<_>>().join(", ")))
}

fn report_text(report: Option<&Report>) -> Option<String> {
    let report = report?;
    let tries = (report.tries > 0).then(|| format!("{} more tries", report.tries));
    let told: Vec<String> = [spend_text(&report.spend), tries].into_iter().flatten().collect();
    (!told.is_empty()).then(|| told.join(" "))
}

fn spend_text(spend: &Spend) -> Option<String> {
    let mut parts = Vec::new();
    if spend.usd_micros > 0 {
        parts.push(dollars(spend.usd_micros));
    }
    if spend.tokens() > 0 {
        parts.push(format!("{} tokens", spend.tokens()));
    }
    if spend.calls > 0 {
        parts.push(format!("{} calls", spend.calls));
    }
    (!parts.is_empty()).then(|| format!("[{}]", parts.join(", ")))
}

fn allowance(what: &str, of: &Allowance) -> Option<String> {
    let spend =
        Spend { usd_micros: of.usd_micros, output_tokens: of.tokens, calls: of.calls, ..Spend::default() };
    spend_text(&spend).map(|told| format!("{what} {told}"))
}

/// Millionths of a dollar, without trailing zeros.
pub fn dollars(micros: u64) -> String {
    match micros % 1_000_000 {
        0 => format!("${}", micros / 1_000_000),
        part => format!("${}.{}", micros / 1_000_000, format!("{part:06}").trim_end_matches('0')),
    }
}

fn gate_text(record: &GateRecord) -> String {
    let mut text = format!("{} {:?}", stored_name(&record.kind), cut(&record.title));
    push(&mut text, (!record.assignees.is_empty()).then(|| format!("for {}", record.assignees.join(", "))));
    push(&mut text, record.quorum.map(|quorum| format!("quorum {quorum}")));
    push(&mut text, record.timeout_ms.map(|ms| format!("within {}", human(ms))));
    push(&mut text, record.failure.as_ref().map(failure_text));
    text
}

fn clock_text(of: Clocked) -> String {
    match of {
        Clocked::Workflow => "workflow".to_owned(),
        Clocked::FanIn(group) => format!("fan-in of group {group}"),
        Clocked::Gate(gate) => format!("gate {gate}"),
    }
}

fn pause_text(reason: PauseReason) -> String {
    match reason {
        PauseReason::Operator => "operator".to_owned(),
        PauseReason::Timeout(gate) => format!("timeout (gate {gate})"),
        PauseReason::Budget(gate) => format!("budget (gate {gate})"),
        PauseReason::Response(gate) => format!("response (gate {gate})"),
    }
}

fn change_text(change: &RunChange) -> String {
    match change {
        RunChange::SwitchModel { model } => format!("switch_model {model}"),
        RunChange::StricterPrompt => "stricter_prompt".to_owned(),
        RunChange::Change => "change".to_owned(),
        RunChange::Feedback => "feedback".to_owned(),
        RunChange::Downgrade => "downgrade".to_owned(),
        RunChange::Graph(Mutation::Nodes { nodes, transitions, .. }) => {
            format!("{} nodes and {} transitions", nodes.len(), transitions.len())
        }
        RunChange::Graph(Mutation::Validator { added, task, .. }) => format!("validator {added} over {task}"),
        RunChange::Graph(Mutation::Review { added, .. }) => format!("review {added}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_money_read_as_people_write_them() {
        let cases = [(0, "0ms"), (999, "999ms"), (1_500, "1.5s"), (150_000, "2m30s"), (3_600_000, "1h")];
        for (ms, text) in cases {
            assert_eq!(human(ms), text);
        }
        assert_eq!(dollars(1_250_000), "$1.25");
        assert_eq!(dollars(3_000_000), "$3");
        assert_eq!(dollars(7), "$0.000007");
    }
}
