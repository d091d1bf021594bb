//! Reasons of a place for tests.

use crate::refusal::{Reason, Refusal, invalid, refusals};

pub(crate) const TAG: u8 = 250;

refusals! {
    TAG =>
    /// Nothing waits for the sender.
    NOTHING_WAITS: refused, "nothing_waits",
        "nothing waits for this account";
    /// The operation asks for nothing.
    ASKS_NOTHING: invalid, "asks_nothing",
        "the operation asks for no units";
}

#[test]
fn a_trial_place_refuses_for_its_own_reasons() {
    assert!(Refusal::ASKS_NOTHING.is_false() && !Refusal::NOTHING_WAITS.is_false());
    assert_eq!(borsh::to_vec(&Refusal::NOTHING_WAITS).expect("encodes"), [TAG, 0]);
    assert_eq!(borsh::from_slice::<Refusal>(&[TAG, 1]).expect("known"), Refusal::ASKS_NOTHING);
    assert_eq!(Refusal::NOTHING_WAITS.to_string(), "nothing waits for this account");
}
