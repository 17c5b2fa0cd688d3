//! Text that tasks are still producing, for whoever listens. It is no part of a run: nothing stores it, it has no
//! event and no `seq`, and it may be lost on its way. What was said in the end is in the task's result.

use serde::{Deserialize, Serialize};

/// A piece of a text, without secrets.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct TextPiece {
    pub run: String,
    pub node: String,
    pub token: u64,
    pub attempt: u32,
    pub step: String,
    /// How many tries the token had made before the one that says this: another try begins anew.
    #[serde(default)]
    pub tries_before: u32,
    /// Its place among the pieces of its attempt, from 0: one that is missing was lost.
    pub number: u64,
    pub text: String,
}

/// What came since a listener asked last.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct Heard {
    /// In order for each attempt.
    pub pieces: Vec<TextPiece>,
    /// Where the listener goes on.
    pub cursor: u64,
}
