//! Files of definitions as they are named on the command line: from the disk, or `-` for stdin; and the files that
//! they call, relative to the one that says so.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use wonder_actions::Worker;
use wonder_core::def::{Implementation, Name};
use wonder_spec::{Around, FILE_BYTES_MAX, FileText, Files, Library, Reading, Unable, read_files};

use crate::config::{Config, Surroundings};
use crate::fault::Fault;
use crate::reading::{self, Bounded};

const STDIN: &str = "(stdin)";

/// What the files are read for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum For {
    /// A run on this machine.
    Run,
    /// A run that is played from a cassette: it does not matter what this machine can do.
    Replay,
    /// A look: all of the format, also what this version does not do yet.
    Look,
}

/// Reads files and those they call, or says everything that is wrong with them.
pub(crate) fn read(paths: &[PathBuf], purpose: For) -> Result<Reading, Fault> {
    let disk = Disk::default();
    let files = paths.iter().map(|path| disk.given(path)).collect::<Result<Vec<FileText>, Fault>>()?;
    let everything = purpose == For::Look;
    let unable = unable();
    let library = library(purpose)?;
    let around = Around {
        library: &library,
        files: &disk,
        everything,
        unable: if purpose == For::Run { Some(&unable) } else { None },
    };
    read_files(files, &around).map_err(|problems| Fault::Definition(Box::new(problems)))
}

/// Why an action cannot be performed on this machine.
pub(crate) fn unable() -> impl Fn(&Implementation) -> Option<Unable> + Send + Sync {
    let worker = Worker::new(wonder_actions::Settings::default());
    move |implementation| worker.unable(implementation).map(|(why, help)| Unable { why, help })
}

/// What the settings add to files. Whoever only looks does not stumble over them.
pub(crate) fn library(purpose: For) -> Result<Library, Fault> {
    let config = match Config::read(None, &Surroundings::real()) {
        Ok(config) => config,
        Err(_) if purpose == For::Look => return Ok(Library::default()),
        Err(fault) => return Err(fault),
    };
    let names = |names: Vec<String>| names.into_iter().map(Name::from).collect();
    let allowed =
        config.mcp_allowed.into_iter().map(|(project, servers)| (Name::from(project), names(servers)));
    let (mcp_servers, mcp_allowed) = (config.mcp_servers, allowed.collect());
    Ok(Library { mcp_servers, mcp_allowed, ..Library::default() })
}

/// The files that were opened, so that each is known again however it is named.
#[derive(Debug, Default)]
pub(crate) struct Disk(RefCell<BTreeMap<PathBuf, String>>);

impl Disk {
    /// A file that was named on the command line.
    pub(crate) fn given(&self, path: &Path) -> Result<FileText, Fault> {
        if path == Path::new("-") {
            let text = reading::stdin(FILE_BYTES_MAX).map_err(|error| error.to_string()).and_then(whole);
            let text = text.map_err(|why| Fault::usage(format!("-: cannot read stdin: {why}")))?;
            return Ok(FileText { name: STDIN.to_owned(), text });
        }
        // Files are known by their names, to those who call them and to those who look a run up.
        if path.to_str().is_none() {
            let message = format!("{}: the name of this file is no UTF-8 text", path.display());
            return Err(Fault::usage(message).help("rename it, or pipe it in: `wonder run - < FILE`"));
        }
        self.read(path).map_err(|why| {
            let message = format!("{}: cannot read the file: {why}", path.display());
            Fault::usage(message).help("give the path of a workflow file, such as `wonder run hello.yaml`")
        })
    }

    fn read(&self, path: &Path) -> Result<FileText, String> {
        let text = reading::file(path, FILE_BYTES_MAX).map_err(|error| error.to_string()).and_then(whole)?;
        let known = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.to_string_lossy().into_owned();
        let name = self.0.borrow_mut().entry(known).or_insert(name).clone();
        Ok(FileText { name, text })
    }
}

impl Files for Disk {
    fn open(&self, path: &str, from: &str) -> Result<FileText, String> {
        let beside = Path::new(from).parent().filter(|_| from != STDIN).unwrap_or(Path::new(""));
        self.read(&tidy(&beside.join(path)))
    }
}

fn whole(read: Bounded) -> Result<String, String> {
    match read {
        Bounded::Whole(text) => Ok(text),
        Bounded::TooLong => {
            Err(format!("it has more than {FILE_BYTES_MAX} bytes, the most that are read of a file"))
        }
    }
}

/// Without `.` and, where that is plain, without `..`: as people would say it.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(tidy.components().next_back(), Some(Component::Normal(_))) => {
                tidy.pop();
            }
            part => tidy.push(part),
        }
    }
    tidy
}
