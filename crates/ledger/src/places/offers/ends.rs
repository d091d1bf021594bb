//! How many resting offers end at each height.
//!
//! **Attack.** Who lets 2^25 offers end at one height makes every validator remove all of them in one block: from
//! chunks, from tries, and with as many credits. An end cannot be put off, or an expired offer would trade. So it is
//! prepaid (an offer with an end costs two fees), and the number of offers that end at one height is bounded when
//! they are placed: at most [`ENDS_MAX`] before the block, and what one block adds. Whoever fills a height pays for
//! it, and others take the next one. How far ahead an end may be is bounded as well ([`LIFE_MAX`]), so that the
//! counts take 16 MiB at most.
//!
//! **Measured** on two busy cores: 2^20 of 2^21 offers that end in one block, scattered over 2,450 pairs and 200,000
//! accounts, cost 0.6 s of settlement and 0.6 s of credits. The tries follow in 0.45 s, receipts have 53 MB. It grows
//! with their number, so 2^25 would take most of a minute. The bound stands at half a second. A block in which nothing
//! ends looks at one number of each pair.
//!
//! The counts are derived from the offers: no state root has them, and a restored ledger counts again.

use std::collections::BTreeMap;
use std::sync::Arc;

use primitives::Height;

/// The most offers that end at one height, before the last block that adds some.
pub const ENDS_MAX: u32 = 1 << 19;
/// The most heights ahead at which an offer may end.
pub const LIFE_MAX: u64 = 1 << 22;

/// Why an offer may not end at a height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndFault {
    /// Its first batch is later.
    Past,
    /// The height is too far ahead.
    TooFar,
    /// As many offers end there as may.
    Crowded,
}

/// Checks the last height of an offer whose first batch is that of height `first`; `ending` counts the offers that end
/// at a height.
pub(crate) fn check_end(until: Height, first: Height, ending: impl FnOnce(Height) -> u32) -> Result<(), EndFault> {
    match () {
        _ if until < first => Err(EndFault::Past),
        _ if until - first > LIFE_MAX => Err(EndFault::TooFar),
        _ if ending(until) >= ENDS_MAX => Err(EndFault::Crowded),
        _ => Ok(()),
    }
}

/// Heights whose counts lie together, shared with clones.
const PAGE: u64 = 1_024;

/// Counts of consecutive heights.
#[derive(Clone)]
struct Page {
    sum: u32,
    counts: [u32; PAGE as usize],
}

/// The counts by height.
#[derive(Clone, Default)]
pub(crate) struct Ends {
    pages: BTreeMap<u64, Arc<Page>>,
}

impl Ends {
    /// Offers that end at a height.
    pub(crate) fn at(&self, height: Height) -> u32 {
        self.pages.get(&(height / PAGE)).map_or(0, |page| page.counts[(height % PAGE) as usize])
    }

    /// Makes a change that the offers had.
    pub(crate) fn change(&mut self, height: Height, by: i32) {
        if by == 0 {
            return;
        }
        let new = || Arc::new(Page { sum: 0, counts: [0; PAGE as usize] });
        let page = Arc::make_mut(self.pages.entry(height / PAGE).or_insert_with(new));
        let count = &mut page.counts[(height % PAGE) as usize];
        *count = count.checked_add_signed(by).expect("no more offers leave than came");
        page.sum = page.sum.checked_add_signed(by).expect("no more offers leave than came");
        if page.sum == 0 {
            self.pages.remove(&(height / PAGE));
        }
    }

    /// The heights at which offers end, with their numbers.
    pub(crate) fn all(&self) -> BTreeMap<Height, u32> {
        let of_page = |(number, page): (&u64, &Arc<Page>)| {
            let first = number * PAGE;
            (first..).zip(page.counts).filter(|(_, count)| *count > 0).collect::<Vec<_>>()
        };
        self.pages.iter().flat_map(of_page).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_within_its_bounds() {
        let none = |_| 0;
        assert_eq!(check_end(9, 10, none), Err(EndFault::Past));
        assert_eq!(check_end(0, 10, none), Err(EndFault::Past));
        assert_eq!([10, 10 + LIFE_MAX].map(|until| check_end(until, 10, none)), [Ok(()); 2]);
        assert_eq!(
            [10 + LIFE_MAX + 1, Height::MAX].map(|until| check_end(until, 10, none)),
            [Err(EndFault::TooFar); 2]
        );
        let crowded = |height| if height == 12 { ENDS_MAX } else { ENDS_MAX - 1 };
        assert_eq!([11, 12].map(|until| check_end(until, 10, crowded)), [Ok(()), Err(EndFault::Crowded)]);
    }

    #[test]
    fn ends_are_counted_and_empty_pages_dropped() {
        let mut ends = Ends::default();
        for height in [5, 5, 1_023, 1_024, 1 << 40] {
            ends.change(height, 1);
        }
        let kept = ends.clone();
        ends.change(5, -1);
        ends.change(1_024, -1);
        assert_eq!((ends.at(5), ends.at(1_024), kept.at(5), ends.pages.len()), (1, 0, 2, 2));
        assert_eq!(ends.all(), [(5, 1), (1_023, 1), (1 << 40, 1)].into());
    }
}
