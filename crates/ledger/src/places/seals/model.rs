//! All committees of two to four seats with every mixture of conducts, beside an oracle that knows no cryptography.
//!
//! The oracle says by counting alone who registers, deals, complains and holds. Mistakes planted in it show that the
//! histories tell them apart.

use std::collections::BTreeSet;

use primitives::Address;

use super::tests::interpolates;
use super::world::{CONDUCTS, Conduct, World, account, acting, terms};
use super::{SEAL_STEP_HEIGHTS, SealStep};

/// What a generation comes to.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// These hold the key.
    Key(BTreeSet<Address>),
    /// It fails at this step, and these did not take part.
    Failed(SealStep, BTreeSet<Address>),
}

/// A mistake of the oracle: the place does not make it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// Holders need not be more than open an envelope.
    FewHolders,
    /// Whoever complains without need still holds.
    StrikesNobody,
    /// A wrong share leaves its dealer in.
    NobodyIsOut,
    /// A dealer that is out gets no share.
    OutHoldsNothing,
    /// What does not verify is registered.
    AnyKey,
    /// One dealer is enough.
    OneDealer,
    /// Who never says that all is fine is left out.
    FineIsNeeded,
}

const WRONG: [Wrong; 7] = [
    Wrong::FewHolders,
    Wrong::StrikesNobody,
    Wrong::NobodyIsOut,
    Wrong::OutHoldsNothing,
    Wrong::AnyKey,
    Wrong::OneDealer,
    Wrong::FineIsNeeded,
];

/// Positions of those seats among `all` that a test holds for.
fn those(all: &[usize], conducts: &[Conduct], test: impl Fn(Conduct) -> bool) -> Vec<usize> {
    all.iter().copied().filter(|at| test(conducts[*at])).collect()
}

fn oracle(conducts: &[Conduct], quorum: bool, wrong: Wrong) -> End {
    use Conduct::{BadDealing, BadHold, BadKey, NeverDeals, NeverFine, NeverHolds, Silent};
    let n = conducts.len();
    let f = (n - 1) / 3;
    let t = if f > 0 && !quorum { f + 1 } else { (n + f) / 2 + 1 };
    let least = if wrong == Wrong::FewHolders { t } else { t + f };
    let all: Vec<usize> = (0..n).collect();
    let failed = |step, took: &[usize]| {
        let silent = all.iter().filter(|at| !took.contains(at)).map(|at| account(*at as u8));
        End::Failed(step, silent.collect())
    };
    let members = those(&all, conducts, |one| one != Silent && (one != BadKey || wrong == Wrong::AnyKey));
    if members.len() < least {
        return failed(SealStep::Register, &members);
    }
    let dealers = those(&members, conducts, |one| one != NeverDeals && one != BadDealing);
    if dealers.len() < if wrong == Wrong::OneDealer { 1 } else { t } {
        return failed(SealStep::Deal, &dealers);
    }
    let (mut out, mut struck) = complaints(conducts, &members, &dealers);
    if wrong == Wrong::NobodyIsOut {
        out.clear();
    }
    if wrong == Wrong::StrikesNobody {
        struck.clear();
    }
    let standing: Vec<usize> = dealers.iter().copied().filter(|seat| !out.contains(seat)).collect();
    if standing.len() < t || members.len() - struck.len() < least {
        let took: Vec<usize> = standing.iter().copied().filter(|seat| !struck.contains(seat)).collect();
        return failed(SealStep::Complain, &took);
    }
    let holds = |seat: &usize| {
        let conduct = conducts[*seat];
        let is_left = !struck.contains(seat) && (wrong != Wrong::OutHoldsNothing || !out.contains(seat));
        let posts = conduct != NeverDeals && conduct != NeverHolds && conduct != BadHold;
        is_left && posts && (wrong != Wrong::FineIsNeeded || conduct != NeverFine)
    };
    let held: Vec<usize> = members.iter().copied().filter(holds).collect();
    if held.len() < least {
        return failed(SealStep::Hold, &held);
    }
    End::Key(held.iter().map(|at| account(*at as u8)).collect())
}

