//! What people see: every diagnostic as a screen, every short form as what it stands for.

mod diagnostics;
mod docs;
mod forms;
mod hostile;
mod large;
mod overlay;
mod pages;
mod schema;

use std::path::PathBuf;

/// The files of a folder of this test, by name, in order.
fn files(folder: &str) -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(folder);
    let mut files: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// The problems of a text, as people see them.
fn problems(text: &str) -> String {
    match wonder_spec::read_everything(text, "test.yaml") {
        Ok(reading) => reading.warnings.render(false),
        Err(problems) => problems.render(false),
    }
}
