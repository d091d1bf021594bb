//! A local book of one market: the snapshot of its channel, and its changes.
//!
//! Each change says from which height it leads on, and has a checksum of the ten best levels of both sides. A book
//! that is another one than the node's is given up, never repaired: the next snapshot replaces it.

use std::cmp::Ordering;
use std::collections::HashMap;

use api::{BookChangeBody, BookSnapshotBody, Level, book_checksum};

/// Why a book was given up: subscribe again for a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BookBroken {
    /// No snapshot came before a change.
    #[error("there is no book of {0} yet: subscribe to its channel")]
    NoSnapshot(String),
    /// A change leads on from another state.
    #[error("a change of {market} leads on from block {previous}, and the book is that of {height}: subscribe again")]
    Gap {
        /// `BASE/QUOTE`.
        market: String,
        /// The height that the change leads on from.
        previous: u64,
        /// The height of the book.
        height: u64,
    },
    /// The checksum is another one.
    #[error("the book of {market} after block {height} is another one than the node's: subscribe again")]
    OtherBook {
        /// `BASE/QUOTE`.
        market: String,
        /// The height.
        height: u64,
    },
}

/// The best levels of a market, as the node's channel tells them.
#[derive(Clone, Debug, Default)]
pub struct LocalBook {
    market: String,
    height: Option<u64>,
    sells: HashMap<String, Level>,
    buys: HashMap<String, Level>,
}

impl LocalBook {
    /// An empty book of a market, `BASE/QUOTE`.
    pub fn of(market: impl Into<String>) -> LocalBook {
        LocalBook { market: market.into(), ..LocalBook::default() }
    }

    /// The block after which it was so; `None` before the first snapshot.
    pub fn height(&self) -> Option<u64> {
        self.height
    }

    /// Offers of the base, cheapest first.
    pub fn sells(&self) -> Vec<Level> {
        sorted(&self.sells, Ordering::Less)
    }

    /// Offers of the quote, highest price first.
    pub fn buys(&self) -> Vec<Level> {
        sorted(&self.buys, Ordering::Greater)
    }

    /// Takes a snapshot.
    ///
    /// # Errors
    /// [`BookBroken::OtherBook`]: its checksum is not that of its levels; the book is empty then.
    pub fn take(&mut self, snapshot: BookSnapshotBody) -> Result<(), BookBroken> {
        self.sells = named(snapshot.sells);
        self.buys = named(snapshot.buys);
        self.reach(snapshot.height, snapshot.checksum)
    }

    /// Takes a change; one that the book contains already is ignored.
    ///
    /// # Errors
    /// [`BookBroken`]: it does not continue this book; the book is empty then.
    pub fn change(&mut self, change: BookChangeBody) -> Result<(), BookBroken> {
        let Some(height) = self.height else { return Err(BookBroken::NoSnapshot(self.market.clone())) };
        if change.height <= height {
            return Ok(());
        }
        if change.previous > height {
            self.give_up();
            return Err(BookBroken::Gap { market: self.market.clone(), previous: change.previous, height });
        }
        apply(&mut self.sells, change.sells);
        apply(&mut self.buys, change.buys);
        self.reach(change.height, change.checksum)
    }

    fn reach(&mut self, height: u64, checksum: u32) -> Result<(), BookBroken> {
        if book_checksum(&self.buys(), &self.sells()) != checksum {
            self.give_up();
            return Err(BookBroken::OtherBook { market: self.market.clone(), height });
        }
        self.height = Some(height);
        Ok(())
    }

    fn give_up(&mut self) {
        *self = LocalBook::of(std::mem::take(&mut self.market));
    }
}

fn named(levels: Vec<Level>) -> HashMap<String, Level> {
    levels.into_iter().map(|level| (level.price_units.clone(), level)).collect()
}

fn apply(levels: &mut HashMap<String, Level>, changed: Vec<Level>) {
    for level in changed {
        match level.offers {
            0 => drop(levels.remove(&level.price_units)),
            _ => drop(levels.insert(level.price_units.clone(), level)),
        }
    }
}

fn sorted(levels: &HashMap<String, Level>, first: Ordering) -> Vec<Level> {
    let mut levels: Vec<Level> = levels.values().cloned().collect();
    levels.sort_by(|a, b| {
        let order = compare(&a.price_units, &b.price_units);
        if first == Ordering::Less { order } else { order.reverse() }
    });
    levels
}

/// Compares decimals without a sign, exactly.
fn compare(a: &str, b: &str) -> Ordering {
    let parts = |text: &'_ str| {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        (whole.trim_start_matches('0').to_string(), fraction.trim_end_matches('0').to_string())
    };
    let (a, b) = (parts(a), parts(b));
    a.0.len().cmp(&b.0.len()).then_with(|| a.cmp(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(price: &str, amount: u32, offers: usize) -> Level {
        Level { price: price.into(), price_units: price.into(), amount: amount.to_string(), offers }
    }

    fn snapshot(height: u64, buys: Vec<Level>, sells: Vec<Level>) -> BookSnapshotBody {
        let checksum = book_checksum(&buys, &sells);
        BookSnapshotBody { market: "A/B".into(), height, levels: 100, sells, buys, checksum }
    }

    #[test]
    fn decimals_compare_as_numbers() {
        let ascending = ["0", "0.00001", "0.5", "0.55", "1", "1.05", "1.5", "9.99", "10", "10.000001", "100"];
        for (at, a) in ascending.iter().enumerate() {
            for (other, b) in ascending.iter().enumerate() {
                assert_eq!(compare(a, b), at.cmp(&other), "{a} {b}");
            }
        }
        assert_eq!(compare("1.50", "01.5"), Ordering::Equal);
    }

    #[test]
    fn a_book_follows_its_changes_and_is_given_up_when_it_is_another_one() {
        let mut book = LocalBook::of("A/B");
        let change = |height, previous, sells: Vec<Level>, checksum| BookChangeBody {
            market: "A/B".into(),
            height,
            previous,
            sells,
            buys: Vec::new(),
            checksum,
        };
        let early = change(5, 4, Vec::new(), 0);
        assert_eq!(book.change(early), Err(BookBroken::NoSnapshot("A/B".into())));
        let buys = vec![level("9.5", 7, 1), level("9", 5, 2)];
        book.take(snapshot(4, buys.clone(), vec![level("10", 3, 1), level("10.25", 8, 1)])).expect("whole");
        let after = vec![level("9.75", 1, 1), level("10.25", 9, 2)];
        let news = vec![level("10", 0, 0), level("9.75", 1, 1), level("10.25", 9, 2)];
        book.change(change(6, 4, news, book_checksum(&buys, &after))).expect("it continues the book");
        assert_eq!((book.sells(), book.buys(), book.height()), (after.clone(), buys.clone(), Some(6)));
        book.change(change(6, 5, Vec::new(), 0)).expect("it is known already");

        let mut lost = book.clone();
        let gap = BookBroken::Gap { market: "A/B".into(), previous: 7, height: 6 };
        assert_eq!(lost.change(change(8, 7, Vec::new(), 0)), Err(gap));
        assert_eq!((lost.height(), lost.sells()), (None, Vec::new()));
        let other = change(7, 6, vec![level("11", 1, 1)], book_checksum(&buys, &after));
        assert_eq!(book.change(other), Err(BookBroken::OtherBook { market: "A/B".into(), height: 7 }));
        assert_eq!(book.height(), None);
    }
}
