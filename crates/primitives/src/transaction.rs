//! Native transactions: an account's request to the ledger, and its signature. An ed25519 key signs bytes; the key of
//! an Ethereum wallet signs typed data ([`crate::TypedData`]).
//!
//! A transaction contains all its parameters, and all effects are visible from the next block on, so the transactions
//! of a block commute (SPEEDEX §3).

use borsh::{BorshDeserialize, BorshSerialize};
use strum::{EnumCount, EnumDiscriminants};

use crate::control::{HolderRecovery, HolderState};
use crate::envelope::EnvelopeBytes;
use crate::exact::ExactSide;
use crate::keys::{KEY_WEIGHT, PolicySigned, RecoverKeys, SetKeys};
use crate::listing::{AssetListing, Closing, LISTING_FEES_MAX};
use crate::offer::{ClientId, Life, OfferPlace, OfferReplacement};
use crate::pool::PoolOperation;
use crate::proposal::{LaneAssetTerms, ProposalWord, ProposedChange};
use crate::reference::{Reference, ReferenceRule};
use crate::sequence::Sequence;
use crate::session::{SessionOperation, slot_of};
use crate::statement::{Evidence, Stake};
use crate::upgrade::Upgrade;
use crate::venue::VenueOperation;
use crate::wallet::WalletSignature;
use crate::{Address, Amount, AssetId, Digest, Height, Price, PublicKey, Signature};

/// The prefix of a signed transaction body: a signature on it is valid for nothing else.
const SIGNING_TAG: &[u8] = b"walras native transaction v3\0";

/// Maximum size of a post about the payment lane, in bytes.
pub const LANE_POST_BYTES_MAX: usize = 128 << 10;

/// How many heights after the present one clients let a transaction end, if its sender says nothing: one to a few
/// minutes. Until then its fate may be open; afterwards it is final.
pub const UNTIL_USUAL: u64 = 256;

/// Bytes of an operation that one fee pays for.
pub const WEIGHT_BYTES: u64 = 1_024;

/// What opening a pool costs, in fees: it takes one of few places for ever.
pub const POOL_WEIGHT: u64 = 1_000;

/// What an order for an exact amount costs, in fees: amounts are sought for it beside those of all offers.
pub const EXACT_WEIGHT: u64 = 4;

