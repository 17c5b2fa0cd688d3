//! Whole or not at all, by content, collected when nobody refers to it.

use std::collections::BTreeSet;

use super::*;
use crate::Store;

const NOW: Duration = Duration::ZERO;
const HOUR: Duration = Duration::from_secs(3_600);

fn files(root: &Path) -> Vec<PathBuf> {
    let folders = entries(&root.join(FILES)).unwrap().into_iter();
    folders.flat_map(|folder| entries(&folder).unwrap()).collect()
}

/// Gives so many bytes without having them, and breaks then if it is told to.
struct Stream {
    left: u64,
    breaks: bool,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.left.min(buffer.len() as u64) as usize;
        if read == 0 && self.breaks {
            return Err(io::Error::other("it broke"));
        }
        buffer[..read].fill(7);
        self.left -= read as u64;
        Ok(read)
    }
}

#[test]
fn what_is_kept_is_read_back_whole_and_stored_once() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::at(place.path().join("artifacts"));
    let kept = store.keep(&mut &b"some content"[..], 100).unwrap();
    assert_eq!(kept, Kept { hash: Hash::of(b"some content"), bytes: 12 });
    assert_eq!(store.keep(&mut &b"some content"[..], 100).unwrap(), kept);
    assert_eq!(files(&place.path().join("artifacts")).len(), 1);
    assert_eq!(store.read(&kept.hash, 12).unwrap(), b"some content");
    assert_eq!(store.read(&kept.hash, 11).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    assert_eq!(store.piece(&kept.hash, 5, 4).unwrap(), b"cont");
    assert_eq!(store.piece(&kept.hash, 50, 4).unwrap(), b"");
    assert_eq!(store.bytes(&kept.hash).unwrap(), 12);
    let empty = store.keep(&mut io::empty(), 0).unwrap();
    assert_eq!(store.read(&empty.hash, 0).unwrap(), b"");
}

#[test]
fn it_is_for_one_person() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("artifacts");
    let store = Store::at(&root);
    store.keep(&mut &b"x"[..], 1).unwrap();
    let out = store.fresh_directory().unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let file = files(&root).remove(0);
    assert_eq!(mode(&file), 0o600);
    for folder in [&root, file.parent().unwrap(), &root.join(FILES), &root.join(UNFINISHED), out.path()] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
}

#[test]
fn of_what_is_too_large_or_breaks_nothing_is_left() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::at(place.path());
    let bytes_max = 10 << 20;
    let large = store.keep(&mut Stream { left: u64::MAX, breaks: false }, bytes_max);
    assert!(matches!(large, Err(KeepError::TooLarge { bytes_max: told }) if told == bytes_max));
    let broken = store.keep(&mut Stream { left: 1 << 20, breaks: true }, bytes_max);
    assert!(matches!(broken, Err(KeepError::Unreadable(_))));
    assert_eq!(files(place.path()), [] as [PathBuf; 0]);
    assert_eq!(entries(&place.path().join(UNFINISHED)).unwrap(), [] as [PathBuf; 0]);
}

#[test]
fn a_file_that_was_changed_is_not_taken_for_what_was_kept() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::at(place.path());
    let kept = store.keep(&mut &b"some content"[..], 100).unwrap();
    std::fs::write(&files(place.path())[0], "same content").unwrap();
    assert_eq!(store.read(&kept.hash, 100).unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn what_nobody_wants_is_collected_once_it_is_old() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::at(place.path());
    let wanted = store.keep(&mut &b"wanted"[..], 100).unwrap().hash;
    let unwanted = store.keep(&mut &b"unwanted"[..], 100).unwrap().hash;
    std::fs::write(place.path().join(UNFINISHED).join("left"), "by a crash").unwrap();
    std::fs::create_dir_all(place.path().join(OUT).join("left/deep")).unwrap();
    let strange = place.path().join(FILES).join("README");
    std::fs::create_dir(&strange).unwrap();
    std::fs::write(strange.join("notes"), "of a person").unwrap();
    let known = BTreeSet::from([wanted.to_string()]);
    let is_wanted = |hash: &Hash| known.contains(&hash.to_string());
    assert_eq!(store.collect(&is_wanted, HOUR).unwrap(), Collected::default(), "all of it is young");
    assert_eq!(store.collect(&is_wanted, NOW).unwrap(), Collected { files: 3, bytes: 8 + 10 });
    assert_eq!(store.read(&wanted, 100).unwrap(), b"wanted");
    assert_eq!(store.read(&unwanted, 100).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(strange.join("notes").exists(), "what is not ours stays");
    assert_eq!(Store::at(place.path().join("none")).collect(&is_wanted, NOW).unwrap(), Collected::default());
}

#[test]
fn nothing_but_a_hash_becomes_a_path() {
    let long = "A".repeat(64);
    for text in ["", "..", "../../etc/passwd", "abc", long.as_str()] {
        assert!(text.parse::<Hash>().is_err(), "{text}");
    }
    let hash = Hash::of(b"x");
    assert_eq!(hash.to_string().parse(), Ok(hash));
    assert_eq!(Hash::from_bytes(*hash.as_bytes()), hash);
}
