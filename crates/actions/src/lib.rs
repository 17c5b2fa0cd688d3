//! Doing things for Wonder: the worker that takes a task from its order to its one report, and the actions
//! it can perform: `shell`, `http_request`, `llm_call`, `mcp_tool`, `artifact_write`, `artifact_read`, `mock`, and those that a host
//! adds an [`ActionHandler`] for.
//!
//! A [`Worker`] drives the core's `TaskExecution`, keeps the clock (task and action timeouts), waits between
//! tries, stops what it is told to stop, and lets no secret out. It decides nothing about the run: a report
//! goes to the core, which alone knows what follows from it.
//!
//! It stores nothing but artifacts and cassettes, where its host says, and listens to nobody.

mod artifacts;
mod cassette;
mod context;
mod deadline;
mod handler;
mod http;
mod job;
mod json;
mod llm;
mod mcp;
mod mock;
mod parts;
mod private;
pub mod reaper;
mod redact;
mod secrets;
mod settings;
mod shell;
mod stream;
mod texts;
mod variables;
mod worker;

pub use artifacts::{ArtifactCatalog, Artifacts, Content, Finding, NewArtifact};
pub use cassette::{Asked, Asking, NoTape, Tape, placeholders};
pub use context::ActionContext;
pub use deadline::{Deadline, Stopped};
pub use handler::{ActionHandler, Performing, TryError, TryResult};
pub use job::{Job, OutputLine, Sink, Stream, TextDelta};
pub use mcp::ListedTool;
pub use private::hide_from_other_processes;
pub use settings::{NoSecrets, Secrets, Settings};
pub use shell::COMMAND_VARIABLES;
pub use stream::{DELTA_BYTES_MAX, DeltaReader, Deltas, Streamed};
pub use variables::holds_secret;
pub use wonder_core::execution::ReadMutations;
pub use worker::Worker;
