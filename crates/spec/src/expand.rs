//! The stored five-layer form as text, for people who want to see what their short forms stand for.

use wonder_core::def::Bundle;

/// The bundle as JSON, which is YAML too; every default that is filled in is there, places are not.
pub fn expand(bundle: &Bundle) -> String {
    // A bundle has text keys and no number that JSON lacks, so this cannot fail; an empty text would tell.
    let mut text = serde_json::to_string_pretty(bundle).unwrap_or_default();
    text.push('\n');
    text
}

/// Reads back what [`expand`] wrote, or what a store kept.
pub fn from_stored(json: &str) -> Result<Bundle, String> {
    serde_json::from_str(json).map_err(|error| error.to_string())
}
