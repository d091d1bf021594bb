//! A market in one process: a root over a disk in memory, two traders, and a chain that is told in two blocks.
//!
//! `cargo run -p venue --example one_market`

use kernel::FaultDisk;
use primitives::venue::{
    Delay, KeyScope, Mandate, MarketMandate, MarketTerms, OrderLife, OrderNumber, SelfTradeRule, SignedOrder,
    VenueOperator, VenueOrder, VenueSide,
};
use primitives::{Address, AssetId, Digest, SecretKey};
use venue::{
    CertifiedFacts, FillFate, KeyStanding, MarketSettings, OperatorStanding, SettlingTerms, TradeCommand, VenueEffect,
    VenueFact, VenueInput, VenueKeys, VenueLimits, VenueOptions, VenueRoot, VenueSettings, VenueStanding, check_orders,
};

const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const NETWORK: Digest = Digest([7; 32]);

fn key(seed: u8) -> SecretKey {
    SecretKey::from_seed([seed; 32])
}

fn account(seed: u8) -> Address {
    key(seed).public().address()
}

fn operator() -> VenueOperator {
    VenueOperator { account: account(1), report_key: key(2).public() }
}

fn number(reference: u32) -> OrderNumber {
    OrderNumber { incarnation: 0, day: 1, reference }
}

fn settings() -> VenueSettings {
    let terms = SettlingTerms {
        chain: 1,
        fee: 1,
        delay: Delay { heights: 32, ms: 10_000 },
        bond_min: 10_000,
        settle_bytes: 1 << 18,
        entries_max: 1 << 20,
        life_max: 100_000,
    };
    let limits = VenueLimits::default();
    VenueSettings { network: NETWORK, venue: 0, incarnation: 0, operator: operator(), terms, limits }
}

/// The venue's record after so many settled fills.
fn standing(settled: u64) -> VenueFact {
    let (is_convicted, fee_cap_ppm, bond, entries) = (false, 10_000, 1_000_000, 2 * settled);
    VenueFact::Venue(VenueStanding {
        incarnation: 0,
        operator: operator(),
        is_convicted,
        fee_cap_ppm,
        settled,
        bond,
        entries,
    })
}

/// A trader's key, and deposits of both assets.
fn trader(seed: u8) -> [VenueFact; 3] {
    let markets = vec![MarketMandate { market: 0, tick_min: 1, tick_max: 1_000 }];
    let mandate = Mandate { scope: KeyScope::Venue, markets, caps: vec![(USD, 1_000_000), (EUR, 1_000_000)] };
    let (net, is_revoked, floor, raised) = (Vec::new(), false, number(0), number(0));
    let standing = KeyStanding { owner: account(seed), mandate, net, is_revoked, floor, raised };
    let deposit = |asset| VenueFact::Deposit { account: account(seed), asset, free: 100_000, leaving: 0 };
    [VenueFact::Key(key(seed).public(), standing), deposit(USD), deposit(EUR)]
}

/// What the first certified block says: everything.
fn first_block() -> CertifiedFacts {
    let terms = MarketTerms {
        base: EUR,
        quote: USD,
        lot_units: 10,
        tick_units: 2,
        lots_max: 1_000,
        fee_cap_ppm: 10_000,
        penalty: 5,
    };
    let pays = VenueFact::Operator(OperatorStanding { account: account(1), balance: 1_000, highest: 0, used: 0 });
    let mut facts = vec![standing(0), VenueFact::Market(0, terms), pays];
    facts.extend([3, 4].into_iter().flat_map(trader));
    CertifiedFacts { height: 10, time_ms: 1_000, newest: 10, facts }
}

/// A signed order of a trader, as a gateway forwards it to the root.
fn order(seed: u8, side: VenueSide, tick: u32, lots: u32) -> VenueInput {
    let order = VenueOrder {
        market: 0,
        number: number(1),
        floor: number(0),
        side,
        life: OrderLife::Rests,
        self_trade: SelfTradeRule::ExpireTaker,
        tick,
        lots,
        expiry: 1_000,
        until_ms: None,
        fee_cap_ppm: 10_000,
    };
    let signed = SignedOrder::sign(&NETWORK, 0, &key(seed), order);
    let checked = check_orders(&NETWORK, 0, &[signed])[0].expect("it is signed");
    VenueInput::Trade(seed.into(), TradeCommand::New(checked))
}

fn attach(seed: u8) -> VenueInput {
    let keys = vec![key(seed).public()];
    VenueInput::Attach { session: seed.into(), keys, ends_orders: true, dead_man_ms: None }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = VenueKeys { account: account(1), operator: key(1), report: key(2) };
    let mut root = VenueRoot::create(FaultDisk::new(0), settings(), keys, VenueOptions::default())?;
    let opening = [VenueInput::Certified(first_block()), VenueInput::OpenMarket(0, MarketSettings::default())];
    show("the market opens", &root.step(1_000, &opening)?);
    let orders = [attach(3), attach(4), order(3, VenueSide::Sell, 100, 10), order(4, VenueSide::Buy, 101, 4)];
    show("two orders meet", &root.step(1_500, &orders)?);
    let next = CertifiedFacts { height: 11, time_ms: 2_000, newest: 11, facts: Vec::new() };
    show("a block: the settle is submitted", &root.step(2_000, &[VenueInput::Certified(next)])?);
    let fills = root.fills(0, 10)?;
    let settled = VenueFact::Settled {
        incarnation: 0,
        from: 0,
        leaves: fills.iter().map(|fill| fill.leaf).collect(),
        fates: fills.iter().map(|_| FillFate::Applied).collect(),
    };
    let used = VenueFact::Operator(OperatorStanding { account: account(1), balance: 990, highest: 1, used: 1 });
    let last = CertifiedFacts { height: 12, time_ms: 3_000, newest: 12, facts: vec![settled, standing(1), used] };
    show("a block: it counted", &root.step(3_000, &[VenueInput::Certified(last)])?);
    Ok(())
}

fn show(what: &str, effects: &[VenueEffect]) {
    println!("{what}");
    effects.iter().for_each(|effect| println!("    {effect:?}"));
}
