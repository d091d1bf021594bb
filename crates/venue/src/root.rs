//! A root: the machine with its journal and its keys.

use std::io::{Read, Write};
use std::ops::Deref;

use kernel::Planted;
use store::{CheckpointWriter, Disk, Options, Repair, Store, StoreError};

use crate::error::VenueRootError;
use crate::input::VenueInput;
use crate::keys::VenueKeys;
use crate::machine::{Made, VenueMachine, encode, restored};
use crate::mistake::VenueMistake;
use crate::reader::{FillReader, ReportedFills};
use crate::record::{JournalRecord, decode, encode_founded, encode_nothing, encode_outcome, outcome_digest};
use crate::report::{VenueEffect, VenueFill};
use crate::settings::VenueSettings;
use crate::stages::{JournalStage, MatchedStep, MatchingStage, Signs};

/// How a root is opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct VenueOptions {
    /// Bytes of a file of the journal.
    pub files: Options,
    /// Effects from this number on are made again by a replay.
    pub again_from: Option<u64>,
    /// The mistake that a test or a simulation plants.
    pub mistake: Planted<VenueMistake>,
}

/// What was found when a root was opened.
#[derive(Clone, Debug, Default)]
pub struct FoundRoot {
    /// What was cut off because a crash had left it unfinished. None of it had been told.
    pub repairs: Vec<Repair>,
    /// The effects that were asked for, as far as the newest snapshot does not contain them, and then those of the
    /// opening itself, each with its number. Settles of another operator than the present one are left out.
    pub again: Vec<(u64, VenueEffect)>,
}

/// A snapshot that is to be written.
pub struct VenueSnapshot<D: Disk> {
    record: u64,
    writer: CheckpointWriter<D>,
    bytes: Vec<u8>,
}

impl<D: Disk> VenueSnapshot<D> {
    /// Writes it. A crash before this ends leaves the one before.
    ///
    /// # Errors
    /// If the disk fails; the root then refuses every step.
    pub fn write(mut self) -> Result<(), VenueRootError> {
        self.writer.write_all(&self.bytes).map_err(|error| read_error(self.record, error))?;
        Ok(self.writer.finish()?)
    }
}

/// One incarnation of a venue, in a directory of its own; see the crate's text. It reads as its first stage does, which
/// has nothing that the journal has not.
pub struct VenueRoot<D: Disk> {
    pub(crate) first: Box<MatchingStage>,
    pub(crate) second: Box<JournalStage<D>>,
}

impl<D: Disk> Deref for VenueRoot<D> {
    type Target = MatchingStage;

    fn deref(&self) -> &MatchingStage {
        &self.first
    }
}

impl<D: Disk> VenueRoot<D> {
    /// Creates the root of an incarnation that has reported nothing. Whether that is so, only its owner knows: a root
    /// that lost its journal must be fenced, not created again.
    ///
    /// # Errors
    /// [`VenueRootError::JournalExists`] if the directory has a journal, [`VenueRootError::Settings`],
    /// [`VenueRootError::Keys`], or [`VenueRootError::Store`].
    pub fn create(
        disk: D,
        settings: VenueSettings,
        keys: VenueKeys,
        options: VenueOptions,
    ) -> Result<VenueRoot<D>, VenueRootError> {
        settings.check()?;
        if keys.stated() != settings.operator {
            return Err(VenueRootError::Keys);
        }
        let (place, seed) = (disk.place(), seed(&disk)?);
        let (mut store, recovery) = Store::open(disk, options.files)?;
        if store.last_height() > 0 || recovery.checkpoint.is_some() {
            return Err(VenueRootError::JournalExists(place));
        }
        let machine = VenueMachine::new(settings, seed, options.mistake);
        let mut outcome = Vec::new();
        encode_nothing(&mut outcome);
        store.append(1, &encode_founded(&settings))?;
        store.append_receipts(1, &outcome)?;
        store.sync()?;
        Ok(VenueRoot::of(store, machine, keys, options, 0))
    }

    fn of(
        store: Store<D>,
        machine: VenueMachine,
        keys: VenueKeys,
        options: VenueOptions,
        snapshot_at: u64,
    ) -> VenueRoot<D> {
        let first = Box::new(MatchingStage::new(machine, keys.clone(), store.last_height()));
        VenueRoot { first, second: Box::new(JournalStage::new(store, keys, options.mistake, snapshot_at)) }
    }

