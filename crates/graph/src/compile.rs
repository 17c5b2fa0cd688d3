//! From definitions to a graph: bones first, then in which branches each node can be, then everything that is
//! parsed, then what can only be told of the whole.
//!
//! Compiling judges nothing. It is total on every definition that was accepted once, by whatever version: what a
//! text means is fixed here, what may be written is for [`crate::check`] to say, and only of new text. A
//! definition that was never accepted (a name that leads nowhere, a text that does not parse) cannot be
//! compiled; which of its problems are met first is of no interest.

pub(crate) mod actions;
mod joins;
mod nodes;
mod rules;
mod tasks;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

pub(super) use actions::{CompiledAction, actions};
pub(super) use tasks::is_lone_action;

use self::actions::KnownAction;
use self::rules::add_dependents;
use crate::flow::Flow;
use crate::parsed::Parsed;
use crate::readings;
use crate::scope::Scopes;
use crate::shape::{Fault, Part, Shape};
use crate::texts::BadText;
use crate::{Graph, MapTree, Mutation, Node, Task, Unit, WriteTo, codes};
use wonder_lang::def::{Bundle, Kind, Name, SchemaDef, Spot, Text, Tree, Writes};
use wonder_lang::expr::Expr;
use wonder_lang::limits::{MUTATIONS_MAX, NODES_MAX, WORKFLOW_TIMEOUT_MS};
use wonder_lang::path::Target;
use wonder_lang::problem::Problem;
use wonder_lang::schema::Schema;

/// Why a definition is no graph. One that was accepted once never gives this, unless it was changed since.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CannotCompile {
    pub what: String,
}

impl CannotCompile {
    fn new(what: impl Into<String>) -> CannotCompile {
        CannotCompile { what: what.into() }
    }
}

impl fmt::Display for CannotCompile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the definition cannot be compiled: {}", self.what)
    }
}

impl std::error::Error for CannotCompile {}

impl From<CannotCompile> for Problem {
    fn from(error: CannotCompile) -> Problem {
        Problem::error(codes::NOT_COMPILED, Spot::NOWHERE, error.to_string())
            .label("expected a definition that can be compiled")
    }
}

pub(super) type Compiled<T> = Result<T, CannotCompile>;

impl Graph {
    /// The graph of a definition that was accepted once. No check of today is asked.
    pub fn compile(bundle: &Arc<Bundle>) -> Result<Graph, CannotCompile> {
        compile(bundle, Vec::new())
    }
}

/// The graph of a bundle and what a run added to it.
pub(super) fn compile(bundle: &Arc<Bundle>, mutations: Vec<Mutation>) -> Compiled<Graph> {
    let shape = Shape::of(bundle, &mutations);
    let flow = Flow::of(&shape, &shape.starts());
    let scopes = Scopes::new(&shape, &flow);
    let whole = Compiler::new(bundle, &shape, &flow, &scopes, Parsed::default())?.whole()?;
    Ok(whole.graph(bundle, mutations))
}

/// The compiler of one graph: the bones, and what has been compiled so far.
pub(super) struct Compiler<'a, 's> {
    bundle: &'a Bundle,
    shape: &'s Shape<'a>,
    flow: &'s Flow,
    scopes: &'s Scopes,
    parsed: Parsed,
    actions: HashMap<Name, KnownAction>,
    /// Tasks as nodes refer to them.
    apart: HashMap<Name, Arc<Task>>,
    /// Tasks as they were written on their nodes, by the task's name.
    on_nodes: BTreeMap<Name, Arc<Task>>,
}

