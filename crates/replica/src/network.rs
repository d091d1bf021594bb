//! A network of validators as one of them sees it: the members, the common rules, and this validator's own settings.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use consensus::MEMBERS_MAX;
use consensus::{Chain, Index, PayloadCheck, Protocol, Rules, Setup};
use ledger::{BlockClock, Ledger, Limits, Member};
use primitives::{Digest, PublicKey, SecretKey, Signer};

use crate::ReplicaError;

/// Bytes that a sub-block may hold besides its transactions.
const SUB_BLOCK_OVERHEAD: usize = 64;
/// Maximum number of followers that a validator keeps a link to: those with the largest stakes.
const FOLLOWERS_MAX: usize = 32;
/// Bytes of a frame besides the sub-blocks in it.
const FRAME_OVERHEAD: usize = 1 << 20;
/// How long votes wait for each validator that they are sent to: five times the processor time of a frame at both of
/// its ends, so that frames of votes take at most about a fifth of a processor.
const GATHERING: Duration = Duration::from_micros(200);

/// Another validator or a follower: its key and its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    /// The key that its connections must show.
    pub key: PublicKey,
    /// Host and port (UDP); empty if unknown.
    pub address: String,
}

/// The genesis settings for Ethereum transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EthereumSection {
    /// The chain number, which each transaction names.
    pub chain: u64,
    /// Maximum gas that the Ethereum transactions of a sub-block declare together; zero if contracts are not
    /// executed.
    pub sub_block_gas: u64,
}

impl EthereumSection {
    /// The settings of a chain.
    pub fn of(chain: u64, limits: &Limits) -> EthereumSection {
        EthereumSection { chain, sub_block_gas: limits.sub_block_gas }
    }
}

/// The keys of a validator. Only with the first can an attacker make it lose its stake.
#[derive(Clone)]
pub struct OwnKeys {
    /// Signs in consensus, and identifies the validator. The signer may run in another process.
    pub votes: Arc<dyn Signer>,
    /// Authenticates its links.
    pub links: SecretKey,
    /// The key of the account that submits accusations and pays for them. Without it, the validator accuses nobody.
    pub account: Option<SecretKey>,
}

impl OwnKeys {
    /// The same key for everything.
    pub fn one(secret: SecretKey) -> OwnKeys {
        OwnKeys { votes: Arc::new(secret.clone()), links: secret.clone(), account: Some(secret) }
    }
}

/// What a node needs to take part in an epoch.
#[derive(Clone)]
pub struct Network {
    /// The epoch's validators.
    pub chain: Chain,
    /// The rules common to all validators.
    pub rules: Rules,
    /// The rules that the ledger follows in this epoch: no sub-block has an operation of later ones.
    pub ledger_rules: u32,
    /// The settings for Ethereum transactions of a sub-block.
    pub ethereum: EthereumSection,
    /// The index of this node.
    pub me: Index,
    /// The keys of this node.
    pub own: OwnKeys,
    /// Where to listen (UDP).
    pub listen: SocketAddr,
    /// All validators by index, then the followers: other stakers, up to a limit those with the largest stakes, and
    /// this node if it is not among these.
    pub peers: Vec<PeerAddress>,
    /// Maximum size of any committee, and so of the number of sub-blocks in a superblock.
    pub committee_max: usize,
    /// The unit of the round timers: about twice a round trip.
    pub unit: Duration,
    /// How long to wait for missing sub-blocks once enough have arrived.
    pub grace: Duration,
    /// The interval after which an empty sub-block is proposed.
    pub heartbeat: Duration,
    /// The least time between two heights, of clocks and of blocks; a transaction is proposed when it has been pending
    /// for this long.
    pub interval: Duration,
}

impl std::fmt::Debug for Network {
    /// Omits the keys.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (epoch, me, peers) = (self.chain.epoch, self.me, &self.peers);
        to.debug_struct("Network").field("epoch", &epoch).field("me", &me).field("peers", peers).finish_non_exhaustive()
    }
}

impl Network {
    /// The setup of the engine.
    pub(crate) fn setup(&self, check: PayloadCheck) -> Setup {
        let Network { chain, rules, me, own, .. } = self.clone();
        Setup { followers: self.peers.len() - chain.keys.len(), chain, rules, me, signer: own.votes, check }
    }

    /// How this network's blocks get their time.
    pub(crate) fn block_clock(&self) -> BlockClock {
        let step_ms = self.interval.as_millis() as u64;
        match self.rules.protocol {
            Protocol::Dbft => BlockClock::of_many(self.chain.committee().deliver, step_ms),
            Protocol::Tendermint => BlockClock::of_one_in_turn(step_ms),
        }
    }

    /// How long votes wait for others to travel with: about what sending a frame to every validator and receiving one
    /// from each costs, and at most a quarter of the grace period, which is about the longest delay of a message.
    pub(crate) fn gathering(&self) -> Duration {
        let members = self.chain.keys.len() as u32;
        (GATHERING * members).min(self.grace / 4)
    }

