//! A network of validators: the replica that a node runs, over simulated links, disks and time.
//!
//! Every validator is a [`replica::Replica`] with its ledger, its pool, its store and everything that works beside
//! it. The work that a node gives to threads is an event here: it takes a time that the seed determines, results come
//! in any order, and all work in progress is lost if the process is killed. Links delay, break, and lose messages in
//! flight. A process is killed between two steps or in the middle of one, and finds its disks as a crash leaves them;
//! it may lose its whole vote log. Some validators are faulty.
//!
//! Invariants of every run: no two correct validators apply different blocks. None makes two different statements where
//! one is allowed, restarts and lost logs included, and its statements are in its log. Certificates are valid, and
//! evidence convicts only faulty validators. Frames of correct validators are accepted, work in progress is bounded,
//! and the contents of the disks can be recovered. In the end every correct validator has the same state, with every
//! transaction that a correct one received.
//!
//! If the chain has contracts, clients also send Ethereum transactions, to several validators and in conflict with
//! each other. Wei are conserved, every sender has paid for as many transactions as its nonce says, and in the end no
//! transaction that could be proposed is pending in a pool.
//!
//! Some networks have clients with session keys, which trade, lapse and are revoked. No key uses more than its caps, a
//! number twice, or anything after its end, by bookkeeping from the receipts. Others have institutions: accounts with
//! several keys, issuers who list, close and freeze, and validators who vote on parameters and assets. What counts of
//! it, and what it makes of the state, is judged by independent books.
//!
//! *Twins* are two instances of one key, both of them correct code, of which each other validator sees one: see
//! [`SimNetwork::twin`].
//!
//! Some networks make sealing keys. At most two are in force; the shares of the holders interpolate each; a correct
//! seat has each share that the state says it holds, and none of a key that is over; it deals once.
//!
//! If there are epochs, one validator is not in the committee of each, drawn by stake: it follows, and forwards its
//! transactions to another. Old blocks can be discarded; then a validator that lags fetches a state.
//!
//! Times are in microseconds. A broken invariant panics.

mod blocks;
mod checks;
mod contracts;
mod drawn;
mod envelopes;
mod faulty;
mod flood;
mod host;
mod institutions;
mod jobs;
mod ledgers;
mod report;
mod seals;
mod sessions;
mod stops;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use consensus::{ALL_HEIGHTS, Chain, Committee, Frame, Index, Protocol, Rules, Vote, tendermint};
use kernel::{Dice, EventClock, Links, Surviving};
use ledger::{Genesis, Ledger, Restart, Schedule, Snapshot};
use primitives::{Digest, Height, RULES_OF_ENVELOPES, SecretKey, SubBlock};
use replica::{Effect, EthereumSection, Input, Lineage, Network as Epoch, Now, OwnKeys, PeerAddress, Sight, Waiting};

use self::contracts::EthereumNetwork;
use self::envelopes::EnvelopeNetwork;
use self::host::{Host, Keeping, Process};
use self::institutions::InstitutionNetwork;
use self::sessions::SessionNetwork;
use crate::world::Mistake;
use contracts::send_ethereum;
pub(crate) use drawn::run_network;
pub use drawn::{run_sealed, run_twins, run_validators, run_versions};
use envelopes::send_envelope;
use faulty::misbehave;
use institutions::send_of_institution;
pub use report::NetworkReport;
use seals::{seated, with_seals};
use sessions::send_of_session;
use stops::{schedule_stops, send_stops};

/// What a faulty validator does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Faults {
    /// Sends nothing.
    Silent,
    /// Proposes two sub-blocks for each height, one to some and one to others.
    Equivocating,
    /// Answers votes with random votes.
    Random,
    /// Sends meaningless bytes, frames of other epochs and heights, invalid certificates and answers.
    Garbage,
    /// Sends as much as it can: received frames again, requests for everything, statuses of changing epochs, commits
    /// that contradict each other.
    Flood,
    /// Is two instances of one key, both correct code; see [`SimNetwork::twin`].
    Twins,
}

const UNIT: u64 = 20_000;
const GRACE: u64 = 8_000;
const TICK: u64 = 25_000;
const HEARTBEAT: u64 = 500_000;
/// The least time between two heights: about that of a message.
const INTERVAL: u64 = 1_000;
/// A network without progress for this long has stalled.
const PATIENCE: u64 = 100_000_000;
const NETWORK: Digest = Digest([7; 32]);
/// The clocks of all validators at the beginning.
const WALL_MS: u64 = 1_800_000_000_000;

