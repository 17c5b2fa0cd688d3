//! The recipes: each is written by `init`, run as its head says, without a network, and shows the screens that are
//! kept here. One task at a time, so that the lines come in one order.

use insta::assert_snapshot;

use crate::home::Home;
use crate::reference::promises;
use crate::server::Server;

/// Writes a template, plays the commands of its head, and gives every screen.
fn played(name: &str, file: &str, change: impl Fn(String) -> String) -> (Home, String) {
    let home = Home::new();
    let wrote = home.wonder(&["init", name]);
    assert!(wrote.starts_with("exit 0"), "{wrote}");
    let text = std::fs::read_to_string(home.work().join(file)).unwrap();
    let mut screens = String::new();
    for (command, exit) in promises(&text) {
        let command = change(command);
        let alone = command.replace("wonder run ", "wonder run --max-parallel 1 ");
        let output = home.shell(&alone).output().unwrap();
        let screen = home.shot(&output);
        assert_eq!(output.status.code(), Some(exit), "{command}\n{screen}");
        screens.push_str(&format!("$ {command}\n{screen}\n\n"));
    }
    (home, screens)
}

fn recipe(name: &str) -> String {
    played(name, &format!("{name}.yaml"), |command| command).1
}

#[test]
fn hello() {
    assert_snapshot!("recipe_hello", recipe("hello"));
}

#[test]
fn nightly() {
    let server = Server::start(|request, before| match (request, before) {
        ("GET /orders", 0) => (503, String::new()),
        ("GET /orders", _) => (200, r#"[{"id": "A1", "amount": 12}, {"id": "A2", "amount": 30}]"#.to_owned()),
        _ => (201, "{}".to_owned()),
    });
    let port = server.port.to_string();
    let (home, screens) = played("nightly", "nightly.yaml", |command| command.replace("8000", &port));
    // How long it waits before the second try is drawn by lot.
    let screens: Vec<String> = screens
        .replace(&port, "[PORT]")
        .lines()
        .map(|line| match (line.find("try 2 of 4 in "), line.find(" ms: ")) {
            (Some(from), Some(to)) => format!("{}try 2 of 4 in [N]{}", &line[..from], &line[to..]),
            _ => line.to_owned(),
        })
        .collect();
    assert_snapshot!("recipe_nightly", screens.join("\n"));
    let asked: Vec<String> =
        server.asked.lock().unwrap().iter().map(|(request, _)| request.clone()).collect();
    assert_eq!(asked, ["GET /orders", "GET /orders", "POST /reports"]);
    assert!(std::fs::read_to_string(home.work().join("report.md")).unwrap().contains("Total: 42"));
}

#[test]
fn nightly_complains_when_there_is_nothing_to_report() {
    let server = Server::start(|_, _| (404, String::new()));
    let home = Home::new();
    home.wonder(&["init", "nightly"]);
    let said = home.wonder(&["run", "nightly.yaml", "-i", &format!("shop=http://127.0.0.1:{}", server.port)]);
    assert!(said.starts_with("exit 1") && said.contains("no report tonight"), "{said}");
}

#[test]
fn panel() {
    assert_snapshot!("recipe_panel", recipe("panel"));
}

#[test]
fn until_good() {
    assert_snapshot!("recipe_until_good", recipe("until_good"));
}

#[test]
fn keep_going() {
    assert_snapshot!("recipe_keep_going", recipe("keep_going"));
}

#[test]
fn shared_child() {
    assert_snapshot!("recipe_shared_child", played("shared_child", "morning.yaml", |command| command).1);
}

#[test]
fn approval() {
    assert_snapshot!("recipe_approval", recipe("approval"));
}

/// The same with a deadline that has passed when somebody looks again.
#[test]
fn approval_goes_to_the_lead_when_nobody_answers() {
    let home = Home::new();
    home.wonder(&["init", "approval"]);
    let text = std::fs::read_to_string(home.work().join("approval.yaml")).unwrap();
    home.write("approval.yaml", &text.replace("timeout: 4h", "timeout: 1ms"));
    home.wonder(&["run", "approval.yaml", "-i", "amount=1200"]);
    home.wonder(&["gates"]);
    let events = home.text(&["events", "last"]);
    assert!(events.contains("gate_reassigned") && events.contains("lead"), "{events}");
}

#[test]
fn fan_out_budget() {
    assert_snapshot!("recipe_fan_out_budget", recipe("fan_out_budget"));
}

#[test]
fn templates_are_listed_and_never_written_over() {
    let home = Home::new();
    assert_snapshot!("init_list", home.wonder(&["init", "--list"]));
    assert_snapshot!("init", home.wonder(&["init"]));
    home.write("hello.yaml", "mine");
    assert_snapshot!("init_again", home.wonder(&["init"]));
    assert_eq!(std::fs::read_to_string(home.work().join("hello.yaml")).unwrap(), "mine");
    assert_snapshot!("init_unknown", home.wonder(&["init", "panle"]));
    let json = home.json(&["init", "panel", "-o", "json"]);
    assert_eq!((&json["files"][0], json["next"].as_array().map(Vec::len)), (&"panel.yaml".into(), Some(2)));
}
