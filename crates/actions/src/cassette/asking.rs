//! What a call asks, as a value: the same for the same request in every run and on every machine.

use std::io::Read;
use std::path::Path;

use wonder_core::task::ActionCall;
use wonder_core::value::Value;

use crate::llm::PICTURE_BYTES_MAX;
use crate::secrets::ROOT;

/// A call whose request is wanted, not its result.
#[derive(Debug)]
pub struct Asking<'a> {
    pub call: &'a ActionCall,
    /// What the action's texts see. Secrets are there by name: no value of one gets into a request this way.
    pub scope: &'a Value,
    /// Where relative paths start; None: there is nobody who may open files.
    pub workdir: Option<&'a Path>,
}

/// What a call asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// Nothing of anybody outside: it is performed also where a cassette answers.
    Nothing,
    /// This, a map.
    Outside(Value),
}

impl Asking<'_> {
    /// What is in a file that the request is about; else why it cannot be known.
    pub(crate) fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        let Some(workdir) = self.workdir else {
            let why = "is a file, which is not opened here: give the picture as an artifact or a URL, or mock the node";
            return Err(why.to_owned());
        };
        let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
        let file = std::fs::File::open(workdir.join(path)).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(PICTURE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        Ok(bytes)
    }
}

/// What the texts of a call see where no secret is to be given away: each by its name, in letters that survive wherever
/// they are put.
pub fn placeholders(call: &ActionCall) -> Value {
    let named = &call.action.secrets;
    if named.is_empty() {
        return call.scope.clone();
    }
    let each = named.names.iter().map(|name| (name.clone(), Value::from(format!("{ROOT}.{name}"))));
    let mut scope = call.scope.clone();
    scope.set_path(&[ROOT.into()], Value::map(each));
    scope
}
