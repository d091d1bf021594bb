//! How slow the gas of contracts is on this machine.
//!
//! A program repeats a few opcodes, or calls a precompile or a reserved address, until a transaction's gas is used up.
//! [`slowest_gas`] runs each of [`KERNELS`] and says which takes longest for a unit of gas. The gas of a block should
//! be chosen by the worst result.

mod fixture;
mod kernels;
mod maps;

use std::time::Instant;

pub use fixture::*;
pub use kernels::{KERNELS, Kernel};
use ledger::contracts::ethereum::TxKind;
use ledger::contracts::{EvmOutcome, EvmProgram};
pub use maps::*;

/// Code that copies its input into memory and repeats a kernel until its gas is used up.
fn program(kernel: &[u8]) -> Vec<u8> {
    let jump = [0x60, 4, 0x56];
    [&[0x36, 0x5f, 0x5f, 0x37, 0x5b], kernel, &jump].concat()
}

/// The slowest gas of this machine, found in about a second; for a search see `walras-lab bench hostile`.
#[derive(Clone, Copy, Debug)]
pub struct SlowGas {
    /// What the program does that takes longest.
    pub program: &'static str,
    /// Nanoseconds for a unit of gas, on one thread.
    pub ns: f64,
}

/// Measures every program at two sizes, and the slowest ones again, because other work may have disturbed them.
pub fn slowest_gas() -> SlowGas {
    const QUICK: u64 = 1 << 20;
    let time = |(at, size): (usize, usize)| measure(KERNELS[at].1, size, QUICK).0;
    let all = (0..KERNELS.len()).flat_map(|at| [32, 1_024].map(|size| (at, size)));
    let mut timed: Vec<(f64, (usize, usize))> = all.map(|one| (time(one), one)).collect();
    timed.sort_by(|a, b| b.0.total_cmp(&a.0));
    let again = timed.iter().take(8).map(|(first, one)| (first.min(time(*one)).min(time(*one)), one.0));
    let (ns, at) = again.max_by(|a, b| a.0.total_cmp(&b.0)).expect("there are programs");
    SlowGas { program: KERNELS[at].0, ns }
}

/// Nanoseconds for a unit of gas, and the gas, of a transaction that declares `most`; the kernel works on `size` bytes.
pub fn measure(kernel: Kernel, size: usize, most: u64) -> (f64, u64) {
    let (body, input) = kernel(size);
    let mut fixture = EvmFixture::new(1);
    let target = fixture.place(program(&body));
    fixture.fund(target, 1 << 62);
    let job = fixture.job(0, TxKind::Call(target), input.into(), 0, most);
    let load = fixture.load(vec![job]);
    let program = EvmProgram { state: load.state, jobs: load.jobs };
    let begun = Instant::now();
    let block = program.execute_sequentially();
    let time = begun.elapsed().as_secs_f64() * 1e9;
    let gas = gas_of(&block.outcomes);
    (time / gas as f64, gas)
}

/// Gas that transactions used.
pub fn gas_of(outcomes: &[EvmOutcome]) -> u64 {
    let gas = |outcome: &EvmOutcome| match outcome {
        EvmOutcome::Executed(execution) => execution.gas_used,
        EvmOutcome::Skipped(_) => 0,
    };
    outcomes.iter().map(gas).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every program does what its name says until its gas is used up, or nearly so; none ends at once.
    #[test]
    fn programs_use_up_their_gas() {
        for (name, kernel) in KERNELS {
            let (body, input) = kernel(64);
            let mut fixture = EvmFixture::new(1);
            let target = fixture.place(program(&body));
            fixture.fund(target, 1 << 62);
            let job = fixture.job(0, TxKind::Call(target), input.into(), 0, 500_000);
            let load = fixture.load(vec![job]);
            let block = EvmProgram { state: load.state, jobs: load.jobs }.execute_sequentially();
            assert!(gas_of(&block.outcomes) > 490_000, "{name}");
        }
    }

    #[test]
    fn the_slowest_gas_has_a_name_and_a_time() {
        let slowest = slowest_gas();
        assert!(slowest.ns > 0.0 && KERNELS.iter().any(|(name, _)| *name == slowest.program), "{slowest:?}");
    }
}
