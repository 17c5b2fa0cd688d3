//! Ctrl-C, and two processes with one home.

use insta::assert_snapshot;
use std::process::Child;

use crate::home::{Home, interrupt, until};

/// Goes on when the test says so, by making a file.
const HOLDS: &str = r#"
name: holds
nodes:
  hold: {shell: {command: "until test -e go; do sleep 0.02; done"}, timeout: 60s, next: [{to: end}]}
  end: {mock: {output: {over: true}}}
"#;

fn rest(home: &Home, child: Child, said: &str) -> String {
    let mut output = child.wait_with_output().unwrap();
    output.stderr = [said.as_bytes(), &output.stderr].concat();
    home.shot(&output)
}

#[test]
fn ctrl_c_leaves_a_run_that_can_be_resumed() {
    let home = Home::with(HOLDS);
    let mut child = home.start(&mut home.command(&["run", "flow.yaml"]));
    let said = until(&mut child, "hold started");
    interrupt(&child);
    assert_snapshot!("interrupted", rest(&home, child, &said));
    assert_snapshot!("watch_interrupted", home.wonder(&["watch", "last"]));
    home.write("go", "");
    assert_snapshot!("resume_interrupted", home.wonder(&["resume", "last"]));
}

#[test]
fn a_second_process_uses_the_first_and_may_leave_it() {
    let home = Home::with(HOLDS);
    home.write("quick.yaml", "wonder: 1\nname: quick\nnodes: {a: {mock: {output: {quick: true}}}}\n");
    let mut owner = home.start(&mut home.command(&["run", "flow.yaml"]));
    let said = until(&mut owner, "hold started");
    let owner_id = owner.id().to_string();

    assert_snapshot!("run_at_another", home.wonder(&["run", "quick.yaml"]));
    let detached = home.wonder(&["run", "quick.yaml", "--detach"]).replace(&owner_id, "[PID]");
    assert_snapshot!("detach_at_another", detached);

    let mut second = home.start(&mut home.command(&["run", "flow.yaml"]));
    let heard = until(&mut second, "hold started");
    interrupt(&second);
    assert_snapshot!("left_at_another", rest(&home, second, &heard).replace(&owner_id, "[PID]"));

    let mut watcher = home.start(&mut home.command(&["watch", "last"]));
    let seen = until(&mut watcher, "hold started");
    interrupt(&watcher);
    assert_snapshot!("watch_left", rest(&home, watcher, &seen));

    home.write("go", "");
    assert!(rest(&home, owner, &said).starts_with("exit 0"));
}

#[test]
fn a_run_that_somebody_pauses_leaves_when_nothing_is_out() {
    let home = Home::with(HOLDS);
    let mut child = home.start(&mut home.command(&["run", "flow.yaml"]));
    let said = until(&mut child, "hold started");
    assert_snapshot!("pause_at_another", home.wonder(&["pause", "last", "--by", "bob"]));
    let heard = until(&mut child, "paused by bob");
    home.write("go", "");
    assert_snapshot!("paused", rest(&home, child, &format!("{said}{heard}")));
    assert_snapshot!("resume_paused_by_another", home.wonder(&["resume", "last"]));
}

#[test]
fn a_run_that_somebody_cancels_leaves_as_cancelled() {
    let home = Home::with(HOLDS);
    let mut child = home.start(&mut home.command(&["run", "flow.yaml"]));
    let said = until(&mut child, "hold started");
    assert_snapshot!("cancel_at_another", home.wonder(&["cancel", "last", "--reason", "changed my mind"]));
    assert_snapshot!("cancelled", rest(&home, child, &said));
}
