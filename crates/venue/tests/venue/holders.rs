//! Whom issuers freeze or never admitted: nothing that is matched busts for them, unless its settle is late.

use kernel::FaultDisk;
use ledger::{BustReason, Genesis, HolderStanding};
use primitives::venue::VenueSide;
use primitives::{AssetControl, HolderState, Operation, Reference, ReferenceKind};
use venue::{FillBust, FillFate, OrderEnd, OrderRefusal, ReportKind, VenueLimits, VenueMistake};

use crate::world::*;

type Mistake = Option<VenueMistake>;

/// Who issues all assets.
const ISSUER: u8 = 9;
/// Who trades without euros at first.
const DEE: u8 = 6;

/// A world in which the issuer of euros controls them.
fn controlled(control: AssetControl, mistake: Mistake) -> World {
    let mut genesis = Genesis { controls: vec![(EUR, control)], ..genesis() };
    genesis.balances.push((address(ISSUER), USD, START));
    let limits = VenueLimits { quiet_ms: QUIET, ..VenueLimits::default() };
    World::founded(&genesis, FaultDisk::new(1), mistake, mandate(), (limits, market_settings()))
}

/// The issuer says of an account what it is, in a block of its own that the root hears of.
fn say(world: &mut World, person: u8, state: HolderState) {
    say_in_private(world, person, state);
    world.certify();
}

/// The same, before the root has heard of the block.
fn say_in_private(world: &mut World, person: u8, state: HolderState) {
    let said = holder(world, person, state);
    world.block_with(Vec::new(), vec![said]);
    let is_open = world.ledger.controls().standing(EUR, &address(person)) == HolderStanding::Open;
    assert_eq!(is_open, state == HolderState::Open);
}

/// Admits the owner and all who trade, if euros are for admitted holders.
pub fn admit(world: &mut World) {
    if world.ledger.controls().control(EUR).admits() {
        let all = [&[OWNER][..], &TRADERS].concat().into_iter();
        let said = all.map(|person| holder(world, person, HolderState::Open)).collect();
        world.block_with(Vec::new(), said);
    }
}

fn holder(world: &mut World, person: u8, state: HolderState) -> primitives::Transaction {
    let reference = Reference::read(ReferenceKind::Text, "case 7").expect("plain");
    world.sign_any(ISSUER, Operation::SetHolder { asset: EUR, account: address(person), state, reference })
}

/// An order of a frozen account is refused, of either side, and taken when the issuer has opened it.
pub fn refused(mistake: Mistake) -> Result<(), String> {
    let mut world = controlled(AssetControl::Freezable, mistake);
    let rests = world.buy(100, 9);
    world.place(BEN, rests);
    say(&mut world, ANN, HolderState::Frozen);
    let (buy, sell) = (world.buy(90, 3), world.sell(100, 3));
    let mut refused = Vec::new();
    for order in [buy, sell] {
        refused.push(refusal(&world.place(ANN, order)));
    }
    world.settle_late()?;
    expect("orders of the frozen", refused, vec![Some(OrderRefusal::HolderFrozen(EUR)); 2])?;
    expect("fills", world.leaves.len(), 0)?;
    say(&mut world, ANN, HolderState::Open);
    let again = world.sell(100, 3);
    expect("the order of the opened", refusal(&world.place(ANN, again)), None)?;
    world.settle_late()?;
    expect("fills", world.leaves.len(), 1)
}

/// Orders that rest end with the block of the freeze; those of others stay, and what was matched before settles.
pub fn rests(mistake: Mistake) -> Result<(), String> {
    let mut world = controlled(AssetControl::Freezable, mistake);
    let (frozen, others) = (world.sell(100, 5), world.sell(101, 5));
    world.place(ANN, frozen);
    world.place(CLEO, others);
    let buy = world.buy(100, 2);
    world.place(BEN, buy);
    say(&mut world, ANN, HolderState::Frozen);
    let ended = world.ended(ANN, frozen.number);
    let buy = world.buy(101, 4);
    world.place(BEN, buy);
    world.settle_late()?;
    expect("the order of the frozen", ended, Some(OrderEnd::Frozen))?;
    expect("lots of the other that are left", world.open(CLEO, others.number), Some(1))?;
    expect("fills", world.leaves.len(), 2)
}

