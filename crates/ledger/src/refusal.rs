//! Why a transaction has no effect: one code and one sentence for each reason.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Malformed;

use crate::account::WindowError;

/// Why a transaction is refused, at the door or by the filter of a block.
///
/// The first group is found by looking at one transaction and the state before the block; the second by looking at all
/// transactions of the block together (SPEEDEX §8 and appendix I).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize, thiserror::Error,
)]
pub enum Refusal {
    /// The signature is not the signer's on this body, for this network.
    #[error(
        "the signature does not fit the transaction and its signer, or is for another network; see `network` under /v1/limits"
    )]
    BadSignature,
    /// Signed for another chain.
    #[error("the transaction is for another chain; see `chain` under /v1/limits")]
    WrongChain,
    /// No such account.
    #[error("the account does not exist; it comes into being with the first payment to it")]
    UnknownAccount,
    /// The signer's key does not control the account.
    #[error("the signer's key does not control the account")]
    WrongSigner,
    /// The sequence number has been used.
    #[error("the sequence number has been used; each counts once")]
    SequenceUsed,
    /// The sequence number is 64 or more below the highest used one.
    #[error("the sequence number is too old; take one above the account's highest")]
    SequenceTooOld,
    /// The sequence number is more than 64 above the highest used one.
    #[error("the sequence number is more than 64 above the account's highest used one")]
    SequenceTooFar,
    /// An asset that does not exist.
    #[error("no asset has this number; /v1/assets lists them")]
    UnknownAsset,
    /// An amount of zero.
    #[error("{}", Malformed::ZeroAmount)]
    ZeroAmount,
    /// An amount above 2^63 − 1.
    #[error("{}", Malformed::AmountTooLarge)]
    AmountTooLarge,
    /// An offer whose two assets are one.
    #[error("{}", Malformed::SameAsset)]
    SameAsset,
    /// A payment to oneself.
    #[error("{}", Malformed::SelfPayment)]
    SelfPayment,
    /// A new account's address is not that of its key.
    #[error("{}", Malformed::AddressNotOfKey)]
    AddressNotOfKey,
    /// The account to create exists.
    #[error("the account to create exists already")]
    AccountExists,
    /// Issue or burn by someone else than the issuer.
    #[error("only the asset's issuer can issue or burn it")]
    NotIssuer,
    /// Nothing rests at the place that the cancellation names.
    #[error("no resting offer of this account has that pair, limit price and id; it may have traded or been cancelled")]
    UnknownOffer,
    /// The place that the cancellation names is another account's.
    #[error("the offer belongs to another account")]
    NotYourOffer,
    /// Debits exceed the balance.
    #[error("the account's transactions would spend more than its balance; in a block all of them are removed")]
    Overdraft,
    /// The same transaction stands in the block more than once; one copy counts.
    #[error("the same transaction stands in the block already")]
    Duplicate,
    /// Two transactions of the account use one sequence number.
    #[error("two different transactions of the account use one sequence number; all of the account's are removed")]
    SequenceConflict,
    /// Two transactions of the account cancel one offer.
    #[error("two transactions of the account cancel one offer; all of the account's are removed")]
    CancelConflict,
    /// Two transactions of the account change its key.
    #[error("two transactions change the account's key in one block; all of the account's are removed")]
    KeyConflict,
    /// An asset's issue would exceed the cap.
    #[error("the block's issues of this asset would take it above 9223372036854775807 units; all of them are removed")]
    IssueTooLarge,
    /// A validator's network address that is none.
    #[error("{}", Malformed::NetworkAddress)]
    NetworkAddress,
    /// The chain's committee never changes.
    #[error("this chain's validators are those of its genesis: nothing can be staked or unstaked")]
    CommitteeFixed,
    /// The stake would be below the least.
    #[error("the stake would be below the least that a validator stakes; see `minimum_stake` under /v1/validators")]
    StakeTooSmall,
    /// The validator key is another validator's.
    #[error("the validator key belongs to another validator; each has its own")]
    ValidatorKeyTaken,
    /// The validator key's holder has not agreed.
    #[error("the validator key has not signed for this account and chain")]
    NotPossessed,
    /// The account has staked nothing.
    #[error("the account is no validator")]
    NotAValidator,
    /// More than is staked.
    #[error("the account has staked less than that")]
    UnstakeTooMuch,
    /// The validator was convicted.
    #[error("the validator was convicted of contradicting itself and is excluded")]
    Excluded,
    /// Evidence that convicts nobody.
    #[error("the evidence does not convict a validator of this network")]
    BadEvidence,
    /// Evidence of an epoch whose stakes may have been paid back.
    #[error("the evidence is of an epoch too long ago to be punished")]
    EvidenceTooOld,
    /// Two transactions of the account change its stake.
    #[error("two transactions change the account's stake in one block; all of the account's are removed")]
    StakeConflict,
    /// Two accounts claim one validator key.
    #[error("two accounts claim the same validator key in one block; both are removed")]
    ValidatorKeyConflict,
    /// An offer of less than the least that one sells.
    #[error("the offer sells less than the least of its asset; see `least_units` under /v1/assets")]
    SellsTooLittle,
    /// An offer that asks less than the least that one asks.
    #[error(
        "the offer asks less than the least of the asset it buys: raise amount or limit; see `least_units` under /v1/assets"
    )]
    AsksTooLittle,
    /// The book held as many offers as it may before the block.
    #[error(
        "the book is full: no offer is taken until some have traded or been cancelled; see `limits` in the genesis"
    )]
    BookFull,
    /// The offer would open a pair, and as many as may are open.
    #[error("as many pairs as may be are open: sell or buy something else; see `limits` in the genesis")]
    TooManyPairs,
    /// Beyond the quota of its sub-block.
    #[error("the sub-block holds more stakes, accusations or posts about the lane than are looked at; send it again")]
    OverQuota,
    /// As many validators as may have staked at least as much.
    #[error("as many validators as there may be have each staked no less: stake more than the least of them")]
    RegistryFull,
    /// A post about the payment lane that is too long.
    #[error("{}", Malformed::LanePostTooLong)]
    LanePostTooLong,
    /// The chain has no payment lane.
    #[error("this chain has no payment lane; see `lane` in the genesis")]
    NoLane,
    /// Withdrawal of an asset that the lane does not carry.
    #[error("the payment lane does not carry this asset; see `lane.assets` in the genesis")]
    NotInLane,
    /// Withdrawal of less than the least output.
    #[error("the withdrawal is below the least output of its asset; see `lane.assets` in the genesis")]
    WithdrawsTooLittle,
    /// A post about the lane that cannot be read.
    #[error("the post about the payment lane cannot be read, or is for another network")]
    BadLanePost,
    /// Signatures or a certificate of a post that do not hold.
    #[error("the post's certificate or signatures do not hold")]
    UnprovenLanePost,
    /// A case is opened with another deposit than the genesis says.
    #[error("the deposit is not the one for opening a case; see `lane.case_deposit` in the genesis")]
    WrongCaseDeposit,
    /// A certificate is redeemed too early or too late.
    #[error("certificates are redeemable from their epoch until three lane epochs later")]
    NotRedeemable,
    /// A payment of which an input was credited to its owner.
    #[error("the payment is void: an input was credited to its owner by a verdict")]
    VoidPayment,
    /// A case is opened too late, or too early.
    #[error("a case about an output can be opened until the middle of the second lane epoch after its own")]
    CaseTooLate,
    /// A case about an output that the ledger did not create.
    #[error("the ledger backs no such output; show the certificate of the payment that created it")]
    UnknownOutput,
    /// A vote or a view without a case.
    #[error("there is no open case about this output")]
    NoCase,
    /// A vote to halt in another round than the present one.
    #[error("votes to halt are counted in another epoch or round now; see /v1/lane")]
    WrongHaltRound,
    /// A payment to the address of a token.
    #[error("the address is reserved for the token of an asset; nobody could move what it holds")]
    ReservedAddress,
    /// Keys of the lane are registered for another epoch than the next one, or again.
    #[error("a member of the payment lane registers fresh keys once, for the next lane epoch; see /v1/lane")]
    WrongLaneKeys,
    /// A dealing or a complaint that no key generation of the lane awaits.
    #[error("no key generation of the lane awaits this dealing or complaint now; see `lane.bls` in the genesis")]
    NotAwaited,
}

