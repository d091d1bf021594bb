//! The shards of the payment lane that a validator runs alongside consensus.
//!
//! ```text
//! publisher ─► facts of blocks ─► host ─► LaneShard of home h, h−1, h−2 … (each with its own log and socket)
//!                                  ▲  │
//!             votes, views, barred ┘  └─► transactions of the validator's account ─► intake
//! ```
//!
//! The host is one thread. It tells shards only what certified blocks contain: it holds the facts of a block back
//! until the block has a certificate. After a restart it tells them what the recovered state contains: outputs, open
//! cases, lane time. A shard's log is created before its epoch begins, and at no other time. If it is missing later,
//! the shard stays mute until the next epoch, and so does the shard of a validator that joins in the middle of an
//! epoch.
//!
//! *Passing errors.* A full disk or an occupied port ends nothing for good. A shard that cannot start is tried again,
//! with growing delays, as if the node had restarted in the meantime; one that cannot listen retries by itself
//! ([`LaneShard::awaits_address`]). Preparations for the next epoch that fail are tried again with each block. The
//! log names each error with its remedy, and `lane_shards_unreachable` counts the shards.
//!
//! Votes, views and accusations are posted until the ledger has them: a lost transaction is sent again after some
//! blocks.
//!
//! *Keys.* If the genesis has registrars, the keys of the next epoch are created when an epoch begins, durably and
//! together with their logs, and their registration is posted like a vote. If the ledger does not have the
//! registration in the last quarter of the epoch, the node logs an error. When a home is over its keys are wiped, in
//! memory and on the disk.
//!
//! *Group keys.* If the genesis asks for them, the node deals for the next epoch, and complains about wrong shares.
//! Both follow from its key of that epoch, and its share of the group's secret follows from this key and the ledger:
//! a restart needs no further data.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use lane::{FileLog, LaneDirectory, LaneShard, LogError, ShardError, ShardLimits, ShardNews, ShardSetup};
use ledger::{LaneBls, LaneBridge, Ledger};
use payments::{
    BlsSecretKey, BridgeEvent, BridgeOperation, CaseEvent, ContestedOutput, HomeEpoch, KeyGeneration, LaneEffect,
    LaneRegistration, LaneSettings, LogOwner, OutputId, PaymentBody, SPEND_EPOCHS, ViewParts, dealing_of_shard,
};
use primitives::{Body, Digest, Height, Operation, PublicKey, SecretKey};
use store::RealDisk;

use crate::lane_evidence::LaneWitness;
use crate::lane_home::{Home, Term};
use crate::lane_keys;
use crate::lane_member::{HOME_PORTS, LaneKeys, LaneMember, LaneStartError, check, home_address};
use crate::shared::{Shared, Submission};

/// Maximum number of facts of blocks and requests of shards that wait for the host.
const HOST_QUEUE: usize = 1_024;
/// How often the host checks whether blocks have been certified, and whether the node stops.
const LOOK: Duration = Duration::from_millis(20);
/// A post that the ledger does not have is sent again after this many blocks.
const POST_AGAIN: Height = 8;

/// The inputs of the host.
pub(crate) enum LaneHeard {
    /// The lane events of a block, and the posts in it.
    Block(Height, Vec<BridgeEvent>, Vec<BridgeOperation>),
    /// A request of a shard of a home.
    Asked(HomeEpoch, u16, LaneEffect),
}

/// A contested output, and the payments of it.
type OpenCase = (ContestedOutput, Option<Vec<Arc<PaymentBody>>>);

/// An operation to be posted to the ledger.
struct Post {
    operation: BridgeOperation,
    sent: Option<Height>,
}

/// A payment that the ledger had confirmed by a height, and that a shard bars since before it was started.
struct Confirmed {
    height: Height,
    home: HomeEpoch,
    shard: u16,
    payment: Digest,
}

