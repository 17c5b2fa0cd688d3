//! What every answer of a model provider maps to, in each of the formats, held against doubles that share no code with
//! the codecs: aimock (npm), and raw replies as the providers document them for what it cannot say. The table in
//! `cases.rs` is what is expected, and what `docs/models.md` shows.

mod aimock;
mod ask;
mod bodies;
mod cases;
mod page;
mod raw;
mod replies;
mod stopping;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value as Json;
use tokio::task::JoinSet;
use wonder_core::input::TaskOutcome;

use aimock::Aimock;
use ask::{Call, FORMATS, Format};
use cases::{CASES, Case, Maps};
use raw::RawServer;

/// What came of a call, and how often it was asked for.
struct Met {
    case: &'static Case,
    format: &'static Format,
    report: wonder_core::input::TaskReport,
    pieces: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_answer_means_what_the_table_says_in_every_format() {
    let aimock = Aimock::start(&cases::fixtures()).await;
    let server = RawServer::start(replies::reply, Some(aimock.address.clone())).await;
    let worker = Arc::new(ask::worker());
    let mut calls = JoinSet::new();
    for case in &CASES {
        for format in &FORMATS {
            if case.maps[format.column] == Maps::Never {
                continue;
            }
            let call = Call::of(case, format, &server.url);
            let worker = worker.clone();
            calls.spawn(async move {
                let (report, pieces) = call.perform(&worker).await;
                Met { case, format, report, pieces }
            });
        }
    }
    let met = calls.join_all().await;
    let sent = server.journal();
    let asked = |met: &Met| {
        let place = format!("/{}/{}/", met.case.name, met.format.name);
        sent.iter()
            .filter(|request| request["path"].as_str().is_some_and(|at| at.starts_with(&place)))
            .count()
    };
    let wrong: BTreeMap<String, String> = met
        .iter()
        .filter_map(|met| Some((format!("{} {}", met.case.name, met.format.name), differs(met, asked(met))?)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    bodies::fit_the_types_of_the_providers(&sent);
}

/// Why what was met is not what the table says.
fn differs(met: &Met, asked: usize) -> Option<String> {
    let expected = met.case.maps[met.format.column];
    let found = match &met.report.outcome {
        TaskOutcome::Completed { result } => {
            let result = result.to_json();
            let reason = result["finish_reason"].as_str().unwrap_or_default().to_owned();
            if let Some(missing) = lacks(&result, &shown(met.case.shows)) {
                return Some(format!("{missing}: {result}"));
            }
            if met.case.name == "streamed" && met.pieces < 2 {
                return Some("its text came in one piece".to_owned());
            }
            format!("`{reason}`")
        }
        TaskOutcome::Failed { failure, .. } => {
            if let Some(ms) = met.case.retry_after_ms
                && failure.retry_after_ms() != Some(ms)
            {
                return Some(format!("asks for {:?}: {failure}", failure.retry_after_ms()));
            }
            let again = if asked > 1 { " ↻" } else { "" };
            format!("**{}**{again}", failure.kind)
        }
        other => format!("{other:?}"),
    };
    let expected_times = if matches!(expected, Maps::FailsTwice(_)) { 2 } else { 1 };
    if asked != expected_times {
        return Some(format!("asked {asked} times: {:?}", met.report.outcome));
    }
    (found != expected.shown())
        .then(|| format!("is {found}, and should be {}: {:?}", expected.shown(), met.report.outcome))
}

fn shown(text: &str) -> Json {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// What is not there of what has to be. A text that begins with `…` has to be part of the other one.
fn lacks(found: &Json, expected: &Json) -> Option<String> {
    match (found, expected) {
        (Json::Object(found), Json::Object(expected)) => expected.iter().find_map(|(key, value)| {
            let inside = lacks(found.get(key).unwrap_or(&Json::Null), value)?;
            Some(format!("{key}.{inside}"))
        }),
        (Json::Array(found), Json::Array(expected)) if found.len() == expected.len() => {
            found.iter().zip(expected).find_map(|(found, expected)| lacks(found, expected))
        }
        (Json::String(found), Json::String(expected)) if expected.starts_with('…') => {
            let part = expected.trim_start_matches('…');
            (!found.contains(part)).then(|| format!("{found:?} lacks {part:?}"))
        }
        _ => (found != expected).then(|| format!("{found} should be {expected}")),
    }
}
