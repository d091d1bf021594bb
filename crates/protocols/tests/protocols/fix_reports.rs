//! FIX requests as messages to an OUCH venue, and what it says of them as reports.

use protocols::fix::reports::{FixOrders, FixRouted};
use protocols::fix::{
    FixBody, FixCancelRequest, FixDecimal, FixExecution, FixMassCancelRequest, FixNewOrder, FixReplaceRequest,
    FixStatusRequest, FixText, FixTime,
};
use protocols::ouch::{
    OuchAccepted, OuchBrokenTrade, OuchCancelReject, OuchCanceled, OuchExecuted, OuchInbound, OuchMassCancelResponse,
    OuchOutbound, OuchRejected, OuchReplaced,
};

fn text(text: &str) -> FixText {
    FixText::new(text).expect("a text")
}

fn decimal(units: u64, decimals: u32) -> FixDecimal {
    FixDecimal::new(units, decimals).expect("few decimals")
}

fn new(name: &str) -> FixBody {
    FixNewOrder {
        client_order: text(name),
        account: None,
        instructions: None,
        symbol: text("WALRAS"),
        side: b'1',
        time: FixTime::of_ms(0),
        quantity: decimal(100, 0),
        order_type: b'2',
        price: Some(decimal(15, 1)),
        time_in_force: None,
        least_quantity: None,
        displayed_most: None,
        text: None,
    }
    .into()
}

fn cancel(original: &str, name: &str) -> FixBody {
    let (original, client_order, symbol) = (text(original), text(name), text("WALRAS"));
    let (side, time) = (b'1', FixTime::of_ms(0));
    FixCancelRequest { original, client_order, order: None, symbol, side, time, quantity: None }.into()
}

fn replace(original: &str, name: &str, quantity: u64, side: u8) -> FixBody {
    FixReplaceRequest {
        original: text(original),
        client_order: text(name),
        order: None,
        instructions: None,
        symbol: text("WALRAS"),
        side,
        time: FixTime::of_ms(0),
        quantity: decimal(quantity, 0),
        order_type: b'2',
        price: Some(decimal(16, 1)),
        time_in_force: None,
    }
    .into()
}

fn status(name: &str) -> FixBody {
    FixStatusRequest { order: None, client_order: text(name), symbol: text("WALRAS"), side: b'1' }.into()
}

fn accepted(user_ref: u32) -> OuchOutbound {
    OuchOutbound::Accepted(OuchAccepted {
        nanoseconds: 0,
        user_ref,
        side: b'B',
        quantity: 100,
        symbol: *b"WALRAS  ",
        price: 15_000,
        time_in_force: b'0',
        display: b'Y',
        order: 900 + u64::from(user_ref),
        capacity: b'P',
        sweep: b'N',
        cross: b'N',
        state: b'L',
        client_order: [b' '; 14],
    })
}

fn executed(user_ref: u32, quantity: u32, price: u64, matched: u64) -> OuchOutbound {
    OuchOutbound::Executed(OuchExecuted { nanoseconds: 0, user_ref, quantity, price, liquidity: b'A', matched })
}

fn canceled(user_ref: u32, quantity: u32) -> OuchOutbound {
    OuchOutbound::Canceled(OuchCanceled { nanoseconds: 0, user_ref, quantity, reason: b'U' })
}

fn replaced(before: u32, user_ref: u32, quantity: u32) -> OuchOutbound {
    OuchOutbound::Replaced(OuchReplaced {
        nanoseconds: 0,
        before,
        user_ref,
        side: b'B',
        quantity,
        symbol: *b"WALRAS  ",
        price: 16_000,
        time_in_force: b'0',
        display: b'Y',
        order: 950,
        capacity: b'P',
        sweep: b'N',
        cross: b'N',
        state: b'L',
        client_order: [b' '; 14],
    })
}

fn rejected(user_ref: u32) -> OuchOutbound {
    OuchOutbound::Rejected(OuchRejected { nanoseconds: 0, user_ref, reason: 7, client_order: [b' '; 14] })
}

/// The message that the venue gets.
fn sent(routed: FixRouted) -> OuchInbound {
    match routed {
        FixRouted::Venue(message) => message.body,
        other => panic!("{other:?}"),
    }
}

