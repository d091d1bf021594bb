//! The state machine of a member; see the crate's text.

mod cases;
mod owing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use ledger::{LaneBridge, Ledger};
use payments::{
    BridgeEvent, BridgeOperation, CommitteeLife, HomeEpoch, LOG_EPOCHS, LaneEffect, LaneFact, LaneInput, OutputId,
    SPEND_EPOCHS,
};
use primitives::{Digest, Height};

use crate::apart::{Reporter, is_genuine};
use crate::homes::HomeShards;
use crate::interface::shares_address;
use crate::posts::Posts;
use crate::witness::LaneWitness;
use crate::{LaneBlock, MemberEffect, MemberInput, MemberMistake, MemberSettings, ShardStart, ShardTerm};
use cases::OpenCase;
pub use owing::ASK_BLOCKS;

/// A payment that the ledger has confirmed by a height, and that shards of a home bar.
struct ConfirmedBar {
    height: Height,
    home: HomeEpoch,
    payment: Digest,
}

/// A state machine; see the crate's text.
pub struct LaneMember {
    settings: MemberSettings,
    homes: BTreeMap<HomeEpoch, HomeShards>,
    /// The shards that run apart from the node, and those of them that cannot be told anything now.
    apart: BTreeSet<u16>,
    away: BTreeSet<u16>,
    /// The lane epoch that shards were told.
    now: HomeEpoch,
    /// The last epoch whose logs and keys exist.
    prepared: HomeEpoch,
    /// The epoch whose logs and keys are being made.
    preparing: Option<HomeEpoch>,
    /// Blocks up to this height have certificates.
    certified: Height,
    /// The height of the last applied block.
    applied: Height,
    /// Blocks that have no certificate yet.
    waiting: VecDeque<LaneBlock>,
    /// The recovered state and its height, until that is certified.
    recovered: Option<(Height, LaneBridge)>,
    /// Cases that certified blocks opened: a home that begins later is told of them, too.
    cases: BTreeMap<OutputId, OpenCase>,
    /// Whether the lane is halted, by certified height.
    is_halted: bool,
    /// Told to their shards once certified.
    confirmed: Vec<ConfirmedBar>,
    /// Homes whose keys are to be removed, and those of which only logs are left.
    removing: BTreeSet<HomeEpoch>,
    logged: BTreeSet<HomeEpoch>,
    posts: Posts,
    witness: LaneWitness,
    /// The last epoch of whose key generation it has checked its shares since its start.
    looked: HomeEpoch,
    effects: Vec<MemberEffect>,
}

fn lane(ledger: &Ledger) -> &LaneBridge {
    ledger.lane().expect("the chain has a lane")
}

impl LaneMember {
    /// A member that starts with the recovered state of a chain with a lane. `stored` are the homes of which the disk
    /// has logs or keys. The first effects prepare what must be durable before the node takes part.
    pub fn new(
        settings: MemberSettings,
        ledger: &Ledger,
        stored: impl IntoIterator<Item = HomeEpoch>,
    ) -> (LaneMember, Vec<MemberEffect>) {
        let mut member = LaneMember {
            settings,
            homes: BTreeMap::new(),
            apart: BTreeSet::new(),
            away: BTreeSet::new(),
            now: 0,
            prepared: 0,
            preparing: None,
            certified: 0,
            applied: ledger.height(),
            waiting: VecDeque::new(),
            recovered: Some((ledger.height(), lane(ledger).clone())),
            cases: BTreeMap::new(),
            is_halted: false,
            confirmed: Vec::new(),
            removing: BTreeSet::new(),
            logged: BTreeSet::new(),
            posts: Posts::default(),
            witness: LaneWitness::new(),
            looked: 0,
            effects: Vec::new(),
        };
        member.prepare_first(ledger);
        let ended = stored.into_iter().filter(|home| !is_alive(lane(ledger), *home));
        member.removing = ended.collect();
        let effects = std::mem::take(&mut member.effects);
        (member, effects)
    }

    /// The same member, of which these shards run apart from the node: they are away until they are back.
    pub fn with_apart(mut self, shards: impl IntoIterator<Item = u16>) -> LaneMember {
        self.apart = shards.into_iter().collect();
        self.away.clone_from(&self.apart);
        self
    }