/// See the module text.
pub(crate) struct LaneHost {
    shared: Arc<Shared>,
    intake: SyncSender<Submission>,
    member: LaneMember,
    directory: PathBuf,
    told: SyncSender<LaneHeard>,
    heard: Receiver<LaneHeard>,
    homes: BTreeMap<HomeEpoch, Home>,
    /// The lane epoch that shards were told.
    now: HomeEpoch,
    /// The epoch whose logs and keys exist and are registered.
    prepared: HomeEpoch,
    /// Facts of blocks that have no certificate yet.
    waiting: VecDeque<(Height, Vec<BridgeEvent>, Vec<BridgeOperation>)>,
    posts: Vec<Post>,
    witness: LaneWitness,
    /// Cases that certified blocks opened, with their candidates once these are fixed: a home that begins later is
    /// told of them, too.
    cases: BTreeMap<OutputId, OpenCase>,
    /// Whether the lane is halted, by certified height.
    is_halted: bool,
    /// Told to their shards once certified.
    confirmed: Vec<Confirmed>,
    /// The epoch for whose group key this node has dealt and checked shares since its start.
    dealt: HomeEpoch,
    looked: HomeEpoch,
    /// The recovered state, until it is certified.
    recovered: Option<Ledger>,
}

impl LaneHost {
    /// Creates the logs of epochs to come, and starts the shards if the recovered state is certified; otherwise they
    /// start once it is.
    pub(crate) fn start(
        shared: &Arc<Shared>,
        intake: SyncSender<Submission>,
        member: LaneMember,
        data: &Path,
    ) -> Result<LaneHost, LaneStartError> {
        let (told, heard) = sync_channel(HOST_QUEUE);
        check(&member, shared.read_ledger().lane().ok_or(LaneStartError::NoLane)?)?;
        shared.lane_facts.set(told.clone()).map_err(|_| LaneStartError::Running)?;
        let (shared, directory) = (shared.clone(), data.join("lane"));
        let (homes, waiting) = (BTreeMap::new(), VecDeque::new());
        let (now, posts, state) = (0, Vec::new(), shared.read_ledger().clone());
        let (cases, recovered, witness) = (BTreeMap::new(), None, LaneWitness::new());
        let mut host = LaneHost {
            shared,
            intake,
            member,
            directory,
            told,
            heard,
            homes,
            now,
            prepared: 0,
            waiting,
            posts,
            witness,
            cases,
            is_halted: false,
            confirmed: Vec::new(),
            dealt: 0,
            looked: 0,
            recovered,
        };
        host.prepare_first(&state)?;
        // Blocks up to here are part of the state.
        host.waiting.push_back((state.height(), Vec::new(), Vec::new()));
        host.recovered = Some(state);
        host.open_recovered();
        Ok(host)
    }

    /// Creates the logs of epochs that have not begun.
    fn prepare_first(&self, state: &Ledger) -> Result<(), LaneStartError> {
        let epoch = lane(state).bridge().clock().epoch();
        // Before the first block, no shard can have signed anything that a block backs.
        let first = if state.height() == 0 { 0 } else { epoch + 1 };
        (first..=epoch + 1).try_for_each(|home| self.make_logs(home))?;
        self.make_keys(epoch + 1)
    }

    /// Creates the keys of an epoch that has not begun, if each epoch has fresh keys.
    fn make_keys(&self, home: HomeEpoch) -> Result<(), LaneStartError> {
        let safe = self.member.safe.as_ref();
        if matches!(self.member.keys, LaneKeys::Registrar(_)) {
            (0..self.member.shards())
                .try_for_each(|shard| lane_keys::make(&self.directory, home, shard, safe).map(drop))
        } else {
            Ok(())
        }
        .map_err(|error| self.unusable(error))
    }

    fn unusable(&self, error: std::io::Error) -> LaneStartError {
        LaneStartError::Directory(self.directory.display().to_string(), error)
    }

    /// The key of a shard in a home; `None` if it does not exist.
    fn key(&self, home: HomeEpoch, shard: u16) -> Result<Option<SecretKey>, LaneStartError> {
        match &self.member.keys {
            LaneKeys::Fixed(keys) => Ok(keys.get(usize::from(shard)).cloned()),
            LaneKeys::Registrar(_) => {
                let safe = self.member.safe.as_ref();
                lane_keys::load(&self.directory, home, shard, safe).map_err(|error| self.unusable(error))
            }
        }
    }

