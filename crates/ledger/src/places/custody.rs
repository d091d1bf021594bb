//! What every place of custody does, and what it may know of its chain and of the block.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use payments::BridgeEvent;
use primitives::{Address, Amount, AssetControl, AssetId, Digest, Height, Sequence, Superblock, Transaction};
use proofs::{Asset, Refusal, RulesReadiness, Schedule, SettledFills, Validators};

use super::accounts::Accounts;
use super::assets::Listings;
use super::bridge::LaneAssets;
use super::charter::Coming;
use super::controls::Controls;
use super::keys::Rekeyed;
use super::seals::{Acting, OpenedNames};
use crate::places::sums::{Credit, Sums};
use crate::places::unsound::AuditError;
use crate::terms::{Genesis, GenesisError, Limits, Parameters};

/// A place of custody.
pub(crate) trait Custody: Sized {
    /// Its tag: in root parts, chunks, and sections of a genesis.
    const TAG: u8;
    /// The place's name where sums are reported.
    const NAME: &'static str;
    /// What an operation does to it.
    type Edit<'a>: Copy + Debug;
    /// What changed in a block: input for its tries.
    type Change: Clone + Debug + Default;
    /// Its tries.
    type Tries: Clone + Default;
    /// Reads its chunks.
    type Reader: ReadChunks<Self>;

    /// Its state at the genesis; `last_block` is the digest of the genesis.
    fn found(genesis: &Genesis, last_block: Digest) -> Self;

    /// What its part of a genesis adds to the digest of the genesis; `None` where a genesis does not have the part.
    fn section(_: &Genesis) -> Option<Vec<u8>> {
        None
    }

    /// The fault of its part of a genesis with these assets, if there is one.
    fn genesis_fault(_: &Genesis) -> Option<GenesisError> {
        None
    }

    /// Units that it holds at the genesis, each with an owner to name in errors.
    fn units(_: &Genesis) -> Box<dyn Iterator<Item = (Address, AssetId, Amount)> + '_> {
        Box::new(std::iter::empty())
    }

    /// Checks an operation against the state before a block.
    fn check(&self, _: &Rules, _: Address, _: Self::Edit<'_>) -> Result<(), Refusal> {
        Ok(())
    }

    /// Applies a block's accepted operations, whose order does not matter. What `turn` says to later places is added.
    fn apply(&mut self, _: &mut Turn<'_>, _: &[(Address, Self::Edit<'_>)]) -> Moved<Self::Change> {
        Moved::default()
    }

    /// All of it, as input for empty tries.
    fn whole(&self) -> Self::Change;

    /// Applies a change to the tries.
    fn follow(tries: &mut Self::Tries, change: &Self::Change);

    /// Its part of the state root; `None` if the chain does not have the place.
    fn part(tries: &mut Self::Tries) -> Option<Digest>;

    /// Its state in canonical chunks, in order, each behind its tag ([`tagged`]).
    fn chunks(&self) -> Box<dyn Iterator<Item = Vec<u8>> + Send + '_>;

    /// Number of entries in its chunks.
    fn entries(&self) -> u64;

    /// Units that it holds, by asset.
    ///
    /// # Errors
    /// [`AuditError`] if it violates an invariant.
    fn held(&self, audited: &Audited<'_>) -> Result<Vec<u128>, AuditError>;

    /// Units that it holds as bonds beside these, by asset.
    fn bonds(&self, audited: &Audited<'_>) -> Vec<u128> {
        audited.zero()
    }
}

/// Reads the chunks of a place.
pub(crate) trait ReadChunks<P>: Default {
    /// Reads the next chunk, without its tag.
    fn push(&mut self, bytes: &[u8]) -> Result<(), ChunkFault>;

    /// Number of entries read.
    fn entries(&self) -> u64;

    /// The place, after its last chunk.
    fn finish(self, chain: &Restored) -> Result<P, AuditError>;
}

/// Why a chunk is refused.
#[derive(Debug)]
pub(crate) enum ChunkFault {
    Undecodable(std::io::Error),
    OutOfPlace,
    Unsound(AuditError),
}

impl From<std::io::Error> for ChunkFault {
    fn from(error: std::io::Error) -> ChunkFault {
        ChunkFault::Undecodable(error)
    }
}

/// Refuses a chunk that a snapshot does not have at this place.
pub(crate) fn in_place(holds: bool) -> Result<(), ChunkFault> {
    if holds { Ok(()) } else { Err(ChunkFault::OutOfPlace) }
}

/// What a restored place may know of its chain.
pub(crate) struct Restored {
    /// Number of assets.
    pub assets: usize,
    /// Their issuers.
    pub issuers: Vec<Address>,
    pub limits: Limits,
}

