//! `--base-port`: the ports of a network whose validators all run on one machine.

use anyhow::ensure;
use node::HOME_PORTS;

/// Ports of a venue: for orders, for OUCH, and for its feed.
const VENUE_PORTS: u16 = 3;

/// The first validator's port of each kind; those of the others follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    pub http: u16,
    /// Of Ethereum's JSON-RPC.
    pub ethereum: u16,
    /// Of the other validators.
    pub network: u16,
    /// Of a venue; `None` leaves those of the configuration, which are the same in every home.
    venue: Option<u16>,
    /// Where the first shard of the payment lane listens. Each takes [`HOME_PORTS`].
    pub lane: u16,
    /// Where the first shard that runs apart listens for its node.
    pub link: u16,
}

impl Default for Ports {
    fn default() -> Ports {
        Ports { http: 8080, ethereum: 8545, network: 9100, venue: None, lane: 7100, link: 6800 }
    }
}

impl Ports {
    /// Consecutive ports for so many validators, each with so many shards of a payment lane.
    ///
    /// # Errors
    /// If they do not end at 65,535 or below.
    pub fn counted_from(base: u16, validators: u8, shards: u16) -> anyhow::Result<Ports> {
        let validators = u32::from(validators);
        let shards = validators * u32::from(shards);
        let venues = validators * u32::from(VENUE_PORTS);
        let counts = [validators, validators, validators, venues, shards * u32::from(HOME_PORTS), shards];
        let taken: u32 = counts.iter().sum();
        let most = (u32::from(u16::MAX) + 1).saturating_sub(taken);
        ensure!(
            u32::from(base) <= most,
            "--base-port {base}: {taken} ports from there on go beyond 65535; give a smaller one"
        );
        let mut next = u32::from(base);
        // A kind that takes no ports may begin behind the last one; nothing listens there.
        let [http, ethereum, network, venue, lane, link] = counts.map(|count| {
            let first = next;
            next += count;
            first as u16
        });
        Ok(Ports { http, ethereum, network, venue: Some(venue), lane, link })
    }

    /// The ports of a validator's venue, if they are not those of the configuration.
    pub fn venue(&self, index: u8) -> Option<[u16; VENUE_PORTS as usize]> {
        let first = self.venue? + VENUE_PORTS * u16::from(index);
        Some([first, first + 1, first + 2])
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ports_follow_each_other_and_no_two_are_the_same() {
        let (validators, shards) = (4, 2);
        let ports = Ports::counted_from(20_000, validators, shards).expect("room");
        let mut all = Vec::new();
        for index in 0..validators {
            let at = u16::from(index);
            all.extend([ports.http + at, ports.ethereum + at, ports.network + at]);
            all.extend(ports.venue(index).expect("given"));
            for shard in (0..shards).map(|shard| at * shards + shard) {
                all.extend((0..HOME_PORTS).map(|port| ports.lane + shard * HOME_PORTS + port));
                all.push(ports.link + shard);
            }
        }
        let distinct: BTreeSet<u16> = all.iter().copied().collect();
        assert_eq!((distinct.len(), all.len()), (96, 96));
        assert_eq!((distinct.first(), distinct.last()), (Some(&20_000), Some(&20_095)));
    }

    #[test]
    fn the_last_port_is_used_and_none_beyond() {
        assert_eq!(Ports::counted_from(65_512, 4, 0).expect("room").venue(3), Some([65_533, 65_534, 65_535]));
        let error = Ports::counted_from(65_513, 4, 0).expect_err("one too many").to_string();
        assert!(error.contains("24 ports from there on go beyond 65535"), "{error}");
        assert!(Ports::counted_from(1, u8::MAX, u16::MAX).is_err());
        assert_eq!(Ports::default().venue(0), None);
    }
}
