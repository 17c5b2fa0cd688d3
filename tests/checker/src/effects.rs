//! What commands did in the world, against what the events say: no completed node ran again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::{Run, number, word};

/// One execution of a command, as it wrote itself.
#[derive(Clone, Debug)]
pub struct Execution {
    /// `run/token/step/generation`.
    pub key: String,
    /// The process that ordered it.
    pub host: u64,
    pub at: u64,
}

pub fn executions(log: &Path) -> Result<Vec<Execution>, String> {
    let text = std::fs::read_to_string(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let parse = |line: &str| -> Option<Execution> {
        let mut words = line.split_whitespace();
        let (key, host, at) = (words.next()?, words.next()?, words.next()?);
        Some(Execution { key: key.to_owned(), host: host.parse().ok()?, at: at.parse().ok()? })
    };
    text.lines().map(|line| parse(line).ok_or_else(|| format!("{line:?} is no execution"))).collect()
}

/// What is held against what.
pub(crate) struct Check<'r> {
    pub(crate) runs: &'r BTreeMap<String, Run>,
    /// Hosts that were killed.
    pub(crate) deaths: usize,
    pub(crate) broken: Vec<String>,
}

impl Check<'_> {
    /// How many keys were executed more than once.
    pub(crate) fn executions(&mut self, executions: &[Execution]) -> usize {
        let mut by_key: BTreeMap<&str, Vec<&Execution>> = BTreeMap::new();
        for execution in executions {
            by_key.entry(&execution.key).or_default().push(execution);
        }
        let (runs, mut repeated) = (self.runs, 0);
        for (key, times) in &by_key {
            repeated += usize::from(times.len() > 1);
            match owner(key, runs) {
                Some((run, token)) => self.key(key, times, run, token),
                None => self.broken.push(format!("{key} belongs to no run")),
            }
        }
        for run in runs.values() {
            for token in commands_completed(run) {
                let prefix = format!("{}/{token}/", run.id);
                if !by_key.range(&*prefix..).next().is_some_and(|(key, _)| key.starts_with(&prefix)) {
                    self.broken.push(format!("{prefix}* is completed and was never executed"));
                }
            }
        }
        repeated
    }

    fn key(&mut self, key: &str, times: &[&Execution], run: &Run, token: u64) {
        let broken = &mut self.broken;
        let hosts: BTreeSet<u64> = times.iter().map(|execution| execution.host).collect();
        if times.len() > self.deaths + 1 {
            broken.push(format!("{key} was executed {} times", times.len()));
        }
        if hosts.len() != times.len() {
            broken.push(format!("{key} was executed twice by one host"));
        }
        let about = |event: &&Value| number(event, "token") == token;
        let dispatched =
            run.events.iter().filter(about).find(|event| word(event, "kind") == "task_dispatched");
        let Some(dispatched) = dispatched else {
            return broken.push(format!("{key} was executed and never dispatched"));
        };
        let first = times.iter().map(|execution| execution.at).min().unwrap_or_default();
        if first < number(dispatched, "at") {
            broken.push(format!("{key} was executed before its dispatch was recorded"));
        }
        let completed = run.events.iter().filter(about).find(|event| word(event, "kind") == "task_completed");
        let Some(completed) = completed else { return };
        if let Some(late) = times.iter().find(|execution| execution.at > number(completed, "at")) {
            let at = number(completed, "at");
            broken.push(format!("{key} was executed at {} though it was completed at {at}", late.at));
        }
    }
}

fn owner<'r>(key: &str, runs: &'r BTreeMap<String, Run>) -> Option<(&'r Run, u64)> {
    let mut parts = key.split('/');
    let (run, token) = (parts.next()?, parts.next()?);
    Some((runs.get(run)?, token.parse().ok()?))
}

/// Completed tokens of nodes that run a command.
fn commands_completed(run: &Run) -> Vec<u64> {
    let commands: BTreeSet<&str> = run.bundle["workflow"]["nodes"]
        .as_array()
        .map_or(&[][..], Vec::as_slice)
        .iter()
        .filter(|node| runs_command(&run.bundle, word(node, "task")))
        .map(|node| word(node, "ref"))
        .collect();
    let node_of: BTreeMap<u64, &str> = run
        .events
        .iter()
        .filter(|event| word(event, "kind") == "token_created")
        .map(|event| (number(event, "token"), word(event, "node")))
        .collect();
    let completed = run.events.iter().filter(|event| word(event, "kind") == "task_completed");
    let tokens = completed.map(|event| number(event, "token"));
    tokens.filter(|token| node_of.get(token).is_some_and(|node| commands.contains(node))).collect()
}

fn runs_command(bundle: &Value, task: &str) -> bool {
    let steps = bundle["tasks"][task]["steps"].as_array().map_or(&[][..], Vec::as_slice);
    steps.iter().any(|step| bundle["actions"][word(step, "action")]["kind"] == "shell")
}
