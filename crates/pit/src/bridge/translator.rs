//! Plain messages of a participant, signed; messages of the venue, plain.

use std::collections::BTreeMap;

use primitives::SecretKey;
use primitives::venue::{MarketId, OrderNumber, SelfTradeRule, SettledOrder, SignedOrder, VenueReport, VenueSide};
use protocols::ouch::{OuchInbound, OuchMessage, OuchOption, OuchOutbound};
use venue::RequestScope;

use super::{BridgeNews, BridgeSettings};
use crate::codes::{NO_MARKET, NOT_SIGNED, NOT_TAKEN};
use crate::ouch::{
    DAY_MS, OuchList, OuchOrder, OuchRefusal, OuchTerms, SETTLED, SIGNED_ORDER, SignedFault, WORDS, day_of, reports,
};

/// Orders of which market and side are remembered, for replacements.
const ORDERS: usize = 65_536;

/// How long before midnight (UTC) orders end.
const BEFORE_MIDNIGHT_MS: u64 = 10_000;

/// Turns plain messages into signed ones.
pub struct Translator {
    trading: SecretKey,
    fee_cap_ppm: u32,
    life_heights: u64,
    orders: BTreeMap<u32, (MarketId, VenueSide)>,
}

impl Translator {
    /// Signs with these settings.
    pub fn new(settings: &BridgeSettings) -> Translator {
        let BridgeSettings { trading, fee_cap_ppm, life_heights, .. } = settings;
        let (fee_cap_ppm, life_heights) = (*fee_cap_ppm, *life_heights);
        Translator { trading: trading.clone(), fee_cap_ppm, life_heights, orders: BTreeMap::new() }
    }

    /// What the venue is told of one message, without others.
    ///
    /// # Errors
    /// The rejection that the participant is told; it is empty if the bytes are no message.
    pub fn to_venue(&mut self, bytes: &[u8], news: &BridgeNews, now_ms: u64) -> Result<Vec<u8>, Vec<u8>> {
        let message = OuchMessage::<OuchInbound>::decode(bytes).map_err(|_| Vec::new())?;
        match message.body {
            OuchInbound::Enter(_) | OuchInbound::Replace(_) => {
                let order = self.read(message, now_ms)?;
                self.sign(&order, news, now_ms)
            }
            _ => Ok(bytes.to_vec()),
        }
    }

    /// Reads a new order or a replacement, and remembers it for those that replace it.
    pub(super) fn read(&mut self, message: OuchMessage<OuchInbound>, now_ms: u64) -> Result<OuchOrder, Vec<u8>> {
        let replaced = match &message.body {
            OuchInbound::Replace(replace) => self.orders.get(&replace.before).copied(),
            _ => None,
        };
        let body = message.body;
        let order = OuchOrder::read(message, replaced).map_err(|fault| {
            let reason = if fault == SignedFault::Market { NO_MARKET } else { NOT_SIGNED };
            rejection(&body, &OuchRefusal::new(reason, fault), now_ms)
        })?;
        self.orders.insert(order.fields.reference, (order.fields.market, order.fields.side));
        if self.orders.len() > ORDERS {
            self.orders.pop_first();
        }
        Ok(order)
    }

    /// Forgets all orders: their session is over.
    pub(super) fn forget(&mut self) {
        self.orders.clear();
    }

    /// An order with a signature of its own.
    pub(super) fn sign(&self, order: &OuchOrder, news: &BridgeNews, now_ms: u64) -> Result<Vec<u8>, Vec<u8>> {
        let RequestScope { network, venue, .. } = news.scope;
        let signed = SignedOrder::sign(&network, venue, &self.trading, self.terms(news, now_ms).order(&order.fields));
        let value = borsh::to_vec(&SettledOrder::from(signed)).expect("writing to memory cannot fail");
        let OuchMessage { body, options } = order.message.clone();
        let mut options = options.unwrap_or_default();
        options.push(OuchOption::Unknown { tag: SIGNED_ORDER, value });
        let mut to = Vec::new();
        let refused = |error| rejection(&body, &OuchRefusal::new(NOT_SIGNED, error), now_ms);
        OuchMessage { body, options: Some(options) }.encode(&mut to).map_err(refused)?;
        Ok(to)
    }

    /// Orders under one signature; `None` if they are no list.
    pub(super) fn sign_list(&self, orders: Vec<OuchOrder>, news: &BridgeNews, now_ms: u64) -> Option<Vec<u8>> {
        let RequestScope { network, venue, .. } = news.scope;
        let list = OuchList::sign(&network, venue, self.terms(news, now_ms), orders, &self.trading);
        list.ok()?.encode()
    }

