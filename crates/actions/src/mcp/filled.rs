//! A server with its texts filled in: what tells one from another, and all that is needed to reach it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use wonder_core::def::{Isolation, Name};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::{McpServerSpec, ModelTable};
use wonder_core::problem::nearest;
use wonder_core::template::Template;

use crate::context::Caller;
use crate::settings::Settings;
use crate::texts::{bad_field, with_secrets};

/// How long a server may take to start, and to say what tools it has.
const START_WITHIN: Duration = Duration::from_secs(60);
/// How long a call may take if nobody says.
const CALL_WITHIN: Duration = Duration::from_secs(600);

#[derive(Clone)]
pub(super) struct Filled {
    pub(super) name: Name,
    pub(super) project: Name,
    pub(super) reach: Reach,
    /// It may ask a model.
    pub(super) samples: bool,
    timeout: Option<Duration>,
}

#[derive(Clone, Debug)]
pub(super) enum Reach {
    Command {
        command: Vec<String>,
        env: BTreeMap<String, String>,
        workdir: PathBuf,
        cwd: PathBuf,
        isolation: Isolation,
        image: Option<String>,
        network: Option<bool>,
    },
    Address {
        url: String,
        headers: BTreeMap<String, String>,
    },
}

/// Its texts may hold secrets.
impl fmt::Debug for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filled")
            .field("project", &self.project)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Filled {
    /// The server that is called so where the table comes from.
    pub(super) fn named<'t>(
        settings: &Settings,
        table: &'t ModelTable,
        name: &str,
    ) -> Result<&'t McpServerSpec, Failure> {
        let Some(spec) = table.servers.get(name) else {
            let why = match nearest(name, table.servers.keys().map(|known| &**known)) {
                Some(near) => format!("there is no MCP server `{name}`; did you mean `{near}`?"),
                None => format!("there is no MCP server `{name}`: define it under `mcp_servers`"),
            };
            return Err(bad_field("server", &why));
        };
        let allowed = settings.mcp_allowed.get(&*table.project);
        if allowed.is_some_and(|allowed| !allowed.iter().any(|allowed| allowed == name)) {
            let message = format!(
                "project `{0}` may not use the MCP server `{name}`: the setting `mcp` of `[projects.{0}]` says which \
                 it may",
                table.project
            );
            return Err(Failure::new(ErrorKind::ContractViolation, message));
        }
        Ok(spec)
    }

    pub(super) fn of(caller: &Caller<'_>, spec: &McpServerSpec, project: &Name) -> Result<Filled, Failure> {
        let def = &spec.def;
        let fill = |template: &Template, field: &str| {
            with_secrets(caller.secrets, template, &format!("mcp_servers.{}.{field}", def.name))
        };
        let named = |texts: &[(Name, Template)], field: &str| -> Result<BTreeMap<String, String>, Failure> {
            let filled = texts.iter().map(|(name, text)| Ok((name.to_string(), fill(text, field)?)));
            filled.collect()
        };
        let reach = match &spec.url {
            Some(url) => Reach::Address { url: fill(url, "url")?, headers: named(&spec.headers, "headers")? },
            None => {
                let command = spec.command.iter().map(|text| fill(text, "command"));
                let command = command.collect::<Result<Vec<String>, Failure>>()?;
                if command.first().is_none_or(String::is_empty) {
                    return Err(bad_field(
                        "command",
                        &format!("the MCP server `{}` names no program", def.name),
                    ));
                }
                let workdir = std::path::absolute(caller.workdir)
                    .map_err(|error| bad_field("cwd", &error.to_string()))?;
                let cwd = spec.cwd.as_ref().map(|text| fill(text, "cwd")).transpose()?;
                let cwd = cwd.map_or_else(|| workdir.clone(), |cwd| workdir.join(cwd));
                let env = named(&spec.env, "env")?;
                let image = spec.image.as_ref().map(|text| fill(text, "image")).transpose()?;
                let (isolation, network) = (def.isolation, def.network);
                Reach::Command { command, env, workdir, cwd, isolation, image, network }
            }
        };
        Ok(Filled {
            name: def.name.text.clone(),
            project: project.clone(),
            reach,
            samples: def.sampling.is_some(),
            timeout: def.timeout_ms.map(Duration::from_millis),
        })
    }

    /// What two tasks must have in common to share it. In memory only: it holds secrets.
    pub(super) fn key(&self) -> String {
        format!("{}\0{}\0{:?}\0{}", self.project, self.name, self.reach, self.samples)
    }

    pub(super) fn start_within(&self) -> Duration {
        self.timeout.unwrap_or(START_WITHIN)
    }

    pub(super) fn call_within(&self) -> Duration {
        self.timeout.unwrap_or(CALL_WITHIN)
    }
}
