//! What is wrong with a definition: a stable code, a place, a sentence and a way out. Never the first
//! problem only: checking collects all of them.

use std::fmt;

use crate::def::Spot;

/// A stable code such as `E0101`; `docs/errors/` has a page for each.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Code(pub &'static str);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    Error,
    Warning,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    pub code: Code,
    pub severity: Severity,
    pub spot: Spot,
    /// A part of the text at `spot`: byte offset and length, for the inside of an expression.
    pub within: Option<(usize, usize)>,
    pub message: String,
    /// What stands under the underline: what was expected.
    pub label: String,
    /// What to do now; the nearest known name is in here.
    pub help: Option<String>,
}

impl Problem {
    pub fn error(code: Code, spot: Spot, message: impl Into<String>) -> Problem {
        Problem {
            code,
            severity: Severity::Error,
            spot,
            within: None,
            message: message.into(),
            label: String::new(),
            help: None,
        }
    }

    pub fn warning(code: Code, spot: Spot, message: impl Into<String>) -> Problem {
        Problem { severity: Severity::Warning, ..Problem::error(code, spot, message) }
    }

    pub fn label(mut self, label: impl Into<String>) -> Problem {
        self.label = label.into();
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    pub fn within(mut self, offset: usize, len: usize) -> Problem {
        self.within = Some((offset, len));
        self
    }
}

/// The known name nearest to `name`, if one is near enough to be what was meant.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    let far = length / 3 + 1;
    known
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        // Where every letter was replaced, nothing of the name is left.
        .filter(|(d, _)| *d <= far && *d < length)
        .min_by(|a, b| a.0.cmp(&b.0).then(a.1.cmp(b.1)))
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace, swap of neighbours) between two names, ignoring case.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().flat_map(char::to_lowercase).collect();
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(rows[i - 2][j - 2] + 1);
            }
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_a_likely_slip_and_nothing_else() {
        assert_eq!(nearest("jugde", ["judge", "draft"]), Some("judge"));
        assert_eq!(nearest("colour", ["retry", "nodes"]), None);
        assert_eq!(nearest("x", ["a", "b"]), None);
        assert_eq!(nearest("output_maping", ["input_mapping", "output_mapping"]), Some("output_mapping"));
    }
}
