//! How a block is processed, the clock of its stages, and what was measured of each kind.

use std::collections::BTreeMap;
use std::time::Instant;

use ledger::{Applied, Changes};
use serde_json::{Value, json};

use crate::scaling::median;

/// How a block is processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockMode {
    /// Reserved, assembled and applied.
    Propose,
    /// Applied.
    Validate,
    /// Applied with a known batch.
    Replay,
}

impl BlockMode {
    /// All ways.
    pub const ALL: [BlockMode; 3] = [BlockMode::Propose, BlockMode::Validate, BlockMode::Replay];

    /// Its name in a report.
    pub fn name(self) -> &'static str {
        match self {
            BlockMode::Propose => "propose",
            BlockMode::Validate => "validate",
            BlockMode::Replay => "replay",
        }
    }
}

/// How a block is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) mode: BlockMode,
    pub(super) signed: bool,
    pub(super) persists: bool,
    pub(super) threads: usize,
}

#[derive(Default)]
pub(super) struct Samples {
    pub(super) transactions: Vec<f64>,
    pub(super) fills: Vec<f64>,
    pub(super) pool_fills: Vec<f64>,
    pub(super) total_ms: Vec<f64>,
    pub(super) stages_ms: BTreeMap<&'static str, Vec<f64>>,
}

pub(super) struct Sample {
    pub(super) transactions: usize,
    /// Offers that executed, in full or in part: those of the block, and those that rested.
    pub(super) fills: usize,
    /// Pools that traded.
    pub(super) pool_fills: usize,
    pub(super) total_ms: f64,
    pub(super) stages_ms: Vec<(&'static str, f64)>,
}

pub(super) fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}

/// Measures the time of consecutive stages.
pub(super) struct Clock {
    begun: Instant,
    last: Instant,
    pub(super) stages_ms: Vec<(&'static str, f64)>,
}

impl Clock {
    pub(super) fn start() -> Clock {
        Clock { begun: Instant::now(), last: Instant::now(), stages_ms: Vec::new() }
    }

    pub(super) fn end(&mut self, stage: &'static str) {
        self.stages_ms.push((stage, milliseconds(self.last)));
        self.last = Instant::now();
    }

    pub(super) fn sample(self, transactions: usize, applied: Applied) -> (Sample, Changes) {
        let (fills, pool_fills) = (applied.batch.fills.len(), applied.batch.pools.len());
        let total_ms = milliseconds(self.begun);
        (Sample { transactions, fills, pool_fills, total_ms, stages_ms: self.stages_ms }, applied.changes)
    }
}

impl Samples {
    pub(super) fn add(&mut self, sample: Sample) {
        self.transactions.push(sample.transactions as f64);
        self.fills.push(sample.fills as f64);
        self.pool_fills.push(sample.pool_fills as f64);
        self.total_ms.push(sample.total_ms);
        for (stage, ms) in sample.stages_ms {
            self.stages_ms.entry(stage).or_default().push(ms);
        }
    }

    pub(super) fn ms(&self) -> f64 {
        median(self.total_ms.clone())
    }

    pub(super) fn per_second(&self) -> f64 {
        (median(self.transactions.clone()) * 1_000.0 / self.ms()).round()
    }

    /// A quantile of the rates of single blocks.
    fn per_second_at(&self, share: f64) -> f64 {
        let pairs = self.transactions.iter().zip(&self.total_ms);
        let mut rates: Vec<f64> = pairs.map(|(transactions, ms)| transactions * 1_000.0 / ms).collect();
        rates.sort_by(f64::total_cmp);
        rates[((rates.len() - 1) as f64 * share).round() as usize].round()
    }

    pub(super) fn as_json(&self, kind: Kind) -> Value {
        let stages: BTreeMap<_, _> = self.stages_ms.iter().map(|(stage, ms)| (*stage, median(ms.clone()))).collect();
        json!({
            "mode": kind.mode.name(),
            "signatures": kind.signed,
            "persistence": kind.persists,
            "threads": kind.threads,
            "transactions_per_second": self.per_second(),
            "p10_per_second": self.per_second_at(0.1),
            "p90_per_second": self.per_second_at(0.9),
            "fills": median(self.fills.clone()),
            "pool_fills": median(self.pool_fills.clone()),
            "block_ms": self.ms(),
            "stages_ms": stages,
        })
    }
}
