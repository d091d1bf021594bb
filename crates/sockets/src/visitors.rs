//! The connections of a running socket, and whom its operator knows.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;

use crate::{Acquaintance, Entry, Networks, PlaceId, PlaceLimits, Places, read_proxy_header};

/// Whom the operator knows.
#[derive(Clone, Debug, Default)]
pub struct Acquaintances {
    /// Proxies that name their clients.
    pub proxies: Networks,
    /// Whether they do so by a PROXY header.
    pub proxy_protocol: bool,
    /// Networks whose connections are not displaced.
    pub known: Networks,
}

impl Acquaintances {
    /// Reads the settings `trusted_proxies`, `proxy_protocol` and `known`.
    ///
    /// # Errors
    /// The name of a setting, and the text in it that is no network.
    pub fn parse(
        trusted_proxies: &[String],
        proxy_protocol: bool,
        known: &[String],
    ) -> Result<Acquaintances, (&'static str, String)> {
        let read = |key, texts: &[String]| Networks::parse(texts).map_err(|text| (key, text));
        let proxies = read("trusted_proxies", trusted_proxies)?;
        Ok(Acquaintances { proxies, proxy_protocol, known: read("known", known)? })
    }

    fn standing(&self, address: IpAddr) -> Acquaintance {
        let is_known = self.known.contains(address) || self.proxies.contains(address);
        if is_known { Acquaintance::Known } else { Acquaintance::Stranger }
    }
}

/// The open connections.
struct Room {
    places: Places,
    /// Tells a connection that it is displaced.
    open: HashMap<PlaceId, watch::Sender<bool>>,
    begun: Instant,
}

impl Room {
    fn now_ms(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }
}

/// The connections of a socket; clones are the same.
#[derive(Clone)]
pub struct Visitors {
    room: Arc<Mutex<Room>>,
    known: Arc<Acquaintances>,
}

/// A connection; it has its place as long as this is held.
pub struct Visit {
    visitors: Visitors,
    place: PlaceId,
    address: IpAddr,
    displaced: watch::Receiver<bool>,
}

impl Visitors {
    /// A socket without connections.
    pub fn new(limits: PlaceLimits, known: Arc<Acquaintances>) -> Visitors {
        let room = Room { places: Places::new(limits), open: HashMap::new(), begun: Instant::now() };
        Visitors { room: Arc::new(Mutex::new(room)), known }
    }

    fn room(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a new connection a place; `None` if it must be closed. The connection that makes room for it is told.
    pub fn admit(&self, address: IpAddr) -> Option<Visit> {
        let address = address.to_canonical();
        let mut room = self.room();
        let now_ms = room.now_ms();
        let entry = room.places.enter(address, self.known.standing(address), now_ms);
        let Entry::Admitted { place, displaced } = entry else { return None };
        if let Some(displaced) = displaced.and_then(|place| room.open.remove(&place)) {
            displaced.send_replace(true);
        }
        let (sender, displaced) = watch::channel(false);
        room.open.insert(place, sender);
        Some(Visit { visitors: self.clone(), place, address, displaced })
    }

    /// Number of open connections.
    pub fn count(&self) -> usize {
        self.room().places.len()
    }
}

impl Visit {
    /// The number of the connection, unique at its socket.
    pub fn place(&self) -> PlaceId {
        self.place
    }

    /// The other end, or the client that a PROXY header names.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Who is at the other end, if a trusted proxy sends PROXY headers there: from then on the client has a place, and
    /// its proxy none. `None` if the client gets none, or no header comes in time.
    pub async fn of_client(self, stream: &mut (impl AsyncRead + Unpin), patience: Duration) -> Option<Visit> {
        let visitors = self.visitors.clone();
        if !visitors.known.proxy_protocol || !visitors.known.proxies.contains(self.address) {
            return Some(self);
        }
        let Ok(Some(client)) = tokio::time::timeout(patience, read_client(stream, self.address)).await else {
            tracing::warn!(proxy = %self.address, "a connection of a trusted proxy has no PROXY header");
            return None;
        };
        drop(self);
        visitors.admit(client)
    }

    /// A request was served, or a message delivered.
    pub fn progress(&self) {
        let mut room = self.visitors.room();
        let now_ms = room.now_ms();
        room.places.progress(self.place, now_ms);
    }

    /// Somebody paid for what it asked, or showed a token.
    pub fn recognize(&self) {
        self.visitors.room().places.recognize(self.place);
    }

    /// Ends when the connection has to make room for another one.
    pub async fn displaced(&self) {
        let mut displaced = self.displaced.clone();
        // The sender goes when the place does.
        drop(displaced.wait_for(|is_displaced| *is_displaced).await);
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let mut room = self.visitors.room();
        room.places.leave(self.place);
        room.open.remove(&self.place);
    }
}

/// The client that a proxy's header names. Nothing behind the header is read.
async fn read_client(stream: &mut (impl AsyncRead + Unpin), proxy: IpAddr) -> Option<IpAddr> {
    let mut bytes = Vec::new();
    loop {
        match read_proxy_header(&bytes) {
            Ok(Some((length, client))) if length == bytes.len() => return Some(client.unwrap_or(proxy)),
            Ok(None) => bytes.push(stream.read_u8().await.ok()?),
            _ => return None,
        }
    }
}
