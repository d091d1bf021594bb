//! A FIX acceptor for tests with other engines: it prints its port on loopback and takes one connection after another.
//! The journal is in memory and outlives the connections. Orders rest until they are cancelled; nothing trades.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, SystemTime};

use protocols::fix::journal::FixJournal;
use protocols::fix::session::{FixEffect, FixInput, FixLimits, FixSession};
use protocols::fix::{
    FixAffected, FixBody, FixCancelReject, FixDecimal, FixExecution, FixMassCancelReport, FixNewOrder, FixText,
};

fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    let mut venue = Venue::default();
    let mut journal = FixJournal::new(text("VENUE"), text("ADA"));
    for stream in listener.incoming() {
        match serve(stream?, &mut journal, &mut venue) {
            Ok(reason) => println!("{reason}"),
            Err(error) => println!("the connection is lost: {error}"),
        }
    }
    Ok(())
}

fn text(text: &str) -> FixText {
    FixText::new(text).expect("a text without 0x01")
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

/// Serves one connection to its end; why it ended.
fn serve(mut stream: TcpStream, journal: &mut FixJournal, venue: &mut Venue) -> Result<String, Box<dyn Error>> {
    stream.set_read_timeout(Some(Duration::from_millis(20)))?;
    let mut session = FixSession::accept(FixLimits::default(), now_ms());
    let mut bytes = [0; 4_096];
    loop {
        let input = match stream.read(&mut bytes) {
            Ok(0) => FixInput::Lost,
            Ok(count) => FixInput::Received(&bytes[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => FixInput::Wake,
            Err(_) => FixInput::Lost,
        };
        let mut effects = session.step(now_ms(), input, journal);
        while !effects.is_empty() {
            let mut more = Vec::new();
            for effect in effects {
                match effect {
                    FixEffect::Send(bytes) => {
                        stream.write_all(&bytes)?;
                        more.extend(session.step(now_ms(), FixInput::Sent(bytes.len()), journal));
                    }
                    FixEffect::Authorize(_) => more.extend(session.step(now_ms(), FixInput::Verdict(true), journal)),
                    FixEffect::Message(message) => {
                        for answer in venue.answers(message.body) {
                            more.extend(session.step(now_ms(), FixInput::Send(&answer), journal));
                        }
                    }
                    FixEffect::Close(reason) => return Ok(reason.to_string()),
                    _ => {}
                }
            }
            effects = more;
        }
    }
}

/// Orders that rest, by the participant's own numbers.
#[derive(Default)]
struct Venue {
    orders: BTreeMap<FixText, FixNewOrder>,
    reports: u32,
}

impl Venue {
    fn answers(&mut self, body: FixBody) -> Vec<FixBody> {
        match body {
            FixBody::NewOrder(order) => {
                let (exec_type, reason) = match order.to_ouch(1) {
                    Ok(_) => (b'0', None),
                    Err(error) => (b'8', Some(text(&error.to_string()))),
                };
                let report = self.report(&order, exec_type, None, reason);
                if exec_type == b'0' {
                    self.orders.insert(order.client_order.clone(), order);
                }
                vec![report]
            }
            FixBody::CancelRequest(request) => match self.orders.remove(&request.original) {
                Some(order) => vec![self.report(&order, b'4', Some(request.client_order), None)],
                None => vec![unknown(request.client_order, request.original, b'1')],
            },
            FixBody::ReplaceRequest(request) => match self.orders.remove(&request.original) {
                Some(order) => {
                    let (quantity, price) = (request.quantity, request.price);
                    let report = FixNewOrder { quantity, price, ..order.clone() };
                    let report = self.report(&report, b'5', Some(request.client_order.clone()), None);
                    let client_order = request.client_order.clone();
                    self.orders.insert(request.client_order, FixNewOrder { client_order, quantity, price, ..order });
                    vec![report]
                }
                None => vec![unknown(request.client_order, request.original, b'2')],
            },
            FixBody::StatusRequest(request) => match self.orders.get(&request.client_order).cloned() {
                Some(order) => vec![self.report(&order, b'I', None, None)],
                None => vec![],
            },
            FixBody::MassCancelRequest(request) => {
                let affected: Vec<FixAffected> = std::mem::take(&mut self.orders)
                    .into_keys()
                    .map(|original| FixAffected { original, order: None })
                    .collect();
                let report = FixMassCancelReport {
                    client_order: Some(request.client_order),
                    order: text("MASS"),
                    scope: request.scope,
                    response: request.scope,
                    reason: None,
                    total: Some(affected.len() as u64),
                    affected,
                    symbol: request.symbol,
                    side: request.side,
                    text: None,
                };
                vec![report.into()]
            }
            _ => vec![],
        }
    }

    fn report(
        &mut self,
        order: &FixNewOrder,
        exec_type: u8,
        request: Option<FixText>,
        why: Option<FixText>,
    ) -> FixBody {
        self.reports += 1;
        let is_over = matches!(exec_type, b'4' | b'8');
        let report = FixExecution {
            order: text("1"),
            original: request.as_ref().map(|_| order.client_order.clone()),
            client_order: request.or_else(|| Some(order.client_order.clone())),
            execution: text(&self.reports.to_string()),
            corrects: None,
            exec_type,
            status: if exec_type == b'I' { b'0' } else { exec_type },
            reason: None,
            symbol: order.symbol.clone(),
            side: order.side,
            quantity: Some(order.quantity),
            price: order.price,
            time_in_force: order.time_in_force,
            last_quantity: None,
            last_price: None,
            left: if is_over { FixDecimal::from(0) } else { order.quantity },
            filled: FixDecimal::from(0),
            average: FixDecimal::from(0),
            time: None,
            text: why,
        };
        report.into()
    }
}

/// The refusal of a cancel (`1`) or a replacement (`2`) of an order that does not rest.
fn unknown(client_order: FixText, original: FixText, response_to: u8) -> FixBody {
    let (order, status, reason) = (text("NONE"), b'8', Some(1));
    FixCancelReject { order, client_order, original, status, response_to, reason, text: None }.into()
}
