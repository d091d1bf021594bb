//! The lane as a purse reaches it: how it stands, and a client for each home.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::ensure;
use lane::LaneClient;
use payments::{AnswerScheme, HomeEpoch};

use super::network::{LaneNetwork, LaneNow};
use crate::wallet::server::Server;

/// A payment that is built so few heights before the end of its epoch may come too late, and then its money is stuck:
/// the end is waited for.
const MARGIN_HEIGHTS: u64 = 3;
/// A chain without traffic makes no blocks, and no epoch ends.
const MARGIN_PATIENCE: Duration = Duration::from_secs(5);

/// How validators are asked.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    /// How long to wait for a quorum.
    pub patience: Duration,
    /// What they sign answers to payments with.
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
    /// Asks a node how the lane stands.
    pub fn new(server: &Server, network: &LaneNetwork, patience: Duration) -> anyhow::Result<Lanes> {
        let now = LaneNow::ask(server, network)?;
        Ok(Lanes { now, network: network.clone(), clients: BTreeMap::new(), patience, scheme: AnswerScheme::Tree })
    }

    /// The same, at a moment at which new payments may be built.
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

    /// The client of a home's committee, under the scheme that was asked for where the committee has keys for it.
    pub fn client(&mut self, home: HomeEpoch) -> &mut LaneClient {
        let directory = || self.now.directory(&self.network, home);
        let client =
            || LaneClient::new(directory()).under(self.scheme).unwrap_or_else(|_| LaneClient::new(directory()));
        self.clients.entry(home).or_insert_with(client)
    }

    /// Whether a home's committee has keys for the scheme that was asked for.
    ///
    /// # Errors
    /// What to do if it has none.
    pub fn check_scheme(&self, home: HomeEpoch) -> anyhow::Result<()> {
        LaneClient::new(self.now.directory(&self.network, home)).under(self.scheme)?;
        Ok(())
    }
}
