//! The forks that contracts run under, as EIP-7910 describes them.
//!
//! A fork begins at a height here, and EIP-7910 knows times: `activationBlock` is the height, and `activationTime` the
//! time of that block as soon as it is known.

use ledger::contracts::precompiles;
use ledger::{Fork, ForkSchedule};
use primitives::{Digest, Height};
use serde_json::{Map, Value, json};

use super::Session;
use super::params::Params;
use super::values::quantity;
use super::wire::{Answer, RpcError};

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

/// The rules of contracts now, after the next fork, and after the last one of the schedule.
pub(super) fn config(session: &Session, _: &Params) -> Answer {
    let genesis = session.genesis_digest()?.ok_or_else(|| RpcError::server("the first block is no longer held"))?;
    let (forks, now) = (session.rpc.api.backend.forks(), session.latest());
    let told = |step: Option<&(Height, Fork)>| match step {
        Some(step) => fork_json(session, &genesis, &forks, *step),
        None => Ok(Value::Null),
    };
    let (begun, later) = forks.steps().split_at(forks.steps().partition_point(|(height, _)| *height <= now));
    Ok(json!({"current": told(begun.last())?, "next": told(later.first())?, "last": told(later.last())?}))
}

fn fork_json(session: &Session, genesis: &Digest, forks: &ForkSchedule, (height, fork): (Height, Fork)) -> Answer {
    let found = precompiles(fork.spec());
    let named = PRECOMPILES.iter().filter(|(number, _)| found.contains(number));
    let named: Map<String, Value> =
        named.map(|(number, name)| ((*name).into(), format!("0x{number:040x}").into())).collect();
    Ok(json!({
        "activationBlock": quantity(height),
        "activationTime": begun_at(session, height)?,
        "blobSchedule": {"baseFeeUpdateFraction": fork.blob_fraction(), "max": 0, "target": 0},
        "chainId": quantity(session.chain()),
        "forkId": format!("0x{:08x}", fork_id(genesis, forks, height)),
        "precompiles": named,
        "systemContracts": {},
    }))
}

/// The time of a block in seconds, as far as it is known; that of the genesis is 0.
fn begun_at(session: &Session, height: Height) -> Result<Option<u64>, RpcError> {
    let block = if height == 0 { return Ok(Some(0)) } else { session.rpc.api.backend.block(height)? };
    Ok(block.map(|block| block.time_ms / 1_000))
}

/// The checksum of a genesis and of the heights at which forks have begun since (EIP-2124).
fn fork_id(genesis: &Digest, forks: &ForkSchedule, now: Height) -> u32 {
    let begun = forks.steps().iter().map(|(height, _)| *height).filter(|height| (1..=now).contains(height));
    crc32(genesis.0.into_iter().chain(begun.flat_map(Height::to_be_bytes)))
}

fn crc32(bytes: impl Iterator<Item = u8>) -> u32 {
    let bit = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(byte), bit))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of EIP-2124, whose genesis is that of Ethereum.
    #[test]
    fn the_checksum_is_that_of_eip_2124() {
        let genesis = "d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3";
        let byte = |at: usize| u8::from_str_radix(&genesis[2 * at..2 * at + 2], 16).expect("hexadecimal");
        let genesis = Digest(std::array::from_fn(byte));
        let steps = vec![(0, Fork::Osaka), (1_150_000, Fork::Bpo1), (1_920_000, Fork::Bpo2)];
        let forks = ForkSchedule::new(steps).expect("sound");
        let told = [0, 1_149_999, 1_150_000, 1_919_999, 1_920_000].map(|now| fork_id(&genesis, &forks, now));
        assert_eq!(told, [0xfc64_ec04, 0xfc64_ec04, 0x97c2_c34c, 0x97c2_c34c, 0x91d1_f948]);
    }
}
