//! At the receiver: gaps, deadlines, hold and release. References here share no code with the cores.

use std::collections::BTreeSet;

use crate::dice::Dice;
use fairnet::*;
use proptest::prelude::*;

/// Sends packets 1..=count through a lossy, reordering, duplicating link, and answers rewinds after a round trip.
fn through_gaps(seed: u64, count: u64, loss: u64, rules: GapRules) -> (Vec<u64>, Vec<(u64, u64)>, u64) {
    let mut dice = Dice::new(seed);
    let mut arrivals: BTreeSet<(Nanos, u64, u64)> = BTreeSet::new();
    let mut tie = 0;
    for sequence in 1..=count {
        for _ in 0..1 + dice.below(2) {
            tie += 1;
            if !dice.is(loss) {
                arrivals.insert((sequence * 10_000 + dice.below(60_000), tie, sequence));
            }
        }
    }
    let deadline = |sequence: u64| sequence * 10_000 + 400_000;
    let (mut gaps, mut out, mut delivered, mut lost, mut asked) = (Gaps::new(1, rules), Vec::new(), vec![], vec![], 0);
    let end = count * 10_000 + 60_000;
    let mut now = 0;
    let mut is_told = false;
    loop {
        let first = arrivals.first().copied();
        let due = gaps.due().into_iter().chain(first.map(|next| next.0)).chain((!is_told).then_some(end)).min();
        let Some(at) = due else { break };
        now = at.max(now);
        if first.is_some_and(|next| next.0 <= now) {
            let (_, _, sequence) = arrivals.pop_first().expect("an arrival");
            gaps.step(now, GapInput::Packet(sequence, deadline(sequence), sequence), &mut out);
        } else if now >= end && !is_told {
            is_told = true;
            gaps.step(now, GapInput::Sent(count, deadline(count)), &mut out);
        } else {
            gaps.step(now, GapInput::Tick, &mut out);
        }
        for effect in out.drain(..) {
            match effect {
                GapEffect::Deliver(sequence, due, item) => {
                    assert_eq!((due, item), (deadline(sequence), sequence));
                    delivered.push(sequence);
                }
                GapEffect::Lost(first, count) => lost.push((first, count)),
                GapEffect::Rewind { first, count, attempt } => {
                    assert!(attempt < rules.tries);
                    asked += u64::from(count);
                    for sequence in (first..).take(count.into()).filter(|_| !dice.is(loss)) {
                        tie += 1;
                        arrivals.insert((now + rules.round_trip, tie, sequence));
                    }
                }
            }
        }
    }
    (delivered, lost, asked)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn gaps_deliver_each_sequence_in_order_once_or_report_it_lost(seed in any::<u64>(), loss in 0u64..60) {
        let (delivered, lost, _) = through_gaps(seed, 400, loss, GapRules { tries: 3, ..GapRules::default() });
        prop_assert!(delivered.windows(2).all(|pair| pair[0] < pair[1]));
        let given_up = lost.iter().flat_map(|(first, count)| *first..first + count);
        let all: BTreeSet<u64> = delivered.iter().copied().chain(given_up.clone()).collect();
        prop_assert_eq!(all.len(), delivered.len() + given_up.count());
        prop_assert_eq!(all, (1..=400).collect::<BTreeSet<u64>>());
    }

    #[test]
    fn gaps_recover_rare_losses_by_few_rewinds(seed in any::<u64>()) {
        let (delivered, lost, asked) = through_gaps(seed, 400, 5, GapRules::default());
        prop_assert_eq!(delivered.len(), 400);
        prop_assert!(lost.is_empty() && asked < 100, "{:?} {}", lost, asked);
    }
}

