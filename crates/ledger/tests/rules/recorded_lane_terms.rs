//! The recorded chain of rules 19: validators vote an asset into the payment lane, it is deposited, paid and redeemed,
//! and a later vote ends its deposits. How chains are recorded and replayed is in [`crate::recorded`].

use ledger::{Genesis, Listing, Refusal, Roots, Snapshot};
use primitives::{AssetControl, AssetId, LaneAssetTerms, Operation, ProposedChange, RULES_OF_LANE_TERMS};

use crate::charter::{World, account, genesis as plain};
use crate::lane_terms::{open, proposes};
use crate::proposals::{ask, want};
use crate::recorded::{History, Seen, upgrade};
use crate::world::{Coin, EUR, USD, World as LaneWorld, terms, withdrawal};

const GBP: AssetId = AssetId(2);
/// Who deposits; in the lane's tests the same key has the next number.
const PAYER: u8 = 4;

/// The lane carries USD alone, and the issuer of GBP freezes it.
fn genesis() -> Genesis {
    let mut lane = terms();
    lane.assets.truncate(1);
    let assets = ["USD", "EUR", "GBP"].map(|symbol| Listing::new(symbol, 2, account(0))).to_vec();
    let held = |person: u8| [USD, EUR].map(|asset| (account(person), asset, 10_000_000));
    Genesis {
        rules: RULES_OF_LANE_TERMS - 1,
        assets,
        balances: (0..6).flat_map(held).collect(),
        controls: vec![(GBP, AssetControl::Freezable)],
        lane: Some(lane),
        ..plain()
    }
}

fn limited() -> LaneAssetTerms {
    LaneAssetTerms { outflow_most: 500, outflow_per_height: 50, ..open(EUR) }
}

fn block(world: &mut World, operations: &[(u8, Operation)]) -> Vec<Option<Refusal>> {
    let native = operations.iter().map(|(person, operation)| world.sign(*person, operation.clone())).collect();
    world.apply(native)
}

fn deposit(units: u64) -> (u8, Operation) {
    (PAYER, withdrawal(PAYER + 1, EUR, units))
}

/// All want these terms, and blocks follow until an epoch of the lane has them.
fn vote(world: &mut World, asked: &[(u8, LaneAssetTerms)]) {
    let changes: Vec<_> = asked.iter().map(|(person, terms)| (*person, ProposedChange::Lane(*terms))).collect();
    let ids = ask(world, &changes);
    want(world, &[0, 1, 2], &ids);
    let has = |world: &World| {
        let lane = world.ledger.lane().expect("there is one");
        let epoch = lane.bridge().clock().epoch();
        asked.iter().all(|(_, terms)| lane.assets().get(terms.asset, epoch) == Some(terms))
    };
    let late = world.ledger.height() + 50;
    while !has(world) {
        let height = world.ledger.height();
        assert!(height < late, "{asked:?} never act");
        world.until(height + 1);
    }
}

pub fn of_lane_terms() -> History {
    let mut world = World::new(&genesis());
    let state = Snapshot::of(&world.ledger).collect();
    world.until(2);
    let early = block(&mut world, &[(0, proposes(open(EUR))), deposit(1_000)]);
    assert_eq!(early, [Some(Refusal::RULES_TO_COME), Some(Refusal::NOT_IN_LANE)]);
    upgrade(&mut world, RULES_OF_LANE_TERMS);
    let usd = LaneAssetTerms { least_units: 10, fee: 0, ..open(USD) };
    let wrong = [
        (0, proposes(open(GBP))),
        (1, proposes(LaneAssetTerms { fee: 1, ..usd })),
        (2, proposes(LaneAssetTerms { least_units: 21, ..usd })),
        (3, proposes(LaneAssetTerms { outflow_most: 9, outflow_per_height: 9, ..usd })),
    ];
    let refused =
        [Refusal::CONTROLLED_IN_LANE, Refusal::OUT_OF_BOUNDS, Refusal::STEP_TOO_LARGE, Refusal::OUTFLOW_FIXED];
    assert_eq!(block(&mut world, &wrong), refused.map(Some));
    vote(&mut world, &[(0, limited()), (1, LaneAssetTerms { least_units: 20, ..usd })]);
    pays(&mut world);
    vote(&mut world, &[(0, LaneAssetTerms { deposits: false, ..limited() })]);
    assert_eq!(block(&mut world, &[deposit(1_000)]), [Some(Refusal::NO_WAY_IN)]);
    let height = world.ledger.height();
    world.until(height + 20);
    (state, world.blocks)
}

/// A deposit, and a payment for its fee that is redeemed at the pace of the limit.
fn pays(world: &mut World) {
    assert_eq!(block(world, &[deposit(19)]), [Some(Refusal::DEPOSITS_TOO_LITTLE)]);
    let home = world.ledger.lane().expect("there is one").bridge().clock().epoch();
    let (_, operation) = deposit(1_000);
    let transaction = world.sign(PAYER, operation);
    let sequence = transaction.body.sequence;
    assert_eq!(world.apply(vec![transaction]), [None]);
    let (ledger, roots) = (world.ledger.clone(), Roots::of(&world.ledger));
    let lane = LaneWorld { ledger, roots, sequences: Default::default() };
    let coin: Coin = lane.coin(PAYER + 1, sequence, home, EUR, 1_000);
    let redemption = lane.redemption(&lane.pay(&coin, &[(6, 996)]));
    assert_eq!(block(world, &[(5, redemption)]), [None]);
}

#[test]
fn the_chain_of_rules_19_has_all_that_they_brought_and_crosses_their_first_height() {
    let refused = [
        Refusal::RULES_TO_COME,
        Refusal::NOT_IN_LANE,
        Refusal::CONTROLLED_IN_LANE,
        Refusal::OUT_OF_BOUNDS,
        Refusal::STEP_TOO_LARGE,
        Refusal::OUTFLOW_FIXED,
        Refusal::DEPOSITS_TOO_LITTLE,
        Refusal::NO_WAY_IN,
    ];
    Seen::of(RULES_OF_LANE_TERMS).has(&["propose_lane_terms", "vote", "withdraw", "lane"], &refused);
}
