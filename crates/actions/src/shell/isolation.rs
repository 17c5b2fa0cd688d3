//! How far a command is kept apart: `none` (of the environment only what is ordinary), `process` (a clean environment,
//! resource limits), `sandbox` (bubblewrap) or `container`. Each is a way to start the same command; nothing here runs it.
//!
//! Limits that the file leaves open, with isolation: an hour of processor time, 8 GiB of address space,
//! 1 024 open files; no core dumps. Without isolation only written limits hold. None can be raised beyond
//! what our own process may have.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};
use wonder_core::def::{Isolation, ShellLimits};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::ShellSpec;
use wonder_core::value::Value;

use super::plan::Plan;
use super::process::{Launch, not_found};
use super::{NOT_FOUND, ShellHandler, container, not_started, sandbox};
use crate::deadline::Deadline;
use crate::handler::TryError;
use crate::settings::Settings;

const CPU_SECONDS: u64 = 3_600;
const MEMORY_BYTES: u64 = 8 << 30;
const FILES: u64 = 1_024;
/// What a clean environment keeps of ours.
const KEPT: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) async fn launch(
    handler: &ShellHandler,
    (scope, deadline): (&Value, Deadline<'_>),
    shell: &ShellSpec,
    plan: Plan,
) -> Result<Launch, TryError> {
    let settings = &handler.settings;
    match shell.isolation {
        Isolation::None => Ok(open(settings, shell.limits, plan)),
        Isolation::Process => Ok(process(settings, shell.limits, plan)?),
        Isolation::Sandbox => Ok(sandbox(settings, shell, plan)?),
        Isolation::Container => container::launch(handler, (scope, deadline), shell, plan).await,
    }
}

fn open(settings: &Settings, limits: ShellLimits, plan: Plan) -> Launch {
    let mut variables = settings.inherited(|_| false);
    variables.entry("PATH".to_owned()).or_insert_with(|| PATH.into());
    variables.extend(plan.variables.iter().map(|(name, value)| (name.clone(), value.into())));
    let command = limited(settings, limits, as_os(&plan.command));
    started(command, plan, variables)
}

fn process(settings: &Settings, limits: ShellLimits, plan: Plan) -> Result<Launch, Failure> {
    let variables = clean(settings, &plan);
    found(&plan, &variables)?;
    let command = limited(settings, or_default(limits), as_os(&plan.command));
    Ok(started(command, plan, variables))
}

fn sandbox(settings: &Settings, shell: &ShellSpec, plan: Plan) -> Result<Launch, Failure> {
    let mut variables = clean(settings, &plan);
    for name in ["TMPDIR", "HOME"] {
        if !plan.variables.contains_key(name) {
            // Ours are not there.
            variables.insert(name.to_owned(), "/tmp".into());
        }
    }
    found_in_sandbox(settings, &plan, &variables)?;
    let Some(bwrap) = program(settings, "bwrap") else { return Err(no_sandbox()) };
    let mut command: Vec<OsString> = vec![bwrap.into()];
    command.extend(sandbox::words(settings, shell, &plan)?);
    command.extend(as_os(&plan.command));
    Ok(started(limited(settings, or_default(shell.limits), command), plan, variables))
}

fn started(command: Vec<OsString>, plan: Plan, mut variables: BTreeMap<String, OsString>) -> Launch {
    let Plan { cwd, stdin, unset, .. } = plan;
    variables.retain(|name, _| !unset.contains(name));
    Launch { command, cwd, stdin, variables, container: None }
}

fn clean(settings: &Settings, plan: &Plan) -> BTreeMap<String, OsString> {
    let kept = KEPT.iter().filter_map(|name| Some(((*name).to_owned(), settings.variable(name)?)));
    let mut variables: BTreeMap<String, OsString> = kept.collect();
    variables.entry("PATH".to_owned()).or_insert_with(|| PATH.into());
    variables.extend(plan.variables.iter().map(|(name, value)| (name.clone(), value.into())));
    variables
}

/// What stands between us and the command would say it less clearly that there is no such program.
fn found(plan: &Plan, variables: &BTreeMap<String, OsString>) -> Result<(), Failure> {
    let path = variables.get("PATH").map_or(OsStr::new(PATH), OsString::as_os_str);
    match look_up(&plan.command[0], path, &plan.cwd) {
        Some(_) => Ok(()),
        None => Err(not_started(NOT_FOUND, not_found(&plan.command[0]))),
    }
}

/// The same, of what is there in a sandbox.
fn found_in_sandbox(
    settings: &Settings,
    plan: &Plan,
    variables: &BTreeMap<String, OsString>,
) -> Result<(), Failure> {
    let path = variables.get("PATH").map_or(OsStr::new(PATH), OsString::as_os_str);
    let name = &plan.command[0];
    let mut places = places(name, path, &plan.cwd).into_iter().filter(|file| can_run(file)).peekable();
    let Some(first) = places.peek().cloned() else { return Err(not_started(NOT_FOUND, not_found(name))) };
    if places.any(|file| sandbox::sees(settings, plan, &file)) {
        return Ok(());
    }
    let message = format!(
        "{name} is {}, which a sandbox does not see: name its directory in the setting `sandbox_read`",
        first.display()
    );
    Err(not_started(NOT_FOUND, message))
}

fn no_sandbox() -> Failure {
    let message = "isolation: sandbox needs bubblewrap, and there is no `bwrap` on the PATH: install it \
                   (apt install bubblewrap, dnf install bubblewrap, apk add bubblewrap), or use isolation: \
                   process or container";
    Failure::new(ErrorKind::Internal, message)
}

/// What bubblewrap says when it cannot make a sandbox at all; the command has not run.
pub(super) fn sandbox_refused(stderr: &str) -> Option<Failure> {
    let line = stderr.lines().next().filter(|line| line.starts_with("bwrap: "))?;
    let message = format!(
        "the sandbox could not be set up ({line}): this machine may forbid user namespaces; allow them \
         (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), or use \
         isolation: process or container"
    );
    Some(Failure::new(ErrorKind::Internal, message))
}

fn or_default(limits: ShellLimits) -> ShellLimits {
    ShellLimits {
        cpu: limits.cpu.or(Some(CPU_SECONDS)),
        memory: limits.memory.or(Some(MEMORY_BYTES)),
        files: limits.files.or(Some(FILES)),
        ..limits
    }
}

/// The command under its resource limits, which every process it starts inherits.
fn limited(settings: &Settings, limits: ShellLimits, command: Vec<OsString>) -> Vec<OsString> {
    if limits.cpu.is_none() && limits.memory.is_none() && limits.files.is_none() {
        return command;
    }
    let limits = ShellLimits {
        cpu: limits.cpu.map(|limit| at_most(limit, Resource::Cpu)),
        memory: limits.memory.map(|limit| at_most(limit, Resource::As)),
        files: limits.files.map(|limit| at_most(limit, Resource::Nofile)),
        ..limits
    };
    match program(settings, "prlimit") {
        Some(prlimit) => by_prlimit(prlimit, limits, command),
        None => by_shell(limits, command),
    }
}

fn at_most(limit: u64, resource: Resource) -> u64 {
    getrlimit(resource).maximum.map_or(limit, |most| limit.min(most))
}

fn by_prlimit(prlimit: PathBuf, limits: ShellLimits, command: Vec<OsString>) -> Vec<OsString> {
    let mut whole: Vec<OsString> = vec![prlimit.into(), "--core=0".into()];
    let options = [("--cpu=", limits.cpu), ("--as=", limits.memory), ("--nofile=", limits.files)];
    whole.extend(options.iter().filter_map(|(name, limit)| Some(format!("{name}{}", (*limit)?).into())));
    whole.push("--".into());
    whole.extend(command);
    whole
}

/// Where there is no util-linux.
fn by_shell(limits: ShellLimits, command: Vec<OsString>) -> Vec<OsString> {
    let mut script = "ulimit -c 0".to_owned();
    let kilobytes = limits.memory.map(|bytes| bytes.div_ceil(1_024));
    for (name, limit) in [("-t", limits.cpu), ("-v", kilobytes), ("-n", limits.files)] {
        if let Some(limit) = limit {
            script.push_str(&format!(" && ulimit {name} {limit}"));
        }
    }
    script.push_str(" && exec \"$@\"");
    let mut whole: Vec<OsString> = ["/bin/sh", "-c", &script, "sh"].map(OsString::from).into();
    whole.extend(command);
    whole
}

/// A program of the host's, by the PATH that commands see.
pub(super) fn program(settings: &Settings, name: &str) -> Option<PathBuf> {
    let path = settings.variable("PATH").unwrap_or_else(|| PATH.into());
    look_up(name, &path, Path::new("/"))
}

/// What this kind of isolation needs and does not find on this machine, and what to do about it.
pub(crate) fn missing_program(settings: &Settings, isolation: Isolation) -> Option<(String, String)> {
    let has = |name: &str| program(settings, name).is_some();
    let (needs, help) = match isolation {
        Isolation::Sandbox if !has("bwrap") => {
            ("bubblewrap (`bwrap`)", "install bubblewrap, or write `isolation: process`")
        }
        Isolation::Container if !has("docker") && !has("podman") => {
            ("docker or podman", "install docker or podman, or write `isolation: process`")
        }
        _ => return None,
    };
    let word = if isolation == Isolation::Sandbox { "sandbox" } else { "container" };
    Some((format!("`isolation: {word}` needs {needs}, and it is not on this machine"), help.to_owned()))
}

fn look_up(name: &str, path: &OsStr, cwd: &Path) -> Option<PathBuf> {
    places(name, path, cwd).into_iter().find(|file| can_run(file))
}

/// Where a shell would look for a program.
fn places(name: &str, path: &OsStr, cwd: &Path) -> Vec<PathBuf> {
    if name.contains('/') {
        return vec![cwd.join(name)];
    }
    std::env::split_paths(path).map(|folder| cwd.join(folder).join(name)).collect()
}

fn can_run(file: &Path) -> bool {
    file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

fn as_os(words: &[String]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &[OsString]) -> String {
        let output = std::process::Command::new(&command[0]).args(&command[1..]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn both_ways_to_limit_a_command_give_the_same_limits() {
        let limits = ShellLimits { cpu: Some(7), memory: Some(1 << 30), files: Some(64), output_bytes: None };
        let show = || {
            as_os(
                &["/bin/sh", "-c", "ulimit -t; ulimit -v; ulimit -n; echo \"$1\"", "sh", "a b"]
                    .map(String::from),
            )
        };
        let expected = "7\n1048576\n64\na b\n";
        assert_eq!(run(&by_shell(limits, show())), expected);
        if let Some(prlimit) = program(&Settings::default(), "prlimit") {
            assert_eq!(run(&by_prlimit(prlimit, limits, show())), expected);
        }
    }

    #[test]
    fn programs_are_looked_up_as_a_shell_does() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("tool");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        let path = folder.path().as_os_str();
        assert_eq!(look_up("tool", path, Path::new("/")), None, "it may not be run");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(look_up("tool", path, Path::new("/")), Some(script.clone()));
        assert_eq!(look_up("./tool", OsStr::new(""), folder.path()).map(|p| p.exists()), Some(true));
        assert_eq!(look_up("./other", path, folder.path()), None);
    }
}
