//! Text from outside cannot move a cursor, paint, forge a line or hide what it says: hostile texts are planted in
//! every place that a person can fill, every verb is run, and whatever it prints is held against what it may print.

use std::fmt::Write as _;
use std::process::Output;

use crate::home::Home;

/// What a hostile command, model or colleague would write. `FORGED` must never begin a line.
const HOSTILE: [&str; 27] = [
    "\u{1b}[2J\u{1b}[H",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]0;title\u{1b}\\",
    "\u{1b}]52;c;ZXZpbA==\u{7}",
    "\u{1b}]8;;http://evil.example\u{1b}\\link\u{1b}]8;;\u{1b}\\",
    "\u{1b}P1$r0m\u{1b}\\",
    "\u{1b}_Gf=100;AAAA\u{1b}\\",
    "\u{1b}^private\u{1b}\\",
    "\u{1b}[31mred\u{1b}[0m",
    "\u{1b}[8mhidden\u{1b}[28m",
    "\u{1b}[\u{1b}[31m31mnested",
    "\u{1b}",
    "\u{1b}c",
    "\u{9b}2J",
    "\u{9d}0;title\u{9c}",
    "\u{90}q\u{9c}",
    "\u{85}FORGED",
    "good\rFORGED",
    "good\u{8}\u{8}\u{8}\u{8}evil",
    "first\nFORGED: second",
    "a\u{b}b\u{c}c\u{7f}d\u{e}e",
    "\u{202e}gpj.exe\u{202c}",
    "\u{2066}isolated\u{2069}",
    "\u{200e}\u{200f}\u{61c}marks",
    "a\u{200b}b\u{2060}c\u{feff}d\u{ad}e",
    "a\u{2028}FORGED\u{2029}FORGED",
    "\u{e0041}\u{e0042}tags",
];

/// All of them, each behind a word, without what a file name or an argument cannot hold.
fn hostile() -> String {
    HOSTILE.iter().enumerate().map(|(at, text)| format!("h{at}{text} ")).collect()
}

/// As a text of JSON, which YAML reads as well.
fn quoted() -> String {
    serde_json::to_string(&hostile()).unwrap()
}

fn is_harmless(c: char) -> bool {
    let hidden = matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}');
    matches!(c, '\n' | '\t') || !(c.is_control() || hidden)
}

/// Without what we write ourselves: colours, and on a terminal the frames of the live tree.
fn without_ours(text: &str, terminal: bool) -> String {
    if !terminal {
        return text.to_owned();
    }
    let mut rest = text.replace("\r\n", "\n");
    for own in ["\u{1b}[?2026h", "\u{1b}[?2026l", "\u{1b}[K", "\u{1b}[J"] {
        rest = rest.replace(own, "");
    }
    let mut out = String::new();
    while let Some(at) = rest.find("\u{1b}[") {
        let (before, sequence) = rest.split_at(at);
        let body = &sequence[2..];
        let end = body.find(|c: char| !(c.is_ascii_digit() || c == ';')).unwrap_or(body.len());
        let is_ours = match body[end..].chars().next() {
            // Of the colours ours are: bold, dim, underlined, red to cyan, and their ends.
            Some('m') => matches!(
                &body[..end],
                "0" | "1"
                    | "2"
                    | "4"
                    | "22"
                    | "31"
                    | "32"
                    | "33"
                    | "34"
                    | "35"
                    | "36"
                    | "39"
                    | "31;1"
                    | "36;1"
                    | "36;1;4"
                    | "35;1"
                    | "38;2;246;87;248"
            ),
            Some('A') => body[end..].starts_with("A\r"),
            _ => false,
        };
        out.push_str(before);
        let used = if is_ours { 2 + end + if body[end..].starts_with('A') { 2 } else { 1 } } else { 2 };
        if !is_ours {
            out.push_str("\u{1b}[");
        }
        rest = sequence[used..].to_owned();
    }
    out + &rest
}

/// What got through, by the verb that let it.
#[derive(Default)]
struct Leaks(String);

impl Leaks {
    fn judge(&mut self, verb: &str, text: &[u8], terminal: bool) {
        let Ok(text) = std::str::from_utf8(text) else {
            let _ = writeln!(self.0, "{verb}: no UTF-8");
            return;
        };
        let plain = without_ours(text, terminal);
        let mut found: Vec<String> =
            plain.chars().filter(|c| !is_harmless(*c)).map(|c| c.escape_unicode().to_string()).collect();
        found.sort();
        found.dedup();
        if !found.is_empty() {
            let _ = writeln!(self.0, "{verb}: {}", found.join(" "));
        }
        if let Some(line) = plain.lines().find(|line| line.starts_with("FORGED")) {
            let _ = writeln!(self.0, "{verb}: a line of its own: {line:?}");
        }
    }

