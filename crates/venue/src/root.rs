//! A root: the machine with its journal and its keys.

use std::io::{Read, Write};

use kernel::Planted;
use primitives::venue::{MarketId, OrderNumber, SignedStep, VenueOperator};
use primitives::{Address, Digest, PublicKey, SecretKey, Transaction};
use rayon::prelude::*;
use store::{CheckpointWriter, Disk, Options, Repair, Store, StoreError};

use crate::error::VenueRootError;
use crate::input::{SessionNumber, VenueInput};
use crate::machine::{Made, VenueMachine, audit, digest, encode, restored};
use crate::mistake::VenueMistake;
use crate::reader::{FillReader, ReportedFills, report, sign_step};
use crate::record::{
    JournalRecord, KnownKeys, decode, encode_founded, encode_nothing, encode_outcome, encode_step, outcome_digest,
};
use crate::refusal::{VenuePause, VenueStop};
use crate::report::{MarketImage, OrderStanding, ReportKind, TradeReport, VenueEffect, VenueFill};
use crate::settings::{MarketSettings, VenueSettings};

/// Fewer effects are made on the thread of the step after the disk has worked: to wake another thread costs more.
const SIGNED_ALONE: usize = 16;

/// The secret keys of an operator.
pub struct VenueKeys {
    /// The account that settles.
    pub account: Address,
    /// Signs settles for it.
    pub operator: SecretKey,
    /// Signs reports.
    pub report: SecretKey,
}

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

/// One incarnation of a venue, in a directory of its own; see the crate's text.
pub struct VenueRoot<D: Disk> {
    store: Store<D>,
    machine: VenueMachine,
    keys: VenueKeys,
    mistake: Planted<VenueMistake>,
    /// The record that the newest snapshot names.
    snapshot_at: u64,
    has_failed: bool,
    /// The record with which it was opened.
    opened_at: u64,
    known_keys: KnownKeys,
    record: Vec<u8>,
    outcome: Vec<u8>,
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
        let (record, outcome, mistake) = (Vec::new(), Vec::new(), options.mistake);
        let (has_failed, opened_at, known_keys) = (false, store.last_height(), KnownKeys::default());
        known_keys.follow(&machine.core);
        VenueRoot { store, machine, keys, mistake, snapshot_at, has_failed, opened_at, known_keys, record, outcome }
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
        if root.machine.core.acts_as != stated {
            // The owner has changed the operator, or will: until the ledger has it, matching pauses.
            inputs.push(VenueInput::Operate(stated));
        }
        let first = root.effects_told();
        let made = root.step(root.machine.core.clock_ms, &inputs)?;
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
        if self.has_failed {
            return Err(VenueRootError::Failed);
        }
        let (before, known) = (self.machine.core.tree.count(), self.machine.core.keys.len() as u32);
        self.machine.step(clock_ms, inputs);
        debug_assert_eq!(audit(&self.machine), Ok(()), "sums follow from orders and fills");
        self.known_keys.follow(&self.machine.core);
        encode_outcome(before, &self.machine, &mut self.outcome);
        encode_step(clock_ms, inputs, (&self.machine.core, known), &self.outcome, &mut self.record);
        // The next step makes about as much.
        let next = Vec::with_capacity(self.machine.made.len());
        let made = std::mem::replace(&mut self.machine.made, next);
        let VenueRoot { store, machine, keys, record, outcome, mistake, opened_at, .. } = self;
        let is_synced = !mistake.is(VenueMistake::ReportsBeforeSync);
        let from = if mistake.is(VenueMistake::StepsBeginAgain) { *opened_at } else { 0 };
        let signs = Signs { machine, keys, number: store.last_height() + 1 - from };
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
                    if signs.machine.step_clock().is_some() { signs.all(made) } else { signs.all_in_parallel(made) }
                });
                (written, effects)
            }
        };
        self.has_failed = written.is_err();
        written?;
        Ok(effects)
    }

    /// Reads fills from the journal while the root goes on.
    pub fn fill_reader(&self) -> FillReader<D> {
        let (keys, settings, report_key) = (self.known_keys.clone(), *self.settings(), self.keys.report.clone());
        FillReader { archive: self.store.archive(), keys, settings, report_key }
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
        self.has_failed |= written.is_err();
        written
    }

    /// Takes a snapshot of the present state, to be written on another thread while steps go on; `None` if there is no
    /// record since the last one.
    ///
    /// # Errors
    /// As for [`VenueRoot::step`], or if another snapshot is still being written.
    pub fn begin_snapshot(&mut self) -> Result<Option<VenueSnapshot<D>>, VenueRootError> {
        if self.has_failed {
            return Err(VenueRootError::Failed);
        }
        let record = self.store.last_height();
        if record == self.snapshot_at {
            return Ok(None);
        }
        let begun = self.store.begin_checkpoint(record);
        self.has_failed = begun.as_ref().is_err_and(|error| !matches!(error, StoreError::CheckpointRunning));
        let writer = begun?;
        self.snapshot_at = record;
        Ok(Some(VenueSnapshot { record, writer, bytes: encode(&self.machine) }))
    }

    /// Forgets records of the journal below a number, by whole files, but none that opening needs: two snapshots stand
    /// above them. Their fills cannot be fetched any more.
    ///
    /// # Errors
    /// As for [`VenueRoot::step`].
    pub fn forget_below(&mut self, record: u64) -> Result<(), VenueRootError> {
        self.store.forget_below(record)?;
        Ok(())
    }

    /// How many effects there were: the number of the next one.
    pub fn effects_told(&self) -> u64 {
        self.machine.core.effects
    }

    /// The number of the last record.
    pub fn last_record(&self) -> u64 {
        self.store.last_height()
    }

    /// What the root was told once.
    pub fn settings(&self) -> &VenueSettings {
        &self.machine.core.settings
    }

    /// A digest of the whole state: equal after a restart.
    pub fn digest(&self) -> Digest {
        digest(&self.machine)
    }

    /// The height of the last certified block; the host gives the next one. `None` before the first.
    pub fn height(&self) -> Option<u64> {
        self.machine.core.horizon.as_ref().map(|horizon| horizon.height())
    }

    /// Fills so far, and how many of them are settled or bust.
    pub fn counts(&self) -> (u64, u64) {
        (self.machine.core.tree.count(), self.machine.core.settled())
    }

    /// Sessions that are attached; after a restart their links are broken.
    pub fn sessions(&self) -> Vec<SessionNumber> {
        let attached = self.machine.core.sessions.iter().filter(|(_, of)| of.is_attached);
        attached.map(|(session, _)| *session).collect()
    }

    /// When by the host's clock a step is due although nothing happens: a session's timer fires, or matching pauses.
    pub fn wants_step_at_ms(&self) -> Option<u64> {
        let core = &self.machine.core;
        let timers = core.sessions.values().filter_map(|of| of.deadline_ms);
        let quiet = core.heard_ms.map(|heard| heard.saturating_add(core.settings.limits.quiet_ms));
        let next = timers.chain(quiet.filter(|at| *at > core.now_ms)).min()?;
        Some(core.clock_ms.saturating_add(next.saturating_sub(core.now_ms)))
    }

    /// The settle in flight.
    pub fn in_flight(&self) -> Option<Transaction> {
        let body = &self.machine.core.in_flight()?.body;
        Some(body.clone().sign(&self.settings().network, &self.keys.operator))
    }

    /// Why matching pauses.
    pub fn paused(&self) -> Option<VenuePause> {
        self.machine.core.paused
    }

    /// Why the root has stopped.
    pub fn stopped(&self) -> Option<VenueStop> {
        self.machine.core.stopped
    }

    /// How an order stands.
    pub fn standing(&self, key: &PublicKey, number: &OrderNumber) -> Option<OrderStanding> {
        self.machine.standing(key, number)
    }

    /// Where an open order stands in its queue; walks the orders before it.
    pub fn position(&self, key: &PublicKey, number: &OrderNumber) -> Option<matching::Position> {
        self.machine.position(key, number)
    }

    /// An open market with its resting orders, for readers of market data that begin or missed something.
    pub fn image(&self, market: MarketId) -> Option<MarketImage> {
        self.machine.image(market)
    }

    /// The number of the last event of an open market that was told.
    pub fn told(&self, market: MarketId) -> Option<u64> {
        self.machine.told(market)
    }

    /// Open markets.
    pub fn markets(&self) -> impl Iterator<Item = MarketId> {
        self.machine.open_markets()
    }

    /// The book of an open market.
    pub fn book(&self, market: MarketId) -> Option<&matching::Book> {
        self.machine.book(market)
    }

    /// How an open market is run.
    pub fn market_settings(&self, market: MarketId) -> Option<&MarketSettings> {
        self.machine.market_settings(market)
    }
}

