//! SoupBinTCP packets: bytes worked out by hand, what is refused, and a stream in any pieces.

use proptest::prelude::*;
use protocols::soup::{ANY_SESSION, PAYLOAD_MAX, SoupError, SoupLogin, SoupPacket, SoupReader, SoupReject};

fn bytes(packet: &SoupPacket<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    packet.encode(&mut bytes).expect("encodes");
    bytes
}

const LOGIN: SoupLogin =
    SoupLogin { username: *b"ADA   ", password: *b"secret    ", session: ANY_SESSION, next: 1, timeout_ms: None };

#[test]
fn soup_packets_have_these_bytes() {
    let login = b"\0\x2fLADA   secret                                 1";
    assert_eq!(bytes(&SoupPacket::LoginRequest(LOGIN)), login);
    let asked = bytes(&SoupPacket::LoginRequest(SoupLogin { timeout_ms: Some(9_000), ..LOGIN }));
    assert_eq!((&asked[..3], &asked[49..]), (&b"\0\x34L"[..], &b" 9000"[..]));
    let accepted = SoupPacket::LoginAccepted { session: *b"    SESS01", next: 42 };
    assert_eq!(bytes(&accepted), b"\0\x1fA    SESS01                  42");
    assert_eq!(bytes(&SoupPacket::LoginRejected(SoupReject::NotAuthorized)), b"\0\x02JA");
    assert_eq!(bytes(&SoupPacket::LoginRejected(SoupReject::NoSession)), b"\0\x02JS");
    assert_eq!(bytes(&SoupPacket::Sequenced(b"hello")), b"\0\x06Shello");
    assert_eq!(bytes(&SoupPacket::Unsequenced(b"")), b"\0\x01U");
    assert_eq!(bytes(&SoupPacket::Debug(b"x")), b"\0\x02+x");
    let bare = [SoupPacket::ServerHeartbeat, SoupPacket::EndOfSession, SoupPacket::ClientHeartbeat, SoupPacket::Logout];
    assert_eq!(bare.map(|packet| bytes(&packet)[2]), *b"HZRO");
}

#[test]
fn soup_numbers_are_read_with_any_padding() {
    for digits in ["                  42", "00000000000000000042", "42                  "] {
        let packet = [b"A    SESS01", digits.as_bytes()].concat();
        let accepted = SoupPacket::LoginAccepted { session: *b"    SESS01", next: 42 };
        assert_eq!(SoupPacket::decode(&packet), Ok(accepted));
    }
    for digits in ["                    ", "                 4 2", "                 +42", "18446744073709551616"] {
        let packet = [b"A    SESS01", digits.as_bytes()].concat();
        assert_eq!(SoupPacket::decode(&packet), Err(SoupError::Number { kind: b'A' }));
    }
}

#[test]
fn a_soup_error_names_the_type_and_the_lengths() {
    assert_eq!(SoupPacket::decode(b""), Err(SoupError::Empty));
    assert_eq!(SoupPacket::decode(b"x"), Err(SoupError::Kind(b'x')));
    assert_eq!(SoupPacket::decode(b"Jx"), Err(SoupError::Reason(b'x')));
    let cut = SoupPacket::decode(b"LADA").expect_err("cut");
    assert_eq!(cut.to_string(), "the payload of a SoupBinTCP packet of type L has 46 bytes, not 3");
    for (packet, needs) in [(b"Hx", 0), (b"Zx", 0), (b"Rx", 0), (b"Ox", 0), (b"Ax", 30)] {
        assert_eq!(SoupPacket::decode(packet), Err(SoupError::Payload { kind: packet[0], needs, has: 1 }));
    }
}

#[test]
fn soup_packets_that_are_too_long_are_not_encoded() {
    let mut to = vec![];
    let payload = vec![0; PAYLOAD_MAX + 1];
    assert_eq!(SoupPacket::Sequenced(&payload).encode(&mut to), Err(SoupError::TooLong(65_535)));
    let login = SoupPacket::LoginRequest(SoupLogin { timeout_ms: Some(100_000), ..LOGIN });
    assert_eq!(login.encode(&mut to), Err(SoupError::Timeout(100_000)));
    assert!(to.is_empty());
    assert_eq!(SoupPacket::Sequenced(&payload[1..]).encode(&mut to), Ok(()));
    assert_eq!(SoupPacket::decode(&to[2..]), Ok(SoupPacket::Sequenced(&payload[1..])));
}