    fn of(&mut self, verb: &str, output: &Output) {
        self.judge(&format!("{verb} (stdout)"), &output.stdout, false);
        self.judge(&format!("{verb} (stderr)"), &output.stderr, false);
        let panicked = String::from_utf8_lossy(&output.stderr).contains("panicked at");
        assert!(!panicked, "{verb}: {output:?}");
    }
}

/// Everything a person can fill, filled with hostile text.
fn flow() -> String {
    let bad = quoted();
    format!(
        r#"wonder: 1
name: attack
description: {bad}
nodes:
  say:
    shell: 'cat hostile; cat hostile >&2'
    timeout: 1m
    next: [{{to: each}}]
  each:
    mock: {{output: {{list: [{bad}, {bad}]}}}}
    output_mapping: {{state.list: result.list}}
    next: [{{to: one, foreach: {{items: state.list, as: item}}}}]
  one:
    mock: {{output: {{echo: "{{{{ item }}}}"}}}}
    next: [{{to: ask, synchronization: {{strategy: all}}}}]
  ask:
    human_gate:
      title: {bad}
      body: {bad}
      assignees: [{bad}]
      form:
        type: object
        required: [choice]
        properties:
          choice: {{enum: [{bad}, plain], description: {bad}}}
          {bad}: {{type: string, description: {bad}}}
    next: [{{to: fails}}]
  fails:
    shell: 'cat hostile >&2; exit 3'
    timeout: 1m
    retry: {{max_attempts: 2, initial_delay: 1ms}}
"#
    )
}

fn planted() -> Home {
    let home = Home::new();
    home.write("flow.yaml", &flow());
    home.write("hostile", &hostile());
    home.write(
        "waits.yaml",
        &format!(
            "wonder: 1\nname: waits\nnodes:\n  wait: {{wait_event: {{event: {0}, key: input.key}}}}\n",
            quoted()
        ),
    );
    home.write("done.yaml", &format!("wonder: 1\nname: done\nnodes:\n  a: {{mock: {{output: {{{0}: {0}}}}}}}\noutput_mapping: {{all: state}}\n", quoted()));
    // Not quoted as JSON: the bytes themselves stand in the file.
    home.write(
        "raw.yaml",
        &format!("wonder: 1\nname: raw\nnodes:\n  a: {{mock: {{}}, {0}: 1}}\n  # {0}\n", raw()),
    );
    home.write("broken.yaml", &format!("wonder: 1\nname: \"{}\n", raw()));
    home
}

/// Without what ends a line: a raw text in a YAML file stands on one.
fn raw() -> String {
    hostile()
        .replace(['\n', '\r', ',', ':', '[', ']', '{', '}', '\u{85}', '\u{2028}', '\u{2029}', '"', '#'], "")
}

/// Every verb that looks at a run.
const LOOKS: [&[&str]; 18] = [
    &["list"],
    &["show", "last"],
    &["show", "last", "--graph"],
    &["show", "last", "--graph", "--format", "dot"],
    &["show", "last", "--at", "3"],
    &["watch", "last"],
    &["logs", "last"],
    &["events", "last"],
    &["cost"],
    &["cost", "last", "--attempts"],
    &["why", "last"],
    &["gates"],
    &["gates", "last"],
    &["gates", "last:1"],
    &["graph", "last"],
    &["__complete", "--", "show", ""],
    &["__complete", "--", "answer", ""],
    &["__complete", "--", "logs", "last", "--node", ""],
];

fn look(home: &Home, leaks: &mut Leaks, when: &str) {
    for args in LOOKS {
        leaks.of(&format!("{when}: {}", args.join(" ")), &home.command(args).output().unwrap());
        if args[0] == "__complete" {
            continue;
        }
        let with_json = [args, &["-o", "json"]].concat();
        leaks.of(&format!("{when}: {} -o json", args.join(" ")), &home.command(&with_json).output().unwrap());
    }
}

