//! A real server over a real engine in a home of its own, asked over real HTTP. Nothing leaves the machine.

mod access;
mod document;
mod limits;
mod server;
mod starting;
mod streams;
mod views;
