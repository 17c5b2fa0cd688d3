//! Events as they are stored: JSON, with large parts kept once in `blobs` and referred to by hash.
//!
//! A step whose JSON is small is stored as it is. In a larger one every part above a size becomes
//! `{"$blob": hash}`, and a long list is cut into pieces from its front, so that a list which grows at its
//! end (a conversation) shares all its earlier pieces with the list before. Keys of people's own objects
//! that begin with `$` get another one in front, so that nothing can be mistaken for a reference.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde_json::{Map, Value as Json};
use wonder_core::Event;

/// A part above this is a blob of its own.
const PART_BYTES_MAX: usize = 4096;
/// In a long list, an element above this.
const ELEMENT_BYTES_MAX: usize = 512;
/// A piece of a long list has about so many bytes.
const PIECE_BYTES: usize = 384;
/// A reference has about so many.
const REFERENCE_BYTES: usize = 55;

/// Most steps have less.
const STEP_BYTES: usize = 640;

const BLOB: &str = "$blob";
const LIST: &str = "$list";

pub(crate) type Hash = [u8; 32];

/// One step's events, ready to be stored.
#[derive(Clone, Debug)]
pub(crate) struct Encoded {
    pub(crate) body: String,
    /// Written with references and escapes.
    pub(crate) refs: bool,
    pub(crate) blobs: Vec<(Hash, String)>,
}

impl Encoded {
    pub(crate) fn bytes(&self) -> usize {
        self.body.len() + self.blobs.iter().map(|(_, body)| body.len()).sum::<usize>()
    }
}

pub(crate) fn encode(events: &[Event]) -> Encoded {
    let mut plain = Vec::with_capacity(STEP_BYTES);
    plain.push(b'[');
    let mut ends = Vec::with_capacity(events.len());
    for (index, event) in events.iter().enumerate() {
        if index > 0 {
            plain.push(b',');
        }
        serde_json::to_writer(&mut plain, event).expect("events are JSON");
        ends.push(plain.len());
    }
    plain.push(b']');
    let plain = String::from_utf8(plain).expect("JSON is UTF-8");
    if plain.len() <= PART_BYTES_MAX {
        return Encoded { body: plain, refs: false, blobs: Vec::new() };
    }
    // Each event's text begins behind a bracket or a comma.
    let starts = std::iter::once(1).chain(ends.iter().map(|end| end + 1));
    let texts: Vec<&str> = starts.zip(&ends).map(|(start, end)| &plain[start..*end]).collect();
    if texts.iter().all(|text| is_plain(text)) {
        return Encoded { body: plain, refs: false, blobs: Vec::new() };
    }
    let mut encoded = Encoded { body: "[".to_owned(), refs: true, blobs: Vec::new() };
    for (event, text) in events.iter().zip(texts) {
        if encoded.body.len() > 1 {
            encoded.body.push(',');
        }
        match is_plain(text) {
            true => encoded.body.push_str(text),
            false => encoded.body.push_str(&with_references(event, &mut encoded.blobs)),
        }
    }
    encoded.body.push(']');
    encoded
}

/// Small, and without anything that could be taken for a reference.
fn is_plain(text: &str) -> bool {
    text.len() <= PART_BYTES_MAX && !text.contains("\"$")
}

/// An event itself is never a blob: what it is must be readable without another row.
fn with_references(event: &Event, blobs: &mut Vec<(Hash, String)>) -> String {
    let json = serde_json::to_value(event).expect("events are JSON");
    let Json::Object(fields) = json else { unreachable!("an event is an object") };
    let fields = fields.into_iter().map(|(key, value)| (escaped(key), shrink(value, blobs).0));
    json_text(&Json::Object(fields.collect()))
}

