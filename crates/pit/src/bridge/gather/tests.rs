//! Messages that are gathered, against the same ones signed one by one.

mod mistakes;

use kernel::Dice;
use protocols::ouch::{OuchCancel, OuchMassCancel, OuchOption, OuchReplace};

use super::super::translator::tests::{news, settings};
use super::*;
use crate::ouch::OuchList;
use crate::ouch::list_tests::{Door, Given, enter, replace};

const NOW_US: u64 = (20_000 * 86_400_000 + 5) * 1_000;

fn moment(after_us: u64) -> BridgeMoment {
    BridgeMoment { now_us: NOW_US + after_us, news: Some(news(true)) }
}

fn encoded(body: OuchInbound, options: Vec<OuchOption>) -> Vec<u8> {
    let mut bytes = Vec::new();
    OuchMessage { body, options: Some(options) }.encode(&mut bytes).expect("its options suit its kind");
    bytes
}

/// Something that a program says, often twice or wrong.
fn drawn(dice: &mut Dice, reference: &mut u32) -> Vec<u8> {
    let any = 1 + dice.below(u64::from(*reference) + 2) as u32;
    *reference += dice.below(3) as u32;
    let number = if dice.once_in(12) { any } else { *reference };
    let options = match dice.below(6) {
        0 => vec![OuchOption::PostOnly(b'P')],
        1 => vec![OuchOption::PostOnly(b'N'); dice.index(90)],
        _ => Vec::new(),
    };
    let symbol = if dice.once_in(12) { *b"EURUSD  " } else { crate::ouch::symbol_of(dice.below(3) as u32) };
    match dice.below(9) {
        0 => encoded(OuchInbound::Cancel(OuchCancel { user_ref: any, quantity: 0 }), Vec::new()),
        1 => {
            *reference += 1;
            let mass = OuchMassCancel { user_ref: *reference, firm: [b' '; 4], symbol: [b' '; 8] };
            encoded(OuchInbound::MassCancel(mass), Vec::new())
        }
        2 | 3 => encoded(OuchInbound::Replace(OuchReplace { ..replace(any, number) }), options),
        _ => {
            let enter = protocols::ouch::OuchEnter { symbol, ..enter(number) };
            encoded(OuchInbound::Enter(enter), options)
        }
    }
}

/// What becomes of a day of messages: what the root is given, what is refused, how many lists leave.
struct Day {
    door: Door,
    refused: Vec<Vec<u8>>,
    lists: usize,
}

impl Day {
    fn pass(&mut self, passed: Vec<Passed>) {
        for passed in passed {
            match passed {
                Passed::On(numbers, message) => {
                    let list = OuchList::decode(&message);
                    assert_eq!(
                        numbers.len(),
                        list.as_ref().map_or(numbers.len().min(1), |list| list.messages().count())
                    );
                    self.lists += usize::from(list.is_some());
                    self.door.hear(&message);
                }
                Passed::Refused(refused) => self.refused.push(refused),
            }
        }
    }
}

fn day(seed: u64, gather_us: u64, mistake: Option<GatherMistake>) -> (Vec<Given>, Vec<Vec<u8>>, usize, usize) {
    let mut dice = Dice::new(seed);
    let gather = Gather::new(&settings(gather_us));
    let (mut gather, mut reference, mut now) = (Gather { mistake: mistake.into(), ..gather }, 0, 0);
    let mut day = Day { door: Door::new(), refused: Vec::new(), lists: 0 };
    for _ in 0..160 {
        let message = drawn(&mut dice, &mut reference);
        now += [0, 0, 0, dice.below(2_000)][dice.index(4)];
        // Its host wakes a gathering at its end.
        let woken = gather.deadline_us().map_or(now, |due| (due - NOW_US).min(now));
        day.pass(gather.wake(&moment(woken)));
        day.pass(gather.take(&moment(now), &message));
        assert!(gather.waiting.len() < LIST_ORDERS_MAX);
        assert!(gather.deadline_us().is_none_or(|due| due <= NOW_US + now + gather_us));
    }
    day.pass(gather.flush(&moment(now)));
    assert!(gather.deadline_us().is_none() || mistake.is_some());
    (day.door.take_given(), day.refused, day.door.told(&[]).len(), day.lists)
}

