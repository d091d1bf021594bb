//! What the ledger knows about the payment lane.

use std::net::SocketAddr;

use ledger::{LaneProof, LaneRegistration};
use primitives::{Amount, AssetId, Digest, PublicKey};

use super::{Proved, ReadError};

/// Registered keys of the payment lane with their proof; `None` on a chain without one.
pub type ProvedKeys = Option<(Vec<LaneRegistration>, LaneProof)>;

/// What the ledger knows about the payment lane.
pub trait LaneReads {
    /// The addresses of the shards of the payment lane's members, in the order of the genesis; empty if this node's
    /// operator names none.
    fn lane_addresses(&self) -> Vec<Vec<SocketAddr>>;

    /// Whether these shards speak TLS.
    fn lane_has_tls(&self) -> bool;

    /// The key of a member's shard in a lane epoch; `None` if it has none that the ledger still knows.
    fn lane_key(&self, epoch: u64, member: u8, shard: u16) -> Option<PublicKey>;

    /// An output that the ledger created in the payment lane; `None` if it did not, or its epoch is over.
    fn lane_output(&self, id: &Digest) -> Option<LaneOutputRead>;

    /// The board on which the members of the payment lane generated the group key of an epoch; `None` if they
    /// generated none.
    fn lane_board(&self, epoch: u64) -> Option<Vec<u8>>;

    /// The keys that members of the payment lane registered for epochs from `from` on, with their path to the state
    /// root; `None` on a chain without a payment lane.
    ///
    /// # Errors
    /// [`ReadError::Stopping`] if the tries will never reach the state.
    fn prove_registrations(&self, from: u64) -> Result<Proved<ProvedKeys>, ReadError>;

    /// Contested outputs of the payment lane without a verdict.
    fn lane_cases(&self) -> Vec<LaneCaseRead>;
}

/// An output that the ledger created in the payment lane.
#[derive(Clone, Copy, Debug)]
pub struct LaneOutputRead {
    /// Its home epoch.
    pub home: u64,
    /// The key that spends it.
    pub to: PublicKey,
    /// The asset.
    pub asset: AssetId,
    /// Units.
    pub amount: Amount,
}

/// A contested output of the payment lane.
#[derive(Clone, Debug)]
pub struct LaneCaseRead {
    /// The name of the output.
    pub output: Digest,
    /// Its home epoch.
    pub home: u64,
    /// The key of its owner.
    pub owner: PublicKey,
    /// The asset.
    pub asset: AssetId,
    /// Units.
    pub amount: Amount,
    /// The payments of it for which validators voted, as digest and encoding, once they are fixed.
    pub candidates: Option<Vec<(Digest, Vec<u8>)>>,
}
