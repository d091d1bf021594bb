//! A bridge at a participant's side: plain OUCH on loopback in, signed orders to the venue out.
//!
//! ```text
//!  trading program ── plain OUCH ──► bridge (holds the trading key) ── OUCH with signed orders ──► venue
//!                  ◄───────────────         signs, numbers, strips          ◄──────────────────
//! ```
//!
//! # The protocol
//!
//! - Upon *a new order* or *a replacement*: the bridge signs it for the venue's incarnation, the present day and so many
//!   heights from the last certified one, and adds the signed order as an option. All else it passes on as it is.
//! - Upon *a message of the venue*: it passes it on without the options that plain OUCH does not have, under a number
//!   of its own session; that a fill is settled has no message there, and is asked over HTTP. Reports are written to the
//!   caller's sink before, since they are a trader's evidence.
//! - Upon *a loss of the venue's link*: the participant's link is closed, too, and is taken again when the venue is
//!   there: nobody trades into nothing. What the venue had said meanwhile follows then.
//! - Upon *another session of the venue* (a new day, or it was started again): the bridge's session is another one,
//!   too, and begins with message 1.
//!
//! It signs whatever a program on this machine says within the key's mandate: listen on loopback only.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::time::Duration;

use primitives::SecretKey;
use primitives::venue::{FillReport, MarketId, OrderNumber, SelfTradeRule, SettledOrder, VenueOrder, VenueSide};
use protocols::ouch::{OuchEnter, OuchInbound, OuchMessage, OuchOption, OuchOutbound, OuchRejected, OuchReplace};
use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
use protocols::soup::server::{SoupLog, SoupServer, SoupServerEffect, SoupServerInput};
use protocols::soup::{ANY_SESSION, SoupClose, SoupLimits, SoupLogin, SoupPacket, SoupReject, SoupSession};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use venue::{RequestScope, TraderAsk, TraderRequest};

use crate::clock::clock_ms;
use crate::ouch::{FILL_REPORT, HELLO, SETTLED, SIGNED_ORDER, day_of, life_of, market_of};
use crate::words::{NOT_SIGNED, NOT_TAKEN};

/// How long to wait before the venue is called again.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a connection may take.
const CONNECTING: Duration = Duration::from_secs(2);
/// Messages that the bridge keeps for its participant.
const MESSAGES: u64 = 65_536;
/// Orders of which market and side are remembered, for replacements.
const ORDERS: usize = 65_536;

/// How orders are signed.
pub struct BridgeSettings {
    /// The venue's OUCH door.
    pub venue: SocketAddr,
    /// The trading key.
    pub trading: SecretKey,
    /// The session among those of the key, from 1 on.
    pub session: u32,
    /// Whether open orders end when the link to the venue breaks.
    pub ends_orders: bool,
    /// Open orders end if the bridge says nothing for this long.
    pub dead_man_ms: Option<u64>,
    /// The most that orders pay in fees, in millionths.
    pub fee_cap_ppm: u32,
    /// Heights that an order lives.
    pub life_heights: u64,
}

/// What the bridge must know of the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BridgeNews {
    /// What is signed for.
    pub scope: RequestScope,
    /// The last certified height.
    pub height: u64,
}

/// Where signed reports of fills go.
pub type ReportSink = Box<dyn FnMut(&FillReport) -> Result<()> + Send>;

/// Turns plain messages into signed ones, and back.
pub struct Translator {
    trading: SecretKey,
    fee_cap_ppm: u32,
    life_heights: u64,
    orders: BTreeMap<u32, (MarketId, VenueSide)>,
}

impl Translator {
    /// Signs with these settings.
    pub fn new(settings: &BridgeSettings) -> Translator {
        let BridgeSettings { trading, fee_cap_ppm, life_heights, .. } = settings;
        let (fee_cap_ppm, life_heights) = (*fee_cap_ppm, *life_heights);
        Translator { trading: trading.clone(), fee_cap_ppm, life_heights, orders: BTreeMap::new() }
    }

