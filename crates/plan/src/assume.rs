//! What only a run can know, and what a plan assumes in its place, so that the engine itself can be asked how
//! a run goes. The input, and what commands, requests, models, people, events and other workflows answer, is
//! not known; what mocks and the coordinator make without any of that is, and is left to the engine.
//!
//! Assumed is: a condition nobody can know lets the longest way go on, in a loop once; a list nobody can know
//! has one item, or as many as its fan-in wants; a dag's unit runs; whatever else reads what is not known is null. Nothing comes too late and
//! no budget is spent: the plan looks at timeouts and budgets itself.

use std::collections::BTreeSet;
use std::sync::Arc;

use wonder_core::def::{FanOut, Implementation, MergeStrategy, Name, On, Strategy, WorkflowTimeout};
use wonder_core::expr::{Expr, Read};
use wonder_core::graph::{
    AssertionTest, Bound, CalleeSpec, Coordinated, Graph, Join, JoinTimeout, MapTree, Merge, MergeInto, Node,
    NodeInput, NodeIx, Perform, SleepSpec, Source, Spread, StepInput, Task, TransitionIx, UnitIx,
};
use wonder_core::path::{Root, Target};
use wonder_core::template::Template;
use wonder_core::value::Value;

use super::fan_outs::spread_of;
use super::report::ChoicePlan;
use super::walk::Walk;

/// Later than any run ends: what a deadline is when there is to be none.
pub(super) const NEVER_MS: u64 = 1_000 * 365 * 86_400_000;
/// Items that are assumed where a fan-in wants many.
const ITEMS_MAX: usize = 1_000;
/// All keys of a root.
const ALL: &str = "*";

/// A graph in which everything can be decided.
#[derive(Debug)]
pub(super) struct Assumed {
    pub(super) graph: Arc<Graph>,
    /// Of each node, whether its result is what a run would have.
    pub(super) known: Vec<bool>,
    pub(super) choices: Vec<ChoicePlan>,
}

impl Assumed {
    /// `duration_ms`: what each node is expected to take.
    pub(super) fn of(graph: &Graph, duration_ms: &dyn Fn(usize) -> u64) -> Assumed {
        let knowledge = Knowledge::of(graph);
        let mut assumed = graph.clone();
        for (at, node) in assumed.nodes.iter_mut().enumerate() {
            knowledge.node(node, knowledge.known[at]);
        }
        let mut choices = knowledge.ways(&mut assumed, duration_ms);
        for (at, transition) in assumed.transitions.iter_mut().enumerate() {
            if let Some(Spread::Each { items, .. }) = &mut transition.spread
                && !knowledge.reads(items.reads(), knowledge.known[transition.from.0 as usize])
            {
                let wanted = match graph.joins.get(&Source::Transition(TransitionIx(at as u32))) {
                    Some(Join { strategy: Strategy::MOfN(wanted), .. }) => *wanted as usize,
                    _ => 1,
                };
                *items = expr(&format!("[{}]", vec!["null"; wanted.min(ITEMS_MAX)].join(", ")));
            }
        }
        for join in assumed.joins.values_mut() {
            join.timeout = JoinTimeout::Never;
            if let Some(merge) = join.merge.as_mut().filter(|merge| !knowledge.merged(merge)) {
                merge.source = None;
                if let MergeInto::Context { strategy, .. } = &mut merge.into {
                    *strategy = MergeStrategy::Append;
                }
            }
        }
        for unit in &mut assumed.units {
            if unit.when.as_ref().is_some_and(|when| !knowledge.reads(when.reads(), false)) {
                unit.when = None;
                let of = vec![unit.reference.clone()];
                choices.push(ChoicePlan { node: unit.reference.clone(), among: of.clone(), counted: of });
            }
        }
        if let Some(mapping) = &mut assumed.output_mapping {
            knowledge.scrub(mapping, false);
        }
        if knowledge.known.contains(&false) {
            (assumed.context_schema, assumed.output_schema) = (None, None);
        }
        assumed.input_schema = None;
        assumed.budget = None;
        assumed.concurrency = None;
        assumed.timeout_ms = NEVER_MS;
        assumed.on_timeout = WorkflowTimeout::Fail;
        Assumed { graph: Arc::new(assumed), known: knowledge.known, choices }
    }
}

/// What is known of results, and of the context by its top-level keys.
struct Knowledge<'g> {
    graph: &'g Graph,
    known: Vec<bool>,
    /// Roots and keys that somebody writes what is not known to.
    unknown: BTreeSet<(Name, Name)>,
}

