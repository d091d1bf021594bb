//! The ways to a venue, as those who trade use them. Each line is one trader's: it makes a message of an order, sends
//! it, and reads what is told.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use api::{PlacedBody, PlacedResult, ReportBody, VenueMessage, VenueTold};
use pit::bridge::BridgeSettings;
use pit::bridge::fix::{self, FixSettings};
use pit::door::bodies::{order_body, request_body};
use pit::ouch::{HELLO, enter_of};
use primitives::venue::SignedOrder;
use protocols::fix::frame::FixReader;
use protocols::fix::{FixBody, FixHeader, FixLogon, FixMessage, FixNewOrder, FixText, FixTime};
use protocols::ouch::{OuchMessage, OuchOutbound};
use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
use protocols::soup::{ANY_SESSION, SoupLimits, SoupLogin, SoupPacket};
use serde_json::json;
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};
use venue::{TraderAsk, TraderRequest};

use super::heard::{Hear, Heard, Told};
use super::market::{LIFE, Market, trading};
use crate::exchange::Error;

/// Makes a message of an order.
pub(super) type Encode = dyn FnMut(&SignedOrder) -> Vec<u8> + Send;
/// Sends a message.
pub(super) type SendBytes = dyn FnMut(&[u8]) -> Result<(), Error> + Send;

/// One trader's connection.
pub(super) struct Line {
    pub(super) encode: Box<Encode>,
    pub(super) send: Box<SendBytes>,
    pub(super) hear: Box<Hear>,
}

/// How orders reach the venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Signed orders over OUCH.
    Ouch,
    /// Plain FIX to a bridge, which signs, and keeps a journal of its own.
    Fix,
    /// A call for each order.
    Http,
    /// Signed orders over the stream.
    WebSocket,
}

/// How long a reader waits at most before it looks whether the measurement is over.
const MOMENT: Duration = Duration::from_millis(20);
/// How long a bridge may take until its venue is there.
const PATIENCE: Duration = Duration::from_secs(60);
const CHUNK: usize = 64 << 10;

impl Way {
    pub(super) const ALL: [Way; 4] = [Way::Ouch, Way::Fix, Way::Http, Way::WebSocket];

    pub(super) fn name(self) -> &'static str {
        match self {
            Way::Ouch => "ouch",
            Way::Fix => "fix",
            Way::Http => "http",
            Way::WebSocket => "websocket",
        }
    }

    /// How many of so many traders come this way.
    pub(super) fn traders(self, traders: usize) -> usize {
        if self == Way::Fix { traders.div_ceil(2) } else { traders }
    }

    /// The line of a trader.
    pub(super) fn connect(self, market: &Market, trader: usize) -> Result<Line, Error> {
        match self {
            Way::Ouch => ouch(market, trader),
            Way::Fix => over_fix(market, trader),
            Way::Http => http(market),
            Way::WebSocket => websocket(market, trader),
        }
    }
}

fn attach(market: &Market, trader: usize) -> TraderRequest {
    let ask = TraderAsk::Attach { session: 1, ends_orders: false, dead_man_ms: None };
    TraderRequest::sign(&market.scope(), &trading(trader), pit::clock_ms(), ask)
}

fn connected(address: SocketAddr) -> Result<TcpStream, Error> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(MOMENT))?;
    Ok(stream)
}

/// Reads what is there; nothing if there is nothing within a moment.
fn read<'a>(stream: &mut TcpStream, buffer: &'a mut [u8]) -> Result<&'a [u8], Error> {
    match stream.read(buffer) {
        Ok(0) => Err("the venue closed a connection".into()),
        Ok(count) => Ok(&buffer[..count]),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(&[]),
        Err(error) => Err(error.into()),
    }
}

