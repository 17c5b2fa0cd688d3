//! `docs/models.md` shows the tables of this crate and of the codecs. `WONDER_BLESS=1` writes them there.

use std::fmt::Write;
use std::path::PathBuf;

use wonder_core::default_rules::{Happened, default_rule};
use wonder_core::graph::Response;
use wonder_models::Provider;

use crate::ask::{self, COLUMNS, FORMATS};
use crate::cases::{CASES, Case};

pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().expect("the repository")
}

#[test]
fn the_page_shows_the_tables() {
    let path = root().join("docs/models.md");
    let written = std::fs::read_to_string(&path).expect("the page");
    let mut page = written.clone();
    for (name, table) in [("providers", providers()), ("answers", answers())] {
        let (begin, end) =
            (format!("<!-- {name}: made by the test -->\n"), format!("<!-- end of {name} -->"));
        let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("the page lacks {begin}"));
        let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("the page lacks {end}"));
        page = format!("{before}{begin}\n{table}\n{end}{after}");
    }
    if std::env::var_os("WONDER_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    let now = std::fs::read_to_string(&path).expect("the page");
    assert!(
        now == page,
        "docs/models.md is out of date: `WONDER_BLESS=1 cargo test -p wonder-providers page` writes it"
    );
}

fn providers() -> String {
    let mut table =
        "| `provider` | formats, the usual one first | where | key |\n| --- | --- | --- | --- |\n".to_owned();
    for provider in Provider::ALL {
        let code = |texts: Vec<String>| match texts.is_empty() {
            true => "none".to_owned(),
            false => texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", "),
        };
        let wires = code(provider.wires().iter().map(ToString::to_string).collect());
        let keys = code(provider.key_variables().iter().map(ToString::to_string).collect());
        let place = provider.base_url().map_or("by `base_url`".to_owned(), |url| format!("`{url}`"));
        let _ = writeln!(table, "| `{provider}` | {wires} | {place} | {keys} |");
    }
    table
}

fn answers() -> String {
    let mut table = format!("| the provider answers | {} | then, by default |\n", COLUMNS.join(" | "));
    let _ = writeln!(table, "|{}", " --- |".repeat(COLUMNS.len() + 2));
    for case in &CASES {
        let cells: Vec<String> = case.maps.iter().map(|maps| maps.shown()).collect();
        let _ = writeln!(table, "| {} | {} | {} |", case.about, cells.join(" | "), then(case));
    }
    table
}

/// What is done about the failures of a case where nobody wrote anything, by the core's own word.
fn then(case: &Case) -> String {
    let graph = ask::graph(case, &FORMATS[0], "http://127.0.0.1:1");
    let node = &graph.nodes[0];
    let step = node.task().map(|task| task.steps[0].reference.clone());
    let mut all: Vec<String> = Vec::new();
    for kind in case.maps.iter().filter_map(|maps| maps.kind()) {
        let happened = Happened { kind, step: step.as_ref(), expired: false };
        let text = match default_rule(node, &happened).map(|(_, rule)| (rule.response, rule.max)) {
            None => "it fails".to_owned(),
            Some((Response::Retry, max)) => format!("`retry`, {max} times"),
            Some((Response::SwitchModel, _)) => "`switch_model`, as long as there are `fallbacks`".to_owned(),
            Some((Response::StricterPrompt { .. }, 1)) => "`stricter_prompt`, once".to_owned(),
            Some((other, max)) => panic!("{other:?}, {max} times: how does the page say that?"),
        };
        if !all.contains(&text) {
            all.push(text);
        }
    }
    if all.is_empty() { String::new() } else { all.join("; ") }
}
