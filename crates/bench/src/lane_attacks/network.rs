//! The network that is attacked, and its payers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use lane::{LaneClient, LaneDirectory, LaneReceiver, LaneSender, connect_over};
use ledger::{LaneAsset, LaneBls, LaneBridge, LaneOutput, LaneTerms, Ledger};
use node::{Exchange, HOME_PORTS, LaneKeys, LaneSeat, make_first_lane_keys};
use payments::{
    BridgeOperation, ContestClaim, ContestedOutput, Holding, LaneCommittee, Output, OutputId, OutputProof, Payment,
    PaymentBody, Recipient, SpentOutput, build_payment, case_weight, contests, owner_message,
};
use primitives::{Amount, AssetId, Body, Operation, SecretKey, Sequence};
use serde_json::{Value, json};
use store::RealDisk;

use super::LaneAttackOptions;
use crate::cluster::{Cluster, ClusterSettings};
use crate::exchange::Error;

pub(super) const ASSET: AssetId = AssetId(0);
/// The amount of a payer's output.
const PAID: Amount = 1_000;
/// How long a payer waits for a quorum before it is counted as not served.
const PATIENCE: Duration = Duration::from_secs(120);
/// A payment is not built when so few heights of the epoch are left.
const MARGIN_HEIGHTS: u64 = 6;
/// Posts of the contesting accounts for a block.
const POSTS: usize = 24;
/// Accounts that contest: each has 64 sequence numbers at a time.
const CONTESTING: u64 = 8;

/// A network with a lane, and the outputs of its genesis: of payers, and of the one who contests.
pub(super) struct AttackedLane {
    cluster: Cluster,
    addresses: Vec<Vec<SocketAddr>>,
    committee: LaneCommittee,
    options: LaneAttackOptions,
    opened: Mutex<BTreeSet<OutputId>>,
    verdicts: AtomicU64,
}

/// Times from the first byte of a request to a certificate.
pub(super) struct Latencies(Vec<f64>);

impl Latencies {
    fn at(&self, part: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * part).round() as usize).copied().unwrap_or(f64::NAN)
    }

    pub fn median_ms(&self) -> f64 {
        self.at(0.5)
    }

    pub fn as_json(&self) -> Value {
        let (median, p99, most) = (self.median_ms(), self.at(0.99), self.at(1.0));
        json!({ "served": self.0.len(), "median_ms": median, "p99_ms": p99, "most_ms": most })
    }
}

fn secret(kind: u8, number: u64) -> SecretKey {
    let mut seed = [kind; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    SecretKey::from_seed(seed)
}

/// The key that registers a member's keys; its account posts for it.
fn registrar(member: usize) -> SecretKey {
    secret(0x31, member as u64)
}

fn contesting(number: u64) -> SecretKey {
    secret(0x32, number)
}

/// Shards listen at addresses of their own, so that payers of this machine are not taken for members.
fn listen(member: usize) -> std::io::Result<SocketAddr> {
    let free = sockets::free_ports(HOME_PORTS)?;
    Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 9, 0, 1 + member as u8)), free.port()))
}

fn terms(options: &LaneAttackOptions, members: Vec<Vec<primitives::PublicKey>>) -> LaneTerms {
    let validators = options.validators;
    let payers = (0..options.payers).flat_map(|payer| {
        let to = secret(0x33, payer as u64).public();
        vec![LaneOutput { to, asset: ASSET, amount: PAID }; 3 * options.payments]
    });
    let contested = LaneOutput { to: secret(0x34, 0).public(), asset: ASSET, amount: 1 };
    let is_contest = options.attack == super::LaneAttack::Contests;
    let contested = std::iter::repeat_n(contested, if is_contest { options.size } else { 0 });
    LaneTerms {
        epoch_heights: options.epoch_heights,
        halt_heights: 3,
        case_deposit: case_weight(validators),
        lapse_penalty: 10_000,
        members,
        registrars: (0..validators).map(|member| registrar(member).public()).collect(),
        bls: LaneBls::None,
        accounts: Vec::new(),
        assets: vec![LaneAsset { asset: ASSET, least_units: 1, fee: 0, outflow: None }],
        outputs: payers.chain(contested).collect(),
    }
}

