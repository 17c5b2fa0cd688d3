//! Why a verb could not do what it was asked: where, what, why, and what to do now.

use serde_json::{Value as Json, json};
use wonder_core::Value;
use wonder_engine::{Cause, EngineError, ErrorCode};
use wonder_spec::Diagnostics;

use crate::exit::Exit;
use crate::form::choices;
use crate::hints::hint;
use crate::text::{Text, text};
use crate::view::paint::{Paint, Tone};

#[derive(Debug)]
pub(crate) enum Fault {
    /// What was typed, or a file of settings, is wrong.
    Usage { message: String, help: Option<String> },
    /// A workflow file has problems.
    Definition(Box<Diagnostics>),
    Engine {
        error: EngineError,
        /// The run that was asked about, as it was typed: for hints that name it.
        run: Option<String>,
    },
}

/// What an engine says to do now, then what this program offers.
fn ways_out(error: &EngineError, run: Option<&str>) -> Option<String> {
    let ways: Vec<String> = error.help.clone().into_iter().chain(hint(error, run)).collect();
    (!ways.is_empty()).then(|| ways.join(" "))
}

impl Fault {
    pub(crate) fn usage(message: impl Into<String>) -> Fault {
        Fault::Usage { message: message.into(), help: None }
    }

    pub(crate) fn help(self, text: impl Into<String>) -> Fault {
        match self {
            Fault::Usage { message, .. } => Fault::Usage { message, help: Some(text.into()) },
            Fault::Engine { error, run } => Fault::Engine { error: error.help(text), run },
            Fault::Definition(problems) => Fault::Definition(problems),
        }
    }

    /// The same, with the test case that it is about.
    pub(crate) fn in_case(self, file: &str, case: &str) -> Fault {
        match self {
            Fault::Usage { message, help } => {
                Fault::Usage { message: format!("{file}: case {case:?}: {message}"), help }
            }
            other => other,
        }
    }

    /// The same, with the run that it is about.
    pub(crate) fn about(self, run: &str) -> Fault {
        match self {
            Fault::Engine { error, .. } => Fault::Engine { error, run: Some(run.to_owned()) },
            other => other,
        }
    }

    /// The same, with what can be typed where something did not fit its schema.
    pub(crate) fn takes(self, schema: &Value) -> Fault {
        let Fault::Engine { error, run } = self else { return self };
        let misfit =
            matches!(error.cause.as_deref(), Some(Cause::BadRunInput { .. } | Cause::BadAnswer { .. }));
        if !misfit || schema.is_null() {
            return Fault::Engine { error, run };
        }
        let before = error.help.as_ref().map_or(String::new(), |help| format!("{help} "));
        let help = format!("{before}What it takes: {}", choices(schema));
        Fault::Engine { error: error.help(help), run }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Fault::Usage { .. } | Fault::Definition(_) => Exit::Usage,
            Fault::Engine { error, .. } => Exit::of_error(error),
        }
    }

    /// For people.
    pub(crate) fn render(&self, paint: Paint) -> Text {
        let (code, message, help) = match self {
            Fault::Usage { message, help } => (None, message, help.clone()),
            Fault::Engine { error, run } => {
                (Some(error.code.as_str()), &error.message, ways_out(error, run.as_deref()))
            }
            Fault::Definition(problems) => return Text::drawn(&problems.render(paint.color)),
        };
        let title = code.map_or("error".to_owned(), |code| format!("error[{code}]"));
        let mut text = text!("{}: {}\n", paint.tone(Tone::Bad, title), paragraph(message));
        if let Some(help) = help {
            text.push(text!("{}: {}\n", paint.tone(Tone::Active, "help"), paragraph(&help)));
        }
        text
    }

    /// For programs: `{"error": {"code", "message", "help"}}`, with `cause` if an engine gave it as data and
    /// `problems` if a file has some.
    pub(crate) fn to_json(&self) -> Json {
        let mut error = match self {
            Fault::Usage { message, help } => json!({"code": "usage", "message": message, "help": help}),
            Fault::Engine { error, run } => {
                let (code, help) = (error.code.as_str(), ways_out(error, run.as_deref()));
                json!({"code": code, "message": error.message, "help": help, "cause": error.cause})
            }
            Fault::Definition(problems) => {
                let code = ErrorCode::BadDefinition.as_str();
                json!({"code": code, "message": problems.summary(), "problems": problems.to_json()})
            }
        };
        if let Some(fields) = error.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        json!({ "error": error })
    }
}

/// With its lines after the first set in, so that none of them can be taken for one of ours.
fn paragraph(text: &str) -> Text {
    let block = Text::block(text);
    let are_set_in = block.lines().skip(1).all(|line| line.as_str().starts_with("  "));
    Text::joined(block.lines(), if are_set_in { "\n" } else { "\n  " })
}

impl From<EngineError> for Fault {
    fn from(error: EngineError) -> Fault {
        Fault::Engine { error, run: None }
    }
}
