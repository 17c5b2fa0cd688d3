//! Doing things for Wonder: the worker that takes a task from its order to its one report, and the actions
//! it can perform: `shell`, `http_request` and `mock`.
//!
//! A [`Worker`] drives the core's `TaskMachine`, keeps the clock (task and action timeouts), tries again
//! what the world broke, stops what it is told to stop, and lets no secret out. It decides nothing about
//! the run: every report is one word to the core, which alone knows what follows from it.
//!
//! It stores nothing, listens to nobody, calls no model and no MCP server, and keeps no artifacts.

mod errand;
mod http;
mod job;
mod leash;
mod mock;
mod pieces;
pub mod reaper;
mod redact;
mod secrets;
mod settings;
mod shell;
mod texts;
mod tried;
mod worker;

pub use job::{Job, Said, Sink, Stream};
pub use settings::{NoSecrets, ReadMutations, Secrets, Settings};
pub use worker::Worker;