    fn terms(&self, news: &BridgeNews, now_ms: u64) -> OuchTerms {
        let incarnation = news.scope.incarnation;
        OuchTerms {
            incarnation,
            day: day_of(now_ms),
            floor: OrderNumber { incarnation, day: 0, reference: 0 },
            self_trade: SelfTradeRule::ExpireTaker,
            expiry: news.height.saturating_add(self.life_heights),
            until_ms: Some(day_end_ms(now_ms)),
            fee_cap_ppm: self.fee_cap_ppm,
        }
    }
}

/// When orders of the day of `now_ms` end: shortly before midnight, so that their end is told in the day's session.
fn day_end_ms(now_ms: u64) -> u64 {
    (now_ms / DAY_MS + 1) * DAY_MS - BEFORE_MIDNIGHT_MS
}

/// Why nothing is passed on while the venue's link is away.
pub(super) fn away() -> OuchRefusal {
    OuchRefusal::new(NOT_TAKEN, "the bridge has no link to the venue now, and calls it again by itself: try later")
}

/// A refusal as the venue would send it; nothing for what has no number.
pub(super) fn rejection(message: &OuchInbound, refusal: &OuchRefusal, now_ms: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(message) = refusal.of(message, now_ms % DAY_MS * 1_000_000) {
        message.encode(&mut bytes).expect("words fit into an option");
    }
    bytes
}

const UNREADABLE: &str = "the venue's signed report of a fill cannot be read, so there is no proof of this execution: \
    ask for the fill over HTTP";

