//! The messages of a session, and who may ask for them again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use matching::Phase;
use primitives::venue::{MarketId, VenueSide};
use protocols::itch::{
    Add, AuctionCollar, Cancelled, CrossTrade, Delete, Executed, ExecutedAt, ItchBody, ItchHeader, ItchMessage,
    Replaced, StockDirectory, SystemEvent, TradingAction,
};
use protocols::mold::{MoldPacket, MoldRequest, MoldSession};
use store::Disk;
use tokio::sync::Notify;
use venue::{MarketEvent, MarketImage, VenueRoot};

use crate::events::StepEvents;
use crate::ouch::{DAY_MS, session_name, symbol_of};

/// Messages that are kept for the rewinder.
const KEPT: usize = 1 << 18;
/// The most bytes of a packet: they fit into a frame of every network on the way.
const PACKET_BYTES: usize = 1_200;
/// Addresses that may ask the rewinder, and for how long after a snapshot.
const SUBSCRIBERS: usize = 1_024;
const SUBSCRIBED_MS: u64 = 3_600_000;
/// Packets that the rewinder sends to an address in a second.
const PACKETS_PER_SECOND: u32 = 1_000;

/// An order that is shown.
#[derive(Clone, Copy)]
struct Shown {
    tick: u32,
    lots: u32,
}

/// The session that is told.
struct Session {
    name: MoldSession,
    /// The number of the first message that is kept.
    first: u64,
    messages: VecDeque<Vec<u8>>,
    locates: BTreeMap<MarketId, u16>,
    shown: HashMap<u64, Shown>,
    /// The last trade that was told.
    trade: Option<u64>,
}

/// An address that took a snapshot.
struct Subscriber {
    until_ms: u64,
    /// The second of its last request, and its packets in it.
    second: u64,
    packets: u32,
}

#[derive(Default)]
struct Feed {
    session: Option<Session>,
    /// The last session, and the number after its last message.
    ended: Option<(MoldSession, u64)>,
    subscribers: HashMap<IpAddr, Subscriber>,
}

/// The feed.
#[derive(Default)]
pub(crate) struct FeedHub {
    feed: Mutex<Feed>,
    /// There is something new.
    pub news: Notify,
    /// Whether anybody is to be told.
    is_on: std::sync::atomic::AtomicBool,
}

/// A packet to send, and the number after its messages.
pub(crate) struct NextPacket {
    pub bytes: Vec<u8>,
    pub session: MoldSession,
    pub next: u64,
}

impl Session {
    fn new(name: MoldSession) -> Session {
        Session {
            name,
            first: 1,
            messages: VecDeque::new(),
            locates: BTreeMap::new(),
            shown: HashMap::new(),
            trade: None,
        }
    }

    fn next(&self) -> u64 {
        self.first + self.messages.len() as u64
    }

    fn put(&mut self, message: Vec<u8>) {
        self.messages.push_back(message);
        if self.messages.len() > KEPT {
            self.messages.pop_front();
            self.first += 1;
        }
    }

    fn locate(&mut self, market: MarketId) -> u16 {
        let next = (self.locates.len() + 1).min(usize::from(u16::MAX)) as u16;
        *self.locates.entry(market).or_insert(next)
    }

    /// The messages that build a market as it stands.
    fn build(&mut self, market: MarketId, image: &MarketImage, now_ms: u64) -> Vec<Vec<u8>> {
        let locate = self.locate(market);
        let orders = image.orders.iter().map(|of| added(market, of.id, of.side, of.tick, of.lots));
        let bodies = [directory(market), phase(market, image.phase)].into_iter().chain(orders);
        bodies.map(|body| encoded(locate, now_ms, body)).collect()
    }

    /// Begins to tell a market.
    fn begin(&mut self, market: MarketId, image: &MarketImage, now_ms: u64) {
        let messages = self.build(market, image, now_ms);
        self.shown.extend(image.orders.iter().map(|of| (of.id, Shown { tick: of.tick, lots: of.lots })));
        messages.into_iter().for_each(|message| self.put(message));
    }

    fn tell(&mut self, market: MarketId, event: &MarketEvent, now_ms: u64) {
        let is_new = !self.locates.contains_key(&market);
        let locate = self.locate(market);
        if is_new {
            self.put(encoded(locate, now_ms, directory(market)));
        }
        if let Some(body) = self.body(market, event) {
            self.put(encoded(locate, now_ms, body));
        }
    }

