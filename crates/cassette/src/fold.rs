//! Conversations that grow: a request with `messages` is stored as what it adds to an earlier one, so that a turn takes
//! as much room as it says, however long the conversation before it was. Fields that are as they were are left out too.

use std::collections::BTreeMap;

use wonder_core::value::{Map, Value};

use crate::exchange::{Key, Request};

/// The field that grows.
const MESSAGES: &str = "messages";

/// A request by what it adds to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Folded {
    pub(crate) continues: Key,
    /// Messages after those of the other.
    pub(crate) new: Vec<Value>,
    /// Fields that are not as in the other.
    pub(crate) fields: Value,
    /// Fields that the other has and this one has not.
    pub(crate) without: Vec<String>,
}

/// The requests so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversations {
    requests: BTreeMap<Key, Request>,
    /// Where conversations ended, by the hash of all their messages.
    ends: BTreeMap<[u8; 32], Key>,
}

impl Conversations {
    pub(crate) fn learn(&mut self, key: Key, request: Request) {
        if let Some(end) = prefixes(&request).pop() {
            self.ends.insert(end, key.clone());
        }
        self.requests.insert(key, request);
    }

    /// The request by the longest conversation that it goes on with; None: it begins one.
    pub(crate) fn fold(&self, request: &Request) -> Option<Folded> {
        let known = prefixes(request).into_iter().enumerate().rev();
        let (at, key) = known.into_iter().find_map(|(at, hash)| Some((at, self.ends.get(&hash)?)))?;
        let before = self.requests.get(key)?.fields.as_map()?;
        let fields = request.fields.as_map()?;
        let changed = |(name, value): &(&std::sync::Arc<str>, &Value)| {
            &***name != MESSAGES && before.get(*name) != Some(*value)
        };
        let changed: Map =
            fields.iter().filter(changed).map(|(name, value)| (name.clone(), value.clone())).collect();
        let gone = before.keys().filter(|name| !fields.contains_key(*name)).map(ToString::to_string);
        Some(Folded {
            continues: key.clone(),
            new: messages(request)[at + 1..].to_vec(),
            fields: Value::from(changed),
            without: gone.collect(),
        })
    }

    /// None: there is no such conversation.
    pub(crate) fn unfold(&self, kind: &str, folded: &Folded) -> Option<Request> {
        let before = self.requests.get(&folded.continues).filter(|before| before.kind == kind)?;
        let mut fields = before.fields.as_map()?.clone();
        folded.without.iter().for_each(|name| drop(fields.remove(name.as_str())));
        let own = folded.fields.as_map()?;
        fields.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
        let all = messages(before).iter().chain(&folded.new).cloned();
        fields.insert(MESSAGES.into(), Value::list(all));
        Some(Request { kind: kind.to_owned(), fields: Value::from(fields) })
    }
}

fn messages(request: &Request) -> &[Value] {
    request.fields.get(MESSAGES).and_then(Value::as_list).unwrap_or_default()
}

/// The hashes of the first message, of the first two, and so on, each from the one before.
fn prefixes(request: &Request) -> Vec<[u8; 32]> {
    let mut before = *blake3::hash(request.kind.as_bytes()).as_bytes();
    let each = messages(request).iter().map(|message| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&before).update(message.to_string().as_bytes());
        before = *hasher.finalize().as_bytes();
        before
    });
    each.collect()
}
