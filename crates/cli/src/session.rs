//! What every verb is given: the screen, the surroundings, and a way to an engine. Settings are read when an
//! engine is wanted, so that verbs without one start at once and cannot stumble over them.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use wonder_actions::{NoTape, Tape};
use wonder_engine::{Engine, EngineError};
use wonder_host::{ArtifactStore, Connection, Durability, Options, Purpose};

use crate::args::{Common, TapeArgs};
use crate::config::{Config, Surroundings};
use crate::fault::Fault;
use crate::screen::Screen;
use crate::secrets::Found;

/// The command line waits more than it works.
const WORKER_THREADS: usize = 2;

#[derive(Debug)]
pub(crate) struct Session {
    pub screen: Screen,
    pub around: Surroundings,
    home: Option<PathBuf>,
    /// The verb may be the first in a home.
    makes_home: bool,
    /// Records what the verb's run asks, or answers it.
    tape: OnceCell<Arc<Tape>>,
}

impl Session {
    /// `makes_home`: a directory that is named and not there is made, not mistaken.
    pub(crate) fn new(common: &Common, makes_home: bool) -> Session {
        let screen = Screen::new(common.output);
        Session {
            screen,
            around: Surroundings::real(),
            home: common.home.clone(),
            makes_home,
            tape: OnceCell::new(),
        }
    }

    /// To be said before an engine is opened.
    pub(crate) fn use_tape(&self, args: &TapeArgs) -> Result<(), Fault> {
        let tape = match (&args.record, &args.replay) {
            (Some(path), _) => Tape::record(path),
            (None, Some(path)) => Tape::replay(path),
            (None, None) => return Ok(()),
        };
        // One verb has one tape.
        let _ = self.tape.set(Arc::new(tape.map_err(no_tape)?));
        Ok(())
    }

    pub(crate) fn tape(&self) -> Option<&Arc<Tape>> {
        self.tape.get()
    }

    /// What is recorded or answered is what this run asks, with all it calls. To be said before it is set going.
    pub(crate) async fn begin_tape(&self, engine: &dyn Engine, run: &str) -> Result<(), Fault> {
        let Some(tape) = self.tape() else { return Ok(()) };
        let root = engine.find(run.to_owned()).await?.row.root;
        tape.begin(&root).map_err(no_tape)
    }

    /// The same of a run that is to be started; its id.
    pub(crate) fn begin_tape_of_new(&self) -> Result<Option<String>, Fault> {
        let Some(tape) = self.tape() else { return Ok(None) };
        let run = wonder_host::new_run_id();
        tape.begin(&run).map_err(no_tape)?;
        Ok(Some(run))
    }

    /// Where runs are kept.
    pub(crate) fn home(&self) -> Result<PathBuf, Fault> {
        Ok(Config::read(self.home.as_deref(), &self.around)?.home)
    }

    /// Runs a verb that waits for an engine.
    pub(crate) fn block_on<T>(&self, verb: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(WORKER_THREADS).enable_all().build();
        let runtime =
            runtime.map_err(|error| EngineError::internal(format!("cannot start threads: {error}")))?;
        let done = runtime.block_on(verb);
        // Whoever closes an engine has waited for it; nothing else is worth waiting for.
        runtime.shutdown_background();
        done
    }

    pub(crate) async fn open(&self, purpose: Purpose) -> Result<Connection, Fault> {
        let options = self.options(purpose)?;
        Ok(wonder_host::open(options, purpose).await?)
    }

    fn options(&self, purpose: Purpose) -> Result<Options, Fault> {
        let config = Config::read(self.home.as_deref(), &self.around)?;
        if self.home.is_some() && !self.makes_home && !config.home.is_dir() {
            let message = format!("--home {}: there is no such directory", config.home.display());
            return Err(Fault::usage(message).help("only `wonder run` and `wonder serve` make a new one"));
        }
        // Others find its owner by a path that is written down as text.
        if config.home.to_str().is_none() {
            let message = format!("the path of the home is no UTF-8 text: {}", config.home.display());
            return Err(Fault::usage(message).help("name another: WONDER_HOME=DIR, or --home DIR"));
        }
        let mut options = Options::new(config.home);
        options.durability = if config.durable { Durability::Full } else { Durability::Normal };
        options.tasks_max = config.tasks_max;
        options.queue_timeout_ms = config.queue_timeout_ms;
        options.storage_patience_ms = config.storage_patience_ms.unwrap_or(options.storage_patience_ms);
        options.projects = config.projects;
        if let Some(directory) = config.artifact_store {
            options.artifacts = ArtifactStore::at(directory);
        }
        if purpose == Purpose::Act {
            options.worker = self.worker(Config::read(self.home.as_deref(), &self.around)?)?;
            options.worker.tape = self.tape().cloned();
        }
        Ok(options)
    }

    /// What a worker of this person has, with an engine or without one.
    pub(crate) fn worker_settings(&self) -> Result<wonder_actions::Settings, Fault> {
        self.worker(Config::read(self.home.as_deref(), &self.around)?)
    }

    fn worker(&self, config: Config) -> Result<wonder_actions::Settings, Fault> {
        let secrets = Found::read(config.secrets_file.as_deref(), &self.around)?;
        let plain = wonder_actions::Settings::default();
        Ok(wonder_actions::Settings {
            environment: secrets.dotenv.clone(),
            secrets: Arc::new(secrets),
            allow_hosts: config.allow_hosts,
            sandbox_read: config.sandbox_read,
            pass_env: config.pass_env,
            mcp_allowed: config.mcp_allowed,
            grace_ms: config.grace_ms.unwrap_or(plain.grace_ms),
            reaper: reaper(),
            mutations: Some(wonder_spec::mutations),
            ..plain
        })
    }
}

fn no_tape(problem: NoTape) -> Fault {
    Fault::usage(problem.message).help(problem.help)
}

/// How this program is started as the reaper of what it leaves behind.
fn reaper() -> Option<Vec<OsString>> {
    let own = std::env::current_exe().ok()?;
    Some(vec![own.into_os_string(), OsString::from("__reaper")])
}
