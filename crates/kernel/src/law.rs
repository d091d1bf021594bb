//! Laws of delays, and links or machines that are slow for a while. Times are in ns.

use crate::Xoshiro;

/// The law of a delay in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DelayLaw {
    /// Always the same.
    Constant(f64),
    /// Uniform between two bounds.
    Uniform(f64, f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Log-normal: median, and standard deviation of the logarithm.
    LogNormal(f64, f64),
}

impl DelayLaw {
    /// The value below which a share `p` of all draws lie.
    pub fn quantile(&self, p: f64) -> f64 {
        match *self {
            DelayLaw::Constant(value) => value,
            DelayLaw::Uniform(low, high) => low + (high - low) * p,
            DelayLaw::Exponential(mean) => -mean * (1.0 - p).ln(),
            DelayLaw::LogNormal(median, sigma) => median * (sigma * normal_quantile(p)).exp(),
        }
    }

    /// One draw, by the textbook and not by a table.
    pub fn draw(&self, dice: &mut Xoshiro) -> f64 {
        match *self {
            DelayLaw::LogNormal(median, sigma) => median * (sigma * dice.normal()).exp(),
            DelayLaw::Exponential(mean) => dice.exponential(mean),
            DelayLaw::Uniform(low, high) => low + (high - low) * dice.unit(),
            DelayLaw::Constant(value) => value,
        }
    }
}

/// The standard normal law's quantile, by bisection of its distribution function.
fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if normal_share(middle) < p { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Share of a standard normal law below x (Abramowitz and Stegun 26.2.17; error below 8e-8).
fn normal_share(x: f64) -> f64 {
    const TERMS: [f64; 5] = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
    let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
    let series = TERMS.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    let tail = series * (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
    if x >= 0.0 { 1.0 - tail } else { tail }
}

const STEPS: usize = 4_096;

/// A law as a table of quantiles: a draw costs a look-up and an interpolation. The last 1/8,192 of each tail is flat.
#[derive(Clone, Debug)]
pub struct LawTable(Box<[f32]>);

impl LawTable {
    /// A table of a law.
    pub fn new(law: &DelayLaw) -> LawTable {
        let quantile = |step: usize| law.quantile((step as f64).clamp(0.5, STEPS as f64 - 0.5) / STEPS as f64) as f32;
        LawTable((0..=STEPS).map(quantile).collect())
    }

    /// One draw, ns.
    #[inline]
    pub fn draw(&self, dice: &mut Xoshiro) -> u64 {
        let bits = dice.bits();
        let (step, rest) = ((bits >> 52) as usize, (bits & 0xffff_ffff) as f32 / (1u64 << 32) as f32);
        let (low, high) = (self.0[step], self.0[step + 1]);
        (low + (high - low) * rest) as u64
    }
}

/// Links or machines that are slow for a while: two states with exponential times (Markov).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spikes {
    /// Mean time between two slow times, ns.
    pub apart: f64,
    /// Mean length of a slow time, ns.
    pub length: f64,
    /// Mean of the additional delay of each packet in a slow time, exponential, ns.
    pub extra: f64,
}

/// The state of one link or machine, drawn when it is used.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpikeState {
    until: u64,
    is_slow: bool,
}

impl SpikeState {
    /// The additional delay at a time. Times must not decrease.
    #[inline]
    pub fn extra(&mut self, now: u64, spikes: &Spikes, dice: &mut Xoshiro) -> u64 {
        if now >= self.until {
            self.renew(now, spikes, dice);
        }
        if self.is_slow { dice.exponential(spikes.extra) as u64 } else { 0 }
    }

    fn renew(&mut self, now: u64, spikes: &Spikes, dice: &mut Xoshiro) {
        if self.until == 0 {
            // At first use the state has its long-run law.
            self.is_slow = dice.happens(spikes.length / (spikes.apart + spikes.length));
            self.until = now + self.stay(spikes, dice);
        }
        while now >= self.until {
            self.is_slow = !self.is_slow;
            self.until += self.stay(spikes, dice);
        }
    }

    fn stay(&self, spikes: &Spikes, dice: &mut Xoshiro) -> u64 {
        dice.exponential(if self.is_slow { spikes.length } else { spikes.apart }) as u64 + 1
    }
}
