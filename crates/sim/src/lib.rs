//! The simulator: Wonder's core on virtual time, with a scripted executor, in one thread. It has no clock, no
//! threads and no randomness but a seed; the same seed gives the same log, byte for byte.
//!
//! [`world`] drives a root run and its children; [`scenario`] reads cases and compares; [`checks`] crashes,
//! repeats, reorders and fails whatever it is given; [`generate`] makes workflows up and [`seeds`] runs them.

pub mod chaos;
pub mod checks;
pub mod executor;
pub mod generate;
pub mod host;
pub mod inputs;
pub mod monitor;
pub mod names;
pub mod outcomes;
pub mod rng;
pub mod scenario;
pub mod script;
pub mod seeds;
pub mod shape;
pub mod trace;
pub mod world;
pub mod yaml;

pub use wonder_core::diff;
