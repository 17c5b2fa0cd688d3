//! A disk that stops working for a moment, a process that is stopped, killed or loses its lock, again and again while a
//! run is under way: it goes on when the cause is gone, and nothing is lost or done twice.

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::place::{Dice, Place, attacks, preload, until};

const EFFECT: &str = r#"shell: {command: 'echo "$WONDER_IDEMPOTENCY_KEY $PPID $(date +%s%3N)" >> {{ input.log }}', timeout: 30s}"#;
const NODES: usize = 24;

fn workflow() -> String {
    let mut text = "wonder: 1\nname: faults\nnodes:\n".to_owned();
    for node in 0..NODES {
        let next = if node + 1 < NODES { format!(", next: [{{to: n{}}}]", node + 1) } else { String::new() };
        text.push_str(&format!("  n{node}: {{{EFFECT}{next}}}\n"));
    }
    text
}

/// What can go wrong. The letters are those of `preload/faults.c`.
#[derive(Clone, Copy, Debug)]
enum Fault {
    Disk(&'static str),
    Stopped,
    Killed,
    LockDeleted,
}

const FAULTS: [Fault; 6] =
    [Fault::Disk("w"), Fault::Disk("f"), Fault::Disk("s"), Fault::Stopped, Fault::Killed, Fault::LockDeleted];

struct Faulty {
    place: Place,
    owner: Child,
    said: Receiver<String>,
    deaths: usize,
}

fn signal(process: u32, name: &str) {
    let sent = std::process::Command::new("kill").args([name, &process.to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// The binary on a disk that can be made to fail; what it says can be waited for.
fn spawn(place: &Place, arguments: &[&str]) -> (Child, Receiver<String>) {
    let mut command = place.command(arguments);
    command.env("LD_PRELOAD", preload("faults")).env("WONDER_FAULTS", place.dir.path().join("fault"));
    command.stdout(std::process::Stdio::null());
    let mut owner = command.spawn().expect("the binary starts");
    let (sender, said) = channel();
    let stderr = BufReader::new(owner.stderr.take().expect("a pipe"));
    std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    (owner, said)
}

impl Faulty {
    fn new() -> Faulty {
        let place = Place::new();
        let file = place.file("faults.yaml", &workflow());
        let input = format!("log={}", place.log().display());
        let (owner, said) = spawn(&place, &["run", &file, "--input", &input]);
        until("it has begun", || place.effects() > 0);
        Faulty { place, owner, said, deaths: 0 }
    }

    fn suffer(&mut self, fault: Fault) {
        match fault {
            Fault::Disk(letter) => {
                let switch = self.place.dir.path().join("fault");
                std::fs::write(&switch, letter).expect("a switch");
                let over = |line: &String| line.contains("trying again") || line.contains("completed in");
                let told = self.said.iter().find(over);
                assert!(told.is_some(), "{fault:?}: it ended and said nothing of the disk");
                std::fs::remove_file(&switch).expect("the switch");
            }
            Fault::Stopped => {
                signal(self.owner.id(), "-STOP");
                let looked = self.place.run(&["show", "last"]);
                assert_eq!(looked.code, Some(0), "looking does not need the owner: {looked:#?}");
                signal(self.owner.id(), "-CONT");
            }
            Fault::Killed => {
                self.owner.kill().expect("it can be killed");
                self.owner.wait().expect("it ends");
                self.deaths += 1;
                (self.owner, self.said) = spawn(&self.place, &["resume", "last"]);
            }
            Fault::LockDeleted => drop(std::fs::remove_file(self.place.home().join("wonder.lock"))),
        }
    }

    fn finish(mut self, faults: &[Fault]) {
        let done = self.owner.wait().expect("it ends");
        let shown = self.place.json(&["show", "last"], 0);
        assert_eq!(shown["status"], "completed", "{faults:?}: {done:?}: {shown:#}");
        match wonder_checker::check(&self.place.database(), &self.place.log(), self.deaths) {
            Ok(summary) => assert_eq!(summary.completed, NODES, "{summary:?}"),
            Err(broken) => panic!("{faults:?}: {}", broken.join("\n")),
        }
    }
}

fn is_over(faulty: &mut Faulty) -> bool {
    faulty.owner.try_wait().expect("it can be asked").is_some()
}

fn round(dice: &mut Dice) -> Vec<Fault> {
    let mut faulty = Faulty::new();
    let mut suffered = Vec::new();
    for _ in 0..3 {
        let target = faulty.place.effects() + 1 + dice.below(NODES as u64 / 4) as usize;
        until("a moment", || faulty.place.effects() >= target || is_over(&mut faulty));
        if is_over(&mut faulty) {
            break;
        }
        let fault = FAULTS[dice.below(FAULTS.len() as u64) as usize];
        faulty.suffer(fault);
        suffered.push(fault);
    }
    faulty.finish(&suffered);
    suffered
}

/// In `make soak` for as many minutes as `WONDER_SOAK` says.
#[test]
fn whatever_goes_wrong_for_a_moment_the_run_completes() {
    let minutes = std::env::var("WONDER_SOAK").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let until = Instant::now() + Duration::from_secs(minutes * 60);
    let (mut dice, mut rounds, mut faults) = (Dice(20_261_118), 0, 0);
    while rounds < attacks(8, 8) || Instant::now() < until {
        faults += round(&mut dice).len();
        rounds += 1;
    }
    println!("{faults} faults in {rounds} runs");
}
