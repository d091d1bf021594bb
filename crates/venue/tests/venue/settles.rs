//! Settles: one in flight, the same bytes again, and roots that must stop.

use kernel::{FaultDisk, Surviving};
use ledger::BustReason;
use primitives::venue::{
    Contradicting, FillTree, SignedReport, VenueEvidence, VenueOperation, VenueOperator, VenueReport,
};
use venue::{
    CertifiedFacts, FillBust, FillFate, OrderEnd, OrderRefusal, ReportKind, TradeReport, VenueEffect, VenueInput,
    VenueKeys, VenueLimits, VenueMistake, VenueOptions, VenuePause, VenueRoot, VenueStop,
};

use crate::world::*;

type Mistake = Option<VenueMistake>;

/// Matching halts when the oldest fill is half of D old, and goes on by itself.
pub fn late(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    world.trade(ANN, BEN, 100, 5);
    let (sell, early, over) = (world.sell(100, 5), world.buy(100, 1), world.buy(100, 1));
    world.place(ANN, sell);
    world.pass(DELAY.heights / 2 - 1);
    expect("just before", executed(&world.place(BEN, early)), 1)?;
    world.pass(1);
    expect("at half of D", refusal(&world.place(BEN, over)), Some(OrderRefusal::Paused(VenuePause::Late)))?;
    let cancelled = world.cancel(ANN, sell.number);
    expect("cancels are taken", cancelled, vec![ReportKind::Ended { lots: 4, why: OrderEnd::Asked }])?;
    world.settle_all()?;
    expect("after the settle", world.root().paused(), None)
}

/// At most one settle is in flight.
pub fn one_in_flight(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    for _ in 0..3 {
        world.trade(ANN, BEN, 100, 5);
        world.pass(1);
    }
    world.settle_all()
}

/// Orders bring their signatures until the ledger has their entries.
pub fn signatures(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    let sell = world.sell(100, 15);
    world.place(ANN, sell);
    for _ in 0..3 {
        let buy = world.buy(100, 5);
        world.place(BEN, buy);
        world.settle_all()?;
    }
    let present = |at: usize| match &world.sent[at].body.operation {
        primitives::Operation::Venue(operation) => operation.order_signatures(),
        _ => 0,
    };
    expect("signatures", [0, 1, 2].map(present), [2, 1, 1])
}

/// A fenced root stops: orders end, and fills that were not settled are bust.
pub fn fence(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    let sell = world.sell(101, 5);
    world.place(ANN, sell);
    world.trade(ANN, BEN, 100, 5);
    world.block(vec![(OWNER, VenueOperation::Fence { venue: VENUE, incarnation: 0 })]);
    let told = reports(world.certify());
    expect("the root", world.root().stopped(), Some(VenueStop::Fenced))?;
    let is_bust =
        |what: &&ReportKind| matches!(what, ReportKind::Settled { fate: FillFate::Bust(FillBust::Fenced), .. });
    expect("bust reports", told.iter().filter(is_bust).count(), 2)?;
    expect("an open order", world.ended(ANN, sell.number), Some(OrderEnd::Stopped))?;
    let buy = world.buy(100, 5);
    let stopped = OrderRefusal::Stopped(VenueStop::Fenced);
    expect("a new one", refusal(&world.place(BEN, buy)), Some(stopped))
}

