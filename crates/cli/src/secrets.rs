//! Where secrets are found: the process environment first, then `.env` in the working directory, then the
//! file that the settings name. They are handed to the worker and written nowhere; no error shows one.
//!
//! All of the secrets file, and what variables hold that are called like secrets, is known to be one without being named.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use wonder_actions::{Secrets, holds_secret};

use crate::config::Surroundings;
use crate::fault::Fault;
use crate::reading::{self, Bounded};

const FILE_BYTES_MAX: usize = 1 << 20;

/// A variable that nobody names is taken for a secret by its name alone; a short value would be a word of any text.
const GUESSED_BYTES_MIN: usize = 8;

/// Names and values, found once.
pub(crate) struct Found {
    environment: BTreeMap<String, String>,
    /// Of `.env`, without what the environment says itself.
    pub dotenv: BTreeMap<String, String>,
    file: BTreeMap<String, String>,
}

impl Found {
    pub(crate) fn read(secrets_file: Option<&Path>, around: &Surroundings) -> Result<Found, Fault> {
        let mut dotenv = pairs(&around.workdir.join(".env"), Missing::Fine)?;
        dotenv.retain(|name, _| !around.environment.contains_key(name));
        let file = match secrets_file {
            Some(path) => pairs(path, Missing::Wrong)?,
            None => BTreeMap::new(),
        };
        Ok(Found { environment: around.environment.clone(), dotenv, file })
    }
}

impl Secrets for Found {
    fn find(&self, name: &str) -> Option<String> {
        [&self.environment, &self.dotenv, &self.file].into_iter().find_map(|place| place.get(name)).cloned()
    }

    fn known(&self) -> Vec<String> {
        let variables = self.environment.iter().chain(&self.dotenv);
        let called_so = variables
            .filter(|(name, value)| holds_secret(name) && value.len() >= GUESSED_BYTES_MIN)
            .map(|(_, value)| value);
        self.file.values().chain(called_so).cloned().collect()
    }
}

/// Says how many there are: a secret must not end up in a log.
impl std::fmt::Debug for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Found({} in .env, {} in a file)", self.dotenv.len(), self.file.len())
    }
}

#[derive(PartialEq)]
enum Missing {
    Fine,
    Wrong,
}

fn pairs(path: &Path, missing: Missing) -> Result<BTreeMap<String, String>, Fault> {
    let name = path.display();
    let text = match reading::file(path, FILE_BYTES_MAX) {
        Ok(Bounded::Whole(text)) => text,
        Ok(Bounded::TooLong) => {
            let message =
                format!("{name}: it has more than {FILE_BYTES_MAX} bytes, the most that are read of it");
            return Err(Fault::usage(message).help("a line is NAME=value, and a secret is short"));
        }
        Err(error) if error.kind() == ErrorKind::NotFound && missing == Missing::Fine => {
            return Ok(BTreeMap::new());
        }
        Err(error) if missing == Missing::Fine => {
            return Err(Fault::usage(format!("{name}: cannot read the file: {error}")));
        }
        Err(_) => {
            let message = format!("{name}: cannot read the file that `secrets_file` names");
            return Err(Fault::usage(message).help("mend the path in wonder.toml or $WONDER_SECRETS_FILE"));
        }
    };
    let mut found = BTreeMap::new();
    let mut last = None;
    for line in dotenvy::from_read_iter(text.as_bytes()) {
        // What dotenvy says shows the line, and with it what may be a secret.
        let (key, value) = line.map_err(|_| {
            let place = last.as_ref().map_or("at its beginning".to_owned(), |key| format!("after {key}"));
            Fault::usage(format!("{name}: a line {place} is not KEY=value"))
                .help("put values with blanks or quotes in single quotes")
        })?;
        last = Some(key.clone());
        found.insert(key, value);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::paint::Paint;

    #[test]
    fn the_environment_goes_before_dotenv_before_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secrets");
        std::fs::write(dir.path().join(".env"), "A=dotenv\nB=dotenv\n").unwrap();
        std::fs::write(&file, "A=file\nB=file\nC='file and more'\n").unwrap();
        let around = Surroundings {
            environment: BTreeMap::from([("A".to_owned(), "environment".to_owned())]),
            not_text: BTreeMap::new(),
            workdir: dir.path().to_owned(),
        };
        let found = Found::read(Some(&file), &around).unwrap();
        let all = ["A", "B", "C", "D"].map(|name| found.find(name));
        assert_eq!(
            all,
            [
                Some("environment".to_owned()),
                Some("dotenv".to_owned()),
                Some("file and more".to_owned()),
                None
            ]
        );
        assert_eq!(found.dotenv.keys().collect::<Vec<_>>(), ["B"], "the environment goes before it");
    }

    #[test]
    fn what_is_called_a_secret_and_all_of_the_file_is_known_without_being_named() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("secrets");
        std::fs::write(dir.path().join(".env"), "PORT=8080\nDB_PASSWORD=dotenv-password\n").unwrap();
        std::fs::write(&file, "ANY=of-the-file\n").unwrap();
        let variables =
            [("OPENAI_API_KEY", "sk-environment"), ("A_TOKEN", "short"), ("EDITOR", "vi-vi-vi-vi")];
        let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let around = Surroundings {
            environment: BTreeMap::from(environment),
            not_text: BTreeMap::new(),
            workdir: dir.path().to_owned(),
        };
        let known = Found::read(Some(&file), &around).unwrap().known();
        assert_eq!(known, ["of-the-file", "sk-environment", "dotenv-password"]);
    }

    #[test]
    fn an_unreadable_line_is_named_and_not_shown() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(".env"), "A=1\nB=very secret text\n").unwrap();
        let around = Surroundings {
            environment: BTreeMap::new(),
            not_text: BTreeMap::new(),
            workdir: dir.path().to_owned(),
        };
        let text = Found::read(None, &around).unwrap_err().render(Paint::NONE);
        insta::assert_snapshot!(text.as_str().replace(&*dir.path().to_string_lossy(), "DIR"), @"
        error: DIR/.env: a line after A is not KEY=value
        help: put values with blanks or quotes in single quotes
        ");
        let missing = Found::read(
            Some(&dir.path().join("none")),
            &Surroundings { workdir: dir.path().join("elsewhere"), ..around },
        );
        assert!(missing.unwrap_err().render(Paint::NONE).as_str().contains("`secrets_file` names"));
    }
}
