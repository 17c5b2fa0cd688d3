//! What every route has at hand: the engine, the tokens, the limits; and the one way to a run that a caller may see.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wonder_core::def::Implementation;
use wonder_engine::{Engine, EngineError, RunView};
use wonder_spec::{Around, FileText, Library, NoFiles, Reading, Unable, read_files};

use crate::access::Caller;
use crate::audit::Audit;
use crate::limits::{Limits, Meter};
use crate::problem::Problem;
use crate::streams::Streams;
use crate::tokens::TokenStore;

/// Why an action cannot be performed where the runs will be; None if it can.
pub type Performs = Arc<dyn Fn(&Implementation) -> Option<Unable> + Send + Sync>;

/// Whether callers have to say who they are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    Tokens,
    /// Everybody who reaches the address may do everything.
    Open,
}

#[derive(Clone)]
pub struct Options {
    pub engine: Arc<dyn Engine>,
    /// Where tokens and the audit list are kept.
    pub home: PathBuf,
    /// Where commands of runs start that are started over HTTP.
    pub workdir: String,
    pub performs: Performs,
    /// What the settings add to the files that come.
    pub library: Library,
    pub access: Access,
    /// Names that the server is reached by, beside `localhost` and addresses.
    pub hosts: Vec<String>,
    pub limits: Limits,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("home", &self.home)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}

pub(crate) struct App {
    pub options: Options,
    pub tokens: TokenStore,
    pub audit: Audit,
    pub meter: Meter,
    pub streams: Streams,
    /// The server is about to leave: what waits answers now.
    pub closing: CancellationToken,
}

impl App {
    pub(crate) fn new(options: Options, closing: CancellationToken) -> App {
        App {
            tokens: TokenStore::at(&options.home),
            audit: Audit::at(&options.home),
            meter: Meter::new(options.limits),
            streams: Streams::default(),
            closing,
            options,
        }
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.options.engine
    }

    /// A run that the caller may see. One that it may not see is not there.
    pub(crate) async fn run(&self, caller: &Caller, run: &str) -> Result<Box<RunView>, Problem> {
        let found = self.engine().find(run.to_owned()).await;
        let view = found.map_err(|error| caller.hidden(error, run))?;
        match caller.sees(&view.row.project) {
            true => Ok(view),
            false => Err(EngineError::no_such_run(run).into()),
        }
    }

    /// The definitions of a text, or everything that is wrong with it.
    pub(crate) fn read(&self, text: &str) -> Result<Reading, Problem> {
        let unable = |implementation: &Implementation| (self.options.performs)(implementation);
        let around = Around {
            library: &self.options.library,
            files: &NoFiles,
            everything: false,
            unable: Some(&unable),
        };
        let file = FileText { name: "file".to_owned(), text: text.to_owned() };
        read_files(vec![file], &around).map_err(|problems| {
            let status = axum::http::StatusCode::UNPROCESSABLE_ENTITY;
            Problem::new(status, wonder_engine::ErrorCode::BadDefinition.as_str(), problems.summary())
                .help("Nothing was started. `problems` says where, what and what to do.")
                .with("problems", problems.to_json())
        })
    }
}
