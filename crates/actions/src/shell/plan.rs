//! A `shell` action with its texts filled in: the command, where it runs, what it reads and what it sees.
//! Refuses what no command line can carry before anything starts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wonder_core::command_line::program_among;
use wonder_core::def::Isolation;
use wonder_core::error::Failure;
use wonder_core::graph::{CommandSpec, ShellSpec};
use wonder_core::template::{Piece, Template};
use wonder_core::value::{Map, Value};

use super::{NOT_RUN, not_started, quote};
use crate::artifacts::OutFolder;
use crate::context::ActionContext;
use crate::parts::{Part, parts};
use crate::redact::HIDDEN;
use crate::texts::{bad_field, pairs, render, render_all};
use crate::variables::holds_secret;

const SHELL: &str = "/bin/sh";

#[derive(Debug)]
pub(super) struct Plan {
    /// The program and its arguments.
    pub(super) command: Vec<String>,
    pub(super) workdir: PathBuf,
    pub(super) cwd: PathBuf,
    pub(super) stdin: Option<String>,
    /// What the command gets beside what its isolation lets through.
    pub(super) variables: BTreeMap<String, String>,
    /// What it shall not get.
    pub(super) unset: Vec<String>,
    /// Where on this machine it puts what is to be kept.
    pub(super) out: Option<PathBuf>,
}

/// Where an isolated command sees the directory of its artifacts.
pub(super) const OUT_INSIDE: &str = "/wonder/artifacts";

/// What an action says of its command: all that its texts give, and nothing of the machine it runs on.
#[derive(Debug)]
struct Filled {
    line: LineOrArguments,
    cwd: Option<String>,
    stdin: Option<String>,
    /// What it gives the command, and what it shall not get.
    env: BTreeMap<String, Option<String>>,
}

#[derive(Debug)]
enum LineOrArguments {
    Line(Vec<Part>),
    Arguments(Vec<String>),
}

impl Filled {
    fn of(scope: &Value, shell: &ShellSpec) -> Result<Filled, Failure> {
        let line = match &shell.command {
            CommandSpec::Line(template) => {
                LineOrArguments::Line(parts(template, scope).map_err(|why| bad_field("command", &why))?)
            }
            CommandSpec::Arguments(list) => {
                refuse_program(list)?;
                LineOrArguments::Arguments(render_all(list, "command", scope)?)
            }
        };
        let mut env = BTreeMap::new();
        for (name, values) in pairs(shell.env.as_ref(), "env", scope)? {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(bad_field("env", &format!("{name:?} cannot be the name of a variable")));
            }
            env.insert(name, values.into_iter().next_back().flatten());
        }
        let stdin = shell.stdin.as_ref().map(|text| render(text, "stdin", scope)).transpose()?;
        let cwd = shell.cwd.as_ref().map(|text| render(text, "cwd", scope)).transpose()?;
        check_no_nul("cwd", cwd.iter())?;
        Ok(Filled { line, cwd, stdin, env })
    }
}

/// The command as a cassette has it: what is run, whatever runs it.
pub(super) fn asked(scope: &Value, shell: &ShellSpec) -> Result<Value, Failure> {
    let Filled { line, cwd, stdin, env } = Filled::of(scope, shell)?;
    let mut fields = Map::new();
    match line {
        LineOrArguments::Arguments(arguments) => {
            fields.insert("command".into(), Value::list(arguments.into_iter().map(Value::from)));
        }
        LineOrArguments::Line(parts) => {
            let values = parts.iter().filter_map(|part| match part {
                Part::Value(value) => Some(Value::str(value.as_str())),
                Part::Written(_) => None,
            });
            // A value is one word, which the text alone would not say.
            let values: Vec<Value> = values.collect();
            let text = parts.iter().map(|part| match part {
                Part::Written(text) | Part::Value(text) => text.as_str(),
            });
            fields.insert("command".into(), Value::from(text.collect::<String>()));
            if !values.is_empty() {
                fields.insert("values".into(), Value::list(values));
            }
        }
    }
    if !env.is_empty() {
        let shown = env.into_iter().map(|(name, value)| {
            let value = value.map(|value| if holds_secret(&name) { HIDDEN.to_owned() } else { value });
            (name, value.map_or(Value::Null, Value::from))
        });
        fields.insert("env".into(), Value::map(shown));
    }
    let image = shell.image.as_ref().map(|text| render(text, "image", scope)).transpose()?;
    for (name, text) in [("stdin", stdin), ("cwd", cwd), ("image", image)] {
        if let Some(text) = text {
            fields.insert(name.into(), Value::from(text));
        }
    }
    if !shell.expect_exit.is_empty() {
        let codes = shell.expect_exit.iter().map(|code| Value::Int((*code).into()));
        fields.insert("expect_exit".into(), Value::list(codes));
    }
    Ok(Value::from(fields))
}

