//! Networks in which a seed decides what goes wrong.

use consensus::{Index, Protocol};

use super::{Faults, NetworkReport, SimNetwork};
use crate::dice::Dice;

impl SimNetwork {
    /// A network of 4 or 7 validators in which the seed decides what goes wrong.
    pub fn drawn(seed: u64, protocol: Protocol) -> SimNetwork {
        let mut dice = Dice::new(!seed);
        let size = [4, 4, 7][dice.index(3)];
        let mut network = SimNetwork::of(protocol, size, seed);
        network.rules.fast = dice.once_in(3);
        if dice.once_in(6) {
            network.rules.enough = Some(1);
        }
        network.cuts = dice.below(20);
        network.tails = !dice.once_in(4);
        let who = dice.index(size) as Index;
        match dice.below(7) {
            0 => network.kills = 1 + dice.below(8),
            1 => network.blackouts = 1 + dice.below(3),
            2 => network.lost_logs = 1,
            3 => (network.late, network.liars) = (Some(1 + who % (size as Index - 1)), true),
            4 => network.slow = Some(who),
            _ => {
                let faults = [Faults::Silent, Faults::Equivocating, Faults::Random, Faults::Garbage];
                network.faults.insert(who, faults[dice.index(4)]);
            }
        }
        // With one who follows there must still be four who vote.
        if size > 4 && dice.once_in(2) {
            network.epoch_heights = Some(10 + dice.below(12));
        }
        network.trades = dice.once_in(3);
        network.tears = if dice.once_in(3) { 1 + dice.below(3) } else { 0 };
        network.hasty = dice.once_in(4).then(|| dice.index(size) as Index);
        if dice.once_in(2) {
            network.checkpoint_blocks = 2 + dice.below(8);
            network.keep_blocks = dice.below(8);
        }
        network
    }
}

/// Runs what a seed draws.
///
/// # Errors
/// What broke.
pub fn run_validators(seed: u64, protocol: Protocol) -> Result<NetworkReport, crate::Failure> {
    let attempt = || {
        let mut network = SimNetwork::drawn(seed, protocol);
        network.submit_everywhere(20);
        network.run_until_settled();
        network.check()
    };
    std::panic::catch_unwind(attempt).map_err(|panic| crate::Failure {
        seed,
        height: 0,
        what: crate::message(&*panic).into(),
    })
}
