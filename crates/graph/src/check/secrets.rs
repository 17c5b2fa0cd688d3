//! Secrets written in clear: texts that look like keys, and keys that ask for a secret and get a literal.

use super::Check;
use crate::codes;
use crate::texts::ActionText;
use wonder_lang::def::{Name, PromptSpec, Spot, Text, Tree};
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

/// Fields whose keys say what their texts are.
const NAMED_FIELDS: [&str; 3] = ["headers", "query", "env"];

impl Check<'_> {
    /// Texts of an action. Those of its prompt spec are looked at where that is written.
    pub(super) fn secrets(&mut self, texts: &[ActionText]) {
        for text in texts.iter().filter(|text| text.prompt.is_none()) {
            if looks_like_key(&text.text.text) {
                self.in_clear(text.text.spot, "this text looks like a key");
            }
        }
        let named = texts.iter().filter(|text| NAMED_FIELDS.contains(&text.field));
        for (key, text) in named.filter_map(|text| Some((text.key.as_ref()?, &text.text))) {
            if asks_for_secret(key) && is_literal(text) {
                self.in_clear(text.spot, &format!("`{key}` is written in clear"));
            }
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

    /// A text under a key that asks for a secret, and has it in clear.
    pub(super) fn named_secret(&mut self, key: &Name, text: &Text) {
        if looks_like_key(&text.text) {
            self.in_clear(text.spot, "this text looks like a key");
        } else if asks_for_secret(key) && is_literal(text) {
            self.in_clear(text.spot, &format!("`{key}` is written in clear"));
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

fn is_literal(text: &Text) -> bool {
    !text.as_str().contains("{{") && !text.as_str().is_empty()
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
