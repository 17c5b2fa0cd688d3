//! Screens: data in, text out. Nothing here prints, waits, asks an engine or knows the time.

pub(crate) mod artifacts;
pub(crate) mod cost;
pub(crate) mod events;
pub(crate) mod frame;
pub(crate) mod graph;
pub(crate) mod list;
pub(crate) mod mcp;
pub(crate) mod paint;
pub(crate) mod plain;
pub(crate) mod plan;
pub(crate) mod result;
mod row;
pub(crate) mod show;
pub(crate) mod streaming;
pub(crate) mod table;
pub(crate) mod test;
pub(crate) mod tree;
mod walk;
pub(crate) mod why;
pub(crate) mod words;

#[cfg(test)]
mod tests;
