//! The client of the measurement: it sends to all shards, and verifies what they answer.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use lane::wire::{HEAD_BYTES, REPLY_BYTES_MAX, Reply, read_head, read_reply, write_frame};
use lane::{LaneReceiver, LaneSender, connect};
use payments::{
    CheckBudget, Claim, LaneAnswer, LaneCommittee, PaymentCertificate, PaymentView, RootCache, SignedPayment,
    StatementKind,
};
use primitives::{Digest, PublicKey};
use serde_json::{Value, json};

use super::{Costs, LaneVariant, RunningShard};
use crate::consensus::processor;
use crate::exchange::Error;
use crate::lane_rows::cpu;

/// Number of requests that are sent together.
const TOGETHER: usize = 64;

/// One request.
pub(super) struct Load {
    digest: Digest,
    owner: PublicKey,
    pub(super) request: Vec<u8>,
}

pub(super) fn loads(payments: &[SignedPayment]) -> Result<Vec<Load>, Error> {
    let load = |payment: &SignedPayment| {
        let owner = PaymentView::parse(&payment.payment)?.owner();
        Ok(Load { digest: payment.digest, owner, request: payment.request.clone() })
    };
    payments.iter().map(load).collect()
}

/// The network that a client of the measurement uses.
#[derive(Clone, Copy)]
pub(super) struct LoadNetwork<'a> {
    pub(super) shards: &'a [RunningShard],
    pub(super) committee: &'a LaneCommittee,
    pub(super) window: usize,
    pub(super) leaves: usize,
    pub(super) variant: LaneVariant,
    pub(super) costs: &'a Costs,
}

/// Builds and signs a payment again.
pub(super) type Build<'a> = &'a (dyn Fn(usize) -> Result<SignedPayment, String> + Sync);

