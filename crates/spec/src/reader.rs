//! Reads a file: text, tree, shapes, definitions, bundles, checked graphs; every problem of every document
//! in one pass, in file order.
//!
//! It opens no files and asks nobody: what lies outside the text comes in as a [`Library`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use wonder_core::def::{
    ActionDef, ArtifactType, Bundle, Implementation, McpServer, ModelProfile, Name, PromptSpec, SchemaDef,
    Spot, TaskDef, Text, ToolUse,
};
use wonder_core::graph::{Graph, codes as core_codes};
use wonder_core::problem::{Code, Problem, Severity, nearest};

use crate::build::{Build, Built, DocumentKind, Parts};
use crate::check::{Checker, Support};
use crate::codes;
use crate::diagnostics::{Diagnostic, Diagnostics, Source};
use crate::files::{self, FileText, Files, NoFiles, Unable};
use crate::place::Span;
use crate::repair;
use crate::resolve::{Library, complete};
use crate::tree::{self, Data, FILE_BYTES_MAX, Node};
use crate::unused::{self, Used};
use crate::within::part;

/// A file without errors.
#[derive(Debug)]
pub struct Reading {
    /// Everything it defines, in order.
    pub definitions: Vec<Definition>,
    /// One per workflow; the first is the one that `run` starts.
    pub bundles: Vec<Arc<Bundle>>,
    /// The same, checked and compiled.
    pub graphs: Vec<Arc<Graph>>,
    pub warnings: Diagnostics,
}

/// What one document defines.
#[derive(Clone, Debug)]
pub enum Definition {
    Workflow(Arc<Bundle>),
    /// With the actions written in its steps, by their generated names.
    Task(TaskDef, BTreeMap<Name, Arc<ActionDef>>),
    Action(ActionDef),
    Prompt(PromptSpec),
    Model(ModelProfile),
    ArtifactType(ArtifactType),
}

/// Says why an action cannot be performed, if it cannot.
pub type CannotPerform<'r> = dyn Fn(&Implementation) -> Option<Unable> + 'r;

/// What lies around the files that are read. Whoever reads brings it; here nothing is opened or asked for.
#[derive(Clone, Copy)]
pub struct Around<'r> {
    pub library: &'r Library,
    pub files: &'r dyn Files,
    /// All of the format, also what this version does not do: for those who perform nothing.
    pub everything: bool,
    /// Why an action cannot be performed where the runs will be; None if nobody knows.
    pub unable: Option<&'r CannotPerform<'r>>,
}

impl std::fmt::Debug for Around<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Around").field("everything", &self.everything).finish_non_exhaustive()
    }
}

/// Reads a file that needs nothing from outside.
pub fn read(source: &str, file_name: &str) -> Result<Reading, Diagnostics> {
    read_with(source, file_name, &Library::default())
}

/// Reads MCP servers by name from JSON, by the keys that they have in a workflow file; or says what is wrong first.
pub fn read_mcp_servers(servers: &str) -> Result<BTreeMap<Name, McpServer>, Box<Diagnostic>> {
    let parsed: serde_json::Value = serde_json::from_str(servers).unwrap_or_default();
    let asked = parsed.as_object().into_iter().flatten();
    // Which model profiles there are is for the workflow to say that names the server.
    let asked = asked.filter_map(|(_, server)| server.get("sampling")?.get("model")?.as_str());
    let models: serde_json::Map<String, serde_json::Value> =
        asked.map(|name| (name.to_owned(), serde_json::json!({"model": name}))).collect();
    let models = serde_json::Value::from(models);
    let text = format!(
        r#"{{"wonder": 1, "name": "settings", "models": {models}, "mcp_servers": {parsed}, "nodes": {{"nothing": {{"mock": {{}}}}}}}}"#
    );
    match read_everything(&text, "settings") {
        Ok(reading) => {
            Ok(reading.bundles.first().map(|bundle| bundle.mcp_servers.clone()).unwrap_or_default())
        }
        Err(problems) => Err(problems.into_first()),
    }
}

/// Reads a file for a host that performs nothing itself and so can do all of the format: the simulator.
pub fn read_everything(source: &str, file_name: &str) -> Result<Reading, Diagnostics> {
    let library = Library::default();
    let around = Around { library: &library, files: &NoFiles, everything: true, unable: None };
    read_files(vec![FileText { name: file_name.to_owned(), text: source.to_owned() }], &around)
}

