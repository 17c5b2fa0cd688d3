//! Stored events keep their meaning. Each folder under `golden/` holds a definition, a log that some version
//! of Wonder wrote, and the state it led to. They are only ever added to: if one fails, the code is wrong.
//!
//! `WONDER_GOLDEN=1` writes the state of a new folder that has none yet; it never rewrites one.

use std::sync::Arc;

use wonder_core::graph::Graph;
use wonder_core::state::State;
use wonder_core::{Event, Run};

use crate::{read, root};

#[test]
fn every_log_ever_written_leads_where_it_led() {
    let dir = root().join("crates/core/tests/golden");
    let mut seen = 0;
    let mut logs: Vec<_> =
        std::fs::read_dir(&dir).expect("golden/ is there").map(|e| e.expect("an entry").path()).collect();
    logs.sort();
    for log in logs.iter().filter(|path| path.is_dir()) {
        let bundle = serde_json::from_str(&read(&log.join("definition.json"))).expect("a stored definition");
        let graph =
            Graph::compile(&Arc::new(bundle)).expect("a definition that was accepted once compiles for ever");
        let lines = read(&log.join("events.jsonl"));
        let events: Vec<Event> = lines.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        let run = Run::replay(Arc::new(graph), &events)
            .unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let expected = log.join("state.json");
        if !expected.exists() && std::env::var_os("WONDER_GOLDEN").is_some() {
            let state = serde_json::to_string_pretty(run.state()).expect("a state serialises");
            std::fs::write(&expected, state + "\n").expect("golden/ can be written");
        }
        let state: State = serde_json::from_str(&read(&expected)).expect("a stored state");
        assert!(state == *run.state(), "{}: the log leads somewhere else now", log.display());
        // And what is stored today is what was stored then.
        for (event, line) in events.iter().zip(lines.lines()) {
            assert_eq!(serde_json::to_string(event).expect("an event serialises"), line);
        }
        seen += 1;
    }
    assert!(seen > 0, "there is no golden log");
}
