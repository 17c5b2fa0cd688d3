//! The binary under test, a directory for it to live in, and what it printed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use tempfile::TempDir;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// The binary, built from this tree; or the one that `WONDER_BINARY` names, to attack another build.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        if let Some(path) = std::env::var_os("WONDER_BINARY") {
            return path.into();
        }
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "-q", "-p", "wonder-cli"]).current_dir(root());
        assert!(build.status().expect("cargo runs").success(), "the binary does not build");
        let deps = std::env::current_exe().expect("this test is a file");
        deps.parent().and_then(Path::parent).expect("target/debug/deps").join("wonder")
    })
}

/// A place of its own: a database, a log of side effects, files.
pub(crate) struct Place {
    pub(crate) dir: TempDir,
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: TempDir::new().expect("a directory") }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.home().join("wonder.db")
    }

    /// Where commands write down that they ran.
    pub(crate) fn log(&self) -> PathBuf {
        let path = self.dir.path().join("effects.log");
        if !path.exists() {
            std::fs::write(&path, "").expect("a log");
        }
        path
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_string_lossy().into_owned()
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(arguments).current_dir(self.dir.path()).env("WONDER_HOME", self.home());
        // No test reaches a provider, whoever runs it.
        for key in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"] {
            command.env_remove(key);
        }
        command.env_remove("WONDER_FAILPOINT").stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(Stdio::piped());
        command
    }

    pub(crate) fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().expect("the binary starts")
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        ended(self.command(arguments).output().expect("the binary starts"))
    }

    /// Runs with `-o json`, expecting an exit code.
    pub(crate) fn json(&self, arguments: &[&str], code: i32) -> Value {
        let ended = self.run(&[arguments, &["-o", "json"]].concat());
        assert_eq!(ended.code, Some(code), "{arguments:?}: {ended:#?}");
        serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {ended:#?}"))
    }

    /// The events of a run, oldest first.
    pub(crate) fn events(&self, run: &str) -> Vec<Value> {
        let ended = self.run(&["events", run, "-o", "json"]);
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        ended.out.lines().map(|line| serde_json::from_str(line).expect("an event a line")).collect()
    }

    pub(crate) fn effects(&self) -> usize {
        std::fs::read_to_string(self.log()).expect("the log").lines().count()
    }
}

/// A workflow that was run in a place of its own, and how it stands.
pub(crate) struct Told {
    pub(crate) place: Place,
    pub(crate) run: String,
    /// What the last command that moved it said.
    pub(crate) view: Value,
}

impl Told {
    /// Runs what comes after the name of a workflow, expecting an exit code.
    pub(crate) fn of(workflow: &str, code: i32) -> Told {
        Told::at(Place::new(), workflow, code)
    }

    pub(crate) fn at(place: Place, workflow: &str, code: i32) -> Told {
        let file = place.file("told.yaml", &format!("wonder: 1\nname: told\n{workflow}"));
        let ended = place.run(&["run", &file, "-o", "json"]);
        assert_eq!(ended.code, Some(code), "{ended:#?}");
        let view: Value = serde_json::from_str(&ended.out).expect("JSON");
        let run = view["run"].as_str().expect("an id").to_owned();
        Told { place, run, view }
    }

    /// A run that somebody started in this place and did not stay with.
    pub(crate) fn left(place: Place) -> Told {
        let view = place.json(&["list"], 0)[0].clone();
        let run = view["run"].as_str().expect("an id").to_owned();
        Told { place, run, view }
    }

    /// `answer`, `resume`, `retry` of the run.
    pub(crate) fn then(&mut self, arguments: &[&str], code: i32) {
        let (verb, rest) = arguments.split_first().expect("a verb");
        self.view = self.place.json(&[&[*verb, &self.run], rest].concat(), code);
    }

    /// Its events of one kind, oldest first.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        self.place.events(&self.run).into_iter().filter(|event| event["kind"] == kind).collect()
    }

    /// Its one open gate.
    pub(crate) fn gate(&self) -> Value {
        let gates = self.place.json(&["gates", &self.run], 0);
        assert_eq!(gates.as_array().map(Vec::len), Some(1), "{gates:#}");
        gates[0].clone()
    }

    /// What each `run_mutated` changed, in order.
    pub(crate) fn changes(&self) -> Vec<Value> {
        self.events("run_mutated").iter().map(|event| event["what"].clone()).collect()
    }

    pub(crate) fn show(&self) -> Value {
        self.place.json(&["show", &self.run], 0)
    }

    /// The page for people.
    pub(crate) fn page(&self) -> String {
        self.place.run(&["show", &self.run]).out
    }

    /// The last visit of a node, as `show` tells it.
    pub(crate) fn visit(&self, node: &str) -> Value {
        let shown = self.show();
        let visits = shown["nodes"].as_array().expect("nodes").iter().rev();
        visits.clone().find(|visit| visit["node"] == node).unwrap_or_else(|| panic!("{shown:#}")).clone()
    }

    pub(crate) fn metric(&self, name: &str) -> u64 {
        self.show()["metrics"][name].as_u64().expect("a number")
    }
}

pub(crate) fn ended(output: Output) -> Ended {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ended { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Processes that belong to a run, by what is in their environment.
pub(crate) fn processes_of(run: &str) -> Vec<String> {
    let mark = format!("WONDER_RUN={run}");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("a /proc").flatten() {
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes()) {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            found.push(line.replace('\0', " "));
        }
    }
    found
}

/// Waits until something is so. It is a failure if it never is.
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !so() {
        assert!(std::time::Instant::now() < patience, "waited a minute for {what}");
        std::thread::yield_now();
    }
}

/// Numbers that look random and are the same every time.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// How many times to attack: so many for every change, and so many in `make soak`, which sets `WONDER_SOAK`.
pub(crate) fn attacks(short: usize, long: usize) -> usize {
    if std::env::var_os("WONDER_SOAK").is_some() { long } else { short }
}

/// A library of `preload/`, built for this machine: what the binary asks of the system goes through it.
pub(crate) fn preload(name: &str) -> PathBuf {
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.so"));
    let source = root().join(format!("tests/e2e/preload/{name}.c"));
    let mut build = Command::new("cc");
    // Whoever asks at the same time finds a whole one.
    let made = library.with_extension(format!("{:?}", std::thread::current().id()));
    build.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&made).arg(source).arg("-ldl");
    assert!(build.status().expect("cc runs").success(), "{name} does not build");
    std::fs::rename(&made, &library).expect("it can be renamed");
    library
}
