//! Numbers without an answer: those that a restart finds, and those that come after a higher one.
//!
//! A door journals an order before it gives it to the root. If the process ends in between, the number is used, and the
//! root has never heard of the order. Nobody would ever answer the number.
//!
//! What is lost on its way is sent again, and may come after a higher number. A bridge that begins again has forgotten
//! what it refused by itself, and passes such a number on.
//!
//! # The protocol
//!
//! - Upon *a restart*: once the root has told again what sessions have not heard, a number without an answer is *lost*.
//!   The root is asked to cancel it. It has no order of that number, so it notes that it refuses one from then on.
//! - Upon *the root's answer* about a lost number: the session is told a rejection with [`LOST`] and words. It is
//!   journaled and sent like any other message of the session.
//! - Upon *a lost number whose order the root has after all*: the session is told the acceptance, also if the root has
//!   forgotten the session. Another order under the number is no answer: the lost one is rejected as taken.
//! - Upon *a lost number of a session that the root does not know*: the door rejects it by itself, if the root has no
//!   such order.
//! - Upon *an order that the root tells again, and of which the journal knows nothing*: its number is used, and lost.
//!   The session is told its acceptance with what the root knows of it.
//! - Upon *a number that was passed over*, which is below the highest and never came: it is taken like a new one, and
//!   the root answers. One that came before is ignored: its answer is among the session's messages, or follows.
//!
//! # Properties
//!
//! 1. *One answer*: each number that a session has used is accepted, replaced, rejected or responded to once, however
//!    often the process ends meanwhile.
//! 2. *A rejection is final*: an order whose number was rejected as lost never trades, whatever way its bytes come.
//! 3. *Nothing is guessed*: what the root has taken is answered by the root.
//!
//! # Crash
//!
//! The cancels are a step of the root, and their answers are effects like others. If the process ends before the
//! session has them, the root tells them again. If it ends before the step is durable, the next start asks again.
//!
//! # Attacks
//!
//! | attack | why it fails |
//! |---|---|
//! | the process ends after the rejection is made and before it is synced | it was not sent; the root tells its answer again, and it is made once more |
//! | it ends again at each of these moments | the same: a number is lost until its answer is in the journal |
//! | the root was given the order, and its answer was not heard | the root tells it again before any number counts as lost |
//! | the order still waits in the queue of a root that failed and begins again | the cancel goes before it, so it is refused without another word |
//! | the order comes over HTTP or another session after its rejection | the root refuses the number |
//! | the key placed the same number over another door before the crash | the root's order stays; it is accepted here if it is the same one, and rejected as taken if not |
//! | a participant cancels the lost number itself | its cancel comes after the door's and has an answer of its own |
//! | a list of 64 orders, of which the root knows none | 64 cancels in one step, 64 rejections |
//! | a replacement is lost | it is rejected, and what it would have replaced stays open |
//! | a request to cancel all is lost | its number is rejected; whether it was done the words leave open |
//! | a bridge refuses a number, passes a higher one on, and begins again before the refusal is heard | the number was passed over: it is taken |
//! | the door's disk lost a number that the root has, and it comes again with another signature | the number is used: its acceptance is told, and what comes is ignored |
//! | every second number is used, and the others come later, twice | each is taken once, as far as 65,536 gaps are remembered |
//! | a million lost numbers | each was given to a bounded queue, and steps of cancels are as large as others |
//!
//! # Deviations
//!
//! - OUCH ignores a number that is not above all in use. Here one that never came is taken, or nobody would answer it.
//! - After midnight, or in another incarnation, sessions are others, and numbers of before have no answers any more.

use primitives::PublicKey;
use primitives::venue::{OrderNumber, VenueOrder};
use protocols::ouch::{OuchEnter, OuchInbound, OuchMessage, OuchOutbound, OuchRejected, OuchReplace};
use venue::{
    Acceptance, MatchingStage, OrderRefusal, OrderStanding, ReportKind, SessionNumber, TradeCommand, VenueInput,
};

use super::inbound::{entering, side_letter};
use super::refusing::OuchRefusal;
use super::session::{Entered, OuchSession};
use super::{outbound, symbol_of};
use crate::codes::{LOST, refusal_name};

const ORDER_LOST: &str = "the venue began again before it took this order, and never will: send it under a new number";
const REQUEST_LOST: &str = "the venue began again, and whether it did this is not known: send it under a new number";

/// What is done about a lost number.
pub(super) enum LostNumber {
    /// The root is asked this.
    Ask(VenueInput),
    /// The session is told this.
    Told(OuchMessage<OuchOutbound>),
}

impl Entered {
    /// Whether a venue's order is the one that this message asked for, as far as the message says.
    fn is_of(&self, order: &VenueOrder) -> bool {
        let (quantity, said) = match self.message {
            OuchInbound::Enter(OuchEnter { quantity, price, .. })
            | OuchInbound::Replace(OuchReplace { quantity, price, .. }) => (quantity, price),
            _ => return false,
        };
        (order.lots, u64::from(order.tick)) == (quantity, said)
            && (symbol_of(order.market), side_letter(order.side)) == (self.symbol, self.side)
    }
}

