//! One run's events: in order without gaps, each token along its life, joins and gates once.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{Run, number, word};

/// What has become of a token.
#[derive(Default)]
struct Token {
    attempts: BTreeSet<u64>,
    completed: bool,
    over: bool,
}

/// Says what is wrong, and how many visits completed.
pub(crate) fn check(run: &Run, broken: &mut Vec<String>) -> usize {
    let mut say = |what: String| broken.push(format!("run {}: {what}", run.id));
    let mut tokens: BTreeMap<u64, Token> = BTreeMap::new();
    let (mut joined, mut answered) = (BTreeSet::new(), BTreeSet::new());
    let mut last_at = 0;
    for (index, event) in run.events.iter().enumerate() {
        let (seq, at) = (number(event, "seq"), number(event, "at"));
        if seq != index as u64 + 1 {
            say(format!("event {} has number {seq}", index + 1));
        }
        if at < last_at {
            say(format!("event {seq} lies before the one before it"));
        }
        last_at = at;
        match word(event, "kind") {
            "fan_in" | "fan_in_failed" if !joined.insert(number(event, "group")) => {
                say(format!("event {seq}: group {} joins twice", number(event, "group")));
            }
            "gate_answered" if event["closes"] == true && !answered.insert(number(event, "gate")) => {
                say(format!("event {seq}: gate {} is answered twice", number(event, "gate")));
            }
            kind => follow(kind, event, &mut tokens, &mut say),
        }
    }
    ended(run, &mut say);
    tokens.values().filter(|token| token.completed).count()
}

fn follow(kind: &str, event: &Value, tokens: &mut BTreeMap<u64, Token>, say: &mut impl FnMut(String)) {
    let (seq, id) = (number(event, "seq"), number(event, "token"));
    let token = tokens.entry(id).or_default();
    match kind {
        "task_dispatched" => {
            if token.over {
                say(format!("event {seq}: token {id} is dispatched after its end"));
            }
            if !token.attempts.insert(number(event, "attempt")) {
                say(format!("event {seq}: attempt {} of token {id} twice", number(event, "attempt")));
            }
        }
        "task_completed" | "task_failed" | "token_skipped" | "token_cancelled" => {
            if token.over {
                say(format!("event {seq}: token {id} ends twice"));
            }
            token.over = true;
            token.completed |= kind == "task_completed";
        }
        // What failed may begin again.
        "run_retried" => tokens.values_mut().filter(|token| !token.completed).for_each(|t| t.over = false),
        _ => {}
    }
}

/// The row says what the events say.
fn ended(run: &Run, say: &mut impl FnMut(String)) {
    let last = run.events.iter().rev().map(|event| word(event, "kind")).find(|kind| *kind != "late_report");
    let end = last
        .and_then(|kind| kind.strip_prefix("run_"))
        .filter(|word| ["completed", "failed", "cancelled", "timed_out"].contains(word));
    match end {
        Some(end) if end != run.status => {
            say(format!("the events end with {end}, the row says {}", run.status))
        }
        None if ["completed", "failed", "cancelled", "timed_out"].contains(&run.status.as_str()) => {
            say(format!("the row says {}, the events end with {last:?}", run.status));
        }
        _ => {}
    }
}