    /// Registers the keys of an epoch that has not begun, unless the ledger has them.
    fn register(&mut self, home: HomeEpoch) -> Result<(), LaneStartError> {
        let LaneKeys::Registrar(registrar) = self.member.keys.clone() else { return Ok(()) };
        if self.is_registered(home) {
            return Ok(());
        }
        let shards = 0..self.member.shards();
        let keys = shards.map(|shard| self.key(home, shard)).collect::<Result<Option<Vec<SecretKey>>, _>>()?;
        let Some(keys) = keys else { return Ok(()) };
        let (network, bls) = {
            let ledger = self.shared.read_ledger();
            (lane(&ledger).network(), lane(&ledger).terms().bls)
        };
        let bls_keys: Vec<BlsSecretKey> = match bls {
            LaneBls::None => Vec::new(),
            LaneBls::Aggregate | LaneBls::Threshold => keys.iter().map(BlsSecretKey::of_shard).collect(),
        };
        let index = self.member.index;
        let (registration, proofs) =
            LaneRegistration::make_with_bls(&network, home, index, &keys, &bls_keys, &registrar);
        self.posts.push(Post { operation: BridgeOperation::Register { registration, proofs }, sent: None });
        Ok(())
    }

    /// Whether the ledger has this member's keys of an epoch.
    fn is_registered(&self, home: HomeEpoch) -> bool {
        let ledger = self.shared.read_ledger();
        lane(&ledger).bridge().registrations(home).any(|of| of.member == self.member.index)
    }

    /// Logs an error if this member has no registered keys for the next epoch.
    fn warn_unregistered(&self) {
        let ledger = self.shared.read_ledger();
        let (lane, next) = (lane(&ledger), self.now + 1);
        let (clock, terms) = (lane.bridge().clock(), lane.terms());
        let urgent = clock.epoch() == self.now && lane_keys::is_urgent(clock.heights_left(), terms.epoch_heights);
        let registered = lane.bridge().registrations(next).any(|of| of.member == self.member.index);
        if urgent && !registered && matches!(self.member.keys, LaneKeys::Registrar(_)) {
            let (heights_left, account) = (clock.heights_left(), self.member.account.public().address());
            tracing::error!(
                next, heights_left, %account,
                "NO LANE KEYS ARE REGISTERED for the next lane epoch: this validator will sign nothing in it. The \
                 registration is posted again; see that the account can pay the fee"
            );
        }
    }

    /// Starts with the recovered state, if it is certified by now.
    fn open_recovered(&mut self) {
        let certified = self.certified();
        if let Some(state) = self.recovered.take_if(|state| state.height() <= certified) {
            self.open_all(&state);
            self.lift_bars();
        }
    }

