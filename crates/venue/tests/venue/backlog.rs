//! What is unsettled settles in time: its bound, auctions, numbers of settles, and settles that are void.

use kernel::FaultDisk;
use venue::{
    CertifiedFacts, OperatorStanding, OrderRefusal, Steering, VenueEffect, VenueFact, VenueInput, VenueLimits,
    VenueMistake, VenuePause, VenueRoot, VenueStanding,
};

use crate::world::*;

type Mistake = Option<VenueMistake>;

/// Within the price bands of keys, so that they take part in a call.
fn collar() -> VenueInput {
    VenueInput::Steer(MARKET, Steering::SetCollar { low: 1, high: 1_000 })
}

fn uncross() -> VenueInput {
    VenueInput::Steer(MARKET, Steering::Uncross { reference: 100, then_halts: false })
}

/// More small fills at one height than settle within D, and their maker collects in the next block. Each settle is held
/// back as long as an honest network may: a quarter of D.
pub fn bounded(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    (0..120).for_each(|_| world.trade(ANN, BEN, 100, 1));
    let (fills, _) = world.root().counts();
    world.block(vec![(ANN, collect(EUR, DEPOSIT))]);
    world.certify();
    while world.root().counts().1 < fills {
        world.pass(DELAY.heights / 4 - 1);
        world.settling_block();
        world.certify();
    }
    world.check()?;
    expect("fills, as many as two settles hold", fills, 2 * (terms().settle_bytes as u64 / (29 + 2 * 153)))
}

#[test]
fn no_more_is_matched_than_settles_in_time() {
    bounded(None).expect("holds");
    let mut world = World::new(None);
    (0..120).for_each(|_| world.trade(ANN, BEN, 100, 1));
    let buy = world.buy(100, 1);
    assert_eq!(refusal(&world.place(BEN, buy)), Some(OrderRefusal::Paused(VenuePause::Backlog)));
    let (rests, again) = (world.buy(99, 1), world.buy(100, 1));
    assert_eq!(refusal(&world.place(BEN, rests)), None, "what rests adds nothing");
    world.pass(1);
    world.settling_block();
    world.certify();
    assert_eq!(executed(&world.place(BEN, again)), 1, "a settle makes room");
    world.settle_all().expect("holds");
}

/// An auction trades nothing while matching pauses.
pub fn auction_in_pause(mistake: Mistake) -> Result<(), String> {
    let mut world = World::new(mistake);
    world.step(&[collar(), VenueInput::Steer(MARKET, Steering::Call)]);
    let (sell, buy) = (world.sell(100, 5), world.buy(100, 5));
    world.place(ANN, sell);
    world.place(BEN, buy);
    world.time_ms += QUIET;
    world.step(&[VenueInput::Tick]);
    let effects = world.step(&[uncross()]);
    let refused = VenueEffect::Refused(MARKET, OrderRefusal::Paused(VenuePause::NoBlocks));
    expect("an auction in a pause", effects, vec![refused])?;
    world.pass(1);
    world.step(&[uncross()]);
    expect("an auction after it", world.root().counts().0, 1)?;
    world.settle_all()
}

#[test]
fn an_auction_waits_until_matching_goes_on() {
    auction_in_pause(None).expect("holds");
}

#[test]
fn orders_that_do_not_cross_hold_no_auction_back() {
    let mut world = World::new(None);
    world.step(&[collar(), VenueInput::Steer(MARKET, Steering::Call)]);
    for _ in 0..30 {
        let (far, low) = (world.sell(200, 5), world.buy(50, 5));
        world.place(ANN, far);
        world.place(BEN, low);
    }
    world.trade(ANN, BEN, 100, 3);
    world.step(&[uncross()]);
    assert_eq!(world.root().counts().0, 1);
    world.settle_all().expect("holds");
}

