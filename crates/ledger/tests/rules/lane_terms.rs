//! Terms of assets in the payment lane by vote: when they act, what they never do, and that every state knows them. A
//! node's operator decides here; how validators vote is in [`crate::proposals`], and a vote of four of them about the
//! lane in [`crate::recorded_lane_terms`].

use ledger::{CharterTerms, Genesis, Ledger, ListingTerms, Outcome, Refusal, Restore, Roots, Snapshot};
use payments::{HomeEpoch, PaymentView};
use primitives::{
    Amount, AssetControl, AssetId, AssetListing, Closing, Digest, Height, LaneAssetTerms, Operation, ProposedChange,
    RULES_OF_LANE_TERMS,
};
use proptest::prelude::*;

use crate::world::*;

const GBP: AssetId = AssetId(2);
/// The operator, who also issues what is listed.
const OPERATOR: u8 = 1;
const NOTICE: Height = 3;

/// The lane carries USD; EUR is listed and GBP is not.
pub fn one_node() -> Genesis {
    let mut lane = terms();
    lane.assets.truncate(1);
    Genesis {
        rules: RULES_OF_LANE_TERMS,
        charter: CharterTerms { operator: address(OPERATOR), notice_min: NOTICE, patience: 40 },
        listings: ListingTerms { notice: 8, ..ListingTerms::priced() },
        ..genesis(Some(lane))
    }
}

pub fn open(asset: AssetId) -> LaneAssetTerms {
    LaneAssetTerms { asset, least_units: 20, fee: 4, deposits: true, outflow_most: 0, outflow_per_height: 0 }
}

pub fn proposes(terms: LaneAssetTerms) -> Operation {
    Operation::Propose(Box::new(ProposedChange::Lane(terms)))
}

/// The operator decides terms, and blocks follow until an epoch has them.
fn decide(world: &mut World, terms: LaneAssetTerms) {
    assert_eq!(world.outcome(OPERATOR, proposes(terms)), None, "{terms:?}");
    let has =
        |world: &World| world.ledger.lane().expect("there").assets().get(terms.asset, world.epoch()) == Some(&terms);
    for _ in 0..NOTICE + 2 * HEIGHTS {
        if has(world) {
            return;
        }
        world.empty_blocks(1);
    }
    panic!("{terms:?} never act");
}

fn lists(world: &World, symbol: &str, control: AssetControl) -> Operation {
    let fees = world.ledger.listings().fees(world.ledger.assets().len(), world.ledger.height() + 1);
    Operation::ListAsset(Box::new(AssetListing {
        symbol: symbol.into(),
        decimals: 2,
        control,
        least_units: 4_096,
        supply_max: 1_000_000,
        document: Digest([19; 32]),
        fees,
    }))
}

/// A node whose operator is rich enough to list an asset.
fn with_listed(control: AssetControl) -> World {
    let mut genesis = one_node();
    genesis.balances.iter_mut().filter(|(who, _, _)| *who == address(OPERATOR)).for_each(|(_, _, units)| *units <<= 40);
    let mut world = World::of(&genesis);
    let listing = lists(&world, "GBP", control);
    assert_eq!(world.block(vec![(OPERATOR, listing)]).outcomes, [Outcome::Listed(GBP)]);
    world
}

/// The way of an asset that no genesis knew: listed, carried, deposited, paid for a fee, and redeemed.
#[test]
fn an_asset_that_is_listed_late_is_carried_from_a_later_epoch_on() {
    let mut world = with_listed(AssetControl::Open);
    let issue = Operation::Issue { to: address(2), asset: GBP, amount: 50_000 };
    assert_eq!(world.outcome(OPERATOR, issue), None);
    assert_eq!(world.outcome(2, withdrawal(2, GBP, 1_000)), Some(Refusal::NOT_IN_LANE));
    decide(&mut world, open(GBP));
    assert_eq!(world.outcome(2, withdrawal(2, GBP, 19)), Some(Refusal::DEPOSITS_TOO_LITTLE));
    let coin = world.withdraw(2, GBP, 1_000);
    assert_eq!((world.balance(2, GBP), world.escrow(GBP)), (49_000, 1_000));
    let payment = world.pay(&coin, &[(3, 996)]);
    let rules = world.ledger.lane().expect("there").rules(coin.home);
    assert_eq!(PaymentView::parse(&payment.encode()).and_then(|view| view.check(&rules)), Ok(()));
    let redemption = world.redemption(&payment);
    assert_eq!(world.outcome(4, redemption), None);
    assert_eq!((world.balance(3, GBP), world.escrow(GBP)), (996, 4), "the fee stays in escrow");
}

