//! The shards of the payment lane that a validator runs alongside consensus: the shell of a [`LaneMember`].
//!
//! ```text
//! publisher ─► facts of blocks ─► host: member.step ─► LaneShard of home h, h−1, h−2 … (each with its log and socket)
//!                                  ▲  │
//!          votes, views, barred ───┘  └─► posts ─► pool, under the next free number of the account
//! ```
//!
//! The host is one thread. What it does follows from the steps of [`member`]; `room.rs` has the disk, the sockets and
//! the keys. A shard that runs apart has its own ([`super::process`]), and hears of everything over a connection.
//!
//! *Passing errors.* A full disk or an occupied port ends nothing for good. A shard that cannot start is tried again,
//! with growing delays; one that cannot listen retries by itself ([`LaneShard::awaits_address`]). The log names each
//! error with its remedy, and `lane_shards_unreachable` counts the shards. A report of a shard that finds the host's
//! queue full is dropped: the member asks for it again some blocks later.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use lane::LaneShard;
use ledger::{LaneBridge, Ledger};
use member::apart::ShardOrder;
use member::{KeyWork, LaneMember, LanePost, MemberEffect, MemberInput, MemberSettings, ShardStart, ShardTerm};
use payments::{HomeEpoch, LaneEffect, ShardOffer};
use primitives::{Height, Operation, PublicKey, SecretKey};

use super::apart::ShardApart;
use super::keys;
use super::line::{LineEvent, dial};
use super::room::ShardRoom;
use super::seat::{LaneKeys, LaneSeat, LaneStartError, check};
use super::shown::{self, ShownShards};
use crate::shared::{LaneHeard, Shared, clock_ms};

/// Maximum number of facts of blocks and reports of shards that wait for the host.
const HOST_QUEUE: usize = 1_024;
/// How often the host checks whether blocks have been certified, and whether the node stops.
const LOOK: Duration = Duration::from_millis(20);

/// See the module text.
pub(crate) struct LaneHost {
    shared: Arc<Shared>,
    seat: LaneSeat,
    room: ShardRoom,
    told: SyncSender<LaneHeard>,
    heard: Receiver<LaneHeard>,
    member: LaneMember,
    shards: BTreeMap<(HomeEpoch, u16), LaneShard>,
    /// The shards that run in processes of their own.
    apart: BTreeMap<u16, ShardApart>,
    /// What follows from orders to them, and is given to the member after the present effects.
    later: Vec<MemberInput>,
    /// What the operator is shown of them.
    shown: ShownShards,
}

impl LaneHost {
    /// Prepares the epochs to come, and starts the shards if the recovered state is certified; otherwise they start
    /// once it is.
    pub(crate) fn start(shared: &Arc<Shared>, seat: LaneSeat, data: &Path) -> Result<LaneHost, LaneStartError> {
        let (told, heard) = sync_channel(HOST_QUEUE);
        check(&seat, shared.read_ledger().lane().ok_or(LaneStartError::NoLane)?)?;
        shared.lane_facts.set(told.clone()).map_err(|_| LaneStartError::Running)?;
        let (shared, room) = (shared.clone(), ShardRoom::of_seat(&seat, data));
        let settings = MemberSettings {
            index: seat.index,
            shards: seat.registers,
            has_registrar: matches!(seat.keys, LaneKeys::Registrar(_)),
            account: seat.account.public().address(),
            recovered: shared.recovered,
            mistake: Default::default(),
        };
        let (member, first) = LaneMember::new(settings, &shared.read_ledger(), keys::homes(&room.directory));
        let member = member.with_apart(seat.apart.keys().copied());
        let apart = seat.apart.keys().map(|shard| (*shard, ShardApart::new(*shard))).collect();
        let mut host = LaneHost {
            shared,
            seat,
            room,
            told,
            heard,
            member,
            shards: BTreeMap::new(),
            apart,
            later: Vec::new(),
            shown: ShownShards::default(),
        };
        for effect in first {
            if let MemberEffect::Prepare { home, makes_keys } = effect {
                host.prepare(home, makes_keys)?;
                host.step(MemberInput::Prepared(home, true));
            }
        }
        host.dial_all()?;
        host.step(MemberInput::Certified(host.certified()));
        Ok(host)
    }

