//! Traces of transactions and calls: `debug_traceTransaction` and `debug_traceCall`, with the usual step logs or as a
//! tree of calls.
//!
//! A transaction is executed again after those before it in its block, over the state between the phases of the
//! block: the trace shows what the transaction did.

use std::sync::Arc;

use ledger::contracts::ethereum::U256;
use ledger::contracts::{
    EthereumReceipt, EthereumTransaction, EvmCalled, EvmJob, EvmStatus, EvmView, TRACE_BYTES_MAX, TRACE_STEPS_MAX,
    TraceCall, TraceSettings, TraceStep, Tracer,
};
use primitives::TransactionId;
use serde_json::{Value, json};

use super::blocks::EthereumBlock;
use super::calls::{PastState, flag};
use super::overrides::{BlockOverrides, StateOverrides};
use super::params::Params;
use super::values::{data, quantity};
use super::wire::{Answer, RpcError, reason};
use super::{Caller, Rpc, Session};
use crate::backend::Moment;
use crate::http::{Api, Failure};

/// The requested trace.
struct TraceAsked {
    settings: TraceSettings,
    /// Whether the step logs were requested; otherwise the tree of calls.
    steps: bool,
    returned: bool,
    only_top: bool,
    with_logs: bool,
}

impl TraceAsked {
    fn read(value: Option<&Value>) -> Result<TraceAsked, RpcError> {
        let fields = value.and_then(Value::as_object);
        let is = |name| flag(fields, name);
        let config = fields.and_then(|fields| fields.get("tracerConfig")).and_then(Value::as_object);
        let limit = fields.and_then(|fields| fields.get("limit")).and_then(Value::as_u64).filter(|limit| *limit > 0);
        let limit = limit.map_or(TRACE_STEPS_MAX, |limit| TRACE_STEPS_MAX.min(limit as usize));
        let steps = match fields.and_then(|fields| fields.get("tracer")).filter(|tracer| !tracer.is_null()) {
            None => true,
            Some(tracer) if tracer == "callTracer" => false,
            Some(tracer) => {
                return Err(RpcError::invalid_params(format!(
                    "unknown tracer {tracer}; use \"callTracer\", or no tracer for the step logs"
                )));
            }
        };
        let settings = TraceSettings {
            steps: if steps { limit } else { 0 },
            stack: steps && !is("disableStack"),
            memory: steps && is("enableMemory"),
            storage: steps && !is("disableStorage"),
            calls: !steps,
        };
        Ok(TraceAsked {
            settings,
            steps,
            returned: is("enableReturnData"),
            only_top: flag(config, "onlyTopCall"),
            with_logs: flag(config, "withLog"),
        })
    }

    fn to_json(&self, called: &EvmCalled, tracer: Tracer, gas_limit: u64) -> Answer {
        if tracer.is_cut && !(self.steps && tracer.steps.len() >= self.settings.steps) {
            let most = TRACE_BYTES_MAX >> 20;
            return Err(RpcError::limit(format!("the trace has more than {most} MiB; ask for less of it")));
        }
        if self.steps {
            return Ok(self.steps_json(called, &tracer.steps));
        }
        let mut call = tracer.call.ok_or_else(|| RpcError::internal("nothing was called"))?;
        (call.gas, call.gas_used) = (gas_limit, called.gas_used);
        Ok(self.call_json(&call, true))
    }

    fn steps_json(&self, called: &EvmCalled, steps: &[TraceStep]) -> Value {
        let logs: Vec<Value> = steps.iter().map(|step| self.step_json(step)).collect();
        let output = if self.returned || called.status != EvmStatus::Halted { &called.output[..] } else { &[] };
        json!({
            "gas": called.gas_used,
            "failed": called.status != EvmStatus::Succeeded,
            "returnValue": data(output),
            "structLogs": logs,
        })
    }

    /// The storage of a step contains only the slot that it reads or writes.
    fn step_json(&self, step: &TraceStep) -> Value {
        let mut log = json!({
            "pc": step.pc,
            "op": step.name(),
            "gas": step.gas,
            "gasCost": step.cost,
            "depth": step.depth,
        });
        if step.refund > 0 {
            log["refund"] = step.refund.into();
        }
        if self.settings.stack {
            log["stack"] = step.stack.iter().map(|word| quantity(*word)).collect::<Vec<_>>().into();
        }
        if self.settings.memory {
            log["memory"] = step.memory.chunks(32).map(data).collect::<Vec<_>>().into();
        }
        if let Some((slot, value)) = step.slot {
            let word = |number: U256| format!("{number:064x}");
            log["storage"] = json!({ word(slot): word(value) });
        }
        if let Some(error) = &step.error {
            log["error"] = error.as_str().into();
        }
        log
    }

