//! Commands must not outlive a host that is killed with `kill -9`. A reaper is a small process of its own
//! that the worker tells which process groups live; when the worker's end of the pipe closes, however that
//! came about, it ends those that are left.
//!
//! Lines on its stdin: `+PGID` for a group that lives, `-PGID` for one that is gone. A container has a group
//! only for its client, so its line goes on with the runtime and the container's name, after tabs. `?KEY` is said
//! before a command begins and `!KEY` once its group is known (or it did not begin): a host that is killed between the
//! two leaves a command that is found by the key in its environment.
//! It starts nothing, and it ends only what it was told of. What left its group (`setsid`) is beyond it. Its stdout is
//! a file that the host has locked: as long as the reaper lives, so does the lock, and the next host waits for that.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::variables::is_ordinary;

/// Holds the key of a process that stays: it does not stand for one effect.
pub(crate) const SERVER_VARIABLE: &str = "WONDER_MCP_SERVER";
/// How long groups have between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// How long what SIGKILL was sent to may take to be gone: the system may have it in its hands.
const GONE_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What the hidden verb of the binary does: follows stdin to its end, then ends what is left.
pub fn main_loop() {
    let _signals = deaf();
    // Fails if we lead a group already; then that is what keeps Ctrl-C away.
    let _ = rustix::process::setsid();
    let mut left = follow(io::stdin().lock());
    for group in left.begun.iter().flat_map(|key| groups_with(key)) {
        left.live.entry(group).or_insert(None);
    }
    end(&left.live);
}

/// What a host left behind.
#[derive(Debug, Default, Eq, PartialEq)]
struct Left {
    /// The groups that were still there at the end, with their containers.
    live: BTreeMap<i32, Option<Container>>,
    /// Keys of commands that were about to begin.
    begun: BTreeSet<String>,
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

fn follow(lines: impl BufRead) -> Left {
    let Left { mut live, mut begun } = Left::default();
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
            (Some(b'?'), _) => drop(begun.insert(first[1..].to_owned())),
            (Some(b'!'), _) => drop(begun.remove(&first[1..])),
            _ => {}
        }
    }
    Left { live, begun }
}

/// The groups of processes that have this key in their environment. The pipe of the host was open in a command until
/// it was a program of its own, so that none can be missed because it was not one yet.
fn groups_with(key: &str) -> BTreeSet<i32> {
    let variables = ["WONDER_IDEMPOTENCY_KEY", SERVER_VARIABLE].map(|name| format!("{name}={key}"));
    let has_key = |process: &Path| {
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        let mut found = environment.split(|byte| *byte == 0);
        found.any(|found| variables.iter().any(|variable| found == variable.as_bytes()))
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|process| process.path());
    processes.filter(|path| has_key(path)).filter_map(|path| group_of(&path)).filter(|id| *id > 1).collect()
}

/// The group of a process that can still act.
fn group_of(process: &Path) -> Option<i32> {
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    // `PID (NAME) STATE PARENT GROUP …`, and a name may hold anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let acts = !matches!(fields.next()?, "Z" | "X");
    fields.nth(1)?.parse().ok().filter(|_| acts)
}

fn end(live: &BTreeMap<i32, Option<Container>>) {
    let groups: Vec<Pid> = live.keys().filter_map(|id| Pid::from_raw(*id)).collect();
    for group in &groups {
        let _ = kill_process_group(*group, Signal::TERM);
    }
    wait_for(&groups, GRACE);
    for container in live.values().flatten() {
        if let Ok(mut killing) = container.kill().spawn() {
            let _ = killing.wait();
        }
    }
    for group in &groups {
        let _ = kill_process_group(*group, Signal::KILL);
    }
    wait_for(&groups, GONE_WITHIN);
}

fn wait_for(groups: &[Pid], time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until && groups.iter().any(|group| lives(*group)) {
        sleep(LOOK_EVERY);
    }
}

/// Whether anything in the group can still act. A process that has ended and that nobody has asked about keeps its
/// number, and its group; it does nothing any more.
fn lives(group: Pid) -> bool {
    test_kill_process_group(group).is_ok() && acts(group).unwrap_or(true)
}

/// None where the system does not tell.
fn acts(group: Pid) -> Option<bool> {
    let mut processes = std::fs::read_dir("/proc").ok()?.flatten();
    Some(processes.any(|process| group_of(&process.path()) == Some(group.as_raw_nonzero().get())))
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
    keeps: Option<Arc<File>>,
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
    pub(crate) fn new(command: Option<Vec<OsString>>, keeps: Option<Arc<File>>) -> Reaper {
        Reaper { command, keeps, told: Mutex::default() }
    }

    /// Sees to it that a reaper is there. Says so, once, if there can be none.
    pub(crate) fn ready(&self) -> Result<(), String> {
        let Some(command) = &self.command else { return Ok(()) };
        let mut told = self.told();
        if told.pipe.is_some() || told.given_up {
            return Ok(());
        }
        match start(command, self.keeps.as_deref()) {
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

    /// A command with this key is about to begin.
    pub(crate) fn begins(&self, key: &str) {
        self.told().tell(&format!("?{key}\n"));
    }

    /// It has, and its group is known; or it has not.
    pub(crate) fn has_begun(&self, key: &str) {
        self.told().tell(&format!("!{key}\n"));
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

/// What a reaper needs to end containers; nothing that anybody could read a key from.
fn environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, value)| {
        let name = name.to_string_lossy();
        let of_runtimes = ["DOCKER_", "CONTAINER"].iter().any(|beginning| name.starts_with(beginning));
        of_runtimes || is_ordinary(&name, &value.to_string_lossy())
    })
}

fn start(command: &[OsString], keeps: Option<&File>) -> io::Result<File> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::other("its command is empty"));
    };
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs(environment())
        .stdin(Stdio::piped())
        .stdout(keeps.map_or_else(|| Ok(Stdio::null()), |file| file.try_clone().map(Stdio::from))?)
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
        let lines = "+70\n+71\n-70\nnonsense\n+0\n+1\n+-5\n?a/1\n?b/2\n!a/1\n+72\t/bin/docker\tname\n";
        let left = follow(lines.as_bytes());
        let container = Container { runtime: "/bin/docker".into(), name: "name".into() };
        assert_eq!(left.live, BTreeMap::from([(71, None), (72, Some(container))]));
        assert_eq!(left.begun, BTreeSet::from(["b/2".to_owned()]));
    }
}
