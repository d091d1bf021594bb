//! The payment lane end to end: shards on sockets with durable logs, and a client that pays as fast as they answer.
//!
//! All validators and the client share this machine, so the figure is of all of them together. It stands beside a
//! *ceiling*: what the same cores could do if nothing but signatures and hashes cost time, from the costs of these
//! measured in the same run. Each payment is paid twice: first from an output of the genesis, then by its recipient,
//! who proves the input by a certificate. Requests are signed beforehand.

use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use lane::wire::{HEAD_BYTES, REPLY_BYTES_MAX, Reply, read_head, read_reply, write_frame};
use lane::{FileLog, LaneShard, ShardLimits, ShardSetup};
use payments::{
    AssetRule, CheckBudget, Claim, FastReceipt, Holding, LaneAnswer, LaneCommittee, LaneRules, LaneSettings, LogOwner,
    Output, OutputId, OutputProof, PaymentCertificate, PaymentView, Recipient, RootCache, SchemeCosts, SignedPayment,
    StatementKind, build_payment,
};
use primitives::{AssetId, Digest, PublicKey, SecretKey, Signature, Signed, verify_all};
use rayon::prelude::*;
use serde_json::{Value, json};
use store::RealDisk;

use crate::consensus::processor;
use crate::exchange::Error;

/// What to measure.
#[derive(Clone, Debug)]
pub struct PaymentsLaneOptions {
    /// Validators, one shard each.
    pub validators: usize,
    /// Payments of each phase.
    pub payments: usize,
    /// Payments that may be under way.
    pub window: usize,
    /// Leaves of a tree, for each run: 1 is the naive scheme.
    pub leaves: Vec<usize>,
}

const NETWORK: Digest = Digest([7; 32]);
/// Owners of outputs; each pays many times.
const OWNERS: usize = 256;

fn key(kind: u8, number: usize) -> SecretKey {
    let mut seed = [kind; 32];
    seed[..8].copy_from_slice(&(number as u64).to_le_bytes());
    SecretKey::from_seed(seed)
}

fn rules() -> LaneRules {
    LaneRules { network: NETWORK, assets: BTreeMap::new(), other: AssetRule { least_units: 1, fee: 0 } }
}

