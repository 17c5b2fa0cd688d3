//! A process group from its start to its end: output read as it comes, stopped with SIGTERM, then SIGKILL,
//! and nothing of it left behind, not even when the future that waits for it is dropped.
//!
//! What leaves its group on purpose (`setsid`) is out of reach here; a sandbox holds that too.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, sleep_until};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::limits::Limits;
use wonder_core::value::Value;

use super::output::Capture;
use super::{NOT_FOUND, NOT_RUN, ShellHandler, not_started};
use crate::context::ActionContext;
use crate::deadline::Stopped;
use crate::handler::TryError;
use crate::job::Stream;
use crate::reaper::{Container, Reaper};

/// How long to read on after the end: everybody in the group is dead, and what has left it is not waited for.
const DRAIN: Duration = Duration::from_millis(500);
/// Beyond a day it is no grace any more.
const GRACE_MS_MAX: u64 = 86_400_000;
/// What SIGKILL may take, at least.
const PATIENCE_MS: u64 = 1_000;

/// A process to start, complete.
#[derive(Debug)]
pub(super) struct Launch {
    pub(super) command: Vec<OsString>,
    pub(super) cwd: PathBuf,
    pub(super) stdin: Option<String>,
    /// All that it sees: nothing of our own environment comes beside these.
    pub(super) variables: BTreeMap<String, OsString>,
    pub(super) container: Option<Container>,
}

#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

pub(super) async fn run(
    handler: &ShellHandler,
    context: &ActionContext<'_>,
    mut launch: Launch,
    bytes_max: Option<u64>,
) -> Result<Ended, TryError> {
    if let Err(why) = handler.reaper.ready() {
        context.line(Stream::Note, why);
    }
    let limit = OutputLimit::of(bytes_max);
    let key = context.key();
    handler.reaper.begins(&key);
    let started = Process::start(handler, context, &launch, limit);
    handler.reaper.has_begun(&key);
    let mut process = started?;
    let stopped = process.attend(context, launch.stdin.take().unwrap_or_default()).await;
    let whole = stopped.is_none();
    let (stdout, stderr) = (process.stdout.finish(whole, context), process.stderr.finish(whole, context));
    match (stopped, process.status) {
        (Some(Stop::Deadline(reason)), _) => Err(reason.into()),
        (Some(Stop::Overflown(stream)), _) => Err(TryError::unknown(limit.exceeded(stream))),
        (None, Some(status)) => Ok(Ended { status, stdout, stderr }),
        // Nobody stopped it, and yet its end was not to be had: the system's fault.
        (None, None) => {
            Err(TryError::unknown(Failure::new(ErrorKind::Internal, "the command's end is not known")))
        }
    }
}

/// Why a command is stopped before its end.
#[derive(Clone, Copy, Debug)]
enum Stop {
    Deadline(Stopped),
    Overflown(&'static str),
}

/// Where it is on its way out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Running,
    /// SIGTERM is sent.
    Asked,
    /// SIGKILL is sent.
    Killed,
    /// Its leader has ended; there may be output left.
    Draining,
}

struct Process<'a> {
    /// Before `child`: the group is killed while its leader, dead or alive, still holds its number.
    group: Group,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Capture<'a, ChildStdout>,
    stderr: Capture<'a, ChildStderr>,
    stage: Stage,
    /// When the next stage is due.
    due: Option<Instant>,
    status: Option<ExitStatus>,
    grace: Duration,
}