#[derive(Debug)]
enum Event {
    Frame {
        from: Index,
        link: u64,
        bytes: Arc<[u8]>,
    },
    /// A frame that has waited for its receiver's processor, and was processed.
    Processed {
        from: Index,
        link: u64,
        bytes: Arc<[u8]>,
    },
    Up {
        peer: Index,
        link: u64,
    },
    Down {
        peer: Index,
        link: u64,
    },
    /// The replica takes a step after inputs were collected for long enough.
    Step {
        life: u64,
    },
    /// The replica requested a step at this time.
    Deadline {
        life: u64,
    },
    /// Effects that were held until the sync of a step.
    Effects {
        life: u64,
        effects: Vec<Effect>,
        order: Vec<Index>,
    },
    Job {
        life: u64,
        job: jobs::Due,
    },
    Submit(u64),
    /// A client draws an Ethereum transaction from this validator's state, and sends it there.
    Ethereum,
    /// A client with session keys draws a transaction from this validator's state, and sends it there.
    Session,
    /// An institution draws a transaction from this validator's state, and sends it there.
    Institution,
    /// A client seals orders, and sends the envelope.
    Envelope,
    /// Clients fill the quota of stops here.
    Stops(stops::StopEvent),
    Kill {
        loses_log: bool,
    },
    /// The process is killed in the middle of its next write.
    Tear,
    Wake,
    /// The operator installs the newer program.
    Install,
    Cut {
        other: Index,
    },
    /// The links between hosts change.
    Partition {
        last: bool,
    },
}

impl Event {
    /// Whether it comes from outside, and not from the validators.
    fn is_outer(&self) -> bool {
        use Event::{
            Cut, Envelope, Ethereum, Install, Institution, Kill, Partition, Session, Stops, Submit, Tear, Wake,
        };
        let is_sent = matches!(self, Submit(_) | Ethereum | Session | Institution | Envelope | Stops(_));
        is_sent || matches!(self, Kill { .. } | Tear | Wake | Install | Cut { .. } | Partition { .. })
    }
}

/// The processor time of a validator for its frames, which one thread works on one after the other: those that arrive,
/// and those that are sent. Zero unless it is set: then only delays and disks take time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCost {
    /// Nanoseconds for a frame, at each of its ends.
    pub frame: u64,
    /// Nanoseconds for each of its bytes, at the receiver.
    pub byte: u64,
}

