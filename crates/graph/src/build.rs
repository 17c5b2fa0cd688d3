//! From definitions to a graph: bones first, then what can be reached in which branch, then everything that
//! is compiled, then what can only be told of the whole.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::check::Check;
use super::flow::Flow;
use super::joins::{BranchFacts, JoinsOf};
use super::nodes::{Compiler, facts, writes_on_purpose};
use super::rules::add_dependents;
use super::scope::{ERROR, INPUT, NEEDS, OF_RUN, Scope};
use super::shape::Shape;
use super::types::Written;
use super::{Graph, Join, Mutation, Node, Response, Source, Transition, Unit, codes, reach};
use wonder_lang::def::{Bundle, PromptSpec};
use wonder_lang::limits::{MUTATIONS_MAX, NODES_MAX, WORKFLOW_TIMEOUT_MS};
use wonder_lang::problem::Problem;

impl Graph {
    /// Checks and compiles. All problems at once; `Ok` may come with warnings.
    pub fn build(bundle: Arc<Bundle>) -> Result<(Graph, Vec<Problem>), Vec<Problem>> {
        assemble(&bundle, Vec::new())
    }
}

/// The graph of a bundle and what a run added to it.
pub(super) fn assemble(
    bundle: &Arc<Bundle>,
    mutations: Vec<Mutation>,
) -> Result<(Graph, Vec<Problem>), Vec<Problem>> {
    let mut check = Check::new(bundle);
    check.sizes();
    let shape = Shape::of(&mut check, &mutations);
    check.node_count(&shape);
    let flow = Flow::of(&shape, &reach::starts(&shape));
    if shape.is_dag {
        check.dag_cycles(&shape);
    } else {
        check.reach(&shape);
    }
    check.models();
    let mut compiler = Compiler::new(check, &shape, &flow);
    let compiled = compiler.whole();
    let check = compiler.check;
    let Some(initial) = shape.initial.filter(|_| !check.has_errors()) else {
        return Err(check.finish());
    };
    let (node_by_ref, transition_by_ref) = (shape.node_by_ref, shape.transition_by_ref);
    let problems = check.finish();
    let workflow = &bundle.workflow;
    let graph = Graph {
        bundle: bundle.clone(),
        name: workflow.name.text.clone(),
        version: workflow.version.unwrap_or(1),
        kind: workflow.kind,
        nodes: compiled.nodes,
        transitions: compiled.transitions,
        node_by_ref,
        transition_by_ref,
        initial,
        joins: compiled.joins,
        units: compiled.units,
        tasks: compiled.tasks,
        models: bundle.models.clone(),
        input_schema: compiled.input_schema,
        context_schema: compiled.context_schema,
        output_schema: compiled.output_schema,
        output_mapping: compiled.output_mapping,
        on_error: compiled.on_error,
        timeout_ms: workflow.timeout_ms.unwrap_or(WORKFLOW_TIMEOUT_MS),
        on_timeout: workflow.on_timeout,
        budget: workflow.budget,
        max_parallel: workflow.max_parallel,
        concurrency: compiled.concurrency,
        mutations_max: workflow.mutations_max.unwrap_or(MUTATIONS_MAX),
        nodes_max: workflow.nodes_max.unwrap_or(NODES_MAX),
        mutations,
    };
    Ok((graph, problems))
}

/// Everything that is compiled.
struct Compiled {
    nodes: Vec<Node>,
    transitions: Vec<Transition>,
    joins: BTreeMap<Source, Join>,
    units: Vec<Unit>,
    tasks: BTreeMap<wonder_lang::def::Name, Arc<super::Task>>,
    input_schema: Option<wonder_lang::schema::Schema>,
    context_schema: Option<wonder_lang::schema::Schema>,
    output_schema: Option<wonder_lang::schema::Schema>,
    output_mapping: Option<super::MapTree>,
    on_error: Vec<super::Rule>,
    concurrency: Option<super::Concurrency>,
}

impl Compiler<'_, '_> {
    fn whole(&mut self) -> Compiled {
        let bundle = self.check.bundle;
        let workflow = &bundle.workflow;
        self.check.workflow_times(workflow);
        let input_schema = self.check.schema(workflow.input_schema.as_ref(), "`input_schema`");
        let context_schema = self.check.schema(workflow.context_schema.as_ref(), "`context_schema`");
        let output_schema = self.check.schema(workflow.output_schema.as_ref(), "`output_schema`");
        let schemas = Written { state: context_schema.as_ref(), output: output_schema.as_ref() };
        let mut nodes: Vec<Node> = (0..self.shape.slots.len()).map(|at| self.node(at, schemas)).collect();
        share_rules(self.shape, &mut nodes);
        (0..nodes.len()).for_each(|at| self.routes(at));
        let shape = self.shape;
        let transitions = shape.arrows.iter().map(|arrow| self.transition(arrow)).collect();
        let mut units: Vec<Unit> = shape.units.iter().map(|unit| self.unit(unit)).collect();
        add_dependents(&mut units);
        let output_mapping = workflow.output_mapping.as_ref().map(|tree| {
            let scope = Scope::of(if shape.is_dag { OF_RUN | NEEDS } else { OF_RUN });
            self.check.mapping_secrets(tree);
            if let Some(schema) = &output_schema {
                self.check.output_fits(tree, schema);
            }
            self.check.tree(tree, &self.all_units(scope), &self.items)
        });
        let scope = self.scopes.last().cloned().unwrap_or_default().with(ERROR);
        let on_error = self.rules(&workflow.on_error, &scope);
        let joins = self.all_joins(&nodes, &on_error, schemas);
        let tasks = self.all_tasks();
        let concurrency = self.concurrency(workflow.concurrency.as_ref());
        Compiled {
            nodes,
            transitions,
            joins,
            units,
            tasks,
            input_schema,
            context_schema,
            output_schema,
            output_mapping,
            on_error,
            concurrency,
        }
    }

