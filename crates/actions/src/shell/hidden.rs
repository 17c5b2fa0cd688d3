//! What a sandbox or a container must not see of the directory that it is given: wonder's own home with its database
//! and its socket, through which any workflow could be started, and the places where people keep keys.
//!
//! Hides, or refuses; it decides nothing about the rest of the machine, which is not there in the first place.

use std::path::{Path, PathBuf};

use wonder_core::error::Failure;

use super::{NOT_RUN, not_started};
use crate::settings::Settings;

/// Below a person's home directory.
const KEYS: [&str; 17] = [
    ".aws",
    ".azure",
    ".cargo/credentials.toml",
    ".config",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".local/share/keyrings",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".vault-token",
];

/// A place to be covered: where it is below the directory, and whether it is a directory itself.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Cover {
    pub(super) below: PathBuf,
    pub(super) is_dir: bool,
}

/// What has to be covered when a directory is shown. An error if the directory itself may not be shown.
pub(super) fn covers(settings: &Settings, shown: &Path) -> Result<Vec<Cover>, Failure> {
    let real = real(shown);
    if real.parent().is_none() {
        let message = "the working directory is `/`, and all of the machine is nothing to be kept apart from: \
                       run it from a directory of its own";
        return Err(not_started(NOT_RUN, message.to_owned()));
    }
    let mut found = Vec::new();
    for path in settings.hidden.iter().map(|path| self::real(path)) {
        if real.starts_with(&path) {
            let message = format!(
                "the working directory {} lies in wonder's own directory {}, which an isolated command must \
                 not see: run it from somewhere else",
                shown.display(),
                path.display()
            );
            return Err(not_started(NOT_RUN, message));
        }
        found.extend(cover(&real, &path));
    }
    found.extend(keys(settings).iter().filter_map(|key| cover(&real, key)));
    // What lies in a covered directory is gone with it.
    let covered: Vec<PathBuf> =
        found.iter().filter(|cover| cover.is_dir).map(|cover| cover.below.clone()).collect();
    found.retain(|cover| !covered.iter().any(|dir| cover.below != *dir && cover.below.starts_with(dir)));
    Ok(found)
}

/// Whether a path, without links, lies where nobody from outside may look: for what is read on behalf of a text.
pub(crate) fn is_hidden(settings: &Settings, real_path: &Path) -> bool {
    let own = settings.hidden.iter().map(|path| real(path));
    own.chain(keys(settings)).any(|hidden| real_path.starts_with(hidden))
}

/// Where people keep keys, without links.
fn keys(settings: &Settings) -> Vec<PathBuf> {
    let Some(person) = settings.variable("HOME") else { return Vec::new() };
    let person = real(Path::new(&person));
    KEYS.iter().map(|key| person.join(key)).collect()
}

fn cover(shown: &Path, path: &Path) -> Option<Cover> {
    let below = path.strip_prefix(shown).ok()?.to_owned();
    let found = path.symlink_metadata().ok()?;
    Some(Cover { below, is_dir: found.is_dir() })
}

/// Without links. What is not there is as it was named.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
