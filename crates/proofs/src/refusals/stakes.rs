//! Why a stake or an accusation is refused.

use primitives::Malformed;

use crate::refusal::{Reason, Refusal, invalid, refusals};
use crate::root_parts::RootPart;

refusals! {
    RootPart::STAKES =>
    /// The network address of a validator is malformed.
    NETWORK_ADDRESS: invalid, "network_address",
        Malformed::NetworkAddress.text();
    /// The chain's committee never changes.
    COMMITTEE_FIXED: invalid, "committee_fixed",
        "this chain's validators are those of its genesis: nothing can be staked or unstaked";
    /// The stake would be below the minimum.
    STAKE_TOO_SMALL: refused, "stake_too_small",
        "the stake would be below the minimum of a validator; see `minimum_stake` under /v1/validators";
    /// The validator key belongs to another validator.
    VALIDATOR_KEY_TAKEN: refused, "validator_key_taken",
        "the validator key belongs to another validator; use another key";
    /// The holder of the validator key has not agreed.
    NOT_POSSESSED: invalid, "not_possessed",
        "the validator key has not signed for this account and chain";
    /// The account has no stake.
    NOT_A_VALIDATOR: refused, "not_a_validator",
        "the account is not a validator; see /v1/validators";
    /// The account unstakes more than it has staked.
    UNSTAKE_TOO_MUCH: refused, "unstake_too_much",
        "the account has staked less than it wants to unstake";
    /// The validator was convicted.
    EXCLUDED: refused, "excluded",
        "the validator was convicted of contradicting itself and is excluded";
    /// The evidence convicts nobody.
    BAD_EVIDENCE: invalid, "bad_evidence",
        "the evidence does not convict a validator of this network";
    /// The evidence is of an epoch whose stakes may have been paid back.
    EVIDENCE_TOO_OLD: refused, "evidence_too_old",
        "the evidence is of an epoch that is too old to be punished";
    /// Two transactions of the account change its stake.
    STAKE_CONFLICT: refused, "stake_conflict",
        "two transactions change the account's stake in one block; all of the account's are removed";
    /// Two accounts claim one validator key.
    VALIDATOR_KEY_CONFLICT: refused, "validator_key_conflict",
        "two accounts claim the same validator key in one block; both are removed";
    /// The registry is full, and all validators have staked at least as much.
    REGISTRY_FULL: refused, "registry_full",
        "the registry is full: stake more than the validator with the lowest stake";
    /// A presence takes no sequence number.
    PRESENCE_NUMBER: invalid, "presence_number",
        Malformed::PresenceNumber.text();
    /// The presence is not signed by the key of the account's validator.
    NOT_VALIDATORS_KEY: refused, "not_validators_key",
        "the post of a validator is not signed by the key that the account's stake names; see /v1/validators";
    /// The presence is for an epoch that is drawn already, or not the next one.
    PRESENCE_OF_OTHER_EPOCH: refused, "presence_of_other_epoch",
        "the presence is not for the next epoch that is drawn; see /v1/validators";
    /// The validator has posted its presence for this epoch.
    PRESENT_ALREADY: refused, "present_already",
        "the validator has posted its presence for this epoch already";
}