/// The value with its large parts taken out, and its size as JSON.
fn shrink(value: Json, blobs: &mut Vec<(Hash, String)>) -> (Json, usize) {
    let (value, bytes) = match value {
        Json::Array(items) => {
            let items: Vec<(Json, usize)> = items.into_iter().map(|item| shrink(item, blobs)).collect();
            list(items, blobs)
        }
        Json::Object(entries) => {
            let mut bytes = 2;
            let mut shrunk = Map::new();
            for (key, value) in entries {
                let (value, size) = shrink(value, blobs);
                bytes += key.len() + 4 + size;
                shrunk.insert(escaped(key), value);
            }
            (Json::Object(shrunk), bytes)
        }
        Json::String(text) => {
            let bytes = text.len() + 2;
            (Json::String(text), bytes)
        }
        other => (other, 8),
    };
    if bytes > PART_BYTES_MAX { (blob(&value, blobs), REFERENCE_BYTES) } else { (value, bytes) }
}

/// A list in pieces, cut from the front; what is left over at the end stays where it is.
fn list(items: Vec<(Json, usize)>, blobs: &mut Vec<(Hash, String)>) -> (Json, usize) {
    let bytes: usize = items.iter().map(|(_, size)| size + 1).sum::<usize>() + 2;
    if bytes <= PIECE_BYTES * 3 {
        return (Json::Array(items.into_iter().map(|(item, _)| item).collect()), bytes);
    }
    let (mut pieces, mut piece, mut size) = (Vec::new(), Vec::new(), 0);
    for (item, bytes) in items {
        let large = bytes > ELEMENT_BYTES_MAX;
        piece.push(if large { blob(&item, blobs) } else { item });
        size += if large { REFERENCE_BYTES } else { bytes } + 1;
        if size >= PIECE_BYTES {
            pieces.push((blob(&Json::Array(std::mem::take(&mut piece)), blobs), REFERENCE_BYTES));
            size = 0;
        }
    }
    let (pieces, pieces_bytes) = list(pieces, blobs);
    let mut cut = Map::new();
    cut.insert(LIST.to_owned(), Json::Array(vec![pieces, Json::Array(piece)]));
    (Json::Object(cut), pieces_bytes + size + 20)
}

fn blob(value: &Json, blobs: &mut Vec<(Hash, String)>) -> Json {
    let body = json_text(value);
    let hash = blake3::hash(body.as_bytes());
    let mut reference = Map::new();
    reference.insert(BLOB.to_owned(), Json::String(BASE64.encode(hash.as_bytes())));
    blobs.push((*hash.as_bytes(), body));
    Json::Object(reference)
}

/// Quicker than `to_string`, which goes through a formatter piece by piece.
fn json_text(value: &Json) -> String {
    serde_json::to_string(value).expect("JSON has a text")
}

fn escaped(key: String) -> String {
    if key.starts_with('$') { format!("${key}") } else { key }
}

/// Why stored bytes are not what was stored.
pub(crate) type Damage = String;

pub(crate) fn decode(
    body: &str,
    refs: bool,
    fetch: &mut dyn FnMut(&Hash) -> Result<String, Damage>,
) -> Result<Vec<Event>, Damage> {
    let not_events = |error: serde_json::Error| format!("the stored events cannot be read: {error}");
    if !refs {
        return serde_json::from_str(body).map_err(not_events);
    }
    let json: Json = serde_json::from_str(body).map_err(not_events)?;
    serde_json::from_value(restore(json, fetch)?).map_err(not_events)
}

fn restore(value: Json, fetch: &mut dyn FnMut(&Hash) -> Result<String, Damage>) -> Result<Json, Damage> {
    match value {
        Json::Array(items) => {
            Ok(Json::Array(items.into_iter().map(|item| restore(item, fetch)).collect::<Result<_, _>>()?))
        }
        Json::Object(mut entries) => {
            if let Some(Json::String(hash)) = entries.get(BLOB) {
                let bytes = BASE64.decode(hash).ok().and_then(|bytes| Hash::try_from(bytes).ok());
                let body = fetch(&bytes.ok_or_else(|| format!("{hash} is no hash"))?)?;
                let inner = serde_json::from_str(&body).map_err(|e| format!("blob {hash}: {e}"))?;
                return restore(inner, fetch);
            }
            if let Some(Json::Array(parts)) = entries.remove(LIST) {
                return joined(parts, fetch);
            }
            let plain = |key: String| key.strip_prefix('$').map(str::to_owned).unwrap_or(key);
            let mut restored = Map::new();
            for (key, value) in entries {
                restored.insert(plain(key), restore(value, fetch)?);
            }
            Ok(Json::Object(restored))
        }
        other => Ok(other),
    }
}

