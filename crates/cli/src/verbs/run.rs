//! `run`, and the verbs that set a known run going again: `resume`, `retry`, `fork`, `signal`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use wonder_core::def::WorkflowTimeout;
use wonder_core::limits::WORKFLOW_TIMEOUT_MS;
use wonder_core::run::{Waiting, WaitsFor};
use wonder_core::{Value, strict_json};
use wonder_engine::{Act, Engine, Fork, RunView, Signal, Start, WhyReason, Workflow};
use wonder_spec::{Definition, Diagnostics, Reading};

use crate::args::{ForkArgs, How, ResumeArgs, RetryArgs, RunArgs, SignalArgs, somebody};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::inputs::{self, Wanted};
use crate::screen::{Screen, now};
use crate::session::Session;
use crate::sources::{For, read};
use crate::text::text;
use crate::verbs::carry_on::set_going;
use crate::verbs::last::{chosen, found};
use crate::verbs::stream::must_be_node;
use crate::view::paint::Tone;
use crate::view::words::{duration, shell_word};

pub(crate) async fn run(args: RunArgs, session: &Session) -> Result<Exit, Fault> {
    session.use_tape(&args.tape)?;
    let start = prepare(&args, session)?;
    let schema = input_schema(&start.workflow).clone();
    let limit = default_limit(&start.workflow).filter(|_| !session.screen.json);
    set_going(session, args.detach, None, async |engine| {
        let started = engine.start(start).await.map_err(|error| Fault::from(error).takes(&schema))?;
        limit.iter().for_each(|limit| session.screen.say(session.screen.err.dim(limit)));
        Ok(started)
    })
    .await
}

/// Everything that can be wrong with what was typed is found before anything is opened.
fn prepare(args: &RunArgs, session: &Session) -> Result<Start, Fault> {
    let labels = args.labels.iter().map(|text| inputs::pair("--label", text)).collect::<Result<_, _>>()?;
    let from_stdin = args.files.iter().filter(|file| **file == Path::new("-")).count();
    if from_stdin + args.inputs.iter().filter(|input| *input == "-").count() > 1 {
        let message = "`-` is stdin, and it can be read once";
        return Err(Fault::usage(message).help("give the file or the input by its path"));
    }
    let Some(workdir) = session.around.workdir.to_str() else {
        let message = format!(
            "the path of the working directory is no UTF-8 text: {}",
            session.around.workdir.display()
        );
        return Err(Fault::usage(message).help("a run remembers where it works: go to another directory"));
    };
    let replays = session.tape().is_some_and(|tape| tape.is_replay());
    let purpose = if replays { For::Replay } else { For::Run };
    let mut callable = workflows_of(&args.files, purpose, &session.screen)?;
    let workflow = callable.remove(0);
    let input = inputs::object(&Wanted::input(input_schema(&workflow)), &args.inputs)?;
    Ok(Start {
        id: session.begin_tape_of_new()?,
        workflow,
        callable,
        input,
        workdir: workdir.to_owned(),
        file: file_of(&args.files),
        max_parallel: args.max_parallel,
        options: Default::default(),
        labels,
        wait_ms: 0,
    })
}

/// Nobody wrote a time limit, and there is one.
fn default_limit(workflow: &Workflow) -> Option<String> {
    let workflow = &workflow.bundle.workflow;
    let then = match workflow.on_timeout {
        WorkflowTimeout::HumanGate => "then a gate asks",
        WorkflowTimeout::CancelAll => "then all is cancelled",
        WorkflowTimeout::Fail => "then it fails",
    };
    let limit = duration(WORKFLOW_TIMEOUT_MS);
    let text = format!("time limit {limit} by default, {then}; `timeout:` in the file sets another");
    workflow.timeout_ms.is_none().then_some(text)
}

/// What the workflow says of its input; null if nothing.
fn input_schema(workflow: &Workflow) -> &Value {
    workflow.bundle.workflow.input_schema.as_ref().map_or(&Value::Null, |schema| &schema.doc)
}

