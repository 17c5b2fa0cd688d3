//! `kill -9` of a host with a run of 200 nodes, a fan-out, a child and a gate: whatever the moment, the run
//! finishes after a restart, and nothing that was completed runs again.

use std::process::Child;

use crate::place::{Dice, Ended, Place, attacks, ended, processes_of, until};

/// Says that it ran, and by whose order.
const EFFECT: &str = r#"shell: {command: 'echo "$WONDER_IDEMPOTENCY_KEY $PPID $(date +%s%3N)" >> {{ input.log }}', timeout: 30s}"#;
const NOTHING: &str = "mock: {output: {ok: true}}";
/// Commands that the whole run executes.
const EFFECTS: u64 = 17 + 40 + 3 + 17;

fn chain(prefix: &str, nodes: usize, then: &str) -> String {
    let mut text = String::new();
    for node in 0..nodes {
        let next = if node + 1 < nodes { format!("{prefix}{}", node + 1) } else { then.to_owned() };
        let next = if next.is_empty() { String::new() } else { format!(", next: [{{to: {next}}}]") };
        let act = if node % 4 == 0 { EFFECT } else { NOTHING };
        text.push_str(&format!("  {prefix}{node}: {{{act}{next}}}\n"));
    }
    text
}

/// 65 + 1 + 40 + 1 + 1 + (12 in the child) + 1 + 65 + ... nodes: about 200.
fn workflow() -> String {
    let items: Vec<String> = (0..40).map(|item| item.to_string()).collect();
    let mut text = "wonder: 1\nname: long\nnodes:\n".to_owned();
    text.push_str(&chain("a", 68, "spread"));
    text.push_str(&format!(
        "  spread: {{mock: {{output: {{}}}}, next: [{{to: work, foreach: {{items: '[{}]', as: item, max_parallel: 8}}}}]}}\n",
        items.join(", ")
    ));
    text.push_str(&format!(
        "  work: {{{EFFECT}, next: [{{to: call, synchronization: {{strategy: all, merge: \
         {{source: _branch.index, target: state.done, strategy: append}}}}}}]}}\n"
    ));
    text.push_str(
        "  call: {workflow_call: {workflow: short}, input_mapping: {log: input.log}, next: [{to: ask}]}\n",
    );
    text.push_str("  ask: {human_gate: {title: Go on?}, next: [{to: b0}]}\n");
    text.push_str(&chain("b", 68, "sum"));
    text.push_str("  sum: {update_context: {set: {output.branches: size(state.done)}}}\n");
    text.push_str("---\nwonder: 1\nname: short\nnodes:\n");
    text.push_str(&chain("c", 12, ""));
    text
}

struct Killing {
    place: Place,
    file: String,
    input: String,
}

impl Killing {
    fn new() -> Killing {
        let place = Place::new();
        let file = place.file("long.yaml", &workflow());
        let input = format!("log={}", place.log().display());
        Killing { place, file, input }
    }

    fn start(&self) -> Vec<&str> {
        vec!["run", &self.file, "--input", &self.input, "-o", "json"]
    }

    /// From wherever it stands to its end, and then the checker's word.
    fn finish(self) {
        let listed = self.place.json(&["list"], 0);
        if listed.as_array().is_none_or(Vec::is_empty) {
            // Nothing was acknowledged, nothing may have happened.
            assert_eq!(self.place.effects(), 0);
            self.expect(&self.start(), 3);
        } else if listed[0]["status"] == "running" {
            let run = listed[0]["run"].as_str().expect("an id").to_owned();
            let resumed = self.place.run(&["resume", "last", "-o", "json"]);
            let gone_on = matches!(resumed.code, Some(0 | 3));
            assert!(gone_on, "{resumed:#?}");
            assert_eq!(processes_of(&run), Vec::<String>::new());
        }
        let shown = self.place.run(&["show", "last", "-o", "json"]);
        if shown.out.contains(r#""status":"waiting""#) {
            self.expect(&["answer", "last", "{}", "-o", "json"], 0);
        }
        let shown = self.place.json(&["show", "last"], 0);
        assert_eq!(shown["status"], "completed", "{shown:#}");
        assert_eq!(shown["output"]["branches"], 40);
        match wonder_checker::check(&self.place.database(), &self.place.log(), 1) {
            Ok(summary) => assert_eq!(summary.runs, 2, "{summary:?}"),
            Err(broken) => panic!("{}", broken.join("\n")),
        }
    }

