//! What everybody sees of an envelope, and its identity.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Digest, Height, PublicKey, Sequence};

const LABEL_CONTEXT: &str = "walras 2026 sealed label v1";

/// How large a box is. Who sees an envelope sees this, and not how many operations it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum BoxSize {
    /// 512 bytes: some three orders.
    Small,
    /// 2,048 bytes: some twelve.
    Middle,
    /// 8,192 bytes: 32 orders.
    Large,
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

/// What everybody sees of an envelope beside its point and box; its sender signs all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeTerms {
    /// The network.
    pub network: Digest,
    /// The ed25519 key that signs the envelope.
    pub signer: PublicKey,
    /// The number of the committee's key.
    pub key: u64,
    /// The account that pays for it.
    pub payer: Address,
    /// Its number among the transactions of the signer.
    pub sequence: Sequence,
    /// The last height that may hold it.
    pub until: Height,
}

/// The identity of an envelope, which the committee signs to open it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Label(pub Digest);

impl EnvelopeTerms {
    /// The label of an envelope with these terms, size and point.
    pub fn label(&self, size: BoxSize, point: &[u8; 96]) -> Label {
        let EnvelopeTerms { network, signer, key, payer, sequence, until } = self;
        // 32 + 32 + 8 + 20 + 8 + 8 + 1 + 96 bytes.
        Label(Digest::of_short::<205>(LABEL_CONTEXT, &(network, signer, key, payer, sequence, until, size, point)))
    }
}