    /// What the venue is told.
    ///
    /// # Errors
    /// The rejection that the participant is told.
    pub fn to_venue(&mut self, bytes: &[u8], news: &BridgeNews, now_ms: u64) -> std::result::Result<Vec<u8>, Vec<u8>> {
        let Ok(message) = OuchMessage::<OuchInbound>::decode(bytes) else { return Err(Vec::new()) };
        let signed = match &message.body {
            OuchInbound::Enter(enter) => self.sign_new(enter, &message, news, now_ms),
            OuchInbound::Replace(replace) => self.sign_replacement(replace, &message, news, now_ms),
            _ => return Ok(bytes.to_vec()),
        };
        let Some(signed) = signed else { return Err(rejection(&message.body, NOT_SIGNED, now_ms)) };
        self.orders.insert(signed.order.number.reference, (signed.order.market, signed.order.side));
        if self.orders.len() > ORDERS {
            self.orders.pop_first();
        }
        let mut options = message.options.unwrap_or_default();
        let value = borsh::to_vec(&signed).expect("writing to memory cannot fail");
        options.push(OuchOption::Unknown { tag: SIGNED_ORDER, value });
        let mut to = Vec::new();
        let message = OuchMessage { body: message.body, options: Some(options) };
        message.encode(&mut to).map_err(|_| rejection(&message.body, NOT_SIGNED, now_ms))?;
        Ok(to)
    }

    fn sign_new(
        &self,
        enter: &OuchEnter,
        message: &OuchMessage<OuchInbound>,
        news: &BridgeNews,
        now_ms: u64,
    ) -> Option<SettledOrder> {
        let side = if enter.side == b'B' { VenueSide::Buy } else { VenueSide::Sell };
        let market = market_of(&enter.symbol)?;
        let life = life_of(enter.time_in_force, enter.quantity, message.options.as_deref().unwrap_or(&[])).ok()?;
        let (tick, lots) = (u32::try_from(enter.price).ok()?, enter.quantity);
        Some(self.sign((market, side), enter.user_ref, (tick, lots), life, news, now_ms))
    }

    fn sign_replacement(
        &self,
        replace: &OuchReplace,
        message: &OuchMessage<OuchInbound>,
        news: &BridgeNews,
        now_ms: u64,
    ) -> Option<SettledOrder> {
        let of = *self.orders.get(&replace.before)?;
        let life = life_of(replace.time_in_force, replace.quantity, message.options.as_deref().unwrap_or(&[])).ok()?;
        let (tick, lots) = (u32::try_from(replace.price).ok()?, replace.quantity);
        Some(self.sign(of, replace.user_ref, (tick, lots), life, news, now_ms))
    }

    fn sign(
        &self,
        (market, side): (MarketId, VenueSide),
        reference: u32,
        (tick, lots): (u32, u32),
        life: primitives::venue::OrderLife,
        news: &BridgeNews,
        now_ms: u64,
    ) -> SettledOrder {
        let RequestScope { network, venue, incarnation } = news.scope;
        let order = VenueOrder {
            market,
            number: OrderNumber { incarnation, day: day_of(now_ms), reference },
            floor: OrderNumber { incarnation, day: 0, reference: 0 },
            side,
            life,
            self_trade: SelfTradeRule::ExpireTaker,
            tick,
            lots,
            expiry: news.height.saturating_add(self.life_heights),
            until_ms: None,
            fee_cap_ppm: self.fee_cap_ppm,
        };
        let signature = Some(self.trading.sign(&order.signing_bytes(&network, venue)));
        SettledOrder { key: self.trading.public(), order, signature }
    }
}

/// A rejection as the venue would send it; nothing for what has no number.
fn rejection(message: &OuchInbound, reason: u16, now_ms: u64) -> Vec<u8> {
    let (user_ref, client_order) = match message {
        OuchInbound::Enter(OuchEnter { user_ref, client_order, .. })
        | OuchInbound::Replace(OuchReplace { user_ref, client_order, .. }) => (*user_ref, *client_order),
        _ => return Vec::new(),
    };
    let nanoseconds = now_ms % 86_400_000 * 1_000_000;
    let body = OuchOutbound::Rejected(OuchRejected { nanoseconds, user_ref, reason, client_order });
    let mut bytes = Vec::new();
    OuchMessage::plain(body).encode(&mut bytes).expect("it has no options");
    bytes
}