/// What one transaction does.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, EnumDiscriminants)]
#[strum_discriminants(name(OperationKind), vis(pub(crate)), derive(EnumCount), doc = "The first byte of its code.")]
pub enum Operation {
    /// Registers `account` under `key`. For the sender's own account this replaces the key from the next block on. For
    /// another one the address must be that of `key`, and the account must not exist.
    CreateAccount {
        /// The account to register.
        account: Address,
        /// The key that controls it from the next block on.
        key: PublicKey,
    },
    /// Locks `amount` of `sell` in a resting limit offer. The offer's id is the transaction's sequence number.
    CreateOffer {
        /// The asset to sell.
        sell: AssetId,
        /// The asset to receive.
        buy: AssetId,
        /// The most units of `sell` to sell.
        amount: Amount,
        /// The fewest units of `buy` to receive per unit of `sell`, after commission and rounding.
        limit: Price,
        /// How long it rests.
        life: Life,
        /// What its client calls it.
        client: ClientId,
    },
    /// Removes those of the sender's offers that rest at these places from the book, at most [`crate::CANCELS_MAX`],
    /// and unlocks what is left of them. What does not rest is skipped; one of them must.
    Cancel(Box<[OfferPlace]>),
    /// Moves `amount` of `asset` to another account, which need not be registered.
    Pay {
        /// The receiving account.
        to: Address,
        /// The asset to send.
        asset: AssetId,
        /// Units to send.
        amount: Amount,
    },
    /// Creates new units of an asset; only its issuer can.
    Issue {
        /// The receiving account.
        to: Address,
        /// The asset to issue.
        asset: AssetId,
        /// Units to create.
        amount: Amount,
    },
    /// Destroys units of an asset that its issuer holds.
    Burn {
        /// The asset to burn.
        asset: AssetId,
        /// Units to destroy.
        amount: Amount,
    },
    /// Registers a validator, or adds to its stake, or changes its key or address from the next draw on.
    Stake(Box<Stake>),
    /// Withdraws units from the sender's stake. They count in no further draw, and are paid back when the validator's
    /// actions up to then can no longer be punished.
    Unstake {
        /// Units of asset 0 to withdraw.
        units: Amount,
    },
    /// Proves that a validator contradicted itself. Any account may submit it.
    Accuse(Box<Evidence>),
    /// Moves `amount` of `asset` into the escrow of the payment lane, where it becomes an output of `to`.
    Withdraw {
        /// The key that spends the output in the lane.
        to: PublicKey,
        /// The asset to move.
        asset: AssetId,
        /// Units to move.
        amount: Amount,
    },
    /// Makes a post about the payment lane: a redemption, a contested output, a validator's vote or view, a vote to
    /// halt. The `payments` crate defines the bytes (`BridgeOperation`).
    Lane(Box<[u8]>),
    /// Does something at a venue of continuous markets.
    Venue(Box<VenueOperation>),
    /// Cancels one of the sender's offers and places another one of the same pair. Of several in a block that name one
    /// offer the one with the highest number counts; a cancel of it counts before all.
    Replace(Box<OfferReplacement>),
    /// Opens a constant-product pool, provides to one, or leaves it.
    Pool(Box<PoolOperation>),
    /// In the batch of its block, buys exactly `units` of `buy` for at most `bound` of `sell`, or sells exactly `units`
    /// of `sell` for at least `bound` of `buy`. Otherwise nothing happens, and all that it locks returns.
    Exact {
        /// The asset to sell.
        sell: AssetId,
        /// The asset to receive.
        buy: AssetId,
        /// Which of the two `units` counts.
        side: ExactSide,
        /// Units to buy or to sell.
        units: Amount,
        /// The most units of `sell` to pay, which it locks, or the fewest of `buy` to receive.
        bound: Amount,
        /// What its client calls it.
        client: ClientId,
    },
    /// Authorises a session key, ends one, or keeps its offers alive.
    Session(Box<SessionOperation>),
    /// Says that the sender's validator is present and may be drawn for an epoch. The validator's key signs it, and not
    /// the account's; it is free and has the number 0.
    Present {
        /// The epoch: the next one that is drawn.
        epoch: u64,
    },
    /// Says that the sender's node can decide under these rules, and that the sender wants them. The validator's key
    /// signs it with the number 0, and then it is free; or the account's own key, with a number of the account.
    Approve {
        /// The rules: those in force, or the next ones.
        upgrade: Upgrade,
        /// A height that is past when it counts, above that of the sender's last approval or withdrawal.
        at: Height,
    },
    /// Withdraws what the sender has approved. It is signed as an approval is.
    Unapprove {
        /// The number of the rules: those in force, or the next ones.
        rules: u32,
        /// As of an approval.
        at: Height,
    },
    /// Moves `amount` of `asset` as `Pay` does, and says what for. No state has the reference. Since rules 12.
    PayReferenced {
        /// The receiving account.
        to: Address,
        /// The asset to send.
        asset: AssetId,
        /// Units to send.
        amount: Amount,
        /// What for.
        reference: Reference,
    },
    /// Creates units as `Issue` does, and says what for. Since rules 12.
    IssueReferenced {
        /// The receiving account.
        to: Address,
        /// The asset to issue.
        asset: AssetId,
        /// Units to create.
        amount: Amount,
        /// What for.
        reference: Reference,
    },
    /// Gives an account a policy, or another one; any account may send it. Since [`RULES_OF_KEYS`].
    SetKeys(Box<SetKeys>),
    /// Gives an account another policy by its guardians; any account may send it. Since [`RULES_OF_KEYS`].
    RecoverKeys(Box<RecoverKeys>),
    /// Makes a change of keys act whose wait is over; any account may send it. Since [`RULES_OF_KEYS`].
    CompleteKeys {
        /// The account.
        account: Address,
    },
    /// Says whether payments to the sender need a reference. Since [`RULES_OF_KEYS`].
    SetReceiving {
        /// Whether they do, from the next block on.
        references: ReferenceRule,
    },
    /// Lists an asset that the sender issues. Since [`RULES_OF_LISTINGS`].
    ListAsset(Box<AssetListing>),
    /// Announces that an asset closes, or takes that back; only its issuer can. Since [`RULES_OF_LISTINGS`].
    CloseAsset {
        /// The asset.
        asset: AssetId,
        /// Which of the two.
        closing: Closing,
    },
    /// Proposes a change of the chain, on which validators vote. Since [`RULES_OF_PROPOSALS`].
    Propose(Box<ProposedChange>),
    /// Says whether the sender wants what was proposed. Since [`RULES_OF_PROPOSALS`].
    Vote {
        /// The id of the transaction that proposed it.
        proposal: Digest,
        /// Whether it wants it.
        word: ProposalWord,
    },
    /// Freezes or opens a holder of an asset; only its issuer can. Since [`RULES_OF_CONTROLS`].
    SetHolder {
        /// The asset.
        asset: AssetId,
        /// The holder.
        account: Address,
        /// Which of the two, from the next block on.
        state: HolderState,
        /// What for.
        reference: Reference,
    },
    /// Moves units of a holder who has been frozen for long; only the issuer can. Since [`RULES_OF_CONTROLS`].
    Recover(Box<HolderRecovery>),
    /// Posts a seat's part in the generation of the committee's sealing key. The validator's key signs it; it is free
    /// and has the number 0. Since [`RULES_OF_SEALS`].
    SealDuty {
        /// The number of the key.
        key: u64,
        /// What is posted; the ledger's place `seals` has the layout.
        post: Vec<u8>,
    },
    /// Brings signed orders that nobody reads before their block is decided. Since [`RULES_OF_ENVELOPES`].
    Sealed(Box<EnvelopeBytes>),
}