    /// What an event is in ITCH; nothing where ITCH says it already.
    fn body(&mut self, market: MarketId, event: &MarketEvent) -> Option<ItchBody> {
        let stock = symbol_of(market);
        Some(match *event {
            MarketEvent::Added { id, side, tick, lots } => {
                self.shown.insert(id, Shown { tick, lots });
                added(market, id, side, tick, lots)
            }
            MarketEvent::Executed { id, lots, tick, trade } => self.executed(id, lots, tick, trade)?,
            MarketEvent::Reduced { id, lots } => {
                self.shown.get_mut(&id)?.lots -= lots.min(self.shown.get(&id)?.lots);
                ItchBody::Cancelled(Cancelled { order: id, shares: lots })
            }
            MarketEvent::Deleted { id } => {
                // An order that has executed wholly is gone already.
                self.shown.remove(&id)?;
                ItchBody::Delete(Delete { order: id })
            }
            MarketEvent::Renamed { id, to, lots } => {
                let Shown { tick, .. } = self.shown.remove(&id)?;
                self.shown.insert(to, Shown { tick, lots });
                ItchBody::Replaced(Replaced { before: id, order: to, shares: lots, price: tick })
            }
            MarketEvent::Phase(of) => phase(market, of),
            MarketEvent::Auction { tick, lots } => ItchBody::CrossTrade(CrossTrade {
                shares: lots,
                stock,
                price: tick.unwrap_or(0),
                matched: self.trade.unwrap_or(0),
                cross: b'O',
            }),
            MarketEvent::Collar { low, high } => {
                let (reference, extension) = (0, 0);
                ItchBody::AuctionCollar(AuctionCollar { stock, reference, upper: high, lower: low, extension })
            }
        })
    }

    fn executed(&mut self, id: u64, lots: u32, tick: u32, trade: u64) -> Option<ItchBody> {
        let shown = self.shown.get_mut(&id)?;
        shown.lots = shown.lots.saturating_sub(lots);
        let Shown { tick: limit, lots: left } = *shown;
        if left == 0 {
            self.shown.remove(&id);
        }
        // Trades are numbered: an auction tells one for both of its orders.
        let is_again = self.trade.is_some_and(|last| last >= trade);
        self.trade = Some(self.trade.map_or(trade, |last| last.max(trade)));
        let (order, shares, matched) = (id, lots, trade);
        Some(match limit == tick && !is_again {
            true => ItchBody::Executed(Executed { order, shares, matched }),
            false => {
                let printable = if is_again { b'N' } else { b'Y' };
                ItchBody::ExecutedAt(ExecutedAt { order, shares, matched, printable, price: tick })
            }
        })
    }

    /// A packet of messages from a number on, at most so many.
    fn packet(&self, from: u64, most: usize) -> NextPacket {
        let at = usize::try_from(from.saturating_sub(self.first)).unwrap_or(usize::MAX);
        let (mut bytes, mut messages) = (protocols::mold::HEADER, Vec::new());
        for message in self.messages.iter().skip(at).take(most) {
            bytes += 2 + message.len();
            if bytes > PACKET_BYTES {
                break;
            }
            messages.push(&message[..]);
        }
        let next = from + messages.len() as u64;
        let packet = MoldPacket { session: self.name, first: from, messages, is_end: false };
        let bytes = packet.encode().expect("a packet has fewer messages than bytes, and they are short");
        NextPacket { bytes, session: self.name, next }
    }
}

impl FeedHub {
    fn feed(&self) -> MutexGuard<'_, Feed> {
        self.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody is to be told.
    pub fn turn_on(&self) {
        self.is_on.store(true, std::sync::atomic::Ordering::Relaxed);
    }

