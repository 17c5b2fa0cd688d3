//! `isolation: container`: the command in a container of `image`, by docker or podman, whichever is there and
//! answers. The working directory is `/workspace` in it; of our environment it sees nothing but what it is given.
//! Images are the runtime's business, and so is pulling them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::process::Command;
use tokio::sync::OnceCell;
use wonder_core::def::ShellLimits;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::ShellSpec;
use wonder_core::value::Value;

use super::ShellHandler;
use super::hidden::covers;
use super::isolation::program;
use super::plan::{OUT_INSIDE, Plan};
use super::process::Launch;
use crate::deadline::Deadline;
use crate::handler::TryError;
use crate::reaper::Container;
use crate::settings::Settings;
use crate::texts::{bad_field, render};

const WORK: &str = "/workspace";
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Variables that would change what the client does if they reached it.
const CLIENT_READS: [&str; 4] = ["DOCKER_", "CONTAINER", "PATH", "HOME"];

/// The runtime that answered, once one has.
#[derive(Debug, Default)]
pub(crate) struct Runtimes(OnceCell<PathBuf>);

pub(super) async fn launch(
    handler: &ShellHandler,
    (scope, deadline): (&Value, Deadline<'_>),
    shell: &ShellSpec,
    plan: Plan,
) -> Result<Launch, TryError> {
    let image = shell.image.as_ref().ok_or_else(|| bad_field("image", "isolation: container needs one"))?;
    let image = render(image, "image", scope)?;
    if image.is_empty() || image.starts_with('-') {
        return Err(bad_field("image", &format!("{image:?} is no name of an image")).into());
    }
    let settings = &handler.settings;
    let runtime = handler.runtimes.0.get_or_try_init(|| find(settings));
    let runtime = deadline.limit(runtime).await??;
    let name = fresh_name();
    let command = words(settings, runtime, (&name, &image), shell, &plan)?;
    let mut variables = of_client(settings);
    let given = plan.variables.iter().filter(|(name, _)| !client_reads(name));
    variables.extend(given.map(|(name, value)| (name.clone(), OsString::from(value))));
    let container = Some(Container { runtime: runtime.into(), name });
    Ok(Launch { command, cwd: plan.workdir, stdin: plan.stdin, variables, container })
}

/// What the client needs to find its daemon.
fn of_client(settings: &Settings) -> BTreeMap<String, OsString> {
    settings.inherited(client_reads)
}

fn words(
    settings: &Settings,
    runtime: &Path,
    (name, image): (&str, &str),
    shell: &ShellSpec,
    plan: &Plan,
) -> Result<Vec<OsString>, Failure> {
    let Ok(inner) = plan.cwd.strip_prefix(&plan.workdir) else {
        return Err(bad_field(
            "cwd",
            "it lies outside the working directory, which is all that a container sees",
        ));
    };
    let inner = Path::new(WORK).join(inner);
    let mut mount = OsString::from("type=bind,source=");
    mount.push(&plan.workdir);
    mount.push(format!(",target={WORK}"));
    let mut words: Vec<OsString> = vec![runtime.into()];
    words.extend(["run", "--rm", "-i", "--name", name, "--mount"].map(OsString::from));
    words.extend([mount, "--workdir".into(), inner.into()]);
    for cover in covers(settings, &plan.workdir)? {
        let target = Path::new(WORK).join(&cover.below);
        let mut mount = OsString::from(match cover.is_dir {
            true => "type=tmpfs,target=",
            false => "type=bind,readonly,source=/dev/null,target=",
        });
        mount.push(&target);
        words.extend(["--mount".into(), mount]);
    }
    if let Some(out) = &plan.out {
        let mut mount = OsString::from("type=bind,source=");
        mount.push(out);
        mount.push(format!(",target={OUT_INSIDE}"));
        words.extend(["--mount".into(), mount]);
    }
    if runtime.file_name().is_some_and(|name| name == "docker") {
        // The first process of a container hears no SIGTERM it does not ask for; docker's own does.
        words.push("--init".into());
    }
    if shell.network != Some(true) {
        words.extend(["--network", "none"].map(OsString::from));
    }
    words.extend(limits(shell.limits));
    for (name, value) in &plan.variables {
        let variable = if client_reads(name) { format!("{name}={value}") } else { name.clone() };
        words.extend([OsString::from("--env"), variable.into()]);
    }
    words.push(image.into());
    words.extend(plan.command.iter().map(OsString::from));
    Ok(words)
}

fn limits(limits: ShellLimits) -> Vec<OsString> {
    let limits = [
        limits.memory.map(|bytes| format!("--memory={bytes}")),
        limits.cpu.map(|seconds| format!("--ulimit=cpu={seconds}:{seconds}")),
        limits.files.map(|files| format!("--ulimit=nofile={files}:{files}")),
    ];
    limits.into_iter().flatten().map(OsString::from).collect()
}

fn client_reads(name: &str) -> bool {
    CLIENT_READS.iter().any(|prefix| name.starts_with(prefix))
}

/// A name that nothing else has, not even what a host before us may have left.
fn fresh_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("wonder-{}-{since:x}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

async fn find(settings: &Settings) -> Result<PathBuf, Failure> {
    let mut failures = Vec::new();
    for name in ["docker", "podman"] {
        let Some(path) = program(settings, name) else {
            failures.push(format!("{name}: not on the PATH"));
            continue;
        };
        match answers(settings, &path).await {
            Ok(()) => return Ok(path),
            Err(why) => failures.push(format!("{name}: {why}")),
        }
    }
    let message = format!(
        "isolation: container needs docker or podman, and neither answers ({}): start one, or use \
         isolation: process or sandbox",
        failures.join("; ")
    );
    Err(Failure::new(ErrorKind::Internal, message))
}

async fn answers(settings: &Settings, runtime: &Path) -> Result<(), String> {
    let mut command = Command::new(runtime);
    command.env_clear().envs(of_client(settings));
    command.arg("info").stdin(Stdio::null()).kill_on_drop(true);
    let output = match tokio::time::timeout(ANSWER_WITHIN, command.output()).await {
        Err(_) => return Err(format!("`info` did not answer within {} s", ANSWER_WITHIN.as_secs())),
        Ok(Err(error)) => return Err(error.to_string()),
        Ok(Ok(output)) => output,
    };
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("`info` failed").to_owned())
}
