//! Commands must not outlive a host that is killed with `kill -9`. A reaper is a small process of its own
//! that the worker tells which process groups live; when the worker's end of the pipe closes, however that
//! came about, it ends those that are left.
//!
//! Lines on its stdin: `+PGID` for a group that lives, `-PGID` for one that is gone. A container has a group
//! only for its client, so its line goes on with the runtime and the container's name, after tabs.
//! It starts nothing, and it ends only what it was told of. What left its group (`setsid`) is beyond it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// How long groups have between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What the hidden verb of the binary does: follows stdin to its end, then ends what is left.
pub fn main_loop() {
    let _signals = deaf();
    // Fails if we lead a group already; then that is what keeps Ctrl-C away.
    let _ = rustix::process::setsid();
    end(&follow(io::stdin().lock()));
}

/// A handler in place of the default, which would end us. Without a runtime we are merely less stubborn.
fn deaf() -> Option<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().ok()?;
    let inside = runtime.enter();
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let _ = signal(kind);
    }
    drop(inside);
    Some(runtime)
}

/// The groups that were still there at the end, with their containers.
fn follow(lines: impl BufRead) -> BTreeMap<i32, Option<Container>> {
    let mut live = BTreeMap::new();
    for line in lines.split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        let mut parts = line.split('\t');
        let first = parts.next().unwrap_or_default();
        let container = parts.next().zip(parts.next());
        let container =
            container.map(|(runtime, name)| Container { runtime: runtime.into(), name: name.to_owned() });
        // A group is never 0 or 1: those numbers would mean ourselves, or everybody.
        let number = first.get(1..).and_then(|text| text.parse::<i32>().ok()).filter(|id| *id > 1);
        match (first.as_bytes().first(), number) {
            (Some(b'+'), Some(group)) => drop(live.insert(group, container)),
            (Some(b'-'), Some(group)) => drop(live.remove(&group)),
            _ => {}
        }
    }
    live
}

fn end(live: &BTreeMap<i32, Option<Container>>) {
    let groups: Vec<Pid> = live.keys().filter_map(|id| Pid::from_raw(*id)).collect();
    for group in &groups {
        let _ = kill_process_group(*group, Signal::TERM);
    }
    let until = Instant::now() + GRACE;
    while Instant::now() < until && groups.iter().any(|group| test_kill_process_group(*group).is_ok()) {
        sleep(LOOK_EVERY);
    }
    for container in live.values().flatten() {
        if let Ok(mut killing) = container.kill().spawn() {
            let _ = killing.wait();
        }
    }
    for group in groups {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// A container that goes on when its client dies, and how to end it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Container {
    /// The path of `docker` or `podman`.
    pub(crate) runtime: OsString,
    pub(crate) name: String,
}

impl Container {
    pub(crate) fn kill(&self) -> std::process::Command {
        let mut command = std::process::Command::new(&self.runtime);
        command.args(["kill", &self.name]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// The worker's side: starts a reaper with the first command, and another should it be lost.
#[derive(Debug)]
pub(crate) struct Reaper {
    command: Option<Vec<OsString>>,
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    pipe: Option<File>,
    /// The lines of the groups that live.
    live: BTreeMap<i32, String>,
    given_up: bool,
}

impl Reaper {
    pub(crate) fn new(command: Option<Vec<OsString>>) -> Reaper {
        Reaper { command, told: Mutex::default() }
    }

    /// Sees to it that a reaper is there. Says so, once, if there can be none.
    pub(crate) fn ready(&self) -> Result<(), String> {
        let Some(command) = &self.command else { return Ok(()) };
        let mut told = self.told();
        if told.pipe.is_some() || told.given_up {
            return Ok(());
        }
        match start(command) {
            Ok(pipe) => {
                told.pipe = Some(pipe);
                let lines: String = told.live.values().map(String::as_str).collect();
                told.tell(&lines);
                Ok(())
            }
            Err(error) => {
                told.given_up = true;
                let program = command.first().map(|program| program.to_string_lossy().into_owned());
                let program = program.unwrap_or_default();
                Err(format!("no reaper: {program}: {error}; commands will outlive a host that is killed"))
            }
        }
    }

    pub(crate) fn lives(&self, group: Pid, container: Option<&Container>) {
        let group = group.as_raw_nonzero().get();
        let line = match container {
            None => format!("+{group}\n"),
            Some(container) => {
                format!("+{group}\t{}\t{}\n", container.runtime.to_string_lossy(), container.name)
            }
        };
        let mut told = self.told();
        told.tell(&line);
        told.live.insert(group, line);
    }

    pub(crate) fn is_gone(&self, group: Pid) {
        let group = group.as_raw_nonzero().get();
        let mut told = self.told();
        told.live.remove(&group);
        told.tell(&format!("-{group}\n"));
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    /// A few bytes into a pipe that somebody reads: it does not block. If nobody does any more, the next
    /// command gets another reader, which is told everything anew.
    fn tell(&mut self, lines: &str) {
        if let Some(pipe) = &mut self.pipe
            && pipe.write_all(lines.as_bytes()).is_err()
        {
            self.pipe = None;
        }
    }
}

fn start(command: &[OsString]) -> io::Result<File> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::other("its command is empty"));
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    let stdin = child.stdin.take().ok_or_else(|| io::Error::other("it has no stdin"))?;
    Ok(File::from(stdin.into_owned_fd()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_that_were_named_and_not_taken_back_are_left() {
        let live = follow("+70\n+71\n-70\nnonsense\n+0\n+1\n+-5\n+72\t/bin/docker\tname\n".as_bytes());
        let container = Container { runtime: "/bin/docker".into(), name: "name".into() };
        assert_eq!(live, BTreeMap::from([(71, None), (72, Some(container))]));
    }
}
