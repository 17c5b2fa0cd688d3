//! What people see: every diagnostic as a screen, every short form as what it stands for.

mod beginners;
mod called;
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

/// The files beside another.
struct Beside;

impl wonder_spec::Files for Beside {
    fn open(&self, path: &str, from: &str) -> Result<wonder_spec::FileText, String> {
        let path = std::path::Path::new(from).parent().unwrap_or(std::path::Path::new("")).join(path);
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        Ok(wonder_spec::FileText { name: path.display().to_string(), text })
    }
}

/// Reads all of the format, and the files that are called.
fn read_here(text: &str, name: &str) -> Result<wonder_spec::Reading, wonder_spec::Diagnostics> {
    let library = wonder_spec::Library::default();
    let around = wonder_spec::Around { library: &library, files: &Beside, everything: true, unable: None };
    wonder_spec::read_files(
        vec![wonder_spec::FileText { name: name.to_owned(), text: text.to_owned() }],
        &around,
    )
}
