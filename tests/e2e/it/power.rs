//! The power goes. A run is recorded write by write (`preload/record.c`, loaded into the real binary); then the files are
//! made as they could be found after a loss of power at any moment: what was on the disk is there, of what was written
//! since then some sectors are and some are not, in any order. Every command that ran had its dispatch, and everything
//! that came before it, on the disk; and the run goes on from there to its end.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::place::{Dice, Place, attacks, ended, preload};

const SECTOR: usize = 512;
const HEAD: usize = 16;
const EFFECT: &str = r#"shell: {command: 'echo "$WONDER_IDEMPOTENCY_KEY $PPID $(date +%s%3N)" >> {{ input.log }}', timeout: 30s}"#;

fn workflow() -> String {
    let mut text = "wonder: 1\nname: power\nnodes:\n".to_owned();
    let big = "mock: {output: {text: '".to_owned() + &"x".repeat(6_000) + "'}}";
    for node in 0..8 {
        text.push_str(&format!("  a{node}: {{{EFFECT}, next: [{{to: m{node}}}]}}\n"));
        let next = if node == 3 { "ask".to_owned() } else { format!("a{}", node + 1) };
        let next = if node == 7 { String::new() } else { format!(", next: [{{to: {next}}}]") };
        text.push_str(&format!("  m{node}: {{{big}{next}}}\n"));
    }
    text.push_str("  ask: {human_gate: {title: Go on?}, next: [{to: a4}]}\n");
    text
}

/// One thing that the process asked of a file, or a command of the world.
#[derive(Debug)]
enum Record {
    Written { file: u8, place: usize, bytes: Vec<u8> },
    Cut { file: u8, length: usize },
    Synced { file: u8 },
    Deleted { file: u8 },
    Effect(Vec<u8>),
}

fn records(path: &Path) -> Vec<Record> {
    let all = std::fs::read(path).expect("a record");
    let (mut rest, mut found) = (all.as_slice(), Vec::new());
    while rest.len() >= HEAD {
        let (head, after) = rest.split_at(HEAD);
        let length = u32::from_le_bytes(head[4..8].try_into().expect("four")) as usize;
        let place = u64::from_le_bytes(head[8..16].try_into().expect("eight")) as usize;
        let (bytes, after) = after.split_at(length);
        let file = head[1];
        found.push(match head[0] {
            b'w' => Record::Written { file, place, bytes: bytes.to_vec() },
            b't' => Record::Cut { file, length: place },
            b's' => Record::Synced { file },
            b'd' => Record::Deleted { file },
            _ => Record::Effect(bytes.to_vec()),
        });
        rest = after;
    }
    found
}

/// What a file is on the disk, and what was asked of it since.
#[derive(Default)]
struct OnDisk<'r> {
    bytes: Option<Vec<u8>>,
    pending: Vec<&'r Record>,
}

impl OnDisk<'_> {
    fn settle_deletion(&mut self) {
        let deleted = self.pending.iter().rposition(|record| matches!(record, Record::Deleted { .. }));
        if let Some(at) = deleted {
            self.pending.drain(..=at);
            self.bytes = None;
        }
    }

    fn settle(&mut self, keeps: &mut dyn FnMut() -> bool) {
        for record in std::mem::take(&mut self.pending) {
            match record {
                Record::Written { place, bytes, .. } => {
                    let found = self.bytes.get_or_insert_default();
                    for (number, sector) in bytes.chunks(SECTOR).enumerate() {
                        if keeps() {
                            let from = place + number * SECTOR;
                            found.resize(found.len().max(from + sector.len()), 0);
                            found[from..from + sector.len()].copy_from_slice(sector);
                        }
                    }
                }
                Record::Cut { length, .. } if keeps() => {
                    self.bytes.get_or_insert_default().resize(*length, 0)
                }
                Record::Deleted { .. } if keeps() => self.bytes = None,
                _ => {}
            }
        }
    }
}