fn ouch(market: &Market, trader: usize) -> Result<Line, Error> {
    let (username, password) = (*b"BENCH ", [b' '; 10]);
    let login = SoupLogin { username, password, session: ANY_SESSION, next: 1, timeout_ms: None };
    let mut client = SoupClient::new(login, SoupLimits::default());
    let mut reading = connected(market.pit.ouch_address())?;
    // A reader sends heartbeats beside what is sent.
    let writing = Arc::new(Mutex::new(reading.try_clone()?));
    let hello = [HELLO, &borsh::to_vec(&attach(market, trader))?].concat();
    let mut bytes = Vec::new();
    SoupPacket::Debug(&hello).encode(&mut bytes)?;
    writing.lock().expect("no panic").write_all(&bytes)?;
    let answering = writing.clone();
    let mut step = move |input: SoupClientInput<'_>, told: &mut dyn FnMut(&[u8]) -> Result<(), Error>| {
        for effect in client.step(pit::clock_ms(), input) {
            match effect {
                SoupClientEffect::Send(bytes) => {
                    answering.lock().expect("no panic").write_all(&bytes)?;
                    client.step(pit::clock_ms(), SoupClientInput::Sent(bytes.len()));
                }
                SoupClientEffect::Message { message, .. } => told(&message)?,
                SoupClientEffect::Close(why) => return Err(format!("OUCH: {why}").into()),
                _ => {}
            }
        }
        Ok::<bool, Error>(client.session() != ANY_SESSION)
    };
    let mut buffer = vec![0; CHUNK];
    let mut is_open = step(SoupClientInput::Connected, &mut |_| Ok(()))?;
    while !is_open {
        is_open = step(SoupClientInput::Received(read(&mut reading, &mut buffer)?), &mut |_| Ok(()))?;
    }
    Ok(Line {
        encode: Box::new(|order| {
            let (mut message, mut bytes) = (Vec::new(), Vec::new());
            enter_of(order).encode(&mut message).expect("a signed order fits");
            SoupPacket::Unsequenced(&message).encode(&mut bytes).expect("it is short");
            bytes
        }),
        send: Box::new(move |bytes| Ok(writing.lock().expect("no panic").write_all(bytes)?)),
        hear: Box::new(move |heard| {
            let bytes = read(&mut reading, &mut buffer)?;
            let input = if bytes.is_empty() { SoupClientInput::Wake } else { SoupClientInput::Received(bytes) };
            step(input, &mut |message| of_ouch(heard, message)).map(drop)
        }),
    })
}

fn of_ouch(heard: &Heard, message: &[u8]) -> Result<(), Error> {
    match OuchMessage::<OuchOutbound>::decode(message)?.body {
        OuchOutbound::Accepted(of) => heard.note(of.user_ref, Told::Accepted),
        OuchOutbound::Executed(of) => heard.note(of.user_ref, Told::Executed),
        OuchOutbound::Rejected(of) => return Err(format!("an order is rejected: {of:?}").into()),
        _ => {}
    }
    Ok(())
}

/// A bridge of its own, and a session that begins with message 1.
fn over_fix(market: &Market, trader: usize) -> Result<Line, Error> {
    let listener = market.runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?;
    let settings = BridgeSettings {
        venue: market.pit.ouch_address(),
        trading: trading(trader),
        session: 1,
        ends_orders: false,
        dead_man_ms: None,
        fee_cap_ppm: 10_000,
        life_heights: LIFE,
        gather_us: 0,
    };
    let (venue, bench) = (text("WALRAS"), text("BENCH"));
    let journal = market.folder().join(format!("fix-{trader}"));
    let names = FixSettings { journal, sender: venue.clone(), target: bench.clone(), cancel_after_ms: None, last: 0 };
    let bridge = fix::run(settings, names, listener, market.news(), Box::new(|_| Ok(())));
    market.runtime.spawn(async move {
        if let Err(error) = bridge.await {
            eprintln!("a bridge of FIX: {error}");
        }
    });
    let header = move |number| FixHeader {
        sender: bench.clone(),
        target: venue.clone(),
        number,
        is_possible_duplicate: None,
        is_possible_resend: None,
        sent: FixTime::of_ms(pit::clock_ms()),
        first_sent: None,
    };
    let (mut number, mut buffer, mut frames) = (1, vec![0; CHUNK], FixReader::new(CHUNK));
    let logon = FixLogon { encryption: 0, heartbeat_s: 60, data: None, is_reset: None, username: None, password: None };
    let mut hear = move |stream: &mut TcpStream, told: &mut dyn FnMut(FixBody) -> Result<(), Error>| {
        let mut bytes = read(stream, &mut buffer)?;
        while let Some(message) = frames.take(&mut bytes)? {
            told(FixMessage::decode(message)?.body)?;
        }
        Ok::<(), Error>(())
    };
    let mut log_on = || -> Result<Option<TcpStream>, Error> {
        let (mut stream, mut is_on) = (connected(address)?, false);
        stream.write_all(&FixMessage { header: header(number), body: logon.clone().into() }.encode())?;
        let begun = Instant::now();
        while !is_on && begun.elapsed() < PATIENCE {
            let mut take = |body| {
                is_on |= matches!(body, FixBody::Logon(_));
                Ok(())
            };
            // A bridge whose venue does not answer yet hangs up.
            if hear(&mut stream, &mut take).is_err() {
                return Ok(None);
            }
        }
        Ok(is_on.then_some(stream))
    };
    let begun = Instant::now();
    let mut reading = loop {
        match log_on()? {
            Some(stream) => break stream,
            None if begun.elapsed() > PATIENCE => return Err("a bridge of FIX takes no logon".into()),
            None => std::thread::sleep(MOMENT),
        }
    };
    let mut writing = reading.try_clone()?;
    Ok(Line {
        encode: Box::new(move |order| {
            number += 1;
            FixMessage { header: header(number), body: fix_order(order).into() }.encode()
        }),
        send: Box::new(move |bytes| Ok(writing.write_all(bytes)?)),
        hear: Box::new(move |heard| hear(&mut reading, &mut |body| of_fix(heard, &body))),
    })
}

