//! Simulated traders, after SPEEDEX §7: valuations follow a geometric Brownian motion, accounts are drawn from a power
//! law, and everybody asks for a price near what the assets are worth.

use std::collections::VecDeque;

use kernel::Dice;
use ledger::{Genesis, Limits, Listing, ListingTerms, PoolTerms, usual_fee};
use primitives::{
    Address, AssetId, Body, Digest, Fraction, Height, MAX_ISSUED, Operation, Price, SecretKey, Sequence, Transaction,
};

use crate::developers::developer_balances;
use crate::init::DEMO_CHAIN;

/// Units of each asset that a trader holds at the start, in units of the first asset.
const WEALTH: f64 = 2e14;
/// What an offer or a payment is worth at least, in units of the first asset: well above the least size of offers.
const SMALLEST: f64 = 3e7;
/// The most that an offer is worth.
const LARGEST: f64 = 1e10;
/// Standard deviation of a valuation's logarithm per second.
const VOLATILITY: f64 = 0.002;
/// Offers that a trader leaves resting before it takes the oldest back.
const RESTING: usize = 24;

/// Symbol, decimals, and rough worth of a whole one in whole ones of the first.
const ASSETS: [(&str, u8, f64); 20] = [
    ("USD", 6, 1.0),
    ("EUR", 6, 1.09),
    ("JPY", 6, 0.0066),
    ("GBP", 6, 1.27),
    ("CHF", 6, 1.13),
    ("AUD", 6, 0.65),
    ("CAD", 6, 0.73),
    ("CNY", 6, 0.14),
    ("SEK", 6, 0.095),
    ("NOK", 6, 0.094),
    ("SGD", 6, 0.74),
    ("INR", 6, 0.012),
    ("BRL", 6, 0.2),
    ("ZAR", 6, 0.054),
    ("MXN", 6, 0.058),
    ("XAU", 6, 2_300.0),
    ("XAG", 6, 28.0),
    ("BTC", 8, 64_000.0),
    ("ETH", 8, 3_100.0),
    ("OIL", 6, 78.0),
];

fn asset(number: usize) -> (String, u8, f64) {
    match ASSETS.get(number) {
        Some((symbol, decimals, worth)) => (symbol.to_string(), *decimals, *worth),
        None => (format!("A{number:03}"), 6, 1.0 + number as f64 % 7.0),
    }
}

struct Trader {
    key: SecretKey,
    address: Address,
    next: Sequence,
    resting: VecDeque<(AssetId, AssetId, Price, Sequence)>,
}

/// The population.
pub struct Traders {
    random: Dice,
    valuations: Vec<f64>,
    traders: Vec<Trader>,
    /// Cumulated weights of the power law.
    weights: Vec<f64>,
}

/// The chain that they trade on, with the usual fee, and with contracts for a committee of so many validators.
pub fn genesis(traders: &Traders, assets: usize, committee: u32) -> Genesis {
    let issuer = SecretKey::from_seed([0xff; 32]).public().address();
    let listed = |i: usize| {
        let (symbol, decimals, _) = asset(i);
        Listing::new(symbol, decimals, issuer)
    };
    let assets: Vec<_> = (0..assets).map(listed).collect();
    let most = MAX_ISSUED / 2 / traders.traders.len() as u64;
    let wealth = |asset: usize| ((WEALTH / traders.valuations[asset]) as u64).min(most);
    let holdings = |trader: &Trader| {
        let address = trader.address;
        (0..traders.valuations.len())
            .map(move |asset| (address, AssetId(asset as u32), wealth(asset)))
            .collect::<Vec<_>>()
    };
    Genesis {
        chain: DEMO_CHAIN,
        fee: usual_fee(asset(0).1),
        epsilon: Fraction::power_of_two(15),
        mu: Fraction::power_of_two(10),
        limits: Limits::default().with_contracts(committee),
        balances: traders.traders.iter().flat_map(holdings).chain(developer_balances()).collect(),
        assets,
        pools: Some(PoolTerms::default()),
        listings: ListingTerms::priced(),
        ..Genesis::default()
    }
}

/// What a trader did, to be told when the answer is there.
pub struct Sent {
    trader: usize,
    sequence: Sequence,
}

