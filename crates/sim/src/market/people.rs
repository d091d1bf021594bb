//! Who takes part, and the terms of chain and market. All numbers are small, so that a short run meets every limit.

use ledger::{Genesis, Listing, VenueTerms};
use primitives::venue::{Delay, KeyScope, Mandate, MarketMandate, MarketTerms, VenueOperation, VenueOperator};
use primitives::{Address, Amount, AssetControl, AssetId, Fraction, Height, PublicKey, SecretKey};
use venue::{MarketSettings, VenueKeys, VenueLimits};

pub(super) type Person = u8;

pub(super) const USD: AssetId = AssetId(0);
pub(super) const EUR: AssetId = AssetId(1);
pub(super) const ASSETS: [AssetId; 2] = [USD, EUR];
/// Units of each asset that everybody begins with.
pub(super) const START: Amount = 1_000_000_000;
pub(super) const OWNER: Person = 1;
/// Issues both assets, and controls EUR in some runs.
pub(super) const ISSUER: Person = 9;
/// The operators that the owner names in turn.
const OPERATORS: [Person; 2] = [2, 8];
/// Report keys that operators have in turn: an account that comes back has another one.
const REPORT_KEYS: u8 = 3;
/// Submits what anybody may: accusations and claims.
pub(super) const WITNESS: Person = 3;
/// They speak to the root itself. The first two keep to the rules; the others try everything.
pub(super) const TRADERS: [Person; 4] = [4, 5, 6, 7];
pub(super) const HOSTILE: [Person; 2] = [6, 7];
/// Traders behind sessions: one speaks OUCH and signs, one speaks FIX to a bridge, one plain OUCH to a bridge.
pub(super) const OUCH: Person = 10;
pub(super) const FIX: Person = 11;
pub(super) const BRIDGED: Person = 12;
pub(super) const SESSIONS: [Person; 3] = [OUCH, FIX, BRIDGED];
/// Everybody who trades.
pub(super) const EVERYBODY: [Person; 7] = [TRADERS[0], TRADERS[1], TRADERS[2], TRADERS[3], OUCH, FIX, BRIDGED];
pub(super) const VENUE: u32 = 0;
pub(super) const MARKET: u32 = 0;
/// D and τ.
pub(super) const DELAY: Delay = Delay { heights: 8, ms: 5_500 };
pub(super) const BOND_DELAY: Delay = Delay { heights: 40, ms: 40_000 };
pub(super) const BOND: Amount = 200_000;
pub(super) const PENALTY: Amount = 5;
pub(super) const PENALTY_MIN: Amount = 1;
pub(super) const LOT: Amount = 10;
pub(super) const TICK: Amount = 2;
pub(super) const FEE: Amount = 1;
/// The most fees that an order pays, by the venue's, the market's and its own cap.
pub(super) const FEE_CAP_PPM: u32 = 10_000;
/// Heights that a holder is frozen before its units are recalled or recovered.
pub(super) const DAY: Height = 24 * 60 * 60;
/// Between two blocks; mostly.
pub(super) const BLOCK_MS: u64 = 1_000;
/// Units of each asset that a trader deposits first.
pub(super) const DEPOSIT: Amount = 80_000;

pub(super) fn key(person: Person) -> SecretKey {
    SecretKey::from_seed([person; 32])
}

pub(super) fn address(person: Person) -> Address {
    key(person).public().address()
}

/// A trader's key; after a revocation comes the next one.
pub(super) fn trading(person: Person, number: u8) -> SecretKey {
    let mut seed = [100 + person; 32];
    seed[0] = number;
    SecretKey::from_seed(seed)
}

pub(super) fn public(person: Person, number: u8) -> PublicKey {
    trading(person, number).public()
}

/// Who operates the venue after so many changes.
pub(super) fn operates(changes: u8) -> Person {
    OPERATORS[usize::from(changes) % OPERATORS.len()]
}

pub(super) fn reporting(changes: u8) -> SecretKey {
    SecretKey::from_seed([200 + changes % REPORT_KEYS; 32])
}

pub(super) fn keys(changes: u8) -> VenueKeys {
    let person = operates(changes);
    VenueKeys { account: address(person), operator: key(person), report: reporting(changes) }
}

pub(super) fn operator(changes: u8) -> VenueOperator {
    VenueOperator { account: address(operates(changes)), report_key: reporting(changes).public() }
}

pub(super) fn terms(delay: Delay, has_lists: bool) -> VenueTerms {
    VenueTerms {
        delay,
        bond_min: 10_000,
        bond_delay: BOND_DELAY,
        // The paths of lists need room.
        settle_bytes: if has_lists { 1 << 15 } else { 1 << 13 },
        entries_max: 400,
        penalty_min: PENALTY_MIN,
        venues_max: 2,
        per_block: 2_000,
        life_max: 500,
    }
}

pub(super) fn market() -> MarketTerms {
    MarketTerms {
        base: EUR,
        quote: USD,
        lot_units: LOT,
        tick_units: TICK,
        lots_max: 1_000,
        fee_cap_ppm: FEE_CAP_PPM,
        penalty: PENALTY,
    }
}

pub(super) fn market_settings() -> MarketSettings {
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

pub(super) fn limits() -> VenueLimits {
    VenueLimits { quiet_ms: DELAY.ms / 2, entries_of_key: 64, numbers_of_key: 256, ..VenueLimits::default() }
}

/// What a key may do. Hostile traders have narrow mandates, which they try to leave.
pub(super) fn mandate(person: Person) -> Mandate {
    let (tick_min, tick_max, cap) = if HOSTILE.contains(&person) { (97, 103, 6_000) } else { (1, 10_000, START) };
    let markets = vec![MarketMandate { market: MARKET, tick_min, tick_max }];
    Mandate { scope: KeyScope::Venue, markets, caps: ASSETS.map(|asset| (asset, cap)).to_vec() }
}

pub(super) fn deposit(asset: AssetId, units: Amount) -> VenueOperation {
    VenueOperation::Deposit { venue: VENUE, asset, units }
}

pub(super) fn collect(asset: AssetId, units: Amount) -> VenueOperation {
    VenueOperation::Collect { venue: VENUE, asset, units }
}

pub(super) fn genesis(delay: Delay, control: AssetControl, has_lists: bool) -> Genesis {
    let assets = ["USD", "EUR"].map(|symbol| Listing::new(symbol, 2, address(ISSUER))).to_vec();
    let mut balances: Vec<_> =
        (1..=8).chain(SESSIONS).flat_map(|person| ASSETS.map(|asset| (address(person), asset, START))).collect();
    let mut controls = Vec::new();
    if control != AssetControl::Open {
        balances.push((address(ISSUER), USD, START));
        controls.push((EUR, control));
    }
    let (mu, venues) = (Fraction::power_of_two(10), Some(terms(delay, has_lists)));
    Genesis { chain: 1, fee: FEE, mu, assets, balances, controls, venues, ..Genesis::default() }
}
