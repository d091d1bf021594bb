//! A network of validators as one of them sees it: who they are, what all do alike, and what this one may set for itself.

use std::net::SocketAddr;
use std::time::Duration;

use consensus::{Chain, Index, Rules, Setup};
use primitives::{Digest, SecretKey};

use crate::transport::{Peer, Settings};

/// Bytes of bulk that may wait for each peer.
const BULK_BYTES_WAITING: usize = 64 << 20;
/// What a frame with sub-blocks holds besides them.
const FRAME_OVERHEAD: usize = 1 << 20;

/// What a node needs to take part.
#[derive(Clone)]
pub struct Network {
    /// Who the validators are.
    pub chain: Chain,
    /// What all of them do alike.
    pub rules: Rules,
    /// The own index.
    pub me: Index,
    /// The own key.
    pub secret: SecretKey,
    /// Where to listen (UDP).
    pub listen: SocketAddr,
    /// All validators, by index.
    pub peers: Vec<Peer>,
    /// The unit of the timers of rounds: about twice a round trip.
    pub unit: Duration,
    /// How long an absent sub-block is waited for once enough are in.
    pub grace: Duration,
    /// An empty sub-block is proposed after so long without any.
    pub heartbeat: Duration,
}

impl Network {
    /// What the engine is made of.
    pub(crate) fn setup(&self, check: fn(&[u8]) -> Option<usize>) -> Setup {
        let Network { chain, rules, me, secret, .. } = self.clone();
        Setup { followers: self.peers.len() - chain.keys.len(), chain, rules, me, secret, check }
    }

    /// What the transport is made of.
    pub fn transport(&self) -> Settings {
        Settings {
            network: self.digest(),
            me: self.me,
            listen: self.listen,
            peers: self.peers.clone(),
            secret: self.secret.clone(),
            frame_bytes_max: self.rules.payload_bytes * self.peers.len() + FRAME_OVERHEAD,
            bulk_bytes_waiting_max: BULK_BYTES_WAITING,
        }
    }

    /// What all must agree on before they talk: the genesis, which names validators and rules.
    fn digest(&self) -> Digest {
        self.chain.genesis
    }
}