impl Traders {
    /// `count` traders in `assets` assets. The seed decides everything that they do.
    pub fn new(count: usize, assets: usize, seed: u64) -> Traders {
        let random = Dice::new(seed);
        // Worth of a unit in units of the first asset.
        let unit = |i: usize| {
            let (_, decimals, worth) = asset(i);
            worth * 10f64.powi(i32::from(asset(0).1) - i32::from(decimals))
        };
        let valuations = (0..assets).map(unit).collect();
        let trader = |i: usize| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&(i as u64 + 1).to_le_bytes());
            bytes[8..16].copy_from_slice(&seed.to_le_bytes());
            let key = SecretKey::from_seed(bytes);
            Trader { address: key.public().address(), key, next: 1, resting: VecDeque::new() }
        };
        let mut sum = 0.0;
        let weights = (0..count)
            .map(|i| {
                // The busiest stays well inside its window of sequence numbers.
                sum += 1.0 / (i as f64 + 1.0).sqrt();
                sum
            })
            .collect();
        Traders { random, valuations, traders: (0..count).map(trader).collect(), weights }
    }

    /// Moves the valuations by `seconds`.
    pub fn drift(&mut self, seconds: f64) {
        let deviation = VOLATILITY * seconds.sqrt();
        for valuation in &mut self.valuations[1..] {
            // Twelve uniform numbers make a normal one, near enough.
            let normal: f64 = (0..12).map(|_| self.random.unit()).sum::<f64>() - 6.0;
            *valuation *= (deviation * normal).exp();
        }
    }

    /// The next transactions, signed for a network; they may count up to a height.
    pub fn act(&mut self, network: &Digest, until: Height, count: usize) -> Vec<(Sent, Transaction)> {
        (0..count).map(|_| self.one(network, until)).collect()
    }

    fn one(&mut self, network: &Digest, until: Height) -> (Sent, Transaction) {
        let point = self.random.between(0.0, *self.weights.last().expect("at least one trader"));
        let trader = self.weights.partition_point(|weight| *weight < point).min(self.traders.len() - 1);
        let operation = match self.random.below(100) {
            0..=3 => self.pay(trader),
            _ if self.traders[trader].resting.len() >= RESTING => self.cancel(trader),
            _ => self.offer(),
        };
        let trader_state = &mut self.traders[trader];
        let sequence = trader_state.next;
        trader_state.next += 1;
        if let Operation::CreateOffer { sell, buy, limit, .. } = operation {
            trader_state.resting.push_back((sell, buy, limit, sequence));
        }
        let body = Body { chain: DEMO_CHAIN, account: trader_state.address, sequence, until, operation };
        (Sent { trader, sequence }, body.sign(network, &trader_state.key))
    }

    fn pay(&mut self, trader: usize) -> Operation {
        let other = (trader + 1 + self.random.below(self.traders.len() as u64 - 1) as usize) % self.traders.len();
        let asset = self.random.below(self.valuations.len() as u64) as usize;
        let amount = (self.random.between(SMALLEST, LARGEST) / self.valuations[asset]) as u64 + 1;
        Operation::Pay { to: self.traders[other].address, asset: AssetId(asset as u32), amount }
    }

    /// Takes the oldest offer back; it may have traded, and then the ledger says so.
    fn cancel(&mut self, trader: usize) -> Operation {
        let (sell, buy, limit, offer) = self.traders[trader].resting.pop_front().expect("some rest");
        Operation::cancel(sell, buy, limit, offer)
    }

    fn offer(&mut self) -> Operation {
        let assets = self.valuations.len() as u64;
        let sell = self.random.below(assets) as usize;
        let buy = (sell + 1 + self.random.below(assets - 1) as usize) % assets as usize;
        let worth = self.valuations[sell] / self.valuations[buy];
        // Most would trade at once, one in five hopes for a better price and rests.
        let margin =
            if self.random.below(5) == 0 { self.random.between(0.0, 0.02) } else { -self.random.between(0.0, 0.02) };
        let limit = Price::from_f64(worth * (1.0 + margin)).expect("valuations stay within range");
        let amount = (self.random.between(SMALLEST, LARGEST) / self.valuations[sell]) as u64 + 1;
        Operation::offer(AssetId(sell as u32), AssetId(buy as u32), amount, limit)
    }

    /// Tells what offers are gone because they traded in full or never came to rest.
    pub fn gone(&mut self, sent: &Sent) {
        self.traders[sent.trader].resting.retain(|(_, _, _, id)| *id != sent.sequence);
    }

    /// Forgets an offer that traded in full.
    pub fn filled(&mut self, account: &Address, id: Sequence) {
        if let Some(trader) = self.traders.iter_mut().find(|trader| trader.address == *account) {
            trader.resting.retain(|(_, _, _, resting)| *resting != id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::developers::developers;

    #[test]
    fn developers_hold_what_their_tools_sign_for() {
        let genesis = genesis(&Traders::new(2, 2, 1), 2, 4);
        genesis.issued_assets().expect("sound");
        let holds =
            |developer| genesis.balances.iter().any(|(holder, asset, _)| (*holder, *asset) == (developer, AssetId(0)));
        assert!(developers().all(holds) && genesis.limits.has_contracts());
    }
}
