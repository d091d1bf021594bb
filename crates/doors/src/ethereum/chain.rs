//! The chain, its fees, and this node.

use ledger::contracts::ethereum::keccak256;
use primitives::Height;
use serde_json::{Value, json};

use super::Session;
use super::params::Params;
use super::values::{data, quantity, read_data, read_u64};
use super::wire::{Answer, RpcError};

/// Maximum number of blocks of a fee history.
const HISTORY_BLOCKS: u64 = 256;
/// Maximum number of percentiles of a fee history.
const PERCENTILES: usize = 100;

/// Tools look at the beginning of the name to learn whether a node has the methods of anvil.
pub(super) fn client_version(session: &Session, _: &Params) -> Answer {
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let prefix = if session.rpc.api.backend.is_developers() { "anvil/" } else { "" };
    Ok(format!("{prefix}Walras/v{}/{system}-{machine}/rust", env!("CARGO_PKG_VERSION")).into())
}

pub(super) fn sha3(_: &Session, params: &Params) -> Answer {
    Ok(data(keccak256(params.read(0, read_data)?)))
}

pub(super) fn net_version(session: &Session, _: &Params) -> Answer {
    Ok(session.rpc.outline().chain.to_string().into())
}

pub(super) fn listening(_: &Session, _: &Params) -> Answer {
    Ok(true.into())
}

pub(super) fn peer_count(session: &Session, _: &Params) -> Answer {
    let peers = session.rpc.api.backend.standing().validator.map_or(0, |validator| validator.connected);
    Ok(quantity(peers as u64))
}

pub(super) fn chain_id(session: &Session, _: &Params) -> Answer {
    Ok(quantity(session.rpc.outline().chain))
}

pub(super) fn block_number(session: &Session, _: &Params) -> Answer {
    Ok(quantity(session.latest()))
}

/// False, or how far the node is behind the other validators.
pub(super) fn syncing(session: &Session, _: &Params) -> Answer {
    let current = session.latest();
    match session.rpc.api.backend.standing().validator.filter(|validator| !validator.is_caught_up()) {
        Some(validator) if validator.certified_anywhere > current => Ok(json!({
            "startingBlock": quantity(0u64),
            "currentBlock": quantity(current),
            "highestBlock": quantity(validator.certified_anywhere),
        })),
        _ => Ok(false.into()),
    }
}

pub(super) fn accounts(_: &Session, _: &Params) -> Answer {
    Ok(json!([]))
}

/// The price that a transaction should offer: the next base fee, with room for it to rise for four blocks.
pub(super) fn gas_price(session: &Session, _: &Params) -> Answer {
    let base_fee = session.terms()?.base_fee;
    Ok(quantity(base_fee.saturating_add(base_fee / 16)))
}

/// Zero: a tip does not buy a place in a block.
pub(super) fn priority_fee(_: &Session, _: &Params) -> Answer {
    Ok(quantity(0u64))
}

/// The least: there are no blobs.
pub(super) fn blob_base_fee(_: &Session, _: &Params) -> Answer {
    Ok(quantity(1u64))
}

pub(super) fn fee_history(session: &Session, params: &Params) -> Answer {
    let count = params.read(0, |value| match value.as_u64() {
        Some(count) => Ok(count),
        None => read_u64(value),
    })?;
    let newest = session.height(params, 1)?;
    let percentiles = params.read_if(2, percentiles)?.unwrap_or_default();
    let count = count.min(HISTORY_BLOCKS).min(newest + 1);
    if count == 0 {
        return Ok(json!({"oldestBlock": "0x0", "baseFeePerGas": [], "gasUsedRatio": []}));
    }
    let terms = session.terms()?;
    let (mut base_fees, mut ratios, mut rewards) = (Vec::new(), Vec::new(), Vec::new());
    let first = newest + 1 - count;
    let mut oldest = first;
    for height in first..=newest {
        let Some(block) = session.load(height)? else {
            // Blocks that are no longer held are the oldest.
            oldest = height + 1;
            continue;
        };
        base_fees.push(quantity(block.base_fee));
        ratios.push(json!(block.gas_used() as f64 / terms.block_gas as f64));
        rewards.push(block.tips(&percentiles));
    }
    let above = if newest == session.latest() { terms.base_fee } else { base_fee_of(session, newest + 1)? };
    base_fees.push(quantity(above));
    let mut answer = json!({"oldestBlock": quantity(oldest), "baseFeePerGas": base_fees, "gasUsedRatio": ratios});
    if params.get(2).is_some() {
        answer["reward"] = rewards.into();
    }
    Ok(answer)
}

fn base_fee_of(session: &Session, height: Height) -> Result<u64, RpcError> {
    Ok(session.load(height)?.map_or(0, |block| block.base_fee))
}

fn percentiles(value: &Value) -> Result<Vec<f64>, String> {
    let all = value.as_array().ok_or("a list of numbers from 0 to 100 is expected")?;
    if all.len() > PERCENTILES {
        return Err(format!("at most {PERCENTILES} percentiles"));
    }
    let numbers: Option<Vec<f64>> = all.iter().map(Value::as_f64).collect();
    let numbers = numbers.ok_or("a percentile is a number")?;
    let is_sound = numbers.iter().all(|one| (0.0..=100.0).contains(one)) && numbers.is_sorted();
    if is_sound { Ok(numbers) } else { Err("percentiles must ascend from 0 to 100".into()) }
}
