//! The invariants of every run.

use std::collections::BTreeSet;

use consensus::{Finality, Frame, Index, LogEntry, Mask, Protocol, Record, Vote, tendermint};
use kernel::Surviving;
use ledger::{Applied, Outcome, outcomes_by_id};
use primitives::{Digest, Evidence, Height, Superblock, TransactionId};
use replica::UnsealFrame;
use store::{Options, Store, StoreError, VoteLog, VoteOptions};

use super::contracts::count_ethereum;
use super::envelopes::count_envelopes;
use super::institutions::count_institutions;
use super::seals::{check_dealings, check_seat};
use super::sessions::count_sessions;
use super::{NetworkReport, SimNetwork, ledgers};
use crate::world::Mistake;

/// A vote without the part that may have only one value.
fn question(vote: Vote) -> Option<Vote> {
    Some(match vote {
        Vote::Echo { slot, .. } => Vote::Echo { slot, digest: Digest::default() },
        Vote::Ready { slot, .. } => Vote::Ready { slot, digest: Digest::default() },
        Vote::Coordinate { slot, round, .. } => Vote::Coordinate { slot, round, value: false },
        Vote::Auxiliary { slot, round, .. } => Vote::Auxiliary { slot, round, values: Mask::Both },
        Vote::Estimate { .. } => return None,
    })
}

impl SimNetwork {
    /// No validator makes two different statements where one is allowed, restarts and lost logs included.
    pub(super) fn check_sent(&mut self, of: Index, bytes: &[u8]) {
        if let Ok(frame) = UnsealFrame::from_bytes(bytes) {
            let decided = self.process(of).expect("it runs").replica.engine().decided();
            let opens = frame.opens();
            assert!(opens <= Some(decided), "validator {of} opens height {opens:?}, and has decided {decided}");
            return;
        }
        match Frame::from_bytes(bytes).expect("a correct validator sends frames") {
            Frame::Rounds(messages) => self.check_sent_in_rounds(of, &messages),
            Frame::Votes(votes) => {
                for vote in votes.unpack() {
                    let Some(question) = question(vote) else { continue };
                    let first = *self.statements.entry((of, votes.height, question)).or_insert(vote);
                    assert_eq!(first, vote, "validator {of} contradicts itself at height {}", votes.height);
                }
            }
            _ => {}
        }
    }

    fn check_sent_in_rounds(&mut self, of: Index, messages: &tendermint::Messages) {
        let signer = self.local(messages.epoch, of);
        for message in &messages.messages {
            let kind = match message {
                tendermint::Message::Vote(vote) if vote.signer == signer => Some(vote.kind),
                tendermint::Message::Proposal(proposal) if proposal.signer == signer => None,
                _ => continue,
            };
            let said = (of, messages.height, message.round(), kind);
            let first = self.sent_in_rounds.entry(said).or_insert_with(|| message.clone());
            assert_eq!(first, message, "validator {of} contradicts itself at height {}", messages.height);
        }
    }

    /// A validator's votes are in its vote log, durably, unless their height is over; and the certificates that it
    /// considers durable are.
    pub(super) fn check_log(&self, of: Index) {
        let host = &self.hosts[usize::from(of)];
        let certificates = host.home.certificates.after_crash(Surviving::Nothing);
        let (certificates, _) = Store::open(certificates, Options::default()).expect("readable");
        let told = host.process.as_ref().map_or(0, |process| process.certified_durably);
        assert!(certificates.last_height() >= told, "{of} considers certificates up to {told} durable");
        let disk = self.hosts[usize::from(of)].home.votes.after_crash(Surviving::Nothing);
        let found = match VoteLog::open(disk, VoteOptions::default()) {
            Ok((_, found)) => found,
            // The log was lost, and its replacement has not begun.
            Err(StoreError::VotesLost(_)) => return,
            Err(error) => panic!("the vote log of {of} cannot be read: {error}"),
        };
        let records = found.records.iter().flat_map(|(height, records)| records.iter().map(move |one| (*height, one)));
        let votes = records.filter_map(|(height, bytes)| match borsh::from_slice(bytes).expect("an entry") {
            LogEntry::Voted(Record::Sent(vote)) => Some((height, vote)),
            _ => None,
        });
        let logged: BTreeSet<(u64, Vote)> = votes.collect();
        let first = Vote::Echo { slot: 0, digest: Digest::default() };
        let said = self.statements.range((of, found.floor, first)..).take_while(|((who, ..), _)| *who == of);
        for ((_, height, _), vote) in said.filter(|((_, height, _), _)| *height >= found.floor) {
            assert!(
                logged.contains(&(*height, *vote)),
                "{of} has sent a vote that is not in its log: {height} {vote:?}"
            );
        }
    }

