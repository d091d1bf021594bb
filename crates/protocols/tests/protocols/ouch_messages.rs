//! OUCH 5.0 messages: lengths of the specification, bytes worked out by hand, and what is refused.

use proptest::prelude::*;
use protocols::ouch::{
    LIMIT_MAX, MARKET, OuchAccountQuery, OuchBody, OuchCancel, OuchEnter, OuchError, OuchExecuted, OuchInbound,
    OuchMessage, OuchOption, OuchOutbound, OuchRestated, OuchRule, OuchSystemEvent, OuchUserRefs,
};

use OuchRule::{Always, Never, Optionally};

/// Kinds, the length with that of the options where there may be options, and whether there are.
const INBOUND: [(u8, usize, OuchRule); 8] = [
    (b'O', 47, Always),
    (b'U', 40, Always),
    (b'X', 11, Optionally),
    (b'M', 12, Optionally),
    (b'C', 19, Always),
    (b'D', 11, Always),
    (b'E', 11, Always),
    (b'Q', 3, Optionally),
];

const OUTBOUND: [(u8, usize, OuchRule); 17] = [
    (b'S', 10, Never),
    (b'A', 64, Always),
    (b'U', 68, Always),
    (b'C', 20, Optionally),
    (b'D', 34, Optionally),
    (b'E', 36, Always),
    (b'B', 38, Optionally),
    (b'J', 31, Optionally),
    (b'P', 15, Optionally),
    (b'I', 15, Optionally),
    (b'T', 32, Optionally),
    (b'M', 20, Optionally),
    (b'R', 16, Always),
    (b'X', 27, Always),
    (b'G', 19, Always),
    (b'K', 19, Always),
    (b'Q', 15, Optionally),
];

/// Bytes of values by tag.
const WIDTHS: [(u8, usize); 26] = [
    (1, 8),
    (2, 4),
    (3, 4),
    (4, 1),
    (5, 4),
    (6, 1),
    (7, 4),
    (9, 8),
    (10, 1),
    (11, 4),
    (12, 1),
    (13, 4),
    (14, 4),
    (15, 4),
    (16, 1),
    (17, 1),
    (18, 1),
    (22, 4),
    (23, 8),
    (24, 2),
    (25, 1),
    (26, 4),
    (27, 1),
    (28, 1),
    (29, 1),
    (30, 2),
];

fn lengths_hold<B: OuchBody>(table: &[(u8, usize, OuchRule)]) {
    for (kind, length, rule) in table {
        let tail = if *rule == Never { 1 } else { 3 };
        assert_eq!(B::shape(*kind), Some((length - tail, *rule)), "{}", char::from(*kind));
    }
    assert_eq!((0..=255).filter(|kind| B::shape(*kind).is_some()).count(), table.len());
}

fn bytes<B: OuchBody>(message: &OuchMessage<B>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes).expect("encodes");
    bytes
}

fn enter() -> OuchInbound {
    OuchInbound::Enter(OuchEnter {
        user_ref: 1,
        side: b'B',
        quantity: 100,
        symbol: *b"WALRAS  ",
        price: 1_503_400,
        time_in_force: b'0',
        display: b'Y',
        capacity: b'A',
        sweep: b'N',
        cross: b'N',
        client_order: *b"first         ",
    })
}

#[test]
fn ouch_lengths_are_those_of_the_specification() {
    lengths_hold::<OuchInbound>(&INBOUND);
    lengths_hold::<OuchOutbound>(&OUTBOUND);
    for (tag, width) in WIDTHS {
        assert_eq!(OuchOption::width(tag), Some(width), "{tag}");
    }
    assert_eq!((0..=255).filter(|tag| OuchOption::width(*tag).is_some()).count(), WIDTHS.len());
    assert_eq!((LIMIT_MAX, MARKET), (0x7735_939c, 2_147_483_647));
}

#[test]
fn an_ouch_order_with_an_option_has_these_bytes() {
    let order = OuchMessage { body: enter(), options: Some(vec![OuchOption::UserRefIndex(5)]) };
    let expected = b"O\0\0\0\x01B\0\0\0\x64WALRAS  \0\0\0\0\0\x16\xf0\xa80YANNfirst         \0\x03\x02\x1c\x05";
    assert_eq!(bytes(&order), expected);
    assert_eq!(OuchMessage::decode(expected), Ok(order));
}

