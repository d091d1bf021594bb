//! The behaviour of faulty validators.

use consensus::tendermint::{self, Kind, Message, Messages, Quorum, Value};
use consensus::{Frame, Index, Mask, Proposal, Protocol, Status, Vote, Votes, payload_digest};
use primitives::{Digest, Signature};

use super::{Event, Faults, SimNetwork, ledgers};

impl SimNetwork {
    pub(super) fn misbehave(&mut self, me: Index, faults: Faults, event: Event) {
        let Event::Frame { bytes, from, .. } = event else { return };
        let from = self.validator(from);
        let Ok(frame) = Frame::from_bytes(&bytes) else { return };
        if faults == Faults::Flood {
            return self.flood(me, bytes, &frame);
        }
        if let (Frame::Status(status), true) = (&frame, faults != Faults::Silent) {
            // Other validators send nothing to a validator without a status, so it sends one.
            let waits = self.rules.protocol == Protocol::Dbft;
            return self.send(me, from, &Frame::Status(Status { asks: false, waits, ..*status }));
        }
        match faults {
            Faults::Silent | Faults::Twins | Faults::Flood => {}
            Faults::Equivocating => self.equivocate(me, &frame),
            Faults::Random => self.answer_at_random(me, &frame),
            Faults::Garbage => self.send_garbage(me, from, &frame),
        }
    }

    pub(super) fn send_all(&mut self, me: Index, frame: impl Fn(&mut SimNetwork, Index) -> Option<Frame>) {
        for to in self.committee.members().filter(|to| *to != me).collect::<Vec<_>>() {
            if let Some(frame) = frame(self, to) {
                self.send(me, to, &frame);
            }
        }
    }

    fn equivocate(&mut self, me: Index, frame: &Frame) {
        if let Frame::Rounds(messages) = frame {
            return self.equivocate_in_rounds(me, messages);
        }
        let Frame::Proposal(Proposal { height, .. }, _) = *frame else { return self.answer_at_random(me, frame) };
        self.send_all(me, |network, _| {
            let which = network.dice.below(3);
            let payload = ledgers::payload_of(&network.identity, [1_000_000 + height * 10 + which], network.trades);
            let secret = network.secrets[usize::from(me)].clone();
            let epoch = network.epoch_of(height);
            let slot = network.local(epoch, me);
            let proposal = Proposal::sign(&network.chain(epoch), height, slot, &payload, &secret);
            (which > 0).then_some(Frame::Proposal(proposal, payload))
        });
    }

    /// Proposes two values whenever it should propose one, and votes for another value than the receiver does.
    fn equivocate_in_rounds(&mut self, me: Index, messages: &Messages) {
        let Messages { epoch, height, .. } = *messages;
        let (slot, chain) = (self.local(epoch, me), self.chain(epoch));
        for message in &messages.messages {
            let round = message.round() + u32::from(self.dice.below(2) == 1);
            let asked = (height + u64::from(round)) % chain.keys.len() as u64 == u64::from(slot);
            if asked && self.proposed_falsely.insert((height, round)) {
                self.send_all(me, |network, to| {
                    let payload = ledgers::payload_of(
                        &network.identity,
                        [1_000_000 + height * 10 + u64::from(to) % 2],
                        network.trades,
                    );
                    let secret = &network.secrets[usize::from(me)];
                    Some(Frame::Proposal(Proposal::sign(&chain, height, slot, &payload, secret), payload))
                });
                self.send_all(me, |network, to| {
                    let payload = ledgers::payload_of(
                        &network.identity,
                        [1_000_000 + height * 10 + u64::from(to) % 2],
                        network.trades,
                    );
                    let value = Value { slot, digest: payload_digest(&payload) };
                    let signature = Signature([0; 64]);
                    let proposal =
                        tendermint::Proposal { height, round, value, valid_round: None, signer: slot, signature };
                    let proposal = proposal.sign(&chain, &network.secrets[usize::from(me)]);
                    Some(in_round(epoch, height, Message::Proposal(proposal)))
                });
            }
        }
        self.vote_at_random(me, messages);
    }

