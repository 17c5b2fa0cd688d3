//! What is wrong with a definition, all of it at once. For new text only: a definition that was accepted once is
//! compiled ([`crate::compile`]) and never judged again, so a stricter check of tomorrow cannot reach a run of
//! today.

mod absent;
mod actions;
mod artifacts;
mod commands;
mod fields;
mod joins;
mod mapping;
mod models;
mod mutations;
mod names;
mod nodes;
mod reach;
mod reads;
mod rules;
mod secrets;
mod servers;
mod tasks;
mod times;
mod types;
mod written;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use self::actions::CheckedAction;
use self::types::Written;
use self::written::KnownRun;
use crate::Mutation;
use crate::codes;
use crate::flow::Flow;
use crate::parsed::Parsed;
use crate::scope::{INPUT, Scope, Scopes};
use crate::shape::Shape;
use wonder_lang::def::{Bundle, Inline, Name, PromptSpec, SchemaDef, Spot, Text};
use wonder_lang::expr::Expr;
use wonder_lang::limits::NODES_MAX;
use wonder_lang::problem::{Code, Problem, nearest};
use wonder_lang::schema::Schema;
use wonder_lang::template::Template;
use wonder_lang::value::Value;

/// Looking for the nearest name takes time with the number of names: a file full of unknown ones gets no
/// suggestion for each.
const SUGGESTIONS_MAX: u32 = 40;

/// Words that a ref would hide: CEL's own, and the roots of expressions.
const RESERVED: [&str; 36] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "input",
    "state",
    "output",
    "result",
    "run",
    "needs",
    "error",
    "secret",
    "_branch",
    "_last_error",
    "_errors",
    "_mutations",
    "has",
    "and",
    "not",
];

/// What every part of the checker shares.
pub(super) struct Check<'a> {
    bundle: &'a Bundle,
    problems: Vec<Problem>,
    parsed: Parsed,
    suggestions_left: u32,
    actions: HashMap<Name, Arc<CheckedAction>>,
    /// Tasks that were looked at as something by themselves.
    tasks_apart: BTreeSet<Name>,
}

/// One workflow being checked: the bones, and what its texts see.
struct Checker<'a, 's> {
    check: Check<'a>,
    shape: &'s Shape<'a>,
    flow: &'s Flow,
    scopes: &'s Scopes,
    known: KnownRun,
}

/// Every problem of a bundle and of what a run adds to it, and the texts that were parsed on the way. Which of them
/// a new mutation has to answer for is [`Graph::extended`](crate::Graph::extended)'s to say.
pub(super) fn check<'a>(
    bundle: &'a Bundle,
    mutations: &'a [Mutation],
    shape: &Shape<'a>,
    flow: &Flow,
    scopes: &Scopes,
) -> (Vec<Problem>, Parsed) {
    let mut check = Check {
        bundle,
        problems: Vec::new(),
        parsed: Parsed::default(),
        suggestions_left: SUGGESTIONS_MAX,
        actions: HashMap::new(),
        tasks_apart: BTreeSet::new(),
    };
    check.sizes();
    check.names(shape, mutations);
    check.mutations(shape, mutations);
    check.node_count(shape);
    if shape.is_dag {
        check.dag_cycles(shape);
    } else {
        check.reach(shape);
    }
    check.models();
    check.servers();
    check.actions();
    bundle.prompts.values().for_each(|prompt| check.prompt(prompt));
    bundle.artifact_types.values().for_each(|of| check.artifact_type(of));
    let known = check.known_run(shape, mutations);
    let mut checker = Checker { check, shape, flow, scopes, known };
    checker.whole();
    let mut check = checker.check;
    (check.finish(), check.parsed)
}

