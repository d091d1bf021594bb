//! The work that a node gives to threads: jobs that take a time, and whose results come back as inputs.

use std::sync::Arc;

use consensus::{Frame, Index, Refused};
use kernel::Surviving;
use primitives::{Digest, Height};
use replica::unsealing::{UnsealDone, UnsealJob, envelopes_of};
use replica::{BlockJob, Defect, Effect, Input, Job, LifeInput, Observation, PoolEntry, Reject, StateEffect};

use super::contracts::{check_handed_ethereum, enter_ethereum};
use super::host::{Seen, after_crash};
use super::seals::{false_keys, note_false, share_of, take_seat};
use super::{Event, SimNetwork, ledgers};
use crate::world::Mistake;

/// A job that is due.
#[derive(Debug)]
pub(super) enum Due {
    Pool,
    /// A job of the life of a block.
    Block(BlockJob),
    /// A step of the transfer of a state.
    States,
    Answer {
        peer: Index,
        from: Height,
        to: Height,
    },
    /// A job of unsealing.
    Unseal(UnsealJob),
}

/// Time between two steps of the transfer of a state.
const STATES_TICK: u64 = 25_000;

impl SimNetwork {
    pub(super) fn later(&mut self, of: Index, delay: u64, job: Due) {
        let life = self.hosts[usize::from(of)].life;
        self.push(delay, of, Event::Job { life, job });
    }

    /// Performs an effect of a step. `order` are the validators as the step numbered them.
    pub(super) fn perform(&mut self, of: Index, effect: Effect, order: &[Index]) {
        if self.hosts[usize::from(of)].process.is_none() || self.hosts[usize::from(of)].stopped {
            return;
        }
        match effect {
            Effect::Send { to, bytes, .. } => {
                self.check_sent(of, &bytes);
                let besides = false_keys(self, of, &bytes).map(|frame| frame.to_bytes().into());
                for bytes in std::iter::once(bytes).chain(besides) {
                    to.iter().for_each(|to| self.transmit(of, order[usize::from(to)], bytes.clone()));
                }
            }
            Effect::Limit(peer) => {
                let whom = order[usize::from(peer)];
                assert!(self.faults.contains_key(&whom) || self.liars, "{of} disconnects {whom}, which is correct");
                if let Some(host) = self.facing(of, whom) {
                    self.disconnect(of, host, 1_000_000);
                }
            }
            Effect::Connect(generation, network) => {
                let process = self.process(of).expect("it runs");
                process.before = Some(std::mem::replace(&mut process.links, (*network).clone()));
                (process.generation, process.order) = (generation, order.to_vec());
                self.disconnect_all(of, 1_000, 20_000);
            }
            Effect::Job(job) => self.give(of, job, order),
            Effect::Observed(observed) => self.note(of, observed, order),
            Effect::Stop(why) => {
                assert!(self.wrong_ledger.is_some(), "{of} stopped: {why}");
                self.host(of).stopped = true;
            }
        }
    }