    /// Dials the shards that run apart. Until they are back they are told nothing.
    fn dial_all(&self) -> Result<(), LaneStartError> {
        let LaneKeys::Registrar(own) = self.seat.keys.clone() else { return Ok(()) };
        for (shard, seat) in self.seat.apart.clone() {
            let (told, wanted, own) = (self.told.clone(), self.shared.clone(), own.clone());
            let run = move || {
                let tell = |event| told.send(LaneHeard::Line(shard, event)).is_ok();
                dial(&seat.address, (&own, seat.key), tell, || wanted.is_ready());
            };
            let dialling = std::thread::Builder::new().name(format!("shard-{shard}")).spawn(run);
            dialling.map_err(|error| LaneStartError::Thread(error.to_string()))?;
        }
        Ok(())
    }

    /// Runs until the node stops.
    pub(crate) fn run(mut self) {
        let mut certified = self.certified();
        while self.shared.is_ready() {
            match self.heard.recv_timeout(LOOK) {
                Ok(LaneHeard::Block(block)) => self.step(MemberInput::Applied(block)),
                Ok(LaneHeard::Reported(home, shard, effect)) => self.step(MemberInput::Reported(home, shard, effect)),
                Ok(LaneHeard::Line(shard, event)) => self.on_line(shard, event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.certified() > certified {
                certified = self.certified();
                self.step(MemberInput::Certified(certified));
            }
            self.count_unreachable();
            self.show_shards(certified);
        }
    }

    /// Something happened on a connection to a shard that runs apart.
    fn on_line(&mut self, shard: u16, event: LineEvent) {
        let inputs = self.apart.get_mut(&shard).map(|apart| apart.on_line(event)).unwrap_or_default();
        inputs.into_iter().for_each(|input| self.step(input));
    }

    /// The height up to which blocks are certified; in a solo node every durable block is.
    fn certified(&self) -> Height {
        match self.shared.seat.certificates.get() {
            Some(_) => self.shared.seat.certified.load(Ordering::Acquire),
            None => Height::MAX,
        }
    }

    fn count_unreachable(&self) {
        let deaf = self.shards.values().filter(|shard| shard.awaits_address()).count();
        let silent = self.apart.values().filter(|apart| !apart.is_met()).count();
        self.shared.metrics.lane_shards_unreachable.set((self.member.late().max(silent) + deaf) as i64);
    }

    /// Shows how each shard stands, once a second.
    fn show_shards(&mut self, certified: Height) {
        if !self.shown.is_due() {
            return;
        }
        // In a solo node every durable block is certified.
        let told = certified.min(self.shared.read_ledger().height());
        let mut all: BTreeSet<u16> = (0..self.seat.registers).chain(self.apart.keys().copied()).collect();
        all.extend(self.shards.keys().map(|(_, shard)| *shard));
        for shard in all {
            let figures = match self.apart.get(&shard) {
                Some(apart) => shown::apart(apart.is_met(), apart.figures()),
                None => shown::here(self.shards.iter().filter(|((_, of), _)| *of == shard).map(|(at, of)| (at.0, of))),
            };
            self.shared.metrics.set_lane_shard(shard, self.shown.standing(clock_ms(), (shard, figures), told));
        }
    }

    /// Gives the member an input, and performs what follows from it.
    fn step(&mut self, input: MemberInput) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let effects = self.member.step(&self.shared.read_ledger(), input);
            inputs.extend(effects.into_iter().flat_map(|effect| self.perform(effect)).collect::<Vec<_>>());
            inputs.extend(self.later.drain(..));
        }
    }

    /// Performs an effect; returns its results.
    fn perform(&mut self, effect: MemberEffect) -> Vec<MemberInput> {
        match effect {
            MemberEffect::Prepare { home, makes_keys } => self.try_to_prepare(home, makes_keys),
            MemberEffect::Start { home, shard, term } => self.start_shard(home, shard, *term),
            MemberEffect::Tell(home, shard, fact) => {
                self.shards.get(&(home, shard)).into_iter().for_each(|shard| shard.tell(fact.clone()));
                self.order(shard, &ShardOrder::Tell(home, fact))
            }
            MemberEffect::StopListening(home) => {
                let of_home = self.shards.range_mut((home, 0)..=(home, u16::MAX));
                of_home.for_each(|(_, shard)| shard.stop_listening());
                self.order_all(&ShardOrder::StopListening(home))
            }
            MemberEffect::Stop(home, shard) => {
                self.shards.remove(&(home, shard));
                self.order(shard, &ShardOrder::Stop(home))
            }
            MemberEffect::Remove(home) => {
                let removed = self.room.remove(home, |shard| !self.apart.contains_key(&shard));
                self.apart.values_mut().for_each(|apart| apart.forget(home));
                self.with_result(MemberInput::Removed(home, removed), &ShardOrder::Remove(home))
            }
            MemberEffect::Forget(home) => {
                let forgotten = self.room.forget(home, |shard| !self.apart.contains_key(&shard));
                self.with_result(MemberInput::Forgotten(home, forgotten), &ShardOrder::Forget(home))
            }
            MemberEffect::Keep(shard, newest, homes) => self.greet(shard, newest, homes),
            MemberEffect::Work(work) => {
                let posts = self.work(&work);
                vec![MemberInput::Worked(work, posts)]
            }
            MemberEffect::Post(post) => vec![MemberInput::Posted(post.key, self.post(*post))],
        }
    }