/// What the participant is told of a message of the venue, and the report that it has.
pub fn to_participant(bytes: &[u8]) -> (Option<Vec<u8>>, Option<FillReport>) {
    // What this program does not know is passed on: the participant may.
    let Ok(mut message) = OuchMessage::<OuchOutbound>::decode(bytes) else { return (Some(bytes.to_vec()), None) };
    let (mut report, mut is_settled) = (None, false);
    if let Some(options) = &mut message.options {
        options.retain(|option| match option {
            OuchOption::Unknown { tag: FILL_REPORT, value } => {
                report = borsh::from_slice(value).ok();
                false
            }
            OuchOption::Unknown { tag: SETTLED, .. } => {
                is_settled = true;
                false
            }
            _ => true,
        });
    }
    let mut plain = Vec::new();
    message.encode(&mut plain).expect("it was decoded");
    (Some(plain).filter(|_| !is_settled), report)
}

/// A socket, and what it has not taken.
struct Pipe {
    stream: TcpStream,
    unsent: Vec<u8>,
}

/// What a socket did.
enum PipeTurn {
    Read(usize),
    Wrote(usize),
    Lost,
    Nothing,
}

impl Pipe {
    fn new(stream: TcpStream) -> Pipe {
        drop(stream.set_nodelay(true));
        Pipe { stream, unsent: Vec::new() }
    }

    fn write(&mut self) -> PipeTurn {
        match self.stream.try_write(&self.unsent) {
            Ok(bytes) => {
                self.unsent.drain(..bytes);
                PipeTurn::Wrote(bytes)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => PipeTurn::Nothing,
            Err(_) => PipeTurn::Lost,
        }
    }
}

/// Waits until a socket can do something, and does it; for ever if there is none.
async fn turn(pipe: &mut Option<Pipe>, buffer: &mut [u8]) -> PipeTurn {
    let Some(pipe) = pipe else { return std::future::pending().await };
    let interest = if pipe.unsent.is_empty() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
    let Ok(ready) = pipe.stream.ready(interest).await else { return PipeTurn::Lost };
    if ready.is_writable() && !pipe.unsent.is_empty() {
        match pipe.write() {
            PipeTurn::Nothing => {}
            done => return done,
        }
    }
    match pipe.stream.try_read(buffer) {
        Ok(0) => PipeTurn::Lost,
        Ok(bytes) => PipeTurn::Read(bytes),
        Err(error) if error.kind() == ErrorKind::WouldBlock => PipeTurn::Nothing,
        Err(_) => PipeTurn::Lost,
    }
}

struct Bridge {
    settings: BridgeSettings,
    translator: Translator,
    sink: ReportSink,
    news: watch::Receiver<Option<BridgeNews>>,
    venue: Option<Pipe>,
    client: SoupClient,
    is_open: bool,
    call_at: tokio::time::Instant,
    participant: Option<Pipe>,
    server: SoupServer,
    log: SoupLog,
    /// The session of the venue whose messages the log has.
    session: Option<SoupSession>,
}

/// Runs a bridge for ever. `news` says what the venue's status says, as it changes.
///
/// # Errors
/// If the listener fails, or a report cannot be kept.
pub async fn run(
    settings: BridgeSettings,
    listener: TcpListener,
    news: watch::Receiver<Option<BridgeNews>>,
    sink: ReportSink,
) -> Result<()> {
    let translator = Translator::new(&settings);
    let mut bridge = Bridge {
        settings,
        translator,
        sink,
        news,
        venue: None,
        client: client(),
        is_open: false,
        call_at: tokio::time::Instant::now(),
        participant: None,
        server: SoupServer::new(SoupLimits::default(), clock_ms()),
        log: SoupLog::new(session_name()),
        session: None,
    };
    let (mut from_venue, mut from_participant) = (vec![0; 16 << 10], vec![0; 16 << 10]);
    loop {
        bridge.call().await;
        let patience = bridge.patience();
        tokio::select! {
            done = turn(&mut bridge.venue, &mut from_venue) => bridge.on_venue(done, &from_venue)?,
            done = turn(&mut bridge.participant, &mut from_participant) => bridge.on_participant(done, &from_participant),
            accepted = listener.accept() => bridge.accept(accepted?.0),
            () = tokio::time::sleep(patience) => bridge.wake()?,
        }
    }
}

fn client() -> SoupClient {
    let (username, password) = (*b"BRIDGE", *b"          ");
    let login = SoupLogin { username, password, session: ANY_SESSION, next: 1, timeout_ms: None };
    SoupClient::new(login, SoupLimits::default())
}

fn session_name() -> SoupSession {
    let mut name = [b' '; 10];
    let text = format!("{:>10}", clock_ms() % 10_000_000_000);
    name.copy_from_slice(text.as_bytes());
    name
}

impl Bridge {
    /// Connects to the venue, if it is time.
    async fn call(&mut self) {
        let news = *self.news.borrow();
        let Some(news) = news.filter(|_| self.venue.is_none() && tokio::time::Instant::now() >= self.call_at) else {
            return;
        };
        self.call_at = tokio::time::Instant::now() + AGAIN;
        let Ok(Ok(stream)) = tokio::time::timeout(CONNECTING, TcpStream::connect(self.settings.venue)).await else {
            return;
        };
        let BridgeSettings { session, ends_orders, dead_man_ms, .. } = self.settings;
        let ask = TraderAsk::Attach { session, ends_orders, dead_man_ms };
        let request = TraderRequest::sign(&news.scope, &self.settings.trading, clock_ms(), ask);
        let text = [HELLO, &borsh::to_vec(&request).expect("writing to memory cannot fail")].concat();
        let mut pipe = Pipe::new(stream);
        SoupPacket::Debug(&text).encode(&mut pipe.unsent).expect("it is short");
        // The hello is no packet of the session: its bytes are not the client's.
        while !pipe.unsent.is_empty() {
            if pipe.stream.writable().await.is_err() || matches!(pipe.write(), PipeTurn::Lost) {
                return;
            }
        }
        self.venue = Some(pipe);
        // Nothing but a login follows.
        drop(self.on_client(SoupClientInput::Connected));
    }

