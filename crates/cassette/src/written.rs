//! An exchange as a file: JSON, one key a line, in the order in which a person reads it. What was written by another
//! version, or changed so that its key does not fit any more, is refused with a word about what to do.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};
use wonder_core::artifact::Artifact;
use wonder_core::cost::Spend;
use wonder_core::error::Failure;
use wonder_core::execution::{Delivery, TryFailure};
use wonder_core::value::Value;

use crate::exchange::{Exchange, Key, Outcome, Place, Request, Stop, shown_place};
use crate::fold::{Conversations, Folded};

/// Of the files that this version writes, and the only one that it reads.
pub const FORMAT: u32 = 1;

/// So much of the names of node and step is in the name of a file.
const AT_CHARS_MAX: usize = 60;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Written {
    cassette: u32,
    kind: String,
    key: Key,
    at: Place,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    continues: Option<Key>,
    request: Value,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    without: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    new: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none", with = "present")]
    result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delivery: Option<WrittenDelivery>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stopped: Option<Stop>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    artifacts: Vec<Artifact>,
    spend: Spend,
    took_ms: u64,
}

/// A result of `null` is a result.
mod present {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use wonder_core::value::Value;

    pub(super) fn serialize<S: Serializer>(value: &Option<Value>, to: S) -> Result<S::Ok, S::Error> {
        value.serialize(to)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(from).map(Some)
    }
}

/// How far a failed try came.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum WrittenDelivery {
    NotSent,
    Answered,
    Unknown,
}

impl From<Delivery> for WrittenDelivery {
    fn from(delivery: Delivery) -> WrittenDelivery {
        match delivery {
            Delivery::NotSent => WrittenDelivery::NotSent,
            Delivery::Answered => WrittenDelivery::Answered,
            Delivery::Unknown => WrittenDelivery::Unknown,
        }
    }
}

impl From<WrittenDelivery> for Delivery {
    fn from(delivery: WrittenDelivery) -> Delivery {
        match delivery {
            WrittenDelivery::NotSent => Delivery::NotSent,
            WrittenDelivery::Answered => Delivery::Answered,
            WrittenDelivery::Unknown => Delivery::Unknown,
        }
    }
}

/// Writes exchanges, each by what it adds to those before it.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    known: Conversations,
    written: usize,
}

impl Writer {
    /// The name of the file and its text. The file must be there before the next one, which may go on with it.
    pub fn write(&mut self, exchange: &Exchange) -> (String, String) {
        let Exchange { place, request, outcome, spend, took_ms, artifacts } = exchange;
        let key = request.key();
        let folded = self.known.fold(request);
        self.known.learn(key.clone(), request.clone());
        self.written += 1;
        let name = file_name(self.written, request, place, &key);
        let (continues, fields, without, new) = match folded {
            None => (None, request.fields.clone(), Vec::new(), Vec::new()),
            Some(Folded { continues, new, fields, without }) => (Some(continues), fields, without, new),
        };
        let mut written = Written {
            cassette: FORMAT,
            kind: request.kind.clone(),
            key,
            at: place.clone(),
            continues,
            request: fields,
            without,
            new,
            result: None,
            failure: None,
            delivery: None,
            stopped: None,
            artifacts: artifacts.clone(),
            spend: spend.clone(),
            took_ms: *took_ms,
        };
        match outcome.clone() {
            Outcome::Result(result) => written.result = Some(result),
            Outcome::Stopped(stop) => written.stopped = Some(stop),
            Outcome::Failed(TryFailure { failure, delivery }) => {
                written.failure = Some(failure);
                written.delivery = Some(delivery.into());
            }
        }
        let text = serde_json::to_string_pretty(&written).expect("an exchange is JSON");
        (name, format!("{text}\n"))
    }
}

