//! How a run stands, for the end of `run` and its kin: one line, what it waits for, what went wrong.

use wonder_core::Value;
use wonder_core::error::Failure;
use wonder_engine::{GateView, RunView, Status, WaitView};

use super::paint::{Paint, run_mark, run_tone, spoken};
use super::words::{brief, cost, count, duration, shell_word};
use crate::form;
use crate::text::{Text, text};

/// Further lines of a failure's message; `show -o json` has all of it.
const MESSAGE_LINES_MAX: usize = 20;
/// Lines of a failed command's output, of each stream; `logs` has all of it.
const OUTPUT_LINES_MAX: usize = 5;

/// `✓ completed in 1.2s · 14 nodes · 2 retries · $0.0042 · run 01…`
pub(crate) fn summary(view: &RunView, paint: Paint) -> Text {
    let status = view.row.status;
    let mut parts = vec![match status.is_end() {
        true => format!("{} in {}", spoken(status), duration(view.duration_ms)),
        false => format!("{} after {}", spoken(status), duration(view.duration_ms)),
    }];
    parts.extend(numbers(view));
    parts.push(format!("run {}", view.row.run));
    let mark = paint.tone(run_tone(status), run_mark(status));
    text!("{} {}", mark, parts.join(" · "))
}

/// What a run came to, without what is nothing.
pub(crate) fn numbers(view: &RunView) -> Vec<String> {
    let metrics = &view.metrics;
    let mut parts = vec![count(metrics.nodes_completed, "node")];
    let some = |number: u64, text: String| (number > 0).then_some(text);
    parts.extend(some(metrics.nodes_failed, format!("{} failed", metrics.nodes_failed)));
    parts.extend(some(metrics.nodes_skipped, format!("{} skipped", metrics.nodes_skipped)));
    parts.extend(some(metrics.retries, count(metrics.retries, "retry")));
    parts.extend(some(metrics.mutations_applied.into(), count(metrics.mutations_applied.into(), "mutation")));
    parts.extend(cost(view.row.usd_micros, view.unpriced_calls));
    parts.extend(some(view.row.tokens, count(view.row.tokens, "model token")));
    parts
}

/// What went wrong with the run.
pub(crate) fn failure(view: &RunView) -> Vec<Text> {
    view.error.as_ref().map(told).unwrap_or_default()
}

/// A failure with its causes, each once; what belongs to a line stands below it, set in.
pub(crate) fn told(failure: &Failure) -> Vec<Text> {
    let mut lines = Vec::new();
    let mut next = Some(failure.clone());
    let mut because = "";
    while let Some(failure) = next.take() {
        let place = match (&failure.node, failure.attempt) {
            (Some(node), Some(attempt)) if attempt > 1 => format!(" at {node}, attempt {attempt}"),
            (Some(node), _) => format!(" at {node}"),
            (None, _) => String::new(),
        };
        // Its cause has lines of its own.
        let cause = failure.cause.as_ref().map_or(String::new(), |cause| format!(": {cause}"));
        let own = failure.message.strip_suffix(&cause).unwrap_or(&failure.message);
        let mut message = own.lines();
        let first = message.next().unwrap_or_default();
        lines.push(text!("{}{}{}: {}", because, failure.kind, place, first));
        lines.extend(message.take(MESSAGE_LINES_MAX).map(|line| text!("  {}", line)));
        lines.extend(details(&failure.all_details(), own));
        next = failure.cause.map(|cause| *cause);
        because = "because of ";
    }
    lines
}

