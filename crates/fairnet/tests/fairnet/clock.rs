//! The estimator against a simulated mesh whose true offsets are known.

use crate::dice::Dice;
use fairnet::*;

const SECOND: u64 = 1_000_000_000;
/// Probe pairs on each path in a second; Huygens sends 2,000.
const PROBES: u64 = 500;

/// Clocks that drift, and paths with queues and spikes.
struct Mesh {
    dice: Dice,
    offsets: Vec<f64>,
    drifts: Vec<f64>,
    /// Least delay of each direction, ns.
    base: Vec<Vec<u64>>,
}

impl Mesh {
    fn new(seed: u64, machines: usize, drift_ppm: f64, asymmetry: u64) -> Mesh {
        let mut dice = Dice::new(seed);
        let unit = |dice: &mut Dice| dice.below(2_000_001) as f64 / 1e6 - 1.0;
        let offsets = (0..machines).map(|at| if at == 0 { 0.0 } else { unit(&mut dice) * 5e6 }).collect();
        let drifts = (0..machines).map(|at| if at == 0 { 0.0 } else { unit(&mut dice) * drift_ppm / 1e6 }).collect();
        let delays: Vec<u64> = (0..machines * machines).map(|_| 15_000 + dice.below(30_000)).collect();
        let mut path =
            |from: usize, to: usize| delays[from.min(to) * machines + from.max(to)] + dice.below(asymmetry + 1);
        let base = (0..machines).map(|from| (0..machines).map(|to| path(from, to)).collect()).collect();
        Mesh { dice, offsets, drifts, base }
    }

    /// How far a machine's clock is ahead of the first machine's at a true time.
    fn offset(&self, machine: usize, at: u64) -> f64 {
        self.offsets[machine] + self.drifts[machine] * at as f64
    }

    fn clock(&self, machine: usize, at: u64) -> u64 {
        (at as f64 + self.offset(machine, at) + 1e9).round() as u64
    }

    /// Stamps are made by software; 70 of 100 packets wait in some queue, one meets a spike.
    fn delay(&mut self, from: usize, to: usize) -> u64 {
        let mut delay = self.base[from][to] + self.dice.below(300);
        while self.dice.is(70) {
            delay += self.dice.below(8_000);
        }
        delay + if self.dice.is(1) { self.dice.below(2_000_000) } else { 0 }
    }

    fn probe(&mut self, from: usize, to: usize, at: u64) -> ProbePair {
        let sent = [at, at + 10_000];
        let received = sent.map(|sent| sent + self.delay(from, to));
        // A queue keeps the order of packets.
        let received = [received[0], received[1].max(received[0] + 1_000)];
        ProbePair { sent: sent.map(|at| self.clock(from, at)), received: received.map(|at| self.clock(to, at)) }
    }
}

/// Errors in ns and whether each was within its bound, over all machines and estimates of some seconds.
fn run(mesh: &mut Mesh, rules: EstimatorRules, seconds: u64) -> (Vec<f64>, usize, f64) {
    let machines = mesh.offsets.len();
    let mut estimator = Estimator::new(machines, rules);
    let (mut errors, mut within, mut widest) = (Vec::new(), 0, 0.0f64);
    for tick in 1..=seconds * PROBES {
        let at = tick * SECOND / PROBES;
        for one in 0..machines {
            for two in (0..machines).filter(|two| *two != one) {
                let pair = mesh.probe(one, two, at + (one * machines + two) as u64 * 20_000);
                estimator.probe(one as u32, two as u32, &pair);
            }
        }
        if tick > PROBES && tick.is_multiple_of(PROBES / 4) {
            // The estimate is used until the next one is made.
            let ahead = mesh.dice.below(SECOND / 4);
            let now = at + 5_000_000 + ahead;
            for (machine, found) in estimator.estimate(mesh.clock(0, now)).iter().enumerate().skip(1) {
                let found = found.expect("an estimate");
                let error = (found.offset - mesh.offset(machine, now)).abs();
                errors.push(error);
                within += usize::from(error <= found.bound);
                widest = widest.max(found.bound);
                assert!((0.01..0.5).contains(&found.pure), "{}", found.pure);
                assert!((found.drift_ppm - mesh.drifts[machine] * 1e6).abs() < 3.0);
            }
        }
    }
    errors.sort_by(f64::total_cmp);
    (errors, within, widest)
}

