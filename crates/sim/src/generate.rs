//! Random workflows as the text people write, so that the reader is exercised too. Every one of them is
//! valid: what a generator cannot say wrongly, no run can trip over.
//!
//! Graphs are built from blocks with one way in and some ways out, so that groups nest and fan-ins are fed
//! by construction. Dags only look back.

mod blocks;
mod dag;
mod parts;

use std::fmt::Write;

use crate::rng::Rng;

pub use parts::MUTATOR;

/// A file: the workflow to start, first, and those it may call.
pub fn file(seed: u64) -> String {
    let mut rng = Rng::of(seed, &[1]);
    let children = match rng.below(10) {
        0..=5 => 0,
        6..=8 => 1,
        _ => 2,
    };
    let called = |from: u64| (from..children).map(|at| format!("child_{at}")).collect::<Vec<_>>();
    let mut documents = vec![workflow(&mut rng, "main", 7, &called(0))];
    for at in 0..children {
        documents.push(workflow(&mut rng, &format!("child_{at}"), 3, &called(at + 1)));
    }
    documents.join("---\n")
}

/// One document. `size` is about how many blocks it has; `called` the workflows it may call.
fn workflow(rng: &mut Rng, name: &str, size: u64, called: &[String]) -> String {
    let mut draft = Draft::new(rng.draw(), called);
    let is_dag = rng.percent(22);
    if is_dag {
        dag::fill(&mut draft, size + 3);
    } else {
        blocks::fill(&mut draft, size);
    }
    let mut text = format!("wonder: 1\nname: {name}\n");
    parts::settings(&mut draft, &mut text);
    if is_dag && draft.attempts.percent(30) {
        text.push_str("fail_fast: true\n");
    }
    text.push_str("nodes:\n");
    draft.nodes.iter().for_each(|node| node.write(&draft, &mut text));
    text.push_str("tasks:\n");
    draft.tasks.iter().for_each(|task| text.push_str(task));
    text.push_str(parts::MODELS);
    text
}

/// A workflow in the making.
struct Draft {
    rng: Rng,
    /// For what was added to the generator later: a seed's older choices stay.
    attempts: Rng,
    nodes: Vec<NodeText>,
    tasks: Vec<String>,
    called: Vec<String>,
    /// Names of items in scope, innermost last.
    items: Vec<String>,
}

struct NodeText {
    reference: String,
    /// Its keys, one a line.
    keys: Vec<String>,
    next: Vec<Hop>,
}

/// A transition. One that leads nowhere yet is a way out of its block.
struct Hop {
    to: Option<usize>,
    keys: Vec<String>,
}

impl Draft {
    fn new(seed: u64, called: &[String]) -> Draft {
        let mut draft = Draft {
            rng: Rng::new(seed),
            attempts: Rng::of(seed, &[2]),
            nodes: Vec::new(),
            tasks: Vec::new(),
            called: called.to_vec(),
            items: Vec::new(),
        };
        draft.tasks.push(parts::validator());
        draft.tasks.push(parts::spare());
        draft
    }

    fn node(&mut self, keys: Vec<String>) -> usize {
        let at = self.nodes.len();
        self.nodes.push(NodeText { reference: format!("n{at}"), keys, next: Vec::new() });
        at
    }

    fn reference(&self, node: usize) -> &str {
        &self.nodes[node].reference
    }
}

impl NodeText {
    fn write(&self, draft: &Draft, text: &mut String) {
        let _ = writeln!(text, "  {}:", self.reference);
        for key in &self.keys {
            let _ = writeln!(text, "    {key}");
        }
        let hops: Vec<&Hop> = self.next.iter().filter(|hop| hop.to.is_some()).collect();
        if hops.is_empty() {
            return;
        }
        text.push_str("    next:\n");
        for hop in hops {
            let to = hop.to.map(|to| draft.reference(to)).unwrap_or_default();
            let keys: String = hop.keys.iter().map(|key| format!(", {key}")).collect();
            let _ = writeln!(text, "      - {{to: {to}{keys}}}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_writes_the_same_file() {
        assert_eq!(file(11), file(11));
        assert_ne!(file(11), file(12));
    }

    #[test]
    fn every_file_is_valid() {
        for seed in 0..300 {
            let text = file(seed);
            if let Err(problems) = wonder_spec::read_everything(&text, "generated.yaml") {
                panic!("seed {seed}:\n{text}\n{}", problems.render(false));
            }
        }
    }
}
