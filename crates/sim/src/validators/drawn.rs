//! Networks whose faults are drawn from a seed.

use consensus::{Index, Protocol};
use kernel::Dice;

use super::{Faults, NetworkReport, SimNetwork};
use crate::world::{self, Failure, World};

impl SimNetwork {
    /// A network of 4 to 7 validators, as many of which are twins as may be faulty; the seed draws the links, and
    /// which validators are killed, torn writes included.
    pub fn drawn_with_twins(seed: u64, protocol: Protocol) -> SimNetwork {
        let mut dice = Dice::new(!seed ^ 0x7717_0000);
        let size = 4 + dice.index(4);
        let mut network = SimNetwork::of(protocol, size, seed);
        network.rules.fast = dice.once_in(3);
        network.draw_twins(&mut dice);
        network.cuts = dice.below(6);
        network.kills = dice.below(4);
        network.tears = dice.below(4);
        network.trades = dice.once_in(4);
        network.sessions = dice.once_in(2);
        // Where heights could follow each other faster than they may.
        if dice.once_in(3) {
            network.interval = 5_000 + dice.below(40_000);
        }
        network
    }

    /// Makes as many validators twins as may be faulty.
    fn draw_twins(&mut self, dice: &mut Dice) {
        self.make_twins(self.committee.faulty, dice.bits());
        (self.kills, self.tears) = (dice.below(4), dice.below(3));
    }

    /// Makes `count` validators twins, in partitions that mostly split the network.
    pub fn make_twins(&mut self, count: usize, seed: u64) {
        let mut who: Vec<Index> = self.committee.members().collect();
        Dice::new(seed).shuffle(&mut who);
        who.into_iter().take(count).for_each(|index| self.twin(index));
        self.partitions = 2 + Dice::new(!seed).below(9);
    }

    /// A network of 4 to 7 validators whose faults are drawn from the seed.
    pub fn drawn(seed: u64, protocol: Protocol) -> SimNetwork {
        let mut dice = Dice::new(!seed);
        let size = [4, 4, 5, 6, 7, 7][dice.index(6)];
        let mut network = SimNetwork::of(protocol, size, seed);
        network.rules.fast = dice.once_in(3);
        if dice.once_in(6) {
            network.rules.enough = Some(1);
        }
        network.cuts = dice.below(20);
        network.tails = !dice.once_in(4);
        let who = dice.index(size) as Index;
        match dice.below(9) {
            0 => network.kills = 1 + dice.below(8),
            1 => network.blackouts = 1 + dice.below(3),
            2 => network.lost_logs = 1,
            3 => (network.late, network.liars) = (Some(1 + who % (size as Index - 1)), true),
            4 => network.slow = Some(who),
            5 | 6 => network.draw_twins(&mut dice),
            _ => {
                let faults = [Faults::Silent, Faults::Equivocating, Faults::Random, Faults::Garbage, Faults::Flood];
                network.faults.insert(who, faults[dice.index(5)]);
            }
        }
        // If one validator follows, at least four must still vote.
        if size > 4 && network.twins.len() < 2 && dice.once_in(2) {
            network.epoch_heights = Some(10 + dice.below(12));
        }
        network.trades = dice.once_in(3);
        network.tears = if dice.once_in(3) { 1 + dice.below(3) } else { 0 };
        network.hasty = dice.once_in(4).then(|| dice.index(size) as Index);
        if dice.once_in(2) {
            network.checkpoint_blocks = 2 + dice.below(8);
            network.keep_blocks = dice.below(8);
        }
        network.contracts = dice.once_in(2);
        network.blackout_loses_log = network.blackouts > 0 && dice.once_in(2);
        network.sessions = dice.once_in(2);
        network
    }
}

/// A network, and the number of transactions that each validator is sent.
struct Sent(SimNetwork, u64);

impl World for Sent {
    type Report = NetworkReport;

    fn run(&mut self) -> Result<NetworkReport, String> {
        self.0.submit_everywhere(self.1);
        self.0.run_until_settled();
        Ok(self.0.check())
    }

    fn height(&self) -> u64 {
        self.0.applied.last_key_value().map_or(0, |(height, _)| *height)
    }
}

/// Runs a network until all is settled; each validator is sent this many transactions.
pub(crate) fn run_network(
    seed: u64,
    network: impl FnOnce() -> (SimNetwork, u64) + Send,
) -> Result<NetworkReport, Failure> {
    world::run(seed, || {
        let (network, each) = network();
        Sent(network, each)
    })
}

/// Runs the network drawn from a seed.
///
/// # Errors
/// The violated invariant.
pub fn run_validators(seed: u64, protocol: Protocol) -> Result<NetworkReport, Failure> {
    run_network(seed, || (SimNetwork::drawn(seed, protocol), 20))
}

/// Runs the network drawn from a seed, whose validators have programs of two versions.
///
/// # Errors
/// The violated invariant.
pub fn run_versions(seed: u64, protocol: Protocol) -> Result<NetworkReport, Failure> {
    run_network(seed, || (SimNetwork::drawn_with_versions(seed, protocol), 20))
}

/// Runs the network drawn from a seed, with as many twins as may be faulty.
///
/// # Errors
/// The violated invariant.
pub fn run_twins(seed: u64, protocol: Protocol) -> Result<NetworkReport, Failure> {
    run_network(seed, || (SimNetwork::drawn_with_twins(seed, protocol), 20))
}
