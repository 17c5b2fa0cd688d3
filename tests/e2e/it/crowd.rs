//! Many processes, one database.

use std::process::Child;

use crate::place::{Place, ended, until};

const STEPS: &str = "
wonder: 1
name: steps
nodes:
  a: {shell: {command: 'echo a', timeout: 30s}, next: [{to: b}]}
  b: {mock: {output: {}, delay: 20ms}, next: [{to: c}]}
  c: {sleep: {for: 30ms}, next: [{to: d}]}
  d: {shell: {command: ['echo', '{{ input.n }}'], timeout: 30s}, output_mapping: {output.said: result.stdout}}
";

#[test]
fn twenty_runs_at_once_all_succeed() {
    let place = Place::new();
    let file = place.file("steps.yaml", STEPS);
    let start = |n: usize| -> Child { place.spawn(&["run", &file, "--input", &format!("n=number-{n}")]) };
    let children: Vec<Child> = (0..20).map(start).collect();
    for (n, child) in children.into_iter().enumerate() {
        let ended = ended(child.wait_with_output().expect("it ends"));
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        assert!(ended.out.contains(&format!("number-{n}")), "{ended:#?}");
        assert!(!ended.err.contains("locked"), "{ended:#?}");
    }
    let listed = place.json(&["list", "--limit", "100"], 0);
    let listed = listed.as_array().expect("a list");
    assert_eq!(listed.len(), 20);
    assert!(listed.iter().all(|run| run["status"] == "completed"), "{listed:#?}");
}

#[test]
fn looking_while_somebody_else_runs_is_never_refused() {
    let place = Place::new();
    let file = place.file(
        "busy.yaml",
        "wonder: 1\nname: busy\nnodes:\n  a: {mock: {output: {}, delay: 5ms}, next: [{to: a, max_iterations: 100}, {to: b}]}\n  b: {mock: {output: {}}}\n",
    );
    let mut child = place.spawn(&["run", &file]);
    let mut looks = 0;
    while child.try_wait().expect("it can be asked").is_none() {
        for verb in [&["list"][..], &["gates"], &["list", "--all"]] {
            let ended = place.run(verb);
            assert_eq!(ended.code, Some(0), "{ended:#?}");
            assert!(!ended.err.contains("locked"), "{ended:#?}");
            looks += 1;
        }
    }
    assert!(looks > 3, "there was time to look {looks} times only");
    assert_eq!(child.wait().expect("it ended").code(), Some(0));
}

#[test]
fn the_owner_may_leave_or_die_while_others_work() {
    let place = Place::new();
    let short = place.file(
        "short.yaml",
        "wonder: 1\nname: short\nnodes:\n  a: {shell: {command: 'sleep 60', timeout: 2m}}\n",
    );
    let long = place.file(
        "long.yaml",
        "wonder: 1\nname: long\nnodes:\n  a: {mock: {output: {}, delay: 20ms}, next: [{to: a, max_iterations: 60}, {to: b}]}\n  b: {mock: {output: {done: true}}}\n",
    );
    let mut owner = place.spawn(&["run", &short]);
    until("the owner to own", || place.json(&["list"], 0)[0]["driven"] == true);
    let others: Vec<Child> = (0..3).map(|_| place.spawn(&["run", &long])).collect();
    until("the others to have begun", || {
        place.json(&["list"], 0).as_array().is_some_and(|all| all.len() == 4)
    });
    owner.kill().expect("it can be killed");
    owner.wait().expect("it ended");
    for other in others {
        let ended = ended(other.wait_with_output().expect("it ends"));
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        assert_eq!(ended.out.trim(), r#"{"done":true}"#);
    }
    let left = place.json(&["list", "--workflow", "short"], 0);
    assert_eq!((&left[0]["status"], &left[0]["driven"]), (&"running".into(), &false.into()));
}
