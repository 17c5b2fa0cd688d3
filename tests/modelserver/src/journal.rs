//! What was asked, for whoever wants to know afterwards. Bounded: the oldest bodies go first, their count stays.

use std::collections::VecDeque;

use axum::body::Bytes;
use serde_json::{Value as Json, json};

const BYTES_MAX: usize = 32 << 20;
/// About what an entry takes beside its body.
const ENTRY_BYTES: usize = 1 << 10;

#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// Bodies stay as they came: as JSON they would take several times that.
    entries: VecDeque<(Bytes, Json)>,
    bytes: usize,
    count: u64,
    answered: u64,
    refused: u64,
    open: u64,
    open_max: u64,
}

impl Journal {
    /// A request came. Its number.
    pub(crate) fn begin(&mut self) -> u64 {
        self.count += 1;
        self.open += 1;
        self.open_max = self.open_max.max(self.open);
        self.count
    }

    pub(crate) fn end(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// What it was and how it was answered.
    pub(crate) fn note(&mut self, body: Bytes, entry: Json) {
        let is_refused = entry["status"].as_u64().is_some_and(|status| status >= 400);
        *(if is_refused { &mut self.refused } else { &mut self.answered }) += 1;
        self.bytes += body.len() + ENTRY_BYTES;
        self.entries.push_back((body, entry));
        while self.bytes > BYTES_MAX {
            let Some((body, _)) = self.entries.pop_front() else { break };
            self.bytes -= body.len() + ENTRY_BYTES;
        }
    }

    pub(crate) fn clear(&mut self) {
        let open = self.open;
        *self = Journal { open, ..Journal::default() };
    }

    pub(crate) fn counts(&self) -> Json {
        json!({
            "count": self.count, "answered": self.answered, "refused": self.refused, "open": self.open,
            "open_max": self.open_max,
        })
    }

    pub(crate) fn all(&self) -> Json {
        let mut all = self.counts();
        let shown = self.entries.iter().map(|(body, entry)| {
            let mut entry = entry.clone();
            entry["body"] = serde_json::from_slice(body).unwrap_or_default();
            entry
        });
        all["requests"] = shown.collect();
        all
    }
}
