//! What one rendering may use. Every step, every byte read and every byte made is paid for here, before it is done:
//! a rendering that cannot pay fails and says which limit it met.

use crate::expr::EvalError;

/// Operations, items looked at, and stretches of [`READ_BYTES`] of text read.
pub(super) const STEPS_MAX: usize = 1_000_000;
/// Bytes of everything a rendering makes on its way, whether it still needs them or not.
pub(super) const MADE_BYTES_MAX: usize = 16 << 20;
/// How deep a value that a rendering makes may nest: it is printed, compared and dropped level by level.
pub(super) const VALUE_DEPTH_MAX: usize = 64;
/// How deep a rendering may be in tags, operators and recursive loops at once: each takes stack.
pub(super) const DEPTH_MAX: usize = 300;

const READ_BYTES: usize = 64;
/// How often a key is read to find it.
const LOOKS: usize = 4;
/// What stands around a text, list or map in memory, and a place in a list or map.
const HEADER_BYTES: usize = 48;
const ITEM_BYTES: usize = 32;
const ENTRY_BYTES: usize = 96;

pub(super) type Evaluated<T> = Result<T, EvalError>;

pub(super) fn fail<T>(message: impl Into<String>) -> Evaluated<T> {
    Err(EvalError::new(message))
}

/// What renderings may still use: one of them, or several that share it.
#[derive(Debug)]
pub struct Budget {
    steps_left: usize,
    bytes_left: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { steps_left: STEPS_MAX, bytes_left: MADE_BYTES_MAX }
    }
}

impl Budget {
    pub(super) fn steps(&mut self, count: usize) -> Evaluated<()> {
        match self.steps_left.checked_sub(count) {
            Some(left) => {
                self.steps_left = left;
                Ok(())
            }
            None => {
                self.steps_left = 0;
                fail(format!("the template does too much work (limit {STEPS_MAX} steps)"))
            }
        }
    }

    /// Text that is looked through.
    pub(super) fn read(&mut self, bytes: usize) -> Evaluated<()> {
        self.steps(bytes / READ_BYTES)
    }

    /// A key that is looked for in a map, which is to compare it a few times.
    pub(super) fn lookup(&mut self, key: &str) -> Evaluated<()> {
        self.steps(key.len() / (READ_BYTES / LOOKS))
    }

    pub(super) fn make(&mut self, bytes: usize) -> Evaluated<()> {
        self.may_make(bytes)?;
        self.bytes_left -= bytes;
        Ok(())
    }

    /// Whether so many bytes could be made; nothing is paid yet.
    pub(super) fn may_make(&mut self, bytes: usize) -> Evaluated<()> {
        if bytes <= self.bytes_left {
            return Ok(());
        }
        self.bytes_left = 0;
        fail(format!("the template makes too much on its way (limit {MADE_BYTES_MAX} bytes)"))
    }

    /// A text of its own, which is also written once.
    pub(super) fn text(&mut self, bytes: usize) -> Evaluated<()> {
        self.make(bytes.saturating_add(HEADER_BYTES))?;
        self.read(bytes)
    }

    /// The shell of a list or map.
    pub(super) fn container(&mut self) -> Evaluated<()> {
        self.make(HEADER_BYTES)
    }

    pub(super) fn item(&mut self) -> Evaluated<()> {
        self.make(ITEM_BYTES)
    }

    pub(super) fn entry(&mut self) -> Evaluated<()> {
        self.make(ENTRY_BYTES)
    }

    #[cfg(test)]
    pub(super) fn made(&self) -> usize {
        MADE_BYTES_MAX - self.bytes_left
    }
}