    /// Evidence convicts only faulty validators.
    pub(super) fn check_evidence(&self, of: Index, evidence: &Evidence) {
        let chain = self.chain(evidence.epoch);
        let key = chain.keys[usize::from(evidence.member)];
        assert!(evidence.convicts(chain.genesis, &key), "{of} has evidence that proves nothing");
        let whom = self.by_key[&key.0];
        assert!(
            self.faults.contains_key(&whom) || self.mistake.and_then(Mistake::of_replica).is_some(),
            "{whom} is correct"
        );
    }

    /// Validators forward only what clients sent.
    pub(super) fn check_forwarded(&self, of: Index, number: Option<u64>) {
        let from_client = number.is_none_or(|number| self.arrived.contains_key(&number));
        assert!(from_client || !self.faults.is_empty(), "{of} receives a forwarded transaction that nobody sent");
    }

    pub(super) fn check_applied(&mut self, of: Index, block: &Superblock, applied: &Applied) {
        let height = block.height;
        self.keep_state(of, height);
        check_dealings(self, block);
        self.check_pace(block);
        if !self.applied.contains_key(&height) {
            count_ethereum(self, of, &applied.contracts);
            count_sessions(self, of, block, applied);
            count_institutions(self, of, block, &applied.block);
            count_envelopes(self, of, block, applied);
        }
        let first = *self.applied.entry(height).or_insert(applied.block);
        assert_eq!(first, applied.block, "{of} applies another block at height {height}");
        let committee = self.chain(self.epoch_of(height)).committee();
        let least = match self.rules.protocol {
            Protocol::Dbft if self.rules.enough.is_none() => committee.size - 2 * committee.faulty,
            Protocol::Dbft | Protocol::Tendermint => 1,
        };
        assert!(block.sub_blocks.len() >= least);
        self.report.partial += u64::from(block.sub_blocks.len() < committee.size);
        let ids = ledgers::ids(block).into_iter();
        self.note_effective(of, block, ids.zip(applied.outcomes.iter().copied()));
        self.host(of).blocks.insert(height, (block.clone(), applied.block));
    }

    /// Block time rises by an interval a height, so it is ahead of all clocks where heights follow each other too fast.
    /// The clocks of a network that goes on from a state of another one begin anew.
    fn check_pace(&self, block: &Superblock) {
        if self.rules.begins > 0 {
            return;
        }
        let clock_ms = self.committee.members().map(|index| self.time(index).wall_ms).max().expect("not empty");
        let heights = self.rules.window + if self.rules.enough.is_some() { 64 } else { 8 };
        let latest = clock_ms + heights * self.interval / 1_000;
        assert!(block.time_ms <= latest, "height {} came too soon: its time is ahead of all clocks", block.height);
    }

    /// Notes which of the transactions of a block took effect.
    fn note_effective(
        &mut self,
        of: Index,
        block: &Superblock,
        outcomes: impl Iterator<Item = (TransactionId, Outcome)>,
    ) {
        let effective: BTreeSet<_> = outcomes_by_id(outcomes)
            .into_iter()
            .filter(|(_, outcome)| outcome.refusal().is_none())
            .map(|(id, _)| id)
            .collect();
        let transactions = block.sub_blocks.iter().flat_map(|sub| &sub.native);
        let numbers = transactions.filter(|one| effective.contains(&one.id()));
        for number in numbers.filter_map(ledgers::number_of) {
            if self.effective.insert(number) {
                self.progress = self.schedule.now();
            }
            self.host(of).given.remove(&number);
        }
    }