    /// Takes an input; returns what the shell does. `ledger` is the newest applied state: it may be ahead of certified
    /// blocks.
    pub fn step(&mut self, ledger: &Ledger, input: MemberInput) -> Vec<MemberEffect> {
        match input {
            MemberInput::Applied(block) => self.on_applied(block),
            MemberInput::Certified(height) => self.certified = self.certified.max(height),
            MemberInput::Reported(home, shard, effect) => self.on_report(home, shard, effect, &lane(ledger).network()),
            MemberInput::Prepared(home, is_durable) => self.on_prepared(home, is_durable, ledger),
            MemberInput::Started(home, shard, start) => self.on_started(home, shard, start, ledger),
            MemberInput::Removed(home, removed) => self.on_removed(home, removed),
            MemberInput::Forgotten(home, true) => drop(self.logged.remove(&home)),
            MemberInput::Forgotten(_, false) => {}
            MemberInput::Worked(work, posts) => self.on_worked(&work, posts),
            MemberInput::Posted(key, false) => self.posts.refused(&key, ledger.height()),
            MemberInput::Posted(_, true) => {}
            MemberInput::Away(shard) => self.on_away(shard),
            MemberInput::Back(shard) => self.on_back(shard),
        }
        self.advance(ledger);
        std::mem::take(&mut self.effects)
    }

    /// Number of shards that wait for another try to start.
    pub fn late(&self) -> usize {
        self.homes.values().map(HomeShards::late).sum()
    }

    fn has(&self, mistake: MemberMistake) -> bool {
        self.settings.mistake.is(mistake)
    }

    /// Prepares epochs that have not begun.
    fn prepare_first(&mut self, ledger: &Ledger) {
        let epoch = lane(ledger).bridge().clock().epoch();
        let makes_again = self.has(MemberMistake::LogMadeAgain);
        // A node that had no block when it started has never started a shard, whatever it has applied since.
        let first = if self.settings.recovered == 0 || makes_again { 0 } else { epoch + 1 };
        (first..=epoch + 1).for_each(|home| self.prepare(home, home == epoch + 1));
    }

    fn prepare(&mut self, home: HomeEpoch, makes_keys: bool) {
        let makes_keys = makes_keys && self.settings.has_registrar;
        self.effects.push(MemberEffect::Prepare { home, makes_keys });
    }

    fn on_prepared(&mut self, home: HomeEpoch, is_durable: bool, ledger: &Ledger) {
        self.preparing = None;
        if is_durable || self.has(MemberMistake::PreparationGivenUp) {
            self.prepared = self.prepared.max(home);
        }
        if self.recovered.is_none() {
            self.register(lane(ledger));
        }
    }

    fn on_applied(&mut self, block: LaneBlock) {
        if block.height > self.applied {
            self.applied = block.height;
            self.waiting.push_back(block);
        }
    }

    /// Acts on what is certified by now, and posts what is due.
    fn advance(&mut self, ledger: &Ledger) {
        let certified = self.certified;
        let mut has_passed = false;
        if let Some((_, state)) = self.recovered.take_if(|(height, _)| *height <= certified) {
            self.open_all(&state, ledger);
            has_passed = true;
        }
        while let Some(block) = self.next_block() {
            self.on_block(block, ledger);
            has_passed = true;
        }
        if has_passed {
            self.owe(ledger);
        }
        self.lift_bars();
        self.post(ledger);
    }

    /// The next block that counts for shards.
    fn next_block(&mut self) -> Option<LaneBlock> {
        let is_early = self.has(MemberMistake::EpochBegunEarly);
        let counts = |block: &LaneBlock| block.height <= self.certified || is_early;
        // What a shard is told begins where its term ends.
        let is_ready = !self.homes.values().any(HomeShards::is_starting) || self.has(MemberMistake::FactsDuringStart);
        let may = self.recovered.is_none() && is_ready && self.waiting.front().is_some_and(counts);
        if may { self.waiting.pop_front() } else { None }
    }

