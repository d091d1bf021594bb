//! The bytes of records, outcomes and snapshots: a change of what they mean needs another version.

use kernel::FaultDisk;
use primitives::venue::{MarketTerms, SignedOrder, VenueOrder, VenueSide};
use primitives::{Digest, Operation};
use venue::{
    CertifiedFacts, KeyStanding, OperatorStanding, Steering, TradeCommand, VenueEffect, VenueFact, VenueInput,
    VenueLimits, VenueOptions, VenueRoot, VenueSettings, VenueStanding, check_orders,
};

use crate::world::*;

/// Everything that a first block states, without a ledger.
fn facts() -> Vec<VenueFact> {
    let standing = VenueStanding {
        incarnation: 0,
        operator: operator(),
        is_convicted: false,
        fee_cap_ppm: 10_000,
        settled: 0,
        bond: BOND,
        entries: 0,
    };
    let pays = OperatorStanding { account: address(OPERATOR), balance: START, highest: 0, used: 0 };
    let mut facts = vec![VenueFact::Venue(standing), VenueFact::Operator(pays)];
    facts.push(VenueFact::Market(MARKET, MarketTerms { ..market() }));
    for person in [ANN, BEN] {
        let (net, is_revoked) = (vec![(USD, -3)], false);
        let (owner, mandate, floor, raised) = (address(person), mandate(), number(0), number(0));
        facts.push(VenueFact::Key(public(person), KeyStanding { owner, mandate, net, is_revoked, floor, raised }));
        for asset in [USD, EUR] {
            facts.push(VenueFact::Deposit { account: address(person), asset, free: DEPOSIT, leaving: 7 });
        }
    }
    facts
}

#[test]
fn the_formats_of_inputs_settles_and_state_are_those_of_their_versions() {
    let network = Digest([5; 32]);
    let mut world = World::new(None);
    let limits = VenueLimits { quiet_ms: QUIET, ..VenueLimits::default() };
    let settings = VenueSettings { network, ..world.settings(limits) };
    let mut root = VenueRoot::create(FaultDisk::new(3), settings, keys(), VenueOptions::default()).expect("empty");
    let mut order = |reference, side, lots| {
        let trader = if side == VenueSide::Buy { ANN } else { BEN };
        let number = number(reference);
        let order = VenueOrder { number, until_ms: Some(9_000_000), expiry: 60, ..world.order(side, 100, lots) };
        let signed = SignedOrder::sign(&network, VENUE, &trading(trader), order);
        check_orders(&network, VENUE, &[signed])[0].expect("it is signed")
    };
    let (buy, sell, next) = (order(1, VenueSide::Buy, 9), order(2, VenueSide::Sell, 4), order(3, VenueSide::Buy, 12));
    let block =
        |height, facts| VenueInput::Certified(CertifiedFacts { height, time_ms: height * STEP, newest: height, facts });
    let inputs = [
        block(10, facts()),
        VenueInput::OpenMarket(MARKET, market_settings()),
        VenueInput::Steer(MARKET, Steering::SetCollar { low: 2, high: 900 }),
        attach(ANN, true, Some(STEP)),
        attach(BEN, false, None),
        VenueInput::Heartbeat(ANN.into()),
        VenueInput::Trade(ANN.into(), TradeCommand::New(buy)),
        VenueInput::Trade(BEN.into(), TradeCommand::New(sell)),
        VenueInput::Trade(ANN.into(), TradeCommand::Replace(number(1), next)),
        cancel(BEN, number(77), 0),
        VenueInput::Tick,
        VenueInput::Kill(address(BEN)),
        VenueInput::Revive(address(BEN)),
        VenueInput::Detach(BEN.into()),
        VenueInput::Operate(operator()),
        VenueInput::Opened,
    ];
    root.step(1_000, &inputs).expect("the disk works");
    let effects = root.step(2_000, &[block(11, Vec::new())]).expect("the disk works");
    let settle = effects.iter().find_map(|effect| match effect {
        VenueEffect::Submit(settle) => Some(&settle.body.operation),
        _ => None,
    });
    let Some(Operation::Venue(settle)) = settle else { panic!("{effects:?}") };
    let digest = |bytes: Vec<u8>| Digest::of("a format of a venue's root", &bytes).to_string();
    let fills = root.fills(0, 9).expect("they are in the journal");
    let found = [
        digest(borsh::to_vec(&inputs).expect("memory")),
        digest(borsh::to_vec(&fills).expect("memory")),
        digest(borsh::to_vec(settle).expect("memory")),
        root.digest().to_string(),
    ];
    let wanted = [
        "0x340b41f64f683db13536431efbf1b52628aa459a728e705574ab33f77c62411e",
        "0xfa7f05f409bd6b31d74272c54b0988575a6a904f69fdfee35c4862619378f00b",
        "0x0e9b62d6ccc077b705875d2b37f2d64491e228a441a002d3519559769ab2e627",
        "0x8575d2b57a1fa3c65138d94f0a925c5ab2e3ab4d62fc9024b441e3544cbc62b6",
    ];
    assert_eq!(found, wanted, "inputs, fills, settle, state");
}
