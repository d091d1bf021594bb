//! What faulty validators do.

use consensus::{Frame, Index, Mask, Proposal, Status, Vote, Votes};
use primitives::Digest;

use super::{Event, Faults, Network, key, payload_of};

impl Network {
    pub(super) fn misbehave(&mut self, me: Index, faults: Faults, event: Event) {
        let Event::Frame { bytes, from, .. } = event else { return };
        let Ok(frame) = Frame::from_bytes(&bytes) else { return };
        if let (Frame::Status(status), true) = (&frame, faults != Faults::Silent) {
            // Who says nothing of itself is told nothing.
            return self.transmit(me, from, &Frame::Status(Status { asks: false, waits: true, ..*status }));
        }
        match faults {
            Faults::Silent => {}
            Faults::Equivocating => self.equivocate(me, &frame),
            Faults::Random => self.answer_at_random(me, &frame),
            Faults::Garbage => self.send_garbage(me, from, &frame),
        }
    }

    fn send_all(&mut self, me: Index, frame: impl Fn(&mut Network, Index) -> Option<Frame>) {
        for to in self.committee.members().filter(|to| *to != me).collect::<Vec<_>>() {
            if let Some(frame) = frame(self, to) {
                self.transmit(me, to, &frame);
            }
        }
    }

    fn equivocate(&mut self, me: Index, frame: &Frame) {
        let Frame::Proposal(Proposal { height, .. }, _) = *frame else { return self.answer_at_random(me, frame) };
        self.send_all(me, |network, _| {
            let which = network.dice.below(3);
            let payload = payload_of(&[1_000_000 + height * 10 + which].into());
            let secret = network.secrets[usize::from(me)].clone();
            let epoch = network.epoch_of(height);
            let slot = network.local(epoch, me);
            let proposal = Proposal::sign(&network.chain(epoch), height, slot, &payload, &secret);
            (which > 0).then_some(Frame::Proposal(proposal, payload))
        });
    }

    fn answer_at_random(&mut self, me: Index, frame: &Frame) {
        let Frame::Votes(votes) = frame else { return };
        if self.dice.below(3) > 0 || votes.unpack().iter().any(|vote| vote.round() > 30) {
            return;
        }
        self.send_all(me, |network, _| {
            let mut answers = Vec::new();
            for vote in votes.unpack() {
                let (slot, round) = (vote.slot(), vote.round());
                let value = network.dice.below(2) == 1;
                answers.push(match (network.dice.below(4), vote) {
                    (0, Vote::Echo { slot, digest }) => Vote::Ready { slot, digest },
                    (_, Vote::Echo { slot, digest } | Vote::Ready { slot, digest }) => Vote::Echo { slot, digest },
                    (0, _) => Vote::Estimate { slot, round, value },
                    (1, _) => Vote::Estimate { slot, round, value: !value },
                    (2, _) => Vote::Coordinate { slot, round, value },
                    _ => Vote::Auxiliary { slot, round, values: Mask::ALL[network.dice.below(3) as usize] },
                });
            }
            Some(Frame::Votes(Votes::pack(votes.epoch, votes.height, answers)))
        });
    }

    fn send_garbage(&mut self, me: Index, to: Index, frame: &Frame) {
        let mut bytes = frame.to_bytes();
        let answer = match (self.dice.below(5), frame) {
            (0, _) => {
                let at = self.dice.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.dice.below(8);
                let link = self.links[&key(me, to)];
                return self.push(500, to, Event::Frame { from: me, link, bytes });
            }
            (1, Frame::Votes(votes)) => Frame::Votes(Votes::pack(votes.epoch + 7, votes.height, votes.unpack())),
            (2, Frame::Votes(votes)) => {
                Frame::Votes(Votes::pack(votes.epoch, votes.height + 1_000_000, votes.unpack()))
            }
            (3, Frame::Commit(commit)) => {
                let mut commit = *commit;
                commit.statement.root = Digest([3; 32]);
                Frame::Commit(commit)
            }
            (4, Frame::Proposal(proposal, _)) => Frame::Proposal(*proposal, payload_of(&[1].into())),
            _ => Frame::SyncRequest { from: self.dice.below(5), to: self.dice.below(1 << 40) },
        };
        self.transmit(me, to, &answer);
    }
}