#[test]
fn a_soup_reader_refuses_a_length_that_is_too_large_before_its_packet() {
    let mut reader = SoupReader::new(47);
    assert_eq!(reader.take(&mut &b"\0"[..]), Ok(None));
    let mut rest = &b"\x30Lsecret"[..];
    assert_eq!(reader.take(&mut rest), Err(SoupError::Length { most: 47, has: 48 }));
    assert_eq!(rest, b"Lsecret");
    assert_eq!(reader.take(&mut rest), Err(SoupError::Length { most: 47, has: 48 }));
    assert_eq!(SoupReader::new(47).take(&mut &b"\0\0S"[..]), Err(SoupError::Empty));
    assert_eq!(SoupReader::new(1).take(&mut &b"\0\x01H"[..]), Ok(Some(SoupPacket::ServerHeartbeat)));
}

#[derive(Clone, Debug)]
enum Kind {
    Fields(SoupPacket<'static>),
    Debug(Vec<u8>),
    Sequenced(Vec<u8>),
    Unsequenced(Vec<u8>),
}

impl Kind {
    fn packet(&self) -> SoupPacket<'_> {
        match self {
            Kind::Fields(packet) => *packet,
            Kind::Debug(payload) => SoupPacket::Debug(payload),
            Kind::Sequenced(payload) => SoupPacket::Sequenced(payload),
            Kind::Unsequenced(payload) => SoupPacket::Unsequenced(payload),
        }
    }
}

fn packet() -> impl Strategy<Value = Kind> {
    let payload = || prop::collection::vec(any::<u8>(), 0..40);
    let names = (any::<[u8; 6]>(), any::<[u8; 10]>(), any::<[u8; 10]>());
    let login = (names, any::<u64>(), prop::option::of(0..100_000u32));
    prop_oneof![
        payload().prop_map(Kind::Debug),
        payload().prop_map(Kind::Sequenced),
        payload().prop_map(Kind::Unsequenced),
        prop::sample::select(vec![
            SoupPacket::ServerHeartbeat,
            SoupPacket::EndOfSession,
            SoupPacket::ClientHeartbeat,
            SoupPacket::Logout,
            SoupPacket::LoginRejected(SoupReject::NotAuthorized),
            SoupPacket::LoginRejected(SoupReject::NoSession),
        ])
        .prop_map(Kind::Fields),
        (any::<[u8; 10]>(), any::<u64>())
            .prop_map(|(session, next)| Kind::Fields(SoupPacket::LoginAccepted { session, next })),
        login.prop_map(|((username, password, session), next, timeout_ms)| {
            Kind::Fields(SoupPacket::LoginRequest(SoupLogin { username, password, session, next, timeout_ms }))
        }),
    ]
}

proptest! {
    #[test]
    fn soup_packets_are_decoded_as_they_were(kind in packet()) {
        let packet = kind.packet();
        let bytes = bytes(&packet);
        prop_assert_eq!(usize::from(u16::from_be_bytes([bytes[0], bytes[1]])), bytes.len() - 2);
        prop_assert_eq!(SoupPacket::decode(&bytes[2..]), Ok(packet));
    }

    #[test]
    fn soup_decodes_any_bytes_without_panic(
        kind in prop::sample::select(&b"+AJSHZLURO"[..]),
        mut payload in prop::collection::vec(prop_oneof![any::<u8>(), b'0'..=b'9', Just(b' ')], 0..60),
        at in 0..4usize,
    ) {
        payload.resize([payload.len(), 30, 46, 51][at], b'1');
        let _ = SoupPacket::decode(&[&[kind][..], &payload].concat());
        let mut stream = &payload[..];
        let mut reader = SoupReader::new(40);
        while let Ok(Some(_)) = reader.take(&mut stream) {}
    }

    #[test]
    fn a_soup_reader_finds_the_packets_of_a_stream_in_any_pieces(
        kinds in prop::collection::vec(packet(), 0..8),
        pieces in prop::collection::vec(1..60usize, 1..20),
    ) {
        let stream: Vec<u8> = kinds.iter().flat_map(|kind| bytes(&kind.packet())).collect();
        let (mut reader, mut rest, mut found) = (SoupReader::new(u16::MAX), &stream[..], 0);
        for piece in pieces.iter().cycle() {
            if found == kinds.len() {
                break;
            }
            let (mut now, later) = rest.split_at((*piece).min(rest.len()));
            while let Some(packet) = reader.take(&mut now).expect("packets") {
                prop_assert_eq!(packet, kinds[found].packet());
                found += 1;
            }
            prop_assert!(now.is_empty());
            rest = later;
        }
        prop_assert!(rest.is_empty());
    }
}