/// What more is known of a failure: the last lines of a command's output, if its message does not say them already,
/// and the rest on one line.
fn details(details: &Value, message: &str) -> Vec<Text> {
    let mut lines = Vec::new();
    let mut rest = details.as_map().cloned().unwrap_or_default();
    // The message says the one, the next lines the other.
    rest.remove("exit_code");
    rest.remove("cause");
    for stream in ["stdout", "stderr"] {
        let Some(Value::String(text)) = rest.remove(stream) else { continue };
        if message.ends_with(text.trim()) {
            continue;
        }
        let said: Vec<&str> = text.lines().collect();
        let last = &said[said.len().saturating_sub(OUTPUT_LINES_MAX)..];
        lines.extend(last.iter().map(|line| text!("  {} | {}", stream, line)));
    }
    let rest = if details.as_map().is_some() { Value::from(rest) } else { details.clone() };
    if !rest.is_null() && rest.as_map().is_none_or(|map| !map.is_empty()) {
        lines.push(text!("  {}", brief(&rest.to_string(), 300)));
    }
    lines
}

/// What can be done about a run that did not complete.
pub(crate) fn remedies(view: &RunView) -> Vec<Text> {
    let run = shell_word(&view.row.run);
    match view.row.status {
        Status::Failed | Status::TimedOut => vec![
            text!("  `wonder show {}` tells how it went", run),
            text!("  `wonder retry {}` tries again what failed", run),
        ],
        Status::Cancelled => vec![text!("  `wonder retry {}` goes on from where it was", run)],
        Status::Quarantined => vec![text!("  `wonder events {}` shows what is stored of it", run)],
        _ => Vec::new(),
    }
}

/// What a run waits for from outside, each with the line to type.
pub(crate) fn waits(view: &RunView, gates: &[GateView], paint: Paint) -> Vec<Text> {
    view.waiting.iter().flat_map(|wait| waits_for(wait, gates, paint)).collect()
}

fn waits_for(wait: &WaitView, gates: &[GateView], paint: Paint) -> Vec<Text> {
    match wait {
        WaitView::Gate { gate, node, title, .. } => {
            let known = gates.iter().find(|known| known.id == *gate);
            let node = node.as_ref().map_or(String::new(), |node| format!(" (at {node})"));
            let mut lines = vec![text!("  {}{}", paint.strong(title), paint.dim(node))];
            lines.push(text!("    {}", answer_line(gate, known)));
            lines.extend(known.map(|known| text!("    {}", paint.dim(takes_line(known)))));
            lines.extend(known.and_then(deadline_line).map(Text::from));
            lines
        }
        WaitView::Event { run, node, event, key } => {
            let key = if key.is_null() { String::new() } else { format!(" --key {}", key_word(key)) };
            vec![
                text!("  event {}{}", paint.strong(event), paint.dim(format!(" (at {node})"))),
                Text::from(format!(
                    "    wonder signal {} {}{key} '{{}}'",
                    shell_word(run),
                    shell_word(event)
                )),
            ]
        }
        WaitView::Project { run, message, .. } => vec![
            text!("  {}", message),
            text!("    raise the project's budget in wonder.toml, then: wonder resume {}", shell_word(run)),
        ],
        WaitView::Resume { run } => {
            vec![text!("  paused by an operator"), text!("    wonder resume {}", shell_word(run))]
        }
    }
}

fn key_word(key: &Value) -> String {
    match key {
        Value::String(text) if !text.starts_with(":=") => shell_word(text),
        other => shell_word(&format!(":={other}")),
    }
}

/// All that can be answered.
pub(crate) fn takes_line(gate: &GateView) -> String {
    format!("takes {}", form::choices(&gate.form))
}

/// Until when somebody may answer, and that nobody watches the clock.
fn deadline_line(gate: &GateView) -> Option<String> {
    let until = gate.deadline?.to_text();
    Some(format!(
        "    time until {until}; while no process is here, that is noticed when the next `wonder` starts"
    ))
}

/// The line to type, with an answer that fits the form if one can be made up.
pub(crate) fn answer_line(gate: &str, known: Option<&GateView>) -> String {
    let example = |gate: &GateView| Some(form::typed(&form::example(&gate.form)?, &gate.form));
    match known.map(example) {
        Some(Some(answer)) => format!("wonder answer {} {answer}", shell_word(gate)),
        Some(None) | None => format!("wonder answer {}", shell_word(gate)),
    }
}
