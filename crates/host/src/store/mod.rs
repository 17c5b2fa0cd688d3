//! The SQLite store: one writer, any number of readers, events as the truth.
//!
//! It knows nothing of what events mean. The driver says what is to be written, in one list for one
//! transaction; readers give back what is there.

mod codec;
mod log;
mod open;
mod read;
mod schema;
mod write;

pub(crate) use codec::encode;
pub(crate) use open::{database, reader as open_reader, unreachable_file};
pub(crate) use read::{Reader, StoredRun};
pub(crate) use write::{Counters, GateRow, Learnt, RunInsert, RunUpdate, StoredDefinition, Write, Writer};
