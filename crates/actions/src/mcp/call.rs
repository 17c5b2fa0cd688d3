//! One call of a tool, from its texts to its result.

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, CancelledNotificationParam, ClientRequest,
    ElicitRequestParams, ElicitResult, ElicitationAction, ErrorCode, ErrorData, InputRequest, InputResponses,
    MetaObject, RequestId, RequestMetaObject, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use tokio::time::{Instant, sleep_until};
use wonder_core::def::Name;
use wonder_core::error::{ErrorKind, Failure};
use wonder_core::graph::{McpCall, McpServerSpec};
use wonder_core::value::Value;

use super::asks::{Answers, GoesOn, Stopped, elicitation, required};
use super::calls::{Said, UnderWay};
use super::connect::{Connection, asked};
use super::filled::Filled;
use super::{McpHandler, content, sampling, tools};
use crate::cassette::Asking;
use crate::context::ActionContext;
use crate::handler::{TryError, TryResult};
use crate::texts::{bad_field, render};

/// Where the key of an effect travels.
const KEY: &str = "wonder/idempotency_key";
/// The refusal of a server that sends people to a page first.
const PAGE_REQUIRED: ErrorCode = ErrorCode(-32042);
/// How often one call may stop to ask and go on.
const ROUNDS_MAX: usize = 10;

/// A call with everything that it needs.
pub(super) struct Made<'c> {
    pub(super) handler: &'c McpHandler,
    pub(super) call: &'c McpCall,
    pub(super) spec: &'c McpServerSpec,
    pub(super) server: Name,
    tool: String,
    arguments: Value,
    filled: Filled,
    /// How often a model was asked for it.
    pub(super) sampled: u32,
}

pub(super) async fn perform(
    handler: &McpHandler,
    context: &mut ActionContext<'_>,
    call: &McpCall,
) -> TryResult {
    let (server, tool, arguments) = texts(call, context.scope)?;
    let spec = Filled::named(&handler.pool.settings, &call.table, &server)?;
    let filled = Filled::of(&context.caller(), spec, &call.table.project)?;
    let connection = handler.pool.connection(&context.caller(), &filled).await?;
    let known = tools::of(&connection, &filled, context.deadline).await?;
    known.check(&server, &tool, &arguments)?;
    let mut made = Made { handler, call, spec, server, tool, arguments, filled, sampled: 0 };
    let given = context.call.overrides.answers.clone();
    let mut answers = Answers::new(&given);
    let mut goes_on = GoesOn::default();
    if let Some(stopped) = answers.stopped() {
        goes_on = made.answered(context, stopped, &mut answers).await?;
    }
    for _ in 0..ROUNDS_MAX {
        match made.round(context, &connection, goes_on, &mut answers).await? {
            Round::Complete(result) => {
                return content::result(context, &made.server, &made.tool, result).await;
            }
            Round::Stopped(stopped) => goes_on = made.answered(context, stopped, &mut answers).await?,
        }
    }
    let message = format!("the MCP server `{}` asked more than {ROUNDS_MAX} times", made.server);
    Err(TryError::answered(Failure::new(ErrorKind::ToolFailed, message)))
}

/// The server, the tool and its arguments.
fn texts(call: &McpCall, scope: &Value) -> Result<(Name, String, Value), Failure> {
    let server: Name = render(&call.server, "server", scope)?.trim().into();
    let tool = render(&call.tool, "tool", scope)?.trim().to_owned();
    let arguments = match &call.arguments {
        None => Value::empty_map(),
        Some(tree) => tree.render_values(scope).map_err(|error| bad_field("arguments", &error.message))?,
    };
    match arguments.as_map() {
        Some(_) => Ok((server, tool, arguments)),
        None => Err(bad_field("arguments", &format!("expected a map, found {}", arguments.type_name()))),
    }
}

/// What a cassette knows a call by: what people have answered to it so far is a part of what is asked.
pub(super) fn for_cassette(asking: &Asking<'_>, call: &McpCall) -> Result<Value, Failure> {
    let (server, tool, arguments) = texts(call, asking.scope)?;
    let mut asked = Value::map([
        ("server", Value::String(server)),
        ("tool", Value::from(tool)),
        ("arguments", arguments),
    ]);
    let answers = &asking.call.overrides.answers;
    if !answers.is_empty() {
        let answers = answers.iter().map(|answered| answered.answer.clone());
        asked.set_path(&["answers".into()], Value::list(answers));
    }
    Ok(asked)
}

