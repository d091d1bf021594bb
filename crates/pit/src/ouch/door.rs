//! Connections of OUCH sessions.

use std::sync::Arc;
use std::time::Duration;

use primitives::PublicKey;
use primitives::venue::SettledOrder;
use protocols::ouch::{
    OuchAccountQueryResponse, OuchCancelReject, OuchInbound, OuchMassCancelResponse, OuchMessage, OuchOption,
    OuchOutbound,
};
use protocols::soup::server::{SoupServer, SoupServerEffect, SoupServerInput};
use protocols::soup::{SoupLimits, SoupPacket, SoupReject};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use venue::{CheckedOrder, SessionNumber, TradeCommand, TraderAsk, TraderRequest, check_orders, session_number};

use super::inbound::{new_order, replacement, side_letter};
use super::outbound::rejected;
use super::session::Entered;
use super::{DAY_MS, HELLO, market_of, symbol_of};
use crate::clock::clock_ms;
use crate::listening::serve_each;
use crate::shared::{PitInput, PitRefusal, PitShared};
use crate::words::{NOT_SIGNED, NOT_TAKEN};

/// The most connections, of which one address has at most what it leaves.
const CONNECTIONS: u64 = 1_024;
/// How long the packet before the login may take.
const HELLO_TIME: Duration = Duration::from_secs(15);
/// The most bytes of that packet.
const HELLO_BYTES: usize = 1_024;
/// How often a session that speaks resets its dead man's timer.
const HEARTBEAT: Duration = Duration::from_millis(500);

/// Serves OUCH until told to stop.
pub(crate) async fn serve(listener: TcpListener, shared: Arc<PitShared>, stopped: watch::Receiver<bool>) {
    let serve = move |stream, _| {
        let shared = shared.clone();
        async move { welcome(stream, &shared).await }
    };
    serve_each(listener, CONNECTIONS, stopped, serve).await;
}

/// One connection: its session is attached before the login, and detached after the end.
async fn welcome(mut stream: TcpStream, shared: &Arc<PitShared>) {
    drop(stream.set_nodelay(true));
    let Ok(Some(request)) = tokio::time::timeout(HELLO_TIME, hello(&mut stream)).await else { return };
    match attach(shared, &request).await {
        Ok(link) => {
            talk(stream, shared, &link).await;
            // The node may be stopping.
            drop(shared.send(PitInput::Detach { session: link.session, link: link.number }));
        }
        Err(why) => {
            let mut bytes = Vec::new();
            SoupPacket::Debug(why.to_string().as_bytes()).encode(&mut bytes).ok();
            SoupPacket::LoginRejected(SoupReject::NotAuthorized).encode(&mut bytes).ok();
            drop(stream.write_all(&bytes).await);
        }
    }
}

/// The request in the packet before the login.
async fn hello(stream: &mut TcpStream) -> Option<TraderRequest> {
    let length = usize::from(stream.read_u16().await.ok()?);
    if !(1..=HELLO_BYTES).contains(&length) {
        return None;
    }
    let mut packet = vec![0; length];
    stream.read_exact(&mut packet).await.ok()?;
    read_hello(&packet)
}

/// The request that a debug packet has; `None` if it has none.
pub fn read_hello(packet: &[u8]) -> Option<TraderRequest> {
    let Ok(SoupPacket::Debug(text)) = SoupPacket::decode(packet) else { return None };
    borsh::from_slice(text.strip_prefix(HELLO)?).ok()
}

/// A session with a link.
struct Link {
    session: SessionNumber,
    key: PublicKey,
    number: u64,
    /// Whether a dead man's timer runs.
    has_timer: bool,
    changed: watch::Receiver<u64>,
}

async fn attach(shared: &PitShared, request: &TraderRequest) -> Result<Link, PitRefusal> {
    let scope = shared.scope()?;
    let TraderAsk::Attach { session, ends_orders, dead_man_ms } = request.ask else {
        return Err(PitRefusal::Signature);
    };
    shared.check_key(&request.key)?;
    if !request.is_signed(&scope) {
        return Err(PitRefusal::Signature);
    }
    shared.claim_stamp(&request.key, request.stamp_ms)?;
    let (session, key, number) = (session_number(&request.key, session), request.key, shared.new_link());
    let (reply, attached) = oneshot::channel();
    shared.send(PitInput::Attach { session, link: number, key, ends_orders, dead_man_ms, reply })?;
    attached.await.map_err(|_| PitRefusal::BeginsAgain)?;
    let changed = shared.ouch.with(session, |of| {
        of.link.send_replace(number);
        of.link.subscribe()
    });
    let has_timer = dead_man_ms.is_some();
    Ok(Link { session, key, number, has_timer, changed })
}

