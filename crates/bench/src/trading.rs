//! The workload of SPEEDEX §7: of every 500,000 transactions about 375,000 new offers, 110,000 cancellations, 15,000
//! payments and a hundred new accounts. Valuations move by a geometric Brownian motion from block to block.

use kernel::Dice;
use ledger::{LEAST_UNITS, Ledger, Offer, Pair, Place};
use primitives::{
    Address, AssetId, ClientId, Life, OfferPlace, OfferReplacement, Operation, PoolKey, PoolOperation, Price, SecretKey,
};
use rayon::prelude::*;

use crate::population::{Population, Unsigned};
use ::clearing::workload::distinct;

/// Of every 5,000 transactions.
const CANCELS: usize = 1_100;
const PAYMENTS: usize = 150;
const NEW_ACCOUNTS: usize = 1;
const OF: usize = 5_000;
/// Standard deviation of the logarithm of a valuation's move in one block.
const DRIFT: f64 = 0.05;
/// Maximum distance of limits below the true price; bad offers are as far above it.
const SPREAD: f64 = 0.02;
/// The share of bad offers. Of 375,000 new offers as many must come to rest as are cancelled later (110,000 in a
/// steady book), plus some that execute later.
const BAD: f64 = 0.35;

/// The value of each of a pool's two reserves: of tens of offers.
const POOLED: f64 = 1e9;

/// The market's valuations, and the accounts that trade.
#[derive(Clone)]
pub struct Trading {
    /// The accounts.
    pub population: Population,
    /// Accounts by address.
    by_address: Vec<u32>,
    values: Vec<f64>,
    random: Dice,
}

impl Trading {
    /// Trading among `population` over `assets` assets whose valuations are uniform in [1, 1000].
    pub fn new(population: Population, assets: u32, seed: u64) -> Trading {
        let mut random = Dice::new(seed);
        let values = (0..assets).map(|_| random.between(1.0, 1_000.0)).collect();
        let mut by_address: Vec<u32> = (0..population.len() as u32).collect();
        by_address.par_sort_unstable_by_key(|account| population.address(*account as usize));
        Trading { population, by_address, values, random }
    }

    /// The next block's transactions; cancellations refer to offers in `ledger`.
    pub fn block(&mut self, ledger: &Ledger, transactions: usize) -> Vec<Unsigned> {
        for value in &mut self.values {
            // The sum of twelve uniforms is close enough to a normal variable.
            let normal = (0..12).map(|_| self.random.unit()).sum::<f64>() - 6.0;
            *value = (*value * (1.0 + DRIFT * normal)).clamp(1e-3, 1e6);
        }
        let mut block = Vec::with_capacity(transactions);
        self.cancel(ledger, transactions * CANCELS / OF, &mut block);
        (0..(transactions * PAYMENTS).div_ceil(OF)).for_each(|_| self.pay(&mut block));
        (0..(transactions * NEW_ACCOUNTS).div_ceil(OF)).for_each(|_| self.open_account(&mut block));
        while block.len() < transactions {
            self.cycle(transactions, &mut block);
        }
        block
    }

    /// A block that opens pools of the first `count` pairs at the market's valuations, each by an account that holds
    /// both assets; fewer where there are fewer such pairs.
    pub fn pools(&mut self, count: usize) -> Vec<Unsigned> {
        let assets = self.values.len();
        let pairs = (0..assets).flat_map(|a| (a + 1..assets).map(move |b| (a, b)));
        // The second asset of an account moves on with each round of accounts: see `Population::genesis`.
        let holder = |(a, b): (usize, usize)| a + assets * ((b + assets - a - 1) % assets);
        let held = pairs.filter(|pair| holder(*pair) < self.population.len());
        let opened: Vec<_> = held.take(count).collect();
        let open = |(a, b): (usize, usize)| {
            let units = |asset: usize| (POOLED / self.values[asset]) as u64;
            let pool = PoolKey { a: AssetId(a as u32), b: AssetId(b as u32), class: 0 };
            let open = PoolOperation::Open { pool, x: units(a), y: units(b) };
            (holder((a, b)), Operation::Pool(Box::new(open)))
        };
        let opened: Vec<_> = opened.into_iter().map(open).collect();
        opened.into_iter().map(|(account, operation)| self.population.act(account, operation)).collect()
    }

    /// A block of offers that rest: limits from 6 % above the true price, or above that of the last batch if it is
    /// higher, to twice the price, most of them near.
    pub fn resting(&mut self, ledger: &Ledger, offers: usize) -> Vec<Unsigned> {
        let assets = self.values.len() as u32;
        let last: Vec<f64> = match ledger.height() {
            0 => self.values.clone(),
            _ => ledger.assets().iter().map(|asset| asset.valuation.map_or(1.0, Price::to_f64)).collect(),
        };
        let mut block = Vec::with_capacity(offers);
        for _ in 0..offers {
            let pair = distinct(assets, 2, &mut self.random);
            let far = self.random.unit();
            let rate = |values: &[f64]| values[pair[0] as usize] / values[pair[1] as usize];
            let limit = rate(&self.values).max(rate(&last)) * (1.06 + far * far);
            self.offer(pair[0], pair[1], limit, &mut block);
        }
        block
    }

    fn offer(&mut self, sell: u32, buy: u32, limit: f64, block: &mut Vec<Unsigned>) {
        let value = self.random.between(1e7, 1e8);
        self.offer_of(sell, buy, limit, value, block);
    }

