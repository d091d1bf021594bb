//! What runs a root: steps over a disk that fails, restarts, and what it passes on.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{Dice, FaultDisk, Surviving};
use primitives::venue::{OrderNumber, SignedReport, StepHeader, VenueReport};
use primitives::{Digest, PublicKey, Transaction};
use venue::{
    Acceptance, FillFate, MarketEvent, OrderStanding, ReportKind, TradeReport, VenueEffect, VenueFill, VenueInput,
    VenueOptions, VenueRoot, VenueSettings,
};

use super::follower::Follower;
use super::people::{MARKET, keys};
use super::wire::Door;
use crate::world::MarketMistake;

/// A root with its disk, and what was told by it.
pub(super) struct Host {
    pub disk: FaultDisk,
    pub root: VenueRoot<FaultDisk>,
    options: VenueOptions,
    mistake: Option<MarketMistake>,
    /// How many effects were passed on.
    passed: u64,
    /// Attaches the sessions of all traders.
    pub attach: Vec<VenueInput>,
    /// Whose keys the root has: those after so many changes of the operator.
    pub changes: u8,
    follower: Follower,
    /// The door of its sessions.
    pub door: Door,
    /// The process has ended since the last look, and all connections with it.
    pub has_ended: bool,
    /// Leaves that were reported, by index.
    told: BTreeMap<u64, Digest>,
    answers: BTreeMap<(PublicKey, OrderNumber), Acceptance>,
    ids: BTreeSet<u64>,
    fates: BTreeMap<u64, FillFate>,
    /// Reports and settles that the world has not taken yet.
    pub reports: Vec<VenueReport>,
    /// What was signed of steps that were told.
    steps: BTreeMap<u64, StepHeader>,
    pub settles: Vec<Transaction>,
    pub restarts: u64,
    pub refused: u64,
}

impl Host {
    /// The root of an incarnation, on an empty disk.
    pub fn new(
        disk: FaultDisk,
        settings: VenueSettings,
        options: VenueOptions,
        mistake: Option<MarketMistake>,
        changes: u8,
    ) -> Result<Host, String> {
        let root =
            VenueRoot::create(disk.clone(), settings, keys(changes), options).map_err(|error| error.to_string())?;
        Ok(Host { changes, ..Host::of(disk, root, options, mistake)? })
    }

    fn of(
        disk: FaultDisk,
        root: VenueRoot<FaultDisk>,
        options: VenueOptions,
        mistake: Option<MarketMistake>,
    ) -> Result<Host, String> {
        let passed = root.effects_told();
        let incarnation = root.settings().incarnation;
        let door = Door::new(FaultDisk::new(u64::from(incarnation)), incarnation, mistake, passed)?;
        Ok(Host {
            disk,
            root,
            options,
            mistake,
            passed,
            attach: Vec::new(),
            changes: 0,
            follower: Follower::default(),
            door,
            has_ended: false,
            told: BTreeMap::new(),
            answers: BTreeMap::new(),
            ids: BTreeSet::new(),
            fates: BTreeMap::new(),
            reports: Vec::new(),
            steps: BTreeMap::new(),
            settles: Vec::new(),
            restarts: 0,
            refused: 0,
        })
    }

    /// A second root with the same keys, on a copy of the disk.
    pub fn twin(&self) -> Result<Host, String> {
        let disk = self.disk.after_crash(Surviving::Everything);
        let opened =
            VenueRoot::open(disk.clone(), keys(self.changes), self.options).map_err(|error| error.to_string())?;
        Ok(Host {
            attach: self.attach.clone(),
            changes: self.changes,
            ..Host::of(disk, opened.0, self.options, self.mistake)?
        })
    }

    /// A step. If the disk fails the process ends, opens again, and the inputs are sent again.
    pub fn give(&mut self, now_ms: u64, inputs: &[VenueInput], dice: &mut Dice) -> Result<(), String> {
        loop {
            if self.try_step(now_ms, inputs)? {
                return Ok(());
            }
            self.crash(now_ms, Surviving::drawn(dice), dice)?;
        }
    }

    /// What came over sessions. If a disk fails the process ends, and the connections with what came over them.
    pub fn give_door(&mut self, now_ms: u64, dice: &mut Dice) -> Result<(), String> {
        let inputs = self.door.take_inputs();
        match self.try_step(now_ms, &inputs)? {
            true => {
                self.door.attach();
                Ok(())
            }
            false => self.crash(now_ms, Surviving::drawn(dice), dice),
        }
    }

