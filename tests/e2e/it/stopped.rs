//! The process that owns the database is stopped: it holds its lock and its socket, and says nothing.

use crate::place::{Ended, Place, until};

fn signal(process: u32, name: &str) {
    let killed = std::process::Command::new("kill").args([name, &process.to_string()]).status();
    assert!(killed.expect("kill runs").success());
}

#[test]
fn looking_reads_the_database_and_acting_says_who_holds_it() {
    let place = Place::new();
    let file = place.file(
        "long.yaml",
        "wonder: 1\nname: long\nnodes:\n  \
         say: {shell: {command: \"echo said\", timeout: 20s}, next: [{to: nap}]}\n  nap: {sleep: 1h}\n",
    );
    let mut owner = place.spawn(&["run", &file]);
    until("it naps", || place.run(&["events", "last", "-o", "json"]).out.contains("sleep_started"));
    signal(owner.id(), "-STOP");

    let ok = |ended: Ended, has: &str| {
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.out.contains(has), "{has} is not in {ended:?}");
    };
    ok(place.run(&["list"]), "long");
    ok(place.run(&["show", "last"]), "nap");
    ok(place.run(&["logs", "last"]), "said");
    ok(place.run(&["events", "last"]), "sleep");
    ok(place.run(&["why", "last"]), "nap");
    let refused = place.run(&["cancel", "last"]);
    assert_eq!(refused.code, Some(7), "{refused:?}");
    assert!(refused.err.contains(&format!("process {}, since 20", owner.id())), "{refused:?}");

    signal(owner.id(), "-CONT");
    assert_eq!(place.run(&["cancel", "last"]).code, Some(0), "it answers again");
    assert_eq!(owner.wait().expect("it ends").code(), Some(4));
}
