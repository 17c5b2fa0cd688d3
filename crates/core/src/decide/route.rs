//! Routing: which transitions fit, and the tokens and groups that follow. A plan is made before anything
//! is recorded, so that an expression that breaks is a failure of the node, not of the step.

use crate::def::{FanOut, Name, On};
use crate::error::{ErrorKind, Failure};
use crate::event::{BranchRef, Counts, EventKind, GroupId, NewGroup, NewToken, Then, TokenId};
use crate::expr::Scope;
use crate::graph::{Bound, Graph, Node, NodeIx, Source, Spread, Transition, TransitionIx};
use crate::schedule::fan_in_timeout_ms;
use crate::scope::View;
use crate::task::expression_error;
use crate::value::Value;

use super::Decision;

/// What a successor inherits.
#[derive(Clone, Debug, Default)]
pub(super) struct Lineage {
    pub(super) parent: Option<TokenId>,
    pub(super) branch: Option<BranchRef>,
    pub(super) counts: Counts,
    pub(super) last_error: Option<Failure>,
    pub(super) feedback: Value,
    pub(super) carried: Value,
}

#[derive(Debug)]
pub(super) enum Plan {
    /// A terminal node.
    Ends,
    /// At a fan-in that is already there.
    Arrives(BranchRef),
    /// One hop, or several as a group of the node.
    Hops { hops: Vec<Hop>, as_group: bool },
}

#[derive(Debug)]
pub(super) struct Hop {
    transition: TransitionIx,
    /// How many branches, and their items.
    spread: Option<(u32, Value)>,
}

impl Plan {
    pub(super) fn then(&self) -> Then {
        match self {
            Plan::Ends => Then::Ends,
            Plan::Arrives(at) => Then::Arrives(at.group),
            Plan::Hops { .. } => Then::Routes,
        }
    }
}

