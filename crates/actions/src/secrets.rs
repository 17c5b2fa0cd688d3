//! The secrets a task names: found once when it starts, given to the texts that read them, and known to the
//! redactor. An action gets the secrets that its texts name and no others.

use std::borrow::Cow;
use std::collections::BTreeMap;

use wonder_core::def::Name;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::{Action, Task, Work};
use wonder_core::value::Value;

use crate::redact::Redactor;
use crate::settings::Secrets;

const ROOT: &str = "secret";

#[derive(Debug, Default)]
pub(crate) struct TaskSecrets {
    found: BTreeMap<Name, Option<String>>,
    pub(crate) redactor: Redactor,
}

impl TaskSecrets {
    pub(crate) fn find(task: &Task, secrets: &dyn Secrets) -> TaskSecrets {
        let mut found = BTreeMap::new();
        for action in task.steps.iter().flat_map(|step| with_tools(&step.action)) {
            for name in &action.secrets.names {
                found.entry(name.clone()).or_insert_with_key(|name| secrets.find(name));
            }
        }
        let redactor = Redactor::new(found.values().flatten().map(String::as_str));
        TaskSecrets { found, redactor }
    }

    /// What an action's texts see: its scope, and the secrets they name.
    pub(crate) fn scope<'s>(&self, action: &Action, scope: &'s Value) -> Result<Cow<'s, Value>, Failure> {
        if action.secrets.is_empty() {
            return Ok(Cow::Borrowed(scope));
        }
        if action.secrets.whole {
            return Err(unnamed());
        }
        let mut values = Value::empty_map();
        for name in &action.secrets.names {
            let value = self.found.get(name).cloned().flatten().ok_or_else(|| missing(name))?;
            values.set_path(std::slice::from_ref(name), Value::from(value));
        }
        let mut scope = scope.clone();
        scope.set_path(&[ROOT.into()], values);
        Ok(Cow::Owned(scope))
    }
}

/// An action, and the tools that it may call.
fn with_tools(action: &Action) -> impl Iterator<Item = &Action> {
    let tools = match &action.work {
        Some(Work::LlmCall(call)) => Some(call.table.tools.values().map(|tool| &**tool)),
        _ => None,
    };
    std::iter::once(action).chain(tools.into_iter().flatten())
}

fn missing(name: &str) -> Failure {
    let message = format!(
        "the secret `{name}` is not set: set the environment variable {name}, or add a line `{name}=...` to \
         the secrets file"
    );
    Failure::new(ErrorKind::ExpressionError, message)
}

fn unnamed() -> Failure {
    let message = "a text reads `secret` as a whole: name the one it needs, as in `{{ secret.API_KEY }}`";
    Failure::new(ErrorKind::ExpressionError, message)
}
