//! Why an operation on the keys of an account, or a request of an account with a policy, is refused.

use primitives::Malformed;

use crate::refusal::{Reason, Refusal, invalid, refusals};
use crate::root_parts::RootPart;

refusals! {
    RootPart::KEYS =>
    /// A policy is out of bounds.
    KEY_POLICY: invalid, "key_policy",
        Malformed::KeyPolicy.text();
    /// Signatures of several keys are out of order, too many, none, or several of one key.
    KEY_SIGNATURES: invalid, "key_signatures",
        Malformed::KeySignatures.text();
    /// The account has a policy, and one key signs.
    POLICY_SIGNS: refused, "policy_signs",
        "the account has a policy: its signers sign together (`walras wallet request`), and its keys change by set_keys";
    /// Signers of a policy sign for an account that has none.
    NO_POLICY: refused, "no_policy",
        "the account has no policy of keys: its own key signs alone";
    /// The signatures name an earlier change of keys.
    KEYS_CHANGED: refused, "keys_changed",
        "the signatures name another change of keys than the account's last one: sign again with its `keys.last`";
    /// Somebody has signed who is no signer.
    NOT_A_SIGNER: refused, "not_a_signer",
        "somebody has signed who is no signer of the account: leave that signature out";
    /// The signatures have too little weight.
    TOO_FEW_SIGNED: refused, "too_few_signed",
        "the signatures have less weight than the account's policy asks for: more of its signers must sign";
    /// Those who will govern the account have not signed.
    NEW_SIGNERS_MISSING: refused, "new_signers_missing",
        "the signers of the new policy have not signed with the weight that will govern: a mistyped key cannot sign";
    /// Too few guardians have signed.
    TOO_FEW_GUARDIANS: refused, "too_few_guardians",
        "fewer guardians have signed than recover the account, or it has none";
    /// A change of keys waits.
    CHANGE_WAITS: refused, "change_waits",
        "a change of the account's keys waits: complete it when it is due, or replace it by another set_keys";
    /// No change of keys waits.
    NO_CHANGE_WAITS: refused, "no_change_waits",
        "no change of the account's keys waits";
    /// The wait of the change is not over.
    CHANGE_NOT_DUE: refused, "change_not_due",
        "the wait of the change is not over: `keys.waiting.due` of the account is the first height";
    /// The account has acted as one of Ethereum.
    ETHEREUM_ACCOUNT: refused, "ethereum_account",
        "the account has code, or has sent Ethereum transactions: it gets no policy";
}