    /// Bytes of a sub-block that are left for its transactions.
    pub fn sub_block_room(&self) -> usize {
        self.rules.payload_bytes.saturating_sub(SUB_BLOCK_OVERHEAD)
    }

    /// Bytes of the longest frame that a correct validator sends.
    pub fn frame_bytes_max(&self) -> usize {
        self.superblock_bytes_max() + FRAME_OVERHEAD
    }

    /// The network in the epoch that decides a height, from a ledger that has applied the epoch's boundary. If the
    /// genesis has no terms of succession, the network stays as it is.
    ///
    /// # Errors
    /// [`ReplicaError::UnknownCommittee`] if the ledger has dropped the committee, or has not drawn it yet.
    pub fn at(&self, ledger: &Ledger, height: u64) -> Result<Network, ReplicaError> {
        let schedule = ledger.schedule();
        let ledger_rules = ledger.rules_at(height);
        if schedule.is_fixed() {
            return Ok(Network { ledger_rules, ..self.clone() });
        }
        let (epoch, applied) = (schedule.epoch_of(height), ledger.height());
        let members = ledger.committee(epoch).ok_or(ReplicaError::UnknownCommittee { epoch, height, applied })?;
        let registered = ledger.validators().registry.iter().filter(|one| one.member.stake > 0 && !one.excluded);
        let others = registered.map(|one| &one.member).filter(|one| members.iter().all(|member| member.key != one.key));
        let followers = largest(others.collect(), FOLLOWERS_MAX.min(MEMBERS_MAX.saturating_sub(members.len() + 1)));
        let mut peers: Vec<PeerAddress> = members.iter().chain(followers).map(|member| self.peer(member)).collect();
        let own = self.own.votes.public();
        if peers.iter().all(|peer| peer.key != own) {
            peers.push(PeerAddress { key: own, address: self.listen.to_string() });
        }
        let heights = schedule.first_height(epoch)..=schedule.last_height(epoch);
        let keys = members.iter().map(|member| member.key).collect();
        let chain = Chain { genesis: self.chain.genesis, epoch, heights, keys };
        let me = position(&peers, &own).expect("it is there");
        Ok(Network { chain, me, peers, ledger_rules, ..self.clone() })
    }

    /// The network in the next epoch, which begins at a height; `None` if this node does not follow the rules of that
    /// height. Then it stays in the epoch that is over: it reads on, and neither votes nor takes transactions.
    ///
    /// # Panics
    /// If the ledger has not applied the epoch before.
    pub fn next(&self, ledger: &Ledger, height: u64) -> Option<Network> {
        ledger.follows_at(height).then(|| self.at(ledger, height).expect("it is drawn"))
    }

    /// A member with its address: the ledger's, or the one known before.
    fn peer(&self, member: &Member) -> PeerAddress {
        let known = || position(&self.peers, &member.key).map(|index| self.peers[usize::from(index)].address.clone());
        let address = if member.address.is_empty() { known().unwrap_or_default() } else { member.address.clone() };
        PeerAddress { key: member.key, address }
    }

    /// Whether the same links serve both networks.
    pub fn has_the_links_of(&self, other: &Network) -> bool {
        let alike = |(a, b): (&PeerAddress, &PeerAddress)| a.key == b.key && a.address == b.address;
        self.me == other.me && self.peers.len() == other.peers.len() && self.peers.iter().zip(&other.peers).all(alike)
    }

    /// Maximum bytes of the sub-blocks of one superblock, in any epoch.
    pub fn superblock_bytes_max(&self) -> usize {
        self.rules.payload_bytes * self.committee_max
    }

    /// The value that all must share before they connect: the genesis digest, which covers validators and rules.
    pub fn digest(&self) -> Digest {
        self.chain.genesis
    }
}

/// The members with the largest stakes, the largest first, so that many small stakes crowd out nobody.
fn largest(mut members: Vec<&Member>, most: usize) -> Vec<&Member> {
    members.sort_unstable_by_key(|member| (std::cmp::Reverse(member.stake), member.account));
    members.truncate(most);
    members
}

fn position(peers: &[PeerAddress], key: &PublicKey) -> Option<Index> {
    peers.iter().position(|peer| peer.key == *key).map(|index| index as Index)
}

#[cfg(test)]
mod tests {
    use primitives::Address;

    use super::*;

    #[test]
    fn many_small_stakes_crowd_nobody_out() {
        let member = |number: u16, stake| {
            let [high, low] = number.to_be_bytes();
            let key = SecretKey::from_seed([low; 32]).public();
            let account = Address(std::array::from_fn(|at| if at == 0 { high } else { low }));
            Member { account, key, address: String::new(), stake }
        };
        let dust = (0..400).map(|number| member(number, 1));
        let all: Vec<Member> = dust.chain([member(1_000, 50), member(1_001, 70)]).collect();
        let kept = largest(all.iter().collect(), FOLLOWERS_MAX);
        assert_eq!(kept.len(), FOLLOWERS_MAX);
        assert_eq!([kept[0].stake, kept[1].stake, kept[2].stake], [70, 50, 1]);
    }
}
