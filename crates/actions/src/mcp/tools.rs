//! The tools of a server: asked for once for each connection, and again when the server says that they are others.

use std::sync::Arc;

use rmcp::model::ToolAnnotations;
use rmcp::service::ServiceError;
use wonder_core::def::{Effect, Name};
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::tools::Tool;
use wonder_core::problem::nearest;
use wonder_core::schema::Schema;
use wonder_core::value::Value;

use super::connect::{Connection, asked};
use super::filled::Filled;
use crate::deadline::Deadline;
use crate::handler::TryError;
use crate::json;
use crate::texts::bad_field;

/// A tool of a server, for people.
#[derive(Clone, Debug)]
pub struct ListedTool {
    pub name: Name,
    pub description: Option<Name>,
    pub schema: Value,
    pub effect: Effect,
}

#[derive(Debug)]
pub(crate) struct Tools(Vec<(ListedTool, Option<Schema>)>);

impl Tools {
    pub(crate) fn listed(&self) -> Vec<ListedTool> {
        self.0.iter().map(|(tool, _)| tool.clone()).collect()
    }

    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(tool, _)| &*tool.name).collect()
    }

    /// Those that are asked for, or all.
    pub(super) fn offered(&self, server: &Name, only: &[Name]) -> Result<Vec<Tool>, Failure> {
        if let Some(unknown) = only.iter().find(|name| !self.names().contains(&&***name)) {
            return Err(bad_field("only", &self.unknown(server, unknown)));
        }
        let wanted = self.0.iter().filter(|(tool, _)| only.is_empty() || only.contains(&tool.name));
        let tools = wanted.map(|(listed, schema)| {
            let tool = Tool::of_server(server, listed.name.clone());
            let schema = schema.clone().unwrap_or_else(|| tool.schema.clone());
            Tool { description: listed.description.clone(), effect: listed.effect, schema, ..tool }
        });
        Ok(tools.collect())
    }

    /// That there is such a tool, and that the arguments fit it.
    pub(super) fn check(&self, server: &Name, tool: &str, arguments: &Value) -> Result<(), Failure> {
        let Some((_, schema)) = self.0.iter().find(|(listed, _)| *listed.name == *tool) else {
            return Err(bad_field("tool", &self.unknown(server, tool)));
        };
        let violations = schema.as_ref().and_then(|schema| schema.check(arguments).err()).unwrap_or_default();
        if violations.is_empty() {
            return Ok(());
        }
        let all: Vec<String> = violations.iter().map(ToString::to_string).collect();
        let message = format!("`arguments` do not fit the tool `{tool}` of `{server}`: {}", all.join("; "));
        Err(Failure::new(ErrorKind::ContractViolation, message))
    }

    fn unknown(&self, server: &str, tool: &str) -> String {
        let names = self.names();
        let near = nearest(tool, names.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
        let near = near.unwrap_or_default();
        format!("the MCP server `{server}` has no tool `{tool}`{near} It has: {}", names.join(", "))
    }
}

pub(super) async fn of(
    connection: &Arc<Connection>,
    filled: &Filled,
    deadline: Deadline<'_>,
) -> Result<Arc<Tools>, TryError> {
    let mut known = deadline.limit(connection.tools.lock()).await?;
    if let Some(tools) = known.as_ref().filter(|_| !connection.calls.take_tools_changed()) {
        return Ok(tools.clone());
    }
    let within = filled.start_within();
    let asking = tokio::time::timeout(within, connection.peer.list_all_tools());
    let listed = match deadline.limit(asking).await? {
        Ok(Ok(listed)) => listed,
        Ok(Err(error)) => return Err(unlisted(connection, filled, &error).await.into()),
        Err(_) => {
            connection.is_silent();
            let message = format!(
                "the MCP server `{}` did not list its tools within {} s",
                filled.name,
                within.as_secs()
            );
            return Err(Failure::new(ErrorKind::Network, message).into());
        }
    };
    let tools = Arc::new(Tools(listed.into_iter().map(read).collect()));
    *known = Some(tools.clone());
    Ok(tools)
}

async fn unlisted(connection: &Connection, filled: &Filled, error: &ServiceError) -> Failure {
    if let ServiceError::McpError(error) = error {
        let message = format!("the MCP server `{}` lists no tools: {}", filled.name, error.message);
        return Failure::new(ErrorKind::ToolFailed, message);
    }
    connection.is_broken_now();
    let how = connection.how_it_ended().await;
    let message = format!("the MCP server `{}` did not list its tools: {}{how}", filled.name, asked(error));
    Failure::new(ErrorKind::Network, message)
}

fn read(tool: rmcp::model::Tool) -> (ListedTool, Option<Schema>) {
    let doc = serde_json::to_string(&*tool.input_schema).unwrap_or_default();
    let doc = json::value_of(&doc);
    // One that we cannot read lets everything through: the server checks its arguments itself.
    let schema = Schema::compile(&doc).ok();
    let effect = effect(tool.annotations.as_ref());
    let description = tool.description.as_deref().or(tool.title.as_deref()).map(Name::from);
    let schema_shown = if schema.is_some() { doc } else { Value::map([("type", Value::from("object"))]) };
    (ListedTool { name: (&*tool.name).into(), description, schema: schema_shown, effect }, schema)
}

fn effect(annotations: Option<&ToolAnnotations>) -> Effect {
    let Some(annotations) = annotations else { return Effect::Once };
    match (annotations.read_only_hint, annotations.idempotent_hint) {
        (Some(true), _) => Effect::None,
        (_, Some(true)) => Effect::Idempotent,
        _ => Effect::Once,
    }
}