/// Reads a file whose definitions may name some of `library`.
pub fn read_with(source: &str, file_name: &str, library: &Library) -> Result<Reading, Diagnostics> {
    let around = Around { library, files: &NoFiles, everything: false, unable: None };
    read_files(vec![FileText { name: file_name.to_owned(), text: source.to_owned() }], &around)
}

/// Reads files, and those whose workflows they call. The first workflow of the first file comes first.
pub fn read_files(files: Vec<FileText>, around: &Around<'_>) -> Result<Reading, Diagnostics> {
    let mut reading = Outcome::default();
    let (mut sources, mut problems, mut failed) = (Vec::new(), Vec::new(), false);
    let mut readers = files::read_all(files, around);
    let versions = versions(&readers);
    let described = described(&readers);
    readers.iter_mut().for_each(|reader| reader.describe_tools(&described));
    for (at, reader) in readers.iter_mut().enumerate() {
        reader.finish_all(&versions, &mut reading);
        failed |= reader.stopped || reader.problems.iter().any(|problem| problem.severity == Severity::Error);
        sources.push(reader.source.clone());
        let file = u32::try_from(at).unwrap_or(u32::MAX);
        problems.extend(std::mem::take(&mut reader.problems).into_iter().map(|p| Diagnostic { file, ..p }));
    }
    // What an agent and its workflow both name is looked at twice.
    let mut said = HashSet::new();
    problems
        .retain(|problem| said.insert((problem.file, problem.code, problem.span, problem.message.clone())));
    let problems = Diagnostics::new(sources, problems);
    if failed {
        return Err(problems);
    }
    let Outcome { definitions, bundles, graphs } = reading;
    Ok(Reading { definitions, bundles, graphs, warnings: problems })
}

