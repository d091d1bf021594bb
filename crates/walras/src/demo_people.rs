//! Who trades at the demo's venue, its markets, and the chain that has both.

use ledger::{Genesis, VenueTerms};
use primitives::venue::{VenueId, VenueOperator};
use primitives::{AssetId, SecretKey};

/// The venue's number.
pub const DEMO_VENUE: VenueId = 0;
/// Units of each asset that owner, operator and traders of the venue have.
const WEALTH: u64 = 1_000_000_000_000;

/// Base asset, units of a lot, units of the first asset for a lot and a tick, and the first price in ticks.
pub const MARKETS: [(AssetId, u64, u64, f64); 2] =
    [(AssetId(1), 1_000_000, 100, 10_900.0), (AssetId(2), 100_000_000, 100, 6_600.0)];

/// Somebody with an account and a trading key.
pub struct Person {
    pub account: SecretKey,
    pub trading: SecretKey,
}

/// A key that everybody knows.
pub fn key(number: u8, kind: u8) -> SecretKey {
    let mut seed = [0x5e; 32];
    (seed[0], seed[1]) = (number, kind);
    SecretKey::from_seed(seed)
}

/// Two makers and a taker.
pub fn people() -> Vec<Person> {
    (1..=3).map(|number| Person { account: key(number, 0), trading: key(number, 1) }).collect()
}

/// Gives a chain venues, and money to those of the demo's.
pub fn with_venue(mut genesis: Genesis, operator: &VenueOperator) -> Genesis {
    genesis.venues = Some(VenueTerms::default());
    let assets = genesis.assets.len().min(1 + MARKETS.len()) as u32;
    let accounts = people().iter().map(|person| person.account.public().address()).collect::<Vec<_>>();
    let all = accounts.into_iter().flat_map(|account| (0..assets).map(move |asset| (account, AssetId(asset), WEALTH)));
    let own = [key(0, 0).public().address(), operator.account].map(|account| (account, AssetId(0), WEALTH));
    genesis.balances.extend(all.chain(own));
    genesis
}
