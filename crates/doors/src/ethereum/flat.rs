//! Traces as flat lists, with an entry for each call: the answers of the `trace_` methods and of `flatCallTracer`.
//!
//! An entry names its place in the tree by the numbers of all calls above it. So a list may be far longer than the
//! tree, and its bytes are counted while it is written.

use ledger::contracts::{SpecId, TRACE_BYTES_MAX, TraceCall, precompiles};
use serde_json::{Value, json};

use super::blocks::EthereumBlock;
use super::values::{data, quantity};
use super::wire::{Answer, RpcError};

/// Approximate bytes of an entry without its place, input and output.
const ENTRY_BYTES: usize = 512;
/// Bytes of each number of a place, as this process holds it.
const PLACE_BYTES: usize = size_of::<Value>();

/// How a list is written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flat {
    /// Whether failures have the words of the `trace_` methods.
    pub has_other_words: bool,
    /// Whether calls of Ethereum's precompiles are listed.
    pub has_precompiles: bool,
    /// Whether the outermost call has its own gas, without what its transaction costs before and gets back after.
    pub has_own_gas: bool,
}

/// A list in the making.
struct List {
    flat: Flat,
    /// Precompiles that are not listed.
    hidden: Vec<u16>,
    entries: Vec<Value>,
    /// Bytes left.
    room: usize,
}

/// The calls of a transaction, each before those that it makes.
///
/// # Errors
/// [`RpcError::limit`] if the list would be longer than a trace may be.
pub(super) fn flat(call: &TraceCall, flat: Flat, rules: SpecId) -> Answer {
    let hidden = if flat.has_precompiles { Vec::new() } else { precompiles(rules) };
    let mut list = List { flat, hidden, entries: Vec::new(), room: TRACE_BYTES_MAX };
    list.add(call, &mut Vec::new())?;
    Ok(list.entries.into())
}

impl List {
    fn add(&mut self, call: &TraceCall, place: &mut Vec<usize>) -> Result<(), RpcError> {
        let inner: Vec<&TraceCall> = call.calls.iter().filter(|inner| !self.hides(inner)).collect();
        let bytes = ENTRY_BYTES + PLACE_BYTES * place.len() + 2 * (call.input.len() + call.output.len());
        self.room = self.room.checked_sub(bytes).ok_or_else(|| {
            let most = TRACE_BYTES_MAX >> 20;
            RpcError::limit(format!("the list has more than {most} MiB; use debug_traceTransaction with callTracer"))
        })?;
        let mut entry = entry(call, self.flat);
        entry["subtraces"] = inner.len().into();
        entry["traceAddress"] = place.clone().into();
        self.entries.push(entry);
        for (at, inner) in inner.into_iter().enumerate() {
            place.push(at);
            self.add(inner, place)?;
            place.pop();
        }
        Ok(())
    }

    fn hides(&self, call: &TraceCall) -> bool {
        let number =
            |to: [u8; 20]| to[..18].iter().all(|byte| *byte == 0).then(|| u16::from_be_bytes([to[18], to[19]]));
        let called = call.to.filter(|_| call.kind != "SELFDESTRUCT").and_then(|to| number(to.0.0));
        called.is_some_and(|number| self.hidden.contains(&number))
    }
}

/// A call, without its place.
fn entry(call: &TraceCall, flat: Flat) -> Value {
    let value = quantity(call.value.unwrap_or_default());
    let mut entry = match call.kind {
        "SELFDESTRUCT" => json!({
            "type": "suicide",
            "action": {"address": data(call.from), "refundAddress": call.to.map(data), "balance": value},
            "result": null,
        }),
        "CREATE" | "CREATE2" => json!({
            "type": "create",
            "action": {
                "creationMethod": call.kind.to_lowercase(), "from": data(call.from), "gas": quantity(call.gas),
                "init": data(&call.input), "value": value,
            },
            "result": {"gasUsed": quantity(call.gas_used), "address": call.to.map(data), "code": data(&call.output)},
        }),
        _ => json!({
            "type": "call",
            "action": {
                "callType": call.kind.to_lowercase(), "from": data(call.from), "to": call.to.map(data),
                "gas": quantity(call.gas), "input": data(&call.input), "value": value,
            },
            "result": {"gasUsed": quantity(call.gas_used), "output": data(&call.output)},
        }),
    };
    if let Some(error) = &call.error {
        entry["error"] = if flat.has_other_words { other_words(error) } else { error }.into();
        // The output of a call that reverted says why it did.
        if !call.is_reverted {
            entry["result"] = Value::Null;
        }
    }
    entry
}

/// What the `trace_` methods call a failure.
fn other_words(error: &str) -> &str {
    match error {
        "execution reverted" => "Reverted",
        "out of gas" | "max code size exceeded" => "Out of gas",
        "invalid jump destination" => "Bad jump destination",
        "invalid opcode" => "Bad instruction",
        "stack underflow" => "Stack underflow",
        "stack limit reached 1024" => "Out of stack",
        "return data out of bounds" => "Out of bounds",
        "precompiled contract failed" => "Built-in failed",
        "write protection" => "Mutable Call In Static Context",
        other => other,
    }
}

/// Adds to the entries of a transaction where it is.
pub(super) fn placed(mut entries: Value, block: &EthereumBlock, at: usize) -> Value {
    for entry in entries.as_array_mut().into_iter().flatten() {
        entry["blockHash"] = data(block.digest.0);
        entry["blockNumber"] = block.height.into();
        entry["transactionHash"] = data(block.receipts()[at].id.0);
        entry["transactionPosition"] = at.into();
    }
    entries
}