#[test]
fn an_ouch_execution_and_a_restatement_have_these_bytes() {
    let executed = OuchExecuted { nanoseconds: 1, user_ref: 2, quantity: 3, price: 4, liquidity: b'A', matched: 5 };
    let executed = OuchMessage::plain(OuchOutbound::Executed(executed));
    let expected = b"E\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x03\0\0\0\0\0\0\0\x04A\0\0\0\0\0\0\0\x05\0\0";
    assert_eq!(bytes(&executed), expected);

    let body = OuchOutbound::Restated(OuchRestated { nanoseconds: 1, user_ref: 8, reason: b'R' });
    let options = Some(vec![OuchOption::DisplayQuantity(100), OuchOption::PegOffset(-100)]);
    let expected = b"R\0\0\0\0\0\0\0\x01\0\0\0\x08R\0\x0c\x05\x16\0\0\0\x64\x05\x07\xff\xff\xff\x9c";
    assert_eq!(bytes(&OuchMessage { body, options }), expected);
}

#[test]
fn an_ouch_kind_means_another_message_in_the_other_direction() {
    let enable = b"E\0\0\0\x0cFRMA\0\0";
    assert!(OuchMessage::<OuchInbound>::decode(enable).is_ok());
    let cut = OuchError::Cut { kind: b'E', needs: 36, has: 11 };
    assert_eq!(OuchMessage::<OuchOutbound>::decode(enable), Err(cut));
}

#[test]
fn an_absent_ouch_appendage_and_one_of_no_options_differ() {
    for (bytes_of, options) in [(&b"X\0\0\0\x4d\0\0\0\0"[..], None), (b"X\0\0\0\x4d\0\0\0\0\0\0", Some(vec![]))] {
        let cancel = OuchMessage { body: OuchInbound::Cancel(OuchCancel { user_ref: 77, quantity: 0 }), options };
        assert_eq!(OuchMessage::decode(bytes_of), Ok(cancel.clone()));
        assert_eq!(bytes(&cancel), bytes_of);
    }
    assert_eq!(bytes(&OuchMessage::plain(OuchInbound::AccountQuery(OuchAccountQuery {}))), b"Q");
}

#[test]
fn an_ouch_error_says_what_is_cut_and_what_trails() {
    let read = OuchMessage::<OuchInbound>::decode;
    assert_eq!(read(b""), Err(OuchError::Empty));
    assert_eq!(read(b"A").expect_err("from the venue").to_string(), "no OUCH 5.0 message to the venue is of kind 0x41");
    assert_eq!(
        read(&[b'O'; 46]).expect_err("cut").to_string(),
        "an OUCH message of kind O has at least 47 bytes, not 46"
    );
    assert_eq!(read(b"Q\0"), Err(OuchError::Options { kind: b'Q', says: 0, has: 1 }));
    assert_eq!(read(b"Q\0\x03\x02\x1c"), Err(OuchError::Options { kind: b'Q', says: 3, has: 2 }));
    assert_eq!(read(b"Q\0\x03\x02\x1c\x05\0"), Err(OuchError::Options { kind: b'Q', says: 3, has: 4 }));
    let event = OuchMessage::<OuchOutbound>::decode(b"S\0\0\0\0\0\0\0\0S\0\0");
    assert_eq!(event, Err(OuchError::Options { kind: b'S', says: 0, has: 2 }));
}

#[test]
fn an_ouch_error_says_which_option_is_wrong() {
    let read = OuchMessage::<OuchInbound>::decode;
    assert_eq!(read(b"Q\0\x04\x02\x1c\x05\x00"), Err(OuchError::Element { at: 3, says: 0, has: 0 }));
    assert_eq!(read(b"Q\0\x03\x03\x1c\x05"), Err(OuchError::Element { at: 0, says: 3, has: 2 }));
    assert_eq!(read(b"Q\0\x04\x03\x1c\x05\x06"), Err(OuchError::Width { tag: 28, needs: 1, has: 2 }));
    let unknown = read(b"Q\0\x03\x02\x63\x05").expect("skipped");
    assert_eq!(unknown.options, Some(vec![OuchOption::Unknown { tag: 99, value: vec![5] }]));
}

#[test]
fn ouch_options_that_do_not_suit_a_message_are_not_encoded() {
    let mut to = vec![7];
    let bare = OuchMessage { body: enter(), options: None };
    assert_eq!(bare.encode(&mut to), Err(OuchError::Rule { kind: b'O', rule: Always }));
    let event = OuchOutbound::SystemEvent(OuchSystemEvent { nanoseconds: 0, event: b'S' });
    let event = OuchMessage { body: event, options: Some(vec![]) };
    assert_eq!(event.encode(&mut to), Err(OuchError::Rule { kind: b'S', rule: Never }));
    for (tag, length) in [(28, 1), (99, 255)] {
        let options = Some(vec![OuchOption::Unknown { tag, value: vec![0; length] }]);
        let message = OuchMessage { body: enter(), options };
        assert_eq!(message.encode(&mut to), Err(OuchError::Unknown { tag, has: length }));
    }
    let options = Some(vec![OuchOption::Unknown { tag: 99, value: vec![0; 254] }; 257]);
    let message = OuchMessage { body: enter(), options };
    assert_eq!(message.encode(&mut to), Err(OuchError::Rule { kind: b'O', rule: Always }));
    assert_eq!(to, [7]);
}

