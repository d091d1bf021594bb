//! What members tell each other: encodings, MACs and counters of streams, seatings.

use fairnet::*;
use proptest::prelude::*;

const SECRET: [u8; 32] = [3; 32];

fn terms(nonces: [[u8; 16]; 2]) -> LinkTerms {
    LinkTerms { from: 5, to: 0, purpose: LinkPurpose::Orders, nonces }
}

fn ends(nonces: [[u8; 16]; 2]) -> (LinkSeal, LinkSeal) {
    (LinkSeal::new(&SECRET, &terms(nonces), true), LinkSeal::new(&SECRET, &terms(nonces), false))
}

fn seat(member: MemberId) -> Seat {
    let at = |port: u16| ([127, 0, 0, 1], port).into();
    let port = 2 * member as u16;
    Seat { member, place: EdgePlace { datagrams: at(port + 1), streams: at(port + 2) } }
}

fn seating(proxies: u64, gateways: u64, layers: Option<u32>, hedging: u32) -> Option<Seating> {
    let (proxies, gateways): (Vec<Seat>, Vec<Seat>) =
        ((1..=proxies).map(seat).collect(), (1_000..1_000 + gateways).map(seat).collect());
    Seating::new(7, SeatingShape { layers, hedging }, seat(0), &proxies, &gateways)
}

fn order(body: Vec<u8>) -> LinkMessage {
    let token = OrderToken { reference: 9, token: [4; 16] };
    let item = EdgeOrder { participant: 5, session: 2, token, md_seq: 77, body };
    let key = MergeKey { mid: 1, stamp: 2, source: 5, sub: 0 };
    LinkMessage::Order(Box::new(Sequenced { class: OrderClass::Other, key, restamped: Some(key), item }))
}

fn messages() -> Vec<LinkMessage> {
    let sample = ShownSample { sequence: 1, delay: 2, held: 3, late: 4, error_bound: None };
    vec![
        LinkMessage::Join(MemberRole::Gateway, seat(5).place),
        LinkMessage::Alive(3),
        LinkMessage::Event(FairnessEvent::Late(5, 1_234)),
        LinkMessage::Expelled(1_000, 5),
        LinkMessage::Probed(7, ProbePair { sent: [1, 2], received: [3, u64::MAX] }),
        LinkMessage::Shown(sample),
        LinkMessage::Shown(ShownSample { error_bound: Some(100), ..sample }),
        LinkMessage::Configure(Box::new(seating(6, 20, Some(2), 1).expect("a tree")), *b"0000000001"),
        LinkMessage::Begin(8),
        LinkMessage::Hello,
        LinkMessage::Unknown,
        LinkMessage::TooSoon(9),
        LinkMessage::Taken(2, vec![OrderToken { reference: 9, token: [4; 16] }; 3]),
        order(vec![1, 2, 3]),
        LinkMessage::Watermark(OrderClass::Critical, MergeKey::at(1, 2)),
        LinkMessage::Delay(55),
        LinkMessage::Credit(64),
        LinkMessage::Report(10, b"executed".to_vec()),
        LinkMessage::Report(u64::MAX, Vec::new()),
    ]
}

#[test]
fn link_messages_survive_their_frames() {
    let (mut up, mut down) = ends([[1; 16], [2; 16]]);
    let mut bytes = Vec::new();
    messages().iter().for_each(|message| up.seal(message, &mut bytes));
    let (mut rest, mut found) = (&bytes[..], Vec::new());
    while let Some((message, used)) = down.open(rest).expect("authentic") {
        found.push(message);
        rest = &rest[used..];
    }
    assert_eq!((found, rest.len()), (messages(), 0));
}