impl Decision<'_> {
    /// Where a token at `node` goes. `view` is what conditions see, and whose graph is followed; `on` how the
    /// node ended. None: no failure transition fits, which is nobody's mistake.
    pub(super) fn plan(
        &self,
        lineage: &Lineage,
        node: &Node,
        view: View<'_>,
        on: On,
    ) -> Result<Option<Plan>, Failure> {
        let graph = view.graph;
        let listens = |ix: &&TransitionIx| {
            let transition = graph.transition(**ix);
            transition.on == on || transition.on == On::Any
        };
        let candidates: Vec<TransitionIx> = node.out.iter().filter(listens).copied().collect();
        if candidates.is_empty() {
            return Ok((on == On::Success).then_some(Plan::Ends));
        }
        // A failure leaves by one way, outside the group that the node would have made.
        let all = node.fan_out == FanOut::All && on == On::Success;
        let mut hops = Vec::new();
        for ix in candidates {
            let transition = graph.transition(ix);
            if fits(graph, transition, lineage, &view)? {
                hops.push(Hop { transition: ix, spread: self.spread(transition, &view)? });
                if !all {
                    break;
                }
            }
        }
        if hops.is_empty() {
            let message = format!(
                "no transition of {} fits; add one without a condition as the default",
                node.reference
            );
            return if on == On::Success {
                Err(Failure::new(ErrorKind::NoTransition, message))
            } else {
                Ok(None)
            };
        }
        let groups = u32::from(all) + u32::from(hops.iter().any(|hop| hop.spread.is_some()));
        self.check_nesting(lineage, groups)?;
        if let [hop] = hops.as_slice()
            && let (false, None) = (all, &hop.spread)
            && let Some(at) = self.arrival(graph, graph.transition(hop.transition), lineage.branch)
        {
            return Ok(Some(Plan::Arrives(at)));
        }
        Ok(Some(Plan::Hops { hops, as_group: all }))
    }

    /// The branch of the group at whose fan-in this transition arrives, seen from `branch`. A token outside
    /// any such group passes straight through: one definition works in both places.
    fn arrival(
        &self,
        graph: &Graph,
        transition: &Transition,
        branch: Option<BranchRef>,
    ) -> Option<BranchRef> {
        let sync = transition.sync?;
        let mut next = branch;
        while let Some(at) = next {
            let group = &self.state().groups[&at.group];
            if group.target == Some(transition.to.0)
                && sync.group.is_none_or(|named| self.made_by(graph, at.group, named))
            {
                return Some(at);
            }
            next = group.outer;
        }
        None
    }

    fn made_by(&self, graph: &Graph, group: GroupId, source: Source) -> bool {
        let group = &self.state().groups[&group];
        match source {
            Source::Node(node) => group.transition.is_none() && group.node == node.0,
            Source::Transition(ix) => group.transition.as_ref() == Some(&graph.transition(ix).reference),
        }
    }

    fn spread(&self, transition: &Transition, view: &View<'_>) -> Result<Option<(u32, Value)>, Failure> {
        let (total, items) = match &transition.spread {
            None => return Ok(None),
            Some(Spread::Count(count)) => (u64::from(*count), Value::Null),
            Some(Spread::Each { items, .. }) => {
                let value = items.eval(view).map_err(expression_error)?;
                let Some(list) = value.as_list() else {
                    let message = format!(
                        "foreach items must be a list, `{}` is a {}",
                        items.text(),
                        value.type_name()
                    );
                    return Err(Failure::new(ErrorKind::ExpressionError, message));
                };
                (list.len() as u64, value)
            }
        };
        let limits = &self.state().start.as_ref().expect("a run that routes has started").limits;
        let minted = self.state().tokens_minted + self.state().groups_made + total;
        for (limit, value, max) in [
            ("branches_max", total, u64::from(limits.branches_max)),
            ("tokens_max", minted, limits.tokens_max),
        ] {
            if value > max {
                let message =
                    format!("beyond the limit {limit} ({max}): {total} branches at {}", transition.reference);
                return Err(Failure::new(ErrorKind::LimitExceeded, message));
            }
        }
        Ok(Some((total as u32, items)))
    }

    fn check_nesting(&self, lineage: &Lineage, more: u32) -> Result<(), Failure> {
        let limits = &self.state().start.as_ref().expect("a run that routes has started").limits;
        if self.state().tokens_minted + self.state().groups_made >= limits.tokens_max {
            let message =
                format!("beyond the limit tokens_max ({}): a loop that never ends?", limits.tokens_max);
            return Err(Failure::new(ErrorKind::LimitExceeded, message));
        }
        if more == 0 {
            return Ok(());
        }
        let mut depth = more;
        let mut next = lineage.branch;
        while let Some(at) = next {
            depth += 1;
            next = self.state().groups[&at.group].outer;
        }
        if depth > limits.nesting_max {
            let message =
                format!("beyond the limit nesting_max ({}): groups within groups", limits.nesting_max);
            return Err(Failure::new(ErrorKind::LimitExceeded, message));
        }
        Ok(())
    }

    /// Records what a plan says. `from` is the token it is made for, ended by now.
    pub(super) fn follow(&mut self, plan: Plan, from: TokenId, node: NodeIx, lineage: Lineage) {
        match plan {
            Plan::Ends => {}
            Plan::Arrives(at) => {
                let within = lineage.branch.filter(|within| *within != at);
                self.record(EventKind::BranchArrived {
                    token: from,
                    group: at.group,
                    branch: at.branch,
                    within,
                });
            }
            Plan::Hops { hops, as_group: false } => {
                for hop in hops {
                    self.hop(hop, from, &lineage);
                }
            }
            Plan::Hops { hops, as_group: true } => {
                let group =
                    self.fan_out(Source::Node(node), from, &lineage, (hops.len() as u32, Value::Null));
                for (branch, hop) in hops.into_iter().enumerate() {
                    let branch = Some(BranchRef { group, branch: branch as u32 });
                    self.hop(hop, from, &Lineage { branch, ..lineage.clone() });
                }
            }
        }
    }

    fn hop(&mut self, hop: Hop, from: TokenId, lineage: &Lineage) {
        let graph = self.graph();
        let transition = graph.transition(hop.transition);
        let lineage = counted(transition, lineage);
        match hop.spread {
            Some(spread) => {
                self.fan_out(Source::Transition(hop.transition), from, &lineage, spread);
            }
            None => {
                let token = self.create_token(&lineage, transition.to, Some(transition.reference.clone()));
                self.arrive_if_there(token, transition, lineage.branch);
            }
        }
    }

    /// A token that was made by a transition which is itself a way into a fan-in has arrived at once.
    pub(super) fn arrive_if_there(
        &mut self,
        token: TokenId,
        transition: &Transition,
        branch: Option<BranchRef>,
    ) {
        if let Some(at) = self.arrival(self.run.graph(), transition, branch) {
            let within = branch.filter(|within| *within != at);
            self.record(EventKind::BranchArrived { token, group: at.group, branch: at.branch, within });
        }
    }

    fn fan_out(&mut self, source: Source, from: TokenId, lineage: &Lineage, spread: (u32, Value)) -> GroupId {
        let graph = self.graph();
        let (node, transition) = match source {
            Source::Node(node) => (node, None),
            Source::Transition(ix) => (graph.transition(ix).from, Some(graph.transition(ix))),
        };
        let (item_name, max_parallel) = match transition.and_then(|t| t.spread.as_ref()) {
            Some(Spread::Each { item_name, max_parallel, .. }) => (item_name.clone(), *max_parallel),
            _ => (None, None),
        };
        let join = graph.joins.get(&source);
        let group = self.next_group();
        let (total, items) = spread;
        self.record(EventKind::FanOut(NewGroup {
            group,
            token: from,
            node: graph.node(node).reference.clone(),
            transition: transition.map(|t| t.reference.clone()),
            outer: lineage.branch,
            total,
            items,
            item_name,
            max_parallel,
            joins_at: join.map(|join| graph.node(join.target).reference.clone()),
            timeout_ms: join.and_then(|join| fan_in_timeout_ms(join.timeout, total.into())),
            counts: lineage.counts.clone(),
            last_error: lineage.last_error.clone(),
        }));
        group
    }

    /// Starts as many branches of a transition's group as may run.
    pub(super) fn start_branches(&mut self, id: GroupId) {
        let graph = self.graph();
        let Some(group) = self.state().groups.get(&id) else { return };
        let Some(transition) = group.transition.as_ref().and_then(|t| graph.find_transition(t)) else {
            return;
        };
        let transition = graph.transition(transition);
        let lineage = Lineage {
            parent: Some(group.origin),
            counts: group.counts.clone(),
            last_error: group.last_error.clone(),
            ..Lineage::default()
        };
        while let Some(group) = self.state().groups.get(&id)
            && !group.closed
            && (group.branches.len() as u32) < group.total
            && group.max_parallel.is_none_or(|max| group.running() < max)
        {
            let branch = Some(BranchRef { group: id, branch: group.branches.len() as u32 });
            let lineage = Lineage { branch, ..lineage.clone() };
            let token = self.create_token(&lineage, transition.to, Some(transition.reference.clone()));
            self.arrive_if_there(token, transition, branch);
        }
    }

    pub(super) fn create_token(&mut self, lineage: &Lineage, node: NodeIx, via: Option<Name>) -> TokenId {
        let token = self.next_token();
        let mut lineage = lineage.clone();
        let at = self.run.graph().node(node);
        if at.max_visits.is_some() {
            *lineage.counts.entry(visits_of(&at.reference)).or_insert(0) += 1;
        }
        self.record(EventKind::TokenCreated(NewToken {
            token,
            node: at.reference.clone(),
            parent: lineage.parent,
            via,
            branch: lineage.branch,
            counts: lineage.counts,
            last_error: lineage.last_error,
            feedback: lineage.feedback,
            carried: lineage.carried,
        }));
        token
    }

    /// What the successors of this token inherit.
    pub(super) fn lineage(&self, id: TokenId) -> Lineage {
        let token = self.token(id);
        Lineage {
            parent: Some(id),
            branch: token.branch,
            counts: token.counts.clone(),
            last_error: token.last_error.clone(),
            ..Lineage::default()
        }
    }
}

