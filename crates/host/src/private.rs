//! Files that are for one person: the home, its database, its lock and its socket. Whatever the umask says and whoever
//! made the directory, nobody else can read them; and what somebody else could have put there is refused.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::process::geteuid;
use wonder_engine::{EngineError, Reply};

use crate::store::unreachable_file;

const DIR: u32 = 0o700;
const FILE: u32 = 0o600;
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Makes a directory that only we can enter, or makes an existing one so.
pub(crate) fn directory(path: &Path) -> Reply<()> {
    let broken = |error: io::Error| unreachable_file(path, &error.to_string());
    DirBuilder::new().recursive(true).mode(DIR).create(path).map_err(broken)?;
    let found = path.metadata().map_err(broken)?;
    if !is_ours(&found) {
        return Err(of_somebody_else(path, &found));
    }
    if found.mode() & WRITABLE_BY_OTHERS != 0 {
        let why =
            format!("others may write in it (mode {:03o}), and so change what runs", found.mode() & 0o777);
        return Err(unreachable_file(path, &why).help(format!(
            "Check what is in it, then make it yours alone: chmod 700 '{}'.",
            path.display()
        )));
    }
    tighten(path, &found, DIR).map_err(broken)
}

/// Makes a file that only we can open, or makes an existing one so. A link is not followed.
pub(crate) fn file(path: &Path) -> Reply<File> {
    let broken = |error: io::Error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => is_link(path),
        _ => unreachable_file(path, &error.to_string()),
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(FILE);
    let no_follow = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let file = options.custom_flags(no_follow).open(path).map_err(broken)?;
    let found = file.metadata().map_err(broken)?;
    if !is_ours(&found) {
        return Err(of_somebody_else(path, &found));
    }
    if found.mode() & 0o777 != FILE {
        file.set_permissions(Permissions::from_mode(FILE)).map_err(broken)?;
    }
    Ok(file)
}

/// The same without opening what is there: closing a database's file would let go of the locks that SQLite has on it.
pub(crate) fn file_to_be_opened(path: &Path) -> Reply<()> {
    if path.symlink_metadata().is_err() {
        return file(path).map(drop);
    }
    refuse_link(path)?;
    let found = path.metadata().map_err(|error| unreachable_file(path, &error.to_string()))?;
    if is_ours(&found) { tighten_file(path) } else { Err(of_somebody_else(path, &found)) }
}

/// Refuses what is there if it is a link: somebody else may say where it leads.
pub(crate) fn refuse_link(path: &Path) -> Reply<()> {
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => Err(is_link(path)),
        _ => Ok(()),
    }
}

/// Only we can use it from now on.
pub(crate) fn tighten_file(path: &Path) -> Reply<()> {
    let broken = |error: io::Error| unreachable_file(path, &error.to_string());
    let found = path.metadata().map_err(broken)?;
    tighten(path, &found, FILE).map_err(broken)
}

/// A directory for sockets whose path would be too long below the home.
pub(crate) fn runtime_directory() -> Reply<PathBuf> {
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let path = match given.filter(|dir| dir.is_dir()) {
        Some(dir) => dir.join("wonder"),
        None => std::env::temp_dir().join(format!("wonder-{}", geteuid().as_raw())),
    };
    // In a directory for everybody, somebody may have been there before us.
    refuse_link(&path)?;
    directory(&path)?;
    Ok(path)
}

/// Whether a person may ask us things: ourselves, and who can do everything anyway.
pub(crate) fn may_ask(person: u32) -> bool {
    person == geteuid().as_raw() || person == 0
}

fn tighten(path: &Path, found: &Metadata, mode: u32) -> io::Result<()> {
    if found.mode() & 0o777 & !mode == 0 {
        return Ok(());
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Ours, or of nobody who could be kept out: root may use what it likes.
fn is_ours(found: &Metadata) -> bool {
    let own = geteuid();
    found.uid() == own.as_raw() || own.is_root()
}

fn of_somebody_else(path: &Path, found: &Metadata) -> EngineError {
    let why = format!("it belongs to user {}, and you are user {}", found.uid(), geteuid().as_raw());
    unreachable_file(path, &why)
}

fn is_link(path: &Path) -> EngineError {
    unreachable_file(path, "it is a symbolic link, and somebody else may say where it leads")
        .help("Remove it if you do not know it.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn what_is_loose_is_tightened_and_what_others_may_write_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        directory(&home).unwrap();
        assert_eq!(mode(&home), 0o700);
        std::fs::set_permissions(&home, Permissions::from_mode(0o755)).unwrap();
        directory(&home).unwrap();
        assert_eq!(mode(&home), 0o700);
        for loose in [0o777, 0o770, 0o702] {
            std::fs::set_permissions(&home, Permissions::from_mode(loose)).unwrap();
            let refused = directory(&home).unwrap_err();
            assert!(refused.message.contains("others may write"), "{refused:?}");
            assert_eq!(mode(&home), loose, "nothing was changed");
        }
    }

    #[test]
    fn a_file_is_for_us_alone_and_a_link_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&path, "kept").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        file(&path).unwrap();
        assert_eq!((mode(&path), std::fs::read_to_string(&path).unwrap()), (0o600, "kept".to_owned()));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(file(&link).unwrap_err().message.contains("symbolic link"));
        assert!(refuse_link(&link).is_err() && refuse_link(&path).is_ok());
    }
}
