//! Each planted mistake of gathering is found by a scenario that holds without it.

use strum::VariantArray;

use super::super::mistake::GatherMistake;
use super::*;

type Scenario = fn(Option<GatherMistake>) -> Result<(), String>;

fn gather(mistake: Option<GatherMistake>) -> Gather {
    Gather { mistake: mistake.into(), ..Gather::new(&settings(GATHER_US_MAX)) }
}

fn holds(is: bool, what: &str) -> Result<(), String> {
    if is { Ok(()) } else { Err(what.into()) }
}

/// The root sees what it would see without gathering.
fn comes_to_the_same(mistake: Option<GatherMistake>) -> Result<(), String> {
    for seed in 0..16 {
        let (one, other) = (day(seed, 0, None), day(seed, GATHER_US_MAX, mistake));
        holds(one.0 == other.0, "the root is given something else")?;
        holds(one.1 == other.1 && one.2 == other.2, "something else is refused")?;
    }
    Ok(())
}

fn ends_in_time(mistake: Option<GatherMistake>) -> Result<(), String> {
    let mut gather = gather(mistake);
    for (order, later_us) in orders(1..3).iter().zip([GATHER_US_MAX, 0]) {
        gather.take(&moment(9_000), order);
        let due = gather.deadline_us().ok_or("nobody is told when an order leaves")?;
        holds(due == NOW_US + 9_000 + GATHER_US_MAX, "an order waits too long")?;
        // The second one waits when the clock steps back.
        let passed = gather.wake(&moment(if later_us > 0 { 9_000 + later_us } else { 8_999 }));
        holds(passed.len() == 1, "an order waits although its time is over")?;
    }
    Ok(())
}

/// Messages of which few fit into a list leave as lists nevertheless.
fn fits(mistake: Option<GatherMistake>) -> Result<(), String> {
    let mut gather = gather(mistake);
    let long = |of| encoded(OuchInbound::Enter(enter(of)), vec![OuchOption::PostOnly(b'N'); 40]);
    let mut passed = Vec::new();
    (1..65).for_each(|of| passed.extend(gather.take(&moment(0), &long(of))));
    passed.extend(gather.flush(&moment(0)));
    let lists = messages(passed);
    let numbers: Vec<u32> = lists.iter().flat_map(|(numbers, _)| numbers).copied().collect();
    holds(numbers == (1..65).collect::<Vec<_>>(), "an order is lost")?;
    holds(lists.iter().all(|(_, is_list)| *is_list), "a list is too long, and each order has a signature of its own")
}

/// What waited for a session is refused, and no part of the next one.
fn ends_with_its_session(mistake: Option<GatherMistake>) -> Result<(), String> {
    let mut gather = gather(mistake);
    orders(7..9).iter().for_each(|order| drop(gather.take(&moment(0), order)));
    let refused = gather.flush(&BridgeMoment { news: None, ..moment(1) });
    holds(matches!(refused[..], [Passed::Refused(_), Passed::Refused(_)]), "what waited is not refused")?;
    gather.forget();
    orders(1..3).iter().for_each(|order| drop(gather.take(&moment(2), order)));
    holds(messages(gather.flush(&moment(3))) == [(vec![1, 2], true)], "an order of another session is in a list")
}

fn scenario(mistake: GatherMistake) -> Scenario {
    match mistake {
        GatherMistake::WaitsForever | GatherMistake::WaitsForClock => ends_in_time,
        GatherMistake::BytesUncounted => fits,
        GatherMistake::OutlivesSession => ends_with_its_session,
        GatherMistake::LeavesTwice
        | GatherMistake::CancelOvertakes
        | GatherMistake::UsedNumberJoins
        | GatherMistake::ReplacementOvertakes => comes_to_the_same,
    }
}

#[test]
fn every_planted_mistake_of_gathering_is_found() {
    for mistake in GatherMistake::VARIANTS.iter().copied() {
        assert_eq!(scenario(mistake)(None), Ok(()));
        let what = scenario(mistake)(Some(mistake)).expect_err(&format!("{mistake:?} is not found"));
        println!("{mistake:?}: {what}");
    }
}
