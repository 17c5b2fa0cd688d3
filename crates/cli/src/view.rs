//! Screens: data in, text out. Nothing here prints, waits, asks an engine or knows the time.

pub(crate) mod events;
pub(crate) mod family;
pub(crate) mod frame;
pub(crate) mod list;
pub(crate) mod paint;
pub(crate) mod plain;
pub(crate) mod result;
mod row;
pub(crate) mod show;
pub(crate) mod table;
mod tree;
pub(crate) mod words;

#[cfg(test)]
mod tests;