/// The root sees no difference, and nobody is refused more or less.
#[test]
fn gathered_orders_come_to_the_same_as_orders_signed_one_by_one() {
    let mut lists = 0;
    for seed in 0..48 {
        let (given, refused, told, none) = day(seed, 0, None);
        assert_eq!(none, 0);
        for gather_us in [1, 200, GATHER_US_MAX] {
            let gathered = day(seed, gather_us, None);
            let differs = given.iter().zip(&gathered.0).position(|(one, other)| one != other);
            assert_eq!((differs, gathered.0.len()), (None, given.len()), "seed {seed}");
            assert!(gathered.1 == refused && gathered.2 == told, "seed {seed}");
            lists += gathered.3;
        }
        assert!(given.len() > 60 && !refused.is_empty(), "seed {seed}");
    }
    assert!(lists > 1_000, "{lists}");
}

fn orders(references: std::ops::Range<u32>) -> Vec<Vec<u8>> {
    references.map(|of| encoded(OuchInbound::Enter(enter(of)), Vec::new())).collect()
}

fn messages(passed: Vec<Passed>) -> Vec<(Vec<u32>, bool)> {
    let one = |passed| match passed {
        Passed::On(numbers, message) => (numbers, OuchList::decode(&message).is_some()),
        Passed::Refused(why) => panic!("{why:?}"),
    };
    passed.into_iter().map(one).collect()
}

#[test]
fn an_order_waits_no_longer_than_its_gathering_whatever_the_clock_does() {
    let mut gather = Gather::new(&settings(GATHER_US_MAX * 50));
    let [first, second, third, ..] = &orders(1..65)[..] else { panic!("orders") };
    assert!(gather.take(&moment(7), first).is_empty());
    assert_eq!(gather.deadline_us(), Some(NOW_US + 7 + GATHER_US_MAX), "the setting is bounded");
    assert!(gather.take(&moment(500), second).is_empty());
    assert!(gather.wake(&moment(6 + GATHER_US_MAX)).is_empty());
    assert_eq!(messages(gather.wake(&moment(7 + GATHER_US_MAX))), [(vec![1, 2], true)]);
    // One alone has a signature of its own, and a clock that steps back ends its wait.
    assert!(gather.take(&moment(9_000), third).is_empty());
    assert_eq!(messages(gather.wake(&moment(8_999))), [(vec![3], false)]);
    // A full list leaves at once.
    let mut passed = Vec::new();
    orders(10..74).iter().for_each(|order| passed.extend(gather.take(&moment(10_000), order)));
    assert_eq!(messages(passed), [((10..74).collect(), true)]);
    // A cancel takes what came before along.
    let cancel = encoded(OuchInbound::Cancel(OuchCancel { user_ref: 80, quantity: 0 }), Vec::new());
    orders(80..82).iter().for_each(|order| assert!(gather.take(&moment(10_000), order).is_empty()));
    assert_eq!(messages(gather.take(&moment(10_000), &cancel)), [(vec![80, 81], true), (vec![], false)]);
}

/// The venue's certified height counts no lists yet, or its link is lost.
#[test]
fn what_cannot_leave_as_a_list_is_signed_one_by_one_or_refused() {
    let mut gather = Gather::new(&settings(GATHER_US_MAX));
    let early = BridgeMoment { news: Some(news(false)), ..moment(0) };
    for order in orders(1..4) {
        assert_eq!(messages(gather.take(&early, &order)).len(), 1, "nothing waits");
    }
    orders(4..6).iter().for_each(|order| assert!(gather.take(&moment(0), order).is_empty()));
    assert_eq!(messages(gather.flush(&early)), [(vec![4], false), (vec![5], false)]);
    orders(6..8).iter().for_each(|order| assert!(gather.take(&moment(0), order).is_empty()));
    let lost = gather.wake(&BridgeMoment { news: None, ..moment(GATHER_US_MAX) });
    assert!(matches!(lost[..], [Passed::Refused(_), Passed::Refused(_)]));
}
