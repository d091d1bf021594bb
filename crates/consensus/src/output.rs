//! Output in order, commits, certificates, and removal of what they make obsolete.

use primitives::Digest;
use proofs::{Certificate, Chain, Index, Statement};

use crate::benches::Benches;
use crate::certificate::{Commit, Counted, Link};
use crate::engine::{Divergence, Engine, Finality, LogEntry, Superblock};
use crate::frame::Frame;
use crate::members::Members;
use crate::proposal::{Evidence, Payload, payload_digest};
use crate::refused::Refused;

/// Maximum number of heights that are output and not applied.
const AHEAD: u64 = 128;
const ORDER_CONTEXT: &str = "walras 2026 consensus order of sub-blocks v1";

impl Engine {
    /// Outputs every decided height, in order, up to the first gap or as far as the ledger may be behind.
    pub(crate) fn output(&mut self) {
        while let Some(sub_blocks) = self.next_decision() {
            let (link, benches) = self.next_link(&sub_blocks);
            self.output_superblock(link.digest(&self.chain), benches, sub_blocks);
        }
        self.commit_due();
        self.advance_certified();
    }

    /// The sub-blocks of the next height, if it is decided, all of them are here, and the ledger has room for it.
    fn next_decision(&self) -> Option<Vec<(Index, Payload)>> {
        let live = self.live.get(&(self.decided.0 + 1)).filter(|_| self.may_output())?;
        let held = |(slot, digest): &(Index, Digest)| Some((*slot, live.held(*slot, digest)?.1.clone()));
        live.height.decision()?.iter().map(held).collect()
    }

    /// Whether the ledger is near enough for another height. What is output waits for it in memory; and since nobody
    /// takes part above the horizon of what it has output, a validator with a slow ledger stops voting.
    pub(crate) fn may_output(&self) -> bool {
        self.decided.0 < self.applied.saturating_add(AHEAD)
    }

    /// The link of the next height with these sub-blocks, and the attendance after it.
    pub(crate) fn next_link(&self, sub_blocks: &[(Index, Payload)]) -> (Link, Benches) {
        let height = self.decided.0 + 1;
        let mut benches = self.benches.clone();
        benches.note(height, &sub_blocks.iter().map(|(slot, _)| *slot).collect::<Members>());
        let digests = sub_blocks.iter().map(|(slot, payload)| (*slot, payload_digest(payload))).collect();
        (Link { height, parent: self.decided.1, sub_blocks: digests, benches: benches.digest() }, benches)
    }

    /// Outputs the next height.
    pub(crate) fn output_superblock(
        &mut self,
        digest: Digest,
        benches: Benches,
        mut sub_blocks: Vec<(Index, Payload)>,
    ) {
        let (height, parent) = (self.decided.0 + 1, self.decided.1);
        self.decided = (height, digest);
        self.links.insert(height, (parent, benches.clone()));
        self.benches = benches;
        if sub_blocks.iter().any(|(_, payload)| self.transactions_in(payload) > 0) {
            self.busy = self.busy.max(height);
        }
        let (mut mine, mut rounds) = (None, Vec::new());
        let is_certified = self.certificates.contains_key(&height);
        if let Some(live) = self.live.get_mut(&height) {
            live.superblock = Some(digest);
            rounds = live.height.rounds();
            if is_certified {
                live.height.halt();
            }
            let proposed = live.proposal_of(self.me).map(|(proposal, _)| proposal.digest);
            let held =
                |(slot, payload): &(Index, Payload)| *slot == self.me && Some(payload_digest(payload)) == proposed;
            mine = proposed.map(|_| sub_blocks.iter().any(held));
        }
        // The certificate may have arrived first and name another superblock: then more than f are faulty.
        if let Some(certified) = self.certificates.get(&height).map(|certificate| certificate.statement) {
            self.compare(Statement { superblock: digest, ..certified }, certified);
        }
        sub_blocks.sort_by_key(|(slot, _)| order(&self.chain, &parent, *slot));
        self.turn.decided.push(Superblock { height, digest, sub_blocks, mine, rounds });
        self.moved = true;
        self.restore_up_to_horizon();
    }

    /// Commits to every height whose root is known by now.
    pub(crate) fn commit_due(&mut self) {
        let rules = self.rules;
        let due: Vec<Statement> = self
            .live
            .iter()
            .filter(|(_, live)| live.commit.is_none())
            .filter_map(|(height, live)| {
                let root = self.roots.get(&rules.signed_by(*height))?;
                live.statement(*height, *root)
            })
            .collect();
        for statement in due {
            let commit = self.sign_commit(statement);
            let live = self.live.get_mut(&statement.height).expect("it was output");
            live.commit = Some(commit);
            live.commits.count(commit);
            self.turn.entries.push((statement.height, LogEntry::Committed(commit)));
            let to = self.takers(statement.height);
            self.send(to, Frame::Commit(commit));
            self.weigh(statement.height);
        }
    }

