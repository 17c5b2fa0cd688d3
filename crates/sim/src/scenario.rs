//! Scenarios: a workflow, a script of outcomes, what the run is told, and what must come of it.
//!
//! One file holds several cases. The expected trace is part of the file; `WONDER_BLESS=1` rewrites the traces
//! and nothing else. Every case gets the checks of [`crate::checks`] for free.

mod bless;
mod read;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wonder_core::input::StartRun;
use wonder_core::value::Value;

use crate::diff;
use crate::host::ScenarioHost;
use crate::inputs::ScriptedInput;
use crate::script::Script;
use crate::world::{Library, Setting, World};
use crate::yaml::Mark;

pub use bless::bless;
pub use read::{Workflows, library};

#[derive(Debug)]
pub struct Scenario {
    pub path: PathBuf,
    /// The file as it is.
    pub text: String,
    pub cases: Vec<Case>,
}

#[derive(Debug)]
pub struct Case {
    pub name: String,
    pub library: Library,
    pub workflow: wonder_core::def::Name,
    pub start: StartRun,
    pub script: Arc<Script>,
    pub inputs: Vec<ScriptedInput>,
    pub expect: Expect,
    /// Where `expect` stands.
    pub mark: Mark,
}

#[derive(Debug, Default)]
pub struct Expect {
    /// Of the run, or `waiting`.
    pub status: Option<String>,
    pub output: Option<Value>,
    /// The run's own `state` at the end.
    pub state: Option<Value>,
    /// The kind of the failure, when it failed.
    pub error: Option<String>,
    /// A part of the failure's message.
    pub message: Option<String>,
    /// What `why` says at the end.
    pub waiting: Option<Vec<String>>,
    pub trace: Trace,
}

#[derive(Debug, Default)]
pub enum Trace {
    /// Not written: a mistake, unless the file is being blessed.
    #[default]
    Missing,
    /// `trace: false`.
    Off,
    /// The text, and where its key stands.
    Written(String, Mark),
}

impl Scenario {
    pub fn load(path: &Path) -> Result<Scenario, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        read::scenario(path, text)
    }
}

impl Case {
    pub fn setting(&self) -> Setting {
        Setting {
            library: self.library.clone(),
            workflow: self.workflow.clone(),
            start: self.start.clone(),
            outcomes: self.script.clone(),
            inputs: self.inputs.clone(),
            shuffle: None,
            repeat: false,
            failing: None,
        }
    }

    /// The world at the end of this case.
    pub fn run(&self) -> World {
        let mut world = World::new(self.setting());
        world.run_on();
        world
    }

    /// What is not as expected, readable.
    pub fn mismatches<H: ScenarioHost>(&self, world: &World<H>) -> Vec<String> {
        let mut found: Vec<String> = world.violations().to_vec();
        let expect = &self.expect;
        let root = world.root();
        let mut compare = |what: &str, expected: Option<String>, is: String| {
            if let Some(expected) = expected.filter(|expected| *expected != is) {
                found.push(format!("{what}: expected {expected}, found {is}"));
            }
        };
        let failure = root.run.failure();
        compare("status", expect.status.clone(), root.status());
        let output = root.run.output().map_or("nothing".to_owned(), Value::to_string);
        compare("output", expect.output.as_ref().map(Value::to_string), output);
        compare("state", expect.state.as_ref().map(Value::to_string), root.run.state().state.to_string());
        compare("error", expect.error.clone(), failure.map_or("nothing".to_owned(), |f| f.kind.to_string()));
        let message = failure.map_or(String::new(), |failure| failure.message.clone());
        if let Some(part) = expect.message.as_ref().filter(|part| !message.contains(part.as_str())) {
            found.push(format!("message: expected …{part}…, found {message}"));
        }
        if let Some(expected) = &expect.waiting {
            let is: Vec<String> = root.run.why().iter().map(ToString::to_string).collect();
            if let Some(diff) = diff::lines(&expected.join("\n"), &is.join("\n")) {
                found.push(format!("waiting:\n{diff}"));
            }
        }
        match &expect.trace {
            Trace::Missing => found.push("no trace is written: WONDER_BLESS=1 writes it".to_owned()),
            Trace::Written(expected, _) => {
                found.extend(diff::lines(expected, &world.trace()).map(|diff| format!("trace:\n{diff}")));
            }
            Trace::Off => {}
        }
        found
    }
}
