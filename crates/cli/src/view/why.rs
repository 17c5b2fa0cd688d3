//! Why a run does not go on, in words: one line for all tokens of a node that wait for the same, and for a run that
//! did not complete what failed and what never began.

use std::collections::BTreeMap;

use wonder_core::Time;
use wonder_core::event::{BranchRef, TokenId};
use wonder_core::run::{Waiting, WaitsFor};
use wonder_engine::run_tree::RunTree;
use wonder_engine::{Why, WhyReason};

use super::result::told;
use super::words::{count, duration, shell_word, until};
use crate::text::{Text, text};

/// Names of those who wait alike.
const NAMES_MAX: usize = 5;

enum Entry<'w> {
    Said(Text),
    /// Tokens that wait alike.
    Tokens(&'w Why, Vec<TokenId>),
}

/// `run_tree`: of the run that was asked about; it knows what each visit is called. `driven`: somebody carries it
/// on, so that what is out is being worked at.
pub(crate) fn lines(reasons: &[Why], (run_tree, driven): (&RunTree, bool), now: Time) -> Vec<Text> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut alike: BTreeMap<(&str, &str, String), usize> = BTreeMap::new();
    for why in reasons {
        let WhyReason::Run(Waiting { token: Some(token), node: Some(node), branch, on }) = &why.reason else {
            entries.extend(whole(why, run_tree, now).into_iter().map(Entry::Said));
            continue;
        };
        let at = *alike.entry((&why.run, node, shared(on, *branch))).or_insert(entries.len());
        match entries.get_mut(at) {
            Some(Entry::Tokens(_, tokens)) => tokens.push(*token),
            _ => entries.push(Entry::Tokens(why, vec![*token])),
        }
    }
    let said = |entry| match entry {
        Entry::Said(text) => text,
        Entry::Tokens(why, tokens) => said(why, &tokens, (run_tree, driven), now).into(),
    };
    entries.into_iter().map(said).collect()
}

/// What is no token's reason, but the run's.
fn whole(why: &Why, run_tree: &RunTree, now: Time) -> Vec<Text> {
    let run = &why.run;
    let of = if *run == run_tree.root { String::new() } else { format!("{run}: ") };
    match &why.reason {
        WhyReason::Run(Waiting { on, .. }) => {
            vec![text!("{}the run waits for {}", of, waited_for(run, on, run_tree, now))]
        }
        WhyReason::Concurrency { holders } => {
            vec![text!("{}the run waits for a place (concurrency): held by {}", of, holders.join(", "))]
        }
        WhyReason::Project { message, .. } => {
            vec![text!("{}{}: raise its budget in wonder.toml, then wonder resume", of, message)]
        }
        WhyReason::Rate { token, profile } => {
            let who = run_tree.label(run, *token);
            vec![text!("{} waits for the rate of model profile {}: all runs share it", who, profile)]
        }
        WhyReason::Failed { visit, failure, .. } => {
            let place = visit.as_ref().map_or("the run", String::as_str);
            let told = told(failure).into_iter().map(|line| text!("  {}", line));
            std::iter::once(text!("{}{} failed", of, place)).chain(told).collect()
        }
        WhyReason::Cancelled { reason } => vec![text!("{}cancelled: {}", of, reason)],
        WhyReason::NeverStarted { nodes } => vec![text!("{}never started: {}", of, nodes.join(", "))],
    }
}

/// What those have in common who are told in one line.
fn shared(on: &WaitsFor, branch: Option<BranchRef>) -> String {
    let group = branch.map_or(String::new(), |at| at.group.to_string());
    match on {
        // One may be tried again sooner than the other: they wait for the same kind of thing.
        WaitsFor::Backoff { .. } => format!("backoff {group}"),
        WaitsFor::Task { attempt } => format!("task {group} {attempt}"),
        WaitsFor::Child { .. } => format!("child {group}"),
        other => format!("{group} {other}"),
    }
}

/// `judge ×5 are running: judge[0], judge[1], …`
fn said(why: &Why, tokens: &[TokenId], (run_tree, driven): (&RunTree, bool), now: Time) -> String {
    let WhyReason::Run(Waiting { node, on, .. }) = &why.reason else { return String::new() };
    let label = |token: &TokenId| run_tree.label(&why.run, *token);
    let waits = waited_for(&why.run, on, run_tree, now);
    let what = match (on, tokens.len()) {
        (WaitsFor::Task { .. }, 1) if !driven => format!("waits to be carried on{waits}"),
        (WaitsFor::Task { .. }, _) if !driven => format!("wait to be carried on{waits}"),
        (WaitsFor::Task { .. }, 1) => format!("is running{waits}"),
        (WaitsFor::Task { .. }, _) => format!("are running{waits}"),
        (WaitsFor::Siblings { .. }, number) => {
            let node = run_tree.node_label(&why.run, node.as_deref().unwrap_or_default());
            let who = if number == 1 {
                format!("{} waits", label(&tokens[0]))
            } else {
                format!("{node} ×{number} wait")
            };
            return format!("{who} for {waits}");
        }
        (_, 1) => format!("waits for {waits}"),
        (WaitsFor::Backoff { .. }, _) => format!("wait to be tried again, the first for {waits}"),
        (WaitsFor::Child { .. }, _) => format!("wait for child runs, the first for {waits}"),
        (_, _) => format!("wait for {waits}"),
    };
    if let [only] = tokens {
        return format!("{} {what}", label(only));
    }
    let mut names: Vec<String> = tokens.iter().take(NAMES_MAX).map(label).collect();
    names.extend((tokens.len() > NAMES_MAX).then(|| "…".to_owned()));
    let node = run_tree.node_label(&why.run, node.as_deref().unwrap_or_default());
    format!("{node} ×{} {what}: {}", tokens.len(), names.join(", "))
}

/// In words, with the line to type where there is one. Of a task, which attempt it is, if not the first.
fn waited_for(run: &str, on: &WaitsFor, run_tree: &RunTree, now: Time) -> String {
    let left = |at: &Time| format!("{at} ({})", until(*at, now));
    match on {
        WaitsFor::Task { attempt: 0 | 1 } => String::new(),
        WaitsFor::Task { attempt } => format!(" (attempt {attempt})"),
        WaitsFor::Gate { gate, title } => {
            format!("gate {run}:{gate}: {title} (wonder gates {})", shell_word(&format!("{run}:{gate}")))
        }
        WaitsFor::Sleep { until } => format!("the time {}", left(until)),
        WaitsFor::Backoff { until } => format!("the end of its backoff at {}", left(until)),
        WaitsFor::Place { holders } => {
            let names: Vec<String> =
                holders.iter().take(NAMES_MAX).map(|token| run_tree.label(run, *token)).collect();
            let more = if holders.len() > NAMES_MAX { ", …" } else { "" };
            let tasks = count(holders.len() as u64, "task");
            format!("a place under max_parallel ({tasks} out: {}{more})", names.join(", "))
        }
        WaitsFor::Siblings { arrived, total, missing } => {
            let mut branches: Vec<String> = missing.iter().take(2 * NAMES_MAX).map(u32::to_string).collect();
            branches.extend((missing.len() > 2 * NAMES_MAX).then(|| "…".to_owned()));
            format!("the rest of its group: {arrived} of {total} arrived, missing {}", branches.join(", "))
        }
        WaitsFor::Event { until: Some(at), .. } | WaitsFor::Child { until: Some(at), .. } => {
            format!("{on} ({} left)", duration(at.since(now)))
        }
        other => other.to_string(),
    }
}