/// Two roots with one operator: one settles, the other's reports contradict the tree.
pub fn two_roots(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(None);
    let options = VenueOptions { mistake: mistake.into(), ..VenueOptions::default() };
    let settings = world.settings(VenueLimits { quiet_ms: QUIET, ..VenueLimits::default() });
    let mut other = VenueRoot::create(FaultDisk::new(2), settings, keys(), options).expect("an empty disk");
    let blocks = |world: &World| world.facts.iter().cloned().map(VenueInput::Certified).collect::<Vec<_>>();
    let attach = [ANN, BEN].map(|person| attach(person, false, None));
    let open = VenueInput::OpenMarket(MARKET, market_settings());
    let (sell, buy) = (world.sell(100, 7), world.buy(100, 7));
    let orders = [world.new_order(ANN, sell), world.new_order(BEN, buy)];
    let inputs = [blocks(&world), attach.to_vec(), vec![open], orders.to_vec()].concat();
    let effects = other.step(world.time_ms, &inputs).expect("the disk works");
    let report = effects.iter().find_map(reported).ok_or("the other root reports")?;
    world.trade(ANN, BEN, 100, 5);
    world.settle_all()?;
    other.step(world.time_ms, &blocks(&world)).expect("the disk works");
    expect("the other root", other.stopped(), Some(VenueStop::Contradicted(0)))?;
    let path = FillTree::path(&world.leaves, 0).expect("it is settled");
    let evidence = VenueEvidence { report, contradicting: Contradicting::Tree(world.leaves[0], path), ended: None };
    world.block(vec![(CLEO, VenueOperation::AccuseStep(Box::new(evidence)))]);
    world.certify();
    expect("the operator pays for running two", world.venue().map(|of| of.bond), Some(0))?;
    expect("the first root", world.root().stopped(), Some(VenueStop::Convicted))
}

fn reported(effect: &VenueEffect) -> Option<VenueReport> {
    match effect {
        VenueEffect::Report(TradeReport { what: ReportKind::Executed(_, report), .. }) => Some((**report).clone()),
        _ => None,
    }
}

#[test]
fn a_fill_is_matched_reported_settled_and_told() {
    let mut world = World::new(None);
    let (sell, buy) = (world.sell(100, 5), world.buy(100, 5));
    world.place(ANN, sell);
    world.place(BEN, buy);
    assert_eq!(world.told[&0].iter().map(|of| of.fill().account).collect::<Vec<_>>(), [address(ANN), address(BEN)]);
    assert_eq!(world.root().counts(), (1, 0), "matched is not settled");
    world.pass(1);
    world.settling_block();
    let (height, told) = (world.height(), reports(world.certify()));
    let settled = ReportKind::Settled { index: 0, height, fate: FillFate::Applied };
    assert_eq!(told, [settled.clone(), settled]);
    world.check().expect("holds");
}

#[test]
fn matching_halts_at_half_of_the_delay_and_goes_on_by_itself() {
    late(None).expect("holds");
}

#[test]
fn matching_pauses_when_no_block_comes() {
    let mut world = World::new(None);
    world.time_ms += QUIET;
    let effects = world.step(&[VenueInput::Tick]);
    assert_eq!(effects, [VenueEffect::Pause(Some(VenuePause::NoBlocks))]);
    world.block(Vec::new());
    let effects = world.certify();
    assert_eq!(effects, [VenueEffect::Pause(None)]);
    // A root that has blocks to catch up with matches nothing on old ones.
    world.block(Vec::new());
    let newest = world.height() + DELAY.heights / 4 + 1;
    let behind = world.facts.last().expect("blocks").clone();
    let effects = world.step(&[VenueInput::Certified(CertifiedFacts { newest, ..behind })]);
    assert_eq!(effects, [VenueEffect::Pause(Some(VenuePause::Behind))]);
    world.block(Vec::new());
    world.certify();
    assert_eq!(world.root().paused(), None);
    // Behind a gap nothing can be judged.
    let missing = world.height() + 1;
    world.block(Vec::new());
    world.block(Vec::new());
    let last = world.facts.last().expect("blocks").clone();
    assert_eq!(world.step(&[VenueInput::Certified(last)]), [VenueEffect::WantsBlock(missing)]);
}

#[test]
fn an_operator_without_fee_money_halts_matching() {
    let mut world = World::new(None);
    world.block(vec![(OPERATOR, deposit(USD, START - 4))]);
    world.certify();
    let (sell, buy) = (world.sell(100, 5), world.buy(100, 5));
    world.place(ANN, sell);
    let refused = refusal(&world.place(BEN, buy));
    assert_eq!(refused, Some(OrderRefusal::Paused(VenuePause::Fees)), "three are left");
    assert_eq!(world.root().paused(), None, "nothing is unsettled");
}