/// A network of validators, and the faults that will occur.
pub struct SimNetwork {
    /// The rules that all validators follow.
    pub rules: Rules,
    /// The faulty validators.
    pub faults: BTreeMap<Index, Faults>,
    /// Number of links that break.
    pub cuts: u64,
    /// Number of validators that are killed, one at a time.
    pub kills: u64,
    /// Number of validators that are killed in the middle of a write.
    pub tears: u64,
    /// Number of times that all validators are killed.
    pub blackouts: u64,
    /// Whether one validator loses its vote log when all are killed for the first time.
    pub blackout_loses_log: bool,
    /// Number of validators that are killed and lose their vote log.
    pub lost_logs: u64,
    /// A validator that starts two seconds later than the others.
    pub late: Option<Index>,
    /// How often the links change; between the first and the last change the network may be split.
    pub partitions: u64,
    /// Whether validator 0 lies to validators that catch up.
    pub liars: bool,
    /// A validator whose ledger and disk are slow.
    pub slow: Option<Index>,
    /// Whether some messages take much longer than others.
    pub tails: bool,
    /// A mistake of every validator, to be caught.
    pub mistake: Option<Mistake>,
    /// A validator whose ledger computes a different result.
    pub wrong_ledger: Option<Index>,
    /// A validator whose clock is five minutes ahead.
    pub hasty: Option<Index>,
    /// Whether clients trade, instead of paying each other.
    pub trades: bool,
    /// Whether clients send Ethereum transactions too.
    pub contracts: bool,
    /// Whether clients trade by session keys too.
    pub sessions: bool,
    /// Whether institutions change keys, list and control assets, and validators vote. Not beside `sessions`, whose
    /// books know one fee.
    pub institutions: bool,
    /// Whether the committee makes sealing keys.
    pub seals: bool,
    /// Microseconds over which a client's envelopes come: a key takes a while.
    pub envelopes_within: u64,
    /// A seat whose file has another share than the one it holds by the state. It sends false shares, and false keys.
    pub false_seat: Option<Index>,
    /// Whether envelopes must open, false shares cost one check, and nobody fetches a state: for networks that keep all
    /// blocks, without faulty validators, of which those with a false seat are slow nowhere.
    pub must_open: bool,
    /// Intervals within which a transaction is certified, while clients fill the quota of stops. For networks without
    /// faults.
    pub prompt: Option<u64>,
    /// A validator that trusts itself about who signed the Ethereum transactions that it proposed.
    pub trusting: Option<Index>,
    /// One-way delays between validators, instead of about a millisecond everywhere.
    pub delays: Option<Vec<Vec<u64>>>,
    /// What frames cost their sender and their receiver.
    pub frame_cost: FrameCost,
    /// How long inputs are collected before a step processes them.
    pub quantum: u64,
    /// Time between two ticks of a validator.
    pub tick: u64,
    /// The size of committee from which votes are gathered.
    pub gather_from: usize,
    /// The unit of the timers of rounds.
    pub unit: u64,
    /// How long the engine waits for absent sub-blocks.
    pub grace: u64,
    /// Time without a decision after which the next height begins with nothing to propose.
    pub heartbeat: u64,
    /// The least time between two heights.
    pub interval: u64,
    /// Time without progress after which the run ends: the network has stalled.
    pub patience: u64,
    /// Heights of an epoch, if validators change; one validator then follows, another one in each epoch.
    pub epoch_heights: Option<u64>,
    /// Blocks between two checkpoints; 0 for none.
    pub checkpoint_blocks: u64,
    /// Blocks that are kept behind a checkpoint; 0 for all.
    pub keep_blocks: u64,
    /// The identity of the network.
    identity: Digest,
    /// The state that the network started again from.
    begun_with: Option<Ledger>,
    /// Height after which the first correct validator keeps its state for a restart.
    pub keep_state_of: Option<Height>,
    kept_state: Option<Ledger>,
    committee: Committee,
    versions: versions::Versions,
    secrets: Vec<SecretKey>,
    /// Validators by key.
    by_key: BTreeMap<[u8; 32], Index>,
    genesis: Genesis,
    hosts: Vec<Host>,
    /// The committees by epoch, as correct validators began them.
    chains: BTreeMap<u64, Chain>,
    /// The second hosts of twins, with their validators.
    twins: BTreeMap<Index, Index>,
    links: Links<Index>,
    flood: flood::Flood,
    schedule: EventClock<(Index, Event)>,
    steps: u64,
    dice: Dice,
    statements: BTreeMap<(Index, u64, Vote), Vote>,
    /// The same, if heights are decided by rounds.
    sent_in_rounds: BTreeMap<(Index, u64, u32, Option<tendermint::Kind>), tendermint::Message>,
    /// Digest and state root of the block applied at each height.
    applied: BTreeMap<Height, Digest>,
    roots: BTreeMap<Height, Digest>,
    /// The outcome of each height that validators should sign.
    outcomes: BTreeMap<Height, Digest>,
    /// Transactions that took effect somewhere.
    effective: BTreeSet<u64>,
    /// Sub-blocks whose signatures were checked, once for all validators.
    checked: BTreeMap<(Index, Digest), SubBlock>,
    /// Height and round in which a faulty validator has made its two proposals.
    proposed_falsely: BTreeSet<(u64, u32)>,
    /// The seats of faulty validators, which take part in making keys.
    faulty_seats: BTreeMap<Index, replica::SealSeat>,
    /// How often each validator found false what another sent under the key of a number.
    found_false: BTreeMap<(Index, u64, Index), u64>,
    /// What each account dealt first for the key of a number.
    dealt: BTreeMap<(u64, primitives::Address), Vec<u8>>,
    transactions: u64,
    ethereum: Option<EthereumNetwork>,
    envelope_network: Option<EnvelopeNetwork>,
    session_network: Option<SessionNetwork>,
    institution_network: Option<InstitutionNetwork>,
    resubmitted: Vec<u64>,
    /// When and where each transaction arrived.
    arrived: BTreeMap<u64, (u64, Index)>,
    /// The time when something was last sent, broken, or committed for the first time.
    progress: u64,
    started: bool,
    /// Bytes that were sent to each validator.
    sent: BTreeMap<Index, u64>,
    report: NetworkReport,
}

impl SimNetwork {
    /// A network of `size` validators with the first engine; the seed determines everything.
    pub fn new(size: usize, seed: u64) -> SimNetwork {
        SimNetwork::of(Protocol::Dbft, size, seed)
    }

