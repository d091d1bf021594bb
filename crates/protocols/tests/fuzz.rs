//! Mutations of FIX messages: the reader, the fields, and a session that hears them.

use fuzz::Target;
use protocols::fix::frame::FixReader;
use protocols::fix::journal::FixJournal;
use protocols::fix::session::{FixEffect, FixInput, FixLimits, FixSession};
use protocols::fix::{FixError, FixMessage, FixText, MESSAGE_MAX};

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
