//! JSON as it is stored: large parts are kept once, in a store of parts, and referred to by their hash.
//!
//! A list of items (the events of one step) whose JSON is small is stored as it is. In a larger one every part
//! above a size becomes `{"$blob": hash}`, and a long list is cut into pieces from its front, so that a list
//! which grows at its end (a conversation) shares all its earlier pieces with the list before. Keys of people's
//! own objects that begin with `$` get another one in front, so that nothing can be mistaken for a reference.
//!
//! This is a stored format: what was written once must stay readable. Nothing here does IO; whoever keeps the
//! parts implements [`PartStore`].

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

/// A part above this is a blob of its own.
const PART_BYTES_MAX: usize = 4096;
/// In a long list, an element above this.
const ELEMENT_BYTES_MAX: usize = 512;
/// A piece of a long list has about so many bytes.
const PIECE_BYTES: usize = 384;
/// A reference has about so many.
const REFERENCE_BYTES: usize = 55;

/// Most lists of items have less.
const TEXT_BYTES: usize = 640;

const BLOB: &str = "$blob";
const LIST: &str = "$list";

/// BLAKE3 of a part's text.
pub type Hash = [u8; 32];

/// Where parts are kept: a table, a directory, a bucket.
pub trait PartStore {
    type Error;

    /// The text with this hash; None if it is not there.
    fn part(&self, hash: &Hash) -> Result<Option<String>, Self::Error>;

    /// Keeps a text under its hash. False if it was there already.
    fn keep(&self, hash: &Hash, text: &str) -> Result<bool, Self::Error>;
}

/// A list of items, ready to be stored.
#[derive(Clone, Debug)]
pub struct Encoded {
    pub body: String,
    /// Written with references and escapes.
    pub refs: bool,
    /// The parts that the body refers to, directly or not.
    pub parts: Vec<(Hash, String)>,
}

impl Encoded {
    pub fn bytes(&self) -> usize {
        self.body.len() + self.parts.iter().map(|(_, text)| text.len()).sum::<usize>()
    }

    /// Keeps the parts; answers how many bytes of them were new.
    pub fn keep_parts<S: PartStore>(&self, store: &S) -> Result<u64, S::Error> {
        let mut bytes = 0;
        for (hash, text) in &self.parts {
            if store.keep(hash, text)? {
                bytes += text.len() as u64;
            }
        }
        Ok(bytes)
    }
}

pub fn encode<T: Serialize>(items: &[T]) -> Encoded {
    let mut plain = Vec::with_capacity(TEXT_BYTES);
    plain.push(b'[');
    let mut ends = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            plain.push(b',');
        }
        serde_json::to_writer(&mut plain, item).expect("items are JSON");
        ends.push(plain.len());
    }
    plain.push(b']');
    let plain = String::from_utf8(plain).expect("JSON is UTF-8");
    if plain.len() <= PART_BYTES_MAX {
        return Encoded { body: plain, refs: false, parts: Vec::new() };
    }
    // Each item's text begins behind a bracket or a comma.
    let starts = std::iter::once(1).chain(ends.iter().map(|end| end + 1));
    let texts: Vec<&str> = starts.zip(&ends).map(|(start, end)| &plain[start..*end]).collect();
    if texts.iter().all(|text| is_plain(text)) {
        return Encoded { body: plain, refs: false, parts: Vec::new() };
    }
    let mut encoded = Encoded { body: "[".to_owned(), refs: true, parts: Vec::new() };
    for (item, text) in items.iter().zip(texts) {
        if encoded.body.len() > 1 {
            encoded.body.push(',');
        }
        match is_plain(text) {
            true => encoded.body.push_str(text),
            false => encoded.body.push_str(&with_references(item, &mut encoded.parts)),
        }
    }
    encoded.body.push(']');
    encoded
}

/// Small, and without anything that could be taken for a reference.
fn is_plain(text: &str) -> bool {
    text.len() <= PART_BYTES_MAX && !text.contains("\"$")
}

/// An item that is an object is never a blob itself: what it is must be readable without another part.
fn with_references<T: Serialize>(item: &T, parts: &mut Vec<(Hash, String)>) -> String {
    let json = serde_json::to_value(item).expect("items are JSON");
    let Json::Object(fields) = json else { return json_text(&shrink(json, parts).0) };
    let fields = fields.into_iter().map(|(key, value)| (escaped(key), shrink(value, parts).0));
    json_text(&Json::Object(fields.collect()))
}

