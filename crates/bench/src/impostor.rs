//! A Byzantine validator: it has a validator's key and connections, and deviates from the protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use consensus::{Frame, Index, Mask, Proposal, Status, Vote, Votes};
use node::Network;
use primitives::SubBlock;
use transport::{Event, LinkStream, Transport, TransportError};

/// Runs in the place of a stopped validator.
pub struct Impostor {
    over: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Impostor {
    /// Connects as the validator of this network, and begins.
    ///
    /// # Errors
    /// If its port is in use.
    pub fn start(network: Network) -> Result<Impostor, TransportError> {
        let (events, heard) = sync_channel(1_024);
        let transport = Transport::start(node::links::settings(&network), events)?;
        let over = Arc::new(AtomicBool::new(false));
        let stopped = over.clone();
        let thread = std::thread::spawn(move || {
            let mut taken = 0u64;
            while !stopped.load(Ordering::Relaxed) {
                let Ok(event) = heard.recv_timeout(Duration::from_millis(20)) else { continue };
                let Event::Frame { peer, bytes, .. } = event else { continue };
                taken += 1;
                let Ok(frame) = Frame::from_bytes(&bytes) else { continue };
                for (to, answer) in misbehave(&network, peer, frame, taken) {
                    let stream = if answer.is_bulk() { LinkStream::Bulk } else { LinkStream::Votes };
                    transport.send(to, stream, answer.to_bytes().into());
                }
            }
            taken
        });
        Ok(Impostor { over, thread })
    }

    /// Stops it; returns the number of frames that the others have sent it.
    ///
    /// # Panics
    /// If its thread panicked.
    pub fn stop(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }
}

/// Two sub-blocks for each height, votes for both values, frames of other epochs and heights.
fn misbehave(network: &Network, peer: Index, frame: Frame, number: u64) -> Vec<(Index, Frame)> {
    match frame {
        Frame::Status(status) => vec![(peer, Frame::Status(Status { asks: false, waits: true, ..status }))],
        Frame::Proposal(proposal, _) => (0..network.chain.keys.len() as Index)
            .filter(|to| *to != network.me)
            .map(|to| {
                let sub_block = SubBlock { time_ms: u64::from(to % 2) + number, ..SubBlock::default() };
                let payload: consensus::Payload = sub_block.to_payload().into();
                let signed = Proposal::sign(&network.chain, proposal.height, network.me, &payload, &network.own.links);
                (to, Frame::Proposal(signed, payload))
            })
            .collect(),
        Frame::Votes(votes) => {
            let mut answers = Vec::new();
            for vote in votes.unpack() {
                let (slot, round) = (vote.slot(), vote.round().max(1));
                answers.extend([false, true].map(|value| Vote::Estimate { slot, round, value }));
                answers.push(Vote::Auxiliary { slot, round, values: Mask::ALL[(number % 3) as usize] });
            }
            let (epoch, height) = match number % 5 {
                0 => (7, votes.height),
                1 => (0, votes.height + 1_000),
                _ => (0, votes.height),
            };
            vec![(peer, Frame::Votes(Votes::pack(epoch, height, answers)))]
        }
        _ => Vec::new(),
    }
}
