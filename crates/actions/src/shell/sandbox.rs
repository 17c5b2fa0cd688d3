//! `isolation: sandbox`: the command under bubblewrap, in a machine that has only what commands need.
//!
//! Programs and their libraries, a few files of `/etc` and what the setting `sandbox_read` names are there to be read;
//! the working directory is there to be written; the rest of the machine is not there at all: no homes, no sockets,
//! no keys, no database of ours. No network unless the file allows it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use wonder_core::error::Failure;
use wonder_core::graph::ShellSpec;

use super::hidden::covers;
use super::plan::{OUT_INSIDE, Plan};
use crate::settings::Settings;
use crate::texts::bad_field;

/// Programs and libraries.
const PROGRAMS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// What programs read to find each other, names, certificates and the time. Nothing of accounts but their names.
const ETC: [&str; 26] = [
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "fonts",
    "gitconfig",
    "group",
    "host.conf",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "os-release",
    "passwd",
    "pki/ca-trust",
    "pki/tls",
    "protocols",
    "resolv.conf",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
];

/// Where the Java machines of distributions have their settings, by the beginning of the name.
const ETC_BEGINNINGS: [&str; 1] = ["java-"];

/// The command line of bubblewrap, up to the command.
pub(super) fn words(settings: &Settings, shell: &ShellSpec, plan: &Plan) -> Result<Vec<OsString>, Failure> {
    let mut words = Words::default();
    words.all(
        "--unshare-user-try --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try \
         --cap-drop ALL --die-with-parent --new-session --dev /dev --proc /proc --tmpfs /tmp",
    );
    for path in readable(settings) {
        words.bind("--ro-bind-try", &path);
    }
    match shell.network {
        // Where the resolver of many systems has its file.
        Some(true) => words.bind("--ro-bind-try", Path::new("/run/systemd/resolve")),
        _ => words.all("--unshare-net"),
    }
    words.bind("--bind", &plan.workdir);
    for shown in settings.sandbox_read.iter().chain([&plan.workdir]) {
        for cover in covers(settings, shown)? {
            let path = shown.join(&cover.below);
            match cover.is_dir {
                true => words.one("--tmpfs", &path),
                false => words.two("--ro-bind", Path::new("/dev/null"), &path),
            }
        }
    }
    if let Some(out) = &plan.out {
        words.two("--bind", out, Path::new(OUT_INSIDE));
    }
    if !sees(settings, plan, &plan.cwd) {
        let why = "it lies outside what a sandbox sees: the working directory, programs, and `sandbox_read`";
        return Err(bad_field("cwd", why));
    }
    words.all("--remount-ro /");
    words.one("--chdir", &plan.cwd);
    words.all("--");
    Ok(words.0)
}

/// Whether a path of ours is there for a sandboxed command.
pub(super) fn sees(settings: &Settings, plan: &Plan, path: &Path) -> bool {
    path.starts_with(&plan.workdir) || readable(settings).iter().any(|shown| path.starts_with(shown))
}

fn readable(settings: &Settings) -> Vec<PathBuf> {
    let programs = PROGRAMS.iter().map(PathBuf::from);
    let etc = ETC.iter().map(|name| Path::new("/etc").join(name));
    let entries = std::fs::read_dir("/etc").into_iter().flatten().flatten();
    let by_beginning = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        ETC_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
    });
    programs.chain(etc).chain(by_beginning).chain(settings.sandbox_read.iter().cloned()).collect()
}

#[derive(Default)]
struct Words(Vec<OsString>);

impl Words {
    fn all(&mut self, words: &str) {
        self.0.extend(words.split_whitespace().map(OsString::from));
    }

    fn one(&mut self, option: &str, path: &Path) {
        self.0.extend([OsStr::new(option), path.as_os_str()].map(OsStr::to_owned));
    }

    fn two(&mut self, option: &str, from: &Path, to: &Path) {
        self.0.extend([OsStr::new(option), from.as_os_str(), to.as_os_str()].map(OsStr::to_owned));
    }

    /// Shown where it is.
    fn bind(&mut self, option: &str, path: &Path) {
        self.two(option, path, path);
    }
}
