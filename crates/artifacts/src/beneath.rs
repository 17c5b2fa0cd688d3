//! Files below a directory, reached without following a link: what somebody else has put there cannot lead out of it,
//! also if it is changed while we look.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, open, openat};

/// Directories within directories.
const DEPTH_MAX: usize = 32;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// A pipe that nobody writes to must not hold us up before we have seen that it is no file.
const PLAIN: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// What lies below a directory.
#[derive(Debug, Default)]
pub struct Found {
    /// Relative paths of plain files, with `/` between their parts, in order.
    pub files: Vec<String>,
    /// What is no plain file or has no name in UTF-8, as far as it can be shown.
    pub others: Vec<String>,
}

/// Opens a plain file below a directory. Every part of the path has to be what it seems: no link, no `..`.
pub fn open_beneath(directory: &Path, relative: &Path) -> io::Result<File> {
    let mut parts = Vec::new();
    for part in relative.components() {
        match part {
            Component::Normal(part) => parts.push(part),
            Component::CurDir => {}
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it leads out of its directory")),
        }
    }
    let Some((file, folders)) = parts.split_last() else { return Err(no_file()) };
    let mut at = open(directory, FOLDER, Mode::empty())?;
    for folder in folders {
        at = openat(&at, *folder, FOLDER | OFlags::NOFOLLOW, Mode::empty())?;
    }
    let opened = openat(&at, *file, PLAIN, Mode::empty())?;
    if FileType::from_raw_mode(fstat(&opened)?.st_mode) != FileType::RegularFile {
        return Err(no_file());
    }
    Ok(File::from(opened))
}

/// The files below a directory, at most so many: an error of the kind `QuotaExceeded` if there are more, or deeper.
pub fn files_in(directory: &Path, files_max: usize) -> io::Result<Found> {
    let mut found = Found::default();
    walk(open(directory, FOLDER, Mode::empty())?, "", files_max, &mut found)?;
    found.files.sort();
    found.others.sort();
    Ok(found)
}

fn walk(folder: OwnedFd, prefix: &str, files_max: usize, found: &mut Found) -> io::Result<()> {
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let Ok(text) = std::str::from_utf8(name) else {
            found.others.push(format!("{prefix}{}", String::from_utf8_lossy(name)));
            continue;
        };
        let path = format!("{prefix}{text}");
        let is_folder = || openat(&folder, OsStr::new(text), FOLDER | OFlags::NOFOLLOW, Mode::empty());
        match entry.file_type() {
            FileType::RegularFile => found.files.push(path),
            FileType::Directory | FileType::Unknown => match is_folder() {
                Ok(inner) if path.matches('/').count() < DEPTH_MAX => {
                    walk(inner, &format!("{path}/"), files_max, found)?;
                }
                Ok(_) => return Err(too_many()),
                // Whether it is a file is seen when it is opened.
                Err(_) if entry.file_type() == FileType::Unknown => found.files.push(path),
                Err(error) => return Err(error.into()),
            },
            _ => found.others.push(path),
        }
        if found.files.len() + found.others.len() > files_max {
            return Err(too_many());
        }
    }
    Ok(())
}

fn no_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file")
}

fn too_many() -> io::Error {
    io::Error::from(io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_and_no_path_leads_out() {
        let place = tempfile::tempdir().unwrap();
        let (inside, outside) = (place.path().join("in"), place.path().join("secret"));
        std::fs::create_dir_all(inside.join("deep")).unwrap();
        std::fs::write(&outside, "secret").unwrap();
        std::fs::write(inside.join("deep/file"), "fine").unwrap();
        symlink(&outside, inside.join("link")).unwrap();
        symlink(place.path(), inside.join("folder")).unwrap();
        symlink("deep/file", inside.join("near")).unwrap();
        let mut text = String::new();
        open_beneath(&inside, Path::new("./deep/file")).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "fine");
        for path in
            ["link", "folder/secret", "../secret", "deep/../../secret", "near", "deep", ".", "", "none"]
        {
            assert!(open_beneath(&inside, Path::new(path)).is_err(), "{path}");
        }
        assert!(open_beneath(&inside, &outside).is_err(), "an absolute path");
    }

    #[test]
    fn plain_files_are_found_and_the_rest_is_named() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("a/b")).unwrap();
        for path in ["z", "a/b/c", "a/d"] {
            std::fs::write(place.path().join(path), path).unwrap();
        }
        symlink("/etc/passwd", place.path().join("a/link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(place.path().join("socket")).unwrap();
        let found = files_in(place.path(), 10).unwrap();
        assert_eq!(
            (found.files, found.others),
            (
                ["a/b/c", "a/d", "z"].map(String::from).to_vec(),
                ["a/link", "socket"].map(String::from).to_vec(),
            )
        );
        assert_eq!(files_in(place.path(), 2).unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
    }
}
