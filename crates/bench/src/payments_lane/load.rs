//! The client of the measurement: it sends to all shards, and verifies what they answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use lane::wire::{HEAD_BYTES, REPLY_BYTES_MAX, Reply, read_head, read_reply, write_frame};
use lane::{LaneReceiver, LaneSender, connect};
use payments::{
    CheckBudget, Claim, LaneAnswer, LaneCommittee, PaymentCertificate, PaymentView, RootCache, SignedPayment,
    StatementKind,
};
use primitives::Digest;
use serde_json::{Value, json};

use super::share::{Load, Share, TOGETHER};
use super::{Costs, LaneVariant, RunningShard};
use crate::consensus::processor;
use crate::exchange::Error;
use crate::lane_rows::cpu;

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
    /// Payments in flight, of each shard.
    pub(super) window: usize,
    pub(super) leaves: usize,
    pub(super) variant: LaneVariant,
    pub(super) costs: &'a Costs,
}

/// Builds and signs a payment again.
pub(super) type Build<'a> = &'a (dyn Fn(usize) -> Result<SignedPayment, String> + Sync);

impl LoadNetwork<'_> {
    /// Sends all of these, of each shard as many at a time as the window holds; returns the time and the certificates.
    pub(super) fn pay_all(
        &self,
        kind: StatementKind,
        loads: &[Load],
        build: Build<'_>,
    ) -> Result<(Value, Vec<PaymentCertificate>), Error> {
        let shares = Share::all(loads, self.committee)?;
        let spent = Spent::default();
        let (before, begun) = (processor(), Instant::now());
        let mut collected = Vec::new();
        std::thread::scope(|scope| -> Result<(), Error> {
            let mut readers = Vec::new();
            for running in self.shards {
                let RunningShard { validator, number, shard } = running;
                let tls = self.variant == LaneVariant::Tls;
                let key = tls.then(|| self.committee.key(*validator, *number)).transpose()?;
                let (writing, reading) = connect(shard.address(), key)?;
                let (share, spent) = (&shares[usize::from(*number)], &spent);
                std::thread::Builder::new().name("load-writer".into()).spawn_scoped(scope, move || {
                    self.send_all(writing, (loads, share), build);
                    spent.add();
                })?;
                let read = move || {
                    let missing = share.places.len();
                    let answers =
                        Collector { kind, network: self, running, loads, share, spent, missing }.collect(reading);
                    if answers.is_err() {
                        share.give_up();
                    }
                    spent.add();
                    answers
                };
                readers.push(std::thread::Builder::new().name("load-reader".into()).spawn_scoped(scope, read)?);
            }
            for (reader, running) in readers.into_iter().zip(self.shards) {
                collected.push((running.number, reader.join().map_err(|_| "a reader panicked")??));
            }
            Ok(())
        })?;
        let value = self.report(loads, begun.elapsed().as_secs_f64(), [before, processor()], &spent);
        Ok((value, self.certificates(loads.len(), &shares, &mut collected)))
    }

    /// Of each payment the first answers that make a certificate. `collected` has the answers of each connection.
    fn certificates(
        &self,
        payments: usize,
        shares: &[Share],
        collected: &mut [(u16, Vec<Option<LaneAnswer>>)],
    ) -> Vec<PaymentCertificate> {
        let needed = self.committee.quorums().certificate;
        let mut of_payments = vec![Vec::new(); payments];
        for (number, answers) in collected {
            let places = &shares[usize::from(*number)].places;
            let with_places = places.iter().zip(answers).filter_map(|(place, answer)| Some((*place, answer.take()?)));
            with_places.for_each(|(place, answer)| of_payments[place].push(answer));
        }
        let certificate = |mut answers: Vec<LaneAnswer>| {
            answers.truncate(needed);
            PaymentCertificate::Answers(answers)
        };
        of_payments.into_iter().map(certificate).collect()
    }

    /// What a phase took, in all and of each payment. `processor` has the processor time of threads before and after.
    fn report(&self, loads: &[Load], seconds: f64, [before, after]: [HashMap<String, f64>; 2], spent: &Spent) -> Value {
        let of = |is_of: &dyn Fn(&str) -> bool| -> f64 {
            let of = |times: &HashMap<String, f64>| -> f64 {
                times.iter().filter(|(name, _)| is_of(name)).map(|(_, seconds)| seconds).sum()
            };
            (of(&after) - of(&before)) * 1e6 / loads.len() as f64
        };
        let by = |prefix: &str| of(&|name| name.starts_with(prefix));
        let quorums = self.committee.quorums();
        let (payments, validators) = (loads.len() as f64, quorums.validators as f64);
        let sent: usize = loads.iter().map(|load| HEAD_BYTES + load.request.len()).sum();
        let per_second = payments / seconds;
        let ceiling = self.costs.ceiling(quorums.validators, quorums.certificate, self.leaves);
        json!({
            "payments_per_second": per_second.round(),
            "of_ceiling": per_second / ceiling,
            "processor_us_per_payment": {
                "machine_of_each_validator": by("lane-machine") / validators,
                "syncer_of_each_validator": by("lane-syncer") / validators,
                "sockets_of_each_validator": by("lane-sockets") / validators,
                // The pool verifies large batches of signatures for the machines; nobody else uses it meanwhile.
                "pool_of_each_validator": of(&|name| !name.starts_with("lane-")) / validators,
                "client": spent.client.load(Ordering::Relaxed) as f64 / 1e3 / payments,
            },
            "bytes_per_payment": {
                "request": sent as f64 / payments,
                "answer_of_each_validator": spent.received.load(Ordering::Relaxed) as f64 / validators / payments,
            },
        })
    }

    /// Sends the requests of one shard, no more than the window ahead of the completed ones. The reader detects if the
    /// connection breaks. In a live load the first writer that reaches some payments signs them.
    fn send_all(&self, mut to: LaneSender, (loads, share): (&[Load], &Share), build: Build<'_>) {
        let mut frames = Vec::new();
        for (number, (some, built)) in share.places.chunks(TOGETHER).zip(&share.built).enumerate() {
            share.wait_for_room(number * TOGETHER, self.window);
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

/// What the client has spent. Its threads add their times before they end, and before those of all threads are read.
#[derive(Default)]
struct Spent {
    /// Processor time, ns.
    client: AtomicU64,
    /// Bytes of all answers.
    received: AtomicU64,
}

impl Spent {
    fn add(&self) {
        self.client.fetch_add(cpu(), Ordering::Relaxed);
    }
}

/// Receives the answers of one shard of a validator.
struct Collector<'a> {
    kind: StatementKind,
    network: &'a LoadNetwork<'a>,
    running: &'a RunningShard,
    loads: &'a [Load],
    share: &'a Share,
    spent: &'a Spent,
    /// Payments of the shard without an answer.
    missing: usize,
}

impl Collector<'_> {
    /// Verifies every answer; ends when each payment of the shard has one. They are in the order of the share.
    fn collect(mut self, mut from: LaneReceiver) -> Result<Vec<Option<LaneAnswer>>, Error> {
        let mut answers = vec![None; self.share.places.len()];
        let mut roots = RootCache::new(1 << 12);
        let (mut bytes, mut chunk) = (Vec::new(), vec![0; 1 << 18]);
        while self.missing > 0 {
            let count = from.receive(&mut chunk)?;
            if count == 0 {
                return Err(self.closed());
            }
            self.spent.received.fetch_add(count as u64, Ordering::Relaxed);
            bytes.extend_from_slice(&chunk[..count]);
            let mut at = 0;
            while let Some((length, number)) = read_head(&bytes[at..], REPLY_BYTES_MAX)? {
                let start = at + HEAD_BYTES;
                let Some(body) = bytes.get(start..start + length) else { break };
                match read_reply(number, body, None)? {
                    Reply::Answer { kind, digest, answer } if kind == self.kind => {
                        let position = *self.share.positions.get(&digest).ok_or("an answer without a request")?;
                        self.missing -= usize::from(answers[position].is_none());
                        self.verify(&mut roots, &digest, &answer, position)?;
                        answers[position] = Some(answer);
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

    /// Why a shard has closed the connection, as far as its counts tell.
    fn closed(&self) -> Error {
        let RunningShard { validator, number, shard } = self.running;
        let counts = shard.counts();
        let [unread, late] = [&counts.closed, &counts.late].map(|count| count.load(Ordering::Relaxed));
        let missing = self.missing;
        format!(
            "shard {number} of validator {validator} closed the connection, {missing} answers short; it has closed \
             {unread} whose client did not read and {late} on which no request came, or none came to its end, in time"
        )
        .into()
    }

    fn verify(
        &self,
        roots: &mut RootCache,
        digest: &Digest,
        answer: &LaneAnswer,
        position: usize,
    ) -> Result<(), Error> {
        let LoadNetwork { committee, leaves, .. } = *self.network;
        let claim = Claim { kind: self.kind, owner: &self.loads[self.share.places[position]].owner, digest };
        roots.verify(committee, &claim, answer, &mut CheckBudget(leaves.max(1) as u32))?;
        self.share.answered(position, committee.quorums().certificate);
        Ok(())
    }
}
