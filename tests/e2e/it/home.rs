//! What may happen to the directory of the database: it cannot be written, its lock is deleted, it is deleted itself.

use std::process::Command;

use crate::place::{Ended, Place, binary, ended, until};

const WAITS: &str = "wonder: 1\nname: waits\nnodes:\n  \
    say: {shell: {command: \"echo said\", timeout: 20s}, next: [{to: ask}]}\n  ask: {human_gate: {title: Go on?}}\n";
const LOOKS: [&[&str]; 8] = [
    &["list"],
    &["show", "last"],
    &["events", "last"],
    &["logs", "last"],
    &["why", "last"],
    &["gates"],
    &["cost"],
    &["graph", "last"],
];

fn with_a_run(name: &str) -> Place {
    let place = Place::new();
    let file = place.file("waits.yaml", WAITS);
    let home = place.dir.path().join(name);
    let mut command = place.command(&["run", &file]);
    let waiting = ended(command.env("WONDER_HOME", &home).output().expect("it starts"));
    assert_eq!(waiting.code, Some(3), "{waiting:#?}");
    place
}

/// The binary where the home cannot be written: it is mounted so, for this process alone.
fn read_only(place: &Place, name: &str, arguments: &[&str]) -> Ended {
    let home = place.dir.path().join(name);
    let script = "mount --bind \"$WONDER_HOME\" \"$WONDER_HOME\" && \
                  mount -o remount,ro,bind \"$WONDER_HOME\" && exec \"$0\" \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(binary()).args(arguments);
    ended(command.env("WONDER_HOME", home).current_dir(place.dir.path()).output().expect("unshare runs"))
}

fn shows(looked: &Ended, arguments: &[&str]) {
    assert_eq!(looked.code, Some(0), "{arguments:?}: {looked:#?}");
    assert!(!looked.out.is_empty(), "{arguments:?}: {looked:#?}");
}

#[test]
fn a_home_that_cannot_be_written_can_be_looked_at() {
    // A name that means something in an address of SQLite's.
    for name in ["home", "ho me%41?#&"] {
        let place = with_a_run(name);
        for arguments in LOOKS {
            shows(&read_only(&place, name, arguments), arguments);
        }
        let refused = read_only(&place, name, &["answer", "last", "{}"]);
        assert_eq!(refused.code, Some(7), "{refused:#?}");
        assert!(refused.err.contains("Read-only"), "{refused:#?}");
    }
}

#[test]
fn what_a_crash_left_in_the_log_is_read_where_nothing_can_be_written() {
    let place = with_a_run("home");
    // A log that nobody has written back, and no index beside it: a crash, then another machine.
    let connection = rusqlite::Connection::open(place.database()).expect("a database");
    connection
        .execute_batch("PRAGMA journal_mode = WAL; UPDATE runs SET workflow = 'crashed'")
        .expect("a change");
    let log = place.home().join("wonder.db-wal");
    let (saved, kept) =
        (std::fs::read(&log).expect("a log"), std::fs::read(place.database()).expect("a file"));
    drop(connection);
    std::fs::write(&log, saved).expect("the log again");
    std::fs::write(place.database(), kept).expect("the file again");
    let listed = read_only(&place, "home", &["list"]);
    shows(&listed, &["list"]);
    assert!(listed.out.contains("crashed"), "{listed:#?}");
}

#[test]
fn somebody_who_may_only_read_can_look() {
    let place = with_a_run("home");
    let copy = place.dir.path().join("wonder-copy");
    std::fs::copy(binary(), &copy).expect("a copy that anybody may run");
    let shown = Command::new("chmod").args(["-R", "a+rX"]).arg(place.dir.path()).status();
    assert!(shown.expect("chmod runs").success());
    for arguments in LOOKS {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy).args(arguments);
        command.env("HOME", "/nowhere").env("WONDER_HOME", place.home()).current_dir("/");
        shows(&ended(command.output().expect("setpriv runs")), arguments);
    }
}

const NAPS: &str = "wonder: 1\nname: naps\nnodes:\n  nap: {sleep: 1h}\n";

#[test]
fn deleting_the_lock_of_a_live_owner_lets_nobody_in() {
    let place = Place::new();
    let file = place.file("naps.yaml", NAPS);
    let mut owner = place.spawn(&["run", &file]);
    until("it naps", || place.run(&["events", "last", "-o", "json"]).out.contains("sleep_started"));
    std::fs::remove_file(place.home().join("wonder.lock")).expect("a lock");
    // It reaches the owner, who alone writes, and who leaves when its run is over.
    let cancelled = place.run(&["cancel", "last"]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:#?}");
    assert_eq!(owner.wait().expect("it ends").code(), Some(4));
}

#[test]
fn deleting_the_home_of_a_live_owner_is_noticed() {
    let place = Place::new();
    let file = place.file(
        "long.yaml",
        "wonder: 1\nname: long\nnodes:\n  \
         wait: {shell: {command: 'while [ ! -e go ]; do sleep 0.01; done', timeout: 1m}, next: [{to: then}]}\n  \
         then: {mock: {output: {}}}\n",
    );
    let owner = place.spawn(&["run", &file]);
    until("it waits", || place.run(&["events", "last", "-o", "json"]).out.contains("task_dispatched"));
    std::fs::remove_dir_all(place.home()).expect("a home");
    std::fs::write(place.dir.path().join("go"), "").expect("a file");
    let noticed = ended(owner.wait_with_output().expect("it ends"));
    assert_eq!(noticed.code, Some(7), "{noticed:#?}");
    assert!(noticed.err.contains("deleted or replaced"), "{noticed:#?}");
}
