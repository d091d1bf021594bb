//! A continuous market in a simulation: the root of a venue, the ledger with its custody, and traders.
//!
//! The root is `venue::VenueRoot` over a disk that fails and forgets what was not synced; the ledger is the real one.
//! Everything between is played: certified blocks reach the root late, settles wait in pools, which keep all that they
//! were ever sent and propose them in any order, and the process that runs the root ends at any moment. Honest traders
//! quote and trade. Hostile ones forge, repeat, sign stale and impossible orders, replace by the dozen, take their
//! deposits away, revoke keys under open orders, and cancel what has not arrived.
//! The owner names other operators, takes a part of the bond out and adds to it. In some runs the issuer of EUR freezes
//! traders and the owner, admits them, recalls what they have at the venue, and recovers units ([`issuer`]).
//!
//! In half of the runs the venue turns hostile. It settles fills that it never reported, or in another order, or none.
//! It reports one number as two fills, or signs two trees of one step; or a thief of a report key does, also of one
//! that an earlier operator had. Or
//! two roots run with its keys. Its traders convict it, its owner fences it and bonds anew, and the next incarnation is
//! an honest one. Owners of honest venues fence, too, whatever is unsettled; then traders claim. In some runs proposers
//! hold settles for longer than D: then fills may bust, and only then.
//!
//! After every step:
//!
//! 1. Money is conserved ([`ledger::Ledger::audit`]), and what each trader has, deposited and free or leaving, equals
//!    to the unit the result of plain bookkeeping, whoever runs the venue ([`oracle`]).
//! 2. No fill moves units beyond a signed order, its limit, lots, expiry, fee cap and floor, its key's mandate, cap and
//!    revocation. Nothing is paid out before its request is past, and all of it is when it is.
//! 3. What was reported, and every first answer, is in the journal that a crash leaves; an index is reported with one
//!    leaf and told one fate, a step is signed once, an id is issued once, and a restart is the same root.
//! 4. Fills of an honest venue never bust if proposers include settles in time. Each becomes settled or bust.
//! 5. Whoever has a report that another one or the tree contradicts convicts the venue, and is paid a tenth of the
//!    bond; nobody convicts an honest one. A fill that a fence left unsettled can be claimed, once.
//! 6. A reader of market data has the book of the engine, and sees each trade for the first order of its side.
//! 7. Sessions of OUCH and FIX are told what the venue's journal says, in order and once, over links that break
//!    ([`wire`]).
//!
//! In the end the faults stop, everything that was executed gets its fate, and all traders take out what they have.

mod chain;
mod evidence;
mod follower;
mod founding;
mod holders;
mod host;
mod issuer;
mod oracle;
mod owner;
mod people;
mod sessions;
mod settles;
mod traders;
mod villain;
mod wire;

use kernel::{Dice, DiskFault, Surviving};
use primitives::venue::{SignedReport, VenueReport};
use primitives::{AssetControl, Height, Transaction};
use venue::{CertifiedFacts, Steering, VenueFact, VenueInput, VenueStop};

use crate::world::{self, Failure, MarketMistake, Mistake, Trace, World};
use chain::Chain;
use evidence::Evidence;
use host::Host;
use issuer::control_of;
use people::{BLOCK_MS, DELAY, MARKET, TRADERS};
use traders::{Moment, Traders};
use villain::Villainy;
use wire::{Journaled, Wires};

/// The size of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct MarketOptions {
    /// Blocks before the faults stop.
    pub blocks: u64,
    /// A mistake to make, which must be detected.
    pub mistake: Option<Mistake>,
}

impl Default for MarketOptions {
    fn default() -> MarketOptions {
        MarketOptions { blocks: 60, mistake: None }
    }
}

/// The counters of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MarketReport {
    /// The seed.
    pub seed: u64,
    /// Steps of any kind.
    pub steps: u64,
    /// Blocks.
    pub blocks: u64,
    /// Orders that traders signed.
    pub orders: u64,
    /// Orders and requests that the venue refused.
    pub refused: u64,
    /// Orders that were forged.
    pub forged: u64,
    /// Fills that were reported, for each side.
    pub reports: u64,
    /// Fills that were applied.
    pub settled: u64,
    /// Fills that were bust.
    pub busts: u64,
    /// Settles that paid and did nothing.
    pub voids: u64,
    /// Operations that blocks refused.
    pub unpaid: u64,
    /// Ends of the process, openings of the root.
    pub restarts: u64,
    /// Incarnations that were fenced.
    pub fences: u64,
    /// Runs whose venue was hostile.
    pub hostile: u64,
    /// Openings with the keys of another operator.
    pub operators: u64,
    /// Convictions.
    pub convicted: u64,
    /// Fills that were claimed.
    pub claimed: u64,
    /// Accusations and claims without proof, all refused.
    pub unproved: u64,
    /// Fills that sessions of OUCH and FIX were told.
    pub told: u64,
    /// Freezes of those who were open.
    pub frozen: u64,
    /// Recalls of what a holder had at the venue.
    pub recalled: u64,
    /// Recoveries of what one had elsewhere.
    pub recovered: u64,
    /// Links to the venue that broke.
    pub cuts: u64,
    /// BLAKE3 over all events, in hexadecimal.
    pub trace: String,
}