/// The versions of workflows, by name, in all files.
fn versions(files: &[FileReader<'_>]) -> BTreeMap<Name, Option<u32>> {
    let mut versions = BTreeMap::new();
    for (_, built) in files.iter().flat_map(|file| &file.built) {
        if let Built::Workflow(bundle) = built {
            versions.entry(bundle.workflow.name.text.clone()).or_insert(bundle.workflow.version);
        }
    }
    versions
}

/// What workflows say of themselves, by name: for models that may call them.
type Described = BTreeMap<Name, (Option<Name>, Option<SchemaDef>)>;

fn described(files: &[FileReader<'_>]) -> Described {
    let built = files.iter().flat_map(|file| &file.built);
    let workflows = built.filter_map(|(_, built)| match built {
        Built::Workflow(bundle) => Some(&bundle.workflow),
        _ => None,
    });
    let said = workflows.map(|workflow| {
        (workflow.name.text.clone(), (workflow.description.clone(), workflow.input_schema.clone()))
    });
    said.collect()
}

/// The documents of a file as JSON, whatever they mean.
pub fn documents(source: &str, file_name: &str) -> Result<Vec<serde_json::Value>, Diagnostics> {
    check_size(source, file_name)?;
    let prepared = tree::prepare(source);
    let forest = tree::parse(source, &prepared);
    if forest.problems.is_empty() {
        return Ok(forest.documents.iter().map(|node| node.value().to_json()).collect());
    }
    Err(Diagnostics::new(vec![Source::new(file_name, source)], forest.problems))
}

/// The names of the workflows that a text defines, whatever else is wrong with it.
pub fn workflow_names(source: &str) -> Vec<Name> {
    let documents = documents(source, "").unwrap_or_default();
    let workflows = documents.iter().filter(|document| document.get("nodes").is_some());
    workflows.filter_map(|workflow| Some(workflow.get("name")?.as_str()?.into())).collect()
}

fn check_size(source: &str, file_name: &str) -> Result<(), Diagnostics> {
    match too_large(source) {
        None => Ok(()),
        Some(problem) => Err(Diagnostics::new(vec![Source::new(file_name, "")], vec![problem])),
    }
}

pub(crate) fn too_large(source: &str) -> Option<Diagnostic> {
    if source.len() <= FILE_BYTES_MAX {
        return None;
    }
    let message = format!("the file has more than {FILE_BYTES_MAX} bytes, the most that are read");
    Some(Diagnostic { span: None, ..Diagnostic::error(codes::TOO_LARGE, Span::default(), message) })
}

/// What core says about where tokens go: meaningless when nodes or transitions could not be read.
const FLOW: [Code; 15] = [
    core_codes::NO_NODES,
    core_codes::UNREACHABLE,
    core_codes::NO_END,
    core_codes::ENDLESS_CYCLE,
    core_codes::UNKNOWN_GROUP,
    core_codes::BAD_DAG_JOIN,
    core_codes::UNFED_FAN_IN,
    core_codes::TWO_TARGETS,
    core_codes::CONFLICTING_FAN_IN,
    core_codes::GROUP_NOT_OPEN,
    core_codes::BAD_M_OF_N,
    core_codes::LONE_FAN_OUT,
    core_codes::NOT_NEEDED,
    core_codes::NO_DEFAULT,
    core_codes::UNJOINED_WRITES,
];

/// What core says about fields: meaningless where the reader could not read them.
const FIELDS: [Code; 6] = [
    core_codes::BAD_FIELDS,
    core_codes::NO_STEPS,
    core_codes::ZERO_LIMIT,
    core_codes::EMPTY_BUDGET,
    core_codes::MISSING_INPUT,
    core_codes::NO_TIMEOUT,
];

/// One file on its way from text to definitions.
pub(crate) struct FileReader<'r> {
    pub source: Arc<Source>,
    pub(crate) around: &'r Around<'r>,
    pub problems: Vec<Diagnostic>,
    /// What the reader itself has complained about.
    places: HashSet<Span>,
    /// Documents whose nodes or transitions do not fit, by index.
    broken: BTreeSet<usize>,
    /// The rest of the text could not be read.
    pub stopped: bool,
    pub build: Build,
    pub built: Vec<(usize, Built)>,
}

#[derive(Default)]
struct Outcome {
    definitions: Vec<Definition>,
    bundles: Vec<Arc<Bundle>>,
    graphs: Vec<Arc<Graph>>,
}

impl<'r> FileReader<'r> {
    /// Text, tree, shapes, definitions; what they mean together comes when all files are there.
    pub(crate) fn read(file: &FileText, around: &'r Around<'r>) -> FileReader<'r> {
        let large = too_large(&file.text);
        let source = Source::new(&file.name, if large.is_some() { "" } else { &file.text });
        let mut reader = FileReader {
            source: source.clone(),
            around,
            stopped: large.is_some(),
            problems: large.into_iter().collect(),
            places: HashSet::new(),
            broken: BTreeSet::new(),
            build: Build::new(source.clone(), &[]),
            built: Vec::new(),
        };
        if reader.stopped {
            return reader;
        }
        let prepared = tree::prepare(&source.text);
        let forest = tree::parse(&source.text, &prepared);
        reader.problems = forest.problems;
        reader.stopped = forest.stopped;
        // What comes after a broken text is not known, so nothing is said of what is missing in it.
        if !reader.stopped {
            reader.format(&forest.documents);
            reader.documents(forest.documents);
        }
        reader
    }

    pub(crate) fn name(&self) -> &str {
        &self.source.name
    }

    /// The first key of the first document is `wonder: 1`; those after it may leave it out.
    fn format(&mut self, documents: &[Node<'_>]) {
        let Some(first) = documents.iter().find(|node| !matches!(node.data, Data::Null)) else {
            let problem =
                Diagnostic::error(codes::NOTHING_DEFINED, Span::default(), "the file defines nothing");
            let problem = problem.label("expected a workflow");
            return self
                .problems
                .push(problem.help("begin with `wonder: 1`, then `name: ...` and `nodes: ...`"));
        };
        let Data::Map(entries) = &first.data else { return };
        let place = entries.list.iter().position(|entry| entry.key == "wonder");
        let problem = match (place, entries.list.first()) {
            (Some(0), _) => return,
            (Some(at), _) => {
                let span = entries.list[at].key_span;
                Diagnostic::error(codes::FORMAT, span, "`wonder` comes first")
                    .label("expected as the first key of the file")
                    .help("move this line to the top")
            }
            (None, Some(entry)) if nearest(&entry.key, ["wonder"]).is_some() => return,
            (None, entry) => {
                let span = entry.map_or(first.span, |entry| entry.key_span);
                Diagnostic::error(codes::FORMAT, span, "the file does not say its format")
                    .label("expected `wonder: 1` before this")
                    .help("write `wonder: 1` as the first line")
            }
        };
        self.problems.push(problem);
    }

    /// `wonder: 1`, wherever it stands.
    fn version(&mut self, node: &Node<'_>) {
        let Some(entry) = node.entry("wonder") else { return };
        if matches!(entry.value.data, Data::Int(1) | Data::Bad) {
            return;
        }
        let span = if entry.value.span.is_empty() { entry.key_span } else { entry.value.span };
        let text = entry.value.span.of(&self.source.text);
        let problem = Diagnostic::error(
            codes::FORMAT,
            span,
            format!("this version of Wonder reads no format `{text}`"),
        );
        self.problems.push(problem.label("expected 1").help("write `wonder: 1`"));
    }

    fn documents(&mut self, mut documents: Vec<Node<'_>>) {
        for node in &mut documents {
            repair::document(node, &mut self.problems);
        }
        let mut kinds = Vec::with_capacity(documents.len());
        for (at, node) in documents.iter().enumerate() {
            self.version(node);
            kinds.push(self.check(at, node));
        }
        self.build = Build::new(self.source.clone(), &self.problems);
        for (at, (node, kind)) in documents.iter().zip(kinds).enumerate() {
            if let Some(kind) = kind {
                let built = self.build.document(kind, node);
                self.built.extend(built.into_iter().map(|built| (at, built)));
            }
        }
        if self.build.problems.iter().any(|problem| problem.code == codes::GRAPH_AND_DAG) {
            self.broken.extend(0..documents.len());
        }
        self.problems.append(&mut self.build.problems);
    }

    /// Bundles and checked graphs, now that it is known what the other files have.
    fn finish_all(&mut self, workflows: &BTreeMap<Name, Option<u32>>, outcome: &mut Outcome) {
        if self.stopped {
            return;
        }
        let parts = self.collect();
        self.check_versions(&parts, workflows);
        if let Some(unable) = self.around.unable {
            self.unable(unable);
        }
        self.places = self.problems.iter().filter_map(|problem| problem.span).collect();
        let mut used = Used::default();
        for (at, document) in std::mem::take(&mut self.built) {
            self.finish(at, document, &parts, outcome, &mut used);
        }
        self.check_unused(&parts, &used);
    }

    /// Puts what a workflow says of itself where it is offered as a tool.
    fn describe_tools(&mut self, described: &Described) {
        let actions = self.built.iter_mut().flat_map(|(_, built)| match built {
            Built::Workflow(bundle) => bundle.actions.values_mut().collect(),
            _ => Vec::new(),
        });
        for action in actions {
            let offers =
                matches!(&action.implementation, Implementation::LlmCall(call) if !call.tools.is_empty());
            if !offers {
                continue;
            }
            let Implementation::LlmCall(call) = &mut Arc::make_mut(action).implementation else { continue };
            for tool in &mut call.tools {
                if let ToolUse::Workflow { workflow, description, requires } = tool
                    && let Some((own, schema)) = described.get(&workflow.text)
                {
                    *description = description.take().or_else(|| own.clone());
                    *requires = requires.take().or_else(|| schema.clone());
                }
            }
        }
    }

    fn check_versions(&mut self, parts: &Parts, workflows: &BTreeMap<Name, Option<u32>>) {
        let library = self.around.library;
        let bundles: Vec<(usize, Built)> = std::mem::take(&mut self.built);
        let own = bundles.iter().filter_map(|(_, built)| match built {
            Built::Workflow(bundle) => Some(&**bundle),
            _ => None,
        });
        let own: Vec<&Bundle> = own.collect();
        let version_of = |kind: DocumentKind, name: &Name| match kind {
            DocumentKind::Workflow => workflows.get(name).copied(),
            DocumentKind::Task => {
                let inside = own.iter().find_map(|bundle| bundle.tasks.get(name));
                inside.or(parts.tasks.get(name)).or(library.tasks.get(name)).map(|task| task.version)
            }
            DocumentKind::Action => {
                let inside = own.iter().find_map(|bundle| bundle.actions.get(name));
                inside.or(parts.actions.get(name)).or(library.actions.get(name)).map(|action| action.version)
            }
            DocumentKind::Prompt => {
                let inside = own.iter().find_map(|bundle| bundle.prompts.get(name));
                inside.or(parts.prompts.get(name)).or(library.prompts.get(name)).map(|prompt| prompt.version)
            }
            DocumentKind::Model => {
                let inside = own.iter().find_map(|bundle| bundle.models.get(name));
                inside.or(parts.models.get(name)).or(library.models.get(name)).map(|model| model.version)
            }
            DocumentKind::ArtifactType => {
                let inside = own.iter().find_map(|bundle| bundle.artifact_types.get(name));
                let known = inside.or(parts.artifact_types.get(name)).or(library.artifact_types.get(name));
                known.map(|known| known.version)
            }
        };
        self.versions(&version_of);
        self.built = bundles;
    }

    /// Holds a document against its shape. None: there is nothing in it to build.
    fn check(&mut self, at: usize, node: &Node<'_>) -> Option<DocumentKind> {
        match &node.data {
            Data::Null | Data::Bad => return None,
            Data::Map(_) => {}
            _ => {
                let message = format!("expected a workflow, found {}", node.kind());
                let problem = Diagnostic::error(codes::WRONG_FORM, node.span, message);
                self.problems.push(problem.label("expected a map with `wonder: 1`, `name` and `nodes`"));
                return None;
            }
        }
        let kind = DocumentKind::of(node);
        if kind.is_none() && !self.untold(node) {
            return None;
        }
        let kind = kind.unwrap_or(DocumentKind::Workflow);
        let support = if self.around.everything { Support::Everything } else { Support::ThisVersion };
        let source = self.source.clone();
        let mut checker =
            Checker { source: &source.text, problems: &mut self.problems, broken: false, support };
        checker.object(node, kind.shape(), Span::default());
        if checker.broken {
            self.broken.insert(at);
        }
        Some(kind)
    }

    /// A document that does not say what it is: an unknown `kind` is reported here; whatever else is taken
    /// for a workflow, and lacks its nodes.
    fn untold(&mut self, node: &Node<'_>) -> bool {
        let Some(kind) = node.entry("kind") else { return true };
        let Some(text) = kind.value.text() else { return true };
        let known = ["workflow", "graph", "dag", "task", "action", "prompt", "model", "artifact_type"];
        let help = match nearest(text, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "known are `workflow`, `graph`, `dag`, `task`, `action`, `prompt`, `model` and `artifact_type`"
                .to_owned(),
        };
        self.problems.push(
            Diagnostic::error(
                codes::UNKNOWN_WORD,
                kind.value.span,
                format!("there is no kind of definition `{text}`"),
            )
            .label("expected a kind of definition")
            .help(help),
        );
        false
    }

    /// The file's definitions by name; a second one of the same kind and name is an error.
    fn collect(&mut self) -> Parts {
        let mut parts = Parts::default();
        let mut seen: HashMap<(DocumentKind, Name), Spot> = HashMap::new();
        let mut twice = Vec::new();
        for (_, document) in &self.built {
            let (kind, name) = match document {
                Built::Workflow(bundle) => (DocumentKind::Workflow, &bundle.workflow.name),
                Built::Task(task, actions) => {
                    parts.tasks.entry(task.name.text.clone()).or_insert_with(|| Arc::new(task.clone()));
                    parts.actions.extend(actions.iter().map(|(name, action)| (name.clone(), action.clone())));
                    (DocumentKind::Task, &task.name)
                }
                Built::Action(action) => {
                    parts.actions.entry(action.name.text.clone()).or_insert_with(|| Arc::new(action.clone()));
                    (DocumentKind::Action, &action.name)
                }
                Built::Prompt(prompt) => {
                    parts.prompts.entry(prompt.name.text.clone()).or_insert_with(|| prompt.clone());
                    (DocumentKind::Prompt, &prompt.name)
                }
                Built::Model(model) => {
                    parts.models.entry(model.name.text.clone()).or_insert_with(|| model.clone());
                    (DocumentKind::Model, &model.name)
                }
                Built::ArtifactType(of) => {
                    parts.artifact_types.entry(of.name.text.clone()).or_insert_with(|| of.clone());
                    (DocumentKind::ArtifactType, &of.name)
                }
            };
            let first = *seen.entry((kind, name.text.clone())).or_insert(name.spot);
            if first != name.spot && &*name.text != "unnamed" {
                twice.push((kind, name.clone(), first));
            }
        }
        for (kind, name, first) in twice {
            self.twice(kind, &name, first);
        }
        parts
    }

    fn twice(&mut self, kind: DocumentKind, name: &Text, first: Spot) {
        let span = |spot| self.build.spots.span(spot).unwrap_or_default();
        let message = format!("the file has two {}s `{name}`", kind.word());
        let problem = Diagnostic::error(codes::DUPLICATE_NAME, span(name.spot), message)
            .label("again here")
            .also(span(first), "first here")
            .help("give one of them another name");
        self.problems.push(problem);
    }

    fn finish(&mut self, at: usize, document: Built, parts: &Parts, outcome: &mut Outcome, used: &mut Used) {
        let definition = match document {
            Built::Workflow(mut bundle) => {
                complete(&mut bundle, parts, self.around.library);
                if self.around.unable.is_some() {
                    self.unusable_servers(&bundle);
                }
                used.add(&bundle);
                let bundle: Arc<Bundle> = Arc::from(bundle);
                let graph = self.graph(&bundle, self.broken.contains(&at));
                outcome.graphs.extend(graph.map(Arc::new));
                outcome.bundles.push(bundle.clone());
                Definition::Workflow(bundle)
            }
            Built::Task(task, actions) => Definition::Task(task, actions),
            Built::Action(action) => Definition::Action(action),
            Built::Prompt(prompt) => Definition::Prompt(prompt),
            Built::Model(model) => Definition::Model(model),
            Built::ArtifactType(of) => Definition::ArtifactType(of),
        };
        outcome.definitions.push(definition);
    }

    /// The graph's checks, with what they found put where it was written.
    fn graph(&mut self, bundle: &Arc<Bundle>, broken: bool) -> Option<Graph> {
        let (graph, found) = match Graph::build(bundle.clone()) {
            Ok((graph, warnings)) => (Some(graph), warnings),
            Err(problems) => (None, problems),
        };
        for problem in found {
            let code = problem.code;
            let build = &self.build;
            let on_tainted = build.tainted.contains(&problem.spot);
            let untimed = code == core_codes::NO_TIMEOUT && build.untimed.contains(&problem.spot);
            let placed = self.place(problem);
            let said = placed.span.map_or("", |span| span.of(&self.source.text));
            let consequence = match code {
                _ if placed.span.is_some_and(|span| self.places.contains(&span)) => true,
                _ if FIELDS.contains(&code) => on_tainted || untimed,
                core_codes::UNDECLARED_IN_EXPRESSION | core_codes::UNDECLARED_IN_TEMPLATE => {
                    broken && (matches!(said, "_branch" | "needs") || build.item_names.contains(said))
                }
                _ => broken && FLOW.contains(&code),
            };
            if !consequence {
                self.problems.push(placed);
            }
        }
        graph
    }

    fn place(&self, problem: Problem) -> Diagnostic {
        let mut span = self.build.spots.span(problem.spot);
        if problem.code == core_codes::BAD_M_OF_N {
            span = self.build.strategies.get(&problem.spot).copied().or(span);
        }
        if let (Some(whole), Some((offset, len))) = (span, problem.within) {
            span = Some(part(&self.source.text, whole, offset, len));
        }
        Diagnostic {
            code: problem.code,
            severity: problem.severity,
            span,
            message: as_written(&one_line(problem.message)),
            label: problem.label,
            help: problem.help,
            also: Vec::new(),
            file: 0,
        }
    }

    /// Documents that no workflow of the file names are checked too.
    fn check_unused(&mut self, parts: &Parts, used: &Used) {
        let Some(bundle) = unused::bundle(parts, used, self.around.library) else { return };
        let before = self.problems.len();
        self.graph(&Arc::new(bundle), true);
        // What has no place is about the workflow that was made up to carry them.
        let mut at = 0;
        self.problems.retain(|problem| {
            at += 1;
            at <= before || problem.span.is_some()
        });
    }
}

/// Core quotes texts of several lines as they are; a message is one line.
fn one_line(message: String) -> String {
    if !message.contains('\n') {
        return message;
    }
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Names that the reader made up for what stands on a node or in a task, as their author would say them.
fn as_written(message: &str) -> String {
    let inline = message.replace("task `node:", "node `").replace("`task:", "`");
    inline.replace("`node:", "`")
}
