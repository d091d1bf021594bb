//! The chain, its fees, and this node.

use ledger::contracts::ethereum::keccak256;
use ledger::contracts::precompiles;
use primitives::Height;
use serde_json::{Map, Value, json};

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

/// The names of precompiles, by number (EIP-7910).
const PRECOMPILES: [(u16, &str); 18] = [
    (0x01, "ECREC"),
    (0x02, "SHA256"),
    (0x03, "RIPEMD160"),
    (0x04, "ID"),
    (0x05, "MODEXP"),
    (0x06, "BN254_ADD"),
    (0x07, "BN254_MUL"),
    (0x08, "BN254_PAIRING"),
    (0x09, "BLAKE2F"),
    (0x0a, "KZG_POINT_EVALUATION"),
    (0x0b, "BLS12_G1ADD"),
    (0x0c, "BLS12_G1MSM"),
    (0x0d, "BLS12_G2ADD"),
    (0x0e, "BLS12_G2MSM"),
    (0x0f, "BLS12_PAIRING_CHECK"),
    (0x10, "BLS12_MAP_FP_TO_G1"),
    (0x11, "BLS12_MAP_FP2_TO_G2"),
    (0x100, "P256VERIFY"),
];

/// The rules of contracts, as EIP-7910 describes them. They hold from the genesis on, and there are no others yet.
pub(super) fn config(session: &Session, _: &Params) -> Answer {
    let genesis = session.genesis_digest()?.ok_or_else(|| RpcError::server("the first block is no longer held"))?;
    let context = session.context_with(session.latest(), 0)?;
    let found = precompiles(*context.rules.spec());
    let named = PRECOMPILES.iter().filter(|(number, _)| found.contains(number));
    let named: Map<String, Value> =
        named.map(|(number, name)| ((*name).into(), format!("0x{number:040x}").into())).collect();
    let current = json!({
        "activationTime": 0,
        "blobSchedule": {
            "baseFeeUpdateFraction": context.rules.blob_base_fee_update_fraction(), "max": 0, "target": 0,
        },
        "chainId": quantity(session.chain()),
        "forkId": format!("0x{:08x}", crc32(&genesis.0)),
        "precompiles": named,
        "systemContracts": {},
    });
    Ok(json!({"current": current, "next": null, "last": null}))
}

/// The checksum of a genesis without later forks (EIP-2124).
fn crc32(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
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
