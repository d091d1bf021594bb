//! The replicated state machine: takes superblocks, returns receipts and roots.
//!
//! The hot state ([`Ledger`]) is laid out for millions of accounts and offers and is changed by [`Ledger::apply`].
//! The Merkle tries ([`Roots`]) follow it from the [`Changes`] that each block returns, so that hashing can run in
//! parallel with the next block. Neither uses a clock, a disk or a socket.
//!
//! `footprint` is the one definition of what each operation means. The flow of a block (`apply`): `filter` (which
//! transactions count) → `orders` (what they ask for) → clearing, or the check of an `attached` one → `settle` (the
//! books) → `places` (the payment lane, stakes, venues) → `effects` (the accounts) → `contracts` (Ethereum
//! transactions) → `changes` → `roots`. Where units are, and what is signed of it, stands in `places`, one folder each.

mod apply;
mod attached;
mod audit;
mod changes;
pub mod contracts;
mod effects;
mod exacts;
mod fault;
mod filter;
mod footprint;
mod foundation;
mod genesis;
mod limits;
mod orders;
mod places;
mod reservations;
mod restart;
mod roots;
mod scope;
mod sessions;
mod settle;
mod snapshot;
mod spending;
mod sums;
mod time;
mod unsound;

pub use apply::{Applied, Signatures, Stage};
pub use attached::{Attached, AttachedTrade};
pub use audit::Audit;
pub use changes::Changes;
pub use fault::{AttachedViolation, Fault};
pub use genesis::{DEVELOPERS_CHAIN, Genesis, GenesisError, Listing, Membership, RULES, usual_fee};
pub use limits::{
    ACCUSATIONS_PER_SUB_BLOCK, BLOCK_BYTES_MAX, EXACTS_PER_SUB_BLOCK, LANE_CHECKS_PER_SUB_BLOCK,
    LANE_DUTY_CHECKS_PER_SUB_BLOCK, Limits, Quota, QuotaKind, SESSION_ENDS_PER_SUB_BLOCK, STAKES_PER_SUB_BLOCK,
    TYPED_DATA_PER_SUB_BLOCK, USUAL_BLOCK_GAS, VOTES_BYTES_MAX, quotas_of, votes_bytes,
};
pub use places::accounts::{Account, Accounts, SHARDS, Shard};
pub use places::bridge::{
    BridgeChange, LaneAsset, LaneBls, LaneBridge, LaneOutflow, LaneOutput, LaneRegistration, LaneTerms,
};
pub use places::offers::{ENDS_MAX, Edit, LEAST_UNITS, LIFE_MAX, OrderBook, PairChange, PairOffers};
pub use places::pools::{
    AWAKE, POOLS_MAX, PoolTerms, Pools, SHARES_MAX, SHARES_NEW, SHARES_OF_NOBODY, is_asleep, pool_cost, pool_keeps,
    pool_pays,
};
pub use places::slots::SLOT_OFFERS_MAX;
pub use places::venues::{VenueTerms, Venues};
/// The values that the ledger computes with and proves, and the checks of its proofs.
pub use proofs::{
    AccountProof, AccountSessions, AccountState, Asset, AssetProof, Batch, BlockReceipts, BustGuilt, BustReason,
    Cancelled, ClaimedId, DepositId, EndReason, EndedOffer, EthereumReceiptProof, EvmRecord, ExactOutcome, ExactReason,
    ExactRequest, ExactTrade, Fill, FillReason, FillVerdict, FilledId, FilledOrder, HoldingId, LaneProof, LeavingBond,
    LeavingDeposit, Member, ModifiedProof, NO_END, Offer, OfferProof, Outcome, Pair, PairTrade, Place, PoolFill,
    PoolProof, PoolRecord, PoolRecordId, Pooled, ProofFault, ReceiptProof, ReceiptsParts, ReceiptsTrie, Refusal,
    Replaced, Rest, RootPart, RootParts, SEQUENCE_WINDOW, SESSIONS_MAX, Schedule, SessionBudget, SessionRecord,
    SettledFills, SettlesProof, SlotProof, Terms, Traded, TradingKey, TradingKeyId, Validator, Validators,
    ValidatorsProof, VenueDeposit, VenueMoment, VenueProof, VenueRecord, VenueRecordId, Window, WindowError,
    account_state_digest, asset_digest, offer_value, outcome_root, outcomes_by_id, with_settles,
};
pub use reservations::{Reservations, ReserveError};
pub use restart::{Restart, RestartError, RestartedLane};
pub use roots::Roots;
pub use sessions::Precedence;
pub use snapshot::{Restore, Snapshot, SnapshotError};
pub use spending::spending;
pub use time::{BlockClock, TIME_MAX_MS};
pub use unsound::AuditError;

use primitives::{Address, Amount, Digest, Fraction, Height, SessionSlot};

use crate::contracts::{Contracts, EvmEngine, History, found_deployer, found_weth9};
use crate::places::Places;
use crate::places::slots::SlotOffers;

