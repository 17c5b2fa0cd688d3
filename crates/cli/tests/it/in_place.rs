//! Gates that are asked where they are seen, on a terminal: the program runs on one of its own, and keys are pressed
//! when it asks for them.

use std::io::{Read, Write};
use std::process::{Child, Stdio};

use crate::home::Home;

const AGENT: &str = r#"
name: mend
nodes:
  fix: {workflow_call: {workflow: turns}, next: [{to: last}]}
  last: {human_gate: {title: "Which version?", form: {type: object, required: [version], properties: {version: {type: string}, final: {type: boolean}}}}}
output_mapping: {approved: state.fix, last: state.last}
---
name: turns
nodes:
  think:
    mock: {output: {tool_calls: [{id: c1, tool: write_file, arguments: {path: a.rs}}]}}
    next: [{to: approve, foreach: {items: result.tool_calls, as: call}}]
  approve:
    human_gate:
      title: "May write_file be called?"
      body: "because the test fails"
      form:
        type: object
        required: [action]
        properties:
          action: {enum: [approve, refuse, always]}
          arguments: {type: object, required: [path], properties: {path: {type: string}}}
          reason: {type: string}
    next: [{to: done, synchronization: {merge: {target: state.answers}}}]
  done: {mock: {output: {}}}
output_mapping: {answers: state.answers}
"#;

/// A program on a terminal.
struct Terminal {
    child: Child,
    seen: String,
}

impl Terminal {
    fn run(home: &Home, line: &str) -> Terminal {
        let line = format!("script -qfec 'stty cols 100 rows 30; {line}' /dev/null");
        let mut command = home.shell(&line);
        command.env("TERM", "xterm-256color").env("NO_COLOR", "1").env("EDITOR", "sh ./editor.sh");
        let child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        Terminal { child, seen: String::new() }
    }

    /// Reads until all these words have come since the last time.
    fn until(&mut self, words: &str) -> &mut Terminal {
        let mut new = Vec::new();
        let stdout = self.child.stdout.as_mut().unwrap();
        while !String::from_utf8_lossy(&new).contains(words) {
            let mut buffer = [0; 4096];
            let read = stdout.read(&mut buffer).unwrap();
            assert!(read > 0, "it never said `{words}`:\n{}\n{}", self.seen, String::from_utf8_lossy(&new));
            new.extend_from_slice(&buffer[..read]);
        }
        self.seen.push_str(&String::from_utf8_lossy(&new));
        self
    }

    fn press(&mut self, keys: &str) -> &mut Terminal {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(keys.as_bytes()).unwrap();
        stdin.flush().unwrap();
        self
    }

    /// What it left with.
    fn left(mut self) -> i32 {
        let mut rest = Vec::new();
        self.child.stdout.as_mut().unwrap().read_to_end(&mut rest).unwrap();
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

fn output(home: &Home) -> serde_json::Value {
    home.json(&["show", "last", "-o", "json"])["output"].clone()
}

#[test]
fn a_gate_is_answered_below_the_tree_and_the_run_goes_on() {
    let home = Home::with(AGENT);
    let mut terminal = Terminal::run(&home, "wonder run flow.yaml");
    terminal.until("May write_file be called?").until("y approve").press("y");
    terminal.until("Which version?").until("version:").press("1.1x\u{7f}0\n");
    terminal.until("final (y/n)").press("\n");
    terminal.until("send it?").press("\n");
    assert_eq!(terminal.left(), 0);
    let told = output(&home);
    assert_eq!(told["approved"]["answers"][0]["action"], "approve", "{told}");
    assert_eq!(told["last"], serde_json::json!({"version": "1.10"}), "{told}");
}

#[test]
fn arguments_are_edited_until_they_fit_and_a_refusal_says_why() {
    let home = Home::with(AGENT);
    home.write(
        "editor.sh",
        "n=$(cat count 2>/dev/null || echo 0); echo $((n + 1)) > count\ncase $n in\n\
        0) echo '{' > \"$1\";;\n1) echo '{\"path\": 7}' > \"$1\";;\n*) sed -i s/a.rs/b.rs/ \"$1\";;\nesac\n",
    );
    let mut terminal = Terminal::run(&home, "wonder run flow.yaml");
    terminal.until("y approve").press("e").until("not JSON").until("y approve");
    terminal.press("e").until("this does not fit").until("y approve").press("e");
    terminal.until("Which version?").until("version:").press("\u{1b}");
    assert_eq!(terminal.left(), 3, "who leaves a gate open leaves a run that waits");
    let gates = home.json(&["gates", "-o", "json"]);
    assert_eq!((gates.as_array().unwrap().len(), &gates[0]["title"]), (1, &"Which version?".into()));
    home.wonder(&["answer", "last", "version=2"]);
    let told = output(&home);
    let edited = serde_json::json!({"action": "approve", "arguments": {"path": "b.rs"}});
    assert_eq!(told["approved"]["answers"][0], edited, "{told}");

    let mut terminal = Terminal::run(&home, "wonder run flow.yaml");
    terminal.until("y approve").press("n").until("why").press("not now\n").until("version:").press("\u{4}");
    assert_eq!(terminal.left(), 3);
    home.wonder(&["answer", "last", "version=3"]);
    let refused = serde_json::json!({"action": "refuse", "reason": "not now"});
    assert_eq!(output(&home)["approved"]["answers"][0], refused);
}

#[test]
fn ctrl_c_leaves_the_gate_open_and_the_run_safe() {
    let home = Home::with(AGENT);
    let mut terminal = Terminal::run(&home, "wonder run flow.yaml");
    terminal.until("y approve").press("\u{3}");
    assert_eq!(terminal.left(), 130);
    assert_eq!(home.json(&["gates", "-o", "json"])[0]["title"], "May write_file be called?");
    // Somebody else answers while it is asked here.
    let mut terminal = Terminal::run(&home, "wonder resume last");
    terminal.until("y approve");
    let gate = home.json(&["gates", "-o", "json"])[0]["id"].as_str().unwrap().to_owned();
    let answered = home.command(&["answer", &gate, "action=always", "--detach"]).output().unwrap();
    assert!(answered.status.success(), "{answered:?}");
    terminal.until("was closed meanwhile").until("version:").press("\u{1b}");
    assert_eq!(terminal.left(), 3);
}

#[test]
fn where_nobody_can_be_asked_it_leaves_as_ever() {
    let home = Home::with(AGENT);
    let left = home.command(&["run", "flow.yaml"]).output().unwrap();
    assert_eq!(left.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&left.stderr).contains("wonder answer"), "{left:?}");
}
