//! The `mcp_tool` action, and the tools of MCP servers for models.
//!
//! Servers are shared: one of a kind for each project, started when it is first needed, and started again, ever more
//! slowly, after it died. What a server says on the way are lines of the task that called it; what it asks of a person
//! ends the try as `input_required`, and what it asks of a model is a model call of the task. Nothing is tried again
//! here: a call that broke off says so, and whoever knows what may be repeated decides.

#![expect(deprecated, reason = "servers of the older protocols sample and log, and those are what there is")]

mod asks;
mod by_hand;
mod call;
mod calls;
mod connect;
mod content;
mod filled;
mod listen;
mod pool;
mod sampling;
mod tools;

use std::sync::Arc;

use wonder_core::command::TaskOrder;
use wonder_core::cost::Allowance;
use wonder_core::error::Failure;
use wonder_core::graph::Work;
use wonder_core::reserve::{worst_action, worst_call};
use wonder_core::task::ActionCall;

pub(crate) use by_hand::lone_call;
pub(crate) use pool::Pool;
pub use tools::ListedTool;

use crate::cassette::{Asked, Asking};
use crate::context::ActionContext;
use crate::handler::{ActionHandler, Performing};
use crate::llm::{LlmHandler, within_reserved};

/// Performs `mcp_tool`.
#[derive(Debug)]
pub(crate) struct McpHandler {
    pool: Arc<Pool>,
    models: Arc<LlmHandler>,
}

impl McpHandler {
    pub(crate) fn new(pool: Arc<Pool>, models: Arc<LlmHandler>) -> McpHandler {
        McpHandler { pool, models }
    }
}

impl ActionHandler for McpHandler {
    fn kinds(&self) -> &[&'static str] {
        &["mcp_tool"]
    }

    fn perform<'c>(&'c self, context: &'c mut ActionContext<'_>) -> Performing<'c> {
        let Some(Work::McpTool(call)) = &context.call.action.work else {
            unreachable!("only calls of tools come here")
        };
        Performing::pending(call::perform(self, context, call))
    }

    fn asked(&self, asking: &Asking<'_>) -> Result<Asked, Failure> {
        let Some(Work::McpTool(call)) = &asking.call.action.work else {
            unreachable!("only calls of tools come here")
        };
        call::for_cassette(asking, call).map(Asked::Outside)
    }

    fn worst_case(&self, order: &TaskOrder, call: &ActionCall) -> Allowance {
        let Some(Work::McpTool(work)) = &call.action.work else { return Allowance::default() };
        let worst = worst_action(&call.action, |asked, bytes| {
            let named = asked.model.as_ref().map(|model| &model.text);
            let (name, profile) =
                named.and_then(|name| work.table.profile(name, call.overrides.downgrades)).unzip();
            let prices = name.and_then(|name| order.prices.get(name)).copied().unwrap_or_default();
            worst_call(asked, profile, &prices, bytes)
        });
        within_reserved(worst, order)
    }
}