    /// A network of `size` validators; the seed determines everything.
    pub fn of(protocol: Protocol, size: usize, seed: u64) -> SimNetwork {
        let rules = match protocol {
            Protocol::Dbft => Rules::default(),
            Protocol::Tendermint => Rules::tendermint(),
        };
        let secrets: Vec<SecretKey> = (0..size).map(|i| SecretKey::from_seed([i as u8 + 1; 32])).collect();
        let by_key = (0..).zip(&secrets).map(|(index, secret)| (secret.public().0, index)).collect();
        SimNetwork {
            rules: Rules { payload_bytes: 10_000, ..rules },
            faults: BTreeMap::new(),
            cuts: 0,
            kills: 0,
            tears: 0,
            blackouts: 0,
            blackout_loses_log: false,
            lost_logs: 0,
            late: None,
            partitions: 0,
            liars: false,
            slow: None,
            tails: true,
            mistake: None,
            wrong_ledger: None,
            hasty: None,
            trades: false,
            contracts: false,
            sessions: false,
            institutions: false,
            seals: false,
            envelopes_within: 10_000,
            false_seat: None,
            must_open: false,
            prompt: None,
            trusting: None,
            delays: None,
            frame_cost: FrameCost::default(),
            quantum: 0,
            tick: TICK,
            gather_from: consensus::gather::GATHERED_FROM,
            unit: UNIT,
            grace: GRACE,
            heartbeat: HEARTBEAT,
            interval: INTERVAL,
            patience: PATIENCE,
            epoch_heights: None,
            checkpoint_blocks: 0,
            keep_blocks: 0,
            identity: NETWORK,
            begun_with: None,
            keep_state_of: None,
            kept_state: None,
            committee: Committee::new(size),
            versions: versions::Versions::default(),
            secrets,
            by_key,
            genesis: Genesis::default(),
            hosts: (0..size as u64).map(|index| Host::new(seed.wrapping_mul(1_000).wrapping_add(index))).collect(),
            chains: BTreeMap::new(),
            twins: BTreeMap::new(),
            links: Links::default(),
            flood: flood::Flood::default(),
            schedule: EventClock::default(),
            steps: 0,
            dice: Dice::new(seed),
            statements: BTreeMap::new(),
            sent_in_rounds: BTreeMap::new(),
            applied: BTreeMap::new(),
            roots: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            progress: 0,
            effective: BTreeSet::new(),
            checked: BTreeMap::new(),
            proposed_falsely: BTreeSet::new(),
            faulty_seats: BTreeMap::new(),
            found_false: BTreeMap::new(),
            dealt: BTreeMap::new(),
            transactions: 0,
            ethereum: None,
            envelope_network: None,
            session_network: None,
            institution_network: None,
            resubmitted: Vec::new(),
            arrived: BTreeMap::new(),
            started: false,
            sent: BTreeMap::new(),
            report: NetworkReport::default(),
        }
    }

    fn schedule(&self) -> Schedule {
        self.epoch_heights
            .map_or(Schedule::default(), |epoch_heights| Schedule { epoch_heights, delay: 2 * self.rules.window })
    }

    fn epoch_of(&self, height: u64) -> u64 {
        self.schedule().epoch_of(height)
    }

    /// The chain of an epoch; if it has not begun, that of the last epoch that has.
    fn chain(&self, epoch: u64) -> Chain {
        let known = self.chains.range(..=epoch).next_back().expect("the first is known").1.clone();
        Chain { epoch, ..known }
    }

    /// The index of a validator in an epoch, or an index that no validator has.
    fn local(&self, epoch: u64, of: Index) -> Index {
        let chain = self.chain(epoch);
        chain.index_of(&self.secrets[usize::from(of)].public()).unwrap_or(chain.keys.len() as Index)
    }

    /// The network at the genesis as a validator sees it.
    fn epoch_zero(&self, me: Index) -> Epoch {
        let keys: Vec<_> = self.secrets[..self.committee.size].iter().map(SecretKey::public).collect();
        let schedule = self.schedule();
        let heights = if schedule.is_fixed() { ALL_HEIGHTS } else { 1..=schedule.last_height(0) };
        let peers = keys.iter().map(|key| PeerAddress { key: *key, address: "127.0.0.1:1".into() }).collect();
        Epoch {
            chain: Chain { genesis: self.identity, epoch: 0, heights, keys },
            rules: self.rules,
            ledger_rules: self.genesis.rules,
            ethereum: EthereumSection::of(self.genesis.chain, &self.genesis.limits),
            me: self.validator(me),
            own: OwnKeys::one(self.secrets[usize::from(me)].clone()),
            listen: ([127, 0, 0, 1], 1).into(),
            peers,
            committee_max: self.committee.size,
            unit: Duration::from_micros(self.unit),
            grace: Duration::from_micros(self.grace),
            heartbeat: Duration::from_micros(self.heartbeat),
            interval: Duration::from_micros(self.interval),
        }
    }

    fn correct(&self) -> Vec<Index> {
        self.committee.members().filter(|index| !self.faults.contains_key(index)).collect()
    }

    fn host(&mut self, of: Index) -> &mut Host {
        &mut self.hosts[usize::from(of)]
    }

    fn process(&mut self, of: Index) -> Option<&mut Process> {
        self.hosts[usize::from(of)].process.as_mut()
    }

    /// The number of milliseconds by which a validator's clock is ahead.
    fn ahead_ms(&self, of: Index) -> u64 {
        if self.hasty == Some(of) { 300_000 } else { 0 }
    }

    fn time(&self, of: Index) -> Now {
        Now {
            since: Duration::from_micros(self.schedule.now()),
            wall_ms: WALL_MS + self.ahead_ms(of) + self.schedule.now() / 1_000,
        }
    }

    fn push(&mut self, delay: u64, to: Index, event: Event) {
        self.schedule.push(delay, (to, event));
    }

