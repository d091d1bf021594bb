//! Envelopes: orders that nobody reads before the block that holds them is decided.
//!
//! Validators see all plain orders of a batch before they propose their own. That is a *last look*, which uniform
//! prices do not remove. A client may therefore encrypt a list of signed operations to the committee: an [`Envelope`].
//! Once a block is decided, enough seats together make the key of each envelope in it. What is in the envelopes then
//! goes into the batch of that very block.
//!
//! This crate is the cryptography, and has no state: sealing, opening keys and their shares, opening. Who makes keys
//! when, and what opened operations do, is decided elsewhere.
//!
//! # The scheme
//!
//! It is identity-based encryption (Boneh and Franklin: Identity-Based Encryption from the Weil Pairing, 2001) over
//! BLS12-381 with an identity for each envelope, its *label*. The committee's BLS signature on the label is the key: it
//! is unique, has 48 bytes, and all can check it.
//!
//! - *Label*. L is a hash of network, signer, number of the committee's key, payer, sequence number, last height, size
//!   and U ([`EnvelopeTerms::label`]). All of it is signed by the signer, and is seen by a validator before it votes.
//! - *Seal*. The client draws 32 bytes. r is a scalar out of a hash of them and the text; U = r·G2. The secret is
//!   K = H(e(r·H₁(L), P) · L), where P is the committee's key. The box is the text XOR the stream of K.
//! - *Shares*. Each holder signs the label with its share of s. Any t shares are combined into the key ([`combine`]).
//! - *Open*. The key is s·H₁(L), where s is the committee's secret. e(s·H₁(L), U) is the same element of the target
//!   group.
//! - *Text*. A count of at most 32, signed operations behind their lengths, and zeros up to the size of the box. A
//!   text that is not of this form is garbage: its sender pays for it, and it does nothing.
//! - *Inside*. Each operation is signed for its envelope: for the payer and the number ([`primitives::Enclosure`]). An
//!   ed25519 key signs other bytes than those of a plain transaction. A wallet signs typed data with another name and
//!   salt in its domain. So opened bytes count nowhere else, and what is plain counts in no envelope.
//!
//! H₁ is RFC 9380 for G1 under a tag that signs nothing else. The element of the target group is hashed as 576 bytes:
//! the twelve coefficients big-endian, the lowest first. Libraries disagree in this order; `docs/sealed-vectors.json`
//! has each intermediate value.
//!
//! # Properties
//!
//! 1. *One envelope, one key.* An opening key opens the envelope of its label and says nothing of another's. Who is not
//!    in a decided block stays closed, though other envelopes of the same height are opened.
//! 2. *Nobody else signs her label.* A label names the signer. The same box under another key, account, number or
//!    height has another label, whose key opens nothing.
//! 3. *A key is right or wrong for all.* It is checked by one pairing, many of one committee at once ([`check_keys`]).
//! 4. *The same bytes.* Sealing the same text with the same 32 bytes makes the same envelope: a retry shows nothing.
//! 5. *All points are checked*: in the subgroup, and not the identity.
//!
//! There is no tag over the box: the opening key is unique, the signer signs all bytes, and a text that does not parse
//! is garbage. Chosen ciphertexts help nobody, since a label binds U and the signer: an envelope made from another's
//! has another label. The key generation lets an adversary bias the group's key a little. Its part of the secret
//! divides out of the pairing, so it does not help to open.
//!
//! # Deviations from the paper
//!
//! - The pairing's bytes are hashed together with the label.
//! - r comes from the text too: who draws the same bytes twice by mistake shows no XOR of two texts.
//!
//! # Attacks
//!
//! | attack | why it fails |
//! |---|---|
//! | the header of an envelope under a stranger's key, in an earlier block, to have it opened | the label names the signer |
//! | the same U for another box, or another box for the same U | the label names U; the box is signed |
//! | an opening key of another envelope, network or committee | another label, or another P |
//! | U outside the subgroup, or the identity | refused before a vote, by the same check here and in all clients |
//! | an opening key that is the identity, or outside the subgroup | refused |
//! | keys that are wrong one by one and right in sum | the weights are a hash of all labels and keys |
//! | a text that is longer than its count says, or is followed by anything but zeros | garbage |
//! | sizes that tell how many orders there are | three sizes; who cares sends cover |

mod curve;
mod envelope;
mod keys;
mod label;
mod shares;
mod text;

#[cfg(test)]
mod tests;

pub use curve::SEALING_TAG;
pub use envelope::{Envelope, seal};
pub use keys::{OpeningKey, SealingKey, check_keys};
pub use label::{EnvelopeTerms, Label};
pub use primitives::BoxSize;
pub use shares::{SealShare, combine};
pub use text::{SEALED_OPERATIONS_MAX, SealedText};

/// Why something sealed is not as it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealFault {
    /// A point is not one.
    #[error("this is no point of the subgroup, or it is the identity")]
    Point,
    /// A box has another size.
    #[error("a box has 512, 2048 or 8192 bytes, as its size says")]
    Box,
    /// The text does not fit into the largest box.
    #[error("the operations and their lengths have {0} bytes, and the largest box holds 8192: seal fewer at once")]
    TooLong(usize),
    /// There are too many operations.
    #[error("an envelope holds at most {SEALED_OPERATIONS_MAX} operations, these are {0}: seal the others apart")]
    TooMany(usize),
    /// An opening key is not of this label and committee.
    #[error("the opening key is not the committee's signature on the label")]
    Key,
    /// A share of the secret is none.
    #[error("the share of the secret is zero, or not below the order of the group")]
    Share,
    /// What was opened is no text.
    #[error("the envelope holds no operations: it is garbage")]
    Garbage,
}