    fn patience(&self) -> Duration {
        let now = clock_ms();
        let due = [self.client.deadline_ms(), self.server.deadline_ms().filter(|_| self.participant.is_some())];
        let due = due.into_iter().flatten().map(|at| at.saturating_sub(now)).min().unwrap_or(1_000);
        Duration::from_millis(due.clamp(1, 1_000))
    }

    fn wake(&mut self) -> Result<()> {
        self.on_server(SoupServerInput::Wake);
        self.on_client(SoupClientInput::Wake)
    }

    /// A participant comes; one at a time, and the newest.
    fn accept(&mut self, stream: TcpStream) {
        if self.is_open {
            self.participant = Some(Pipe::new(stream));
            self.server = SoupServer::new(SoupLimits::default(), clock_ms());
        }
    }

    fn on_venue(&mut self, done: PipeTurn, buffer: &[u8]) -> Result<()> {
        match done {
            PipeTurn::Read(bytes) => self.on_client(SoupClientInput::Received(&buffer[..bytes])),
            PipeTurn::Wrote(bytes) => self.on_client(SoupClientInput::Sent(bytes)),
            PipeTurn::Lost => {
                let done = self.on_client(SoupClientInput::Lost);
                self.hang_up();
                done
            }
            PipeTurn::Nothing => Ok(()),
        }
    }

    /// The venue's link is gone, and so is the participant's.
    fn hang_up(&mut self) {
        (self.venue, self.is_open, self.participant) = (None, false, None);
    }

    fn on_client(&mut self, input: SoupClientInput<'_>) -> Result<()> {
        for effect in self.client.step(clock_ms(), input) {
            match effect {
                SoupClientEffect::Send(bytes) => self.venue.iter_mut().for_each(|pipe| pipe.unsent.extend(&bytes)),
                SoupClientEffect::Accepted { session, .. } => self.opened(session),
                SoupClientEffect::Message { message, .. } => self.pass_on(&message)?,
                SoupClientEffect::Unsequenced(_) | SoupClientEffect::Unsent(_) => {}
                SoupClientEffect::Close(why) => {
                    tracing::warn!(%why, "the link to the venue ended");
                    if matches!(
                        why,
                        SoupClose::Ended | SoupClose::Refused(SoupReject::NoSession) | SoupClose::Mismatch { .. }
                    ) {
                        self.client = client();
                    }
                    self.hang_up();
                }
            }
        }
        Ok(())
    }

