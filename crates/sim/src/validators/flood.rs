//! A validator that sends as much as it can.

use std::collections::VecDeque;
use std::sync::Arc;

use consensus::{Commit, Frame, Index, Protocol, Statement, Status, Vote};
use primitives::Digest;

use super::SimNetwork;

/// Pause between two bursts.
const PAUSE: u64 = 4_000;
/// Number of frames that are kept to be sent again.
const KEPT: usize = 64;
/// Number of frames of each kind in a burst, to each validator.
const BURST: usize = 6;

/// The state of the flooding validator.
#[derive(Debug, Default)]
pub(super) struct Flood {
    heard: VecDeque<Arc<[u8]>>,
    /// Sub-blocks that can be requested.
    known: VecDeque<(u64, Index, Digest)>,
    status: Status,
    next: u64,
}

/// Records what can be requested and repeated, and sends a burst of it from time to time.
pub(super) fn flood(sim: &mut SimNetwork, me: Index, bytes: Arc<[u8]>, frame: &Frame) {
    let flood = &mut sim.flood;
    keep(&mut flood.heard, bytes);
    match frame {
        Frame::Proposal(proposal, _) => keep(&mut flood.known, (proposal.height, proposal.slot, proposal.digest)),
        Frame::Votes(votes) => {
            for vote in votes.unpack() {
                if let Vote::Echo { slot, digest } = vote {
                    keep(&mut flood.known, (votes.height, slot, digest));
                }
            }
        }
        Frame::Status(status) if status.decided >= flood.status.decided => flood.status = *status,
        _ => {}
    }
    if sim.schedule.now() >= flood.next {
        flood.next = sim.schedule.now() + PAUSE;
        send_burst(sim, me);
    }
}

fn send_burst(sim: &mut SimNetwork, me: Index) {
    let Status { epoch, decided, .. } = sim.flood.status;
    let waits = sim.rules.protocol == Protocol::Dbft;
    for _ in 0..BURST {
        sim.send_all(me, |network, _| {
            let (epoch, asks) = (epoch + network.dice.below(2), true);
            Some(Frame::Status(Status { epoch, waits, asks, ..network.flood.status }))
        });
        sim.send_all(me, |network, _| {
            let known = &network.flood.known;
            let (height, slot, digest) = *known.get(network.dice.index(known.len().max(1)))?;
            Some(Frame::Fetch { height, slot, digest })
        });
        sim.send_all(me, |network, _| {
            let from = network.dice.below(decided + 2);
            Some(Frame::SyncRequest { from, to: from + network.dice.below(64) })
        });
        sim.send_all(me, |network, _| {
            let (epoch, height) = (network.epoch_of(decided + 1), decided + 1 + network.dice.below(4));
            let [superblock, root] = [(); 2].map(|()| Digest([network.dice.below(250) as u8; 32]));
            let (signer, chain) = (network.local(epoch, me), network.chain(epoch));
            let statement = Statement { height, superblock, root };
            Some(Frame::Commit(Commit::sign(&chain, statement, signer, &network.secrets[usize::from(me)])))
        });
        for to in sim.committee.members().filter(|to| *to != me).collect::<Vec<_>>() {
            let heard = &sim.flood.heard;
            let bytes = heard[sim.dice.index(heard.len())].clone();
            sim.transmit(me, to, bytes);
        }
    }
}

fn keep<T>(queue: &mut VecDeque<T>, new: T) {
    queue.push_back(new);
    if queue.len() > KEPT {
        queue.pop_front();
    }
}
