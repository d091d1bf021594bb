use proptest::prelude::*;

use super::*;
use crate::{Quorums, is_redeemable};

const ENDS: [CaseEnd; 4] = [CaseEnd::Confirmed, CaseEnd::Freed, CaseEnd::Lapsed, CaseEnd::Expired];

#[test]
fn a_view_is_proven_only_by_the_certificate_of_the_payment_it_names() {
    assert_eq!(ViewClaim::<u8>::Empty.proven(), Ok(None));
    let claim = |certified| ViewClaim::Paid { payment: 1, certified };
    assert_eq!(claim(Some(1)).proven(), Ok(Some(1)));
    assert_eq!(claim(None).proven(), Err(UnprovenView), "a stripped view is not empty");
    assert_eq!(claim(Some(2)).proven(), Err(UnprovenView));
}

#[test]
fn a_committee_without_a_case_is_redeemable_as_before() {
    for now in 5..20 {
        assert_eq!(CommitteeLife::of(5).is_kept(now), is_redeemable(5, now));
    }
}

#[test]
fn a_case_at_the_last_moment_ends_within_the_table() {
    let case = LaneTime { epoch: OPEN_EPOCHS, height: 0 };
    let first = |holds: &dyn Fn(u64) -> bool| (0..20).find(|now| holds(*now));
    assert_eq!(first(&|now| case.may_lapse(now)), Some(4));
    let at = |epoch| LaneTime { epoch, height: 0 };
    assert_eq!(first(&|now| case.is_expired(at(now), 1)), Some(5));
    let last = CommitteeLife::of(0).after(CaseEnd::Confirmed, 4);
    let life = CommitteeLife { last, is_concerned: false };
    assert_eq!((life.signs(5), life.signs(6), life.is_kept(6), life.is_kept(7)), (true, false, true, false));
}

#[test]
fn a_case_expires_by_block_heights_while_lane_time_stands_still() {
    let case = LaneTime { epoch: 3, height: 100 };
    let at = |height| LaneTime { epoch: 3, height };
    assert!(!case.is_expired(at(149), 50) && case.is_expired(at(150), 50));
    let last = LaneTime { epoch: u64::MAX, height: u64::MAX };
    assert!(!last.is_expired(LaneTime::default(), u64::MAX), "no overflow");
}

proptest! {
    /// What a committee has signed can be redeemed in the epoch in which it was signed, and in the next.
    #[test]
    fn what_is_signed_is_redeemable_for_one_epoch_more(
        committee in 0u64..9, closed in 0u64..15, end in 0usize..4, now in 0u64..30,
    ) {
        let last = CommitteeLife::of(committee).after(ENDS[end], closed);
        let life = CommitteeLife { last, is_concerned: false };
        prop_assert!(!life.signs(now) || life.is_kept(now) && life.is_kept(now + 1));
        prop_assert!(last >= committee + SPEND_EPOCHS, "a verdict shortens no life");
    }

    /// Members of any committee: those outside a binding set and the faulty ones cannot lapse a settled payment.
    #[test]
    fn the_empty_views_of_a_settled_payment_never_bind(n in 1usize..=100, unregistered in 0usize..100) {
        let quorums = Quorums::new(n);
        let unregistered = unregistered.min(n - quorums.certificate);
        let registered = n - unregistered;
        // The f faulty members are registered, sign for the payment, and post empty views.
        let correct_settlers = quorums.certificate - quorums.faulty.min(quorums.certificate);
        let empty = registered - correct_settlers + unregistered;
        let count = BindingCount { members: empty, binding: quorums.binding() };
        prop_assert!(!count.binds());
    }

    /// The order of verdicts, for any facts.
    #[test]
    fn a_confirmed_payment_goes_first_and_expiry_last(
        is_confirmed: bool, against in proptest::option::of(proptest::collection::vec(0usize..5, 0..3)),
        empty in proptest::collection::vec(0usize..5, 1..3), may_lapse: bool, is_expired: bool,
    ) {
        let count = |members: &usize| BindingCount { members: *members, binding: 3 };
        let against: Option<Vec<_>> = against.map(|of| of.iter().map(count).collect());
        let empty: Vec<_> = empty.iter().map(count).collect();
        let facts =
            CaseFacts { is_confirmed, against: against.as_deref(), empty: &empty, may_lapse, is_expired };
        match facts.end() {
            Some(CaseEnd::Confirmed) => prop_assert!(is_confirmed),
            Some(CaseEnd::Freed) => prop_assert!(against.is_some()),
            Some(CaseEnd::Lapsed) => {
                prop_assert!(may_lapse && against.is_some());
                prop_assert!(empty.iter().all(|of| of.members >= 3));
            }
            Some(CaseEnd::Expired) => prop_assert!(is_expired && !is_confirmed),
            None => prop_assert!(!is_expired && !is_confirmed),
        }
    }
}
