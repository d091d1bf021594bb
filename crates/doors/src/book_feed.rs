//! The books of batch markets as they change from block to block: the best levels of each side, what changed in them, a
//! checksum, and the last changes, so that a reader who lost its connection goes on where it was.
//!
//! One feed serves all readers of a market: the first who asks after a block makes the change and writes it, and the
//! others share what is written.
//! Levels are named by their price in units as text. Offers whose prices round to one text are one level.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use primitives::{AssetId, Height};
use readers::Sides;
use readers::views::Views;

use crate::json::{BookChangeBody, BookSnapshotBody, Level, Symbols};
use crate::markets;
use crate::unnumbered::Unnumbered;
use readers::candles::Candles;

/// Levels of each side that a feed shows.
pub const BOOK_LEVELS: usize = 100;
/// Changes that a feed keeps.
const CHANGES_KEPT: usize = 256;
/// Feeds that are kept although nobody reads them.
const FEEDS_KEPT: usize = 1_024;

/// A book at a height: the best levels of both sides, best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BookWindow {
    /// Offers of the base, cheapest first.
    pub sells: Vec<Level>,
    /// Offers of the quote, highest price first.
    pub buys: Vec<Level>,
}

/// What changed in a book from one look to a later one.
#[derive(Debug)]
pub(crate) struct BookChange {
    body: BookChangeBody,
    /// The same as a message of the stream.
    pub(crate) message: Unnumbered,
}

impl BookChange {
    fn of(body: BookChangeBody) -> BookChange {
        let mut message = serde_json::to_value(&body).expect("plain data");
        message["type"] = "book".into();
        BookChange { message: Unnumbered::of(&message), body }
    }
}

/// One market's book as it changes.
#[derive(Debug, Default)]
struct BookFeed {
    /// The height of `window`; `None` before the first look.
    height: Option<Height>,
    window: BookWindow,
    /// The lowest height from which the changes lead on.
    known_from: Height,
    /// The last changes, oldest first: each leads from the height of one look to that of a later one.
    changes: VecDeque<Arc<BookChange>>,
}

/// A feed, which the readers of its market share.
type SharedFeed = Arc<Mutex<BookFeed>>;

/// The feeds of all markets that are read.
#[derive(Default)]
pub(crate) struct BookFeeds(Mutex<HashMap<(AssetId, AssetId), SharedFeed>>);

/// What a reader at some height is told.
pub(crate) enum BookNews {
    /// The book did not change; the reader is at this height now.
    Same(Height),
    /// The changes since, which lead to this height.
    Changes(Vec<Arc<BookChange>>, Height),
    /// The changes since are no longer kept, or never led from that height: the book as it is.
    Lost,
}

impl BookWindow {
    /// The best levels of a market.
    pub fn of(views: &Views, candles: &Candles, symbols: &Symbols, sides: Sides) -> BookWindow {
        // Several limits may round to one price, so a few more are read.
        let book = markets::book(views, candles, symbols, sides, 2 * BOOK_LEVELS);
        BookWindow { sells: merged(book.sells), buys: merged(book.buys) }
    }

    fn checksum(&self) -> u32 {
        api::book_checksum(&self.buys, &self.sells)
    }
}

/// Joins levels of one price, and keeps the best.
fn merged(levels: Vec<Level>) -> Vec<Level> {
    let mut joined: Vec<Level> = Vec::new();
    for level in levels {
        match joined.last_mut() {
            Some(last) if last.price_units == level.price_units => {
                let units = |text: &str| text.parse::<u128>().expect("an amount is a number");
                last.amount = (units(&last.amount) + units(&level.amount)).to_string();
                last.offers += level.offers;
            }
            _ => joined.push(level),
        }
    }
    joined.truncate(BOOK_LEVELS);
    joined
}

/// The levels of `after` that are others than in `before`; one that is gone has no units.
fn changed(before: &[Level], after: &[Level]) -> Vec<Level> {
    let mut old: BTreeMap<&str, &Level> = before.iter().map(|level| (level.price_units.as_str(), level)).collect();
    let differs = |level: &&Level| old.remove(level.price_units.as_str()) != Some(*level);
    let mut levels: Vec<Level> = after.iter().filter(differs).cloned().collect();
    levels.extend(old.into_values().map(|gone| Level { amount: "0".into(), offers: 0, ..gone.clone() }));
    levels
}

