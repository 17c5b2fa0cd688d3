//! `tell`: a message to whoever works in a run. It is recorded at once; where another process carries the run on there
//! is nothing more to do here.

use wonder_engine::{Engine, RunView, Tell};
use wonder_host::{Drive, Leaving, Purpose};

use crate::args::{TellArgs, somebody};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::screen::now;
use crate::session::Session;
use crate::verbs::carry_on::set_going;
use crate::verbs::last::chosen;
use crate::view::result::Outcome;
use crate::view::words::shell_word;

pub(crate) async fn tell(args: TellArgs, session: &Session) -> Result<Exit, Fault> {
    let connection = session.open(Purpose::Act).await?;
    let Some(process) = connection.owner() else {
        // Whoever opens it next carries it on: this one does.
        connection.close(Leaving::Drain).await;
        let detach = args.how.detach;
        return set_going(session, detach, Some(now()), async |engine| told(engine, args, session).await)
            .await;
    };
    let told = told(connection.with(Drive::On).engine(), args, session).await;
    connection.close(Leaving::Drain).await;
    let (view, screen) = (told?, &session.screen);
    if screen.json {
        screen.print_json(&Outcome::of(&view))?;
    } else {
        let run = shell_word(&view.row.run);
        screen.say(format!("told; process {process} carries the run on: `wonder watch {run}` follows it"));
    }
    Ok(Exit::Fine)
}

async fn told(engine: &dyn Engine, args: TellArgs, session: &Session) -> Result<Box<RunView>, Fault> {
    let (run, node) = args.run.split_once('/').map_or((&*args.run, None), |(run, node)| (run, Some(node)));
    let run = chosen(engine, run.to_owned(), &session.screen).await?;
    let (text, stop, by) = (args.text, args.stop, somebody(args.how.by));
    let named = node.map_or(run.clone(), |node| format!("{run}/{node}"));
    let tell = Tell { request_id: None, run: named, text, stop, by };
    engine.tell(tell).await.map_err(|error| Fault::from(error).about(&run))
}
