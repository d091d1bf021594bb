//! The relay to shards of the payment lane, for clients that have only HTTP: bytes in, bytes out.
//!
//! A browser cannot open a connection with TLS and raw keys, as shards want it. So the node carries one request to one
//! shard, and what the shard replies back. It reads nothing but lengths. Replies authenticate themselves, so what a
//! relay changes is no answer. One that withholds is told by the missing answers: another node relays as well.
//!
//! # What it cannot be used for
//!
//! - *To reach others.* It connects only to the shards that the operator of this node named.
//! - *To amplify.* One request is one connection, and what comes back goes to who asked, at most 16 KiB.
//! - *To crowd out.* Requests under way are divided among addresses, and each address has a rate. A shard that does not
//!   answer holds its request for seconds, and only the share of the address that asked.
//!
//! A shard sees this node's address. It charges what proves false to an address, so the rate of one client here is far
//! below what a shard allows an address.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{Extension, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use primitives::PublicKey;
use serde::Deserialize;
use sockets::{BudgetLimits, Budgets, Client, Shares, raw_keys};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::Api;
use crate::client::AskedBy;
use crate::door::Visitor;
use crate::json::{self, ErrorBody};
use crate::kit::Failure;

/// The name of the lane's protocol in the handshake.
const PROTOCOL: &[u8] = b"walras-lane";
/// Bytes of the longest frame that a shard takes.
const REQUEST_BYTES_MAX: usize = 1 << 20;
/// Bytes of a reply's body, as its clients bound it.
const REPLY_BYTES_MAX: u32 = 16 << 10;
/// How long a connection may take to open, and then a shard to reply.
const CONNECT: Duration = Duration::from_secs(3);
const REPLY: Duration = Duration::from_secs(5);
/// Requests under way, of all addresses.
const AT_ONCE: u64 = 256;
/// Requests of one client.
const RATE: BudgetLimits = BudgetLimits { burst: 512, per_second: 64, clients: 4_096 };

/// What relayed requests share.
#[derive(Clone)]
pub(super) struct Relayed {
    under_way: Shares,
    rates: Arc<Mutex<Budgets<Client>>>,
    begun: Instant,
}

impl Default for Relayed {
    fn default() -> Relayed {
        let rates = Arc::new(Mutex::new(Budgets::new(RATE)));
        Relayed { under_way: Shares::new(AT_ONCE), rates, begun: Instant::now() }
    }
}

impl Relayed {
    /// Charges a request to its client, unless the client has none left.
    fn charge(&self, client: Client) -> Result<(), Failure> {
        let now_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let busy = |ms: u64| {
            let message = format!("this address relays too many requests to the payment lane; try again in {ms} ms");
            Failure::busy("too_many_requests", &message)
        };
        rates.left(now_ms, &client).map_err(busy)?;
        rates.charge(now_ms, client, 1);
        Ok(())
    }
}

/// A shard of the payment lane.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct AskedShard {
    home: u64,
    member: u32,
    shard: u32,
}

/// Where a shard listens, and its key if it speaks TLS.
struct Place {
    address: SocketAddr,
    key: Option<PublicKey>,
}

/// Relays a request to a shard of the payment lane, and its reply, both as docs/lane-specification.md has them without
/// the frame. The node reads neither.
#[utoipa::path(post, path = "/v1/lane/relay",
    request_body(content = String, content_type = "application/octet-stream", description = "the body of a request"),
    params(("home" = u64, Query, description = "the home of the outputs that it is about"),
        ("member" = u32, Query), ("shard" = u32, Query, description = "the member's shard for their owner")),
    responses((status = 200, description = "the body of the reply", content_type = "application/octet-stream"),
        (status = 400, body = ErrorBody), (status = 404, body = ErrorBody), (status = 429, body = ErrorBody),
        (status = 502, body = ErrorBody)))]
pub(super) async fn relay(
    State(api): State<Api>,
    AskedBy(client): AskedBy,
    visitor: Option<Extension<Visitor>>,
    Query(asked): Query<AskedShard>,
    body: Bytes,
) -> Result<Response, Failure> {
    if api.is_draining() {
        return Err(Failure::draining());
    }
    if body.is_empty() || body.len() > REQUEST_BYTES_MAX {
        let message = format!("a request to a shard has 1 to {REQUEST_BYTES_MAX} bytes; this has {}", body.len());
        return Err(Failure::malformed(message));
    }
    let place = place_of(&api, asked)?;
    api.relayed.charge(client)?;
    let address = visitor.map_or(IpAddr::from([127, 0, 0, 1]), |of| of.0.address);
    let Some(_share) = api.relayed.under_way.take(address, 1) else {
        let message = "too many requests to the payment lane at once, of all or of this address; try again shortly";
        return Err(Failure::busy("too_many_requests", message));
    };
    let AskedShard { member, shard, .. } = asked;
    let reply = carried(&place, &body).await.map_err(|error| {
        let message = format!(
            "shard {shard} of member {member} does not answer this node ({error}); ask the other members, or relay \
             through another node"
        );
        Failure::new(StatusCode::BAD_GATEWAY, "no_shard", message)
    })?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], reply).into_response())
}

