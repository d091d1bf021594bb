//! Messages from the venue: reports of the root in OUCH's words.

use primitives::venue::VenueReport;
use protocols::ouch::{
    OuchAccepted, OuchBrokenTrade, OuchCanceled, OuchEnter, OuchExecuted, OuchInbound, OuchMessage, OuchOption,
    OuchOutbound, OuchReplace, OuchReplaced, OuchRestated,
};
use venue::{Acceptance, FillFate, OrderEnd, OrderExecution, OrderRefusal, OrderStanding, ReportKind, TradeReport};

use super::refusing::{OuchRefusal, not_cancelled};
use super::session::{Entered, OuchSession};
use super::{SETTLED, reports};
use crate::codes::{end_letter, refusal_name};

/// What a report is in OUCH; nothing where OUCH is silent.
pub(super) fn message(
    session: &OuchSession,
    nanoseconds: u64,
    report: &TradeReport,
) -> Option<OuchMessage<OuchOutbound>> {
    let user_ref = report.number.reference;
    if let Some(answer) = session.answer_lost(user_ref, nanoseconds, &report.what) {
        return Some(answer);
    }
    let entered = session.orders.get(&user_ref);
    match &report.what {
        // The answer to a repetition is in the session already.
        ReportKind::Accepted(first) => {
            entered.filter(|entered| !entered.is_answered).and_then(|entered| accepted(entered, nanoseconds, first))
        }
        // It has come after its number was void, from the queue of a root that failed.
        ReportKind::Refused(OrderRefusal::Overtaken) if entered.is_some_and(|entered| entered.is_answered) => None,
        ReportKind::Refused(why) => match entered.filter(|entered| !entered.is_answered) {
            Some(entered) => OuchRefusal::new(refusal_name(why).0, why).of(&entered.message, nanoseconds),
            // It was a cancel that is refused.
            None => Some(not_cancelled(nanoseconds, user_ref, &why.to_string())),
        },
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
        // A cancel of what is not open. One that came too early has its order rejected when that comes.
        ReportKind::Overtaken => Some(not_cancelled(nanoseconds, user_ref, standing_words(None))),
        ReportKind::Status(standing) => Some(not_cancelled(nanoseconds, user_ref, standing_words(standing.as_ref()))),
    }
}

/// Why an order that stands so is not cancelled.
fn standing_words(standing: Option<&OrderStanding>) -> &'static str {
    match standing {
        Some(OrderStanding::Taken { ended: Some(why), .. }) => match why {
            OrderEnd::Filled => "too late to cancel: the order is filled",
            OrderEnd::Asked => "the order is cancelled already",
            OrderEnd::Replaced(_) => "the order is replaced: cancel the one in its place",
            _ => "the order has ended already",
        },
        Some(OrderStanding::Taken { ended: None, .. }) => "the order is open",
        Some(OrderStanding::Refused(_)) => "the order was refused",
        Some(OrderStanding::Overtaken) | None => "no order of this number has come; it is refused if it comes",
    }
}

fn plain(body: OuchOutbound) -> OuchMessage<OuchOutbound> {
    OuchMessage::plain(body)
}

/// The first answer to an order.
pub(super) fn accepted(entered: &Entered, nanoseconds: u64, first: &Acceptance) -> Option<OuchMessage<OuchOutbound>> {
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

fn executed(nanoseconds: u64, user_ref: u32, what: &OrderExecution, report: &VenueReport) -> OuchMessage<OuchOutbound> {
    let body = OuchOutbound::Executed(OuchExecuted {
        nanoseconds,
        user_ref,
        quantity: what.lots,
        price: u64::from(what.tick),
        liquidity: if what.is_taker { b'R' } else { b'A' },
        matched: what.index,
    });
    OuchMessage { body, options: Some(reports::options_of(report)) }
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
