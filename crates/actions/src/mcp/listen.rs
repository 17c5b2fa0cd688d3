//! What a server says by itself: handed to the call it belongs to. It decides nothing and keeps nothing.

use std::sync::Arc;

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, FormElicitationCapability,
    Implementation, LoggingMessageNotificationParam, ProgressNotificationParam, RequestId,
    SamplingCapability, UrlElicitationCapability,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, RoleClient};
use tokio::sync::oneshot;

use super::calls::{Calls, Said};
use crate::job::Stream;

#[derive(Clone, Debug)]
pub(super) struct Listener {
    pub(super) calls: Arc<Calls>,
    /// It may ask a model.
    pub(super) samples: bool,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default());
        capabilities.elicitation = Some(elicitation);
        capabilities.sampling = self.samples.then(SamplingCapability::default);
        ClientConfig::new(capabilities, Implementation::new("wonder", env!("CARGO_PKG_VERSION")))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let nobody = || ElicitResult::new(ElicitationAction::Cancel);
        let Some(call) = self.calls.asker(origin(&context)).await else { return Ok(nobody()) };
        let (reply, answer) = oneshot::channel();
        if call.send(Said::Elicits(Box::new(request), reply)).await.is_err() {
            return Ok(nobody());
        }
        Ok(answer.await.unwrap_or_else(|_| nobody()))
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let refused = |why: &'static str| ErrorData::invalid_request(why, None);
        if !self.samples {
            return Err(refused("this client offers no sampling"));
        }
        let Some(call) = self.calls.asker(origin(&context)).await else {
            return Err(refused("no call is under way that this could be for"));
        };
        let (reply, answer) = oneshot::channel();
        let _ = call.send(Said::Samples(Box::new(params), reply)).await;
        answer.await.unwrap_or_else(|_| Err(refused("the call that this was for has ended")))
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let of = params.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let what = params.message.map(|message| format!(": {message}")).unwrap_or_default();
        self.calls.progress(&params.progress_token, format!("progress {}{of}{what}", params.progress));
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let level = serde_json::to_value(params.level).ok();
        let level = level.as_ref().and_then(|level| level.as_str()).unwrap_or("info").to_owned();
        let who = params.logger.map(|logger| format!("{logger}: ")).unwrap_or_default();
        let text = params.data.as_str().map_or_else(|| params.data.to_string(), str::to_owned);
        self.calls.line(Stream::Stderr, &format!("{level}: {who}{text}"));
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.calls.tools_changed();
    }
}

/// The request that this came in answer to, where the transport knows.
fn origin(context: &RequestContext<RoleClient>) -> Option<&RequestId> {
    match context.extensions.get::<InboundStreamOrigin>() {
        Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
        _ => None,
    }
}
