//! Fan-ins: whether a group is ready, hopeless or neither; what it merges; what becomes of the rest.

use crate::def::{BranchFailure, EarlyComplete, MergeStrategy, Strategy, SyncTimeout};
use crate::error::{ErrorKind, Failure};
use crate::event::{
    BranchRef, CancelReason, EventKind, GroupId, Patch, PatchValue, TimeoutPolicy, TimeoutType, TokenId,
};
use crate::graph::{Join, Merge, MergeInto, NodeIx, Source};
use crate::lifecycle::TokenStatus;
use crate::path::{Target, Way};
use crate::scope::{Pending, View};
use crate::state::{Branch, Group};
use crate::task::expression_error;
use crate::value::{Map, Value};

use super::Decision;
use super::route::Lineage;

/// What a fan-in can say about its group.
enum Verdict {
    Waits,
    Fires,
    Fails(Failure),
}

impl Decision<'_> {
    /// Looks at a group in which something has ended.
    pub(super) fn judge(&mut self, id: GroupId) {
        let Some(join) = self.join_of(id) else { return self.start_branches(id) };
        let group = &self.state().groups[&id];
        match verdict(group, &join) {
            Verdict::Waits => self.start_branches(id),
            Verdict::Fires => self.fire(id, &join, false),
            Verdict::Fails(cause) => self.fail_fan_in(id, &cause, CancelReason::BranchFailed),
        }
    }

    /// The fan-in of an open group that has one.
    fn join_of(&self, id: GroupId) -> Option<Join> {
        let group = self.state().groups.get(&id).filter(|group| !group.closed && group.target.is_some())?;
        let graph = self.run.graph();
        let source = match &group.transition {
            Some(transition) => Source::Transition(graph.find_transition(transition)?),
            None => Source::Node(NodeIx(group.node)),
        };
        graph.joins.get(&source).cloned()
    }

    fn fire(&mut self, id: GroupId, join: &Join, late: bool) {
        let merged = match self.merge(id, join) {
            Ok(merged) => merged,
            Err(cause) => return self.fail_fan_in(id, &cause, CancelReason::BranchFailed),
        };
        // Before the rest is cancelled: a branch that is cut short has not arrived.
        let arrived = self.state().groups[&id].arrived;
        self.drop_the_rest(id, late || join.on_early_complete == EarlyComplete::Abandon, late);
        let group = &self.state().groups[&id];
        let total = group.total;
        let lineage = Lineage {
            parent: Some(group.origin),
            branch: group.outer,
            counts: group.counts.clone(),
            carried: merged.carried,
            ..Lineage::default()
        };
        let node = self.graph().node(join.target).reference.clone();
        self.record(EventKind::FanIn { group: id, node, arrived, total, patches: merged.patches });
        self.create_token(&lineage, join.target, None);
    }

    /// Branches still live when a fan-in fires: cancelled, or left to finish their task.
    fn drop_the_rest(&mut self, id: GroupId, abandon: bool, late: bool) {
        let branches = self.state().groups[&id].branches.len() as u32;
        for branch in 0..branches {
            let at = BranchRef { group: id, branch };
            let is_live = |run: &Self| run.state().groups.get(&id).is_some_and(|g| !g.branch(branch).done);
            if !is_live(self) {
                continue;
            }
            if abandon {
                for token in self.tokens_within(at) {
                    if self.token(token).status() == TokenStatus::Dispatched {
                        self.record(EventKind::TokenAbandoned { token, late });
                    }
                }
            }
            self.cancel_branch(at, CancelReason::EarlyComplete);
        }
    }

    fn tokens_within(&self, at: BranchRef) -> Vec<TokenId> {
        let branch = self.state().groups[&at.group].branch(at.branch);
        let mut tokens = branch.tokens.clone();
        for inner in &branch.groups {
            for index in 0..self.state().groups[inner].branches.len() as u32 {
                tokens.extend(self.tokens_within(BranchRef { group: *inner, branch: index }));
            }
        }
        tokens
    }

    /// The fan-in fails: a failure of the node that fanned out, one level out.
    pub(super) fn fail_fan_in(&mut self, id: GroupId, cause: &Failure, reason: CancelReason) {
        let graph = self.graph();
        let group = &self.state().groups[&id];
        let (origin, outer, node) = (group.origin, group.outer, NodeIx(group.node));
        let reference = graph.written_ref(node).clone();
        let message = format!("the fan-in of {reference} failed: {cause}");
        let failure = Failure {
            node: Some(reference),
            ..Failure::new(ErrorKind::FanInFailed, message).because_of(cause.clone())
        };
        let lineage = Lineage {
            parent: Some(origin),
            branch: outer,
            counts: group.counts.clone(),
            last_error: Some(failure.clone()),
            ..Lineage::default()
        };
        let branches = group.branches.len() as u32;
        for branch in 0..branches {
            self.cancel_branch(BranchRef { group: id, branch }, reason);
        }
        let error = failure.to_value();
        let view = View::of_run(self.state(), &graph).in_branch(outer).with_error(&error);
        let view = View { last_error: Some(&failure), ..view };
        let plan = self.plan(&lineage, graph.node(node), view, crate::def::On::Failure).unwrap_or(None);
        let handled = plan.is_some();
        self.record(EventKind::FanInFailed { group: id, failure: failure.clone(), handled });
        match plan {
            Some(plan) => self.follow(plan, origin, node, lineage),
            None => self.fail_outward(outer, failure),
        }
    }

    /// The time since the first arrival is over.
    pub(super) fn fan_in_expired(&mut self, id: GroupId) {
        let Some(join) = self.join_of(id) else { return };
        let graph = self.graph();
        let group = &self.state().groups[&id];
        let (timeout_ms, waiting, origin) =
            (group.timeout_ms.unwrap_or(0), group.waiting.clone(), group.origin);
        let node = graph.written_ref(join.target).clone();
        let policy = match join.on_timeout {
            SyncTimeout::Fail => TimeoutPolicy::Fail,
            SyncTimeout::ProceedWithAvailable => TimeoutPolicy::ProceedWithAvailable,
        };
        let proceeds = join.on_timeout == SyncTimeout::ProceedWithAvailable;
        let said = |token: TokenId, ends: bool, run: &Self| EventKind::TokenTimedOut {
            token: Some(token),
            workflow_run_id: run.run_id(),
            node: Some(node.clone()),
            timeout_type: TimeoutType::Synchronization,
            timeout_duration_ms: timeout_ms,
            policy_applied: policy,
            ends,
        };
        for token in &waiting {
            self.record(said(*token, !proceeds, self));
        }
        if waiting.is_empty() {
            // Those that arrived were skipped, and have ended: it was the wait of who fanned out.
            self.record(said(origin, false, self));
        }
        if proceeds {
            return self.fire(id, &join, true);
        }
        let message = format!("not every branch arrived within {timeout_ms} ms of the first");
        self.fail_fan_in(id, &Failure::new(ErrorKind::Timeout, message), CancelReason::BranchFailed);
    }

    fn merge(&self, id: GroupId, join: &Join) -> Result<Merged, Failure> {
        let Some(merge) = &join.merge else { return Ok(Merged::default()) };
        let group = &self.state().groups[&id];
        let slots = self.slots(group, merge)?;
        let (target, strategy) = match &merge.into {
            MergeInto::Carried => {
                let mut all = vec![Value::Null; group.total as usize];
                for slot in slots {
                    all[slot.index as usize] = slot.value;
                }
                return Ok(Merged { carried: Value::from(all), patches: vec![] });
            }
            MergeInto::Context { target, strategy } => (target, strategy),
        };
        let value = combine(slots, *strategy)?;
        let (to, value) = match (*strategy, target.way) {
            (MergeStrategy::Append, Way::Append) => {
                (Target { way: Way::AppendEach, ..target.clone() }, value)
            }
            (MergeStrategy::Append, Way::AppendEach) => (target.clone(), flattened(&value)?),
            _ => (target.clone(), value),
        };
        let pending = [Pending { to, value }];
        self.check_writes(group.outer, &pending)?;
        let [Pending { to, value }] = pending;
        Ok(Merged { patches: vec![Patch { to, value: PatchValue::Value(value) }], carried: Value::Null })
    }

    /// What each branch that arrived brings, in branch order; of failed ones their error if it is kept.
    fn slots(&self, group: &Group, merge: &Merge) -> Result<Vec<Slot>, Failure> {
        let mut slots = Vec::new();
        for (index, branch) in group.branches.iter().enumerate() {
            let index = index as u32;
            let value = match (&branch.failure, branch.arrival) {
                (None, Some(_)) => self.source(group.id, index, branch, merge)?,
                (Some(failure), _) if merge.keep_failed => Value::map([("error", failure.to_value())]),
                _ => continue,
            };
            slots.push(Slot { index, arrival: branch.arrival.unwrap_or(0), value });
        }
        Ok(slots)
    }

    fn source(&self, group: GroupId, branch: u32, state: &Branch, merge: &Merge) -> Result<Value, Failure> {
        let Some(source) = &merge.source else { return Ok(state.shown_output().clone()) };
        let at = BranchRef { group, branch };
        let view = View::of_run(self.state(), self.run.graph()).in_branch(Some(at));
        source.eval(&view).map_err(|error| {
            let mut failure = expression_error(error);
            failure.message = format!("merge source of branch {branch}: {}", failure.message);
            failure
        })
    }
}

