//! A node's work is done: its result is written where the mapping says, checked, and routed on. Everything
//! that can go wrong is worked out before the first record; then it is a failure of the node.

use crate::def::{Name, On};
use crate::error::{ErrorKind, Failure};
use crate::event::{BranchRef, EventKind, Patch, PatchValue, Report, RunChange, TokenId};
use crate::expr::Scope;
use crate::graph::{MapTree, Mutation, Node, NodeIx, WriteTo};
use crate::path::{Root, Target, Way};
use crate::scope::{Pending, View};
use crate::task::{expression_error, mutations_at, violated};
use crate::value::Value;

use super::Decision;
use super::fail::Failed;
use super::route::{Lineage, Plan};

/// How a node came to its result.
#[derive(Clone, Debug)]
pub(super) enum How {
    Completed,
    /// By a response or a human, after this failure.
    Skipped(Option<Failure>),
}

/// Everything that follows from a result, worked out and not yet recorded.
struct Outcome {
    result: Value,
    patches: Vec<Patch>,
    unmapped: bool,
    plan: Plan,
    lineage: Lineage,
    growth: Option<Mutation>,
}

impl Decision<'_> {
    pub(super) fn complete(&mut self, id: TokenId, result: Value, report: Option<Report>, how: How) {
        let graph = self.graph();
        let at = self.node_of(id);
        let node = graph.node(at);
        if let (Some(behind), How::Completed) = (node.behind, &how) {
            return self.pass_behind(id, behind, result, report);
        }
        // A validator or review that let the result pass hands on what it was given.
        let result = if node.stands_for.is_some() { self.token(id).carried.clone() } else { result };
        let routed = self.ends_at(graph.routes_as(at), &how);
        match self.work_out(id, routed, result, &how) {
            Ok(outcome) => self.record_done(id, routed, outcome, report, how),
            Err(failure) => self.not_done(id, failure, report, &how),
        }
    }

    /// The result cannot be written or routed. What a response made of a failure gets no second response.
    fn not_done(&mut self, id: TokenId, failure: Failure, report: Option<Report>, how: &How) {
        let report = report.map(|report| Report { artifacts: Vec::new(), ..report });
        let failed = Failed { report, ..Failed::of(failure) };
        match how {
            How::Completed => self.fail(id, failed),
            How::Skipped(_) => self.fail_unhandled(id, failed),
        }
    }

    /// A dag's `foreach` that is skipped as a whole ends where it would have been gathered.
    fn ends_at(&self, at: NodeIx, how: &How) -> NodeIx {
        let graph = self.run.graph();
        match graph.node(at).unit.map(|unit| graph.unit(unit)) {
            Some(unit) if unit.head == at && matches!(how, How::Skipped(_)) => unit.tail,
            _ => at,
        }
    }

    fn pass_behind(&mut self, id: TokenId, behind: NodeIx, result: Value, report: Option<Report>) {
        let lineage = Lineage { carried: result.clone(), ..self.lineage(id) };
        let then = crate::event::Then::Routes;
        self.record(EventKind::TaskCompleted {
            token: id,
            result,
            patches: vec![],
            then,
            unmapped: false,
            report,
        });
        self.create_token(&lineage, behind, None);
    }

    fn work_out(&self, id: TokenId, at: NodeIx, result: Value, how: &How) -> Result<Outcome, Failure> {
        let graph = self.run.graph();
        let node = graph.node(at);
        self.check_size(&result)?;
        let (result, growth) = self.growth(node, result)?;
        let view = self.view(id).with_result(&result);
        let mut lineage = self.lineage(id);
        if let How::Skipped(Some(failure)) = how {
            lineage.last_error = Some(failure.clone());
        }
        let wanted = !(matches!(how, How::Skipped(_)) && result.is_null());
        let (patches, pending, unmapped) = match &node.output {
            _ if !wanted => (vec![], vec![], false),
            None if node.writes_nothing => (vec![], vec![], false),
            None if lineage.branch.is_some() => (vec![], vec![], true),
            None => self.default_write(node, &result),
            Some(writes) => {
                let (patches, pending) = evaluate(writes, view)?;
                (patches, pending, false)
            }
        };
        self.check_writes(lineage.branch, &pending)?;
        let view = view.with_pending(&pending);
        let plan = match &growth {
            None => self.plan(&lineage, node, view, On::Success)?,
            // Its new transitions are looked at first: the way goes by the graph as it will be.
            Some(mutation) => {
                let grown = graph.extended(mutation).map_err(refused)?;
                self.plan(&lineage, grown.node(at), View { graph: &grown, ..view }, On::Success)?
            }
        };
        let plan = plan.unwrap_or(Plan::Ends);
        Ok(Outcome { patches, unmapped, plan, lineage, growth, result })
    }

    fn record_done(&mut self, id: TokenId, at: NodeIx, outcome: Outcome, report: Option<Report>, how: How) {
        let Outcome { result, patches, unmapped, plan, lineage, growth } = outcome;
        if let Some(mutation) = growth {
            let reason = format!("{} asked for it", self.graph().node(at).reference);
            self.record(EventKind::RunMutated { token: Some(id), reason, what: RunChange::Graph(mutation) });
            self.start_ready_units();
        }
        let then = plan.then();
        self.record(match how {
            How::Completed => EventKind::TaskCompleted { token: id, result, patches, then, unmapped, report },
            How::Skipped(failure) => EventKind::TokenSkipped {
                token: id,
                output: result,
                patches,
                then,
                unmapped,
                failure,
                report,
            },
        });
        self.follow(plan, id, at, lineage);
        self.start_dependents(at);
    }

    /// `_mutations` of a node that may: the change it asks for, and the result without it.
    fn growth(&self, node: &Node, result: Value) -> Result<(Value, Option<Mutation>), Failure> {
        let Some(path) = node.may_mutate.and_then(|_| mutations_at(&result)) else {
            return Ok((result, None));
        };
        let asked = result.get_path(&path).cloned().unwrap_or_default();
        if self.state().metrics.mutations_applied >= self.run.graph().mutations_max {
            let message = format!("beyond mutations_max ({})", self.run.graph().mutations_max);
            return Err(Failure::new(ErrorKind::MutationRefused, message));
        }
        let parsed = serde_json::from_value::<Asked>(asked.to_json()).map_err(|error| {
            Failure::new(
                ErrorKind::MutationRefused,
                format!("_mutations does not read as nodes and transitions: {error}"),
            )
        })?;
        if let Some(started) = parsed.transitions.iter().find(|t| self.has_started(&t.to.text)) {
            let message = format!("{} has already started and can need nothing more", started.to);
            return Err(Failure::new(ErrorKind::MutationRefused, message));
        }
        let mutation = Mutation::Nodes {
            by: node.reference.clone(),
            nodes: parsed.nodes,
            transitions: parsed.transitions,
        };
        Ok((without(&result, &path), Some(mutation)))
    }

    /// `state.<ref> = result`; an inner node of a dag's `foreach` writes under the name of its unit.
    fn default_write(&self, node: &Node, result: &Value) -> (Vec<Patch>, Vec<Pending>, bool) {
        let reference = self.run.graph().written(node);
        let to = Target::state(vec![reference.clone()]);
        let patch = Patch { to: to.clone(), value: PatchValue::Result(vec![]) };
        (vec![patch], vec![Pending { to, value: result.clone() }], false)
    }

    pub(super) fn check_size(&self, value: &Value) -> Result<(), Failure> {
        let max = self.state().start.as_ref().map_or(u64::MAX, |start| start.limits.result_bytes_max);
        if value.fits(usize::try_from(max).unwrap_or(usize::MAX)) && value.depth(DEPTH_MAX) < DEPTH_MAX {
            return Ok(());
        }
        let message = format!(
            "the result is beyond the limit result_bytes_max ({max}) or nested beyond {DEPTH_MAX} levels"
        );
        Err(Failure::new(ErrorKind::LimitExceeded, message))
    }

    /// Appending needs a list. Outside branches a write must fit `context_schema` and the size of the context too.
    pub(super) fn check_writes(&self, branch: Option<BranchRef>, pending: &[Pending]) -> Result<(), Failure> {
        let graph = self.run.graph();
        self.check_appends(branch, pending)?;
        if branch.is_some() {
            return Ok(());
        }
        let view = View::of_run(self.state(), graph).with_pending(pending);
        let max = self.state().start.as_ref().map_or(u64::MAX, |start| start.limits.context_bytes_max);
        let mut bytes = self.state().context_bytes;
        for write in pending {
            bytes += write.value.size() as u64;
            if write.to.root != Root::State {
                continue;
            }
            match write.to.path.first() {
                Some(key) => {
                    if let Some(schema) = &graph.context_schema {
                        let value = view.read("state", std::slice::from_ref(key)).unwrap_or_default();
                        violated(&format!("state.{key}"), schema.check_property(key, &value))?;
                    }
                }
                None if write.value.as_map().is_none() => {
                    let message = format!("state must be an object, not a {}", write.value.type_name());
                    return Err(Failure::new(ErrorKind::ContractViolation, message));
                }
                None => {
                    for (key, value) in write.value.as_map().into_iter().flatten() {
                        if let Some(schema) = &graph.context_schema {
                            violated(&format!("state.{key}"), schema.check_property(key, value))?;
                        }
                    }
                }
            }
        }
        if bytes > max {
            let message = format!("the context grows beyond the limit context_bytes_max ({max})");
            return Err(Failure::new(ErrorKind::LimitExceeded, message));
        }
        Ok(())
    }
}

