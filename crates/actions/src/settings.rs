//! What a host decides about its worker once. Plain data: nothing here reads a file or the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use wonder_core::execution::ReadMutations;

use crate::handler::ActionHandler;

const GRACE_MS: u64 = 5_000;

#[derive(Clone, Debug)]
pub struct Settings {
    pub secrets: Arc<dyn Secrets>,
    /// From SIGTERM to SIGKILL, and so how long a cancelled action may take to end.
    pub grace_ms: u64,
    /// Hosts that `http_request` may reach although they are private: names or addresses, with an optional
    /// `:port`.
    pub allow_hosts: Vec<String>,
    /// The program and arguments that start a [`crate::reaper`]; None: no reaper, and commands survive a
    /// host that is killed.
    pub reaper: Option<Vec<OsString>>,
    /// A locked file that the reaper keeps open until all commands are gone: whoever comes after us waits for its
    /// lock before it begins commands of its own.
    pub reaper_keeps: Option<Arc<File>>,
    /// What an isolated command must not see though it may lie in its working directory: the host's own files.
    pub hidden: Vec<PathBuf>,
    /// What a sandboxed command may read beside programs, libraries and its working directory.
    pub sandbox_read: Vec<PathBuf>,
    /// Environment for shell commands, laid over our own.
    pub environment: BTreeMap<String, String>,
    /// Reads what a planning task adds to its graph into the stored form, or says what is wrong with it.
    /// None: only the stored form is understood.
    pub mutations: Option<ReadMutations>,
    /// Handlers beside those for `shell`, `http_request` and `mock`, or in place of them.
    pub handlers: Vec<Arc<dyn ActionHandler>>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            secrets: Arc::new(NoSecrets),
            grace_ms: GRACE_MS,
            allow_hosts: Vec::new(),
            reaper: None,
            reaper_keeps: None,
            hidden: Vec::new(),
            sandbox_read: Vec::new(),
            environment: BTreeMap::new(),
            mutations: None,
            handlers: Vec::new(),
        }
    }
}

impl Settings {
    /// A variable as a command without isolation sees it.
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        self.environment.get(name).map(OsString::from).or_else(|| std::env::var_os(name))
    }
}

/// Where secrets come from. Asked when a task whose texts name one starts.
pub trait Secrets: Send + Sync + fmt::Debug {
    fn find(&self, name: &str) -> Option<String>;
}

/// A host without secrets.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSecrets;

impl Secrets for NoSecrets {
    fn find(&self, _name: &str) -> Option<String> {
        None
    }
}
