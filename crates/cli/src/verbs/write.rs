//! Verbs for those who write workflows: `validate`, `graph`, `schema`. They need no engine and
//! no settings.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wonder_core::graph::Graph;
use wonder_spec::{Around, Definition, Library, Reading};

use crate::args::{Drawing, GraphArgs, SchemaArgs, ValidateArgs};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::screen::Screen;
use crate::session::Session;
use crate::sources::{Disk, For, read};
use crate::text::{Text, text};
use crate::verbs::draw::definition;
use crate::verbs::last::chosen;
use crate::verbs::look::look;
use crate::verbs::run::no_workflow;
use crate::view::paint::Tone;
use crate::view::words::count;

/// Every problem of every file.
pub(crate) fn validate(args: &ValidateArgs, screen: &Screen) -> Result<Exit, Fault> {
    let mut problems = Vec::new();
    let mut expanded = Vec::new();
    let mut exit = Exit::Fine;
    let disk = Disk::default();
    let files: Vec<_> = args.files.iter().map(|path| (path, disk.given(path))).collect();
    let texts = files.iter().filter_map(|(_, file)| file.as_ref().ok());
    let workflows = texts.flat_map(|file| wonder_spec::workflow_names(&file.text)).collect();
    let library = Library { workflows, ..crate::sources::library(For::Look)? };
    for (path, file) in files {
        let file = match file {
            Ok(file) => file,
            Err(fault) => {
                exit = unreadable(screen, &fault, &path.to_string_lossy(), &mut problems);
                continue;
            }
        };
        let around = Around { library: &library, files: &disk, everything: false, unable: None };
        let name = file.name.clone();
        let (list, reading) = match wonder_spec::read_files(vec![file], &around) {
            Ok(reading) => (reading.warnings.clone(), Some(reading)),
            Err(list) => (list, None),
        };
        if reading.is_none() {
            exit = Exit::Usage;
        }
        if screen.json {
            problems.extend(list.to_json().as_array().cloned().unwrap_or_default());
        } else if !list.is_empty() {
            screen.say(Text::drawn(&list.render(screen.err.color)).trim_end());
        }
        match reading {
            Some(reading) if args.expand => expanded.extend(reading.bundles),
            Some(reading) if !screen.json => {
                let ok = describe(&name, &reading);
                screen.print_line(text!("{} {}", screen.out.tone(Tone::Good, "ok"), ok))?;
            }
            _ => {}
        }
    }
    match (args.expand, screen.json) {
        (true, true) => screen.print_json(&expanded)?,
        (true, false) => {
            let documents: Vec<String> = expanded.iter().map(|bundle| wonder_spec::expand(bundle)).collect();
            screen.print(&Text::block(&documents.join("---\n")))?;
        }
        (false, true) => screen.print_json(&problems)?,
        (false, false) => {}
    }
    Ok(exit)
}

/// A file that cannot be read is one problem more; the others are still looked at.
fn unreadable(screen: &Screen, fault: &Fault, file: &str, problems: &mut Vec<Json>) -> Exit {
    if screen.json {
        let message = fault.to_json()["error"]["message"].clone();
        problems.push(json!({"file": file, "code": "unreadable", "severity": "error", "message": message}));
        return fault.exit();
    }
    screen.fault(fault)
}

/// `hello.yaml: workflow hello with 2 nodes`
fn describe(file: &str, reading: &Reading) -> String {
    let parts: Vec<String> = reading
        .definitions
        .iter()
        .map(|definition| match definition {
            Definition::Workflow(bundle) => {
                let nodes = count(bundle.workflow.nodes.len() as u64, "node");
                format!("workflow {} with {nodes}", bundle.workflow.name.as_str())
            }
            Definition::Task(task, _) => format!("task {}", task.name.as_str()),
            Definition::Action(action) => format!("action {}", action.name.as_str()),
            Definition::Prompt(prompt) => format!("prompt {}", prompt.name.as_str()),
            Definition::Model(model) => format!("model {}", model.name.as_str()),
            Definition::ArtifactType(of) => format!("artifact type {}", of.name.as_str()),
        })
        .collect();
    format!("{file}: {}", parts.join(", "))
}

/// A file if there is one by that name, else a run.
pub(crate) fn graph(args: &GraphArgs, session: &Session) -> Result<Exit, Fault> {
    let path = Path::new(&args.what);
    let looks_like_file = path.extension().is_some() || args.what.contains('/');
    let graph = if path.exists() || looks_like_file || args.what == "-" {
        let reading = read(&[path.to_owned()], For::Look)?;
        reading.graphs.first().cloned().ok_or_else(|| no_workflow(path, &reading))?
    } else {
        session.block_on(graph_of_run(&args.what, session))?
    };
    let text = match args.format {
        Drawing::Mermaid => wonder_spec::mermaid(&graph),
        Drawing::Dot => wonder_spec::dot(&graph),
    };
    match session.screen.json {
        true => {
            let format = if args.format == Drawing::Dot { "dot" } else { "mermaid" };
            session.screen.print_json(&json!({"workflow": &*graph.name, "format": format, "text": text}))?;
        }
        false => session.screen.print(&Text::block(&text))?,
    }
    Ok(Exit::Fine)
}

async fn graph_of_run(run: &str, session: &Session) -> Result<Arc<Graph>, Fault> {
    look(session, async |engine| {
        let run = chosen(engine, run.to_owned(), &session.screen).await?;
        definition(engine, &run).await
    })
    .await
}

pub(crate) fn schema(args: &SchemaArgs, screen: &Screen) -> Result<Exit, Fault> {
    let schema = if args.tests { wonder_spec::test_schema() } else { wonder_spec::schema() };
    let text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    screen.print(&Text::block(&format!("{text}\n")))?;
    Ok(Exit::Fine)
}
