//! `completions`, which prints what a shell needs to ask, and `__complete`, which is what it asks: the candidates for
//! the word that is typed, a line each, with what they are behind a tab. What cannot be known is no candidate, and
//! nothing is ever said on stderr.

use std::collections::BTreeSet;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use wonder_engine::run_tree::node_name;
use wonder_engine::{Engine, Filter};

use crate::args::{Cli, CompleteArgs, CompletionsArgs};
use crate::complete::{Wanted, wanted};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::reference;
use crate::screen::{Screen, now};
use crate::session::Session;
use crate::text::{Text, text};
use crate::verbs::draw::definition;
use crate::verbs::look::look;
use crate::view::paint::spoken;
use crate::view::words::{ago, brief, shell_word};

/// How many of the last runs are offered.
const RUNS_MAX: u32 = 50;
const ABOUT_CHARS_MAX: usize = 60;

pub(crate) fn completions(args: &CompletionsArgs, screen: &Screen) -> Result<Exit, Fault> {
    let text = match args.shell {
        Shell::Bash => include_str!("../completions/wonder.bash").to_owned(),
        Shell::Zsh => include_str!("../completions/wonder.zsh").to_owned(),
        Shell::Fish => include_str!("../completions/wonder.fish").to_owned(),
        // These are told all words beforehand, so they know verbs and flags, and no runs.
        other => {
            let mut text = Vec::new();
            clap_complete::generate(other, &mut for_people(), "wonder", &mut text);
            String::from_utf8_lossy(&text).into_owned()
        }
    };
    screen.print(&Text::block(&text))?;
    Ok(Exit::Fine)
}

/// Without the verbs that only this program itself calls.
fn for_people() -> Command {
    let whole = Cli::command();
    let verbs = whole.get_subcommands().filter(|verb| !verb.is_hide_set()).cloned();
    Command::new("wonder").args(whole.get_arguments().cloned()).subcommands(verbs.collect::<Vec<_>>())
}

pub(crate) fn complete(args: &CompleteArgs, session: &Session) -> Result<Exit, Fault> {
    let mut root = Cli::command();
    root.build();
    let typed = args.words.last().map_or("", String::as_str);
    let found = match wanted(&root, &args.words) {
        Wanted::Words(words) => words,
        Wanted::Topics => topics(),
        Wanted::Files => Vec::new(),
        wanted => {
            let told = look(session, async |engine| Ok(known(engine, wanted).await.unwrap_or_default()));
            let mut told = session.block_on(told).unwrap_or_default();
            // Shells put a candidate into the line as it is: one that they would read as more than a word is none.
            told.retain(|(word, _)| shell_word(word) == *word);
            told
        }
    };
    for (word, about) in found.iter().filter(|(word, _)| word.starts_with(typed)) {
        session.screen.print_line(text!("{}\t{}", word, brief(about, ABOUT_CHARS_MAX)))?;
    }
    Ok(Exit::Fine)
}

fn topics() -> Vec<(String, String)> {
    let topics = reference::all();
    let words = topics.iter().map(|topic| (topic.address(), topic.about.clone()));
    let codes =
        wonder_spec::explained().iter().map(|(code, _)| ((*code).to_owned(), "an error code".to_owned()));
    words.chain(codes).collect()
}

/// What only an engine knows.
async fn known(engine: &dyn Engine, wanted: Wanted) -> Result<Vec<(String, String)>, Fault> {
    Ok(match wanted {
        Wanted::Runs => runs(engine).await?,
        Wanted::Gates { runs: with_runs } => {
            let gates = engine.gates(None).await?;
            let gates = gates.into_iter().map(|gate| (gate.id, gate.title));
            let runs = if with_runs { runs(engine).await? } else { Vec::new() };
            gates.chain(runs).collect()
        }
        Wanted::Nodes { run } => {
            let run = engine.find(run.unwrap_or_else(|| "last".to_owned())).await?.row.run;
            let graph = definition(engine, &run).await?;
            let names: BTreeSet<&str> = graph.nodes.iter().map(|node| node_name(&node.reference)).collect();
            names.into_iter().map(|name| (name.to_owned(), format!("a node of {}", graph.name))).collect()
        }
        Wanted::Workflows => {
            let rows = engine.list(Filter { limit: Some(RUNS_MAX), ..Filter::default() }).await?;
            let names: BTreeSet<String> = rows.into_iter().map(|row| row.workflow).collect();
            names.into_iter().map(|name| (name, String::new())).collect()
        }
        Wanted::Words(_) | Wanted::Topics | Wanted::Files => Vec::new(),
    })
}

/// The newest first, and how to name it without its id.
async fn runs(engine: &dyn Engine) -> Result<Vec<(String, String)>, Fault> {
    let rows = engine.list(Filter { limit: Some(RUNS_MAX), ..Filter::default() }).await?;
    let about = |row: &wonder_engine::RunRow| {
        format!("{}, {}, {}", row.workflow, spoken(row.status), ago(row.started_at, now()))
    };
    let last = rows.first().map(|row| ("last".to_owned(), about(row)));
    let all = rows.iter().map(|row| (row.run.clone(), about(row)));
    Ok(last.into_iter().chain(all).collect())
}
