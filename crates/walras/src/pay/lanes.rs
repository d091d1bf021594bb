//! The lane as a purse reaches it: how it stands, and a client for each home.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::ensure;
use lane::LaneClient;
use payments::HomeEpoch;

use super::network::{LaneNetwork, LaneNow};
use crate::wallet::server::Server;

/// A payment that is built so few heights before the end of its epoch may come too late, and then its money is stuck:
/// the end is waited for.
const MARGIN_HEIGHTS: u64 = 3;
/// A chain without traffic makes no blocks, and no epoch ends.
const MARGIN_PATIENCE: Duration = Duration::from_secs(5);

/// See the module text.
pub struct Lanes {
    pub now: LaneNow,
    network: LaneNetwork,
    clients: BTreeMap<HomeEpoch, LaneClient>,
    pub patience: Duration,
}

impl Lanes {
    /// Asks a node how the lane stands.
    pub fn new(server: &Server, network: &LaneNetwork, patience: Duration) -> anyhow::Result<Lanes> {
        let now = LaneNow::ask(server, network)?;
        Ok(Lanes { now, network: network.clone(), clients: BTreeMap::new(), patience })
    }

    /// The same, at a moment at which new payments may be built.
    pub fn to_spend(server: &Server, network: &LaneNetwork, patience: Duration) -> anyhow::Result<Lanes> {
        let begun = Instant::now();
        let mut lanes = Lanes::new(server, network, patience)?;
        while lanes.now.heights_left <= MARGIN_HEIGHTS && begun.elapsed() < MARGIN_PATIENCE {
            std::thread::sleep(Duration::from_millis(50));
            lanes.now = LaneNow::ask(server, network)?;
        }
        ensure!(!lanes.now.halted, "the lane is halted: nothing was sent. Try again later");
        Ok(lanes)
    }

    /// The client of a home's committee.
    pub fn client(&mut self, home: HomeEpoch) -> &mut LaneClient {
        let directory = || self.now.directory(&self.network, home);
        self.clients.entry(home).or_insert_with(|| LaneClient::new(directory()))
    }
}
