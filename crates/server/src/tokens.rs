//! Access tokens: a file in the home, with the hashes of tokens and never a token. Whoever may write the home may make
//! and revoke them, with or without a server; a server notices by the file.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use wonder_core::Time;

use crate::access::Role;

const FILE: &str = "tokens.json";
const LOCK: &str = "tokens.lock";
/// So that it is known for what it is where it should not be.
const PREFIX: &str = "wonder_";
const SECRET_BYTES: usize = 32;
const NAME_CHARS_MAX: usize = 64;

/// A token as it is listed: all but the secret.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Token {
    /// Whose it is: recorded with what is done with it, and what it is revoked by.
    pub name: String,
    pub role: Role,
    /// The one project that it sees; null: all.
    pub project: Option<String>,
    pub created_at: Time,
    pub expires_at: Option<Time>,
}

/// What a new token is to be.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// Chosen if absent: `ROLE-1` and so on.
    pub name: Option<String>,
    pub role: Role,
    pub project: Option<String>,
    pub expires_in_ms: Option<u64>,
}

#[derive(Debug)]
pub enum TokenError {
    /// What is asked for cannot be: a name that is taken, or is none.
    Refused(String),
    Unknown(String),
    File(PathBuf, std::io::Error),
    Damaged(PathBuf, String),
}

impl std::fmt::Display for TokenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TokenError::Refused(why) => f.write_str(why),
            TokenError::Unknown(name) => write!(f, "there is no token {name}"),
            TokenError::File(path, error) => write!(f, "{}: {error}", path.display()),
            TokenError::Damaged(path, why) => write!(f, "{} cannot be read: {why}", path.display()),
        }
    }
}

impl std::error::Error for TokenError {}

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Stored {
    #[serde(flatten)]
    pub token: Token,
    /// BLAKE3 of the whole token, which has 256 random bits: nothing slower is needed.
    hash: String,
}

#[derive(Debug, Default, Deserialize, Serialize)]
struct Contents {
    tokens: Vec<Stored>,
}

/// By which a changed file is noticed: a new one is always another inode.
type Stamp = (u64, u64, SystemTime);

#[derive(Debug)]
pub struct TokenStore {
    home: PathBuf,
    read: Mutex<Option<(Stamp, Arc<Vec<Stored>>)>>,
}

impl TokenStore {
    pub fn at(home: impl Into<PathBuf>) -> TokenStore {
        TokenStore { home: home.into(), read: Mutex::default() }
    }

    fn path(&self) -> PathBuf {
        self.home.join(FILE)
    }

    pub fn list(&self) -> Result<Vec<Token>, TokenError> {
        Ok(self.stored()?.iter().map(|stored| stored.token.clone()).collect())
    }

    /// Makes a token; the text is nowhere afterwards but with whoever asked.
    pub fn create(&self, new: NewToken, now: Time) -> Result<(Token, String), TokenError> {
        self.change(|tokens| {
            let taken = |name: &str| tokens.iter().any(|stored| stored.token.name == name);
            let name = match new.name.clone() {
                Some(name) => name,
                None => (1..)
                    .map(|n| format!("{}-{n}", new.role.as_str()))
                    .find(|name| !taken(name))
                    .unwrap_or_default(),
            };
            check_name(&name)?;
            if taken(&name) {
                return Err(TokenError::Refused(format!("there is a token {name} already")));
            }
            if new.project.as_deref().is_some_and(str::is_empty) {
                return Err(TokenError::Refused("a project has a name".to_owned()));
            }
            let secret = secret().map_err(|error| TokenError::File(self.path(), error))?;
            let expires_at = new.expires_in_ms.map(|ms| now.plus(ms));
            let token =
                Token { name, role: new.role, project: new.project.clone(), created_at: now, expires_at };
            tokens.push(Stored { token: token.clone(), hash: hash(&secret) });
            Ok((token, secret))
        })
    }

