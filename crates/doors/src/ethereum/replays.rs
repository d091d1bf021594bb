//! The `trace_` methods, in the form of OpenEthereum: the calls of transactions as lists.

use primitives::TransactionId;
use serde_json::{Value, json};

use super::Session;
use super::flat::Flat;
use super::params::Params;
use super::traces::{Form, TraceAsked};
use super::values::data;
use super::wire::{Answer, RpcError};

/// What the `trace_` methods ask for.
fn asked() -> TraceAsked {
    TraceAsked::of_calls(Form::Flat(Flat { has_other_words: true, has_own_gas: true, ..Flat::default() }))
}

/// Of what can be asked of a replay there are only traces.
fn check_kinds(params: &Params) -> Result<(), RpcError> {
    params.read(1, |kinds| match kinds.as_array().map(Vec::as_slice) {
        Some([kind]) if kind == "trace" => Ok(()),
        _ => Err("only [\"trace\"]: debug_traceTransaction has the steps of `vmTrace` without a tracer, and \
            `stateDiff` with the prestateTracer and diffMode"
            .into()),
    })
}

/// The answer to a replay. A transaction returns what its outermost call does.
fn replayed(trace: Value) -> Value {
    let result = &trace[0]["result"];
    let output = result.get("output").or(result.get("code")).cloned().unwrap_or_else(|| "0x".into());
    json!({"output": output, "stateDiff": null, "trace": trace, "vmTrace": null})
}

pub(super) fn trace_transaction(session: &Session, params: &Params) -> Answer {
    session.trace_one(&params.digest(0)?, &asked())
}

pub(super) fn trace_block(session: &Session, params: &Params) -> Answer {
    let traces = session.trace_all(session.by_number(params)?, &asked())?;
    let mut all = Vec::new();
    for (_, trace) in traces {
        let Value::Array(entries) = trace else {
            return Err(RpcError::internal("the calls of a transaction are no list"));
        };
        all.extend(entries);
    }
    Ok(all.into())
}

pub(super) fn replay_transaction(session: &Session, params: &Params) -> Answer {
    let hash = params.digest(0)?;
    check_kinds(params)?;
    Ok(replayed(session.trace_one(&hash, &asked())?))
}

pub(super) fn replay_block(session: &Session, params: &Params) -> Answer {
    let block = session.by_number(params)?;
    check_kinds(params)?;
    let traces = session.trace_all(block, &asked())?;
    let replayed = |(id, trace): (TransactionId, Value)| {
        let mut one = replayed(trace);
        one["transactionHash"] = data(id.0);
        one
    };
    Ok(traces.into_iter().map(replayed).collect())
}