/// Pieces, then the rest.
fn joined(parts: Vec<Json>, fetch: &mut dyn FnMut(&Hash) -> Result<String, Damage>) -> Result<Json, Damage> {
    let mut parts = parts.into_iter();
    let (Some(pieces), Some(Json::Array(rest))) = (parts.next(), parts.next()) else {
        return Err("a list in pieces lacks one".to_owned());
    };
    let Json::Array(pieces) = restore(pieces, fetch)? else {
        return Err("a list in pieces is none".to_owned());
    };
    let mut items = Vec::new();
    for piece in pieces {
        let Json::Array(of_piece) = piece else { return Err("a piece of a list is none".to_owned()) };
        items.extend(of_piece);
    }
    for item in rest {
        items.push(restore(item, fetch)?);
    }
    Ok(Json::Array(items))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wonder_core::event::{EventKind, GateId};
    use wonder_core::{Time, Value};

    use super::*;

    fn event(answer: Value) -> Vec<Event> {
        let kind = EventKind::GateAnswered { gate: GateId(1), by: "ann".into(), answer, closes: true };
        vec![Event { seq: 7, at: Time(1), kind }]
    }

    fn there_and_back(answer: Value) -> Encoded {
        let events = event(answer);
        let encoded = encode(&events);
        let blobs: BTreeMap<Hash, String> = encoded.blobs.iter().cloned().collect();
        let mut fetch = |hash: &Hash| blobs.get(hash).cloned().ok_or("no such blob".to_owned());
        assert_eq!(decode(&encoded.body, encoded.refs, &mut fetch).unwrap(), events);
        encoded
    }

    fn message(number: usize, bytes: usize) -> Value {
        let text = format!("{number}:{}", "x".repeat(bytes));
        Value::map([("role", Value::str("user")), ("content", Value::from(text))])
    }

    #[test]
    fn what_people_write_is_never_taken_for_a_reference() {
        let tricky = Value::map([
            ("$blob", Value::str("00")),
            ("$list", Value::list([])),
            ("$$blob", Value::Int(1)),
            ("big", Value::from("y".repeat(10_000))),
        ]);
        assert!(there_and_back(tricky.clone()).blobs.len() == 1);
        there_and_back(Value::map([("small", tricky.get("$blob").unwrap().clone())]));
        there_and_back(Value::map([("$blob", Value::str("small"))]));
    }

    #[test]
    fn every_size_of_list_comes_back() {
        for items in [0, 1, 10, 100, 1_000, 20_000] {
            there_and_back(Value::list((0..items).map(|n| message(n, 40))));
            there_and_back(Value::list((0..items.min(50)).map(|n| message(n, 6_000))));
        }
    }

    #[test]
    fn a_conversation_stores_each_message_once() {
        let mut known: BTreeMap<Hash, String> = BTreeMap::new();
        let mut turn = |turns: usize| {
            let encoded = there_and_back(Value::list((0..turns).map(|n| message(n, 8_000))));
            let fresh = encoded.blobs.into_iter().filter(|(hash, _)| !known.contains_key(hash));
            let fresh: Vec<(Hash, String)> = fresh.collect();
            let bytes = encoded.body.len() + fresh.iter().map(|(_, body)| body.len()).sum::<usize>();
            known.extend(fresh);
            bytes
        };
        let bytes: Vec<usize> = (1..=100).map(&mut turn).collect();
        let most = bytes.iter().max().unwrap();
        assert!(*most as f64 <= bytes[0] as f64 * 1.2, "first {}, most {most}", bytes[0]);
    }
}
