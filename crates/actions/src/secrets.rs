//! The secrets a task names: found once when it starts, given to the texts that read them, and known to the
//! redactor. A text gets the secrets it names and no others.

use std::collections::{BTreeMap, BTreeSet};

use wonder_core::def::{Implementation, Name};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::Task;
use wonder_core::template::Template;
use wonder_core::value::Value;

use crate::redact::Redactor;
use crate::settings::Secrets;
use crate::texts;

const ROOT: &str = "secret";

#[derive(Debug, Default)]
pub(crate) struct Known {
    found: BTreeMap<Name, Option<String>>,
    pub(crate) redactor: Redactor,
    /// Some text reads `secret`, if only to be refused.
    any: bool,
}

impl Known {
    pub(crate) fn of(task: &Task, secrets: &dyn Secrets) -> Known {
        let mut known = Known::default();
        for step in &task.steps {
            let Some(names) = names(&step.action.def.implementation) else { continue };
            known.any = true;
            for name in names.into_iter().flatten() {
                known.found.entry(name).or_insert_with_key(|name| secrets.find(name));
            }
        }
        known.redactor = Redactor::new(known.found.values().flatten().map(String::as_str));
        known
    }

    /// What an action's texts see: its scope, and the secrets they name.
    pub(crate) fn scope(&self, implementation: &Implementation, scope: &Value) -> Result<Value, Failure> {
        let names = self.any.then(|| names(implementation)).flatten();
        let Some(names) = names else { return Ok(scope.clone()) };
        let mut values = Value::empty_map();
        for name in names {
            let Some(name) = name else { return Err(unnamed()) };
            let value = self.found.get(&name).cloned().flatten().ok_or_else(|| missing(&name))?;
            values.set_path(&[name], Value::from(value));
        }
        let mut scope = scope.clone();
        scope.set_path(&[ROOT.into()], values);
        Ok(scope)
    }
}

/// The secrets that an action's texts name; a text that reads `secret` as a whole names None. Nothing at
/// all, at the cost of a search, for an action without secrets.
fn names(implementation: &Implementation) -> Option<BTreeSet<Option<Name>>> {
    let mut names = BTreeSet::new();
    texts::each(implementation, &mut |text| {
        if !text.as_str().contains(ROOT) {
            return;
        }
        let Ok(template) = Template::compile(text.as_str()) else { return };
        let reads = template.reads().iter().filter(|read| &*read.root == ROOT);
        names.extend(reads.map(|read| read.path.first().cloned()));
    });
    (!names.is_empty()).then_some(names)
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
