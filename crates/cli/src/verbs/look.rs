//! Verbs that look once and leave: `list`, `show`, `why`, `gates`.

use wonder_engine::{Engine, Filter, Follow, GateView};
use wonder_host::{Leaving, Purpose};

use crate::args::{GatesArgs, ListArgs, ShowArgs, WatchArgs, WhyArgs};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::session::Session;
use crate::verbs::carry_on;
use crate::verbs::draw::show_graph;
use crate::view::family::Family;
use crate::view::list::{self, RunJson};
use crate::view::paint::spoken;
use crate::view::result::answer_line;
use crate::view::show::{self, ShowJson};

/// How many runs are listed unless somebody says otherwise.
const LIST_MAX: u32 = 20;
/// How much is asked for at once.
const FOLLOW_MAX: u32 = 5_000;

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

pub(crate) async fn list(args: ListArgs, session: &Session) -> Result<Exit, Fault> {
    look(session, async |engine| {
        let filtered = args.workflow.is_some() || args.status.is_some();
        let filter = Filter {
            workflow: args.workflow,
            status: args.status,
            children: args.all,
            limit: Some(args.limit.unwrap_or(LIST_MAX)),
        };
        let rows = engine.list(filter).await?;
        if session.screen.json {
            session.screen.print_json(&rows.iter().map(RunJson::of).collect::<Vec<_>>())?;
            return Ok(Exit::Fine);
        }
        let live = rows.iter().any(|row| !row.status.is_end());
        let gates = if live { engine.gates(None).await? } else { Vec::new() };
        session.screen.print(&list::runs(&rows, &gates, session.screen.page()))?;
        match rows.len() {
            0 if filtered => session.screen.say("no run fits"),
            0 => session.screen.say("no runs yet: `wonder run FILE` starts one"),
            n if args.limit.is_none() && n == LIST_MAX as usize => {
                session.screen.say("there may be more: --limit N lists more");
            }
            _ => {}
        }
        Ok(Exit::Fine)
    })
    .await
}

pub(crate) async fn show(args: ShowArgs, session: &Session) -> Result<Exit, Fault> {
    look(session, async |engine| {
        let view = engine.find(args.run).await?;
        if args.graph {
            return show_graph(engine, &view, args.format, &session.screen).await;
        }
        let run = view.row.run.clone();
        let family = family(engine, &run).await?;
        let gates = if view.row.status.is_end() { Vec::new() } else { engine.gates(Some(run)).await? };
        if session.screen.json {
            session.screen.print_json(&ShowJson::of(&view, &family, &gates))?;
        } else {
            session.screen.print(&show::page(&view, &family, &gates, session.screen.page()))?;
        }
        Ok(Exit::Fine)
    })
    .await
}

/// A run and its children from their events.
pub(crate) async fn family(engine: &dyn Engine, run: &str) -> Result<Family, Fault> {
    let mut family = Family::new(run);
    loop {
        let question = Follow {
            events_after: family.positions(),
            logs_after: None,
            wait_ms: 0,
            limit: Some(FOLLOW_MAX),
        };
        let updates = engine.follow(question).await?;
        if updates.events.is_empty() {
            return Ok(family);
        }
        updates.events.iter().for_each(|(run, event)| family.learn(run, event));
    }
}

pub(crate) async fn why(args: WhyArgs, session: &Session) -> Result<Exit, Fault> {
    look(session, async |engine| {
        let reasons = engine.why(args.run.clone()).await?;
        if session.screen.json {
            session.screen.print_json(&reasons)?;
            return Ok(Exit::Fine);
        }
        for reason in &reasons {
            session.screen.print(&format!("{reason}\n"))?;
        }
        let row = engine.find(args.run).await?.row;
        if row.status.is_end() {
            session.screen.say(&format!(
                "run {} waits for nothing: it {}",
                row.run,
                ended(spoken(row.status))
            ));
        } else if !row.driven && row.status == wonder_engine::Status::Running {
            session.screen.say(&format!("nobody carries it on: `wonder resume {}` does", row.run));
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
        let gates: Vec<GateView> = engine.gates(args.run).await?;
        if session.screen.json {
            session.screen.print_json(&gates)?;
            return Ok(Exit::Fine);
        }
        session.screen.print(&list::gates(&gates, session.screen.page()))?;
        match gates.first() {
            Some(first) => {
                let line = answer_line(&first.id, Some(first));
                session.screen.say(&session.screen.err.dim(&format!("answer with: {line}")));
            }
            None => session.screen.say("no gate is open"),
        }
        Ok(Exit::Fine)
    })
    .await
}

pub(crate) async fn watch(args: WatchArgs, session: &Session) -> Result<Exit, Fault> {
    let connection = session.open(Purpose::Look).await?;
    let found = connection.engine().find(args.run).await;
    match found {
        Ok(view) => carry_on::watch(session, connection, view.row.run).await,
        Err(error) => {
            connection.close(Leaving::Now).await;
            Err(error.into())
        }
    }
}