    /// The result of work here, and what follows from the order to shards that run apart.
    fn with_result(&mut self, result: MemberInput, order: &ShardOrder) -> Vec<MemberInput> {
        [result].into_iter().chain(self.order_all(order)).collect()
    }

    fn try_to_prepare(&mut self, home: HomeEpoch, makes_keys: bool) -> Vec<MemberInput> {
        let made = self.prepare(home, makes_keys);
        if let Err(error) = &made {
            tracing::error!(
                %error, home,
                "cannot create logs and keys of the next lane epoch; trying again with each block. Fix the error \
                 before that epoch begins: without them this validator signs nothing in it"
            );
        }
        let asked = self.ask_apart(home);
        [MemberInput::Prepared(home, made.is_ok())].into_iter().chain(asked).collect()
    }

    /// Makes the logs of a home, and its keys, unless they exist.
    fn prepare(&self, home: HomeEpoch, makes_keys: bool) -> Result<(), LaneStartError> {
        let network = lane(&self.shared.read_ledger()).network();
        let own = || (0..self.seat.registers).filter(|shard| !self.apart.contains_key(shard));
        own().try_for_each(|shard| self.room.make_log(network, home, shard))?;
        let keys = own().filter(|_| makes_keys);
        keys.into_iter().try_for_each(|shard| self.room.make_key(home, shard).map(drop))
    }

    /// Has the shards that run apart prepare a home, and offer their keys. They are asked again when they are back. One
    /// that is drained has no part in homes to come.
    fn ask_apart(&mut self, home: HomeEpoch) -> Vec<MemberInput> {
        let order = self.preparation(home);
        let registered = self.apart.range_mut(..self.seat.registers);
        registered.flat_map(|(_, apart)| apart.order(&order)).collect()
    }

    /// A shard is back: it prepares what lies ahead. In a node that had no block when it started no shard has ever
    /// signed, so that the first epoch lies ahead, too.
    fn greet(&mut self, shard: u16, newest: HomeEpoch, homes: BTreeSet<HomeEpoch>) -> Vec<MemberInput> {
        let first = (self.shared.recovered == 0).then_some(0);
        let ahead = first.into_iter().chain([newest + 1]).filter(|_| shard < self.seat.registers);
        let ahead: Vec<ShardOrder> = ahead.map(|home| self.preparation(home)).collect();
        let orders = ahead.into_iter().chain([ShardOrder::Keep(newest, homes)]);
        orders.flat_map(|order| self.order(shard, &order)).collect()
    }

    fn preparation(&self, home: HomeEpoch) -> ShardOrder {
        let ledger = self.shared.read_ledger();
        ShardOrder::Prepare { home, network: lane(&ledger).network(), bls: lane(&ledger).terms().bls }
    }

    fn order_all(&mut self, order: &ShardOrder) -> Vec<MemberInput> {
        self.apart.values_mut().flat_map(|apart| apart.order(order)).collect()
    }

    fn order(&mut self, shard: u16, order: &ShardOrder) -> Vec<MemberInput> {
        self.apart.get_mut(&shard).map(|apart| apart.order(order)).unwrap_or_default()
    }

    /// Starts a shard here, or has it started apart: it is told the facts of its term in order.
    fn start_shard(&mut self, home: HomeEpoch, shard: u16, term: ShardTerm) -> Vec<MemberInput> {
        if self.apart.contains_key(&shard) {
            let underway = MemberInput::Started(home, shard, ShardStart::Underway);
            let ordered: Vec<MemberInput> =
                ShardOrder::starting(term).iter().flat_map(|order| self.order(shard, order)).collect();
            return [underway].into_iter().chain(ordered).collect();
        }
        let (start, started) = self.room.start(home, shard, &term, self.reporter(home, shard));
        self.shards.extend(started.map(|started| ((home, shard), started)));
        vec![MemberInput::Started(home, shard, start)]
    }

