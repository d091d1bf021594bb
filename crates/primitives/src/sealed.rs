//! How the operations in envelopes are signed.
//!
//! An operation in an envelope is signed for that envelope alone: for the account that pays for it and for its number.
//! Such a signature is valid nowhere else, and a plain signature is not valid in an envelope. So bytes that were opened
//! cannot come back, neither as a plain transaction nor in another envelope.

use borsh::BorshSerialize;
use rayon::prelude::*;

use crate::envelope::{Enclosure, EnvelopeBytes, EnvelopeName, SEALED_AHEAD_MAX};
use crate::height::Height;
use crate::key::Signed;
use crate::typed_data::TypedData;
use crate::wallet::WalletKey;
use crate::{
    Body, Digest, Operation, PublicKey, SecretKey, Signature, SignedBy, Transaction, TransactionId, verify_all,
};

/// The name in the domain of typed data that is signed for an envelope.
pub const SEALED_DATA_NAME: &str = "Walras sealed";

/// The prefix of the signed body of an operation in an envelope.
const SIGNING_TAG: &[u8] = b"walras native sealed transaction v1\0";
const ID_CONTEXT: &str = "walras 2026 sealed transaction id v1";
const TYPED_ID_CONTEXT: &str = "walras 2026 sealed typed data transaction id v1";
const POLICY_ID_CONTEXT: &str = "walras 2026 sealed policy transaction id v1";

impl Body {
    /// The bytes that an ed25519 key signs of an operation in an envelope of a network.
    pub fn sealed_signing_bytes(&self, network: &Digest, within: &Enclosure) -> Vec<u8> {
        let mut bytes = SIGNING_TAG.to_vec();
        (network, within, self).serialize(&mut bytes).expect("writing to memory cannot fail");
        bytes
    }

    /// Signs with `key` for an envelope.
    pub fn sign_sealed(self, network: &Digest, within: &Enclosure, key: &SecretKey) -> Transaction {
        let signature = key.sign(&self.sealed_signing_bytes(network, within));
        Transaction::by_key(self, key.public(), signature)
    }

    /// Signs with the key of a wallet for an envelope.
    pub fn sign_sealed_typed(self, network: Digest, within: &Enclosure, key: &WalletKey) -> Transaction {
        let signature = key.sign(&self.sealed_hash(&network, within));
        Transaction { body: self, signed_by: SignedBy::TypedData { network, signature } }
    }

    /// The hash that a wallet signs of an operation in an envelope.
    pub fn sealed_hash(&self, network: &Digest, within: &Enclosure) -> [u8; 32] {
        TypedData::of(self).hash_under(SEALED_DATA_NAME, self.chain, &within.salt(network))
    }
}

impl Operation {
    /// Whether an envelope may hold it: orders, their replacements and cancels.
    pub fn is_sealable(&self) -> bool {
        matches!(
            self,
            Operation::CreateOffer { .. } | Operation::Replace(_) | Operation::Exact { .. } | Operation::Cancel(_)
        )
    }
}

impl Transaction {
    /// The envelope that it is, if it is one, and its name.
    pub fn envelope(&self) -> Option<(&EnvelopeBytes, EnvelopeName)> {
        let (Operation::Sealed(envelope), SignedBy::Key { signer, .. }) = (&self.body.operation, &self.signed_by)
        else {
            return None;
        };
        let enclosure = Enclosure { payer: self.body.account, sequence: self.body.sequence };
        Some((envelope, EnvelopeName { signer: *signer, enclosure }))
    }

    /// The id by which receipts and clients name it in an envelope. It is no id of a plain transaction.
    pub fn sealed_id(&self, within: &Enclosure) -> TransactionId {
        let mut bytes = borsh::to_vec(&(within, &self.body)).expect("writing to memory cannot fail");
        let (context, signer) = self.signed_by.named([ID_CONTEXT, TYPED_ID_CONTEXT, POLICY_ID_CONTEXT]);
        bytes.extend_from_slice(signer);
        Digest::of(context, &bytes)
    }

    /// The last height at which it may be in an envelope that a block at `height` opens.
    pub fn ends_too_late_in_envelope(&self, height: Height) -> bool {
        self.body.until.saturating_sub(height) > SEALED_AHEAD_MAX
    }
}

/// An operation in an envelope that an ed25519 key signed.
struct SealedByKey<'t> {
    network: &'t Digest,
    within: &'t Enclosure,
    body: &'t Body,
    signer: PublicKey,
    signature: Signature,
}

impl Signed for SealedByKey<'_> {
    fn signature(&self) -> (PublicKey, Signature) {
        (self.signer, self.signature)
    }

    fn signed_bytes(&self) -> Vec<u8> {
        self.body.sealed_signing_bytes(self.network, self.within)
    }
}

/// Verifies the signatures of operations in envelopes, on all threads of the current rayon pool; `true` where it is
/// valid for its envelope. Those of several keys for one account are not: its session keys sign.
pub fn verify_sealed(network: &Digest, operations: &[(Enclosure, &Transaction)]) -> Vec<bool> {
    let mut valid: Vec<bool> = operations
        .par_iter()
        .map(|(within, one)| match &one.signed_by {
            SignedBy::Key { .. } => true,
            SignedBy::TypedData { network: named, signature } => {
                signature.recover(&one.body.sealed_hash(named, within)) == Some(one.body.account)
            }
            SignedBy::Policy(_) => false,
        })
        .collect();
    let (mut places, mut keyed) = (Vec::new(), Vec::new());
    for (at, (within, one)) in operations.iter().enumerate() {
        if let SignedBy::Key { signer, signature } = one.signed_by {
            places.push(at);
            keyed.push(SealedByKey { network, within, body: &one.body, signer, signature });
        }
    }
    places.into_iter().zip(verify_all(&keyed)).for_each(|(at, holds)| valid[at] &= holds);
    valid
}
