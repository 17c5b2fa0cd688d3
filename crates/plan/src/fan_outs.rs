//! Fan-outs as written: how many branches each makes, and where they join.

use wonder_core::def::{FanOut, Name, On, SchemaDef};
use wonder_core::expr::{Expr, Scope};
use wonder_core::graph::{Graph, Node, NodeIx, Source, Spread, UnitIx};
use wonder_core::limits::Limits;
use wonder_core::schedule::fan_in_timeout_ms;
use wonder_core::value::Value;

use super::report::{Branches, FanInPlan, FanOutPlan};

/// All of them, in the order of the nodes.
pub(super) fn fan_outs(graph: &Graph, limits: &Limits) -> Vec<FanOutPlan> {
    let name = |ix: NodeIx| graph.node(ix).reference.clone();
    let mut found = Vec::new();
    for (at, node) in graph.nodes.iter().enumerate().filter(|_| !graph.is_dag()) {
        let at = NodeIx(at as u32);
        let out = || node.out.iter().map(|ix| (ix, graph.transition(*ix)));
        if node.fan_out == FanOut::All {
            let to: Vec<Name> = out().filter(|(_, t)| t.on != On::Failure).map(|(_, t)| name(t.to)).collect();
            let free = out().all(|(_, transition)| transition.condition.is_none());
            let at_most = to.len() as u64;
            let branches =
                Branches { exact: free.then_some(at_most), at_most, by_data: false, each_of: None };
            let fan_in = fan_in(graph, Source::Node(at), &branches);
            found.push(FanOutPlan { node: name(at), to, fan_in, branches, max_parallel: None });
        }
        for (ix, transition) in out() {
            let Some(spread) = &transition.spread else { continue };
            let branches = branches(graph, spread, limits);
            let fan_in = fan_in(graph, Source::Transition(*ix), &branches);
            let (to, max_parallel) = (vec![name(transition.to)], at_once(spread));
            found.push(FanOutPlan { node: name(at), to, branches, max_parallel, fan_in });
        }
    }
    for unit in &graph.units {
        let Some((_, spread)) = spread_of(graph, graph.node(unit.head)) else { continue };
        let (node, branches) = (unit.reference.clone(), branches(graph, spread, limits));
        let (to, max_parallel) = (vec![node.clone()], at_once(spread));
        found.push(FanOutPlan { node, to, branches, max_parallel, fan_in: None });
    }
    found
}

/// The node that does the work of a unit: the one within its `foreach`, if it has one.
pub(super) fn worker_of(graph: &Graph, unit: UnitIx) -> &Node {
    let head = graph.node(graph.unit(unit).head);
    spread_of(graph, head).map_or(head, |(to, _)| graph.node(to))
}

/// The `foreach` of a dag's unit, by its first node.
pub(super) fn spread_of<'g>(graph: &'g Graph, head: &Node) -> Option<(NodeIx, &'g Spread)> {
    let transition = graph.transition(*head.out.first()?);
    Some((transition.to, transition.spread.as_ref()?))
}

pub(super) fn at_once(spread: &Spread) -> Option<u32> {
    match spread {
        Spread::Count(_) => None,
        Spread::Each { max_parallel, .. } => *max_parallel,
    }
}

/// The fan-in of a group.
fn fan_in(graph: &Graph, source: Source, branches: &Branches) -> Option<FanInPlan> {
    let join = graph.joins.get(&source)?;
    let timeout_ms = fan_in_timeout_ms(join.timeout, branches.at_most);
    let node = graph.node(join.target).reference.clone();
    Some(FanInPlan { node, strategy: join.strategy, timeout_ms, on_timeout: join.on_timeout })
}

/// How many branches a fan-out makes: as written, as many as a literal list has, or by data, where a schema
/// may still bound it.
pub(super) fn branches(graph: &Graph, spread: &Spread, limits: &Limits) -> Branches {
    let (exact, written, each_of) = match spread {
        Spread::Count(count) => (Some(u64::from(*count)), None, None),
        Spread::Each { items, .. } => {
            (literal_len(items), items_max(graph, items), Some(items.text().to_owned()))
        }
    };
    let (bound, limit) = (exact.or(written), u64::from(limits.branches_max));
    let at_most = exact.unwrap_or(written.unwrap_or(limit).min(limit));
    Branches { exact, at_most, by_data: bound.is_none(), each_of }
}

/// The length of a list that reads nothing.
fn literal_len(items: &Expr) -> Option<u64> {
    struct Nothing;
    impl Scope for Nothing {
        fn read(&self, _root: &str, _path: &[Name]) -> Option<Value> {
            None
        }
    }
    if !items.reads().is_empty() {
        return None;
    }
    Some(items.eval(&Nothing).ok()?.as_list()?.len() as u64)
}

/// `maxItems` of what is read, where a schema of the workflow says so.
fn items_max(graph: &Graph, items: &Expr) -> Option<u64> {
    let read = items.as_path()?;
    let workflow = &graph.bundle.workflow;
    let schema: &SchemaDef = match &*read.root {
        "input" => workflow.input_schema.as_ref()?,
        "state" => workflow.context_schema.as_ref()?,
        _ => return None,
    };
    let mut at = &schema.doc;
    for key in &read.path {
        at = at.get("properties")?.get(key)?;
    }
    u64::try_from(at.get("maxItems")?.as_i64()?).ok()
}