impl OuchSession {
    /// Remembers what the orders of lost numbers said that no journal has, as the root knows them.
    pub(super) fn remember_lost(&mut self, session: SessionNumber, root: &MatchingStage) {
        let unknown = self.lost.iter().filter(|of| !self.orders.contains_key(of)).copied();
        for reference in unknown.collect::<Vec<_>>() {
            let Some((order, accepted)) = self.taken(session, reference, root) else { continue };
            let (symbol, side) = (symbol_of(order.market), side_letter(order.side));
            let message = match accepted.replaces {
                Some(before) => OuchInbound::Replace(replacing(order, before.reference)),
                None => OuchInbound::Enter(entering(order)),
            };
            self.enter(Entered { message, symbol, side, is_answered: false, open: 0 });
        }
    }

    /// The order under a number, and its acceptance, if a root has taken it; also where the session has left.
    fn taken<'r>(
        &self,
        session: SessionNumber,
        reference: u32,
        root: &'r MatchingStage,
    ) -> Option<(&'r VenueOrder, Acceptance)> {
        let key = root.keys_of(session).first().copied().or(self.key)?;
        let number = self.number(reference);
        match root.standing(&key, &number)? {
            OrderStanding::Taken { accepted, .. } => Some((root.order(&key, &number)?, accepted)),
            _ => None,
        }
    }

    /// What is done about each lost number, whose order a root may have by now.
    pub(super) fn about_lost(&self, session: SessionNumber, nanoseconds: u64, root: &MatchingStage) -> Vec<LostNumber> {
        let key = root.keys_of(session).first().copied();
        let about = |reference: &u32| {
            let of = self.orders.get(reference);
            match (self.taken(session, *reference, root), key) {
                (Some((order, accepted)), _) => {
                    let is_its = of.filter(|entered| entered.is_of(order));
                    let answer = is_its.and_then(|entered| outbound::accepted(entered, nanoseconds, &accepted));
                    LostNumber::Told(answer.unwrap_or_else(|| self.refuse_taken(*reference, nanoseconds)))
                }
                (None, Some(key)) => LostNumber::Ask(VenueInput::Trade(session, void(key, self.number(*reference)))),
                (None, None) => LostNumber::Told(self.refuse_lost(*reference, nanoseconds)),
            }
        };
        self.lost.iter().map(about).collect()
    }

    /// The answer to a lost number, if a report of the root is about it.
    pub(super) fn answer_lost(
        &self,
        reference: u32,
        nanoseconds: u64,
        what: &ReportKind,
    ) -> Option<OuchMessage<OuchOutbound>> {
        if !self.lost.contains(&reference) {
            return None;
        }
        match (what, self.orders.get(&reference)) {
            (ReportKind::Status(Some(OrderStanding::Taken { accepted, .. })), Some(entered)) => {
                outbound::accepted(entered, nanoseconds, accepted)
            }
            // The root's answer to the order itself.
            (ReportKind::Refused(_), Some(_)) => None,
            (ReportKind::Overtaken | ReportKind::Status(_) | ReportKind::Refused(_), _) => {
                Some(self.refuse_lost(reference, nanoseconds))
            }
            _ => None,
        }
    }

    fn refuse_taken(&self, reference: u32, nanoseconds: u64) -> OuchMessage<OuchOutbound> {
        let taken = OrderRefusal::NumberTaken;
        self.refuse(reference, &OuchRefusal::new(refusal_name(&taken).0, taken), nanoseconds)
    }

    fn refuse_lost(&self, reference: u32, nanoseconds: u64) -> OuchMessage<OuchOutbound> {
        let words = if self.orders.contains_key(&reference) { ORDER_LOST } else { REQUEST_LOST };
        self.refuse(reference, &OuchRefusal::new(LOST, words), nanoseconds)
    }

    fn refuse(&self, user_ref: u32, refusal: &OuchRefusal, nanoseconds: u64) -> OuchMessage<OuchOutbound> {
        let entered = self.orders.get(&user_ref).and_then(|entered| refusal.of(&entered.message, nanoseconds));
        entered.unwrap_or_else(|| {
            let (reason, client_order) = (refusal.reason, [b' '; 14]);
            refusal.said(OuchOutbound::Rejected(OuchRejected { nanoseconds, user_ref, reason, client_order }))
        })
    }
}

fn replacing(order: &VenueOrder, before: u32) -> OuchReplace {
    let OuchEnter { user_ref, quantity, price, time_in_force, display, sweep, client_order, .. } = entering(order);
    OuchReplace { before, user_ref, quantity, price, time_in_force, display, sweep, client_order }
}

fn void(key: PublicKey, number: OrderNumber) -> TradeCommand {
    TradeCommand::Cancel { key, number, keeps: 0 }
}

#[cfg(test)]
mod tests;
