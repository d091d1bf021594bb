//! Registered keys of the lane, as a node tells them and as a purse keeps them.

use api::{LaneRegistrationBody, RegisteredBlsBody};
use payments::{BlsSignature, LaneRegistration, RegisteredBls};
use primitives::{PublicKey, Signature, from_hex, to_hex};

use super::error::Invalid;

/// A registration as the interface returns it.
pub(super) fn registration(told: &LaneRegistrationBody) -> Result<LaneRegistration, Invalid> {
    let key = |key: &String| key.parse::<PublicKey>().map_err(|_| Invalid("key of a shard"));
    let bls_key = |of: &RegisteredBlsBody| {
        let key = from_hex(&of.key).map_err(|_| Invalid("BLS key of a shard"))?;
        let proof = from_hex(&of.proof).map_err(|_| Invalid("proof of a BLS key"))?;
        Ok(RegisteredBls { key, proof: BlsSignature(proof) })
    };
    Ok(LaneRegistration {
        epoch: told.epoch,
        member: told.member,
        keys: told.keys.iter().map(key).collect::<Result<_, Invalid>>()?,
        bls: told.bls.iter().map(bls_key).collect::<Result<_, Invalid>>()?,
        signature: Signature(from_hex(&told.signature).map_err(|_| Invalid("signature of a registrar"))?),
    })
}

/// The same for a purse's file.
pub(super) fn registration_body(registration: &LaneRegistration) -> LaneRegistrationBody {
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
