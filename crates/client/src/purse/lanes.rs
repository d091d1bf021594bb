//! Access of a purse to the lane: its current state, and a client for each home.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use lane::LaneClient;
use payments::{AnswerScheme, HomeEpoch};

use super::error::PurseError;
use super::network::LaneNetwork;
use super::now::LaneNow;
use crate::node::NodeClient;

/// A payment built this many heights before the end of its epoch may come too late, and then its money is stuck. So the
/// purse waits for the end.
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
    /// The lane, as the node told it last.
    pub now: LaneNow,
    network: LaneNetwork,
    clients: BTreeMap<HomeEpoch, LaneClient>,
    /// How long to wait for a quorum.
    pub patience: Duration,
    scheme: AnswerScheme,
}

impl Lanes {
    /// Asks a node for the state of the lane.
    ///
    /// # Errors
    /// [`PurseError`].
    pub fn new(node: &NodeClient, network: &LaneNetwork, patience: Duration) -> Result<Lanes, PurseError> {
        let now = LaneNow::ask(node, network)?;
        Ok(Lanes { now, network: network.clone(), clients: BTreeMap::new(), patience, scheme: AnswerScheme::Tree })
    }

    /// The same, at a time when new payments may be built.
    ///
    /// # Errors
    /// [`PurseError`]; [`PurseError::Halted`].
    pub fn to_spend(node: &NodeClient, network: &LaneNetwork, asking: Asking) -> Result<Lanes, PurseError> {
        let begun = Instant::now();
        let mut lanes = Lanes { scheme: asking.scheme, ..Lanes::new(node, network, asking.patience)? };
        while lanes.now.heights_left <= MARGIN_HEIGHTS && begun.elapsed() < MARGIN_PATIENCE {
            std::thread::sleep(Duration::from_millis(50));
            lanes.now = LaneNow::ask(node, network)?;
        }
        if lanes.now.halted { Err(PurseError::Halted) } else { Ok(lanes) }
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
    /// [`PurseError::Scheme`] if it has none.
    pub fn check_scheme(&self, home: HomeEpoch) -> Result<(), PurseError> {
        let client = LaneClient::new(self.now.directory(&self.network, home)).under(self.scheme);
        client.map(drop).map_err(PurseError::Scheme)
    }
}