#[test]
fn one_settle_is_in_flight_and_its_bytes_are_sent_again() {
    one_in_flight(None).expect("holds");
    let mut world = World::new(None);
    world.trade(ANN, BEN, 100, 5);
    world.pass(3);
    assert_eq!(world.sent.len(), 1, "the same bytes with each block");
    assert_eq!(world.root().in_flight().as_ref(), world.sent.last());
    // It ends unused: the next one has another number, and the old bytes can never count.
    let first = world.sent[0].clone();
    world.pass(first.body.until - world.height());
    assert_eq!(world.sent.len(), 2);
    assert!(world.sent[1].body.sequence > first.body.sequence);
    world.block_with(Vec::new(), vec![first, world.sent[1].clone()]);
    world.certify();
    assert_eq!(world.root().counts(), (1, 1));
    world.check().expect("nothing was collected meanwhile");
}

#[test]
fn orders_bring_signatures_until_their_entries_are_certified() {
    signatures(None).expect("holds");
}

#[test]
fn a_fenced_root_stops() {
    fence(None).expect("holds");
}

#[test]
fn two_live_roots_with_one_operator_convict_and_both_stop() {
    two_roots(None).expect("holds");
}

#[test]
fn another_operator_goes_on_with_the_journal_of_its_incarnation() {
    let mut world = World::new(None);
    world.trade(ANN, BEN, 100, 5);
    world.pass(1);
    let to = VenueOperator { account: address(7), report_key: key(99).public() };
    let change = VenueOperation::ChangeOperator { venue: VENUE, from: operator(), to };
    world.block(vec![(OWNER, change)]);
    assert_eq!(world.certify(), [VenueEffect::Pause(Some(VenuePause::Operator))], "nothing is settled, either");
    let keys = VenueKeys { account: address(7), operator: key(7), report: key(99) };
    let disk = world.disk.after_crash(Surviving::Nothing);
    let (root, _) = VenueRoot::open(disk, keys, VenueOptions::default()).expect("it opens");
    world.root = Some(root);
    world.pass(1);
    assert_eq!(world.root().paused(), None);
    world.trade(ANN, BEN, 100, 5);
    for _ in 0..3 {
        let pool = world.sent.last().cloned().into_iter().collect();
        world.block_with(Vec::new(), pool);
        world.certify();
    }
    assert_eq!(world.root().counts(), (2, 2));
    assert_eq!(world.sent.last().map(|settle| settle.body.account), Some(address(7)));
    let keys_of = |index: u64| world.told[&index][0].key();
    assert_eq!([keys_of(0), keys_of(1)], [reporting().public(), key(99).public()], "both keys convict");
}

#[test]
fn a_clock_that_is_set_back_stops_no_timer() {
    let mut world = World::new(None);
    world.step(&[attach(ANN, false, Some(2 * STEP))]);
    let sell = world.sell(100, 5);
    world.place(ANN, sell);
    world.time_ms -= 500 * STEP;
    world.step(&[VenueInput::Tick]);
    assert_eq!(world.root().wants_step_at_ms(), Some(world.time_ms + 2 * STEP));
    world.time_ms += 2 * STEP;
    world.step(&[VenueInput::Tick]);
    assert_eq!(world.ended(ANN, sell.number), Some(OrderEnd::DeadMan));
}

/// A settle so late that the ledger has forgotten an entry is void; the next one brings all signatures.
#[test]
fn a_void_settle_is_followed_by_one_with_all_signatures() {
    let mut world = World::new(None);
    let sell = world.sell(100, 10);
    world.place(ANN, sell);
    let first = world.buy(100, 5);
    world.place(BEN, first);
    world.settle_all().expect("holds");
    let second = world.buy(100, 5);
    world.place(BEN, second);
    let floor = number(sell.number.reference + 1);
    world.block(vec![(ANN, VenueOperation::RaiseFloor { venue: VENUE, key: public(ANN), floor })]);
    world.certify();
    world.pass(DELAY.heights + 2);
    for _ in 0..2 {
        world.settling_block();
        world.certify();
    }
    assert_eq!((world.voids, world.root().counts()), (1, (2, 2)), "nothing is stuck");
    assert_eq!(world.busts, [BustReason::Dead]);
}