    fn give(&mut self, of: Index, job: Job, order: &[Index]) {
        let process = self.process(of).expect("it runs");
        match job {
            Job::Pool(job) => {
                if let replica::PoolJob::Note(evidence) = &job {
                    self.check_evidence(of, evidence);
                }
                self.process(of).expect("it runs").pool_jobs.push_back(job);
                let delay = 50 + self.dice.below(500);
                self.later(of, delay, Due::Pool);
            }
            Job::Submit { native, ethereum, .. } => {
                for bytes in ethereum {
                    check_handed_ethereum(self, of, &bytes);
                    enter_ethereum(self, of, bytes);
                }
                for transaction in native {
                    let number = ledgers::number_of(&transaction);
                    self.check_forwarded(of, number);
                    self.enter(of, transaction);
                }
            }
            Job::Apply(agreed) => {
                let height = agreed.height;
                process.agreed.push_back(agreed);
                self.tell(of, LifeInput::Decided(height));
            }
            Job::Check { .. } => {}
            Job::Answer { generation, peer, from, to } => {
                if generation == process.generation {
                    let (delay, peer) = (100 + self.dice.below(1_000), order[usize::from(peer)]);
                    self.later(of, delay, Due::Answer { peer, from, to });
                }
            }
            Job::State { generation, peer, bytes } => {
                let seen = Seen { ledger: &process.ledger, newest: process.newest, replica: &process.replica };
                process.states.on_frame(generation, peer, &bytes, &seen).expect("a disk without faults");
            }
            Job::Unseal(job) => {
                let delay = 100 + self.dice.below(2_000);
                self.later(of, delay, Due::Unseal(job));
            }
            Job::Recall { generation, peer, height } => {
                let keys = process.past.opened_keys(height).expect("readable");
                if let Some(frame) = keys.filter(|_| generation == process.generation) {
                    self.transmit(of, order[usize::from(peer)], frame.to_bytes().into());
                }
            }
            Job::NextEpoch(height) => {
                let (genesis, defect) = (self.epoch_zero(of), self.mistake.and_then(Mistake::of_replica));
                self.kill_at_turn(of);
                let process = self.process(of).expect("it runs");
                let network = match genesis.next(&process.ledger, height) {
                    Some(network) => network,
                    None if defect == Some(Defect::RulesNotAwaited) => {
                        genesis.at(&process.ledger, height).expect("it is drawn")
                    }
                    None => return self.page_operator(of),
                };
                let chain = network.chain.clone();
                process.inbox.push(Input::Epoch(Box::new(network)));
                let first = self.chains.entry(chain.epoch).or_insert_with(|| chain.clone());
                assert_eq!(*first, chain, "two committees of epoch {}", chain.epoch);
                self.nudge(of);
            }
        }
    }

    fn note(&mut self, of: Index, observed: Observation, order: &[Index]) {
        match observed {
            Observation::Refused { peer, why } => {
                let from = order[usize::from(peer)];
                // A twin is another instance than the one that the other end knows, and may be in another epoch.
                let faulty = [from, self.validator(of)].iter().any(|one| self.faults.contains_key(one));
                let honest = !faulty && !self.liars;
                let elsewhere = why == Refused::Epoch && self.epoch_heights.is_some();
                assert!(!honest || elsewhere || why == Refused::Ahead, "{from} to {of}: {why}");
            }
            Observation::Evidence => self.report.evidence += 1,
            Observation::Certified(height) => self.note_certified(of, height),
            Observation::CertifiedDurably(height) => {
                self.process(of).expect("it runs").certified_durably = height;
                self.tell(of, LifeInput::Certified(height));
            }
            Observation::Epoch(_) => self.report.epochs += u64::from(of == self.correct()[0]),
            Observation::VotesSynced | Observation::Forwarded(_) | Observation::Decided(_) => {}
        }
    }

    /// Submits a client's transaction; it is sent again until it is in a block.
    pub(super) fn admit(&mut self, of: Index, number: u64) {
        let transaction = ledgers::transaction(&self.identity, number, self.trades);
        match self.enter(of, transaction) {
            None | Some(Ok(()) | Err(Reject::Waiting)) => {}
            Some(Err(Reject::Full)) => self.push(100_000, of, Event::Submit(number)),
            Some(Err(Reject::Refused(refusal))) => {
                assert!(self.effective.contains(&number), "{of} refuses transaction {number}: {refusal}");
                self.host(of).given.remove(&number);
            }
        }
    }

    pub(super) fn enter(&mut self, of: Index, transaction: primitives::Transaction) -> Option<Result<(), Reject>> {
        let arrived_ms = self.time(of).milliseconds();
        let process = self.process(of)?;
        let entry = PoolEntry::new(transaction.id(), arrived_ms, transaction);
        let entered = process.pool.admit(entry, &process.ledger);
        self.nudge(of);
        Some(entered)
    }

