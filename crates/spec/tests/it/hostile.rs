//! Whatever the bytes, there is an answer and no panic.

use proptest::prelude::*;
use wonder_spec::read_everything as read;

use crate::{files, problems};

fn must_not_panic(text: &str) {
    let (problems, graphs) = match read(text, "hostile.yaml") {
        Ok(reading) => (reading.warnings, reading.graphs),
        Err(problems) => (problems, Vec::new()),
    };
    let _ = (problems.render(false), problems.to_json());
    for graph in graphs {
        let _ = (wonder_spec::mermaid(&graph), wonder_spec::dot(&graph), wonder_spec::expand(&graph.bundle));
    }
}

/// A good file with a few pieces cut out, doubled or replaced.
fn mutated() -> impl Strategy<Value = String> {
    let texts: Vec<String> = files("good").into_iter().chain(files("cases")).map(|(_, text)| text).collect();
    let pieces = prop::sample::select(vec![
        "",
        "{",
        "}",
        "[",
        "]",
        ":",
        ": ",
        "\n",
        "  ",
        "\t",
        "- ",
        "\"",
        "'",
        "|",
        ">",
        "&a ",
        "*a",
        "!!int ",
        "!x ",
        "#",
        "null",
        "-1",
        "1e999",
        "0",
        ".nan",
        "{{",
        "}}",
        "é",
        "😀",
        "\\ud83d",
        "\\ud83d\\ude00",
        "---\n",
        "...\n",
        "<<: ",
        "? ",
        "%TAG",
        "\u{feff}",
        "\r",
        "\u{85}",
        "\u{2028}",
        "99999999999999999999",
    ]);
    let edits = prop::collection::vec((any::<prop::sample::Index>(), 0usize..40, pieces), 1..6);
    (prop::sample::select(texts), edits).prop_map(|(mut text, edits)| {
        for (at, len, piece) in edits {
            let start = text.floor_char_boundary(at.index(text.len() + 1));
            let end = text.floor_char_boundary((start + len).min(text.len())).max(start);
            text.replace_range(start..end, piece);
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        must_not_panic(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn yaml_like_text(text in "([a-c]|[{}\\[\\]:,&*!|>'\"#?%@`-]|[ \t\r\n\u{0}\u{85}\u{feff}]|wonder: 1\n|nodes:|é|😀){0,60}") {
        must_not_panic(&text);
    }

    #[test]
    fn a_good_file_gone_wrong(text in mutated()) {
        must_not_panic(&text);
    }
}

#[test]
fn depth_is_bounded_however_it_is_written() {
    for text in ["[".repeat(100_000), "- ".repeat(100_000), "{a: ".repeat(100_000), "a:\n".repeat(3)] {
        must_not_panic(&text);
    }
    assert!(problems(&format!("a: {}1{}", "[".repeat(80), "]".repeat(80))).contains("E0003"));
    let deep =
        format!("a: &a {}1{}\nb: {}*a{}", "[".repeat(40), "]".repeat(40), "[".repeat(40), "]".repeat(40));
    assert!(problems(&deep).contains("E0003"));
}

#[test]
fn aliases_within_bounds_work() {
    let text = "wonder: 1\nname: x\nnodes:\n  a: {mock: &m {output: 1}, next: b}\n  b: {mock: *m}\n";
    let reading = read(text, "x.yaml").unwrap();
    let actions = &reading.bundles[0].actions;
    assert_eq!(actions["node:a"].implementation, actions["node:b"].implementation);
}

#[test]
fn the_texts_people_get_wrong() {
    for (name, text) in [
        ("template_without_quotes", "wonder: 1\nname: x\nnodes:\n  a: {llm_call: {prompt: {{ input.q }}}}\n"),
        (
            "template_with_text_without_quotes",
            "wonder: 1\nname: x\nnodes:\n  a:\n    shell: {{ input.q }} | sort\n",
        ),
        ("colon_in_text", "wonder: 1\nname: x\ndescription: a: b\n"),
        ("tab_indent", "wonder: 1\nname: x\nnodes:\n\ta: {mock: {}}\n"),
        ("open_list", "wonder: 1\ntags: [a, b\nname: x\n"),
        ("open_quote", "wonder: 1\nname: \"x\nnodes: {}\n"),
        ("bad_indent", "wonder: 1\nname: x\n nodes: {}\n"),
        ("at_sign", "wonder: 1\nname: x\ndescription: @home\n"),
        ("surrogates_in_yaml", "wonder: 1\nname: x\ndescription: \"\\ud83d\\ude00\"\n"),
        ("merge_key", "wonder: 1\nname: x\nbase: &b {mock: {}}\nnodes:\n  a: {<<: *b}\n"),
        ("no_format", "name: x\nnodes: {a: {mock: {}}}\n"),
        ("format_not_first", "name: x\nwonder: 1\nnodes: {a: {mock: {}}}\n"),
        ("wrong_format", "wonder: 2\nname: x\nnodes: {a: {mock: {}}}\n"),
        ("empty", "# nothing yet\n"),
        ("a_list", "- wonder: 1\n"),
        ("unknown_kind", "wonder: 1\nkind: taks\nname: x\n"),
        ("nothing_tells", "wonder: 1\nname: x\n"),
        (
            "graph_and_dag",
            "wonder: 1\nname: x\nnodes:\n  a: {mock: {}, next: b}\n  b: {mock: {}, needs: [a]}\n",
        ),
        ("two_names", "wonder: 1\nname: x\nnodes: {a: {mock: {}}}\n---\nname: x\nnodes: {a: {mock: {}}}\n"),
        ("both_durations", "wonder: 1\nname: x\ntimeout: 5m\ntimeout_ms: 3\nnodes: {a: {mock: {}}}\n"),
        ("key_of_another", "wonder: 1\nname: x\nnodes: {a: {mock: {}, spawn_count: 3}}\n"),
        ("yes_is_a_word", "wonder: 1\nname: x\ncontext_tables: yes\nnodes: {a: {mock: {}}}\n"),
        (
            "responses",
            "wonder: 1\nname: x\nnodes:\n  a:\n    mock: {}\n    on_error:\n      - do: goto\n      - {do: retry, to: a}\n      - {do: {skip: {}}, output: 1}\n      - {do: retri}\n      - {max: 1}\n",
        ),
        (
            "block_text",
            "wonder: 1\nname: x\nnodes:\n  a:\n    llm_call:\n      timeout: 1m\n      prompt: |\n        Dear model,\n        {{ inptu.question }}\n        answer: yes\n",
        ),
    ] {
        insta::assert_snapshot!(name, problems(text));
    }
}