/// Journals a step: one record, one sync.
fn write<D: Disk>(store: &mut Store<D>, record: &[u8], outcome: &[u8], is_synced: bool) -> Result<(), VenueRootError> {
    let number = store.last_height() + 1;
    store.append(number, record)?;
    store.append_receipts(number, outcome)?;
    if is_synced {
        store.sync()?;
    }
    Ok(())
}

/// Signs what the machine's last step made, which is this record.
#[derive(Clone, Copy)]
struct Signs<'a> {
    machine: &'a VenueMachine,
    keys: &'a VenueKeys,
    number: u64,
}

impl Signs<'_> {
    fn all(self, made: Vec<Made>) -> Vec<VenueEffect> {
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
        let clock_ms = self.machine.step_clock()?;
        let (fills, settings) = (&self.machine.fills, &self.machine.core.settings);
        let tells = made.iter().any(|made| matches!(made, Made::Executed(..)));
        tells.then(|| sign_step(fills, (self.number, clock_ms), settings, &self.keys.report))
    }

    fn one(self, made: Made, step: Option<&SignedStep>) -> VenueEffect {
        let (settings, fills) = (&self.machine.core.settings, &self.machine.fills);
        match made {
            Made::Effect(effect) => effect,
            Made::Submit(body) => VenueEffect::Submit(Box::new(body.sign(&settings.network, &self.keys.operator))),
            Made::Executed(at, side) => {
                let party = fills[at].party(side);
                let report = report(fills, at, side, step, settings, &self.keys.report);
                let what = ReportKind::Executed(Box::new(fills[at].execution(side)), Box::new(report));
                let (session, key, number) = (party.session, party.key, party.number);
                VenueEffect::Report(TradeReport { session, key, number, what })
            }
        }
    }
}

impl VenueKeys {
    /// The operator as the ledger knows it.
    fn stated(&self) -> VenueOperator {
        VenueOperator { account: self.account, report_key: self.report.public() }
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
        let again = Signs { machine, keys, number }.all(made);
        self.again.extend(effects.into_iter().zip(again));
    }
}