impl AttackedLane {
    pub fn start(options: &LaneAttackOptions, directory: &Path) -> Result<AttackedLane, Error> {
        let validators = options.validators;
        let home = |index: usize| directory.join(index.to_string());
        let mut members = Vec::new();
        for index in 0..validators {
            RealDisk::new(home(index))?;
            members.push(make_first_lane_keys(&home(index), 1, None)?);
        }
        let mut settings = ClusterSettings::local(validators);
        settings.config.blocks.interval_ms = 20;
        settings.traders = 0;
        let accounts = (0..validators).map(registrar).chain((0..CONTESTING).map(contesting));
        settings.rich = accounts.map(|key| key.public().address()).collect();
        settings.lane = Some(terms(options, members));
        let cluster = Cluster::start(settings, directory)?;
        let addresses: Vec<Vec<SocketAddr>> =
            (0..validators).map(|member| Ok(vec![listen(member)?])).collect::<std::io::Result<_>>()?;
        for (index, node) in cluster.running().enumerate() {
            let seat = LaneSeat {
                index: index as u8,
                keys: LaneKeys::Registrar(Box::new(registrar(index))),
                addresses: addresses.clone(),
                registers: 1,
                bind: None,
                tls: true,
                known: Default::default(),
                account: registrar(index),
                safe: None,
                apart: Default::default(),
            };
            node.start_lane(seat, &home(index))?;
        }
        let committee = lane_of(first(&cluster), |lane| lane.committee(0).cloned()).ok_or("no committee")?;
        let (opened, verdicts) = (Mutex::default(), AtomicU64::new(0));
        Ok(AttackedLane { cluster, addresses, committee, options: *options, opened, verdicts })
    }

    pub fn stop(&self) {
        self.cluster.running().for_each(Exchange::stop);
    }

    pub fn committee(&self) -> &LaneCommittee {
        &self.committee
    }

    pub fn payer(&self, number: usize) -> SecretKey {
        secret(0x33, number as u64)
    }

    pub fn epoch(&self) -> u64 {
        lane_of(first(&self.cluster), |lane| lane.bridge().clock().epoch())
    }

    /// Members that have registered keys of an epoch.
    pub fn registered(&self, epoch: u64) -> usize {
        lane_of(first(&self.cluster), |lane| lane.bridge().registrations(epoch).count())
    }

    pub fn cases_opened(&self) -> usize {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub fn verdicts(&self) -> u64 {
        self.verdicts.load(Ordering::Acquire)
    }

    /// A payment of an output of the first epoch.
    pub fn payment(&self, owner: &SecretKey, spent: SpentOutput, output: Output) -> Payment {
        let (network, owner) = (self.committee.network(), owner.public());
        Payment { network, home: 0, into: 0, owner, inputs: vec![spent], outputs: vec![output] }
    }

    /// Every payer pays its outputs of a phase one after the other, and all at the same time.
    ///
    /// # Errors
    /// If one of them is not served.
    pub fn pay_all(&self, phase: usize) -> Result<Latencies, Error> {
        let times = std::thread::scope(|scope| {
            let payers: Vec<_> =
                (0..self.options.payers).map(|payer| scope.spawn(move || self.pay(payer, phase))).collect();
            let join = |payer: std::thread::ScopedJoinHandle<'_, Result<Vec<f64>, String>>| {
                payer.join().unwrap_or_else(|_| Err("a payer panicked".into()))
            };
            payers.into_iter().map(join).collect::<Result<Vec<_>, String>>()
        })?;
        let mut times: Vec<f64> = times.into_iter().flatten().collect();
        times.sort_unstable_by(f64::total_cmp);
        Ok(Latencies(times))
    }

