//! What can be wrong with a disk: each is said clearly, exits with 7, and takes nothing with it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::{Ended, Place, binary, ended};

const ONE: &str = "wonder: 1\nname: one\nnodes:\n  one: {mock: {output: {n: 1}}}\n";

fn refused(ended: &Ended, words: &[&str]) {
    assert_eq!(ended.code, Some(7), "{ended:#?}");
    for word in words {
        assert!(ended.err.contains(word), "no {word:?} in {ended:#?}");
    }
    assert!(!ended.err.contains("panicked"), "{ended:#?}");
}

fn with_a_run() -> (Place, String) {
    let place = Place::new();
    let file = place.file("one.yaml", ONE);
    assert_eq!(place.run(&["run", &file]).code, Some(0));
    (place, file)
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let (place, file) = with_a_run();
    let garbage = b"this is not a database, but it is somebody's".repeat(200);
    for leftover in ["wonder.db-wal", "wonder.db-shm"] {
        drop(std::fs::remove_file(place.home().join(leftover)));
    }
    std::fs::write(place.database(), &garbage).expect("garbage");
    for verb in [&["run", &*file][..], &["list"], &["show", "last"], &["gates"]] {
        refused(&place.run(verb), &["wonder.db", "damaged", "help"]);
    }
    assert_eq!(std::fs::read(place.database()).expect("it is there"), garbage);
}

#[test]
fn a_torn_page_is_found_and_said() {
    let (place, file) = with_a_run();
    let mut bytes = std::fs::read(place.database()).expect("a database");
    let length = bytes.len();
    bytes[4096..length].fill(0x5a);
    std::fs::write(place.database(), &bytes).expect("a torn database");
    refused(&place.run(&["run", &file]), &["wonder.db", "damaged"]);
}

#[test]
fn a_database_of_a_newer_version_is_left_alone() {
    let (place, file) = with_a_run();
    let connection = rusqlite::Connection::open(place.database()).expect("a database");
    connection.pragma_update(None, "user_version", 9_999).expect("a newer one");
    drop(connection);
    for verb in [&["run", &*file][..], &["list"]] {
        refused(&place.run(verb), &["newer version", "9999", "WONDER_HOME"]);
    }
}

#[test]
fn somebody_elses_database_is_left_alone() {
    let place = Place::new();
    std::fs::create_dir(place.home()).expect("a directory");
    let connection = rusqlite::Connection::open(place.database()).expect("a database");
    connection.execute_batch("CREATE TABLE theirs (x)").expect("a table");
    drop(connection);
    let file = place.file("one.yaml", ONE);
    refused(&place.run(&["run", &file]), &["not one of wonder's"]);
}

/// As a user who may not write: root may do everything.
#[test]
fn a_directory_that_cannot_be_written_is_said() {
    let place = Place::new();
    let file = place.file("one.yaml", ONE);
    let copy = place.dir.path().join("wonder-copy");
    std::fs::copy(binary(), &copy).expect("a copy that anybody may run");
    let shown = Command::new("chmod").arg("-R").arg("a+rX").arg(place.dir.path()).status();
    assert!(shown.expect("chmod runs").success());
    let command =
        format!("HOME=/nowhere WONDER_HOME={} {} run {file}", place.home().display(), copy.display());
    let ended = ended(as_nobody(&command).output().expect("it starts"));
    refused(&ended, &["home", "WONDER_HOME"]);
}

fn as_nobody(command: &str) -> Command {
    let mut made = Command::new("setpriv");
    made.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", command]);
    made
}

/// A disk of one megabyte.
struct Disk<'p>(&'p Path);

fn mount(path: &Path) {
    std::fs::create_dir_all(path).expect("a place for it");
    let mounted =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs"]).arg(path).status();
    assert!(mounted.expect("mount runs").success(), "a small disk cannot be had here");
}

impl Drop for Disk<'_> {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.0).status());
    }
}

/// Fills the disk, bit by bit.
const GROW: &str = "wonder: 1\nname: grow\nnodes:\n  \
    fill: {shell: {command: 'head -c 60000 /dev/urandom | base64 -w 0', timeout: 30s}, next: [{to: fill, max_iterations: 6}, {to: done}]}\n  \
    done: {update_context: {set: {output.done: 'true'}}}\n";

/// A home on a small disk, half of which a stone takes. Whoever asks for it takes the disk away at the end.
fn nearly_full() -> (Place, PathBuf) {
    let place = Place::new();
    let home = place.home();
    mount(&home);
    std::fs::write(home.join("stone"), vec![0; 450 << 10]).expect("something that takes room");
    (place, home)
}

/// Each of seven fillings once, and the end.
fn is_whole(place: &Place) {
    let events = place.events("last");
    let completed = events.iter().filter(|event| event["kind"] == "task_completed").count();
    assert_eq!(completed, 8, "{events:#?}");
}

#[test]
fn a_full_disk_loses_nothing_and_the_run_can_be_resumed_when_there_is_room() {
    let (place, home) = nearly_full();
    let disk = Disk(&home);
    let (file, stone) = (place.file("grow.yaml", GROW), home.join("stone"));
    let mut command = place.command(&["run", &file]);
    let full = ended(command.env("WONDER_STORAGE_PATIENCE", "100ms").output().expect("it starts"));
    refused(&full, &["trying again", "the disk is full", "wonder resume"]);
    std::fs::remove_file(&stone).expect("room");
    let done = place.json(&["resume", "last"], 0);
    assert_eq!(done["output"]["done"], true);
    is_whole(&place);
    drop(disk);
}

#[test]
fn a_run_goes_on_by_itself_when_there_is_room_again() {
    let (place, home) = nearly_full();
    let disk = Disk(&home);
    let (file, stone) = (place.file("grow.yaml", GROW), home.join("stone"));
    let mut owner = place.spawn(&["run", &file]);
    let mut said = BufReader::new(owner.stderr.take().expect("a pipe")).lines();
    let full = said.by_ref().map_while(Result::ok).find(|line| line.contains("trying again"));
    assert!(full.is_some_and(|line| line.contains("the disk is full")), "it says what it waits for");
    // What is stored can be looked at meanwhile.
    assert_eq!(place.run(&["show", "last"]).code, Some(0));
    std::fs::remove_file(&stone).expect("room");
    drop(said.by_ref().map_while(Result::ok).last());
    assert_eq!(owner.wait().expect("it ends").code(), Some(0));
    is_whole(&place);
    drop(disk);
}
