//! `cancel`, `kill` and `pause`: done when the run is as it was asked to be.

use wonder_engine::{Act, Engine, RunView};
use wonder_host::{Connection, Drive, Leaving, Purpose};

use crate::args::{Because, CancelArgs, KillArgs, PauseArgs, somebody};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::interrupts::Interrupts;
use crate::session::Session;
use crate::verbs::last::chosen;
use crate::view::result::{Outcome, summary};

const WAIT_MS: u64 = 30_000;

pub(crate) async fn cancel(args: CancelArgs, session: &Session) -> Result<Exit, Fault> {
    let act = Act::Cancel { reason: reason(args.because), grace_ms: None };
    end(args.run, act, session).await
}

pub(crate) async fn kill(args: KillArgs, session: &Session) -> Result<Exit, Fault> {
    end(args.run, Act::Kill { reason: reason(args.because) }, session).await
}

pub(crate) async fn pause(args: PauseArgs, session: &Session) -> Result<Exit, Fault> {
    let connection = session.open(Purpose::Act).await?;
    // Nothing is to be started for the sake of being paused.
    let drive = if connection.owner().is_none() { Drive::Off } else { Drive::On };
    let act = Act::Pause { by: somebody(args.by) };
    let paused = told(connection.with(drive).engine(), args.run, act, session).await;
    let printed = paused.and_then(|view| print_outcome(session, &view));
    connection.close(Leaving::Drain).await;
    printed
}

fn reason(because: Because) -> String {
    let Because { reason, by } = because;
    match (reason, by) {
        (Some(reason), Some(by)) => format!("{reason} (by {by})"),
        (Some(reason), None) => reason,
        (None, by) => format!("asked by {}", somebody(by)),
    }
}

/// Asks for the end, and stays until it has come: tasks that are out may take their grace.
async fn end(run: String, act: Act, session: &Session) -> Result<Exit, Fault> {
    let mut interrupts = Interrupts::listen();
    let connection = session.open(Purpose::Act).await?;
    let ended = tokio::select! {
        view = until_ended(&connection, run, act, session) => view.map(Some),
        () = interrupts.next() => Ok(None),
    };
    let printed = match ended {
        Ok(Some(view)) => print_outcome(session, &view),
        Ok(None) => {
            session.screen.say("left: the run is asked to end and will");
            Ok(Exit::Interrupted)
        }
        Err(fault) => Err(fault),
    };
    connection.close(Leaving::Drain).await;
    printed
}

async fn until_ended(
    connection: &Connection,
    run: String,
    act: Act,
    session: &Session,
) -> Result<Box<RunView>, Fault> {
    let engine = connection.engine();
    let mut view = told(engine, run, act, session).await?;
    while !view.row.status.is_end() {
        view = engine.wait(view.row.run, WAIT_MS).await?;
    }
    Ok(view)
}

async fn told(engine: &dyn Engine, run: String, act: Act, session: &Session) -> Result<Box<RunView>, Fault> {
    let run = chosen(engine, run, &session.screen).await?;
    engine.act(run.clone(), act).await.map_err(|error| Fault::from(error).about(&run))
}

fn print_outcome(session: &Session, view: &RunView) -> Result<Exit, Fault> {
    if session.screen.json {
        session.screen.print_json(&Outcome::of(view))?;
    } else {
        session.screen.say(summary(view, session.screen.err));
    }
    Ok(Exit::Fine)
}
