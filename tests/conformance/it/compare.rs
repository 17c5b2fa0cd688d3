//! What came of a scenario on two hosts, side by side.
//!
//! Events are compared as they are stored, byte for byte, and so are refusals, views, gates and what runs say
//! they wait for. Nothing is normalised: ids, seeds and times are handed in or follow from what is.

use wonder_core::def::Name;
use wonder_core::event::{Event, EventKind};
use wonder_core::run::RunStatus;
use wonder_core::state::Place;
use wonder_core::time::Time;
use wonder_core::value::Value;
use wonder_engine::timeline::Timeline;
use wonder_engine::{Status, WaitView, WhyReason};
use wonder_sim::diff;
use wonder_sim::host::ScenarioHost;
use wonder_sim::world::{Hosted, World};

use crate::embedded::{Embedded, gate_id};

/// How the embedded host differs from the simulator, readable. Empty if it does not.
pub(crate) fn differences(simulated: &World, embedded: &mut World<Embedded>) -> Vec<String> {
    let mut found: Vec<String> = embedded.violations().to_vec();
    let ids = ids(simulated);
    found.extend(diff::lines(&ids, &self::ids(embedded)).map(|diff| format!("runs:\n{diff}")));
    for (id, expected) in simulated.runs() {
        let Some((_, hosted)) = embedded.runs().find(|(run, _)| *run == id) else { continue };
        let traces = diff::lines(&simulated.trace_of(id), &embedded.trace_of(id));
        let logs = || diff::lines(&stored(&expected.log), &stored(&hosted.log));
        found.extend(traces.or_else(logs).map(|diff| format!("events of {id}:\n{diff}")));
    }
    if found.is_empty() {
        let order = diff::lines(&simulated.trace(), &embedded.trace());
        found.extend(order.map(|diff| format!("the order among runs:\n{diff}")));
    }
    // Where the events differ so does everything else.
    if found.is_empty() {
        found = views(simulated, embedded);
    }
    found
}

fn ids<H: ScenarioHost>(world: &World<H>) -> String {
    let started = world.runs().filter(|(_, hosted)| !hosted.log.is_empty());
    started.map(|(id, _)| format!("{id}\n")).collect()
}

/// One event a line, as a database has it.
fn stored(events: &[Event]) -> String {
    let lines = events.iter().map(|event| serde_json::to_string(event).expect("events can be stored"));
    lines.map(|line| line + "\n").collect()
}

fn views(simulated: &World, embedded: &mut World<Embedded>) -> Vec<String> {
    let mut found = Vec::new();
    // Refused at its start, it never was.
    if simulated.root().log.is_empty() {
        return found;
    }
    let mut compare = |what: String, expected: String, shown: String| {
        found.extend(diff::lines(&expected, &shown).map(|diff| format!("{what}:\n{diff}")));
    };
    let host = embedded.host();
    let started: Vec<(&Name, &Hosted)> =
        simulated.runs().filter(|(_, hosted)| !hosted.log.is_empty()).collect();
    for (id, hosted) in &started {
        match host.view(id) {
            Ok(view) => compare(format!("the view of {id}"), expected(id, simulated), shown(&view)),
            Err(error) => compare(format!("the view of {id}"), expected(id, simulated), error.to_string()),
        }
        let why: Vec<String> = if hosted.run.status().is_end() {
            let ended = WhyReason::of_end(&hosted.run, &Timeline::of(&hosted.log));
            ended.iter().map(|reason| format!("{reason:?}")).collect()
        } else {
            hosted.run.why().iter().map(ToString::to_string).collect()
        };
        let told = host.why(id).unwrap_or_else(|error| vec![error.to_string()]);
        compare(format!("what {id} waits for"), why.join("\n"), told.join("\n"));
    }
    let gates = |(id, hosted): &(&Name, &Hosted)| -> Vec<String> {
        let gates = hosted.run.gates().map(|(gate, open)| {
            let record = &open.record;
            format!("{} {:?} {} {}", gate_id(id, gate), record.kind, record.title, record.form)
        });
        gates.collect()
    };
    let mut open: Vec<String> = started.iter().flat_map(gates).collect();
    let root = &simulated.setting().start.id;
    let listed = host.gates(root).unwrap_or_default().into_iter();
    let mut listed: Vec<String> =
        listed.map(|gate| format!("{} {:?} {} {}", gate.id, gate.kind, gate.title, gate.form)).collect();
    open.sort();
    listed.sort();
    compare("open gates".to_owned(), open.join("\n"), listed.join("\n"));
    found
}

