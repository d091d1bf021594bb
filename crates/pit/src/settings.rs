//! The operator's settings of a venue: the section `[venue]` of the configuration.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use fairnet::EdgeRules;
use primitives::AssetId;
use primitives::venue::VenueId;
use serde::{Deserialize, Serialize};
use venue::{MarketSettings, VenueKeys, VenueLimits, VenueSettings};

use crate::edge::{EdgeSettings, EdgeStartError};

/// What takers pay where the operator does not say it, in millionths.
const TAKER_PPM: u32 = 500;
/// How long before a deadline a root on a machine of its own stops sleeping, ns.
const SPIN: u64 = 60_000;

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
    /// The address at which the root of the venue's edge finds its members, for datagrams (UDP) and streams (TCP).
    /// Without it the venue has no edge.
    pub edge_listen: Option<SocketAddr>,
    /// The file with the secret of the edge's machines.
    pub edge_secret: Option<PathBuf>,
    /// Whether the members of the edge share a machine with other work: everything waits longer.
    pub edge_shared_machine: bool,
    /// Whether streams of the edge are encrypted; the same at all members.
    pub edge_tls: bool,
    /// How wrong this machine's clock can be, in nanoseconds; without it no release is called fair.
    pub edge_clock_error_ns: Option<u64>,
    /// What a maker pays, in millionths of what it trades; a rebate is negative.
    pub maker_ppm: i32,
    /// What a taker pays, likewise.
    pub taker_ppm: u32,
    /// The fewest lots of an order.
    pub lots_min: u32,
    /// Whether orders must be large enough for fees to pay for what their entries cost the operator on the ledger.
    pub covers_entries: bool,
    /// What one ledger fee is worth in units of a quote asset, by the asset's number; of asset 0 the chain says it.
    pub fee_worth: BTreeMap<String, u64>,
    /// Ledger fees a day that the operator pays for orders too small to pay for their entries; an account has a 32nd.
    pub small_order_fees: u64,
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
            edge_listen: None,
            edge_secret: None,
            edge_shared_machine: false,
            edge_tls: false,
            edge_clock_error_ns: None,
            maker_ppm: market.maker_ppm,
            taker_ppm: TAKER_PPM,
            lots_min: market.lots_min,
            covers_entries: true,
            fee_worth: BTreeMap::new(),
            small_order_fees: limits.small_order_fees,
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
        let VenueConfig { life_heights, small_order_fees, quiet_ms, .. } = *self;
        VenueLimits { life_heights, small_order_fees, quiet_ms, ..VenueLimits::default() }
    }

    /// How the root of its edge runs, if it has one.
    ///
    /// # Errors
    /// If the secret is not there.
    pub fn edge(&self) -> Result<Option<EdgeSettings>, EdgeStartError> {
        let Some(listen) = self.edge_listen else { return Ok(None) };
        let path = self.edge_secret.clone().unwrap_or_default();
        let text =
            std::fs::read_to_string(&path).map_err(|error| EdgeStartError::Secret(path.clone(), error.to_string()));
        let secret =
            primitives::from_hex(text?.trim()).map_err(|error| EdgeStartError::Secret(path, error.to_string()))?;
        let (rules, spin) = match self.edge_shared_machine {
            true => (EdgeRules::shared_machine(), 0),
            false => (EdgeRules::default(), SPIN),
        };
        let (clock_error, is_encrypted) = (self.edge_clock_error_ns, self.edge_tls);
        Ok(Some(EdgeSettings { listen: [listen; 2], secret, rules, clock_error, spin, is_encrypted }))
    }

    /// How a market with this quote asset is run.
    ///
    /// # Errors
    /// A sentence, if nothing could pay for entries.
    pub(crate) fn market(&self, quote: AssetId, root: &VenueSettings) -> Result<MarketSettings, String> {
        let VenueConfig { maker_ppm, taker_ppm, lots_min, .. } = *self;
        let market = MarketSettings { maker_ppm, taker_ppm, lots_min, ..MarketSettings::default() };
        if !self.covers_entries || root.terms.fee == 0 {
            return Ok(market);
        }
        let known = if quote == AssetId(0) { Some(root.terms.fee) } else { None };
        let worth = self.fee_worth.get(&quote.0.to_string()).copied().or(known).ok_or_else(|| {
            format!(
                "[venue] fee_worth says nothing of asset {0}: say what a ledger fee is worth in its units, or set \
                 covers_entries = false and pay for entries yourself",
                quote.0
            )
        })?;
        let none = "[venue] maker_ppm and taker_ppm: no fees of an order pay for its entry on the ledger: raise them, \
                    lower life_heights, or set covers_entries = false and pay for entries yourself";
        let quote_min = root.covering(&market, worth).ok_or(none)?;
        Ok(MarketSettings { quote_min, ..market })
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
    /// Its market edge, if it has one.
    pub edge: Option<EdgeSettings>,
}

#[cfg(test)]
mod tests {
    use primitives::venue::{Delay, VenueOperator};
    use primitives::{Address, Digest, PublicKey};
    use venue::SettlingTerms;

    use super::*;

    fn root(fee: u64) -> VenueSettings {
        let terms = SettlingTerms {
            chain: 1,
            fee,
            delay: Delay { heights: 32, ms: 10_000 },
            bond_min: 0,
            settle_bytes: 1 << 16,
            entries_max: 1,
            life_max: u64::MAX,
        };
        let operator = VenueOperator { account: Address([0; 20]), report_key: PublicKey([0; 32]) };
        let (network, limits) = (Digest::default(), VenueLimits::default());
        VenueSettings { network, venue: 0, incarnation: 0, operator, terms, limits }
    }

    #[test]
    fn a_market_whose_entries_nobody_pays_for_stays_closed() {
        let least =
            |config: &VenueConfig, quote, fee| config.market(AssetId(quote), &root(fee)).map(|market| market.quote_min);
        let usual = VenueConfig::default();
        assert_eq!((least(&usual, 0, 1), least(&usual, 0, 0)), (Ok(188_000), Ok(0)));
        assert!(least(&usual, 1, 1).is_err_and(|error| error.contains("fee_worth")));
        let valued = VenueConfig { fee_worth: [("1".to_string(), 2)].into(), ..usual.clone() };
        assert_eq!(least(&valued, 1, 1), Ok(368_000));
        let free = VenueConfig { taker_ppm: 0, ..usual.clone() };
        assert!(least(&free, 0, 1).is_err_and(|error| error.contains("covers_entries = false")));
        assert_eq!(least(&VenueConfig { covers_entries: false, ..free }, 0, 1), Ok(0));
        let short = VenueConfig { life_heights: 4_096, ..usual };
        assert_eq!(
            short.market(AssetId(0), &VenueSettings { limits: short.limits(), ..root(1) }).map(|of| of.quote_min),
            Ok(28_000)
        );
    }
}
