//! `run`, and the verbs that set a known run going again: `resume`, `retry`, `fork`, `signal`.

use std::path::Path;
use std::sync::Arc;

use wonder_core::Value;
use wonder_engine::{Act, Engine, Fork, RunView, Signal, Start, Workflow};
use wonder_spec::{Diagnostics, Reading};

use crate::args::{ForkArgs, How, ResumeArgs, RetryArgs, RunArgs, SignalArgs, somebody};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::inputs;
use crate::screen::{Screen, now};
use crate::session::Session;
use crate::verbs::carry_on::set_going;
use crate::view::paint::Tone;

pub(crate) async fn run(args: RunArgs, session: &Session) -> Result<Exit, Fault> {
    let start = prepare(&args, session)?;
    set_going(session, args.detach, None, async |engine| engine.start(start).await).await
}

/// Everything that can be wrong with what was typed is found before anything is opened.
fn prepare(args: &RunArgs, session: &Session) -> Result<Start, Fault> {
    let input = inputs::object("--input", &args.inputs)?;
    let labels = args.labels.iter().map(|text| inputs::pair("--label", text)).collect::<Result<_, _>>()?;
    let mut callable = workflows(&args.file, &session.screen)?;
    Ok(Start {
        id: None,
        workflow: callable.remove(0),
        callable,
        input,
        workdir: session.around.workdir.to_string_lossy().into_owned(),
        file: std::path::absolute(&args.file).ok().map(|file| file.to_string_lossy().into_owned()),
        max_parallel: args.max_parallel,
        options: Default::default(),
        labels,
        wait_ms: 0,
    })
}

/// The workflows of a file, of which there is at least one; its warnings are said.
fn workflows(file: &Path, screen: &Screen) -> Result<Vec<Workflow>, Fault> {
    let reading = read(file)?;
    warn(&reading.warnings, screen);
    let workflows = of_reading(&reading);
    if workflows.is_empty() {
        let message = format!("{}: this file defines no workflow", file.display());
        return Err(Fault::usage(message).help("a workflow has a `name` and `nodes`"));
    }
    Ok(workflows)
}

fn of_reading(reading: &Reading) -> Vec<Workflow> {
    let both = reading.bundles.iter().zip(&reading.graphs);
    both.map(|(bundle, graph)| Workflow { bundle: Arc::clone(bundle), graph: Some(Arc::clone(graph)) })
        .collect()
}

/// Reads a file of definitions, or says everything that is wrong with it.
pub(crate) fn read(path: &Path) -> Result<Reading, Fault> {
    // For tests of what a model is switched to, without a model: see `WONDER_FAILPOINT`.
    if std::env::var_os("WONDER_READ_EVERYTHING").is_some() {
        return read_to_look_at(path);
    }
    let text = text_of(path)?;
    wonder_spec::read(&text, &path.to_string_lossy())
        .map_err(|problems| Fault::Definition(Box::new(problems)))
}

/// The same for whoever performs nothing: all of the format, also what this version does not do yet.
pub(crate) fn read_to_look_at(path: &Path) -> Result<Reading, Fault> {
    let text = text_of(path)?;
    wonder_spec::read_everything(&text, &path.to_string_lossy())
        .map_err(|problems| Fault::Definition(Box::new(problems)))
}

pub(crate) fn text_of(path: &Path) -> Result<String, Fault> {
    std::fs::read_to_string(path).map_err(|error| {
        let message = format!("{}: cannot read the file: {error}", path.display());
        Fault::usage(message).help("give the path of a workflow file, such as `wonder run hello.yaml`")
    })
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
        let title = screen.err.tone(Tone::Attention, &format!("warning[{}]", text("code")));
        screen.say(&format!("{title}: {place}: {}", text("message")));
    }
}

pub(crate) async fn resume(args: ResumeArgs, session: &Session) -> Result<Exit, Fault> {
    let act = Act::Resume { by: somebody(args.how.by.clone()) };
    set_act(args.run, act, &args.how, session).await
}

pub(crate) async fn retry(args: RetryArgs, session: &Session) -> Result<Exit, Fault> {
    let definition = args.definition.as_deref().map(|file| workflows(file, &session.screen)).transpose()?;
    let keeps = definition.is_none();
    let act = Act::Retry { by: somebody(args.how.by.clone()), definition: definition.unwrap_or_default() };
    let run = args.run;
    let named = run.clone();
    set_going(session, args.how.detach, Some(now()), async |engine| {
        let view = engine.act(run, act).await?;
        if keeps {
            say_if_edited(engine, &view, &session.screen).await;
        }
        Ok(view)
    })
    .await
    .map_err(|fault| fault.about(&named))
}

/// Who edits a file and retries a run may expect the run to go by the new text. Says that it does not.
async fn say_if_edited(engine: &dyn Engine, view: &RunView, screen: &Screen) {
    let Some(file) = &view.row.file else { return };
    let Ok(reading) = read(Path::new(file)) else { return };
    let Ok(false) = engine.same_definition(view.row.run.clone(), of_reading(&reading)).await else { return };
    let run = &view.row.run;
    let here = std::env::current_dir().unwrap_or_default();
    let file = Path::new(file).strip_prefix(here).unwrap_or(Path::new(file)).display();
    screen.say(&format!("{file} has changed since: run {run} keeps the definition it was started with"));
    screen.say(&format!("  `wonder retry {run} --definition {file}` goes on with the new one, in this run"));
    screen.say(&format!("  `wonder fork {run} --from NODE --definition {file}` does so in a new run"));
}

pub(crate) async fn fork(args: ForkArgs, session: &Session) -> Result<Exit, Fault> {
    let input = match args.inputs.is_empty() {
        true => Value::Null,
        false => inputs::object("--input", &args.inputs)?,
    };
    let definition = args.definition.as_deref().map(|file| workflows(file, &session.screen)).transpose()?;
    let ForkArgs { run, from: node, branch, .. } = args;
    let definition = definition.unwrap_or_default();
    let fork = Fork { id: None, run, node, branch, input, definition };
    set_going(session, args.detach, Some(now()), async |engine| engine.fork(fork).await).await
}

async fn set_act(run: String, act: Act, how: &How, session: &Session) -> Result<Exit, Fault> {
    let named = run.clone();
    set_going(session, how.detach, Some(now()), async |engine| engine.act(run, act).await)
        .await
        .map_err(|fault| fault.about(&named))
}

pub(crate) async fn signal(args: SignalArgs, session: &Session) -> Result<Exit, Fault> {
    let payload = inputs::any("PAYLOAD", &args.payload)?.unwrap_or_default();
    let key = args.key.as_deref().map_or(Value::Null, inputs::json_or_text);
    set_going(session, args.how.detach, Some(now()), async |engine| {
        let signal = Signal { run: args.run, event: args.name, key, payload, keep: true };
        engine.signal(signal).await
    })
    .await
}
