//! A node that is killed after its door has journaled orders and before its root has heard of them: after the restart
//! each number has one answer, also if the node is killed again, and a rejected order never trades.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use pit::ouch::{HELLO, OuchHost, OuchLink, OuchParty, OuchSession, OuchSessions, SIGNED_ORDER, day_of, enter_of};
use primitives::PublicKey;
use primitives::venue::{OrderNumber, SettledOrder, SignedOrder, VenueSide};
use protocols::ouch::{OuchCancel, OuchInbound, OuchMassCancel, OuchMessage, OuchOption, OuchOutbound, OuchReplace};
use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
use protocols::soup::server::SoupServerInput;
use protocols::soup::{ANY_SESSION, SoupLimits, SoupLogin, SoupPacket};
use store::RealDisk;
use venue::{CheckedOrderList, RequestScope, SessionNumber, TradeCommand, TraderAsk, TraderRequest, session_number};

use super::{Market, kinds, now_ms};

fn client() -> SoupClient {
    let (username, password) = (*b"BOB   ", *b"x         ");
    let login = SoupLogin { username, password, session: ANY_SESSION, next: 1, timeout_ms: None };
    SoupClient::new(login, SoupLimits::default())
}

fn encoded(body: OuchInbound, options: Vec<OuchOption>) -> Vec<u8> {
    let mut bytes = Vec::new();
    OuchMessage { body, options: Some(options) }.encode(&mut bytes).expect("its options suit its kind");
    bytes
}

/// A door whose root hears nothing: what the node does until the moment in which it is killed.
struct Deaf {
    sessions: RefCell<OuchSessions<RealDisk>>,
    scope: RequestScope,
}

impl OuchHost for Deaf {
    fn now_ms(&self) -> u64 {
        now_ms()
    }

    fn scope(&self) -> Option<RequestScope> {
        Some(self.scope)
    }

    fn with<T>(&self, session: SessionNumber, with: impl FnOnce(&mut OuchSession) -> T) -> T {
        self.sessions.borrow_mut().with(session, with)
    }

    fn takes_orders(&self) -> bool {
        true
    }

    fn trade(&self, _: SessionNumber, _: PublicKey, _: TradeCommand) -> bool {
        true
    }

    fn list(&self, _: SessionNumber, _: CheckedOrderList) -> bool {
        true
    }

    fn heartbeat(&self, _: SessionNumber) {}

    fn wake(&self) {}
}

/// Messages reach the door of the killed node, which journals them.
fn journal_alone(market: &Market, key: PublicKey, messages: &[Vec<u8>]) {
    let (now, incarnation) = (now_ms(), market.scope.incarnation);
    let folder = market.home().join(format!("data/venues/0/sessions/{incarnation}-{}", day_of(now)));
    let mut sessions = OuchSessions::default();
    let disk = RealDisk::new(&folder).expect("the node's");
    let effects = sessions.open(disk, day_of(now), incarnation, now).expect("it opens");
    let host = Deaf { sessions: RefCell::new(sessions), scope: market.scope };
    let party = OuchParty { session: session_number(&key, 1), key, number: 1, has_timer: false };
    let (mut link, mut client) = (OuchLink::begin(&host, party), client());
    let mut step = |input: SoupClientInput<'_>| {
        for effect in client.step(now, input) {
            let SoupClientEffect::Send(bytes) = effect else { continue };
            let answer = link.step(&host, SoupServerInput::Received(&bytes)).bytes;
            client.step(now, SoupClientInput::Received(&answer));
        }
    };
    step(SoupClientInput::Connected);
    messages.iter().for_each(|message| step(SoupClientInput::Send(message)));
    host.sessions.borrow_mut().write(effects.expect("it has told something")).expect("written");
}

/// A session at the venue's own door.
struct Session {
    stream: TcpStream,
    client: SoupClient,
    told: Vec<OuchMessage<OuchOutbound>>,
}

