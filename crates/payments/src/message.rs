//! The bytes that owners and validators sign.

use primitives::{Digest, PublicKey};

use crate::{HomeEpoch, OutputId};

/// The prefix of every signed byte string of the lane; the last byte is the version.
pub(crate) const TAG: &[u8; 12] = b"walras-lane\x01";

/// The subject of a signature. The number is part of the signed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StatementKind {
    /// An owner pays.
    Payment = 1,
    /// A validator has locked the inputs of payments, durably.
    Confirmation = 2,
    /// A validator has recorded certificates of payments, durably.
    Acknowledgement = 3,
    /// A validator has barred the candidates of a case, durably, and reports which it had accepted before.
    View = 4,
    /// A validator votes to halt the lane.
    Halt = 5,
    /// A validator has locked the inputs of payments in a tree of a broker, durably, except those it excludes.
    SharedConfirmation = 6,
    /// An owner asks which payment spends an output.
    SpenderQuery = 7,
    /// A registrar registers keys of an epoch.
    Registration = 8,
    /// A key's proof that its registrant has it.
    Possession = 9,
    /// A member deals in the key generation of an epoch.
    Dealing = 10,
}

const VIEW_CONTEXT: &str = "walras 2026 lane view v1";
const HALT_CONTEXT: &str = "walras 2026 lane halt v1";

/// The digest that a validator signs, in a tree of views, to report which payment of a contested output it had
/// accepted. There is one case of an output, and its candidates are fixed once: the output names both.
pub fn view_digest(case: &OutputId, paid: Option<&Digest>) -> Digest {
    let mut bytes = case.0.to_vec();
    paid.into_iter().for_each(|digest| bytes.extend(digest.0));
    Digest::of(VIEW_CONTEXT, &bytes)
}

/// The digest that a validator signs, in a tree of votes to halt, for this round of its epoch.
pub fn halt_digest(epoch: HomeEpoch, round: u64) -> Digest {
    Digest::of(HALT_CONTEXT, &[epoch.to_le_bytes(), round.to_le_bytes()].concat())
}

pub(crate) fn begin(kind: StatementKind, network: &Digest, epoch: HomeEpoch) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    bytes.extend(TAG);
    bytes.extend(network.0);
    bytes.extend(epoch.to_le_bytes());
    bytes.push(kind as u8);
    bytes
}

/// A home epoch of a network: whose keys sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneHome {
    /// The identity of the network.
    pub network: Digest,
    /// The epoch.
    pub epoch: HomeEpoch,
}

/// The claimed subject of answers.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// Confirmation or acknowledgement.
    pub kind: StatementKind,
    /// The owner of the payment's inputs, which determines the shard.
    pub owner: &'a PublicKey,
    /// The payment's digest.
    pub digest: &'a Digest,
}

/// The bytes that the owner of a payment's inputs signs.
pub fn owner_message(network: &Digest, home: HomeEpoch, payment: &Digest) -> Vec<u8> {
    let mut bytes = begin(StatementKind::Payment, network, home);
    bytes.extend(payment.0);
    bytes
}

/// The bytes that an owner signs to ask which payment spends an output.
pub(crate) fn query_message(network: &Digest, home: HomeEpoch, output: &OutputId) -> Vec<u8> {
    let mut bytes = begin(StatementKind::SpenderQuery, network, home);
    bytes.extend(output.0);
    bytes
}

/// The bytes that a validator signs: the root of a tree over digests of payments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootHeader {
    /// The identity of the network.
    pub network: Digest,
    /// The home epoch whose keys sign.
    pub epoch: HomeEpoch,
    /// The validator's index in the committee.
    pub validator: u8,
    /// The shard of the validator.
    pub shard: u16,
    /// Confirmation or acknowledgement: all leaves of a tree have the same kind.
    pub kind: StatementKind,
    /// Number of leaves.
    pub size: u32,
    /// Length of the signer's log when the tree was closed. Everything that the tree states is durable below it.
    pub position: u64,
    /// The root.
    pub root: Digest,
}

impl RootHeader {
    /// The signed bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = begin(self.kind, &self.network, self.epoch);
        bytes.push(self.validator);
        bytes.extend(self.shard.to_le_bytes());
        bytes.extend(self.size.to_le_bytes());
        bytes.extend(self.position.to_le_bytes());
        bytes.extend(self.root.0);
        bytes
    }
}
