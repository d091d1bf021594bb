//! The payment lane without sockets: the cost of its operations on one core, and the resulting throughput for a grid of
//! validators and shards. The spent set. The log.
//!
//! CPU time is the kernel's count for this thread. *Table 1* is that of the paper, measured here. *Table 2* is not
//! measured: it is payments per second of one core of one shard, times the cores and the shards.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use payments::*;
use primitives::{Address, AssetId, Digest, PublicKey, SecretKey, Signature, Signed, verify_all};
use serde_json::{Value, json};
use store::{Disk, DiskFile, RealDisk};

use crate::exchange::Error;

/// A signed message, to be verified with others.
pub(crate) struct Item(pub PublicKey, pub [u8; 96], pub Signature);

impl Signed for Item {
    fn signature(&self) -> (PublicKey, Signature) {
        (self.0, self.2)
    }

    fn signed_bytes(&self) -> Vec<u8> {
        self.1.to_vec()
    }
}

/// Size of the measurement.
#[derive(Clone, Copy, Debug)]
pub struct LaneRowsOptions {
    /// Payments of each scheme; a sixteenth of them under BLS.
    pub payments: usize,
    /// Keys of the spent set.
    pub spent: usize,
    /// Number of logged keys.
    pub logged: usize,
}

impl LaneRowsOptions {
    /// The options for the figures in the documentation.
    pub const FULL: LaneRowsOptions = LaneRowsOptions { payments: 2_048, spent: 10_000_000, logged: 200_000 };
    /// A check that everything runs.
    pub const QUICK: LaneRowsOptions = LaneRowsOptions { payments: 32, spent: 20_000, logged: 4_000 };
}

const NETWORK: Digest = Digest([9; 32]);
const LEAVES: usize = 256;
/// Leaves of the trees of the paper's table 1.
const PAPER_LEAVES: usize = 64;
/// Cores of a shard's machine in the paper.
const PAPER_CORES: f64 = 32.0;
const SIZES: [usize; 3] = [4, 10, 28];
/// Number of keys that one sync makes durable.
const KEYS_OF_A_SYNC: usize = 1_000;

/// Nanoseconds of CPU time of this thread.
pub(crate) fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux provides it");
    text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number")
}

/// CPU nanoseconds of some work; its wall time if it was too short for the kernel to count.
fn nanoseconds(work: impl FnOnce()) -> f64 {
    let (start, begun) = (cpu(), Instant::now());
    work();
    match cpu() - start {
        0 => begun.elapsed().as_nanos() as f64,
        counted => counted as f64,
    }
}

/// CPU nanoseconds that a measurement has at least: the kernel counts in ticks of a few milliseconds.
const COUNTED: u64 = 80_000_000;

/// CPU nanoseconds of one call, over as many times `count` of them as the kernel counts well. Calls are numbered.
fn measure(count: usize, mut call: impl FnMut(usize)) -> f64 {
    let (start, mut calls) = (cpu(), 0);
    while cpu() - start < COUNTED {
        (calls..calls + count).for_each(&mut call);
        calls += count;
    }
    (cpu() - start) as f64 / calls as f64
}

