//! Where artifacts are kept: files by what is in them, under the BLAKE3 hash of it.
//!
//! A file is there whole or not at all: it is written beside its place, made durable, and moved there. What is streamed
//! is never held in memory. The directory and all in it are for one person.
//!
//! Nothing here knows runs, names or secrets: who keeps something hides what is to be hidden before it comes here, and
//! says when it is collected what is still wanted.

mod beneath;
mod directory;
mod hash;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use beneath::{Found, files_in, open_beneath};
pub use hash::Hash;
pub use tempfile::TempDir;

use directory::Directory;

/// Content by its hash. Cheap to clone. Everything here blocks: call it off the async threads.
#[derive(Clone, Debug)]
pub struct Store(Arc<Directory>);

/// Something that was kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Kept {
    pub hash: Hash,
    pub bytes: u64,
}

/// Why something was not kept. Nothing of it is left.
#[derive(Debug)]
pub enum KeepError {
    /// It has more bytes than may be kept at once.
    TooLarge { bytes_max: u64 },
    /// What was to be kept could not be read.
    Unreadable(io::Error),
    /// It could not be written.
    Unwritable(io::Error),
}

/// What a collection removed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Collected {
    pub files: u64,
    pub bytes: u64,
}

impl Store {
    /// In this directory, which is made when something is kept.
    pub fn at(directory: impl Into<PathBuf>) -> Store {
        let directory = directory.into();
        Store(Arc::new(Directory::new(std::path::absolute(&directory).unwrap_or(directory))))
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        self.0.root()
    }

    /// Keeps all that the reader gives, if that is no more than so many bytes. When this returns it is on the disk.
    /// What is there already is kept once.
    pub fn keep(&self, content: &mut dyn Read, bytes_max: u64) -> Result<Kept, KeepError> {
        self.0.keep(content, bytes_max)
    }

    /// How many bytes are kept under this hash.
    pub fn bytes(&self, hash: &Hash) -> io::Result<u64> {
        self.0.bytes(hash)
    }

    /// All of it, if it is what its hash says and no more than so many bytes: else an error of the kind `InvalidData`
    /// or `FileTooLarge`.
    pub fn read(&self, hash: &Hash, bytes_max: u64) -> io::Result<Vec<u8>> {
        let content = self.0.open(hash)?;
        let mut bytes = Vec::new();
        content.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > bytes_max {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        if Hash::of(&bytes) != *hash {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is not what was kept: it was changed",
            ));
        }
        Ok(bytes)
    }

    /// So many bytes of it from a place on; fewer at its end.
    pub fn piece(&self, hash: &Hash, offset: u64, bytes_max: u64) -> io::Result<Vec<u8>> {
        self.0.piece(hash, offset, bytes_max)
    }

    /// An empty directory of its own for somebody who makes files; gone when it is dropped.
    pub fn fresh_directory(&self) -> io::Result<TempDir> {
        self.0.fresh_directory()
    }

    /// Removes what nobody wants: files that `is_wanted` does not know, and what was left unfinished. What is younger
    /// than the grace stays, for it may be wanted by something that is not recorded yet.
    pub fn collect(&self, is_wanted: &dyn Fn(&Hash) -> bool, grace: Duration) -> io::Result<Collected> {
        self.0.collect(is_wanted, grace)
    }
}