impl Session {
    fn open(market: &Market, person: &str) -> Session {
        // Stamps are used once.
        std::thread::sleep(Duration::from_millis(2));
        let ask = TraderAsk::Attach { session: 1, ends_orders: false, dead_man_ms: None };
        let request = TraderRequest::sign(&market.scope, &market.trading(person), now_ms(), ask);
        let text = [HELLO, &borsh::to_vec(&request).expect("plain data")].concat();
        let mut bytes = Vec::new();
        SoupPacket::Debug(&text).encode(&mut bytes).expect("it is short");
        let mut stream = TcpStream::connect(&market.ouch).expect("the venue listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        stream.write_all(&bytes).expect("the venue reads");
        let mut session = Session { stream, client: client(), told: Vec::new() };
        session.step(SoupClientInput::Connected);
        while session.client.session() == ANY_SESSION {
            session.read();
        }
        session
    }

    fn step(&mut self, input: SoupClientInput<'_>) {
        for effect in self.client.step(now_ms(), input) {
            match effect {
                SoupClientEffect::Send(bytes) => {
                    self.stream.write_all(&bytes).expect("the venue reads");
                    self.client.step(now_ms(), SoupClientInput::Sent(bytes.len()));
                }
                SoupClientEffect::Message { message, .. } => {
                    self.told.push(OuchMessage::decode(&message).expect("OUCH"));
                }
                SoupClientEffect::Close(why) => panic!("{why}"),
                _ => {}
            }
        }
    }

    /// Reads until so much was told.
    fn until(&mut self, holds: impl Fn(&[OuchMessage<OuchOutbound>]) -> bool) {
        while !holds(&self.told) {
            self.read();
        }
    }

    fn read(&mut self) {
        let mut buffer = [0; 4_096];
        let bytes = self.stream.read(&mut buffer).unwrap_or_else(|error| panic!("{error}: {:?}", self.told));
        assert!(bytes > 0, "the venue hung up: {:?}", self.told);
        self.step(SoupClientInput::Received(&buffer[..bytes]));
    }
}

fn rejected(message: &OuchMessage<OuchOutbound>) -> Option<(u32, u16)> {
    match message.body {
        OuchOutbound::Rejected(of) => Some((of.user_ref, of.reason)),
        _ => None,
    }
}

fn responded(message: &OuchMessage<OuchOutbound>) -> Option<u32> {
    match message.body {
        OuchOutbound::MassCancelResponse(of) => Some(of.user_ref),
        _ => None,
    }
}

/// A replacement as a bridge signs it.
fn replaced(before: u32, signed: &SignedOrder) -> Vec<u8> {
    let OuchInbound::Enter(enter) = enter_of(signed).body else { panic!("a new order") };
    let replace = OuchReplace {
        before,
        user_ref: enter.user_ref,
        quantity: enter.quantity,
        price: enter.price,
        time_in_force: enter.time_in_force,
        display: enter.display,
        sweep: enter.sweep,
        client_order: enter.client_order,
    };
    let value = borsh::to_vec(&SettledOrder::from(*signed)).expect("plain data");
    encoded(OuchInbound::Replace(replace), vec![OuchOption::Unknown { tag: SIGNED_ORDER, value }])
}

pub(crate) fn numbers(market: &mut Market) {
    let key = market.trading("bob").public();
    let mut session = Session::open(market, "bob");
    let rests = market.order("bob", VenueSide::Sell, 160, 2);
    let OuchMessage { body, options } = enter_of(&rests);
    session.step(SoupClientInput::Send(&encoded(body, options.unwrap_or_default())));
    let OrderNumber { reference, .. } = rests.order.number;
    let accepted = |message: &OuchMessage<OuchOutbound>| match message.body {
        OuchOutbound::Accepted(of) => Some(of.user_ref),
        _ => None,
    };
    session.until(|told| told.iter().filter_map(accepted).any(|number| number == reference));

    // The root never hears of orders, a replacement and a request to end all.
    drop(market.node.take());
    let orders: Vec<SignedOrder> = (0..8).map(|_| market.order("bob", VenueSide::Sell, 161, 1)).collect();
    let last = market.order("bob", VenueSide::Sell, 162, 2);
    let mut messages: Vec<Vec<u8>> = orders
        .iter()
        .map(|order| {
            let OuchMessage { body, options } = enter_of(order);
            encoded(body, options.unwrap_or_default())
        })
        .collect();
    messages.push(replaced(rests.order.number.reference, &last));
    market.next += 1;
    let mass = OuchMassCancel { user_ref: market.next, firm: [b' '; 4], symbol: [b' '; 8] };
    messages.push(encoded(OuchInbound::MassCancel(mass), Vec::new()));
    journal_alone(market, key, &messages);
    let first = orders[0].order.number.reference;
    // The door has responded to the request by itself: that is its one answer.
    let lost: Vec<(u32, u16)> = (first..mass.user_ref).map(|number| (number, pit::codes::LOST)).collect();
    let rejected = |message: &OuchMessage<OuchOutbound>| rejected(message).filter(|(number, _)| *number >= first);

    // The node is killed again as soon as it has answered, or before.
    for is_patient in [false, true, true] {
        market.start();
        if is_patient {
            market.until(|status| status.standing == "runs" && status.paused.is_none());
            let mut session = Session::open(market, "bob");
            messages.iter().for_each(|message| session.step(SoupClientInput::Send(message)));
            session.until(|told| told.iter().filter_map(&rejected).count() >= lost.len());
            // Whatever else is told of these numbers comes before the answer to a cancel.
            let cancel = encoded(OuchInbound::Cancel(OuchCancel { user_ref: first, quantity: 0 }), Vec::new());
            let before = session.told.len();
            session.step(SoupClientInput::Send(&cancel));
            session.until(|told| told.len() > before);
            assert!(matches!(session.told[before].body, OuchOutbound::CancelReject(_)), "{:?}", session.told);
            let answers: Vec<(u32, u16)> = session.told.iter().filter_map(&rejected).collect();
            assert_eq!(answers, lost);
            let responses: Vec<u32> = session.told.iter().filter_map(responded).collect();
            assert_eq!(responses, [mass.user_ref]);
        }
        drop(market.node.take());
    }
    market.start();
    market.until(|status| status.standing == "runs" && status.paused.is_none());
    // No way in takes them now, and what was to be replaced rests.
    for order in &orders {
        let refused = market.place(order);
        assert_eq!(refused["reports"][0]["refused"]["code"], "overtaken", "{refused}");
    }
    let ended = market.ask("bob", TraderAsk::Cancel { number: rests.order.number, keeps: 0 });
    // Its session is told, too.
    assert!(kinds(&ended).iter().all(|kind| *kind == "ended"), "{reference}: {ended}");
    assert!(!kinds(&ended).is_empty(), "{reference}: {ended}");
}