/// The refusal of a cancel or a replacement: to which, and why.
fn refusal(routed: FixRouted) -> (u8, Option<u32>) {
    match routed {
        FixRouted::Answer(body) => match *body {
            FixBody::CancelReject(reject) => (reject.response_to, reject.reason),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn execution(body: Option<FixBody>) -> FixExecution {
    match body {
        Some(FixBody::Execution(execution)) => execution,
        other => panic!("{other:?}"),
    }
}

/// Exec type, status, what is left, what has traded, and at what price.
fn state(body: Option<FixBody>) -> (u8, u8, FixDecimal, FixDecimal, FixDecimal) {
    let FixExecution { exec_type, status, left, filled, average, .. } = execution(body);
    (exec_type, status, left, filled, average)
}

/// One that has an order of 100 at 1.5, accepted as number 1.
fn with_order() -> FixOrders {
    let mut orders = FixOrders::default();
    assert!(matches!(sent(orders.route(&new("a"))), OuchInbound::Enter(enter) if enter.user_ref == 1));
    let report = execution(orders.report(&accepted(1), None));
    assert_eq!((report.exec_type, report.status, report.order), (b'0', b'0', text("901")));
    orders
}

#[test]
fn fix_reports_count_what_trades_and_name_each_trade_alike_again() {
    let mut orders = with_order();
    let zero = FixDecimal::from(0);
    let first = execution(orders.report(&executed(1, 40, 15_000, 7), None));
    assert_eq!((first.last_quantity, first.last_price), (Some(decimal(40, 0)), Some(decimal(15, 1))));
    assert_eq!((first.status, first.left, first.average), (b'1', decimal(60, 0), decimal(15, 1)));
    let last = state(orders.report(&executed(1, 60, 14_000, 8), None));
    assert_eq!(last, (b'F', b'2', zero, decimal(100, 0), decimal(144, 2)));
    let mut again = with_order();
    assert_eq!(execution(again.report(&executed(1, 40, 15_000, 7), None)).execution, first.execution);
    let void = OuchBrokenTrade { nanoseconds: 0, user_ref: 1, matched: 7, reason: b'E', client_order: [b' '; 14] };
    let void = execution(orders.report(&OuchOutbound::BrokenTrade(void), None));
    assert_eq!((void.exec_type, void.corrects, void.filled), (b'H', Some(first.execution), decimal(60, 0)));
    assert_eq!((void.left, void.average), (zero, decimal(14, 1)));
}

#[test]
fn a_fix_cancel_is_reported_under_its_own_number_or_refused_with_the_reason() {
    let mut orders = with_order();
    assert_eq!(refusal(orders.route(&cancel("b", "c-1"))), (b'1', Some(1)));
    assert!(matches!(sent(orders.route(&cancel("a", "c-1"))), OuchInbound::Cancel(cancel) if cancel.user_ref == 1));
    assert_eq!(refusal(orders.route(&cancel("a", "c-2"))), (b'1', Some(3)), "one waits");
    let late = OuchOutbound::CancelReject(OuchCancelReject { nanoseconds: 0, user_ref: 1 });
    let Some(FixBody::CancelReject(reject)) = orders.report(&late, None) else { panic!("a refusal") };
    assert_eq!((reject.client_order, reject.original, reject.reason), (text("c-1"), text("a"), Some(0)));
    assert_eq!(refusal(orders.route(&cancel("a", "c-1"))), (b'1', Some(6)), "its number is used");
    sent(orders.route(&cancel("a", "c-3")));
    orders.report(&executed(1, 30, 15_000, 7), None);
    orders.report(&executed(1, 10, 15_000, 8), None);
    let report = execution(orders.report(&canceled(1, 60), None));
    assert_eq!((report.client_order, report.original), (Some(text("c-3")), Some(text("a"))));
    assert_eq!((report.exec_type, report.status, report.filled), (b'4', b'4', decimal(40, 0)));
    assert_eq!(refusal(orders.route(&cancel("a", "c-4"))), (b'1', Some(0)), "it has ended");
}

#[test]
fn a_fix_replacement_keeps_what_has_traded() {
    let mut orders = with_order();
    orders.report(&executed(1, 40, 15_000, 7), None);
    assert_eq!(refusal(orders.route(&replace("a", "b", 50, b'2'))), (b'2', Some(2)), "another side");
    let message = sent(orders.route(&replace("a", "b", 50, b'1')));
    let OuchInbound::Replace(message) = message else { panic!("{message:?}") };
    assert_eq!((message.before, message.quantity, message.price), (1, 50, 16_000));
    // A trade of the order before overtakes it.
    orders.report(&executed(1, 5, 15_000, 8), None);
    let report = execution(orders.report(&replaced(1, message.user_ref, 5), None));
    assert_eq!((report.client_order, report.original), (Some(text("b")), Some(text("a"))));
    assert_eq!((report.exec_type, report.status), (b'5', b'1'));
    assert_eq!((report.quantity, report.left, report.filled), (Some(decimal(50, 0)), decimal(5, 0), decimal(45, 0)));
    assert_eq!(refusal(orders.route(&cancel("a", "c"))), (b'1', Some(0)), "it is replaced");
    let last = state(orders.report(&executed(message.user_ref, 5, 16_000, 9), None));
    assert_eq!(last, (b'F', b'2', FixDecimal::from(0), decimal(50, 0), decimal(151, 2)));
}

#[test]
fn a_fix_replacement_that_the_venue_rejects_leaves_the_order() {
    let mut orders = with_order();
    let message = sent(orders.route(&replace("a", "b", 50, b'1')));
    let OuchInbound::Replace(message) = message else { panic!("{message:?}") };
    let Some(FixBody::CancelReject(reject)) = orders.report(&rejected(message.user_ref), None) else {
        panic!("a refusal")
    };
    assert_eq!((reject.response_to, reject.client_order, reject.status), (b'2', text("b"), b'0'));
    sent(orders.route(&cancel("a", "c")));
}

#[test]
fn a_fix_order_is_refused_at_once_or_by_the_venue_and_its_status_is_known() {
    let mut orders = with_order();
    let answer = |routed| match routed {
        FixRouted::Answer(body) => execution(Some(*body)),
        other => panic!("{other:?}"),
    };
    let again = answer(orders.route(&new("a")));
    assert_eq!((again.exec_type, again.reason), (b'8', Some(6)));
    let FixBody::NewOrder(wrong) = new("w") else { panic!("an order") };
    let wrong = answer(orders.route(&FixNewOrder { side: b'9', ..wrong }.into()));
    assert_eq!((wrong.exec_type, wrong.status, wrong.left), (b'8', b'8', FixDecimal::from(0)));
    sent(orders.route(&new("v")));
    let report = state(orders.report(&rejected(3), None));
    assert_eq!((report.0, report.1, report.2), (b'8', b'8', FixDecimal::from(0)));
    orders.report(&executed(1, 40, 15_000, 7), None);
    let known = answer(orders.route(&status("a")));
    assert_eq!((known.exec_type, known.status, known.filled), (b'I', b'1', decimal(40, 0)));
    let unknown = answer(orders.route(&status("z")));
    assert_eq!((unknown.exec_type, unknown.reason), (b'8', Some(5)));
    assert_eq!(orders.report(&executed(99, 1, 1, 1), None), None, "an order of nobody");
    let smaller = state(orders.report(&canceled(1, 10), None));
    assert_eq!((smaller.0, smaller.1, smaller.2), (b'D', b'1', decimal(50, 0)));
}

#[test]
fn a_fix_mass_cancel_is_asked_of_the_venue_and_its_answer_reported() {
    let mut orders = with_order();
    let request = |scope, symbol: Option<&str>| -> FixBody {
        let (client_order, symbol, time) = (text("m"), symbol.map(text), FixTime::of_ms(0));
        FixMassCancelRequest { client_order, scope, symbol, side: Some(b'1'), time }.into()
    };
    let message = sent(orders.route(&request(b'1', Some("WALRAS"))));
    let OuchInbound::MassCancel(message) = message else { panic!("{message:?}") };
    assert_eq!((message.user_ref, &message.symbol), (2, b"WALRAS  "));
    let (user_ref, firm, symbol) = (message.user_ref, message.firm, message.symbol);
    let response = OuchMassCancelResponse { nanoseconds: 0, user_ref, firm, symbol };
    let response = OuchOutbound::MassCancelResponse(response);
    let Some(FixBody::MassCancelReport(report)) = orders.report(&response, None) else { panic!("a report") };
    assert_eq!((report.client_order, report.response), (Some(text("m")), b'1'));
    assert_eq!(orders.report(&response, None), None, "once");
    let FixRouted::Answer(refused) = orders.route(&request(b'1', None)) else { panic!("a refusal") };
    assert!(matches!(*refused, FixBody::MassCancelReport(report) if report.response == b'0'));
}

/// Who asked for an end needs no reason; who did not is told it, and what to do.
#[test]
fn the_report_of_an_order_that_the_venue_ended_says_why() {
    for (reason, word) in [(b'U', None), (b'I', Some("immediate")), (b'T', Some("enter it anew")), (b'S', Some("key"))]
    {
        let mut orders = FixOrders::after(0);
        orders.route(&new("a"));
        let message = OuchOutbound::Canceled(OuchCanceled { nanoseconds: 0, user_ref: 1, quantity: 100, reason });
        let report = execution(orders.report(&message, None));
        assert_eq!((report.exec_type, report.text.is_some()), (b'4', word.is_some()));
        let text = report.text.map(|text| text.to_string()).unwrap_or_default();
        assert!(text.contains(word.unwrap_or_default()), "{text}");
    }
}
