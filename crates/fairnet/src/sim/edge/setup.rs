//! What one run of an edge is given, and what it comes to.

use kernel::{DatagramFaults, Xoshiro};

use crate::Nanos;
use crate::bundles::BundleRules;
use crate::node::{EdgeLie, EdgeMistake, EdgeRules};
use crate::pace::PaceRules;
use crate::roster::FairnessEvent;

const MS: Nanos = 1_000_000;

/// What may go wrong.
#[derive(Clone, Copy, Debug, Default)]
pub struct EdgeFaults {
    /// With datagrams.
    pub datagrams: DatagramFaults,
    /// Proxies that die.
    pub proxy_deaths: u32,
    /// Gateways that die.
    pub gateway_deaths: u32,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct EdgeSetup {
    /// Seed of everything that is drawn.
    pub seed: u64,
    /// Number of proxies.
    pub proxies: u32,
    /// Number of gateways.
    pub gateways: u32,
    /// Payloads, one each millisecond.
    pub payloads: u64,
    /// Orders of each gateway, one each millisecond on average.
    pub orders: u64,
    /// Orders that the engine takes in a millisecond; without bound if absent.
    pub engine: Option<u64>,
    /// What goes wrong.
    pub faults: EdgeFaults,
    /// Limits.
    pub rules: EdgeRules,
    /// What the first gateway pretends.
    pub lie: Option<EdgeLie>,
}

impl EdgeSetup {
    /// Limits with fewer heartbeats and watermarks than by default: most events of a run would be theirs.
    pub fn rules() -> EdgeRules {
        let rules = EdgeRules::default();
        let merge = crate::MergeRules { short_wait: MS, ..rules.merge };
        EdgeRules { heartbeat: 2 * MS, watermark: MS / 2, children: 32, merge, ..rules }
    }

    /// Faults and sizes drawn from a seed: what `walras-lab sim --edge` runs.
    pub fn drawn(seed: u64) -> EdgeSetup {
        let mut dice = Xoshiro::new(seed ^ 0xed6e);
        let mut below = |most: u64| dice.bits() % most;
        let (proxies, gateways) = (2 + below(7) as u32, 3 + below(22) as u32);
        let shape = crate::SeatingShape { layers: Some(1 + below(2) as u32), hedging: below(3) as u32 };
        let share = |part: u64| part as f64 / 100.0;
        let datagrams = DatagramFaults {
            loss: share(below(6)),
            copies: share(below(6)),
            forged: share(below(20)),
            replayed: share(below(10)),
            cut: share(below(5)),
        };
        let faults = EdgeFaults {
            datagrams,
            proxy_deaths: below(3).min(u64::from(proxies) - 1) as u32,
            gateway_deaths: below(2) as u32,
        };
        let engine = Some(1 + below(64)).filter(|rate| *rate > u64::from(gateways));
        // A third of all edges have a batch market.
        let bundles = (seed % 3 == 1).then_some(BundleRules { edge: 1, period: 10 * MS, most: 64 });
        // Two of five pace orders, some of them slower than orders come.
        let interval = MS / 4 * (1 + seed / 5 % 8);
        let pace = PaceRules { interval, burst: 1 + seed % 3, waiting: 512, mistake: Default::default() };
        let rules = EdgeRules { shape, bundles, pace: Some(pace).filter(|_| seed % 5 < 2), ..EdgeSetup::rules() };
        // Of each eight edges one has a gateway that lies.
        let lies = [EdgeLie::Ahead(40 * MS), EdgeLie::Behind(2 * MS), EdgeLie::Unseen(1_000)];
        let lie = (seed % 8 == 3).then(|| lies[(seed / 8 % 3) as usize]);
        EdgeSetup { seed, proxies, gateways, payloads: 3_000, orders: 500, engine, faults, rules, lie }
    }
}

/// What one run came to.
#[derive(Clone, Debug)]
pub struct EdgeReport {
    /// What was wrong, the first few.
    pub violations: Vec<String>,
    /// The sum over all members.
    pub counters: Vec<(&'static str, u64)>,
    /// The last epoch.
    pub epoch: u32,
    /// The longest time in which a gateway saw no payload, ns.
    pub pause: Nanos,
    /// Events of the queue.
    pub events: u64,
    /// The last events of the fairness log.
    pub log: Vec<FairnessEvent>,
    /// Digest of all that was shown and handed on.
    pub trace: [u8; 32],
}

impl EdgeReport {
    /// One of the counters.
    pub fn count(&self, name: &str) -> u64 {
        self.counters.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count)
    }
}

impl EdgeSetup {
    /// The same with a mistake planted.
    pub fn with(mut self, mistake: EdgeMistake) -> EdgeSetup {
        self.rules.mistake = mistake.into();
        self
    }
}