    /// Starts the shards of all homes that still sign or are needed.
    fn open_all(&mut self, state: &LaneBridge, ledger: &Ledger) {
        let bridge = state.bridge();
        self.now = bridge.clock().epoch();
        self.is_halted = bridge.clock().is_halted();
        let cases = bridge.resolver().cases();
        self.cases = cases.map(|(of, bodies)| (of.output.id, OpenCase::new(*of, bodies, ledger.height()))).collect();
        let alive: BTreeSet<HomeEpoch> = (bridge.oldest()..=self.now).filter(|home| is_alive(state, *home)).collect();
        let keep = |shard: &u16| MemberEffect::Keep(*shard, self.now, alive.clone());
        self.effects.extend(self.apart.difference(&self.away).map(keep));
        for home in alive {
            let backed = bridge.backed(home).map(|(id, output)| (*id, *output)).collect();
            let proven = bridge.proven(home).map(|(id, output)| (*id, *output)).collect();
            self.open(home, ShardTerm::of(state, home, self.now, [backed, proven]).expect("its epoch counts"));
        }
        self.removing.iter().for_each(|home| self.effects.push(MemberEffect::Remove(*home)));
    }

    /// The number of shards of a member in a home is a fact of that epoch.
    fn open(&mut self, home: HomeEpoch, term: ShardTerm) {
        let registered = term.committee.keys_of(self.settings.index).len() as u16;
        let shards = if registered == 0 { self.settings.shards } else { registered };
        let mut of = HomeShards::new(term, shards);
        of.keeps_term = !self.apart.is_empty();
        self.homes.insert(home, of);
        self.start_due(home);
    }

    /// Starts the shards of a home that do not run and are due.
    fn start_due(&mut self, home: HomeEpoch) {
        let Some(of) = self.homes.get_mut(&home) else { return };
        let due = of.begin_due(&self.away);
        let start = |shard| MemberEffect::Start { home, shard, term: Box::new(of.term.clone()) };
        self.effects.extend(due.into_iter().map(start));
    }

    fn on_started(&mut self, home: HomeEpoch, shard: u16, start: ShardStart, ledger: &Ledger) {
        let Some(of) = self.homes.get_mut(&home) else {
            return self.effects.push(MemberEffect::Stop(home, shard));
        };
        match start {
            ShardStart::Failed => of.defer(shard),
            ShardStart::Mute => of.mute(shard),
            ShardStart::Underway => self.on_running(home, shard, ledger),
            // It was told everything when its start began.
            ShardStart::Runs(barred) if of.running.contains(&shard) => self.note_barred(home, barred, ledger),
            ShardStart::Runs(barred) => {
                self.on_running(home, shard, ledger);
                self.note_barred(home, barred, ledger);
            }
        }
    }

    /// A shard takes facts from now on.
    fn on_running(&mut self, home: HomeEpoch, shard: u16, ledger: &Ledger) {
        self.homes.get_mut(&home).into_iter().for_each(|of| of.run(shard));
        // A later home uses its address by now.
        if (home + 1..=self.now).any(|later| shares_address(home, later)) {
            self.effects.push(MemberEffect::StopListening(home));
        }
        self.inform(home, shard, ledger);
    }

    /// A shard that runs apart has forgotten what it was told. Blocks do not wait for it.
    fn on_away(&mut self, shard: u16) {
        self.apart.insert(shard);
        self.away.insert(shard);
        for of in self.homes.values_mut() {
            of.keeps_term = true;
            of.leave(shard);
        }
    }

    /// It starts in each home that lives, as if the member had restarted.
    fn on_back(&mut self, shard: u16) {
        self.away.remove(&shard);
        // Before it knows what is certified, a member starts nothing.
        if self.recovered.is_none() {
            let homes: BTreeSet<HomeEpoch> = self.homes.keys().copied().collect();
            self.effects.push(MemberEffect::Keep(shard, self.now, homes.clone()));
            homes.into_iter().for_each(|home| self.start_due(home));
        }
    }

    /// Tells a shard that has started what certified blocks have said.
    fn inform(&mut self, home: HomeEpoch, shard: u16, ledger: &Ledger) {
        if !self.has(MemberMistake::CasesNotTold) {
            self.tell_cases(home, shard);
        }
        self.tell(home, shard, LaneInput::Halted(self.is_halted));
        let last = lane(ledger).bridge().resolver().signs_through(home);
        last.into_iter().for_each(|last| self.tell(home, shard, LaneInput::SignsThrough(last)));
    }

    /// Notes what the log of a shard that has started bars.
    fn note_barred(&mut self, home: HomeEpoch, barred: BTreeSet<Digest>, ledger: &Ledger) {
        if !self.has(MemberMistake::VerdictNotTold) {
            self.homes.get_mut(&home).into_iter().for_each(|of| of.note_barred(&barred));
            self.note_confirmed(ledger);
        }
    }