/// Where to look whether the definition was edited since; stdin is gone.
fn file_of(files: &[PathBuf]) -> Option<String> {
    let first = files.first().filter(|file| **file != Path::new("-"))?;
    std::path::absolute(first).ok()?.into_os_string().into_string().ok()
}

fn workflows(file: &Path, screen: &Screen) -> Result<Vec<Workflow>, Fault> {
    workflows_of(&[file.to_owned()], For::Run, screen)
}

/// The workflows of files and of those they call, of which there is at least one; warnings are said.
fn workflows_of(files: &[PathBuf], purpose: For, screen: &Screen) -> Result<Vec<Workflow>, Fault> {
    let reading = read(files, purpose)?;
    warn(&reading.warnings, screen);
    let workflows = of_reading(&reading);
    if workflows.is_empty() {
        return Err(no_workflow(files.first().map_or(Path::new("-"), PathBuf::as_path), &reading));
    }
    Ok(workflows)
}

/// A file without a workflow, and what it might have been meant to be.
pub(crate) fn no_workflow(file: &Path, reading: &Reading) -> Fault {
    let fault = Fault::usage(format!("{}: this file defines no workflow", file.display()));
    match reading.definitions.first() {
        Some(Definition::Task(task, _)) => fault.help(format!(
            "`steps` at the top define a task, `{}`: give them to a node, `nodes: {{main: {{steps: [...]}}}}`",
            task.name
        )),
        _ => fault.help("a workflow has a `name` and `nodes`"),
    }
}

fn of_reading(reading: &Reading) -> Vec<Workflow> {
    let both = reading.bundles.iter().zip(&reading.graphs);
    both.map(|(bundle, graph)| Workflow { bundle: Arc::clone(bundle), graph: Some(Arc::clone(graph)) })
        .collect()
}

/// Warnings in short; `validate` shows them whole.
fn warn(warnings: &Diagnostics, screen: &Screen) {
    let list = warnings.to_json();
    for warning in list.as_array().into_iter().flatten() {
        let text = |key: &str| warning[key].as_str().unwrap_or_default().to_owned();
        let place = match (warning["line"].as_u64(), warning["column"].as_u64()) {
            (Some(line), Some(column)) => format!("{}:{line}:{column}", text("file")),
            _ => text("file"),
        };
        let title = screen.err.tone(Tone::Attention, format!("warning[{}]", text("code")));
        screen.say(text!("{}: {}: {}", title, place, text("message")));
    }
}

pub(crate) async fn resume(args: ResumeArgs, session: &Session) -> Result<Exit, Fault> {
    session.use_tape(&args.tape)?;
    let act = Act::Resume { by: somebody(args.how.by.clone()) };
    set_act(args.run, act, &args.how, session).await
}

pub(crate) async fn retry(args: RetryArgs, session: &Session) -> Result<Exit, Fault> {
    session.use_tape(&args.tape)?;
    let definition = args.definition.as_deref().map(|file| workflows(file, &session.screen)).transpose()?;
    let keeps = definition.is_none();
    let act = Act::Retry { by: somebody(args.how.by.clone()), definition: definition.unwrap_or_default() };
    set_going(session, args.how.detach, Some(now()), async |engine| {
        let run = chosen(engine, args.run, &session.screen).await?;
        session.begin_tape(engine, &run).await?;
        let view = engine.act(run.clone(), act).await.map_err(|error| Fault::from(error).about(&run))?;
        if keeps {
            say_if_edited(engine, &view, &session.screen).await;
        }
        Ok(view)
    })
    .await
}