impl<'a, 's> Compiler<'a, 's> {
    pub(super) fn new(
        bundle: &'a Bundle,
        shape: &'s Shape<'a>,
        flow: &'s Flow,
        scopes: &'s Scopes,
        parsed: Parsed,
    ) -> Compiled<Compiler<'a, 's>> {
        if let Some(fault) = shape.faults.first() {
            return Err(CannotCompile::new(fault.to_string()));
        }
        let (apart, on_nodes) = (HashMap::new(), BTreeMap::new());
        let mut parsed = parsed;
        let mut actions = HashMap::new();
        for (name, compiled) in actions::actions(bundle, &mut parsed) {
            if let Some(bad) = compiled.bad.first() {
                return Err(CannotCompile::new(format!("action `{name}`: {bad}")));
            }
            let readings = Arc::new(readings::of_texts(&compiled.texts));
            actions.insert(name, KnownAction { action: compiled.action, readings });
        }
        Ok(Compiler { bundle, shape, flow, scopes, parsed, actions, apart, on_nodes })
    }

    /// Everything but what the workflow says of itself.
    pub(super) fn whole(mut self) -> Compiled<Whole> {
        let bundle = self.bundle;
        let (shape, workflow) = (self.shape, &bundle.workflow);
        let initial = shape.initial.ok_or_else(|| CannotCompile::new("there is no node to start at"))?;
        let mut nodes = (0..shape.slots.len()).map(|at| self.node(at)).collect::<Compiled<Vec<Node>>>()?;
        share_rules(shape, &mut nodes);
        let transitions = shape.arrows.iter().map(|arrow| self.transition(arrow)).collect::<Compiled<_>>()?;
        let mut units = shape.units.iter().map(|unit| self.unit(unit)).collect::<Compiled<Vec<Unit>>>()?;
        add_dependents(&mut units);
        let on_error = self.rules(&workflow.on_error)?;
        let joins = self.joins(&nodes, &on_error)?;
        let concurrency = workflow.concurrency.as_ref().map(|written| {
            let key = written.key.as_ref().map(|key| self.expr(key)).transpose()?;
            let (limit, hold_while_waiting) = (written.limit, written.hold_while_waiting);
            Ok(crate::Concurrency { limit, key, hold_while_waiting })
        });
        Ok(Whole {
            nodes,
            transitions,
            joins,
            units,
            initial,
            input_schema: self.schema(workflow.input_schema.as_ref())?,
            context_schema: self.schema(workflow.context_schema.as_ref())?,
            output_schema: self.schema(workflow.output_schema.as_ref())?,
            output_mapping: workflow.output_mapping.as_ref().map(|tree| self.tree(tree)).transpose()?,
            on_error,
            concurrency: concurrency.transpose()?,
            tasks: self.all_tasks()?,
            node_by_ref: shape.node_by_ref.clone(),
            transition_by_ref: shape.transition_by_ref.clone(),
        })
    }

    fn expr(&mut self, text: &Text) -> Compiled<Expr> {
        let bad = |error| CannotCompile::new(format!("`{text}` is not an expression: {error}"));
        self.parsed.expr(text).map_err(|error| bad(error.message))
    }

    fn optional_expr(&mut self, text: Option<&Text>) -> Compiled<Option<Expr>> {
        text.map(|text| self.expr(text)).transpose()
    }

    fn schema(&mut self, def: Option<&SchemaDef>) -> Compiled<Option<Schema>> {
        let compiled = def.map(|def| Schema::compile(&def.doc)).transpose();
        compiled.map_err(|message| CannotCompile::new(format!("a schema is no JSON Schema: {message}")))
    }

    fn tree(&mut self, tree: &Tree) -> Compiled<MapTree> {
        Ok(match tree {
            Tree::Text(text) => MapTree::Expr(self.expr(text)?),
            Tree::Literal(value) => MapTree::Literal(value.clone()),
            Tree::List(list) => {
                MapTree::List(list.iter().map(|tree| self.tree(tree)).collect::<Compiled<_>>()?)
            }
            Tree::Map(map) => MapTree::Map(
                map.iter().map(|(key, tree)| Ok((key.clone(), self.tree(tree)?))).collect::<Compiled<_>>()?,
            ),
        })
    }

