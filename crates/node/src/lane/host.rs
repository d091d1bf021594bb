//! The shards of the payment lane that a validator runs alongside consensus: the shell of a [`LaneMember`].
//!
//! ```text
//! publisher ─► facts of blocks ─► host: member.step ─► LaneShard of home h, h−1, h−2 … (each with its log and socket)
//!                                  ▲  │
//!          votes, views, barred ───┘  └─► posts ─► pool, under the next free number of the account
//! ```
//!
//! The host is one thread. What it does follows from the steps of [`member`]; this file has the disk, the sockets and
//! the keys.
//!
//! *Passing errors.* A full disk or an occupied port ends nothing for good. A shard that cannot start is tried again,
//! with growing delays; one that cannot listen retries by itself ([`LaneShard::awaits_address`]). The log names each
//! error with its remedy, and `lane_shards_unreachable` counts the shards. A report of a shard that finds the host's
//! queue full is dropped: the member asks for it again some blocks later.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use lane::{FileLog, LaneDirectory, LaneShard, LogError, ShardError, ShardLimits, ShardSetup};
use ledger::{LaneBridge, Ledger};
use member::{
    KeyWork, LaneMember, LanePost, MemberEffect, MemberInput, MemberSettings, ShardSecrets, ShardStart, ShardTerm,
};
use payments::{HomeEpoch, LaneEffect, LaneSettings, LogOwner};
use primitives::{Height, Operation, SecretKey};
use store::RealDisk;

use super::keys;
use super::seat::{LaneKeys, LaneSeat, LaneStartError, check, home_address};
use crate::shared::{LaneHeard, Shared};

/// Maximum number of facts of blocks and reports of shards that wait for the host.
const HOST_QUEUE: usize = 1_024;
/// How often the host checks whether blocks have been certified, and whether the node stops.
const LOOK: Duration = Duration::from_millis(20);

/// See the module text.
pub(crate) struct LaneHost {
    shared: Arc<Shared>,
    seat: LaneSeat,
    directory: PathBuf,
    told: SyncSender<LaneHeard>,
    heard: Receiver<LaneHeard>,
    member: LaneMember,
    shards: BTreeMap<(HomeEpoch, u16), LaneShard>,
}

impl LaneHost {
    /// Prepares the epochs to come, and starts the shards if the recovered state is certified; otherwise they start
    /// once it is.
    pub(crate) fn start(shared: &Arc<Shared>, seat: LaneSeat, data: &Path) -> Result<LaneHost, LaneStartError> {
        let (told, heard) = sync_channel(HOST_QUEUE);
        check(&seat, shared.read_ledger().lane().ok_or(LaneStartError::NoLane)?)?;
        shared.lane_facts.set(told.clone()).map_err(|_| LaneStartError::Running)?;
        let (shared, directory) = (shared.clone(), data.join("lane"));
        let settings = MemberSettings {
            index: seat.index,
            shards: seat.shards(),
            has_registrar: matches!(seat.keys, LaneKeys::Registrar(_)),
            account: seat.account.public().address(),
            recovered: shared.recovered,
            mistake: Default::default(),
        };
        let (member, first) = LaneMember::new(settings, &shared.read_ledger(), keys::homes(&directory));
        let mut host = LaneHost { shared, seat, directory, told, heard, member, shards: BTreeMap::new() };
        for effect in first {
            if let MemberEffect::Prepare { home, makes_keys } = effect {
                host.prepare(home, makes_keys)?;
                host.step(MemberInput::Prepared(home, true));
            }
        }
        host.step(MemberInput::Certified(host.certified()));
        Ok(host)
    }

    /// Runs until the node stops.
    pub(crate) fn run(mut self) {
        let mut certified = self.certified();
        while self.shared.is_ready() {
            match self.heard.recv_timeout(LOOK) {
                Ok(LaneHeard::Block(block)) => self.step(MemberInput::Applied(block)),
                Ok(LaneHeard::Reported(home, shard, effect)) => self.step(MemberInput::Reported(home, shard, effect)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if self.certified() > certified {
                certified = self.certified();
                self.step(MemberInput::Certified(certified));
            }
            self.count_unreachable();
        }
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
        self.shared.metrics.lane_shards_unreachable.set((self.member.late() + deaf) as i64);
    }

    /// Gives the member an input, and performs what follows from it.
    fn step(&mut self, input: MemberInput) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let effects = self.member.step(&self.shared.read_ledger(), input);
            inputs.extend(effects.into_iter().filter_map(|effect| self.perform(effect)));
        }
    }