/// A transaction before it is signed.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Body {
    /// The chain that this transaction is for.
    pub chain: u64,
    /// The account that acts.
    pub account: Address,
    /// Its number for this transaction.
    pub sequence: Sequence,
    /// The last height at which it may count: whoever keeps its bytes cannot bring it back later. Of two bodies with
    /// one number the one that ends later counts.
    pub until: Height,
    /// The operation.
    pub operation: Operation,
}

/// A signed native transaction.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Transaction {
    /// The signed content.
    pub body: Body,
    /// The signer and the signature.
    pub signed_by: SignedBy,
}

/// How a transaction is signed. Signatures can be verified without the ledger; the ledger then compares the signer
/// with the account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum SignedBy {
    /// By an ed25519 key, on [`Body::signing_bytes`].
    Key {
        /// The key.
        signer: PublicKey,
        /// Its signature.
        signature: Signature,
    },
    /// By the secp256k1 key of the account's address, on [`crate::TypedData::hash`].
    TypedData {
        /// The network that the wallet signed for.
        network: Digest,
        /// Its signature.
        signature: WalletSignature,
    },
    /// By several signers of the account's policy. Since [`RULES_OF_KEYS`].
    Policy(Box<PolicySigned>),
}

/// The digest of a transaction's body and its signer: a request that one key signs twice is the same transaction. Of an
/// account with a policy the body alone: whoever signs, it is the same request.
pub type TransactionId = Digest;

impl Body {
    /// The bytes that the account signs, for the network of this identity. A restarted network and its predecessor,
    /// or two networks with one chain number, share no signature.
    pub fn signing_bytes(&self, network: &Digest) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(192);
        bytes.extend_from_slice(SIGNING_TAG);
        bytes.extend_from_slice(&network.0);
        self.serialize(&mut bytes).expect("writing to memory cannot fail");
        bytes
    }

    /// How many fees it costs ([`Operation::weight`]). What an entry of a venue costs depends on its life, and an offer
    /// of a session key that rests pays for its removal, as one with an end does.
    pub fn weight(&self) -> u64 {
        let rests = |life: Life| u64::from(life == Life::Rests && slot_of(self.sequence) > 0);
        match &self.operation {
            _ if self.is_of_validator() => 0,
            Operation::Venue(operation) => operation.weight(self.until),
            Operation::CreateOffer { life, .. } => self.operation.weight() + rests(*life),
            Operation::Replace(replace) => self.operation.weight() + rests(replace.life),
            other => other.weight(),
        }
    }

    /// Units of asset 0 that it costs, on a chain with this fee. A chain's fee is such that no weight overflows.
    pub fn cost(&self, fee: Amount) -> Amount {
        fee.saturating_mul(self.weight())
    }
}