impl BookFeed {
    /// Looks at a window of a height.
    fn look(&mut self, market: &str, height: Height, window: BookWindow) {
        if self.height.is_some_and(|last| last > height) {
            // A developers' chain went back: nobody can go on from what was.
            *self = BookFeed::default();
        }
        if let Some(previous) = self.height
            && self.window != window
        {
            let change = BookChangeBody {
                market: market.into(),
                height,
                previous,
                sells: changed(&self.window.sells, &window.sells),
                buys: changed(&self.window.buys, &window.buys),
                checksum: window.checksum(),
            };
            self.changes.push_back(Arc::new(BookChange::of(change)));
            if self.changes.len() > CHANGES_KEPT {
                self.known_from = self.changes.pop_front().map_or(height, |oldest| oldest.body.height);
            }
        }
        if self.height.is_none() {
            self.known_from = height;
        }
        (self.height, self.window) = (Some(height), window);
    }

    fn news_since(&self, seen: Height) -> BookNews {
        let height = self.height.unwrap_or(0);
        if seen > height || seen < self.known_from {
            return BookNews::Lost;
        }
        let later: Vec<_> = self.changes.iter().filter(|change| change.body.height > seen).cloned().collect();
        match later.first() {
            // Between two looks the feed does not know the book.
            Some(first) if first.body.previous < seen => BookNews::Lost,
            Some(_) => BookNews::Changes(later, height),
            None => BookNews::Same(height),
        }
    }
}

impl BookFeeds {
    fn feed(&self, sides: Sides) -> SharedFeed {
        let mut feeds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if feeds.len() >= FEEDS_KEPT && !feeds.contains_key(&(sides.base, sides.quote)) {
            feeds.retain(|_, feed| Arc::strong_count(feed) > 1);
        }
        feeds.entry((sides.base, sides.quote)).or_default().clone()
    }

    /// Brings a market's feed up to the published state, and says what a reader at `seen` is told.
    pub(crate) fn news(
        &self,
        published: &readers::Published,
        symbols: &Symbols,
        sides: Sides,
        seen: Height,
    ) -> BookNews {
        self.with_feed(published, symbols, sides, |feed| feed.news_since(seen))
    }

    /// The same if somebody has brought the feed up to this height, and nobody is at it now: nothing is waited for.
    pub(crate) fn news_made(&self, sides: Sides, seen: Height, height: Height) -> Option<BookNews> {
        let feed = self.0.try_lock().ok()?.get(&(sides.base, sides.quote))?.clone();
        let feed = feed.try_lock().ok()?;
        (feed.height == Some(height)).then(|| feed.news_since(seen))
    }

    /// The book as it is.
    pub(crate) fn snapshot(&self, published: &readers::Published, symbols: &Symbols, sides: Sides) -> BookSnapshotBody {
        self.with_feed(published, symbols, sides, |feed| BookSnapshotBody {
            market: symbols.market(sides.base, sides.quote),
            height: feed.height.unwrap_or(0),
            levels: BOOK_LEVELS,
            sells: feed.window.sells.clone(),
            buys: feed.window.buys.clone(),
            checksum: feed.window.checksum(),
        })
    }

