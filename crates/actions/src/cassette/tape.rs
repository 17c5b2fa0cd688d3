//! A cassette in use: being recorded or replayed, for one run and those that it calls. What other runs ask of the same
//! worker is performed as ever.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use wonder_artifacts::Store;
use wonder_cassette::{Contents, Exchange, Missing, Place, Player, Request, Writer};
use wonder_core::artifact::Artifact;
use wonder_core::command::TaskOrder;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::is_within;
use wonder_core::value::Value;

use super::directory::{Directory, NoTape, no_tape};

#[derive(Debug)]
pub struct Tape {
    directory: Directory,
    /// The run that was set going.
    root: OnceLock<String>,
    /// Of a recording that goes on: the run that is in it.
    recorded: Option<String>,
    mode: Mode,
}

#[derive(Debug)]
enum Mode {
    Recording(Mutex<Recording>),
    Replaying(Mutex<Replaying>),
}

#[derive(Debug, Default)]
struct Recording {
    writer: Writer,
    has_manifest: bool,
    /// Why the recording is not whole; nothing is recorded any more.
    broken: Option<String>,
}

#[derive(Debug)]
struct Replaying {
    player: Player,
    missing: Vec<Missing>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tape {
    /// To a directory that is empty or not there; or to one that has the beginning of the same run, which
    /// [`Tape::begin`] will tell.
    pub fn record(path: &Path) -> Result<Tape, NoTape> {
        let directory = Directory::at(path);
        let recorded = directory.run()?;
        let contents = if recorded.is_some() { directory.contents()? } else { Contents::default() };
        let (writer, has_manifest) = (contents.into_writer(), recorded.is_some());
        let recording = Recording { writer, has_manifest, broken: None };
        let mode = Mode::Recording(Mutex::new(recording));
        Ok(Tape { directory, root: OnceLock::new(), recorded, mode })
    }

    pub fn replay(path: &Path) -> Result<Tape, NoTape> {
        let player = Tape::player(path)?;
        let mode = Mode::Replaying(Mutex::new(Replaying { player, missing: Vec::new() }));
        Ok(Tape { directory: Directory::at(path), root: OnceLock::new(), recorded: None, mode })
    }

    /// What was recorded, for whoever answers from it elsewhere.
    pub fn player(path: &Path) -> Result<Player, NoTape> {
        let directory = Directory::at(path);
        if !directory.has_manifest() {
            let message = format!("there is no cassette in {}", directory.shown());
            return Err(no_tape(message, "`wonder run FILE --record DIR` makes one"));
        }
        directory.run()?;
        Ok(Player::new(directory.contents()?))
    }

    /// From now on what this run asks, and those that it calls. To be said before it goes on.
    pub fn begin(&self, run: &str) -> Result<(), NoTape> {
        let other = self.recorded.as_ref().filter(|recorded| *recorded != run);
        if let Some(other) = other {
            return Err(no_tape(
                format!("{} has a recording of run {other}", self.directory.shown()),
                "a cassette is of one run: name a directory that is empty or not there yet",
            ));
        }
        // Of one that goes on already nothing changes.
        let _ = self.root.set(run.to_owned());
        Ok(())
    }

    /// The run goes on: a recording of it is a cassette from now on, though it may not have asked anything yet.
    pub fn begun(&self) {
        if let Mode::Recording(recording) = &self.mode {
            self.write_manifest(&mut lock(recording));
        }
    }

    fn write_manifest(&self, recording: &mut Recording) {
        let Some(root) = self.root.get().filter(|_| !recording.has_manifest) else { return };
        match self.directory.begin(root) {
            Ok(()) => recording.has_manifest = true,
            Err(error) => {
                recording.broken = Some(format!("{}: cannot be written: {error}", self.directory.shown()));
            }
        }
    }

    /// What went wrong with it so far: why a recording is not whole, or the requests that had no answer.
    pub fn troubles(&self) -> Vec<String> {
        match &self.mode {
            Mode::Recording(recording) => lock(recording).broken.iter().cloned().collect(),
            Mode::Replaying(replaying) => lock(replaying).missing.iter().map(ToString::to_string).collect(),
        }
    }

    /// Nothing is performed.
    pub fn is_replay(&self) -> bool {
        matches!(self.mode, Mode::Replaying(_))
    }

    pub(crate) fn covers(&self, run: &str) -> bool {
        self.root.get().is_some_and(|root| is_within(run, root))
    }

    /// Where in the recorded run a try is made.
    pub(super) fn place(&self, order: &TaskOrder, step: &str, number: u32) -> Place {
        let root = self.root.get().map_or("", String::as_str);
        Place::of(root, order, step, number)
    }

    /// Writes an exchange down, and what it kept. It is on the disk when this returns, or the recording has ended.
    pub(super) fn write(&self, exchange: &Exchange, store: Option<&Store>) {
        let Mode::Recording(recording) = &self.mode else { return };
        let mut recording = lock(recording);
        self.write_manifest(&mut recording);
        if recording.broken.is_some() {
            return;
        }
        let kept = exchange.artifacts.iter().zip(store.into_iter().cycle());
        let kept = kept.map(|(artifact, store)| self.directory.keep(store, artifact));
        let written = kept.collect::<Result<Vec<()>, String>>().and_then(|_| {
            let (name, text) = recording.writer.write(exchange);
            self.directory.put(&name, text.as_bytes()).map_err(|error| format!("{name}: {error}"))
        });
        recording.broken = written.err();
    }

    /// What came of this request when it was recorded.
    pub(super) fn answer(&self, request: &Request, place: &Place) -> Result<Exchange, Failure> {
        let Mode::Replaying(replaying) = &self.mode else { unreachable!("only what was recorded answers") };
        let mut replaying = lock(replaying);
        let missing = match replaying.player.answer(request, place) {
            Ok(exchange) => return Ok(exchange.clone()),
            Err(missing) => *missing,
        };
        let failure = not_recorded(&missing, replaying.missing.first());
        replaying.missing.push(missing);
        Err(failure)
    }

    /// What an exchange kept.
    pub(super) fn kept(&self, artifact: &Artifact) -> Result<Vec<u8>, String> {
        self.directory.kept(artifact)
    }
}

/// What has no answer may follow from an earlier request that had none: an agent is told that its tool failed.
fn not_recorded(missing: &Missing, first: Option<&Missing>) -> Failure {
    let told = first.unwrap_or(missing);
    let mut message = told.sentence();
    if first.is_some() {
        message.push_str(", and so it went on: ");
        message.push_str(&missing.sentence());
    }
    let failure = Failure::new(ErrorKind::NotRecorded, message);
    let Some((file, difference)) = &told.nearest else { return failure };
    let (nearest, difference) = (Value::str(file.as_str()), Value::str(difference.as_str()));
    failure.with_details(Value::map([("nearest", nearest), ("difference", difference)]))
}
