//! The second stage: a step's record is made durable while its reports are signed.

use kernel::Planted;
use primitives::venue::SignedStep;
use rayon::prelude::*;
use store::{Disk, Store};

use super::MatchedStep;
use super::matching::StepRoom;
use crate::error::VenueRootError;
use crate::keys::VenueKeys;
use crate::machine::Made;
use crate::mistake::VenueMistake;
use crate::reader::{report, sign_step};
use crate::record::end_step;
use crate::report::{ReportKind, TradeReport, VenueEffect, VenueFill};
use crate::settings::VenueSettings;

/// Fewer effects are made on the thread of the step after the disk has worked: to wake another thread costs more.
pub(super) const SIGNED_ALONE: usize = 16;

/// The journal, and the keys that sign what is told. It knows nothing of the state that inputs are matched on.
pub struct JournalStage<D: Disk> {
    pub(crate) store: Store<D>,
    pub(crate) keys: VenueKeys,
    mistake: Planted<VenueMistake>,
    /// The record with which the root was opened.
    opened_at: u64,
    /// The record that the newest snapshot names.
    pub(crate) snapshot_at: u64,
    pub(crate) has_failed: bool,
}

impl<D: Disk> JournalStage<D> {
    pub(crate) fn new(
        store: Store<D>,
        keys: VenueKeys,
        mistake: Planted<VenueMistake>,
        snapshot_at: u64,
    ) -> JournalStage<D> {
        let opened_at = store.last_height();
        JournalStage { store, keys, mistake, opened_at, snapshot_at, has_failed: false }
    }

    /// Writes the step that follows the last one, and syncs it; returns what is to be told of it.
    ///
    /// # Errors
    /// [`VenueRootError::Store`] if the disk fails, and [`VenueRootError::Failed`] ever after, or if a step is missing
    /// before this one.
    pub fn write(&mut self, step: MatchedStep) -> Result<Vec<VenueEffect>, VenueRootError> {
        self.write_and_keep(step).map(|(effects, _)| effects)
    }

    /// As [`JournalStage::write`]; returns the memory of the step, too.
    pub(crate) fn write_and_keep(
        &mut self,
        mut step: MatchedStep,
    ) -> Result<(Vec<VenueEffect>, StepRoom), VenueRootError> {
        if self.has_failed || step.number != self.store.last_height() + 1 {
            self.has_failed = true;
            return Err(VenueRootError::Failed);
        }
        let made = std::mem::take(&mut step.made);
        let JournalStage { store, keys, mistake, opened_at, .. } = self;
        let is_synced = !mistake.is(VenueMistake::ReportsBeforeSync);
        let from = if mistake.is(VenueMistake::StepsBeginAgain) { *opened_at } else { 0 };
        let MatchedStep { number, fills, signed_at_ms, settings, record, outcome, .. } = &mut step;
        let signs = Signs { fills, clock_ms: *signed_at_ms, settings, keys, number: *number - from };
        // Much is signed while the disk works, and told when both are done. One signature holds for a whole step; where
        // each report has its own, all threads help. They may be busy with the signatures of orders.
        let (written, effects) = match made.len() {
            0..SIGNED_ALONE => {
                let written = write(store, record, outcome, is_synced);
                (written, signs.all(made))
            }
            _ => {
                let mut written = Ok(());
                let effects = std::thread::scope(|scope| {
                    scope.spawn(|| written = write(store, record, outcome, is_synced));
                    if signs.clock_ms.is_some() { signs.all(made) } else { signs.all_in_parallel(made) }
                });
                (written, effects)
            }
        };
        self.has_failed = written.is_err();
        written?;
        let MatchedStep { fills, record, outcome, .. } = step;
        Ok((effects, StepRoom { record, outcome, fills }))
    }
}

/// Journals a step: one record, one sync.
fn write<D: Disk>(
    store: &mut Store<D>,
    record: &mut Vec<u8>,
    outcome: &[u8],
    is_synced: bool,
) -> Result<(), VenueRootError> {
    let number = store.last_height() + 1;
    end_step(outcome, record);
    store.append(number, record)?;
    store.append_receipts(number, outcome)?;
    if is_synced {
        store.sync()?;
    }
    Ok(())
}

/// Signs what a step made, which is this record.
#[derive(Clone, Copy)]
pub(crate) struct Signs<'a> {
    pub fills: &'a [VenueFill],
    /// The clock under which one signature holds for all reports of the step, if one does.
    pub clock_ms: Option<u64>,
    pub settings: &'a VenueSettings,
    pub keys: &'a VenueKeys,
    pub number: u64,
}

impl Signs<'_> {
    pub fn all(self, made: Vec<Made>) -> Vec<VenueEffect> {
        let step = self.step(&made);
        made.into_iter().map(|made| self.one(made, step.as_ref())).collect()
    }

    fn all_in_parallel(self, made: Vec<Made>) -> Vec<VenueEffect> {
        let step = self.step(&made);
        let made = made.into_par_iter().with_min_len(SIGNED_ALONE / 2);
        made.map(|made| self.one(made, step.as_ref())).collect()
    }

    /// The signature for all reports of the step, if it is to tell one.
    fn step(self, made: &[Made]) -> Option<SignedStep> {
        let clock_ms = self.clock_ms?;
        let tells = made.iter().any(|made| matches!(made, Made::Executed(..)));
        tells.then(|| sign_step(self.fills, (self.number, clock_ms), self.settings, &self.keys.report))
    }

    fn one(self, made: Made, step: Option<&SignedStep>) -> VenueEffect {
        let Signs { fills, settings, keys, .. } = self;
        match made {
            Made::Effect(effect) => effect,
            Made::Submit(body) => VenueEffect::Submit(Box::new(body.sign(&settings.network, &keys.operator))),
            Made::Executed(at, side) => {
                let party = fills[at].party(side);
                let report = report(fills, at, side, step, settings, &keys.report);
                let what = ReportKind::Executed(Box::new(fills[at].execution(side)), Box::new(report));
                let (session, key, number) = (party.session, party.key, party.number);
                VenueEffect::Report(TradeReport { session, key, number, what })
            }
        }
    }
}
