//! Model providers as values: a neutral request becomes the HTTP request of one provider, and the bytes of its
//! answer become a neutral reply or a failure that a workflow can branch on.
//!
//! No IO, no clock, no retries: whoever performs a model call sends what [`encode`] gives and feeds what comes
//! back to a [`Decoder`]. One exchange, whole:
//!
//! ```
//! use wonder_lang::Time;
//! use wonder_models::{Delta, Message, Provider, Request, Target, encode, key_for};
//!
//! let provider = Provider::Anthropic;
//! let environment = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "sk-ant-1".to_owned());
//! let key = key_for(provider, None, None, environment)?;
//! let target = Target { provider, wire: None, base_url: None, key, headers: Vec::new() };
//! let request = Request {
//!     model: "claude-sonnet-4-5".to_owned(),
//!     messages: vec![Message::user("Say hello.")],
//!     stream: true,
//!     ..Request::default()
//! };
//! let exchange = encode(&request, &target)?;
//! assert_eq!(exchange.call.url, "https://api.anthropic.com/v1/messages");
//! assert!(!format!("{exchange:?}").contains("sk-ant-1"));
//!
//! // Here somebody sends `exchange.call` and reads this:
//! let status = 200;
//! let headers = [("content-type", "text/event-stream"), ("request-id", "req_1")];
//! let answer = r#"data: {"type":"message_start","message":{"id":"msg_1","model":"claude-sonnet-4-5","usage":{"input_tokens":9}}}
//!
//! data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
//!
//! data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello!"}}
//!
//! data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}
//!
//! data: {"type":"message_stop"}
//!
//! "#;
//! let mut decoder = exchange.decoder(status, headers, 1 << 20);
//! let mut shown = Vec::new();
//! for piece in answer.as_bytes().chunks(16) {
//!     shown.extend(decoder.push(piece));
//! }
//! assert_eq!(shown, [Delta::Text("Hello!".to_owned())]);
//! let reply = decoder.finish(Time(0))?;
//! assert_eq!((&*reply.text, reply.usage.unwrap().input_tokens), ("Hello!", 9));
//!
//! // The next turn: what was said is appended as it is.
//! let next = Request {
//!     messages: vec![Message::user("Say hello."), reply.message, Message::user("Again.")],
//!     ..request
//! };
//! assert!(encode(&next, &target).is_ok());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What holds for every provider:
//!
//! - The model's name is sent untouched. A key is in a header, never in a URL, and goes only where it was given
//!   for ([`key_for`]).
//! - `input_tokens` is all input, what the cache had and took included; `output_tokens` is all output, reasoning
//!   included ([`Usage`]). What a provider does not say is not known, which is not zero.
//! - What a provider signs goes back to it unchanged and to nobody else ([`Item`]).
//! - Refusals, filters and cut answers are failures that carry what was said and what it cost ([`CallFailure`]).
//!   An end that is not known is a failure, and a stream without its end is one.
//! - The arguments of a tool call are read strictly or kept as they were written ([`Arguments`]).

mod arguments;
mod call;
mod conversation;
mod decode;
mod facts;
mod failure;
mod message;
mod names;
mod problem;
mod provider;
mod reply;
mod request;
mod schema;
mod sse;
mod told;
mod url;
mod wire;

pub use call::{Exchange, Header, HttpCall, Target, encode};
pub use decode::Decoder;
pub use failure::{CallFailure, FailureKind};
pub use message::{Arguments, Image, Item, Message, Part, Role, ToolCall, ToolResult};
pub use problem::Problem;
pub use provider::{Key, KeyChoice, Provider, Wire, key_for};
pub use reply::{Delta, FinishReason, Reply, Usage};
pub use request::{Cache, Effort, Request, Tool, ToolChoice, estimate_tokens};
