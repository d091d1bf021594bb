//! Registered keys of the lane, as a node tells them and as a purse keeps them.

use anyhow::Context;
use api::{LaneRegistrationBody, RegisteredBlsBody};
use payments::{BlsSignature, LaneRegistration, RegisteredBls};
use primitives::{PublicKey, Signature, from_hex, to_hex};

/// A registration as the interface returns it.
pub fn registration(told: &LaneRegistrationBody) -> anyhow::Result<LaneRegistration> {
    let key = |key: &String| key.parse::<PublicKey>().context("invalid key of a shard");
    let bls_key = |of: &RegisteredBlsBody| {
        let key = from_hex(&of.key).context("invalid BLS key of a shard")?;
        Ok(RegisteredBls { key, proof: BlsSignature(from_hex(&of.proof).context("invalid proof of a BLS key")?) })
    };
    Ok(LaneRegistration {
        epoch: told.epoch,
        member: told.member,
        keys: told.keys.iter().map(key).collect::<anyhow::Result<_>>()?,
        bls: told.bls.iter().map(bls_key).collect::<anyhow::Result<_>>()?,
        signature: Signature(from_hex(&told.signature).context("invalid signature of a registrar")?),
    })
}

/// The same for a purse's file.
pub fn registration_body(registration: &LaneRegistration) -> LaneRegistrationBody {
    let LaneRegistration { epoch, member, keys, bls, signature } = registration;
    let bls_key = |of: &RegisteredBls| RegisteredBlsBody { key: to_hex(&of.key), proof: to_hex(&of.proof.0) };
    LaneRegistrationBody {
        epoch: *epoch,
        member: *member,
        keys: keys.iter().map(ToString::to_string).collect(),
        bls: bls.iter().map(bls_key).collect(),
        signature: to_hex(&signature.0),
    }
}