    fn offer_of(&mut self, sell: u32, buy: u32, limit: f64, value: f64, block: &mut Vec<Unsigned>) {
        let holder = self.population.draw_holder(AssetId(sell), &mut self.random);
        let value = value.max(self.least_value(&[sell, buy]));
        let amount = (value / self.values[sell as usize]).clamp(1e3, 1e9) as u64;
        let limit = Price::from_f64(limit).expect("close to a ratio of valuations");
        let operation = Operation::offer(AssetId(sell), AssetId(buy), amount, limit);
        block.push(self.population.act(holder, operation));
    }

    /// The value from which on an offer of one of these assets for another has the least size.
    fn least_value(&self, assets: &[u32]) -> f64 {
        let dearest = assets.iter().map(|asset| self.values[*asset as usize]).fold(0.0, f64::max);
        1.2 * LEAST_UNITS as f64 * dearest
    }

    /// Offers whose amounts form a chain: 2 to 7 of them, so that all can trade with each other.
    fn cycle(&mut self, transactions: usize, block: &mut Vec<Unsigned>) {
        const LENGTHS: [f64; 6] = [100.0, 80.0, 50.0, 30.0, 10.0, 5.0];
        let length = (self.random.weighted(&LENGTHS) + 2).min(self.values.len());
        let cycle = distinct(self.values.len() as u32, length, &mut self.random);
        let value = self.random.between(1e6, 1e8).max(self.least_value(&cycle));
        for (at, &sell) in cycle.iter().enumerate().take(transactions - block.len()) {
            let buy = cycle[(at + 1) % length];
            let bad = self.random.unit() < BAD;
            let shift = SPREAD * self.random.unit() * if bad { -1.0 } else { 1.0 };
            let limit = self.values[sell as usize] / self.values[buy as usize] * (1.0 - shift);
            self.offer_of(sell, buy, limit, value, block);
        }
    }

    /// A payment between two accounts.
    pub fn pay(&mut self, block: &mut Vec<Unsigned>) {
        let from = self.population.draw(&mut self.random);
        let to = self.random.below(self.population.len() as u64) as usize;
        let to = if to == from { (to + 1) % self.population.len() } else { to };
        let (to, asset) = (self.population.address(to), self.population.asset(from));
        block.push(self.population.act(from, Operation::Pay { to, asset, amount: self.random.below(100_000) + 1 }));
    }

    /// A new account.
    pub fn open_account(&mut self, block: &mut Vec<Unsigned>) {
        let mut seed = [0x11; 32];
        seed[..8].copy_from_slice(&self.random.bits().to_le_bytes());
        let key = SecretKey::from_seed(seed).public();
        let from = self.population.draw(&mut self.random);
        block.push(self.population.act(from, Operation::CreateAccount { account: key.address(), key }));
    }

    fn owner(&self, address: &Address) -> Option<usize> {
        let of = |account: &u32| self.population.address(*account as usize);
        let at = self.by_address.binary_search_by_key(address, of).ok()?;
        Some(self.by_address[at] as usize)
    }

    /// The true price of an asset in units of another.
    pub fn rate(&self, sell: AssetId, buy: AssetId) -> f64 {
        self.values[sell.0 as usize] / self.values[buy.0 as usize]
    }

    /// Cancels a resting offer, if its owner may act.
    pub fn cancel_one(&mut self, pair: Pair, place: Place, block: &mut Vec<Unsigned>) {
        let owner = self.owner(&place.account).filter(|owner| self.population.may_act(*owner));
        if let Some(owner) = owner {
            let (sell, buy) = (pair.sell, pair.buy);
            let operation = Operation::cancel(sell, buy, place.limit, place.id);
            block.push(self.population.act(owner, operation));
        }
    }

    /// Replaces a resting offer by one of another size and limit, if its owner may act.
    pub fn replace_one(&mut self, pair: Pair, offer: &Offer, limit: Price, block: &mut Vec<Unsigned>) {
        let owner = self.owner(&offer.place.account).filter(|owner| self.population.may_act(*owner));
        let Some(owner) = owner else { return };
        let old = OfferPlace { sell: pair.sell, buy: pair.buy, limit: offer.place.limit, offer: offer.place.id };
        let (remains, amount) = (offer.amount, offer.amount + self.random.below(offer.amount.min(1 << 30)));
        let (life, client) = (Life::Rests, ClientId::NONE);
        let replacement = OfferReplacement { old, remains, amount, limit, life, client };
        block.push(self.population.act(owner, Operation::Replace(Box::new(replacement))));
    }

    /// Cancels about `count` resting offers, each with the same probability.
    fn cancel(&mut self, ledger: &Ledger, count: usize, block: &mut Vec<Unsigned>) {
        let share = count as f64 / ledger.book().len().max(1) as f64;
        for (pair, offers) in ledger.book().iter() {
            for offer in offers.iter() {
                let drawn = self.random.unit() < share && block.len() < count;
                let owner = drawn.then(|| self.owner(&offer.place.account)).flatten();
                if let Some(owner) = owner.filter(|owner| self.population.may_act(*owner)) {
                    let (sell, buy, place) = (pair.sell, pair.buy, offer.place);
                    let operation = Operation::cancel(sell, buy, place.limit, place.id);
                    block.push(self.population.act(owner, operation));
                }
            }
        }
    }
}
