//! Tests of the embedded host: real SQLite, real tasks, in this process.

mod artifacts;
mod concurrency;
mod counts;
mod life;
mod live_text;
mod owners;
mod places;
mod quarantine;
mod redefine;
mod requests;
mod tell;
mod test_host;
mod virtual_time;
