//! What a server asks of a model while it performs a call: a model call of the task, with its rates, prices and budget.
//! What may not be is refused to the server, which can go on without.

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ErrorData, Role, SamplingMessage,
    SamplingMessageContentBlock,
};
use wonder_core::limits::SAMPLING_BYTES_MAX;
use wonder_models::{FinishReason, Image, Message, Part, Request};

use super::call::Made;
use crate::context::ActionContext;
use crate::handler::TryError;
use crate::job::Stream;

pub(super) async fn answer(
    made: &mut Made<'_>,
    context: &mut ActionContext<'_>,
    params: CreateMessageRequestParams,
) -> Result<CreateMessageResult, ErrorData> {
    let Some(sampling) = &made.spec.def.sampling else {
        return Err(refused(context, made, "this server may ask no model: it has no `sampling`".to_owned()));
    };
    let most = sampling.calls_max();
    if made.sampled >= most {
        let why = format!("it may ask a model {most} times in a call (`sampling.max_calls`)");
        return Err(refused(context, made, why));
    }
    let request = match request(params, context.key(), made.sampled) {
        Ok(request) => request,
        Err(why) => return Err(refused(context, made, why)),
    };
    made.sampled += 1;
    let deadline = context.deadline;
    let models = made.handler.models.clone();
    let asking = models.sample(context, &made.call.table, (sampling, request));
    match deadline.limit(asking).await {
        Ok(Ok(reply)) => {
            let stop_reason = match reply.finish_reason {
                FinishReason::Length => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
                _ => CreateMessageResult::STOP_REASON_END_TURN,
            };
            let message = SamplingMessage::assistant_text(reply.text.clone());
            let model = reply.model.map_or_else(|| sampling.model.to_string(), |model| model.to_string());
            Ok(CreateMessageResult::new(message, model).with_stop_reason(stop_reason))
        }
        Ok(Err(TryError::Failed(failed))) => Err(refused(context, made, failed.failure.message)),
        Ok(Err(TryError::Stopped(_))) | Err(_) => {
            Err(refused(context, made, "the call has to stop".to_owned()))
        }
    }
}

fn refused(context: &ActionContext<'_>, made: &Made<'_>, why: String) -> ErrorData {
    context
        .line(Stream::Note, format!("MCP server `{}` asked a model and got no answer: {why}", made.server));
    ErrorData::invalid_request(context.hide(why), None)
}

fn request(params: CreateMessageRequestParams, key: String, number: u32) -> Result<Request, String> {
    if params.tools.is_some_and(|tools| !tools.is_empty()) {
        return Err("a model that a server asks is offered no tools".to_owned());
    }
    let mut bytes = params.system_prompt.as_ref().map_or(0, String::len);
    let mut messages = Vec::with_capacity(params.messages.len());
    for message in params.messages {
        let role = if message.role == Role::Assistant {
            wonder_models::Role::Assistant
        } else {
            wonder_models::Role::User
        };
        let mut content = Vec::new();
        for block in message.content.into_vec() {
            content.push(match block {
                SamplingMessageContentBlock::Text(text) => {
                    bytes += text.text.len();
                    Part::text(text.text)
                }
                SamplingMessageContentBlock::Image(image) => {
                    bytes +=
                        usize::try_from(wonder_core::limits::IMAGE_TOKENS_RESERVED).unwrap_or(usize::MAX);
                    Part::Image(Image::Data { media_type: image.mime_type.into(), data: image.data.into() })
                }
                _ => return Err("only texts and images can be sent to a model".to_owned()),
            });
        }
        messages.push(Message { role, content });
    }
    if bytes as u64 > SAMPLING_BYTES_MAX {
        return Err(format!("it sends more than {SAMPLING_BYTES_MAX} bytes to a model at once"));
    }
    Ok(Request {
        system: params.system_prompt,
        messages,
        max_tokens: Some(u64::from(params.max_tokens)),
        temperature: params.temperature.map(f64::from),
        stop: params.stop_sequences.unwrap_or_default(),
        idempotency_key: Some(format!("{key}/sampling/{number}")),
        ..Request::default()
    })
}