impl Refusal {
    /// Whether a proposer cannot have had a reason to take the transaction in: it is malformed, forged, or false by
    /// what never changes on a chain. A sub-block with such a transaction earns nothing.
    pub(crate) fn is_false(self) -> bool {
        match self {
            Refusal::BadSignature
            | Refusal::WrongChain
            | Refusal::UnknownAsset
            | Refusal::ZeroAmount
            | Refusal::AmountTooLarge
            | Refusal::SameAsset
            | Refusal::SelfPayment
            | Refusal::ReservedAddress
            | Refusal::AddressNotOfKey
            | Refusal::NetworkAddress
            | Refusal::NotIssuer
            | Refusal::SellsTooLittle
            | Refusal::AsksTooLittle
            | Refusal::CommitteeFixed
            | Refusal::NotPossessed
            | Refusal::BadEvidence
            | Refusal::LanePostTooLong
            | Refusal::NoLane
            | Refusal::NotInLane
            | Refusal::WithdrawsTooLittle
            | Refusal::BadLanePost
            | Refusal::UnprovenLanePost
            | Refusal::WrongCaseDeposit => true,
            Refusal::UnknownAccount
            | Refusal::WrongSigner
            | Refusal::SequenceUsed
            | Refusal::SequenceTooOld
            | Refusal::SequenceTooFar
            | Refusal::AccountExists
            | Refusal::UnknownOffer
            | Refusal::NotYourOffer
            | Refusal::Overdraft
            | Refusal::Duplicate
            | Refusal::SequenceConflict
            | Refusal::CancelConflict
            | Refusal::KeyConflict
            | Refusal::IssueTooLarge
            | Refusal::StakeTooSmall
            | Refusal::ValidatorKeyTaken
            | Refusal::NotAValidator
            | Refusal::UnstakeTooMuch
            | Refusal::Excluded
            | Refusal::EvidenceTooOld
            | Refusal::StakeConflict
            | Refusal::ValidatorKeyConflict
            | Refusal::BookFull
            | Refusal::TooManyPairs
            | Refusal::OverQuota
            | Refusal::RegistryFull
            | Refusal::NotRedeemable
            | Refusal::VoidPayment
            | Refusal::CaseTooLate
            | Refusal::UnknownOutput
            | Refusal::NoCase
            | Refusal::WrongHaltRound
            | Refusal::WrongLaneKeys
            | Refusal::NotAwaited => false,
        }
    }

