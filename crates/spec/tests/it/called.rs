//! Workflows in other files: read, checked and named; a circle or a missing file is said where it is called.

use std::collections::BTreeMap;

use wonder_spec::{Around, Diagnostics, FileText, Files, Library, Reading, read_files};

/// Files by name, all in one folder.
struct Shelf(BTreeMap<&'static str, &'static str>);

impl Files for Shelf {
    fn open(&self, path: &str, _from: &str) -> Result<FileText, String> {
        let name = path.trim_start_matches("./");
        let text = self.0.get(name).ok_or("No such file or directory")?;
        Ok(FileText { name: name.to_owned(), text: (*text).to_owned() })
    }
}

fn read(files: &[(&'static str, &'static str)], given: &[&str]) -> Result<Reading, Diagnostics> {
    let shelf = Shelf(files.iter().copied().collect());
    let given = given.iter().map(|name| shelf.open(name, "").unwrap()).collect();
    let around = Around { library: &Library::default(), files: &shelf, everything: false, unable: None };
    read_files(given, &around)
}

const MAIN: &str = "wonder: 1\nname: main\nnodes:\n  a: {workflow_call: {file: ./greet.yaml}}\n";
const GREET: &str = "wonder: 1\nname: greet\nnodes: {hi: {mock: {output: {v: 1}}}}\n";

fn codes(problems: &Diagnostics) -> Vec<&'static str> {
    problems.iter().map(|problem| problem.code.0).collect()
}

#[test]
fn a_called_file_brings_its_workflows() {
    let reading = read(&[("main.yaml", MAIN), ("greet.yaml", GREET)], &["main.yaml"]).unwrap();
    let names: Vec<&str> = reading.bundles.iter().map(|bundle| bundle.workflow.name.as_str()).collect();
    assert_eq!(names, ["main", "greet"]);
    assert!(wonder_spec::stored(&reading.bundles[0]).contains("\"workflow\": \"greet\""));
    // By its name, with both on the command line, or one of several in the file.
    let by_name = "wonder: 1\nname: main\nnodes:\n  a: {workflow_call: greet}\n";
    assert_eq!(
        read(&[("m.yaml", by_name), ("greet.yaml", GREET)], &["m.yaml", "greet.yaml"]).unwrap().graphs.len(),
        2
    );
    let which = "wonder: 1\nname: main\nnodes:\n  a: {workflow_call: {file: two.yaml, workflow: late}}\n";
    let two = "wonder: 1\nname: early\nnodes: {hi: {mock: {}}}\n---\nname: late\nnodes: {hi: {mock: {}}}\n";
    let reading = read(&[("m.yaml", which), ("two.yaml", two)], &["m.yaml"]).unwrap();
    assert!(wonder_spec::stored(&reading.bundles[0]).contains("\"workflow\": \"late\""));
}

#[test]
fn what_is_wrong_is_said_where_it_stands() {
    let unknown = "wonder: 1\nname: main\nnodes:\n  a: {workflow_call: gret}\n  b: {workflow_call: \"{{ input.which }}\", needs: [a]}\n";
    let found = read(&[("m.yaml", unknown), ("greet.yaml", GREET)], &["m.yaml", "greet.yaml"]).unwrap_err();
    assert_eq!(codes(&found), ["E0034"]);
    assert!(found.render(false).contains("did you mean `greet`?"), "{found}");
    let found = read(&[("main.yaml", MAIN)], &["main.yaml"]).unwrap_err();
    assert_eq!(codes(&found), ["E0035"]);
    assert_eq!(found.text_at(found.iter().next().unwrap()), "./greet.yaml");
    let task = "wonder: 1\nname: t\nsteps: [{mock: {}}]\n";
    assert_eq!(
        codes(&read(&[("main.yaml", MAIN), ("greet.yaml", task)], &["main.yaml"]).unwrap_err()),
        ["E0035"]
    );
    let twice = "wonder: 1\nname: greet\nnodes: {hi: {mock: {}}}\n";
    let found =
        read(&[("main.yaml", MAIN), ("greet.yaml", GREET), ("o.yaml", twice)], &["main.yaml", "o.yaml"]);
    assert_eq!(codes(&found.unwrap_err()), ["E0030"]);
    let none = wonder_spec::read(MAIN, "main.yaml").unwrap_err();
    assert_eq!(codes(&none), ["E0035"]);
}

#[test]
fn files_that_call_each_other_are_refused() {
    let back = "wonder: 1\nname: greet\nnodes:\n  hi: {workflow_call: {file: main.yaml}}\n";
    let found = read(&[("main.yaml", MAIN), ("greet.yaml", back)], &["main.yaml"]).unwrap_err();
    insta::assert_snapshot!("circle_of_files", found.render(false));
    let own = "wonder: 1\nname: main\nnodes:\n  a: {workflow_call: {file: main.yaml}}\n";
    assert_eq!(codes(&read(&[("main.yaml", own)], &["main.yaml"]).unwrap_err()), ["E0036"]);
    // By name, in one file, a workflow may call itself: the depth is bounded in the run.
    assert!(
        wonder_spec::read("wonder: 1\nname: main\nnodes:\n  a: {workflow_call: main}\n", "m.yaml").is_ok()
    );
}

#[test]
fn a_problem_in_a_called_file_shows_that_file() {
    let bad = "wonder: 1\nname: greet\nnodes:\n  hi: {shel: echo hi}\n";
    let found = read(&[("main.yaml", MAIN), ("greet.yaml", bad)], &["main.yaml"]).unwrap_err();
    insta::assert_snapshot!("problem_in_a_called_file", found.render(false));
    assert_eq!(found.to_json()[0]["file"], "greet.yaml");
}

#[test]
fn what_nobody_here_performs_is_said_before_the_run() {
    let text = "wonder: 1\nname: x\nnodes:\n  a: {shell: {command: ls, isolation: sandbox, timeout: 5s}}\n";
    let unable = |action: &wonder_core::def::Implementation| {
        (action.kind() == "shell")
            .then(|| wonder_spec::Unable { why: "no sandbox".into(), help: "install one".into() })
    };
    let library = Library::default();
    let around =
        Around { library: &library, files: &wonder_spec::NoFiles, everything: false, unable: Some(&unable) };
    let file = FileText { name: "x.yaml".to_owned(), text: text.to_owned() };
    assert_eq!(codes(&read_files(vec![file], &around).unwrap_err()), ["E0039"]);
}
