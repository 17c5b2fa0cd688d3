//! What the codecs promise, from the outside: bodies as they are sent, replies as they are read, whoever provides.
#![expect(clippy::disallowed_methods, reason = "these tests read and write files; the codecs do not")]

mod answers;
mod bodies;
mod failures;
mod keys;
mod messages;
mod pitfalls;
mod random;
mod schemas;
mod streams;
mod support;
