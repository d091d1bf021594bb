//! Fills of the journal, read beside the root: nothing of it is done by the thread that matches.

use std::ops::Range;
use std::sync::OnceLock;

use primitives::venue::{FillReport, SignedStep, VenueReport, VenueSide};
use primitives::{Address, Digest, SecretKey};
use store::{Archive, Disk};

use crate::error::VenueRootError;
use crate::record::{KnownKeys, fills_before, fills_of};
use crate::report::VenueFill;
use crate::settings::VenueSettings;

/// Reads the journal of a root from any thread. It reads records that are not synced, too: whoever asks names the last
/// record, and the count of fills, that a step has returned with.
pub struct FillReader<D: Disk> {
    pub(crate) archive: Archive<D>,
    pub(crate) keys: KnownKeys,
    pub(crate) settings: VenueSettings,
    pub(crate) report_key: SecretKey,
}

/// Fills of one step, with their reports as they were told.
pub struct ReportedFills {
    /// All fills of the step, and which of them were asked for.
    fills: Vec<VenueFill>,
    asked: Range<usize>,
    /// The number of the step and its clock, if one signature holds for all of its reports.
    step: Option<(u64, u64)>,
    settings: VenueSettings,
    report_key: SecretKey,
    /// Made for the first report that is asked for.
    signed: OnceLock<SignedStep>,
}

impl ReportedFills {
    /// The fills that were asked for.
    pub fn fills(&self) -> &[VenueFill] {
        &self.fills[self.asked.clone()]
    }

    /// The venue's clock at the step; `None` where each report has a signature of its own.
    pub fn clock_ms(&self) -> Option<u64> {
        self.step.map(|(_, clock_ms)| clock_ms)
    }

    /// The signed report of one of these to the trader of a side: the same bytes as when it was executed, under the
    /// present report key.
    pub fn report(&self, at: usize, side: VenueSide) -> VenueReport {
        let sign = |times| self.signed.get_or_init(|| sign_step(&self.fills, times, &self.settings, &self.report_key));
        report(&self.fills, self.asked.start + at, side, self.step.map(sign), &self.settings, &self.report_key)
    }
}

impl<D: Disk> FillReader<D> {
    /// Up to `most` fills from an index on, of the first `count`, which stand in records up to `last`.
    ///
    /// # Errors
    /// [`VenueRootError::Forgotten`] if the journal begins later, or what reading it reports.
    pub fn fills(&self, count: u64, last: u64, from: u64, most: usize) -> Result<Vec<VenueFill>, VenueRootError> {
        let steps = self.reported(count, last, from, most)?;
        Ok(steps.iter().flat_map(ReportedFills::fills).copied().collect())
    }

    /// As [`FillReader::fills`], with the reports of each.
    ///
    /// # Errors
    /// As for [`FillReader::fills`].
    pub fn reported(
        &self,
        count: u64,
        last: u64,
        from: u64,
        most: usize,
    ) -> Result<Vec<ReportedFills>, VenueRootError> {
        let (mut steps, mut left) = (Vec::new(), most);
        if most == 0 || from >= count {
            return Ok(steps);
        }
        for number in self.record_of(from, last)?..=last {
            let Some(bytes) = self.archive.receipts(number)? else { break };
            let (fills, clock_ms) =
                fills_of(&bytes, &self.keys).map_err(|what| VenueRootError::Format(number, what))?;
            let first = fills.partition_point(|fill| fill.index < from);
            let asked = first..fills.len().min(first.saturating_add(left));
            left -= asked.len();
            if !asked.is_empty() {
                let step = clock_ms.map(|clock_ms| (number, clock_ms));
                let (settings, report_key) = (self.settings, self.report_key.clone());
                steps.push(ReportedFills { fills, asked, step, settings, report_key, signed: OnceLock::new() });
            }
            if left == 0 {
                break;
            }
        }
        if steps.first().is_none_or(|first| first.fills()[0].index != from) {
            return Err(VenueRootError::Forgotten(from));
        }
        Ok(steps)
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

/// What the trader of a side of a fill is told, as a leaf of its step.
fn leaf_of(fill: &VenueFill, side: VenueSide) -> (u64, Digest, Address) {
    (fill.index, fill.leaf, fill.party(side).account)
}

/// Signs the reports of all fills of a step at once: of each the buyer's and then the seller's.
pub(crate) fn sign_step(
    fills: &[VenueFill],
    times: (u64, u64),
    settings: &VenueSettings,
    key: &SecretKey,
) -> SignedStep {
    let sides = |fill| [VenueSide::Buy, VenueSide::Sell].map(|side| leaf_of(fill, side));
    let leaves: Vec<_> = fills.iter().flat_map(sides).collect();
    SignedStep::new(&settings.network, (settings.venue, settings.incarnation), times, &leaves, key)
}

/// The report of the fill at a place of its step to a side.
pub(crate) fn report(
    fills: &[VenueFill],
    at: usize,
    side: VenueSide,
    signed: Option<&SignedStep>,
    settings: &VenueSettings,
    key: &SecretKey,
) -> VenueReport {
    let VenueSettings { network, venue, incarnation, .. } = settings;
    let (index, leaf, account) = leaf_of(&fills[at], side);
    match signed {
        Some(step) => VenueReport::Step(step.report(2 * at + side as usize, (index, leaf, account))),
        None => VenueReport::Single(FillReport::new(network, (*venue, *incarnation, index), leaf, account, key)),
    }
}
