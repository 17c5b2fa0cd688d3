//! `last` is whichever run is the newest: which one that is, is said before anything is done with it.

use wonder_engine::{Engine, RunView};

use crate::args::INTERRUPTED;
use crate::fault::Fault;
use crate::screen::{Screen, now};
use crate::view::list::is_interrupted;
use crate::view::paint::spoken;
use crate::view::words::ago;

const LAST: &str = "last";

/// The run that was named; `last` by its id.
pub(crate) async fn chosen(engine: &dyn Engine, named: String, screen: &Screen) -> Result<String, Fault> {
    if named != LAST {
        return Ok(named);
    }
    let view = engine.find(named).await?;
    tell(&view, screen);
    Ok(view.row.run)
}

/// The same of a gate: `last:1`, or a run that has one.
pub(crate) async fn chosen_gate(engine: &dyn Engine, named: &str, screen: &Screen) -> Result<String, Fault> {
    let (run, number) = named.split_once(':').map_or((named, None), |(run, number)| (run, Some(number)));
    let run = chosen(engine, run.to_owned(), screen).await?;
    Ok(number.map_or(run.clone(), |number| format!("{run}:{number}")))
}

/// The run that was named, as it is.
pub(crate) async fn found(
    engine: &dyn Engine,
    named: String,
    screen: &Screen,
) -> Result<Box<RunView>, Fault> {
    let is_last = named == LAST;
    let view = engine.find(named).await?;
    if is_last {
        tell(&view, screen);
    }
    Ok(view)
}

/// Programs read it in the answer.
fn tell(view: &RunView, screen: &Screen) {
    if screen.json {
        return;
    }
    let row = &view.row;
    let when = ago(row.started_at, now());
    let status = if is_interrupted(row) { INTERRUPTED } else { spoken(row.status) };
    let text = format!("last is run {} of {} ({status}, started {when})", row.run, row.workflow);
    screen.say(screen.err.dim(text));
}
