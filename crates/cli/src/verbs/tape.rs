//! Cassettes as verbs use them: `--record` and `--replay` of those that set a run going, and `cassette` of a test case.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use wonder_actions::{Asked, Settings, Tape, Worker};
use wonder_cassette::{Exchange, Outcome, Place, Player, Request, Stop};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::execution::TryFailure;
use wonder_host::Connection;
use wonder_trial::{ActionRequest, ROOT, Recorded, Recordings};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::session::Session;
use crate::text::{Text, text};
use crate::view::paint::Tone;
use crate::view::words::count;

/// What is asked is recorded and answered by whoever performs tasks.
pub(crate) async fn refuse_elsewhere(session: &Session, connection: &Connection) -> Result<(), Fault> {
    let Some(process) = connection.owner().filter(|_| session.tape().is_some()) else { return Ok(()) };
    let message = format!(
        "process {process} owns the database and performs its tasks, so that nothing can be recorded or replayed here"
    );
    Err(Fault::usage(message).help("wait until it has ended, or take a home of your own: `--home DIR`"))
}

/// Says what went wrong with a cassette: then what was asked for is not there, however the run ended.
pub(crate) fn tell(session: &Session, exit: Exit) -> Exit {
    let Some(tape) = session.tape() else { return exit };
    let troubles = tape.troubles();
    let Some((first, more)) = troubles.split_first() else { return exit };
    let (screen, paint) = (&session.screen, session.screen.err);
    let what = if tape.is_replay() { "error[not_recorded]" } else { "error: the recording is not whole" };
    let block = Text::block(first);
    let mut lines = block.lines();
    let sentence = lines.next().unwrap_or_default();
    screen.say(text!("{}: {}", paint.tone(Tone::Bad, what), sentence));
    lines.for_each(|line| screen.say(text!("  {}", line)));
    if !more.is_empty() {
        screen.say(format!("  and {} after it", count(more.len() as u64, "more request")));
    }
    if tape.is_replay() {
        let help = paint.tone(Tone::Active, "help");
        screen.say(text!("{}: if that is meant, record it anew: `wonder run FILE --record DIR`", help));
    }
    if exit == Exit::Fine { Exit::Failed } else { exit }
}

/// Cassettes that test cases name, each read once.
#[derive(Debug, Default)]
pub(crate) struct Cassettes(BTreeMap<PathBuf, Player>);

impl Cassettes {
    /// The cassette from its beginning, for one case.
    pub(crate) fn open(&mut self, path: &Path) -> Result<Arc<dyn Recordings>, Fault> {
        let player = match self.0.get(path) {
            Some(player) => player.clone(),
            None => {
                let player = Tape::player(path);
                let player = player.map_err(|why| Fault::usage(why.message).help(why.help))?;
                self.0.insert(path.to_owned(), player.clone());
                player
            }
        };
        // It performs nothing: it is asked what actions would ask.
        let worker = Worker::new(Settings::default());
        Ok(Arc::new(CassetteRecordings { worker, player: Mutex::new(player) }))
    }
}

#[derive(Debug)]
struct CassetteRecordings {
    worker: Worker,
    player: Mutex<Player>,
}

impl Recordings for CassetteRecordings {
    fn answer(&self, asked: &ActionRequest<'_>) -> Result<Option<Recorded>, String> {
        let fields = match self.worker.asked(asked.call) {
            Ok(Asked::Nothing) => return Ok(None),
            Ok(Asked::Outside(fields)) => fields,
            Err(failure) => return Err(format!("what it asks cannot be told here: {}", failure.message)),
        };
        let request = Request { kind: asked.action.def.implementation.kind().to_owned(), fields };
        let place = Place::of(ROOT, asked.order, asked.step, asked.number);
        let mut player = self.player.lock().unwrap_or_else(PoisonError::into_inner);
        let exchange = player.answer(&request, &place).map_err(|missing| missing.to_string())?;
        Ok(Some(recorded(exchange, asked)))
    }
}

fn recorded(exchange: &Exchange, asked: &ActionRequest<'_>) -> Recorded {
    /// Longer than anybody waits for what is not wanted any more.
    const NEVER_MS: u64 = 1 << 40;
    let spend = exchange.spend.clone();
    let stop = match &exchange.outcome {
        Outcome::Result(value) => {
            return Recorded { result: Ok(value.clone()), delay_ms: exchange.took_ms, spend };
        }
        Outcome::Failed(failed) => {
            return Recorded { result: Err(failed.clone()), delay_ms: exchange.took_ms, spend };
        }
        Outcome::Stopped(stop) => *stop,
    };
    // It is the time of the task or of the action that ends it here too.
    let timeout_ms = match stop {
        Stop::ActionTimeout => asked.action.def.execution.timeout_ms,
        Stop::TaskTimeout => asked.order.timeout_ms,
        Stop::Cancelled => None,
    };
    let delay_ms = timeout_ms.map_or(NEVER_MS, |timeout_ms| timeout_ms + 1);
    let failure = Failure::new(ErrorKind::Timeout, "it had not ended when it was stopped");
    Recorded { result: Err(TryFailure::answered(failure)), delay_ms, spend }
}