/// Simulates one seed.
///
/// # Errors
/// [`Failure`] names the invariant that broke.
pub fn run_market(seed: u64, options: MarketOptions) -> Result<MarketReport, Failure> {
    let wires = Wires::new(seed, options.mistake.and_then(Mistake::of_market)).expect("an empty disk");
    world::run(seed, || MarketWorld::new(seed, options, wires))
}

/// What a seed decides beforehand.
#[derive(Clone, Copy)]
struct Conditions {
    /// How the venue cheats, and from which height on.
    villainy: Option<(Villainy, Height)>,
    /// Whether proposers hold settles for longer than they may.
    censors: bool,
}

struct MarketWorld {
    options: MarketOptions,
    conditions: Conditions,
    dice: Dice,
    chain: Chain,
    /// One root, or two of a hostile venue.
    hosts: Vec<Host>,
    traders: Traders,
    evidence: Evidence,
    wires: Wires,
    /// What the journals of ended incarnations say.
    journaled: Journaled,
    /// Settles that the operator puts into the next block itself.
    forced: Vec<Transaction>,
    /// What the issuer draws, if it controls EUR.
    issuer: Option<Dice>,
    /// Whether the venue has cheated in this incarnation.
    has_cheated: bool,
    /// Settles that were void for a reason.
    excused_voids: u64,
    fenced_at: Height,
    healed: bool,
    trace: Trace,
    report: MarketReport,
}

impl World for MarketWorld {
    type Report = MarketReport;

    fn run(&mut self) -> Result<MarketReport, String> {
        self.found()?;
        while self.chain.blocks() < self.options.blocks {
            self.report.steps += 1;
            self.act()?;
            self.wire()?;
            self.check()?;
        }
        self.heal()?;
        let report = &mut self.report;
        report.blocks = self.chain.blocks();
        let issuer = self.chain.oracle.issuer;
        (report.frozen, report.recalled, report.recovered) = (issuer.frozen, issuer.recalled, issuer.recovered);
        report.orders = self.chain.oracle.signed.len() as u64;
        report.forged = self.traders.forged;
        (report.voids, report.unpaid) = (self.chain.voids, self.chain.refused);
        (report.told, report.cuts) = (self.wires.told(), self.wires.cuts);
        report.trace = self.trace.digest();
        Ok(report.clone())
    }

    fn height(&self) -> u64 {
        self.chain.height()
    }
}

impl MarketWorld {
    fn new(seed: u64, options: MarketOptions, wires: Wires) -> MarketWorld {
        let mut dice = Dice::new(seed ^ 0x3a_4e);
        let kind = Villainy::ALL[(seed / 2 % 5) as usize];
        let from = 12 + dice.below(options.blocks.max(24) / 2);
        let conditions = Conditions {
            villainy: (seed % 2 == 1).then_some((kind, from)),
            censors: seed % 8 == 2 && options.mistake.is_none(),
        };
        let control = control_of(seed);
        let has_lists = seed % 4 >= 2 && options.mistake.is_none();
        let report = MarketReport { seed, hostile: seed % 2, ..MarketReport::default() };
        MarketWorld {
            options,
            conditions,
            dice,
            chain: Chain::new(options.mistake.and_then(Mistake::of_market), control, has_lists),
            hosts: Vec::new(),
            traders: Traders::new(has_lists.then(|| Dice::new(!seed ^ 0x11_57))),
            evidence: Evidence::default(),
            wires,
            journaled: Journaled::default(),
            forced: Vec::new(),
            issuer: (control != AssetControl::Open).then(|| Dice::new(!seed ^ 0x15_5e)),
            has_cheated: false,
            excused_voids: 0,
            fenced_at: 0,
            healed: false,
            trace: Trace::default(),
            report,
        }
    }

    fn moment(&self) -> Moment {
        Moment {
            network: self.chain.network(),
            incarnation: self.chain.oracle.incarnation,
            height: self.chain.height(),
            time_ms: self.chain.time_ms,
        }
    }