    /// A step, and what it tells; false if a disk fails.
    fn try_step(&mut self, now_ms: u64, inputs: &[VenueInput]) -> Result<bool, String> {
        if !self.door.write(self.root.effects_told()) {
            return Ok(false);
        }
        match self.root.step(now_ms, inputs) {
            Ok(effects) => {
                let first = self.root.effects_told() - effects.len() as u64;
                self.pass_on((first..).zip(effects))
            }
            Err(_) => Ok(false),
        }
    }

    /// Passes on what was not yet; false if the door's disk fails.
    fn pass_on(&mut self, effects: impl Iterator<Item = (u64, VenueEffect)>) -> Result<bool, String> {
        let (mut misses, mut reports) = (false, Vec::new());
        let passed = self.passed;
        for (number, effect) in effects {
            if let VenueEffect::Report(report) = &effect {
                reports.push((number, report.clone()));
            }
            if number < passed {
                continue;
            }
            if let VenueEffect::Market(MARKET, number, event) = &effect {
                misses |= self.follower.misses(*number);
                self.follower.follow(*number, &self.distorted(*number, *event))?;
            }
            self.see(&effect)?;
            self.passed = number + 1;
        }
        self.passed = self.passed.max(self.root.effects_told());
        if misses {
            self.follower.begin(self.root.image(MARKET));
        }
        self.follower.check(self.root.image(MARKET).as_ref())?;
        Ok(self.door.tell(&reports, self.root.effects_told()))
    }

    /// An event as an engine or a feed with a mistake would tell it.
    fn distorted(&self, number: u64, event: MarketEvent) -> MarketEvent {
        match (self.mistake, event) {
            (Some(MarketMistake::EventLost), MarketEvent::Deleted { id }) if number.is_multiple_of(4) => {
                MarketEvent::Renamed { id, to: id, lots: 1 }
            }
            (Some(MarketMistake::LastServedFirst), MarketEvent::Executed { id, lots, tick, trade }) => {
                MarketEvent::Executed { id: self.follower.last_of_price(id), lots, tick, trade }
            }
            (_, event) => event,
        }
    }

    fn see(&mut self, effect: &VenueEffect) -> Result<(), String> {
        match effect {
            VenueEffect::Submit(settle) => self.settles.push((**settle).clone()),
            VenueEffect::Report(TradeReport { what: ReportKind::Executed(_, report), .. }) => {
                let fill = report.fill();
                if !report.is_signed(&self.root.settings().network) {
                    return Err(format!("the report of fill {} is not signed", fill.index));
                }
                if *self.told.entry(fill.index).or_insert(fill.leaf) != fill.leaf {
                    return Err(format!("fill {} is reported with two leaves", fill.index));
                }
                let signed = report.header().ok_or("a report is not of its step, where the rules have steps")?;
                if *self.steps.entry(signed.step).or_insert(signed) != signed {
                    return Err(format!("step {} is signed twice", signed.step));
                }
                self.reports.push((**report).clone());
            }
            VenueEffect::Report(TradeReport { key, number, what: ReportKind::Accepted(first), .. }) => {
                let known = self.answers.insert((*key, *number), *first);
                if known.is_some_and(|known| known != *first) {
                    return Err(format!("a retry of order {number:?} gets another answer"));
                }
                if known.is_none() && !self.ids.insert(first.id) {
                    return Err(format!("id {} is issued twice", first.id));
                }
            }
            VenueEffect::Report(TradeReport { what: ReportKind::Settled { index, fate, .. }, .. }) => {
                let known = self.fates.entry(*index).or_insert(*fate);
                if known != fate {
                    return Err(format!("fill {index} is told two fates"));
                }
            }
            VenueEffect::Report(TradeReport { what: ReportKind::Refused(_), .. }) => self.refused += 1,
            _ => {}
        }
        Ok(())
    }

    /// The process ends, and the root opens with what the disk then has.
    pub fn crash(&mut self, now_ms: u64, surviving: Surviving, dice: &mut Dice) -> Result<(), String> {
        self.reopen(surviving)?;
        let attach = self.attach.clone();
        self.give(now_ms, &attach, dice)
    }

