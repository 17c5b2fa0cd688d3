//! Who asked for what: a line for each request that may change something, after it was answered. For people who want
//! to know; what happened to a run is in its events.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use wonder_core::Time;

const FILE: &str = "audit.jsonl";
/// One file before this one is kept.
const BEFORE: &str = "audit.1.jsonl";
const FILE_BYTES_MAX: u64 = 16 << 20;

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Entry {
    pub at: Time,
    pub by: String,
    pub method: String,
    pub path: String,
    pub status: u16,
}

#[derive(Debug)]
pub(crate) struct Audit {
    home: PathBuf,
    file: Mutex<Option<File>>,
}

impl Audit {
    pub(crate) fn at(home: &Path) -> Audit {
        Audit { home: home.to_owned(), file: Mutex::default() }
    }

    /// A list that cannot be written stops nobody: the run's own events say what happened.
    pub(crate) fn write(&self, entry: &Entry) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let full = file
            .as_ref()
            .and_then(|file| file.metadata().ok())
            .is_some_and(|file| file.len() > FILE_BYTES_MAX);
        if full {
            *file = None;
            drop(fs::rename(self.home.join(FILE), self.home.join(BEFORE)));
        }
        if file.is_none() {
            let path = self.home.join(FILE);
            *file = OpenOptions::new().create(true).append(true).mode(0o600).open(path).ok();
        }
        let mut line = serde_json::to_vec(entry).unwrap_or_default();
        line.push(b'\n');
        if let Some(file) = file.as_mut() {
            drop(file.write_all(&line));
        }
    }

    /// The newest first, from before the given place; and the place of the last one.
    pub(crate) fn read(
        &self,
        before: Option<usize>,
        limit: usize,
    ) -> std::io::Result<(Vec<Entry>, Option<usize>)> {
        let mut text = String::new();
        for name in [BEFORE, FILE] {
            match fs::read_to_string(self.home.join(name)) {
                Ok(part) => text.push_str(&part),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        let lines: Vec<&str> = text.lines().collect();
        let end = before.unwrap_or(lines.len()).min(lines.len());
        let begin = end.saturating_sub(limit);
        // A line that a crash cut off says nothing.
        let entries =
            lines[begin..end].iter().rev().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok((entries, (begin > 0).then_some(begin)))
    }
}