/// Runs the session's machine until its connection ends.
async fn talk(stream: TcpStream, shared: &Arc<PitShared>, link: &Link) {
    let (mut source, mut sink) = stream.into_split();
    let mut changed = link.changed.clone();
    let mut soup = SoupServer::new(SoupLimits::default(), clock_ms());
    let (mut unsent, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    let mut spoke = tokio::time::Instant::now();
    loop {
        let deadline = soup.deadline_ms().map_or(1_000, |at| at.saturating_sub(clock_ms()).max(1));
        let mut taken = 0;
        let mut received = 0;
        tokio::select! {
            read = source.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return,
                Ok(bytes) => received = bytes,
            },
            wrote = sink.write(&unsent), if !unsent.is_empty() => match wrote {
                Ok(0) | Err(_) => return,
                Ok(bytes) => taken = bytes,
            },
            told = changed.changed() => if told.is_err() { return },
            () = tokio::time::sleep(Duration::from_millis(deadline)) => {}
        }
        if *changed.borrow() != link.number {
            // The session has another link.
            return;
        }
        unsent.drain(..taken);
        if received > 0 && link.has_timer && spoke.elapsed() >= HEARTBEAT {
            spoke = tokio::time::Instant::now();
            drop(shared.send(PitInput::Heartbeat(link.session)));
        }
        let input = match (received, taken) {
            (0, 0) => SoupServerInput::Wake,
            (0, taken) => SoupServerInput::Sent(taken),
            (received, _) => SoupServerInput::Received(&buffer[..received]),
        };
        let mut effects = step(shared, link, &mut soup, input);
        while !effects.is_empty() {
            hear_all(shared, link, &effects);
            let mut next = Vec::new();
            for effect in effects {
                match effect {
                    SoupServerEffect::Send(bytes) => unsent.extend(bytes),
                    // The request before the login stands for name and password.
                    SoupServerEffect::Authorize(_) => {
                        next.extend(step(shared, link, &mut soup, SoupServerInput::Verdict(true)));
                    }
                    // It is heard with the others.
                    SoupServerEffect::Message(_) => {}
                    SoupServerEffect::Close(why) => {
                        tracing::debug!(%why, session = link.session, "an OUCH session's link ends");
                        drop(tokio::time::timeout(HELLO_TIME, sink.write_all(&unsent)).await);
                        return;
                    }
                }
            }
            effects = next;
        }
    }
}

fn step(shared: &PitShared, link: &Link, soup: &mut SoupServer, input: SoupServerInput<'_>) -> Vec<SoupServerEffect> {
    shared.ouch.with(link.session, |of| soup.step(clock_ms(), input, &of.log))
}

/// What the messages of the participant do, in their order. The signatures of those that came together are checked in
/// one batch, which costs half of what single checks do.
fn hear_all(shared: &PitShared, link: &Link, effects: &[SoupServerEffect]) {
    let bytes = effects.iter().filter_map(|effect| match effect {
        SoupServerEffect::Message(bytes) => Some(bytes),
        _ => None,
    });
    // What is no message has no number to reject.
    let heard: Vec<Heard> = bytes.filter_map(|bytes| Heard::read(bytes)).collect();
    let own = heard.iter().filter_map(|heard| heard.signed.filter(|signed| signed.key == link.key));
    let own: Vec<SettledOrder> = own.collect();
    let checked = match shared.scope() {
        Ok(scope) if !own.is_empty() => check_orders(&scope.network, scope.venue, &own),
        _ => Vec::new(),
    };
    let mut checked = checked.into_iter();
    for heard in heard {
        let is_own = heard.signed.is_some_and(|signed| signed.key == link.key);
        let order = is_own.then(|| checked.next().flatten()).flatten();
        hear(shared, link, heard, order);
    }
}

/// A message of the participant, with its order if it has one.
struct Heard {
    body: OuchInbound,
    options: Vec<OuchOption>,
    signed: Option<SettledOrder>,
}

impl Heard {
    fn read(bytes: &[u8]) -> Option<Heard> {
        let message = OuchMessage::<OuchInbound>::decode(bytes).ok()?;
        let options = message.options.unwrap_or_default();
        let signed = match &message.body {
            OuchInbound::Enter(enter) => new_order(enter, &options).ok(),
            OuchInbound::Replace(replace) => replacement(replace, &options).ok(),
            _ => None,
        };
        Some(Heard { body: message.body, options, signed })
    }
}

