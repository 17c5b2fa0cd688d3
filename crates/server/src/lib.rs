//! Wonder over HTTP: routes, streams and access.
//!
//! It speaks to a [`wonder_engine::Engine`] and never asks which one it is; every answer is one of the engine's, in the
//! words of `-o json`. It has no rules of its own about runs, and stores nothing about them. What it keeps in the home
//! are access tokens (hashed) and the list of who asked for what.

mod access;
mod app;
mod audit;
mod body;
mod guard;
mod limits;
mod openapi;
mod problem;
mod routes;
mod schemas;
mod serving;
mod streams;
mod tls;
mod tokens;

pub use access::Role;
pub use app::{Access, Options, Performs};
pub use limits::Limits;
pub use openapi::document;
pub use serving::{refuse_open_address, serve};
pub use tls::{Tls, TlsError};
pub use tokens::{NewToken, Token, TokenError, TokenStore};

use std::time::{SystemTime, UNIX_EPOCH};

use wonder_core::Time;

fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