impl Operation {
    /// An offer that rests until it is sold or cancelled, and that its client does not name.
    pub fn offer(sell: AssetId, buy: AssetId, amount: Amount, limit: Price) -> Operation {
        Operation::CreateOffer { sell, buy, amount, limit, life: Life::Rests, client: ClientId::NONE }
    }

    /// An order for an exact amount that its client does not name.
    pub fn exact(sell: AssetId, buy: AssetId, side: ExactSide, units: Amount, bound: Amount) -> Operation {
        Operation::Exact { sell, buy, side, units, bound, client: ClientId::NONE }
    }

    /// What its client calls the order that it places.
    pub fn client(&self) -> Option<ClientId> {
        match self {
            Operation::CreateOffer { client, .. } | Operation::Exact { client, .. } => Some(*client),
            Operation::Replace(replace) => Some(replace.client),
            _ => None,
        }
    }

    /// A cancel of one offer.
    pub fn cancel(sell: AssetId, buy: AssetId, limit: Price, offer: Sequence) -> Operation {
        Operation::Cancel([OfferPlace { sell, buy, limit, offer }].into())
    }

    /// The assets and the units that this subtracts from the sender's available balance.
    pub fn debits(&self) -> [Option<(AssetId, Amount)>; 2] {
        let Operation::Pool(operation) = self else { return [self.debit(), None] };
        let (pool, [a, b]) = (operation.pool(), operation.debits());
        [(pool.a, a), (pool.b, b)].map(|debit| Some(debit).filter(|(_, units)| *units > 0))
    }

    /// The debit of an operation that has one.
    fn debit(&self) -> Option<(AssetId, Amount)> {
        match *self {
            Operation::CreateOffer { sell, amount, .. } => Some((sell, amount)),
            Operation::Exact { sell, side: ExactSide::Buy, bound, .. } => Some((sell, bound)),
            Operation::Exact { sell, side: ExactSide::Sell, units, .. } => Some((sell, units)),
            Operation::Pay { asset, amount, .. }
            | Operation::PayReferenced { asset, amount, .. }
            | Operation::Burn { asset, amount }
            | Operation::Withdraw { asset, amount, .. } => Some((asset, amount)),
            Operation::Stake(ref stake) => Some((AssetId(0), stake.units)),
            Operation::Replace(ref replace) => {
                Some((replace.old.sell, replace.debit())).filter(|(_, units)| *units > 0)
            }
            Operation::Venue(ref operation) => operation.debit(),
            Operation::CreateAccount { .. }
            | Operation::Cancel(_)
            | Operation::Issue { .. }
            | Operation::IssueReferenced { .. }
            | Operation::Unstake { .. }
            | Operation::Accuse(_)
            | Operation::Lane(_)
            | Operation::Session(_)
            | Operation::Present { .. }
            | Operation::Approve { .. }
            | Operation::Unapprove { .. }
            | Operation::SetKeys(_)
            | Operation::RecoverKeys(_)
            | Operation::CompleteKeys { .. }
            | Operation::SetReceiving { .. }
            | Operation::ListAsset(_)
            | Operation::CloseAsset { .. }
            | Operation::Propose(_)
            | Operation::Vote { .. }
            | Operation::SetHolder { .. }
            | Operation::Recover(_)
            | Operation::SealDuty { .. }
            | Operation::Sealed(_)
            | Operation::Pool(_) => None,
        }
    }