/// The shard's place, as `/v1/lane` tells it.
fn place_of(api: &Api, AskedShard { home, member, shard }: AskedShard) -> Result<Place, Failure> {
    let outline = api.published().views().outline().clone();
    let lane = json::lane(&outline, &api.backend.lane_addresses(), api.backend.lane_has_tls());
    let lane = lane.ok_or_else(|| Failure::not_found("this chain has no payment lane"))?;
    let unknown = || {
        Failure::not_found(format!(
            "this node knows no shard {shard} of member {member} in lane epoch {home}; see `addresses` and \
             `registrations` of /v1/lane, or relay through the node of a member"
        ))
    };
    let (Ok(member), Ok(shard)) = (u8::try_from(member), u16::try_from(shard)) else { return Err(unknown()) };
    let key = api.backend.lane_key(home, member, shard).ok_or_else(unknown)?;
    let address = lane.addresses.get(usize::from(member)).and_then(|shards| shards.get(usize::from(shard)));
    let mut address: SocketAddr = address.and_then(|text| text.parse().ok()).ok_or_else(unknown)?;
    let above = (home % u64::from(lane.home_ports.max(1))) as u16;
    address.set_port(address.port().checked_add(above).ok_or_else(unknown)?);
    Ok(Place { address, key: lane.tls.then_some(key) })
}

/// The reply of a shard to one request.
async fn carried(place: &Place, request: &[u8]) -> io::Result<Vec<u8>> {
    let late = |_| io::Error::from(ErrorKind::TimedOut);
    let stream = timeout(CONNECT, TcpStream::connect(place.address)).await.map_err(late)??;
    stream.set_nodelay(true)?;
    let Some(key) = place.key else { return timeout(REPLY, asked(stream, request)).await.map_err(late)? };
    let config = raw_keys::client(None, key, PROTOCOL).map_err(io::Error::other)?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(raw_keys::server_name(), stream);
    let secured = timeout(CONNECT, connecting).await.map_err(late)??;
    timeout(REPLY, asked(secured, request)).await.map_err(late)?
}

/// Sends one frame and reads one: length of what follows, number, body.
async fn asked(mut shard: impl AsyncRead + AsyncWrite + Unpin, request: &[u8]) -> io::Result<Vec<u8>> {
    let length = (request.len() as u32).saturating_add(4);
    shard.write_all(&[&length.to_le_bytes()[..], &[0; 4], request].concat()).await?;
    shard.flush().await?;
    let mut head = [0; 8];
    shard.read_exact(&mut head).await?;
    let length = u32::from_le_bytes(head[..4].try_into().expect("4 bytes"));
    let body = length.checked_sub(4).filter(|body| *body <= REPLY_BYTES_MAX);
    let body = body.ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "its reply has an impossible length"))?;
    let mut reply = vec![0; body as usize];
    shard.read_exact(&mut reply).await?;
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a shard that writes these bytes in parts is understood to reply, and what it was sent.
    async fn replied(parts: &[&[u8]]) -> (io::Result<Vec<u8>>, Vec<u8>) {
        let (ours, mut theirs) = tokio::io::duplex(64 << 10);
        let parts: Vec<Vec<u8>> = parts.iter().map(|part| part.to_vec()).collect();
        let shard = tokio::spawn(async move {
            let mut sent = [0; 11];
            theirs.read_exact(&mut sent).await.expect("a frame of three bytes");
            for part in parts {
                theirs.write_all(&part).await.expect("written");
                tokio::task::yield_now().await;
            }
            sent.to_vec()
        });
        let reply = asked(ours, b"ask").await;
        (reply, shard.await.expect("it ends"))
    }

    #[tokio::test]
    async fn a_relay_carries_one_frame_each_way_and_nothing_else() {
        let (reply, sent) = replied(&[&[6, 0], &[0, 0, 9, 9, 9, 9, 1], &[2, 77]]).await;
        assert_eq!((reply.expect("whole"), sent), (vec![1, 2], [&[7, 0, 0, 0, 0, 0, 0, 0], &b"ask"[..]].concat()));
        assert_eq!(replied(&[&[4, 0, 0, 0, 0, 0, 0, 0]]).await.0.expect("empty"), Vec::<u8>::new());
    }

    #[tokio::test]
    async fn a_reply_of_impossible_length_or_cut_short_is_none_and_takes_no_memory() {
        for wrong in [&[3, 0, 0, 0, 0, 0, 0, 0][..], &[5, 64, 0, 0, 0, 0, 0, 0], &[255; 8]] {
            let error = replied(&[wrong]).await.0.expect_err("impossible");
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{wrong:?}");
        }
        let cut = replied(&[&[9, 0, 0, 0, 0, 0, 0, 0, 1]]).await.0.expect_err("cut short");
        assert_eq!(cut.kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_client_that_floods_the_relay_is_told_to_wait_and_others_are_not() {
        let (relayed, flood) = (Relayed::default(), Client::default());
        let taken = (0..10_000).take_while(|_| relayed.charge(flood).is_ok()).count() as u64;
        assert!((RATE.burst..2 * RATE.burst).contains(&taken), "{taken}");
        let told = relayed.charge(flood).expect_err("over its rate");
        assert!(told.0 == StatusCode::TOO_MANY_REQUESTS && told.1.message.contains("try again in"));
        let other = Client::at("198.51.100.7".parse().expect("an address"));
        assert!(relayed.charge(other).is_ok());
    }
}
