//! Metrics for Prometheus. Names use base units, by its convention.

mod sealing;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use ledger::Ledger;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use self::sealing::SealingGauges;
use crate::views::CommittedBlock;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CodeLabel {
    code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabel {
    stage: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ValidatorLabel {
    validator: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VenueLabel {
    venue: u32,
}

/// How a venue that this node runs stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct VenueFigures {
    /// Whether it matches: it runs, and nothing pauses it.
    pub is_matching: bool,
    /// The last certified height that it knows.
    pub height: u64,
    /// Fills of its incarnation.
    pub fills: u64,
    /// Those that are settled or bust.
    pub settled: u64,
    /// Those that became bust since the node started.
    pub busts: u64,
    /// Sessions with a link.
    pub sessions: u64,
    /// Records of its journal.
    pub records: u64,
}

/// Gauges of venues, by the names that they are registered under.
type VenueGauges = [(&'static str, &'static str, Family<VenueLabel, Gauge>); 7];

fn venue_gauges() -> VenueGauges {
    [
        ("venue_matching", "Whether the venue matches: 0 while it does not run, or pauses"),
        ("venue_height", "The last certified height that the venue knows"),
        ("venue_fills", "Fills of the venue's incarnation"),
        ("venue_settled_fills", "Fills of the venue's incarnation that are settled or bust"),
        ("venue_bust_fills", "Fills of the venue that became bust since the node started"),
        ("venue_sessions", "Sessions of traders that have a link to the venue"),
        ("venue_journal_records", "Records of the venue's journal"),
    ]
    .map(|(name, help)| (name, help, Family::default()))
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ShardLabel {
    shard: u32,
}

/// How a shard of this node's member of the payment lane stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneShardFigures {
    /// Whether it runs in a process other than the node.
    pub is_apart: bool,
    /// Whether it runs and clients can reach it, as far as the node knows: one that runs apart is connected.
    pub is_up: bool,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// The newest lane epoch in which it runs; `None` if it runs in none.
    pub epoch: Option<u64>,
    /// The height of the last block whose facts it was told.
    pub facts_height: u64,
    /// Answers that it has signed since it started.
    pub signed: u64,
    /// Requests that it has refused since it started.
    pub refused: u64,
    /// Bytes of its logs.
    pub log_bytes: u64,
}

/// Gauges of shards, by the names that they are registered under.
type ShardGauges = [(&'static str, &'static str, Family<ShardLabel, Gauge>); 6];

fn shard_gauges() -> ShardGauges {
    [
        ("lane_shard_up", "Whether the shard runs, and its node and clients reach it"),
        ("lane_shard_epoch", "The newest lane epoch in which the shard runs"),
        ("lane_shard_facts_height", "The height of the last block whose facts the shard was told"),
        ("lane_shard_signed", "Answers that the shard has signed since it started"),
        ("lane_shard_refused", "Requests that the shard has refused since it started"),
        ("lane_shard_log_bytes", "Bytes of the shard's logs"),
    ]
    .map(|(name, help)| (name, help, Family::default()))
}

/// The node's metrics.
pub struct Metrics {
    venues: VenueGauges,
    shards: ShardGauges,
    /// By number.
    lane_shards: Mutex<BTreeMap<u16, LaneShardFigures>>,
    registry: Registry,
    /// Pending transactions.
    pub mempool: Gauge,
    /// Open connections of the stream.
    pub streams: Gauge,
    /// Stream connections that were closed because they did not keep up.
    pub streams_dropped: Counter,
    /// Time to apply a block's changes to the tries.
    pub hashing: Histogram,
    /// The last certified height.
    pub certified: Gauge,
    /// Other validators that are connected.
    pub connected: Gauge,
    /// Syncs of the vote log.
    pub vote_syncs: Counter,
    /// Contradictory statements that validators signed.
    pub evidence: Counter,
    /// Transactions forwarded to another validator, because this one's sub-blocks are left out.
    pub handed_over: Counter,
    /// Shards of the payment lane that clients cannot reach.
    pub lane_shards_unreachable: Gauge,
    rules: Gauge,
    rules_to_come: Gauge,
    rules_known: Gauge,
    sealing: SealingGauges,
    refused_frames: Family<ReasonLabel, Counter>,
    sub_blocks: Family<ValidatorLabel, Counter>,
    height: Gauge,
    submitted: Family<CodeLabel, Counter>,
    committed: Counter,
    refused: Counter,
    fills: Counter,
    batches_not_full: Counter,
    stages: Family<StageLabel, Histogram>,
    block_transactions: Histogram,
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_05, 2.0, 18))
}