    fn make_logs(&self, home: HomeEpoch) -> Result<(), LaneStartError> {
        for shard in 0..self.member.shards() {
            match FileLog::create(&self.disk(home, shard)?, &self.owner(home, shard)) {
                Ok(()) | Err(LogError::Exists(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn disk(&self, home: HomeEpoch, shard: u16) -> Result<RealDisk, LaneStartError> {
        let directory = lane_keys::directory(&self.directory, home, shard);
        RealDisk::new(&directory).map_err(|error| LaneStartError::Directory(directory.display().to_string(), error))
    }

    fn owner(&self, home: HomeEpoch, shard: u16) -> LogOwner {
        let network = lane(&self.shared.read_ledger()).network();
        LogOwner { network, home, validator: self.member.index, shard }
    }

    /// Creates and registers logs and keys of the next epoch, if that is still to be done.
    fn prepare(&mut self) {
        let next = self.now + 1;
        if self.prepared == next {
            return;
        }
        let made = self.make_logs(next).and_then(|()| self.make_keys(next)).and_then(|()| self.register(next));
        match made {
            Ok(()) => self.prepared = next,
            Err(error) => tracing::error!(
                %error, next,
                "cannot create logs and keys of the next lane epoch; trying again with each block. Fix the error \
                 before that epoch begins: without them this validator signs nothing in it"
            ),
        }
    }

    /// Starts the shards of all homes that still sign or are needed, and tells them what the state knows.
    fn open_all(&mut self, state: &Ledger) {
        let bridge = lane(state).bridge();
        self.now = bridge.clock().epoch();
        self.is_halted = bridge.clock().is_halted();
        let cases = bridge.resolver().cases().map(|(contested, bodies)| (contested.output.id, (*contested, bodies)));
        self.cases = cases.collect();
        let signs = self.now.saturating_sub(SPEND_EPOCHS);
        for home in (bridge.oldest()..=self.now).filter(|home| *home >= signs || bridge.needs(*home)) {
            let backed = bridge.backed(home).map(|(id, output)| (*id, *output)).collect();
            self.open(home, Term::of(lane(state), home, self.now, backed).expect("its epoch counts"));
        }
        // Removes the homes that were over when the node stopped.
        for home in lane_keys::homes(&self.directory).into_iter().filter(|home| *home < signs && !bridge.needs(*home)) {
            self.remove(home);
        }
        self.prepare();
        self.generate();
    }

    /// Starts the shards of a home.
    fn open(&mut self, home: HomeEpoch, term: Term) {
        self.homes.insert(home, Home::new(term, self.member.shards()));
        self.start_late(home);
    }

    /// Starts the shards of a home that do not run and are due. A shard whose log does not allow it to sign, or whose
    /// key is missing, is left out: the others run without it.
    fn start_late(&mut self, home: HomeEpoch) {
        let due = self.homes.get(&home).map(Home::due).unwrap_or_default();
        for shard in due {
            let Some(of) = self.homes.get(&home) else { return };
            let started = self.start_shard(&of.term, shard);
            if let Ok(Some(started)) = &started {
                self.inform(home, shard, started);
            }
            let Some(of) = self.homes.get_mut(&home) else { return };
            match started {
                Ok(Some(mut started)) => {
                    // A later home uses its port by now.
                    if home + u64::from(HOME_PORTS) <= self.now {
                        started.stop_listening();
                    }
                    of.retain_late(|late| late != shard);
                    of.shards.insert(shard, started);
                }
                Ok(None) => of.retain_late(|late| late != shard),
                Err(LaneStartError::Shard(error @ ShardError::Mute { .. })) => {
                    of.retain_late(|late| late != shard);
                    tracing::warn!(%error, home, "the lane");
                }
                Err(error) => {
                    of.late.entry(shard).or_default().defer();
                    tracing::error!(
                        %error, home, shard,
                        "a shard of the lane cannot start; trying again after some blocks, the others run on. \
                         Fix the error"
                    );
                }
            }
        }
    }

    /// Tells a shard that has started what certified blocks have said: open cases, a halt, how long it signs, and which
    /// of the payments that it bars are confirmed. The ledger may be ahead of certified blocks: what it confirms is
    /// told later.
    fn inform(&mut self, home: HomeEpoch, shard: u16, started: &LaneShard) {
        let concerns = |contested: &ContestedOutput| (contested.home..=contested.home + 1).contains(&home);
        for (id, (contested, candidates)) in self.cases.iter().filter(|(_, (contested, _))| concerns(contested)) {
            started.forward(ShardNews::CaseOpened(*contested));
            if let Some(bodies) = candidates {
                started.forward(ShardNews::CandidatesFixed(*id, bodies.clone()));
            }
        }
        started.forward(ShardNews::Halted(self.is_halted));
        let ledger = self.shared.read_ledger();
        let (height, resolver) = (ledger.height(), lane(&ledger).bridge().resolver());
        resolver.signs_through(home).into_iter().for_each(|last| started.forward(ShardNews::SignsThrough(last)));
        let payments = started.barred().iter().filter(|payment| resolver.confirms(payment));
        self.confirmed.extend(payments.map(|payment| Confirmed { height, home, shard, payment: *payment }));
    }

    /// Tells shards of confirmed payments that they bar.
    fn lift_bars(&mut self) {
        let certified = self.certified();
        for of in self.confirmed.extract_if(.., |of| of.height <= certified) {
            let shard = self.homes.get(&of.home).and_then(|home| home.shards.get(&of.shard));
            shard.into_iter().for_each(|shard| shard.forward(ShardNews::Confirmed(of.payment)));
        }
    }

    /// Starts a shard; `None` if its registered key is missing.
    fn start_shard(&self, term: &Term, shard: u16) -> Result<Option<LaneShard>, LaneStartError> {
        let home = term.committee.epoch();
        let registered = term.committee.key(self.member.index, shard).ok();
        let Some(key) = self.key(home, shard)?.filter(|key| Some(key.public()) == registered) else {
            tracing::error!(
                home,
                shard,
                "the shard key registered for this lane epoch is missing on this disk: the shard signs nothing in it"
            );
            return Ok(None);
        };
        Ok(Some(LaneShard::start(self.setup(term, shard, key), &self.disk(home, shard)?)?))
    }

    /// After each block: tries again what failed before, unless its time is over.
    fn try_again(&mut self) {
        self.prepare();
        let is_due = |of: &Home| !of.late.is_empty() || of.shards.is_empty();
        let due: Vec<HomeEpoch> = self.homes.iter().filter(|(_, of)| is_due(of)).map(|(home, _)| *home).collect();
        for home in due {
            let is_needed = lane(&self.shared.read_ledger()).bridge().needs(home);
            if home + SPEND_EPOCHS < self.now && !is_needed {
                self.homes.get_mut(&home).into_iter().for_each(|of| of.retain_late(|_| false));
                self.remove_if_empty(home);
            } else {
                self.homes.get_mut(&home).into_iter().for_each(Home::pass_block);
                self.start_late(home);
            }
        }
    }

    fn setup(&self, term: &Term, shard: u16, key: SecretKey) -> ShardSetup {
        let (told, committee) = (self.told.clone(), term.committee.clone());
        let home = committee.epoch();
        let at = |shards: &Vec<SocketAddr>| shards.iter().map(|of| home_address(*of, home)).collect();
        let addresses: Vec<Vec<SocketAddr>> = self.member.addresses.iter().map(at).collect();
        let listen = addresses[usize::from(self.member.index)][usize::from(shard)];
        let tls = self.member.tls;
        let bls_key = BlsSecretKey::of_shard(&key);
        let is_registered = committee.bls_key(self.member.index, shard) == Ok(&bls_key.public());
        let bls_key = Some(bls_key).filter(|_| is_registered);
        let share = term.generation.as_ref().zip(bls_key.as_ref());
        let share = share.and_then(|(of, key)| of.share(self.member.index, key));
        let peers = (addresses.len() > 1).then(|| LaneDirectory { committee: committee.clone(), addresses, tls });
        ShardSetup {
            settings: LaneSettings {
                rules: term.rules.clone(),
                previous: term.previous.clone(),
                committee,
                validator: self.member.index,
                shard,
                now: term.now,
                leaves: 256,
                entries_max: 1 << 26,
                trees_waiting_max: 64,
                checks_per_peer: 4_096,
                checks_per_tick: 16_384,
                roots_per_validator: 4_096,
            },
            bls_key,
            share,
            key,
            listen,
            tls,
            backed: term.backed.clone(),
            peers,
            limits: ShardLimits::default(),
            known: self.member.known.clone(),
            post: Box::new(move |effect| match told.try_send(LaneHeard::Asked(home, shard, effect)) {
                // The shard asks again after a restart.
                Err(TrySendError::Full(_)) => tracing::error!(
                    home,
                    shard,
                    "the queue of the lane's host is full: a request of a shard is lost until a restart"
                ),
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            }),
        }
    }

    /// Runs until the node stops.
    pub(crate) fn run(mut self) {
        while self.shared.is_ready() {
            match self.heard.recv_timeout(LOOK) {
                Ok(LaneHeard::Block(height, events, posts)) => {
                    if self.waiting.back().is_none_or(|(last, ..)| *last < height) {
                        self.waiting.push_back((height, events, posts));
                    }
                }
                Ok(LaneHeard::Asked(home, shard, effect)) => self.on_asked(home, shard, effect),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.open_recovered();
            while self.recovered.is_none() && self.waiting.len() > 1 && self.waiting[1].0 <= self.certified() {
                self.waiting.pop_front();
                let (_, events, posts) = &mut self.waiting[0];
                let (events, posts) = (std::mem::take(events), std::mem::take(posts));
                self.try_again();
                self.on_block(events);
                self.accuse(posts);
                self.generate();
            }
            self.lift_bars();
            self.count_unreachable();
            self.post();
        }
    }

    /// The height up to which blocks are certified; in a solo node every durable block is.
    fn certified(&self) -> Height {
        match self.shared.certificates.get() {
            Some(_) => self.shared.certified.load(Ordering::Acquire),
            None => Height::MAX,
        }
    }

    fn count_unreachable(&self) {
        let unreachable: usize = self.homes.values().map(Home::unreachable).sum();
        self.shared.metrics.lane_shards_unreachable.set(unreachable as i64);
    }

    fn on_block(&mut self, events: Vec<BridgeEvent>) {
        self.warn_unregistered();
        for event in events {
            match event {
                BridgeEvent::Backed(id, output) => {
                    let home = self.now;
                    self.forward_to_home(home, &ShardNews::Backed(id, output));
                }
                BridgeEvent::Epoch(epoch) => self.begin(epoch),
                BridgeEvent::Halted(halted) => {
                    self.is_halted = halted;
                    self.forward_to_all(&ShardNews::Halted(halted));
                }
                BridgeEvent::Case(CaseEvent::Opened(contested)) => {
                    self.forward_about_case(contested.home, &ShardNews::CaseOpened(contested));
                    self.cases.insert(contested.output.id, (contested, None));
                }
                BridgeEvent::Case(CaseEvent::Fixed(id, bodies)) => {
                    let Some((contested, candidates)) = self.cases.get_mut(&id) else { continue };
                    *candidates = Some(bodies.clone());
                    let home = contested.home;
                    self.forward_about_case(home, &ShardNews::CandidatesFixed(id, bodies));
                }
                BridgeEvent::Case(CaseEvent::Ruled(contested, verdict)) => {
                    self.forward_to_all(&ShardNews::CaseRuled(contested.output.id, verdict));
                    self.homes.values_mut().for_each(|home| drop(home.parts.remove(&contested.output.id)));
                    self.cases.remove(&contested.output.id);
                }
                BridgeEvent::Case(CaseEvent::Alarm(digest)) => {
                    tracing::error!(%digest, "two certificates of the lane contradict each other: the lane halts");
                }
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
                BridgeEvent::Case(CaseEvent::Stands(_))
                | BridgeEvent::Credit { .. }
                | BridgeEvent::ReturnDeposit(..)
                | BridgeEvent::Registered(..)
                | BridgeEvent::KeepDeposit(_) => {}
            }
        }
    }

    /// Accuses members that contradict themselves in posts of a block.
    fn accuse(&mut self, posts: Vec<BridgeOperation>) {
        if posts.is_empty() {
            return;
        }
        let shared = self.shared.clone();
        for operation in self.witness.see(posts, lane(&shared.read_ledger())) {
            if let BridgeOperation::Accuse { evidence } = &operation {
                let payments::Convicted { epoch, validator } = evidence.accused();
                tracing::warn!(
                    member = validator,
                    epoch,
                    "a member of the lane signed contradictory statements: accusing it"
                );
            }
            self.posts.push(Post { operation, sent: None });
        }
    }

    /// Takes part in the key generation of the next epoch: deals once everybody has registered, and complains about
    /// wrong shares after the dealing period. The ledger may be ahead of certified blocks, not of decided ones.
    fn generate(&mut self) {
        let (next, me) = (self.now + 1, self.member.index);
        let generation = {
            let ledger = self.shared.read_ledger();
            let bridge = lane(&ledger).bridge();
            let open = bridge.generation(next).filter(|_| bridge.clock().epoch() == self.now);
            let is_due = |of: &&KeyGeneration| {
                let deals = of.awaits_dealings() && of.dealing_of(me).is_none() && self.dealt < next;
                deals || of.awaits_complaints() && self.looked < next
            };
            open.filter(is_due).cloned()
        };
        let Some(generation) = generation else { return };
        let key = self.key(next, 0).unwrap_or_else(|error| {
            tracing::error!(%error, next, "cannot read the key for the lane's key generation; trying again next block");
            None
        });
        let Some(key) = key else { return };
        let secret = BlsSecretKey::of_shard(&key);
        let terms = generation.terms();
        // The registered key may be lost.
        let is_own = terms.keys.get(usize::from(me)) == Some(&secret.public());
        if generation.awaits_dealings() {
            self.dealt = next;
            let dealing = is_own.then(|| dealing_of_shard(terms, me, &key));
            self.posts.extend(dealing.map(|dealing| {
                let signature = dealing.sign(&terms.network, next, &key);
                let operation = BridgeOperation::Deal { epoch: next, dealing: Box::new(dealing), signature };
                Post { operation, sent: None }
            }));
            return;
        }
        self.looked = next;
        for dealer in generation.standing().filter(|_| is_own) {
            if let Some(complaint) = generation.complaint(me, &secret, dealer) {
                tracing::warn!(dealer, epoch = next, "a member of the lane dealt a wrong share: complaining about it");
                let operation = BridgeOperation::Complain { epoch: next, complaint: Box::new(complaint) };
                self.posts.push(Post { operation, sent: None });
            }
        }
    }

    /// Begins a lane epoch: starts its shards, and creates the logs of the next.
    fn begin(&mut self, epoch: HomeEpoch) {
        self.now = epoch;
        self.forward_to_all(&ShardNews::Epoch(epoch));
        // A home that is over and only waits for a verdict has no clients: this home takes its port.
        let same_port = |home: &HomeEpoch| home % u64::from(HOME_PORTS) == epoch % u64::from(HOME_PORTS);
        for (_, home) in self.homes.iter_mut().filter(|(home, _)| same_port(home)) {
            home.shards.values_mut().for_each(LaneShard::stop_listening);
        }
        // The ledger may be ahead of certified blocks: outputs that it backs by now are told once they are certified.
        let term = Term::of(lane(&self.shared.read_ledger()), epoch, epoch, Vec::new());
        term.into_iter().for_each(|term| self.open(epoch, term));
        self.prepare();
    }

    fn forward_to_all(&mut self, news: &ShardNews) {
        self.homes.values_mut().for_each(|home| home.forward(news));
    }

    /// Tells the homes that a case concerns: that of its output, and the next one, into which candidates may pay.
    /// Other homes need not wait for the verdict, so that nobody can keep their keys alive with case after case.
    fn forward_about_case(&mut self, home: HomeEpoch, news: &ShardNews) {
        (home..=home + 1).for_each(|home| self.forward_to_home(home, news));
    }

    fn forward_to_home(&mut self, home: HomeEpoch, news: &ShardNews) {
        self.homes.get_mut(&home).into_iter().for_each(|of| of.forward(news));
    }

    fn on_asked(&mut self, home: HomeEpoch, shard: u16, effect: LaneEffect) {
        match effect {
            LaneEffect::Vote { case, payment, answer } => {
                self.posts.push(Post { operation: BridgeOperation::Vote { case, payment, answer }, sent: None });
            }
            LaneEffect::Barred { case, paid } => {
                let shards = self.member.shards();
                let Some(of) = self.homes.get_mut(&home) else { return };
                let parts = of.parts.entry(case).or_insert_with(|| ViewParts::new(shards));
                let Some(paid) = parts.add(shard, paid) else { return };
                let paid = paid.cloned().map(Box::new);
                if let Some(posting) = self.posting_shard(home, &case) {
                    posting.forward(ShardNews::AllBarred(case, paid));
                }
            }
            LaneEffect::View { case, paid, answer } => {
                let Some(owner) = self.contested_owner(&case) else { return };
                let operation = BridgeOperation::View { case, committee: home, owner, paid, answer };
                self.posts.push(Post { operation, sent: None });
            }
            LaneEffect::Destroy => self.destroy(home, shard),
            _ => {}
        }
    }

    /// The shard of a home that signs for the owner of a contested output.
    fn posting_shard(&self, home: HomeEpoch, case: &OutputId) -> Option<&LaneShard> {
        let owner = self.contested_owner(case)?;
        let ledger = self.shared.read_ledger();
        let shard = lane(&ledger).committee(home)?.shard_of(self.member.index, &owner).ok()?;
        self.homes.get(&home)?.shards.get(&shard)
    }

    fn contested_owner(&self, case: &OutputId) -> Option<PublicKey> {
        let ledger = self.shared.read_ledger();
        let mut cases = lane(&ledger).bridge().resolver().cases();
        cases.find(|(contested, _)| contested.output.id == *case).map(|(contested, _)| contested.owner)
    }

    /// Stops a shard of a home that is over, and removes its key and log.
    fn destroy(&mut self, home: HomeEpoch, shard: u16) {
        let Some(of) = self.homes.get_mut(&home) else { return };
        of.shards.remove(&shard);
        self.remove_if_empty(home);
    }

    fn remove_if_empty(&mut self, home: HomeEpoch) {
        if self.homes.get(&home).is_some_and(|of| of.shards.is_empty() && of.late.is_empty()) {
            self.homes.remove(&home);
            self.remove(home);
        }
    }

    fn remove(&self, home: HomeEpoch) {
        if let Err(error) = lane_keys::destroy(&self.directory, home) {
            let directory = self.directory.join(home.to_string());
            tracing::error!(%error, directory = %directory.display(), "cannot remove keys and logs of a past epoch");
        }
    }

    /// Posts operations that the ledger does not have yet.
    fn post(&mut self) {
        if self.posts.is_empty() {
            return;
        }
        let ledger = self.shared.read_ledger();
        let (height, lane) = (ledger.height(), lane(&ledger));
        let resolver = lane.bridge().resolver();
        self.posts.retain(|post| match &post.operation {
            BridgeOperation::Vote { case, answer, .. } => {
                resolver.is_open(case) && !resolver.has_vote(case, answer.validator)
            }
            BridgeOperation::View { case, committee, answer, .. } => {
                resolver.is_open(case) && !resolver.has_view(case, *committee, answer.validator)
            }
            BridgeOperation::Register { registration: of, .. } => {
                let known = lane.bridge().registrations(of.epoch).any(|known| known.member == of.member);
                lane.bridge().clock().epoch() < of.epoch && !known
            }
            BridgeOperation::Accuse { evidence } => {
                let accused = evidence.accused();
                lane.bridge().is_kept(accused.epoch) && !lane.bridge().convicted().contains(&accused.validator)
            }
            BridgeOperation::Deal { epoch, dealing, .. } => {
                let awaits = |of: &KeyGeneration| of.awaits_dealings() && of.dealing_of(dealing.dealer).is_none();
                lane.bridge().generation(*epoch).is_some_and(awaits)
            }
            BridgeOperation::Complain { epoch, complaint } => {
                let awaits = |of: &KeyGeneration| of.awaits_complaints() && !of.out().contains(&complaint.dealer);
                lane.bridge().generation(*epoch).is_some_and(awaits)
            }
            _ => false,
        });
        let account = self.member.account.public().address();
        let used = ledger.accounts().get(&account).map_or(0, |account| account.window().highest());
        let due = self.posts.iter_mut().filter(|post| post.sent.is_none_or(|sent| sent + POST_AGAIN <= height));
        let (network, mut transactions) = (ledger.network(), Vec::new());
        for (sequence, post) in (used + 1..).zip(due) {
            post.sent = Some(height);
            let is_duty = lane.is_duty_of(account, &post.operation);
            let bytes = if is_duty { post.operation.encode_duty() } else { post.operation.encode() };
            let operation = Operation::Lane(bytes.into());
            // Before it is posted again, under another number, this one has ended.
            let until = height + POST_AGAIN;
            let body = Body { chain: ledger.chain(), account, sequence, until, operation };
            transactions.push(body.sign(&network, &self.member.account));
        }
        drop(ledger);
        // If intake is full, they are sent again after some blocks.
        let submission = (!transactions.is_empty()).then(|| Submission::unanswered(transactions, Vec::new()));
        if submission.is_some_and(|submission| self.intake.try_send(submission).is_err()) {
            self.posts.iter_mut().filter(|post| post.sent == Some(height)).for_each(|post| post.sent = None);
        }
    }
}

fn lane(ledger: &Ledger) -> &LaneBridge {
    ledger.lane().expect("the chain has a lane")
}
