//! Verbs that look once and leave: `list`, `show`, `why`, `gates`.

use std::sync::Arc;

use wonder_core::graph::Graph;
use wonder_engine::json::{RunJson, ShowJson};
use wonder_engine::run_tree::RunTree;
use wonder_engine::{Engine, Filter, GateView, RunView, Status};
use wonder_host::{Leaving, Purpose};

use crate::args::{GatesArgs, INTERRUPTED, ListArgs, ShowArgs, WatchArgs, WhyArgs};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::inputs;
use crate::screen::{Screen, now};
use crate::session::Session;
use crate::verbs::carry_on;
use crate::verbs::draw::{definition, show_graph};
use crate::verbs::last::{chosen, chosen_gate, found};
use crate::view::list::{self, Page};
use crate::view::paint::spoken;
use crate::view::result::answer_line;
use crate::view::show;
use crate::view::why;
use crate::view::words::shell_word;

/// How many runs are listed unless somebody says otherwise.
const LIST_MAX: u32 = 20;

/// Opens an engine to look, looks, and closes it whatever came of it.
pub(crate) async fn look<T>(
    session: &Session,
    looks: impl AsyncFnOnce(&dyn Engine) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let connection = session.open(Purpose::Look).await?;
    let looked = looks(connection.engine()).await;
    connection.close(Leaving::Now).await;
    looked
}

/// What was typed, as an engine is asked.
fn filter(args: &ListArgs) -> Result<Filter, Fault> {
    let time = |flag: &str, text: &Option<String>| {
        text.as_deref().map(|text| inputs::time(flag, text, now())).transpose()
    };
    let labels = args.labels.iter().map(|text| inputs::pair("--label", text)).collect::<Result<_, _>>()?;
    Ok(Filter {
        workflow: args.workflow.clone(),
        status: args.status.as_deref().and_then(Status::parse),
        interrupted: args.status.as_deref() == Some(INTERRUPTED),
        project: args.project.clone(),
        parent: args.parent.clone(),
        labels,
        since: time("--since", &args.since)?,
        until: time("--until", &args.until)?,
        children: args.all,
        after: args.after.clone(),
        // One more than is shown tells whether there are more.
        limit: Some(args.limit.unwrap_or(LIST_MAX).saturating_add(1)),
    })
}

pub(crate) async fn list(args: ListArgs, session: &Session) -> Result<Exit, Fault> {
    let filter = filter(&args)?;
    look(session, async |engine| {
        let everything = Filter { children: filter.children, limit: filter.limit, ..Filter::default() };
        let filtered = filter != everything;
        let shown = args.limit.unwrap_or(LIST_MAX) as usize;
        let mut rows = engine.list(filter).await?;
        let more = rows.len() > shown;
        rows.truncate(shown);
        if session.screen.json {
            session.screen.print_json(&rows.iter().map(RunJson::of).collect::<Vec<_>>())?;
            return Ok(Exit::Fine);
        }
        let live = rows.iter().any(|row| !row.status.is_end());
        let gates = if live { engine.gates(None).await? } else { Vec::new() };
        session.screen.print(&list::runs(&rows, &gates, session.screen.page()))?;
        match rows.last() {
            None if filtered => session.screen.say("no run fits"),
            None => {
                let home = session.home()?;
                session
                    .screen
                    .say(format!("no runs yet in {}: `wonder run FILE` starts one", home.display()));
            }
            Some(last) if more => {
                let next = format!(
                    "there are more: --after {} goes on, --limit N lists more at once",
                    shell_word(&last.run)
                );
                session.screen.say(session.screen.err.dim(next));
            }
            Some(_) => {}
        }
        Ok(Exit::Fine)
    })
    .await
}

pub(crate) async fn show(args: ShowArgs, session: &Session) -> Result<Exit, Fault> {
    look(session, async |engine| {
        if let Some(seq) = args.at {
            return show_at(engine, &args, seq, &session.screen).await;
        }
        let view = found(engine, args.run, &session.screen).await?;
        let run = view.row.run.clone();
        let tree = engine.tree(&run).await?;
        if args.graph {
            return show_graph(engine, (&view, tree.root()), args.format, &session.screen).await;
        }
        let gates = if view.row.status.is_end() { Vec::new() } else { engine.gates(Some(run)).await? };
        let graph =
            if view.row.status.is_end() { None } else { definition(engine, &view.row.run).await.ok() };
        print_run(&view, (&tree, graph), &gates, (session.screen.page(), &session.screen))?;
        Ok(Exit::Fine)
    })
    .await
}

