use proptest::prelude::*;

use super::*;

const BUDGET: BudgetLimits = BudgetLimits { burst: 2_000, per_second: 100, clients: 64 };
const LIMITS: TurnLimits = TurnLimits { units: 100_000, of_one: 60_000, budget: Some(BUDGET) };

/// A request: whose, its number, and the transactions of it that are not judged yet.
type Batch = (u32, u64);

fn served(turns: &mut Turns<u32, u32, u64>) -> Vec<(u32, u32, u64)> {
    let slices = std::iter::from_fn(|| turns.next(0, 1));
    slices.flat_map(|of| of.requests.into_iter().map(move |(flow, number)| (of.client, flow, number))).collect()
}

/// A client that queues much over many connections takes one turn in so many as there are clients.
#[test]
fn a_flood_over_many_connections_of_one_address_takes_one_turn_in_two() {
    let mut turns = Turns::new(LIMITS);
    for number in 0..300 {
        turns.push(0, 1, 100 + (number % 3) as u32, 1, number).expect("room");
    }
    for (client, flow, number) in [(2, 7, 1_000), (3, 8, 2_000), (2, 7, 1_001)] {
        turns.push(0, client, flow, 1, number).expect("room");
    }
    let served = served(&mut turns);
    let first = [(1, 100, 0), (2, 7, 1_000), (3, 8, 2_000), (1, 101, 1), (2, 7, 1_001), (1, 102, 2), (1, 100, 3)];
    assert_eq!(served[..7], first);
    assert!(served.len() == 303 && turns.is_empty() && turns.waiting() == 0);
    let of_one: Vec<u64> = served.iter().filter(|(_, flow, _)| *flow == 101).map(|(.., number)| *number).collect();
    assert!(of_one.is_sorted() && of_one.len() == 100);
}

/// Serves slices as a worker does; `false_of` says how much of a client's work proves false. Returns the work in order.
fn work(turns: &mut Turns<u32, (), Batch>, now_ms: u64, most: u64, false_of: impl Fn(u32) -> bool) -> Vec<(u32, u64)> {
    let mut done = Vec::new();
    while let Some(Slice { client, requests, units }) = turns.next(now_ms, most) {
        let Ok(mut room) = units else { continue };
        let mut judged = 0;
        for ((), (number, left)) in requests {
            let taken = left.min(room);
            (room, judged) = (room - taken, judged + taken);
            if taken < left {
                turns.resume(client, (), left - taken, (number, left - taken));
            }
        }
        done.push((client, judged));
        if false_of(client) {
            turns.charge(now_ms, client, judged);
        }
    }
    done
}

#[test]
fn two_dozen_batches_of_forged_copies_delay_another_client_by_one_slice_and_end_with_the_budget() {
    let mut turns = Turns::new(TurnLimits { units: 1 << 20, of_one: 1 << 19, budget: Some(BUDGET) });
    for batch in 0..24 {
        turns.push(0, 1, (), 10_000, (batch, 10_000)).expect("room");
    }
    turns.push(0, 2, (), 1, (0, 1)).expect("room");
    let done = work(&mut turns, 0, 1_024, |client| client == 1);
    assert_eq!(done, [(1, 1_024), (2, 1), (1, 976)], "a slice, the other's, and what the budget has left");
    let Err(NoTurn::OverBudget { again_ms }) = turns.push(0, 1, (), 1, (0, 1)) else { panic!("it has no budget") };
    assert_eq!(again_ms, 10);
    assert!(turns.push(again_ms, 1, (), 1, (0, 1)).is_ok());
    assert!(turns.push(0, 2, (), 1, (0, 1)).is_ok(), "others are not charged");
}

#[test]
fn the_rest_of_a_batch_comes_before_what_its_client_sent_after_it() {
    let mut turns = Turns::new(LIMITS);
    turns.push(0, 1, (), 25, (7, 25)).expect("room");
    turns.push(0, 1, (), 10, (8, 10)).expect("room");
    let mut order = Vec::new();
    while let Some(slice) = turns.next(0, 10) {
        let mut room = slice.units.expect("nothing is false");
        for ((), (number, left)) in slice.requests {
            let taken = left.min(room);
            room -= taken;
            order.push((number, taken));
            if taken < left {
                turns.resume(1, (), left - taken, (number, left - taken));
            }
        }
    }
    assert_eq!(order, [(7, 10), (7, 10), (7, 5), (8, 5), (8, 5)]);
    assert_eq!(turns.waiting(), 0);
}

#[test]
fn a_client_holds_what_it_leaves_and_who_holds_nothing_finds_room() {
    let mut turns = Turns::new(TurnLimits { units: 100, of_one: 60, budget: None });
    assert!(turns.push(0, 1, (), 50, ()).is_ok());
    assert_eq!(turns.push(0, 1, (), 1, ()), Err(NoTurn::Crowded), "it would hold more than it leaves");
    assert!(turns.push(0, 2, (), 25, ()).is_ok());
    assert_eq!(turns.push(0, 3, (), 26, ()), Err(NoTurn::Crowded), "there is no room");
    assert!(turns.push(0, 3, (), 25, ()).is_ok());
    let mut few = Turns::new(TurnLimits { units: 1_000, of_one: 2, budget: None });
    assert!([few.push(0, 1, (), 1, ()), few.push(0, 1, (), 1, ())].iter().all(Result::is_ok));
    assert_eq!(few.push(0, 1, (), 1, ()), Err(NoTurn::Crowded));
    assert!(few.push(0, 2, (), 9, ()).is_ok(), "one request may be larger");
}

#[test]
fn what_nobody_wants_any_more_gives_its_room_back() {
    let mut turns = Turns::new(TurnLimits { units: 1_000, of_one: 2, budget: None });
    turns.push(0, 1, (), 1, true).expect("room");
    turns.push(0, 1, (), 1, false).expect("room");
    turns.retain(1, |is_wanted| *is_wanted);
    assert_eq!(turns.waiting(), 1);
    turns.retain(1, |_| false);
    assert!(turns.is_empty() && turns.next(0, 1).is_none());
}

proptest! {
    /// Whoever waits is served after at most one slice of each other client. Nothing is lost, and order stays.
    #[test]
    fn nobody_waits_for_more_than_one_slice_of_each_other(
        pushed in proptest::collection::vec((0..5u32, 0..3u32, 1..50u64), 1..200), most in 1..40u64,
    ) {
        let mut turns = Turns::new(TurnLimits { units: 1 << 20, of_one: 1 << 19, budget: None });
        for (at, (client, flow, units)) in pushed.iter().enumerate() {
            turns.push(0, *client, *flow, *units, at).expect("room");
        }
        let (mut last, mut got) = (BTreeMap::<(u32, u32), usize>::new(), 0);
        let mut slices = Vec::new();
        while let Some(slice) = turns.next(0, most) {
            got += slice.requests.len();
            for (flow, at) in &slice.requests {
                let before = last.insert((slice.client, *flow), *at);
                prop_assert!(before.is_none_or(|before| before < *at));
            }
            slices.push(slice.client);
        }
        prop_assert_eq!((got, turns.waiting()), (pushed.len(), 0));
        for (at, client) in slices.iter().enumerate() {
            let next = slices[at + 1..].iter().position(|other| other == client);
            let between = &slices[at + 1..][..next.unwrap_or(0)];
            let different: std::collections::BTreeSet<_> = between.iter().collect();
            prop_assert_eq!(different.len(), between.len(), "no client twice between two turns of another");
        }
    }
}
