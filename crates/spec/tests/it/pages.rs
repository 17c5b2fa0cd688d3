//! Every code has a page, every page is embedded, and every page begins with its code.

use std::collections::BTreeSet;
use std::path::PathBuf;

#[test]
fn every_code_has_its_page() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let on_disk: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            Some(entry.unwrap().path().file_name()?.to_str()?.strip_suffix(".md")?.to_owned())
        })
        .collect();
    let embedded: BTreeSet<String> =
        wonder_spec::explained().iter().map(|(code, _)| (*code).to_owned()).collect();
    assert_eq!(on_disk, embedded);
    let core = wonder_core::graph::codes::ALL.iter().map(|(code, _)| code.0);
    for code in wonder_spec::codes::ALL.iter().map(|code| code.0).chain(core) {
        let page = wonder_spec::explain(code).unwrap_or_else(|| panic!("{code} has no page"));
        assert!(page.starts_with(&format!("# {code}")), "{code}");
    }
}

#[test]
fn a_code_may_be_asked_for_as_it_was_printed() {
    assert!(wonder_spec::explain("[e0020]").is_some());
    assert!(wonder_spec::explain("E9999").is_none());
}
