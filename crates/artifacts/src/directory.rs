//! The directory: `files/ab/abcdef…` by hash, `unfinished/` for what is being written, `out/` for those who make files.

use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use crate::hash::Hasher;
use crate::{Collected, Hash, KeepError, Kept};

const FILES: &str = "files";
const UNFINISHED: &str = "unfinished";
const OUT: &str = "out";
/// Read and written at once.
const CHUNK_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Directory {
    root: PathBuf,
    /// Held to put a file in its place, and alone to take one away: what was kept just now is not what was found old.
    placing: RwLock<()>,
}

impl Directory {
    pub(crate) fn new(root: PathBuf) -> Directory {
        Directory { root, placing: RwLock::new(()) }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn keep(&self, content: &mut dyn Read, bytes_max: u64) -> Result<Kept, KeepError> {
        let unfinished = self.folder(UNFINISHED).map_err(KeepError::Unwritable)?;
        let mut file = tempfile::NamedTempFile::new_in(unfinished).map_err(KeepError::Unwritable)?;
        let (mut hasher, mut bytes) = (Hasher::default(), 0);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            let read = match content.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(KeepError::Unreadable(error)),
            };
            bytes += read as u64;
            if bytes > bytes_max {
                return Err(KeepError::TooLarge { bytes_max });
            }
            hasher.update(&chunk[..read]);
            file.write_all(&chunk[..read]).map_err(KeepError::Unwritable)?;
        }
        let kept = Kept { hash: hasher.finish(), bytes };
        self.place(file, &kept.hash).map_err(KeepError::Unwritable)?;
        Ok(kept)
    }

    /// Moves what is written to its place, and makes both durable. What is there is replaced by the same, so that it is
    /// young again.
    fn place(&self, file: tempfile::NamedTempFile, hash: &Hash) -> io::Result<()> {
        file.as_file().sync_all()?;
        let path = self.path(hash);
        let folder = path.parent().expect("a file lies in a folder");
        let _placing = self.placing.read().unwrap_or_else(PoisonError::into_inner);
        make(folder)?;
        file.persist(&path).map_err(|error| error.error)?;
        sync(folder)
    }

    pub(crate) fn bytes(&self, hash: &Hash) -> io::Result<u64> {
        Ok(self.open(hash)?.metadata()?.len())
    }

    pub(crate) fn open(&self, hash: &Hash) -> io::Result<File> {
        File::open(self.path(hash))
    }

    pub(crate) fn piece(&self, hash: &Hash, offset: u64, bytes_max: u64) -> io::Result<Vec<u8>> {
        let mut file = self.open(hash)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = Vec::new();
        file.take(bytes_max).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn fresh_directory(&self) -> io::Result<tempfile::TempDir> {
        let own = Permissions::from_mode(0o700);
        tempfile::Builder::new().permissions(own).tempdir_in(self.folder(OUT)?)
    }

    pub(crate) fn collect(
        &self,
        is_wanted: &dyn Fn(&Hash) -> bool,
        grace: Duration,
    ) -> io::Result<Collected> {
        let mut collected = Collected::default();
        for folder in entries(&self.root.join(FILES))? {
            for file in entries(&folder)? {
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                // What has another name is not ours to judge.
                let Ok(hash) = name.parse() else { continue };
                if !is_wanted(&hash) {
                    self.remove_old(&file, grace, &mut collected)?;
                }
            }
        }
        for left in entries(&self.root.join(UNFINISHED))?.into_iter().chain(entries(&self.root.join(OUT))?) {
            self.remove_old(&left, grace, &mut collected)?;
        }
        Ok(collected)
    }

    fn remove_old(&self, path: &Path, grace: Duration, collected: &mut Collected) -> io::Result<()> {
        let _alone = self.placing.write().unwrap_or_else(PoisonError::into_inner);
        let found = match path.symlink_metadata() {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        // A time in the future is no age.
        let age = SystemTime::now().duration_since(found.modified()?).unwrap_or_default();
        if age < grace {
            return Ok(());
        }
        if found.is_dir() {
            std::fs::remove_dir_all(path)?;
        } else {
            std::fs::remove_file(path)?;
        }
        collected.files += 1;
        collected.bytes += if found.is_dir() { 0 } else { found.len() };
        Ok(())
    }

    fn path(&self, hash: &Hash) -> PathBuf {
        let name = hash.to_string();
        self.root.join(FILES).join(&name[..2]).join(name)
    }

    fn folder(&self, name: &str) -> io::Result<PathBuf> {
        let folder = self.root.join(name);
        make(&folder)?;
        Ok(folder)
    }
}

/// Makes a folder and those above it, for one person, and durable where it is new.
fn make(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.map_or(Ok(()), make)?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => parent.map_or(Ok(()), sync),
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// What lies in a folder; nothing if there is none.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