    fn call_json(&self, call: &TraceCall, is_top: bool) -> Value {
        let mut json = json!({
            "type": call.kind,
            "from": data(call.from),
            "gas": quantity(call.gas),
            "gasUsed": quantity(call.gas_used),
            "input": data(&call.input),
        });
        if let Some(to) = call.to {
            json["to"] = data(to);
        }
        if let Some(value) = call.value {
            json["value"] = quantity(value);
        }
        if call.error.is_none() || !call.output.is_empty() {
            json["output"] = data(&call.output);
        }
        if let Some(error) = &call.error {
            json["error"] = error.as_str().into();
            if let Some(reason) = reason(&call.output).filter(|_| call.is_reverted) {
                json["revertReason"] = reason.into();
            }
        }
        if self.with_logs && call.error.is_none() && !call.logs.is_empty() {
            let log = |log: &ledger::contracts::ethereum::Log| {
                let topics: Vec<Value> = log.data.topics().iter().map(data).collect();
                json!({"address": data(log.address), "topics": topics, "data": data(&log.data.data)})
            };
            json["logs"] = call.logs.iter().map(log).collect::<Vec<_>>().into();
        }
        let shows_inner = !(is_top && self.only_top);
        if shows_inner && !call.calls.is_empty() {
            json["calls"] = call.calls.iter().map(|inner| self.call_json(inner, false)).collect::<Vec<_>>().into();
        }
        json
    }
}

impl Session<'_> {
    /// The transaction of a receipt as the block executed it.
    fn job(&self, block: &EthereumBlock, receipt: &EthereumReceipt) -> Result<EvmJob, RpcError> {
        let damaged = || RpcError::internal("the block and its receipts do not match");
        let (sub_block, bytes) = block.transaction(receipt).ok_or_else(damaged)?;
        let body = block.body.as_ref().ok_or_else(damaged)?;
        let context = self.rpc.api.backend.ethereum_context(body, sub_block, block.base_fee);
        let transaction = EthereumTransaction::decode(bytes).map_err(|_| damaged())?.to_job(&receipt.sender);
        Ok(EvmJob { space: 0, context: Arc::new(context), transaction })
    }
}

/// The result of an executed transaction, with its output and why it was halted; it is executed again for this.
pub(crate) fn replay(api: &Api, id: &TransactionId) -> Result<EvmCalled, Failure> {
    if api.published().views().ethereum().receipt(id).is_none() {
        return Err(Failure::not_found("no such transaction is among those indexed"));
    }
    let rpc = Rpc::new(api.clone());
    let settings = TraceSettings { steps: 0, stack: false, memory: false, storage: false, calls: false };
    Ok(Session::new(&rpc, Caller::default()).replay(id, settings)?.called)
}

/// A transaction that is executed again.
struct Replayed {
    called: EvmCalled,
    tracer: Tracer,
    gas_limit: u64,
}

impl Session<'_> {
    fn replay(&self, id: &TransactionId, settings: TraceSettings) -> Result<Replayed, RpcError> {
        let (block, at) = self.block_of(id)?.ok_or_else(|| RpcError::server("transaction not found"))?;
        let state = PastState::new(&self.rpc.api.backend, Moment::Within(block.height));
        let mut view = EvmView::new(state);
        if block.receipts()[at].position.is_none() {
            return Err(RpcError::server("the settlement of a height executes nothing that can be traced"));
        }
        for before in block.receipts()[..at].iter().filter(|before| before.position.is_some()) {
            self.check_gas()?;
            self.pay_gas(before.gas_used);
            view.execute(&self.job(&block, before)?);
            view.state().check()?;
        }
        let job = self.job(&block, &block.receipts()[at])?;
        self.check_gas()?;
        self.pay_gas(block.receipts()[at].gas_used);
        let (called, tracer) = view.trace(&job, Tracer::new(settings));
        view.state().check()?;
        Ok(Replayed { called: called.map_err(RpcError::internal)?, tracer, gas_limit: job.transaction.gas_limit })
    }
}

pub(super) fn trace_transaction(session: &Session, params: &Params) -> Answer {
    let asked = TraceAsked::read(params.get(1))?;
    let Replayed { called, tracer, gas_limit } = session.replay(&params.digest(0)?, asked.settings)?;
    asked.to_json(&called, tracer, gas_limit)
}

pub(super) fn trace_call(session: &Session, params: &Params) -> Answer {
    let asked = TraceAsked::read(params.get(2))?;
    let options = |name: &str| params.get(2).and_then(|options| options.get(name)).filter(|value| !value.is_null());
    let replaced = options("stateOverrides").map(StateOverrides::read).transpose();
    let block = options("blockOverrides").map(BlockOverrides::read).transpose();
    let replaced = replaced.map_err(RpcError::invalid_params)?.unwrap_or_default();
    let block = block.map_err(RpcError::invalid_params)?.unwrap_or_default();
    let mut prepared = session.prepare(params, &replaced, &block)?;
    session.check_gas()?;
    let transaction = prepared.transaction();
    let gas = transaction.gas_limit;
    let (called, tracer) = prepared.view.trace_call(&prepared.context, transaction, Tracer::new(asked.settings));
    prepared.view.state().check()?;
    let called = called.map_err(RpcError::server)?;
    session.pay_gas(called.gas_used);
    asked.to_json(&called, tracer, gas)
}