    pub(super) fn work(&mut self, of: Index, job: Due) {
        if self.hosts[usize::from(of)].process.is_none() {
            return;
        }
        match job {
            Due::Pool => self.work_on_pool(of),
            Due::Block(job) => self.work_on_block(of, job),
            Due::States => self.transfer(of),
            Due::Answer { peer, from, to } => self.answer(of, peer, from, to),
            Due::Unseal(job) => self.unseal(of, job),
        }
    }

    fn unseal(&mut self, of: Index, job: UnsealJob) {
        let network = self.process(of).expect("it runs").ledger.network();
        let done = match job {
            UnsealJob::Find(work) => {
                let envelopes = |slot: Index, payload: &[u8]| envelopes_of(&self.checked_once(&network, slot, payload));
                UnsealDone::Found(work.perform(envelopes))
            }
            UnsealJob::Keys(work) => {
                let result = work.perform(|number| share_of(self, of, &network, number));
                note_false(self, of, &result);
                UnsealDone::Keys(result)
            }
        };
        self.process(of).expect("it runs").inbox.push(Input::Unsealed(done));
        self.nudge(of);
    }

    fn work_on_pool(&mut self, of: Index) {
        let now = self.time(of);
        let process = self.process(of).expect("it runs");
        let job = process.pool_jobs.pop_front().expect("one for each event");
        if let replica::PoolJob::Attend = job {
            let due = process.proposals.post_due(&process.ledger);
            due.into_iter().for_each(|post| process.proposals.sign_post(post));
            take_seat(self, of);
        }
        let process = self.process(of).expect("it runs");
        let result = process.proposals.perform(job, &mut process.pool, Some(&process.ledger), now);
        process.inbox.extend(result);
        self.nudge(of);
    }

    fn transfer(&mut self, of: Index) {
        let now = self.time(of).milliseconds();
        let process = self.process(of).expect("it runs");
        let seen = Seen { ledger: &process.ledger, newest: process.newest, replica: &process.replica };
        let effects = process.states.step(now, &seen).expect("a disk without faults");
        let (order, generation) = (process.order.clone(), process.generation);
        for effect in effects {
            match effect {
                StateEffect::Send { generation: of_links, to, bytes, .. } if of_links == generation => {
                    self.transmit(of, order[usize::from(to)], bytes);
                }
                StateEffect::Send { .. } => {}
                StateEffect::Undecodable(peer) => {
                    let from = order[usize::from(peer)];
                    assert!(self.faults.contains_key(&from), "{from} sends an invalid message");
                }
                StateEffect::BeginAgain(_) => {
                    self.report.states += 1;
                    let home = after_crash(&self.hosts[usize::from(of)].home, Surviving::Everything);
                    return self.end(of, home);
                }
            }
        }
        self.later(of, STATES_TICK, Due::States);
    }

    fn answer(&mut self, of: Index, to: Index, first: Height, last: Height) {
        let bytes_max = self.rules.payload_bytes * self.committee.size;
        let process = self.process(of).expect("it runs");
        let Frame::Sync(mut blocks) = process.past.answer(first, last, bytes_max).expect("readable") else {
            unreachable!("lagging validators are answered this way")
        };
        // Validator 0 lies about the contents of a block.
        if self.liars && of == 0 && !blocks.is_empty() {
            let which = self.dice.below(blocks.len() as u64) as usize;
            let false_payload = ledgers::payload_of(&self.identity, [0], self.trades);
            match self.dice.below(3) {
                0 => blocks[which].sub_blocks.clear(),
                1 => blocks[which].certificate.statement.superblock = Digest([9; 32]),
                _ => blocks[which].sub_blocks.iter_mut().for_each(|(_, payload)| *payload = false_payload.clone()),
            }
        }
        self.report.synced += blocks.len() as u64;
        let bytes: Arc<[u8]> = Frame::Sync(blocks).to_bytes().into();
        self.transmit(of, to, bytes);
    }
}