    /// Finds barred payments that the ledger confirms: by a verdict while their shards did not run, or by a certificate
    /// that was shown when their cases had expired. The ledger may be ahead of certified blocks: shards are told later.
    fn note_confirmed(&mut self, ledger: &Ledger) {
        let (height, resolver) = (ledger.height(), lane(ledger).bridge().resolver());
        for (home, of) in &mut self.homes {
            let confirmed: Vec<Digest> = of.barred.keys().copied().filter(|of| resolver.confirms(of)).collect();
            of.barred.retain(|payment, _| !confirmed.contains(payment));
            let of_home = |payment| ConfirmedBar { height, home: *home, payment };
            self.confirmed.extend(confirmed.into_iter().map(of_home));
        }
    }

    /// Tells shards of confirmed payments that they bar.
    fn lift_bars(&mut self) {
        let certified = self.certified;
        let confirmed: Vec<ConfirmedBar> = self.confirmed.extract_if(.., |of| of.height <= certified).collect();
        confirmed.into_iter().for_each(|of| self.tell_home(of.home, &LaneInput::Confirmed(of.payment)));
    }

    fn on_block(&mut self, block: LaneBlock, ledger: &Ledger) {
        block.events.into_iter().for_each(|event| self.on_event(event, ledger));
        for accusation in self.witness.see(block.posts, lane(ledger)) {
            self.posts.owe(accusation);
        }
        self.remove_ended(ledger);
        self.try_again();
    }

    /// After each block: removes what is over, and tries again what failed before.
    fn try_again(&mut self) {
        self.removing.iter().for_each(|home| self.effects.push(MemberEffect::Remove(*home)));
        let long_past = self.logged.iter().filter(|home| self.now.saturating_sub(**home) > LOG_EPOCHS);
        self.effects.extend(long_past.map(|home| MemberEffect::Forget(*home)));
        let late: Vec<HomeEpoch> = self.homes.iter().filter(|(_, of)| of.late() > 0).map(|(home, _)| *home).collect();
        for home in late {
            self.homes.get_mut(&home).into_iter().for_each(HomeShards::pass_block);
            self.start_due(home);
        }
    }

    /// Prepares the next epoch, if that is still to be done.
    fn prepare_next(&mut self) {
        let next = self.now + 1;
        if self.prepared < next && self.preparing != Some(next) {
            self.preparing = Some(next);
            self.prepare(next, true);
        }
    }

    fn on_event(&mut self, event: BridgeEvent, ledger: &Ledger) {
        match event {
            BridgeEvent::Backed(id, output) => self.tell_home(self.now, &LaneInput::Backed(id, output)),
            BridgeEvent::Proven(home, id, output) => self.tell_home(home, &LaneInput::Proven(id, output)),
            BridgeEvent::Epoch(epoch) => self.begin(epoch, ledger),
            BridgeEvent::Halted(halted) => {
                self.is_halted = halted;
                self.tell_all(&LaneInput::Halted(halted));
            }
            BridgeEvent::Case(event) => self.on_case(event, ledger.height()),
            BridgeEvent::Convicted(member) => {
                tracing::error!(member, "a member of the lane signed contradictory statements and is convicted");
            }
            BridgeEvent::GroupKey(epoch, true) => {
                tracing::info!(epoch, "the members have generated a group key for a lane epoch");
            }
            BridgeEvent::GroupKey(epoch, false) => {
                tracing::warn!(
                    epoch,
                    "no group key was generated for a lane epoch: aggregate signatures are used instead"
                );
            }
            BridgeEvent::Uncovered(asset) => {
                tracing::error!(%asset, "claims exceed the escrow of the lane: the lane halts");
            }
            BridgeEvent::Credit { .. }
            | BridgeEvent::ReturnDeposit(..)
            | BridgeEvent::Registered(..)
            | BridgeEvent::KeepDeposit(_) => {}
        }
    }

    /// Begins a lane epoch: starts its shards, and prepares the next.
    fn begin(&mut self, epoch: HomeEpoch, ledger: &Ledger) {
        self.now = epoch;
        self.tell_all(&LaneInput::Epoch(epoch));
        // A home that is over and only waits for a verdict has no clients: this home takes its address.
        let others = self.homes.keys().filter(|home| shares_address(**home, epoch));
        self.effects.extend(others.map(|home| MemberEffect::StopListening(*home)));
        // The ledger may be ahead of certified blocks: outputs that it backs by now are told once they are certified.
        let term = ShardTerm::of(lane(ledger), epoch, epoch, Default::default());
        term.into_iter().for_each(|term| self.open(epoch, term));
        self.prepare_next();
    }

