//! Why an engine refused or could not do something: a stable code, a sentence, and what to do now.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct EngineError {
    pub code: ErrorCode,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Stable: programs branch on these words.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// No run, gate or definition has this name.
    NotFound,
    /// A shortened id fits several.
    Ambiguous,
    /// The input, answer or event does not fit its schema or form.
    BadInput,
    /// The definition cannot be run here.
    BadDefinition,
    /// The operation does not fit the state that the run or gate is in.
    Conflict,
    /// This host has no such thing.
    Unsupported,
    /// The database cannot be read or written; nothing was acknowledged that is not there.
    Storage,
    /// The database was written by a newer version.
    NewerVersion,
    /// A stored run is damaged; it is set aside and the others go on.
    Quarantined,
    /// More is asked of the engine than it takes at once; nothing was changed. Asking again later may do.
    Busy,
    /// The engine is closing; another owner will take over.
    Closing,
    /// The connection to the process that owns the database was lost.
    Disconnected,
    /// A mistake of ours.
    Internal,
}

impl ErrorCode {
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorCode::NotFound => "not_found",
            ErrorCode::Ambiguous => "ambiguous",
            ErrorCode::BadInput => "bad_input",
            ErrorCode::BadDefinition => "bad_definition",
            ErrorCode::Conflict => "conflict",
            ErrorCode::Unsupported => "unsupported",
            ErrorCode::Storage => "storage",
            ErrorCode::NewerVersion => "newer_version",
            ErrorCode::Quarantined => "quarantined",
            ErrorCode::Busy => "busy",
            ErrorCode::Closing => "closing",
            ErrorCode::Disconnected => "disconnected",
            ErrorCode::Internal => "internal",
        }
    }

    /// The engine or its storage is at fault, not what was asked of it.
    pub fn is_engine_fault(self) -> bool {
        matches!(
            self,
            ErrorCode::Storage
                | ErrorCode::NewerVersion
                | ErrorCode::Quarantined
                | ErrorCode::Busy
                | ErrorCode::Closing
                | ErrorCode::Disconnected
                | ErrorCode::Internal
        )
    }
}

impl EngineError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> EngineError {
        EngineError { code, message: message.into(), help: None }
    }

    pub fn internal(message: impl Into<String>) -> EngineError {
        EngineError::new(ErrorCode::Internal, message)
    }

    /// What to do now.
    pub fn help(mut self, help: impl Into<String>) -> EngineError {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "\n{help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for EngineError {}