    /// Performs an effect; returns its result.
    fn perform(&mut self, effect: MemberEffect) -> Option<MemberInput> {
        match effect {
            MemberEffect::Prepare { home, makes_keys } => Some(self.try_to_prepare(home, makes_keys)),
            MemberEffect::Start { home, shard, term } => {
                Some(MemberInput::Started(home, shard, self.start_shard(home, shard, &term)))
            }
            MemberEffect::Tell(home, shard, fact) => {
                self.shards.get(&(home, shard)).into_iter().for_each(|shard| shard.tell(fact.clone()));
                None
            }
            MemberEffect::StopListening(home) => {
                let of_home = self.shards.range_mut((home, 0)..=(home, u16::MAX));
                of_home.for_each(|(_, shard)| shard.stop_listening());
                None
            }
            MemberEffect::Stop(home, shard) => {
                self.shards.remove(&(home, shard));
                None
            }
            MemberEffect::Remove(home) => Some(MemberInput::Removed(home, self.remove(home))),
            MemberEffect::Forget(home) => Some(MemberInput::Forgotten(home, self.forget(home))),
            MemberEffect::Work(work) => {
                let posts = self.work(&work);
                Some(MemberInput::Worked(work, posts))
            }
            MemberEffect::Post(post) => Some(MemberInput::Posted(post.key, self.post(*post))),
        }
    }

    fn try_to_prepare(&self, home: HomeEpoch, makes_keys: bool) -> MemberInput {
        let made = self.prepare(home, makes_keys);
        if let Err(error) = &made {
            tracing::error!(
                %error, home,
                "cannot create logs and keys of the next lane epoch; trying again with each block. Fix the error \
                 before that epoch begins: without them this validator signs nothing in it"
            );
        }
        MemberInput::Prepared(home, made.is_ok())
    }

