//! Why a transaction has no effect: one code and one sentence for each reason.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Malformed;

use crate::places::accounts::WindowError;

/// Why a transaction is refused, when it is submitted or by the filter of a block.
///
/// Reasons of the first group are found by looking at one transaction and the state before the block; those of the
/// second group by looking at all transactions of the block together (SPEEDEX §8 and appendix I).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize, thiserror::Error,
)]
pub enum Refusal {
    /// The signature is not one by the signer over this body for this network.
    #[error("the signature is not the signer's, or is for another network; see `network` at /v1/limits")]
    BadSignature,
    /// The transaction is signed for another chain.
    #[error("the transaction is for another chain; see `chain` under /v1/limits")]
    WrongChain,
    /// The account does not exist.
    #[error("the account does not exist; the first payment to it creates it")]
    UnknownAccount,
    /// The signer's key does not control the account.
    #[error("the signer's key does not control the account")]
    WrongSigner,
    /// The sequence number has been used.
    #[error("the sequence number has been used; take an unused one")]
    SequenceUsed,
    /// The sequence number is 64 or more below the highest used one.
    #[error("the sequence number is too old; take one above the account's highest")]
    SequenceTooOld,
    /// The sequence number is more than 64 above the highest used one.
    #[error("the sequence number is more than 64 above the account's highest used one")]
    SequenceTooFar,
    /// The asset does not exist.
    #[error("no asset has this number; /v1/assets lists them")]
    UnknownAsset,
    /// The amount is zero.
    #[error("{}", Malformed::ZeroAmount)]
    ZeroAmount,
    /// The amount is above 2^63 − 1.
    #[error("{}", Malformed::AmountTooLarge)]
    AmountTooLarge,
    /// The offer sells and buys the same asset.
    #[error("{}", Malformed::SameAsset)]
    SameAsset,
    /// The account pays itself.
    #[error("{}", Malformed::SelfPayment)]
    SelfPayment,
    /// The address of a new account is not the hash of its key.
    #[error("{}", Malformed::AddressNotOfKey)]
    AddressNotOfKey,
    /// The account to create already exists.
    #[error("the account to create already exists")]
    AccountExists,
    /// An account other than the issuer issues or burns the asset.
    #[error("only the asset's issuer can issue or burn it")]
    NotIssuer,
    /// No offer rests at the place that the cancellation names.
    #[error("no resting offer of this account has that pair, limit price and id; it may have traded or been cancelled")]
    UnknownOffer,
    /// The offer that the cancellation names belongs to another account.
    #[error("the offer belongs to another account")]
    NotYourOffer,
    /// The account's debits exceed its balance.
    #[error("the account's transactions would spend more than its balance; in a block all but its cancels are removed")]
    Overdraft,
    /// The same transaction is in the block more than once; one copy counts.
    #[error("the same transaction is already in the block")]
    Duplicate,
    /// Two transactions of the account use one sequence number.
    #[error("another transaction of the account with this sequence number counts; use the next free number")]
    SequenceConflict,
    /// Two transactions of the account cancel one offer.
    #[error("a pending transaction of the account cancels this offer already")]
    CancelConflict,
    /// Two transactions of the account change its key.
    #[error("two transactions change the account's key in one block; all of the account's but its cancels are removed")]
    KeyConflict,
    /// The block's issues of the asset would exceed the cap.
    #[error("the block's issues of this asset would take it above 9223372036854775807 units; all of them are removed")]
    IssueTooLarge,
    /// The network address of a validator is malformed.
    #[error("{}", Malformed::NetworkAddress)]
    NetworkAddress,
    /// The chain's committee never changes.
    #[error("this chain's validators are those of its genesis: nothing can be staked or unstaked")]
    CommitteeFixed,
    /// The stake would be below the minimum.
    #[error("the stake would be below the minimum of a validator; see `minimum_stake` under /v1/validators")]
    StakeTooSmall,
    /// The validator key belongs to another validator.
    #[error("the validator key belongs to another validator; use another key")]
    ValidatorKeyTaken,
    /// The holder of the validator key has not agreed.
    #[error("the validator key has not signed for this account and chain")]
    NotPossessed,
    /// The account has no stake.
    #[error("the account is not a validator; see /v1/validators")]
    NotAValidator,
    /// The account unstakes more than it has staked.
    #[error("the account has staked less than it wants to unstake")]
    UnstakeTooMuch,
    /// The validator was convicted.
    #[error("the validator was convicted of contradicting itself and is excluded")]
    Excluded,
    /// The evidence convicts nobody.
    #[error("the evidence does not convict a validator of this network")]
    BadEvidence,
    /// The evidence is of an epoch whose stakes may have been paid back.
    #[error("the evidence is of an epoch that is too old to be punished")]
    EvidenceTooOld,
    /// Two transactions of the account change its stake.
    #[error("two transactions change the account's stake in one block; all of the account's are removed")]
    StakeConflict,
    /// Two accounts claim one validator key.
    #[error("two accounts claim the same validator key in one block; both are removed")]
    ValidatorKeyConflict,
    /// The offer sells less than the minimum.
    #[error("the offer sells less than the minimum of its asset; see `least_units` under /v1/assets")]
    SellsTooLittle,
    /// The offer asks for less than the minimum.
    #[error("the offer asks less than the minimum of the asset it buys: raise amount or limit; see /v1/assets")]
    AsksTooLittle,
    /// The book was full before the block.
    #[error(
        "the book is full: it accepts new offers when some have traded or been cancelled; see `limits` in the genesis"
    )]
    BookFull,
    /// The offer would open a pair, but the maximum number of pairs is open.
    #[error("no more pairs can be opened: trade a pair that is open; see `limits` in the genesis")]
    TooManyPairs,
    /// The transaction is beyond the quota of its sub-block.
    #[error("the sub-block is over its quota of stakes, accusations or lane posts: send it again")]
    OverQuota,
    /// The registry is full, and all validators have staked at least as much.
    #[error("the registry is full: stake more than the validator with the lowest stake")]
    RegistryFull,
    /// The post about the payment lane is too long.
    #[error("{}", Malformed::LanePostTooLong)]
    LanePostTooLong,
    /// The chain has no payment lane.
    #[error("this chain has no payment lane; see `lane` in the genesis")]
    NoLane,
    /// The payment lane does not carry the withdrawn asset.
    #[error("the payment lane does not carry this asset; see `lane.assets` in the genesis")]
    NotInLane,
    /// The withdrawal is below the least output.
    #[error("the withdrawal is below the least output of its asset; see `lane.assets` in the genesis")]
    WithdrawsTooLittle,
    /// The post about the lane cannot be decoded.
    #[error("the post about the payment lane cannot be decoded, or is for another network")]
    BadLanePost,
    /// A signature or certificate of the post is invalid.
    #[error("the post's certificate or one of its signatures is invalid")]
    UnprovenLanePost,
    /// The bid for opening a case is too low.
    #[error("the bid is below the lowest one for opening a case; see `lane.case_deposit` in the genesis")]
    WrongCaseDeposit,
    /// The certificate is redeemed too early or too late.
    #[error("certificates are redeemable from their epoch until three lane epochs later")]
    NotRedeemable,
    /// An input of the payment was credited to its owner.
    #[error("the payment is void: an input was credited to its owner by a verdict")]
    VoidPayment,
    /// The case is opened too early or too late.
    #[error("a case about an output can be opened until the middle of the second lane epoch after its own")]
    CaseTooLate,
    /// The case is about an output that the ledger did not create.
    #[error("the ledger backs no such output; show the certificate of the payment that created it")]
    UnknownOutput,
    /// The output of the vote or view has no open case.
    #[error("there is no open case about this output")]
    NoCase,
    /// The vote to halt is for another round than the present one.
    #[error("the vote to halt is for another epoch or round than the present one; see /v1/lane")]
    WrongHaltRound,
    /// The payment is to the address of a token.
    #[error("the address is reserved for the token of an asset; nobody could move what it holds")]
    ReservedAddress,
    /// Lane keys are registered for another epoch than the next one, or a second time.
    #[error("a member of the payment lane can register new keys once, for the next lane epoch only; see /v1/lane")]
    WrongLaneKeys,
    /// No key generation of the lane expects the dealing or complaint.
    #[error("no key generation of the lane expects this dealing or complaint now; see `lane.bls` in the genesis")]
    NotAwaited,
    /// The transaction ended below the height of the block.
    #[error("the transaction has ended: its last height (`until`) is past; sign it again with a later one")]
    Ended,
    /// The transaction ends too late.
    #[error("the transaction ends too late: `until` is further ahead than `until_max` of /v1/limits permits")]
    EndsTooLate,
    /// A post that is marked as a member's duty is none, or is done already.
    #[error("the post is no duty that this account's member still has in the lane: send it without the mark of a duty")]
    NoLaneDuty,
}

impl Refusal {
    /// Whether a correct proposer never includes the transaction: it is malformed, forged, or invalid by rules that
    /// never change on a chain. A sub-block with such a transaction earns no reward.
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
            | Refusal::Ended
            | Refusal::EndsTooLate
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
            | Refusal::NoLaneDuty
            | Refusal::WrongHaltRound
            | Refusal::WrongLaneKeys
            | Refusal::NotAwaited => false,
        }
    }

    /// The code by which programs recognize the reason.
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
            Refusal::Ended => "ended",
            Refusal::EndsTooLate => "ends_too_late",
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
            Refusal::NoLaneDuty => "no_lane_duty",
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