    fn opened(&mut self, session: SoupSession) {
        if self.session.is_some_and(|known| known != session) {
            tracing::info!("the venue has a new session: the bridge's begins with message 1, too");
            self.log = SoupLog::new(session_name());
            self.translator.orders.clear();
            self.participant = None;
        }
        (self.session, self.is_open) = (Some(session), true);
    }

    fn pass_on(&mut self, message: &[u8]) -> Result<()> {
        let (plain, report) = to_participant(message);
        if let Some(report) = report {
            (self.sink)(&report)?;
        }
        if let Some(plain) = plain {
            self.tell(plain)?;
        }
        Ok(())
    }

    fn tell(&mut self, message: Vec<u8>) -> Result<()> {
        self.log.publish(message).map_err(Error::other)?;
        self.log.forget_before(self.log.next().saturating_sub(MESSAGES));
        self.on_server(SoupServerInput::Wake);
        Ok(())
    }

    fn on_participant(&mut self, done: PipeTurn, buffer: &[u8]) {
        match done {
            PipeTurn::Read(bytes) => self.on_server(SoupServerInput::Received(&buffer[..bytes])),
            PipeTurn::Wrote(bytes) => self.on_server(SoupServerInput::Sent(bytes)),
            PipeTurn::Lost => self.participant = None,
            PipeTurn::Nothing => {}
        }
    }

    fn on_server(&mut self, input: SoupServerInput<'_>) {
        if self.participant.is_none() {
            return;
        }
        let mut effects: std::collections::VecDeque<_> = self.server.step(clock_ms(), input, &self.log).into();
        while let Some(effect) = effects.pop_front() {
            match effect {
                SoupServerEffect::Send(bytes) => {
                    self.participant.iter_mut().for_each(|pipe| pipe.unsent.extend(&bytes))
                }
                SoupServerEffect::Authorize(_) => {
                    effects.extend(self.server.step(clock_ms(), SoupServerInput::Verdict(self.is_open), &self.log));
                }
                SoupServerEffect::Message(message) => self.sign(&message),
                SoupServerEffect::Close(why) => {
                    tracing::info!(%why, "the participant's link ends");
                    if let Some(mut pipe) = self.participant.take() {
                        pipe.write();
                    }
                }
            }
        }
    }

