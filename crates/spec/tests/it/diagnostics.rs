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
    let text = "wonder: 1\nname: x\ncontext_tables: true\ntriggers: [{cron: '0 3 * * *'}]\nnodes:\n  a: {workflow_call: {workflow: y, inherit_artifacts: true}, next: [b]}\n  b: {llm_call: {model: m, prompt: Hello}}\nmodels: {m: {model: gpt}}\n";
    insta::assert_snapshot!(wonder_spec::read(text, "x.yaml").unwrap_err().render(false));
}
