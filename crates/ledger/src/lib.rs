//! The replicated state machine: takes superblocks, returns receipts and roots.
//!
//! The hot state ([`Ledger`]) is laid out for millions of accounts and offers and is changed by [`Ledger::apply`].
//! The Merkle tries ([`Roots`]) follow it from the [`Changes`] that each block returns, so that hashing can run in
//! parallel with the next block. Neither uses a clock, a disk or a socket.
//!
//! | storey | what it holds |
//! |---|---|
//! | `block` | a block's transactions become changes of the state |
//! | `state` | the whole state after a block, its tries, snapshots and audit, and what Ethereum sees of it |
//! | `sessions` | session keys of the batch market |
//! | `contracts` | Ethereum transactions, executed on the ledger's own balances |
//! | `places` | where units are, and what is signed of it, one folder each |
//! | `terms` | what a chain is founded on |
//!
//! A storey uses those below it, and none above.

mod block;
pub mod contracts;
mod places;
mod sessions;
mod state;
mod terms;

pub use block::{
    ACCUSATIONS_PER_SUB_BLOCK, Applied, Attached, AttachedTrade, AttachedViolation, ENVELOPES_MAX,
    EXACTS_PER_SUB_BLOCK, Fault, LANE_CHECKS_PER_SUB_BLOCK, LANE_DUTY_CHECKS_PER_SUB_BLOCK, LISTINGS_PER_SUB_BLOCK,
    NextBatch, OpenedEnvelope, OpenedEnvelopes, OpenedOperation, OpeningRules, POLICY_SIGNATURES_PER_SUB_BLOCK,
    QUOTA_KINDS, Quota, QuotaKind, Quote, QuoteError, Reservations, ReserveError, SEAL_POSTS_PER_SUB_BLOCK,
    SESSION_ENDS_PER_SUB_BLOCK, STAKES_PER_SUB_BLOCK, Signatures, Stage, TYPED_DATA_PER_SUB_BLOCK, Unsealing,
    are_envelopes_sound, enclosed, envelopes_per_sub_block, freeze_ends, opened, quotas_of, spending,
};
pub use places::accounts::{Account, Accounts, SHARDS, Shard};
pub use places::assets::{CLOSED_RETURNS, Listings};
pub use places::bridge::{BridgeChange, LANE_ASSETS_MAX, LaneAssets, LaneBls, LaneBridge, LaneRegistration};
/// The seats of so many that must approve rules; fewer once most of the stake has waited for long.
pub use places::charter::seats_needed as rules_seats_needed;
pub use places::charter::{Ballot, Coming, OpenProposal, PARAMETER_PAUSE, Support, VotedParameters};
pub use places::controls::{Controls, FREEZE_ENDS_PER_SUB_BLOCK, HELD_OFFERS_MAX, HolderStanding, RECOVERY_WAIT};
pub use places::offers::{ENDS_MAX, Edit, LIFE_MAX, OrderBook, PairChange, PairOffers};
pub use places::pools::{
    AWAKE, POOLS_MAX, Pools, SHARES_MAX, SHARES_NEW, SHARES_OF_NOBODY, is_asleep, pool_cost, pool_keeps, pool_pays,
};
pub use places::seals::{
    OpenedNames, SEAL_KEY_HEIGHTS, SEAL_NOTICE, SEAL_OVERLAP, SEAL_RETRY_HEIGHTS, SEAL_STEP_HEIGHTS, SealBoard,
    SealFailure, SealPost, SealStep, Seals,
};
pub use places::unsound::AuditError;
pub use places::venues::Venues;
/// The values that the ledger computes with and proves, and the checks of its proofs.
pub use proofs::{
    AccountKeys, AccountProof, AccountSessions, AccountState, Asset, AssetProof, AssetTerms, AssetTermsProof,
    AwaitedRules, Batch, BlockReceipts, BustGuilt, BustReason, Cancelled, ChainRules, Charter, CharterTerms, ClaimedId,
    ComingRules, ControlledAsset, DepositId, EndReason, EndedOffer, EthereumReceiptProof, EvmRecord, ExactOutcome,
    ExactReason, ExactRequest, ExactTrade, Fill, FillReason, FillVerdict, FilledId, FilledOrder, HolderProof,
    HolderRecord, HoldingId, KeysProof, LaneProof, LeavingBond, LeavingDeposit, ListedTerms, Member, ModifiedProof,
    NO_END, Offer, OfferProof, Outcome, Pair, PairTrade, ParametersProof, ParametersRecord, Place, PoolFill, PoolProof,
    PoolRecord, PoolRecordId, Pooled, ProofFault, RECOVERY_WAIT_MIN, ReceiptProof, ReceiptsParts, ReceiptsTrie,
    Refusal, Replaced, Rest, RootPart, RootParts, RulesConsent, RulesReadiness, SEQUENCE_WINDOW, SESSIONS_MAX,
    Schedule, SealHolder, SealKeyRecord, SealTerms, SealThreshold, SealedFate, SealsProof, SealsRecord, SessionBudget,
    SessionRecord, SettledFills, SettlesProof, SlotProof, Terms, Traded, TradingKey, TradingKeyId, Validator,
    Validators, ValidatorsProof, VenueDeposit, VenueMoment, VenueProof, VenueRecord, VenueRecordId, WaitingKeys,
    Window, WindowError, account_state_digest, asset_digest, offer_value, outcome_root, outcomes_by_id, with_settles,
};
pub use sessions::{Precedence, SLOT_OFFERS_MAX};
pub use state::{Audit, Changes, Ledger, Restore, Roots, Snapshot, SnapshotError};
pub use terms::{
    BLOCK_BYTES_MAX, BlockClock, DEVELOPERS_CHAIN, Fork, ForkSchedule, Genesis, GenesisError, LEAST_UNITS, LaneAsset,
    LaneOutflow, LaneOutput, LaneTerms, Limits, Listing, ListingPolicy, ListingTerms, Membership, NETWORK_SPEC,
    Parameters, PoolTerms, RULES_FLOOR, RULES_LEAST, RULES_NEWEST, Restart, RestartError, RestartedLane, TIME_MAX_MS,
    USUAL_BLOCK_GAS, UnknownFork, VOTES_BYTES_MAX, VenueTerms, followed, manifest, text_of, usual_fee, votes_bytes,
};
