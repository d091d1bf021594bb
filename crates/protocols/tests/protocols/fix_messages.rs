//! FIX 4.4 messages: bytes worked out by hand, any pieces of a stream, and what is refused.

use proptest::prelude::*;
use protocols::fix::frame::FixReader;
use protocols::fix::{
    FixAffected, FixBody, FixCancelReject, FixData, FixDecimal, FixError, FixExecution, FixHeader, FixLogon,
    FixMassCancelReport, FixMessage, FixNewOrder, FixReplaceRequest, FixText, FixTime, MESSAGE_MAX,
};
use protocols::ouch::{LIMIT_MAX, MARKET, OuchInbound, OuchOption, SHARES_END};

fn text(text: &str) -> FixText {
    FixText::new(text).expect("a text")
}

fn decimal(units: u64, decimals: u32) -> FixDecimal {
    FixDecimal::new(units, decimals).expect("few decimals")
}

fn header(number: u64) -> FixHeader {
    FixHeader {
        sender: text("ADA"),
        target: text("VENUE"),
        number,
        is_possible_duplicate: None,
        is_possible_resend: None,
        sent: FixTime::of_ms(1_795_724_107_250),
        first_sent: None,
    }
}

fn order() -> FixNewOrder {
    FixNewOrder {
        client_order: text("a-1"),
        account: None,
        instructions: None,
        symbol: text("WALRAS"),
        side: b'1',
        time: FixTime::of_ms(1_795_724_107_000),
        quantity: decimal(100, 0),
        order_type: b'2',
        price: Some(decimal(15_034, 2)),
        time_in_force: Some(b'0'),
        least_quantity: None,
        displayed_most: None,
        text: None,
    }
}