    fn is_on(&self) -> bool {
        self.is_on.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Begins a session with the books of a root.
    pub fn begin<D: Disk>(&self, root: &VenueRoot<D>, markets: impl Iterator<Item = MarketId>, now_ms: u64) {
        if !self.is_on() {
            return;
        }
        let mut session = Session::new(session_name((now_ms / DAY_MS) as u16, root.settings().incarnation, now_ms));
        session.put(encoded(0, now_ms, ItchBody::SystemEvent(SystemEvent { event: b'O' })));
        for market in markets {
            if let Some(image) = root.image(market) {
                session.begin(market, &image, now_ms);
            }
        }
        self.feed().session = Some(session);
        self.news.notify_waiters();
    }

    /// Ends the session.
    pub fn end(&self) {
        let mut feed = self.feed();
        if let Some(session) = feed.session.take() {
            feed.ended = Some((session.name, session.next()));
            self.news.notify_waiters();
        }
    }

    /// Tells what a step told.
    pub fn tell(&self, events: &StepEvents, now_ms: u64) {
        if events.market.is_empty() || !self.is_on() {
            return;
        }
        if let Some(session) = &mut self.feed().session {
            events.market.iter().for_each(|(market, _, event)| session.tell(*market, event, now_ms));
            self.news.notify_waiters();
        }
    }

    /// The messages that build all books, and the number of the feed's next one.
    pub fn snapshot<D: Disk>(&self, root: &VenueRoot<D>, now_ms: u64) -> Option<(MoldSession, Vec<Vec<u8>>, u64)> {
        let mut feed = self.feed();
        let session = feed.session.as_mut()?;
        let markets: Vec<MarketId> = session.locates.keys().copied().collect();
        let images = markets.into_iter().filter_map(|market| Some((market, root.image(market)?)));
        let messages = images.flat_map(|(market, image)| session.build(market, &image, now_ms)).collect();
        Some((session.name, messages, session.next()))
    }

    /// The next packet for readers that have what is before a number of a session; a heartbeat if they have it all.
    /// The end of a session is told while there is no other one.
    pub(crate) fn next_packet(&self, (of, from): (MoldSession, u64)) -> Option<NextPacket> {
        let feed = self.feed();
        match (&feed.session, feed.ended) {
            (Some(session), _) => {
                // What is forgotten is lost: readers find the gap.
                let from = if of == session.name { from.max(session.first) } else { session.first };
                Some(session.packet(from, usize::from(u16::MAX) - 1))
            }
            (None, Some((session, next))) => {
                let packet = MoldPacket { session, first: next, messages: Vec::new(), is_end: true };
                Some(NextPacket { bytes: packet.encode()?, session, next })
            }
            (None, None) => None,
        }
    }

    /// An address took a snapshot: it may ask the rewinder.
    pub(crate) fn subscribe(&self, address: IpAddr, now_ms: u64) {
        let mut feed = self.feed();
        feed.subscribers.retain(|_, of| of.until_ms > now_ms);
        if feed.subscribers.len() < SUBSCRIBERS || feed.subscribers.contains_key(&address) {
            let of = feed.subscribers.entry(address).or_insert(Subscriber { until_ms: 0, second: 0, packets: 0 });
            of.until_ms = now_ms.saturating_add(SUBSCRIBED_MS);
        }
    }

    /// The answer to a request; `None` if its address may not ask, or for what is not there.
    pub(crate) fn rewind(&self, address: IpAddr, bytes: &[u8], now_ms: u64) -> Option<Vec<u8>> {
        let MoldRequest { session: name, first, count } = MoldRequest::decode(bytes).ok()?;
        let mut feed = self.feed();
        let of = feed.subscribers.get_mut(&address).filter(|of| of.until_ms > now_ms)?;
        let second = now_ms / 1_000;
        if of.second != second {
            (of.second, of.packets) = (second, 0);
        }
        of.packets += 1;
        if of.packets > PACKETS_PER_SECOND {
            return None;
        }
        let session = feed.session.as_ref().filter(|session| session.name == name)?;
        let is_kept = (session.first..session.next()).contains(&first) && count > 0;
        is_kept.then(|| session.packet(first, usize::from(count)).bytes)
    }
}

fn encoded(locate: u16, now_ms: u64, body: ItchBody) -> Vec<u8> {
    let header = ItchHeader { locate, tracking: 0, nanoseconds: now_ms % DAY_MS * 1_000_000 };
    let mut bytes = Vec::new();
    ItchMessage { header, body }.encode(&mut bytes).expect("a day has fewer nanoseconds than 48 bits");
    bytes
}

fn added(market: MarketId, order: u64, side: VenueSide, price: u32, shares: u32) -> ItchBody {
    let side = if side == VenueSide::Buy { b'B' } else { b'S' };
    ItchBody::Add(Add { order, side, shares, stock: symbol_of(market), price })
}

fn phase(market: MarketId, phase: Phase) -> ItchBody {
    let state = match phase {
        Phase::Continuous => b'T',
        Phase::Call => b'Q',
        Phase::Halted => b'H',
    };
    ItchBody::TradingAction(TradingAction { stock: symbol_of(market), state, reserved: b' ', reason: [b' '; 4] })
}

fn directory(market: MarketId) -> ItchBody {
    ItchBody::StockDirectory(StockDirectory {
        stock: symbol_of(market),
        market_category: b' ',
        financial_status: b' ',
        round_lot_size: 1,
        round_lots_only: b'N',
        issue_classification: b'C',
        issue_subtype: *b"Z ",
        authenticity: b'P',
        short_sale_threshold: b' ',
        ipo: b' ',
        luld_tier: b' ',
        etp: b' ',
        etp_leverage: 0,
        inverse: b'N',
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    fn hub() -> (FeedHub, MoldSession) {
        let (hub, name) = (FeedHub::default(), *b"0000000001");
        hub.turn_on();
        hub.feed().session = Some(Session::new(name));
        (hub, name)
    }

    fn tell(hub: &FeedHub, events: &[MarketEvent]) {
        let market = events.iter().map(|event| (3, 0, *event)).collect();
        hub.tell(&StepEvents { market, ..StepEvents::default() }, 5);
    }

    fn told(hub: &FeedHub, name: MoldSession) -> Vec<ItchBody> {
        let packet = hub.next_packet((name, 1)).expect("a session").bytes;
        let packet = MoldPacket::decode(&packet).expect("a packet");
        packet.messages.iter().map(|message| ItchMessage::decode(message).expect("ITCH").body).collect()
    }

    #[test]
    fn itch_tells_a_book_as_its_readers_need_it() {
        let (hub, name) = hub();
        let side = VenueSide::Sell;
        tell(
            &hub,
            &[
                MarketEvent::Added { id: 1, side, tick: 9, lots: 5 },
                MarketEvent::Renamed { id: 1, to: 2, lots: 4 },
                MarketEvent::Executed { id: 2, lots: 1, tick: 9, trade: 0 },
                MarketEvent::Executed { id: 2, lots: 3, tick: 10, trade: 1 },
                // It has executed wholly, so its end is told already.
                MarketEvent::Deleted { id: 2 },
            ],
        );
        let bodies = told(&hub, name);
        let kinds: Vec<u8> = bodies.iter().map(ItchBody::kind).collect();
        assert_eq!(kinds, b"RAUEC");
        assert_eq!(bodies[2], ItchBody::Replaced(Replaced { before: 1, order: 2, shares: 4, price: 9 }));
        let ItchBody::ExecutedAt(of) = bodies[4] else { panic!("{bodies:?}") };
        assert_eq!((of.price, of.printable, of.matched), (10, b'Y', 1));
    }

    #[test]
    fn the_rewinder_answers_subscribers_alone_and_with_one_packet_each() {
        let (hub, session) = hub();
        let added = |id| MarketEvent::Added { id, side: VenueSide::Buy, tick: 9, lots: 5 };
        tell(&hub, &(0..200).map(added).collect::<Vec<_>>());
        let request = |first, count| MoldRequest { session, first, count }.encode();
        assert_eq!(hub.rewind(HERE, &request(2, 9), 10_000), None, "a stranger's address may be forged");
        hub.subscribe(HERE, 10_000);
        let answer = hub.rewind(HERE, &request(2, 9), 10_000).expect("it has subscribed");
        let packet = MoldPacket::decode(&answer).expect("a packet");
        assert_eq!((packet.first, packet.messages.len()), (2, 9));
        assert!(hub.rewind(HERE, &request(1, u16::MAX), 10_000).expect("as much as fits").len() <= PACKET_BYTES);
        for none in [request(0, 1), request(202, 1), request(2, 0), vec![0; 20], vec![0; 19], Vec::new()] {
            assert_eq!(hub.rewind(HERE, &none, 10_000), None, "{none:?}");
        }
        for _ in 0..PACKETS_PER_SECOND {
            hub.rewind(HERE, &request(2, 1), 10_000);
        }
        assert_eq!(hub.rewind(HERE, &request(2, 1), 10_000), None, "too many in a second");
        assert!(hub.rewind(HERE, &request(2, 1), 11_000).is_some());
        assert_eq!(hub.rewind(HERE, &request(2, 1), 10_000 + SUBSCRIBED_MS), None, "its hour is over");
        // Strangers take no place of those who are there.
        for host in 0..2 * SUBSCRIBERS as u32 {
            hub.subscribe(IpAddr::V4(Ipv4Addr::from(host)), 20_000);
        }
        assert_eq!(hub.feed().subscribers.len(), SUBSCRIBERS);
        assert!(hub.rewind(HERE, &request(2, 1), 20_000).is_some());
    }

    #[test]
    fn the_feed_keeps_a_bounded_past_and_says_when_a_session_ends() {
        let (hub, name) = hub();
        let events = |from: u64| -> Vec<MarketEvent> {
            (from..from + 1_000)
                .flat_map(|id| {
                    [MarketEvent::Added { id, side: VenueSide::Buy, tick: 9, lots: 5 }, MarketEvent::Deleted { id }]
                })
                .collect()
        };
        (0..200).for_each(|at| tell(&hub, &events(1_000 * at)));
        let (first, next) = {
            let feed = hub.feed();
            let session = feed.session.as_ref().expect("it is told");
            (session.first, session.next())
        };
        assert_eq!((next, next - first), (400_002, KEPT as u64));
        // Who is behind what is kept finds a gap; who has it all hears the next number.
        let packet = hub.next_packet((name, 1)).expect("a packet").bytes;
        assert_eq!(MoldPacket::decode(&packet).expect("a packet").first, first);
        let beat = hub.next_packet((name, next)).expect("a packet").bytes;
        let beat = MoldPacket::decode(&beat).expect("a packet");
        assert_eq!((beat.first, beat.messages.len()), (next, 0));
        hub.end();
        let end = hub.next_packet((name, next)).expect("a packet").bytes;
        assert!(MoldPacket::decode(&end).expect("a packet").is_end);
    }
}