#[test]
fn gaps_ask_before_the_deadline_rather_than_after_the_reorder_time() {
    let rules = GapRules { reorder: 1_000, round_trip: 300, tries: 2, span: 8 };
    let (mut gaps, mut out) = (Gaps::new(1, rules), Vec::new());
    gaps.step(0, GapInput::Packet(2, 800, 'b'), &mut out);
    assert_eq!(gaps.due(), Some(500));
    gaps.step(500, GapInput::Tick, &mut out);
    assert_eq!(out, [GapEffect::Rewind { first: 1, count: 1, attempt: 0 }]);
    out.clear();
    gaps.step(800, GapInput::Tick, &mut out);
    assert_eq!(out, [GapEffect::Rewind { first: 1, count: 1, attempt: 1 }]);
    out.clear();
    gaps.step(1_100, GapInput::Tick, &mut out);
    assert_eq!(out, [GapEffect::Lost(1, 1), GapEffect::Deliver(2, 800, 'b')]);
    out.clear();
    // Too far ahead to be held back: what is between is given up.
    gaps.step(1_200, GapInput::Packet(30, 2_000, 'z'), &mut out);
    assert_eq!(out, [GapEffect::Lost(3, 27), GapEffect::Deliver(30, 2_000, 'z')]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn hold_releases_like_a_sorted_list(seed in any::<u64>()) {
        let mut dice = Dice::new(seed);
        let clock = ClockState { error_bound: Some(100) };
        let (mut hold, mut list, mut now) = (Hold::new(0, HoldRules::default(), clock), Vec::new(), 0);
        for sequence in 1..400u64 {
            now += dice.below(200_000);
            let mut out = Vec::new();
            let reach = if dice.is(5) { 20_000_000 } else { 400_000 };
            let key = HoldKey {
                deadline: (now + dice.below(reach)).saturating_sub(2_000),
                tree: dice.below(3) as u16,
                sequence,
                receiver: dice.below(4) as u32,
            };
            let earliest = list.iter().map(|key: &HoldKey| key.deadline).min();
            prop_assert_eq!(hold.due(), earliest);
            list.push(key);
            hold.step(now, HoldInput::Packet(key, sequence, false), &mut out);
            list = released_from(list, now, &out);
            if dice.is(30) {
                let pause = if dice.is(5) { 30_000_000 } else { 100_000 };
                now += dice.below(pause);
                out.clear();
                hold.step(now, HoldInput::Tick, &mut out);
                list = released_from(list, now, &out);
            }
        }
    }
}

/// Checks one step's releases against the packets that were held, and returns those that still are.
fn released_from(list: Vec<HoldKey>, now: Nanos, out: &[Released<u64>]) -> Vec<HoldKey> {
    let (mut due, kept): (Vec<HoldKey>, Vec<HoldKey>) = list.into_iter().partition(|key| key.deadline <= now);
    due.sort();
    assert_eq!(due, out.iter().map(|released| released.key).collect::<Vec<HoldKey>>());
    for released in out {
        let late = now - released.key.deadline;
        assert_eq!(released.unfair, (late > 1_000).then_some(Unfair::Late(late)));
        assert_eq!(released.item, released.key.sequence);
    }
    kept
}

#[test]
fn hold_calls_a_release_fair_only_if_time_and_clock_allow() {
    let release = |arrival: Nanos, tick: Nanos, bound: Option<Nanos>, by_root: bool| {
        let mut hold = Hold::new(0, HoldRules::default(), ClockState { error_bound: bound });
        let (key, mut out) = (HoldKey { deadline: 10_000, tree: 0, sequence: 1, receiver: 0 }, Vec::new());
        hold.step(arrival, HoldInput::Packet(key, (), by_root), &mut out);
        hold.step(tick, HoldInput::Tick, &mut out);
        out.pop().expect("a release").unfair
    };
    assert_eq!(release(0, 10_000, Some(500), false), None);
    assert_eq!(release(0, 11_000, Some(500), false), None);
    assert_eq!(release(0, 11_001, Some(500), false), Some(Unfair::Late(1_001)));
    assert_eq!(release(12_000, 12_000, Some(500), false), Some(Unfair::Late(2_000)));
    assert_eq!(release(0, 10_000, Some(501), false), Some(Unfair::Clock(501)));
    assert_eq!(release(0, 10_000, None, false), Some(Unfair::Unsynchronised));
    assert_eq!(release(0, 10_000, Some(0), true), Some(Unfair::Root));
}

#[test]
fn hold_shows_packets_of_one_moment_by_deadline_tree_and_sequence() {
    let mut hold = Hold::new(0, HoldRules::default(), ClockState { error_bound: Some(0) });
    let mut out = Vec::new();
    for (deadline, tree, sequence) in [(20, 0, 3), (10, 1, 1), (10, 0, 2), (20, 0, 2), (9, 7, 9)] {
        hold.step(0, HoldInput::Packet(HoldKey { deadline, tree, sequence, receiver: 0 }, (), false), &mut out);
    }
    assert!(out.is_empty() && hold.due() == Some(9));
    hold.step(50, HoldInput::Tick, &mut out);
    let order: Vec<(Nanos, u16, u64)> = out.iter().map(|r| (r.key.deadline, r.key.tree, r.key.sequence)).collect();
    assert_eq!(order, [(9, 7, 9), (10, 0, 2), (10, 1, 1), (20, 0, 2), (20, 0, 3)]);
}

#[test]
fn deadlines_never_decrease_and_stay_below_the_ceiling() {
    let rules = DeadlineRules::default();
    let (mut deadlines, mut dice, mut last) = (Deadlines::new(rules), Dice::new(3), 0);
    for now in (0..1_000u64).map(|step| step * 50_000) {
        if dice.is(30) {
            deadlines.report(dice.below(4_000_000));
        }
        let deadline = deadlines.next(now);
        assert!(deadline >= last && deadlines.headroom() <= rules.ceiling && deadline >= now + deadlines.headroom());
        assert!(deadline <= now + rules.ceiling, "an old headroom does not outlive its packets");
        last = deadline;
    }
}

#[test]
fn deadlines_fold_ignores_laggards_and_old_reports() {
    let rules = DeadlineRules::default();
    let mut fold = DelayFold::new(0, 5, rules);
    let period = |fold: &mut DelayFold, at: u64, reports: &[(u32, Nanos)]| {
        let mut out = Vec::new();
        reports.iter().for_each(|report| fold.step(at * rules.period - 1, Some(*report), &mut out));
        fold.step(at * rules.period, None, &mut out);
        out
    };
    let all = [(0, 100_000), (1, 120_000), (2, 110_000), (3, 330_001), (4, 90_000), (9, 1)];
    assert_eq!(period(&mut fold, 1, &all), [FoldEffect::Excluded(3), FoldEffect::Report(120_000)]);
    // The median of the others is 105 µs between 100 and 110; the lower one counts.
    assert_eq!(period(&mut fold, 2, &[(3, 300_000)]), [FoldEffect::Included(3), FoldEffect::Report(300_000)]);
    assert_eq!(period(&mut fold, 3, &[(3, 3_000_000)]), [FoldEffect::Excluded(3), FoldEffect::Report(120_000)]);
    // Reports of period 1 have expired three periods later; nobody is left to compare with.
    assert_eq!(period(&mut fold, 5, &[]), []);
    assert_eq!(period(&mut fold, 6, &[(3, 400_000)]), [FoldEffect::Included(3), FoldEffect::Report(400_000)]);
    assert_eq!(period(&mut fold, 7, &[(2, 2_000_001)])[0], FoldEffect::Excluded(2), "above the ceiling");
}

#[test]
fn deadlines_all_reduce_of_a_tree_is_the_maximum_of_all() {
    let rules = DeadlineRules { laggard: 1_000, ..DeadlineRules::default() };
    let mut dice = Dice::new(11);
    let delays: Vec<Nanos> = (0..100).map(|_| 50_000 + dice.below(100_000)).collect();
    let fold = |reports: &[Nanos]| {
        let (mut fold, mut out) = (DelayFold::new(0, reports.len(), rules), Vec::new());
        reports.iter().zip(0..).for_each(|(delay, child)| fold.step(1, Some((child, *delay)), &mut out));
        fold.step(rules.period, None, &mut out);
        match out.pop() {
            Some(FoldEffect::Report(most)) => most,
            other => panic!("{other:?}"),
        }
    };
    let layer: Vec<Nanos> = delays.chunks(10).map(fold).collect();
    assert_eq!(Some(fold(&layer)), delays.iter().copied().max());
}

#[test]
fn deadlines_meter_reports_the_percentile_of_its_window() {
    let rules = DeadlineRules::default();
    let mut meter = DelayMeter::new(0, rules);
    for delay in (1..=100).rev() {
        assert_eq!(meter.step(delay, Some(delay * 1_000)), None);
    }
    assert_eq!(meter.step(rules.period, Some(7)), Some(95_000));
    assert_eq!(meter.step(2 * rules.period, None), Some(7));
    assert_eq!(meter.step(3 * rules.period, None), None, "an empty window says nothing");
}