/// The value with its large parts taken out, and its size as JSON.
fn shrink(value: Json, parts: &mut Vec<(Hash, String)>) -> (Json, usize) {
    let (value, bytes) = match value {
        Json::Array(items) => {
            let items: Vec<(Json, usize)> = items.into_iter().map(|item| shrink(item, parts)).collect();
            list(items, parts)
        }
        Json::Object(entries) => {
            let mut bytes = 2;
            let mut shrunk = Map::new();
            for (key, value) in entries {
                let (value, size) = shrink(value, parts);
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
    if bytes > PART_BYTES_MAX { (blob(&value, parts), REFERENCE_BYTES) } else { (value, bytes) }
}

/// A list in pieces, cut from the front; what is left over at the end stays where it is.
fn list(items: Vec<(Json, usize)>, parts: &mut Vec<(Hash, String)>) -> (Json, usize) {
    let bytes: usize = items.iter().map(|(_, size)| size + 1).sum::<usize>() + 2;
    if bytes <= PIECE_BYTES * 3 {
        return (Json::Array(items.into_iter().map(|(item, _)| item).collect()), bytes);
    }
    let (mut pieces, mut piece, mut size) = (Vec::new(), Vec::new(), 0);
    for (item, bytes) in items {
        let large = bytes > ELEMENT_BYTES_MAX;
        piece.push(if large { blob(&item, parts) } else { item });
        size += if large { REFERENCE_BYTES } else { bytes } + 1;
        if size >= PIECE_BYTES {
            pieces.push((blob(&Json::Array(std::mem::take(&mut piece)), parts), REFERENCE_BYTES));
            size = 0;
        }
    }
    let (pieces, pieces_bytes) = list(pieces, parts);
    let mut cut = Map::new();
    cut.insert(LIST.to_owned(), Json::Array(vec![pieces, Json::Array(piece)]));
    (Json::Object(cut), pieces_bytes + size + 20)
}

fn blob(value: &Json, parts: &mut Vec<(Hash, String)>) -> Json {
    let body = json_text(value);
    let hash = blake3::hash(body.as_bytes());
    let mut reference = Map::new();
    reference.insert(BLOB.to_owned(), Json::String(BASE64.encode(hash.as_bytes())));
    parts.push((*hash.as_bytes(), body));
    Json::Object(reference)
}

/// Quicker than `to_string`, which goes through a formatter piece by piece.
fn json_text(value: &Json) -> String {
    serde_json::to_string(value).expect("JSON has a text")
}

fn escaped(key: String) -> String {
    if key.starts_with('$') { format!("${key}") } else { key }
}

/// Why stored bytes could not be read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum DecodeError<E> {
    /// They are not what was stored.
    Damaged(String),
    /// The store of parts could not be asked; the bytes may be sound.
    Store(E),
}

impl<E: fmt::Display> fmt::Display for DecodeError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Damaged(why) => f.write_str(why),
            DecodeError::Store(error) => error.fmt(f),
        }
    }
}

/// What [`encode`] has written: its body, and whether that has references.
pub fn decode<T: DeserializeOwned, S: PartStore>(
    body: &str,
    refs: bool,
    store: &S,
) -> Result<Vec<T>, DecodeError<S::Error>> {
    let unreadable =
        |error: serde_json::Error| DecodeError::Damaged(format!("the stored items cannot be read: {error}"));
    if !refs {
        return serde_json::from_str(body).map_err(unreadable);
    }
    let json: Json = serde_json::from_str(body).map_err(unreadable)?;
    serde_json::from_value(restore(json, store)?).map_err(unreadable)
}

fn damaged<T, E>(why: impl Into<String>) -> Result<T, DecodeError<E>> {
    Err(DecodeError::Damaged(why.into()))
}

fn restore<S: PartStore>(value: Json, store: &S) -> Result<Json, DecodeError<S::Error>> {
    match value {
        Json::Array(items) => {
            Ok(Json::Array(items.into_iter().map(|item| restore(item, store)).collect::<Result<_, _>>()?))
        }
        Json::Object(mut entries) => {
            if let Some(Json::String(hash)) = entries.get(BLOB) {
                return part(hash, store);
            }
            if let Some(Json::Array(parts)) = entries.remove(LIST) {
                return joined(parts, store);
            }
            let plain = |key: String| key.strip_prefix('$').map(str::to_owned).unwrap_or(key);
            let mut restored = Map::new();
            for (key, value) in entries {
                restored.insert(plain(key), restore(value, store)?);
            }
            Ok(Json::Object(restored))
        }
        other => Ok(other),
    }
}

fn part<S: PartStore>(reference: &str, store: &S) -> Result<Json, DecodeError<S::Error>> {
    let bytes = BASE64.decode(reference).ok().and_then(|bytes| Hash::try_from(bytes).ok());
    let Some(hash) = bytes else { return damaged(format!("{reference} is no hash")) };
    let Some(text) = store.part(&hash).map_err(DecodeError::Store)? else {
        return damaged(format!("blob {reference} is missing"));
    };
    match serde_json::from_str(&text) {
        Ok(json) => restore(json, store),
        Err(error) => damaged(format!("blob {reference}: {error}")),
    }
}

