//! Tests of the embedded host: real SQLite, real tasks, in this process.

mod concurrency;
mod counts;
mod life;
mod owners;
mod places;
mod quarantine;
mod redefine;
mod requests;
mod test_host;
mod virtual_time;
