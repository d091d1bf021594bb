//! The range of rules that this program implements.
//!
//! The rules of a height stand in the state (`places::charter`): nothing in a program decides them. A program replays
//! what any of its rules made, decides under the later ones, and stops before those that it does not know.

use primitives::Digest;
use proofs::ChainRules;

/// The oldest rules whose blocks this program replays.
pub const RULES_FLOOR: u32 = 11;
/// The oldest rules under which it decides.
pub const RULES_LEAST: u32 = 11;
/// The newest rules that it implements. A change of what a block does, or of what is signed about one, needs a new
/// number and a branch at the place that it changes.
pub const RULES_NEWEST: u32 = primitives::RULES_OF_LANE_TERMS;
const _: () = assert!(clearing::RULES == 10, "the solver's results have changed: rules need a new number");
const _: () = assert!(RULES_FLOOR <= RULES_LEAST && RULES_LEAST <= RULES_NEWEST, "a range");

const MANIFEST_CONTEXT: &str = "walras 2026 manifest of rules v1";

/// What each number means, from [`RULES_FLOOR`] on. A text never changes once its rules act anywhere.
const TEXTS: [&str; (RULES_NEWEST - RULES_FLOOR + 1) as usize] = [
    "11: the charter. The rules of a height stand in the state. Approve and Unapprove.",
    "12: references. PayReferenced and IssueReferenced do what Pay and Issue do; their references are signed and are in \
     no state.",
    "13: steps of venues. One signature holds for all reports of a step; AccuseStep and ClaimStep judge them.",
    "14: policies. Several keys sign for an account. SetKeys, RecoverKeys and CompleteKeys; session keys of scope duty, \
     which accuse by steps, too. SetReceiving: payments to an account may need a reference.",
    "15: listings. Assets are listed on a running chain, and close. ListAsset and CloseAsset.",
    "16: proposals. Validators vote on parameters of the chain, on assets with plain names, and on the ends of assets. \
     Propose and Vote.",
    "17: controls. Issuers freeze holders of their assets, admit them, and recover units of those frozen for long, as \
     listings and the genesis say. SetHolder and Recover; Recall at venues; session keys of scope control.",
    "18: lists. A trading key signs up to 64 orders of a venue by one signature. Settles and claims show such an order by \
     its path.",
    "19: lane terms. Validators vote on the terms of assets in the payment lane, which are those of lane epochs that \
     begin later. Propose with lane terms.",
];

/// The digest of what this program means by a number: of its text alone, so that a later release that replays less
/// means the same. `None` for rules that it does not implement.
pub fn manifest(rules: u32) -> Option<Digest> {
    let bytes = borsh::to_vec(&(rules, text_of(rules)?)).expect("writing to memory cannot fail");
    Some(Digest::of(MANIFEST_CONTEXT, &bytes))
}

/// The newest rules that a program follows on a chain with these, if it knows no number above `newest`. It may mean
/// something else than the chain by the number that is agreed on: then it follows those before.
pub fn followed(rules: &ChainRules, newest: u32) -> u32 {
    let (agreed, meant, _) = rules.agreed();
    if manifest(agreed) == Some(meant) { newest } else { newest.min(agreed.saturating_sub(1)) }
}

/// What a number means, for people; `None` for rules that this program does not implement.
pub fn text_of(rules: u32) -> Option<&'static str> {
    TEXTS.get(rules.checked_sub(RULES_FLOOR)? as usize).copied()
}
