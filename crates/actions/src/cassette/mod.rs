//! Cassettes: what the tasks of a run ask of the outside is recorded, or answered from what was recorded.
//!
//! It stands between the worker and its handlers: a handler says what a call asks, the worker either performs it and keeps
//! what came of it, or performs nothing. What is written down has gone through the redactor of the worker. One file an
//! exchange, there whole or not at all, and there before anybody hears of what came of it.

mod asking;
mod directory;
mod exchanged;
mod tape;

pub use asking::{Asked, Asking, placeholders};
pub use directory::NoTape;
pub(crate) use exchanged::{Stopping, perform, record_stop};
pub use tape::Tape;