    fn with_feed<T>(
        &self,
        published: &readers::Published,
        symbols: &Symbols,
        sides: Sides,
        tell: impl FnOnce(&BookFeed) -> T,
    ) -> T {
        let feed = self.feed(sides);
        let mut feed = feed.lock().unwrap_or_else(PoisonError::into_inner);
        let views = published.views();
        if feed.height != Some(views.height()) {
            let window = BookWindow::of(&views, &published.candles(), symbols, sides);
            feed.look(&symbols.market(sides.base, sides.quote), views.height(), window);
        }
        drop(views);
        tell(&feed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn level(price: u32, amount: u32) -> Level {
        let (price, amount) = (price.to_string(), amount.to_string());
        Level { price: price.clone(), price_units: price, amount, offers: 1 }
    }

    fn window(sells: &BTreeMap<u32, u32>, buys: &BTreeMap<u32, u32>) -> BookWindow {
        let of = |(price, amount): (&u32, &u32)| level(*price, *amount);
        BookWindow { sells: sells.iter().map(of).collect(), buys: buys.iter().rev().map(of).collect() }
    }

    /// A reader's book: applies changes, best first.
    fn apply(levels: &mut Vec<Level>, changes: &[Level], is_sell: bool) {
        levels.retain(|level| changes.iter().all(|change| change.price_units != level.price_units));
        levels.extend(changes.iter().filter(|change| change.offers > 0).cloned());
        levels.sort_by_key(|level| level.price_units.parse::<i64>().expect("a number") * if is_sell { 1 } else { -1 });
    }

    proptest! {
        /// Whatever happens to a book, a reader that applies the changes has it, and the checksum says so. A reader
        /// that stopped at any look goes on from there or is told that it cannot.
        #[test]
        fn a_reader_that_applies_changes_has_the_book(
            edits in prop::collection::vec((any::<bool>(), 1u32..15, 0u32..4, 1u64..3), 1..300),
            stops in 0usize..300,
        ) {
            let (mut feed, mut height) = (BookFeed::default(), 1);
            let (mut sells, mut buys) = (BTreeMap::new(), BTreeMap::new());
            feed.look("A/B", height, BookWindow::default());
            let (mut mine, mut seen) = (BookWindow::default(), height);
            for (at, (is_sell, price, amount, heights)) in edits.into_iter().enumerate() {
                let side = if is_sell { &mut sells } else { &mut buys };
                if amount == 0 { side.remove(&price) } else { side.insert(price, amount) };
                height += heights;
                feed.look("A/B", height, window(&sells, &buys));
                if at == stops {
                    (mine, seen) = (window(&sells, &buys), height);
                }
            }
            match feed.news_since(seen) {
                BookNews::Lost => prop_assert!(feed.changes.len() == CHANGES_KEPT),
                BookNews::Same(at) => prop_assert!(at == height && mine == feed.window),
                BookNews::Changes(changes, at) => {
                    prop_assert_eq!(at, height);
                    for change in changes {
                        let change = &change.body;
                        apply(&mut mine.sells, &change.sells, true);
                        apply(&mut mine.buys, &change.buys, false);
                        prop_assert_eq!(mine.checksum(), change.checksum);
                    }
                    prop_assert_eq!(&mine, &feed.window);
                }
            }
        }
    }

    #[test]
    fn between_two_looks_and_before_the_oldest_change_nobody_goes_on() {
        let mut feed = BookFeed::default();
        let one = |amount| BookWindow { sells: vec![level(5, amount)], buys: vec![] };
        feed.look("A/B", 10, one(1));
        feed.look("A/B", 12, one(1));
        feed.look("A/B", 15, one(2));
        feed.look("A/B", 17, one(2));
        let told = |seen| match feed.news_since(seen) {
            BookNews::Same(height) => ("same", height),
            BookNews::Changes(changes, height) => (if changes.len() == 1 { "one" } else { "more" }, height),
            BookNews::Lost => ("lost", 0),
        };
        assert_eq!([told(10), told(12), told(15), told(17)], [("one", 17), ("one", 17), ("same", 17), ("same", 17)]);
        assert_eq!([told(13), told(9), told(18)], [("lost", 0), ("lost", 0), ("lost", 0)]);
        feed.look("A/B", 3, one(1));
        assert!(matches!(feed.news_since(17), BookNews::Lost), "the chain went back");
    }

    #[test]
    fn prices_that_round_to_one_text_are_one_level() {
        let joined = merged(vec![level(5, 1), level(5, 2), level(6, 7)]);
        assert_eq!(joined, [Level { offers: 2, ..level(5, 3) }, level(6, 7)]);
        assert_eq!(merged((0..300).map(|price| level(price, 1)).collect()).len(), BOOK_LEVELS);
    }
}