    /// Notes the blocks that a crash left logged and not shown: the restart has applied them.
    pub(super) fn note_recovered(&mut self, of: Index) {
        let host = &self.hosts[usize::from(of)];
        let process = host.process.as_ref().expect("it runs");
        let from = host.blocks.last_key_value().map_or(0, |(height, _)| *height) + 1;
        let past = process.past.clone();
        for height in from..=process.ledger.height() {
            let (block, receipts) = (past.block(height).expect("readable"), past.receipts(height).expect("readable"));
            // Of a fetched state there are no blocks.
            let (Some(block), Some(receipts)) = (block, receipts) else { continue };
            let first = self.applied.get(&height).copied().unwrap_or(receipts.block);
            assert_eq!(first, receipts.block, "{of} has applied another block at height {height}");
            self.note_effective(of, &block, receipts.outcomes.iter().copied());
            self.host(of).blocks.insert(height, (block, receipts.block));
        }
    }

    /// Keeps the state after the requested height.
    fn keep_state(&mut self, of: Index, height: Height) {
        if self.keep_state_of == Some(height) && of == self.correct()[0] {
            self.kept_state = self.process(of).map(|process| process.ledger.clone());
        }
    }

    /// Certificates are valid; records the latency of the transactions that arrived here.
    pub(super) fn note_certified(&mut self, of: Index, height: Height) {
        let chain = self.chain(self.epoch_of(height));
        let host = &mut self.hosts[usize::from(of)];
        let process = host.process.as_ref().expect("it runs");
        let finality: Finality = process.past.finality(height).expect("readable").expect("just archived");
        finality.certificate.verify(&chain).expect("a valid certificate");
        let signed = height.checked_sub(self.rules.lag).and_then(|of| self.outcomes.get(&of));
        let is_known = signed.is_none_or(|outcome| *outcome == finality.certificate.statement.root);
        assert!(is_known, "{of} has a certificate of another outcome for height {height}");
        let before = host.certified;
        host.certified = before.max(height);
        let blocks = host.blocks.range(before + 1..=height.max(before + 1)).map(|(_, (block, _))| block);
        let transactions = blocks.flat_map(|block| &block.sub_blocks).flat_map(|sub| &sub.native);
        let numbers: Vec<u64> = transactions.filter_map(ledgers::number_of).collect();
        for number in numbers {
            if let Some((since, at)) = self.arrived.get(&number).filter(|(_, at)| *at == of) {
                debug_assert_eq!(*at, of);
                let latency = self.schedule.now() - since;
                let is_prompt = self.prompt.is_none_or(|intervals| latency <= intervals * self.interval);
                assert!(is_prompt, "transaction {number} has waited for {latency} µs");
                self.report.latencies.push(latency);
                self.arrived.insert(number, (*since, Index::MAX));
            }
        }
    }

    pub(super) fn is_settled(&mut self) -> bool {
        self.steps += 1;
        if !self.steps.is_multiple_of(64) {
            return false;
        }
        let correct = self.correct();
        let hosts = || correct.iter().map(|index| &self.hosts[usize::from(*index)]).filter(|host| !host.stopped);
        let last = hosts().filter_map(|host| Some(host.process.as_ref()?.ledger.height())).max().unwrap_or(0);
        let is_done = |host: &super::Host| {
            let Some(process) = &host.process else { return false };
            let engine = process.replica.engine();
            let quiet = engine.opening().is_none_or(|opening| !opening.urgent && !opening.nudged);
            let follows = engine.follows();
            let votes = !engine.is_silent() || follows;
            // In epochs of a few heights who follows may always be too late to say that it is present.
            let pending = process.pool.len() - usize::from(follows && process.pool.len() == 1);
            let is_present = follows || process.proposals.is_present(&process.ledger);
            process.ledger.height() == last
                && engine.decided() == last
                && engine.certified() == last
                && quiet
                && votes
                && process.is_idle()
                && pending == 0
                && !process.pool.ethereum.is_busy()
                && process.proposals.is_content()
                && is_present
                && host.given.is_empty()
        };
        // Checked last, because there may be very many events.
        let is_pending = || self.schedule.pending().any(|(_, event)| event.is_outer());
        hosts().all(is_done) && self.is_upgraded() && !is_pending()
    }