fn fits(
    graph: &Graph,
    transition: &Transition,
    lineage: &Lineage,
    view: &dyn Scope,
) -> Result<bool, Failure> {
    let to = graph.node(transition.to);
    let times = |name: &Name| i64::from(lineage.counts.get(name).copied().unwrap_or(0));
    if let Some(bound) = &transition.max_iterations
        && times(&transition.reference) >= bound_now(bound, view)?
    {
        return Ok(false);
    }
    if let Some(bound) = &to.max_visits
        && times(&visits_of(&to.reference)) >= bound_now(bound, view)?
    {
        return Ok(false);
    }
    match &transition.condition {
        None => Ok(true),
        Some(condition) => condition.eval_bool(view).map_err(|error| {
            let mut failure = expression_error(error);
            failure.message =
                format!("condition of transition {}: {}", transition.reference, failure.message);
            failure
        }),
    }
}

/// What a bound is where it is asked for.
fn bound_now(bound: &Bound, view: &dyn Scope) -> Result<i64, Failure> {
    let expr = match bound {
        Bound::Count(count) => return Ok((*count).into()),
        Bound::Expr(expr) => expr,
    };
    let value = expr.eval(view).map_err(expression_error)?;
    value.as_i64().ok_or_else(|| {
        let message = format!("the bound `{}` must give an int, not a {}", expr.text(), value.type_name());
        Failure::new(ErrorKind::ExpressionError, message)
    })
}

/// Under what the visits of a node are counted: beside the refs of transitions, which have no colon in them.
fn visits_of(node: &Name) -> Name {
    format!("visits:{node}").into()
}

/// Counts a bounded transition for the lineage that takes it.
fn counted(transition: &Transition, lineage: &Lineage) -> Lineage {
    let mut lineage = lineage.clone();
    if transition.max_iterations.is_some() {
        *lineage.counts.entry(transition.reference.clone()).or_insert(0) += 1;
    }
    lineage
}