impl Metrics {
    /// Shows how a venue stands.
    pub fn set_venue(&self, venue: u32, of: &VenueFigures) {
        let VenueFigures { is_matching, height, fills, settled, busts, sessions, records } = *of;
        let figures = [u64::from(is_matching), height, fills, settled, busts, sessions, records];
        for ((_, _, gauge), figure) in self.venues.iter().zip(figures) {
            gauge.get_or_create(&VenueLabel { venue }).set(i64::try_from(figure).unwrap_or(i64::MAX));
        }
    }

    /// Shows how a shard of the payment lane stands.
    pub fn set_lane_shard(&self, shard: u16, of: LaneShardFigures) {
        let LaneShardFigures { is_up, epoch, facts_height, signed, refused, log_bytes, .. } = of;
        let figures = [u64::from(is_up), epoch.unwrap_or(0), facts_height, signed, refused, log_bytes];
        for ((_, _, gauge), figure) in self.shards.iter().zip(figures) {
            gauge.get_or_create(&ShardLabel { shard: shard.into() }).set(i64::try_from(figure).unwrap_or(i64::MAX));
        }
        self.lane_shards.lock().unwrap_or_else(PoisonError::into_inner).insert(shard, of);
    }

    /// The shards of the payment lane that this node has, by number.
    pub fn lane_shards(&self) -> BTreeMap<u16, LaneShardFigures> {
        self.lane_shards.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Shows the rules of the next block, the newest ones that the chain has agreed on, and the newest that the node
    /// follows.
    pub fn note_rules(&self, next: u32, agreed: u32, known: u32) {
        self.rules.set(next.into());
        self.rules_to_come.set(agreed.into());
        self.rules_known.set(known.into());
    }

    /// Shows the committee's sealing key after a block.
    pub fn note_sealing(&self, ledger: &Ledger) {
        self.sealing.note_key(ledger);
    }

    /// Shows for how many milliseconds a decided height has waited for its envelopes, and which of this many peers are
    /// silent about it.
    pub fn note_sealed_wait(&self, wait: Option<(u64, &[u8])>, peers: usize) {
        self.sealing.note_wait(wait, peers);
    }

    /// A registry with every metric at zero.
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix("walras");
        let metrics = Metrics {
            venues: venue_gauges(),
            shards: shard_gauges(),
            lane_shards: Mutex::default(),
            mempool: Gauge::default(),
            streams: Gauge::default(),
            streams_dropped: Counter::default(),
            hashing: seconds(),
            certified: Gauge::default(),
            connected: Gauge::default(),
            vote_syncs: Counter::default(),
            evidence: Counter::default(),
            handed_over: Counter::default(),
            lane_shards_unreachable: Gauge::default(),
            rules: Gauge::default(),
            rules_to_come: Gauge::default(),
            rules_known: Gauge::default(),
            sealing: SealingGauges::default(),
            refused_frames: Family::default(),
            sub_blocks: Family::default(),
            height: Gauge::default(),
            submitted: Family::default(),
            committed: Counter::default(),
            refused: Counter::default(),
            fills: Counter::default(),
            batches_not_full: Counter::default(),
            stages: Family::new_with_constructor(seconds),
            block_transactions: Histogram::new(exponential_buckets(1.0, 4.0, 11)),
            registry: Registry::default(),
        };
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of this node", build);
        registry.register("block_height", "Height of the last committed block", metrics.height.clone());
        registry.register("mempool_transactions", "Pending transactions", metrics.mempool.clone());
        let submitted = "Submitted transactions, by answer";
        registry.register("submitted_transactions", submitted, metrics.submitted.clone());
        let committed = "Transactions that took effect in a block";
        registry.register("committed_transactions", committed, metrics.committed.clone());
        let refused = "Transactions that a block's filter removed";
        registry.register("refused_transactions", refused, metrics.refused.clone());
        registry.register("fills", "Offers that executed, in full or in part", metrics.fills.clone());
        let not_full = "Batches in which some offer that had to fill was not filled";
        registry.register("batches_not_full", not_full, metrics.batches_not_full.clone());
        let stages = "Time of each stage of a block";
        registry.register_with_unit("block_stage", stages, Unit::Seconds, metrics.stages.clone());
        let hashing = "Time to apply a block's changes to the tries";
        registry.register_with_unit("state_hashing", hashing, Unit::Seconds, metrics.hashing.clone());
        let transactions = "Transactions in a block";
        registry.register("block_transactions", transactions, metrics.block_transactions.clone());
        registry.register("stream_connections", "Open connections of the stream", metrics.streams.clone());
        let dropped = "Stream connections that were closed because they did not keep up";
        registry.register("stream_connections_dropped", dropped, metrics.streams_dropped.clone());
        let certified = "The last height up to which all heights are certified here";
        registry.register("certified_height", certified, metrics.certified.clone());
        registry.register("connected_validators", "Other validators that are connected", metrics.connected.clone());
        registry.register("vote_log_syncs", "Syncs of the vote log", metrics.vote_syncs.clone());
        let evidence = "Contradictory statements that validators have signed";
        registry.register("evidence", evidence, metrics.evidence.clone());
        let handed = "Transactions that were forwarded to another validator to propose";
        registry.register("handed_over_transactions", handed, metrics.handed_over.clone());
        let unreachable = "Shards of the payment lane that cannot start, or whose address is in use";
        registry.register("lane_shards_unreachable", unreachable, metrics.lane_shards_unreachable.clone());
        registry.register("rules", "The rules of the next block", metrics.rules.clone());
        let agreed = "The newest rules that the chain has agreed on, whether they act already or not";
        registry.register("rules_agreed", agreed, metrics.rules_to_come.clone());
        registry.register("rules_known", "The newest rules that this node follows", metrics.rules_known.clone());
        metrics.sealing.register(&mut registry);
        metrics.shards.iter().for_each(|(name, help, gauge)| registry.register(*name, *help, gauge.clone()));
        metrics.venues.iter().for_each(|(name, help, gauge)| registry.register(*name, *help, gauge.clone()));
        let refused = "Rejected frames of other validators, by reason";
        registry.register("refused_frames", refused, metrics.refused_frames.clone());
        registry.register("sub_blocks", "Sub-blocks in superblocks, by proposer", metrics.sub_blocks.clone());
        Metrics { registry, ..metrics }
    }

