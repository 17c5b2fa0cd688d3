//! Names of tools as providers allow them (`[a-zA-Z0-9_-]{1,64}`, a letter or underscore first), and back.
//!
//! A name's form depends on nothing but the name unless two would get the same, so that the offered tools of a
//! conversation look alike from turn to turn and a provider's cache holds.

use std::collections::BTreeMap;

use wonder_lang::def::Name;

const LENGTH_MAX: usize = 64;

/// Which name stands for which tool in one exchange.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Names {
    outer: BTreeMap<Name, String>,
    inner: BTreeMap<String, Name>,
}

impl Names {
    pub(crate) fn new<'n>(tools: impl IntoIterator<Item = &'n Name>) -> Names {
        let mut names = Names::default();
        let mut changed = Vec::new();
        // Names that are allowed as they are come first: nobody may take them.
        for tool in tools {
            if plain(tool) == **tool {
                names.insert(tool, tool.to_string());
            } else {
                changed.push(tool);
            }
        }
        changed.sort();
        for tool in changed {
            let outer = plain(tool);
            let taken = names.inner.get(&outer).is_some_and(|holder| holder != tool);
            names.insert(tool, if taken { hashed(tool, &outer) } else { outer });
        }
        names
    }

    fn insert(&mut self, tool: &Name, outer: String) {
        self.inner.insert(outer.clone(), tool.clone());
        self.outer.insert(tool.clone(), outer);
    }

    /// The provider's name of one of our tools.
    pub(crate) fn outer(&self, tool: &str) -> String {
        self.outer.get(tool).cloned().unwrap_or_else(|| plain(tool))
    }

    /// Our name of what a model calls; a tool that a model made up keeps the name it was given.
    pub(crate) fn inner(&self, outer: &str) -> Name {
        self.inner.get(outer).cloned().unwrap_or_else(|| outer.into())
    }
}

fn plain(tool: &str) -> String {
    let mut name = String::with_capacity(tool.len());
    if !tool.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        name.push('_');
    }
    for c in tool.chars() {
        match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => name.push(c),
            '/' => name.push_str("__"),
            _ => name.push('_'),
        }
    }
    if name.len() > LENGTH_MAX { hashed(tool, &name) } else { name }
}

/// A short form that is different for different names.
fn hashed(tool: &str, plain: &str) -> String {
    // FNV-1a: the same on every machine and in every version.
    let hash = tool.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let kept: String = plain.chars().take(LENGTH_MAX - 17).collect();
    format!("{kept}_{hash:016x}")
}
