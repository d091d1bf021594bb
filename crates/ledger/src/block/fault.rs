//! Why a block cannot be applied, and why a clearing that comes with it is refused.

use clearing::Violation as Wrong;
use primitives::{AssetId, Digest, Height, PoolKey};
use proofs::{Pair, Place};

use crate::terms::RULES_FLOOR;

/// Why a block cannot be applied. After [`Fault::Clearing`], [`Fault::Auctioneer`] and [`Fault::Conservation`] the
/// state may be half changed: stop, and recover from the log. After the others it is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The block is not the next one.
    #[error("block {got} does not follow height {height}")]
    Height {
        /// The ledger's height.
        height: Height,
        /// The block's height.
        got: Height,
    },
    /// The block builds on another history.
    #[error("block {height} builds on {got}, but the last block of this ledger is {parent}")]
    Parent {
        /// The block's height.
        height: Height,
        /// The ledger's last block.
        parent: Digest,
        /// The parent that the block names.
        got: Digest,
    },
    /// The block follows rules that this node does not.
    #[error(
        "block {height} follows rules {rules}, and this program {RULES_FLOOR} to {newest}: install a version of walras \
         for rules {rules}, and start again"
    )]
    Rules {
        /// The block's height.
        height: Height,
        /// Its rules.
        rules: u32,
        /// The newest rules that this node follows.
        newest: u32,
    },
    /// The block follows rules by whose number this program means something else.
    #[error(
        "block {height} follows rules {rules} of the manifest {meant}, and this program means something else by that \
         number: install the version of walras with this manifest, and start again"
    )]
    OtherRules {
        /// The block's height.
        height: Height,
        /// Its rules.
        rules: u32,
        /// The digest of what they mean.
        meant: Digest,
    },
    /// The opening keys that were given for the block are not one for each envelope that it opens.
    #[error("block {height}: it opens {opened} envelopes, and {got} opening keys are given: read its record again")]
    OpeningKeys {
        /// The block's height.
        height: Height,
        /// Envelopes that it opens.
        opened: usize,
        /// Keys that were given.
        got: usize,
    },
    /// An opening key that was given for the block does not open its envelope.
    #[error("block {height}: an opening key is not the committee's signature on the label of its envelope")]
    OpeningKey {
        /// The block's height.
        height: Height,
    },
    /// The clearing that was given for the block is wrong.
    #[error("block {height}: the given clearing is wrong: {violation}")]
    Attached {
        /// The block's height.
        height: Height,
        /// The first violation found.
        violation: AttachedViolation,
    },
    /// The solver refused the book.
    #[error("block {height}: {reason}")]
    Clearing {
        /// The block.
        height: Height,
        /// The solver's reason.
        reason: String,
    },
    /// The auctioneer pays out more of an asset than it received.
    #[error("block {height}: the auctioneer pays out {units} units of asset {asset} more than it received, stop")]
    Auctioneer {
        /// The block's height.
        height: Height,
        /// The asset.
        asset: AssetId,
        /// Units that are missing.
        units: u128,
    },
    /// Units appeared or vanished.
    #[error("block {height}: asset {asset}: issue {issued}, holdings {places:?}: units appeared or vanished, stop")]
    Conservation {
        /// The block's height.
        height: Height,
        /// The asset.
        asset: AssetId,
        /// The places that hold units, each with the change of what it holds.
        places: Vec<(&'static str, i128)>,
        /// Change of the units issued.
        issued: i128,
    },
    /// Wei appeared or vanished while contracts were executed.
    #[error("block {height}: accounts changed by {held} wei, {burnt} wei burnt: wei appeared or vanished, stop")]
    Wei {
        /// The block's height.
        height: Height,
        /// Change of the wei that accounts hold.
        held: i128,
        /// Burnt wei.
        burnt: i128,
    },
}

/// The first violation found in an attached clearing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachedViolation {
    /// A rule is violated that needs no marginal key.
    #[error(transparent)]
    Clearing(#[from] Wrong),
    /// The offers up to a marginal key sum to more than can exist.
    #[error(transparent)]
    Input(#[from] clearing::InputError),
    /// There are valuations although nothing is for sale.
    #[error("nothing is for sale, but the clearing has valuations or trades, or says that it is not full")]
    NothingForSale,
    /// The marginal key is not the place of the last offer that executes.
    #[error("the last offer of {pair:?} that executes is not at the marginal key {marginal:?}")]
    Marginal {
        /// The pair.
        pair: Pair,
        /// The key claimed.
        marginal: Place,
    },
    /// Fullness is claimed, but an offer that must execute in full does not.
    #[error("the offer of {pair:?} at {place:?} is below (1-mu) of the rate but not filled in full")]
    NotFull {
        /// The pair.
        pair: Pair,
        /// The offer's place.
        place: Place,
    },
    /// A pool is unknown or asleep, does not trade by the rule of pools, or trades less than it must in a full group.
    #[error("the pool {0:?} does not trade as the rule of pools says at these valuations, is unknown, or sleeps")]
    Pool(PoolKey),
    /// A claimed fill is of no exact order of the block, is out of order, moves other units than the rate says, is
    /// beyond the order's bound, or in a group that has no price or is not full.
    #[error("the exact order {id} of account {account} cannot be filled as the clearing says")]
    Exact {
        /// The account.
        account: primitives::Address,
        /// The number of its transaction.
        id: primitives::Sequence,
    },
    /// Fullness is denied, but the solver finds another clearing.
    #[error("the clearing says that it is not full, but it is not the one that the solver finds")]
    NotTheBest,
}
