//! Secrets written in clear: texts that look like keys, and keys that ask for a secret and get a literal.

use super::Check;
use crate::codes;
use crate::texts;
use wonder_lang::def::{ActionDef, Implementation, Name, PromptSpec, Spot, Text, Tree};
use wonder_lang::problem::Problem;

/// How well-known keys begin, and how many more characters they have at least.
const KEYS: [(&str, usize); 9] = [
    ("sk-", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("xoxb-", 16),
    ("xoxp-", 16),
    ("AKIA", 16),
    ("AIza", 30),
];

/// The shortest of them as a whole.
const KEY_BYTES_MIN: usize = 19;

const NAMES: [&str; 8] =
    ["password", "passwd", "api_key", "apikey", "token", "authorization", "secret", "private_key"];

impl Check<'_> {
    pub(super) fn secrets(&mut self, action: &ActionDef) {
        let mut found = Vec::new();
        texts::each(action, &mut |_, text| {
            if looks_like_key(&text.text) {
                found.push(text.spot);
            }
        });
        found.into_iter().for_each(|spot| self.in_clear(spot, "this text looks like a key"));
        let named = match &action.implementation {
            Implementation::HttpRequest(http) => [http.headers.as_ref(), http.query.as_ref()],
            Implementation::Shell(shell) => [shell.env.as_ref(), None],
            _ => [None, None],
        };
        for tree in named.into_iter().flatten() {
            self.named_secrets(tree);
        }
    }

    pub(super) fn prompt_secrets(&mut self, prompt: &PromptSpec) {
        for text in prompt.system.iter().chain([&prompt.template]).filter(|text| looks_like_key(&text.text)) {
            self.in_clear(text.spot, "this text looks like a key");
        }
    }

    pub(super) fn mapping_secrets(&mut self, tree: &Tree) {
        match tree {
            Tree::Text(text) if looks_like_key(&text.text) => {
                self.in_clear(text.spot, "this text looks like a key")
            }
            Tree::Text(_) | Tree::Literal(_) => {}
            Tree::List(list) => list.iter().for_each(|tree| self.mapping_secrets(tree)),
            Tree::Map(map) => map.values().for_each(|tree| self.mapping_secrets(tree)),
        }
    }

    fn named_secrets(&mut self, tree: &Tree) {
        let Tree::Map(map) = tree else { return };
        for (key, value) in map {
            if let Some(text) = literal(value).filter(|_| asks_for_secret(key)) {
                self.in_clear(text.spot, &format!("`{key}` is written in clear"));
            }
        }
    }

    fn in_clear(&mut self, spot: Spot, message: &str) {
        self.report(
            Problem::warning(codes::CLEAR_SECRET, spot, message)
                .label("expected a secret by name")
                .help("write `{{ secret.name }}` and keep the value outside the definition"),
        );
    }
}

fn literal(value: &Tree) -> Option<&Text> {
    match value {
        Tree::Text(text) if !text.as_str().contains("{{") && !text.as_str().is_empty() => Some(text),
        _ => None,
    }
}

fn asks_for_secret(key: &Name) -> bool {
    let plain = key.to_ascii_lowercase().replace('-', "_");
    NAMES.iter().any(|name| plain.contains(name))
}

fn looks_like_key(text: &str) -> bool {
    if text.len() < KEY_BYTES_MIN {
        return false;
    }
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY-----") {
        return true;
    }
    KEYS.iter().any(|(prefix, more)| {
        text.match_indices(prefix).any(|(at, _)| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            let starts_a_word = !text[..at].ends_with(is_part);
            let tail = text[at + prefix.len()..].chars().take(64).take_while(|c| is_part(*c));
            // Keys have digits; a long name with dashes in it does not.
            let (mut len, mut digits) = (0, 0);
            tail.for_each(|c| {
                len += 1;
                digits += usize::from(c.is_ascii_digit());
            });
            starts_a_word && len >= *more && digits > 0
        })
    })
}
