//! Verbs that print what comes, line by line: `events` and `logs`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use wonder_core::event::Event;
use wonder_core::graph::Node;
use wonder_core::problem::nearest;
use wonder_engine::{Engine, EngineError, Follow, LogLine, RunView, Updates};

use crate::args::{EventsArgs, LogsArgs};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::interrupts::Interrupts;
use crate::session::Session;
use crate::text::text;
use crate::verbs::draw::definition;
use crate::verbs::last::found;
use crate::verbs::look::look;
use crate::view::events::{event_line, log_line};
use crate::view::words::short_id;
use wonder_engine::run_tree::{RunTree, node_name};

const FOLLOW_MS: u64 = 10_000;
const FOLLOW_MAX: u32 = 2_000;

/// `{run, seq, at, kind, …}`; of all runs with the `cursor` to go on from.
#[derive(Serialize)]
struct EventJson<'e> {
    run: &'e str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<u64>,
    #[serde(flatten)]
    event: &'e Event,
}

pub(crate) async fn events(args: EventsArgs, session: &Session) -> Result<Exit, Fault> {
    let printing = look(session, async |engine| {
        if args.all {
            return print_all_events(engine, &args, session).await;
        }
        let run = found(engine, args.run.clone(), &session.screen).await?.row.run;
        print_events(engine, &run, &args, session).await
    });
    until_interrupted(printing).await
}

/// Ctrl-C ends it wherever it is, also before an engine has answered.
async fn until_interrupted(printing: impl Future<Output = Result<Exit, Fault>>) -> Result<Exit, Fault> {
    let mut interrupts = Interrupts::listen();
    tokio::select! {
        done = printing => done,
        () = interrupts.next() => Ok(Exit::Interrupted),
    }
}

async fn print_events(
    engine: &dyn Engine,
    run: &str,
    args: &EventsArgs,
    session: &Session,
) -> Result<Exit, Fault> {
    let screen = &session.screen;
    let mut run_tree = RunTree::new(run);
    // To name what an event is about, those before it must be known; a program names things itself.
    let mut last = if screen.json { args.after } else { 0 };
    loop {
        let question = Follow { events_after: vec![(run.to_owned(), last)], ..question(args.follow) };
        let updates = engine.follow(question).await?;
        for (run, event) in &updates.events {
            run_tree.learn(run, event);
            last = event.seq;
            if event.seq > args.after && screen.json {
                screen.print_json_line(&EventJson { run, cursor: None, event })?;
            } else if event.seq > args.after {
                let line = event_line(&run_tree, run, event, screen.out);
                screen.print_line(line.fit(screen.page().width))?;
            }
        }
        if is_last(&updates, updates.events.is_empty(), run, args.follow) || screen.is_unread() {
            return Ok(Exit::Fine);
        }
    }
}

/// Of all runs, by the engine's own order. Names are known as far as the events that came by told them.
async fn print_all_events(engine: &dyn Engine, args: &EventsArgs, session: &Session) -> Result<Exit, Fault> {
    let screen = &session.screen;
    let mut trees: BTreeMap<String, RunTree> = BTreeMap::new();
    let mut cursor = args.after;
    loop {
        let updates = engine.follow(Follow { all_after: Some(cursor), ..question(args.follow) }).await?;
        for step in &updates.steps {
            let broken = |error| EngineError::internal(format!("a stored step is not readable: {error}"));
            let tree = trees.entry(step.run.clone()).or_insert_with(|| RunTree::new(&step.run));
            for event in &step.decoded().map_err(broken)? {
                if screen.json {
                    let (run, cursor) = (&step.run, Some(step.cursor));
                    screen.print_json_line(&EventJson { run, cursor, event })?;
                    continue;
                }
                tree.learn(&step.run, event);
                let line = event_line(tree, &step.run, event, screen.out);
                let line = text!("{} {}", screen.out.dim(short_id(&step.run)), line);
                screen.print_line(line.fit(screen.page().width))?;
            }
        }
        cursor = updates.cursor.unwrap_or(cursor);
        if (updates.steps.is_empty() && !args.follow) || screen.is_unread() {
            return Ok(Exit::Fine);
        }
    }
}

fn question(follow: bool) -> Follow {
    Follow { wait_ms: if follow { FOLLOW_MS } else { 0 }, limit: Some(FOLLOW_MAX), ..Follow::default() }
}

/// Nothing new came, and nothing will.
fn is_last(updates: &Updates, nothing: bool, run: &str, follow: bool) -> bool {
    let ended = updates.runs.iter().any(|progress| progress.run == run && progress.status.is_end());
    nothing && (ended || !follow)
}

pub(crate) async fn logs(args: LogsArgs, session: &Session) -> Result<Exit, Fault> {
    let printing = look(session, async |engine| {
        let view = found(engine, args.run.clone(), &session.screen).await?;
        if let Some(node) = &args.node {
            must_be_node(engine, &view, ("--node", node)).await?;
        }
        print_logs(engine, &view.row.run, &args, session).await
    });
    until_interrupted(printing).await
}

/// A name that no node has is a mistake, not a node that said nothing.
pub(crate) async fn must_be_node(
    engine: &dyn Engine,
    view: &RunView,
    (flag, named): (&str, &str),
) -> Result<(), Fault> {
    let tree = engine.tree(&view.row.run).await?;
    let mut known: BTreeSet<String> = BTreeSet::new();
    let mut calls = false;
    for (run, timeline) in &tree.runs {
        let graph = definition(engine, run).await?;
        calls |= graph.nodes.iter().any(Node::calls_workflow);
        known.extend(graph.nodes.iter().map(|node| node_name(&node.reference).to_owned()));
        known.extend(timeline.visits.values().map(|visit| node_name(&visit.node).to_owned()));
    }
    // Of a run that has not been called yet the nodes are not known.
    if known.contains(named) || (calls && !view.row.status.is_end()) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let help = match nearest(named, names.iter().copied()) {
        Some(near) => format!("did you mean {near}? Its nodes are {}", names.join(", ")),
        None => format!("its nodes are {}", names.join(", ")),
    };
    Err(Fault::usage(format!("{flag} {named}: run {} has no such node", view.row.run)).help(help))
}

async fn print_logs(
    engine: &dyn Engine,
    run: &str,
    args: &LogsArgs,
    session: &Session,
) -> Result<Exit, Fault> {
    let screen = &session.screen;
    let mut run_tree = RunTree::new(run);
    let mut last = 0;
    loop {
        let question = Follow {
            events_after: run_tree.positions(),
            logs_after: Some((run.to_owned(), last)),
            ..question(args.follow)
        };
        let updates = engine.follow(question).await?;
        updates.events.iter().for_each(|(run, event)| run_tree.learn(run, event));
        for line in &updates.logs {
            last = line.number.max(last);
            if !is_wanted(line, args.node.as_deref()) {
                continue;
            }
            if screen.json {
                screen.print_json_line(line)?;
            } else {
                screen.print_line(log_line(&run_tree, line, screen.out))?;
            }
        }
        let nothing = updates.events.is_empty() && updates.logs.is_empty();
        if is_last(&updates, nothing, run, args.follow) || screen.is_unread() {
            return Ok(Exit::Fine);
        }
    }
}

fn is_wanted(line: &LogLine, node: Option<&str>) -> bool {
    node.is_none_or(|node| node_name(&line.node) == node)
}
