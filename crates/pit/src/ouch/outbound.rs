//! Messages from the venue: reports of the root in OUCH's words.

use primitives::venue::FillReport;
use protocols::ouch::{
    OuchAccepted, OuchBrokenTrade, OuchCancelReject, OuchCanceled, OuchEnter, OuchExecuted, OuchInbound, OuchMessage,
    OuchOption, OuchOutbound, OuchRejected, OuchReplace, OuchReplaced, OuchRestated,
};
use venue::{Acceptance, FillFate, OrderEnd, OrderExecution, ReportKind, TradeReport};

use super::session::{Entered, OuchSession};
use super::{FILL_REPORT, SETTLED};
use crate::codes::{end_letter, refusal_name};

/// What a report is in OUCH; nothing where OUCH is silent.
pub(super) fn message(
    session: &OuchSession,
    nanoseconds: u64,
    report: &TradeReport,
) -> Option<OuchMessage<OuchOutbound>> {
    let user_ref = report.number.reference;
    let entered = session.orders.get(&user_ref);
    match &report.what {
        // The answer to a repetition is in the session already.
        ReportKind::Accepted(first) => {
            entered.filter(|entered| !entered.is_answered).and_then(|entered| accepted(entered, nanoseconds, first))
        }
        ReportKind::Refused(why) => entered.map(|entered| match entered.is_answered {
            false => rejected(nanoseconds, user_ref, refusal_name(why).0, &entered.message),
            // It was a cancel that is refused.
            true => plain(OuchOutbound::CancelReject(OuchCancelReject { nanoseconds, user_ref })),
        }),
        ReportKind::Executed(what, report) => Some(executed(nanoseconds, user_ref, what, report)),
        ReportKind::Reduced { lots } => entered.map(|entered| {
            let quantity = entered.open.saturating_sub(*lots);
            plain(OuchOutbound::Canceled(OuchCanceled { nanoseconds, user_ref, quantity, reason: b'U' }))
        }),
        ReportKind::Ended { why: OrderEnd::Filled | OrderEnd::Replaced(_), .. } => None,
        ReportKind::Ended { lots, why } => {
            let (quantity, reason) = (*lots, end_letter(why));
            Some(plain(OuchOutbound::Canceled(OuchCanceled { nanoseconds, user_ref, quantity, reason })))
        }
        ReportKind::Settled { index, height, fate } => Some(settled(nanoseconds, user_ref, (*index, *height), fate)),
        // The request that came too early was a cancel; its order is rejected when it comes.
        ReportKind::Overtaken | ReportKind::Status(_) => None,
    }
}

fn plain(body: OuchOutbound) -> OuchMessage<OuchOutbound> {
    OuchMessage::plain(body)
}

/// A rejection of an order or of a message with this number.
pub(super) fn rejected(
    nanoseconds: u64,
    user_ref: u32,
    reason: u16,
    message: &OuchInbound,
) -> OuchMessage<OuchOutbound> {
    let client_order = match *message {
        OuchInbound::Enter(OuchEnter { client_order, .. }) | OuchInbound::Replace(OuchReplace { client_order, .. }) => {
            client_order
        }
        _ => [b' '; 14],
    };
    plain(OuchOutbound::Rejected(OuchRejected { nanoseconds, user_ref, reason, client_order }))
}

/// The first answer to an order.
fn accepted(entered: &Entered, nanoseconds: u64, first: &Acceptance) -> Option<OuchMessage<OuchOutbound>> {
    let (symbol, side, order, state) = (entered.symbol, entered.side, first.id, b'L');
    Some(plain(match entered.message {
        OuchInbound::Enter(OuchEnter {
            user_ref,
            price,
            time_in_force,
            display,
            capacity,
            sweep,
            cross,
            client_order,
            ..
        }) => OuchOutbound::Accepted(OuchAccepted {
            nanoseconds,
            user_ref,
            side,
            quantity: first.lots,
            symbol,
            price,
            time_in_force,
            display,
            order,
            capacity,
            sweep,
            cross,
            state,
            client_order,
        }),
        OuchInbound::Replace(OuchReplace {
            before,
            user_ref,
            price,
            time_in_force,
            display,
            sweep,
            client_order,
            ..
        }) => OuchOutbound::Replaced(OuchReplaced {
            nanoseconds,
            before,
            user_ref,
            side,
            quantity: first.lots,
            symbol,
            price,
            time_in_force,
            display,
            order,
            capacity: b'P',
            sweep,
            cross: b'N',
            state,
            client_order,
        }),
        _ => return None,
    }))
}

fn executed(nanoseconds: u64, user_ref: u32, what: &OrderExecution, report: &FillReport) -> OuchMessage<OuchOutbound> {
    let value = borsh::to_vec(report).expect("writing to memory cannot fail");
    let body = OuchOutbound::Executed(OuchExecuted {
        nanoseconds,
        user_ref,
        quantity: what.lots,
        price: u64::from(what.tick),
        liquidity: if what.is_taker { b'R' } else { b'A' },
        matched: what.index,
    });
    OuchMessage { body, options: Some(vec![OuchOption::Unknown { tag: FILL_REPORT, value }]) }
}

fn settled(nanoseconds: u64, user_ref: u32, (index, height): (u64, u64), fate: &FillFate) -> OuchMessage<OuchOutbound> {
    match fate {
        FillFate::Applied => {
            let body = OuchOutbound::Restated(OuchRestated { nanoseconds, user_ref, reason: b'S' });
            let value = [index.to_be_bytes(), height.to_be_bytes()].concat();
            OuchMessage { body, options: Some(vec![OuchOption::Unknown { tag: SETTLED, value }]) }
        }
        FillFate::Bust(_) => {
            let client_order = [b' '; 14];
            let bust = OuchBrokenTrade { nanoseconds, user_ref, matched: index, reason: b'S', client_order };
            plain(OuchOutbound::BrokenTrade(bust))
        }
    }
}
