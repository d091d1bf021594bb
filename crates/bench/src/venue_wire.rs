//! A Soup round trip against a bare echo, both on loopback: an OUCH order goes in, the book takes it, and its
//! acceptance comes back through the session. Nothing is signed and nothing is synced, so that the session is what is
//! measured, and not the disk.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

use ::matching::{Book, BookLimits, Command, NewOrder, SelfTrade, Side, TimeInForce};
use protocols::ouch::{OuchAccepted, OuchEnter, OuchInbound, OuchMessage, OuchOutbound};
use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
use protocols::soup::server::{SoupLog, SoupServer, SoupServerEffect, SoupServerInput};
use protocols::soup::{ANY_SESSION, SoupLimits, SoupLogin};

use crate::scaling::median;

/// Medians of the trips of a run.
pub(crate) struct RoundTrips {
    pub soup_us: f64,
    pub echo_us: f64,
}

/// Trips of each kind without the other in between: a server that has just been idle wakes late.
const IN_A_ROW: usize = 100;

/// Trips in turns, so many in a row over each socket.
pub(crate) fn round_trips(trips: usize) -> io::Result<RoundTrips> {
    let (soup, soup_served) = served(serve_soup)?;
    let (mut echo, echo_served) = served(serve_echo)?;
    let mut soup = SoupTrips::new(soup)?;
    let (mut of_soup, mut of_echo) = (Vec::new(), Vec::new());
    let order = soup.order();
    let mut bytes = vec![0; order.len() + 3];
    let timed = |times: &mut Vec<f64>, trip: &mut dyn FnMut() -> io::Result<()>| {
        for _ in 0..IN_A_ROW {
            let begun = Instant::now();
            trip()?;
            times.push(begun.elapsed().as_secs_f64() * 1e6);
        }
        io::Result::Ok(())
    };
    for _ in 0..trips.div_ceil(IN_A_ROW).max(1) {
        timed(&mut of_soup, &mut || soup.trip())?;
        timed(&mut of_echo, &mut || {
            echo.write_all(&bytes)?;
            echo.read_exact(&mut bytes)
        })?;
    }
    drop((soup, echo));
    for served in [soup_served, echo_served] {
        served.join().map_err(|_| io::Error::other("a server panicked"))??;
    }
    Ok(RoundTrips { soup_us: median(of_soup), echo_us: median(of_echo) })
}

/// Microseconds of round trips of an order's bytes over a bare socket.
pub(crate) fn echoes(trips: usize) -> io::Result<Vec<f64>> {
    let (mut echo, served) = served(serve_echo)?;
    let mut bytes = [7; 256];
    let mut trip = || -> io::Result<f64> {
        let begun = Instant::now();
        echo.write_all(&bytes)?;
        echo.read_exact(&mut bytes)?;
        Ok(begun.elapsed().as_secs_f64() * 1e6)
    };
    let times = (0..trips).map(|_| trip()).collect::<io::Result<_>>()?;
    drop(echo);
    served.join().map_err(|_| io::Error::other("a server panicked"))??;
    Ok(times)
}

type Served = std::thread::JoinHandle<io::Result<()>>;

/// A connection to a server on a thread of its own.
fn served(serve: fn(TcpStream) -> io::Result<()>) -> io::Result<(TcpStream, Served)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    Ok((client, std::thread::spawn(move || serve(server))))
}

fn serve_echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = [0; 4_096];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            length => stream.write_all(&buffer[..length])?,
        }
    }
}

/// A session of one client before a book.
fn serve_soup(mut stream: TcpStream) -> io::Result<()> {
    let begun = Instant::now();
    let now_ms = || begun.elapsed().as_millis() as u64;
    let mut book = Book::new(BookLimits { owners: 1, ..BookLimits::default() }, 7).expect("sound limits");
    let (mut server, mut log) = (SoupServer::new(SoupLimits::default(), 0), SoupLog::new(*b"         1"));
    let (mut buffer, mut accepted) = ([0; 4_096], Vec::new());
    loop {
        let length = stream.read(&mut buffer)?;
        if length == 0 {
            return Ok(());
        }
        let mut effects = server.step(now_ms(), SoupServerInput::Received(&buffer[..length]), &log);
        while !effects.is_empty() {
            let mut next = Vec::new();
            for effect in effects {
                match effect {
                    SoupServerEffect::Send(bytes) => {
                        stream.write_all(&bytes)?;
                        next.extend(server.step(now_ms(), SoupServerInput::Sent(bytes.len()), &log));
                    }
                    SoupServerEffect::Authorize(_) => {
                        next.extend(server.step(now_ms(), SoupServerInput::Verdict(true), &log));
                    }
                    SoupServerEffect::Message(message) => {
                        accept(&mut book, &message, &mut accepted)?;
                        log.publish(accepted.clone()).map_err(io::Error::other)?;
                        next.extend(server.step(now_ms(), SoupServerInput::Wake, &log));
                    }
                    SoupServerEffect::Close(_) => return Ok(()),
                }
            }
            effects = next;
        }
    }
}

