//! The range of rules that this program implements.
//!
//! The rules of a height stand in the state (`places::charter`): nothing in a program decides them. A program replays
//! what any of its rules made, decides under the later ones, and stops before those that it does not know.

use primitives::Digest;

/// The oldest rules whose blocks this program replays.
pub const RULES_FLOOR: u32 = 11;
/// The oldest rules under which it decides.
pub const RULES_LEAST: u32 = 11;
/// The newest rules that it implements. A change of what a block does, or of what is signed about one, needs a new
/// number and a branch at the place that it changes.
pub const RULES_NEWEST: u32 = 12;
const _: () = assert!(clearing::RULES == 10, "the solver's results have changed: rules need a new number");
const _: () = assert!(RULES_FLOOR <= RULES_LEAST && RULES_LEAST <= RULES_NEWEST, "a range");

const MANIFEST_CONTEXT: &str = "walras 2026 manifest of rules v1";

/// What each number means, from [`RULES_FLOOR`] on. A text never changes once its rules act anywhere.
const TEXTS: [&str; (RULES_NEWEST - RULES_FLOOR + 1) as usize] = [
    "11: the charter. The rules of a height stand in the state. Approve and Unapprove.",
    "12: references. PayReferenced moves units as Pay does; its reference is signed and is in no state.",
];

/// The digest of what this program means by a number: its text, and the oldest rules that the program replays. `None`
/// for rules that it does not implement.
pub fn manifest(rules: u32) -> Option<Digest> {
    let bytes = borsh::to_vec(&(rules, RULES_FLOOR, text_of(rules)?)).expect("writing to memory cannot fail");
    Some(Digest::of(MANIFEST_CONTEXT, &bytes))
}

/// What a number means, for people; `None` for rules that this program does not implement.
pub fn text_of(rules: u32) -> Option<&'static str> {
    TEXTS.get(rules.checked_sub(RULES_FLOOR)? as usize).copied()
}
