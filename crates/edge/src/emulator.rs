//! Links that are worse than loopback: delays, losses, copies and forgeries between sockets, drawn from a seed.
//!
//! A member with an emulator hands it what it would send. The emulator keeps each datagram for as long as the law of
//! the link says. Losses and strangers are those of [`DatagramFaults`], as in the simulator.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use fairnet::Nanos;
use kernel::{DatagramFaults, DelayLaw, Xoshiro};

/// Datagrams that a stranger may send again.
const OLD: usize = 64;
/// Datagrams that are on their way at most; more are lost, as in a full queue.
const QUEUED: usize = 1 << 16;

/// A datagram and where it goes.
type Addressed = (SocketAddr, Arc<[u8]>);

/// The links that leave one member.
#[derive(Debug)]
pub struct EmulatedLinks {
    dice: Xoshiro,
    law: DelayLaw,
    faults: DatagramFaults,
    queue: BTreeMap<(Nanos, u64), Addressed>,
    number: u64,
    old: Vec<Arc<[u8]>>,
    lost: u64,
    forged: u64,
}

impl EmulatedLinks {
    /// Links with this law of delay, ns.
    pub fn new(seed: u64, law: DelayLaw, faults: DatagramFaults) -> EmulatedLinks {
        EmulatedLinks {
            dice: Xoshiro::new(seed),
            law,
            faults,
            queue: BTreeMap::new(),
            number: 0,
            old: Vec::new(),
            lost: 0,
            forged: 0,
        }
    }

    /// Datagrams that were lost, and that strangers added.
    pub fn counts(&self) -> (u64, u64) {
        (self.lost, self.forged)
    }

    /// When the next datagram leaves.
    pub fn due(&self) -> Option<Nanos> {
        self.queue.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next datagram that is due.
    pub fn next(&mut self, now: Nanos) -> Option<Addressed> {
        let is_due = self.due().is_some_and(|at| at <= now);
        if is_due { self.queue.pop_first().map(|(_, datagram)| datagram) } else { None }
    }

    fn push(&mut self, at: Nanos, to: SocketAddr, bytes: Arc<[u8]>) {
        self.number += 1;
        self.queue.insert((at, self.number), (to, bytes));
    }

    /// A datagram leaves.
    pub fn send(&mut self, now: Nanos, to: SocketAddr, bytes: Arc<[u8]>) {
        self.interfere(now, to, &bytes);
        for _ in 0..1 + u32::from(self.dice.happens(self.faults.copies)) {
            if self.dice.happens(self.faults.loss) || self.queue.len() >= QUEUED {
                self.lost += 1;
            } else {
                let delay = self.law.draw(&mut self.dice).max(0.0) as Nanos;
                self.push(now + delay, to, bytes.clone());
            }
        }
        if self.old.len() < OLD {
            self.old.push(bytes);
        }
    }

    /// What strangers send at the same time, and faster.
    fn interfere(&mut self, now: Nanos, to: SocketAddr, bytes: &[u8]) {
        let bits = self.dice.bits() as usize;
        if self.dice.happens(self.faults.forged) && !bytes.is_empty() {
            let mut lie = bytes.to_vec();
            lie[bits % bytes.len()] ^= 1 << (bits % 8);
            self.forged += 1;
            self.push(now, to, lie.into());
        }
        if self.dice.happens(self.faults.replayed) && !self.old.is_empty() {
            self.forged += 1;
            self.push(now, to, self.old[bits % self.old.len()].clone());
        }
        if self.dice.happens(self.faults.cut) {
            self.forged += 1;
            self.push(now, to, bytes[..bits % (bytes.len() + 1)].into());
        }
    }
}