impl<'a> Process<'a> {
    fn start(
        handler: &ShellHandler,
        context: &ActionContext<'a>,
        launch: &Launch,
        limit: OutputLimit,
    ) -> Result<Process<'a>, Failure> {
        if !launch.cwd.is_dir() {
            let message = format!("the working directory {} is not there", launch.cwd.display());
            return Err(not_started(NOT_RUN, message));
        }
        let program = launch.command[0].to_string_lossy().into_owned();
        let mut child = command(launch).spawn().map_err(|error| unstarted(&program, &error))?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let leader =
            leader.ok_or_else(|| Failure::new(ErrorKind::Internal, "the command has no process id"))?;
        let group = Group::new(leader, handler.reaper.clone(), launch.container.clone());
        Ok(Process {
            group,
            stdin: child.stdin.take(),
            stdout: Capture::new(child.stdout.take(), Stream::Stdout, limit.bytes_max, context),
            stderr: Capture::new(child.stderr.take(), Stream::Stderr, limit.bytes_max, context),
            child,
            stage: Stage::Running,
            due: None,
            status: None,
            grace: Duration::from_millis(handler.settings.grace_ms.min(GRACE_MS_MAX)),
        })
    }

    /// Stays with it until it has ended, or has been ended. Says why, if so.
    async fn attend(&mut self, context: &ActionContext<'_>, text: String) -> Option<Stop> {
        let mut deadline = pin!(context.deadline.reached());
        let mut feeding = pin!(feed(self.stdin.take(), text));
        let (mut fed, mut stop) = (false, None);
        while !self.is_over() {
            // While it has time to tidy up, its leader is not reaped: the group's number must stay ours.
            let (status, both_closed) = (self.status, !self.stdout.is_open() && !self.stderr.is_open());
            let reap = status.is_none() && (self.stage != Stage::Asked || both_closed);
            let due = self.due;
            tokio::select! {
                biased;
                reason = &mut deadline, if stop.is_none() && status.is_none() => {
                    stop = Some(Stop::Deadline(reason));
                    self.ask();
                }
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    if self.go_on() { break }
                }
                ended = self.child.wait(), if reap => match ended {
                    Ok(status) => self.ended(status),
                    Err(_) => break,
                },
                () = self.stdout.read(context), if self.stdout.is_open() => {}
                () = self.stderr.read(context), if self.stderr.is_open() => {}
                () = &mut feeding, if !fed => fed = true,
            }
            if stop.is_none()
                && let Some(stream) = self.overflown()
            {
                stop = Some(Stop::Overflown(stream));
                self.kill();
            }
        }
        stop
    }

    fn is_over(&self) -> bool {
        self.status.is_some() && !self.stdout.is_open() && !self.stderr.is_open()
    }

    fn overflown(&self) -> Option<&'static str> {
        let stdout = self.stdout.overflown.then(|| self.stdout.name());
        stdout.or(self.stderr.overflown.then(|| self.stderr.name()))
    }

    /// Asks it to end.
    fn ask(&mut self) {
        self.group.signal(Signal::TERM);
        self.stage = Stage::Asked;
        self.due = Some(Instant::now() + self.grace);
    }

    fn kill(&mut self) {
        self.group.kill();
        self.stage = Stage::Killed;
        self.due = Some(Instant::now() + self.grace.max(Duration::from_millis(PATIENCE_MS)));
    }

    /// The time of the stage is over. True: there is nothing more to wait for.
    fn go_on(&mut self) -> bool {
        if self.stage == Stage::Asked {
            self.kill();
            return false;
        }
        true
    }

    /// The leader is gone; so is, from now on, whatever it left running.
    fn ended(&mut self, status: ExitStatus) {
        self.group.leader_ended(status);
        self.status = Some(status);
        self.stage = Stage::Draining;
        self.due = Some(Instant::now() + DRAIN);
    }
}

pub(super) fn command(launch: &Launch) -> Command {
    let mut command = Command::new(&launch.command[0]);
    command.args(&launch.command[1..]).current_dir(&launch.cwd).process_group(0);
    command.env_clear().envs(&launch.variables);
    let stdin = if launch.stdin.is_some() { Stdio::piped() } else { Stdio::null() };
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A command need not read what it is given: a closed pipe is its choice.
async fn feed(stdin: Option<ChildStdin>, text: String) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(text.as_bytes()).await;
    }
}

/// A process group that does not outlive its guard.
#[derive(Debug)]
pub(super) struct Group {
    leader: Pid,
    reaper: Arc<Reaper>,
    container: Option<Container>,
    /// The leader is reaped, and its number may soon be another's.
    over: bool,
}

impl Group {
    pub(super) fn new(leader: Pid, reaper: Arc<Reaper>, container: Option<Container>) -> Group {
        reaper.lives(leader, container.as_ref());
        Group { leader, reaper, container, over: false }
    }

    /// Nobody there is nobody to tell.
    fn signal(&self, signal: Signal) {
        if !self.over {
            let _ = kill_process_group(self.leader, signal);
        }
    }

