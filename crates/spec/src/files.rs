//! Files that call each other. Each is read by itself; then it is seen which workflows there are, what calls what,
//! and whether files call each other in a circle. Files are opened by the caller: here nothing is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use wonder_core::def::{ActionDef, Bundle, Callee, Implementation, Name, Spot, Text, ToolUse};
use wonder_core::problem::nearest;

use crate::build::{Built, DocumentKind, FileCall};
use crate::codes;
use crate::diagnostics::Diagnostic;
use crate::place::Span;
use crate::reader::{Around, CannotPerform, FileReader};

/// A file's name, by which messages call it and by which it is known again, and its text.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FileText {
    pub name: String,
    pub text: String,
}

/// Opens files that a workflow names.
pub trait Files {
    /// The file at `path`, as written in the file called `from`. The error says why it cannot be read.
    fn open(&self, path: &str, from: &str) -> Result<FileText, String>;
}

/// For those who have a text and no files.
#[derive(Clone, Copy, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn open(&self, _path: &str, _from: &str) -> Result<FileText, String> {
        Err("other files are not read here".to_owned())
    }
}

impl fmt::Debug for dyn Files + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Files")
    }
}

/// Why an action cannot be performed, and what to do about it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unable {
    pub why: String,
    pub help: String,
}

/// Every file that is given or called, once, in the order in which they are met.
pub(crate) fn read_all<'r>(given: Vec<FileText>, around: &'r Around<'r>) -> Vec<FileReader<'r>> {
    let mut by_name: BTreeMap<String, usize> = BTreeMap::new();
    let mut files: Vec<FileReader<'r>> = Vec::new();
    for file in given {
        by_name.entry(file.name.clone()).or_insert_with(|| {
            files.push(FileReader::read(&file, around));
            files.len() - 1
        });
    }
    let mut calls: Vec<BTreeMap<Spot, usize>> = Vec::new();
    let mut at = 0;
    while at < files.len() {
        let mut leads = BTreeMap::new();
        for (spot, call) in files[at].file_calls() {
            let opened = around.files.open(&call.path.text, files[at].name());
            match opened {
                Err(why) => files[at].cannot_open(&call, &why),
                Ok(file) => {
                    let to = *by_name.entry(file.name.clone()).or_insert(files.len());
                    if to == files.len() {
                        files.push(FileReader::read(&file, around));
                    }
                    leads.insert(spot, to);
                }
            }
        }
        calls.push(leads);
        at += 1;
    }
    cycles(&mut files, &calls);
    for (at, leads) in calls.iter().enumerate() {
        let names: BTreeMap<Spot, Option<Name>> =
            leads.iter().map(|(spot, to)| (*spot, called(&files[at], *spot, &files[*to]))).collect();
        files[at].name_calls(&names);
    }
    unknown_workflows(&mut files, around);
    same_names(&mut files);
    files
}

/// The workflow that a call of a file means: the one it names, or the first.
fn called(from: &FileReader<'_>, spot: Spot, file: &FileReader<'_>) -> Option<Name> {
    let asked = from.build.file_calls.get(&spot).and_then(|call| call.workflow.clone());
    asked.or_else(|| file.workflows().next().map(|(name, _)| name.clone()))
}