impl LoadNetwork<'_> {
    /// Sends all of these, as many at a time as the window holds; returns the time and the certificates.
    pub(super) fn pay_all(
        &self,
        kind: StatementKind,
        loads: &[Load],
        build: Build<'_>,
    ) -> Result<(Value, Vec<PaymentCertificate>), Error> {
        let LoadNetwork { shards, committee, leaves, .. } = *self;
        let needed = committee.quorums().certificate;
        let places: HashMap<Digest, usize> =
            loads.iter().enumerate().map(|(index, load)| (load.digest, index)).collect();
        let counts: Vec<AtomicUsize> = loads.iter().map(|_| AtomicUsize::new(0)).collect();
        // The requests of each shard, the same for all validators.
        let shares = self.shares(loads)?;
        let built: Vec<Vec<OnceLock<()>>> =
            shares.iter().map(|share| share.chunks(TOGETHER).map(|_| OnceLock::new()).collect()).collect();
        let (done, before, begun) = (AtomicUsize::new(0), processor(), Instant::now());
        // The threads of the client end before the times of all threads are read again.
        let (client, received) = (AtomicU64::new(0), AtomicU64::new(0));
        let end = || client.fetch_add(cpu(), Ordering::Relaxed);
        let mut collected = Vec::new();
        std::thread::scope(|scope| -> Result<(), Error> {
            let mut readers = Vec::new();
            for RunningShard { validator, number, shard } in shards {
                let tls = self.variant == LaneVariant::Tls;
                let key = tls.then(|| committee.key(*validator, *number)).transpose()?;
                let (writing, reading) = connect(shard.address(), key)?;
                let (done, counts, places, received, end) = (&done, &counts, &places, &received, &end);
                let (share, built) = (&shares[usize::from(*number)], &built[usize::from(*number)]);
                std::thread::Builder::new().name("load-writer".into()).spawn_scoped(scope, move || {
                    self.send_all(writing, (loads, share), done, (built, build));
                    end();
                })?;
                let read = move || {
                    let missing = share.len();
                    let collector =
                        Collector { kind, committee, places, loads, counts, needed, done, leaves, received, missing };
                    let answers = collector.collect(reading);
                    if answers.is_err() {
                        // The readers are done: writers need not wait any more.
                        done.store(usize::MAX / 2, Ordering::Release);
                    }
                    end();
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
        let spent = |is_of: &dyn Fn(&str) -> bool| -> f64 {
            let of = |times: &HashMap<String, f64>| -> f64 {
                times.iter().filter(|(name, _)| is_of(name)).map(|(_, seconds)| seconds).sum()
            };
            (of(&after) - of(&before)) * 1e6 / loads.len() as f64
        };
        let by = |prefix: &str| spent(&|name| name.starts_with(prefix));
        let validators = committee.quorums().validators as f64;
        let sent: usize = loads.iter().map(|load| HEAD_BYTES + load.request.len()).sum();
        let per_second = loads.len() as f64 / seconds;
        let value = json!({
            "payments_per_second": per_second.round(),
            "of_ceiling": per_second / self.costs.ceiling(validators as usize, needed, leaves),
            "processor_us_per_payment": {
                "machine_of_each_validator": by("lane-machine") / validators,
                "syncer_of_each_validator": by("lane-syncer") / validators,
                "sockets_of_each_validator": by("lane-sockets") / validators,
                // The pool verifies large batches of signatures for the machines; nobody else uses it meanwhile.
                "pool_of_each_validator": spent(&|name| !name.starts_with("lane-")) / validators,
                "client": client.load(Ordering::Relaxed) as f64 / 1e3 / loads.len() as f64,
            },
            "bytes_per_payment": {
                "request": sent as f64 / loads.len() as f64,
                "answer_of_each_validator": received.load(Ordering::Relaxed) as f64 / validators / loads.len() as f64,
            },
        });
        Ok((value, (0..loads.len()).map(certificate).collect()))
    }

    /// The places of the requests of each shard, by their owners.
    fn shares(&self, loads: &[Load]) -> Result<Vec<Vec<usize>>, Error> {
        let mut shares = vec![Vec::new(); self.committee.keys_of(0).len()];
        for (place, load) in loads.iter().enumerate() {
            shares[usize::from(self.committee.shard_of(0, &load.owner)?)].push(place);
        }
        Ok(shares)
    }

    /// Sends the requests of one shard, no more than the window ahead of the completed ones. The reader detects if the
    /// connection breaks. In a live load the first writer that reaches some payments signs them.
    fn send_all(
        &self,
        mut to: LaneSender,
        (loads, share): (&[Load], &[usize]),
        done: &AtomicUsize,
        (built, build): (&[OnceLock<()>], Build<'_>),
    ) {
        let mut frames = Vec::new();
        for (some, built) in share.chunks(TOGETHER).zip(built) {
            while some[0] >= done.load(Ordering::Acquire) + self.window {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            if self.variant == LaneVariant::Live {
                built.get_or_init(|| {
                    for index in some {
                        // Signing gives the same bytes each time.
                        let payment = build(*index).expect("it was built before");
                        assert_eq!(payment.digest, loads[*index].digest);
                    }
                });
            }
            frames.clear();
            for index in some {
                write_frame(&mut frames, *index as u32, &loads[*index].request);
            }
            if to.send(&frames).is_err() {
                return;
            }
        }
    }
}

/// Receives the answers of one shard of a validator.
struct Collector<'a> {
    kind: StatementKind,
    committee: &'a LaneCommittee,
    places: &'a HashMap<Digest, usize>,
    loads: &'a [Load],
    counts: &'a [AtomicUsize],
    needed: usize,
    done: &'a AtomicUsize,
    leaves: usize,
    /// Bytes of all answers.
    received: &'a AtomicU64,
    /// Payments of the shard without an answer.
    missing: usize,
}

impl Collector<'_> {
    /// Verifies every answer; ends when each payment of the shard has one.
    fn collect(mut self, mut from: LaneReceiver) -> Result<Vec<Option<LaneAnswer>>, Error> {
        let mut answers = vec![None; self.loads.len()];
        let mut roots = RootCache::new(1 << 12);
        let (mut bytes, mut chunk) = (Vec::new(), vec![0; 1 << 18]);
        while self.missing > 0 {
            let count = from.receive(&mut chunk)?;
            if count == 0 {
                return Err("a shard closed the connection".into());
            }
            self.received.fetch_add(count as u64, Ordering::Relaxed);
            bytes.extend_from_slice(&chunk[..count]);
            let mut at = 0;
            while let Some((length, number)) = read_head(&bytes[at..], REPLY_BYTES_MAX)? {
                let start = at + HEAD_BYTES;
                let Some(body) = bytes.get(start..start + length) else { break };
                match read_reply(number, body, None)? {
                    Reply::Answer { kind, digest, answer } if kind == self.kind => {
                        let place = *self.places.get(&digest).ok_or("an answer without a request")?;
                        self.missing -= usize::from(answers[place].is_none());
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
        let claim = Claim { kind, owner: &self.loads[place].owner, digest };
        roots.verify(self.committee, &claim, answer, &mut CheckBudget(self.leaves.max(1) as u32))?;
        if self.counts[place].fetch_add(1, Ordering::AcqRel) + 1 == self.needed {
            self.done.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }
}
