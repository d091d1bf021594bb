//! Terms of assets in the lane that a vote changes: each home has its own, at all shards of a member.

use std::collections::BTreeMap;

use member::MemberEffect;
use payments::HomeEpoch;
use primitives::{Amount, LaneAssetTerms, Operation, ProposedChange};

use super::*;

/// The least outputs with which shards were started since the last call, by home.
fn started(world: &mut World) -> BTreeMap<HomeEpoch, BTreeSet<Amount>> {
    let mut all: BTreeMap<HomeEpoch, BTreeSet<Amount>> = BTreeMap::new();
    for effect in world.taken() {
        if let MemberEffect::Start { home, term, .. } = effect {
            all.entry(home).or_default().insert(term.rules.asset(USD).least_units);
        }
    }
    all
}

/// One member follows each block, one learns of them all at once, and one starts with the state alone: the shards of a
/// home have the same terms. A later vote changes those of no home that has begun.
#[test]
fn shards_of_a_home_have_its_terms_whenever_they_start() {
    let least = |least_units| LaneAssetTerms {
        asset: USD,
        least_units,
        fee: 0,
        deposits: true,
        outflow_most: 0,
        outflow_per_height: 0,
    };
    let votes = || vec![Operation::Propose(Box::new(ProposedChange::Lane(least(2))))];
    let blocks = 3 * HEIGHTS;
    let mut follows = World::new(false);
    follows.apply(votes());
    follows.certify();
    follows.pass(blocks);
    let known = started(&mut follows);
    let expected: BTreeMap<HomeEpoch, BTreeSet<Amount>> =
        [(0, 1), (1, 2), (2, 2), (3, 2)].map(|(home, least)| (home, BTreeSet::from([least]))).into();
    assert_eq!(known, expected);
    let mut behind = World::new(false);
    behind.apply(votes());
    (0..blocks).for_each(|_| behind.apply(Vec::new()));
    behind.certify();
    assert_eq!(started(&mut behind), expected, "the ledger was ahead of what was certified");
    follows.restart(follows.ledger.height());
    let again = started(&mut follows);
    assert!(again.len() > 1 && again.iter().all(|(home, least)| expected.get(home) == Some(least)), "{again:?}");
}
