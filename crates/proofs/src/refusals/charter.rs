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
}