fn assert_covers(errors: &[f64], within: usize) {
    assert!(within * 1_000 >= errors.len() * 999, "{within} of {} within their bounds", errors.len());
}

#[test]
fn clock_median_error_is_below_a_microsecond_and_bounds_cover_at_50_ppm_with_spikes() {
    let mut mesh = Mesh::new(1, 8, 50.0, 0);
    let (errors, within, widest) = run(&mut mesh, EstimatorRules::default(), 20);
    println!(
        "{} estimates: median error {} ns, largest {} ns, widest bound {widest} ns",
        errors.len(),
        errors[errors.len() / 2],
        errors[errors.len() - 1]
    );
    assert!(errors[errors.len() / 2] <= 1_000.0, "{} ns", errors[errors.len() / 2]);
    assert_covers(&errors, within);
}

#[test]
fn clock_bounds_cover_asymmetric_paths_that_probes_cannot_see() {
    let mut mesh = Mesh::new(2, 8, 50.0, 20_000);
    let (errors, within, widest) = run(&mut mesh, EstimatorRules::default(), 10);
    println!("{} estimates: median error {} ns, widest bound {widest} ns", errors.len(), errors[errors.len() / 2]);
    assert!(errors[errors.len() - 1] > 1_000.0, "asymmetry shows as an error");
    assert_covers(&errors, within);
}

#[test]
fn clock_bounds_with_declared_symmetry_are_narrow_and_cover() {
    let mut mesh = Mesh::new(3, 8, 50.0, 400);
    let rules = EstimatorRules { asymmetry: Some(400), ..EstimatorRules::default() };
    let (errors, within, widest) = run(&mut mesh, rules, 20);
    println!("{} estimates: median error {} ns, widest bound {widest} ns", errors.len(), errors[errors.len() / 2]);
    assert!(widest < 5_000.0, "{widest} ns");
    assert_covers(&errors, within);
}

#[test]
fn clock_without_a_path_or_with_a_step_has_no_estimate() {
    let mut mesh = Mesh::new(4, 4, 50.0, 0);
    let mut estimator = Estimator::new(4, EstimatorRules::default());
    for tick in 1..100 {
        for (from, to) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
            let pair = mesh.probe(from, to, tick * 1_000_000);
            estimator.probe(from as u32, to as u32, &pair);
        }
    }
    let found = estimator.estimate(SECOND + 100_000_000);
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<bool>>(), [true, true, false, false]);
    // The clock of machine 1 is set back by a second: no line fits, so nothing is claimed.
    mesh.offsets[1] -= 1e9;
    for tick in 100..150 {
        for (from, to) in [(0, 1), (1, 0)] {
            let pair = mesh.probe(from, to, tick * 1_000_000);
            estimator.probe(from as u32, to as u32, &pair);
        }
    }
    assert_eq!(estimator.estimate(SECOND + 150_000_000)[1], None);
    // Hostile numbers neither panic nor count.
    estimator.probe(0, 1, &ProbePair { sent: [5, 1], received: [u64::MAX, 0] });
    estimator.probe(9, 1, &ProbePair { sent: [0, 1], received: [0, 1] });
    estimator.probe(1, 1, &ProbePair { sent: [0, 1], received: [0, 1] });
    let mut hostile = Estimator::new(2, EstimatorRules::default());
    for at in [0, 1 << 63, u64::MAX - 1, (1 << 63) - 2] {
        hostile.probe(0, 1, &ProbePair { sent: [0, 1], received: [at, at + 1] });
        hostile.probe(1, 0, &ProbePair { sent: [at, at + 1], received: [0, 1] });
        hostile.probe(0, 1, &ProbePair { sent: [at, at + 1], received: [u64::MAX - 1, u64::MAX] });
        hostile.estimate(at);
    }
}