#[test]
fn ouch_numbers_increase_strictly_up_to_the_last_of_32_bits() {
    let mut used = OuchUserRefs::default();
    assert_eq!(used.next(), Some(1));
    assert_eq!(used.claim(0), Err(OuchError::UserRef { number: 0, last: 0 }));
    assert_eq!((used.claim(1), used.claim(7)), (Ok(()), Ok(())));
    assert_eq!(used.claim(7), Err(OuchError::UserRef { number: 7, last: 7 }));
    assert_eq!(used.claim(3), Err(OuchError::UserRef { number: 3, last: 7 }));
    assert_eq!(used, OuchUserRefs::after(7));
    assert_eq!((used.claim(u32::MAX), used.next()), (Ok(()), None));
}

#[test]
fn ouch_requests_and_new_orders_use_a_number_and_changes_do_not() {
    let uses = |kind: u8| {
        let body = OuchInbound::get(kind, &[1; 64]).expect("a body");
        body.new_user_ref().is_some()
    };
    assert_eq!(INBOUND.map(|(kind, ..)| uses(kind)), [true, true, false, false, true, true, true, false]);
}

fn option() -> impl Strategy<Value = Vec<u8>> {
    (any::<u8>(), prop::collection::vec(any::<u8>(), 0..20)).prop_map(|(tag, mut value)| {
        value.resize(OuchOption::width(tag).unwrap_or(value.len()), 0);
        [&[1 + value.len() as u8, tag][..], &value].concat()
    })
}

/// A message of a row of a table: its fields, and options if it may have them.
fn message(row: (u8, usize, OuchRule), fields: &[u8], options: &[Vec<u8>], is_bare: bool) -> Vec<u8> {
    let (kind, length, rule) = row;
    let options = options.concat();
    let tail = [&(options.len() as u16).to_be_bytes()[..], &options].concat();
    let has_tail = rule == Always || rule == Optionally && !is_bare;
    let fields = &fields[..length - if rule == Never { 1 } else { 3 }];
    [&[kind][..], fields, if has_tail { &tail[..] } else { &[] }].concat()
}

fn again<B: OuchBody>(bytes_of: &[u8]) -> Vec<u8> {
    bytes(&OuchMessage::<B>::decode(bytes_of).expect("a message"))
}

proptest! {
    #[test]
    fn ouch_messages_are_encoded_as_they_were(
        rows in (0..INBOUND.len(), 0..OUTBOUND.len()),
        fields in prop::collection::vec(any::<u8>(), 70),
        options in prop::collection::vec(option(), 0..6),
        is_bare: bool,
    ) {
        let inbound = message(INBOUND[rows.0], &fields, &options, is_bare);
        prop_assert_eq!(again::<OuchInbound>(&inbound), inbound);
        let outbound = message(OUTBOUND[rows.1], &fields, &options, is_bare);
        prop_assert_eq!(again::<OuchOutbound>(&outbound), outbound);
    }

    #[test]
    fn ouch_decodes_any_bytes_without_panic(
        kind in prop::sample::select(&b"OUXMCDEQSABJPITRGK"[..]),
        mut bytes in prop::collection::vec(any::<u8>(), 0..90),
        is_kind: bool,
    ) {
        if is_kind && let Some(first) = bytes.first_mut() {
            *first = kind;
        }
        let _ = (OuchMessage::<OuchInbound>::decode(&bytes), OuchMessage::<OuchOutbound>::decode(&bytes));
    }

    #[test]
    fn ouch_bodies_are_read_from_any_bytes_without_panic(
        kind: u8,
        bytes in prop::collection::vec(any::<u8>(), 0..70),
    ) {
        let is_long = |shape: Option<(usize, _)>| shape.is_some_and(|(length, _)| length <= bytes.len());
        prop_assert_eq!(OuchInbound::get(kind, &bytes).is_some(), is_long(OuchInbound::shape(kind)));
        prop_assert_eq!(OuchOutbound::get(kind, &bytes).is_some(), is_long(OuchOutbound::shape(kind)));
    }
}