/// Pieces, then the rest.
fn joined<S: PartStore>(parts: Vec<Json>, store: &S) -> Result<Json, DecodeError<S::Error>> {
    let mut parts = parts.into_iter();
    let (Some(pieces), Some(Json::Array(rest))) = (parts.next(), parts.next()) else {
        return damaged("a list in pieces lacks one");
    };
    let Json::Array(pieces) = restore(pieces, store)? else {
        return damaged("a list in pieces is none");
    };
    let mut items = Vec::new();
    for piece in pieces {
        let Json::Array(of_piece) = piece else { return damaged("a piece of a list is none") };
        items.extend(of_piece);
    }
    for item in rest {
        items.push(restore(item, store)?);
    }
    Ok(Json::Array(items))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    use serde_json::json;

    use super::*;

    #[derive(Default)]
    struct InMemory(RefCell<BTreeMap<Hash, String>>);

    impl PartStore for InMemory {
        type Error = Infallible;

        fn part(&self, hash: &Hash) -> Result<Option<String>, Infallible> {
            Ok(self.0.borrow().get(hash).cloned())
        }

        fn keep(&self, hash: &Hash, text: &str) -> Result<bool, Infallible> {
            Ok(self.0.borrow_mut().insert(*hash, text.to_owned()).is_none())
        }
    }

    fn there_and_back(answer: Json, store: &InMemory) -> (Encoded, u64) {
        let items = vec![json!({"seq": 7, "at": 1, "kind": "gate_answered", "answer": answer})];
        let encoded = encode(&items);
        let new = encoded.keep_parts(store).unwrap();
        let decoded: Vec<Json> = decode(&encoded.body, encoded.refs, store).unwrap();
        assert_eq!(decoded, items);
        (encoded, new)
    }

    fn message(number: usize, bytes: usize) -> Json {
        json!({"role": "user", "content": format!("{number}:{}", "x".repeat(bytes))})
    }

    #[test]
    fn what_people_write_is_never_taken_for_a_reference() {
        let store = InMemory::default();
        let tricky = json!({"$blob": "00", "$list": [], "$$blob": 1, "big": "y".repeat(10_000)});
        assert!(there_and_back(tricky, &store).0.parts.len() == 1);
        there_and_back(json!({"small": "00"}), &store);
        there_and_back(json!({"$blob": "small"}), &store);
    }

    #[test]
    fn every_size_of_list_comes_back() {
        let store = InMemory::default();
        for items in [0, 1, 10, 100, 1_000, 20_000] {
            there_and_back((0..items).map(|n| message(n, 40)).collect(), &store);
            there_and_back((0..items.min(50)).map(|n| message(n, 6_000)).collect(), &store);
        }
    }

    #[test]
    fn a_conversation_stores_each_message_once() {
        let store = InMemory::default();
        let turn = |turns: usize| {
            let (encoded, new) = there_and_back((0..turns).map(|n| message(n, 8_000)).collect(), &store);
            encoded.body.len() as u64 + new
        };
        let bytes: Vec<u64> = (1..=100).map(turn).collect();
        let most = bytes.iter().max().unwrap();
        assert!(*most as f64 <= bytes[0] as f64 * 1.2, "first {}, most {most}", bytes[0]);
    }

    /// The stored format is frozen: these bytes stand in people's databases.
    #[test]
    fn the_format_stays() {
        let store = InMemory::default();
        let part = json!("z".repeat(5_000)).to_string();
        store.keep(blake3::hash(part.as_bytes()).as_bytes(), &part).unwrap();
        let body = r#"[{"answer":{"$$own":1,"a":{"$blob":"sE9MrkjSN_Jr7c4K4Lc3mvQQCSlxmtYIN4Eos4HmR_A"}}}]"#;
        let item = json!({"answer": {"$own": 1, "a": "z".repeat(5_000)}});
        assert_eq!(decode::<Json, _>(body, true, &store).unwrap(), std::slice::from_ref(&item));
        assert_eq!(encode(&[item]).body, body);

        let text = "abcdefghijklmnopqrstuvwxyz".repeat(3);
        let list: Vec<Json> = (0..100).map(|n| json!({"n": n, "t": text})).collect();
        let encoded = encode(&[json!({"answer": list})]);
        let pieces =
            r#"[{"answer":{"$list":[{"$list":[[{"$blob":"SlVhLvFEDsj60DcXpt2eCs98GojJFBcQNwaMgs3APP0"},"#;
        assert!(encoded.body.starts_with(pieces), "{}", encoded.body);
        assert_eq!(encoded.parts.len(), 28);
    }

    #[test]
    fn what_is_missing_or_no_reference_is_damage() {
        let store = InMemory::default();
        let read = |body: &str| decode::<Json, _>(body, true, &store).unwrap_err().to_string();
        let missing = BASE64.encode([7; 32]);
        assert_eq!(read(&format!(r#"[{{"$blob":"{missing}"}}]"#)), format!("blob {missing} is missing"));
        assert_eq!(read(r#"[{"$blob":"?"}]"#), "? is no hash");
        assert_eq!(read(r#"[{"$list":[[]]}]"#), "a list in pieces lacks one");
    }
}