    /// Answers votes with other votes, different ones for each validator.
    fn vote_at_random(&mut self, me: Index, messages: &Messages) {
        let Messages { epoch, height, .. } = *messages;
        let (signer, chain) = (self.local(epoch, me), self.chain(epoch));
        for message in &messages.messages {
            let Message::Vote(vote) = *message else { continue };
            if vote.round > 30 || self.dice.below(3) > 0 {
                continue;
            }
            self.send_all(me, |network, _| {
                let kind = if network.dice.below(2) == 1 { Kind::Prevote } else { Kind::Precommit };
                let value = vote.value.filter(|_| network.dice.below(2) == 1);
                let round = vote.round + network.dice.below(2) as u32;
                let vote = tendermint::Vote { kind, value, round, signer, ..vote };
                let vote = vote.sign(&chain, &network.secrets[usize::from(me)]);
                Some(in_round(epoch, height, Message::Vote(vote)))
            });
        }
    }

    fn answer_at_random(&mut self, me: Index, frame: &Frame) {
        if let Frame::Rounds(messages) = frame {
            return self.vote_at_random(me, messages);
        }
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

    /// A message with more contents than were signed.
    fn forged(&mut self, epoch: u64, me: Index, message: &Message) -> Message {
        let me = self.local(epoch, me);
        match message.clone() {
            Message::Vote(vote) => match self.dice.below(2) {
                0 => Message::Vote(tendermint::Vote { signer: me, ..vote }),
                _ => {
                    let value = vote.value.unwrap_or(Value { slot: me, digest: Digest([5; 32]) });
                    let signatures = self.committee.members().map(|signer| (signer, vote.signature)).collect();
                    let quorum = Quorum { round: vote.round, value, signatures };
                    if vote.kind == Kind::Prevote { Message::Polka(quorum) } else { Message::Decision(quorum) }
                }
            },
            Message::Proposal(proposal) => {
                let value = Value { slot: me, ..proposal.value };
                Message::Proposal(tendermint::Proposal { value, ..proposal })
            }
            other => other,
        }
    }

    fn send_garbage(&mut self, me: Index, to: Index, frame: &Frame) {
        let mut bytes = frame.to_bytes();
        let answer = match (self.dice.below(5), frame) {
            (0, _) => {
                let at = self.dice.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << self.dice.below(8);
                return self.transmit(me, to, bytes.into());
            }
            (1, Frame::Votes(votes)) => Frame::Votes(Votes::pack(votes.epoch + 7, votes.height, votes.unpack())),
            (2, Frame::Votes(votes)) => {
                Frame::Votes(Votes::pack(votes.epoch, votes.height + 1_000_000, votes.unpack()))
            }
            (1, Frame::Rounds(messages)) => Frame::Rounds(Messages { epoch: messages.epoch + 7, ..messages.clone() }),
            (2, Frame::Rounds(of)) => {
                let messages = of.messages.iter().map(|message| self.forged(of.epoch, me, message)).collect();
                Frame::Rounds(Messages { messages, ..of.clone() })
            }
            (3, Frame::Commit(commit)) => {
                let mut commit = *commit;
                commit.statement.root = Digest([3; 32]);
                Frame::Commit(commit)
            }
            (4, Frame::Proposal(proposal, _)) => {
                Frame::Proposal(*proposal, ledgers::payload_of(&self.identity, [1], self.trades))
            }
            _ => Frame::SyncRequest { from: self.dice.below(5), to: self.dice.below(1 << 40) },
        };
        self.send(me, to, &answer);
    }
}

fn in_round(epoch: u64, height: u64, message: Message) -> Frame {
    Frame::Rounds(Messages { epoch, height, messages: vec![message] })
}
