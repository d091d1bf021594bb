//! Random blocks of plain transactions and envelopes, against a naive oracle: maps, one pass after another.
//!
//! Everybody sells euros and nobody buys any, so that nothing trades: what counts is all that is at stake.

use std::collections::{BTreeMap, BTreeSet};

use ledger::SealedFate;
use primitives::{CANCELS_MAX, OfferPlace, Price};
use proptest::prelude::*;

use super::*;
use crate::sessions::{cancel, exact, replace, sells};

/// What an account asks for.
#[derive(Clone, Debug, PartialEq)]
enum Ask {
    Sell(Amount),
    Exact(Amount),
    Cancel(Vec<Sequence>),
    Replace(Sequence, Amount),
    Pay(Amount),
}

/// A signed request: by a person, under a number.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    person: u8,
    sequence: Sequence,
    /// How far its end is ahead of others': of one number the later end counts.
    later: Height,
    ask: Ask,
}

#[derive(Clone, Debug)]
struct Sent {
    payer: u8,
    sequence: Sequence,
    inside: Vec<Asked>,
    is_garbage: bool,
    /// Which validators hold it.
    copies: u8,
}

/// People with little of asset 0, so that fees matter.
const MONEY: Amount = 200;
const UNITS: Amount = 100_000;

fn founded() -> Genesis {
    let mut founded = genesis(None);
    let of = |person: u8| [(address(person), USD, MONEY), (address(person), EUR, UNITS)];
    founded.balances = (1..=4).flat_map(of).collect();
    founded
}

fn operation(ask: &Ask) -> Operation {
    match ask {
        Ask::Sell(units) => sells(*units),
        Ask::Exact(units) => exact(*units),
        Ask::Cancel(ids) if ids.len() == 1 => cancel(ids[0]),
        Ask::Cancel(ids) => {
            let at = |offer: &Sequence| OfferPlace { sell: EUR, buy: USD, limit: Price::ONE, offer: *offer };
            Operation::Cancel(ids.iter().map(at).take(CANCELS_MAX).collect())
        }
        Ask::Replace(old, units) => replace(*old, UNITS, *units),
        Ask::Pay(units) => Operation::Pay { to: address(9), asset: EUR, amount: *units },
    }
}

fn asked_body(asked: &Asked) -> Body {
    let mut body = body(asked.person, asked.sequence, operation(&asked.ask));
    body.until += asked.later;
    body
}

