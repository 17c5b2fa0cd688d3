//! Texts with a place: expressions, templates, mappings. They compare by content, never by place.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Name;
use crate::value::Value;

/// An opaque mark of where something was written; the reader keeps the table. Zero is "nowhere".
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Spot(pub u32);

impl Spot {
    pub const NOWHERE: Spot = Spot(0);
}

/// A text somebody wrote: an expression, a template or a name, by where it stands.
#[derive(Clone, Debug, Default)]
pub struct Text {
    pub text: Name,
    pub spot: Spot,
}

impl Text {
    pub fn new(text: impl Into<Name>) -> Text {
        Text { text: text.into(), spot: Spot::NOWHERE }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Text {
        Text::new(text)
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        Ok(Text::new(String::deserialize(deserializer)?))
    }
}

/// JSON whose strings are texts: expressions in a mapping, templates in an action's field.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Tree {
    Text(Text),
    Map(BTreeMap<Name, Tree>),
    List(Vec<Tree>),
    /// A number, a boolean or null: itself.
    Literal(Value),
}

/// One entry of an output mapping or a `set`: a target path and what goes there.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    pub to: Text,
    pub value: Tree,
}

/// Writes in the order in which they were written; stored as a map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Writes(pub Vec<Write>);

impl Serialize for Writes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for write in &self.0 {
            map.serialize_entry(&write.to, &write.value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Writes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Writes, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Writes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of target paths")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Writes, A::Error> {
                let mut writes = Vec::new();
                while let Some((to, value)) = map.next_entry()? {
                    writes.push(Write { to, value });
                }
                Ok(Writes(writes))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}
