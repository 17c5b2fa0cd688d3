//! `cost`: what a run and those it called cost, or all runs together.

use wonder_core::Time;
use wonder_core::time::parse_duration_ms;
use wonder_engine::{Engine, Filter, RunRow, Status};

use crate::args::CostArgs;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::screen::{Screen, now};
use crate::session::Session;
use crate::verbs::look::{family, look};
use crate::view::cost::{self, Bill, BillJson, Project, ProjectJson};

pub(crate) async fn cost(args: CostArgs, session: &Session) -> Result<Exit, Fault> {
    let since = args.since.as_deref().map(|text| since(text, now())).transpose()?;
    look(session, async |engine| match &args.run {
        Some(run) => of_run(engine, run, args.attempts, &session.screen).await,
        None => of_all(engine, &args, since, &session.screen).await,
    })
    .await
}

async fn of_run(engine: &dyn Engine, run: &str, attempts: bool, screen: &Screen) -> Result<Exit, Fault> {
    let view = engine.find(run.to_owned()).await?;
    let definition = engine.definition(view.row.run.clone()).await?;
    let family = family(engine, &view.row.run).await?;
    let page = screen.page();
    let bill = Bill::of(&family, page.now);
    let budgets = cost::budgets(&definition.bundle, family.root(), page.now);
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
    let project = Project::of(&rows, args.by, since);
    if screen.json {
        screen.print_json(&ProjectJson::of(&project))?;
        return Ok(Exit::Fine);
    }
    screen.print(&cost::project_page(&project, screen.page()))?;
    match (project.total().runs, since) {
        (0, Some(since)) => screen.say(&format!("no run was started since {since}")),
        (0, None) => screen.say("no runs yet: `wonder run FILE` starts one"),
        _ => {}
    }
    Ok(Exit::Fine)
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

/// `7d`, `24h`, `2026-01-31` or a whole time.
fn since(text: &str, now: Time) -> Result<Time, Fault> {
    let ago = parse_duration_ms(text).filter(|_| !text.chars().all(|c| c.is_ascii_digit()));
    let ago = ago.map(|ms| Time(now.0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX))));
    let day = || Time::parse(&format!("{text}T00:00:00Z"));
    ago.or_else(|| Time::parse(text)).or_else(day).ok_or_else(|| {
        let message = format!("--since {text}: neither a duration nor a day");
        Fault::usage(message).help("7d, 24h, 2026-01-31 and 2026-01-31T12:00:00Z are some")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_be_said_in_several_ways() {
        let now = Time::parse("2026-02-01T00:00:00Z").unwrap();
        for text in ["24h", "1d", "2026-01-31", "2026-01-31T00:00:00Z"] {
            assert_eq!(since(text, now).unwrap(), Time::parse("2026-01-31T00:00:00Z").unwrap(), "{text}");
        }
        for text in ["", "7", "yesterday", "2026-13-01"] {
            assert!(since(text, now).is_err(), "{text}");
        }
    }
}