    /// Opens a root after a stop, a kill or a crash: finds the newest snapshot and the journal, and replays what came
    /// after it. The keys may be those of another operator than before.
    ///
    /// # Errors
    /// [`VenueRootError::JournalLost`] if there is none, [`VenueRootError::Damaged`] names file and offset,
    /// [`VenueRootError::Diverged`] and [`VenueRootError::Format`] name the record.
    pub fn open(disk: D, keys: VenueKeys, options: VenueOptions) -> Result<(VenueRoot<D>, FoundRoot), VenueRootError> {
        let (place, seed) = (disk.place(), seed(&disk)?);
        let (mut store, mut recovery) = Store::open(disk, options.files)?;
        let (mut machine, mut snapshot_at) = (None, 0);
        if let Some(mut snapshot) = recovery.checkpoint.take() {
            snapshot_at = snapshot.height();
            let mut bytes = Vec::new();
            snapshot.read_to_end(&mut bytes).map_err(|error| read_error(snapshot_at, error))?;
            let decoded = restored(&bytes, seed, options.mistake);
            machine = Some(decoded.map_err(|what| VenueRootError::Format(snapshot_at, what))?);
        }
        let mut found = FoundRoot { repairs: recovery.repairs, ..FoundRoot::default() };
        let from = options.again_from.unwrap_or(u64::MAX);
        for record in recovery.blocks {
            let (number, bytes) = record?;
            let read = decode(&bytes).map_err(|what| VenueRootError::Format(number, what))?;
            let machine = replay(&mut store, &mut machine, number, read, seed, options.mistake)?;
            found.add(from, number, machine, &keys);
        }
        let machine = machine.ok_or(VenueRootError::JournalLost(place))?;
        let stated = keys.stated();
        let mut root = VenueRoot::of(store, machine, keys, options, snapshot_at);
        let mut inputs = vec![VenueInput::Opened];
        if root.first.machine.core.acts_as != stated {
            // The owner has changed the operator, or will: until the ledger has it, matching pauses.
            inputs.push(VenueInput::Operate(stated));
        }
        let first = root.effects_told();
        let made = root.step(root.first.machine.core.clock_ms, &inputs)?;
        found.again.extend((first..).zip(made));
        Ok((root, found))
    }

    /// Takes inputs in their order, at a time of the host's clock in milliseconds. When this returns they and what
    /// follows are in the journal, and the journal is synced.
    ///
    /// # Errors
    /// [`VenueRootError::Store`] if the disk fails, and [`VenueRootError::Failed`] ever after: nothing of the step may
    /// be told, and the root must be opened again.
    pub fn step(&mut self, clock_ms: u64, inputs: &[VenueInput]) -> Result<Vec<VenueEffect>, VenueRootError> {
        if self.second.has_failed {
            return Err(VenueRootError::Failed);
        }
        let step = self.first.take(clock_ms, inputs);
        self.write(step)
    }

    /// Writes the step that the first stage has just matched.
    pub(crate) fn write(&mut self, step: MatchedStep) -> Result<Vec<VenueEffect>, VenueRootError> {
        let (effects, room) = self.second.write_and_keep(step)?;
        self.first.reuse(room);
        Ok(effects)
    }

    /// The two stages, for whoever runs each by itself.
    pub fn into_stages(self) -> (MatchingStage, JournalStage<D>) {
        (*self.first, *self.second)
    }

    /// A root of two stages that are at the same step.
    ///
    /// # Errors
    /// [`VenueRootError::Failed`] if they are not.
    pub fn of_stages(first: MatchingStage, second: JournalStage<D>) -> Result<VenueRoot<D>, VenueRootError> {
        let is_one = first.last_record() == second.store.last_height() && !second.has_failed;
        if is_one {
            Ok(VenueRoot { first: Box::new(first), second: Box::new(second) })
        } else {
            Err(VenueRootError::Failed)
        }
    }

    /// Reads fills from the journal while the root goes on.
    pub fn fill_reader(&self) -> FillReader<D> {
        let (keys, report_key) = (self.first.known_keys.clone(), self.second.keys.report.clone());
        FillReader { archive: self.second.store.archive(), keys, settings: *self.settings(), report_key }
    }

    /// Up to `most` fills from an index on, from the journal: what a session missed, or asks to be told again.
    ///
    /// # Errors
    /// [`VenueRootError::Forgotten`] if the journal begins later, or what reading it reports.
    pub fn fills(&self, from: u64, most: usize) -> Result<Vec<VenueFill>, VenueRootError> {
        self.fill_reader().fills(self.counts().0, self.last_record(), from, most)
    }

    /// As [`VenueRoot::fills`], with the reports of each: the same bytes as when they were executed.
    ///
    /// # Errors
    /// As for [`VenueRoot::fills`].
    pub fn reported(&self, from: u64, most: usize) -> Result<Vec<ReportedFills>, VenueRootError> {
        self.fill_reader().reported(self.counts().0, self.last_record(), from, most)
    }