    /// Passes reports of a shard to the host.
    fn reporter(&self, home: HomeEpoch, shard: u16) -> Box<dyn FnMut(LaneEffect) + Send> {
        let told = self.told.clone();
        Box::new(move |effect| match told.try_send(LaneHeard::Reported(home, shard, effect)) {
            Err(TrySendError::Full(_)) => tracing::warn!(
                home,
                shard,
                "the queue of the lane's host is full: the shard is asked again after some blocks"
            ),
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
        })
    }

    /// Makes posts with the keys of an epoch; `None` if they are missing.
    fn work(&mut self, work: &KeyWork) -> Option<Vec<payments::BridgeOperation>> {
        let registrar = match &self.seat.keys {
            LaneKeys::Registrar(key) => Some((**key).clone()),
            LaneKeys::Fixed(_) => None,
        };
        let made = match registrar.as_ref().filter(|_| !self.apart.is_empty()) {
            Some(registrar) => self.register_with_apart(work, registrar),
            None => self.keys_of(work.epoch()).map(|keys| keys.map(|keys| work.perform(&keys, registrar.as_ref()))),
        };
        made.unwrap_or_else(|error| {
            let epoch = work.epoch();
            tracing::error!(%error, epoch, "cannot read the keys of the next lane epoch; trying again next block");
            None
        })
    }

    /// The keys of all shards in an epoch; `None` if one is missing.
    fn keys_of(&self, epoch: HomeEpoch) -> Result<Option<Vec<SecretKey>>, LaneStartError> {
        (0..self.seat.registers).map(|shard| self.room.key(epoch, shard)).collect()
    }

    /// The registration of an epoch, once all shards have offered their keys.
    fn register_with_apart(
        &mut self,
        work: &KeyWork,
        registrar: &SecretKey,
    ) -> Result<Option<Vec<payments::BridgeOperation>>, LaneStartError> {
        let offers = (0..self.seat.registers).map(|shard| self.offer(work, shard, &registrar.public()));
        let offers = offers.collect::<Result<Option<Vec<ShardOffer>>, LaneStartError>>()?;
        Ok(offers.map(|offers| vec![work.register(&offers, registrar)]))
    }

    /// What a shard offers for an epoch. If one that runs apart is silent for too long, a key that nobody has takes the
    /// place of its own.
    fn offer(
        &mut self,
        work: &KeyWork,
        shard: u16,
        registrar: &PublicKey,
    ) -> Result<Option<ShardOffer>, LaneStartError> {
        let Some(apart) = self.apart.get_mut(&shard) else {
            return Ok(self.room.key(work.epoch(), shard)?.and_then(|key| work.offer(shard, &key, registrar)));
        };
        if let Some(offer) = apart.offer(work.epoch()) {
            return Ok(Some(offer));
        }
        if work.is_urgent() {
            tracing::error!(
                shard,
                epoch = work.epoch(),
                "a shard that runs apart has offered no key: it will sign nothing in the next lane epoch. See why it \
                 is not connected"
            );
            let seed = keys::random::<32>().map_err(|error| self.room.unusable(error))?;
            apart.stand_in(work.epoch(), work.offer(shard, &SecretKey::from_seed(*seed), registrar));
            return Ok(apart.offer(work.epoch()));
        }
        // Its disk may have failed when it was asked first.
        if apart.is_met() {
            let again = self.preparation(work.epoch());
            let follows = self.order(shard, &again);
            self.later.extend(follows);
        }
        Ok(None)
    }

    /// Puts a post into the pool; whether the pool took it.
    fn post(&self, post: LanePost) -> bool {
        let posted = {
            let ledger = self.shared.read_ledger();
            let bytes = lane(&ledger).post_bytes(self.seat.account.public().address(), &post.operation);
            let operation = Operation::Lane(bytes.into());
            let mut pooled = self.shared.pool.lock();
            let now_ms = self.shared.now_ms();
            let posted = pooled.mempool.post(&self.seat.account, operation, post.until, &ledger, now_ms);
            self.shared.note_pool(&pooled);
            posted
        };
        self.shared.pool.wake();
        if let Err(why) = posted {
            let (what, account) = (post.operation.name(), self.seat.account.public().address());
            tracing::warn!(?why, what, %account, "a post about the lane is not accepted; trying again next block");
        }
        posted.is_ok()
    }
}

fn lane(ledger: &Ledger) -> &LaneBridge {
    ledger.lane().expect("the chain has a lane")
}