/// Runs everything; `say` hears each step. Logs are written below `directory`.
///
/// # Errors
/// If a shard cannot be started, or a connection breaks.
pub fn run(options: &PaymentsLaneOptions, directory: &Path, say: &mut dyn FnMut(&str)) -> Result<Value, Error> {
    say("signatures and hashes alone");
    let costs = Costs::measured();
    let mut runs = Vec::new();
    for &leaves in &options.leaves {
        say(&format!("{} validators, trees of {leaves}", options.validators));
        runs.push(measure(options, leaves, &costs, &directory.join(format!("leaves-{leaves}")))?);
    }
    let quorum = committee(options.validators).quorums().certificate;
    Ok(json!({
        "validators": options.validators,
        "quorum": quorum,
        "payments": options.payments,
        "window": options.window,
        "cores": cores(),
        "microseconds": costs.as_json(),
        "best_leaves": costs.scheme().best_leaves(quorum),
        "runs": runs,
    }))
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Microseconds of one thread.
struct Costs {
    sign: f64,
    verify: f64,
    verify_in_batch: f64,
    hash: f64,
}

struct Item(PublicKey, [u8; 96], Signature);

impl Signed for Item {
    fn signature(&self) -> (PublicKey, Signature) {
        (self.0, self.2)
    }

    fn signed_bytes(&self) -> Vec<u8> {
        self.1.to_vec()
    }
}

impl Costs {
    fn measured() -> Costs {
        const ITEMS: usize = 2_048;
        let keys: Vec<SecretKey> = (0..ITEMS).map(|number| key(3, number)).collect();
        let timed = |count: usize, run: &mut dyn FnMut()| {
            let begun = Instant::now();
            run();
            begun.elapsed().as_secs_f64() * 1e6 / count as f64
        };
        let mut items = Vec::new();
        let message = |number: usize| {
            let mut message = [5; 96];
            message[..8].copy_from_slice(&(number as u64).to_le_bytes());
            message
        };
        let sign = timed(ITEMS, &mut || {
            let item =
                |(number, key): (usize, &SecretKey)| Item(key.public(), message(number), key.sign(&message(number)));
            items = keys.iter().enumerate().map(item).collect();
        });
        let verify = timed(ITEMS, &mut || {
            assert!(items.iter().all(|item| item.0.verify(&item.1, &item.2)), "they are good");
        });
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
        let verify_in_batch = timed(ITEMS, &mut || {
            assert!(one.install(|| verify_all(&items)).into_iter().all(|valid| valid), "they are good");
        });
        const HASHES: usize = 200_000;
        let hash = timed(HASHES, &mut || {
            let mut node = [1; 64];
            for _ in 0..HASHES {
                let digest = Digest::of("walras bench lane hash", &node);
                node[..32].copy_from_slice(&digest.0);
            }
            black_box(node);
        });
        Costs { sign, verify, verify_in_batch, hash }
    }

    fn scheme(&self) -> SchemeCosts {
        let nanoseconds = |microseconds: f64| (microseconds * 1e3) as u32;
        SchemeCosts { hash: nanoseconds(self.hash), sign: nanoseconds(self.sign), verify: nanoseconds(self.verify) }
    }

    /// Payments per second of all cores, if `validators` and a client did nothing but cryptography: each validator
    /// checks the owner's signature in a batch and its share of roots and paths, and signs; the client checks answers.
    fn ceiling(&self, validators: usize, quorum: usize, leaves: usize) -> f64 {
        let (trees, path) = (1.0 / leaves as f64, f64::from(leaves.ilog2()) * self.hash);
        let certificate = quorum as f64 * (self.verify * trees + path);
        let validator = self.verify_in_batch + certificate + self.sign * trees + 2.0 * self.hash;
        let client = validators as f64 * (self.verify * trees + path);
        cores() as f64 * 1e6 / (validators as f64 * validator + client)
    }

    fn as_json(&self) -> Value {
        let Costs { sign, verify, verify_in_batch, hash } = self;
        json!({ "sign": sign, "verify": verify, "verify_in_a_batch_of_256": verify_in_batch, "hash": hash })
    }
}

fn committee(validators: usize) -> LaneCommittee {
    LaneCommittee::new(NETWORK, 0, (0..validators).map(|validator| vec![key(2, validator).public()]).collect())
}

fn start(validators: usize, leaves: usize, coins: &[Holding], directory: &Path) -> Result<Vec<LaneShard>, Error> {
    let backed: Vec<(OutputId, Output)> = coins.iter().map(|coin| (coin.id, coin.output)).collect();
    let start = |validator: usize| {
        let settings = LaneSettings {
            rules: rules(),
            committee: committee(validators),
            previous: None,
            validator: validator as u8,
            shard: 0,
            now: 0,
            leaves,
            entries_max: 1 << 26,
            // More than any window: a validator that is busy refuses, and the generator sends nothing twice.
            trees_waiting_max: 1 << 16,
            checks_per_peer: 1_000_000,
            checks_per_tick: 1_000_000,
            roots_per_validator: 1 << 16,
        };
        let disk = RealDisk::new(directory.join(validator.to_string()))?;
        FileLog::create(&disk, &LogOwner { network: NETWORK, home: 0, validator: validator as u8, shard: 0 })?;
        let setup = ShardSetup {
            settings,
            key: key(2, validator),
            bls_key: None,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            backed: backed.clone(),
            peers: None,
            limits: ShardLimits { reply_bytes: 256 << 20, ..ShardLimits::default() },
            post: Box::new(drop),
        };
        Ok(LaneShard::start(setup, &disk)?)
    };
    (0..validators).map(start).collect()
}

fn measure(options: &PaymentsLaneOptions, leaves: usize, costs: &Costs, directory: &Path) -> Result<Value, Error> {
    let committee = committee(options.validators);
    let quorum = committee.quorums().certificate;
    let owner = |index: usize| key(1, index % OWNERS);
    let output = |index: usize| Output { to: Recipient::Key(owner(index).public()), asset: AssetId(0), amount: 1_000 };
    let coin = |index: usize| {
        let id = OutputId::of_genesis(&NETWORK, 0, index as u32);
        Holding { id, output: output(index), proof: OutputProof::Ledger }
    };
    let coins: Vec<Holding> = (0..options.payments).map(coin).collect();
    let shards = start(options.validators, leaves, &coins, directory)?;
    let pay = |index: usize, holding: Holding, payer: usize| {
        build_payment(&rules(), &owner(payer), 0, 0, vec![holding], vec![output(index + 1)]).map_err(|e| e.to_string())
    };
    let first: Vec<SignedPayment> =
        coins.par_iter().enumerate().map(|(index, coin)| pay(index, coin.clone(), index)).collect::<Result<_, _>>()?;
    let (phase_one, certificates) = pay_all(&first, &shards, &committee, options.window, leaves, costs)?;
    let second: Vec<SignedPayment> = (0..options.payments)
        .into_par_iter()
        .map(|index| {
            let view = PaymentView::parse(&first[index].payment).map_err(|error| error.to_string())?;
            let receipt = FastReceipt::of(&view, 0, certificates[index].clone()).ok_or("no output")?;
            let holding = receipt.verify(&committee, &mut RootCache::new(0)).map_err(|error| error.to_string())?;
            pay(index + 1, holding, index + 1)
        })
        .collect::<Result<_, String>>()?;
    let (phase_two, _) = pay_all(&second, &shards, &committee, options.window, leaves, costs)?;
    let syncs: u64 = shards.iter().map(|shard| shard.counts().syncs.load(Ordering::Relaxed)).sum();
    Ok(json!({
        "leaves": leaves,
        "ceiling_payments_per_second": costs.ceiling(options.validators, quorum, leaves).round(),
        "from_genesis": phase_one,
        "from_certificates": phase_two,
        "syncs": syncs,
    }))
}

/// Pays all of these, as many at a time as the window holds; what it took, and the certificates.
fn pay_all(
    payments: &[SignedPayment],
    shards: &[LaneShard],
    committee: &LaneCommittee,
    window: usize,
    leaves: usize,
    costs: &Costs,
) -> Result<(Value, Vec<PaymentCertificate>), Error> {
    let needed = committee.quorums().certificate;
    let places: HashMap<Digest, usize> =
        payments.iter().enumerate().map(|(index, payment)| (payment.digest, index)).collect();
    let owners: Vec<PublicKey> = payments
        .iter()
        .map(|payment| PaymentView::parse(&payment.payment).map(|view| view.owner()))
        .collect::<Result<_, _>>()?;
    let counts: Vec<AtomicUsize> = payments.iter().map(|_| AtomicUsize::new(0)).collect();
    let (done, before, begun) = (AtomicUsize::new(0), processor(), Instant::now());
    let mut collected = Vec::new();
    std::thread::scope(|scope| -> Result<(), Error> {
        let mut readers = Vec::new();
        for shard in shards {
            let stream = TcpStream::connect(shard.address())?;
            stream.set_nodelay(true)?;
            let writing = stream.try_clone()?;
            let (done, counts, places, owners) = (&done, &counts, &places, &owners);
            std::thread::Builder::new()
                .name("load-writer".into())
                .spawn_scoped(scope, move || send_all(writing, payments, done, window))?;
            let read = move || {
                let collector = Collector { committee, places, owners, counts, needed, done, leaves };
                let answers = collector.collect(stream);
                if answers.is_err() {
                    // Nobody counts any more: writers wait for nothing.
                    done.store(usize::MAX / 2, Ordering::Release);
                }
                answers
            };
            readers.push(std::thread::Builder::new().name("load-reader".into()).spawn_scoped(scope, read)?);
        }
        for reader in readers {
            collected.push(reader.join().map_err(|_| "a reader panicked")??);
        }
        Ok(())
    })?;
    let (seconds, after) = (begun.elapsed().as_secs_f64(), processor());
    let certificate = |index: usize| {
        let answers = collected.iter().filter_map(|answers: &Vec<Option<LaneAnswer>>| answers[index].clone());
        PaymentCertificate::Answers(answers.take(needed).collect())
    };
    let spent = |prefix: &str| -> f64 {
        let of = |times: &HashMap<String, f64>| -> f64 {
            times.iter().filter(|(name, _)| name.starts_with(prefix)).map(|(_, seconds)| seconds).sum()
        };
        (of(&after) - of(&before)) * 1e6 / payments.len() as f64
    };
    let (per_second, validators) = (payments.len() as f64 / seconds, shards.len() as f64);
    let value = json!({
        "payments_per_second": per_second.round(),
        "of_ceiling": per_second / costs.ceiling(shards.len(), needed, leaves),
        "processor_us_per_payment": {
            "machine_of_each_validator": spent("lane-machine") / validators,
            "syncer_of_each_validator": spent("lane-syncer") / validators,
            "sockets_of_each_validator": spent("lane-sockets") / validators,
            "client": spent("load-"),
        },
    });
    Ok((value, (0..payments.len()).map(certificate).collect()))
}

/// Sends all requests, no more than the window ahead of what is done. The reader finds out if the connection breaks.
fn send_all(mut to: TcpStream, payments: &[SignedPayment], done: &AtomicUsize, window: usize) {
    const TOGETHER: usize = 64;
    let mut frames = Vec::new();
    for (chunk, some) in payments.chunks(TOGETHER).enumerate() {
        while chunk * TOGETHER >= done.load(Ordering::Acquire) + window {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        frames.clear();
        for (number, payment) in (chunk * TOGETHER..).zip(some) {
            write_frame(&mut frames, number as u32, &payment.request);
        }
        if to.write_all(&frames).is_err() {
            return;
        }
    }
}

/// Takes the answers of one validator.
struct Collector<'a> {
    committee: &'a LaneCommittee,
    places: &'a HashMap<Digest, usize>,
    owners: &'a [PublicKey],
    counts: &'a [AtomicUsize],
    needed: usize,
    done: &'a AtomicUsize,
    leaves: usize,
}

impl Collector<'_> {
    /// Verifies every answer; ends when each payment has one.
    fn collect(self, mut from: TcpStream) -> Result<Vec<Option<LaneAnswer>>, Error> {
        let mut answers = vec![None; self.owners.len()];
        let mut roots = RootCache::new(1 << 12);
        let (mut bytes, mut chunk, mut missing) = (Vec::new(), vec![0; 1 << 18], answers.len());
        while missing > 0 {
            let count = from.read(&mut chunk)?;
            if count == 0 {
                return Err("a shard closed the connection".into());
            }
            bytes.extend_from_slice(&chunk[..count]);
            let mut at = 0;
            while let Some((length, number)) = read_head(&bytes[at..], REPLY_BYTES_MAX)? {
                let start = at + HEAD_BYTES;
                let Some(body) = bytes.get(start..start + length) else { break };
                match read_reply(number, body, None)? {
                    Reply::Answer { kind, digest, answer } => {
                        let place = *self.places.get(&digest).ok_or("an answer to nothing")?;
                        missing -= usize::from(answers[place].is_none());
                        self.verify(&mut roots, kind, &digest, &answer, place)?;
                        answers[place] = Some(answer);
                    }
                    Reply::Refusal { text, .. } => return Err(text.into()),
                    other => return Err(format!("{other:?}").into()),
                }
                at = start + length;
            }
            bytes.drain(..at);
        }
        Ok(answers)
    }

    fn verify(
        &self,
        roots: &mut RootCache,
        kind: StatementKind,
        digest: &Digest,
        answer: &LaneAnswer,
        place: usize,
    ) -> Result<(), Error> {
        let claim = Claim { kind, owner: &self.owners[place], digest };
        roots.verify(self.committee, &claim, answer, &mut CheckBudget(self.leaves.max(1) as u32))?;
        if self.counts[place].fetch_add(1, Ordering::AcqRel) + 1 == self.needed {
            self.done.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_payments_are_confirmed_in_each_scheme() {
        let options = PaymentsLaneOptions { validators: 4, payments: 200, window: 100, leaves: vec![1, 64] };
        let directory = tempfile::tempdir().expect("a directory");
        let report = run(&options, directory.path(), &mut |_| {}).expect("it ends well");
        for run in report["runs"].as_array().expect("two runs") {
            for phase in ["from_genesis", "from_certificates"] {
                assert!(run[phase]["payments_per_second"].as_f64().expect("a number") > 0.0, "{run}");
            }
        }
    }
}