fn secret(kind: u8, number: u64) -> SecretKey {
    let mut seed = [kind; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    SecretKey::from_seed(seed)
}

fn rules() -> LaneRules {
    LaneRules { network: NETWORK, assets: BTreeMap::new(), other: AssetRule { least_units: 1, fee: 0 } }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Scheme {
    Naive,
    Merkle,
    Shared,
    Bls,
}

impl Scheme {
    const ALL: [Scheme; 4] = [Scheme::Naive, Scheme::Merkle, Scheme::Shared, Scheme::Bls];

    fn name(self) -> &'static str {
        match self {
            Scheme::Naive => "naive",
            Scheme::Merkle => "merkle",
            Scheme::Shared => "shared_tree",
            Scheme::Bls => "bls",
        }
    }
}

fn bls(validator: usize) -> BlsSecretKey {
    BlsSecretKey::from_seed(secret(3, validator as u64).to_seed())
}

fn committee(n: usize, scheme: Scheme) -> LaneCommittee {
    let keys = (0..n).map(|validator| vec![secret(2, validator as u64).public()]).collect();
    let plain = LaneCommittee::new(NETWORK, 0, keys);
    if scheme != Scheme::Bls {
        return plain;
    }
    let account = Address([3; 20]);
    let register = |validator| {
        let key = bls(validator);
        vec![(key.public(), account, key.prove_possession(&NETWORK, &account))]
    };
    plain.with_bls((0..n).map(register).collect()).expect("proofs hold")
}

struct Shard {
    validator: LaneValidator,
    log: Vec<u8>,
    leaves: usize,
}

impl Shard {
    fn new(committee: &LaneCommittee, validator: usize, (scheme, leaves): (Scheme, usize), coins: &[Holding]) -> Shard {
        let settings = LaneSettings {
            rules: rules(),
            committee: committee.clone(),
            previous: None,
            validator: validator as u8,
            shard: 0,
            now: 0,
            leaves: if scheme == Scheme::Naive { 1 } else { leaves },
            entries_max: 1 << 24,
            trees_waiting_max: 1 << 20,
            checks_per_peer: u32::MAX,
            checks_per_tick: u32::MAX,
            roots_per_validator: 1 << 12,
        };
        let owner = LogOwner { network: NETWORK, home: 0, validator: validator as u8, shard: 0 };
        let log = new_log(&owner, [5; 32]);
        let (opened, _) = LaneValidator::open(settings, secret(2, validator as u64), [6; 32], Some(&log));
        let opened = if scheme == Scheme::Bls { opened.with_bls(bls(validator)) } else { opened };
        let mut shard = Shard { validator: opened, log, leaves };
        for coin in coins {
            shard.validator.step(&shard.log, LaneInput::Backed(coin.id, coin.output));
        }
        shard
    }

    /// A step and all following steps in memory.
    fn step(&mut self, input: LaneInput<'_>) -> Vec<LaneEffect> {
        let mut effects = self.validator.step(&self.log, input);
        for place in 0..effects.len() {
            if let LaneEffect::Append(bytes) = &effects[place] {
                self.log.extend(bytes);
                effects.extend(self.validator.step(&self.log, LaneInput::Synced(self.log.length())));
            }
        }
        effects
    }

    fn ask(&mut self, requests: &[Vec<u8>]) -> Vec<LaneEffect> {
        let mut effects = Vec::new();
        for chunk in requests.chunks(self.leaves) {
            // As the shell does with requests that arrive together.
            self.validator.verify_together(chunk.iter().map(|request| (1, request.as_slice())));
            for bytes in chunk {
                effects.extend(self.step(LaneInput::Request { peer: 1, bytes }));
            }
        }
        effects.extend(self.step(LaneInput::Tick));
        effects
    }
}

/// The requests of clients, or of their broker.
fn prepare(requests: Vec<Vec<u8>>, scheme: Scheme, committee: &LaneCommittee) -> Vec<Vec<u8>> {
    match scheme {
        Scheme::Naive | Scheme::Merkle => return requests,
        Scheme::Bls => return requests.iter().map(|request| AnswerScheme::Bls.ask(request)).collect(),
        Scheme::Shared => {}
    }
    let batch = |chunk: &[Vec<u8>]| LaneBroker::new(committee, chunk.to_vec()).expect("a batch").request();
    requests.chunks(LEAVES).map(batch).collect()
}

fn output(to: u64) -> Output {
    Output { to: Recipient::Key(secret(1, to).public()), asset: AssetId(0), amount: 10 }
}

fn pay(from: u64, coin: Holding, to: u64) -> SignedPayment {
    build_payment(&rules(), &secret(1, from), 0, 0, vec![coin], vec![output(to)]).expect("a correct payment")
}

/// Certificates of payments from a broker's trees.
fn shared_certificates(
    committee: &LaneCommittee,
    payments: &[SignedPayment],
    answers: Vec<Vec<LaneEffect>>,
) -> Vec<PaymentCertificate> {
    let requests: Vec<Vec<u8>> = payments.iter().map(|payment| payment.request.clone()).collect();
    let mut brokers: Vec<LaneBroker> =
        requests.chunks(LEAVES).map(|chunk| LaneBroker::new(committee, chunk.to_vec()).expect("a batch")).collect();
    for effects in answers {
        let batches = effects.into_iter().filter_map(|effect| match effect {
            LaneEffect::BatchAnswer(_, answer) => Some(answer),
            _ => None,
        });
        for (broker, answer) in brokers.iter_mut().zip(batches) {
            broker.add(committee, &mut RootCache::new(0), answer).expect("a correct answer");
        }
    }
    let each = |broker: &LaneBroker| {
        let of = |index| broker.certificate(committee, index as u32).expect("q confirm it");
        (0..broker.digests().len()).map(of).collect::<Vec<_>>()
    };
    brokers.iter().flat_map(each).collect()
}

/// Certificates of all payments, from the effects of q validators.
fn certificates(
    committee: &LaneCommittee,
    payments: &[SignedPayment],
    scheme: Scheme,
    answers: Vec<Vec<LaneEffect>>,
) -> Vec<PaymentCertificate> {
    if scheme == Scheme::Shared {
        return shared_certificates(committee, payments, answers);
    }
    let mut lane: BTreeMap<Digest, Vec<LaneAnswer>> = BTreeMap::new();
    let mut parts: BTreeMap<Digest, Vec<(u8, BlsSignature)>> = BTreeMap::new();
    for (validator, effects) in answers.into_iter().enumerate() {
        for effect in effects {
            match effect {
                LaneEffect::Answer { digest, answer, .. } => lane.entry(digest).or_default().push(answer),
                LaneEffect::BlsAnswer { digest, signature, .. } => {
                    parts.entry(digest).or_default().push((validator as u8, signature));
                }
                _ => {}
            }
        }
    }
    let of = |payment: &SignedPayment| match scheme {
        Scheme::Bls => {
            let sum = BlsAggregate::of(committee, &parts[&payment.digest]).expect("distinct members");
            PaymentCertificate::Aggregate(sum)
        }
        _ => PaymentCertificate::Answers(lane[&payment.digest].clone()),
    };
    payments.iter().map(of).collect()
}

/// The cost of one payment for one shard of one validator.
struct ShardCost {
    /// CPU nanoseconds of a payment whose input is proved by a certificate.
    payment: f64,
    /// CPU nanoseconds of recording its certificate.
    settlement: f64,
    request_bytes: usize,
    certificate_bytes: usize,
}

fn receipt(payment: &SignedPayment, certificate: PaymentCertificate) -> FastReceipt {
    let view = PaymentView::parse(&payment.payment).expect("well-formed");
    FastReceipt::of(&view, 0, certificate).expect("one output")
}

/// The cost for a committee of `n` with trees of `leaves`, of `count` payments; brokers' trees have [`LEAVES`].
fn shard_cost(n: usize, (scheme, leaves): (Scheme, usize), count: usize) -> ShardCost {
    let cost = || shard_cost_here(n, (scheme, leaves), count);
    // A thread that is a pool of its own: what it verifies in large batches counts as its own time.
    let alone = || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
        pool.expect("it has its thread").install(cost)
    };
    std::thread::scope(|scope| scope.spawn(alone).join().expect("it ends"))
}

