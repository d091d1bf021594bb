//! Mutations of what sockets bring: messages of FIX and a session that hears them, packets of SoupBinTCP, messages of
//! OUCH, packets and requests of MoldUDP64, messages of ITCH, and ends of snapshots.

use fuzz::Target;
use protocols::fix::frame::FixReader;
use protocols::fix::journal::FixJournal;
use protocols::fix::session::{FixEffect, FixInput, FixLimits, FixSession};
use protocols::fix::{FixError, FixMessage, FixText, MESSAGE_MAX};
use protocols::glimpse::{read_snapshot_end, snapshot_end};
use protocols::itch::{Delete, ItchBody, ItchHeader, ItchMessage};
use protocols::mold::{MoldPacket, MoldRequest};
use protocols::ouch::{OuchBody, OuchCancel, OuchInbound, OuchMassCancel, OuchMessage, OuchOption, OuchOutbound};
use protocols::soup::server::{SoupLog, SoupServer, SoupServerEffect, SoupServerInput};
use protocols::soup::{ANY_SESSION, SoupLimits, SoupLogin, SoupPacket};

const WORDS: [&str; 10] = [
    "35=",
    "\u{1}10=",
    "\u{1}34=0",
    "\u{1}43=Y",
    "\u{1}36=",
    "\u{1}95=",
    "\u{1}534=",
    "\u{1}",
    "=",
    "8=FIX.4.4\u{1}9=",
];

const BODIES: [&str; 9] = [
    "35=A|49=ADA|56=VENUE|34=1|52=20261126-20:15:07.250|98=0|108=30|95=3|96=a|b|",
    "35=D|49=ADA|56=VENUE|34=2|52=20261126-20:15:07|11=a|55=W|54=1|60=20261126-20:15:07|38=100|40=2|44=1.5|",
    "35=2|49=ADA|56=VENUE|34=3|52=20261126-20:15:07|7=1|16=0|",
    "35=4|49=ADA|56=VENUE|34=2|43=Y|52=20261126-20:15:07|122=20261126-20:15:07|123=Y|36=9|",
    "35=4|49=ADA|56=VENUE|34=2|52=20261126-20:15:07|36=12|",
    "35=r|49=ADA|56=VENUE|34=4|52=20261126-20:15:07|37=9|530=7|531=7|534=2|41=a|535=b|41=c|",
    "35=F|49=ADA|56=VENUE|34=5|52=20261126-20:15:07|41=a|11=b|55=W|54=1|60=20261126-20:15:07|",
    "35=1|49=ADA|56=VENUE|34=6|52=20261126-20:15:07|112=x|",
    "35=5|49=ADA|56=VENUE|34=7|52=20261126-20:15:07|58=bye|",
];

fn bodies() -> Vec<Vec<u8>> {
    BODIES.map(|body| body.replace('|', "\u{1}").into_bytes()).to_vec()
}

/// A whole message, whatever its body is.
fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("8=FIX.4.4\u{1}9={}\u{1}", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    let sum = bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
    bytes.extend(format!("10={sum:03}\u{1}").bytes());
    bytes
}

#[test]
fn fix_bodies() {
    let target = Target { words: &WORDS, ..Target::new("fix-body", bodies()) };
    target.run(|bytes| {
        let message = FixMessage::decode(bytes).map_err(|error| error.to_string())?;
        let (mut reader, again) = (FixReader::new(usize::MAX), message.encode());
        let body = reader.take(&mut &again[..]).expect("a frame").expect("whole").to_vec();
        assert_eq!(FixMessage::decode(&body).as_ref(), Ok(&message));
        Ok(message.body.kind().to_string())
    });
}