fn text(text: &str) -> FixText {
    FixText::new(text).expect("a text")
}

fn fix_order(of: &SignedOrder) -> FixNewOrder {
    FixNewOrder {
        client_order: text(&of.order.number.reference.to_string()),
        account: None,
        instructions: None,
        symbol: text("M0"),
        side: b'1',
        time: FixTime::of_ms(pit::clock_ms()),
        quantity: of.order.lots.into(),
        order_type: b'2',
        price: protocols::fix::FixDecimal::new(u64::from(of.order.tick), 4),
        // Immediate or cancel.
        time_in_force: Some(b'3'),
        least_quantity: None,
        displayed_most: None,
        text: None,
    }
}

fn of_fix(heard: &Heard, body: &FixBody) -> Result<(), Error> {
    let FixBody::Execution(of) = body else {
        let is_refusal = matches!(body, FixBody::Reject(_) | FixBody::BusinessReject(_) | FixBody::Logout(_));
        return if is_refusal { Err(format!("FIX: {body:?}").into()) } else { Ok(()) };
    };
    let reference = of.client_order.as_ref().and_then(|name| name.to_string().parse().ok());
    match (of.exec_type, reference) {
        (b'0', Some(reference)) => heard.note(reference, Told::Accepted),
        (b'F', Some(reference)) => heard.note(reference, Told::Executed),
        (b'8', _) => return Err(format!("an order is rejected: {of:?}").into()),
        _ => {}
    }
    Ok(())
}

/// A call for each order, on a connection that stays: the answer has its acceptance and its execution.
fn http(market: &Market) -> Result<Line, Error> {
    let url = format!("http://{}/v1/venue/orders", market.pit.address());
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let (give, take) = channel::<Vec<u8>>();
    Ok(Line {
        encode: Box::new(|order| json!({ "orders": [order_body(order, None)] }).to_string().into_bytes()),
        send: Box::new(move |bytes| Ok(give.send(bytes.to_vec())?)),
        hear: Box::new(move |heard| {
            let bytes = match take.recv_timeout(MOMENT) {
                Ok(bytes) => bytes,
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let mut answer = agent.post(&url).content_type("application/json").send(&bytes)?;
            let status = answer.status();
            let body = answer.body_mut().read_to_string()?;
            let placed: PlacedBody = serde_json::from_str(&body).map_err(|_| format!("{status}: {body}"))?;
            of_results(heard, &placed.results)
        }),
    })
}

fn of_results(heard: &Heard, results: &[PlacedResult]) -> Result<(), Error> {
    results.iter().try_for_each(|result| match result {
        PlacedResult::Reports(reports) => reports.iter().try_for_each(|report| of_report(heard, report)),
        PlacedResult::Error(error) => Err(format!("an order is refused: {error:?}").into()),
    })
}

fn of_report(heard: &Heard, report: &ReportBody) -> Result<(), Error> {
    let reference = report.number.reference;
    match (&report.accepted, &report.executed, &report.refused) {
        (Some(_), ..) => heard.note(reference, Told::Accepted),
        (_, Some(_), _) => heard.note(reference, Told::Executed),
        (.., Some(why)) => return Err(format!("an order is refused: {why:?}").into()),
        _ => {}
    }
    Ok(())
}

fn websocket(market: &Market, trader: usize) -> Result<Line, Error> {
    let stream = connected(market.pit.address())?;
    stream.set_read_timeout(None)?;
    let (url, writing) = (format!("ws://{}/v1/venue/stream", market.pit.address()), stream.try_clone()?);
    let (mut reading, _) = tungstenite::client(url, stream).map_err(|error| error.to_string())?;
    let request = json!({ "attach": request_body(&attach(market, trader)) });
    reading.send(Message::text(request.to_string()))?;
    while !matches!(told(reading.read()?)?, Some(VenueTold::Attached { .. })) {}
    reading.get_ref().set_read_timeout(Some(MOMENT))?;
    let mut writing = WebSocket::from_raw_socket(writing, Role::Client, None);
    Ok(Line {
        encode: Box::new(|order| json!({ "orders": [order_body(order, None)] }).to_string().into_bytes()),
        send: Box::new(move |bytes| Ok(writing.send(Message::text(std::str::from_utf8(bytes)?))?)),
        hear: Box::new(move |heard| match reading.read() {
            Ok(message) => match told(message)? {
                Some(VenueTold::Results { results, .. }) => of_results(heard, &results),
                Some(VenueTold::Report { report, .. }) => of_report(heard, &report),
                Some(VenueTold::Error { error, .. }) => Err(format!("an order is refused: {error:?}").into()),
                _ => Ok(()),
            },
            Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }),
    })
}

fn told(message: Message) -> Result<Option<VenueTold>, Error> {
    let Message::Text(text) = message else { return Ok(None) };
    Ok(Some(serde_json::from_str::<VenueMessage>(&text)?.told))
}