fn shard_cost_here(n: usize, (scheme, leaves): (Scheme, usize), count: usize) -> ShardCost {
    let committee = committee(n, scheme);
    let coin = |i: u64| {
        let id = OutputId::of_genesis(&NETWORK, 0, i as u32);
        Holding { id, output: output(i), proof: OutputProof::Ledger }
    };
    let coins: Vec<Holding> = (0..count as u64).map(coin).collect();
    let first: Vec<SignedPayment> = (0..).zip(&coins).map(|(i, coin)| pay(i, coin.clone(), i)).collect();
    let requests: Vec<Vec<u8>> = first.iter().map(|payment| payment.request.clone()).collect();
    let quorum = committee.quorums().certificate;
    let mut shards: Vec<Shard> = (0..quorum).map(|v| Shard::new(&committee, v, (scheme, leaves), &coins)).collect();
    let requests = prepare(requests, scheme, &committee);
    let answers = shards.iter_mut().map(|shard| shard.ask(&requests)).collect();
    let certified = certificates(&committee, &first, scheme, answers);
    let mut certificate = Vec::new();
    certified[0].write(&mut certificate);
    let receipts: Vec<FastReceipt> = first.iter().zip(certified).map(|(payment, of)| receipt(payment, of)).collect();
    let settlements: Vec<Vec<u8>> = receipts.iter().map(FastReceipt::settle_request).collect();
    let second: Vec<Vec<u8>> = (0..)
        .zip(&receipts)
        .map(|(i, receipt)| {
            let id = receipt.proof.id_of(&NETWORK, &receipt.output).expect("its own");
            let proof = OutputProof::Payment(Box::new(receipt.proof.clone()));
            pay(i, Holding { id, output: receipt.output, proof }, i + 1).request
        })
        .collect();
    let request_bytes = second[0].len();
    let ask = if scheme == Scheme::Bls { AnswerScheme::Bls } else { AnswerScheme::Tree };
    let settlements: Vec<Vec<u8>> = settlements.iter().map(|request| ask.ask(request)).collect();
    let second = prepare(second, scheme, &committee);
    let mut shard = shards.swap_remove(0);
    let timed = |shard: &mut Shard, requests: &[Vec<u8>]| {
        let mut effects = Vec::new();
        let cost = nanoseconds(|| effects = shard.ask(requests)) / count as f64;
        let refused = effects.iter().filter(|effect| matches!(effect, LaneEffect::Refuse { .. })).count();
        assert_eq!(refused, 0, "every request is answered");
        cost
    };
    let payment = timed(&mut shard, &second);
    let settlement = timed(&mut shard, &settlements);
    ShardCost { payment, settlement, request_bytes, certificate_bytes: certificate.len() }
}

