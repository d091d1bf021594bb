//! What everybody sees of an envelope, and its identity.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, BoxSize, Digest, Enclosure, EnvelopeBytes, EnvelopeName, Height, PublicKey, Sequence};

const LABEL_CONTEXT: &str = "walras 2026 sealed label v1";

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
    /// The terms of an envelope in a block.
    pub fn of(network: Digest, envelope: &EnvelopeBytes, name: &EnvelopeName, until: Height) -> EnvelopeTerms {
        let EnvelopeName { signer, enclosure: Enclosure { payer, sequence } } = *name;
        EnvelopeTerms { network, signer, key: envelope.key, payer, sequence, until }
    }

    /// The label of an envelope with these terms, size and point.
    pub fn label(&self, size: BoxSize, point: &[u8; 96]) -> Label {
        let EnvelopeTerms { network, signer, key, payer, sequence, until } = self;
        // 32 + 32 + 8 + 20 + 8 + 8 + 1 + 96 bytes.
        Label(Digest::of_short::<205>(LABEL_CONTEXT, &(network, signer, key, payer, sequence, until, size, point)))
    }
}
