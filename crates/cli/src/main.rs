//! The binary `wonder`: what is typed becomes a question to an engine, its answer becomes a screen and an
//! exit code.
//!
//! It runs nothing itself and never asks which engine it speaks to. `args` says what can be typed, `config`
//! and `secrets` what is set, `verbs` what each verb does, `view` what it looks like.

mod approval;
mod args;
mod ask;
mod complete;
mod config;
mod display;
mod exit;
mod fault;
mod form;
mod hints;
mod in_place;
mod inputs;
mod interrupts;
mod keys;
mod reading;
mod reference;
mod screen;
mod secrets;
mod session;
mod sources;
#[cfg(test)]
mod stage;
mod text;
mod typing;
mod verbs;
mod view;

use std::process::ExitCode;

use args::{Cli, Format, Verb};
use clap::Parser;
use fault::Fault;
use screen::Screen;
use session::Session;
use text::Text;
use verbs::{
    act, answer, artifacts, complete as completing, cost, explain, init, look, mcp, plan, run, serve, stream,
    tell, test, token, write,
};
use wonder_core::visible;

fn main() -> ExitCode {
    // Before anything is started that could look.
    wonder_actions::hide_from_other_processes();
    let Cli { common, verb } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(error),
    };
    if common.output == Format::Junit && !matches!(verb, Verb::Test(_)) {
        let fault = Fault::usage("`-o junit` is for `wonder test`").help("`-o json` is for programs");
        return Screen::new(Format::Text).fault(&fault).into();
    }
    let makes_home = matches!(verb, Verb::Run(_) | Verb::Serve(_));
    let session = Session::new(&common, makes_home);
    let (screen, engine) = (&session.screen, &session);
    let done = match verb {
        // A run, until it ends or waits.
        Verb::Run(args) => engine.block_on(run::run(args, &session)),
        Verb::Resume(args) => engine.block_on(run::resume(args, &session)),
        Verb::Retry(args) => engine.block_on(run::retry(args, &session)),
        Verb::Fork(args) => engine.block_on(run::fork(args, &session)),
        Verb::Answer(args) => engine.block_on(answer::answer(args, &session)),
        Verb::Signal(args) => engine.block_on(run::signal(args, &session)),
        Verb::Tell(args) => engine.block_on(tell::tell(args, &session)),
        // One word to a run.
        Verb::Cancel(args) => engine.block_on(act::cancel(args, &session)),
        Verb::Kill(args) => engine.block_on(act::kill(args, &session)),
        Verb::Pause(args) => engine.block_on(act::pause(args, &session)),
        // Looking.
        Verb::List(args) => engine.block_on(look::list(args, &session)),
        Verb::Show(args) => engine.block_on(look::show(args, &session)),
        Verb::Watch(args) => engine.block_on(look::watch(args, &session)),
        Verb::Logs(args) => engine.block_on(stream::logs(args, &session)),
        Verb::Events(args) => engine.block_on(stream::events(args, &session)),
        Verb::Cost(args) => engine.block_on(cost::cost(args, &session)),
        Verb::Why(args) => engine.block_on(look::why(args, &session)),
        Verb::Gates(args) => engine.block_on(look::gates(args, &session)),
        Verb::Artifacts(args) => engine.block_on(artifacts::artifacts(args, &session)),
        // Others.
        Verb::Serve(args) => engine.block_on(serve::serve(args, &session)),
        Verb::Token(args) => token::token(args, &session),
        // Writing workflows, without an engine.
        Verb::Init(args) => init::init(&args, &session.around.workdir, screen),
        Verb::Validate(args) => write::validate(&args, screen),
        Verb::Mcp(args) => engine.block_on(mcp::mcp(args, &session)),
        Verb::Plan(args) => plan::plan(&args, &session),
        Verb::Test(args) => test::test(&args, common.output, &session),
        Verb::Graph(args) => write::graph(&args, &session),
        Verb::Schema(args) => write::schema(&args, screen),
        Verb::Explain(args) => explain::explain(&args, screen),
        Verb::Completions(args) => completing::completions(&args, screen),
        Verb::Complete(args) => completing::complete(&args, &session),
        Verb::Reaper => {
            wonder_actions::reaper::main_loop();
            return ExitCode::SUCCESS;
        }
    };
    done.unwrap_or_else(|fault| screen.fault(&fault)).into()
}

/// Help, or what is wrong with the line. It is read a second time from words that can be said back.
fn not_understood(error: clap::Error) -> ExitCode {
    let words = std::env::args_os().map(|word| visible::line(&word.to_string_lossy()).into_owned());
    let again = Cli::try_parse_from(words).err().filter(|again| again.kind() == error.kind());
    let error = again.unwrap_or(error);
    let screen = Screen::new(Format::Text);
    let (rendered, paint) = (error.render(), if error.use_stderr() { screen.err } else { screen.out });
    let text = match paint.color {
        true => Text::drawn(&rendered.ansi().to_string()),
        false => Text::block(&rendered.to_string()),
    };
    if error.use_stderr() {
        screen.draw(&text);
    } else {
        let _ = screen.print(&text);
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