#[test]
fn fix_streams() {
    let seeds: Vec<Vec<u8>> = bodies().iter().map(|body| framed(body)).collect();
    let target = Target { words: &WORDS, ..Target::new("fix-stream", seeds) };
    target.run(|bytes| {
        let (mut reader, mut rest, mut count) = (FixReader::new(MESSAGE_MAX), bytes, 0);
        loop {
            match reader.take(&mut rest) {
                Ok(Some(_)) => count += 1,
                Ok(None) => return if count > 0 { Ok("messages".into()) } else { Err("no message".into()) },
                Err(FixError::Checksum { .. }) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    });
}

/// A session answers anything, keeps to its bounds, and hands on no number twice.
#[test]
fn fix_sessions_hear_anything() {
    let target = Target { words: &WORDS, takes_seeds: false, ..Target::new("fix-session", bodies()) };
    target.run(|bytes| {
        let text = |text: &str| FixText::new(text).expect("a text");
        let mut journal = FixJournal::new(text("VENUE"), text("ADA"));
        let mut session = FixSession::accept(FixLimits::default(), 0);
        let (logon, mut kinds, mut last) = (framed(&bodies()[0]), String::new(), 1);
        session.step(0, FixInput::Received(&logon), &mut journal);
        session.step(0, FixInput::Verdict(true), &mut journal);
        for now_ms in 1..5 {
            for effect in session.step(now_ms, FixInput::Received(&framed(bytes)), &mut journal) {
                match effect {
                    FixEffect::Message(message) => {
                        assert!(message.header.number > last, "{} after {last}", message.header.number);
                        last = message.header.number;
                    }
                    FixEffect::Close(reason) => return Err(reason.to_string()),
                    FixEffect::Send(bytes) => assert!(bytes.len() < 2 * MESSAGE_MAX),
                    other => kinds += &format!("{:?}", std::mem::discriminant(&other)),
                }
            }
        }
        Ok(kinds)
    });
}

fn packet(packet: &SoupPacket) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.encode(&mut bytes).expect("it is short");
    bytes
}

/// A server of SoupBinTCP answers anything, and takes no message before a login.
#[test]
fn soup_servers_hear_anything() {
    let login =
        SoupLogin { username: [b' '; 6], password: [b' '; 10], session: ANY_SESSION, next: 1, timeout_ms: Some(9) };
    let login = packet(&SoupPacket::LoginRequest(login));
    let others = [SoupPacket::Unsequenced(b"order"), SoupPacket::ClientHeartbeat].map(|of| packet(&of));
    let seeds = others.iter().map(|other| [&login[..], other].concat()).chain([login.clone()]).collect();
    Target::new("soup-server", seeds).run(|bytes| {
        let log = SoupLog::new(*b"0000000001");
        let (mut server, mut kinds, mut is_asked) = (SoupServer::new(SoupLimits::default(), 0), String::new(), false);
        // The verdict comes between two pieces.
        let (first, rest) = bytes.split_at(bytes.len().min(login.len()));
        for input in [SoupServerInput::Received(first), SoupServerInput::Verdict(true), SoupServerInput::Received(rest)]
        {
            for effect in server.step(1, input, &log) {
                match effect {
                    SoupServerEffect::Close(why) => return Err(format!("{:?}", std::mem::discriminant(&why))),
                    SoupServerEffect::Authorize(_) => is_asked = true,
                    SoupServerEffect::Message(_) => assert!(is_asked),
                    SoupServerEffect::Send(_) => {}
                }
                kinds += "+";
            }
        }
        Ok(kinds)
    });
}

fn ouch<B: OuchBody>(name: &str, seeds: &[OuchMessage<B>]) {
    let encoded = |message: &OuchMessage<B>| {
        let mut bytes = Vec::new();
        message.encode(&mut bytes).expect("its options suit its kind");
        bytes
    };
    Target::new(name, seeds.iter().map(encoded).collect()).run(|bytes| {
        let message = OuchMessage::<B>::decode(bytes).map_err(|error| error.to_string())?;
        assert_eq!(encoded(&message), bytes, "a message has one encoding");
        Ok(char::from(message.body.kind()).to_string())
    });
}

#[test]
fn ouch_messages() {
    let mass = OuchInbound::MassCancel(OuchMassCancel { user_ref: 1, firm: [b' '; 4], symbol: [b' '; 8] });
    let with_options = OuchMessage { body: mass, options: Some(vec![OuchOption::Side(b'B')]) };
    let cancel = OuchMessage::plain(OuchInbound::Cancel(OuchCancel { user_ref: 7, quantity: 0 }));
    ouch("ouch-inbound", &[with_options, cancel]);
    let restated = protocols::ouch::OuchRestated { nanoseconds: 1, user_ref: 2, reason: b'S' };
    let options = Some(vec![OuchOption::Unknown { tag: 202, value: vec![0; 16] }]);
    ouch("ouch-outbound", &[OuchMessage { body: OuchOutbound::Restated(restated), options }]);
}

#[test]
fn market_data_packets() {
    let header = ItchHeader { locate: 1, tracking: 0, nanoseconds: 5 };
    let mut message = Vec::new();
    ItchMessage { header, body: ItchBody::Delete(Delete { order: 9 }) }.encode(&mut message).expect("in time");
    let (session, first) = (*b"0000000001", 3);
    let data = MoldPacket { session, first, messages: vec![&message, &message], is_end: false };
    let seeds = vec![data.encode().expect("short"), MoldRequest { session, first, count: 0 }.encode()];
    Target::new("mold-packet", seeds).run(|bytes| {
        let packet = MoldPacket::decode(bytes).map_err(|error| error.to_string())?;
        assert_eq!(packet.encode().as_deref(), Some(bytes), "a packet has one encoding");
        let last = packet.messages.last().map(|message| ItchMessage::decode(message).map(|of| of.body.kind()));
        Ok(format!("{last:?}"))
    });
    let request = MoldRequest { session, first, count: 2 }.encode();
    Target::new("mold-request", vec![request]).run(|bytes| {
        let request = MoldRequest::decode(bytes).map_err(|error| error.to_string())?;
        assert_eq!(request.encode(), bytes, "a request has one encoding");
        Ok("request".into())
    });
    Target::new("glimpse-end", vec![snapshot_end(7)]).run(|bytes| {
        let next = read_snapshot_end(bytes).ok_or("no end")?;
        assert_eq!(read_snapshot_end(&snapshot_end(next)), Some(next));
        Ok("end".into())
    });
}
