//! Events and lines of output, one line each, nothing left out but what is too long for a line.

use serde_json::Value as Json;
use wonder_core::Time;
use wonder_core::event::{Event, TokenId};
use wonder_engine::LogLine;

use super::paint::{Paint, Tone};
use super::words::{brief, offset};
use crate::text::{Text, text};
use wonder_engine::run_tree::RunTree;

const VALUE_CHARS_MAX: usize = 80;
const LINE_CHARS_MAX: usize = 400;

/// `   12  +1.204s  task_completed  judge[2]  result={"score":7}`
pub(crate) fn event_line(run_tree: &RunTree, run: &str, event: &Event, paint: Paint) -> Text {
    let json = serde_json::to_value(event).unwrap_or_default();
    let fields = json.as_object().cloned().unwrap_or_default();
    let token = fields.get("token").or_else(|| fields.get("token_id")).and_then(Json::as_u64);
    let label = token.map_or(String::new(), |token| format!(" {}", run_tree.label(run, TokenId(token))));
    let shown_apart = ["seq", "at", "kind", "token", "token_id", "workflow_run_id"];
    let rest = fields.iter().filter(|(key, _)| !shown_apart.contains(&key.as_str()));
    let rest: Vec<String> = rest.map(|(key, value)| format!("{key}={}", shown(value))).collect();
    let time = offset(event.at.since(run_tree.root().started_at));
    let kind = format!("{:<17}", event.kind.name());
    text!(
        "{} {} {}{}{}{}",
        paint.dim(format!("{:>5}", event.seq)),
        paint.dim(format!("{time:>9}")),
        paint.tone(tone(event.kind.name()), kind.trim_end()),
        " ".repeat(kind.len() - kind.trim_end().len()),
        paint.strong(label),
        paint.dim(joined(&rest)),
    )
    .trim_end()
}

fn joined(rest: &[String]) -> String {
    if rest.is_empty() { String::new() } else { format!("  {}", brief(&rest.join(" "), LINE_CHARS_MAX)) }
}

fn shown(value: &Json) -> String {
    match value {
        Json::String(text) if !text.is_empty() && !text.contains(char::is_whitespace) => {
            brief(text, VALUE_CHARS_MAX)
        }
        other => brief(&other.to_string(), VALUE_CHARS_MAX),
    }
}

fn tone(kind: &str) -> Tone {
    match kind {
        "task_failed" | "fan_in_failed" | "run_failed" | "run_timed_out" | "token_timed_out"
        | "budget_exceeded" => Tone::Bad,
        "task_retrying" | "gate_opened" | "run_paused" | "run_mutated" | "budget_warning" => Tone::Attention,
        "task_completed" | "run_completed" | "fan_in" => Tone::Good,
        _ => Tone::Plain,
    }
}

/// `12:03:04.123 judge[2] | what it shown_apart`
pub(crate) fn log_line(run_tree: &RunTree, line: &LogLine, paint: Paint) -> Text {
    let label =
        match run_tree.runs.get(&line.run).is_some_and(|t| t.visits.contains_key(&TokenId(line.token))) {
            true => run_tree.label(&line.run, TokenId(line.token)),
            false => run_tree.node_label(&line.run, &line.node),
        };
    text!("{} {} {}", paint.dim(clock(line.at)), paint.strong(format!("{label} |")), line.text).trim_end()
}

/// The time of the day, in UTC.
fn clock(at: Time) -> String {
    const DAY_MS: i64 = 86_400_000;
    let ms = at.0.rem_euclid(DAY_MS);
    format!("{:02}:{:02}:{:02}.{:03}", ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000)
}
