//! Runs that cannot be loaded any more: every verb says so and why, their events stay readable, and the others
//! go on.

use wonder_engine::{Act, Answer, Engine, ErrorCode, Filter, Follow, Fork, Reply, Signal, Start, Status};
use wonder_host::{Connection, Options, Purpose, open};

use crate::test_host::{TestHost, json, start};

/// How a stored run is broken, and what the reason has to say.
const DAMAGES: [(&str, &str, &str); 4] = [
    ("definition_unreadable", "UPDATE definitions SET bundle = '{' WHERE name = ?", "cannot be read"),
    (
        "definition_broken",
        r#"UPDATE definitions SET bundle = replace(bundle, '"to":"ask"', '"to":"nowhere"') WHERE name = ?"#,
        "definition",
    ),
    ("definition_missing", "DELETE FROM definitions WHERE name = ?", "is missing"),
    (
        "event_unknown",
        "UPDATE events SET body = replace(body, 'gate_opened', 'gate_hinged') \
         WHERE run = (SELECT no FROM runs WHERE workflow = ?)",
        "gate_hinged",
    ),
];

const VERBS: [&str; 14] = [
    "find",
    "why",
    "wait",
    "gates",
    "answer",
    "answer_gate",
    "signal",
    "cancel",
    "kill",
    "pause",
    "resume",
    "retry",
    "fork",
    "adopt",
];

async fn ask(connection: &Connection, verb: &str, run: &str) -> Reply<()> {
    let (engine, run) = (connection.engine(), run.to_owned());
    let answer = |gate| Answer { request_id: None, gate, answer: json("{}"), by: "ann".to_owned() };
    let (by, reason) = ("ann".to_owned(), "enough".to_owned());
    let act = match verb {
        "find" => return engine.find(run).await.map(drop),
        "why" => return engine.why(run).await.map(drop),
        "wait" => return engine.wait(run, 60_000).await.map(drop),
        "gates" => return engine.gates(Some(run)).await.map(drop),
        "answer" => return engine.answer(answer(run)).await.map(drop),
        "answer_gate" => return engine.answer(answer(format!("{run}:1"))).await.map(drop),
        "adopt" => return connection.adopt(&run).await.map(drop),
        "signal" => {
            let (event, key, payload) = ("news".to_owned(), json("null"), json("null"));
            let signal = Signal { request_id: None, run, event, key, payload, keep: true };
            return engine.signal(signal).await.map(drop);
        }
        "fork" => {
            let (node, input) = ("ask".to_owned(), json("null"));
            let definition = Vec::new();
            let fork = Fork {
                id: None,
                run,
                node,
                branch: None,
                visit: None,
                input,
                set: Default::default(),
                definition,
            };
            return engine.fork(fork).await.map(drop);
        }
        "cancel" => Act::Cancel { reason, grace_ms: None },
        "kill" => Act::Kill { reason },
        "pause" => Act::Pause { by },
        "resume" => Act::Resume { by },
        "retry" => Act::Retry { by, definition: Vec::new() },
        other => panic!("{other} is no verb"),
    };
    engine.act(run, act).await.map(drop)
}

fn file(name: &str) -> String {
    let nodes = "  first: {mock: {output: {}}, next: [{to: ask}]}\n  ask: {human_gate: {title: Well?}}\n";
    format!("wonder: 1\nname: {name}\nnodes:\n{nodes}")
}

async fn status(engine: &dyn Engine, run: &str) -> Status {
    let rows = engine.list(Filter { limit: Some(1_000), ..Filter::default() }).await.unwrap();
    rows.iter().find(|row| row.run == run).unwrap().status
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_says_that_a_run_cannot_be_loaded() {
    let host = TestHost::new().await;
    let sound = host.run(&file("sound"), "{}").await.row.run;
    let mut broken = Vec::new();
    for (damage, sql, reason) in DAMAGES {
        for verb in VERBS {
            let name = format!("{damage}_{verb}");
            let run = host.run(&file(&name), "{}").await.row.run;
            broken.push((name, run, verb, sql, reason));
        }
    }
    let home = host.leave().await;
    let database = rusqlite::Connection::open(home.path().join("wonder.db")).unwrap();
    for (name, _, _, sql, _) in &broken {
        assert!(database.execute(sql, [name]).unwrap() > 0, "{name}");
    }
    drop(database);

    let host = TestHost::at(home).await;
    let engine = host.engine();
    for (name, run, verb, _, reason) in &broken {
        let refused = ask(&host.connection, verb, run).await.expect_err(name);
        assert_eq!(refused.code, ErrorCode::Quarantined, "{name}: {refused}");
        let told = refused.message.contains(run) && refused.message.contains(reason);
        assert!(told, "{name}: {refused}");
        assert_eq!(status(engine, run).await, Status::Quarantined, "{name}");
        // Once it is set aside every other verb says the same.
        for other in VERBS {
            let again = ask(&host.connection, other, run).await.expect_err(name);
            assert_eq!(again.code, ErrorCode::Quarantined, "{name}, then {other}: {again}");
            assert!(again.message.contains(reason), "{name}, then {other}: {again}");
        }
        let again = engine.start(Start { id: Some(run.clone()), ..start(&file(name), "{}") }).await;
        assert_eq!(again.unwrap_err().code, ErrorCode::Quarantined, "{name}: nothing takes its place");
        let follow = Follow { events_after: vec![(run.clone(), 0)], ..Follow::default() };
        let events = engine.follow(follow).await.unwrap().events;
        assert_eq!(events[0].1.kind.name(), "run_started", "{name}");
    }
    let open_gates = engine.gates(None).await.unwrap();
    assert_eq!(open_gates.len(), 1, "gates that nobody can answer are not shown");
    assert_eq!(host.answer(&sound, "{}").await.row.status, Status::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_only_looks_is_told_too() {
    let host = TestHost::new().await;
    let run = host.run(&file("looked_at"), "{}").await.row.run;
    let home = host.leave().await;
    let database = rusqlite::Connection::open(home.path().join("wonder.db")).unwrap();
    database.execute("DELETE FROM definitions", []).unwrap();
    let look = open(Options::new(home.path()), Purpose::Look).await.unwrap();
    for verb in ["find", "why", "wait"] {
        let refused = ask(&look, verb, &run).await.expect_err(verb);
        assert_eq!(refused.code, ErrorCode::Quarantined, "{verb}: {refused}");
    }
}
