//! The real binary, in a directory of its own: one snapshot per screen, exit code, stdout and stderr
//! together. Ids, times and paths are masked; nothing sleeps to be right.

mod act;
mod artifacts;
mod bounds;
mod cost;
mod errors;
mod failing;
mod home;
mod humans;
mod in_place;
mod leaving;
mod look;
mod mask;
mod plan;
mod recipes;
mod reference;
mod run;
mod server;
mod serving;
mod terminal;
mod tutorial;
mod views;
mod write;