    fn expect(&self, arguments: &[&str], code: i32) {
        let ended = self.place.run(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:#?}");
    }
}

fn kill(mut child: Child) -> Ended {
    child.kill().expect("it can be killed");
    ended(child.wait_with_output().expect("it has ended"))
}

/// Killed when so many commands have run, and a little later.
fn kill_after(effects: u64, spins: u64) {
    let killing = Killing::new();
    let child = killing.place.spawn(&killing.start());
    // The gate comes after the first part; beyond it the killing goes on while it is answered.
    let first = EFFECTS - 17;
    let (child, target) = if effects < first {
        (child, effects)
    } else {
        let waiting = ended(child.wait_with_output().expect("it ends"));
        assert_eq!(waiting.code, Some(3), "{waiting:#?}");
        (killing.place.spawn(&["answer", "last", "{}", "-o", "json"]), effects)
    };
    until("the commands to run", || killing.place.effects() as u64 >= target);
    (0..spins).for_each(|_| std::hint::spin_loop());
    kill(child);
    killing.finish();
}

#[test]
fn killed_at_random_moments_it_finishes_and_repeats_nothing() {
    let mut dice = Dice(20_261_115);
    let moments: Vec<(u64, u64)> =
        (0..attacks(50, 500)).map(|_| (dice.below(EFFECTS), dice.below(3_000_000))).collect();
    let kills = moments.len();
    in_pairs(moments, |(effects, spins)| kill_after(effects, spins));
    println!("{kills} kills of one process");
}

/// Two at a time: there are two cores, and killing one host does not wait for another.
fn in_pairs<T: Send>(all: Vec<T>, act: impl Fn(T) + Sync) {
    let queue = std::sync::Mutex::new(all);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no test has failed").pop();
                    let Some(next) = next else { return };
                    act(next);
                }
            });
        }
    });
}

#[test]
fn dying_at_every_failpoint_it_finishes_and_repeats_nothing() {
    let places = ["begin", "write", "committed", "answered", "ordered"];
    let counts = [1, 2, 3, 7, 40, 90, 150];
    let all: Vec<String> =
        places.iter().flat_map(|place| counts.map(|count| format!("{place}:{count}"))).collect();
    in_pairs(all, |point| {
        let killing = Killing::new();
        let mut command = killing.place.command(&killing.start());
        let died = ended(command.env("WONDER_FAILPOINT", &point).output().expect("it starts"));
        // A point that this run does not pass so often lets it come to its gate.
        assert!(matches!(died.code, None | Some(3)), "{point}: {died:#?}");
        killing.finish();
    });
}

#[test]
fn a_host_that_dies_takes_its_commands_with_it() {
    let place = Place::new();
    let file = place.file(
        "sleeper.yaml",
        "wonder: 1\nname: sleeper\nnodes:\n  nap: {shell: {command: 'sleep 300 & sleep 300', timeout: 10m}}\n",
    );
    let child = place.spawn(&["run", &file]);
    let run = || place.json(&["list"], 0)[0]["run"].as_str().map(str::to_owned);
    until("the run to be there", || run().is_some());
    let run = run().expect("it is there");
    until("both sleeps to run", || {
        processes_of(&run).iter().filter(|line| line.starts_with("sleep")).count() == 2
    });
    kill(child);
    until("the orphans to end", || processes_of(&run).is_empty());
}