/// `0007-llm_call-think-1a2b3c4d.json`
fn file_name(number: usize, request: &Request, place: &Place, key: &Key) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let at: String = shown_place(request, place).chars().map(plain).take(AT_CHARS_MAX).collect();
    format!("{number:04}-{}-{at}-{}.json", request.kind, key.short())
}

/// The exchanges of a cassette, each with the name of its file.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub exchanges: Vec<(String, Exchange)>,
    known: Conversations,
    last: usize,
}

/// Why a file of a cassette cannot be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unreadable {
    pub file: String,
    pub why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.why)
    }
}

impl Contents {
    /// Whether a file of this name is an exchange.
    pub fn is_exchange(name: &str) -> bool {
        name.ends_with(".json") && number_of(name).is_some()
    }

    /// Files by name, in the order in which they were written.
    pub fn read(mut files: Vec<(String, String)>) -> Result<Contents, Unreadable> {
        files.sort_by_key(|(name, _)| (number_of(name), name.clone()));
        let mut contents = Contents::default();
        for (file, text) in files {
            let exchange = contents.exchange(&text).map_err(|why| Unreadable { file: file.clone(), why })?;
            contents.last = contents.last.max(number_of(&file).unwrap_or_default());
            contents.exchanges.push((file, exchange));
        }
        contents.drop_lost();
        Ok(contents)
    }

    /// Goes on behind what is there.
    pub fn into_writer(self) -> Writer {
        Writer { known: self.known, written: self.last }
    }

    fn exchange(&mut self, text: &str) -> Result<Exchange, String> {
        const ANEW: &str = "record it anew";
        let format: Format =
            serde_json::from_str(text).map_err(|error| format!("it is no exchange: {error}"))?;
        if format.cassette != FORMAT {
            let found = format.cassette;
            return Err(format!("it has format {found}, and this version reads format {FORMAT}: {ANEW}"));
        }
        let written: Written =
            serde_json::from_str(text).map_err(|error| format!("it is no exchange: {error}"))?;
        let Written { kind, key, at, continues, request, without, new, .. } = written;
        let request = match continues {
            None => Request { kind, fields: request },
            Some(continues) => {
                let folded = Folded { continues, new, fields: request, without };
                self.known.unfold(&kind, &folded).ok_or_else(|| {
                    format!("the exchange that it continues, {}, is gone: {ANEW}", folded.continues.short())
                })?
            }
        };
        if request.key() != key {
            return Err(format!("its request was changed, so that its key does not fit any more: {ANEW}"));
        }
        self.known.learn(key, request.clone());
        let outcome = match (written.result, written.failure, written.stopped) {
            (Some(result), None, None) => Outcome::Result(result),
            (None, Some(failure), None) => {
                let delivery = written.delivery.map_or(Delivery::Answered, Delivery::from);
                Outcome::Failed(TryFailure { failure, delivery })
            }
            (None, None, Some(stop)) => Outcome::Stopped(stop),
            _ => return Err("it has to have one of `result`, `failure` and `stopped`".to_owned()),
        };
        let (spend, took_ms, artifacts) = (written.spend, written.took_ms, written.artifacts);
        Ok(Exchange { place: at, request, outcome, spend, took_ms, artifacts })
    }

    /// A try that was made twice at the same place was lost the first time: the process died before anybody heard of it.
    fn drop_lost(&mut self) {
        let mut last: BTreeMap<(Key, Place), usize> = BTreeMap::new();
        for (at, (_, exchange)) in self.exchanges.iter().enumerate() {
            last.insert((exchange.request.key(), exchange.place.clone()), at);
        }
        let kept: BTreeSet<usize> = last.into_values().collect();
        let mut at = 0;
        self.exchanges.retain(|_| {
            at += 1;
            kept.contains(&(at - 1))
        });
    }
}

#[derive(Deserialize)]
struct Format {
    cassette: u32,
}

fn number_of(name: &str) -> Option<usize> {
    let (number, _) = name.split_once('-')?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok())?
}
