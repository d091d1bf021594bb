//! The chunks against a plain sorted map.

use super::*;
use primitives::Address;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn place(limit: u32, account: u8, id: u8) -> Place {
    let limit = Price::from_f64(f64::from(limit) + 1.0).expect("in range");
    Place { limit, account: Address([account; 20]), id: u64::from(id) }
}

/// The rule without chunks.
fn plainly(plain: &mut BTreeMap<Place, Rest>, through: Option<&Place>, edits: &[Edit]) {
    plain.retain(|place, _| through.is_none_or(|last| place > last));
    for edit in edits {
        match edit.rest() {
            Some(rest) => plain.insert(edit.place, rest),
            None => plain.remove(&edit.place),
        };
    }
}

/// The numbers of offers that rest and end, by last height.
fn by_end(plain: &BTreeMap<Place, Rest>) -> BTreeMap<Height, i32> {
    let mut by_end = BTreeMap::new();
    let ending = plain.values().map(|rest| rest.until).filter(|until| ends_later(*until));
    ending.for_each(|until| *by_end.entry(until).or_default() += 1);
    by_end
}

type Step = (Option<(u32, u8, u8)>, BTreeMap<(u32, u8, u8), (Option<u64>, Height)>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Few limits and accounts, so that places coincide and share prices; enough offers for several chunks.
    let at = || (0..40u32, 0..5u8, 0..8u8);
    let until = prop_oneof![2 => Just(NO_END), 3 => 0..9u64];
    let amount = (prop_oneof![3 => (1..100u64).prop_map(Some), 1 => Just(None)], until);
    let edits = prop_oneof![
        prop::collection::btree_map(at(), amount.clone(), 0..8),
        prop::collection::btree_map(at(), amount, 200..500),
    ];
    prop::collection::vec((prop::option::weighted(0.3, at()), edits), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// Compares with a plain sorted map.
    #[test]
    fn equals_a_sorted_map(steps in steps(), probes in prop::collection::vec((0..42u32, 0..6u8, 0..9u8), 2..20)) {
        let mut offers = PairOffers::default();
        let mut plain = BTreeMap::new();
        for (through, edits) in steps {
            let through = through.map(|(limit, account, id)| place(limit, account, id));
            let edits: Vec<Edit> = edits
                .into_iter()
                .map(|((limit, account, id), (amount, until))| {
                    Edit { place: place(limit, account, id), amount, until }
                })
                .collect();
            let (shared, held) = (offers.clone(), offers.iter().collect::<Vec<_>>());
            let locked = offers.locked() as i128;
            let (mut workspace, mut ends) = (Workspace::default(), by_end(&plain));
            let change = offers.apply_with(&mut workspace, through.as_ref(), &edits);
            plainly(&mut plain, through.as_ref(), &edits);
            workspace.ends.changes.iter().for_each(|(until, by)| *ends.entry(*until).or_default() += by);
            ends.retain(|_, count| *count != 0);
            prop_assert_eq!(ends, by_end(&plain), "the ends are counted");
            for height in [0, 3, 8] {
                let is_due = |(_, rest): &(&Place, &Rest)| rest.until <= height;
                let due: Vec<Place> = plain.iter().filter(is_due).map(|(place, _)| *place).collect();
                prop_assert_eq!(offers.due(height).iter().map(|offer| offer.place).collect::<Vec<_>>(), due);
            }
            prop_assert!(offers.is_sound());
            prop_assert_eq!(offers.locked() as i128, locked + change);
            prop_assert_eq!(shared.iter().collect::<Vec<_>>(), held, "a clone does not change");
            let rest: Vec<_> = plain.iter().map(|(place, rest)| Offer { place: *place,
                amount: rest.amount, until: rest.until }).collect();
            prop_assert_eq!(offers.iter().collect::<Vec<_>>(), rest.clone());
            prop_assert_eq!((offers.first(), offers.last()), (rest.first().copied(), rest.last().copied()));
            for two in probes.windows(2) {
                let [a, b] = [two[0], two[1]].map(|(limit, account, id)| place(limit, account, id));
                prop_assert_eq!(offers.rest(&a), plain.get(&a).copied());
                let is_there = plain.keys().any(|p| (p.limit, p.id) == (a.limit, a.id));
                prop_assert_eq!(offers.any_at(a.limit, a.id, usize::MAX), is_there);
                let (from, to) = (a.min(b), a.max(b));
                for range in [(Bound::Included(from), Bound::Excluded(to)), (Bound::Excluded(from),
                    Bound::Included(to))] {
                    if from == to { continue }
                    let got: Vec<Place> = offers.range(range).map(|offer| offer.place).collect();
                    prop_assert_eq!(got, plain.range(range).map(|(place, _)| *place).collect::<Vec<_>>());
                }
            }
        }
    }
}

#[test]
fn chunks_stay_full_while_offers_come_and_go() {
    let mut offers = PairOffers::default();
    for round in 0..200u32 {
        let edits: Vec<Edit> =
            (0..50).map(|i| Edit { place: place(i * 200 + round, 1, 1), amount: Some(5), until: 7 }).collect();
        offers.apply(None, &edits);
    }
    for round in 0..190u32 {
        let edits: Vec<Edit> = (0..50).map(|i| Edit::leaves(place(i * 200 + round, 1, 1))).collect();
        offers.apply(None, &edits);
    }
    assert_eq!(offers.len(), 500);
    assert!(offers.links.len() <= 500 / SPARSE + 1, "{} chunks", offers.links.len());
}
