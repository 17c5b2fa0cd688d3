//! Tests of the embedded host: real SQLite, real tasks, in this process.

mod counts;
mod house;
mod lanes;
mod life;
mod owners;
mod quarantine;
mod virtual_time;
