//! Six processes on one home, each of them killed with `kill -9` at any moment and replaced: what was acknowledged is
//! there, once; nothing that was completed runs again; and no command runs while an earlier one of its key lives.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::place::{Dice, Place, attacks, until};

const PROCESSES: usize = 6;
const KILLS_A_ROUND: usize = 10;
const RUNS: usize = 5;

/// Says that it ran and by whose order; and says so if another one of the same key runs meanwhile. It takes a moment
/// and does not hear SIGTERM, so that it outlives its owner if it can.
const EFFECT: &str = r#"shell: {timeout: 1m, command: 'trap "" TERM; exec 9>>"$(echo {{ input.log }}.$WONDER_IDEMPOTENCY_KEY | tr / -)"; flock -n 9 || echo "$WONDER_IDEMPOTENCY_KEY" >> {{ input.log }}.overlap; echo "$WONDER_IDEMPOTENCY_KEY $PPID $(date +%s%3N)" >> {{ input.log }}; sleep 0.0{{ input.n }}'}"#;

fn workflow() -> String {
    let mut text = "wonder: 1\nname: siege\nnodes:\n".to_owned();
    for node in 0..6 {
        text.push_str(&format!("  a{node}: {{{EFFECT}, next: [{{to: a{}}}]}}\n", node + 1));
    }
    text.push_str("  a6: {human_gate: {title: Go on?}, next: [{to: b0}]}\n");
    for node in 0..6 {
        text.push_str(&format!("  b{node}: {{{EFFECT}, next: [{{to: b{}}}]}}\n", node + 1));
    }
    text.push_str("  b6: {update_context: {set: {output.done: 'true'}}}\n");
    text
}

struct Siege {
    place: Place,
    file: String,
    dice: Dice,
    /// What each process does; a signal has its number and is acknowledged if it ends well.
    slots: Vec<Option<(Child, Option<u64>)>>,
    started: usize,
    signals: u64,
    acknowledged: BTreeSet<u64>,
}

impl Siege {
    fn new(seed: u64) -> Siege {
        let place = Place::new();
        let file = place.file("siege.yaml", &workflow());
        let slots = (0..PROCESSES).map(|_| None).collect();
        Siege { place, file, dice: Dice(seed), slots, started: 0, signals: 0, acknowledged: BTreeSet::new() }
    }

    fn runs(&self) -> Vec<Value> {
        self.place.json(&["list", "--limit", "100"], 0).as_array().cloned().unwrap_or_default()
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        let mut command = self.place.command(arguments);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command.spawn().expect("the binary starts")
    }

    /// Something that people do, chosen by the dice.
    fn act(&mut self) -> (Child, Option<u64>) {
        let runs = self.runs();
        if self.started < RUNS && (runs.is_empty() || self.dice.below(2) == 0) {
            self.started += 1;
            let (log, n) =
                (format!("log={}", self.place.log().display()), format!("n={}", self.dice.below(9)));
            return (self.spawn(&["run", &self.file, "--input", &log, "--input", &n]), None);
        }
        let Some(run) = runs.get(self.dice.below(runs.len() as u64) as usize) else {
            return (self.spawn(&["list"]), None);
        };
        let run = run["run"].as_str().expect("an id").to_owned();
        match self.dice.below(3) {
            0 => (self.spawn(&["resume", &run]), None),
            1 => (self.spawn(&["answer", &run, "{}"]), None),
            _ => {
                self.signals += 1;
                let payload = self.signals.to_string();
                (self.spawn(&["signal", &run, "news", &payload, "--detach"]), Some(self.signals))
            }
        }
    }

    /// Processes that have ended are replaced, and what they acknowledged is remembered.
    fn replace_ended(&mut self) {
        for slot in 0..PROCESSES {
            if let Some((child, signal)) = &mut self.slots[slot] {
                match (child.try_wait().expect("it can be asked"), &signal) {
                    (None, _) => continue,
                    (Some(status), Some(number)) if status.success() => {
                        self.acknowledged.insert(*number);
                    }
                    _ => {}
                }
            }
            let next = self.act();
            self.slots[slot] = Some(next);
        }
    }

    fn kill_one(&mut self) {
        let slot = self.dice.below(PROCESSES as u64) as usize;
        if let Some((mut child, _)) = self.slots[slot].take() {
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
        }
    }

    fn finish(mut self) -> BTreeMap<&'static str, usize> {
        for (mut child, _) in self.slots.drain(..).flatten() {
            child.kill().expect("it can be killed");
            child.wait().expect("it ends");
        }
        until("all runs to complete", || {
            let open: Vec<Value> =
                self.runs().into_iter().filter(|run| run["status"] != "completed").collect();
            for run in &open {
                let id = run["run"].as_str().expect("an id");
                let verb: &[&str] =
                    if run["status"] == "waiting" { &["answer", id, "{}"] } else { &["resume", id] };
                let ended = self.place.run(verb);
                assert!(matches!(ended.code, Some(0 | 3)), "{verb:?}: {ended:#?}");
            }
            open.is_empty()
        });
        self.check()
    }

    fn check(&self) -> BTreeMap<&'static str, usize> {
        let mut received: BTreeMap<u64, usize> = BTreeMap::new();
        for run in self.runs() {
            let events = self.place.events(run["run"].as_str().expect("an id"));
            let of = |kind: &str| events.iter().filter(|event| event["kind"] == kind).collect::<Vec<_>>();
            assert_eq!(of("gate_answered").len(), 1, "{events:#?}");
            for event in of("event_received") {
                *received.entry(event["payload"].as_u64().expect("a number")).or_default() += 1;
            }
        }
        assert!(received.values().all(|times| *times == 1), "delivered twice: {received:?}");
        let lost: Vec<_> = self.acknowledged.iter().filter(|number| !received.contains_key(number)).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        let overlap = std::fs::read_to_string(format!("{}.overlap", self.place.log().display()));
        assert!(overlap.is_err(), "two at once: {overlap:?}");
        match wonder_checker::check(&self.place.database(), &self.place.log(), KILLS_A_ROUND + PROCESSES) {
            Ok(summary) => BTreeMap::from([
                ("runs", summary.runs),
                ("executions", summary.executions),
                ("repeated after a kill", summary.repeated),
                ("signals acknowledged", self.acknowledged.len()),
            ]),
            Err(broken) => panic!("{}", broken.join("\n")),
        }
    }
}

fn round(seed: u64) -> BTreeMap<&'static str, usize> {
    let mut siege = Siege::new(seed);
    for _ in 0..KILLS_A_ROUND {
        siege.replace_ended();
        let next = Instant::now() + Duration::from_millis(siege.dice.below(60));
        while Instant::now() < next {
            siege.replace_ended();
        }
        siege.kill_one();
    }
    siege.finish()
}

#[test]
fn six_processes_that_are_killed_lose_nothing_and_do_nothing_twice() {
    let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
    let rounds = attacks(4, 50);
    for number in 0..rounds {
        for (what, count) in round(20_261_118 + number as u64) {
            *sums.entry(what).or_default() += count;
        }
    }
    println!("{} kills of {PROCESSES} processes: {sums:?}", rounds * KILLS_A_ROUND);
}
