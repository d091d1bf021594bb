//! The operator's settings of a venue: the section `[venue]` of the configuration.

use std::net::SocketAddr;
use std::path::PathBuf;

use primitives::venue::VenueId;
use serde::{Deserialize, Serialize};
use venue::{MarketSettings, VenueKeys, VenueLimits};

/// A venue of continuous markets that this node runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VenueConfig {
    /// Whether the node runs a venue.
    pub run: bool,
    /// Its number on the ledger.
    pub number: VenueId,
    /// The address of orders over HTTP and WebSocket.
    pub listen: SocketAddr,
    /// The address of orders over OUCH.
    pub ouch_listen: SocketAddr,
    /// Addresses to which market data is sent as ITCH over MoldUDP64; without any there is no feed.
    pub feed_to: Vec<SocketAddr>,
    /// The address that it is sent from, which answers requests for lost messages (UDP).
    pub feed_listen: SocketAddr,
    /// The address of snapshots of the feed (TCP).
    pub snapshot_listen: SocketAddr,
    /// What a maker pays, in millionths of what it trades; a rebate is negative.
    pub maker_ppm: i32,
    /// What a taker pays, likewise.
    pub taker_ppm: u32,
    /// The fewest lots of an order.
    pub lots_min: u32,
    /// The most heights that an order lives.
    pub life_heights: u64,
    /// Matching pauses after so many milliseconds without a block.
    pub quiet_ms: u64,
    /// Records of the journal between two snapshots.
    pub snapshot_records: u64,
    /// Records that are kept behind the older of two snapshots; 0 keeps all.
    pub keep_records: u64,
}

impl Default for VenueConfig {
    fn default() -> VenueConfig {
        let (limits, market) = (VenueLimits::default(), MarketSettings::default());
        VenueConfig {
            run: false,
            number: 0,
            listen: SocketAddr::from(([127, 0, 0, 1], 8070)),
            ouch_listen: SocketAddr::from(([127, 0, 0, 1], 8071)),
            feed_to: Vec::new(),
            feed_listen: SocketAddr::from(([127, 0, 0, 1], 8072)),
            snapshot_listen: SocketAddr::from(([127, 0, 0, 1], 8072)),
            maker_ppm: market.maker_ppm,
            taker_ppm: market.taker_ppm,
            lots_min: market.lots_min,
            life_heights: limits.life_heights,
            quiet_ms: limits.quiet_ms,
            snapshot_records: 100_000,
            keep_records: 0,
        }
    }
}

impl VenueConfig {
    /// The limits of its root.
    pub(crate) fn limits(&self) -> VenueLimits {
        let VenueConfig { life_heights, quiet_ms, .. } = *self;
        VenueLimits { life_heights, quiet_ms, ..VenueLimits::default() }
    }

    /// How its markets are run.
    pub(crate) fn market(&self) -> MarketSettings {
        let VenueConfig { maker_ppm, taker_ppm, lots_min, .. } = *self;
        MarketSettings { maker_ppm, taker_ppm, lots_min, ..MarketSettings::default() }
    }
}

/// What a pit is started with.
pub struct PitSettings {
    /// The operator's settings.
    pub config: VenueConfig,
    /// The directory of its journals.
    pub directory: PathBuf,
    /// The keys of the operator. Each opening of a root takes a copy.
    pub keys: Box<dyn Fn() -> VenueKeys + Send>,
}
