//! What the codecs promise, from the outside: bodies as they are sent, replies as they are read, whoever provides.

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
