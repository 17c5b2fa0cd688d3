//! Who may do what: roles, projects, and which role a route needs. The only place that knows.

use axum::http::Method;
use serde::{Deserialize, Serialize};
use wonder_engine::EngineError;

use crate::problem::Problem;

/// Each may do what those before it may.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Viewer,
    /// Acts on runs.
    Operator,
    /// All.
    Admin,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Viewer, Role::Operator, Role::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }

    pub fn parse(text: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// What a route needs; None: everybody may ask.
pub(crate) fn needed(method: &Method, path: &str) -> Option<Role> {
    let is = |of: &str| path == of || path.strip_prefix(of).is_some_and(|rest| rest.starts_with('/'));
    if matches!(path, "/" | "/docs" | "/openapi.json" | "/health" | "/ready") {
        None
    } else if is("/api/v1/tokens") || is("/api/v1/audit") {
        Some(Role::Admin)
    } else if matches!(*method, Method::GET | Method::HEAD) {
        Some(Role::Viewer)
    } else {
        Some(Role::Operator)
    }
}

/// Whoever asks.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// Of the token; recorded with what it did.
    pub name: String,
    pub role: Role,
    /// The one project that it sees; None: all.
    pub project: Option<String>,
    /// The hash of its token, to ask again whether it still holds; None without tokens.
    pub token: Option<String>,
}

impl Caller {
    pub(crate) fn sees(&self, project: &str) -> bool {
        self.project.as_deref().is_none_or(|own| own == project)
    }

    /// A role is for a project; tokens and the audit list are for the whole server.
    pub(crate) fn may(&self, needed: Role) -> Result<(), Problem> {
        if self.role < needed {
            let message = format!(
                "this needs the role {}, and {} is {}",
                needed.as_str(),
                self.name,
                self.role.as_str()
            );
            return Err(Problem::forbidden(message)
                .help("Ask with a token of that role: wonder token create --role ROLE."));
        }
        match (&self.project, needed) {
            (Some(project), Role::Admin) => {
                let message =
                    format!("{} is limited to the project {project}, and this is for all of them", self.name);
                Err(Problem::forbidden(message).help("Ask with a token that is not limited to a project."))
            }
            _ => Ok(()),
        }
    }

    /// What a run looks like to somebody who must not know that it is there.
    pub(crate) fn hidden(&self, error: EngineError, run: &str) -> EngineError {
        let tells = error.code == wonder_engine::ErrorCode::Ambiguous;
        if tells && self.project.is_some() { EngineError::no_such_run(run) } else { error }
    }
}
