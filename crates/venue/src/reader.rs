//! Fills of the journal, read beside the root: nothing of it is done by the thread that matches.

use primitives::SecretKey;
use primitives::venue::{FillReport, VenueSide};
use store::{Archive, Disk};

use crate::error::VenueRootError;
use crate::record::{fills_before, fills_of};
use crate::report::VenueFill;
use crate::settings::VenueSettings;

/// Reads the journal of a root from any thread. It reads records that are not synced, too: whoever asks names the last
/// record, and the count of fills, that a step has returned with.
pub struct FillReader<D: Disk> {
    pub(crate) archive: Archive<D>,
    pub(crate) settings: VenueSettings,
    pub(crate) report_key: SecretKey,
}

impl<D: Disk> FillReader<D> {
    /// The signed report of a fill to the trader of a side: the same bytes as when it was executed.
    pub fn report(&self, fill: &VenueFill, side: VenueSide) -> FillReport {
        report(fill, side, &self.settings, &self.report_key)
    }

    /// Up to `most` fills from an index on, of the first `count`, which stand in records up to `last`.
    ///
    /// # Errors
    /// [`VenueRootError::Forgotten`] if the journal begins later, or what reading it reports.
    pub fn fills(&self, count: u64, last: u64, from: u64, most: usize) -> Result<Vec<VenueFill>, VenueRootError> {
        let mut fills: Vec<VenueFill> = Vec::new();
        if most == 0 || from >= count {
            return Ok(fills);
        }
        for number in self.record_of(from, last)?..=last {
            let Some(bytes) = self.archive.receipts(number)? else { break };
            let of_record = fills_of(&bytes).map_err(|what| VenueRootError::Format(number, what))?;
            fills.extend(of_record.into_iter().filter(|fill| fill.index >= from));
            if fills.len() >= most {
                break;
            }
        }
        fills.truncate(most);
        if fills.first().is_none_or(|first| first.index != from) {
            return Err(VenueRootError::Forgotten(from));
        }
        Ok(fills)
    }

    /// The last record before which no more fills were made than so many.
    fn record_of(&self, fill: u64, last: u64) -> Result<u64, VenueRootError> {
        // Records that are forgotten come first.
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let before = self.archive.receipts(middle)?.and_then(|bytes| fills_before(&bytes));
            match before.is_none_or(|before| before <= fill) {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        Ok(low)
    }
}

/// The report of a fill to a side.
pub(crate) fn report(fill: &VenueFill, side: VenueSide, settings: &VenueSettings, key: &SecretKey) -> FillReport {
    let VenueSettings { network, venue, incarnation, .. } = settings;
    let name = (*venue, *incarnation, fill.index);
    FillReport::new(network, name, fill.leaf, fill.party(side).account, key)
}
