//! What a client believes a node by: the values of the state and of receipts as they are encoded and hashed, the
//! proofs of them, the certificates that a quorum signed, and the handovers from one committee to the next.
//!
//! A node is never trusted. It shows a value with a path to a root, and a certificate over that root. The checks here
//! say whether the validators that the client trusts have signed exactly this.
//!
//! ```text
//! genesis ─► Lineage ── follow(Handover) ─► Chain: the keys of the present epoch
//!                                             │ Certificate::verify
//!                                             ▼
//!            outcome_root(state root, receipts root) = certificate.statement.root
//!                             │             │
//!                  RootParts::root   ReceiptsParts::root
//!                             │             │
//!    AccountProof, OfferProof, AssetProof,  ReceiptProof, EthereumReceiptProof,
//!    SlotProof, LaneProof, VenueProof,      ModifiedProof, SettlesProof
//!    ValidatorsProof, PoolProof, KeysProof,
//!    AssetTermsProof, ParametersProof
//! ```
//!
//! | about | value | proof | where |
//! |---|---|---|---|
//! | an account | [`AccountState`] | [`AccountProof`] | `account` |
//! | an asset | [`Asset`] | [`AssetProof`] | `asset` |
//! | how an asset was listed, and when it closes | [`AssetTerms`] | [`AssetTermsProof`] | `asset` |
//! | a resting offer | [`Rest`] at a [`Place`] of a [`Pair`] | [`OfferProof`] | `offer` |
//! | a slot of a contract | 32 bytes | [`SlotProof`] | `slot` |
//! | entries of the bridge to the payment lane | digests by key | [`LaneProof`] | `bridge` |
//! | stakes, committees, and the rules by height | [`Validators`], [`ChainRules`] | [`ValidatorsProof`] | `validators`, `charter` |
//! | parameters, by vote or of the genesis | [`ParametersRecord`] | [`ParametersProof`] | `charter` |
//! | a record of venues | [`VenueRecord`], [`VenueDeposit`], [`TradingKey`] … | [`VenueProof`] | `venue`, `venue_records` |
//! | the policy of an account | [`AccountKeys`] | [`KeysProof`] | `keys` |
//! | a pool, a holding of its shares | [`PoolRecord`], shares | [`PoolProof`] | `pool` |
//! | the outcome of a transaction | [`Outcome`], [`Refusal`] | [`ReceiptProof`] | `receipt`, `refusal` |
//! | the receipt of an Ethereum transaction | [`EthereumReceipt`] | [`EthereumReceiptProof`] | `ethereum_receipt` |
//! | whether a block changed an account | yes or no | [`ModifiedProof`] | `receipts_root` |
//! | fills of venues that a block settled | [`SettledFills`] | [`SettlesProof`] | `settles` |
//! | what a quorum signed | [`Statement`] | [`Certificate`] | `certificate` |
//! | the committee of an epoch | [`Chain`] | [`Handover`], [`Lineage`] | `handover` |
//!
//! The ledger computes with these same types and makes the proofs. Its rules (what is refused, how a registry changes,
//! how much is forfeit) are there and not here. The engine makes certificates of the same [`Statement`].
//!
//! # Properties
//!
//! - *Soundness*: with at most f Byzantine validators in each committee while clients follow it, no bytes of a node
//!   make a check return a value, or an absence, that the certified state or block does not have.
//! - *One encoding*: bytes that decode encode back to the same bytes, so that what is hashed is what was sent.
//! - *Bounded*: a check costs time and memory in proportion to the bytes of the proof. No bytes make it panic.
//! - *No machine*: no ledger, no interpreter of contracts, no clock, socket, disk or thread.
//!
//! # Example
//!
//! A client trusts the keys of a [`Chain`] and asks a node for an account. The node answers with a proof and with the
//! certificate of the height `lag` above. Here the client's whole check:
//!
//! ```
//! use primitives::{Address, Digest};
//! use proofs::{AccountProof, AccountState, Certificate, Chain, outcome_root};
//!
//! /// The account, or `None` if it is proved not to exist.
//! fn believe(
//!     chain: &Chain,
//!     certificate: &Certificate,
//!     (state, receipts): (Digest, Digest),
//!     proof: &AccountProof,
//!     address: &Address,
//! ) -> Result<Option<AccountState>, Box<dyn std::error::Error>> {
//!     certificate.verify(chain)?;
//!     if certificate.statement.root != outcome_root(&state, &receipts) {
//!         return Err("these roots are not the signed ones".into());
//!     }
//!     Ok(proof.verify(&state, address)?.cloned())
//! }
//! # use primitives::SecretKey;
//! # use proofs::{RootParts, Statement};
//! # let secret = SecretKey::from_seed([1; 32]);
//! # let chain = Chain { genesis: Digest([9; 32]), epoch: 0, heights: 1..=9, keys: vec![secret.public()] };
//! # let proof = AccountProof { parts: RootParts::default(), account: None, path: Vec::new() };
//! # let (state, receipts) = (proof.parts.root(), Digest([2; 32]));
//! # let statement = Statement { height: 3, superblock: Digest([1; 32]), root: outcome_root(&state, &receipts) };
//! # let signature = secret.sign(&statement.signed(&chain).0);
//! # let certificate = Certificate { epoch: 0, statement, signatures: vec![(0, signature)] };
//! // A state without accounts proves nothing of one.
//! let refused = believe(&chain, &certificate, (state, receipts), &proof, &Address([7; 20]));
//! assert!(refused.is_err_and(|error| error.to_string().contains("the state has no part with tag 1")));
//! // Nor do roots that nobody has signed.
//! assert!(believe(&chain, &certificate, (receipts, state), &proof, &Address([7; 20])).is_err());
//! ```