    /// The code by which programs know the reason.
    pub fn code(self) -> &'static str {
        match self {
            Refusal::BadSignature => "bad_signature",
            Refusal::WrongChain => "wrong_chain",
            Refusal::UnknownAccount => "unknown_account",
            Refusal::WrongSigner => "wrong_signer",
            Refusal::SequenceUsed => "sequence_used",
            Refusal::SequenceTooOld => "sequence_too_old",
            Refusal::SequenceTooFar => "sequence_too_far",
            Refusal::UnknownAsset => "unknown_asset",
            Refusal::ZeroAmount => "zero_amount",
            Refusal::AmountTooLarge => "amount_too_large",
            Refusal::SameAsset => "same_asset",
            Refusal::SelfPayment => "self_payment",
            Refusal::ReservedAddress => "reserved_address",
            Refusal::AddressNotOfKey => "address_not_of_key",
            Refusal::AccountExists => "account_exists",
            Refusal::NotIssuer => "not_issuer",
            Refusal::UnknownOffer => "unknown_offer",
            Refusal::NotYourOffer => "not_your_offer",
            Refusal::Overdraft => "overdraft",
            Refusal::Duplicate => "duplicate",
            Refusal::SequenceConflict => "sequence_conflict",
            Refusal::CancelConflict => "cancel_conflict",
            Refusal::KeyConflict => "key_conflict",
            Refusal::IssueTooLarge => "issue_too_large",
            Refusal::NetworkAddress => "network_address",
            Refusal::CommitteeFixed => "committee_fixed",
            Refusal::StakeTooSmall => "stake_too_small",
            Refusal::ValidatorKeyTaken => "validator_key_taken",
            Refusal::NotPossessed => "not_possessed",
            Refusal::NotAValidator => "not_a_validator",
            Refusal::UnstakeTooMuch => "unstake_too_much",
            Refusal::Excluded => "excluded",
            Refusal::BadEvidence => "bad_evidence",
            Refusal::EvidenceTooOld => "evidence_too_old",
            Refusal::StakeConflict => "stake_conflict",
            Refusal::ValidatorKeyConflict => "validator_key_conflict",
            Refusal::SellsTooLittle => "sells_too_little",
            Refusal::AsksTooLittle => "asks_too_little",
            Refusal::BookFull => "book_full",
            Refusal::TooManyPairs => "too_many_pairs",
            Refusal::OverQuota => "over_quota",
            Refusal::RegistryFull => "registry_full",
            Refusal::LanePostTooLong => "lane_post_too_long",
            Refusal::NoLane => "no_lane",
            Refusal::NotInLane => "not_in_lane",
            Refusal::WithdrawsTooLittle => "withdraws_too_little",
            Refusal::BadLanePost => "bad_lane_post",
            Refusal::UnprovenLanePost => "unproven_lane_post",
            Refusal::WrongCaseDeposit => "wrong_case_deposit",
            Refusal::NotRedeemable => "not_redeemable",
            Refusal::VoidPayment => "void_payment",
            Refusal::CaseTooLate => "case_too_late",
            Refusal::UnknownOutput => "unknown_output",
            Refusal::NoCase => "no_case",
            Refusal::WrongHaltRound => "wrong_halt_round",
            Refusal::WrongLaneKeys => "wrong_lane_keys",
            Refusal::NotAwaited => "not_awaited",
        }
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Refusal {
        match malformed {
            Malformed::ZeroAmount => Refusal::ZeroAmount,
            Malformed::AmountTooLarge => Refusal::AmountTooLarge,
            Malformed::SameAsset => Refusal::SameAsset,
            Malformed::SelfPayment => Refusal::SelfPayment,
            Malformed::AddressNotOfKey => Refusal::AddressNotOfKey,
            Malformed::NetworkAddress => Refusal::NetworkAddress,
            Malformed::LanePostTooLong => Refusal::LanePostTooLong,
        }
    }
}

impl From<WindowError> for Refusal {
    fn from(error: WindowError) -> Refusal {
        match error {
            WindowError::Used => Refusal::SequenceUsed,
            WindowError::TooOld => Refusal::SequenceTooOld,
            WindowError::TooFar => Refusal::SequenceTooFar,
        }
    }
}