    pub(super) fn describe(&self) -> String {
        let of = |index: Index| {
            let host = &self.hosts[usize::from(index)];
            let process = host.process.as_ref().map(|process| {
                let engine = process.replica.engine();
                let heights = (engine.decided(), engine.certified(), process.ledger.height(), engine.live().count());
                let state = (engine.opening(), engine.is_silent(), engine.follows(), process.replica.sealed_waits());
                (heights, state, process.pool.len(), process.pool.ready(), process.replica.network().chain.epoch)
            });
            format!("{index}: {process:?} given {:?}", host.given)
        };
        self.correct().into_iter().map(of).collect::<Vec<_>>().join("; ")
    }

    /// A client with the genesis can follow the handovers to the present epoch, or to the one before if nothing of
    /// this one is certified yet. A validator that fetched a state can do so too.
    fn check_handovers(&self, process: &super::Process) {
        let mut lineage = self.lineage();
        loop {
            let page = process.handovers.held.page(lineage.chain.epoch + 1).expect("readable");
            if page.is_empty() {
                break;
            }
            page.iter().for_each(|handover| lineage.follow(handover).expect("holds"));
        }
        let reached = lineage.chain.epoch;
        // The next epoch may be proved before any validator has begun it.
        assert!(self.chains.get(&reached).is_none_or(|chain| *chain == lineage.chain));
        let present = process.replica.network().chain.epoch;
        assert!(reached >= present, "handovers lead to epoch {reached}, but this is epoch {present}");
    }

    /// The invariants at the end.
    pub fn check(&mut self) -> NetworkReport {
        assert!(self.stopped().is_empty());
        let correct = self.correct();
        correct.iter().for_each(|index| self.check_log(*index));
        let state = |network: &SimNetwork, index: Index| {
            let process = network.hosts[usize::from(index)].process.as_ref().expect("all run at the end");
            (process.ledger.height(), process.ledger.last_block(), process.newest)
        };
        for host in correct.iter().filter_map(|index| self.hosts[usize::from(*index)].process.as_ref()) {
            self.check_handovers(host);
        }
        correct.iter().for_each(|index| check_seat(self, *index));
        assert!(!self.must_open || self.report.opened > 0, "no envelope opens");
        assert!(!self.must_open || self.report.states == 0, "a state is fetched, though all blocks are kept");
        let (first, of_first) = (correct[0], state(self, correct[0]));
        assert!(correct.iter().all(|index| state(self, *index).0 == of_first.0));
        assert!(correct.iter().all(|index| state(self, *index).1 == of_first.1));
        let process = self.hosts[usize::from(first)].process.as_ref().expect("it runs");
        let is_excluded = |index: &Index| {
            let account = self.secrets[usize::from(*index)].public().address();
            process.ledger.validators().get(&account).is_some_and(|one| one.excluded)
        };
        let convicted: Vec<Index> = self.committee.members().filter(is_excluded).collect();
        assert!(convicted.iter().all(|whom| self.faults.contains_key(whom)), "{convicted:?} were convicted");
        assert!((1..=self.transactions).all(|number| self.effective.contains(&number)), "a transaction is missing");
        self.report.convicted = convicted;
        self.report.heights = of_first.0;
        self.report.transactions = self.transactions;
        let most = |faulty: bool| {
            let of = |(index, sent): (&Index, &u64)| (self.faults.contains_key(index) == faulty).then_some(*sent);
            self.sent.iter().filter_map(of).max().unwrap_or(0)
        };
        self.report.received = (most(true), most(false));
        self.report.duration = self.schedule.now();
        self.report.latencies.sort_unstable();
        self.report.clone()
    }
}
