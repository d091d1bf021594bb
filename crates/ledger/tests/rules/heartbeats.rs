//! What it costs to replay a chain that rests, across heights from which other rules act.

use std::time::{Duration, Instant};

use ledger::{Genesis, Ledger, Roots, Signatures};
use primitives::{RULES_OF_KEYS, Superblock};

use crate::charter::{World, genesis};
use crate::recorded::upgrade;

/// Heartbeats of each chain.
const BLOCKS: u64 = 3_000;
/// Rules that act one after the other in the chain that changes them.
const ACTIVATIONS: u32 = 3;
const RUNS: usize = 11;

/// A chain of heartbeats and presences that begins with these rules and ends with 14.
fn chain(first: u32) -> (Genesis, Vec<Superblock>) {
    let founded = Genesis { rules: first, ..genesis() };
    let mut world = World::new(&founded);
    for rules in first + 1..=RULES_OF_KEYS {
        let height = world.ledger.height();
        world.until(height + BLOCKS / u64::from(ACTIVATIONS + 2));
        upgrade(&mut world, rules);
    }
    world.until(BLOCKS);
    (founded, world.blocks)
}

fn replayed((founded, blocks): &(Genesis, Vec<Superblock>)) -> Duration {
    let mut ledger = Ledger::new(founded).expect("sound");
    let mut roots = Roots::of(&ledger);
    let begun = Instant::now();
    for block in blocks {
        let applied = ledger.apply(block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        roots.apply(&applied.changes);
    }
    begun.elapsed()
}

/// Prints the rate across three activations over that within one: for whoever changes how rules of a height are found.
#[test]
#[ignore = "a measurement, not a check"]
fn heartbeats_across_activations_are_measured() {
    let (across, within) = (chain(RULES_OF_KEYS - ACTIVATIONS), chain(RULES_OF_KEYS));
    assert_eq!((across.1.len(), within.1.len()), (BLOCKS as usize, BLOCKS as usize));
    let mut ratios: Vec<f64> = Vec::new();
    for _ in 0..RUNS {
        let [slow, fast] = [&across, &within].map(replayed);
        ratios.push(fast.as_secs_f64() / slow.as_secs_f64());
        println!("{slow:?} across {ACTIVATIONS} activations, {fast:?} within one");
    }
    ratios.sort_by(f64::total_cmp);
    println!("median rate {:.3}", ratios[ratios.len() / 2]);
}
