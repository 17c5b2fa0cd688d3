//! The SQLite store: one writer, any number of readers, events as the truth.
//!
//! It knows nothing of what events mean. The driver says what is to be written, in one list for one
//! transaction; readers give back what is there.

mod log;
mod open;
mod parts;
mod read;
mod rows;
mod schema;
mod write;

pub(crate) use open::{Reading, database, is_older, may_pass, reader as open_reader, unreachable_file};
pub(crate) use read::{Reader, StoredArtifact, StoredRun};
pub(crate) use write::{
    ArtifactRow, Counters, GateRow, NodeSamples, RunInsert, RunUpdate, StoredDefinition, StoredRequest,
    Write, Writer,
};
