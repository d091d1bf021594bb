//! Traces of transactions and calls: `debug_traceTransaction` and `debug_traceCall`, with the usual step logs, as a
//! tree of calls or a list ([`super::flat`]), or as the accounts before the transaction.
//!
//! A transaction is executed again after those before it in its block, over the state between the phases of the
//! block: the trace shows what the transaction did.

use std::sync::Arc;

use ledger::contracts::ethereum::U256;
use ledger::contracts::{
    EthereumReceipt, EthereumTransaction, EvmCalled, EvmJob, EvmStatus, EvmTouched, EvmView, SpecId, TRACE_BYTES_MAX,
    TRACE_STEPS_MAX, TraceCall, TraceLog, TraceSettings, TraceStep, Tracer,
};
use primitives::TransactionId;
use serde_json::{Value, json};

use super::blocks::EthereumBlock;
use super::calls::{flag, object};
use super::flat::{Flat, flat, placed};
use super::overrides::{BlockOverrides, StateOverrides};
use super::params::Params;
use super::past_state::PastState;
use super::values::{data, quantity};
use super::wire::{Answer, RpcError, reason};
use super::{Caller, Rpc, Session, touched, weight};
use crate::backend::Moment;
use crate::kit::{Failure, Kit};

/// Maximum number of traces of one answer.
const TRACES_MAX: usize = 100;

/// What a trace shows.
#[derive(Clone, Copy)]
pub(super) enum Form {
    /// The step logs.
    Steps,
    /// The tree of calls.
    Calls { only_top: bool, with_logs: bool },
    /// The list of calls.
    Flat(Flat),
    /// The accounts before the transaction, or only what it changes.
    Prestate { is_difference: bool },
}

/// The requested trace.
pub(super) struct TraceAsked {
    settings: TraceSettings,
    form: Form,
}

impl TraceAsked {
    fn read(value: Option<&Value>) -> Result<TraceAsked, RpcError> {
        let fields = object(value, "options")?;
        let is = |name| flag(fields, name);
        let config = object(fields.and_then(|fields| fields.get("tracerConfig")), "tracerConfig")?;
        let limit = match fields.and_then(|fields| fields.get("limit")) {
            None | Some(Value::Null) => 0,
            Some(limit) => limit.as_u64().ok_or_else(|| {
                RpcError::invalid_params(format!("limit: {limit} is no number of steps such as 1000"))
            })?,
        };
        let limit = if limit == 0 { TRACE_STEPS_MAX } else { TRACE_STEPS_MAX.min(limit as usize) };
        let tracer = fields.and_then(|fields| fields.get("tracer")).filter(|tracer| !tracer.is_null());
        let settings = TraceSettings {
            steps: limit,
            stack: !is("disableStack")?,
            memory: is("enableMemory")?,
            storage: !is("disableStorage")?,
            returned: is("enableReturnData")?,
            calls: false,
        };
        let of_config = |name| flag(config, name);
        let form = match tracer.map(Value::as_str) {
            None => return Ok(TraceAsked { settings, form: Form::Steps }),
            Some(Some("callTracer")) => {
                Form::Calls { only_top: of_config("onlyTopCall")?, with_logs: of_config("withLog")? }
            }
            Some(Some("flatCallTracer")) => Form::Flat(Flat {
                has_other_words: of_config("convertParityErrors")?,
                has_precompiles: of_config("includePrecompiles")?,
                has_own_gas: false,
            }),
            Some(Some("prestateTracer")) => Form::Prestate { is_difference: of_config("diffMode")? },
            Some(_) => {
                let tracer = tracer.map(ToString::to_string).unwrap_or_default();
                return Err(RpcError::invalid_params(format!(
                    "unknown tracer {tracer}; use \"callTracer\", \"flatCallTracer\", \"prestateTracer\", or no tracer \
                     for the step logs"
                )));
            }
        };
        Ok(TraceAsked::of_calls(form))
    }

    /// A trace without steps.
    pub fn of_calls(form: Form) -> TraceAsked {
        TraceAsked { settings: TraceSettings { calls: true, ..TraceSettings::default() }, form }
    }