    /// Counts a rejected frame.
    pub fn refused_frame(&self, why: consensus::Refused) {
        self.refused_frames.get_or_create(&ReasonLabel { reason: why.code() }).inc();
    }

    /// Counts the proposers of a superblock.
    pub fn decided(&self, proposers: impl Iterator<Item = consensus::Index>) {
        for validator in proposers {
            self.sub_blocks.get_or_create(&ValidatorLabel { validator: validator.into() }).inc();
        }
    }

    /// Counts the answer to a submitted transaction, by its code.
    pub fn submitted(&self, code: &'static str) {
        self.submitted.get_or_create(&CodeLabel { code }).inc();
    }

    /// Counts a committed block.
    pub fn committed(&self, block: &CommittedBlock) {
        let summary = &block.summary;
        self.height.set(summary.height as i64);
        self.committed.inc_by(summary.applied as u64);
        self.refused.inc_by((summary.transactions - summary.applied) as u64);
        self.fills.inc_by(summary.fills as u64);
        self.batches_not_full.inc_by(u64::from(!summary.full));
        self.block_transactions.observe(summary.transactions as f64);
        for (stage, ms) in &summary.stages_ms {
            self.stages.get_or_create(&StageLabel { stage }).observe(ms / 1_000.0);
        }
    }

    /// The metrics in the text format of Prometheus.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).expect("writing to memory cannot fail");
        text
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}