    /// A run that has not started has an input and nothing else.
    fn concurrency(&mut self, written: Option<&wonder_lang::def::Concurrency>) -> Option<super::Concurrency> {
        let written = written?;
        let scope = Scope::of(INPUT);
        let key = written.key.as_ref().and_then(|key| self.check.expr_in(key, &scope, &self.items));
        Some(super::Concurrency { limit: written.limit, key, hold_while_waiting: written.hold_while_waiting })
    }

    /// In a dag's output mapping, `needs` has every node.
    fn all_units(&self, scope: Scope) -> Scope {
        let mut names: Vec<_> = self.shape.units.iter().map(|unit| unit.def.reference.text.clone()).collect();
        names.sort();
        Scope { needs: super::scope::NeedsOf::These(names), ..scope }
    }

    fn all_joins(
        &mut self,
        nodes: &[Node],
        on_error: &[super::Rule],
        schemas: Written<'_>,
    ) -> BTreeMap<Source, Join> {
        // The workflow's responses apply to every node, so a human among them can be met in every branch.
        let waits_anywhere = on_error
            .iter()
            .any(|rule| matches!(rule.response, Response::Escalate | Response::AddReview | Response::Pause));
        let fact = |at: usize| {
            let mut facts = facts(at, &nodes[at], writes_on_purpose(&nodes[at]));
            facts.waits |= waits_anywhere;
            facts
        };
        let by_group = self.flow.by_group(&fact, &|a: &mut BranchFacts, b| a.fold(b));
        self.check.joins(&JoinsOf {
            shape: self.shape,
            flow: self.flow,
            facts: &by_group,
            scopes: &self.scopes,
            items: &self.items,
            schemas,
        })
    }
}

impl Check<'_> {
    fn sizes(&mut self) {
        let workflow = &self.bundle.workflow;
        if workflow.nodes.is_empty() {
            self.report(
                Problem::error(
                    codes::NO_NODES,
                    workflow.spot,
                    format!("workflow `{}` has no nodes", workflow.name),
                )
                .label("expected at least one node"),
            );
        }
    }

    fn node_count(&mut self, shape: &Shape<'_>) {
        let workflow = &self.bundle.workflow;
        let most = workflow.nodes_max.unwrap_or(NODES_MAX);
        if shape.nodes_written > most as usize && most > 0 {
            let message = format!("{} nodes, and at most {most} are allowed", shape.nodes_written);
            self.report(
                Problem::error(codes::TOO_MANY_NODES, workflow.spot, message)
                    .label("expected fewer nodes")
                    .help("raise `nodes_max`, or move a part into a workflow of its own"),
            );
        }
    }

    pub(super) fn prompt(&mut self, prompt: &PromptSpec) {
        for text in prompt.system.iter().chain([&prompt.template]) {
            self.template(text);
        }
        self.schema(prompt.requires.as_ref(), "`requires`");
        self.schema(prompt.produces.as_ref(), "`produces`");
        self.prompt_secrets(prompt);
    }

    /// Profiles that switch or downgrade to each other must exist, and must not go round in circles.
    fn models(&mut self) {
        let models = &self.bundle.models;
        for (name, profile) in models {
            profile.fallbacks.iter().chain(&profile.cheaper).for_each(|other| self.known_model(other));
            if let Some(own) = profile.fallbacks.iter().find(|other| other.text == *name) {
                self.model_cycle(own.spot, format!("model profile `{name}` falls back to itself"));
            }
        }
        let mut settled = BTreeSet::new();
        for name in models.keys() {
            let (mut path, mut at) = (Vec::new(), name);
            while settled.insert(at) {
                path.push(&**at);
                match models.get(at).and_then(|profile| profile.cheaper.as_ref()) {
                    Some(next) if models.contains_key(&next.text) => at = &next.text,
                    _ => break,
                }
            }
            let closes = path.iter().position(|known| *known == &**at);
            let next = models.get(at).and_then(|profile| profile.cheaper.as_ref());
            if let (Some(first), Some(next)) = (closes, next.filter(|next| models.contains_key(&next.text))) {
                let cycle = [&path[first..], &[path[first]]].concat().join(" -> ");
                self.model_cycle(next.spot, format!("`cheaper` goes round in a circle: {cycle}"));
            }
        }
    }

    fn model_cycle(&mut self, spot: wonder_lang::def::Spot, message: String) {
        self.report(
            Problem::error(codes::MODEL_CYCLE, spot, message)
                .label("expected another profile")
                .help("let the last one have no `cheaper`"),
        );
    }
}

/// A `foreach` whose items cannot be had fails as its node, which the node's rules are to judge.
fn share_rules(shape: &Shape<'_>, nodes: &mut [Node]) {
    for unit in shape.units.iter().filter(|unit| unit.head != unit.tail) {
        let head = unit.head.0 as usize;
        if matches!(shape.slots[head].part, super::shape::Part::Head) {
            nodes[head].on_error = nodes[head + 1].on_error.clone();
        }
    }
}