impl Decision<'_> {
    fn check_appends(&self, branch: Option<BranchRef>, pending: &[Pending]) -> Result<(), Failure> {
        let view = View::of_run(self.state(), self.run.graph()).in_branch(branch);
        for (at, write) in pending.iter().enumerate().filter(|(_, write)| write.to.way != Way::Replace) {
            let root = if write.to.root == Root::Output { "output" } else { "state" };
            let before = view.with_pending(&pending[..at]).read(root, &write.to.path).unwrap_or_default();
            let what = match (&before, &write.value) {
                (Value::Null | Value::List(_), Value::List(_)) => continue,
                (Value::Null | Value::List(_), _) if write.to.way == Way::Append => continue,
                (Value::Null | Value::List(_), value) => {
                    format!("what `[*]` appends is a list, not a {}", value.type_name())
                }
                (before, _) => {
                    format!("it holds a {}, and only a list can be appended to", before.type_name())
                }
            };
            return Err(Failure::new(ErrorKind::ContractViolation, format!("{}: {what}", write.to)));
        }
        Ok(())
    }
}

/// Deeper values could be stored and not be read back.
const DEPTH_MAX: usize = 100;

/// What a planning node may return.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    #[serde(default)]
    nodes: Vec<crate::def::NodeDef>,
    #[serde(default)]
    transitions: Vec<crate::def::TransitionDef>,
}

