//! Who takes part, the terms of chain and market, and what is said in one line.

use ledger::{Genesis, Listing, VenueTerms};
use primitives::venue::{
    Delay, KeyScope, Mandate, MarketMandate, MarketTerms, OrderNumber, VenueOperation, VenueOperator,
};
use primitives::{Address, Amount, AssetId, Fraction, PublicKey, SecretKey};
use venue::{MarketSettings, OrderRefusal, ReportKind, TradeCommand, VenueEffect, VenueInput, VenueKeys};

pub const USD: AssetId = AssetId(0);
pub const EUR: AssetId = AssetId(1);
pub const START: Amount = 1_000_000_000;
pub const OWNER: u8 = 1;
pub const OPERATOR: u8 = 2;
/// Traders; the session of each has its number.
pub const ANN: u8 = 3;
pub const BEN: u8 = 4;
pub const CLEO: u8 = 5;
pub const TRADERS: [u8; 3] = [ANN, BEN, CLEO];
pub const VENUE: u32 = 0;
pub const MARKET: u32 = 0;
/// A second market, where a lot and a tick move one unit of each asset; tests list it that need it.
pub const FINE: u32 = 1;
pub const DELAY: Delay = Delay { heights: 8, ms: 5_500 };
pub const BOND: Amount = 100_000;
pub const BOND_MIN: Amount = 10_000;
pub const PENALTY: Amount = 5;
pub const LOT: Amount = 10;
pub const TICK: Amount = 2;
pub const STEP: u64 = 1_000;
/// How long matching goes on without a block.
pub const QUIET: u64 = DELAY.ms / 2;
/// Units of each asset that a trader deposits.
pub const DEPOSIT: Amount = 100_000;

pub fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person; 32])
}

pub fn address(person: u8) -> Address {
    key(person).public().address()
}

pub fn trading(person: u8) -> SecretKey {
    SecretKey::from_seed([100 + person; 32])
}

pub fn public(person: u8) -> PublicKey {
    trading(person).public()
}

pub fn reporting() -> SecretKey {
    SecretKey::from_seed([200; 32])
}

pub fn keys() -> VenueKeys {
    VenueKeys { account: address(OPERATOR), operator: key(OPERATOR), report: reporting() }
}

pub fn operator() -> VenueOperator {
    VenueOperator { account: address(OPERATOR), report_key: reporting().public() }
}

pub fn terms() -> VenueTerms {
    VenueTerms {
        delay: DELAY,
        bond_min: BOND_MIN,
        bond_delay: Delay { heights: 40, ms: 40_000 },
        settle_bytes: 1 << 13,
        entries_max: 200,
        penalty_min: 1,
        venues_max: 2,
        per_block: 2_000,
        life_max: 500,
    }
}

pub fn market() -> MarketTerms {
    MarketTerms {
        base: EUR,
        quote: USD,
        lot_units: LOT,
        tick_units: TICK,
        lots_max: 1_000,
        fee_cap_ppm: 10_000,
        penalty: PENALTY,
    }
}

pub fn market_settings() -> MarketSettings {
    MarketSettings {
        maker_ppm: -1_000,
        taker_ppm: 2_000,
        lots_min: 1,
        quote_min: 0,
        orders: 256,
        orders_of_account: 64,
        window_base: 1,
        window_ticks: 256,
    }
}

pub fn genesis() -> Genesis {
    let assets = ["USD", "EUR"].map(|symbol| Listing::new(symbol, 2, address(9))).to_vec();
    let of = |person| [USD, EUR].map(|asset| (address(person), asset, START));
    let balances = (1..=8).flat_map(of).collect();
    let mu = Fraction::power_of_two(10);
    Genesis { chain: 1, fee: 1, mu, assets, balances, venues: Some(terms()), ..Genesis::default() }
}

pub fn mandate() -> Mandate {
    let markets = vec![MarketMandate { market: MARKET, tick_min: 1, tick_max: 10_000 }];
    Mandate { scope: KeyScope::Venue, markets, caps: vec![(USD, START), (EUR, START)] }
}

pub fn number(reference: u32) -> OrderNumber {
    OrderNumber { incarnation: 0, day: 1, reference }
}

pub fn attach(person: u8, ends_orders: bool, dead_man_ms: Option<u64>) -> VenueInput {
    VenueInput::Attach { session: person.into(), keys: vec![public(person)], ends_orders, dead_man_ms }
}

pub fn cancel(person: u8, number: OrderNumber, keeps: u32) -> VenueInput {
    VenueInput::Trade(person.into(), TradeCommand::Cancel { key: public(person), number, keeps })
}

pub fn deposit(asset: AssetId, units: Amount) -> VenueOperation {
    VenueOperation::Deposit { venue: VENUE, asset, units }
}

pub fn collect(asset: AssetId, units: Amount) -> VenueOperation {
    VenueOperation::Collect { venue: VENUE, asset, units }
}

/// What orders were told in a step.
pub fn reports(effects: Vec<VenueEffect>) -> Vec<ReportKind> {
    let what = |effect| match effect {
        VenueEffect::Report(report) => Some(report.what),
        _ => None,
    };
    effects.into_iter().filter_map(what).collect()
}

pub fn refusal(reports: &[ReportKind]) -> Option<OrderRefusal> {
    reports.iter().find_map(|what| match what {
        ReportKind::Refused(why) => Some(*why),
        _ => None,
    })
}

/// Lots that were executed, by the reports of a step.
pub fn executed(reports: &[ReportKind]) -> u32 {
    let lots = reports.iter().filter_map(|what| match what {
        ReportKind::Executed(of, _) if of.is_taker => Some(of.lots),
        _ => None,
    });
    lots.sum()
}

/// An error that says what does not hold.
pub fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("{what}: {found:?} instead of {wanted:?}")) }
}