/// Files that call each other in a circle: said at the call that closes it.
fn cycles(files: &mut [FileReader<'_>], calls: &[BTreeMap<Spot, usize>]) {
    let mut done = vec![false; files.len()];
    for start in 0..files.len() {
        let mut path: Vec<usize> = Vec::new();
        let mut todo: Vec<(usize, Vec<(Spot, usize)>)> = Vec::new();
        let leads = |at: usize| calls[at].iter().map(|(spot, to)| (*spot, *to)).collect::<Vec<_>>();
        if !done[start] {
            path.push(start);
            todo.push((start, leads(start)));
        }
        while let Some((at, rest)) = todo.last_mut() {
            let at = *at;
            let Some((spot, to)) = rest.pop() else {
                done[at] = true;
                path.pop();
                todo.pop();
                continue;
            };
            if let Some(first) = path.iter().position(|on| *on == to) {
                let circle: Vec<&str> =
                    path[first..].iter().chain([&to]).map(|at| files[*at].name()).collect();
                let circle = circle.join(" -> ");
                files[at].circle(spot, &circle);
            } else if !done[to] {
                path.push(to);
                todo.push((to, leads(to)));
            }
        }
    }
}

/// Calls of workflows that are in none of the files.
fn unknown_workflows(files: &mut [FileReader<'_>], around: &Around<'_>) {
    // Who only looks is told of it as of everything else that is missing.
    if around.everything || files.iter().any(|file| file.stopped) {
        return;
    }
    let mut known: BTreeSet<Name> = around.library.workflows.clone();
    for file in files.iter() {
        known.extend(file.workflows().map(|(name, _)| name.clone()));
    }
    for file in files.iter_mut() {
        file.unknown_workflows(&known);
    }
}

/// Two files with a workflow of the same name: a call by that name could mean either.
fn same_names(files: &mut [FileReader<'_>]) {
    let mut first: BTreeMap<Name, usize> = BTreeMap::new();
    for at in 0..files.len() {
        let names: Vec<(Name, Spot)> =
            files[at].workflows().map(|(name, spot)| (name.clone(), spot)).collect();
        for (name, spot) in names {
            let known = *first.entry(name.clone()).or_insert(at);
            if known != at {
                let other = files[known].name().to_owned();
                files[at].same_name(&name, spot, &other);
            }
        }
    }
}

impl FileReader<'_> {
    pub(crate) fn file_calls(&self) -> Vec<(Spot, FileCall)> {
        let mut calls: Vec<(Spot, FileCall)> =
            self.build.file_calls.iter().map(|(spot, call)| (*spot, call.clone())).collect();
        calls.sort_by_key(|(spot, _)| *spot);
        calls
    }

    /// The workflows that it defines, in order.
    pub(crate) fn workflows(&self) -> impl Iterator<Item = (&Name, Spot)> {
        self.built.iter().filter_map(|(_, built)| match built {
            Built::Workflow(bundle) => Some((&bundle.workflow.name.text, bundle.workflow.name.spot)),
            _ => None,
        })
    }

    fn span(&self, spot: Spot) -> Span {
        self.build.spots.span(spot).unwrap_or_default()
    }

    fn cannot_open(&mut self, call: &FileCall, why: &str) {
        let message = format!("`{}` cannot be read: {why}", call.path);
        let problem = Diagnostic::error(codes::FILE_NOT_READ, self.span(call.path.spot), message)
            .label("expected the path of a workflow file")
            .help("the path is relative to the file that says it");
        self.problems.push(problem);
    }

    fn circle(&mut self, spot: Spot, circle: &str) {
        let message = format!("these files call each other: {circle}");
        let problem = Diagnostic::error(codes::FILE_CYCLE, self.span(spot), message)
            .label("this call closes the circle")
            .help("put the workflows that call each other into one file, as documents separated by `---`, and call them by name");
        self.problems.push(problem);
    }

    fn same_name(&mut self, name: &Name, spot: Spot, other: &str) {
        let message = format!("workflow `{name}` is in {other} as well");
        let problem = Diagnostic::error(codes::DUPLICATE_NAME, self.span(spot), message)
            .label("again here")
            .help("a workflow is called by its name: give one of them another");
        self.problems.push(problem);
    }

    /// Puts in the place of each called file the name of the workflow in it.
    fn name_calls(&mut self, names: &BTreeMap<Spot, Option<Name>>) {
        let mut missing = Vec::new();
        self.each_action(&mut |action| {
            let Implementation::WorkflowCall(call) = &action.implementation else { return None };
            let Callee::Named(text) = &call.workflow else { return None };
            match names.get(&text.spot)? {
                Some(name) => Some(name.clone()),
                None => {
                    missing.push(text.spot);
                    None
                }
            }
        });
        for spot in missing {
            let message = "the file that is called defines no workflow";
            let problem = Diagnostic::error(codes::FILE_NOT_READ, self.span(spot), message)
                .label("expected a file with `nodes`");
            self.problems.push(problem);
        }
    }

    /// Goes through every action, and renames what it calls where told to.
    fn each_action(&mut self, rename: &mut dyn FnMut(&ActionDef) -> Option<Name>) {
        let mut visit = |action: &mut ActionDef| {
            if let Some(name) = rename(action)
                && let Implementation::WorkflowCall(call) = &mut action.implementation
                && let Callee::Named(text) = &mut call.workflow
            {
                text.text = name;
            }
        };
        for (_, built) in &mut self.built {
            match built {
                Built::Workflow(bundle) => {
                    bundle.actions.values_mut().for_each(|action| visit(Arc::make_mut(action)));
                }
                Built::Task(_, actions) => {
                    actions.values_mut().for_each(|action| visit(Arc::make_mut(action)))
                }
                Built::Action(action) => visit(action),
                Built::Prompt(_) | Built::Model(_) | Built::ArtifactType(_) => {}
            }
        }
    }

    fn unknown_workflows(&mut self, known: &BTreeSet<Name>) {
        let calls = &self.build.file_calls;
        let mut unknown = Vec::new();
        for action in self.actions() {
            let Implementation::WorkflowCall(call) = &action.implementation else { continue };
            let Callee::Named(text) = &call.workflow else { continue };
            // Of a file that could not be read nothing more is said.
            let file_says = calls
                .get(&text.spot)
                .is_some_and(|call| call.workflow.is_none() || call.path.text == text.text);
            let written = !text.text.is_empty() && !text.text.contains("{{") && !text.text.contains("{%");
            if written && !file_says && !known.contains(&text.text) {
                unknown.push(text.clone());
            }
        }
        for text in unknown {
            let help = match nearest(&text.text, known.iter().map(|name| &**name)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "define it in this file, after a line `---`; or name its file: `workflow_call: {file: ./other.yaml}`".to_owned(),
            };
            let message = format!("there is no workflow `{text}`");
            let problem = Diagnostic::error(codes::UNKNOWN_WORKFLOW, self.span(text.spot), message)
                .label("expected the name of a workflow")
                .help(help);
            self.problems.push(problem);
        }
    }

    pub(crate) fn actions(&self) -> impl Iterator<Item = &ActionDef> {
        self.built.iter().flat_map(|(_, built)| -> Vec<&ActionDef> {
            match built {
                Built::Workflow(bundle) => bundle.actions.values().map(|action| &**action).collect(),
                Built::Task(_, actions) => actions.values().map(|action| &**action).collect(),
                Built::Action(action) => vec![action],
                Built::Prompt(_) | Built::Model(_) | Built::ArtifactType(_) => Vec::new(),
            }
        })
    }

    /// Actions that nobody here performs.
    pub(crate) fn unable(&mut self, unable: &CannotPerform<'_>) {
        let found: Vec<(Spot, Unable)> = self
            .actions()
            .filter_map(|action| Some((action.spot, unable(&action.implementation)?)))
            .collect();
        for (spot, Unable { why, help }) in found {
            let span = self.span(spot);
            if !self.problems.iter().any(|problem| problem.span == Some(span)) {
                let problem = Diagnostic::error(codes::CANNOT_PERFORM, span, why);
                self.problems.push(problem.label("nobody here can perform this").help(help));
            }
        }
    }

    /// MCP servers that nobody here knows, or that the project may not use.
    pub(crate) fn unusable_servers(&mut self, bundle: &Bundle) {
        let library = self.around.library;
        let allowed = library.mcp_allowed.get(bundle.project());
        let named = bundle.actions.values().flat_map(|action| servers_of(&action.implementation));
        for server in named.filter(|server| !server.text.contains("{{")) {
            let is_known = bundle.mcp_servers.contains_key(&server.text);
            let (why, help) = match allowed {
                // Where the file has servers, the graph's checks say it, with the nearest name.
                _ if !is_known && bundle.mcp_servers.is_empty() => (
                    format!("there is no MCP server `{server}`"),
                    format!(
                        "define it under `mcp_servers` here, or as `[mcp_servers.{server}]` in wonder.toml"
                    ),
                ),
                Some(allowed) if is_known && !allowed.contains(&server.text) => (
                    format!("project `{}` may not use the MCP server `{server}`", bundle.project()),
                    format!(
                        "the setting `mcp` of `[projects.{}]` says which it may: add `{server}`",
                        bundle.project()
                    ),
                ),
                _ => continue,
            };
            let span = self.span(server.spot);
            if !self.problems.iter().any(|problem| problem.span == Some(span)) {
                let problem = Diagnostic::error(codes::CANNOT_PERFORM, span, why);
                self.problems.push(problem.label("nobody here can perform this").help(help));
            }
        }
    }

    /// Versions that are asked for and are not there.
    pub(crate) fn versions(&mut self, version_of: &dyn Fn(DocumentKind, &Name) -> Option<Option<u32>>) {
        for asked in std::mem::take(&mut self.build.versioned) {
            let Some(found) =
                version_of(asked.kind, &asked.name.text).filter(|found| *found != Some(asked.version))
            else {
                continue;
            };
            let (what, name) = (asked.kind.word(), &asked.name);
            let message = format!("there is no version {} of {what} `{name}`", asked.version);
            let label = match found {
                Some(version) => format!("the one that is here is version {version}"),
                None => "the one that is here has no version".to_owned(),
            };
            let help = match found {
                Some(version) => format!("write `{name}@{version}`, or no version for the one that is here"),
                None => format!(
                    "leave the version out, or write `version: {}` where `{name}` is defined",
                    asked.version
                ),
            };
            let problem = Diagnostic::error(codes::NO_SUCH_VERSION, self.span(name.spot), message);
            self.problems.push(problem.label(label).help(help));
        }
    }
}

/// The MCP servers that an action names.
fn servers_of(implementation: &Implementation) -> Vec<&Text> {
    match implementation {
        Implementation::McpTool(tool) => vec![&tool.server],
        Implementation::LlmCall(call) => {
            let servers = call.tools.iter().filter(|tool| matches!(tool, ToolUse::Server { .. }));
            servers.map(ToolUse::text).collect()
        }
        _ => Vec::new(),
    }
}