#[test]
fn a_call_takes_no_more_orders_than_its_auction_can_trade() {
    let mut world = World::new(None);
    world.step(&[collar(), VenueInput::Steer(MARKET, Steering::Call)]);
    let mut refused = None;
    for _ in 0..49 {
        let (sell, buy) = (world.sell(100, 1), world.buy(100, 1));
        world.place(ANN, sell);
        refused = refusal(&world.place(BEN, buy));
    }
    assert_eq!(refused, Some(OrderRefusal::Paused(VenuePause::Backlog)));
    world.step(&[uncross()]);
    assert_eq!(world.root().counts().0, 48, "and the auction runs");
    world.settle_all().expect("holds");
}

/// Settles that end unused one after the other do not leave the window of numbers that the ledger takes.
pub fn numbers(mistake: Mistake) -> Result<(), String> {
    let limits = VenueLimits { settle_heights: 1, quiet_ms: QUIET, ..VenueLimits::default() };
    let mut world = World::with(mistake, mandate(), limits);
    world.trade(ANN, BEN, 100, 5);
    world.pass(66);
    expect("settles", world.sent.len(), 66)?;
    world.settle_all()
}

#[test]
fn numbers_of_ended_settles_are_signed_again_within_the_ledgers_window() {
    numbers(None).expect("holds");
}

impl World {
    /// A block that the ledger never had, in which something is as it is told.
    fn told(&mut self, height: u64, fact: VenueFact) -> Vec<VenueEffect> {
        self.time_ms += STEP;
        let facts = CertifiedFacts { height, time_ms: self.time_ms, newest: height, facts: vec![fact] };
        self.step(&[VenueInput::Certified(facts)])
    }
}

#[test]
fn a_bond_below_the_least_settles_nothing() {
    let mut world = World::new(None);
    // A market without penalties: its fills alone would ask for no bond.
    let mut facts = world.facts.clone();
    for fact in facts.iter_mut().flat_map(|block| &mut block.facts) {
        if let VenueFact::Market(_, terms) = fact {
            terms.penalty = 0;
        }
    }
    let root = VenueRoot::create(FaultDisk::new(2), world.root().settings().to_owned(), keys(), world.options);
    world.root = Some(root.expect("an empty disk"));
    let mut inputs: Vec<VenueInput> = facts.into_iter().map(VenueInput::Certified).collect();
    inputs.push(VenueInput::OpenMarket(MARKET, market_settings()));
    inputs.extend(TRADERS.map(|person| attach(person, false, None)));
    world.step(&inputs);
    world.trade(ANN, BEN, 100, 5);
    assert_eq!(world.root().counts().0, 1);
    let (height, standing) = (world.height(), world.venue().expect("it is open"));
    let poor = VenueStanding { bond: BOND_MIN - 1, ..standing };
    let is_submit = |effect: &VenueEffect| matches!(effect, VenueEffect::Submit(_));
    assert!(!world.told(height + 1, VenueFact::Venue(poor)).iter().any(is_submit), "it would be void");
    assert!(world.told(height + 2, VenueFact::Venue(standing)).iter().any(is_submit));
}

#[test]
fn settles_that_are_void_one_after_the_other_come_ever_later() {
    let mut world = World::new(None);
    world.trade(ANN, BEN, 100, 5);
    world.pass(1);
    let mut cut = Vec::new();
    for height in world.height() + 1..world.height() + 36 {
        // Each settle is used by the next block, and settles nothing.
        let highest = world.sent.last().map_or(0, |sent| sent.body.sequence);
        let used = OperatorStanding { account: address(OPERATOR), balance: START, highest, used: u64::MAX };
        let before = world.sent.len();
        world.told(height, VenueFact::Operator(used));
        if world.sent.len() > before {
            cut.push(height);
        }
    }
    let waits: Vec<u64> = cut.windows(2).map(|of| of[1] - of[0]).collect();
    assert_eq!(waits, [2, 3, 5, 9, 9]);
}
