//! The state of the lane, as a node reports it.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use lane::LaneDirectory;
use payments::HomeEpoch;
use primitives::Amount;

use super::error::PurseError;
use super::network::LaneNetwork;
use crate::node::NodeClient;

/// The state of the lane, as a node reports it.
#[derive(Clone, Debug)]
pub struct LaneNow {
    /// The present lane epoch.
    pub epoch: HomeEpoch,
    /// Heights until it ends.
    pub heights_left: u64,
    /// Whether the lane takes no payments now.
    pub halted: bool,
    /// Minimum units of the first asset that a case costs.
    pub case_deposit: Amount,
    /// Members that were convicted of contradicting themselves.
    pub convicted: BTreeSet<u8>,
    addresses: Vec<Vec<SocketAddr>>,
    tls: bool,
    home_ports: u64,
}

impl LaneNow {
    /// Asks a node, which must be of this network and have the same keys of its members. The network learns the keys
    /// of epochs from the answer.
    ///
    /// # Errors
    /// [`PurseError`].
    pub fn ask(node: &NodeClient, network: &LaneNetwork) -> Result<LaneNow, PurseError> {
        let lane = network.learn(node)?;
        let address = |text: &String| node.number::<SocketAddr>("address of a shard", text);
        let shards = |shards: &Vec<String>| shards.iter().map(address).collect();
        let addresses: Vec<Vec<SocketAddr>> = lane.addresses.iter().map(shards).collect::<Result<_, _>>()?;
        // Each epoch has its own number of shards. Where one has no address here, its member does not sign.
        if addresses.len() != network.members.len() || addresses.iter().any(Vec::is_empty) {
            return Err(PurseError::NoAddresses { server: node.url().into() });
        }
        Ok(LaneNow {
            epoch: lane.epoch,
            heights_left: lane.heights_left,
            halted: lane.halted,
            convicted: lane.convicted.into_iter().collect(),
            case_deposit: node.number("deposit of a case", &lane.case_deposit)?,
            addresses,
            tls: lane.tls,
            home_ports: u64::from(lane.home_ports.max(1)),
        })
    }

    /// The shards of a home.
    pub fn directory(&self, network: &LaneNetwork, home: HomeEpoch) -> LaneDirectory {
        let above = (home % self.home_ports) as u16;
        let at = |address: &SocketAddr| SocketAddr::new(address.ip(), address.port().saturating_add(above));
        let addresses = self.addresses.iter().map(|shards| shards.iter().map(at).collect()).collect();
        LaneDirectory { committee: network.committee(home), addresses, tls: self.tls }
    }
}
