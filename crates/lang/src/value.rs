//! The JSON value that flows through a run.
//!
//! Clones share structure, maps are sorted, so equal values have equal bytes. A value never holds
//! anything JSON cannot say: no dates, no bytes, no functions; and no number is silently rounded when
//! it fits an `i64`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub type Map = BTreeMap<Arc<str>, Value>;

/// A JSON value. `Int` and `Float` stay apart, as in CEL: `1` and `1.0` are different values here.
#[derive(Clone, Debug, Default)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(Arc<str>),
    List(Arc<Vec<Value>>),
    Map(Arc<Map>),
}

impl Value {
    pub fn str(text: impl Into<Arc<str>>) -> Value {
        Value::String(text.into())
    }

    pub fn list(items: impl IntoIterator<Item = Value>) -> Value {
        Value::List(Arc::new(items.into_iter().collect()))
    }

    pub fn map<K: Into<Arc<str>>>(entries: impl IntoIterator<Item = (K, Value)>) -> Value {
        Value::Map(Arc::new(entries.into_iter().map(|(key, value)| (key.into(), value)).collect()))
    }

    pub fn empty_map() -> Value {
        Value::Map(Arc::default())
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The number as a double, whether it is written as an integer or not.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(flag) => Some(*flag),
            _ => None,
        }
    }

    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    pub fn as_list(&self) -> Option<&[Value]> {
        match self {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The value under `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_map()?.get(key)
    }

    /// The name an author knows the type by.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "double",
            Value::String(_) => "string",
            Value::List(_) => "list",
            Value::Map(_) => "map",
        }
    }

    pub fn get_path(&self, path: &[Arc<str>]) -> Option<&Value> {
        path.iter().try_fold(self, |value, key| value.get(key))
    }

    /// Writes `value` at `path`, making maps along the way. Copies only what is shared: a map nobody
    /// else holds is changed in place. A non-map on the way is replaced, an empty path replaces all.
    pub fn set_path(&mut self, path: &[Arc<str>], value: Value) {
        *self.entry_mut(path) = value;
    }

    /// Puts items behind the last of a list; null counts as an empty one. False, and nothing changes, if this is
    /// anything else. Nothing is copied if nobody else holds the list.
    pub fn append(&mut self, items: impl IntoIterator<Item = Value>) -> bool {
        if self.is_null() {
            *self = Value::List(Arc::default());
        }
        let Value::List(list) = self else { return false };
        Arc::make_mut(list).extend(items);
        true
    }

    /// What stands at `path`, to be changed: maps are made along the way, as [`set_path`](Self::set_path) does.
    pub fn entry_mut(&mut self, path: &[Arc<str>]) -> &mut Value {
        let Some((key, rest)) = path.split_first() else { return self };
        if !matches!(self, Value::Map(_)) {
            *self = Value::empty_map();
        }
        let Value::Map(map) = self else { unreachable!("it was just made one") };
        Arc::make_mut(map).entry(key.clone()).or_default().entry_mut(rest)
    }

    /// About how many bytes this value takes as JSON, shared parts counted each time they occur.
    pub fn size(&self) -> usize {
        let mut left = usize::MAX;
        self.spend(&mut left);
        usize::MAX - left
    }

    /// Whether [`size`](Self::size) is at most `bytes_max`. Stops as soon as it is not, so it is safe
    /// on values whose shared parts unfold to far more than memory holds.
    pub fn fits(&self, bytes_max: usize) -> bool {
        let mut left = bytes_max;
        self.spend(&mut left)
    }

    fn spend(&self, left: &mut usize) -> bool {
        let own = match self {
            Value::Null | Value::Bool(_) => 4,
            Value::Int(_) | Value::Float(_) => 8,
            Value::String(text) => text.len() + 2,
            Value::List(_) | Value::Map(_) => 2,
        };
        let Some(rest) = left.checked_sub(own) else {
            *left = 0;
            return false;
        };
        *left = rest;
        match self {
            Value::List(items) => items.iter().all(|item| item.spend(left)),
            Value::Map(map) => map.iter().all(|(key, value)| {
                *left = left.saturating_sub(key.len() + 4);
                *left > 0 && value.spend(left)
            }),
            _ => true,
        }
    }

    /// How deeply lists and maps nest, looking no further than `max`. JSON readers, ours included,
    /// refuse text nested beyond 128 levels: what is stored must stay below that.
    pub fn depth(&self, max: usize) -> usize {
        let inner = |value: &Value| value.depth(max - 1);
        match self {
            _ if max == 0 => 0,
            Value::List(items) => 1 + items.iter().map(inner).max().unwrap_or(0),
            Value::Map(map) => 1 + map.values().map(inner).max().unwrap_or(0),
            _ => 0,
        }
    }

    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Value::Null => Json::Null,
            Value::Bool(flag) => Json::Bool(*flag),
            Value::Int(number) => Json::from(*number),
            Value::Float(number) => Json::from(*number),
            Value::String(text) => Json::String(text.to_string()),
            Value::List(items) => Json::Array(items.iter().map(Value::to_json).collect()),
            Value::Map(map) => {
                Json::Object(map.iter().map(|(key, value)| (key.to_string(), value.to_json())).collect())
            }
        }
    }

    pub fn from_json(json: &serde_json::Value) -> Value {
        use serde_json::Value as Json;
        match json {
            Json::Null => Value::Null,
            Json::Bool(flag) => Value::Bool(*flag),
            Json::Number(number) => match number.as_i64() {
                Some(int) => Value::Int(int),
                None => number.as_f64().map_or(Value::Null, Value::Float),
            },
            Json::String(text) => Value::str(text.as_str()),
            Json::Array(items) => Value::list(items.iter().map(Value::from_json)),
            Json::Object(map) => {
                Value::map(map.iter().map(|(key, value)| (key.as_str(), Value::from_json(value))))
            }
        }
    }

    pub fn from_json_str(text: &str) -> Result<Value, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

/// Floats compare by their bits, so that a value always equals itself and its own replay.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::String(a), Value::String(b)) => a == b,
            (Value::List(a), Value::List(b)) => Arc::ptr_eq(a, b) || a == b,
            (Value::Map(a), Value::Map(b)) => Arc::ptr_eq(a, b) || a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

macro_rules! from {
    ($($from:ty, $name:ident => $to:expr;)*) => {
        $(impl From<$from> for Value {
            fn from($name: $from) -> Value {
                $to
            }
        })*
    };
}

from! {
    bool, flag => Value::Bool(flag);
    i64, number => Value::Int(number);
    f64, number => Value::Float(number);
    &str, text => Value::str(text);
    String, text => Value::str(text);
    Arc<str>, text => Value::String(text);
    Vec<Value>, items => Value::List(Arc::new(items));
    Map, map => Value::Map(Arc::new(map));
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::Float(number) if number.is_finite() => serializer.serialize_f64(*number),
            Value::Float(_) => serializer.serialize_unit(),
            Value::String(text) => serializer.serialize_str(text),
            Value::List(items) => serializer.collect_seq(items.iter()),
            Value::Map(map) => serializer.collect_map(map.iter()),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Int(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(i64::try_from(number).map_or(Value::Float(number as f64), Value::Int))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::str(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::from(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, value)) = access.next_entry::<Arc<str>, Value>()? {
            map.insert(key, value);
        }
        Ok(Value::from(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Value {
        Value::from_json_str(text).unwrap()
    }

    fn keys(path: &str) -> Vec<Arc<str>> {
        path.split('.').map(Arc::from).collect()
    }

    #[test]
    fn text_survives_a_round_trip_and_keys_are_sorted() {
        for text in ["null", "true", "-7", "1.0", "1e+300", "\"a\\nb\"", "[1,2.5,[]]", r#"{"a":1,"b":{}}"#] {
            assert_eq!(parse(text).to_string(), text);
            assert_eq!(Value::from_json(&parse(text).to_json()), parse(text));
        }
        assert_eq!(parse(r#"{"b":1,"a":2}"#).to_string(), r#"{"a":2,"b":1}"#);
    }

    #[test]
    fn integers_stay_integers_as_long_as_they_fit() {
        assert_eq!(parse("9223372036854775807"), Value::Int(i64::MAX));
        assert_eq!(parse("9223372036854775808"), Value::Float(9223372036854775808.0));
        assert_eq!(parse("3.0"), Value::Float(3.0));
        // Needs serde_json's `float_roundtrip`: without it a replay may differ in the last digit.
        let tricky = Value::Float(51.248_178_375_505_404);
        assert_eq!(parse(&tricky.to_string()), tricky);
        assert_eq!(Value::Float(f64::NAN).to_string(), "null");
        assert_eq!(Value::Float(f64::NAN), Value::Float(f64::NAN));
    }

    #[test]
    fn setting_a_path_copies_only_what_is_shared() {
        let mut state = parse(r#"{"a":{"x":1},"b":{"y":2},"s":"text"}"#);
        let before = state.clone();
        state.set_path(&keys("a.z.deep"), Value::Int(3));
        state.set_path(&keys("s.k"), Value::Null);
        assert_eq!(state.to_string(), r#"{"a":{"x":1,"z":{"deep":3}},"b":{"y":2},"s":{"k":null}}"#);
        assert_eq!(before.to_string(), r#"{"a":{"x":1},"b":{"y":2},"s":"text"}"#);
        let (Some(Value::Map(old)), Some(Value::Map(new))) = (before.get("b"), state.get("b")) else {
            panic!()
        };
        assert!(Arc::ptr_eq(old, new));
        assert_eq!(state.get_path(&keys("a.z.deep")), Some(&Value::Int(3)));
        assert_eq!(state.get_path(&keys("a.x.deep")), None);
        state.set_path(&[], Value::Null);
        assert!(state.is_null());
    }

    #[test]
    fn a_value_that_unfolds_to_more_than_memory_is_measured_at_once() {
        let mut value = parse("[1]");
        for _ in 0..100 {
            value = Value::list([value.clone(), value]);
        }
        assert!(!value.fits(1 << 20));
        assert_eq!(parse("[1,[2,{\"a\":[]}]]").depth(128), 4);
        assert!(parse("[1,2]").fits(18) && !parse("[1,2]").fits(17));
        assert_eq!(parse("[1,2]").size(), 18);
    }
}