    /// The assets that it names, to check that they exist. An offer of assets that do not exist does not rest, so a
    /// cancel names none.
    pub fn assets(&self) -> [Option<AssetId>; 2] {
        match *self {
            Operation::CreateOffer { sell, buy, .. } | Operation::Exact { sell, buy, .. } => [Some(sell), Some(buy)],
            Operation::Replace(ref replace) => [Some(replace.old.sell), Some(replace.old.buy)],
            Operation::Pay { asset, .. }
            | Operation::PayReferenced { asset, .. }
            | Operation::Issue { asset, .. }
            | Operation::IssueReferenced { asset, .. }
            | Operation::Burn { asset, .. }
            | Operation::CloseAsset { asset, .. }
            | Operation::SetHolder { asset, .. }
            | Operation::Withdraw { asset, .. } => [Some(asset), None],
            Operation::Recover(ref recovery) => [Some(recovery.asset), None],
            Operation::Venue(ref operation) => operation.assets(),
            Operation::Propose(ref change) => match **change {
                ProposedChange::Close { asset } | ProposedChange::Lane(LaneAssetTerms { asset, .. }) => {
                    [Some(asset), None]
                }
                ProposedChange::Parameter { .. } | ProposedChange::List(_) => [None, None],
            },
            Operation::Pool(ref operation) => [Some(operation.pool().a), Some(operation.pool().b)],
            Operation::CreateAccount { .. }
            | Operation::Cancel(_)
            | Operation::Stake(_)
            | Operation::Unstake { .. }
            | Operation::Accuse(_)
            | Operation::Session(_)
            | Operation::Present { .. }
            | Operation::Approve { .. }
            | Operation::Unapprove { .. }
            | Operation::SetKeys(_)
            | Operation::RecoverKeys(_)
            | Operation::CompleteKeys { .. }
            | Operation::SetReceiving { .. }
            | Operation::ListAsset(_)
            | Operation::Vote { .. }
            | Operation::SealDuty { .. }
            | Operation::Sealed(_)
            | Operation::Lane(_) => [None, None],
        }
    }

    pub(crate) fn amount(&self) -> Option<Amount> {
        match *self {
            Operation::CreateOffer { amount, .. }
            | Operation::Pay { amount, .. }
            | Operation::PayReferenced { amount, .. }
            | Operation::Issue { amount, .. }
            | Operation::IssueReferenced { amount, .. }
            | Operation::Burn { amount, .. }
            | Operation::Withdraw { amount, .. }
            | Operation::Exact { units: amount, .. }
            | Operation::Unstake { units: amount } => Some(amount),
            Operation::Venue(ref operation) => operation.units(),
            Operation::Replace(ref replace) => Some(replace.amount),
            Operation::Recover(ref recovery) => Some(recovery.amount),
            _ => None,
        }
    }

    /// How many fees it costs. Each [`WEIGHT_BYTES`] begun of what it carries costs one, and it costs at least one.
    /// Each eight offers that a cancel names cost one more, and so does an offer with an end, whose removal it pays. A
    /// new pool costs [`POOL_WEIGHT`], an exact order [`EXACT_WEIGHT`], a session key [`crate::SESSION_WEIGHT`]. A
    /// change of keys costs [`KEY_WEIGHT`] for each key of the new policy, and one more for each signature. A listing
    /// costs the fees that it offers beside its own, and an envelope [`crate::SEALED_WEIGHT`] beside its bytes. A duty
    /// ([`Operation::is_duty`]) costs none.
    pub fn weight(&self) -> u64 {
        let beyond = match self {
            duty if duty.is_duty() => return 0,
            Operation::Lane(bytes) => (bytes.len() as u64).div_ceil(WEIGHT_BYTES).max(1) - 1,
            Operation::Venue(operation) => return operation.weight(0),
            Operation::Cancel(places) => places.len() as u64 / 8,
            Operation::CreateOffer { life: Life::Until(_), .. } => 1,
            Operation::Replace(replace) => u64::from(matches!(replace.life, Life::Until(_))),
            Operation::SetKeys(_) | Operation::RecoverKeys(_) => {
                let asked = self.key_change().expect("it is one");
                KEY_WEIGHT * asked.change.policy.key_count() + asked.signatures.len() as u64
            }
            Operation::ListAsset(listing) => listing.fees.min(LISTING_FEES_MAX),
            Operation::Sealed(envelope) => (envelope.sealed().len() as u64).div_ceil(WEIGHT_BYTES),
            _ => 0,
        };
        self.row().fees + beyond
    }
}
