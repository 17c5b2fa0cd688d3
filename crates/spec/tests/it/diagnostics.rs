//! Each file of `cases/` is wrong in the way its name says; its snapshot is the screen.

use crate::{files, problems};

#[test]
fn every_case_is_a_pleasure_to_read() {
    for (name, text) in files("cases") {
        let found = match wonder_spec::read_everything(&text, &name) {
            Ok(_) => panic!("{name} has no errors"),
            Err(problems) => problems,
        };
        insta::assert_snapshot!(name.replace('.', "_"), found.render(false));
    }
}

#[test]
fn a_screen_in_colour_says_the_same() {
    let found = wonder_spec::read("wonder: 1\nname: x\nnods: {}\n", "x.yaml").unwrap_err();
    let coloured = found.render(true);
    assert!(coloured.contains("\u{1b}[") && coloured.contains("did you mean `nodes`?"));
}

#[test]
fn programs_get_every_field() {
    let found = wonder_spec::read("wonder: 1\nname: é\nnodes: {a: {shell: ls, é: 1, next: b}}\n", "x.yaml")
        .unwrap_err();
    insta::assert_snapshot!(serde_json::to_string_pretty(&found.to_json()).unwrap());
}

#[test]
fn a_long_line_is_cut_around_the_problem() {
    let nodes: Vec<String> =
        (0..2000).map(|at| format!("\"n{at}\": {{\"mock\": {{}}, \"next\": \"n{}\"}}", at + 1)).collect();
    let text = format!("{{\"wonder\": 1, \"name\": \"x\", \"nodes\": {{{}}}}}", nodes.join(", "));
    insta::assert_snapshot!(problems(&text));
}

#[test]
fn only_so_many_are_shown() {
    let nodes: String = (0..100).map(|at| format!("  n{at}: {{mok: {{}}}}\n")).collect();
    let screen = problems(&format!("wonder: 1\nname: x\nnodes:\n{nodes}"));
    assert_eq!(screen.matches("did you mean `mock`?").count(), 50);
    assert!(screen.contains("100 errors in test.yaml (50 not shown)"), "{screen}");
}

#[test]
fn a_bad_node_hides_nothing_and_drags_nothing_along() {
    let text = "wonder: 1\nname: x\nnodes:\n  a: [1]\n  b: {mock: {}, nxt: c}\n  c: {assert: \"1 +\"}\n";
    let found = wonder_spec::read(text, "x.yaml").unwrap_err();
    let codes: Vec<&str> = found.iter().map(|problem| problem.code.0).collect();
    assert_eq!(codes, ["E0022", "E0020", "E0140"]);
}

#[test]
fn what_this_version_does_not_do_is_refused_where_it_stands() {
    let text = "wonder: 1\nname: x\ncontext_tables: true\ntriggers: [{cron: '0 3 * * *'}]\nnodes:\n  a: {workflow_call: {workflow: y, inherit_timeout: true}, next: [b]}\n  b: {llm_call: {model: m, prompt: Hello}}\nmodels: {m: {model: gpt}}\n";
    insta::assert_snapshot!(wonder_spec::read(text, "x.yaml").unwrap_err().render(false));
}

/// However long a line is, a problem in it is a screenful, and its underline stands below what it is about.
#[test]
fn a_line_of_megabytes_is_shown_through_a_window() {
    let long = "y".repeat(4 << 20);
    let cases = [
        format!("wonder: 1\nname: x\nnodes:\n  a: {{mok: \"{long}\"}}\n"),
        format!("wonder: 1\nname: x\nnodes: {{a: {{mock: {{output: \"{long}\"}}, nxt: b}}}}\n"),
        format!("wonder: 1\nname: x\nnodes: {{a: {{mock: {{}}, next: {long}}}}}\n"),
        format!("wonder: 1\nname: x\n{long}: 1\nnodes: {{a: {{mock: {{}}}}}}\n"),
        format!("wonder: 1\nname: \"{long}\n"),
    ];
    for text in cases {
        let found = wonder_spec::read(&text, "long.yaml").unwrap_err();
        let (screen, json) = (found.render(false), found.to_json().to_string());
        assert!(screen.len() < 20_000, "{} bytes", screen.len());
        assert!(json.len() < 20_000, "{} bytes", json.len());
        let lines: Vec<&str> = screen.lines().collect();
        let at = lines.iter().position(|line| line.contains("nxt: b")).unwrap_or(0);
        if at > 0 {
            let column = |line: &str, what: char| line.chars().position(|c| c == what);
            let place = lines[at].find("nxt").map(|byte| lines[at][..byte].chars().count());
            assert_eq!(column(lines[at + 1], '^'), place, "{screen}");
        }
    }
}

#[test]
fn what_a_file_holds_is_shown_and_not_obeyed() {
    let text =
        "wonder: 1\nname: x\nnodes:\n  a: {mock: {}, \"n\u{9b}xt\": \"\u{202e}b\"} # \u{1b}[31m\u{85}\n";
    insta::assert_snapshot!(problems(text));
    let name = "\u{1b}]0;x\u{7}.yaml";
    let found = wonder_spec::read(text, name).unwrap_err();
    for color in [true, false] {
        let screen = found.render(color).replace("\u{1b}[", "");
        assert!(!screen.contains(|c: char| c.is_control() && c != '\n'), "{screen:?}");
    }
    let unseen = found.to_json()[0]["message"].as_str().unwrap().to_owned();
    assert!(unseen.contains("n\u{9b}xt"), "programs get what is there: {unseen:?}");
}

#[test]
fn more_problems_than_anybody_reads_are_counted() {
    let nodes: String = (0..5_000).map(|at| format!("  n{at}: {{mok: {{}}}}\n")).collect();
    let found = wonder_spec::read(&format!("wonder: 1\nname: x\nnodes:\n{nodes}"), "x.yaml").unwrap_err();
    assert_eq!((found.iter().count(), found.len()), (wonder_spec::PROBLEMS_MAX, 5_000));
    assert!(found.summary().contains("and 4000 more in x.yaml (4950 not shown)"), "{}", found.summary());
    let json = found.to_json();
    let last = json.as_array().unwrap().last().unwrap();
    assert_eq!(last["message"], "there are 4000 more problems");
    let tags = "!a 1, ".repeat(100_000);
    let stopped = wonder_spec::read(&format!("wonder: 1\nname: x\nnodes: [{tags}]\n"), "x.yaml").unwrap_err();
    assert!(stopped.len() < 2_000, "reading stops at some point: {}", stopped.len());
}

#[test]
fn numbers_that_would_lose_digits_are_refused() {
    let value = |number: &str| {
        let text = format!("wonder: 1\nname: x\nnodes:\n  a: {{mock: {{output: {{n: {number}}}}}}}\n");
        wonder_spec::read(&text, "x.yaml").map(|_| ()).map_err(|found| found.iter().next().unwrap().code.0)
    };
    for exact in [
        "9223372036854775807",
        "-9223372036854775808",
        "1e19",
        "\"18446744073709551616\"",
        "9007199254740993",
    ] {
        assert_eq!(value(exact), Ok(()), "{exact}");
    }
    for lost in ["9223372036854775808", "-9223372036854775809", "18446744073709551616", "0xffffffffffffffff"]
    {
        assert_eq!(value(lost), Err("E0009"), "{lost}");
    }
}

#[test]
fn a_version_of_work_that_is_written_in_place_is_refused_by_its_own_name() {
    insta::assert_snapshot!(problems("wonder: 1\nname: x\nnodes:\n  a: {mock: {}, task_version: 2}\n"));
}