/// The operations of the paper's table 1, in nanoseconds for one signature, and their parts.
struct Operations {
    hash: f64,
    sign: f64,
    verify: f64,
    verify_of_64: f64,
    bls_sign: f64,
    bls_verify: f64,
    aggregate_of_7: f64,
    combine_of_7: f64,
    merkle_sign: f64,
    merkle_cold: f64,
    merkle_warm: f64,
}

impl Operations {
    fn measured(count: usize) -> Operations {
        let (key, message) = (secret(1, 1), [7; 96]);
        let signature = key.sign(&message);
        let hash = measure(count * 100, |i| {
            black_box(Digest::of("walras bench lane hash", &[i as u8; 64]));
        });
        let sign = measure(count, |_| {
            black_box(key.sign(&message));
        });
        let verify = measure(count, |_| assert!(key.public().verify(&message, &signature)));
        let items: Vec<Item> = (0..64)
            .map(|number| {
                let key = secret(4, number);
                Item(key.public(), message, key.sign(&message))
            })
            .collect();
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
        let verify_of_64 = one.install(|| {
            measure(count.div_ceil(64), |_| assert!(verify_all(&items).into_iter().all(|valid| valid))) / 64.0
        });
        let [bls_sign, bls_verify, aggregate_of_7, combine_of_7] = Operations::bls(count.div_ceil(16));
        let [merkle_sign, merkle_cold, merkle_warm] = Operations::merkle(count, &key);
        Operations {
            hash,
            sign,
            verify,
            verify_of_64,
            bls_sign,
            bls_verify,
            aggregate_of_7,
            combine_of_7,
            merkle_sign,
            merkle_cold,
            merkle_warm,
        }
    }

