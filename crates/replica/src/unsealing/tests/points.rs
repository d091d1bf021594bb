//! Frames as bytes, and jobs with points in place of symbols.

use super::*;

#[test]
fn frames_are_read_as_written_and_nothing_else_is() {
    for frame in [
        UnsealFrame::Ask(7),
        UnsealFrame::Shares { height: Height::MAX, key: 3, points: [OpeningKey([1; 48]); 1].into() },
        UnsealFrame::Keys { height: 0, points: [OpeningKey([2; 48]); ENVELOPES_MAX].into() },
    ] {
        let bytes = frame.to_bytes();
        assert!(bytes.len() <= 3_090);
        assert_eq!(UnsealFrame::from_bytes(&bytes), Ok(frame));
        for end in 0..bytes.len() {
            let cut = UnsealFrame::from_bytes(&bytes[..end]);
            let is_shorter = end > 10 && (end - 10) % 48 == 0;
            assert!(cut.is_err() || is_shorter, "{end} bytes");
        }
    }
    let many = UnsealFrame::Keys { height: 1, points: [OpeningKey([2; 48]); ENVELOPES_MAX + 1].into() };
    assert!(UnsealFrame::from_bytes(&many.to_bytes()).is_err());
    assert!(UnsealFrame::from_bytes(&[TAG_OF_NOTHING; 58]).is_err());
}

const TAG_OF_NOTHING: u8 = 3;

/// Points in place of symbols.
#[test]
fn a_committee_of_points_opens_a_height() {
    let key = blst_key(1);
    let share = || sealing::SealShare::parse(&secret(1).to_bytes()).expect("a secret key is a scalar");
    let holders: BTreeMap<Index, (u8, SealingKey)> = [(0, (0, key)), (1, (1, key))].into();
    let of = Arc::new(SealCommittee::new((1, key, 1), holders, Some(0)));
    let all: Arc<[Label]> = [label(1, 0), label(1, 1)].into();
    let made = UnsealWork::Make { height: 1, key: 1, labels: all.clone() }.perform(|_| Some(share()));
    let UnsealResult::Made { shares: Some(made), .. } = made else { panic!("it has its share") };
    let combine = |points: Points| UnsealWork::Combine {
        height: 1,
        committee: of.clone(),
        labels: all.clone(),
        parts: vec![(1, points)],
    };
    let open = combine(made.clone()).perform(|_| None);
    assert_eq!(open, UnsealResult::LotOpen { height: 1, key: 1, keys: made.clone() }, "one share of one is the key");
    let false_one: Points = made.iter().rev().copied().collect();
    let refused = combine(false_one.clone()).perform(|_| None);
    assert_eq!(refused, UnsealResult::FalseShares { height: 1, key: 1, senders: BTreeSet::from([1]) });
    let check = |keys: Points| UnsealWork::Check {
        height: 1,
        from: 3,
        lots: vec![(of.clone(), all.clone(), keys.clone())],
        keys,
    };
    assert_eq!(check(made.clone()).perform(|_| None), UnsealResult::Open { height: 1, keys: made });
    assert_eq!(check(false_one).perform(|_| None), UnsealResult::FalseKeys { height: 1, sender: 3 });
    let lost = UnsealWork::Make { height: 1, key: 1, labels: all }.perform(|_| None);
    assert_eq!(lost, UnsealResult::Made { height: 1, key: 1, shares: None });
}