    fn writes(&mut self, writes: &Writes) -> Compiled<Vec<WriteTo>> {
        let write = |write: &wonder_lang::def::Write| {
            let target = Target::parse(&write.to.text).map_err(|error| CannotCompile::new(error.message))?;
            Ok(WriteTo { target, value: self.tree(&write.value)? })
        };
        writes.0.iter().map(write).collect()
    }
}

/// Everything that is compiled.
pub(super) struct Whole {
    nodes: Vec<Node>,
    transitions: Vec<crate::Transition>,
    joins: BTreeMap<crate::Source, crate::Join>,
    units: Vec<Unit>,
    initial: crate::NodeIx,
    tasks: BTreeMap<Name, Arc<Task>>,
    input_schema: Option<Schema>,
    context_schema: Option<Schema>,
    output_schema: Option<Schema>,
    output_mapping: Option<MapTree>,
    on_error: Vec<crate::Rule>,
    concurrency: Option<crate::Concurrency>,
    node_by_ref: HashMap<Name, crate::NodeIx>,
    transition_by_ref: HashMap<Name, crate::TransitionIx>,
}

impl Whole {
    pub(super) fn graph(self, bundle: &Arc<Bundle>, mutations: Vec<Mutation>) -> Graph {
        let workflow = &bundle.workflow;
        Graph {
            bundle: bundle.clone(),
            name: workflow.name.text.clone(),
            version: workflow.version.unwrap_or(1),
            kind: workflow.kind,
            nodes: self.nodes,
            transitions: self.transitions,
            node_by_ref: self.node_by_ref,
            transition_by_ref: self.transition_by_ref,
            initial: self.initial,
            joins: self.joins,
            units: self.units,
            tasks: self.tasks,
            models: bundle.models.clone(),
            input_schema: self.input_schema,
            context_schema: self.context_schema,
            output_schema: self.output_schema,
            output_mapping: self.output_mapping,
            on_error: self.on_error,
            timeout_ms: workflow.timeout_ms.unwrap_or(WORKFLOW_TIMEOUT_MS),
            on_timeout: workflow.on_timeout,
            budget: workflow.budget,
            max_parallel: workflow.max_parallel,
            concurrency: self.concurrency,
            mutations_max: workflow.mutations_max.unwrap_or(MUTATIONS_MAX),
            nodes_max: workflow.nodes_max.unwrap_or(NODES_MAX),
            fail_fast: workflow.kind != Kind::Dag || workflow.fail_fast.unwrap_or(true),
            mutations,
        }
    }
}

impl fmt::Display for BadText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadText::Expr(text, error) => write!(f, "`{text}` is not an expression: {}", error.message),
            BadText::Template(text, error) => write!(f, "`{text}` is not a template: {}", error.message),
            BadText::Target(_, error) => f.write_str(&error.message),
            BadText::Schema(_, key, message) => write!(f, "{key} is no JSON Schema: {message}"),
            BadText::Missing(message) => f.write_str(message),
        }
    }
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::UnknownNode(name) => write!(f, "there is no node `{name}`"),
            Fault::DuplicateNode(def) => write!(f, "there are two nodes `{}`", def.reference),
            Fault::DuplicateTransition(name) => write!(f, "there are two transitions `{name}`"),
            Fault::UnknownGroup { name, why } => write!(f, "`sibling_group: {name}` {why}"),
            Fault::BehindTwice(node) => write!(f, "`{node}` has a validator or review already"),
            Fault::NameTaken(name) => write!(f, "there is a node `{name}` already"),
        }
    }
}

/// A `foreach` whose items cannot be had fails as its node, which the node's rules are to judge.
fn share_rules(shape: &Shape<'_>, nodes: &mut [Node]) {
    for unit in shape.units.iter().filter(|unit| unit.head != unit.tail) {
        let head = unit.head.0 as usize;
        if matches!(shape.slots[head].part, Part::Head) {
            nodes[head].on_error = nodes[head + 1].on_error.clone();
        }
    }
}