/// The value without what stands there.
fn without(value: &Value, path: &[Name]) -> Value {
    let mut rest = value.as_map().cloned().unwrap_or_default();
    match path {
        [] => {}
        [last] => drop(rest.remove(last)),
        [key, more @ ..] => {
            let inner = rest.get(key).map(|inner| without(inner, more));
            rest.extend(inner.map(|inner| (key.clone(), inner)));
        }
    }
    Value::from(rest)
}

pub(super) fn refused(problems: Vec<crate::problem::Problem>) -> Failure {
    let all: Vec<String> = problems.iter().map(|p| p.message.clone()).collect();
    Failure::new(ErrorKind::MutationRefused, all.join("; "))
}

/// The writes of a mapping: as patches that name the result where they can, and as values.
pub(super) fn evaluate(writes: &[WriteTo], view: View<'_>) -> Result<(Vec<Patch>, Vec<Pending>), Failure> {
    let (mut patches, mut pending) = (Vec::new(), Vec::new());
    for write in writes {
        let value = write.value.eval(&view).map_err(|error| {
            let mut failure = expression_error(error);
            failure.message = format!("output mapping of {}: {}", write.target, failure.message);
            failure
        })?;
        let part = match &write.value {
            MapTree::Expr(expr) => {
                expr.as_path().filter(|read| &*read.root == "result").map(|read| read.path.clone())
            }
            _ => None,
        };
        let to = write.target.clone();
        let stored = part.map_or_else(|| PatchValue::Value(value.clone()), PatchValue::Result);
        patches.push(Patch { to: to.clone(), value: stored });
        pending.push(Pending { to, value });
    }
    Ok((patches, pending))
}