/// What an audit of a place may know of the chain.
pub(crate) struct Audited<'a> {
    pub assets: &'a [Asset],
    pub accounts: &'a Accounts,
    pub height: Height,
    /// Wei of a unit of asset 0.
    pub wei_per_unit: u64,
    pub schedule: Schedule,
}

impl Audited<'_> {
    /// No units of any asset.
    pub(crate) fn zero(&self) -> Vec<u128> {
        vec![0; self.assets.len()]
    }
}

/// What operations are checked by.
pub(crate) struct Rules {
    pub chain: u64,
    /// Height of the next block.
    pub height: Height,
    pub limits: Limits,
}

/// A block while the places apply it, and what they say to those behind them in the list.
pub(crate) struct Turn<'a> {
    pub block: &'a Superblock,
    pub limits: &'a Limits,
    /// For each native transaction, the reason why it is refused, if it is.
    pub refusals: &'a [Option<Refusal>],
    /// The native transactions.
    pub transactions: &'a [&'a Transaction],
    /// Whether stakes are paid back in this block.
    pub pays_back: bool,
    /// Whether a node makes blocks alone.
    pub is_alone: bool,
    /// How many assets there are before the block.
    pub assets: usize,
    /// Their records.
    pub records: &'a [Asset],
    /// The fewest least units that the chain's band permits.
    pub least_units: Amount,
    /// The parameters in force.
    pub now: Parameters,
    /// Seats of a committee.
    pub committee: u32,
    /// What acts from the next height on.
    pub entering: Option<Coming>,
    /// The listings before the block, if proposals may be judged in it.
    pub listings: Option<Arc<Listings>>,
    /// The terms of assets in the payment lane before the block, likewise.
    pub lane_assets: Option<Arc<LaneAssets>>,
    /// The stake of each account, if something is proposed or counted.
    pub stakes: BTreeMap<Address, Amount>,
    /// Assets that the block lists, by number.
    pub listed: Vec<Asset>,
    /// Those of them that their issuers control, with what they control.
    pub controlled: Vec<(AssetId, AssetControl, Address)>,
    /// What issuers control, and whom they have frozen, before the block.
    pub controls: Arc<Controls>,
    /// The committee that acts at the next height, on a chain with seals.
    pub acting: Option<Acting>,
    /// The names of the envelopes that the last blocks have opened, if the block changes them.
    pub names: Option<OpenedNames>,
    /// Who cannot follow the confirmed rules, at a boundary.
    pub readiness: Readiness,
    /// The committee that the block draws, at a boundary.
    pub drawn: Option<Drawn>,
    /// Accounts that lose a part of their stakes for a contradiction in another place.
    pub convicted: Vec<Address>,
    /// Accounts whose stakes another place may still convict.
    pub answering: BTreeSet<Address>,
    /// Heights that the stakes of these accounts wait for that place at most.
    pub answering_heights: Height,
    /// Events at the bridge to the payment lane.
    pub lane: Vec<BridgeEvent>,
    /// Operations of these senders and numbers that pay and do nothing.
    pub void: Vec<(Address, Sequence)>,
    /// Changes of accounts' keys that act with the block.
    pub rekeyed: Vec<Rekeyed>,
    /// Settles of venues that counted.
    pub settled: Vec<SettledFills>,
    /// Accounts that are concerned though their balances may not change, some of them twice.
    pub concerned: Vec<Address>,
}

/// Whose nodes may be unable to follow the confirmed rules; see the charter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readiness {
    /// Accounts that are not ready.
    pub unready: BTreeMap<Address, RulesReadiness>,
    /// Whether the confirmed rules needed n − f seats only.
    pub is_patient: bool,
}

impl Readiness {
    /// Whether the node of an account can follow the confirmed rules.
    pub fn of(&self, account: &Address) -> RulesReadiness {
        self.unready.get(account).copied().unwrap_or(RulesReadiness::Ready)
    }
}

/// What a boundary drew.
pub(crate) struct Drawn {
    /// The registry before the block.
    pub before: Validators,
    /// The accounts of the new committee.
    pub seats: Vec<Address>,
}

/// What a place did in a block outside itself.
#[derive(Default)]
pub(crate) struct Moved<C> {
    /// Units paid to accounts.
    pub credits: Vec<Credit>,
    /// Units of asset 0 that are burnt.
    pub burnt: Amount,
    /// Change of what it holds.
    pub held: Sums,
    /// Change of what it holds as bonds.
    pub bonds: Sums,
    pub change: C,
}

/// A chunk behind its tag.
pub(crate) fn tagged(tag: u8, value: &impl borsh::BorshSerialize) -> Vec<u8> {
    borsh::to_vec(&(tag, value)).expect("writing to memory cannot fail")
}

pub(super) fn bytes_of(value: &impl borsh::BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("writing to memory cannot fail")
}