    /// Starts the validators, and schedules all faults.
    pub fn start(&mut self) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let seats = if self.epoch_heights.is_some() { (self.committee.size - 1).max(1) } else { self.committee.size };
        self.ethereum = self.contracts.then(|| EthereumNetwork::new(&self.secrets, self.dice.bits()));
        self.session_network = self.sessions.then(|| SessionNetwork::new(self.identity, self.dice.bits()));
        let founders = &self.secrets[..self.committee.size];
        let clients = self.ethereum.as_ref().map(|network| &network.clients);
        let of_sessions = self.session_network.as_ref().map(|network| &network.clients);
        let genesis = ledgers::genesis(founders, self.identity, self.schedule(), seats, clients, of_sessions);
        self.genesis = with_seals(self, self.with_older_rules(genesis));
        // Books of institutions read the whole genesis.
        if self.genesis.seals.is_some() && self.genesis.rules >= RULES_OF_ENVELOPES {
            let network = EnvelopeNetwork::new(self.identity, self.dice.bits());
            network.found(&mut self.genesis);
            self.envelope_network = Some(network);
        }
        if self.institutions {
            let (founders, seed) = (&self.secrets[..self.committee.size], self.dice.bits());
            let mut network = InstitutionNetwork::new(self.identity, founders, seed);
            network.found(&mut self.genesis);
            self.institution_network = Some(network);
        }
        if self.prompt.is_some() {
            self.genesis.balances.extend(stops::balances());
        }
        self.chains.insert(0, self.epoch_zero(0).chain);
        for index in self.running() {
            self.make_home(index);
            self.push(if self.late == Some(index) { 2_000_000 } else { 0 }, index, Event::Wake);
        }
        self.draw_partitions();
        self.draw_installations();
        let running = self.running();
        let some = |network: &mut SimNetwork| running[network.dice.below(running.len() as u64) as usize];
        for _ in 0..self.cuts {
            let (a, b) = (some(self), some(self));
            let when = self.dice.below(1_500_000);
            if a != b {
                self.push(when, a, Event::Cut { other: b });
            }
        }
        for _ in 0..self.kills {
            let (who, when) = (some(self), self.dice.below(1_500_000));
            self.push(when, who, Event::Kill { loses_log: false });
        }
        for _ in 0..self.tears {
            let (who, when) = (some(self), self.dice.below(1_500_000));
            self.push(when, who, Event::Tear);
        }
        // At most f may lose their logs at a time.
        for i in 0..self.lost_logs {
            let correct = self.correct();
            let who = correct[self.dice.index(correct.len())];
            self.push(300_000 + i * 2_000_000, who, Event::Kill { loses_log: true });
        }
        for i in 0..self.blackouts {
            let when = 200_000 * (i + 1) + self.dice.below(100_000);
            let forgetful = (self.blackout_loses_log && i == 0).then(|| some(self));
            for index in self.running() {
                let apart = self.dice.below(200);
                self.push(when + apart, index, Event::Kill { loses_log: forgetful == Some(index) });
            }
        }
    }

    /// The disks of a validator that has never run.
    fn make_home(&mut self, of: Index) {
        let lineage = self.lineage();
        let home = &self.hosts[usize::from(of)].home;
        match &self.begun_with {
            None => replica::create_votes(&home.votes).expect("a new disk"),
            Some(state) => replica::begin_again(home, state, lineage).expect("new disks"),
        }
    }

    /// The trusted lineage at the beginning.
    fn lineage(&self) -> Lineage {
        let Rules { lag, begins, .. } = self.rules;
        Lineage { schedule: self.schedule(), lag, begins, chain: self.epoch_zero(0).chain }
    }

    /// A network of the same validators that starts again from the kept state; the seed determines everything.
    ///
    /// # Panics
    /// If no state was kept.
    pub fn restarted(&self, seed: u64) -> SimNetwork {
        let mut state = self.kept_state.clone().expect("a state was kept");
        let mut network = SimNetwork::of(self.rules.protocol, self.committee.size, seed);
        let restart =
            Restart { number: 1, snapshot: Snapshot::digest(&state), committee: Vec::new(), lane: None, rules: None };
        network.identity = state.begin_again(&self.identity, &restart, None).expect("the agreed state");
        network.rules = Rules { begins: state.height(), ..self.rules };
        network.transactions = self.transactions;
        network.trades = self.trades;
        // Transactions applied above the state are sent again by their first senders.
        for number in 1..=self.transactions {
            let mut pool = replica::Mempool::new(1);
            let transaction = ledgers::transaction(&self.identity, number, self.trades);
            let entry = replica::PoolEntry::new(transaction.id(), 0, transaction);
            match pool.admit(entry, &state) {
                Err(replica::Reject::Refused(_)) => drop(network.effective.insert(number)),
                _ => network.resubmitted.push(number),
            }
        }
        network.begun_with = Some(state);
        network
    }

    /// Number of earlier transactions that are sent again after a restart.
    pub fn resubmitted(&self) -> usize {
        self.resubmitted.len()
    }

    /// Sends `each` transactions to each validator, over a second and a half.
    pub fn submit_everywhere(&mut self, each: u64) {
        self.start();
        if self.prompt.is_some() {
            schedule_stops(self);
        }
        for number in self.resubmitted.clone() {
            let correct = self.correct();
            let (whom, when) = (correct[self.dice.index(correct.len())], self.dice.below(500_000));
            self.push(when, whom, Event::Submit(number));
        }
        for i in 0..each {
            for index in self.correct() {
                self.transactions += 1;
                let when = i * (1_500_000 / each) + self.dice.below(10_000);
                self.push(when, index, Event::Submit(self.transactions));
                if self.contracts {
                    let apart = self.dice.below(10_000);
                    self.push(when + apart, index, Event::Ethereum);
                }
                if self.sessions {
                    let apart = self.dice.below(10_000);
                    self.push(when + apart, index, Event::Session);
                }
                if self.institutions {
                    // Rules come into force late in a run of two versions.
                    let apart = self.dice.below(if self.is_mixed() { 8_000_000 } else { 10_000 });
                    self.push(when + apart, index, Event::Institution);
                }
                if self.envelope_network.is_some() {
                    let apart = self.dice.below(self.envelopes_within);
                    self.push(when + apart, index, Event::Envelope);
                }
                // Twins also get some of them, each instance separately: so they propose different sub-blocks.
                if let Some(twin) = self.some_twin() {
                    self.push(when, twin, Event::Submit(self.transactions));
                    if self.sessions {
                        self.push(when, twin, Event::Session);
                    }
                }
            }
        }
    }

    /// One of the instances of twins, from time to time.
    fn some_twin(&mut self) -> Option<Index> {
        let is_twin = |host: &Index| self.faults.get(&self.validator(*host)) == Some(&Faults::Twins);
        let twins: Vec<Index> = self.all_hosts().filter(is_twin).collect();
        (!twins.is_empty() && self.dice.once_in(2)).then(|| twins[self.dice.index(twins.len())])
    }

    fn connect(&mut self, a: Index, b: Index, delay: u64) {
        let link = self.links.number(a, b);
        self.push(delay, a, Event::Up { peer: b, link });
        let apart = self.dice.below(500);
        self.push(delay + apart, b, Event::Up { peer: a, link });
    }

    fn disconnect(&mut self, a: Index, b: Index, pause: u64) {
        if self.is_linked(a, b) {
            self.break_link(a, b, pause);
            self.connect(a, b, pause);
        }
    }

    /// Both ends notice soon that a link is down.
    fn break_link(&mut self, a: Index, b: Index, noticed: u64) {
        let link = self.links.break_off(a, b);
        for (at, other) in [(a, b), (b, a)] {
            let delay = self.dice.below(30_000);
            self.push(delay.min(noticed), at, Event::Down { peer: other, link });
        }
    }

    /// Breaks all links of a validator.
    fn disconnect_all(&mut self, of: Index, least: u64, range: u64) {
        for other in self.all_hosts().filter(|other| *other != of) {
            let pause = least + self.dice.below(range);
            self.disconnect(of, other, pause);
        }
    }

    /// Runs until all is decided, applied and certified everywhere.
    pub fn run_until_settled(&mut self) {
        while !self.is_settled() {
            assert!(
                self.schedule.count() < 40_000_000 && self.schedule.now() < self.progress + self.patience,
                "the run does not end: {}",
                self.describe()
            );
            let Some((to, event)) = self.schedule.pop() else { panic!("stuck: {}", self.describe()) };
            if event.is_outer() {
                self.progress = self.schedule.now();
            }
            if let Event::Partition { last } = event {
                self.change_partition(last);
            } else if let Some(faults) = self.fault_of(to) {
                misbehave(self, to, faults, event);
            } else if !self.hosts[usize::from(to)].stopped {
                self.handle(to, event);
                self.crash_if_due(to);
            }
        }
    }

    fn handle(&mut self, to: Index, event: Event) {
        let life = self.hosts[usize::from(to)].life;
        match event {
            Event::Wake => self.wake(to),
            Event::Kill { loses_log } => self.kill(to, loses_log),
            Event::Install => self.install(to),
            Event::Tear => {
                let (points, surviving) = (self.dice.below(6), Surviving::drawn(&mut self.dice));
                self.hosts[usize::from(to)].arm_crash(points, surviving);
            }
            Event::Cut { other } => {
                let pause = 10_000 + self.dice.below(400_000);
                self.disconnect(to, other, pause);
            }
            Event::Submit(number) => {
                self.arrived.entry(number).or_insert((self.schedule.now(), to));
                self.host(to).given.insert(number);
                self.admit(to, number);
            }
            Event::Ethereum => send_ethereum(self, to),
            Event::Session => send_of_session(self, to),
            Event::Institution => send_of_institution(self, to),
            Event::Envelope => send_envelope(self, to),
            Event::Stops(event) => send_stops(self, to, event),
            Event::Step { life: of } if of == life => self.step(to),
            Event::Deadline { life: of } if of == life => self.nudge(to),
            Event::Effects { life: of, effects, order } if of == life => {
                for effect in effects {
                    self.perform(to, effect, &order);
                }
            }
            Event::Job { life: of, job } if of == life => self.work(to, job),
            Event::Frame { from, link, bytes } => match self.occupy(to, bytes.len()) {
                0 => self.deliver(to, from, link, bytes),
                wait => self.push(wait, to, Event::Processed { from, link, bytes }),
            },
            Event::Processed { from, link, bytes } => self.deliver(to, from, link, bytes),
            Event::Up { peer, link } if self.links.number(peer, to) == link => {
                let ahead_ms = self.ahead_ms(peer) as i64 - self.ahead_ms(to) as i64;
                self.on_sight(to, peer, Sight::Up { ahead_ms });
            }
            // A later break of the same link reports it again.
            Event::Down { peer, link } if self.links.number(peer, to) == link => self.on_sight(to, peer, Sight::Down),
            _ => {}
        }
    }

    /// A host's processor works on a frame when it has finished all earlier ones; returns the microseconds until it is
    /// done.
    fn occupy(&mut self, host: Index, bytes: usize) -> u64 {
        let cost = self.frame_cost.frame + self.frame_cost.byte * bytes as u64;
        let now = self.schedule.now() * 1_000;
        let host = &mut self.hosts[usize::from(host)];
        host.busy_until = host.busy_until.max(now) + cost;
        host.busy += cost;
        self.report.busiest = self.report.busiest.max(host.busy / 1_000);
        (host.busy_until - now).div_ceil(1_000)
    }

    /// Delivers a frame to its receiver. Frames on a broken link are void; but a validator that has just changed its
    /// links may still receive them.
    fn deliver(&mut self, to: Index, from: Index, link: u64, bytes: Arc<[u8]>) {
        if self.links.number(from, to) == link {
            return self.on_sight(to, from, Sight::Frame(replica::FrameBytes::new(bytes)));
        }
        let by_key = self.secrets[usize::from(from)].public();
        let Some(process) = self.process(to) else { return };
        let Some(before) = &process.before else { return };
        let Some(peer) = before.peers.iter().position(|peer| peer.key == by_key) else { return };
        let generation = process.generation - 1;
        let event = Sight::Frame(replica::FrameBytes::new(bytes));
        process.inbox.push(Input::Link { generation, peer: peer as Index, event });
        self.nudge(to);
    }

    fn on_sight(&mut self, to: Index, from: Index, event: Sight) {
        let from = self.validator(from);
        let Some(process) = self.process(to) else { return };
        let Some(peer) = process.order.iter().position(|index| *index == from) else { return };
        process.inbox.push(Input::Link { generation: process.generation, peer: peer as Index, event });
        self.nudge(to);
    }

    /// Schedules a step of a validator soon.
    fn nudge(&mut self, of: Index) {
        let host = self.host(of);
        if host.process.is_some() && !std::mem::replace(&mut host.steps, true) {
            let life = host.life;
            self.push(self.quantum, of, Event::Step { life });
        }
    }

    fn step(&mut self, of: Index) {
        let (now, horizon) = (self.time(of), self.rules.horizon());
        let host = self.host(of);
        host.steps = false;
        let life = host.life;
        let Some(process) = &mut host.process else { return };
        let waiting = Waiting { ready: process.pool.ready(), oldest_ms: process.pool.oldest_ms() };
        let inputs = std::mem::take(&mut process.inbox);
        let effects = process.replica.step(now, waiting, inputs).expect("a disk without faults");
        let engine = process.replica.engine();
        let live: Vec<u64> = engine.live().map(|(height, _)| height).collect();
        assert!(live.iter().all(|height| *height <= engine.decided() + horizon));
        assert!(live.len() as u64 <= 2 * horizon + 128, "{} live heights", live.len());
        let deadline = (process.replica.deadline().as_micros() as u64).max(self.schedule.now() + 1);
        let order = self.order_of(of);
        self.push(deadline - self.schedule.now(), of, Event::Deadline { life });
        if effects.is_empty() {
            return;
        }
        // The effects of a step may repeat those of an earlier one, and wait until that is durable too.
        let synced = effects.iter().any(|effect| matches!(effect, Effect::Observed(replica::Observation::VotesSynced)));
        let delay = match synced {
            false => 0,
            true if self.slow == Some(of) => 20_000 + self.dice.below(20_000),
            true => 100 + self.dice.below(2_000),
        };
        let now = self.schedule.now();
        let process = self.process(of).expect("it has just made a step");
        process.released_at = process.released_at.max(now + delay);
        let delay = process.released_at - now;
        self.push(delay, of, Event::Effects { life, effects, order });
    }

    /// Validators by their index among the peers of a replica's present epoch.
    fn order_of(&self, of: Index) -> Vec<Index> {
        let process = self.hosts[usize::from(of)].process.as_ref().expect("it runs");
        process.replica.network().peers.iter().map(|peer| self.by_key[&peer.key.0]).collect()
    }

    fn transmit(&mut self, from: Index, to: Index, bytes: Arc<[u8]>) {
        assert_ne!(self.validator(from), to);
        *self.sent.entry(to).or_default() += bytes.len() as u64;
        let Some(to) = self.facing(from, to) else { return };
        let link = self.links.number(from, to);
        let tail = if self.tails && self.dice.below(50) == 0 { self.dice.below(30_000) } else { 0 };
        let delay = match &self.delays {
            Some(delays) => {
                let delay = delays[usize::from(self.validator(from))][usize::from(self.validator(to))];
                delay + self.dice.below(delay / 20 + 100)
            }
            None => 300 + self.dice.below(1_500) + tail,
        };
        self.report.count(&bytes);
        let delay = delay + self.occupy(from, 0);
        self.push(delay, to, Event::Frame { from, link, bytes });
    }

    fn send(&mut self, from: Index, to: Index, frame: &Frame) {
        self.transmit(from, to, frame.to_bytes().into());
    }

    fn send_all(&mut self, me: Index, frame: impl Fn(&mut SimNetwork, Index) -> Option<Frame>) {
        for to in self.committee.members().filter(|to| *to != me).collect::<Vec<_>>() {
            if let Some(frame) = frame(self, to) {
                self.send(me, to, &frame);
            }
        }
    }

    /// An armed crash occurs if it is due: the process's next actions are lost.
    fn crash_if_due(&mut self, of: Index) {
        if let Some(home) = self.hosts[usize::from(of)].crashed() {
            self.end(of, home);
        }
    }

    fn kill(&mut self, of: Index, loses_log: bool) {
        if self.hosts[usize::from(of)].process.is_none() {
            return;
        }
        let surviving = Surviving::drawn(&mut self.dice);
        self.check_log(of);
        let mut home = host::after_crash(&self.hosts[usize::from(of)].home, surviving);
        if loses_log {
            home.votes = kernel::FaultDisk::new(self.dice.bits());
            self.host(of).secrets = replica::SeatSecrets::default();
        }
        self.end(of, home);
    }

    /// The process ends; the next start finds these disks.
    fn end(&mut self, of: Index, home: replica::Home<kernel::FaultDisk>) {
        let host = self.host(of);
        host.disarm();
        if host.process.take().is_some() {
            host.life += 1;
            host.steps = false;
            self.report.restarts += 1;
            self.disconnect_all(of, 50_000, 300_000);
            let pause = 10_000 + self.dice.below(200_000);
            self.push(pause, of, Event::Wake);
        }
        self.host(of).home = home;
    }

    /// Starts a process on its disks; it may crash during the start, repeatedly.
    fn wake(&mut self, of: Index) {
        let (network, settings) = (self.epoch_zero(of), host::settings(self.mistake, self.tick, self.gather_from));
        let (checkpoint_blocks, keep_blocks, mistake) =
            (self.checkpoint_blocks, self.keep_blocks, self.mistake.and_then(Mistake::of_life).into());
        let (known, approve) = self.program_of(of);
        let keeping = Keeping { checkpoint_blocks, keep_blocks, state_behind: 0, mistake, known, approve };
        let process = loop {
            if self.tears > 0 && self.dice.once_in(4) {
                let (points, surviving) = (self.dice.below(20), Surviving::drawn(&mut self.dice));
                self.hosts[usize::from(of)].arm_crash(points, surviving);
            }
            let host = &self.hosts[usize::from(of)];
            let opened = Process::open(&host.home, &self.genesis, &network, settings, keeping);
            let crashed = host.crashed();
            host.disarm();
            match (crashed, opened) {
                (Some(home), opened) => {
                    drop(opened);
                    self.host(of).home = home;
                }
                (None, Ok(process)) => break process,
                (None, Err(error)) => panic!("a crash left validator {of} with what cannot be recovered: {error}"),
            }
        };
        let chain = process.replica.network().chain.clone();
        self.chains.entry(chain.epoch).or_insert(chain);
        let process = seated(self, of, process);
        let host = self.host(of);
        host.process = Some(process);
        host.steps = false;
        self.note_recovered(of);
        let host = self.host(of);
        let (life, given) = (host.life, host.given.clone());
        let order = self.order_of(of);
        self.process(of).expect("just begun").order = order;
        given.into_iter().for_each(|number| self.admit(of, number));
        let peers: Vec<Index> = self.all_hosts().filter(|other| self.is_linked(of, *other)).collect();
        for peer in peers {
            let link = self.links.number(of, peer);
            self.push(400_000, of, Event::Up { peer, link });
        }
        self.push(1_000, of, Event::Job { life, job: jobs::Due::States });
        self.nudge(of);
    }

    /// Validators that stopped because their state differs.
    pub fn stopped(&self) -> Vec<Index> {
        self.correct().into_iter().filter(|index| self.hosts[usize::from(*index)].stopped).collect()
    }
}