/// Who is out and who is struck: block by block, each member complains about one dealer.
fn complaints(conducts: &[Conduct], members: &[usize], dealers: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let at = |seat: usize| members.iter().position(|one| *one == seat).expect("a member");
    // The one after the dealer gets the wrong share.
    let is_wronged = |seat: usize, dealer: usize| {
        conducts[dealer] == Conduct::WrongShare && members[(at(dealer) + 1) % members.len()] == seat
    };
    let (mut out, mut struck, mut told) = (Vec::new(), Vec::new(), BTreeSet::new());
    loop {
        let target = |seat: usize| {
            let mut open = dealers.iter().filter(|dealer| !out.contains(*dealer) && !told.contains(&(**dealer, seat)));
            match conducts[seat] {
                Conduct::NeverDeals => None,
                Conduct::Needless => open.find(|dealer| **dealer != seat),
                _ => open.find(|dealer| is_wronged(seat, **dealer)),
            }
        };
        let left = members.iter().filter(|seat| !struck.contains(*seat));
        let mut block: Vec<(usize, usize)> = left.filter_map(|seat| Some((*target(*seat)?, *seat))).collect();
        if block.is_empty() {
            return (out, struck);
        }
        block.sort_unstable();
        for (dealer, seat) in block {
            told.insert((dealer, seat));
            match () {
                _ if out.contains(&dealer) => {}
                _ if is_wronged(seat, dealer) => out.push(dealer),
                _ => struck.push(seat),
            }
        }
    }
}

fn machine(conducts: &[Conduct], quorum: bool) -> (World, End) {
    let mut world = World::new(terms(if quorum { "quorum" } else { "fewest" }), conducts);
    let acting = acting(0..conducts.len() as u8, u64::MAX);
    while world.height < 4 * SEAL_STEP_HEIGHTS + 9 && world.seals.failed().is_none() && world.seals.keys().is_empty() {
        world.go(&acting, u64::MAX);
    }
    let end = match (world.seals.failed(), world.seals.keys().first()) {
        (Some(failed), None) => End::Failed(failed.step, failed.silent.iter().copied().collect()),
        (None, Some(key)) => End::Key(key.holders.iter().map(|holder| holder.account).collect()),
        other => panic!("neither a key nor a failure after four steps: {other:?}"),
    };
    (world, end)
}

/// All multisets of conducts of so many seats, each in one of two orders.
fn mixtures(n: usize) -> Vec<Vec<Conduct>> {
    fn extend(prefix: &[Conduct], n: usize, all: &mut Vec<Vec<Conduct>>) {
        if prefix.len() == n {
            all.push(prefix.to_vec());
            return;
        }
        for conduct in CONDUCTS.into_iter().filter(|one| prefix.last().is_none_or(|last| last <= one)) {
            extend(&[prefix, &[conduct]].concat(), n, all);
        }
    }
    let mut all = Vec::new();
    extend(&[], n, &mut all);
    all.iter_mut().step_by(2).for_each(|conducts| conducts.reverse());
    all
}

#[test]
fn every_mixture_of_conducts_ends_as_counting_says() {
    let mut told = [false; WRONG.len()];
    for n in 2..=4 {
        for (at, conducts) in mixtures(n).into_iter().enumerate() {
            // Of fewer than four seats both thresholds are a quorum.
            for quorum in [n == 4 && at % 3 == 0] {
                let (world, end) = machine(&conducts, quorum);
                assert_eq!(end, oracle(&conducts, quorum, Wrong::Nothing), "{conducts:?}, quorum: {quorum}");
                world.seals.keys().iter().for_each(|key| assert!(interpolates(&world, key), "{conducts:?}"));
                for (wrong, told) in WRONG.iter().zip(&mut told) {
                    *told |= end != oracle(&conducts, quorum, *wrong);
                }
            }
        }
    }
    let untold: Vec<Wrong> = WRONG.iter().zip(told).filter(|(_, told)| !told).map(|(wrong, _)| *wrong).collect();
    assert!(untold.is_empty(), "no history tells these mistakes: {untold:?}");
}