    fn sign(&mut self, message: &[u8]) {
        let news = *self.news.borrow();
        let signed = news.ok_or_else(Vec::new).and_then(|news| self.translator.to_venue(message, &news, clock_ms()));
        let rejected = match signed {
            Ok(signed) => {
                let effects = self.client.step(clock_ms(), SoupClientInput::Send(&signed));
                let is_unsent = |effect: &SoupClientEffect| matches!(effect, SoupClientEffect::Unsent(_));
                let rejected =
                    effects.iter().any(is_unsent).then(|| OuchMessage::<OuchInbound>::decode(message).ok()).flatten();
                for effect in effects {
                    if let SoupClientEffect::Send(bytes) = effect {
                        self.venue.iter_mut().for_each(|pipe| pipe.unsent.extend(&bytes));
                    }
                }
                rejected.map_or_else(Vec::new, |message| rejection(&message.body, NOT_TAKEN, clock_ms()))
            }
            Err(rejected) => rejected,
        };
        if !rejected.is_empty() {
            // It is short, and the session has not ended.
            self.tell(rejected).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use primitives::Digest;
    use venue::check_orders;

    use super::*;
    use crate::ouch::{enter_of, symbol_of};

    fn settings() -> BridgeSettings {
        BridgeSettings {
            venue: SocketAddr::from(([127, 0, 0, 1], 1)),
            trading: SecretKey::from_seed([7; 32]),
            session: 1,
            ends_orders: false,
            dead_man_ms: None,
            fee_cap_ppm: 500,
            life_heights: 100,
        }
    }

    fn news() -> BridgeNews {
        BridgeNews { scope: RequestScope { network: Digest([3; 32]), venue: 1, incarnation: 2 }, height: 40 }
    }

    fn plain_enter(user_ref: u32) -> OuchEnter {
        OuchEnter {
            user_ref,
            side: b'B',
            quantity: 5,
            symbol: symbol_of(3),
            price: 77,
            time_in_force: b'0',
            display: b'Y',
            capacity: b'P',
            sweep: b'N',
            cross: b'N',
            client_order: *b"mine          ",
        }
    }

    fn encoded(body: OuchInbound) -> Vec<u8> {
        let mut bytes = Vec::new();
        OuchMessage::plain(body).encode(&mut bytes).expect("it has no options");
        bytes
    }

    fn signed_in(bytes: &[u8]) -> SettledOrder {
        let options = OuchMessage::<OuchInbound>::decode(bytes).expect("a message").options.expect("options");
        let Some(OuchOption::Unknown { tag: SIGNED_ORDER, value }) = options.last() else { panic!("no signed order") };
        borsh::from_slice(value).expect("a signed order")
    }

    #[test]
    fn a_plain_order_comes_out_of_the_bridge_signed() {
        let (mut translator, scope) = (Translator::new(&settings()), news().scope);
        let now = 20_000 * 86_400_000 + 5;
        let enter = encoded(OuchInbound::Enter(plain_enter(9)));
        let signed = signed_in(&translator.to_venue(&enter, &news(), now).expect("signed"));
        assert_eq!(signed.order.number, OrderNumber { incarnation: 2, day: 20_000, reference: 9 });
        assert_eq!((signed.order.market, signed.order.tick, signed.order.lots, signed.order.expiry), (3, 77, 5, 140));
        assert!(check_orders(&scope.network, scope.venue, &[signed])[0].is_some());
        // A replacement keeps market and side of what it replaces.
        let OuchEnter { price, time_in_force, display, sweep, client_order, .. } = plain_enter(0);
        let replace =
            OuchReplace { before: 9, user_ref: 10, quantity: 6, price, time_in_force, display, sweep, client_order };
        let replaced = translator.to_venue(&encoded(OuchInbound::Replace(replace)), &news(), now).expect("signed");
        assert_eq!((signed_in(&replaced).order.side, signed_in(&replaced).order.lots), (VenueSide::Buy, 6));
        // What nobody has ordered is not replaced, and what no market is named by is not ordered.
        let unknown = OuchReplace { before: 8, ..replace };
        for refused in
            [OuchInbound::Replace(unknown), OuchInbound::Enter(OuchEnter { symbol: *b"EURUSD  ", ..plain_enter(11) })]
        {
            let rejected = translator.to_venue(&encoded(refused), &news(), now).expect_err("not signed");
            let message = OuchMessage::<OuchOutbound>::decode(&rejected).expect("a rejection");
            assert!(matches!(message.body, OuchOutbound::Rejected(OuchRejected { reason: NOT_SIGNED, .. })));
        }
    }

    #[test]
    fn what_plain_ouch_lacks_is_stripped_and_reports_are_kept() {
        let signed = signed_in(
            &Translator::new(&settings())
                .to_venue(&encoded(OuchInbound::Enter(plain_enter(1))), &news(), 0)
                .expect("signed"),
        );
        let mut bytes = Vec::new();
        enter_of(&signed).encode(&mut bytes).expect("an order fits");
        assert_eq!(signed_in(&bytes), signed, "bridge and venue write the same option");
        let report =
            FillReport::new(&Digest([3; 32]), (1, 2, 9), Digest([4; 32]), signed.key.address(), &settings().trading);
        let value = borsh::to_vec(&report).expect("in memory");
        let executed = protocols::ouch::OuchExecuted {
            nanoseconds: 1,
            user_ref: 1,
            quantity: 5,
            price: 77,
            liquidity: b'R',
            matched: 9,
        };
        let told = OuchMessage {
            body: OuchOutbound::Executed(executed),
            options: Some(vec![OuchOption::Unknown { tag: FILL_REPORT, value }]),
        };
        let (mut bytes, mut plain) = (Vec::new(), Vec::new());
        told.encode(&mut bytes).expect("a report fits into an option");
        OuchMessage::plain(OuchOutbound::Executed(executed)).encode(&mut plain).expect("plain");
        assert_eq!(to_participant(&bytes), (Some(plain), Some(report)));
        assert_eq!(to_participant(b"?"), (Some(b"?".to_vec()), None));
    }
}
