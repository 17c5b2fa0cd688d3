//! What a worker promises: commands, requests and mocks performed for real, stopped for real, and nothing
//! left behind or let out.

mod artifacts;
mod cassette;
mod guard;
mod handler;
mod http;
mod isolation;
mod llm;
mod mock;
mod reaper;
mod secrets;
mod server;
mod shell;
mod stopping;
mod support;
mod worker;
