//! The table `blobs`, as the store of the large parts of events.

use rusqlite::{Connection, OptionalExtension, params};
use wonder_blobs::{Hash, PartStore};

#[derive(Debug)]
pub(super) struct Blobs<'c>(pub(super) &'c Connection);

impl PartStore for Blobs<'_> {
    type Error = rusqlite::Error;

    fn part(&self, hash: &Hash) -> rusqlite::Result<Option<String>> {
        let mut select = self.0.prepare_cached("SELECT body FROM blobs WHERE hash = ?")?;
        select.query_row([hash], |row| row.get(0)).optional()
    }

    fn keep(&self, hash: &Hash, text: &str) -> rusqlite::Result<bool> {
        let mut insert = self.0.prepare_cached("INSERT OR IGNORE INTO blobs VALUES (?, ?)")?;
        Ok(insert.execute(params![hash, text])? > 0)
    }
}
