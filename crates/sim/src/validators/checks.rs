//! What must hold of all that is said, and in the end.

use std::collections::BTreeSet;

use consensus::{Entry, Frame, Index, Mask, Record, Vote, payload_digest, tendermint};
use primitives::Digest;

use super::{Network, Report, transactions_of};

impl Network {
    /// What may be said but once is in the log, and is not said twice differently, restarts and lost logs included.
    pub(super) fn check_said(&mut self, of: Index, frame: &Frame) {
        if let Frame::Rounds(messages) = frame {
            return self.check_said_in_rounds(of, messages);
        }
        let Frame::Votes(votes) = frame else { return };
        for vote in votes.unpack() {
            let without = match vote {
                Vote::Echo { slot, .. } => Vote::Echo { slot, digest: Digest::default() },
                Vote::Ready { slot, .. } => Vote::Ready { slot, digest: Digest::default() },
                Vote::Coordinate { slot, round, .. } => Vote::Coordinate { slot, round, value: false },
                Vote::Auxiliary { slot, round, .. } => Vote::Auxiliary { slot, round, values: Mask::Both },
                Vote::Estimate { .. } => continue,
            };
            let logged = self.nodes[usize::from(of)].logged.contains(&(votes.height, vote));
            assert!(logged || self.forgetful, "validator {of} says what it has not written down: {vote:?}");
            let said = *self.said.entry((of, votes.height, without)).or_insert(vote);
            assert_eq!(said, vote, "validator {of} contradicts itself at height {}", votes.height);
        }
    }

    fn check_said_in_rounds(&mut self, of: Index, messages: &tendermint::Messages) {
        let signer = self.local(messages.epoch, of);
        for message in &messages.messages {
            let kind = match message {
                tendermint::Message::Vote(vote) if vote.signer == signer => Some(vote.kind),
                tendermint::Message::Proposal(proposal) if proposal.signer == signer => None,
                _ => continue,
            };
            let said = (of, messages.height, message.round(), kind);
            let first = self.said_in_rounds.entry(said).or_insert_with(|| message.clone());
            assert_eq!(first, message, "validator {of} contradicts itself at height {}", messages.height);
        }
    }

    /// What must hold in the end.
    pub fn check(mut self) -> Report {
        assert!(self.stopped().is_empty());
        let correct = self.correct();
        let first = &self.nodes[usize::from(correct[0])].blocks;
        let mut seen = BTreeSet::new();
        for block in first.values() {
            seen.extend(block.sub_blocks.iter().flat_map(|(_, payload)| transactions_of(payload)));
            for (slot, payload) in &block.sub_blocks {
                assert!(usize::from(*slot) < self.committee.size && payload_digest(payload) != Digest::default());
            }
        }
        for index in &correct {
            let node = &self.nodes[usize::from(*index)];
            assert_eq!(node.blocks.len(), first.len());
            assert!(node.blocks.values().zip(first.values()).all(|(a, b)| a.root == b.root));
        }
        for state in correct.iter().filter_map(|index| self.nodes[usize::from(*index)].state.as_ref()) {
            let convicted = state.convicted(&self.secrets);
            assert!(convicted.iter().all(|whom| self.faults.contains_key(whom)), "{convicted:?} were convicted");
            self.report.convicted = convicted;
        }
        assert!((1..=self.transactions).all(|number| seen.contains(&number)), "a transaction is missing");
        let entered = |(_, entry): &(u64, Entry)| {
            matches!(entry, Entry::Voted(Record::Entered { .. }) | Entry::Round(tendermint::Record::Held { .. }))
        };
        assert!(self.nodes[usize::from(correct[0])].log.iter().any(entered) || self.lost_logs > 0);
        self.report.heights = first.len() as u64;
        self.report.transactions = self.transactions;
        self.report.latencies.sort_unstable();
        self.report
    }
}
