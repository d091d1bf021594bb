//! Envelopes as bytes, and how the operations in them are signed.
//!
//! An envelope hides signed operations until its block is decided (crate `sealing`). What it is bound to is here. An
//! operation in an envelope is signed for that envelope alone: for the account that pays for it and for its number.
//! Such a signature is valid nowhere else, and a plain signature is not valid in an envelope. So bytes that were opened
//! cannot come back, neither as a plain transaction nor in another envelope.

use std::io::{Error, ErrorKind, Read, Result, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use rayon::prelude::*;

use crate::height::Height;
use crate::key::Signed;
use crate::sequence::Sequence;
use crate::typed_data::TypedData;
use crate::wallet::WalletKey;
use crate::{
    Address, Body, Digest, Operation, PublicKey, SecretKey, Signature, SignedBy, Transaction, TransactionId, verify_all,
};

/// The first rules whose blocks open envelopes.
pub const RULES_OF_ENVELOPES: u32 = 21;
/// What an envelope costs, in fees, beside one for each KiB of its box: its key, its opening, and up to 32 operations
/// that may turn out to be garbage.
pub const SEALED_WEIGHT: u64 = 32;
/// How many heights ahead an envelope, and what is in it, may end.
pub const SEALED_AHEAD_MAX: u64 = 256;
/// Bytes of an envelope's point.
pub const SEALED_POINT_BYTES: usize = 96;
/// The name in the domain of typed data that is signed for an envelope.
pub const SEALED_DATA_NAME: &str = "Walras sealed";

/// The prefix of the signed body of an operation in an envelope.
const SIGNING_TAG: &[u8] = b"walras native sealed transaction v1\0";
const SALT_CONTEXT: &str = "walras 2026 sealed salt v1";
const ID_CONTEXT: &str = "walras 2026 sealed transaction id v1";
const TYPED_ID_CONTEXT: &str = "walras 2026 sealed typed data transaction id v1";
const POLICY_ID_CONTEXT: &str = "walras 2026 sealed policy transaction id v1";

/// How large a box is. Who sees an envelope sees this, and not how many operations it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum BoxSize {
    /// 512 bytes: two offers.
    Small,
    /// 2,048 bytes: eleven.
    Middle,
    /// 8,192 bytes: 32.
    Large,
}

/// An envelope as its block has it. Its box is as long as its size says; whether its point is one, the crate `sealing`
/// says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopeBytes {
    /// The number of the committee's key that opens it.
    pub key: u64,
    /// A point of G2, compressed.
    pub point: [u8; SEALED_POINT_BYTES],
    size: BoxSize,
    sealed: Box<[u8]>,
}

/// The envelope for which an operation in it is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Enclosure {
    /// The account that pays for the envelope.
    pub payer: Address,
    /// The number of the envelope.
    pub sequence: Sequence,
}

/// What nobody else has: of several envelopes with one name one is opened, ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct EnvelopeName {
    /// The key that signs the envelope.
    pub signer: PublicKey,
    /// What its operations are signed for.
    pub enclosure: Enclosure,
}

impl BoxSize {
    /// All, the smallest first.
    pub const ALL: [BoxSize; 3] = [BoxSize::Small, BoxSize::Middle, BoxSize::Large];

    /// Bytes of a box.
    pub const fn bytes(self) -> usize {
        match self {
            BoxSize::Small => 512,
            BoxSize::Middle => 2_048,
            BoxSize::Large => 8_192,
        }
    }
}

impl EnvelopeBytes {
    /// An envelope that is sealed to the key of this number; `None` if no box has so many bytes.
    pub fn new(key: u64, point: [u8; SEALED_POINT_BYTES], sealed: Box<[u8]>) -> Option<EnvelopeBytes> {
        let size = BoxSize::ALL.into_iter().find(|size| size.bytes() == sealed.len())?;
        Some(EnvelopeBytes { key, point, size, sealed })
    }

    /// The size of its box.
    pub fn size(&self) -> BoxSize {
        self.size
    }

    /// Its box.
    pub fn sealed(&self) -> &[u8] {
        &self.sealed
    }
}

impl BorshSerialize for EnvelopeBytes {
    fn serialize<W: Write>(&self, to: &mut W) -> Result<()> {
        (self.key, self.size, SEALED_POINT_BYTES as u32, self.point).serialize(to)?;
        self.sealed.serialize(to)
    }
}

impl BorshDeserialize for EnvelopeBytes {
    fn deserialize_reader<R: Read>(from: &mut R) -> Result<EnvelopeBytes> {
        let wrong = |why: &str| Err(Error::new(ErrorKind::InvalidData, why));
        let (key, size, length) = <(u64, BoxSize, u32)>::deserialize_reader(from)?;
        if length as usize != SEALED_POINT_BYTES {
            return wrong("the point of an envelope has 96 bytes");
        }
        let point = BorshDeserialize::deserialize_reader(from)?;
        if u32::deserialize_reader(from)? as usize != size.bytes() {
            return wrong("the box of an envelope has 512, 2048 or 8192 bytes, as its size says");
        }
        let mut sealed = vec![0; size.bytes()].into_boxed_slice();
        from.read_exact(&mut sealed)?;
        Ok(EnvelopeBytes { key, point, size, sealed })
    }
}

impl Enclosure {
    /// The salt in the domain of typed data that is signed for this envelope of a network.
    pub fn salt(&self, network: &Digest) -> Digest {
        Digest::of_short::<60>(SALT_CONTEXT, &(network, self))
    }
}

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
        let (context, signer) = match &self.signed_by {
            SignedBy::Key { signer, .. } => (ID_CONTEXT, &signer.0[..]),
            SignedBy::TypedData { network, .. } => (TYPED_ID_CONTEXT, &network.0[..]),
            SignedBy::Policy(_) => (POLICY_ID_CONTEXT, &[][..]),
        };
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
