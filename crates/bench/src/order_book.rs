//! The exchange that cannot be parallel (SPEEDEX §7.1, "traditional exchange semantics"): two assets, one order book,
//! one thread. Each transaction looks its account up, reserves what it offers, goes through the book, and pays both
//! sides of every trade. No signatures, hashes, log or replication.
//!
//! The book is the matching engine of continuous markets and accounts are in a hash map by address, as the ledger has
//! them. The paper uses its own trie; what is compared is how the rate falls as the accounts outgrow the caches.

use std::collections::HashMap;
use std::time::Instant;

use ::matching::{Book, BookEvent, BookLimits, Command, NewOrder, SelfTrade, Side, Sink, TimeInForce};
use kernel::Dice;
use primitives::Address;
use serde_json::{Value, json};

use crate::scaling::median;

/// What to measure.
#[derive(Clone, Debug)]
pub struct OrderBookOptions {
    /// Numbers of accounts.
    pub accounts: Vec<u32>,
    /// Transactions of a run.
    pub transactions: u32,
    /// Runs; medians are reported.
    pub runs: usize,
    /// Seed of the orders.
    pub seed: u64,
}

/// Each account's units of both assets at the beginning.
const UNITS: u64 = 1 << 40;
/// The middle of the market, in ticks.
const MIDDLE: u32 = 1_000;
/// Orders reach at most this far from the middle, and as far across it.
const REACH: u64 = 50;

/// Accounts with free units of the two assets.
struct Accounts {
    places: HashMap<Address, u32>,
    /// The address and the units of each.
    all: Vec<(Address, [u64; 2])>,
}

fn address(number: u32) -> Address {
    let mut bytes = [0x33; 20];
    bytes[..8].copy_from_slice(&Dice::new(u64::from(number)).bits().to_le_bytes());
    bytes[8..12].copy_from_slice(&number.to_le_bytes());
    Address(bytes)
}

impl Accounts {
    fn new(count: u32) -> Accounts {
        let all: Vec<(Address, [u64; 2])> = (0..count).map(|number| (address(number), [UNITS; 2])).collect();
        let places = (0..count).map(|number| (all[number as usize].0, number)).collect();
        Accounts { places, all }
    }

    fn units(&mut self, owner: u32) -> &mut [u64; 2] {
        &mut self.all[owner as usize].1
    }
}

/// Pays both sides of a trade: the buyer's reserve was taken at its limit, so what it saved comes back.
struct Settled<'a> {
    accounts: &'a mut Accounts,
    /// The order that takes.
    order: NewOrder,
    trades: u64,
}

/// The asset that an order gives, and the units that it gives for this many lots.
fn reserve(order: &NewOrder, lots: u32) -> (usize, u64) {
    match order.side {
        Side::Sell => (0, u64::from(lots)),
        Side::Buy => (1, u64::from(lots) * u64::from(order.tick)),
    }
}

impl Sink for Settled<'_> {
    fn event(&mut self, event: BookEvent) {
        match event {
            BookEvent::Executed { maker, taker, side, tick, lots, .. } => {
                let (buyer, seller) = if side == Side::Buy { (taker, maker) } else { (maker, taker) };
                let (lots, paid) = (u64::from(lots), u64::from(lots) * u64::from(tick));
                let saved = if side == Side::Buy { lots * u64::from(self.order.tick - tick) } else { 0 };
                let bought = self.accounts.units(buyer.owner);
                bought[0] += lots;
                bought[1] += saved;
                self.accounts.units(seller.owner)[1] += paid;
                self.trades += 1;
            }
            // What would meet an order of its own owner.
            BookEvent::Cancelled { party, lots, .. } => {
                let (asset, units) = reserve(&self.order, lots);
                self.accounts.units(party.owner)[asset] += units;
            }
            BookEvent::Refused { why, .. } => panic!("an order of the workload was refused: {why:?}"),
            _ => {}
        }
    }
}

/// A signed order would name its account by address.
struct Order {
    from: Address,
    new: NewOrder,
}

fn orders(options: &OrderBookOptions, accounts: u32) -> Vec<Order> {
    let mut random = Dice::new(options.seed);
    let order = |reference: u32| {
        let owner = random.below(u64::from(accounts)) as u32;
        let side = if random.below(2) == 0 { Side::Buy } else { Side::Sell };
        // Half of them cross the middle.
        let tick = MIDDLE + random.below(2 * REACH) as u32 - REACH as u32;
        let lots = 1 + random.below(100) as u32;
        let (time_in_force, self_trade) = (TimeInForce::GoodTillCancelled, SelfTrade::ExpireTaker);
        let new = NewOrder { owner, reference, side, tick, lots, time_in_force, post_only: false, self_trade };
        Order { from: address(owner), new }
    };
    (1..=options.transactions).map(order).collect()
}

/// One row for each number of accounts.
pub fn run(options: &OrderBookOptions, say: &mut dyn FnMut(&str)) -> Vec<Value> {
    let row = |&accounts: &u32| {
        say(&format!("an order book among {accounts} accounts"));
        let orders = orders(options, accounts);
        let (mut rates, mut trades) = (Vec::new(), 0);
        for _ in 0..options.runs.max(1) {
            let (mut state, mut book) = (Accounts::new(accounts), book(accounts, orders.len() as u32));
            let begun = Instant::now();
            trades = execute(&mut state, &mut book, &orders);
            rates.push(orders.len() as f64 / begun.elapsed().as_secs_f64());
        }
        json!({ "accounts": accounts, "transactions_per_second": median(rates).round(), "trades": trades })
    };
    options.accounts.iter().map(row).collect()
}

fn book(accounts: u32, orders: u32) -> Book {
    let room = orders.max(1 << 10);
    let limits = BookLimits { orders: room, owners: accounts.max(1), orders_of_owner: room, ..BookLimits::default() };
    Book::new(limits, 7).expect("sound limits")
}

/// Applies all orders; returns the number of trades.
fn execute(accounts: &mut Accounts, book: &mut Book, orders: &[Order]) -> u64 {
    let mut trades = 0;
    for order in orders {
        let owner = accounts.places[&order.from];
        let (asset, given) = reserve(&order.new, order.new.lots);
        let units = &mut accounts.units(owner)[asset];
        let Some(left) = units.checked_sub(given) else { continue };
        *units = left;
        let mut sink = Settled { accounts, order: order.new, trades: 0 };
        book.apply(&Command::New(order.new), &mut sink);
        trades += sink.trades;
    }
    trades
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trades_conserve_both_assets() {
        let options = OrderBookOptions { accounts: vec![50], transactions: 4_000, runs: 1, seed: 3 };
        let (mut state, mut book, orders) = (Accounts::new(50), book(50, 4_000), orders(&options, 50));
        let trades = execute(&mut state, &mut book, &orders);
        assert!(trades > 500, "{trades} trades");
        let mut total = [0u128; 2];
        for (_, units) in &state.all {
            (0..2).for_each(|asset| total[asset] += u128::from(units[asset]));
        }
        total[0] += book.resting(Side::Sell).map(|(_, _, lots)| u128::from(lots)).sum::<u128>();
        total[1] += book.resting(Side::Buy).map(|(_, tick, lots)| u128::from(tick) * u128::from(lots)).sum::<u128>();
        assert_eq!(total, [50 * u128::from(UNITS); 2]);
        assert!(!book.is_empty(), "something rests");
    }
}
