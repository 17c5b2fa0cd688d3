//! A task whose effect must happen once: a host that dies in it leaves a question, not a repetition.

use crate::place::{Place, until};

const ONCE: &str = "
wonder: 1
name: pay
nodes:
  pay:
    shell: {command: 'echo \"$WONDER_IDEMPOTENCY_KEY $PPID 0\" >> {{ input.log }}; sleep {{ input.nap }}', effects: once, timeout: 2m}
    next: [{to: done}]
  done: {update_context: {set: {output.paid: 'true'}}}
";

fn killed_while_paying() -> (Place, String) {
    let place = Place::new();
    let file = place.file("pay.yaml", ONCE);
    let log = format!("log={}", place.log().display());
    let mut child = place.spawn(&["run", &file, "--input", &log, "--input", "nap=60"]);
    until("the payment to begin", || place.effects() == 1);
    child.kill().expect("it can be killed");
    child.wait().expect("it ended");
    let run = place.json(&["list"], 0)[0]["run"].as_str().expect("an id").to_owned();
    (place, run)
}

#[test]
fn a_payment_that_was_interrupted_asks() {
    let (place, run) = killed_while_paying();
    let waiting = place.json(&["resume", &run], 3);
    assert_eq!(waiting["status"], "waiting", "{waiting:#}");
    let gates = place.json(&["gates"], 0);
    assert_eq!(gates[0]["kind"], "outcome", "{gates:#}");
    assert_eq!(place.effects(), 1, "it must not run again unasked");
    let done = place.json(&["answer", &run, r#"{"action": "done", "output": {"stdout": ""}}"#], 0);
    assert_eq!(done["output"]["paid"], true);
    assert_eq!(place.effects(), 1);
}

#[test]
fn a_rule_for_every_failure_does_not_repeat_a_payment() {
    let place = Place::new();
    place.file("wonder.toml", "grace = \"100ms\"\n");
    let pay = |rule: &str| {
        ONCE.replace("timeout: 2m}", "timeout: 300ms}")
            .replace("    next:", &format!("    on_error: {rule}\n    next:"))
    };
    let log = format!("log={}", place.log().display());
    let run = |rule: &str| {
        let file = place.file("pay.yaml", &pay(rule));
        place.json(&["run", &file, "--input", &log, "--input", "nap=60"], 3)
    };
    run("{do: retry, max: 2}");
    assert_eq!(place.effects(), 1, "a rule that does not name it must not repeat it");
    assert_eq!(place.json(&["gates"], 0)[0]["kind"], "outcome");
    run("{when: \"error.kind == 'outcome_unknown'\", do: retry, max: 2, initial_delay: 10ms}");
    assert_eq!(place.effects(), 1 + 3, "a rule that names it is what the author means");
}

#[test]
fn somebody_may_say_that_it_never_happened() {
    let (place, run) = killed_while_paying();
    place.json(&["resume", &run], 3);
    let mut again = place.spawn(&["answer", &run, r#"{"action": "again"}"#]);
    until("it to run again", || place.effects() == 2);
    again.kill().expect("it can be killed");
    again.wait().expect("it ended");
    let events = place.events(&run);
    let dispatched = events.iter().filter(|event| event["kind"] == "task_dispatched").count();
    assert_eq!(dispatched, 2, "{events:#?}");
}