#[test]
fn text_from_outside_is_shown_and_never_obeyed() {
    let (home, mut leaks) = (planted(), Leaks::default());
    let bad = hostile();
    let label = format!("{bad}={bad}");
    let input = format!("{{{0}: {0}}}", quoted());
    let run = ["run", "flow.yaml", "-i", &input, "--label", &label];
    leaks.of("run", &home.command(&run).output().unwrap());
    assert_eq!(home.json(&["list", "-o", "json"])[0]["status"], "waiting");
    look(&home, &mut leaks, "at a gate");
    leaks.of("answer without an answer", &home.command(&["answer", "last:1"]).output().unwrap());
    leaks.of(
        "answer badly",
        &home.command(&["answer", "last:1", &format!("choice={bad}x")]).output().unwrap(),
    );
    leaks.of("answer", &home.command(&["answer", "last:1", "choice=plain", "--by", &bad]).output().unwrap());
    assert_eq!(home.json(&["list", "-o", "json"])[0]["status"], "failed");
    look(&home, &mut leaks, "failed");
    leaks.of("retry", &home.command(&["retry", "last", "--by", &bad]).output().unwrap());
    let fork = home.command(&["fork", "last", "--from", "ask"]).output().unwrap();
    leaks.of("fork", &fork);
    leaks.of("cancel", &home.command(&["cancel", "last", "--reason", &bad]).output().unwrap());
    look(&home, &mut leaks, "cancelled");

    leaks.of(
        "run waits",
        &home.command(&["run", "waits.yaml", "-i", &format!("key={bad}")]).output().unwrap(),
    );
    assert_eq!(home.json(&["list", "-o", "json"])[0]["status"], "waiting");
    look(&home, &mut leaks, "waits for an event");
    leaks.of("pause", &home.command(&["pause", "last", "--by", &bad]).output().unwrap());
    leaks.of("signal", &home.command(&["signal", "last", &bad, &format!("{bad}={bad}")]).output().unwrap());
    leaks.of("signal", &home.command(&["signal", "last", &bad, "--key", &bad, "{}"]).output().unwrap());
    leaks.of("kill", &home.command(&["kill", "last", "--reason", &bad]).output().unwrap());
    leaks.of("run done", &home.command(&["run", "done.yaml"]).output().unwrap());
    leaks.of("run done -o json", &home.command(&["run", "done.yaml", "-o", "json"]).output().unwrap());
    look(&home, &mut leaks, "done");
    assert!(leaks.0.is_empty(), "{}", leaks.0);
}

/// Names that today's checks would refuse, in a database that somebody else has written to.
#[test]
fn names_that_are_stored_are_not_believed_either() {
    let (home, mut leaks) = (planted(), Leaks::default());
    home.command(&["run", "flow.yaml"]).output().unwrap();
    home.command(&["run", "done.yaml"]).output().unwrap();
    home.command(&["run", "waits.yaml", "-i", "key=1"]).output().unwrap();
    let database = rusqlite::Connection::open(home.database()).unwrap();
    for name in ["attack", "say", "each", "one", "ask", "fails", "done", "a", "waits", "wait"] {
        let (old, new) = (format!("\"{name}\""), quoted().replace("h0", &format!("{name}0")));
        for (table, column) in [("events", "body"), ("definitions", "bundle"), ("blobs", "body")] {
            let sql = format!("UPDATE {table} SET {column} = replace({column}, ?1, ?2)");
            database.execute(&sql, [&old, &new]).unwrap();
        }
    }
    database.execute("UPDATE runs SET workflow = ?1 || workflow", [hostile()]).unwrap();
    database.execute("UPDATE gates SET node = ?1", [hostile()]).unwrap();
    database.execute("DELETE FROM snapshots", []).unwrap();
    for verb in [&["list"][..], &["show", "last"], &["logs", "last"], &["events", "last"], &["gates"]] {
        let shown = home.wonder(verb);
        assert!(verb[0] == "logs" || shown.contains("␛]52;c;"), "{verb:?} shows no such name: {shown}");
    }
    look(&home, &mut leaks, "names");
    database.execute("UPDATE runs SET id = ?1 || id, root = ?1 || root", [hostile()]).unwrap();
    look(&home, &mut leaks, "ids");
    for verb in ["resume", "retry", "cancel", "kill"] {
        leaks.of(verb, &home.command(&[verb, "last"]).output().unwrap());
    }
    assert!(leaks.0.is_empty(), "{}", leaks.0);
}

#[test]
fn what_a_file_holds_cannot_paint_in_its_problems() {
    let (home, mut leaks) = (planted(), Leaks::default());
    let name = format!("{}.yaml", hostile().replace('/', ""));
    let name: String = name.chars().take(60).collect::<String>() + ".yaml";
    std::fs::copy(home.work().join("flow.yaml"), home.work().join(&name)).unwrap();
    for file in ["flow.yaml", "raw.yaml", "broken.yaml", "waits.yaml", &name, "none\u{1b}]0;x\u{7}.yaml"] {
        for verb in [
            &["validate"][..],
            &["validate", "-o", "json"],
            &["validate", "--expand"],
            &["plan"],
            &["plan", "-o", "json"],
            &["graph"],
            &["graph", "--format", "dot"],
            &["graph", "-o", "json"],
            &["run", "--detach"],
        ] {
            let args = [verb, &[file]].concat();
            leaks.of(&format!("{args:?}"), &home.command(&args).output().unwrap());
        }
    }
    // What was written out reads back, and means the same.
    let expanded = home.command(&["validate", "--expand", "flow.yaml"]).output().unwrap();
    home.write("again.yaml", std::str::from_utf8(&expanded.stdout).unwrap());
    assert_eq!(
        home.json(&["validate", "--expand", "-o", "json", "again.yaml"])[0]["workflow"]["nodes"],
        home.json(&["validate", "--expand", "-o", "json", "flow.yaml"])[0]["workflow"]["nodes"]
    );
    assert!(leaks.0.is_empty(), "{}", leaks.0);
}

