//! Networks that the operator lists, and the address of a client behind a proxy that is trusted.
//!
//! A proxy says who its client is in the header `X-Forwarded-For`, or in a PROXY protocol header (versions 1 and 2)
//! before everything else. Neither is read from anybody who is not listed: a client could name any address.

use std::net::IpAddr;

use ipnet::IpNet;
use ppp::{HeaderResult, PartialResult, v1, v2};

/// The longest PROXY header that is read: with IPv6 addresses that of version 2 has 52 bytes and any extensions.
const HEADER_MAX: usize = 536;
/// The longest header of version 1.
const V1_MAX: usize = 107;
const V1_BEGINS: &[u8] = b"PROXY ";

/// Why a header of the PROXY protocol is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// The bytes are none.
    #[error("the connection does not begin with a PROXY header; switch it on at the proxy, or off here")]
    Malformed,
    /// It is longer than any that is read.
    #[error("the PROXY header is longer than {HEADER_MAX} bytes")]
    TooLong,
}

/// Networks that the operator lists.
#[derive(Clone, Debug, Default)]
pub struct Networks(Vec<IpNet>);

impl Networks {
    /// Reads networks such as `10.0.0.0/8`, or single addresses.
    ///
    /// # Errors
    /// The first text that is neither.
    pub fn parse(texts: &[String]) -> Result<Networks, String> {
        let network = |text: &String| {
            text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).map_err(|_| text.clone())
        };
        texts.iter().map(network).collect::<Result<_, _>>().map(Networks)
    }

    /// These, and single addresses.
    #[must_use]
    pub fn with(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Networks {
        self.0.extend(addresses.into_iter().map(|address| IpNet::from(address.to_canonical())));
        self
    }

    /// Whether the address is in one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client of a request that came through proxies of these networks, from the values of `X-Forwarded-For`: of
    /// the addresses that the proxies appended, the last one that is not a trusted proxy itself. What stands before it
    /// came from that client.
    pub fn client<'v>(&self, peer: IpAddr, forwarded: impl DoubleEndedIterator<Item = &'v str>) -> IpAddr {
        if !self.contains(peer) {
            return peer.to_canonical();
        }
        let mut client = peer.to_canonical();
        for hop in forwarded.rev().flat_map(|value| value.rsplit(',')) {
            let Some(address) = address_of_hop(hop.trim()) else { break };
            client = address;
            if !self.contains(address) {
                break;
            }
        }
        client
    }
}

/// Reads a PROXY header at the start of `bytes`: its length and the client's address, or no address if the proxy
/// speaks for itself. `None` if more bytes are needed.
///
/// # Errors
/// [`ProxyError`] if there is none.
pub fn read_proxy_header(bytes: &[u8]) -> Result<Option<(usize, Option<IpAddr>)>, ProxyError> {
    if is_begun_v1(bytes) {
        return Ok(None);
    }
    let read = HeaderResult::parse(&bytes[..bytes.len().min(HEADER_MAX)]);
    if read.is_incomplete() {
        return if bytes.len() < HEADER_MAX { Ok(None) } else { Err(ProxyError::TooLong) };
    }
    match read {
        HeaderResult::V1(Ok(header)) => Ok(Some((header.header.len(), source_of_v1(&header.addresses)))),
        HeaderResult::V2(Ok(header)) => Ok(Some((header.len(), source_of_v2(&header)))),
        HeaderResult::V1(Err(_)) | HeaderResult::V2(Err(_)) => Err(ProxyError::Malformed),
    }
}

/// Whether this may become a line of version 1.
fn is_begun_v1(bytes: &[u8]) -> bool {
    let common = bytes.len().min(V1_BEGINS.len());
    common > 0 && bytes[..common] == V1_BEGINS[..common] && bytes.len() < V1_MAX && !bytes.contains(&b'\n')
}

/// An address as proxies write it: alone, with a port, or in brackets.
fn address_of_hop(hop: &str) -> Option<IpAddr> {
    let alone = hop.parse().ok();
    let with_port = || hop.parse::<std::net::SocketAddr>().ok().map(|address| address.ip());
    let in_brackets = || hop.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    alone.or_else(with_port).or_else(in_brackets).map(|address: IpAddr| address.to_canonical())
}

fn source_of_v1(addresses: &v1::Addresses) -> Option<IpAddr> {
    match addresses {
        v1::Addresses::Tcp4(addresses) => Some(addresses.source_address.into()),
        v1::Addresses::Tcp6(addresses) => Some(IpAddr::from(addresses.source_address).to_canonical()),
        v1::Addresses::Unknown => None,
    }
}

/// A connection of the proxy itself (*LOCAL*, for its health checks) has no other source.
fn source_of_v2(header: &v2::Header) -> Option<IpAddr> {
    match (header.command, &header.addresses) {
        (v2::Command::Proxy, v2::Addresses::IPv4(addresses)) => Some(addresses.source_address.into()),
        (v2::Command::Proxy, v2::Addresses::IPv6(addresses)) => {
            Some(IpAddr::from(addresses.source_address).to_canonical())
        }
        _ => None,
    }
}