    /// What an execution under these rules did, after `logs` logs of its block.
    fn to_json(&self, called: &EvmCalled, tracer: Tracer, gas_limit: u64, logs: usize, rules: SpecId) -> Answer {
        let is_steps = matches!(self.form, Form::Steps);
        if tracer.is_cut && !(is_steps && tracer.steps.len() >= self.settings.steps) {
            let most = TRACE_BYTES_MAX >> 20;
            return Err(RpcError::limit(format!("the trace has more than {most} MiB; ask for less of it")));
        }
        if is_steps {
            let mut steps = self.steps_json(called, &tracer.steps);
            if tracer.is_cut {
                // More steps than were asked for, or than a trace holds.
                steps["truncated"] = true.into();
            }
            return Ok(steps);
        }
        let mut call = tracer.call.ok_or_else(|| RpcError::internal("nothing was called"))?;
        if !matches!(self.form, Form::Flat(Flat { has_own_gas: true, .. })) {
            (call.gas, call.gas_used) = (gas_limit, called.gas_used);
        }
        match self.form {
            Form::Flat(form) => flat(&call, form, rules),
            Form::Calls { only_top, with_logs } => {
                if only_top {
                    call.calls.clear();
                }
                Ok(call_json(&call, with_logs.then_some(logs)))
            }
            Form::Steps | Form::Prestate { .. } => Err(RpcError::internal("this trace shows no calls")),
        }
    }