impl Checker<'_, '_> {
    fn whole(&mut self) {
        let workflow = &self.check.bundle.workflow;
        self.check.workflow_times(workflow);
        if workflow.fail_fast.is_some() && !self.shape.is_dag {
            self.check.report(
                Problem::error(codes::DAG_ONLY, workflow.spot, "`fail_fast` has no place in a graph")
                    .label("only a dag has this")
                    .help("in a graph a failure that nobody takes care of always ends the run; leave it out"),
            );
        }
        self.check.schema(workflow.input_schema.as_ref(), "`input_schema`");
        let context_schema = self.check.schema(workflow.context_schema.as_ref(), "`context_schema`");
        let output_schema = self.check.schema(workflow.output_schema.as_ref(), "`output_schema`");
        let schemas = Written { state: context_schema.as_ref(), output: output_schema.as_ref() };
        (0..self.shape.slots.len()).for_each(|at| self.node(at, schemas));
        (0..self.shape.slots.len()).for_each(|at| self.routes(at));
        let shape = self.shape;
        shape.arrows.iter().for_each(|arrow| self.transition(arrow));
        shape.units.iter().for_each(|unit| self.unit(unit));
        if let Some(tree) = &workflow.output_mapping {
            self.check.mapping_secrets(tree);
            if let Some(schema) = &output_schema {
                self.check.output_fits(tree, schema);
            }
            let scope = self.scopes.of_output().knowing(self.known.roots());
            self.check.tree(tree, &scope, &self.scopes.items);
        }
        self.rules(&workflow.on_error, &self.scopes.of_rules().knowing(self.known.roots()));
        self.joins(schemas);
        // One that was written on a node has been looked at there.
        let on_nodes = shape.slots.iter().filter_map(|slot| slot.def).filter(|def| def.inline != Inline::No);
        let on_nodes: BTreeSet<&Name> = on_nodes.map(|def| &def.task.text).collect();
        for name in self.check.bundle.tasks.keys().filter(|name| !on_nodes.contains(name)) {
            self.task_apart(&Text::new(name.clone()));
        }
        // A run that has not started has an input and nothing else.
        if let Some(key) = workflow.concurrency.as_ref().and_then(|concurrency| concurrency.key.as_ref()) {
            let scope = Scope::of(INPUT).knowing(self.known.roots());
            self.check.expr_in(key, &scope, &self.scopes.items);
        }
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

    fn prompt(&mut self, prompt: &PromptSpec) {
        for text in prompt.system.iter().chain([&prompt.template]) {
            self.template(text);
            self.words_of_template(text);
        }
        self.schema(prompt.requires.as_ref(), "`requires`");
        self.schema(prompt.produces.as_ref(), "`produces`");
        self.prompt_secrets(prompt);
    }
}

impl<'a> Check<'a> {
    pub(super) fn report(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Parses an expression, or says why it is none.
    pub(super) fn expr(&mut self, text: &Text) -> Option<Expr> {
        match self.parsed.expr(text) {
            Ok(expr) => Some(expr),
            Err(error) => {
                let mut problem = Problem::error(
                    codes::BAD_EXPRESSION,
                    text.spot,
                    format!("`{}` is not an expression: {}", brief(&text.text), error.message),
                )
                .label("expected a CEL expression");
                if let Some(offset) = error.offset {
                    problem = problem.within(offset, error.len.unwrap_or(1));
                }
                if text.text.contains("{{") {
                    problem = problem.help("this is an expression, not a template: leave out `{{` and `}}`");
                } else if looks_like_prose(&text.text) {
                    problem =
                        problem.help(format!("a literal text is written in two quotes: \"'{}'\"", text.text));
                }
                self.problems.push(problem);
                None
            }
        }
    }

    /// Parses a template, or says why it is none.
    pub(super) fn template(&mut self, text: &Text) -> Option<Template> {
        match self.parsed.template(text) {
            Ok(template) => Some(template),
            Err(error) => {
                let mut problem = Problem::error(
                    codes::BAD_TEMPLATE,
                    text.spot,
                    format!("not a template: {}", error.message),
                )
                .label("expected text with `{{ value }}` in it");
                if let Some(offset) = error.offset {
                    problem = problem.within(offset, 1);
                }
                self.problems.push(problem);
                None
            }
        }
    }

    pub(super) fn schema(&mut self, def: Option<&SchemaDef>, what: &str) -> Option<Schema> {
        let def = def?;
        if let Some(address) = remote_ref(&def.doc) {
            self.report(
                Problem::error(codes::REMOTE_REF, def.spot, format!("{what} refers to `{address}`"))
                    .label("only references within this schema (`#/…`) are followed")
                    .help("copy what it refers to into `$defs` and refer to `#/$defs/…`"),
            );
            return None;
        }
        match Schema::compile(&def.doc) {
            Ok(schema) => Some(schema),
            Err(message) => {
                self.report(
                    Problem::error(
                        codes::BAD_SCHEMA,
                        def.spot,
                        format!("{what} is no JSON Schema: {message}"),
                    )
                    .label("expected a valid JSON Schema"),
                );
                None
            }
        }
    }

    /// A ref must be usable as a name in expressions.
    pub(super) fn reference(&mut self, text: &Text, what: &str) {
        let label = "a ref is a letter or `_`, then letters, digits and `_`";
        if !wonder_lang::path::is_key(&text.text) {
            let message = format!("`{text}` cannot be the ref of a {what}");
            let problem = Problem::error(codes::BAD_REF, text.spot, message).label(label);
            let repaired: String =
                text.text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            self.report(if wonder_lang::path::is_key(&repaired) {
                problem.help(format!("write `{repaired}`"))
            } else {
                problem
            });
        } else if RESERVED.contains(&text.as_str()) {
            let message =
                format!("`{text}` cannot be the ref of a {what}: it means something else in expressions");
            self.report(
                Problem::error(codes::BAD_REF, text.spot, message)
                    .label("expected a name of its own")
                    .help(format!("write `{text}_{}` or another name", what.replace(' ', "_"))),
            );
        }
    }

    pub(super) fn unknown<'n>(
        &mut self,
        code: Code,
        text: &Text,
        what: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) {
        let a = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
        let mut problem = Problem::error(code, text.spot, format!("there is no {what} `{text}`"))
            .label(format!("expected the name of {a} {what}"));
        if self.suggestions_left > 0 {
            self.suggestions_left -= 1;
            let mut known = known.into_iter().peekable();
            problem.help = Some(match known.peek() {
                None => format!("this workflow has no {what}s"),
                Some(_) => match nearest(&text.text, known) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!("define {a} {what} `{text}`, or name one that exists"),
                },
            });
        }
        self.report(problem);
    }