/// What a fan-in hands on: by a write one level out, or in the hand of its continuation.
#[derive(Default)]
struct Merged {
    patches: Vec<Patch>,
    carried: Value,
}

struct Slot {
    index: u32,
    arrival: u32,
    value: Value,
}

/// Readiness, from what has arrived, failed and is still to come.
fn verdict(group: &Group, join: &Join) -> Verdict {
    if group.total == 0 {
        return Verdict::Fires;
    }
    let short = |wanted: u32| {
        let message = format!("{} of {} branches arrived, {wanted} are needed", group.arrived, group.total);
        let cause = Failure::new(ErrorKind::FanInFailed, message);
        Verdict::Fails(group.last_failure.clone().unwrap_or(cause))
    };
    let to_come = group.total - group.done;
    match join.strategy {
        Strategy::All => match &group.failure {
            Some(failure) if join.on_branch_failure == BranchFailure::Fail => Verdict::Fails(failure.clone()),
            _ if to_come > 0 => Verdict::Waits,
            Some(_) if group.arrived == 0 => short(1),
            _ => Verdict::Fires,
        },
        Strategy::Any | Strategy::MOfN(_) => {
            let wanted = if let Strategy::MOfN(m) = join.strategy { m } else { 1 };
            if group.arrived >= wanted {
                Verdict::Fires
            } else if group.arrived + to_come < wanted {
                short(wanted)
            } else {
                Verdict::Waits
            }
        }
    }
}