/// Who was never admitted trades nothing, although the issuer has said nothing of it; then it is admitted.
pub fn admission(mistake: Mistake) -> Result<(), String> {
    let mut world = controlled(AssetControl::Admitted, mistake);
    let authorized = world.authorize(DEE, &trading(DEE), mandate());
    world.block(vec![(DEE, deposit(USD, DEPOSIT)), (DEE, authorized)]);
    world.certify();
    world.step(&[attach(DEE, false, None)]);
    let (sell, buy) = (world.sell(100, 3), world.buy(100, 3));
    world.place(ANN, sell);
    let refused = refusal(&world.place(DEE, buy));
    world.settle_late()?;
    expect("the order of who is not admitted", refused, Some(OrderRefusal::HolderNotAdmitted(EUR)))?;
    say(&mut world, DEE, HolderState::Open);
    let buy = world.buy(100, 3);
    expect("the order of the admitted", refusal(&world.place(DEE, buy)), None)?;
    world.settle_late()?;
    expect("fills", world.leaves.len(), 1)
}

/// A freeze of the venue's owner, who is paid fees, ends all orders of the market.
pub fn owner(mistake: Mistake) -> Result<(), String> {
    let mut world = controlled(AssetControl::Freezable, mistake);
    let sell = world.sell(100, 5);
    world.place(ANN, sell);
    say(&mut world, OWNER, HolderState::Frozen);
    let buy = world.buy(100, 5);
    let refused = refusal(&world.place(BEN, buy));
    let ended = world.ended(ANN, sell.number);
    world.settle_late()?;
    expect("an order at a frozen owner's", refused, Some(OrderRefusal::OwnerFrozen(EUR)))?;
    expect("one that rested", ended, Some(OrderEnd::Frozen))?;
    say(&mut world, OWNER, HolderState::Open);
    world.trade(ANN, BEN, 100, 1);
    world.settle_late()
}

#[test]
fn frozen_accounts_trade_nothing_until_they_are_opened() {
    refused(None).expect("holds");
}

#[test]
fn orders_of_an_account_end_when_it_is_frozen() {
    rests(None).expect("holds");
}

#[test]
fn who_was_never_admitted_trades_nothing() {
    admission(None).expect("holds");
}

#[test]
fn a_venue_whose_owner_is_frozen_trades_nothing() {
    owner(None).expect("holds");
}

/// The issuer is exempt, and an asset that nobody controls is not touched.
#[test]
fn a_freeze_is_of_one_asset() {
    let mut world = controlled(AssetControl::Freezable, None);
    say(&mut world, BEN, HolderState::Frozen);
    world.trade(ANN, CLEO, 100, 2);
    world.settle_all().expect("the others trade");
    assert_eq!(world.leaves.len(), 1);
}

/// The race: a fill is matched before the root hears of a freeze. It settles as long as that is not past. A settle that
/// is held back for longer busts, nobody is guilty, and the bond pays the penalty, which is burnt.
#[test]
fn a_freeze_between_match_and_settle_busts_only_a_late_settle_and_costs_its_penalty() {
    for is_late in [false, true] {
        let mut world = controlled(AssetControl::Freezable, None);
        world.trade(ANN, BEN, 100, 4);
        say_in_private(&mut world, ANN, HolderState::Frozen);
        world.certify();
        let bond = world.venue().expect("open").bond;
        let blocks = if is_late { DELAY.heights + 2 } else { DELAY.heights - 2 };
        world.pass(blocks);
        world.settling_block();
        let effects = reports(world.certify());
        let (busts, fate) = match is_late {
            true => (vec![BustReason::Frozen], FillFate::Bust(FillBust::Frozen)),
            false => (Vec::new(), FillFate::Applied),
        };
        let settled = |what: &&ReportKind| matches!(what, ReportKind::Settled { fate: of, .. } if *of == fate);
        assert_eq!((world.busts.clone(), effects.iter().filter(settled).count()), (busts, 2));
        let paid = bond - world.venue().expect("open").bond;
        assert_eq!(paid, if is_late { 4 * PENALTY } else { 0 });
    }
}

/// What was said stays known: after a crash, from a snapshot, and for a key that comes later.
#[test]
fn a_root_that_opens_again_knows_whom_issuers_froze() {
    let mut world = controlled(AssetControl::Freezable, None);
    say(&mut world, ANN, HolderState::Frozen);
    // Of an account without a key: it is told again with the key.
    say(&mut world, DEE, HolderState::Frozen);
    let authorized = world.authorize(DEE, &trading(DEE), mandate());
    world.block(vec![(DEE, deposit(USD, DEPOSIT)), (DEE, authorized)]);
    world.certify();
    world.root().snapshot().expect("the disk works");
    world.crash(kernel::Surviving::Everything).expect("it opens");
    world.block(Vec::new());
    world.certify();
    world.step(&[attach(ANN, false, None), attach(DEE, false, None)]);
    for person in [ANN, DEE] {
        let order = world.order(VenueSide::Buy, 90, 1);
        assert_eq!(refusal(&world.place(person, order)), Some(OrderRefusal::HolderFrozen(EUR)));
    }
    say(&mut world, DEE, HolderState::Open);
    let order = world.buy(90, 1);
    assert_eq!(refusal(&world.place(DEE, order)), None);
}