/// What a message of the participant does; `order` is its order, if its signature was checked and is valid.
fn hear(shared: &PitShared, link: &Link, message: Heard, order: Option<CheckedOrder>) {
    let Heard { options, signed, .. } = message;
    if let Some(number) = message.body.new_user_ref()
        && !shared.ouch.with(link.session, |of| of.claim(number))
    {
        // A repetition: its answer is among the session's messages.
        return;
    }
    match message.body {
        OuchInbound::Enter(enter) => {
            let entered = entered(message.body, enter.symbol, enter.side);
            place(shared, link, enter.user_ref, entered, order, None);
        }
        OuchInbound::Replace(replace) => {
            let (symbol, side) = signed
                .map_or(([b' '; 8], b' '), |signed| (symbol_of(signed.order.market), side_letter(signed.order.side)));
            let entered = entered(message.body, symbol, side);
            place(shared, link, replace.user_ref, entered, order, Some(replace.before));
        }
        OuchInbound::Cancel(cancel) => keep(shared, link, cancel.user_ref, cancel.quantity),
        OuchInbound::Modify(modify) => keep(shared, link, modify.user_ref, modify.quantity),
        OuchInbound::MassCancel(mass) => {
            let is_all = mass.symbol == [b' '; 8];
            let market = market_of(&mass.symbol);
            let side = options.iter().find_map(|option| match option {
                OuchOption::Side(letter) => super::inbound::side_of(*letter).ok(),
                _ => None,
            });
            if market.is_none() && !is_all {
                return reject(shared, link, mass.user_ref, message.body, NOT_TAKEN);
            }
            let command = TradeCommand::CancelAll { key: link.key, market, side };
            if trade(shared, link, command).is_err() {
                return reject(shared, link, mass.user_ref, message.body, NOT_TAKEN);
            }
            let (nanoseconds, user_ref) = (nanoseconds(), mass.user_ref);
            let (firm, symbol) = (mass.firm, mass.symbol);
            let response = OuchMassCancelResponse { nanoseconds, user_ref, firm, symbol };
            publish(shared, link, OuchOutbound::MassCancelResponse(response));
        }
        OuchInbound::Disable(disable) => reject(shared, link, disable.user_ref, message.body, NOT_TAKEN),
        OuchInbound::Enable(enable) => reject(shared, link, enable.user_ref, message.body, NOT_TAKEN),
        OuchInbound::AccountQuery(_) => {
            let next = shared.ouch.with(link.session, |of| of.next_ref());
            let nanoseconds = nanoseconds();
            publish(shared, link, OuchOutbound::AccountQueryResponse(OuchAccountQueryResponse { nanoseconds, next }));
        }
    }
}

fn entered(message: OuchInbound, symbol: [u8; 8], side: u8) -> Entered {
    Entered { message, symbol, side, is_answered: false, open: 0 }
}

fn nanoseconds() -> u64 {
    clock_ms() % DAY_MS * 1_000_000
}

/// Tells the participant something. The root's thread makes it durable first.
fn publish(shared: &PitShared, link: &Link, body: OuchOutbound) {
    tell(shared, link, &OuchMessage::plain(body));
}

fn tell(shared: &PitShared, link: &Link, message: &OuchMessage<OuchOutbound>) {
    shared.ouch.with(link.session, |of| of.tell(message));
    shared.wake();
}

fn reject(shared: &PitShared, link: &Link, user_ref: u32, message: OuchInbound, reason: u16) {
    tell(shared, link, &rejected(nanoseconds(), user_ref, reason, &message));
}

/// Gives an order to the root, if it is signed by this session's key and says what its message says.
fn place(
    shared: &PitShared,
    link: &Link,
    user_ref: u32,
    entered: Entered,
    order: Option<CheckedOrder>,
    before: Option<u32>,
) {
    let (number, old) = shared.ouch.with(link.session, |of| {
        of.enter(entered);
        (of.number(user_ref), before.map(|before| of.number(before)))
    });
    let Some(order) = order.filter(|order| order.order().number == number) else {
        return reject(shared, link, user_ref, entered.message, NOT_SIGNED);
    };
    let command = old.map_or(TradeCommand::New(order), |old| TradeCommand::Replace(old, order));
    if shared.check_disk().and_then(|()| trade(shared, link, command)).is_err() {
        reject(shared, link, user_ref, entered.message, NOT_TAKEN);
    }
}

/// Ends an order, or lowers its total lots.
fn keep(shared: &PitShared, link: &Link, user_ref: u32, keeps: u32) {
    let number = shared.ouch.with(link.session, |of| of.number(user_ref));
    let command = TradeCommand::Cancel { key: link.key, number, keeps };
    // A cancel that is lost without a word would leave an order that its owner believes to be gone.
    if trade(shared, link, command).is_err() {
        publish(shared, link, OuchOutbound::CancelReject(OuchCancelReject { nanoseconds: nanoseconds(), user_ref }));
    }
}

fn trade(shared: &PitShared, link: &Link, command: TradeCommand) -> Result<(), PitRefusal> {
    // Answers go to the session.
    let (reply, _) = oneshot::channel();
    shared.send(PitInput::Trade { session: link.session, key: link.key, is_own_session: false, command, reply })
}