mod account;
mod asset;
mod bridge;
mod certificate;
mod chain;
mod charter;
mod committee;
mod controls;
mod ethereum_receipt;
mod exact;
mod fill;
mod handover;
mod keys;
mod offer;
mod pool;
mod reasons;
mod receipt;
mod receipts_root;
mod refusal;
mod refusals;
mod root_parts;
mod schedule;
mod seals;
mod session;
mod settles;
mod slot;
mod validators;
mod venue;
mod venue_records;
mod window;

pub use account::{
    AccountProof, AccountState, EvmRecord, account_bytes_digest, account_state_digest, write_account_end,
};
pub use asset::{Asset, AssetProof, AssetTerms, AssetTermsProof, ListedTerms, asset_digest, asset_terms_root};
pub use bridge::{LaneProof, bridge_root};
pub use certificate::{Certificate, CertificateError, Statement};
pub use chain::{ALL_HEIGHTS, Chain};
pub use charter::{
    AwaitedRules, ChainRules, Charter, CharterTerms, ComingRules, ParametersProof, ParametersRecord, RulesConsent,
    RulesReadiness, charter_root,
};
pub use committee::{Committee, Index, MEMBERS_MAX};
pub use controls::{ControlledAsset, HolderProof, HolderRecord, controls_root, holder_key};
pub use ethereum_receipt::{Bloom, ContractReceipts, EthereumLog, EthereumReceipt, EvmStatus, Skip};
pub use exact::{ExactOutcome, ExactReason, ExactRequest, ExactTrade};
pub use fill::{EndReason, EndedOffer, Fill};
pub use handover::{Handover, HandoverError, Lineage};
pub use keys::{AccountKeys, KeysProof, RECOVERY_WAIT_MIN, WaitingKeys, check_change};
pub use offer::{NO_END, Offer, OfferProof, Pair, Place, Rest, offer_value, pair_key, pair_root_digest};
pub use pool::{HoldingId, PoolFill, PoolProof, PoolRecord, PoolRecordId, Pooled, pool_record_value, pools_root};
pub use receipt::{
    Batch, BlockReceipts, Cancelled, FillReason, Outcome, PairTrade, Replaced, SealedFate, Traded, outcomes_by_id,
};
pub use receipts_root::{
    EthereumReceiptProof, ModifiedProof, ReceiptProof, ReceiptsParts, ReceiptsTrie, SettlesProof, outcome_root,
    with_settles,
};
pub use refusal::Refusal;
pub use root_parts::{ProofFault, RootPart, RootParts};
pub use schedule::Schedule;
pub use seals::{SealHolder, SealKeyRecord, SealTerms, SealThreshold, SealsProof, SealsRecord};
pub use session::{AccountSessions, SESSIONS_MAX, SessionBudget, SessionRecord};
pub use settles::{BustGuilt, BustReason, FillVerdict, SettledFills, settles_digest};
pub use slot::{SlotKey, SlotProof, contracts_root, slot_key};
pub use validators::{Member, Terms, Validator, Validators, ValidatorsProof};
pub use venue::{VenueProof, venues_root};
pub use venue_records::{
    ClaimedId, DepositId, FilledId, FilledOrder, LeavingBond, LeavingDeposit, TradingKey, TradingKeyId, VenueDeposit,
    VenueMoment, VenueRecord, VenueRecordId, record_value,
};
pub use window::{SEQUENCE_WINDOW, Window, WindowError};
