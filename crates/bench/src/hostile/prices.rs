//! How far a proposer can move prices.

use kernel::Dice;
use ledger::{Roots, Signatures};
use primitives::{Price, SubBlock, Superblock};

use super::{Arena, HostileOptions, apply};

/// The largest move of a valuation, in basis points, if a proposer orders and spreads the transactions of a block,
/// and sets its clock, in every way that is tried.
pub fn basis_points(options: &HostileOptions) -> f64 {
    let arena = Arena::new(options, 20, 20);
    let (mut ledger, mut trading) = arena.trading(11);
    let resting = trading.resting(&ledger, options.resting.min(20_000));
    let native = trading.population.sign(resting, None);
    apply(&mut ledger, &mut Roots::default(), native);
    let unsigned = trading.block(&ledger, options.transactions.min(5_000));
    let native = trading.population.sign(unsigned, None);
    let prices = |sub_blocks: Vec<SubBlock>, time_ms: u64| {
        let mut ledger = ledger.clone();
        let (height, parent) = (ledger.height() + 1, ledger.last_block());
        let block = Superblock { height, parent, time_ms, sub_blocks, ..Superblock::default() };
        let applied = ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("applies");
        drop(applied);
        ledger.assets().iter().map(|asset| asset.valuation.map_or(0.0, Price::to_f64)).collect::<Vec<f64>>()
    };
    let first = prices(vec![SubBlock { native: native.clone(), ..SubBlock::default() }], 1);
    let mut random = Dice::new(options.seed);
    let mut most = 0.0f64;
    for attempt in 0..12u32 {
        let mut native = native.clone();
        for at in (1..native.len()).rev() {
            native.swap(at, random.below(at as u64 + 1) as usize);
        }
        let mut sub_blocks = vec![SubBlock::default(); 1 + attempt as usize % 4];
        for (slot, sub_block) in (0..).zip(&mut sub_blocks) {
            (sub_block.proposer, sub_block.time_ms) = (slot + attempt, random.bits());
        }
        let slots = sub_blocks.len() as u64;
        for transaction in native {
            sub_blocks[random.below(slots) as usize].native.push(transaction);
        }
        let other = prices(sub_blocks, 1 + random.below(60_000));
        let moves =
            first.iter().zip(&other).map(|(a, b)| if a == b { 0.0 } else { 1e4 * ((a - b) / a.max(1e-300)).abs() });
        most = moves.fold(most, f64::max);
    }
    most
}