/// `append` into `x[*]`: what each branch brings is a list, and their items are appended.
fn flattened(lists: &Value) -> Result<Value, Failure> {
    let mut all = Vec::new();
    for (index, list) in lists.as_list().unwrap_or_default().iter().enumerate() {
        let Some(items) = list.as_list() else {
            let message = format!("`[*]` appends lists; branch {index} has a {}", list.type_name());
            return Err(Failure::new(ErrorKind::ContractViolation, message));
        };
        all.extend(items.iter().cloned());
    }
    Ok(Value::from(all))
}

fn combine(slots: Vec<Slot>, strategy: MergeStrategy) -> Result<Value, Failure> {
    Ok(match strategy {
        MergeStrategy::Append => Value::from(slots.into_iter().map(|slot| slot.value).collect::<Vec<_>>()),
        MergeStrategy::KeyedByBranch => {
            Value::map(slots.into_iter().map(|slot| (slot.index.to_string(), slot.value)))
        }
        MergeStrategy::LastWins => slots
            .into_iter()
            .max_by_key(|slot| (slot.arrival, slot.index))
            .map(|slot| slot.value)
            .unwrap_or_default(),
        MergeStrategy::MergeObject => {
            let mut all = Map::new();
            for slot in slots {
                let Some(map) = slot.value.as_map() else {
                    let message = format!(
                        "merge_object needs objects; branch {} has a {}",
                        slot.index,
                        slot.value.type_name()
                    );
                    return Err(Failure::new(ErrorKind::ContractViolation, message));
                };
                all.extend(map.iter().map(|(key, value)| (key.clone(), value.clone())));
            }
            Value::from(all)
        }
    })
}