#[test]
fn what_was_typed_is_said_back_without_its_controls() {
    let (home, mut leaks) = (planted(), Leaks::default());
    let bad = hostile();
    let flag = format!("--{bad}");
    for args in [
        &[bad.as_str()][..],
        &[flag.as_str()],
        &["list", &flag],
        &["list", "--status", &bad],
        &["list", "--since", &bad],
        &["list", "--label", &bad],
        &["list", "--limit", &bad],
        &["list", "--workflow", &bad],
        &["list", "-o", &bad],
        &["list", "--home", &bad],
        &["show", &bad],
        &["show", &bad, "-o", "json"],
        &["logs", &bad, "--node", &bad],
        &["why", &bad],
        &["cost", &bad],
        &["gates", &bad],
        &["answer", &bad, &bad],
        &["answer", &bad],
        &["signal", &bad, &bad],
        &["retry", &bad],
        &["fork", &bad, "--from", &bad],
        &["init", &bad],
        &["explain", &bad],
        &["explain", &bad, "--example"],
        &["completions", &bad],
        &["run", "done.yaml", "-i", &bad],
        &["run", "done.yaml", "-i", &format!("a:={bad}")],
        &["run", "done.yaml", "-i", &format!("@{bad}")],
        &["run", "done.yaml", "--label", &bad],
        &["run", "done.yaml", "--max-parallel", &bad],
        &["__complete", "--", &bad],
        &["help", &bad],
    ] {
        leaks.of(&format!("{:?}", &args[..args.len() - 1]), &home.command(args).output().unwrap());
    }
    for (name, value) in [
        ("WONDER_DURABILITY", bad.as_str()),
        ("WONDER_HOME", "\u{1b}]0;x\u{7}/\u{202e}x"),
        ("WONDER_GRACE", &bad),
        ("USER", &bad),
    ] {
        for args in [&["list"][..], &["run", "done.yaml"], &["show", "last"], &["--help"]] {
            let output = home.command(args).env(name, value).output().unwrap();
            leaks.of(&format!("{name} {args:?}"), &output);
        }
    }
    home.write("wonder.toml", &format!("{} = {}", quoted(), quoted()));
    leaks.of("wonder.toml", &home.command(&["list"]).output().unwrap());
    home.write("wonder.toml", &format!("durability = \"{}\n", raw()));
    leaks.of("wonder.toml", &home.command(&["list"]).output().unwrap());
    std::fs::remove_file(home.work().join("wonder.toml")).unwrap();
    home.write(".env", &format!("A=1\n{}\n", raw()));
    leaks.of(".env", &home.command(&["run", "done.yaml"]).output().unwrap());
    assert!(leaks.0.is_empty(), "{}", leaks.0);
}

/// The same on a terminal, where there are colours, a tree that is redrawn, and questions.
#[test]
fn a_terminal_is_not_painted_on_either() {
    let (home, mut leaks) = (planted(), Leaks::default());
    home.command(&["run", "flow.yaml"]).output().unwrap();
    let mut on_terminal = |line: &str, color: bool, typed: &str| {
        let mut command = home.shell(&format!("printf '{typed}' | script -qec '{line}' /dev/null"));
        command.env("TERM", "xterm-256color");
        if !color {
            command.env("NO_COLOR", "1");
        }
        let output = command.output().unwrap();
        assert!(!output.stdout.is_empty(), "{line}: {output:?}");
        leaks.judge(&format!("on a terminal, colour {color}: {line}"), &output.stdout, true);
    };
    for color in [true, false] {
        for line in [
            "list",
            "show last",
            "logs last",
            "events last",
            "gates",
            "gates last:1",
            "why last",
            "cost last",
            "watch last",
            "validate raw.yaml",
            "validate flow.yaml",
            "plan flow.yaml",
            "graph flow.yaml",
            "run flow.yaml",
            "run done.yaml",
            "show last -o json",
            "list -o json",
            "no_such_verb",
        ] {
            on_terminal(&format!("wonder {line}"), color, "");
        }
        on_terminal("wonder answer last:1", color, "2\\n\\nn\\n");
    }
    assert!(leaks.0.is_empty(), "{}", leaks.0);
}
