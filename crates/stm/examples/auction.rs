//! Auctions with a gas limit: bids raise prices, and the block ends with the bid that uses up its gas.
//!
//! Bids on one item depend on each other; bids on different items do not. The sink receives outputs in order and
//! stops the block; transactions executed beyond that point have no effect.
//!
//! ```sh
//! cargo run --release -p stm --example auction
//! ```

use stm::{Blocked, CommitSink, Proceed, TransactionView, Vm, Workers};

const BIDS: u32 = 20_000;
const ITEMS: u32 = 50;
const GAS_LIMIT: u64 = 300_000;

/// The highest bid on an item: the bidder and the amount.
type Highest = Option<(u32, u64)>;

struct Auction;

impl Vm for Auction {
    type Key = u32;
    type Value = Highest;
    type Output = u64;

    fn load(&self, _: &u32) -> Highest {
        None
    }

    /// Returns the gas of the bid: raising costs more.
    fn execute(&self, txn: usize, view: &mut TransactionView<'_, Self>) -> Result<u64, Blocked> {
        let bidder = txn as u32;
        let item = bidder.wrapping_mul(2_654_435_761) % ITEMS;
        let bid = u64::from(bidder.wrapping_mul(40_503) % 10_000);
        let raises = view.read(&item)?.is_none_or(|(_, highest)| bid > highest);
        if raises {
            view.write(item, Some((bidder, bid)));
        }
        Ok(if raises { 50 } else { 20 })
    }
}

#[derive(Default)]
struct Gas {
    used: u64,
    bids: usize,
}

impl CommitSink<u64> for Gas {
    fn commit(&mut self, _: usize, gas: u64) -> Proceed {
        self.used += gas;
        self.bids += 1;
        if self.used >= GAS_LIMIT { Proceed::Stop } else { Proceed::Continue }
    }
}

fn main() {
    let threads = std::thread::available_parallelism().map_or(2, |threads| threads.get());
    let execution = Workers::new(threads).execute(Auction, BIDS as usize, Gas::default());
    let committed = execution.result.expect("no bid panics");
    assert_eq!(committed.transactions, execution.sink.bids);
    println!("{} of {BIDS} bids use {} gas", committed.transactions, execution.sink.used);
    for (item, highest) in committed.writes.into_sorted().into_iter().take(5) {
        println!("item {item}: {highest:?}");
    }
    println!("{threads} threads: {:?}", execution.tally);
}
