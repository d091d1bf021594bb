//! CPU time of one shard of one validator for a payment, under each scheme, beside the ceiling that follows from the
//! costs of signatures and hashes in the same run. Nothing is written to a disk.
//!
//! `cargo run --release -p payments --example lane_costs`

use std::collections::BTreeMap;
use std::hint::black_box;

use payments::*;
use primitives::{Address, AssetId, Digest, SecretKey};

const NETWORK: Digest = Digest([9; 32]);
const LEAVES: usize = 256;

struct Memory(Vec<u8>);

impl LaneLog for Memory {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let start = usize::try_from(offset).ok()?;
        self.0.get(start..start.checked_add(length)?).map(<[u8]>::to_vec)
    }
}

/// Nanoseconds that this thread has run, as the kernel counts them.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number")
}

/// CPU nanoseconds of one call, over `count` of them.
fn measure(count: usize, mut call: impl FnMut(usize)) -> f64 {
    let start = cpu();
    (0..count).for_each(&mut call);
    (cpu() - start) as f64 / count as f64
}

fn secret(kind: u8, number: u64) -> SecretKey {
    let mut seed = [kind; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    SecretKey::from_seed(seed)
}

fn rules() -> LaneRules {
    LaneRules { network: NETWORK, assets: BTreeMap::new(), other: AssetRule { least_units: 1, fee: 0 } }
}

#[derive(Clone, Copy, PartialEq)]
enum Scheme {
    Naive,
    Merkle,
    Shared,
    Bls,
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

fn bls(validator: usize) -> BlsSecretKey {
    BlsSecretKey::from_seed(secret(3, validator as u64).to_seed())
}

struct Shard {
    validator: LaneValidator,
    log: Memory,
}

impl Shard {
    fn new(committee: &LaneCommittee, validator: usize, scheme: Scheme, coins: &[Holding]) -> Shard {
        let settings = LaneSettings {
            rules: rules(),
            committee: committee.clone(),
            previous: None,
            validator: validator as u8,
            shard: 0,
            now: 0,
            leaves: if scheme == Scheme::Naive { 1 } else { LEAVES },
            entries_max: 1 << 24,
            trees_waiting_max: 1 << 20,
            checks_per_peer: u32::MAX,
            checks_per_tick: u32::MAX,
            roots_per_validator: 1 << 12,
        };
        let owner = LogOwner { network: NETWORK, home: 0, validator: validator as u8, shard: 0 };
        let log = Memory(new_log(&owner, [5; 32]));
        let (opened, _) = LaneValidator::open(settings, secret(2, validator as u64), [6; 32], Some(&log));
        let opened = if scheme == Scheme::Bls { opened.with_bls(bls(validator)) } else { opened };
        let mut shard = Shard { validator: opened, log };
        for coin in coins {
            shard.validator.step(&shard.log, LaneInput::Backed(coin.id, coin.output));
        }
        shard
    }

    /// A step and whatever follows of it in memory.
    fn step(&mut self, input: LaneInput<'_>) -> Vec<LaneEffect> {
        let mut effects = self.validator.step(&self.log, input);
        for place in 0..effects.len() {
            if let LaneEffect::Append(bytes) = &effects[place] {
                self.log.0.extend(bytes);
                effects.extend(self.validator.step(&self.log, LaneInput::Synced(self.log.length())));
            }
        }
        effects
    }

    fn ask(&mut self, requests: &[Vec<u8>]) -> Vec<LaneEffect> {
        let mut effects = Vec::new();
        for bytes in requests {
            effects.extend(self.step(LaneInput::Request { peer: 1, bytes }));
        }
        effects.extend(self.step(LaneInput::Tick));
        effects
    }
}

/// What clients, or their broker, send.
fn prepare(requests: Vec<Vec<u8>>, scheme: Scheme, committee: &LaneCommittee) -> Vec<Vec<u8>> {
    if scheme != Scheme::Shared {
        return requests;
    }
    let batch = |chunk: &[Vec<u8>]| LaneBroker::new(committee, chunk.to_vec()).expect("a batch").request();
    requests.chunks(LEAVES).map(batch).collect()
}

fn output(to: u64, amount: u64) -> Output {
    Output { to: Recipient::Key(secret(1, to).public()), asset: AssetId(0), amount }
}

fn pay(from: u64, coin: Holding, to: u64) -> SignedPayment {
    build_payment(&rules(), &secret(1, from), 0, 0, vec![coin], vec![output(to, 10)]).expect("a correct payment")
}

/// Certificates of all payments, from the effects of q validators.
fn certificates(
    committee: &LaneCommittee,
    payments: &[SignedPayment],
    scheme: Scheme,
    answers: Vec<Vec<LaneEffect>>,
) -> Vec<PaymentCertificate> {
    if scheme == Scheme::Shared {
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
        return brokers.iter().flat_map(each).collect();
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

/// CPU nanoseconds a payment of one validator, and bytes of its request.
fn validator_cost(n: usize, scheme: Scheme, count: usize) -> (f64, usize) {
    let committee = committee(n, scheme);
    let coins: Vec<Holding> = (0..count as u64)
        .map(|i| Holding {
            id: OutputId::of_genesis(&NETWORK, 0, i as u32),
            output: output(i, 10),
            proof: OutputProof::Ledger,
        })
        .collect();
    let first: Vec<SignedPayment> = (0..).zip(&coins).map(|(i, coin)| pay(i, coin.clone(), i)).collect();
    let requests: Vec<Vec<u8>> = first.iter().map(|payment| payment.request.clone()).collect();
    let quorum = committee.quorums().certificate;
    let mut shards: Vec<Shard> = (0..quorum).map(|v| Shard::new(&committee, v, scheme, &coins)).collect();
    let requests = prepare(requests, scheme, &committee);
    let answers = shards.iter_mut().map(|shard| shard.ask(&requests)).collect();
    let certificates = certificates(&committee, &first, scheme, answers);
    let second: Vec<Vec<u8>> = (0..)
        .zip(first.iter().zip(certificates))
        .map(|(i, (payment, certificate))| {
            let view = PaymentView::parse(&payment.payment).expect("well-formed");
            let receipt = FastReceipt::of(&view, 0, certificate).expect("one output");
            let id = receipt.proof.id_of(&NETWORK, &receipt.output).expect("its own");
            let proof = OutputProof::Payment(Box::new(receipt.proof));
            pay(i, Holding { id, output: receipt.output, proof }, i + 1).request
        })
        .collect();
    let bytes = second[0].len();
    let second = prepare(second, scheme, &committee);
    let mut shard = shards.swap_remove(0);
    let start = cpu();
    let effects = shard.ask(&second);
    let cost = (cpu() - start) as f64 / count as f64;
    let refused = effects.iter().filter(|effect| matches!(effect, LaneEffect::Refuse { .. })).count();
    assert_eq!(refused, 0, "every payment is confirmed");
    assert_eq!(shard.validator.entries(), 2 * count);
    (cost, bytes)
}

fn main() {
    let (key, message) = (secret(1, 1), [7; 128]);
    let signature = key.sign(&message);
    let sign = measure(2_000, |_| drop(black_box(key.sign(&message).0.to_vec())));
    let verify = measure(2_000, |_| assert!(key.public().verify(&message, &signature)));
    let hash = measure(200_000, |i| {
        black_box(blake3::keyed_hash(&[1; 32], &[i as u8; 64]));
    });
    let single = bls(1);
    let part = single.sign(&NETWORK, 0, StatementKind::Confirmation, &NETWORK);
    let bls_sign = measure(200, |_| {
        black_box(single.sign(&NETWORK, 0, StatementKind::Confirmation, &NETWORK));
    });
    let bls_verify = measure(100, |_| {
        assert!(single.public().verify(&NETWORK, 0, StatementKind::Confirmation, &NETWORK, &part));
    });
    println!(
        "CPU ns: hash {hash:.0}, sign {sign:.0}, verify {verify:.0}, BLS sign {bls_sign:.0}, verify {bls_verify:.0}"
    );
    println!("scheme   n   q  CPU us/payment  ceiling us  ratio  request bytes");
    for n in [4, 10, 28] {
        let q = Quorums::new(n).certificate as f64;
        let leaves = LEAVES as f64;
        let path = leaves.log2();
        for (name, scheme, count, ceiling) in [
            ("naive", Scheme::Naive, 512, verify + q * (verify + hash) + sign + hash),
            (
                "merkle",
                Scheme::Merkle,
                2_048,
                verify + q * (path * hash + verify / leaves) + 2.0 * hash + sign / leaves,
            ),
            ("shared", Scheme::Shared, 2_048, verify + path * hash + q * verify / leaves + 2.0 * hash + sign / leaves),
            ("bls", Scheme::Bls, 64, verify + bls_verify + bls_sign),
        ] {
            let (cost, bytes) = validator_cost(n, scheme, count);
            let (cost, ceiling) = (cost / 1e3, ceiling / 1e3);
            println!("{name:7} {n:3} {q:3}  {cost:14.1}  {ceiling:10.1}  {:5.2}  {bytes:13}", ceiling / cost);
        }
    }
}