    fn bls(count: usize) -> [f64; 4] {
        let (key, kind) = (bls(1), StatementKind::Confirmation);
        let part = key.sign(&NETWORK, 0, kind, &NETWORK);
        let sign = measure(count, |_| {
            black_box(key.sign(&NETWORK, 0, kind, &NETWORK));
        });
        let verify = measure(count, |_| assert!(key.public().verify(&NETWORK, 0, kind, &NETWORK, &part)));
        let plain = committee(10, Scheme::Bls);
        let parts: Vec<(u8, BlsSignature)> =
            (0..7).map(|v| (v, bls(v.into()).sign(&NETWORK, 0, kind, &NETWORK))).collect();
        let aggregate = measure(count, |_| {
            black_box(BlsAggregate::of(&plain, &parts).expect("distinct members"));
        });
        let mut board = KeyGeneration::new(DkgTerms::of(&plain).expect("keys"));
        (0..10).for_each(|dealer| board.deal(dealing(board.terms(), dealer, &[dealer; 32])).expect("correct"));
        board.close_dealing();
        board.finish();
        let committee = plain.with_threshold(&board).expect("a group key");
        let share = |member: u8| board.share(member, &bls(member.into())).expect("each has a share");
        let parts: Vec<(u8, BlsSignature)> = (0..7).map(|v| (v, share(v).sign(&NETWORK, 0, kind, &NETWORK))).collect();
        let owner = secret(1, 1).public();
        let claim = Claim { kind, owner: &owner, digest: &NETWORK };
        let group = committee.group().expect("a group key");
        let combine = measure(count, |_| {
            black_box(group.combine(&committee.home(), &claim, &parts).expect("a certificate"));
        });
        [sign, verify, aggregate, combine]
    }

    /// Signing in a tree of 64 leaves; verifying a root for the first time, and again.
    fn merkle(count: usize, owner: &SecretKey) -> [f64; 3] {
        let committee = committee(4, Scheme::Merkle);
        let (key, owner) = (secret(2, 0), owner.public());
        let digests: Vec<Digest> =
            (0..PAPER_LEAVES as u64).map(|i| Digest::of("walras bench lane leaf", &i.to_le_bytes())).collect();
        let mut trees = Vec::new();
        let sign = measure(count.div_ceil(PAPER_LEAVES), |position| {
            trees.push(tree_answers(&committee, &key, &owner, &digests, position as u64));
        }) / PAPER_LEAVES as f64;
        let claim = |digest| Claim { kind: StatementKind::Confirmation, owner: &owner, digest };
        let mut roots = RootCache::new(1 << 16);
        let cold = nanoseconds(|| {
            for answers in &trees {
                roots.verify(&committee, &claim(&digests[0]), &answers[0], &mut CheckBudget(1)).expect("it holds");
            }
        }) / trees.len() as f64;
        let warm = measure(trees.len(), |call| {
            for (digest, answer) in digests.iter().zip(&trees[call % trees.len()]).skip(1) {
                roots.verify(&committee, &claim(digest), answer, &mut CheckBudget(0)).expect("it is cached");
            }
        }) / (PAPER_LEAVES - 1) as f64;
        [sign, cold, warm]
    }

    fn as_json(&self) -> Value {
        json!({
            "hash_of_64_bytes": self.hash,
            "naive": { "sign": self.sign, "verify_single": self.verify, "verify_batch_of_64": self.verify_of_64 },
            "merkle_of_64_leaves": {
                "sign": self.merkle_sign, "verify_cold_root": self.merkle_cold, "verify_warm_root": self.merkle_warm,
            },
            "bls": {
                "sign": self.bls_sign, "verify": self.bls_verify, "aggregate_of_7": self.aggregate_of_7,
                "threshold_combine_of_7_and_verify": self.combine_of_7,
            },
        })
    }

