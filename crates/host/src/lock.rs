//! One owner per database: a lock on its directory, which the operating system lets go when the owner dies. A file in
//! it says how to reach the owner, and is locked too: deleting it lets nobody in, and who knows only of the file is
//! kept out as well.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use wonder_engine::Reply;

use crate::private;
use crate::store::unreachable_file;

/// Longest path of a socket that every system takes.
const SOCKET_PATH_MAX: usize = 100;

/// Held by the process that owns the database. Dropping it lets the next one in.
#[derive(Debug)]
pub(crate) struct Ownership {
    /// Locks are let go when their files are closed. Some network file systems lock no directories.
    _directory: Option<File>,
    _file: File,
    pub(crate) socket: PathBuf,
}

impl Drop for Ownership {
    fn drop(&mut self) {
        // Before the lock goes: whoever is next makes its own.
        drop(std::fs::remove_file(&self.socket));
    }
}

/// How to reach an owner.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Owner {
    /// None if the file that says so is gone.
    pub(crate) pid: Option<u32>,
    pub(crate) socket: PathBuf,
    /// Since when, in milliseconds since 1970.
    #[serde(default)]
    pub(crate) since: i64,
}

impl Owner {
    /// Whoever listens there.
    fn at(socket: PathBuf) -> Owner {
        Owner { pid: None, socket, since: 0 }
    }

    /// For people: `process 17, since 2026-…,`
    pub(crate) fn name(&self) -> String {
        match self.pid {
            Some(pid) => format!("process {pid}, since {},", wonder_core::Time(self.since).to_text()),
            None => "another process".to_owned(),
        }
    }
}

pub(crate) enum Claim {
    Mine(Ownership),
    /// Somebody else's; who, if that could be read.
    Taken(Option<Owner>),
}

pub(crate) fn claim(home: &Path) -> Reply<Claim> {
    let path = home.join("wonder.lock");
    let broken = |error: std::io::Error| unreachable_file(&path, &error.to_string());
    let directory = File::open(home).map_err(|error| unreachable_file(home, &error.to_string()))?;
    let socket = socket_path(home)?;
    let directory = match directory.try_lock() {
        Ok(()) => Some(directory),
        Err(TryLockError::WouldBlock) => {
            return Ok(Claim::Taken(known_owner(home).or_else(|| Some(Owner::at(socket)))));
        }
        Err(TryLockError::Error(_)) => None,
    };
    let mut file = private::file(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Claim::Taken(read_owner(&mut file))),
        Err(TryLockError::Error(error)) => return Err(broken(error)),
    }
    private::refuse_link(&socket)?;
    // Of an owner that died.
    drop(std::fs::remove_file(&socket));
    let since = crate::Clock::System.now().0;
    let owner = Owner { pid: Some(std::process::id()), socket: socket.clone(), since };
    let text = serde_json::to_string(&owner);
    let text = text.map_err(|_| unreachable_file(home, "its path is no UTF-8"))?;
    let write = |file: &mut File| -> std::io::Result<()> {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text.as_bytes())
    };
    write(&mut file).map_err(broken)?;
    Ok(Claim::Mine(Ownership { _directory: directory, _file: file, socket }))
}

/// A file that an owner locks and its reaper keeps: while anybody else has it, commands of an owner that died may
/// still live. Waiting for its lock is waiting for their end.
pub(crate) fn commands(home: &Path) -> Reply<(File, Commands)> {
    let path = home.join("wonder.commands");
    let file = private::file(&path)?;
    match file.try_lock() {
        Ok(()) => Ok((file, Commands::Gone)),
        Err(TryLockError::WouldBlock) => Ok((file, Commands::MayLive)),
        Err(TryLockError::Error(error)) => Err(unreachable_file(&path, &error.to_string())),
    }
}

/// Those of owners before us.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Commands {
    Gone,
    MayLive,
}

/// Whether somebody owns the database now; without making or changing anything.
pub(crate) fn owner(home: &Path) -> Option<Owner> {
    let mut file = File::open(home.join("wonder.lock")).ok()?;
    match file.try_lock_shared() {
        Ok(()) => None,
        Err(_) => read_owner(&mut file),
    }
}

/// What the owner's file says, whoever holds its lock.
fn known_owner(home: &Path) -> Option<Owner> {
    read_owner(&mut File::open(home.join("wonder.lock")).ok()?)
}

fn read_owner(file: &mut File) -> Option<Owner> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

pub(crate) fn socket_path(home: &Path) -> Reply<PathBuf> {
    let path = home.join("wonder.sock");
    let path = std::path::absolute(&path).unwrap_or(path);
    if path.as_os_str().len() <= SOCKET_PATH_MAX {
        return Ok(path);
    }
    let hash = blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex();
    Ok(private::runtime_directory()?.join(format!("{}.sock", &hash[..16])))
}
