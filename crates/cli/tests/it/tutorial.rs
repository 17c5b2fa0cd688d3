//! The pages that show commands with what they print: each command is run, in order, in one directory, and must
//! print what the page says. `WONDER_BLESS=1` writes what it printed into the page: read the diff.
//!
//! A block of `yaml` that begins with `# NAME.yaml` is a file; a block of `console` has lines `$ COMMAND`, each
//! followed by what it prints.

use crate::home::Home;
use crate::mask::mask;
use crate::reference::repository;

struct Shown {
    command: String,
    printed: String,
}

/// The page with each command's output as it is now, and what was shown beside what was printed.
fn played(page: &str) -> (String, Vec<(Shown, String)>) {
    let home = Home::new();
    let mut text = String::new();
    let mut all = Vec::new();
    let mut parts = page.split("```");
    while let (Some(prose), block) = (parts.next(), parts.next()) {
        text.push_str(prose);
        let Some(block) = block else { break };
        let (kind, body) = block.split_once('\n').unwrap_or((block, ""));
        text.push_str(&format!("```{kind}\n"));
        if kind == "yaml"
            && let Some(name) = body.lines().next().and_then(|line| line.strip_prefix("# "))
            && name.ends_with(".yaml")
        {
            home.write(name, body);
        }
        if kind != "console" {
            text.push_str(&format!("{body}```"));
            continue;
        }
        for shown in commands(body) {
            let output = home.shell(&format!("{{ {}; }} 2>&1", shown.command)).output().unwrap();
            let printed =
                String::from_utf8_lossy(&output.stdout).replace(&*home.path().to_string_lossy(), "~");
            // Other times and ids are no other output: the page keeps its own.
            let same = mask(&shown.printed, home.path()) == mask(&printed, home.path());
            let kept = if same { &shown.printed } else { &printed };
            text.push_str(&format!("$ {}\n{kept}", shown.command));
            if !kept.is_empty() && !kept.ends_with('\n') {
                text.push('\n');
            }
            all.push((shown, printed));
        }
        text.push_str("```");
    }
    (text, all)
}

fn commands(body: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for line in body.lines() {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push(Shown { command: command.to_owned(), printed: String::new() }),
            (None, Some(last)) => last.printed.push_str(&format!("{line}\n")),
            (None, None) => panic!("`{line}` stands before the first command"),
        }
    }
    all
}

fn check(name: &str) {
    let path = repository(name);
    let page = std::fs::read_to_string(&path).unwrap();
    let (now, all) = played(&page);
    if std::env::var_os("WONDER_BLESS").is_some() {
        std::fs::write(&path, now).unwrap();
        return;
    }
    assert!(!all.is_empty(), "{name} shows no commands");
    for (shown, printed) in all {
        let (expected, printed) = (mask(&shown.printed, &path), mask(&printed, &path));
        assert_eq!(expected, printed, "{name}: $ {}", shown.command);
    }
}

#[test]
fn the_tutorial_does_what_it_says() {
    check("docs/tutorial.md");
}

#[test]
fn the_readme_does_what_it_says() {
    check("README.md");
}
