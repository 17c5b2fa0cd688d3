//! What is wrong with a request before it is sent: where, what, and what to do.

use std::fmt;

/// A request that no provider should see. Nothing was sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// The field, as people write it: `messages[2].content[0]`.
    pub place: String,
    /// What is wrong there and what to do about it.
    pub message: String,
}

impl Problem {
    pub fn new(place: impl Into<String>, message: impl Into<String>) -> Problem {
        Problem { place: place.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for Problem {}