/// The files and effects after a loss of power behind so many records.
fn lost(records: &[Record], dice: &mut Dice) -> (BTreeMap<u8, Vec<u8>>, Vec<u8>) {
    let (mut files, mut effects): (BTreeMap<u8, OnDisk<'_>>, _) = (BTreeMap::new(), Vec::new());
    for record in records {
        match record {
            Record::Effect(bytes) => effects.extend_from_slice(bytes),
            // Of the directory: what was deleted stays so.
            Record::Synced { file: b'h' } => files.values_mut().for_each(OnDisk::settle_deletion),
            Record::Synced { file } => files.entry(*file).or_default().settle(&mut || true),
            Record::Written { file, .. } | Record::Cut { file, .. } | Record::Deleted { file } => {
                files.entry(*file).or_default().pending.push(record);
            }
        }
    }
    // A disk that keeps most, half or little of what it was not told to keep.
    let luck = [1, 4, 7][dice.below(3) as usize];
    files.values_mut().for_each(|file| file.settle(&mut || dice.below(8) < luck));
    let found = files.into_iter().filter_map(|(name, file)| Some((name, file.bytes?)));
    (found.collect(), effects)
}

struct Recording {
    place: Place,
    records: Vec<Record>,
}

/// A run with its gate answered by a second process.
fn recording() -> Recording {
    let place = Place::new();
    let file = place.file("power.yaml", &workflow());
    let (library, record) = (preload("record"), place.dir.path().join("record"));
    let input = format!("log={}", place.log().display());
    for (arguments, code) in [(&["run", &file, "--input", &input][..], 3), (&["answer", "last", "{}"], 0)] {
        let mut command = place.command(arguments);
        command.env("LD_PRELOAD", &library).env("WONDER_POWER_RECORD", &record);
        command.env("WONDER_PASS_ENV", "LD_PRELOAD,WONDER_POWER_*,WONDER_HOME");
        command.env("WONDER_POWER_EFFECTS", place.log());
        let done = ended(command.output().expect("the binary starts"));
        assert_eq!(done.code, Some(code), "{done:#?}");
    }
    let records = records(&record);
    assert_eq!(records.iter().filter(|record| matches!(record, Record::Effect(_))).count(), 8);
    Recording { place, records }
}

impl Recording {
    /// A loss of power behind so many records, and what becomes of the run. True if there was one to go on with.
    fn lose(&self, at: usize, dice: &mut Dice) -> bool {
        let home = self.place.home();
        drop(std::fs::remove_dir_all(&home));
        std::fs::create_dir(&home).expect("a home");
        std::fs::set_permissions(&home, PermissionsExt::from_mode(0o700)).expect("its permissions");
        let (files, effects) = lost(&self.records[..at], dice);
        for (name, bytes) in files {
            let name = match name {
                b'b' => "wonder.db",
                b'l' => "wonder.db-wal",
                _ => "wonder.db-journal",
            };
            std::fs::write(home.join(name), bytes).expect("a file");
        }
        std::fs::write(self.place.log(), &effects).expect("the effects");
        let listed = self.place.json(&["list"], 0);
        let Some(run) = listed.as_array().and_then(|all| all.first()) else {
            assert!(effects.is_empty(), "{at}: a command ran and its run is gone");
            return false;
        };
        self.check(at);
        if run["status"] == "running" {
            let resumed = self.place.run(&["resume", "last"]);
            assert!(matches!(resumed.code, Some(0 | 3)), "{at}: {resumed:#?}");
        }
        if self.place.json(&["show", "last"], 0)["status"] == "waiting" {
            self.place.json(&["answer", "last", "{}"], 0);
        }
        assert_eq!(self.place.json(&["show", "last"], 0)["status"], "completed", "{at}");
        self.check(at);
        true
    }

    fn check(&self, at: usize) {
        if let Err(broken) = wonder_checker::check(&self.place.database(), &self.place.log(), 1) {
            panic!("power lost behind record {at}: {}", broken.join("\n"));
        }
    }
}

#[test]
fn a_loss_of_power_takes_nothing_that_was_acknowledged() {
    let mut dice = Dice(20_261_118);
    let (many, mut gone_on) = (attacks(40, 500), 0);
    let mut recorded = recording();
    for number in 0..many {
        if number % 50 == 49 {
            recorded = recording();
        }
        let at = dice.below(recorded.records.len() as u64 + 1) as usize;
        gone_on += usize::from(recorded.lose(at, &mut dice));
    }
    println!("{many} losses of power, {gone_on} runs gone on with");
    assert!(gone_on > many / 2, "only {gone_on} had a run");
}
