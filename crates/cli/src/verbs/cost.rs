//! `cost`: what a run and those it called cost, or all runs together.

use wonder_core::Time;
use wonder_engine::cost::{Bill, GroupBy, Totals, budgets};
use wonder_engine::json::BillJson;
use wonder_engine::{Engine, Filter, RunRow, Status};

use crate::args::{By, CostArgs};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::inputs;
use crate::screen::{Screen, now};
use crate::session::Session;
use crate::verbs::last::found;
use crate::verbs::look::look;
use crate::view::cost::{self, TotalsJson};

pub(crate) async fn cost(args: CostArgs, session: &Session) -> Result<Exit, Fault> {
    let since = args.since.as_deref().map(|text| inputs::time("--since", text, now())).transpose()?;
    look(session, async |engine| match &args.run {
        Some(run) => of_run(engine, run, args.attempts, &session.screen).await,
        None => of_all(engine, &args, since, &session.screen).await,
    })
    .await
}

async fn of_run(engine: &dyn Engine, run: &str, attempts: bool, screen: &Screen) -> Result<Exit, Fault> {
    let view = found(engine, run.to_owned(), screen).await?;
    let definition = engine.definition(view.row.run.clone()).await?;
    let run_tree = engine.tree(&view.row.run).await?;
    let page = screen.page();
    let bill = Bill::of(&run_tree, page.now);
    let budgets = budgets(&definition.bundle, run_tree.root(), page.now);
    match screen.json {
        true => screen.print_json(&BillJson::of(&view, &bill, &budgets, attempts))?,
        false => screen.print(&cost::page(&view, &bill, &budgets, (page, attempts)))?,
    }
    Ok(Exit::Fine)
}

async fn of_all(
    engine: &dyn Engine,
    args: &CostArgs,
    since: Option<Time>,
    screen: &Screen,
) -> Result<Exit, Fault> {
    let rows = rows(engine).await?;
    let totals = Totals::of(&rows, group_by(args.by), since);
    if screen.json {
        screen.print_json(&TotalsJson::of(&totals))?;
        return Ok(Exit::Fine);
    }
    screen.print(&cost::totals_page(&totals, screen.page()))?;
    match (totals.total.runs, since) {
        (0, Some(since)) => screen.say(format!("no run was started since {since}")),
        (0, None) => screen.say("no runs yet: `wonder run FILE` starts one"),
        _ => {}
    }
    Ok(Exit::Fine)
}

fn group_by(by: By) -> GroupBy {
    match by {
        By::Workflow => GroupBy::Workflow,
        By::Project => GroupBy::Project,
        By::Day => GroupBy::Day,
        By::Status => GroupBy::Status,
    }
}

/// Every run. The row of one that works is as old as its status: the run itself is asked.
async fn rows(engine: &dyn Engine) -> Result<Vec<RunRow>, Fault> {
    let everything = Filter { children: true, limit: Some(u32::MAX), ..Filter::default() };
    let mut rows = engine.list(everything).await?;
    // The newest first, so children before those who called them: what ends meanwhile is counted once.
    for row in rows.iter_mut().filter(|row| !row.status.is_end() && row.status != Status::Waiting) {
        *row = engine.find(row.run.clone()).await?.row;
    }
    Ok(rows)
}