fn expected(id: &Name, world: &World) -> String {
    let hosted = world.runs().find(|(run, _)| *run == id).expect("it was just listed").1;
    let state = hosted.run.state();
    let spend = &state.spend;
    let (quiet, ended) = (is_quiet(id, world), state.status.is_end());
    described(&[
        ("status", Status::of(hosted.run.status(), quiet && !ended).to_string()),
        ("waits for", if quiet && !ended { waits(id, world).join(", ") } else { String::new() }),
        ("seq", state.seq.to_string()),
        ("workflow", hosted.graph.name.to_string()),
        ("state", state.state.to_string()),
        ("output", hosted.run.output().map_or_else(String::new, Value::to_string)),
        ("error", hosted.run.failure().map_or_else(String::new, json)),
        ("cost", format!("{} {}", spend.usd_micros, spend.tokens())),
        ("metrics", json(&state.metrics)),
        ("started", format!("{:?}", started_at(hosted))),
        ("ended", format!("{:?}", ended_at(hosted))),
        ("children", children(id, world).join(" ")),
    ])
}

fn shown(view: &wonder_engine::RunView) -> String {
    described(&[
        ("status", view.row.status.to_string()),
        ("waits for", view.waiting.iter().map(shown_wait).collect::<Vec<_>>().join(", ")),
        ("seq", view.seq.to_string()),
        ("workflow", view.row.workflow.clone()),
        ("state", view.state.to_string()),
        ("output", view.output.as_ref().map_or_else(String::new, Value::to_string)),
        ("error", view.error.as_ref().map_or_else(String::new, json)),
        ("cost", format!("{} {}", view.row.usd_micros, view.row.tokens)),
        ("metrics", json(&view.metrics)),
        ("started", format!("{:?}", Some(view.row.started_at))),
        ("ended", format!("{:?}", view.row.ended_at)),
        ("children", sorted(view.children.clone()).join(" ")),
    ])
}

/// A fork starts when it is forked; what it copied happened to another run.
fn started_at(hosted: &Hosted) -> Option<Time> {
    let forked = hosted.log.iter().find(|event| matches!(event.kind, EventKind::RunForked { .. }));
    forked.or(hosted.log.first()).map(|event| event.at)
}

/// When it ended for the last time; what is reported after that does not move it.
fn ended_at(hosted: &Hosted) -> Option<Time> {
    let ends = |event: &&Event| {
        matches!(
            event.kind,
            EventKind::RunCompleted { .. }
                | EventKind::RunFailed { .. }
                | EventKind::RunCancelled { .. }
                | EventKind::RunTimedOut { .. }
        )
    };
    let end = hosted.log.iter().rev().find(ends).filter(|_| hosted.run.status().is_end());
    end.map(|event| event.at)
}

/// Those it called itself: a child's id is its parent's, the token and the attempt.
fn children(id: &Name, world: &World) -> Vec<String> {
    let own = world.runs().filter(|(run, _)| run.rsplitn(3, '.').nth(2) == Some(id));
    sorted(own.map(|(run, _)| run.to_string()).collect())
}

fn sorted(mut ids: Vec<String>) -> Vec<String> {
    ids.sort();
    ids
}

fn described(parts: &[(&str, String)]) -> String {
    parts.iter().map(|(name, text)| format!("{name}: {text}\n")).collect()
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("what is shown is JSON")
}

/// Nothing happens to it, or to those it has called, until somebody says something.
fn is_quiet(id: &Name, world: &World) -> bool {
    let hosted = world.runs().find(|(run, _)| *run == id).map(|(_, hosted)| hosted);
    hosted.is_none_or(|hosted| hosted.run.is_quiet(|_, _| false, |child| is_quiet(child, world)))
}

/// What a run that is quiet waits for from outside, and then those it has called.
fn waits(id: &Name, world: &World) -> Vec<String> {
    let Some((_, hosted)) = world.runs().find(|(run, _)| *run == id) else { return Vec::new() };
    let run = &hosted.run;
    let mut waits: Vec<String> = run.gates().map(|(gate, _)| gate_id(id, gate)).collect();
    waits.extend(run.tokens().filter_map(|token| match &token.place {
        Place::WaitingForEvent { event, key, .. } => Some(format!("{id} {event} {key}")),
        _ => None,
    }));
    if run.status() == RunStatus::Paused && waits.is_empty() {
        waits.push(format!("{id} resume"));
    }
    let called = run.state().out.values().filter_map(|out| out.child.as_ref());
    waits.extend(called.flat_map(|child| self::waits(child, world)));
    waits
}

fn shown_wait(wait: &WaitView) -> String {
    match wait {
        WaitView::Gate { gate, .. } => gate.clone(),
        WaitView::Event { run, event, key, .. } => format!("{run} {event} {key}"),
        WaitView::Resume { run } => format!("{run} resume"),
        WaitView::Project { message, .. } => message.clone(),
    }
}