/// A run as it was: its state by replaying up to the event, the rest from what had happened by then.
async fn show_at(engine: &dyn Engine, args: &ShowArgs, seq: u64, screen: &Screen) -> Result<Exit, Fault> {
    let run = chosen(engine, args.run.clone(), screen).await?;
    let mut view = engine.find_at(run, seq).await?;
    // Whether somebody carries it on now says nothing of then.
    view.row.driven = true;
    let tree = engine.tree_at(&view.row.run, seq).await?;
    if args.graph {
        return show_graph(engine, (&view, tree.root()), args.format, screen).await;
    }
    let then = tree.root().last_at;
    let gates = GateView::open_in(&view.row.run, &view.row.root, tree.root());
    print_run(&view, (&tree, None), &gates, (Page { now: then, ..screen.page() }, screen))?;
    if !screen.json {
        screen.say(format!("as it was after event {seq}, at {then}"));
    }
    Ok(Exit::Fine)
}

fn print_run(
    view: &RunView,
    (tree, graph): (&RunTree, Option<Arc<Graph>>),
    gates: &[GateView],
    (page, screen): (Page, &Screen),
) -> Result<(), Fault> {
    match screen.json {
        true => screen.print_json(&ShowJson::of(view, tree, gates)),
        false => screen.print(&show::page(view, tree, graph.as_ref(), gates, page)),
    }
}

pub(crate) async fn why(args: WhyArgs, session: &Session) -> Result<Exit, Fault> {
    look(session, async |engine| {
        let row = found(engine, args.run, &session.screen).await?.row;
        let reasons = engine.why(row.run.clone()).await?;
        if session.screen.json {
            session.screen.print_json(&reasons)?;
            return Ok(Exit::Fine);
        }
        let tree = engine.tree(&row.run).await?;
        for line in why::lines(&reasons, (&tree, row.driven), now()) {
            session.screen.print_line(line)?;
        }
        if row.status.is_end() {
            let ended = ended(spoken(row.status));
            session.screen.say(format!("run {} waits for nothing: it {ended}", row.run));
        } else if list::is_interrupted(&row) {
            session
                .screen
                .say(format!("nobody carries it on: `wonder resume {}` does", shell_word(&row.run)));
        }
        Ok(Exit::Fine)
    })
    .await
}

fn ended(status: &str) -> String {
    match status {
        "cancelled" | "quarantined" => format!("was {status}"),
        other => other.to_owned(),
    }
}

pub(crate) async fn gates(args: GatesArgs, session: &Session) -> Result<Exit, Fault> {
    look(session, async |engine| {
        let named = match args.run {
            Some(text) => Some(chosen_gate(engine, &text, &session.screen).await?),
            None => None,
        };
        if let Some(gate) = named.as_ref().filter(|text| text.contains(':')) {
            let details = engine.gate(gate.clone()).await?;
            match session.screen.json {
                true => session.screen.print_json(&details)?,
                false => session.screen.print(&list::gate(&details, session.screen.page()))?,
            }
            return Ok(Exit::Fine);
        }
        let gates: Vec<GateView> = engine.gates(named).await?;
        if session.screen.json {
            session.screen.print_json(&gates)?;
            return Ok(Exit::Fine);
        }
        session.screen.print(&list::gates(&gates, session.screen.page()))?;
        match gates.first() {
            Some(first) => {
                let line = answer_line(&first.id, Some(first));
                session.screen.say(session.screen.err.dim(format!("such as: {line}")));
            }
            None => session.screen.say("no gate is open"),
        }
        Ok(Exit::Fine)
    })
    .await
}

pub(crate) async fn watch(args: WatchArgs, session: &Session) -> Result<Exit, Fault> {
    let connection = session.open(Purpose::Look).await?;
    match found(connection.engine(), args.run, &session.screen).await {
        Ok(view) => carry_on::watch(session, connection, view.row.run).await,
        Err(fault) => {
            connection.close(Leaving::Now).await;
            Err(fault)
        }
    }
}