/// All messages of a stream that comes in pieces of these sizes, over and over, and the error that ends it.
fn read(stream: &[u8], pieces: &[usize]) -> (Vec<FixMessage>, Option<FixError>) {
    let (mut reader, mut found, mut rest) = (FixReader::new(MESSAGE_MAX), Vec::new(), stream);
    for size in pieces.iter().cycle() {
        let (mut piece, after) = rest.split_at((*size).clamp(1, rest.len().max(1)).min(rest.len()));
        loop {
            match reader.take(&mut piece) {
                Ok(Some(body)) => match FixMessage::decode(body) {
                    Ok(message) => found.push(message),
                    Err(error) => return (found, Some(error)),
                },
                Ok(None) => break,
                Err(FixError::Checksum { .. }) => {}
                Err(error) => return (found, Some(error)),
            }
        }
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    (found, None)
}

/// `|` stands for the byte between fields; length and checksum are computed.
fn framed(body: &str) -> Vec<u8> {
    let body = body.replace('|', "\u{1}");
    let start = format!("8=FIX.4.4\u{1}9={}\u{1}{body}", body.len());
    let sum = start.bytes().fold(0u8, u8::wrapping_add);
    format!("{start}10={sum:03}\u{1}").into_bytes()
}

fn decoded(fields: &str) -> Result<FixMessage, FixError> {
    let (kind, rest) = fields.split_once('|').expect("a kind first");
    let bytes = framed(&format!("35={kind}|49=ADA|56=VENUE|34=7|52=20261126-20:15:07.250|{rest}"));
    let (mut reader, mut stream) = (FixReader::new(MESSAGE_MAX), &bytes[..]);
    FixMessage::decode(reader.take(&mut stream)?.expect("whole"))
}

#[test]
fn a_fix_order_has_these_bytes() {
    let expected = "8=FIX.4.4|9=125|35=D|49=ADA|56=VENUE|34=7|52=20261126-20:15:07.250|11=a-1|55=WALRAS|54=1|\
                    60=20261126-20:15:07.000|38=100|40=2|44=150.34|59=0|10=139|";
    let bytes = FixMessage { header: header(7), body: order().into() }.encode();
    assert_eq!(String::from_utf8_lossy(&bytes).replace('\u{1}', "|"), expected);
    assert_eq!(read(&bytes, &[1]), (vec![FixMessage { header: header(7), body: order().into() }], None));
}

#[test]
fn fix_data_may_contain_what_ends_a_field() {
    let data = Some(FixData(b"a\x01b=c\x0110=000\x01".to_vec()));
    let (encryption, heartbeat_s) = (0, 30);
    let logon = FixLogon { encryption, heartbeat_s, data, is_reset: None, username: None, password: None };
    let message = FixMessage { header: header(1), body: logon.into() };
    assert_eq!(read(&message.encode(), &[3]).0, [message]);
}

#[test]
fn a_fix_group_is_read_as_written_and_counted() {
    let affected = |number: u64| FixAffected { original: text(&number.to_string()), order: Some(text("x")) };
    let report = FixMassCancelReport {
        client_order: Some(text("q")),
        order: text("9"),
        scope: b'7',
        response: b'7',
        reason: None,
        total: Some(2),
        affected: vec![affected(1), FixAffected { order: None, ..affected(2) }],
        symbol: None,
        side: None,
        text: None,
    };
    let message = FixMessage { header: header(1), body: report.into() };
    assert_eq!(read(&message.encode(), &[64]).0, [message]);
    let short = decoded("r|37=9|530=7|531=7|534=3|41=1|535=x|41=2|");
    assert_eq!(short, Err(FixError::Group { tag: 534, says: 3, has: 2 }));
}

#[test]
fn a_fix_error_names_tag_and_position() {
    let order = "D|11=a|55=W|54=1|60=20261126-20:15:07|38=100|40=2|";
    assert!(decoded(order).is_ok());
    let missing = decoded("D|11=a|54=1|60=20261126-20:15:07|38=100|40=2|").expect_err("no symbol");
    assert_eq!(missing.to_string(), "a FIX message of kind D needs tag 55");
    let value = decoded(&order.replace("38=100", "38=ten")).expect_err("no number");
    assert_eq!(value.to_string(), "field 10: the value of tag 38 is not a decimal from 0 up, of at most 18 decimals");
    assert_eq!((value.tag(), value.reject_reason()), (Some(38), 6));
    let again = decoded(&order.replace("40=2", "11=b|40=2"));
    assert_eq!(again, Err(FixError::Repeated { tag: 11, at: 11 }));
    let empty = decoded(&order.replace("40=2", "40=")).expect_err("no value");
    assert_eq!((empty.to_string(), empty.reject_reason()), ("field 11: tag 40 has no value: leave it out".into(), 4));
    assert_eq!(decoded(&order.replace("54=1", "054=1")), Err(FixError::Tag { at: 8 }));
    assert_eq!(decoded("Z|").expect_err("no kind").to_string(), "FIX messages of kind Z (tag 35) are not supported");
    assert!(decoded(&order.replace("40=2", "40=2|7000=x|7000=y")).is_ok(), "what is not known is skipped");
}

#[test]
fn a_fix_stream_that_cannot_be_trusted_ends_and_a_garbled_message_is_skipped() {
    let good = FixMessage { header: header(1), body: order().into() };
    let mut garbled = good.encode();
    garbled[40] ^= 1;
    let stream = [garbled, good.encode()].concat();
    assert_eq!(read(&stream, &[7]), (vec![good], None));
    assert_eq!(read(b"8=FIX.4.2\x01", &[1]).1, Some(FixError::Begin { at: 8 }));
    assert_eq!(read(b"8=FIX.4.4\x019=x", &[1]).1, Some(FixError::Begin { at: 12 }));
    assert_eq!(read(b"8=FIX.4.4\x019=0000001", &[1]).1, Some(FixError::Begin { at: 19 }));
    assert_eq!(read(b"8=FIX.4.4\x019=8192\x01", &[9]).1, Some(FixError::Long { most: 8_192, has: 8_216 }));
    assert_eq!(read(b"8=FIX.4.4\x019=5\x0135=0\x0110=1234", &[4]).1, Some(FixError::Length { says: 5 }));
}

#[test]
fn a_fix_order_is_the_ouch_order_of_the_same_values() {
    let message = order().to_ouch(7).expect("an order");
    let OuchInbound::Enter(enter) = message.body else { panic!("{message:?}") };
    assert_eq!((enter.user_ref, enter.side, enter.quantity, enter.price), (7, b'B', 100, 1_503_400));
    assert_eq!((&enter.symbol, &enter.client_order, enter.time_in_force), (b"WALRAS  ", b"a-1           ", b'0'));
    assert_eq!(message.options, Some(vec![]));
    let whole = FixNewOrder { time_in_force: Some(b'4'), instructions: Some(text("6")), side: b'5', ..order() };
    let message = whole.to_ouch(8).expect("an order");
    assert_eq!(message.options, Some(vec![OuchOption::LeastQuantity(100), OuchOption::PostOnly(b'P')]));
    let market = FixNewOrder { order_type: b'1', price: None, ..order() }.to_ouch(9).expect("an order");
    assert!(matches!(market.body, OuchInbound::Enter(enter) if enter.price == MARKET));
    let mut bytes = Vec::new();
    assert_eq!(message.encode(&mut bytes), Ok(()));
}

#[test]
fn a_fix_replacement_is_the_ouch_replacement_of_the_total_size() {
    let FixNewOrder { symbol, side, time, order_type, price, .. } = order();
    let request = FixReplaceRequest {
        original: text("a-1"),
        client_order: text("a-2"),
        order: None,
        instructions: None,
        symbol,
        side,
        time,
        quantity: decimal(40, 0),
        order_type,
        price,
        time_in_force: None,
    };
    let message = request.to_ouch(7, 8).expect("a replacement");
    assert!(matches!(message.body, OuchInbound::Replace(replace)
        if (replace.before, replace.user_ref, replace.quantity, replace.price) == (7, 8, 40, 1_503_400)));
}

#[test]
fn fix_values_that_no_ouch_order_has_are_refused_by_tag() {
    let tag = |order: FixNewOrder| order.to_ouch(1).expect_err("refused").tag();
    for quantity in [decimal(0, 0), decimal(15, 1), decimal(SHARES_END.into(), 0)] {
        assert_eq!(tag(FixNewOrder { quantity, ..order() }), Some(38));
    }
    for price in [None, Some(decimal(0, 0)), Some(decimal(100_001, 5)), Some(decimal(LIMIT_MAX + 1, 4))] {
        assert_eq!(tag(FixNewOrder { price, ..order() }), Some(44));
    }
    assert_eq!(tag(FixNewOrder { order_type: b'1', ..order() }), Some(44));
    assert_eq!(tag(FixNewOrder { order_type: b'3', ..order() }), Some(40));
    assert_eq!(tag(FixNewOrder { side: b'9', ..order() }), Some(54));
    assert_eq!(tag(FixNewOrder { time_in_force: Some(b'6'), ..order() }), Some(59));
    assert_eq!(tag(FixNewOrder { symbol: text("ninebytes"), ..order() }), Some(55));
    assert_eq!(tag(FixNewOrder { instructions: Some(text("G 6")), ..order() }), Some(18));
}

fn any_text() -> impl Strategy<Value = FixText> {
    prop::collection::vec(any::<u8>().prop_filter("no separator", |byte| *byte != 1), 1..20)
        .prop_map(|bytes| FixText::new(bytes).expect("a text"))
}

fn any_decimal() -> impl Strategy<Value = FixDecimal> {
    (any::<u64>(), 0..19u32).prop_map(|(units, decimals)| decimal(units, decimals))
}

fn any_time() -> impl Strategy<Value = FixTime> {
    (0..FixTime::END_MS).prop_map(FixTime::of_ms)
}

fn any_body() -> impl Strategy<Value = FixBody> {
    let data = prop::option::of(prop::collection::vec(any::<u8>(), 1..40).prop_map(FixData));
    let logon = (any::<u32>(), data, any::<Option<bool>>(), prop::option::of(any_text())).prop_map(
        |(heartbeat_s, data, is_reset, username)| {
            FixLogon { encryption: 0, heartbeat_s, data, is_reset, username, password: None }.into()
        },
    );
    let orders = (any_text(), any_decimal(), prop::option::of(any_decimal()), any_time(), prop::option::of(2u8..255));
    let orders = orders.prop_map(|(client_order, quantity, price, time, time_in_force)| {
        FixNewOrder { client_order, quantity, price, time, time_in_force, ..order() }.into()
    });
    let execution =
        (any_text(), any_decimal(), any_decimal(), prop::option::of(any_text()), prop::option::of(any_time()));
    let execution = execution.prop_map(|(order, left, average, original, time)| {
        FixExecution {
            order,
            client_order: original.clone(),
            original,
            execution: text("1"),
            corrects: None,
            exec_type: b'F',
            status: b'1',
            reason: None,
            symbol: text("W"),
            side: b'1',
            quantity: Some(left),
            price: None,
            time_in_force: None,
            last_quantity: Some(average),
            last_price: Some(average),
            left,
            filled: left,
            average,
            time,
            text: None,
        }
        .into()
    });
    let reject = (any_text(), any_text(), any::<Option<u32>>()).prop_map(|(client_order, original, reason)| {
        let (status, response_to) = (b'8', b'1');
        FixCancelReject { order: text("NONE"), client_order, original, status, response_to, reason, text: None }.into()
    });
    let affected = prop::collection::vec((any_text(), prop::option::of(any_text())), 0..5);
    let report = (affected, any::<Option<u64>>()).prop_map(|(affected, total)| {
        let affected = affected.into_iter().map(|(original, order)| FixAffected { original, order }).collect();
        FixMassCancelReport {
            client_order: None,
            order: text("7"),
            scope: b'1',
            response: b'1',
            reason: None,
            total,
            affected,
            symbol: Some(text("W")),
            side: None,
            text: None,
        }
        .into()
    });
    prop_oneof![logon, orders, execution, reject, report]
}

fn any_message() -> impl Strategy<Value = FixMessage> {
    (any_text(), any_text(), any::<u64>(), any::<Option<bool>>(), any_time(), prop::option::of(any_time()), any_body())
        .prop_map(|(sender, target, number, flag, sent, first_sent, body)| {
            let is_possible_resend = None;
            let header =
                FixHeader { sender, target, number, is_possible_duplicate: flag, is_possible_resend, sent, first_sent };
            FixMessage { header, body }
        })
}

proptest! {
    #[test]
    fn fix_messages_are_read_as_written_whatever_the_stream_is_cut_into(
        messages in prop::collection::vec(any_message(), 1..5),
        pieces in prop::collection::vec(1usize..300, 1..8),
    ) {
        let stream: Vec<u8> = messages.iter().flat_map(FixMessage::encode).collect();
        prop_assert_eq!(read(&stream, &pieces), (messages.clone(), None));
        prop_assert_eq!(read(&stream, &[1]), (messages, None));
    }

    #[test]
    fn any_bytes_of_fix_are_read_alike_in_any_pieces_and_without_panic(
        message in any_message(),
        flips in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
        pieces in prop::collection::vec(1usize..90, 1..8),
    ) {
        let mut stream = message.encode();
        for (at, byte) in flips {
            let at = at % stream.len();
            stream[at] = byte;
        }
        prop_assert_eq!(read(&stream, &pieces), read(&stream, &[usize::MAX]));
    }

    #[test]
    fn fix_fields_are_read_from_any_bytes_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = FixMessage::decode(&bytes);
        let _ = FixMessage::decode(&[b"35=D\x01", &bytes[..]].concat());
    }
}
