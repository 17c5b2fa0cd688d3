//! What a host decides about its worker once. Plain data: nothing here reads a file or the environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use wonder_core::execution::ReadMutations;

use crate::artifacts::Artifacts;
use crate::cassette::Tape;
use crate::handler::ActionHandler;
use crate::variables::{is_named, is_ordinary};

const GRACE_MS: u64 = 5_000;

#[derive(Clone, Debug)]
pub struct Settings {
    pub secrets: Arc<dyn Secrets>,
    /// From SIGTERM to SIGKILL, and so how long a cancelled action may take to end.
    pub grace_ms: u64,
    /// Hosts that `http_request`, `llm_call` and MCP may reach although they are private: names or addresses, with an optional
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
    /// Variables beside those of our own process, and before them. Commands see of both what is ordinary or passed on.
    pub environment: BTreeMap<String, String>,
    /// Variables that commands without isolation are given though they are not ordinary: `NAME`, or `PREFIX_*`.
    pub pass_env: Vec<String>,
    /// Reads what a planning task adds to its graph into the stored form, or says what is wrong with it.
    /// None: only the stored form is understood.
    pub mutations: Option<ReadMutations>,
    /// Where artifacts are kept; None: this host keeps none, and what would keep one fails.
    pub artifacts: Option<Artifacts>,
    /// The MCP servers that runs of a project may use; any, if the project is not here.
    pub mcp_allowed: BTreeMap<String, Vec<String>>,
    /// What the tasks of one run ask is recorded here, or answered from here and not performed.
    pub tape: Option<Arc<Tape>>,
    /// Handlers beside those for `shell`, `http_request`, `llm_call` and `mock`, or in place of them.
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
            pass_env: Vec::new(),
            mutations: None,
            artifacts: None,
            mcp_allowed: BTreeMap::new(),
            tape: None,
            handlers: Vec::new(),
        }
    }
}

impl Settings {
    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        self.environment.get(name).map(OsString::from).or_else(|| std::env::var_os(name))
    }

    /// What a program sees that nobody keeps apart: what is ordinary, what is passed on, and what is asked for here.
    pub(crate) fn inherited(&self, wanted: impl Fn(&str) -> bool) -> BTreeMap<String, OsString> {
        let own = std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let mut all: BTreeMap<String, OsString> = own.collect();
        all.extend(self.environment.iter().map(|(name, value)| (name.clone(), value.into())));
        all.retain(|name, value| {
            is_ordinary(name, &value.to_string_lossy()) || is_named(&self.pass_env, name) || wanted(name)
        });
        all
    }
}

/// Where secrets come from.
pub trait Secrets: Send + Sync + fmt::Debug {
    /// The value of this name. Asked when a task whose texts name it starts.
    fn find(&self, name: &str) -> Option<String>;

    /// Values that are to be hidden although no text has named them yet.
    fn known(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A host without secrets.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSecrets;

impl Secrets for NoSecrets {
    fn find(&self, _name: &str) -> Option<String> {
        None
    }
}
