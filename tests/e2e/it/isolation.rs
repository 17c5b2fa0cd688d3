//! A sandboxed command tries to get at the engine that started it.

use crate::place::Place;

#[test]
fn a_sandboxed_command_reaches_neither_the_owners_socket_nor_the_database() {
    let place = Place::new();
    let home = place.home();
    let try_all = "for f in wonder.sock wonder.lock wonder.db wonder.db-wal; do \
                   test -e HOME/$f && echo $f is there; done; ls -A HOME; echo tried"
        .replace("HOME", &home.to_string_lossy());
    let file = place.file(
        "escape.yaml",
        &format!(
            "wonder: 1\nname: escape\nnodes:\n  \
             free: {{shell: {{command: {try_all:?}, timeout: 20s}}, next: [{{to: kept}}]}}\n  \
             kept: {{shell: {{command: {try_all:?}, timeout: 20s, isolation: sandbox}}}}\n\
             output_mapping: {{free: state.free.stdout, kept: state.kept.stdout}}\n"
        ),
    );
    let ended = place.json(&["run", &file], 0);
    let (free, kept) = (ended["output"]["free"].as_str(), ended["output"]["kept"].as_str());
    assert!(free.unwrap_or_default().contains("wonder.sock is there"), "the attack itself works: {ended}");
    assert_eq!(kept, Some("tried\n"));
}
