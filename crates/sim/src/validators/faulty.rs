//! The behaviour of faulty validators.

use consensus::tendermint::{self, Kind, Message, Messages, Quorum, Value};
use consensus::{Frame, Index, Mask, Proposal, Protocol, Status, Vote, Votes, payload_digest};
use primitives::{Digest, Signature};
use replica::UnsealFrame;

use super::flood::flood;
use super::seals::misbehave as misbehave_in_opening;
use super::{Event, Faults, SimNetwork, ledgers};

pub(super) fn misbehave(sim: &mut SimNetwork, me: Index, faults: Faults, event: Event) {
    let Event::Frame { bytes, from, .. } = event else { return };
    let from = sim.validator(from);
    if let Ok(frame) = UnsealFrame::from_bytes(&bytes) {
        return misbehave_in_opening(sim, me, faults, frame);
    }
    let Ok(frame) = Frame::from_bytes(&bytes) else { return };
    if faults == Faults::Flood {
        return flood(sim, me, bytes, &frame);
    }
    if let (Frame::Status(status), true) = (&frame, faults != Faults::Silent) {
        // Other validators send nothing to a validator without a status, so it sends one.
        let waits = sim.rules.protocol == Protocol::Dbft;
        return sim.send(me, from, &Frame::Status(Status { asks: false, waits, ..*status }));
    }
    match faults {
        Faults::Silent | Faults::Twins | Faults::Flood => {}
        Faults::Equivocating => equivocate(sim, me, &frame),
        Faults::Random => answer_at_random(sim, me, &frame),
        Faults::Garbage => send_garbage(sim, me, from, &frame),
    }
}

fn equivocate(sim: &mut SimNetwork, me: Index, frame: &Frame) {
    if let Frame::Rounds(messages) = frame {
        return equivocate_in_rounds(sim, me, messages);
    }
    let Frame::Proposal(Proposal { height, .. }, _) = *frame else { return answer_at_random(sim, me, frame) };
    sim.send_all(me, |network, _| {
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
fn equivocate_in_rounds(sim: &mut SimNetwork, me: Index, messages: &Messages) {
    let Messages { epoch, height, .. } = *messages;
    let (slot, chain) = (sim.local(epoch, me), sim.chain(epoch));
    for message in &messages.messages {
        let round = message.round() + u32::from(sim.dice.below(2) == 1);
        let asked = (height + u64::from(round)) % chain.keys.len() as u64 == u64::from(slot);
        if asked && sim.proposed_falsely.insert((height, round)) {
            sim.send_all(me, |network, to| {
                let payload = ledgers::payload_of(
                    &network.identity,
                    [1_000_000 + height * 10 + u64::from(to) % 2],
                    network.trades,
                );
                let secret = &network.secrets[usize::from(me)];
                Some(Frame::Proposal(Proposal::sign(&chain, height, slot, &payload, secret), payload))
            });
            sim.send_all(me, |network, to| {
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
    vote_at_random(sim, me, messages);
}

/// Answers votes with other votes, different ones for each validator.
fn vote_at_random(sim: &mut SimNetwork, me: Index, messages: &Messages) {
    let Messages { epoch, height, .. } = *messages;
    let (signer, chain) = (sim.local(epoch, me), sim.chain(epoch));
    for message in &messages.messages {
        let Message::Vote(vote) = *message else { continue };
        if vote.round > 30 || sim.dice.below(3) > 0 {
            continue;
        }
        sim.send_all(me, |network, _| {
            let kind = if network.dice.below(2) == 1 { Kind::Prevote } else { Kind::Precommit };
            let value = vote.value.filter(|_| network.dice.below(2) == 1);
            let round = vote.round + network.dice.below(2) as u32;
            let vote = tendermint::Vote { kind, value, round, signer, ..vote };
            let vote = vote.sign(&chain, &network.secrets[usize::from(me)]);
            Some(in_round(epoch, height, Message::Vote(vote)))
        });
    }
}

fn answer_at_random(sim: &mut SimNetwork, me: Index, frame: &Frame) {
    if let Frame::Rounds(messages) = frame {
        return vote_at_random(sim, me, messages);
    }
    let Frame::Votes(votes) = frame else { return };
    if sim.dice.below(3) > 0 || votes.unpack().iter().any(|vote| vote.round() > 30) {
        return;
    }
    sim.send_all(me, |network, _| {
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
fn forged(sim: &mut SimNetwork, epoch: u64, me: Index, message: &Message) -> Message {
    let me = sim.local(epoch, me);
    match message.clone() {
        Message::Vote(vote) => match sim.dice.below(2) {
            0 => Message::Vote(tendermint::Vote { signer: me, ..vote }),
            _ => {
                let value = vote.value.unwrap_or(Value { slot: me, digest: Digest([5; 32]) });
                let signatures = sim.committee.members().map(|signer| (signer, vote.signature)).collect();
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

fn send_garbage(sim: &mut SimNetwork, me: Index, to: Index, frame: &Frame) {
    let mut bytes = frame.to_bytes();
    let answer = match (sim.dice.below(5), frame) {
        (0, _) => {
            let at = sim.dice.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << sim.dice.below(8);
            return sim.transmit(me, to, bytes.into());
        }
        (1, Frame::Votes(votes)) => Frame::Votes(Votes::pack(votes.epoch + 7, votes.height, votes.unpack())),
        (2, Frame::Votes(votes)) => Frame::Votes(Votes::pack(votes.epoch, votes.height + 1_000_000, votes.unpack())),
        (1, Frame::Rounds(messages)) => Frame::Rounds(Messages { epoch: messages.epoch + 7, ..messages.clone() }),
        (2, Frame::Rounds(of)) => {
            let messages = of.messages.iter().map(|message| forged(sim, of.epoch, me, message)).collect();
            Frame::Rounds(Messages { messages, ..of.clone() })
        }
        (3, Frame::Commit(commit)) => {
            let mut commit = *commit;
            commit.statement.root = Digest([3; 32]);
            Frame::Commit(commit)
        }
        (4, Frame::Proposal(proposal, _)) => {
            Frame::Proposal(*proposal, ledgers::payload_of(&sim.identity, [1], sim.trades))
        }
        _ => Frame::SyncRequest { from: sim.dice.below(5), to: sim.dice.below(1 << 40) },
    };
    sim.send(me, to, &answer);
}

fn in_round(epoch: u64, height: u64, message: Message) -> Frame {
    Frame::Rounds(Messages { epoch, height, messages: vec![message] })
}