    /// The present epoch, once its end is not near: what is built just before it may come too late, as a purse knows.
    fn epoch_to_pay_into(&self) -> u64 {
        loop {
            let clock = |lane: &LaneBridge| (lane.bridge().clock().epoch(), lane.bridge().clock().heights_left());
            let (epoch, left) = lane_of(first(&self.cluster), clock);
            if left > MARGIN_HEIGHTS {
                return epoch;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn pay(&self, payer: usize, phase: usize) -> Result<Vec<f64>, String> {
        let (key, payments) = (self.payer(payer), self.options.payments);
        let directory =
            LaneDirectory { committee: self.committee.clone(), addresses: self.addresses.clone(), tls: true };
        let mut client = LaneClient::new(directory);
        let rules = lane_of(first(&self.cluster), |lane| lane.rules(0));
        let first = (payer * 3 + phase) * payments;
        let mut pay_one = |index: usize| {
            let output = Output { to: Recipient::Key(key.public()), asset: ASSET, amount: PAID };
            let id = OutputId::of_genesis(&self.committee.network(), 0, index as u32);
            let coin = Holding { id, output, proof: OutputProof::Ledger };
            let into = self.epoch_to_pay_into();
            let signed = build_payment(&rules, &key, 0, into, vec![coin], vec![output]).map_err(|e| e.to_string())?;
            let begun = Instant::now();
            client.confirm(&signed, PATIENCE).map_err(|error| format!("payer {payer} is not served: {error}"))?;
            Ok(begun.elapsed().as_secs_f64() * 1e3)
        };
        (first..first + payments).map(&mut pay_one).collect()
    }

    /// Contests all outputs, as often as it takes, until it is over.
    pub fn contest_until(&self, is_over: &AtomicBool) -> Result<(), Error> {
        let node = first(&self.cluster);
        let mut sequences: BTreeMap<u64, Sequence> = BTreeMap::new();
        let own = secret(0x34, 0);
        let from = 3 * self.options.payers * self.options.payments;
        let ids =
            (from..from + self.options.size).map(|at| OutputId::of_genesis(&self.committee.network(), 0, at as u32));
        let all: Vec<OutputId> = ids.collect();
        while !is_over.load(Ordering::Acquire) {
            self.count_cases();
            let known = |id: &&OutputId| !self.opened.lock().is_ok_and(|opened| opened.contains(*id));
            let left: Vec<OutputId> = all.iter().filter(known).take(POSTS * 16).copied().collect();
            let claims = left.iter().map(|id| self.claim(&own, *id)).collect();
            for (number, post) in (0..).zip(contests(case_weight(self.options.validators), claims)) {
                self.post(node, &mut sequences, number % CONTESTING, &post)?;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.count_cases();
        Ok(())
    }

    fn claim(&self, own: &SecretKey, id: OutputId) -> ContestClaim {
        let output = SpentOutput { id, asset: ASSET, amount: 1 };
        let contested = ContestedOutput { output, home: 0, owner: own.public() };
        let network = self.committee.network();
        let exit = PaymentBody::new(contested.exit(network));
        let signature = own.sign(&owner_message(&network, 0, &exit.digest));
        ContestClaim { contested, signature, proof: OutputProof::Ledger }
    }

    /// Submits a post of a contesting account. That the pool or the ledger refuses it is a part of the attack.
    fn post(
        &self,
        node: &Exchange,
        sequences: &mut BTreeMap<u64, Sequence>,
        number: u64,
        post: &BridgeOperation,
    ) -> Result<(), Error> {
        let key = contesting(number);
        let account = key.public().address();
        let (highest, chain, network, height) = node.read(|ledger| {
            let highest = ledger.accounts().get(&account).map_or(0, |account| account.window().highest());
            (highest, ledger.chain(), ledger.network(), ledger.height())
        });
        let sequence = sequences.entry(number).or_default();
        // Numbers that no block has taken are used again.
        if *sequence < highest || *sequence > highest + 48 {
            *sequence = highest;
        }
        *sequence += 1;
        let operation = Operation::Lane(post.encode().into());
        let body = Body { chain, account, sequence: *sequence, until: height + 64, operation };
        drop(node.submit(vec![body.sign(&network, &key)], false).map_err(|closed| closed.to_string())?);
        Ok(())
    }

    /// Looks which cases are open: the others that were seen are decided.
    fn count_cases(&self) {
        let open: BTreeSet<OutputId> = lane_of(first(&self.cluster), |lane| {
            lane.bridge().resolver().cases().map(|(of, _)| of.output.id).collect()
        });
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.extend(&open);
        self.verdicts.store((opened.len() - open.len()) as u64, Ordering::Release);
    }

    /// An idle connection of an attacker to a shard.
    pub fn open_from(&self, from: IpAddr, validator: usize) -> std::io::Result<TcpStream> {
        bound(from, self.addresses[validator][0])
    }
}

/// A connection from an address of this machine.
fn bound(from: IpAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from, 0))?;
        socket.connect(to).await?.into_std()
    })?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// A connection with TLS from an address of this machine to the shard of a validator.
pub(super) fn connect_from(
    from: IpAddr,
    network: &AttackedLane,
    validator: usize,
) -> Result<(LaneSender, LaneReceiver), Error> {
    let key = network.committee.key(validator as u8, 0)?;
    Ok(connect_over(bound(from, network.addresses[validator][0])?, Some(key))?)
}

/// Whether the shard has kept a connection open.
pub(super) fn is_open(stream: &TcpStream) -> bool {
    let mut byte = [0];
    let peeked = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut byte));
    matches!(peeked, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
}

fn first(cluster: &Cluster) -> &Exchange {
    cluster.running().next().expect("all validators run")
}

fn lane_of<T>(node: &Exchange, read: impl FnOnce(&LaneBridge) -> T) -> T {
    node.read(|ledger: &Ledger| read(ledger.lane().expect("the chain has a lane")))
}