#[test]
fn forged_repeated_reordered_and_foreign_frames_end_a_link() {
    let nonces = [[1; 16], [2; 16]];
    let frame = |seal: &mut LinkSeal, credit| {
        let mut bytes = Vec::new();
        seal.seal(&LinkMessage::Credit(credit), &mut bytes);
        bytes
    };
    let (mut up, mut down) = ends(nonces);
    let (first, second) = (frame(&mut up, 1), frame(&mut up, 2));
    assert_eq!(down.open(&second), Err(LinkError::Forged), "a frame was left out");
    for bit in 32..first.len() * 8 {
        let mut forged = first.clone();
        forged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(down.open(&forged), Err(LinkError::Forged), "bit {bit}");
    }
    assert!(matches!(down.open(&first), Ok(Some(_))));
    assert_eq!(down.open(&first), Err(LinkError::Forged), "a frame came again");
    // What one end said is not taken for what the other says, nor on another stream.
    assert_eq!(up.open(&first), Err(LinkError::Forged));
    assert_eq!(ends([[1; 16], [3; 16]]).1.open(&first), Err(LinkError::Forged));
    let long = (MESSAGE_BYTES_MAX as u32 + 1).to_be_bytes();
    assert_eq!(down.open(&long), Err(LinkError::Length(MESSAGE_BYTES_MAX + 1)));
}

#[test]
fn order_beyond_the_bound_is_malformed() {
    let mut bytes = Vec::new();
    order(vec![0; ORDER_BYTES_MAX + 1]).encode(&mut bytes);
    assert_eq!(LinkMessage::decode(&bytes), Err(LinkError::Malformed(8)));
}

#[test]
fn rewind_requests_survive_their_datagrams() {
    let request = RewindRequest::seal(3, 0, (10, 4), 5, &PacketKey::of_epoch(&SECRET, 3));
    assert_eq!(RewindRequest::decode(&request.encode()), Some(request));
    assert_eq!(RewindRequest::decode(&request.encode()[..32]), None);
    assert!(PacketHeader::open(&[&request.encode()[..], &[0; 64]].concat()).is_err(), "a request is no packet");
}

#[test]
fn seating_divides_proxies_among_layers_and_gives_everybody_a_parent() {
    let widths = |proxies, gateways, layers| {
        seating(proxies, gateways, layers, 2).map(|seating| seating.plan().widths().to_vec()).unwrap_or_default()
    };
    assert_eq!(widths(6, 20, Some(2)), [1, 2, 4, 20]);
    assert_eq!(widths(4, 20, None), [1, 4, 20]);
    assert_eq!(widths(0, 20, None), [1, 20]);
    assert_eq!(widths(110, 1_000, None), [1, 10, 100, 1_000]);
    assert_eq!(widths(4, 0, None), Vec::<u32>::new(), "nobody to send to");
    let seating = seating(6, 20, Some(2), 2).expect("a tree");
    assert_eq!(seating.plan().hedging(), 1, "two proxies in the first layer");
    let parents: Vec<_> = seating.members().map(|seat| seating.parent(seat.member).map(|seat| seat.member)).collect();
    assert_eq!(parents[..7], [None, Some(0), Some(0), Some(1), Some(1), Some(2), Some(2)]);
    assert!(parents[7..].iter().all(|parent| parent.is_some_and(|parent| (3..=6).contains(&parent))));
}

#[test]
fn delivery_windows_are_proven_only_with_bounded_clocks() {
    let mut windows = Windows::default();
    let sample = |late, error_bound| ShownSample { sequence: 16, delay: 9, held: 5, late, error_bound };
    windows.add(&sample(100, Some(200)), 2);
    windows.add(&sample(500, Some(150)), 2);
    windows.add(&ShownSample { sequence: 32, ..sample(100, None) }, 2);
    windows.add(&ShownSample { sequence: 32, ..sample(200, Some(150)) }, 2);
    let figures = windows.figures(1_000);
    assert_eq!((figures.windows, figures.width, figures.error_bound), (2, [100, 400], None));
    assert_eq!((figures.within, figures.proven), (1.0, 0.5));
}

proptest! {
    #[test]
    fn seatings_of_any_size_are_trees(
        proxies in 0u64..40, gateways in 1u64..200, layers in 0u32..5, hedging in 0u32..4,
    ) {
        let layers = Some(layers).filter(|layers| *layers > 0);
        let seating = seating(proxies, gateways, layers, hedging).expect("a tree");
        prop_assert_eq!(seating.gateways().len() as u64, gateways);
        let seated = seating.members().filter(|seat| seat.member != 0);
        prop_assert!(seated.map(|seat| seating.parent(seat.member)).all(|parent| parent.is_some()));
    }

    #[test]
    fn link_messages_of_any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(message) = LinkMessage::decode(&bytes) {
            let mut again = Vec::new();
            message.encode(&mut again);
            prop_assert_eq!(LinkMessage::decode(&again), Ok(message));
        }
    }
}
