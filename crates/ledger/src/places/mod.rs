//! The places of custody: where units of assets are, and what each place does.
//!
//! Every unit of an asset is in one place: spendable balances, resting offers, remainders of wei, the escrow of the
//! payment lane, stakes, deposits and bonds at venues, reserves of pools. A place founds its state from the genesis,
//! checks and applies the operations that concern it, says what it holds, and writes its part of the state root, of
//! snapshots and of the genesis digest ([`Custody`]). After each block the changes of all places sum to the change of
//! what is issued. The *charter*, the *keys* and the *listings* hold no units: they are places because they have
//! everything else that a place has. So are the *controls* and the *seals*.
//!
//! The list at the end of this file is the only one. A new place is a folder, and its line in the list. What clients
//! see of it (its root part, the values that it proves, the reasons for which it refuses) is in `proofs`.
//!
//! **Tags.** Root parts, chunks of snapshots, sections of a genesis and reasons of refusals begin with the tag of their
//! place. A tag is never used again for anything else. A proof names the parts that a state has, so that a new place
//! changes neither the proofs nor the chunks of the others.

pub(crate) mod accounts;
pub(crate) mod assets;
pub(crate) mod bridge;
pub(crate) mod charter;
pub(crate) mod contracts;
pub(crate) mod controls;
mod custody;
pub(crate) mod keys;
mod list;
pub(crate) mod offers;
pub(crate) mod pools;
pub(crate) mod scope;
pub(crate) mod seals;
pub(crate) mod shared_map;
pub(crate) mod stakes;
pub(crate) mod sums;
pub(crate) mod tags;
#[cfg(test)]
mod trial;
pub(crate) mod unsound;
pub(crate) mod venues;

use std::sync::Arc;

use primitives::{Address, Amount, AssetId, Digest};
use proofs::{Refusal, RootPart};

use crate::places::sums::{Credit, Sums};
use crate::places::unsound::AuditError;
use crate::terms::{Genesis, GenesisError};
use accounts::Accounts;
use assets::Listings;
use bridge::LaneBridge;
use charter::ChainCharter;
use contracts::Contracts;
use controls::Controls;
use custody::bytes_of;
pub(crate) use custody::{
    Audited, ChunkFault, Custody, Drawn, Moved, ReadChunks, Readiness, Restored, Rules, Turn, in_place, tagged,
};
use keys::Keys;
use offers::OrderBook;
use pools::Pools;
use seals::Seals;
use stakes::Stakes;
use tags::{CHAIN, END, rise};
use venues::Venues;

/// What bonds are called where sums are reported.
const BONDS: &str = "bonds";

/// What the places did in a block.
#[derive(Default)]
pub(crate) struct Kept {
    /// Units paid to accounts.
    pub credits: Vec<Credit>,
    /// Units of asset 0 that are burnt.
    pub burnt: Amount,
    /// Changes of what the places hold.
    pub held: PlaceSums,
    pub changes: PlaceChanges,
}

// In the order of their tags. A place can tell those behind it what it did in a block.
list::places! {
    accounts Accounts: Accounts,
    book Offers: OrderBook,
    contracts Contracts: Contracts,
    lane Bridge: Option<Arc<LaneBridge>>,
    validators Stakes: Arc<Stakes>,
    venues Venues: Option<Arc<Venues>>,
    pools Pools: Option<Arc<Pools>>,
    charter Charter: Arc<ChainCharter>,
    keys Keys: Keys,
    listings Listings: Arc<Listings>,
    controls Controls: Arc<Controls>,
    seals Seals: Option<Arc<Seals>>,
    #[cfg(test)]
    trial Trial: trial::Trial,
}