    /// Something happens.
    fn act(&mut self) -> Result<(), String> {
        let at = self.dice.index(self.hosts.len());
        let now_ms = self.chain.time_ms;
        match self.dice.below(48) {
            0..=25 => {
                let inputs = self.traders.inputs(self.moment(), &mut self.chain.oracle, &mut self.dice);
                self.tell(at, &inputs)
            }
            26..=41 => self.block(),
            42 => {
                let surviving = Surviving::drawn(&mut self.dice);
                self.hosts[at].crash(now_ms, surviving, &mut self.dice)?;
                self.collect(at)
            }
            43 => {
                let points = self.hosts[at].disk.points() + self.dice.below(12);
                let fault = if self.dice.once_in(2) { DiskFault::Error } else { DiskFault::Half };
                self.hosts[at].disk.inject(points, fault);
                Ok(())
            }
            44 => self.hosts[at].snapshot(now_ms, &mut self.dice),
            45 => self.hosts[at].restart(now_ms, &mut self.dice),
            _ => {
                let input = self.steer();
                self.tell(at, &[input])
            }
        }
    }

    /// What the operator does.
    fn steer(&mut self) -> VenueInput {
        let dice = &mut self.dice;
        let uncross = Steering::Uncross { reference: 95 + dice.below(11) as u32, then_halts: dice.once_in(4) };
        let collar = Steering::SetCollar { low: 94 + dice.below(4) as u32, high: 105 };
        let all = [Steering::Halt, Steering::Call, collar, uncross, uncross, Steering::Resume, Steering::Resume];
        let person = TRADERS[dice.index(TRADERS.len())];
        match dice.below(10) {
            0 => VenueInput::Kill(people::address(person)),
            1..=2 => VenueInput::Revive(people::address(person)),
            3 => VenueInput::Tick,
            _ => VenueInput::Steer(MARKET, all[dice.index(all.len())]),
        }
    }

    /// A step of a root.
    fn tell(&mut self, at: usize, inputs: &[VenueInput]) -> Result<(), String> {
        let now_ms = self.chain.time_ms;
        self.hosts[at].give(now_ms, inputs, &mut self.dice)?;
        self.collect(at)
    }

    /// What a root passed on: reports to traders, settles to the pools.
    fn collect(&mut self, at: usize) -> Result<(), String> {
        let host = &mut self.hosts[at];
        let reports: Vec<VenueReport> = host.reports.drain(..).collect();
        let settles = std::mem::take(&mut host.settles);
        self.report.refused += std::mem::take(&mut host.refused);
        self.report.reports += reports.len() as u64;
        for report in &reports {
            self.trace.note("report", report.fill().index);
            self.trace.bytes(&report.fill().leaf.0);
        }
        self.evidence.keep(&reports);
        self.submit(settles);
        Ok(())
    }

    /// Certified blocks reach a root, but for the last few.
    fn certify(&mut self, lag: u64) -> Result<(), String> {
        let mistake = self.options.mistake.and_then(Mistake::of_market);
        for at in 0..self.hosts.len() {
            let height = self.chain.height() - lag;
            let known = self.hosts[at].root.height();
            let mut inputs: Vec<VenueInput> =
                self.chain.facts_for(known, height).into_iter().map(VenueInput::Certified).collect();
            if let Some(mistake) = mistake.filter(|_| known.is_some()) {
                inputs.iter_mut().for_each(|input| leave_out(mistake, input));
            }
            if !inputs.is_empty() {
                self.tell(at, &inputs)?;
            }
        }
        Ok(())
    }

    /// A block, with the settles that its proposers choose.
    fn block(&mut self) -> Result<(), String> {
        let is_urgent = self.is_urgent()?;
        self.change_keys(is_urgent)?;
        if is_urgent {
            self.certify(0)?;
        }
        self.cheat()?;
        let mut settles = self.propose(is_urgent);
        if let Some(dice) = self.issuer.as_mut().filter(|_| !self.healed) {
            settles.extend(issuer::acts(&self.chain, dice));
        }
        let operations = if self.healed { Vec::new() } else { self.operations() };
        let passes = if self.dice.once_in(12) { BLOCK_MS / 4 } else { BLOCK_MS };
        self.chain.block(operations, settles, passes)?;
        self.trace.note("block", self.chain.height());
        self.trace.bytes(&self.chain.last_block().0);
        self.check_fates()?;
        self.accuse()?;
        let lag = if is_urgent || self.healed { 0 } else { self.dice.below(3) };
        self.certify(lag)?;
        self.attach_new_keys()?;
        self.begin_again_if_over()
    }

    fn attach_new_keys(&mut self) -> Result<(), String> {
        if self.hosts.first().is_some_and(|host| host.attach != self.traders.attach()) { self.attach() } else { Ok(()) }
    }

