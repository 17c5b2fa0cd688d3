//! `mcp`: trying MCP servers by hand. No run is made and nothing is recorded; what a server gives is printed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::json;
use wonder_actions::{ListedTool, OutputLine, Sink, Worker};
use wonder_core::def::{Bundle, McpServer, Name};
use wonder_core::problem::nearest;
use wonder_core::value::Value;

use crate::args::{Format, McpArgs, McpCallArgs, McpServersArgs, McpToolsArgs, McpVerb};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::inputs::{Wanted, object};
use crate::screen::Screen;
use crate::session::Session;
use crate::sources::{For, library, read};
use crate::text::Text;
use crate::view::mcp::{ServerRow, servers as servers_page, tools as tools_page};

pub(crate) async fn mcp(args: McpArgs, session: &Session) -> Result<Exit, Fault> {
    match args.what {
        McpVerb::Servers(args) => servers(args, session).await,
        McpVerb::Tools(args) => tools(args, session).await,
        McpVerb::Call(args) => call(args, session).await,
    }
}

/// A bundle that has the servers of the file and those of the settings, and does nothing.
fn known(file: Option<&Path>) -> Result<Bundle, Fault> {
    let mut bundle = Bundle { mcp_servers: library(For::Run)?.mcp_servers, ..Bundle::default() };
    if let Some(file) = file {
        let reading = read(&[file.to_owned()], For::Look)?;
        for defined in &reading.bundles {
            bundle.mcp_servers.extend(defined.mcp_servers.clone());
            bundle.models.extend(defined.models.clone());
            bundle.workflow.project_id.clone_from(&defined.workflow.project_id);
        }
    }
    Ok(bundle)
}

async fn servers(args: McpServersArgs, session: &Session) -> Result<Exit, Fault> {
    let bundle = known(args.file.as_deref())?;
    let worker = Worker::new(session.worker_settings()?);
    let mut rows = Vec::new();
    for (name, server) in &bundle.mcp_servers {
        let listed = worker.mcp_tools(&bundle, name, &session.around.workdir).await;
        let tools = listed.map(|tools| tools.len()).map_err(|failure| failure.message);
        rows.push(ServerRow { name: name.to_string(), reached: reached(server), tools });
    }
    match session.screen.json {
        true => session.screen.print_json(&rows)?,
        false => session.screen.print(&servers_page(&rows, session.screen.page()))?,
    }
    if rows.is_empty() {
        session
            .screen
            .say("no MCP server is defined: `mcp_servers` of a file, or `[mcp_servers.NAME]` in wonder.toml");
    }
    Ok(if rows.iter().any(|row| row.tools.is_err()) { Exit::Failed } else { Exit::Fine })
}

/// As it is written, secrets being names.
fn reached(server: &McpServer) -> String {
    match &server.url {
        Some(url) => url.to_string(),
        None => server.command.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    }
}

async fn tools(args: McpToolsArgs, session: &Session) -> Result<Exit, Fault> {
    let (file, server) = match &args.words[..] {
        [file, server] => (Some(PathBuf::from(file)), server),
        words => (None, &words[0]),
    };
    let bundle = known(file.as_deref())?;
    let server = named(&bundle, server)?;
    let worker = Worker::new(session.worker_settings()?);
    let listed = list(&worker, &bundle, &server, session).await?;
    match session.screen.json {
        true => session.screen.print_json(&listed.iter().map(as_json).collect::<Vec<_>>())?,
        false => session.screen.print(&tools_page(&listed, session.screen.page()))?,
    }
    Ok(Exit::Fine)
}

fn as_json(tool: &ListedTool) -> serde_json::Value {
    let description = tool.description.as_deref();
    json!({"name": *tool.name, "description": description, "effects": tool.effect.as_str(), "schema": tool.schema.to_json()})
}

async fn list(
    worker: &Worker,
    bundle: &Bundle,
    server: &Name,
    session: &Session,
) -> Result<Vec<ListedTool>, Fault> {
    let listed = worker.mcp_tools(bundle, server, &session.around.workdir).await;
    listed.map_err(|failure| Fault::usage(failure.message))
}

fn named(bundle: &Bundle, server: &str) -> Result<Name, Fault> {
    if let Some((name, _)) = bundle.mcp_servers.get_key_value(server) {
        return Ok(name.clone());
    }
    let known: Vec<&str> = bundle.mcp_servers.keys().map(|name| &**name).collect();
    let help = match nearest(server, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if known.is_empty() => {
            "name the file that defines it first, or define it in wonder.toml".to_owned()
        }
        None => format!("there are: {}", known.join(", ")),
    };
    Err(Fault::usage(format!("there is no MCP server `{server}`")).help(help))
}

async fn call(args: McpCallArgs, session: &Session) -> Result<Exit, Fault> {
    let is_argument = |word: &String| word.contains('=') || word.starts_with(['{', '@']);
    let (arguments, names): (Vec<String>, Vec<String>) = args.words.into_iter().partition(is_argument);
    let (file, server, tool) = match &names[..] {
        [file, server, tool] => (Some(PathBuf::from(file)), server, tool),
        [server, tool] => (None, server, tool),
        _ => {
            let fault = Fault::usage("expected a server and a tool, and before them perhaps a file");
            return Err(fault.help("`wonder mcp call [FILE] SERVER TOOL KEY=VALUE`"));
        }
    };
    let bundle = known(file.as_deref())?;
    let server = named(&bundle, server)?;
    let worker = Worker::new(session.worker_settings()?);
    let listed = list(&worker, &bundle, &server, session).await?;
    let schema = listed.iter().find(|listed| *listed.name == **tool).map(|tool| tool.schema.clone());
    let texts: Vec<String> = arguments.into_iter().chain(args.inputs).collect();
    let schema = schema.unwrap_or_default();
    let wanted = Wanted { by: "the tool's schema", ..Wanted::input(&schema) };
    let arguments = object(&wanted, &texts)?;
    let call = (&server, tool.as_str(), arguments);
    let called = worker.mcp_call(&bundle, call, &session.around.workdir, Arc::new(ToStderr)).await;
    let screen = &session.screen;
    match called {
        Ok(Value::String(text)) if !screen.json => {
            screen.print_line(Text::block(text.trim_end_matches('\n')))?
        }
        Ok(value) => screen.print_json(&value.to_json())?,
        Err(failure) => {
            screen.fault(&Fault::usage(failure.to_string()));
            return Ok(Exit::Failed);
        }
    }
    Ok(Exit::Fine)
}

/// What it says meanwhile is for people.
struct ToStderr;

impl Sink for ToStderr {
    fn line(&self, line: OutputLine) {
        Screen::new(Format::Text).say(line.text);
    }
}
