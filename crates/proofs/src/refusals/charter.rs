//! Why an operation about the rules of the chain, or of rules to come, is refused.

use crate::refusal::{Reason, Refusal, invalid, refusals};
use crate::root_parts::RootPart;

refusals! {
    RootPart::CHARTER =>
    /// The operation belongs to rules that are not in force yet.
    RULES_TO_COME: refused, "rules_to_come",
        "the operation belongs to rules that are not in force yet: /v1/upgrade says from which height they are";
    /// The rules of the chain do not change by approvals.
    RULES_FIXED: refused, "rules_fixed",
        "this chain's rules change by a restart only: its committee never changes, or its genesis names no operator";
    /// The account has no say about the rules.
    NO_SAY: refused, "no_say",
        "the account has no say about the rules: it has no stake and no seat, and the genesis names it no operator";
    /// The rules are neither those in force nor the next ones.
    OTHER_RULES: refused, "other_rules",
        "only the next number is approved, and the rules in force with the manifest that the chain has; see /v1/upgrade";
    /// The notice is out of bounds.
    NOTICE_OUT_OF_BOUNDS: refused, "notice_out_of_bounds",
        "the notice is shorter than `notice_min` of /v1/upgrade, or longer than 34560000 heights";
    /// The approval is older than the last one of the account, or from a height to come.
    APPROVAL_OUTDATED: refused, "approval_outdated",
        "the approval is older than what the account has said since, or names a height to come: sign it again with \
         the present height";
    /// The account has said so already.
    APPROVED_ALREADY: refused, "approved_already",
        "the account has approved these rules already";
    /// No proposal is open under this id.
    UNKNOWN_PROPOSAL: refused, "unknown_proposal",
        "no open proposal has this id: it was decided, replaced, or is over; /v1/parameters lists those that are open";
    /// As many proposals are open as may be, and of accounts that stake more.
    TOO_MANY_PROPOSALS: refused, "too_many_proposals",
        "64 proposals are open, all of accounts that stake more: wait for a boundary, or stake more";
    /// The value is the one that will be in force.
    CHANGES_NOTHING: refused, "changes_nothing",
        "the parameter will have this value already; see /v1/parameters";
    /// The value is beyond the parameter's bounds, or the parameter is not used on this chain.
    OUT_OF_BOUNDS: refused, "out_of_bounds",
        "the value is beyond the bounds of the parameter at /v1/parameters; what is zero stays zero";
    /// The value is more than twice the one that will be in force, or less than half of it.
    STEP_TOO_LARGE: refused, "step_too_large",
        "at one time a parameter becomes at most twice as large, and at least half; see /v1/parameters";
    /// The parameter has changed within thirty days.
    CHANGED_LATELY: refused, "changed_lately",
        "the parameter has changed within the last 2592000 heights; /v1/parameters tells when it can change again";
    /// The whole record could not be that of a genesis.
    DOES_NOT_FIT: refused, "does_not_fit",
        "with this value the parameters do not fit together: offers for all pairs, validators for a committee, the usual \
         end of a transaction";
    /// The policy of listings is not that of votes.
    NOT_LISTED_BY_VOTE: refused, "not_listed_by_vote",
        "a vote lists no assets on this chain now: propose `listing_policy` 2 first";
}