    fn tell(&mut self, home: HomeEpoch, shard: u16, fact: LaneFact) {
        self.effects.push(MemberEffect::Tell(home, shard, fact));
    }

    fn tell_home(&mut self, home: HomeEpoch, fact: &LaneFact) {
        let Some(of) = self.homes.get_mut(&home) else { return };
        of.follow(fact);
        let tell = |shard: &u16| MemberEffect::Tell(home, *shard, fact.clone());
        self.effects.extend(of.running.iter().map(tell));
    }

    fn tell_all(&mut self, fact: &LaneFact) {
        let homes: Vec<HomeEpoch> = self.homes.keys().copied().collect();
        homes.into_iter().for_each(|home| self.tell_home(home, fact));
    }

    /// Stops the shards of homes that no certified fact needs any more. Their keys are to be removed.
    fn remove_ended(&mut self, ledger: &Ledger) {
        let ended: Vec<HomeEpoch> = self.homes.keys().copied().filter(|home| self.is_over(*home, ledger)).collect();
        for home in ended {
            let running = self.homes.remove(&home).map(|of| of.running).unwrap_or_default();
            self.effects.extend(running.into_iter().map(|shard| MemberEffect::Stop(home, shard)));
            self.removing.insert(home);
        }
    }

    /// Whether nobody needs a home any more. The ledger may be ahead of certified blocks, so the cases are those that
    /// shards were told of.
    fn is_over(&self, home: HomeEpoch, ledger: &Ledger) -> bool {
        let is_careless = self.has(MemberMistake::KeysDestroyedEarly);
        let is_concerned = self.cases.values().any(|case| case.concerns(home)) && !is_careless;
        let life = CommitteeLife::of(home);
        let last = lane(ledger).bridge().resolver().signs_through(home).map_or(life.last, |last| last.max(life.last));
        let last = if is_careless { life.last } else { last };
        !CommitteeLife { last, is_concerned }.signs(self.now)
    }

    fn on_removed(&mut self, home: HomeEpoch, removed: bool) {
        if removed || self.has(MemberMistake::KeysKept) {
            self.removing.remove(&home);
            self.logged.insert(home);
        }
    }

    fn on_report(&mut self, home: HomeEpoch, shard: u16, effect: LaneEffect, network: &Digest) {
        if !self.is_believed(home, shard, &effect) {
            return tracing::warn!(home, shard, "a shard reports what is not its own statement: it is not posted");
        }
        match effect {
            LaneEffect::Vote { case, payment, signature, answer } => {
                self.posts.owe(BridgeOperation::Vote { case, payment, signature, answer });
            }
            LaneEffect::Shown(certified) => self.on_shown(home, *certified, network),
            LaneEffect::Barred { case, paid } => self.on_barred(home, shard, case, paid),
            LaneEffect::View { case, paid, answer } => self.on_view(home, case, paid, answer),
            // That a home is over follows from the ledger; the rest is between a shard and its clients.
            _ => {}
        }
    }
}

impl LaneMember {
    /// Whether a report counts: one of a shard that runs apart must be its own statement.
    fn is_believed(&self, home: HomeEpoch, shard: u16, report: &LaneEffect) -> bool {
        let case = match report {
            LaneEffect::Vote { case, .. } | LaneEffect::Barred { case, .. } | LaneEffect::View { case, .. } => {
                Some(case)
            }
            _ => None,
        };
        let contested = case.and_then(|case| self.cases.get(case)).map(|case| &case.contested);
        let reporter = |of: &HomeShards| is_genuine(&self.reporter(shard, of), report, contested);
        !self.apart.contains(&shard) || self.homes.get(&home).is_some_and(reporter)
    }

    fn reporter<'a>(&self, shard: u16, of: &'a HomeShards) -> Reporter<'a> {
        Reporter { member: self.settings.index, shard, term: &of.term }
    }
}

/// Whether a home still signs, is needed for a case, or has not begun.
fn is_alive(lane: &LaneBridge, home: HomeEpoch) -> bool {
    let bridge = lane.bridge();
    home + SPEND_EPOCHS >= bridge.clock().epoch() || bridge.needs(home)
}