    /// CPU nanoseconds of a payment if only signatures and hashes cost time.
    fn ceiling(&self, n: usize, scheme: Scheme) -> f64 {
        let q = Quorums::new(n).certificate as f64;
        let (leaves, path) = (LEAVES as f64, (LEAVES as f64).log2() * self.hash);
        let owner = self.verify_of_64;
        match scheme {
            Scheme::Naive => owner + q * (self.verify_of_64 + self.hash) + self.sign + self.hash,
            Scheme::Merkle => owner + q * (path + self.verify / leaves) + 2.0 * self.hash + self.sign / leaves,
            Scheme::Shared => owner + path + q * self.verify / leaves + 2.0 * self.hash + self.sign / leaves,
            Scheme::Bls => owner + self.bls_verify + self.bls_sign,
        }
    }
}

/// The answers of a shard that signs a tree of these digests.
fn tree_answers(
    committee: &LaneCommittee,
    key: &SecretKey,
    owner: &PublicKey,
    digests: &[Digest],
    position: u64,
) -> Vec<LaneAnswer> {
    let (root, paths) = signing_tree(digests);
    let mut answer = LaneAnswer {
        validator: 0,
        size: digests.len() as u32,
        index: 0,
        position,
        signature: Signature([0; 64]),
        path: paths[0].clone(),
    };
    let claim = Claim { kind: StatementKind::Confirmation, owner, digest: &digests[0] };
    let header = answer.header(committee, &claim).expect("a member");
    assert_eq!(header.root, root, "the path leads to the root");
    answer.signature = key.sign(&header.bytes());
    let of = |(index, path): (u32, Vec<Digest>)| LaneAnswer { index, path, ..answer.clone() };
    (0..).zip(paths).map(of).collect()
}

/// Inserts into as many spent sets as there are threads, as shards have.
fn spent_set(keys: usize, threads: usize) -> Value {
    let each = keys.div_ceil(threads);
    let begun = Instant::now();
    let bytes: usize = std::thread::scope(|scope| {
        let fill = |thread: usize| scope.spawn(move || filled(thread as u64, each));
        let running: Vec<_> = (0..threads).map(fill).collect();
        running.into_iter().map(|thread| thread.join().expect("it ends")).sum()
    });
    let seconds = begun.elapsed().as_secs_f64();
    json!({
        "keys": each * threads,
        "threads": threads,
        "inserts_per_second": ((each * threads) as f64 / seconds).round(),
        "bytes_an_entry": bytes as f64 / (each * threads) as f64,
    })
}

/// The size in bytes of a set with this many keys.
fn filled(thread: u64, keys: usize) -> usize {
    let mut set = SpentSet::new([7; 32]);
    let mut name = [0; 32];
    name[8..16].copy_from_slice(&thread.to_le_bytes());
    for key in 0..keys as u64 {
        name[..8].copy_from_slice(&key.to_le_bytes());
        set.insert(&name, key);
    }
    assert_eq!(set.len(), keys);
    set.memory()
}

/// Appends records of payments with one input each and syncs after every thousand, as the log of a shard is written.
fn log(keys: usize, directory: &Path) -> Result<Value, Error> {
    const RECORD: usize = 320;
    let disk = RealDisk::new(directory.join("log"))?;
    let file = disk.create("log")?;
    let batch = vec![5; RECORD * KEYS_OF_A_SYNC];
    let (mut offset, mut syncs) = (0, 0u64);
    let begun = Instant::now();
    while syncs * (KEYS_OF_A_SYNC as u64) < keys as u64 {
        file.write_at(offset, &batch)?;
        file.sync()?;
        offset += batch.len() as u64;
        syncs += 1;
    }
    let seconds = begun.elapsed().as_secs_f64();
    Ok(json!({
        "keys_of_a_sync": KEYS_OF_A_SYNC,
        "bytes_a_key": RECORD,
        "syncs": syncs,
        "keys_per_second": ((syncs * KEYS_OF_A_SYNC as u64) as f64 / seconds).round(),
    }))
}