    fn kill(&mut self) {
        if let Some(container) = self.container.take() {
            kill_container(&container);
        }
        self.signal(Signal::KILL);
    }

    /// Ends what the leader left running, at once: no number is given away that fast. A container is gone
    /// with its client, unless somebody killed the client.
    pub(super) fn leader_ended(&mut self, status: ExitStatus) {
        if status.code().is_some() {
            self.container = None;
        }
        self.kill();
        self.over = true;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        self.reaper.is_gone(self.leader);
    }
}

/// Asks the runtime without waiting for it: the client ends when the container does.
fn kill_container(container: &Container) {
    if let Ok(mut killing) = container.kill().spawn() {
        std::thread::spawn(move || killing.wait());
    }
}

/// What a machine gives back in time: file descriptors, processes, memory, a program that is being written.
const PASSING: [Errno; 5] = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM, Errno::TXTBSY];

pub(super) fn unstarted(program: &str, error: &io::Error) -> Failure {
    if Errno::from_io_error(error).is_some_and(|code| PASSING.contains(&code)) {
        let message = format!("this machine could not start {program} now: {error}");
        return Failure::new(ErrorKind::Overloaded, message);
    }
    match error.kind() {
        io::ErrorKind::NotFound => not_started(NOT_FOUND, not_found(program)),
        io::ErrorKind::ArgumentListTooLong => {
            let message = format!("{program} was given more than a command line can carry: use `stdin`");
            not_started(NOT_RUN, message)
        }
        _ => not_started(NOT_RUN, format!("{program} could not be started: {error}")),
    }
}

pub(super) fn not_found(program: &str) -> String {
    format!("there is no program {program}: install it, or check PATH and the spelling")
}

/// How much a command may write, and whose limit that is.
#[derive(Clone, Copy, Debug)]
struct OutputLimit {
    bytes_max: u64,
    /// What the file asks for is more than a result may have.
    of_result: bool,
}

impl OutputLimit {
    fn of(written: Option<u64>) -> OutputLimit {
        let of_result = Limits::default().result_bytes_max;
        let written = written.unwrap_or(super::output::BYTES_MAX);
        OutputLimit { bytes_max: written.min(of_result), of_result: written > of_result }
    }

    fn exceeded(self, stream: &str) -> Failure {
        let OutputLimit { bytes_max, of_result } = self;
        let (limit, way_out) = match of_result {
            true => ("result_bytes_max", "which limits.output_bytes cannot raise: write to a file"),
            false => ("output_bytes", "write to a file, or raise the limit"),
        };
        let name = if of_result { limit } else { "limits.output_bytes" };
        let message = format!("{stream} has more than {bytes_max} bytes ({name}): {way_out}");
        let details = Value::map([
            ("limit", Value::str(limit)),
            ("max", Value::Int(i64::try_from(bytes_max).unwrap_or(i64::MAX))),
            ("stream", Value::str(stream)),
        ]);
        Failure::new(ErrorKind::LimitExceeded, message).with_details(details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_lacks_for_now_is_tried_again_and_what_it_will_always_lack_is_not() {
        for code in PASSING {
            let failed = unstarted("tool", &code.into());
            assert!(failed.is_infrastructural(), "{failed}");
            assert!(failed.message.contains("could not start tool now"), "{failed}");
        }
        for code in [Errno::NOENT, Errno::ACCESS, Errno::TOOBIG, Errno::NOEXEC] {
            let failed = unstarted("tool", &code.into());
            assert_eq!(failed.kind, ErrorKind::ShellExit);
        }
    }

    #[test]
    fn a_raised_limit_of_output_ends_at_what_a_result_may_have() {
        let largest = Limits::default().result_bytes_max;
        for (written, bytes_max, name) in [
            (None, 1 << 20, "(limits.output_bytes)"),
            (Some(5), 5, "(limits.output_bytes)"),
            (Some(largest), largest, "(limits.output_bytes)"),
            (Some(u64::MAX), largest, "(result_bytes_max)"),
        ] {
            let limit = OutputLimit::of(written);
            assert_eq!(limit.bytes_max, bytes_max);
            assert!(limit.exceeded("stdout").message.contains(name), "{written:?}");
        }
    }
}