/// How far a request got.
enum Round {
    Complete(Box<CallToolResult>),
    /// It has to be made again, with what the server wants to know.
    Stopped(Stopped),
}

impl Made<'_> {
    /// What a server wants to know before it goes on; a failure if only a person can say.
    async fn answered(
        &mut self,
        context: &mut ActionContext<'_>,
        stopped: Stopped,
        answers: &mut Answers<'_>,
    ) -> Result<GoesOn, TryError> {
        let mut responses = InputResponses::new();
        for (key, request) in &stopped.requests {
            let response = match (elicitation(request), request) {
                (Some(asked), _) => match answers.to(asked) {
                    Some(said) => serde_json::to_value(said),
                    None => return Err(TryError::answered(required(&self.server, asked, Some(&stopped)))),
                },
                (None, InputRequest::CreateMessage(request)) => {
                    let said = sampling::answer(self, context, request.params.clone()).await;
                    serde_json::to_value(said.map_err(|error| {
                        let message =
                            format!("the MCP server `{}` asked a model: {}", self.server, error.message);
                        TryError::answered(Failure::new(ErrorKind::ToolFailed, message))
                    })?)
                }
                _ => Ok(serde_json::json!({"roots": []})),
            };
            responses.insert(key.clone(), response.unwrap_or_default());
        }
        Ok(GoesOn { responses: Some(responses), state: stopped.state })
    }

    /// One request and all that the server says until it answers.
    async fn round(
        &mut self,
        context: &mut ActionContext<'_>,
        connection: &Connection,
        goes_on: GoesOn,
        answers: &mut Answers<'_>,
    ) -> Result<Round, TryError> {
        let deadline = context.deadline;
        let mut under_way = deadline.limit(connection.calls.begin()).await?;
        let sending = connection
            .peer
            .send_request_with_option(self.request(context, goes_on), PeerRequestOptions::no_options());
        let mut handle = match deadline.limit(sending).await? {
            Ok(handle) => handle,
            Err(error) => return Err(self.broke(connection, &error).await.into()),
        };
        under_way.is_known_as(&handle.id, &handle.progress_token);
        let mut abandoned = Abandoned::new(&handle);
        let until = Instant::now() + self.filled.call_within();
        let answer = loop {
            tokio::select! {
                biased;
                stopped = deadline.reached() => {
                    abandoned.disarm();
                    give_up(connection, handle, "the client has to stop").await;
                    return Err(stopped.into());
                }
                () = sleep_until(until) => {
                    abandoned.disarm();
                    give_up(connection, handle, "it takes too long").await;
                    connection.is_silent();
                    let within = self.filled.call_within();
                    let message = format!("the tool `{}` of `{}` took longer than {} s, the `timeout` of the server",
                        self.tool, self.server, within.as_secs());
                    let failure = Failure::new(ErrorKind::Timeout, message);
                    return Err(TryError::unknown(failure));
                }
                Some(said) = under_way.said.recv() => {
                    if let Some(asked) = self.heard(context, &under_way, said, answers).await {
                        abandoned.disarm();
                        give_up(connection, handle, "a person is asked first").await;
                        return Err(TryError::answered(required(&self.server, &asked, None)));
                    }
                }
                answer = &mut handle.rx => break answer,
            }
        };
        abandoned.disarm();
        // What it said before it answered.
        while let Ok(Said::Line(stream, line)) = under_way.said.try_recv() {
            context.line(stream, line);
        }
        drop(under_way);
        self.read(connection, answer.unwrap_or(Err(ServiceError::TransportClosed)), answers).await
    }

    fn request(&self, context: &ActionContext<'_>, goes_on: GoesOn) -> ClientRequest {
        let arguments = match self.arguments.to_json() {
            serde_json::Value::Object(map) => map,
            _ => serde_json::Map::new(),
        };
        let mut params = CallToolRequestParams::new(self.tool.clone()).with_arguments(arguments);
        let key = serde_json::Map::from_iter([(KEY.to_owned(), context.key().into())]);
        params.meta = Some(RequestMetaObject(MetaObject(key)));
        params.input_responses = goes_on.responses;
        params.request_state = goes_on.state;
        ClientRequest::CallToolRequest(CallToolRequest::new(params))
    }

    /// Does what the server asks for meanwhile. Gives back what only a person can say.
    async fn heard(
        &mut self,
        context: &mut ActionContext<'_>,
        under_way: &UnderWay<'_>,
        said: Said,
        answers: &mut Answers<'_>,
    ) -> Option<ElicitRequestParams> {
        match said {
            Said::Line(stream, line) => context.line(stream, line),
            Said::Samples(params, reply) => {
                let answer = sampling::answer(self, context, *params).await;
                under_way.answered();
                let _ = reply.send(answer);
            }
            Said::Elicits(asked, reply) => match answers.to(&asked) {
                Some(answer) => {
                    under_way.answered();
                    let _ = reply.send(answer);
                }
                None => {
                    let _ = reply.send(ElicitResult::new(ElicitationAction::Cancel));
                    return Some(*asked);
                }
            },
        }
        None
    }

    async fn read(
        &self,
        connection: &Connection,
        answer: Result<ServerResult, ServiceError>,
        answers: &mut Answers<'_>,
    ) -> Result<Round, TryError> {
        match answer {
            Ok(ServerResult::CallToolResult(result)) => Ok(Round::Complete(Box::new(result))),
            Ok(ServerResult::InputRequiredResult(asked)) => {
                let requests = asked.input_requests.unwrap_or_default();
                Ok(Round::Stopped(Stopped { requests, state: asked.request_state }))
            }
            Ok(ServerResult::CreateTaskResult(_)) => {
                Err(self.failed("it answered with a task, which this client did not ask for"))
            }
            Ok(_) => Err(self.failed("its answer is none to a call of a tool")),
            Err(ServiceError::McpError(error)) => Err(match page(&error) {
                Some(asked) => self.page(&asked, answers),
                None => self.refused(&error),
            }),
            Err(error) => Err(TryError::unknown(self.broke(connection, &error).await)),
        }
    }

    fn failed(&self, why: &str) -> TryError {
        let message = format!("the tool `{}` of `{}`: {why}", self.tool, self.server);
        TryError::answered(Failure::new(ErrorKind::ToolFailed, message))
    }

    /// It goes on only after somebody was at a page. If they were, and it is not enough, they are asked again.
    fn page(&self, asked: &ElicitRequestParams, answers: &mut Answers<'_>) -> TryError {
        match answers.to(asked) {
            Some(said) if said.action == ElicitationAction::Decline => {
                self.failed("a person declined what it asked for")
            }
            _ => TryError::answered(required(&self.server, asked, None)),
        }
    }

    /// The server's own word that it does not do this.
    fn refused(&self, error: &ErrorData) -> TryError {
        let wrong = [ErrorCode::INVALID_PARAMS, ErrorCode::METHOD_NOT_FOUND, ErrorCode::INVALID_REQUEST];
        let kind =
            if wrong.contains(&error.code) { ErrorKind::ContractViolation } else { ErrorKind::ToolFailed };
        let message = format!("the tool `{}` of `{}`: {}", self.tool, self.server, error.message);
        let failure = Failure::new(kind, message);
        let details = error.data.as_ref().map(Value::from_json);
        TryError::answered(match details {
            Some(details) => failure.with_details(Value::map([("data", details)])),
            None => failure,
        })
    }

    /// The connection is of no use any more.
    async fn broke(&self, connection: &Connection, error: &ServiceError) -> Failure {
        connection.is_broken_now();
        let how = connection.how_it_ended().await;
        let why = asked(error);
        let message =
            format!("the MCP server `{}` broke off during `{}`: {why}{how}", self.server, self.tool);
        Failure::new(ErrorKind::Network, message)
    }
}

/// The page that a refusal sends people to.
fn page(error: &ErrorData) -> Option<ElicitRequestParams> {
    if error.code != PAGE_REQUIRED {
        return None;
    }
    let first = error.data.as_ref()?.get("elicitations")?.get(0)?;
    serde_json::from_value(first.clone()).ok()
}

/// Tells the server that nobody waits any more; it need not listen.
async fn give_up(connection: &Connection, handle: RequestHandle<RoleClient>, why: &str) {
    const WITHIN: std::time::Duration = std::time::Duration::from_secs(1);
    if !connection.is_broken() {
        let _ = tokio::time::timeout(WITHIN, handle.cancel(Some(why.to_owned()))).await;
    }
}

/// Tells the server so if the try is dropped.
struct Abandoned(Option<(Peer<RoleClient>, RequestId)>);

impl Abandoned {
    fn new(handle: &RequestHandle<RoleClient>) -> Abandoned {
        Abandoned(Some((handle.peer.clone(), handle.id.clone())))
    }

    fn disarm(&mut self) {
        self.0 = None;
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        let Some((peer, id)) = self.0.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let param = CancelledNotificationParam::new(Some(id), None);
            runtime.spawn(async move { drop(peer.notify_cancelled(param).await) });
        }
    }
}