    /// Handles a commit of another validator.
    pub(crate) fn on_commit(&mut self, commit: Commit) -> Result<(), Refused> {
        let height = commit.statement.height;
        let chain = self.chain.clone();
        let Some(live) = self.live_at(height)? else { return Ok(()) };
        if live.commits.has(&commit) {
            return Ok(());
        }
        if !commit.is_signed(&chain) {
            return Err(Refused::Signature);
        }
        match live.commits.count(commit) {
            Counted::New => self.weigh(height),
            Counted::Contradiction(first) => self.turn.evidence.push(Evidence::Commits(first, commit)),
            Counted::Known => {}
        }
        Ok(())
    }

    /// Checks whether the commits of a height make a certificate, or contradict this validator's own.
    fn weigh(&mut self, height: u64) {
        let Some(live) = self.live.get(&height) else { return };
        if let (Some(ours), Some(theirs)) = (&live.commit, live.commits.stated_by(self.committee.one_correct)) {
            self.compare(ours.statement, theirs);
        }
        if let Some(certificate) = self.live[&height].commits.certificate(&self.chain) {
            self.accept(certificate);
        }
    }

    /// Handles a certificate from another validator.
    pub(crate) fn on_certificate(&mut self, certificate: Certificate) -> Result<(), Refused> {
        let height = certificate.statement.height;
        if height <= self.certified || self.certificates.contains_key(&height) {
            return Ok(());
        }
        if height > self.horizon() {
            return Err(Refused::Ahead);
        }
        if certificate.epoch != self.chain.epoch {
            return Err(Refused::Epoch);
        }
        certificate.verify(&self.chain).map_err(|_| Refused::Signature)?;
        self.accept(certificate);
        self.advance_certified();
        Ok(())
    }

    /// Accepts a valid certificate: votes on its height are no longer needed.
    pub(crate) fn accept(&mut self, certificate: Certificate) {
        let height = certificate.statement.height;
        if let Some(live) = self.live.get_mut(&height) {
            // A validator that does not know the superblock keeps voting: if all were killed, perhaps none knows it,
            // and all must decide again.
            if live.superblock.is_some() {
                live.height.halt();
            }
            let (theirs, ours, superblock) = (certificate.statement, live.commit, live.superblock);
            if let Some(ours) = ours {
                self.compare(ours.statement, theirs);
            } else if let Some(superblock) = superblock {
                self.compare(Statement { superblock, ..theirs }, theirs);
            }
        }
        self.compare_root(&certificate);
        self.certificates.entry(height).or_insert(certificate);
        self.advance_certified();
    }

    fn compare(&mut self, ours: Statement, theirs: Statement) {
        if ours != theirs {
            self.turn.diverged.get_or_insert(Divergence { height: theirs.height, ours, theirs });
        }
    }

    /// Compares a certified root with this validator's own, if that is known.
    pub(crate) fn compare_root(&mut self, certificate: &Certificate) {
        let theirs = certificate.statement;
        if let Some(root) = self.roots.get(&self.rules.signed_by(theirs.height)) {
            self.compare(Statement { root: *root, ..theirs }, theirs);
        }
    }

    /// Advances over heights that are output and certified.
    pub(crate) fn advance_certified(&mut self) {
        while self.certified < self.decided.0 {
            let height = self.certified + 1;
            let Some(certificate) = self.certificates.get(&height) else { break };
            let Some((parent, benches)) = self.links.remove(&height) else { break };
            self.turn.certified.push(Finality { certificate: certificate.clone(), parent, benches });
            self.certified = height;
        }
        self.collect();
    }

    /// Removes what is no longer needed: votes and payloads of heights that are certified and applied (others get
    /// those from the archive), roots below all commits, and certificates that only the archive needs.
    pub(crate) fn collect(&mut self) {
        let over = self.settled();
        // Others may still count votes that wait here.
        let done = self.live.range_mut(..=over).map(|(height, live)| (*height, live.gathered.take()));
        let waiting: Vec<_> = done.filter(|(_, votes)| !votes.is_empty()).collect();
        waiting.into_iter().for_each(|(height, votes)| self.send_votes_on(height, votes));
        self.live.retain(|height, _| *height > over);
        let keep = self.rules.signed_by(over + 1);
        self.roots.retain(|height, _| *height >= keep);
        let recent = over.saturating_sub(self.rules.horizon());
        self.certificates.retain(|height, _| *height > recent);
    }
}

/// The position of a slot in a superblock: nobody can choose it, since it depends on the superblock below.
fn order(chain: &Chain, parent: &Digest, slot: Index) -> Digest {
    chain.digest(ORDER_CONTEXT, &(parent, slot))
}