impl Plan {
    pub(super) fn of(
        context: &ActionContext<'_>,
        shell: &ShellSpec,
        out: Option<&OutFolder>,
    ) -> Result<Plan, Failure> {
        let filled = Filled::of(context.scope, shell)?;
        let mut variables = BTreeMap::new();
        let command = match filled.line {
            LineOrArguments::Line(parts) => {
                let line = quote::line(parts).map_err(|why| bad_field("command", &why))?;
                variables.extend(line.variables);
                vec![SHELL.to_owned(), "-c".to_owned(), line.script]
            }
            LineOrArguments::Arguments(arguments) => arguments,
        };
        if command.first().is_none_or(String::is_empty) {
            return Err(bad_field("command", "it names no program"));
        }
        let out = out.map(|out| absolute(out.path())).transpose()?;
        variables.extend(own_variables(context, shell.isolation, out.as_deref()));
        let mut unset = Vec::new();
        for (name, value) in filled.env {
            match value {
                Some(value) => drop(variables.insert(name, value)),
                None => unset.push(name),
            }
        }
        check_no_nul("command", command.iter())?;
        check_no_nul("env", variables.values())?;
        let workdir = absolute(context.workdir())?;
        let cwd = filled.cwd.map_or_else(|| workdir.clone(), |cwd| workdir.join(cwd));
        Ok(Plan { command, workdir, cwd, stdin: filled.stdin, variables, unset, out })
    }
}

/// A value is no part of a program, also if that is an argument: `[sh, -c, "…"]`.
fn refuse_program(list: &[Template]) -> Result<(), Failure> {
    let texts: Vec<&str> = list.iter().map(Template::text).collect();
    match program_among(&texts) {
        Some((at, why)) if list[at].pieces().iter().any(|piece| matches!(piece, Piece::Value(..))) => {
            Err(bad_field("command", why))
        }
        _ => Ok(()),
    }
}

/// What every command is told about itself, by variable.
pub const COMMAND_VARIABLES: [(&str, &str); 5] = [
    (
        "WONDER_IDEMPOTENCY_KEY",
        "The same whenever this very effect is tried again, after a crash too: give it to whatever you call, so that \
         it can tell a repeat from a new request.",
    ),
    ("WONDER_RUN", "The run's id."),
    ("WONDER_NODE", "The ref of the node."),
    ("WONDER_ATTEMPT", "Which attempt of the task this is, from 1."),
    (
        "WONDER_ARTIFACTS",
        "An empty directory: the files that are left in it when the command has ended well become artifacts of the run, \
         and `artifacts` of the result.",
    ),
];

fn own_variables(
    context: &ActionContext<'_>,
    isolation: Isolation,
    out: Option<&Path>,
) -> impl Iterator<Item = (String, String)> {
    let order = context.order();
    let out = out.map(|out| match isolation {
        Isolation::None | Isolation::Process => out.to_string_lossy().into_owned(),
        Isolation::Sandbox | Isolation::Container => OUT_INSIDE.to_owned(),
    });
    let values = [context.key(), order.run.to_string(), order.node.to_string(), order.attempt.to_string()];
    let values = values.map(Some).into_iter().chain([out]);
    COMMAND_VARIABLES.iter().zip(values).filter_map(|((name, _), value)| Some(((*name).to_owned(), value?)))
}

/// Neither a command line nor a variable can have NUL characters.
fn check_no_nul<'a>(field: &str, mut texts: impl Iterator<Item = &'a String>) -> Result<(), Failure> {
    if texts.any(|text| text.contains('\0')) {
        return Err(bad_field(
            field,
            "a value has a NUL character, which a command cannot be given; use `stdin`",
        ));
    }
    Ok(())
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| not_started(NOT_RUN, format!("the directory {}: {error}", path.display())))
}
