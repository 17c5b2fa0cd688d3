//! The wall clock is set while a run is under way.

use std::path::PathBuf;

use crate::place::{Place, ended, until};

/// What `faketime` puts in front of a program: a clock that a file moves, seen by that program alone.
fn clock_library() -> PathBuf {
    let found = std::process::Command::new("sh")
        .args([
            "-c",
            "ls /usr/lib/*/faketime/libfaketimeMT.so.1 /usr/lib/faketime/libfaketimeMT.so.1 2>/dev/null",
        ])
        .output()
        .expect("sh runs");
    let list = String::from_utf8_lossy(&found.stdout).into_owned();
    PathBuf::from(list.lines().next().expect("faketime is here: make tools"))
}

#[test]
fn a_jump_of_the_wall_clock_neither_fires_a_timeout_nor_stretches_a_sleep() {
    for jump in ["+2h", "-2h"] {
        let place = Place::new();
        let file = place.file(
            "naps.yaml",
            "wonder: 1\nname: naps\ntimeout: 10m\non_timeout: fail\nnodes:\n  \
             nap: {sleep: 2s, next: [{to: work}]}\n  \
             work: {shell: {command: \"echo awake\", timeout: 5m}}\n",
        );
        let offset = place.dir.path().join("offset");
        std::fs::write(&offset, "+0\n").expect("an offset");
        let mut command = place.command(&["run", &file, "-o", "json"]);
        command.env("LD_PRELOAD", clock_library()).env("FAKETIME_TIMESTAMP_FILE", &offset);
        command.env("FAKETIME_NO_CACHE", "1").env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let child = command.spawn().expect("the binary starts");
        until("it naps", || {
            let events = place.run(&["events", "last", "-o", "json"]);
            events.code == Some(0) && events.out.contains("sleep_started")
        });
        std::fs::write(&offset, format!("{jump}\n")).expect("an offset");
        let ended = ended(child.wait_with_output().expect("it ends"));
        let told: serde_json::Value = serde_json::from_str(&ended.out).unwrap_or_default();
        assert_eq!((ended.code, told["status"].as_str()), (Some(0), Some("completed")), "{jump}: {ended:?}");
        let took = told["duration_ms"].as_u64().expect("a duration");
        assert!((2_000..120_000).contains(&took), "{jump}: {took} ms by its own clock");
    }
}