/// They act at a height, and are those of the epochs that begin after it: the epoch that runs keeps its own.
#[test]
fn terms_are_those_of_epochs_that_begin_after_they_act() {
    let mut world = World::of(&one_node());
    assert_eq!(world.outcome(OPERATOR, proposes(open(EUR))), None);
    let acts = world.ledger.height() + NOTICE;
    let mut entered = None;
    for _ in 0..3 * HEIGHTS {
        let epoch = world.epoch();
        let is_carried = world.ledger.lane().expect("there").assets().get(EUR, epoch).is_some();
        let taken = world.ledger.admit(&world.sign_only(2, withdrawal(2, EUR, 100))).is_ok();
        assert_eq!(taken, is_carried);
        if is_carried {
            entered.get_or_insert((world.ledger.height() + 1, epoch));
        }
        world.empty_blocks(1);
    }
    let (height, epoch) = entered.expect("it is carried");
    assert!(height > acts, "at {height}, acts at {acts}");
    assert_eq!(world.ledger.lane().expect("there").assets().get(EUR, epoch - 1), None);
}

/// The attack: a fee is voted while a payment is in flight, and half of the shards have seen the block.
#[test]
fn the_terms_of_a_home_never_change_once_it_has_begun() {
    let mut world = World::of(&one_node());
    decide(&mut world, open(EUR));
    let coin = world.withdraw(2, EUR, 1_000);
    let payment = world.pay(&coin, &[(3, 996)]);
    let before = world.ledger.lane().expect("there").rules(coin.home);
    let dearer = LaneAssetTerms { fee: 8, least_units: 40, ..open(EUR) };
    assert_eq!(world.outcome(OPERATOR, proposes(dearer)), Some(Refusal::CHANGED_LATELY), "30 days");
    // Of the genesis' own asset the first change may come at once.
    decide(&mut world, LaneAssetTerms { fee: 0, least_units: 19, ..of_usd() });
    let lane = world.ledger.lane().expect("there");
    assert!(world.epoch() > coin.home);
    assert_eq!(lane.rules(coin.home), before);
    assert_eq!(
        (lane.rules(coin.home).asset(USD).least_units, lane.rules(world.epoch()).asset(USD).least_units),
        (10, 19)
    );
    assert_eq!(PaymentView::parse(&payment.encode()).and_then(|view| view.check(&lane.rules(coin.home))), Ok(()));
    let small = world.sign_only(2, withdrawal(2, USD, 18));
    assert_eq!(world.ledger.admit(&small), Err(Refusal::DEPOSITS_TOO_LITTLE));
}

fn of_usd() -> LaneAssetTerms {
    LaneAssetTerms { fee: 0, least_units: 10, ..open(USD) }
}

/// Controls are fixed when an asset is listed. So an asset of the lane never gets some, and one with some never gets
/// into the lane; nor does one that is closed, or one that nobody knows.
#[test]
fn only_open_assets_are_carried() {
    let mut world = with_listed(AssetControl::Freezable);
    assert_eq!(world.outcome(OPERATOR, proposes(open(GBP))), Some(Refusal::CONTROLLED_IN_LANE));
    assert_eq!(world.outcome(OPERATOR, proposes(open(AssetId(3)))), Some(Refusal::UNKNOWN_ASSET));
    let mut world = with_listed(AssetControl::Open);
    assert_eq!(world.outcome(OPERATOR, Operation::CloseAsset { asset: GBP, closing: Closing::Announce }), None);
    world.empty_blocks(8);
    assert_eq!(world.outcome(OPERATOR, proposes(open(GBP))), Some(Refusal::ASSET_CLOSED));
    for (terms, refusal) in [
        (of_usd(), Refusal::CHANGES_NOTHING),
        (LaneAssetTerms { fee: 1, ..of_usd() }, Refusal::OUT_OF_BOUNDS),
        (LaneAssetTerms { least_units: 21, ..of_usd() }, Refusal::STEP_TOO_LARGE),
        (LaneAssetTerms { outflow_most: 9, outflow_per_height: 9, ..of_usd() }, Refusal::OUTFLOW_FIXED),
        (LaneAssetTerms { deposits: false, ..open(EUR) }, Refusal::CHANGES_NOTHING),
    ] {
        assert_eq!(world.outcome(OPERATOR, proposes(terms)), Some(refusal), "{terms:?}");
    }
    let older = Genesis { rules: RULES_OF_LANE_TERMS - 1, ..one_node() };
    assert_eq!(World::of(&older).outcome(OPERATOR, proposes(open(EUR))), Some(Refusal::RULES_TO_COME));
    let without = Genesis { lane: None, ..one_node() };
    let mut world = World::of(&without);
    let transaction = world.sign(OPERATOR, proposes(open(EUR)));
    assert_eq!(world.ledger.admit(&transaction), Err(Refusal::NO_LANE));
}

