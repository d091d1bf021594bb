//! The work that a node gives to threads: jobs that take a time, and whose results come back as inputs.

use std::sync::Arc;

use consensus::{Frame, Index, Payload, Refused, payload_digest};
use ledger::{ReceiptsTrie, outcome_root};
use primitives::{Digest, Height, SubBlock};
use replica::{Effect, Foundation, Input, Job, Observation, PoolEntry, Reject, StateEffect};

use super::host::Seen;
use super::{Event, SimNetwork, ledgers};

/// A job that is due.
#[derive(Debug)]
pub(super) enum Due {
    Pool,
    Apply,
    Hash,
    Publish,
    Checkpoint,
    /// A step of the transfer of a state.
    States,
    Answer {
        peer: Index,
        from: Height,
        to: Height,
    },
}

/// Time between two steps of the transfer of a state.
const STATES_TICK: u64 = 25_000;

impl SimNetwork {
    fn later(&mut self, of: Index, delay: u64, job: Due) {
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
                for to in to.iter() {
                    self.transmit(of, order[usize::from(to)], bytes.clone());
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
        let slow = self.slow == Some(of);
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
            Job::Submit { native, ethereum } => {
                for bytes in ethereum {
                    self.check_handed_ethereum(of, &bytes);
                    self.enter_ethereum(of, bytes);
                }
                for transaction in native {
                    let number = ledgers::number_of(&transaction);
                    self.check_forwarded(of, number);
                    self.enter(of, transaction);
                }
            }
            Job::Apply(agreed) if agreed.height <= process.ledger.height() => {
                agreed.is_logged(&process.past).expect("the same superblock is decided again");
                process.inbox.push(Input::Applied(agreed.height));
                self.nudge(of);
            }
            Job::Apply(agreed) => {
                process.agreed.push_back(agreed);
                let delay = if slow { 60_000 } else { 2_000 } + self.dice.below(1_000);
                self.later(of, delay, Due::Apply);
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
            Job::NextEpoch(height) => {
                let genesis = self.epoch_zero(of);
                let process = self.process(of).expect("it runs");
                let network = genesis.at(&process.ledger, height).expect("it is drawn");
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
            Observation::CertifiedDurably(height) => self.process(of).expect("it runs").certified_durably = height,
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

    fn enter(&mut self, of: Index, transaction: primitives::Transaction) -> Option<Result<(), Reject>> {
        let arrived_ms = self.time(of).milliseconds();
        let process = self.process(of)?;
        let entry = PoolEntry { id: transaction.id(), arrived_ms, transaction };
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
            Due::Apply => self.apply(of),
            Due::Hash => self.hash(of),
            Due::Publish => self.publish(of),
            Due::Checkpoint => self.end_checkpoint(of),
            Due::States => self.transfer(of),
            Due::Answer { peer, from, to } => self.answer(of, peer, from, to),
        }
    }

    fn work_on_pool(&mut self, of: Index) {
        let now = self.time(of);
        let process = self.process(of).expect("it runs");
        let job = process.pool_jobs.pop_front().expect("one for each event");
        let result = process.proposals.perform(job, &mut process.pool, Some(&process.ledger), now);
        process.inbox.extend(result);
        self.nudge(of);
    }

    /// Checks each sub-block once, for all validators.
    fn checked_once(&mut self, network: &Digest, slot: Index, payload: &Payload) -> SubBlock {
        let known = self.checked.entry((slot, payload_digest(payload)));
        known.or_insert_with(|| replica::checked(network, slot, payload)).clone()
    }

    fn apply(&mut self, of: Index) {
        let process = self.process(of).expect("it runs");
        if !process.can_apply() {
            return self.later(of, 500, Due::Apply);
        }
        let agreed = process.agreed.pop_front().expect("one for each event");
        let applied_to = process.ledger.height();
        if let Some(epoch) = process.handovers.held.due(&process.ledger)
            && process.past.blocks.block(applied_to).expect("readable").is_some()
        {
            let receipts = process.past.receipts(applied_to).expect("readable").expect("it was published");
            let root = ReceiptsTrie::new(&receipts).root();
            process.handovers.keep(epoch, &process.ledger, &mut process.roots, root).expect("a disk without faults");
        }
        let foundation = Foundation::of(&process.ledger, process.newest.1);
        let network = process.ledger.network();
        let checked: Vec<SubBlock> =
            agreed.sub_blocks.iter().map(|(slot, payload)| self.checked_once(&network, *slot, payload)).collect();
        let mut checked = checked.into_iter().map(|mut sub_block| {
            self.trust_own(of, &mut sub_block);
            sub_block
        });
        let block = agreed.block(&foundation, |_, _| checked.next().expect("one for each"));
        let ids = ledgers::ids(&block);
        let process = self.process(of).expect("it runs");
        assert_eq!(block.height, applied_to + 1, "{of} applies a block that does not follow");
        replica::log(&mut process.store, &block).expect("a disk without faults");
        let mut applied = replica::apply(&mut process.ledger, &block, &mut |_| {}).expect("a decided block applies");
        process.ledger.audit().expect("sound");
        replica::settle(&mut process.pool, &process.ledger, &block, &ids, &applied.contracts.skipped);
        let changes = std::mem::take(&mut applied.changes);
        let receipts = replica::receipts_with(&applied, &ids);
        let every = process.keeping.checkpoint_blocks;
        let due = every > 0 && block.height.is_multiple_of(every);
        let state = due.then(|| process.ledger.clone());
        process.changes.push_back((block.height, changes));
        process.made.push_back((receipts, state));
        process.inbox.push(Input::Applied(block.height));
        self.check_applied(of, &block, &applied);
        let (hash, publish) = (500 + self.dice.below(3_000), 300 + self.dice.below(3_000));
        self.later(of, hash, Due::Hash);
        self.later(of, publish, Due::Publish);
        self.nudge(of);
    }

    fn hash(&mut self, of: Index) {
        let wrong = self.wrong_ledger == Some(of);
        let process = self.process(of).expect("it runs");
        let (height, changes) = process.changes.pop_front().expect("one for each event");
        let root = replica::hash(&mut process.roots, height, &changes).expect("tries take any block");
        process.newest = (height, root);
        let told = if wrong && height >= 5 { Digest([66; 32]) } else { root };
        process.inbox.push(Input::StateRoot(height, told));
        assert_eq!(*self.roots.entry(height).or_insert(root), root, "{of} has another state at height {height}");
        self.nudge(of);
    }

    fn publish(&mut self, of: Index) {
        let process = self.process(of).expect("it runs");
        let (receipts, state) = process.made.pop_front().expect("one for each event");
        replica::archive(&mut process.store, &receipts).expect("a disk without faults");
        let root = ReceiptsTrie::new(&receipts).root();
        process.inbox.push(Input::ReceiptsRoot(receipts.height, root));
        let height = receipts.height;
        if let Some(state) = self.roots.get(&height) {
            self.outcomes.insert(height, outcome_root(state, &root));
        }
        let process = self.process(of).expect("it runs");
        if let Some(state) = state {
            let forgets = process.keeping.keep_blocks > 0;
            let begun = replica::begin_checkpoint(&mut process.store, state.height(), forgets);
            if let Some(writer) = begun.expect("a disk without faults") {
                process.checkpoint = Some((state, writer));
                let delay = 1_000 + self.dice.below(20_000);
                self.later(of, delay, Due::Checkpoint);
            }
        }
        self.nudge(of);
    }

    fn end_checkpoint(&mut self, of: Index) {
        let process = self.process(of).expect("it runs");
        let (state, writer) = process.checkpoint.take().expect("one for each event");
        replica::write_checkpoint(&state, writer).expect("a disk without faults");
        let (keep, durable) = (process.keeping.keep_blocks, process.certified_durably);
        if keep > 0 {
            replica::forget(&mut process.store, state.height(), keep, durable).expect("a disk without faults");
        }
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
                    let home =
                        super::host::after_crash(&self.hosts[usize::from(of)].home, store::Surviving::Everything);
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