    fn reopen(&mut self, surviving: Surviving) -> Result<(), String> {
        self.restarts += 1;
        self.has_ended = true;
        self.disk = self.disk.after_crash(surviving);
        let told = self.door.reopen(surviving)?;
        if self.mistake == Some(MarketMistake::JournalMadeAnew) && !self.told.is_empty() {
            return self.begin_anew();
        }
        let options = VenueOptions { again_from: Some(told.min(self.passed)), ..self.options };
        let opened = VenueRoot::open(self.disk.clone(), keys(self.changes), options);
        let (root, found) = opened.map_err(|error| format!("a root does not open again: {error}"))?;
        self.root = root;
        self.check_told()?;
        let first = found.again.first().map_or(self.root.effects_told(), |(first, _)| *first);
        if first > self.passed {
            self.follower.begin(self.root.image(MARKET));
            self.passed = self.root.effects_told();
            found.again.iter().try_for_each(|(_, effect)| self.see(effect))?;
        }
        match self.pass_on(found.again.into_iter())? {
            true => {
                self.door.void_lost(&self.root);
                Ok(())
            }
            false => Err("a disk fails that nothing was done to".into()),
        }
    }

    /// A mistake: an empty journal in the same incarnation. What was told is forgotten, also by those who check here.
    fn begin_anew(&mut self) -> Result<(), String> {
        let settings = *self.root.settings();
        let reports = std::mem::take(&mut self.reports);
        *self = Host {
            attach: std::mem::take(&mut self.attach),
            reports,
            restarts: self.restarts,
            ..Host::new(FaultDisk::new(self.restarts), settings, self.options, self.mistake, self.changes)?
        };
        Ok(())
    }

    /// A clean restart, which is the same root.
    pub fn restart(&mut self, now_ms: u64, dice: &mut Dice) -> Result<(), String> {
        if self.give(now_ms, &[VenueInput::Opened], dice).is_err() {
            return Err("a root does not take its opening".into());
        }
        let digest = self.root.digest();
        self.reopen(Surviving::drawn(dice))?;
        if self.root.digest() != digest {
            return Err("a replay comes to another state".into());
        }
        let attach = self.attach.clone();
        self.give(now_ms, &attach, dice)
    }

    /// The process ends, and the root opens with the keys of another operator.
    pub fn change_keys(&mut self, changes: u8, now_ms: u64, dice: &mut Dice) -> Result<(), String> {
        self.changes = changes;
        self.crash(now_ms, Surviving::drawn(dice), dice)
    }

    /// A snapshot, whatever the disk does.
    pub fn snapshot(&mut self, now_ms: u64, dice: &mut Dice) -> Result<(), String> {
        if self.root.snapshot().is_err() { self.crash(now_ms, Surviving::drawn(dice), dice) } else { Ok(()) }
    }

    /// After a crash everything that was told is in the journal.
    fn check_told(&self) -> Result<(), String> {
        let fills = self.fills(0)?;
        for (index, leaf) in &self.told {
            if fills.get(*index as usize).is_none_or(|fill| fill.leaf != *leaf) {
                return Err(format!("fill {index} was reported and is not in the journal"));
            }
        }
        for ((key, number), first) in &self.answers {
            match self.root.standing(key, number) {
                Some(OrderStanding::Taken { accepted, .. }) if accepted == *first => {}
                // Final numbers are forgotten when a key has very many.
                None if self.answers.len() > 256 => {}
                other => return Err(format!("order {number:?} was accepted, and after a crash it is {other:?}")),
            }
        }
        Ok(())
    }

    /// Whether the ledger has another fill than this root reported.
    pub fn is_contradicted(&self, leaves: &[Digest]) -> bool {
        let other = |(index, leaf): (&u64, &Digest)| leaves.get(*index as usize).is_some_and(|of| of != leaf);
        self.told.iter().any(other)
    }

    /// The fills from an index on, from the journal.
    pub fn fills(&self, from: u64) -> Result<Vec<VenueFill>, String> {
        self.root.fills(from, usize::MAX).map_err(|error| error.to_string())
    }

    /// What became of fills, as traders were told.
    pub fn fates(&self) -> &BTreeMap<u64, FillFate> {
        &self.fates
    }
}
