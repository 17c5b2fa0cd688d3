//! The coordinator from outside: the stored format, what travels, what a worker is given.
#![expect(clippy::disallowed_methods, reason = "these tests read files; the core does not")]

mod golden;
mod holding;
mod model_calls;

use std::path::{Path, PathBuf};

/// The root of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