/// An asset leaves by terms that take no deposits. What is in the lane then comes home, at the pace of its limit.
#[test]
fn an_asset_without_a_way_in_still_leaves() {
    let mut world = World::of(&one_node());
    let limited = LaneAssetTerms { outflow_most: 400, outflow_per_height: 10, ..open(EUR) };
    decide(&mut world, limited);
    let coin = world.withdraw(2, EUR, 1_000);
    // No 30 days for an end of deposits.
    decide(&mut world, LaneAssetTerms { deposits: false, ..limited });
    assert_eq!(world.outcome(2, withdrawal(2, EUR, 100)), Some(Refusal::NO_WAY_IN));
    let redemption = world.redemption(&world.pay(&coin, &[(3, 996)]));
    assert_eq!(world.outcome(4, redemption), None);
    let (before, blocks) = (world.balance(3, EUR), 60);
    assert!(before < START + 996, "the limit holds");
    world.empty_blocks(blocks);
    assert_eq!((world.balance(3, EUR), world.escrow(EUR)), (START + 996, 4), "every claim is paid");
}

/// Terms that a state does not tell as its root has them are refused, with and without votes.
#[test]
fn a_state_with_other_terms_is_refused_or_has_another_root() {
    let mut world = World::of(&one_node());
    decide(&mut world, open(EUR));
    let chunks: Vec<Vec<u8>> = Snapshot::of(&world.ledger).collect();
    let restored = |chunks: &[Vec<u8>]| -> Option<Ledger> {
        let mut restore = Restore::default();
        chunks.iter().try_for_each(|chunk| restore.push(chunk)).ok()?;
        restore.finish().ok()
    };
    let needle = borsh::to_vec(&open(EUR)).expect("encodes");
    let holds = |chunk: &[u8]| chunk.windows(needle.len()).position(|at| at == needle);
    let (at, place) =
        chunks.iter().enumerate().find_map(|(at, chunk)| Some((at, holds(chunk)?))).expect("a chunk has them");
    let root = Roots::of(&world.ledger).parts().root();
    let mut other = chunks.clone();
    other[at][place + 4] ^= 1;
    let other = restored(&other).expect("another least output is possible");
    assert_ne!(Roots::of(&other).parts().root(), root);
    let mut without = chunks.clone();
    without.remove(at);
    assert!(restored(&without).is_none_or(|ledger| Roots::of(&ledger).parts().root() != root));
    let mut twice = chunks;
    twice.insert(at, twice[at].clone());
    assert!(restored(&twice).is_none());
}

/// What the oracle keeps: the words of the operator, each with the height at which it acts.
#[derive(Default)]
struct Oracle(Vec<(Height, LaneAssetTerms)>);

impl Oracle {
    /// The terms of an epoch that began at a height: of what acted below it, the last word.
    fn terms(&self, asset: AssetId, began: Height) -> Option<LaneAssetTerms> {
        let first = (asset == USD).then(of_usd);
        let mut said = self.0.iter().filter(|(acts, terms)| terms.asset == asset && *acts < began);
        said.next_back().map(|(_, terms)| *terms).or(first)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Deposits are taken as an oracle says that knows nothing but words and the first heights of epochs.
    #[test]
    fn deposits_follow_an_oracle_of_terms(
        steps in proptest::collection::vec((0..6u8, 0..2u8, 1..60u64, any::<bool>()), 10..40)
    ) {
        let mut world = World::of(&one_node());
        let (mut oracle, mut began, mut epoch): (Oracle, Height, HomeEpoch) = (Oracle::default(), 0, 0);
        for (what, asset, units, deposits) in steps {
            let (asset, height) = (if asset == 0 { USD } else { EUR }, world.ledger.height() + 1);
            let due = oracle.terms(asset, began);
            match what {
                0 => {
                    let terms = LaneAssetTerms { least_units: units, fee: 0, deposits, ..open(asset) };
                    let transaction = world.sign(OPERATOR, proposes(terms));
                    if world.run(vec![vec![transaction]]).outcomes == [Outcome::Applied] {
                        oracle.0.push((height + NOTICE, terms));
                    } else {
                        *world.sequences.get_mut(&OPERATOR).expect("it signed") -= 1;
                    }
                }
                1..=3 => {
                    let transaction = world.sign(2, withdrawal(2, asset, units));
                    let taken = world.run(vec![vec![transaction]]).outcomes == [Outcome::Applied];
                    prop_assert_eq!(taken, due.is_some_and(|due| due.deposits && units >= due.least_units));
                    if !taken {
                        *world.sequences.get_mut(&2).expect("it signed") -= 1;
                    }
                }
                _ => world.empty_blocks(1),
            }
            if world.epoch() > epoch {
                (epoch, began) = (world.epoch(), world.ledger.height() + 1);
            }
            let carried: Vec<Amount> = world.ledger.lane().expect("there").assets().of_home(epoch)
                .iter().map(|terms| terms.least_units).collect();
            let due: Vec<Amount> =
                [USD, EUR].iter().filter_map(|asset| Some(oracle.terms(*asset, began)?.least_units)).collect();
            prop_assert_eq!(carried, due);
        }
    }
}