/// A message of the venue as the participant gets it, with the report that it contains.
pub fn to_participant(bytes: &[u8]) -> (Option<Vec<u8>>, Option<VenueReport>) {
    // What this program does not know is passed on: the participant may.
    let Ok(mut message) = OuchMessage::<OuchOutbound>::decode(bytes) else { return (Some(bytes.to_vec()), None) };
    let (mut report, mut is_settled) = (None, false);
    if let Some(options) = &mut message.options {
        let read = reports::take(options);
        report = read.and_then(|read| read.inspect_err(|error| tracing::warn!(%error, "{UNREADABLE}")).ok());
        options.retain(|option| match option {
            OuchOption::Unknown { tag: SETTLED, .. } => {
                is_settled = true;
                false
            }
            OuchOption::Unknown { tag: WORDS, .. } => false,
            _ => true,
        });
    }
    let mut plain = Vec::new();
    message.encode(&mut plain).expect("it was decoded");
    (Some(plain).filter(|_| !is_settled), report)
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::SocketAddr;

    use primitives::Digest;
    use primitives::venue::FillReport;
    use protocols::ouch::{OuchCancel, OuchEnter, OuchRejected, OuchReplace};
    use venue::check_orders;

    use super::*;
    use crate::ouch::{enter_of, symbol_of};

    pub(in crate::bridge) fn settings(gather_us: u64) -> BridgeSettings {
        BridgeSettings {
            venue: SocketAddr::from(([127, 0, 0, 1], 1)),
            trading: SecretKey::from_seed([7; 32]),
            session: 1,
            ends_orders: false,
            dead_man_ms: None,
            fee_cap_ppm: 500,
            life_heights: 100,
            gather_us,
        }
    }

    pub(in crate::bridge) fn news(takes_lists: bool) -> BridgeNews {
        BridgeNews {
            scope: RequestScope { network: Digest([3; 32]), venue: 1, incarnation: 2 },
            height: 40,
            takes_lists,
        }
    }

    fn plain_enter(user_ref: u32) -> OuchEnter {
        OuchEnter {
            user_ref,
            side: b'B',
            quantity: 5,
            symbol: symbol_of(3),
            price: 77,
            time_in_force: b'0',
            display: b'Y',
            capacity: b'P',
            sweep: b'N',
            cross: b'N',
            client_order: *b"mine          ",
        }
    }

    fn encoded(body: OuchInbound) -> Vec<u8> {
        let mut bytes = Vec::new();
        OuchMessage::plain(body).encode(&mut bytes).expect("it has no options");
        bytes
    }

    fn signed_in(bytes: &[u8]) -> SignedOrder {
        let options = OuchMessage::<OuchInbound>::decode(bytes).expect("a message").options.expect("options");
        let Some(OuchOption::Unknown { tag: SIGNED_ORDER, value }) = options.last() else { panic!("no signed order") };
        borsh::from_slice::<SettledOrder>(value).expect("a signed order").own().expect("signed by itself")
    }

    #[test]
    fn a_plain_order_comes_out_of_the_bridge_signed() {
        let (mut translator, scope) = (Translator::new(&settings(0)), news(true).scope);
        let now = 20_000 * 86_400_000 + 5;
        let enter = encoded(OuchInbound::Enter(plain_enter(9)));
        let signed = signed_in(&translator.to_venue(&enter, &news(true), now).expect("signed"));
        assert_eq!(signed.order.number, OrderNumber { incarnation: 2, day: 20_000, reference: 9 });
        assert_eq!((signed.order.market, signed.order.tick, signed.order.lots, signed.order.expiry), (3, 77, 5, 140));
        assert!(check_orders(&scope.network, scope.venue, &[signed])[0].is_some());
        // A replacement keeps market and side of what it replaces.
        let OuchEnter { price, time_in_force, display, sweep, client_order, .. } = plain_enter(0);
        let replace =
            OuchReplace { before: 9, user_ref: 10, quantity: 6, price, time_in_force, display, sweep, client_order };
        let replaced = translator.to_venue(&encoded(OuchInbound::Replace(replace)), &news(true), now).expect("signed");
        assert_eq!((signed_in(&replaced).order.side, signed_in(&replaced).order.lots), (VenueSide::Buy, 6));
        // What nobody has ordered is not replaced, and what no market is named by is not ordered.
        let unknown = OuchReplace { before: 8, ..replace };
        for refused in
            [OuchInbound::Replace(unknown), OuchInbound::Enter(OuchEnter { symbol: *b"EURUSD  ", ..plain_enter(11) })]
        {
            let rejected = translator.to_venue(&encoded(refused), &news(true), now).expect_err("not signed");
            let message = OuchMessage::<OuchOutbound>::decode(&rejected).expect("a rejection");
            let words = crate::ouch::words_of(message.options.as_deref()).expect("words");
            assert!(words.contains("to be replaced") || words.contains("M0, M1"), "{words}");
            assert!(matches!(
                message.body,
                OuchOutbound::Rejected(OuchRejected { reason: NOT_SIGNED | NO_MARKET, .. })
            ));
        }
    }

    /// Who asks for the end of an order must never wait for an answer that does not come.
    #[test]
    fn a_cancel_is_answered_though_the_venue_is_away() {
        let cancel = OuchInbound::Cancel(OuchCancel { user_ref: 7, quantity: 0 });
        let answer = OuchMessage::<OuchOutbound>::decode(&rejection(&cancel, &away(), 1)).expect("an answer");
        assert!(matches!(answer.body, OuchOutbound::CancelReject(of) if of.user_ref == 7));
        // Plain OUCH has no words.
        let mut bytes = Vec::new();
        answer.encode(&mut bytes).expect("it was decoded");
        let (plain, _) = to_participant(&bytes);
        let plain = OuchMessage::<OuchOutbound>::decode(&plain.expect("told")).expect("a message");
        assert_eq!((plain.body, crate::ouch::words_of(plain.options.as_deref())), (answer.body, None));
    }

    #[test]
    fn what_plain_ouch_lacks_is_stripped_and_reports_are_kept() {
        let signed = signed_in(
            &Translator::new(&settings(0))
                .to_venue(&encoded(OuchInbound::Enter(plain_enter(1))), &news(true), 0)
                .expect("signed"),
        );
        let mut bytes = Vec::new();
        enter_of(&signed).encode(&mut bytes).expect("an order fits");
        assert_eq!(signed_in(&bytes), signed, "bridge and venue write the same option");
        let report =
            FillReport::new(&Digest([3; 32]), (1, 2, 9), Digest([4; 32]), signed.key.address(), &settings(0).trading);
        let report = VenueReport::Single(report);
        let executed = protocols::ouch::OuchExecuted {
            nanoseconds: 1,
            user_ref: 1,
            quantity: 5,
            price: 77,
            liquidity: b'R',
            matched: 9,
        };
        let told = OuchMessage { body: OuchOutbound::Executed(executed), options: Some(reports::options_of(&report)) };
        let (mut bytes, mut plain) = (Vec::new(), Vec::new());
        told.encode(&mut bytes).expect("a report fits into an option");
        OuchMessage::plain(OuchOutbound::Executed(executed)).encode(&mut plain).expect("plain");
        assert_eq!(to_participant(&bytes), (Some(plain), Some(report)));
        assert_eq!(to_participant(b"?"), (Some(b"?".to_vec()), None));
    }
}
