//! The directory of a cassette: `cassette.json` says that it is one and of which run, beside it lies a file an exchange,
//! and in `files` what was kept as artifacts, by hash.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use wonder_artifacts::{Hash, Store};
use wonder_cassette::{Contents, FORMAT};
use wonder_core::artifact::Artifact;
use wonder_core::value::Value;

const MANIFEST: &str = "cassette.json";
const FILES: &str = "files";
/// The most that a file of a cassette may have.
const EXCHANGE_BYTES_MAX: u64 = 64 << 20;
/// The most that one artifact may have to be kept beside its exchange.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Why there is no cassette to record to or to replay, and what to do now.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct NoTape {
    pub message: String,
    pub help: String,
}

impl fmt::Display for NoTape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.help)
    }
}

pub(super) fn no_tape(message: String, help: &str) -> NoTape {
    NoTape { message, help: help.to_owned() }
}

#[derive(Clone, Debug)]
pub(super) struct Directory {
    path: PathBuf,
}

impl Directory {
    pub(super) fn at(path: &Path) -> Directory {
        Directory { path: path.to_owned() }
    }

    pub(super) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Whether it says that it is a cassette.
    pub(super) fn has_manifest(&self) -> bool {
        self.path.join(MANIFEST).exists()
    }

    /// The run that was recorded; None: there is no cassette yet, and nothing else.
    pub(super) fn run(&self) -> Result<Option<String>, NoTape> {
        let unreadable = |error: io::Error| {
            no_tape(format!("{}: cannot be read: {error}", self.shown()), "name another directory")
        };
        match fs::read_to_string(self.path.join(MANIFEST)) {
            Ok(text) => return self.run_of(&text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(error)),
        }
        match fs::read_dir(&self.path).map(Iterator::count) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(error)),
            Ok(0) => Ok(None),
            Ok(_) => Err(no_tape(
                format!("{} has files in it and is no cassette", self.shown()),
                "name a directory that is empty or not there yet",
            )),
        }
    }

    fn run_of(&self, manifest: &str) -> Result<String, NoTape> {
        let broken = |why: &str| {
            no_tape(format!("{}: {why}", self.path.join(MANIFEST).display()), "record it anew, elsewhere")
        };
        let manifest = Value::from_json_str(manifest).map_err(|why| broken(&why))?;
        match manifest.get("cassette").and_then(Value::as_i64) {
            Some(format) if format == i64::from(FORMAT) => {}
            Some(format) => {
                return Err(broken(&format!("it has format {format}, this version has {FORMAT}")));
            }
            None => return Err(broken("it does not say its format")),
        }
        let run = manifest.get("run").and_then(Value::as_str);
        run.map(str::to_owned).ok_or_else(|| broken("it does not say of which run it is"))
    }

    /// Says that this is a cassette, and of which run.
    pub(super) fn begin(&self, run: &str) -> io::Result<()> {
        let format = Value::Int(FORMAT.into());
        let manifest = Value::map([("cassette", format), ("run", Value::str(run))]);
        self.put(MANIFEST, format!("{manifest}\n").as_bytes())
    }

    /// Everything that was recorded.
    pub(super) fn contents(&self) -> Result<Contents, NoTape> {
        let broken = |why: String| {
            no_tape(
                format!("{}: {why}", self.shown()),
                "mend it from your version control, or record it anew",
            )
        };
        let mut files = Vec::new();
        let entries = fs::read_dir(&self.path).map_err(|error| broken(error.to_string()))?;
        for entry in entries {
            let entry = entry.map_err(|error| broken(error.to_string()))?;
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            if !Contents::is_exchange(&name) {
                continue;
            }
            let bytes = entry.metadata().map_or(0, |about| about.len());
            if bytes > EXCHANGE_BYTES_MAX {
                return Err(broken(format!("{name} has more than {EXCHANGE_BYTES_MAX} bytes")));
            }
            let text =
                fs::read_to_string(entry.path()).map_err(|error| broken(format!("{name}: {error}")))?;
            files.push((name, text));
        }
        Contents::read(files).map_err(|unreadable| broken(unreadable.to_string()))
    }

    /// A file that is there whole or not at all.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let place = self.path.join(name);
        let folder = place.parent().unwrap_or(&self.path);
        fs::create_dir_all(folder)?;
        let beside = place.with_extension("new");
        let mut file = File::create(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, &place)?;
        // A name is there for good when its directory is.
        File::open(folder)?.sync_all()
    }

    /// Copies what was kept beside the exchanges.
    pub(super) fn keep(&self, store: &Store, artifact: &Artifact) -> Result<(), String> {
        let wrong = |why: String| format!("the artifact {:?}: {why}", artifact.name);
        if artifact.bytes > FILE_BYTES_MAX {
            return Err(wrong(format!("it has more than {FILE_BYTES_MAX} bytes, cassette_file_bytes_max")));
        }
        let name = format!("{FILES}/{}", artifact.hash);
        if self.path.join(&name).exists() {
            return Ok(());
        }
        let hash: Hash = artifact.hash.parse().map_err(|_| wrong("it has no hash".to_owned()))?;
        let bytes = store.read(&hash, FILE_BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
        self.put(&name, &bytes).map_err(|error| wrong(error.to_string()))
    }

    /// What was kept, if it is still there and what it was.
    pub(super) fn kept(&self, artifact: &Artifact) -> Result<Vec<u8>, String> {
        let wrong = |why: String| format!("the artifact {:?} of the cassette: {why}", artifact.name);
        let place = self.path.join(FILES).join(&*artifact.hash);
        let bytes = fs::read(place).map_err(|error| wrong(error.to_string()))?;
        match Hash::of(&bytes).to_string() == *artifact.hash {
            true => Ok(bytes),
            false => Err(wrong("it was changed".to_owned())),
        }
    }
}