impl<'g> Knowledge<'g> {
    fn of(graph: &'g Graph) -> Knowledge<'g> {
        let known = vec![true; graph.nodes.len()];
        let mut knowledge = Knowledge { graph, known, unknown: BTreeSet::new() };
        while knowledge.learn() {}
        knowledge
    }

    /// Goes once over everything that writes; true if something turned out not to be known.
    fn learn(&mut self) -> bool {
        let graph = self.graph;
        let before = (self.unknown.len(), self.known.iter().filter(|known| **known).count());
        for (at, node) in graph.nodes.iter().enumerate() {
            self.known[at] = self.known[at] && self.result(node);
            let set = match inline(node) {
                Some(Coordinated::UpdateContext { set }) => set.as_slice(),
                _ => &[],
            };
            for write in set.iter().chain(node.output.iter().flatten()) {
                if !self.tree(&write.value, self.known[at]) {
                    self.forget(&write.target);
                }
            }
            if !self.known[at] && node.output.is_none() && !node.writes_nothing {
                self.unknown.insert(("state".into(), node.reference.clone()));
                self.unknown.insert(("_branch".into(), "output".into()));
            }
        }
        for transition in &graph.transitions {
            if let Some(Spread::Each { items, item_name, .. }) = &transition.spread
                && !self.reads(items.reads(), self.known[transition.from.0 as usize])
            {
                self.unknown.insert(("_branch".into(), "item".into()));
                self.unknown.extend(item_name.iter().map(|name| (name.clone(), ALL.into())));
            }
        }
        for merge in graph.joins.values().filter_map(|join| join.merge.as_ref()) {
            if let (MergeInto::Context { target, .. }, false) = (&merge.into, self.merged(merge)) {
                self.forget(target);
            }
        }
        before != (self.unknown.len(), self.known.iter().filter(|known| **known).count())
    }

    fn merged(&self, merge: &Merge) -> bool {
        match &merge.source {
            Some(source) => self.reads(source.reads(), false),
            None => !self.is_unknown("_branch", Some("output")),
        }
    }

    fn forget(&mut self, target: &Target) {
        let (root, key) = match target.root {
            Root::State => ("state", target.path.first()),
            Root::Output => ("output", target.path.first()),
            Root::Branch => ("_branch", None),
        };
        let all: Name = if root == "_branch" { "output".into() } else { ALL.into() };
        self.unknown.insert((root.into(), key.cloned().unwrap_or(all)));
    }

    fn is_unknown(&self, root: &str, key: Option<&str>) -> bool {
        let has = |key: &str| self.unknown.contains(&(root.into(), key.into()));
        match key {
            Some(key) => has(ALL) || has(key),
            None => self.unknown.iter().any(|(of, _)| &**of == root),
        }
    }

    /// Whether a node's result is known: mocks and what the coordinator does by itself, on what is known.
    fn result(&self, node: &Node) -> bool {
        let pure = |task: &Task| {
            task.steps.iter().all(|step| {
                matches!(
                    step.action.def.implementation,
                    Implementation::Mock(_) | Implementation::UpdateContext(_) | Implementation::Assert(_)
                )
            })
        };
        match &node.perform {
            Perform::Worker(task) => pure(task) && (self.input(node) || !reads_input(task)),
            Perform::Coordinator { .. } if inline(node).is_some() => match inline(node) {
                Some(Coordinated::UpdateContext { set }) => {
                    set.iter().all(|write| self.tree(&write.value, false))
                }
                _ => true,
            },
            Perform::Coordinator { task, .. } => match &task.steps[0].action.coordinated {
                Some(Coordinated::Sleep(_)) => true,
                _ => pure(task) && self.input(node),
            },
            Perform::Pass => node.unit.is_none_or(|unit| self.unit(unit)),
            Perform::Review => false,
        }
    }

    fn input(&self, node: &Node) -> bool {
        match &node.input {
            NodeInput::Mapped(tree) => self.tree(tree, false),
            NodeInput::Named(reads) | NodeInput::NamedInput(reads) => self.reads(reads, false),
            NodeInput::RunInput => false,
            NodeInput::Needs => {
                let needs = node.unit.map(|unit| &self.graph.unit(unit).needs);
                needs.into_iter().flatten().all(|need| self.unit(*need))
            }
            NodeInput::Empty => true,
        }
    }

    /// By the node that does the work.
    fn unit(&self, unit: UnitIx) -> bool {
        let head = self.graph.unit(unit).head;
        let works = spread_of(self.graph, self.graph.node(head)).map_or(head, |(to, _)| to);
        self.known[works.0 as usize]
    }

    /// `result`: whether `result` is known where these are read.
    fn reads(&self, reads: &[Read], result: bool) -> bool {
        reads.iter().all(|read| {
            let key = read.path.first().map(|key| &**key);
            match (&*read.root, key) {
                ("result", _) => result,
                ("input" | "run" | "secret", _) => false,
                ("error" | "feedback" | "_last_error", _) | ("state", Some("_last_error")) => true,
                ("needs", Some(unit)) => {
                    let unit = self.graph.find_node(unit).and_then(|node| self.graph.node(node).unit);
                    unit.is_some_and(|unit| self.unit(unit))
                }
                ("needs", None) => !self.known.contains(&false),
                (root, key) => !self.is_unknown(root, key),
            }
        })
    }

    fn tree(&self, tree: &MapTree, result: bool) -> bool {
        match tree {
            MapTree::Expr(expr) => self.reads(expr.reads(), result),
            MapTree::Literal(_) => true,
            MapTree::Map(entries) => entries.iter().all(|(_, tree)| self.tree(tree, result)),
            MapTree::List(items) => items.iter().all(|tree| self.tree(tree, result)),
        }
    }

    /// What is not known becomes null.
    fn scrub(&self, tree: &mut MapTree, result: bool) {
        match tree {
            MapTree::Expr(expr) if !self.reads(expr.reads(), result) => *tree = MapTree::Literal(Value::Null),
            MapTree::Expr(_) | MapTree::Literal(_) => {}
            MapTree::Map(entries) => entries.iter_mut().for_each(|(_, tree)| self.scrub(tree, result)),
            MapTree::List(items) => items.iter_mut().for_each(|tree| self.scrub(tree, result)),
        }
    }

    fn node(&self, node: &mut Node, known: bool) {
        let input_known = self.input(node);
        if let NodeInput::Mapped(tree) = &mut node.input {
            self.scrub(tree, false);
        }
        for write in node.output.iter_mut().flatten() {
            self.scrub(&mut write.value, known);
        }
        (node.timeout_ms, node.budget, node.may_mutate) = (None, None, None);
        match &mut node.perform {
            Perform::Worker(task) if !known => Arc::make_mut(task).input_schema = None,
            Perform::Coordinator { task, inline } => {
                let inline = *inline;
                let task = Arc::make_mut(task);
                let step = &mut task.steps[0];
                let action = Arc::make_mut(&mut step.action);
                if !input_known && !inline {
                    (task.input_schema, action.requires, step.condition) = (None, None, None);
                    step.input = StepInput::Whole { mapped: true };
                }
                if !known {
                    (task.output_schema, action.produces, step.output) = (None, None, None);
                }
                if let Some(other) = self.coordinated(action.coordinated.as_mut(), inline, input_known) {
                    node.perform = other;
                }
            }
            _ => {}
        }
    }

    /// What the coordinator is told: nobody is late and what is not known is plain. Or what is in its place:
    /// a question to somebody, or nothing.
    fn coordinated(&self, of: Option<&mut Coordinated>, inline: bool, input_known: bool) -> Option<Perform> {
        match of? {
            Coordinated::UpdateContext { set } if inline => {
                set.iter_mut().for_each(|write| self.scrub(&mut write.value, false));
            }
            Coordinated::UpdateContext { .. } => return (!input_known).then_some(Perform::Pass),
            Coordinated::Assert(assertion) => {
                let known = match &assertion.test {
                    _ if !inline => input_known,
                    AssertionTest::That(that) => self.reads(that.reads(), false),
                    AssertionTest::Fits { value, .. } => self.reads(value.reads(), false),
                    AssertionTest::Scores { score, at_least } => {
                        self.reads(score.reads(), false) && self.tree(at_least, false)
                    }
                };
                return (!known).then_some(Perform::Pass);
            }
            Coordinated::HumanGate(_) | Coordinated::WaitEvent(_) => return Some(Perform::Review),
            Coordinated::Sleep(SleepSpec::For(text)) if text.is_plain() || input_known => {}
            Coordinated::Sleep(sleep) => *sleep = SleepSpec::For(plain("1s")),
            Coordinated::WorkflowCall(call) => {
                (call.timeout_ms, call.inherit_timeout) = (None, false);
                if !matches!(&call.workflow, CalleeSpec::Named(name) if name.is_plain()) {
                    call.workflow = CalleeSpec::Named(plain("?"));
                }
            }
        }
        None
    }

    /// Decides every condition that nobody can know. Where one way is taken, the longest one is, and before it
    /// the longest that stays in the loop, once; where all that fit are, all are. No way leads back.
    fn ways(&self, assumed: &mut Graph, duration_ms: &dyn Fn(usize) -> u64) -> Vec<ChoicePlan> {
        let graph = self.graph;
        let next = graph.nodes.iter().map(|node| {
            let out = node.out.iter().map(|ix| graph.transition(*ix)).filter(|way| way.on != On::Failure);
            out.map(|way| way.to.0 as usize).collect()
        });
        let next: Vec<Vec<usize>> = next.collect();
        let walk = Walk::of(graph.initial.0 as usize, &next);
        let mut longest = vec![0u64; next.len()];
        for at in &walk.order {
            let on = next[*at].iter().filter(|to| !walk.back.contains(&(*at, **to)));
            let behind = on.map(|to| longest[*to]).max().unwrap_or(0);
            longest[*at] = duration_ms(*at).saturating_add(behind);
        }
        let mut choices = Vec::new();
        for (at, node) in graph.nodes.iter().enumerate() {
            let is_unknown = |ix: &TransitionIx| {
                let condition = graph.transition(*ix).condition.as_ref();
                condition.is_some_and(|condition| !self.reads(condition.reads(), self.known[at]))
            };
            let outs: Vec<TransitionIx> =
                node.out.iter().copied().filter(|ix| graph.transition(*ix).on != On::Failure).collect();
            if !outs.iter().any(is_unknown) {
                continue;
            }
            let to = |ix: &TransitionIx| graph.transition(*ix).to.0 as usize;
            let leads_back = |ix: &TransitionIx| walk.back.contains(&(at, to(ix)));
            let in_loop = |ix: &TransitionIx| walk.component_of[at] == walk.component_of[to(ix)];
            let always = outs.iter().position(|ix| graph.transition(*ix).condition.is_none());
            let open = outs.iter().take(always.map_or(outs.len(), |at| at + 1));
            let open: Vec<TransitionIx> = open
                .copied()
                .filter(|ix| is_unknown(ix) || graph.transition(*ix).condition.is_none())
                .collect();
            let best = |inside: bool| {
                let ways = open.iter().rev().filter(|ix| !leads_back(ix) && in_loop(ix) == inside);
                ways.max_by_key(|ix| longest[to(ix)]).copied()
            };
            let all = node.fan_out == FanOut::All;
            let counted: Vec<TransitionIx> = match all {
                true => outs.iter().copied().filter(|ix| !leads_back(ix)).collect(),
                false => [best(true), best(false)].into_iter().flatten().collect(),
            };
            for ix in outs.iter().filter(|ix| is_unknown(ix)) {
                let taken = counted.contains(ix);
                let transition = &mut assumed.transitions[ix.0 as usize];
                transition.condition = (!taken).then(|| expr("false"));
                if taken && all && in_loop(ix) {
                    transition.max_iterations = Some(Bound::Count(1));
                }
            }
            // Stays in the loop once, and leaves it then.
            if let (Some(inside), Some(_)) = (best(true), best(false).filter(|_| !all)) {
                assumed.transitions[inside.0 as usize].max_iterations = Some(Bound::Count(1));
                let out = &mut assumed.nodes[at].out;
                out.retain(|ix| *ix != inside);
                out.insert(0, inside);
            }
            let names = |list: &[TransitionIx]| -> Vec<Name> {
                list.iter().map(|ix| graph.node(NodeIx(to(ix) as u32)).reference.clone()).collect()
            };
            let among = if all { names(&outs) } else { names(&open) };
            choices.push(ChoicePlan { node: node.reference.clone(), among, counted: names(&counted) });
        }
        choices
    }
}

/// An action that works on the run's scope itself.
fn inline(node: &Node) -> Option<&Coordinated> {
    let Perform::Coordinator { task, inline: true } = &node.perform else { return None };
    let coordinated = task.steps[0].action.coordinated.as_ref()?;
    matches!(coordinated, Coordinated::UpdateContext { .. } | Coordinated::Assert(_)).then_some(coordinated)
}

/// Whether what a task of mocks gives can depend on its input: it has a template, or asks for it by name.
fn reads_input(task: &Task) -> bool {
    let is_input = |reads: &[Read]| reads.iter().any(|read| &*read.root == "input");
    task.steps.iter().any(|step| {
        let text = serde_json::to_string(&step.action.def.implementation).unwrap_or_default();
        let tested = step.condition.as_ref().is_some_and(|condition| is_input(condition.test.reads()));
        let named = matches!(&step.input, StepInput::Named(reads) if !is_input(reads));
        tested || step.action.requires.is_some() || (text.contains("{{") && !named)
    })
}

fn expr(text: &str) -> Expr {
    Expr::compile(text).expect("it is an expression")
}

fn plain(text: &str) -> Template {
    Template::compile(text).expect("it is a plain text")
}