/// The operations of the paper's table 1, over this many calls: nanoseconds of processor time for a signature.
pub fn table_1(calls: usize) -> Value {
    Operations::measured(calls).as_json()
}

/// What one shard of one validator of `n` costs by the size of its trees (§3.3). `cpu_us` is measured for a payment
/// whose input is proved by a certificate. `formula_us` is the paper's C of signatures and hashes, from costs measured
/// in the same run.
pub fn tree_sizes(n: usize, leaves: &[usize], payments: usize) -> Vec<Value> {
    let operations = Operations::measured(payments.min(512));
    let (hash, sign, verify) = (operations.hash, operations.sign, operations.verify);
    let q = Quorums::new(n).certificate as f64;
    let row = |&leaves: &usize| {
        let size = leaves as f64;
        let formula = size.log2() * q * hash + (q * verify + sign) / size + 2.0 * hash;
        let measured = shard_cost(n, (Scheme::Merkle, leaves), payments).payment;
        json!({ "validators": n, "leaves": leaves, "cpu_us": measured / 1e3, "formula_us": formula / 1e3 })
    };
    leaves.iter().map(row).collect()
}

/// Inserts into spent sets by `threads`, one set each: the rate, and beside it that of a map behind one lock.
pub fn spent_sets(keys: usize, threads: usize) -> Value {
    let mut report = spent_set(keys, threads);
    let map = std::sync::Mutex::new(std::collections::HashMap::new());
    let each = keys.div_ceil(threads);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads as u64 {
            let map = &map;
            scope.spawn(move || {
                let mut name = [0; 32];
                name[8..16].copy_from_slice(&thread.to_le_bytes());
                for key in 0..each as u64 {
                    name[..8].copy_from_slice(&key.to_le_bytes());
                    map.lock().expect("no thread panics").insert(name, key);
                }
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    report["one_locked_map_inserts_per_second"] = ((each * threads) as f64 / seconds).round().into();
    report
}

/// Measures everything; `say` is called with each step. The log is written below `directory`.
///
/// # Errors
/// If the disk fails.
pub fn run(options: &LaneRowsOptions, directory: &Path, say: &mut dyn FnMut(&str)) -> Result<Value, Error> {
    say("operations of table 1");
    let operations = Operations::measured(options.payments);
    let (mut schemes, mut grid) = (Vec::new(), Vec::new());
    for n in SIZES {
        for scheme in Scheme::ALL {
            say(&format!("{} of {n} validators", scheme.name()));
            let count = if scheme == Scheme::Bls { options.payments.div_ceil(16) } else { options.payments };
            let cost = shard_cost(n, (scheme, LEAVES), count);
            let ceiling = operations.ceiling(n, scheme);
            let per_second = |nanoseconds: f64| (1e9 / nanoseconds).round();
            schemes.push(json!({
                "validators": n,
                "scheme": scheme.name(),
                "cpu_us_per_payment": cost.payment / 1e3,
                "cpu_us_per_settlement": cost.settlement / 1e3,
                "payments_per_second_and_core": per_second(cost.payment),
                "and_settled": per_second(cost.payment + cost.settlement),
                "ceiling_cpu_us": ceiling / 1e3,
                "of_ceiling": ceiling / cost.payment,
                "request_bytes": cost.request_bytes,
                "certificate_bytes": cost.certificate_bytes,
            }));
            for shards in [1, 2, 4] {
                grid.push(json!({
                    "validators": n,
                    "scheme": scheme.name(),
                    "shards": shards,
                    "payments_per_second": (1e9 / cost.payment * PAPER_CORES * f64::from(shards)).round(),
                }));
            }
        }
    }
    say("the spent set");
    let spent = spent_set(options.spent, std::thread::available_parallelism().map_or(1, usize::from));
    say("the log");
    Ok(json!({
        "table_1_nanoseconds_per_signature": operations.as_json(),
        "one_shard": schemes,
        "table_2_computed_not_measured": {
            "how": "payments per second of one core of one shard, times 32 cores, times shards: no network, no disk",
            "rows": grid,
        },
        "spent_set": spent,
        "log": log(options.logged, directory)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_figure_that_fits_the_others() {
        let directory = tempfile::tempdir().expect("a directory");
        let rows = run(&LaneRowsOptions::QUICK, directory.path(), &mut |_| {}).expect("it ends well");
        let schemes = rows["one_shard"].as_array().expect("rows");
        assert_eq!(schemes.len(), SIZES.len() * Scheme::ALL.len());
        let cost = |n: usize, scheme: &str| {
            let row = schemes.iter().find(|row| row["validators"] == n && row["scheme"] == scheme).expect("a row");
            row["cpu_us_per_payment"].as_f64().expect("a number")
        };
        for row in schemes {
            let number = |name: &str| row[name].as_f64().expect("a number");
            assert!((number("cpu_us_per_payment") * number("payments_per_second_and_core") / 1e6 - 1.0).abs() < 0.01);
            assert!(
                (number("of_ceiling") * number("cpu_us_per_payment") / number("ceiling_cpu_us") - 1.0).abs() < 1e-9
            );
        }
        let bytes = |n: usize, scheme: &str| {
            let row = schemes.iter().find(|row| row["validators"] == n && row["scheme"] == scheme).expect("a row");
            row["certificate_bytes"].as_u64().expect("a number")
        };
        assert!(bytes(28, "bls") < 64 && bytes(28, "merkle") > bytes(28, "shared_tree"));
        // A BLS certificate does not grow but for a bit of each member (the paper's §3.4).
        let aggregate = |n: u64| 51 + n.div_ceil(8);
        assert_eq!(SIZES.map(|n| bytes(n, "bls")), SIZES.map(|n| aggregate(n as u64)));
        let grid = rows["table_2_computed_not_measured"]["rows"].as_array().expect("rows");
        for row in grid {
            let n = row["validators"].as_u64().expect("a number") as usize;
            let (scheme, shards) = (row["scheme"].as_str().expect("text"), row["shards"].as_f64().expect("a number"));
            let computed = 1e6 / cost(n, scheme) * PAPER_CORES * shards;
            assert!((row["payments_per_second"].as_f64().expect("a number") / computed - 1.0).abs() < 0.01, "{row}");
        }
        assert_eq!(grid.len(), 3 * schemes.len());
        let operations = &rows["table_1_nanoseconds_per_signature"];
        for of in ["naive", "merkle_of_64_leaves", "bls"] {
            let all = operations[of].as_object().expect("operations");
            assert!(all.values().all(|cost| cost.as_f64().is_some_and(|cost| cost > 0.0)), "{of}: {all:?}");
        }
        let nanoseconds = |at: &str| operations.pointer(at).and_then(Value::as_f64).expect("a number");
        let merkle = "/merkle_of_64_leaves";
        assert!(
            nanoseconds(&format!("{merkle}/verify_cold_root")) > nanoseconds(&format!("{merkle}/verify_warm_root"))
        );
        assert!(nanoseconds("/bls/verify") > nanoseconds("/naive/verify_single"), "{operations}");
        let entry = rows["spent_set"]["bytes_an_entry"].as_f64().expect("a number");
        assert!((24.0..=64.0).contains(&entry), "{entry} bytes an entry");
        assert!(rows["log"]["keys_per_second"].as_f64().expect("a number") > 0.0);
    }
}