    pub(super) fn zero(&mut self, value: Option<u64>, spot: Spot, what: &str) {
        if value == Some(0) {
            self.report(
                Problem::error(codes::ZERO_LIMIT, spot, format!("{what} is 0"))
                    .label("expected more than 0")
                    .help("leave it out for no limit of your own"),
            );
        }
    }

    /// Everything found, each problem once: what several nodes share is still one mistake.
    fn finish(&mut self) -> Vec<Problem> {
        let mut seen = BTreeSet::new();
        let mut problems = std::mem::take(&mut self.problems);
        problems.retain(|p| seen.insert((p.code, p.spot, p.within, p.message.clone())));
        problems
    }
}

/// Words with spaces between them and nothing that an expression would have.
fn looks_like_prose(text: &str) -> bool {
    text.contains(' ') && text.chars().all(|c| c.is_alphanumeric() || " ,;.!'’-".contains(c))
}

/// The start of a text, for a message.
pub(super) fn brief(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut short: String = text.chars().take(CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// The first `$ref` in a schema that leaves it.
fn remote_ref(doc: &Value) -> Option<Arc<str>> {
    match doc {
        Value::Map(map) => map.iter().find_map(|(key, value)| match value {
            Value::String(address) if &**key == "$ref" && !address.starts_with('#') => Some(address.clone()),
            _ => remote_ref(value),
        }),
        Value::List(items) => items.iter().find_map(remote_ref),
        _ => None,
    }
}
