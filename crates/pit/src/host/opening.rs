//! Opening the root, giving it up, and the next incarnation.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use store::RealDisk;
use venue::{FoundRoot, SessionNumber, TwoStages, VenueInput, VenueOptions, VenueRoot, VenueRootError, VenueSettings};

use super::{AGAIN_MOST, Host, INPUTS_OF_STEP};
use crate::chain::HeardBlock;
use crate::clock::clock_ms;
use crate::home::{begun, incarnation_directory, is_prepared, sessions_directory};
use crate::ouch::{SessionJournalError, day_of};
use crate::shared::PitStanding;

/// Why there is no root.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoRoot {
    /// Something is missing that may come.
    #[error("{0}")]
    Waits(String),
    /// The root failed.
    #[error(transparent)]
    Root(#[from] VenueRootError),
    /// The disk failed.
    #[error("{}: {reason}", path.display())]
    Disk { path: PathBuf, reason: std::io::Error },
    /// The journal of sessions failed.
    #[error(transparent)]
    Sessions(#[from] SessionJournalError),
}

/// A failure as operators and traders are told it, with its remedy where the error itself names none.
fn said(why: &NoRoot) -> String {
    let why = why.to_string();
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull).to_string();
    let is_full = [full.as_str(), "No space left on device"].iter().any(|words| why.contains(words));
    match is_full {
        true => format!(
            "{why}: free space there; the venue then begins again by itself, and what it has acknowledged is in its \
             journal"
        ),
        false => why,
    }
}

impl Host {
    /// Opens or creates the root, if all that it needs is there.
    pub(super) fn open(&mut self) {
        match self.try_open() {
            Ok(found) => {
                self.told = None;
                self.unopened.clear();
                self.begin_tape();
                let again = found.again.into_iter().map(|(_, effect)| effect).collect();
                if let Err(why) = self.tell_again(again).and_then(|()| self.resume_sessions()) {
                    return self.fail(&why);
                }
                let root = self.root.as_ref().and_then(TwoStages::root).expect("nothing is being written");
                self.reader = Some(Arc::new(root.fill_reader()));
                self.shared.feed.begin(root, root.markets(), clock_ms());
                let (fills, settled) = root.counts();
                tracing::info!(record = root.last_record(), fills, settled, "the root of the venue runs");
                // What is in flight is in no pool that is known.
                if let Some(settle) = root.in_flight() {
                    self.submit(&settle);
                }
                self.rewind();
                self.show();
            }
            Err(why) => self.fail(&why),
        }
    }

    /// What executed before this root began.
    fn begin_tape(&self) {
        let root = self.root.as_ref().and_then(TwoStages::root).expect("nothing is being written");
        self.shared.tape.begin(&root.fill_reader(), root.counts().0, root.last_record(), clock_ms());
    }

    /// The newest state again: a root that was opened needs to be told all records.
    fn rewind(&mut self) {
        self.shared.heard(|heard| {
            if heard.waiting.is_empty() {
                heard.waiting.extend(heard.newest.clone().map(|state| HeardBlock { state, settles: None }));
            }
        });
    }

    fn try_open(&mut self) -> Result<FoundRoot, NoRoot> {
        let waits = |why: String| NoRoot::Waits(why);
        let venue = self.shared.venue;
        let known = self.shared.heard(|heard| heard.newest.clone().zip(heard.terms));
        let (state, terms) = known.ok_or_else(|| waits("the node is starting".into()))?;
        let record = state
            .venues
            .get(venue)
            .ok_or_else(|| waits(format!("the ledger has no venue {venue}: run `walras venue open`")))?;
        let keys = (self.settings.keys)();
        let directory = incarnation_directory(&self.settings.directory, venue, record.incarnation);
        if !directory.exists() {
            let incarnation = record.incarnation;
            return Err(waits(format!(
                "{} is missing: if incarnation {incarnation} of venue {venue} has reported nothing yet, run `walras \
                 venue prepare --venue {venue} --incarnation {incarnation}`; if its journal is lost, fence it first",
                directory.display()
            )));
        }
        let failed = |reason| NoRoot::Disk { path: directory.clone(), reason };
        let disk = RealDisk::new(&directory).map_err(failed)?;
        if is_prepared(&directory) {
            let operator = record.operator;
            if (keys.account, keys.report.public()) != (operator.account, operator.report_key) {
                return Err(waits(format!(
                    "the ledger has the operator {} with the report key {} for venue {venue}, and this home has the \
                     keys of {} and {}",
                    operator.account,
                    operator.report_key,
                    keys.account,
                    keys.report.public()
                )));
            }
            let (network, incarnation, limits) = (terms.network, record.incarnation, self.settings.config.limits());
            let settings = VenueSettings { network, venue, incarnation, operator, terms: terms.settling, limits };
            match VenueRoot::create(disk, settings, keys, VenueOptions::default()) {
                Ok(root) => {
                    begun(&directory).map_err(failed)?;
                    self.begin_day(incarnation)?;
                    self.run_root(root);
                    return Ok(FoundRoot::default());
                }
                // A crash came between the journal and the end of its preparation.
                Err(VenueRootError::JournalExists(_)) => begun(&directory).map_err(failed)?,
                Err(error) => return Err(error.into()),
            }
            return self.try_open();
        }
        // What sessions were told is known over restarts.
        self.passed = self.begin_day(record.incarnation)?.or(self.passed);
        let options = VenueOptions { again_from: self.passed, ..VenueOptions::default() };
        let (root, found) = VenueRoot::open(disk, keys, options)?;
        for repair in &found.repairs {
            tracing::warn!(file = repair.file, bytes = repair.bytes, "removed what a crash had left unfinished");
        }
        self.run_root(root);
        Ok(found)
    }