    /// Whether the oldest fill has waited for half of D: correct proposers have had its settle for long enough.
    fn is_urgent(&self) -> Result<bool, String> {
        if self.conditions.censors && !self.healed {
            return Ok(false);
        }
        let mut is_urgent = self.healed;
        for host in &self.hosts {
            let (_, settled) = host.root.counts();
            let oldest = host.fills(settled)?.first().map(|fill| fill.matched);
            is_urgent |= oldest.is_some_and(|oldest| self.chain.height() + 1 - oldest >= DELAY.heights / 2);
        }
        Ok(is_urgent)
    }

    /// After a fence the next incarnation begins; whoever has reports of fills that are not settled claims them.
    fn begin_again_if_over(&mut self) -> Result<(), String> {
        let incarnation = self.chain.oracle.incarnation;
        if self.hosts[0].root.settings().incarnation == incarnation {
            return Ok(());
        }
        self.certify(0)?;
        if self.hosts.iter().any(|host| host.root.stopped().is_none()) {
            return Err("a root goes on although its incarnation has ended".into());
        }
        self.report.fences += 1;
        self.fenced_at = self.chain.height();
        let hosts = std::mem::take(&mut self.hosts);
        self.report.restarts += hosts.iter().map(|host| host.restarts).sum::<u64>();
        let (fills, fates) = (hosts[0].fills(0)?, hosts[0].fates().clone());
        self.journaled.note(hosts[0].root.settings().incarnation, fills, fates);
        self.claim_unsettled(&hosts)?;
        self.begin()
    }

    /// What must hold after a step.
    fn check(&mut self) -> Result<(), String> {
        if self.traders.passed > 0 {
            return Err("a forged order passed a gateway".into());
        }
        let lies = self.evidence.first(&self.chain.oracle).is_some();
        if lies && !self.has_cheated {
            return Err("an honest venue contradicts itself".into());
        }
        let stopped = self.hosts.iter().find_map(|host| host.root.stopped());
        let is_honest_end = stopped.is_none_or(|why| why == VenueStop::Fenced);
        if is_honest_end || self.has_cheated { Ok(()) } else { Err(format!("an honest root has stopped: {stopped:?}")) }
    }

    /// Fates of an honest venue's fills, as the ledger judged them.
    fn check_fates(&mut self) -> Result<(), String> {
        let (applied, busts) = self.chain.take_verdicts();
        self.report.settled += applied;
        self.report.busts += busts.len() as u64;
        let is_excused = self.has_cheated || self.conditions.censors;
        if self.chain.voids > self.excused_voids && !is_excused {
            return Err("a settle of an honest venue is void".into());
        }
        self.excused_voids = self.chain.voids;
        match busts.first().filter(|_| !is_excused) {
            Some(reason) => Err(format!("a fill of an honest venue is bust: {reason:?}")),
            None => Ok(()),
        }
    }

    /// The faults stop; what was executed gets its fate, and traders take out what they have.
    fn heal(&mut self) -> Result<(), String> {
        self.healed = true;
        for _ in 0..4 * DELAY.heights {
            self.block()?;
            if self.hosts.iter().all(|host| host.root.counts().0 == host.root.counts().1) && !self.has_cheated {
                break;
            }
        }
        self.check_all_told()?;
        self.check_sessions()?;
        let digest = self.hosts[0].root.digest();
        self.trace.bytes(&digest.0);
        let now_ms = self.chain.time_ms;
        self.hosts[0].restart(now_ms, &mut self.dice)?;
        self.report.restarts += self.hosts.iter().map(|host| host.restarts).sum::<u64>();
        // Twice: what was leaving already had its own request.
        for _ in 0..2 {
            self.chain.block(traders::collections(&self.chain.ledger), Vec::new(), BLOCK_MS)?;
            for _ in 0..DELAY.heights {
                self.chain.block(Vec::new(), Vec::new(), BLOCK_MS)?;
            }
        }
        match traders::collections(&self.chain.ledger).is_empty() {
            true => Ok(()),
            false => Err("a trader cannot take out its deposit".into()),
        }
    }
}

/// A host that tells a root not all that blocks say.
fn leave_out(mistake: MarketMistake, input: &mut VenueInput) {
    let is_lost = |fact: &VenueFact| match mistake {
        MarketMistake::FactsLeftOut => matches!(fact, VenueFact::Deposit { .. }),
        MarketMistake::FreezesLeftOut => matches!(fact, VenueFact::Holder { .. }),
        _ => false,
    };
    if let VenueInput::Certified(CertifiedFacts { facts, .. }) = input {
        facts.retain(|fact| !is_lost(fact));
    }
}