    fn steps_json(&self, called: &EvmCalled, steps: &[TraceStep]) -> Value {
        let logs: Vec<Value> = steps.iter().map(|step| self.step_json(step)).collect();
        json!({
            "gas": called.gas_used,
            "failed": called.status != EvmStatus::Succeeded,
            "returnValue": data(&called.output),
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
        if !step.returned.is_empty() {
            log["returnData"] = data(&step.returned);
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
}

/// A call with those that it made; with its logs if the number of logs before the transaction is given.
fn call_json(call: &TraceCall, first_log: Option<usize>) -> Value {
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
    if let Some(first_log) = first_log.filter(|_| !call.logs.is_empty()) {
        let log = |TraceLog { log, position, number }: &TraceLog| {
            json!({
                "address": data(log.address),
                "topics": log.data.topics().iter().map(data).collect::<Vec<_>>(),
                "data": data(&log.data.data),
                "position": quantity(*position),
                "index": quantity(first_log + number),
            })
        };
        json["logs"] = call.logs.iter().map(log).collect();
    }
    if !call.calls.is_empty() {
        json["calls"] = call.calls.iter().map(|inner| call_json(inner, first_log)).collect();
    }
    json
}

/// The accounts before an execution, or what it changed.
fn prestate_json(is_difference: bool, state: &PastState, touched: &[EvmTouched]) -> Value {
    if is_difference { touched::difference(state, touched) } else { touched::before(state, touched) }
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
pub(crate) fn replay(api: &Kit, id: &TransactionId) -> Result<EvmCalled, Failure> {
    if api.published().views().ethereum().receipt(id).is_none() {
        return Err(Failure::not_found("no such transaction is among those indexed"));
    }
    let rpc = Rpc::new(api.clone());
    let session = Session::new(&rpc, Caller::default());
    let (mut view, block, at) = session.before(id)?;
    let job = session.job(&block, &block.receipts()[at])?;
    let (called, _) = view.trace(&job, Tracer::default());
    view.state().check().map_err(Failure::from)?;
    Ok(called.map_err(RpcError::internal)?)
}

impl Session<'_> {
    /// The state before a transaction, its block, and its place there.
    fn before(&self, id: &TransactionId) -> Result<(EvmView<PastState>, EthereumBlock, usize), RpcError> {
        let (block, at) = self.block_of(id)?.ok_or_else(|| RpcError::server("transaction not found"))?;
        let mut view = EvmView::new(PastState::new(&self.rpc.api.backend, Moment::Within(block.height)));
        if block.receipts()[at].position.is_none() {
            return Err(RpcError::server("the settlement of a height executes nothing that can be traced"));
        }
        for before in block.receipts()[..at].iter().filter(|before| before.position.is_some()) {
            self.repeat(&mut view, &block, before)?;
        }
        self.check_gas()?;
        self.pay_gas(block.receipts()[at].gas_used);
        Ok((view, block, at))
    }

    /// Executes a transaction of a block again.
    fn repeat(
        &self,
        view: &mut EvmView<PastState>,
        block: &EthereumBlock,
        receipt: &EthereumReceipt,
    ) -> Result<(), RpcError> {
        self.check_gas()?;
        self.pay_gas(receipt.gas_used);
        view.execute(&self.job(block, receipt)?);
        view.state().check()
    }

    /// The trace of a transaction of a block over the state before it.
    fn traced(&self, asked: &TraceAsked, view: &mut EvmView<PastState>, block: &EthereumBlock, at: usize) -> Answer {
        let job = self.job(block, &block.receipts()[at])?;
        if let Form::Prestate { is_difference } = asked.form {
            let (_, touched) = view.touched(&job).map_err(RpcError::internal)?;
            view.state().check()?;
            return Ok(prestate_json(is_difference, view.state(), &touched));
        }
        let (called, tracer) = view.trace(&job, Tracer::new(asked.settings));
        view.state().check()?;
        let (called, rules) = (called.map_err(RpcError::internal)?, *job.context.rules.spec());
        let json = asked.to_json(&called, tracer, job.transaction.gas_limit, block.first_log(at), rules)?;
        Ok(if matches!(asked.form, Form::Flat(_)) { placed(json, block, at) } else { json })
    }

    /// The trace of a transaction.
    pub fn trace_one(&self, id: &TransactionId, asked: &TraceAsked) -> Answer {
        let (mut view, block, at) = self.before(id)?;
        self.traced(asked, &mut view, &block, at)
    }

    /// The traces of all transactions of a block.
    pub fn trace_all(
        &self,
        block: Option<EthereumBlock>,
        asked: &TraceAsked,
    ) -> Result<Vec<(TransactionId, Value)>, RpcError> {
        let block = block.ok_or_else(|| RpcError::server("block not found"))?;
        let executed = block.receipts().iter().enumerate().filter(|(_, one)| one.position.is_some());
        let executed: Vec<_> = executed.collect();
        if executed.len() > TRACES_MAX {
            let count = executed.len();
            return Err(RpcError::limit(format!(
                "the block has {count} transactions, and an answer at most {TRACES_MAX} traces: trace them one by one"
            )));
        }
        let mut view = EvmView::new(PastState::new(&self.rpc.api.backend, Moment::Within(block.height)));
        let (mut traces, mut bytes) = (Vec::new(), 0);
        for (at, receipt) in executed {
            self.check_gas()?;
            let trace = self.traced(asked, &mut view, &block, at)?;
            bytes += weight(&trace);
            self.bytes_after(bytes)?;
            traces.push((receipt.id, trace));
            self.repeat(&mut view, &block, receipt)?;
        }
        Ok(traces)
    }
}

pub(super) fn trace_transaction(session: &Session, params: &Params) -> Answer {
    session.trace_one(&params.digest(0)?, &TraceAsked::read(params.get(1))?)
}

/// The traces of a block, each with the hash of its transaction.
fn trace_block(session: &Session, block: Option<EthereumBlock>, options: Option<&Value>) -> Answer {
    let traces = session.trace_all(block, &TraceAsked::read(options)?)?;
    Ok(traces.into_iter().map(|(id, trace)| json!({"txHash": data(id.0), "result": trace})).collect())
}

pub(super) fn trace_block_by_number(session: &Session, params: &Params) -> Answer {
    trace_block(session, session.by_number(params)?, params.get(1))
}

pub(super) fn trace_block_by_hash(session: &Session, params: &Params) -> Answer {
    trace_block(session, session.by_hash(params)?, params.get(1))
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
    if let Form::Prestate { is_difference } = asked.form {
        let touched = prepared.view.touched_by_call(&prepared.context, transaction);
        prepared.view.state().check()?;
        let (called, touched) = touched.map_err(RpcError::server)?;
        session.pay_gas(called.gas_used);
        return Ok(prestate_json(is_difference, prepared.view.state(), &touched));
    }
    let (called, tracer) = prepared.view.trace_call(&prepared.context, transaction, Tracer::new(asked.settings));
    prepared.view.state().check()?;
    let called = called.map_err(RpcError::server)?;
    session.pay_gas(called.gas_used);
    asked.to_json(&called, tracer, gas, 0, *prepared.context.rules.spec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_options_of_another_type_are_refused_by_name() {
        for (options, name) in [
            (json!({"disableStack": "true"}), "disableStack"),
            (json!({"tracer": "callTracer", "tracerConfig": {"withLog": 1}}), "withLog"),
            (json!({"tracer": "callTracer", "tracerConfig": []}), "tracerConfig"),
            (json!({"limit": "ten"}), "limit"),
            (json!(7), "options"),
        ] {
            let refused = TraceAsked::read(Some(&options)).err().map(|error| error.to_json().to_string());
            assert!(refused.as_deref().is_some_and(|text| text.contains(name)), "{options}: {refused:?}");
        }
        let usual = json!({"timeout": "10s", "limit": 0, "enableMemory": true, "tracerConfig": null});
        assert!(TraceAsked::read(Some(&usual)).is_ok_and(|asked| asked.settings.memory));
    }
}
