//! The recorded chains of rules 12, payments and issues with references, and of rules 13, reports of a venue's steps.
//! How chains are recorded and replayed is in [`crate::recorded`].

use ledger::{Genesis, Refusal, Snapshot, VenueTerms};
use primitives::venue::{
    Contradicting, Delay, EndedIncarnation, FillTree, MarketTerms, OrderLife, OrderNumber, ProvenEnd,
    STEP_REPORTS_RULES, SelfTradeRule, SettledFill, SettledOrder, SignedOrder, SignedReport, SignedStep, StepReport,
    UnsettledFill, VenueEvidence, VenueOperation, VenueOperator, VenueOrder, VenueReport, VenueSide,
};
use primitives::{AssetId, Digest, Operation, Reference, ReferenceKind, SecretKey};

use crate::charter::{NETWORK, World, account, genesis};
use crate::recorded::{History, Seen, upgrade};

pub const RULES_OF_REFERENCES: u32 = 12;
const USD: AssetId = AssetId(0);
/// Who issues the asset, and who owns the venue.
const BANK: u8 = 0;
const OWNER: u8 = 4;
const VENUE: u32 = 0;

/// One block with these operations, and what became of them.
fn block(world: &mut World, operations: Vec<(u8, Operation)>) -> Vec<Option<Refusal>> {
    let native = operations.into_iter().map(|(person, operation)| world.sign(person, operation)).collect();
    world.apply(native)
}

/// A chain under the rules before, on which `early` comes too early; then these rules act, and `then` follows.
fn across(genesis: Genesis, rules: u32, early: fn() -> Operation, then: fn(&mut World)) -> History {
    let mut world = World::new(&Genesis { rules: rules - 1, ..genesis });
    let state = Snapshot::of(&world.ledger).collect();
    world.until(2);
    assert_eq!(block(&mut world, vec![(1, early())]), [Some(Refusal::RULES_TO_COME)]);
    upgrade(&mut world, rules);
    then(&mut world);
    let height = world.ledger.height();
    world.until(height + 20);
    (state, world.blocks)
}

/// References of every kind, as their bytes are.
fn references() -> [Reference; 4] {
    let of = |kind, bytes: &[u8]| Reference { kind, bytes: bytes.into() };
    [
        of(ReferenceKind::Text, b"invoice 2026-1107"),
        of(ReferenceKind::Uuid, &[7; 16]),
        of(ReferenceKind::Message, &[9; 32]),
        of(ReferenceKind::Number, &1_107u64.to_be_bytes()),
    ]
}

fn pays(reference: Reference) -> Operation {
    Operation::PayReferenced { to: account(2), asset: USD, amount: 10, reference }
}

fn issues(reference: Reference) -> Operation {
    Operation::IssueReferenced { to: account(3), asset: USD, amount: 20, reference }
}

pub fn of_references() -> History {
    across(
        genesis(),
        RULES_OF_REFERENCES,
        || pays(references()[0].clone()),
        |world| {
            let all = references().into_iter().flat_map(|one| [(1, pays(one.clone())), (BANK, issues(one))]);
            assert_eq!(block(world, all.collect()), [None; 8]);
            let foreign = issues(references()[1].clone());
            assert_eq!(block(world, vec![(1, foreign)]), [Some(Refusal::NOT_ISSUER)]);
        },
    )
}

fn reporting() -> SecretKey {
    SecretKey::from_seed([210; 32])
}

fn with_venues() -> Genesis {
    let terms = VenueTerms {
        delay: Delay { heights: 4, ms: 2_500 },
        bond_min: 1_000,
        bond_delay: Delay { heights: 40, ms: 40_000 },
        settle_bytes: 1 << 13,
        entries_max: 100,
        penalty_min: 1,
        venues_max: 2,
        per_block: 2_000,
        life_max: 50,
    };
    let assets = ["USD", "EUR"].map(|symbol| ledger::Listing::new(symbol, 2, account(BANK))).to_vec();
    let balances = (0..6).map(|person| (account(person), USD, 1_000_000)).collect();
    Genesis { venues: Some(terms), assets, balances, ..genesis() }
}

fn at(operation: VenueOperation) -> Operation {
    Operation::Venue(Box::new(operation))
}

/// A report of a step with one fill, to one person.
fn report(incarnation: u32, clock_ms: u64, (index, leaf, person): (u64, Digest, u8)) -> StepReport {
    let leaf = (index, leaf, account(person));
    SignedStep::new(&NETWORK, (VENUE, incarnation), (1, clock_ms), &[leaf], &reporting()).report(0, leaf)
}