    /// Runs a root in two stages; the second one wakes this thread.
    fn run_root(&mut self, root: VenueRoot<RealDisk>) {
        let shared = self.shared.clone();
        self.root = Some(TwoStages::new(root, move || shared.wake()));
    }

    /// Answers numbers that were lost, and detaches the sessions that have no link: after a start of the process none
    /// has one. The root has told again all that it knows.
    fn resume_sessions(&mut self) -> Result<(), NoRoot> {
        let root = self.root.as_ref().and_then(TwoStages::root).expect("nothing is being written");
        let mut inputs = self.shared.ouch.void_lost(root);
        let is_gone = |of: &SessionNumber| !self.links.contains_key(of) && !self.own_sessions.contains(of);
        inputs.extend(root.sessions().into_iter().filter(is_gone).map(VenueInput::Detach));
        for inputs in inputs.chunks(INPUTS_OF_STEP) {
            let root = self.root.as_mut().and_then(TwoStages::root_mut).expect("nothing is being written");
            let effects = root.step(clock_ms(), inputs)?;
            self.tell_again(effects)?;
        }
        Ok(())
    }

    /// Begins the sessions of a new day, or those of an incarnation that is opened; how many effects they have been
    /// told of.
    pub(super) fn begin_day(&self, incarnation: u32) -> Result<Option<u64>, NoRoot> {
        let day = day_of(clock_ms());
        if self.shared.ouch.is_of(day, incarnation) {
            return Ok(None);
        }
        let folder = sessions_directory(&self.settings.directory, self.shared.venue);
        Ok(self.shared.ouch.open(&folder, day, incarnation)?)
    }

    /// Gives up the root, and opens it again later.
    pub(super) fn fail(&mut self, why: &NoRoot) {
        let standing = match why {
            NoRoot::Waits(why) => PitStanding::Waits(why.clone()),
            why => PitStanding::Failed(said(why)),
        };
        let is_new = self.shared.view.borrow().standing != standing;
        if is_new {
            tracing::warn!(%why, "the venue does not run; it is tried again");
        }
        self.own_sessions.clear();
        if self.root.is_some() {
            self.shared.ouch.end_all();
            self.shared.feed.end();
        }
        (self.root, self.told, self.reader) = (None, None, None);
        self.shared.show_fills(None);
        self.try_at = Instant::now() + self.patience;
        if !matches!(why, NoRoot::Waits(_)) || self.passed.is_some() {
            self.patience = (self.patience * 2).min(AGAIN_MOST);
        }
        self.shared.view.send_modify(|view| view.standing = standing);
    }

    /// Opens the next incarnation where its operator has prepared it.
    pub(super) fn next_incarnation(&mut self) {
        let venue = self.shared.venue;
        let present = self.told.as_ref().and_then(|state| state.venues.get(venue)).map(|record| record.incarnation);
        let is_ready = |of: &u32| incarnation_directory(&self.settings.directory, venue, *of).exists();
        let here = self.ahead().map(|root| root.settings().incarnation);
        if present.filter(is_ready).is_some_and(|present| Some(present) != here) {
            (self.root, self.passed, self.told, self.reader) = (None, None, None, None);
            self.own_sessions.clear();
            self.shared.feed.end();
            self.open();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_with_its_remedy_and_other_failures_as_they_are() {
        let failed = |reason: std::io::Error| said(&NoRoot::Disk { path: "venues/0".into(), reason });
        let full = failed(std::io::Error::from_raw_os_error(28));
        assert!(full.contains("venues/0") && full.contains("free space there"), "{full}");
        assert!(failed(std::io::ErrorKind::StorageFull.into()).contains("by itself"));
        assert!(!failed(std::io::ErrorKind::PermissionDenied.into()).contains("free space"));
    }
}
