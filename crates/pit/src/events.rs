//! What a step told, for everybody who listens.

use matching::{Book, Side};
use primitives::venue::MarketId;
use venue::{MarketEvent, SessionNumber, TradeReport, VenuePause, VenueStop};

/// Levels of a side that the checksum covers, and that readers are shown after each step.
pub const TOP_LEVELS: usize = 10;

/// What one step of the root told.
#[derive(Clone, Debug, Default)]
pub struct StepEvents {
    /// Reports about orders.
    pub reports: Vec<TradeReport>,
    /// Market data, with the numbers of the events.
    pub market: Vec<(MarketId, u64, MarketEvent)>,
    /// The best levels of the markets that changed.
    pub tops: Vec<(MarketId, BookTop)>,
    /// Matching pauses, or goes on.
    pub pause: Option<Option<VenuePause>>,
    /// The root stopped.
    pub stopped: Option<VenueStop>,
    /// Sessions that were attached, each with the link that it has now.
    pub attached: Vec<(SessionNumber, u64)>,
}

impl StepEvents {
    /// Whether nobody need be told.
    pub fn is_empty(&self) -> bool {
        let StepEvents { reports, market, pause, stopped, attached, .. } = self;
        reports.is_empty() && market.is_empty() && pause.is_none() && stopped.is_none() && attached.is_empty()
    }
}

/// The best levels of a book.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BookTop {
    /// Buys, the best first: tick, lots, orders.
    pub bids: Vec<(u32, u64, u32)>,
    /// Sells, the best first.
    pub asks: Vec<(u32, u64, u32)>,
}

impl BookTop {
    /// The best levels of a book.
    pub fn of(book: &Book, levels: usize) -> BookTop {
        let side = |side| book.depth(side).take(levels).collect();
        BookTop { bids: side(Side::Buy), asks: side(Side::Sell) }
    }

    /// CRC-32 (IEEE) of the ten best levels of the buys and then of the sells, as text `tick:lots:orders;` each. A
    /// reader that keeps a book by increments compares its own.
    pub fn checksum(&self) -> u32 {
        let (bids, asks) = (self.bids.iter().take(TOP_LEVELS), self.asks.iter().take(TOP_LEVELS));
        let text: String = bids.chain(asks).map(|(tick, lots, orders)| format!("{tick}:{lots}:{orders};")).collect();
        crc32(text.as_bytes())
    }
}

/// CRC-32 as zip and Ethernet have it.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one_of_the_ten_best_levels() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let top = BookTop { bids: vec![(99, 5, 1), (98, 7, 2)], asks: vec![(101, 3, 1)] };
        assert_eq!(top.checksum(), crc32(b"99:5:1;98:7:2;101:3:1;"));
        let deep = |levels| BookTop { bids: (1..=levels).map(|at| (100 - at, 1, 1)).collect(), asks: Vec::new() };
        assert_eq!(deep(10).checksum(), deep(11).checksum());
        assert_ne!(deep(10).checksum(), deep(9).checksum());
    }
}
