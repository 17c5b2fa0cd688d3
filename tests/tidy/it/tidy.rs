//! The house style, as far as a machine can read it.

use std::path::Path;

use crate::{files, read, root};

const FUNCTION_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 800;
const CORE_FILE_LINES_MAX: usize = 500;

/// Flat `match` tables and field lists, excepted by name: splitting one would hide it.
const LONG_BY_NATURE: [&str; 3] = ["apply", "describe", "name"];

#[test]
fn files_and_functions_fit_a_reader() {
    let mut long = Vec::new();
    for path in files(&root().join("crates"), "rs") {
        let text = read(&path);
        let in_core = ["core", "graph", "lang"]
            .iter()
            .any(|name| path.to_string_lossy().contains(&format!("crates/{name}/src")));
        let max = if in_core { CORE_FILE_LINES_MAX } else { FILE_LINES_MAX };
        let lines = text.lines().count();
        if lines > max {
            long.push(format!("{}: {lines} lines, at most {max}", path.display()));
        }
        long.extend(long_functions(&path, &text));
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// Functions over the limit. Reads formatted code: a body ends at the first `}` as deep as its `fn`.
fn long_functions(path: &Path, text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut long = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        // A declaration in a trait has no body.
        if line.ends_with(';') {
            continue;
        }
        let indent = line.len() - line.trim_start().len();
        let end = format!("{}}}", " ".repeat(indent));
        let Some(length) = lines[at..].iter().position(|l| *l == end) else { continue };
        if length + 1 > FUNCTION_LINES_MAX && !LONG_BY_NATURE.contains(&name) {
            long.push(format!("{}:{}: fn {name} has {} lines", path.display(), at + 1, length + 1));
        }
    }
    long
}

fn function_name(line: &str) -> Option<&str> {
    let rest = line.trim_start();
    let rest = rest.strip_prefix("pub ").unwrap_or(rest);
    let rest = rest.strip_prefix("pub(crate) ").or(rest.strip_prefix("pub(super) ")).unwrap_or(rest);
    let rest = rest.strip_prefix("const ").unwrap_or(rest);
    let name = rest.strip_prefix("fn ")?;
    name.split(['(', '<']).next()
}

#[test]
fn nothing_is_left_open() {
    // Put together here, so that this file does not find itself.
    let marks = ["TO", "FIX", "XX"].map(|half| {
        format!(
            "{half}{}",
            if half == "TO" {
                "DO"
            } else if half == "FIX" {
                "ME"
            } else {
                "X"
            }
        )
    });
    let macros = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!("));
    let ignored = format!("#[{}", "ignore");
    for path in files(&root().join("crates"), "rs") {
        let text = read(&path);
        for mark in marks.iter().chain(&macros).chain([&ignored]) {
            assert!(!text.contains(mark.as_str()), "{} has {mark}", path.display());
        }
    }
}

#[test]
fn every_module_says_what_it_is() {
    for path in files(&root().join("crates"), "rs") {
        let text = read(&path);
        assert!(text.starts_with("//!"), "{} does not begin with what it does", path.display());
    }
}

#[test]
fn the_readme_shows_both_commands_and_ci_runs_the_one() {
    let readme = read(&root().join("README.md"));
    assert!(readme.contains("make demo") && readme.contains("make test"));
    let ci = read(&root().join(".ci/run"));
    let commands: Vec<&str> = ci
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty() && !l.starts_with("set ") && !l.starts_with("cd "))
        .collect();
    assert_eq!(commands, ["exec make test"]);
}