fn fees(ask: &Ask) -> Amount {
    if matches!(ask, Ask::Exact(_)) { 4 * FEE } else { FEE }
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Held {
    money: Amount,
    units: Amount,
    used: BTreeSet<Sequence>,
    offers: BTreeMap<Sequence, Amount>,
}

/// The oracle's accounts, and the names that were opened.
#[derive(Default)]
struct Oracle {
    held: BTreeMap<u8, Held>,
    opened: BTreeSet<(u8, Sequence)>,
}

/// What counts of one account in a block so far.
#[derive(Clone, Default)]
struct Counted {
    money: Amount,
    units: Amount,
    returned: Amount,
    used: BTreeSet<Sequence>,
    placed: Vec<(Sequence, Amount)>,
    cancelled: BTreeSet<Sequence>,
    replaced: BTreeMap<Sequence, (Sequence, Amount)>,
}

impl Held {
    fn is_free(&self, sequence: Sequence) -> bool {
        let highest = self.used.last().copied().unwrap_or(0);
        sequence > 0 && !self.used.contains(&sequence) && sequence + 64 > highest && sequence <= highest + 64
    }

    /// Whether a request is sound against the state before the block.
    fn is_sound(&self, asked: &Asked) -> bool {
        self.is_free(asked.sequence)
            && match &asked.ask {
                Ask::Sell(units) | Ask::Exact(units) => *units >= 4_096,
                Ask::Pay(units) => *units > 0,
                Ask::Cancel(ids) => ids.iter().any(|id| self.offers.contains_key(id)),
                Ask::Replace(old, units) => *units >= 4_096 && self.offers.contains_key(old),
            }
    }
}

fn debit(asked: &Asked) -> Amount {
    match asked.ask {
        Ask::Sell(units) | Ask::Exact(units) | Ask::Pay(units) => units,
        Ask::Replace(_, units) => units.saturating_sub(UNITS),
        Ask::Cancel(_) => 0,
    }
}

/// Judges requests of one account, each with an id, on what counts already; returns the places of those that count.
fn judge(held: &Held, before: &mut Counted, asked: &[(usize, &Asked, [u8; 32])]) -> BTreeSet<usize> {
    let hidden = |id: &Sequence| held.offers.contains_key(id) && !before.replaced.contains_key(id);
    let finds = |one: &Asked| !matches!(&one.ask, Ask::Cancel(ids) if !ids.iter().any(hidden));
    let sound = asked.iter().filter(|(_, one, _)| held.is_sound(one) && !before.used.contains(&one.sequence));
    let mut best: BTreeMap<Sequence, (Height, [u8; 32], usize, &Asked)> = BTreeMap::new();
    for (at, one, id) in sound {
        let this = (one.later, *id, *at, *one);
        match best.get(&one.sequence) {
            Some(known) if (known.0, known.1) >= (this.0, this.1) => {}
            _ => drop(best.insert(one.sequence, this)),
        }
    }
    let mut counting: Vec<(usize, &Asked)> = best.values().map(|(_, _, at, one)| (*at, *one)).collect();
    counting.retain(|(_, one)| finds(one));
    let fits = |ones: &[(usize, &Asked)]| {
        let money: Amount = ones.iter().map(|(_, one)| fees(&one.ask)).sum();
        let units: Amount = ones.iter().map(|(_, one)| debit(one)).sum();
        before.money + money <= held.money && before.units + units <= held.units
    };
    if !fits(&counting) {
        counting.retain(|(_, one)| matches!(one.ask, Ask::Cancel(_)));
        if !fits(&counting) {
            counting.clear();
        }
    }
    let taken: BTreeSet<Sequence> = before.replaced.keys().copied().collect();
    for (_, one) in &counting {
        before.money += fees(&one.ask);
        before.units += debit(one);
        before.used.insert(one.sequence);
        match &one.ask {
            Ask::Sell(units) => before.placed.push((one.sequence, *units)),
            // Without a price it gets back what it locks.
            Ask::Exact(units) => before.returned += units,
            Ask::Pay(_) => {}
            Ask::Cancel(ids) => before.cancelled.extend(ids.iter().filter(|id| !taken.contains(id))),
            Ask::Replace(old, units) if !taken.contains(old) => {
                let last = before.replaced.get(old).is_none_or(|(by, _)| *by < one.sequence);
                if last {
                    before.replaced.insert(*old, (one.sequence, *units));
                }
            }
            Ask::Replace(..) => {}
        }
    }
    let cancelled = before.cancelled.clone();
    before.replaced.retain(|old, _| taken.contains(old) || !cancelled.contains(old));
    counting.into_iter().map(|(at, _)| at).collect()
}

/// What the oracle says of a block: which plain requests count, what becomes of each envelope, and which requests in
/// them count.
#[derive(Debug, PartialEq)]
struct Verdict {
    plain: Vec<bool>,
    fates: Vec<&'static str>,
    inside: Vec<Vec<bool>>,
}

impl Oracle {
    fn new() -> Oracle {
        let held = (1..=4).map(|person| (person, Held { money: MONEY, units: UNITS, ..Held::default() })).collect();
        Oracle { held, ..Oracle::default() }
    }

    /// Plain requests with their ids, and envelopes with the bytes of their boxes and the ids of what is in them.
    fn block(&mut self, plain: &[(Asked, [u8; 32])], sent: &[(Sent, u64, Vec<[u8; 32]>)]) -> Verdict {
        let mut counted: BTreeMap<u8, Counted> = BTreeMap::new();
        let (mut of_plain, mut fates) = (vec![false; plain.len()], vec!["closed"; sent.len()]);
        for (person, held) in &self.held {
            let own = plain.iter().enumerate().filter(|(_, (one, _))| one.person == *person);
            let own: Vec<_> = own.map(|(at, (one, id))| (at, one, *id)).collect();
            judge(held, counted.entry(*person).or_default(), &own).iter().for_each(|at| of_plain[*at] = true);
        }
        let mut by_number: Vec<usize> = (0..sent.len()).collect();
        by_number.sort_by_key(|at| sent[*at].0.sequence);
        for at in by_number {
            let (one, bytes, _) = &sent[at];
            let name = (one.payer, one.sequence);
            if !self.opened.insert(name) {
                continue;
            }
            let (held, counted) = (&self.held[&one.payer], counted.get_mut(&one.payer).expect("judged"));
            let is_free = held.is_free(one.sequence) && !counted.used.contains(&one.sequence);
            let cost = FEE * (32 + bytes.div_ceil(1_024));
            if !is_free || counted.money + cost > held.money {
                fates[at] = "unpaid";
                continue;
            }
            counted.money += cost;
            counted.used.insert(one.sequence);
            fates[at] = if one.is_garbage { "garbage" } else { "opened" };
        }
        let mut inside: Vec<Vec<bool>> = sent.iter().map(|(one, ..)| vec![false; one.inside.len()]).collect();
        for (person, held) in &self.held {
            let mut own = Vec::new();
            for (at, (one, _, ids)) in sent.iter().enumerate().filter(|(at, _)| fates[*at] == "opened") {
                let of = one.inside.iter().zip(ids).enumerate().filter(|(_, (asked, _))| asked.person == *person);
                own.extend(of.map(|(place, (asked, id))| (at * 100 + place, asked, *id)));
            }
            own.retain(|(_, asked, _)| !matches!(asked.ask, Ask::Pay(_)));
            let counting = judge(held, counted.get_mut(person).expect("judged"), &own);
            counting.iter().for_each(|at| inside[at / 100][at % 100] = true);
        }
        counted.into_iter().for_each(|(person, counted)| self.commit(person, counted));
        Verdict { plain: of_plain, fates, inside }
    }

    fn commit(&mut self, person: u8, counted: Counted) {
        let held = self.held.get_mut(&person).expect("there");
        held.money -= counted.money;
        held.units = held.units - counted.units + counted.returned;
        held.used.extend(counted.used);
        for id in counted.cancelled {
            held.units += held.offers.remove(&id).unwrap_or(0);
        }
        for (old, (id, units)) in counted.replaced {
            // `remains` is what an account has in all, so the new offer is smaller by what does not rest.
            let rests = held.offers.remove(&old).expect("it rests");
            let size = units.saturating_sub(UNITS - rests);
            let size = if size >= 4_096 { size } else { 0 };
            held.units += rests + units.saturating_sub(UNITS) - size;
            if size > 0 {
                held.offers.insert(id, size);
            }
        }
        held.offers.extend(counted.placed);
    }
}

fn asks() -> impl Strategy<Value = Ask> {
    let units = || prop_oneof![Just(4_095), 4_096..50_000u64, Just(90_000u64)];
    let ids = proptest::collection::btree_set(1..12u64, 1..4).prop_map(|ids| ids.into_iter().collect());
    prop_oneof![
        4 => units().prop_map(Ask::Sell),
        1 => units().prop_map(Ask::Exact),
        3 => ids.prop_map(Ask::Cancel),
        3 => (1..12u64, 4_000..UNITS).prop_map(|(old, units)| Ask::Replace(old, units)),
        1 => (1..60_000u64).prop_map(Ask::Pay),
    ]
}

fn requests(most: usize) -> impl Strategy<Value = Vec<Asked>> {
    let one = (1..=4u8, 1..14u64, 0..3u64, asks());
    let one = one.prop_map(|(person, sequence, later, ask)| Asked { person, sequence, later, ask });
    proptest::collection::vec(one, 0..most)
}

fn letters() -> impl Strategy<Value = Vec<Sent>> {
    let one = (1..=4u8, 1..14u64, requests(9), 0..8u8, 1..4u8);
    let one = one.prop_map(|(payer, sequence, inside, garbage, copies)| Sent {
        payer,
        sequence,
        inside,
        is_garbage: garbage == 0,
        copies,
    });
    proptest::collection::vec(one, 0..5).prop_map(|mut sent| {
        sent.sort_by_key(|one| (one.payer, one.sequence));
        sent.dedup_by_key(|one| (one.payer, one.sequence));
        sent
    })
}

impl World {
    /// The envelope of a letter, and the ids of what is in it.
    fn sent(&mut self, sent: &Sent) -> (Transaction, Vec<[u8; 32]>) {
        let letter = Letter::of(sent.payer, sent.sequence);
        let network = self.ledger.network();
        let sign = |one: &Asked| asked_body(one).sign_sealed(&network, &letter.enclosure(), &key(one.person));
        let inside: Vec<Transaction> = sent.inside.iter().map(sign).collect();
        let ids = inside.iter().map(|one| one.sealed_id(&letter.enclosure()).0).collect();
        let envelope = self.seal(&letter, inside);
        if !sent.is_garbage {
            return (envelope, ids);
        }
        let Operation::Sealed(bytes) = &envelope.body.operation else { unreachable!("it is one") };
        let wrong = bytes.sealed().iter().map(|byte| !byte).collect();
        let wrong = primitives::EnvelopeBytes::new(KEY, bytes.point, wrong).expect("a size");
        let body = Body { operation: Operation::Sealed(Box::new(wrong)), ..envelope.body };
        (body.sign(&network, &key(sent.payer)), ids)
    }
}

/// A block's transactions in sub-blocks, in an order that a seed says.
fn shuffled(plain: &[Transaction], sealed: &[(Transaction, u8)], seed: u64) -> Vec<Vec<Transaction>> {
    let mut parts = vec![Vec::new(); 4];
    let mix = |at: usize| (seed ^ at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let mut all: Vec<(u64, usize, &Transaction)> = Vec::new();
    plain.iter().enumerate().for_each(|(at, one)| all.push((mix(at), at % 4, one)));
    for (at, (one, copies)) in sealed.iter().enumerate() {
        (0..usize::from(*copies)).for_each(|copy| all.push((mix(1_000 + 10 * at + copy), copy, one)));
    }
    all.sort_by_key(|(mixed, ..)| *mixed);
    all.into_iter().for_each(|(mixed, part, one)| parts[(part + mixed as usize % 2) % 4].push(one.clone()));
    parts
}

/// What a ledger says of the same.
fn said(applied: &Applied, block: &Superblock, plain: &[Transaction], sealed: &[Transaction]) -> Verdict {
    let native: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
    let of_plain = |one: &Transaction| {
        let mut outcomes = native.iter().zip(&applied.outcomes).filter(|(other, _)| **other == one);
        outcomes.any(|(_, outcome)| outcome.refusal().is_none())
    };
    let at = |envelope: &Transaction| {
        let opened =
            |(other, outcome): (&&Transaction, &Outcome)| **other == *envelope && matches!(outcome, Outcome::Sealed(_));
        native.iter().zip(&applied.outcomes).position(opened)
    };
    let fate = |envelope: &Transaction| match at(envelope).map(|at| applied.outcomes[at]) {
        None => "closed",
        Some(Outcome::Sealed(SealedFate::Opened(_))) => "opened",
        Some(Outcome::Sealed(SealedFate::Garbage)) => "garbage",
        Some(_) => "unpaid",
    };
    let inside = |envelope: &Transaction| {
        let own = applied.opened.iter().filter(|one| Some(one.envelope as usize) == at(envelope));
        own.map(|one| one.outcome.refusal().is_none()).collect()
    };
    Verdict {
        plain: plain.iter().map(of_plain).collect(),
        fates: sealed.iter().map(fate).collect(),
        inside: sealed.iter().map(inside).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Three passes as the oracle has them; plain transactions as without envelopes; any order, one state.
    #[test]
    fn random_blocks_are_judged_in_three_passes(
        blocks in proptest::collection::vec((requests(12), letters(), any::<u64>()), 1..5),
    ) {
        let (mut world, mut oracle) = (World::of(&founded()), Oracle::new());
        for (mut requests, letters, seed) in blocks {
            // Of copies of a plain transaction the outcome says only that one counts.
            let is_new = |(at, one): &(usize, &Asked)| !requests[..*at].contains(one);
            requests = requests.iter().enumerate().filter(is_new).map(|(_, one)| one.clone()).collect();
            let plain: Vec<Transaction> = requests
                .iter()
                .map(|one| asked_body(one).sign(&world.ledger.network(), &key(one.person)))
                .collect();
            let sealed: Vec<(Transaction, Vec<[u8; 32]>)> = letters.iter().map(|one| world.sent(one)).collect();
            let with_copies: Vec<(Transaction, u8)> =
                sealed.iter().zip(&letters).map(|((one, _), letter)| (one.clone(), letter.copies)).collect();
            let asked: Vec<(Asked, [u8; 32])> =
                requests.into_iter().zip(&plain).map(|(asked, one)| (asked, one.id().0)).collect();
            let bytes = |one: &Transaction| one.envelope().expect("it is one").0.sealed().len() as u64;
            let sent: Vec<(Sent, u64, Vec<[u8; 32]>)> =
                letters.into_iter().zip(&sealed).map(|(one, (seal, ids))| (one, bytes(seal), ids.clone())).collect();
            let mut expected = oracle.block(&asked, &sent);
            let of_closed = expected.inside.iter_mut().zip(&expected.fates).filter(|(_, fate)| **fate != "opened");
            of_closed.for_each(|(inside, _)| inside.clear());

            let (mut other, mut without) = (world.clone(), world.clone());
            let block = world.next(shuffled(&plain, &with_copies, seed));
            let keys = world.keys(&block);
            let applied = world.apply(&block, &keys).expect("applies");
            let envelopes: Vec<Transaction> = sealed.into_iter().map(|(one, _)| one).collect();
            let verdict = said(&applied, &block, &plain, &envelopes);
            prop_assert_eq!(&verdict, &expected);
            for (person, held) in &oracle.held {
                let now = Held {
                    money: world.balance(*person, USD),
                    units: world.balance(*person, EUR),
                    used: held.used.clone(),
                    offers: world.resting(*person).into_iter().collect(),
                };
                prop_assert_eq!(&now, held, "of {}", person);
            }

            let again = other.next(shuffled(&plain, &with_copies, !seed));
            let keys = other.keys(&again);
            // The chain goes on from one block, whatever the order of its transactions.
            other.apply(&again, &keys).expect("applies");
            prop_assert_eq!(other.places(), world.places());
            prop_assert_eq!(other.ledger.opened_names(), world.ledger.opened_names());

            let alone = without.next(shuffled(&plain, &[], seed));
            let alone_applied = without.apply(&alone, &[]).expect("applies");
            prop_assert_eq!(said(&alone_applied, &alone, &plain, &[]).plain, verdict.plain);
        }
    }
}