    /// Writes a snapshot of the present state, which names the last record of the journal. Opening begins with it.
    ///
    /// # Errors
    /// As for [`VenueRoot::step`], or if another snapshot is still being written; then the root goes on.
    pub fn snapshot(&mut self) -> Result<(), VenueRootError> {
        let Some(begun) = self.begin_snapshot()? else { return Ok(()) };
        let written = begun.write();
        self.second.has_failed |= written.is_err();
        written
    }

    /// Takes a snapshot of the present state, to be written on another thread while steps go on; `None` if there is no
    /// record since the last one.
    ///
    /// # Errors
    /// As for [`VenueRoot::step`], or if another snapshot is still being written.
    pub fn begin_snapshot(&mut self) -> Result<Option<VenueSnapshot<D>>, VenueRootError> {
        if self.second.has_failed {
            return Err(VenueRootError::Failed);
        }
        let (record, second) = (self.last_record(), &mut self.second);
        if record == second.snapshot_at {
            return Ok(None);
        }
        let begun = second.store.begin_checkpoint(record);
        second.has_failed = begun.as_ref().is_err_and(|error| !matches!(error, StoreError::CheckpointRunning));
        let writer = begun?;
        second.snapshot_at = record;
        Ok(Some(VenueSnapshot { record, writer, bytes: encode(&self.first.machine) }))
    }

    /// Forgets records of the journal below a number, by whole files, but none that opening needs: two snapshots stand
    /// above them. Their fills cannot be fetched any more.
    ///
    /// # Errors
    /// As for [`VenueRoot::step`].
    pub fn forget_below(&mut self, record: u64) -> Result<(), VenueRootError> {
        self.second.store.forget_below(record)?;
        Ok(())
    }
}

fn seed(disk: &impl Disk) -> Result<u64, VenueRootError> {
    let reason = |reason| StoreError::Io { action: "read random bytes for", file: disk.place(), reason };
    let bytes = disk.entropy().map_err(reason)?;
    let (first, _) = bytes.split_first_chunk().expect("32 bytes");
    Ok(u64::from_le_bytes(*first))
}

fn read_error(record: u64, error: std::io::Error) -> VenueRootError {
    VenueRootError::Format(record, error.to_string())
}

/// Does again what a record says, and compares what it came to.
fn replay<'m, D: Disk>(
    store: &mut Store<D>,
    machine: &'m mut Option<VenueMachine>,
    number: u64,
    record: JournalRecord,
    seed: u64,
    mistake: Planted<VenueMistake>,
) -> Result<&'m mut VenueMachine, VenueRootError> {
    let mut bytes = Vec::new();
    match (record, machine.as_mut()) {
        (JournalRecord::Founded(settings), None) if number == 1 => {
            *machine = Some(VenueMachine::new(settings, seed, mistake));
            encode_nothing(&mut bytes);
        }
        (JournalRecord::Step { clock_ms, inputs, outcome }, Some(machine)) => {
            let (before, core) = (machine.core.tree.count(), &machine.core);
            let inputs: Result<Vec<VenueInput>, String> = inputs.into_iter().map(|input| input.read(core)).collect();
            machine.step(clock_ms, &inputs.map_err(|what| VenueRootError::Format(number, what))?);
            encode_outcome(before, machine, &mut bytes);
            if outcome_digest(&bytes) != outcome {
                return Err(VenueRootError::Diverged(number));
            }
        }
        _ => return Err(VenueRootError::Format(number, "it is not at its place".into())),
    }
    store.append_receipts(number, &bytes)?;
    Ok(machine.as_mut().expect("it was founded"))
}

impl FoundRoot {
    /// Adds what a replayed step made, as far as it was asked for.
    fn add(&mut self, from: u64, number: u64, machine: &mut VenueMachine, keys: &VenueKeys) {
        let made = std::mem::take(&mut machine.made);
        let first = machine.core.effects - made.len() as u64;
        let is_foreign = |made: &Made| matches!(made, Made::Submit(body) if body.account != keys.account);
        let wanted = (first..).zip(made).filter(|(effect, made)| *effect >= from && !is_foreign(made));
        let (effects, made): (Vec<u64>, Vec<Made>) = wanted.unzip();
        let (clock_ms, settings) = (machine.step_clock(), &machine.core.settings);
        let again = Signs { fills: &machine.fills, clock_ms, settings, keys, number }.all(made);
        self.again.extend(effects.into_iter().zip(again));
    }
}