/// A step was signed twice.
fn accuses(incarnation: u32) -> Operation {
    let of = |clock_ms, person| VenueReport::Step(report(incarnation, clock_ms, (0, Digest([3; 32]), person)));
    let mut both = [of(1, 1), of(2, 2)];
    both.sort_by_key(SignedReport::rank);
    let [report, other] = both;
    let contradicting = Contradicting::Report(other);
    at(VenueOperation::AccuseStep(Box::new(VenueEvidence { report, contradicting, ended: None })))
}

fn order(person: u8, side: VenueSide) -> SettledOrder {
    let secret = SecretKey::from_seed([150 + person; 32]);
    let number = |reference| OrderNumber { incarnation: 0, day: 1, reference };
    let order = VenueOrder {
        market: 0,
        number: number(1),
        floor: number(0),
        side,
        life: OrderLife::Rests,
        self_trade: SelfTradeRule::ExpireBoth,
        tick: 100,
        lots: 10,
        expiry: 40,
        until_ms: None,
        fee_cap_ppm: 10_000,
    };
    SignedOrder::sign(&NETWORK, VENUE, &secret, order).into()
}

/// A fill of incarnation 0 that was reported and never settled; `fenced` is when that ended.
fn claims(fenced: (u64, u64)) -> Operation {
    let (buy, sell) = (order(1, VenueSide::Buy), order(2, VenueSide::Sell));
    let fill = SettledFill { buy: 0, sell: 1, lots: 4, tick: 100, fee_buy: 0, fee_sell: 0, taker: VenueSide::Buy };
    let digest = |of: &SettledOrder| of.order.digest(&NETWORK, VENUE, &of.key);
    let report = report(0, 1, (0, fill.leaf(&digest(&buy), &digest(&sell)), 1));
    let (tree, report_keys) = (FillTree::default(), vec![reporting().public()]);
    let ended = EndedIncarnation { incarnation: 0, tree, report_keys, height: fenced.0, time_ms: fenced.1 };
    let path = FillTree::path(&[ended.leaf(VENUE)], 0).expect("it has ended");
    let ended = ProvenEnd { ended, path };
    at(VenueOperation::ClaimStep(Box::new(UnsettledFill { report, ended, buy, sell, fill })))
}

pub fn of_steps() -> History {
    across(
        with_venues(),
        STEP_REPORTS_RULES,
        || accuses(0),
        |world| {
            let operator = VenueOperator { account: account(OWNER), report_key: reporting().public() };
            let open = VenueOperation::Open { venue: VENUE, operator, fee_cap_ppm: 10_000, bond: 5_000 };
            assert_eq!(block(world, vec![(OWNER, at(open))]), [None]);
            let terms = MarketTerms {
                base: AssetId(1),
                quote: USD,
                lot_units: 10,
                tick_units: 2,
                lots_max: 1_000,
                fee_cap_ppm: 10_000,
                penalty: 5,
            };
            assert_eq!(
                block(world, vec![(OWNER, at(VenueOperation::List { venue: VENUE, market: 0, terms }))]),
                [None]
            );
            assert_eq!(block(world, vec![(OWNER, at(VenueOperation::Fence { venue: VENUE, incarnation: 0 }))]), [None]);
            let fenced = (world.ledger.height(), world.ledger.height() * 1_000);
            assert_eq!(block(world, vec![(1, claims(fenced))]), [None]);
            assert_eq!(block(world, vec![(2, claims(fenced))]), [Some(Refusal::BAD_CLAIM)]);
            assert_eq!(block(world, vec![(1, accuses(1))]), [None]);
            assert_eq!(block(world, vec![(2, accuses(1))]), [Some(Refusal::NOTHING_BONDED)]);
        },
    )
}

#[test]
fn the_chain_of_rules_12_has_all_that_they_brought_and_crosses_their_first_height() {
    let refused = [Refusal::RULES_TO_COME, Refusal::NOT_ISSUER];
    Seen::of(RULES_OF_REFERENCES).has(&["pay_referenced", "issue_referenced"], &refused);
}

#[test]
fn the_chain_of_rules_13_has_all_that_they_brought_and_crosses_their_first_height() {
    let refused = [Refusal::RULES_TO_COME, Refusal::BAD_CLAIM, Refusal::NOTHING_BONDED];
    Seen::of(STEP_REPORTS_RULES).has(&["accuse_step", "claim_step"], &refused);
}
