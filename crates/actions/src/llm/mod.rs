//! The `llm_call` action: one request to a model, one answer, no loop.
//!
//! What a request looks like and what an answer means is for `wonder_models` to say; here texts are filled in, keys are
//! found, addresses are guarded, and the answer is shown as it comes and paid for. It follows no redirects, reaches
//! private addresses only where `allow_hosts` names them, tries nothing again by itself, and calls no tools:
//! it offers them, and says of each call that comes back what is known of its tool.

mod ask;
mod bill;
mod images;
mod rate;
mod recorded;
mod send;

use std::sync::Arc;

use wonder_core::command::TaskOrder;
use wonder_core::cost::{Allowance, Spend};
use wonder_core::def::{Implementation, Name, OnViolation, Sampling};
use wonder_core::error::Failure;
use wonder_core::graph::{ModelCall, ModelTable, Work};
use wonder_core::limits::SAMPLING_BYTES_MAX;
use wonder_core::reserve::{sampled_call, worst_call};
use wonder_core::task::ActionCall;
use wonder_models::{CallFailure, FailureKind, Reply, Request, encode};

use ask::Asked;
pub(crate) use images::{BYTES_MAX as PICTURE_BYTES_MAX, picture_type};
use rate::Rates;

use crate::cassette::{self, Asking};
use crate::context::ActionContext;
use crate::handler::{ActionHandler, Performing, TryError, TryResult};
use crate::http::Clients;
use crate::mcp::Pool;
use crate::settings::Settings;

#[derive(Debug)]
pub(crate) struct LlmHandler {
    settings: Arc<Settings>,
    servers: Arc<Pool>,
    clients: Clients,
    rates: Rates,
}

impl LlmHandler {
    pub(crate) fn new(settings: Arc<Settings>, servers: Arc<Pool>) -> LlmHandler {
        LlmHandler { settings, servers, clients: Clients::default(), rates: Rates::default() }
    }

    async fn call(&self, context: &mut ActionContext<'_>, call: &ModelCall) -> TryResult {
        let asked = Asked::of((&self.settings, &self.servers), context, call).await?;
        match self.exchange(context, &asked).await? {
            Ok(reply) => Ok(call.result(reply.to_value(), &asked.tools, Vec::new())),
            Err(CallFailure {
                kind: FailureKind::ContractViolation, reply: Some(reply), message, ..
            }) if call.on_violation == OnViolation::Return => {
                Ok(call.result(reply.to_value(), &asked.tools, vec![message]))
            }
            Err(failure) => Err(send::failed(&failure)),
        }
    }

    /// What an MCP server wants to know from a model: paid for, and held to rates, as any other call.
    pub(crate) async fn sample(
        &self,
        context: &mut ActionContext<'_>,
        table: &ModelTable,
        (sampling, request): (&Sampling, Request),
    ) -> Result<Reply, TryError> {
        let asked = Asked::by_server(&self.settings, context, table, (sampling, request))?;
        let def = sampled_call(sampling);
        let prices = context.order().prices.get(&asked.name).copied().unwrap_or_default();
        let bytes = wonder_models::estimate_tokens(&asked.request).min(SAMPLING_BYTES_MAX);
        let worst = worst_call(&def, Some(asked.profile), &prices, bytes);
        if let Some(stops) = context.order().allowance.stops(&context.spend, &worst, None) {
            return Err(stops.into());
        }
        let answer = self.exchange(context, &asked).await?;
        answer.map_err(|failure| send::failed(&failure))
    }

    /// One request and its answer. What it spent is added to what the try has spent, however it ends.
    async fn exchange(
        &self,
        context: &mut ActionContext<'_>,
        asked: &Asked<'_>,
    ) -> Result<Result<Reply, CallFailure>, TryError> {
        let exchange = encode(&asked.request, &asked.target).map_err(|problem| ask::refused(&problem))?;
        let estimate = wonder_models::estimate_tokens(&asked.request);
        let passed = self.rates.pass(context, asked, estimate).await?;
        let before = context.spend.clone();
        let mut spend = Spend { calls: 1, model_used: Some(asked.name.clone()), ..Spend::default() };
        context.spend.add(&spend);
        let answer = send::send(self, context, exchange).await;
        if matches!(&answer, Err(error) if send::is_unsent(error)) {
            context.spend = before;
            return answer;
        }
        let answer = answer?;
        let price = context.order().prices.get(&asked.name).copied();
        let note = bill::count(&mut spend, &answer, price, estimate);
        passed.settle(spend.tokens());
        context.spend = before;
        context.spend.add(&spend);
        if let Some(note) = note {
            context.line(crate::job::Stream::Note, note);
        }
        Ok(answer)
    }
}

impl ActionHandler for LlmHandler {
    fn kinds(&self) -> &[&'static str] {
        &["llm_call"]
    }

    fn perform<'c>(&'c self, context: &'c mut ActionContext<'_>) -> Performing<'c> {
        let Some(Work::LlmCall(call)) = &context.call.action.work else {
            unreachable!("only model calls come here")
        };
        let deadline = context.deadline;
        // Whatever has to stop drops the connection with the rest.
        Performing::pending(
            async move { deadline.limit(self.call(context, call)).await.map_err(TryError::from)? },
        )
    }

    fn asked(&self, asking: &Asking<'_>) -> Result<cassette::Asked, Failure> {
        let Some(Work::LlmCall(call)) = &asking.call.action.work else {
            unreachable!("only model calls come here")
        };
        recorded::asked(asking, call).map(cassette::Asked::Outside)
    }

    fn worst_case(&self, order: &TaskOrder, call: &ActionCall) -> Allowance {
        let (Some(Work::LlmCall(work)), Implementation::LlmCall(def)) =
            (&call.action.work, &call.action.def.implementation)
        else {
            return Allowance::default();
        };
        let (name, profile) = call.profile().unzip();
        let prices = name.and_then(|name| order.prices.get(name)).copied().unwrap_or_default();
        within_reserved(worst_call(def, profile, &prices, sent_bytes(work, call)), order)
    }
}

/// What was reserved is enough for a first call: it was worked out from the same, a few bytes aside.
pub(crate) fn within_reserved(worst: Allowance, order: &TaskOrder) -> Allowance {
    let least = |worst: u64, reserved: u64| if reserved > 0 { worst.min(reserved) } else { worst };
    Allowance {
        usd_micros: least(worst.usd_micros, order.allowance.usd_micros),
        tokens: least(worst.tokens, order.allowance.tokens),
        calls: least(worst.calls, order.allowance.calls),
    }
}

/// About what a call sends: what is written, what responses put behind it, and all of its input.
fn sent_bytes(work: &ModelCall, call: &ActionCall) -> u64 {
    let texts = work.prompt.iter().chain(&work.system).map(|template| template.text().len());
    let added = call.overrides.append.iter().chain(&call.overrides.system).map(|text: &Name| text.len());
    let schema = work.output_schema.as_ref().map_or(0, |schema| schema.doc().size());
    (texts.chain(added).sum::<usize>() + schema + call.input.size()) as u64
}
