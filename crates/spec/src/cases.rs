//! Files of cases (`*.test.yaml`): read with their places, held against the workflow that they test, and rewritten
//! with what really came out.
//!
//! Nothing is played here: what a case says is plain data for whoever plays it.

mod known;
mod read;
mod rewrite;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use wonder_core::def::Name;
use wonder_core::error::Failure;
use wonder_core::graph::Graph;
use wonder_core::value::Value;

use crate::diagnostics::{Diagnostic, Diagnostics, Source};
use crate::place::Span;

pub use rewrite::{Edit, rewritten};

/// A file of cases, as far as it could be read.
#[derive(Debug)]
pub struct TestFile {
    /// The file with the workflow, as it is written; nothing: the one of the same name.
    pub workflow: Option<String>,
    /// Which of its workflows is started; nothing: the first.
    pub start: Option<Name>,
    pub cases: Vec<Case>,
    source: Arc<Source>,
    problems: Vec<Diagnostic>,
    /// Where the names stand that have to be known to the workflow.
    names: Vec<Written>,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    /// From 1.
    pub line: usize,
    pub input: Value,
    /// Those of the case, then those that the file has for all.
    pub mocks: Vec<Mock>,
    pub gates: BTreeMap<String, Vec<Answer>>,
    /// Those of them that the file has for all cases.
    pub shared_gates: BTreeSet<String>,
    pub signals: Vec<Signal>,
    /// As it is written.
    pub cassette: Option<String>,
    pub expect: Expect,
}

/// What stands in for something that would reach out.
#[derive(Clone, Debug)]
pub struct Mock {
    pub of: Mocked,
    /// One per try; the last repeats. There is at least one.
    pub outcomes: Vec<Outcome>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Mocked {
    Node(Place),
    /// Every node of that name in a called workflow.
    Tool(Name),
    /// Every call of this profile.
    Model(Name),
}

/// `fix/think`, `judge[1]`, `build/compile`: nodes from the outermost in, the last of which may be a step.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Place(pub Vec<Part>);

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Part {
    pub name: Name,
    /// Branch numbers, outermost first; a single one is that of the innermost branch. Nothing: any branch.
    pub branch: Option<Vec<u32>>,
}

/// What one try gives.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub result: Given,
    pub delay_ms: u64,
    pub usage: Option<Usage>,
}

#[derive(Clone, Debug)]
pub enum Given {
    /// The result, or what is told of it.
    Output(Value),
    /// What a model says or asks for, a command prints, a server answers.
    Said {
        text: Option<String>,
        json: Option<Value>,
        tool_calls: Vec<ToolCall>,
    },
    Error(Failure),
}

impl Default for Given {
    fn default() -> Given {
        Given::Said { text: None, json: None, tool_calls: Vec::new() }
    }
}

#[derive(Clone, Debug)]
pub struct ToolCall {
    pub tool: Name,
    pub arguments: Value,
    pub id: Option<Name>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub input_tokens: u64,
    pub cached_input_tokens: u64,
    pub cache_write_tokens: u64,
    pub output_tokens: u64,
    pub reasoning_tokens: u64,
    pub usd_micros: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Answer {
    pub answer: Value,
    pub by: Name,
    pub after_ms: u64,
}

#[derive(Clone, Debug)]
pub struct Signal {
    pub event: Name,
    pub key: Value,
    pub payload: Value,
    pub when: SignalTime,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SignalTime {
    /// So long after the start.
    At(u64),
    /// So long after it is first waited for.
    Awaited(u64),
}

/// What has to come of a case. What is absent may be as it likes, but for the status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expect {
    pub status: Option<String>,
    /// A part of it.
    pub output: Option<Value>,
    pub output_exactly: Option<Value>,
    pub state: Option<Value>,
    pub called: Option<Value>,
    pub error: Option<String>,
    pub message: Option<String>,
    pub path: Option<Vec<String>>,
    pub visits: BTreeMap<String, u64>,
    pub max_turns: Option<u64>,
    pub events: Option<Vec<String>>,
    pub cost_usd_micros: Option<u64>,
    pub max_cost_usd_micros: Option<u64>,
    pub took_ms: Option<u64>,
}

impl Expect {
    /// Nothing is written.
    pub fn is_empty(&self) -> bool {
        *self == Expect::default()
    }
}

/// A name in the file that has to be known to the workflow.
#[derive(Clone, Debug)]
struct Written {
    what: Wanted,
    text: String,
    span: Span,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Wanted {
    /// A node that can be mocked.
    Mock,
    /// Any node.
    Node,
    Tool,
    Model,
    Start,
    Workflow,
}

impl TestFile {
    /// Reads a file of cases. What is wrong with it is kept, to be told together with what does not fit the workflow.
    pub fn read(text: &str, file_name: &str) -> TestFile {
        read::file(text, file_name)
    }

    /// Holds it against the workflows that it tests, the first of which is started if the file names none. `others`
    /// are problems of the workflow's own files, or that there is no such file.
    pub fn against(mut self, graphs: &[Arc<Graph>]) -> Result<TestFile, Diagnostics> {
        known::check(&mut self, graphs);
        self.finish()
    }

    /// The same where there is no workflow to hold it against: `why` it is not there.
    pub fn without_workflow(mut self, why: &str) -> Diagnostics {
        let at = self.names.iter().find(|name| name.what == Wanted::Workflow).map(|name| name.span);
        let problem = Diagnostic::error(crate::codes::FILE_NOT_READ, at.unwrap_or_default(), why);
        let help = "write `workflow: FILE` with the path of the workflow, from this file";
        self.problems.insert(0, Diagnostic { span: at, ..problem.label("this file").help(help) });
        Diagnostics::new(vec![self.source.clone()], self.problems)
    }

    fn finish(mut self) -> Result<TestFile, Diagnostics> {
        if self.problems.is_empty() {
            return Ok(self);
        }
        Err(Diagnostics::new(vec![self.source.clone()], std::mem::take(&mut self.problems)))
    }
}

impl Place {
    /// Reads `fix/think` or `judge[1]/score`; None if it is no such text.
    pub fn parse(text: &str) -> Option<Place> {
        text.split('/').map(Part::parse).collect::<Option<Vec<Part>>>().map(Place)
    }
}

impl Part {
    fn parse(text: &str) -> Option<Part> {
        let (name, branch) = match text.split_once('[') {
            None => (text, None),
            Some((name, rest)) => {
                let numbers = rest.strip_suffix(']')?.split('.').map(|number| number.parse().ok());
                (name, Some(numbers.collect::<Option<Vec<u32>>>()?))
            }
        };
        (!name.is_empty()).then(|| Part { name: name.into(), branch })
    }
}
