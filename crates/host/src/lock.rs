//! One owner per database: a lock on a file, which the operating system lets go when the owner dies, and in
//! the file the way to reach the owner.

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
    /// The lock is let go when the file is closed.
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
    pub(crate) pid: u32,
    pub(crate) socket: PathBuf,
    /// Since when, in milliseconds since 1970.
    #[serde(default)]
    pub(crate) since: i64,
}

pub(crate) enum Claim {
    Mine(Ownership),
    /// Somebody else's; who, if that could be read.
    Taken(Option<Owner>),
}

pub(crate) fn claim(home: &Path) -> Reply<Claim> {
    let path = home.join("wonder.lock");
    let broken = |error: std::io::Error| unreachable_file(&path, &error.to_string());
    let mut file = private::file(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Claim::Taken(read_owner(&mut file))),
        Err(TryLockError::Error(error)) => return Err(broken(error)),
    }
    let socket = socket_path(home)?;
    private::refuse_link(&socket)?;
    // Of an owner that died.
    drop(std::fs::remove_file(&socket));
    let since = crate::Clock::System.now().0;
    let owner = Owner { pid: std::process::id(), socket: socket.clone(), since };
    let text = serde_json::to_string(&owner).expect("a path is JSON");
    let write = |file: &mut File| -> std::io::Result<()> {
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text.as_bytes())
    };
    write(&mut file).map_err(broken)?;
    Ok(Claim::Mine(Ownership { _file: file, socket }))
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
