//! Nothing happens twice: not what is asked of an owner that dies before it has answered, and not what a command of
//! an owner that died still does.

use std::process::Child;

use crate::place::{Ended, Place, ended, until};

/// Something that keeps its owner, an event and a person to wait for.
const LISTEN: &str = "wonder: 1\nname: listen\nnodes:\n  \
    begin: {mock: {output: {}}, fan_out: all, next: [{to: nap}, {to: hear}, {to: ask}]}\n  \
    nap: {sleep: 1h}\n  hear: {wait_event: {event: never}}\n  ask: {human_gate: {title: Go on?}}\n";

/// An owner that dies at its `count`-th commit, after it is on the disk and before anybody is told; None if it died
/// before its run was under way.
fn owner(place: &Place, count: u32) -> Option<Child> {
    let file = place.file("listen.yaml", LISTEN);
    let mut command = place.command(&["run", &file]);
    let mut owner = command.env("WONDER_FAILPOINT", format!("committed:{count}")).spawn().expect("it starts");
    let mut died = false;
    until("the run is under way", || {
        died = owner.try_wait().expect("it can be asked").is_some();
        died || place.run(&["events", "last", "-o", "json"]).out.contains("gate_opened")
    });
    (!died).then_some(owner)
}

/// Asks something of an owner that dies over each of its commits in turn: it is done once, and said to be done. How
/// often an owner died with the question in its hands.
fn asked_of_dying_owners(arguments: &[&str], kind: &str) -> u32 {
    let mut deaths = 0;
    for count in 2..12 {
        let place = Place::new();
        let Some(mut owner) = owner(&place, count) else { continue };
        let asked = place.run(arguments);
        let died = owner.try_wait().expect("it can be asked").is_some();
        deaths += u32::from(died);
        owner.kill().expect("it can be killed");
        owner.wait().expect("it ends");
        assert!(matches!(asked.code, Some(0 | 3 | 4)), "{count}: {asked:#?}");
        let events = place.events("last");
        let found = events.iter().filter(|event| event["kind"] == kind).count();
        assert_eq!(found, 1, "{count}: {arguments:?} gave {events:#?}");
        if !died {
            break;
        }
    }
    deaths
}

#[test]
fn what_is_asked_of_an_owner_that_dies_before_it_answers_is_done_once() {
    let asked: [(&[&str], &str); 3] = [
        (&["signal", "last", "news", "{\"n\": 1}", "--detach"], "event_received"),
        (&["answer", "last", "{}", "--detach"], "gate_answered"),
        (&["pause", "last"], "run_paused"),
    ];
    for (arguments, kind) in asked {
        let deaths = asked_of_dying_owners(arguments, kind);
        assert!(deaths > 0, "no owner died over {arguments:?}");
    }
}

/// Says so if a process that did this before still lives; the first one stays, and hears nothing but SIGKILL.
const STAYS: &str = r#"if [ -e pid ] && grep -q ') [^ZX]' "/proc/$(cat pid)/stat" 2>/dev/null; then echo overlap >> log; fi; echo $$ > pid; echo begun >> log; if [ ! -e go ]; then trap '' TERM; sleep 300; fi"#;

#[test]
fn a_command_of_a_dead_owner_has_ended_before_it_runs_again() {
    for isolation in ["none", "process"] {
        let place = Place::new();
        let file = place.file(
            "stays.yaml",
            &format!(
                "wonder: 1\nname: stays\nnodes:\n  stay:\n    shell:\n      isolation: {isolation}\n      \
                 timeout: 10m\n      command: |\n        {STAYS}\n"
            ),
        );
        let mut owner = place.spawn(&["run", &file]);
        let log = place.dir.path().join("log");
        until("the command runs", || std::fs::read_to_string(&log).is_ok_and(|text| text == "begun\n"));
        owner.kill().expect("it can be killed");
        owner.wait().expect("it ends");
        std::fs::write(place.dir.path().join("go"), "").expect("a file");
        let resumed: Ended = ended(place.command(&["resume", "last"]).output().expect("it starts"));
        assert_eq!(resumed.code, Some(0), "{isolation}: {resumed:#?}");
        let said = std::fs::read_to_string(&log).expect("a log");
        assert_eq!(said, "begun\nbegun\n", "{isolation}");
    }
}