    /// The first token of a home, if it has none: an admin's.
    pub fn first(&self, now: Time) -> Result<Option<String>, TokenError> {
        if !self.stored()?.is_empty() {
            return Ok(None);
        }
        let new = NewToken {
            name: Some("admin".to_owned()),
            role: Role::Admin,
            project: None,
            expires_in_ms: None,
        };
        match self.create(new, now) {
            Ok((_, text)) => Ok(Some(text)),
            // Somebody else was faster.
            Err(TokenError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub fn revoke(&self, name: &str) -> Result<Token, TokenError> {
        self.change(|tokens| {
            let at = tokens.iter().position(|stored| stored.token.name == name);
            Ok(tokens.remove(at.ok_or_else(|| TokenError::Unknown(name.to_owned()))?).token)
        })
    }

    /// Whose a token is, with what it is known by from now on.
    pub(crate) fn holder(&self, text: &str) -> Result<Option<(Token, String)>, TokenError> {
        let hash = hash(text);
        Ok(self.by_hash(&hash)?.map(|token| (token, hash)))
    }

    pub(crate) fn by_hash(&self, hash: &str) -> Result<Option<Token>, TokenError> {
        let stored = self.stored()?;
        Ok(stored.iter().find(|stored| stored.hash == hash).map(|stored| stored.token.clone()))
    }

    fn stored(&self) -> Result<Arc<Vec<Stored>>, TokenError> {
        let path = self.path();
        let Some(stamp) = stamp(&path)? else { return Ok(Arc::default()) };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, tokens)) = &*read
            && *known == stamp
        {
            return Ok(tokens.clone());
        }
        let tokens = Arc::new(contents(&path)?.tokens);
        *read = Some((stamp, tokens.clone()));
        Ok(tokens)
    }

    /// One at a time, over all processes; the file is replaced whole or not at all.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<Stored>) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| TokenError::File(path, error)
        };
        if !self.home.is_dir() {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.home).map_err(failed(&self.home))?;
        }
        let lock_path = self.home.join(LOCK);
        let lock = private().create(true).truncate(false).open(&lock_path).map_err(failed(&lock_path))?;
        lock.lock().map_err(failed(&lock_path))?;
        let path = self.path();
        let mut contents = contents(&path)?;
        let changed = change(&mut contents.tokens)?;
        let text = serde_json::to_vec_pretty(&contents)
            .map_err(|error| TokenError::File(path.clone(), error.into()))?;
        let next = self.home.join("tokens.json.new");
        let written = private().create(true).truncate(true).open(&next).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        });
        written.map_err(failed(&next))?;
        fs::rename(&next, &path).map_err(failed(&path))?;
        File::open(&self.home).and_then(|home| home.sync_all()).map_err(failed(&self.home))?;
        Ok(changed)
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags(NO_FOLLOW);
    options
}

/// `O_NOFOLLOW`: a link in the home leads nowhere.
const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

fn stamp(path: &Path) -> Result<Option<Stamp>, TokenError> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some((found.ino(), found.len(), found.modified().unwrap_or(SystemTime::UNIX_EPOCH)))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(TokenError::File(path.to_owned(), error)),
    }
}

fn contents(path: &Path) -> Result<Contents, TokenError> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text)
            .map_err(|error| TokenError::Damaged(path.to_owned(), error.to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Contents::default()),
        Err(error) => Err(TokenError::File(path.to_owned(), error)),
    }
}

fn check_name(name: &str) -> Result<(), TokenError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    let fits = !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(plain);
    let why = format!("a token's name has 1 to {NAME_CHARS_MAX} letters, digits, `-`, `_`, `.` or `@`");
    if fits { Ok(()) } else { Err(TokenError::Refused(why)) }
}

fn secret() -> Result<String, std::io::Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

fn hash(token: &str) -> String {
    blake3::hash(token.as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_by_its_text_until_it_is_revoked_and_never_stored() {
        let home = tempfile::tempdir().unwrap();
        let (one, other) = (TokenStore::at(home.path()), TokenStore::at(home.path()));
        assert_eq!(one.list().unwrap(), []);
        let text = one.first(Time(5)).unwrap().unwrap();
        assert_eq!(other.first(Time(6)).unwrap(), None, "a home has one first token");
        assert_eq!(other.holder(&text).unwrap().unwrap().0.name, "admin");
        let new = NewToken { name: None, role: Role::Viewer, project: None, expires_in_ms: Some(10) };
        let (token, second) = other.create(new.clone(), Time(7)).unwrap();
        assert_eq!((token.name.as_str(), token.expires_at), ("viewer-1", Some(Time(17))));
        assert_eq!(one.create(new, Time(8)).unwrap().0.name, "viewer-2");
        let stored = fs::read_to_string(home.path().join(FILE)).unwrap();
        assert!(!stored.contains(&second) && !stored.contains(&second[PREFIX.len()..]));
        assert_eq!(fs::metadata(home.path().join(FILE)).unwrap().mode() & 0o777, 0o600);
        other.revoke("viewer-1").unwrap();
        assert!(one.holder(&second).unwrap().is_none(), "another process revoked it");
        assert!(matches!(one.revoke("viewer-1"), Err(TokenError::Unknown(_))));
        assert!(one.holder(&text).unwrap().is_some());
    }

    #[test]
    fn names_are_plain_and_taken_once() {
        let home = tempfile::tempdir().unwrap();
        let store = TokenStore::at(home.path());
        let named = |name: &str| NewToken {
            name: Some(name.to_owned()),
            role: Role::Operator,
            project: None,
            expires_in_ms: None,
        };
        for name in ["", "a b", "x\n", &"a".repeat(65)] {
            assert!(matches!(store.create(named(name), Time(0)), Err(TokenError::Refused(_))), "{name:?}");
        }
        store.create(named("ci@build.1"), Time(0)).unwrap();
        assert!(matches!(store.create(named("ci@build.1"), Time(0)), Err(TokenError::Refused(_))));
    }
}