/// Gives an order to the book, and encodes that it is taken.
fn accept(book: &mut Book, message: &[u8], to: &mut Vec<u8>) -> io::Result<()> {
    let message = OuchMessage::<OuchInbound>::decode(message).map_err(io::Error::other)?;
    let OuchInbound::Enter(enter) = message.body else { return Err(io::Error::other("no order")) };
    let order = NewOrder {
        owner: 0,
        reference: enter.user_ref,
        side: if enter.side == b'B' { Side::Buy } else { Side::Sell },
        tick: enter.price as u32,
        lots: enter.quantity,
        time_in_force: TimeInForce::GoodTillCancelled,
        post_only: false,
        self_trade: SelfTrade::ExpireTaker,
    };
    book.apply(&Command::New(order), &mut ());
    book.apply(&Command::Cancel { owner: 0, reference: enter.user_ref }, &mut ());
    let accepted = OuchAccepted {
        nanoseconds: 0,
        user_ref: enter.user_ref,
        side: enter.side,
        quantity: enter.quantity,
        symbol: enter.symbol,
        price: enter.price,
        time_in_force: enter.time_in_force,
        display: enter.display,
        order: enter.user_ref.into(),
        capacity: enter.capacity,
        sweep: enter.sweep,
        cross: enter.cross,
        state: b'L',
        client_order: enter.client_order,
    };
    to.clear();
    OuchMessage::plain(OuchOutbound::Accepted(accepted)).encode(to).map_err(io::Error::other)
}

/// The client of the session.
struct SoupTrips {
    stream: TcpStream,
    client: SoupClient,
    begun: Instant,
    user_ref: u32,
}

impl SoupTrips {
    fn new(stream: TcpStream) -> io::Result<SoupTrips> {
        let login =
            SoupLogin { username: *b"bench ", password: [b' '; 10], session: ANY_SESSION, next: 1, timeout_ms: None };
        let client = SoupClient::new(login, SoupLimits::default());
        let mut trips = SoupTrips { stream, client, begun: Instant::now(), user_ref: 0 };
        let effects = trips.client.step(0, SoupClientInput::Connected);
        trips.until(effects, |effect| matches!(effect, SoupClientEffect::Accepted { .. }))?;
        Ok(trips)
    }

    fn now_ms(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }

    fn order(&self) -> Vec<u8> {
        let enter = OuchEnter {
            user_ref: self.user_ref + 1,
            side: b'B',
            quantity: 10,
            symbol: *b"EURUSD  ",
            price: 100,
            time_in_force: b'0',
            display: b'Y',
            capacity: b'P',
            sweep: b'N',
            cross: b'N',
            client_order: [b' '; 14],
        };
        let mut bytes = Vec::new();
        OuchMessage::plain(OuchInbound::Enter(enter)).encode(&mut bytes).expect("fields are within bounds");
        bytes
    }

    /// An order, until its acceptance is here.
    fn trip(&mut self) -> io::Result<()> {
        let order = self.order();
        self.user_ref += 1;
        let now = self.now_ms();
        let effects = self.client.step(now, SoupClientInput::Send(&order));
        self.until(effects, |effect| matches!(effect, SoupClientEffect::Message { .. }))
    }

    fn until(
        &mut self,
        mut effects: Vec<SoupClientEffect>,
        is_it: impl Fn(&SoupClientEffect) -> bool,
    ) -> io::Result<()> {
        let mut buffer = [0; 4_096];
        loop {
            let is_here = effects.iter().any(&is_it);
            let mut next = Vec::new();
            for effect in effects {
                match effect {
                    SoupClientEffect::Send(bytes) => {
                        self.stream.write_all(&bytes)?;
                        next.extend(self.client.step(self.now_ms(), SoupClientInput::Sent(bytes.len())));
                    }
                    SoupClientEffect::Close(why) => return Err(io::Error::other(why.to_string())),
                    _ => {}
                }
            }
            if is_here {
                return Ok(());
            }
            effects = next;
            if effects.is_empty() {
                let length = self.stream.read(&mut buffer)?;
                if length == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                effects = self.client.step(self.now_ms(), SoupClientInput::Received(&buffer[..length]));
            }
        }
    }
}