/// The hot state of the exchange after a block.
///
/// A clone shares its memory with the original until either is changed: checkpoints are written from a clone.
#[derive(Clone)]
pub struct Ledger {
    chain: u64,
    fee: Amount,
    epsilon: Fraction,
    mu: Fraction,
    limits: Limits,
    height: Height,
    last_block: Digest,
    time_ms: u64,
    assets: Vec<Asset>,
    /// Where the units of the assets are.
    places: Places,
    /// The offers of session keys; derived.
    slots: SlotOffers,
    /// Executes contracts; not part of the state.
    engine: EvmEngine,
    /// What Ethereum saw at the last heights; not part of the state.
    history: History,
    /// Whether the book holds its maximum of resting offers and accepts no more.
    is_book_full: bool,
    /// Whether blocks may edit accounts; set by the genesis, not part of a checkpoint.
    is_developers: bool,
}

impl Ledger {
    /// The state at height 0.
    ///
    /// # Errors
    /// [`GenesisError`] names the error of the genesis.
    pub fn new(genesis: &Genesis) -> Result<Ledger, GenesisError> {
        let assets = genesis.issued_assets()?;
        let (limits, last_block) = (genesis.limits, genesis.digest());
        let mut places = Places::found(genesis, last_block);
        if limits.has_contracts() {
            found_weth9(&mut places.accounts, &mut places.contracts);
            if genesis.is_developers {
                found_deployer(&mut places.accounts, &mut places.contracts);
            }
        }
        Ok(Ledger {
            chain: genesis.chain,
            fee: genesis.fee,
            epsilon: genesis.epsilon,
            mu: genesis.mu,
            limits,
            height: 0,
            last_block,
            time_ms: 0,
            assets,
            places,
            slots: SlotOffers::default(),
            engine: EvmEngine::default(),
            history: History::default(),
            is_book_full: false,
            is_developers: genesis.is_developers,
        })
    }

    /// Adds the settings that only the genesis has to a state that was restored from a checkpoint.
    pub fn under(self, genesis: &Genesis) -> Ledger {
        Ledger { is_developers: genesis.is_developers, ..self }
    }

    /// Whether this is a developers' chain, whose blocks may edit accounts.
    pub fn is_developers(&self) -> bool {
        self.is_developers
    }

    /// Height of the last block applied; 0 at genesis.
    pub fn height(&self) -> Height {
        self.height
    }

    /// Digest of the last block applied; of the genesis at height 0.
    pub fn last_block(&self) -> Digest {
        self.last_block
    }

    /// Time of the last block applied, milliseconds since 1970; 0 at genesis.
    pub fn time_ms(&self) -> u64 {
        self.time_ms
    }

    /// The chain's number.
    pub fn chain(&self) -> u64 {
        self.chain
    }

    /// The identity of the network, which typed data names: it covers the genesis and the founders, and the restart
    /// if the network has restarted.
    pub fn network(&self) -> Digest {
        self.places.validators.registered.terms.network
    }

    /// Units of asset 0 that a transaction costs.
    pub fn fee(&self) -> Amount {
        self.fee
    }

    /// The commission ε.
    pub fn epsilon(&self) -> Fraction {
        self.epsilon
    }

    /// The band μ.
    pub fn mu(&self) -> Fraction {
        self.mu
    }

    /// The limits of the chain.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The assets, by number.
    pub fn assets(&self) -> &[Asset] {
        &self.assets
    }

    /// The accounts.
    pub fn accounts(&self) -> &Accounts {
        &self.places.accounts
    }

    /// The resting offers.
    pub fn book(&self) -> &OrderBook {
        &self.places.book
    }

    /// Open offers of the session key in an account's slot.
    pub fn open_in_slot(&self, account: Address, slot: SessionSlot) -> u32 {
        self.slots.open((account, slot))
    }

    /// The staked validators, and the pool of rewards.
    pub fn validators(&self) -> &Validators {
        &self.places.validators.registered
    }

    /// Storage and code of contracts, and what they see of the chain.
    pub fn contracts(&self) -> &Contracts {
        &self.places.contracts
    }

    /// The payment lane; `None` on a chain without one.
    pub fn lane(&self) -> Option<&LaneBridge> {
        self.places.lane.as_deref()
    }

    /// The venues of continuous markets; `None` on a chain without them.
    pub fn venues(&self) -> Option<&Venues> {
        self.places.venues.as_deref()
    }

    /// The venues as they are now, shared: a reader keeps them without holding up the ledger.
    pub fn shared_venues(&self) -> Option<std::sync::Arc<Venues>> {
        self.places.venues.clone()
    }

    /// The pools; `None` on a chain without them.
    pub fn pools(&self) -> Option<&Pools> {
        self.places.pools.as_deref()
    }

    /// The pools as they are now, shared: a reader keeps them without holding up the ledger.
    pub fn shared_pools(&self) -> Option<std::sync::Arc<Pools>> {
        self.places.pools.clone()
    }

    /// When committees change.
    pub fn schedule(&self) -> Schedule {
        self.places.validators.registered.terms.schedule
    }

    /// The committee of an epoch, by index in consensus; none if it is not drawn yet, or no longer needed.
    pub fn committee(&self, epoch: u64) -> Option<&[Member]> {
        self.places.validators.registered.committee(epoch)
    }
}
