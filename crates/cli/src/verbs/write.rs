//! Verbs for those who write workflows: `validate`, `graph`, `schema`. They need no engine and
//! no settings.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use wonder_core::graph::Graph;
use wonder_spec::{Definition, Reading};

use crate::args::{Drawing, GraphArgs, ValidateArgs};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::screen::Screen;
use crate::session::Session;
use crate::verbs::draw::definition;
use crate::verbs::last::chosen;
use crate::verbs::look::look;
use crate::verbs::run::{read_to_look_at, text_of};
use crate::view::paint::Tone;
use crate::view::words::count;

/// Every problem of every file.
pub(crate) fn validate(args: &ValidateArgs, screen: &Screen) -> Result<Exit, Fault> {
    let mut problems = Vec::new();
    let mut exit = Exit::Fine;
    for path in &args.files {
        let name = path.to_string_lossy();
        let read = match text_of(path) {
            Ok(text) => wonder_spec::read(&text, &name),
            Err(fault) => {
                exit = unreadable(screen, &fault, &name, &mut problems);
                continue;
            }
        };
        let (list, ok) = match read {
            Ok(reading) => {
                let ok = describe(path, &reading);
                (reading.warnings, Some(ok))
            }
            Err(list) => (list, None),
        };
        if ok.is_none() {
            exit = Exit::Usage;
        }
        if screen.json {
            problems.extend(list.to_json().as_array().cloned().unwrap_or_default());
            continue;
        }
        if !list.is_empty() {
            screen.say(list.render(screen.err.color).trim_end());
        }
        if let Some(ok) = ok {
            screen.print(&format!("{} {ok}\n", screen.out.tone(Tone::Good, "ok")))?;
        }
    }
    if screen.json {
        screen.print_json(&problems)?;
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
fn describe(path: &Path, reading: &Reading) -> String {
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
        })
        .collect();
    format!("{}: {}", path.display(), parts.join(", "))
}

/// A file if there is one by that name, else a run.
pub(crate) fn graph(args: &GraphArgs, session: &Session) -> Result<Exit, Fault> {
    let path = Path::new(&args.what);
    let looks_like_file = path.extension().is_some() || args.what.contains('/');
    let graph = if path.exists() || looks_like_file {
        let reading = read_to_look_at(path)?;
        let none = || Fault::usage(format!("{}: this file defines no workflow", path.display()));
        reading.graphs.first().cloned().ok_or_else(none)?
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
        false => session.screen.print(&text)?,
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

pub(crate) fn schema(screen: &Screen) -> Result<Exit, Fault> {
    let text = serde_json::to_string_pretty(&wonder_spec::schema()).unwrap_or_default();
    screen.print(&format!("{text}\n"))?;
    Ok(Exit::Fine)
}