    /// Makes the logs of a home, and its keys, unless they exist.
    fn prepare(&self, home: HomeEpoch, makes_keys: bool) -> Result<(), LaneStartError> {
        for shard in 0..self.seat.shards() {
            match FileLog::create(&self.disk(home, shard)?, &self.owner(home, shard)) {
                Ok(()) | Err(LogError::Exists(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let keys = if makes_keys { 0..self.seat.shards() } else { 0..0 };
        let safe = self.seat.safe.as_ref();
        keys.into_iter()
            .try_for_each(|shard| keys::make(&self.directory, home, shard, safe).map(drop))
            .map_err(|error| self.unusable(error))
    }

    fn unusable(&self, error: std::io::Error) -> LaneStartError {
        LaneStartError::Directory(self.directory.display().to_string(), error)
    }

    fn disk(&self, home: HomeEpoch, shard: u16) -> Result<RealDisk, LaneStartError> {
        let directory = keys::directory(&self.directory, home, shard);
        RealDisk::new(&directory).map_err(|error| LaneStartError::Directory(directory.display().to_string(), error))
    }

    fn owner(&self, home: HomeEpoch, shard: u16) -> LogOwner {
        let network = lane(&self.shared.read_ledger()).network();
        LogOwner { network, home, validator: self.seat.index, shard }
    }

    /// The key of a shard in a home; `None` if it does not exist.
    fn key(&self, home: HomeEpoch, shard: u16) -> Result<Option<SecretKey>, LaneStartError> {
        match &self.seat.keys {
            LaneKeys::Fixed(keys) => Ok(keys.get(usize::from(shard)).cloned()),
            LaneKeys::Registrar(_) => {
                let safe = self.seat.safe.as_ref();
                keys::load(&self.directory, home, shard, safe).map_err(|error| self.unusable(error))
            }
        }
    }

    /// Starts a shard. One whose log does not allow it to sign, or whose key is missing, is left out.
    fn start_shard(&mut self, home: HomeEpoch, shard: u16, term: &ShardTerm) -> ShardStart {
        match self.try_to_start(home, shard, term) {
            Ok(Some(started)) => {
                let barred = started.barred().clone();
                self.shards.insert((home, shard), started);
                ShardStart::Runs(barred)
            }
            Ok(None) => {
                tracing::error!(
                    home,
                    shard,
                    "the shard key registered for this lane epoch is missing on this disk: the shard signs nothing in \
                     it"
                );
                ShardStart::Mute
            }
            Err(LaneStartError::Shard(error @ ShardError::Mute { .. })) => {
                tracing::warn!(%error, home, "the lane");
                ShardStart::Mute
            }
            Err(error) => {
                tracing::error!(
                    %error, home, shard,
                    "a shard of the lane cannot start; trying again after some blocks, the others run on. \
                     Fix the error"
                );
                ShardStart::Failed
            }
        }
    }

    /// Starts a shard; `None` if its registered key is missing.
    fn try_to_start(&self, home: HomeEpoch, shard: u16, term: &ShardTerm) -> Result<Option<LaneShard>, LaneStartError> {
        let secrets = self.key(home, shard)?.and_then(|key| term.secrets(self.seat.index, shard, key));
        let Some(secrets) = secrets else { return Ok(None) };
        Ok(Some(LaneShard::start(self.setup(home, shard, term, secrets), &self.disk(home, shard)?)?))
    }

    fn setup(&self, home: HomeEpoch, shard: u16, term: &ShardTerm, secrets: ShardSecrets) -> ShardSetup {
        let at = |shards: &Vec<SocketAddr>| shards.iter().map(|of| home_address(*of, home)).collect();
        let addresses: Vec<Vec<SocketAddr>> = self.seat.addresses.iter().map(at).collect();
        let listen = addresses[usize::from(self.seat.index)][usize::from(shard)];
        let (tls, committee) = (self.seat.tls, term.committee.clone());
        let peers = (addresses.len() > 1).then_some(LaneDirectory { committee, addresses, tls });
        let ShardSecrets { key, bls, share } = secrets;
        ShardSetup {
            settings: settings(term, self.seat.index, shard),
            bls_key: bls,
            share,
            key,
            listen,
            tls,
            backed: term.backed.clone(),
            proven: term.proven.clone(),
            peers,
            limits: ShardLimits::default(),
            known: self.seat.known.clone(),
            post: self.reporter(home, shard),
        }
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

    fn remove(&self, home: HomeEpoch) -> bool {
        let removed = keys::destroy(&self.directory, home);
        if let Err(error) = &removed {
            let directory = self.directory.join(home.to_string());
            tracing::error!(
                %error, directory = %directory.display(),
                "cannot destroy keys of a past epoch; trying again with each block"
            );
        }
        removed.is_ok()
    }

    fn forget(&self, home: HomeEpoch) -> bool {
        let removed = keys::forget(&self.directory, home);
        if let Err(error) = &removed {
            let directory = self.directory.join(home.to_string());
            tracing::warn!(%error, directory = %directory.display(), "cannot remove the logs of an epoch long past");
        }
        removed.is_ok()
    }

    /// Makes posts with the keys of an epoch; `None` if they are missing.
    fn work(&self, work: &KeyWork) -> Option<Vec<payments::BridgeOperation>> {
        let keys = (0..self.seat.shards()).map(|shard| self.key(work.epoch(), shard));
        let keys = keys.collect::<Result<Option<Vec<SecretKey>>, _>>().unwrap_or_else(|error| {
            let epoch = work.epoch();
            tracing::error!(%error, epoch, "cannot read the keys of the next lane epoch; trying again next block");
            None
        })?;
        let registrar = match &self.seat.keys {
            LaneKeys::Registrar(key) => Some(&**key),
            LaneKeys::Fixed(_) => None,
        };
        Some(work.perform(&keys, registrar))
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

/// The settings of a shard.
fn settings(term: &ShardTerm, validator: u8, shard: u16) -> LaneSettings {
    LaneSettings {
        rules: term.rules.clone(),
        previous: term.previous.clone(),
        committee: term.committee.clone(),
        validator,
        shard,
        now: term.now,
        leaves: 256,
        entries_max: 1 << 26,
        trees_waiting_max: 64,
        checks_per_peer: 4_096,
        checks_per_tick: 16_384,
        roots_per_validator: 4_096,
    }
}

fn lane(ledger: &Ledger) -> &LaneBridge {
    ledger.lane().expect("the chain has a lane")
}
