//! Access of a purse to the lane: its current state, and a client for each home.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use lane::LaneClient;
use payments::{AnswerScheme, HomeEpoch};

use super::network::{LaneNetwork, LaneNow};
use crate::wallet::server::Server;

/// A payment built this many heights before the end of its epoch may come too late, and then its money is stuck, so
/// the purse waits for the end.
const MARGIN_HEIGHTS: u64 = 3;
/// Maximum wait: a chain without traffic makes no blocks, and no epoch ends.
const MARGIN_PATIENCE: Duration = Duration::from_secs(5);

/// How validators are asked.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    /// How long to wait for a quorum.
    pub patience: Duration,
    /// The keys with which they sign answers to payments.
    pub scheme: AnswerScheme,
}

/// See the module text.
pub struct Lanes {
    pub now: LaneNow,
    network: LaneNetwork,
    clients: BTreeMap<HomeEpoch, LaneClient>,
    pub patience: Duration,
    scheme: AnswerScheme,
}

impl Lanes {
    /// Asks a node for the state of the lane.
    pub fn new(server: &Server, network: &LaneNetwork, patience: Duration) -> anyhow::Result<Lanes> {
        let now = LaneNow::ask(server, network)?;
        Ok(Lanes { now, network: network.clone(), clients: BTreeMap::new(), patience, scheme: AnswerScheme::Tree })
    }

    /// The same, at a time when new payments may be built.
    pub fn to_spend(server: &Server, network: &LaneNetwork, asking: Asking) -> anyhow::Result<Lanes> {
        let begun = Instant::now();
        let mut lanes = Lanes { scheme: asking.scheme, ..Lanes::new(server, network, asking.patience)? };
        while lanes.now.heights_left <= MARGIN_HEIGHTS && begun.elapsed() < MARGIN_PATIENCE {
            std::thread::sleep(Duration::from_millis(50));
            lanes.now = LaneNow::ask(server, network)?;
        }
        ensure!(!lanes.now.halted, "the lane is halted: nothing was sent. Try again later");
        Ok(lanes)
    }

    /// The client of a home's committee, with the requested scheme if the committee has keys for it.
    pub fn client(&mut self, home: HomeEpoch) -> &mut LaneClient {
        let directory = || self.now.directory(&self.network, home);
        let client =
            || LaneClient::new(directory()).under(self.scheme).unwrap_or_else(|_| LaneClient::new(directory()));
        self.clients.entry(home).or_insert_with(client)
    }

    /// Checks that a home's committee has keys for the requested scheme.
    ///
    /// # Errors
    /// If it has none; the error says what to do.
    pub fn check_scheme(&self, home: HomeEpoch) -> anyhow::Result<()> {
        let client = LaneClient::new(self.now.directory(&self.network, home)).under(self.scheme);
        client.map(drop).context("nothing was sent; `--scheme merkle` works in every lane epoch")
    }
}