/// Who edits a file and retries a run may expect the run to go by the new text. Says that it does not.
async fn say_if_edited(engine: &dyn Engine, view: &RunView, screen: &Screen) {
    let Some(file) = &view.row.file else { return };
    let Ok(reading) = read(&[PathBuf::from(file)], For::Run) else { return };
    let Ok(false) = engine.same_definition(view.row.run.clone(), of_reading(&reading)).await else { return };
    let run = shell_word(&view.row.run);
    let here = std::env::current_dir().unwrap_or_default();
    let file = Path::new(file).strip_prefix(here).unwrap_or(Path::new(file)).to_string_lossy();
    let typed = shell_word(&file);
    screen.say(format!("{file} has changed since: run {run} keeps the definition it was started with"));
    screen.say(format!("  `wonder retry {run} --definition {typed}` goes on with the new one, in this run"));
    screen.say(format!("  `wonder fork {run} --from NODE --definition {typed}` does so in a new run"));
}

pub(crate) async fn fork(args: ForkArgs, session: &Session) -> Result<Exit, Fault> {
    let input = match args.inputs.is_empty() {
        true => Value::Null,
        false => inputs::object(&Wanted::free("--input"), &args.inputs)?,
    };
    let definition = args.definition.as_deref().map(|file| workflows(file, &session.screen)).transpose()?;
    let set = match args.set.is_empty() {
        true => Value::Null,
        false => inputs::object(&Wanted::free("--set"), &args.set)?,
    };
    let ForkArgs { run, from: node, branch, visit, .. } = args;
    let definition = definition.unwrap_or_default();
    set_going(session, args.detach, Some(now()), async |engine| {
        let view = found(engine, run, &session.screen).await?;
        // Of a child its root is forked, and the child with it.
        let (root, node) = match view.row.parent.is_some() {
            false => (view, node),
            true => {
                let tree = engine.tree(&view.row.root).await?;
                let way = tree.way_to(&view.row.run).into_iter().chain([node]).collect::<Vec<_>>().join("/");
                (engine.find(view.row.root).await?, way)
            }
        };
        for part in node.split('/') {
            must_be_node(engine, &root, ("--from", part)).await?;
        }
        let run = root.row.run;
        let fork = Fork { id: None, run: run.clone(), node, branch, visit, input, set, definition };
        engine.fork(fork).await.map_err(|error| Fault::from(error).about(&run))
    })
    .await
}

async fn set_act(run: String, act: Act, how: &How, session: &Session) -> Result<Exit, Fault> {
    set_going(session, how.detach, Some(now()), async |engine| {
        let run = chosen(engine, run, &session.screen).await?;
        session.begin_tape(engine, &run).await?;
        engine.act(run.clone(), act).await.map_err(|error| Fault::from(error).about(&run))
    })
    .await
}

pub(crate) async fn signal(args: SignalArgs, session: &Session) -> Result<Exit, Fault> {
    let payload = inputs::any(&Wanted::free("PAYLOAD"), &args.payload)?.unwrap_or_default();
    set_going(session, args.how.detach, Some(now()), async |engine| {
        let run = chosen(engine, args.run, &session.screen).await?;
        let key = match &args.key {
            Some(text) => event_key(engine, (&run, &args.name), text).await?,
            None => Value::Null,
        };
        let signal =
            Signal { request_id: None, run: run.clone(), event: args.name, key, payload, keep: true };
        engine.signal(signal).await.map_err(|error| Fault::from(error).about(&run))
    })
    .await
}

/// A key is a text, or JSON behind `:=`; and what the run waits for decides if only the JSON is that.
async fn event_key(engine: &dyn Engine, (run, event): (&str, &str), text: &str) -> Result<Value, Fault> {
    let typed = inputs::key("--key", text)?;
    let Ok(read) = strict_json::read(text) else { return Ok(typed) };
    let reasons = engine.why(run.to_owned()).await?;
    let awaited: Vec<&Value> = reasons
        .iter()
        .filter_map(|why| match &why.reason {
            WhyReason::Run(Waiting { on: WaitsFor::Event { event: name, key, .. }, .. }) => {
                (**name == *event).then_some(key)
            }
            _ => None,
        })
        .collect();
    let only_read = awaited.contains(&&read) && !awaited.contains(&&typed);
    Ok(if only_read { read } else { typed })
}
