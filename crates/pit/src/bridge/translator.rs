//! Plain messages of a participant, signed; messages of the venue, plain.

use std::collections::BTreeMap;

use primitives::SecretKey;
use primitives::venue::{
    MarketId, OrderNumber, SelfTradeRule, SettledOrder, SignedOrder, VenueOrder, VenueReport, VenueSide,
};
use protocols::ouch::{OuchEnter, OuchInbound, OuchMessage, OuchOption, OuchOutbound, OuchReplace};
use venue::RequestScope;

use super::{BridgeNews, BridgeSettings};
use crate::codes::{NO_MARKET, NOT_SIGNED, NOT_TAKEN};
use crate::ouch::{
    DAY_MS, OuchRefusal, SETTLED, SIGNED_ORDER, SignedFault, WORDS, day_of, life_of, market_of, reports,
};

/// Orders of which market and side are remembered, for replacements.
const ORDERS: usize = 65_536;

/// How long before midnight (UTC) orders end.
const BEFORE_MIDNIGHT_MS: u64 = 10_000;

/// Turns plain messages into signed ones, and back.
pub struct Translator {
    trading: SecretKey,
    fee_cap_ppm: u32,
    life_heights: u64,
    pub(super) orders: BTreeMap<u32, (MarketId, VenueSide)>,
}

impl Translator {
    /// Signs with these settings.
    pub fn new(settings: &BridgeSettings) -> Translator {
        let BridgeSettings { trading, fee_cap_ppm, life_heights, .. } = settings;
        let (fee_cap_ppm, life_heights) = (*fee_cap_ppm, *life_heights);
        Translator { trading: trading.clone(), fee_cap_ppm, life_heights, orders: BTreeMap::new() }
    }

    /// What the venue is told.
    ///
    /// # Errors
    /// The rejection that the participant is told.
    pub fn to_venue(&mut self, bytes: &[u8], news: &BridgeNews, now_ms: u64) -> Result<Vec<u8>, Vec<u8>> {
        let Ok(message) = OuchMessage::<OuchInbound>::decode(bytes) else { return Err(Vec::new()) };
        let signed = match &message.body {
            OuchInbound::Enter(enter) => self.sign_new(enter, &message, news, now_ms),
            OuchInbound::Replace(replace) => self.sign_replacement(replace, &message, news, now_ms),
            _ => return Ok(bytes.to_vec()),
        };
        let refused = |fault: SignedFault| {
            let reason = if fault == SignedFault::Market { NO_MARKET } else { NOT_SIGNED };
            rejection(&message.body, &OuchRefusal::new(reason, fault), now_ms)
        };
        let signed = signed.map_err(refused)?;
        self.orders.insert(signed.order.number.reference, (signed.order.market, signed.order.side));
        if self.orders.len() > ORDERS {
            self.orders.pop_first();
        }
        let mut options = message.options.unwrap_or_default();
        let value = borsh::to_vec(&SettledOrder::from(signed)).expect("writing to memory cannot fail");
        options.push(OuchOption::Unknown { tag: SIGNED_ORDER, value });
        let mut to = Vec::new();
        let message = OuchMessage { body: message.body, options: Some(options) };
        let refused = |error| rejection(&message.body, &OuchRefusal::new(NOT_SIGNED, error), now_ms);
        message.encode(&mut to).map_err(refused)?;
        Ok(to)
    }

    fn sign_new(
        &self,
        enter: &OuchEnter,
        message: &OuchMessage<OuchInbound>,
        news: &BridgeNews,
        now_ms: u64,
    ) -> Result<SignedOrder, SignedFault> {
        let side = if enter.side == b'B' { VenueSide::Buy } else { VenueSide::Sell };
        let market = market_of(&enter.symbol).ok_or(SignedFault::Market)?;
        let life = life_of(enter.time_in_force, enter.quantity, message.options.as_deref().unwrap_or(&[]))?;
        let (tick, lots) = (tick_of(enter.price)?, enter.quantity);
        Ok(self.sign((market, side), enter.user_ref, (tick, lots), life, news, now_ms))
    }

    fn sign_replacement(
        &self,
        replace: &OuchReplace,
        message: &OuchMessage<OuchInbound>,
        news: &BridgeNews,
        now_ms: u64,
    ) -> Result<SignedOrder, SignedFault> {
        let of = *self.orders.get(&replace.before).ok_or(SignedFault::Replaced)?;
        let life = life_of(replace.time_in_force, replace.quantity, message.options.as_deref().unwrap_or(&[]))?;
        let (tick, lots) = (tick_of(replace.price)?, replace.quantity);
        Ok(self.sign(of, replace.user_ref, (tick, lots), life, news, now_ms))
    }

    fn sign(
        &self,
        (market, side): (MarketId, VenueSide),
        reference: u32,
        (tick, lots): (u32, u32),
        life: primitives::venue::OrderLife,
        news: &BridgeNews,
        now_ms: u64,
    ) -> SignedOrder {
        let RequestScope { network, venue, incarnation } = news.scope;
        let order = VenueOrder {
            market,
            number: OrderNumber { incarnation, day: day_of(now_ms), reference },
            floor: OrderNumber { incarnation, day: 0, reference: 0 },
            side,
            life,
            self_trade: SelfTradeRule::ExpireTaker,
            tick,
            lots,
            expiry: news.height.saturating_add(self.life_heights),
            until_ms: Some(day_end_ms(now_ms)),
            fee_cap_ppm: self.fee_cap_ppm,
        };
        SignedOrder::sign(&network, venue, &self.trading, order)
    }
}

/// When orders of the day of `now_ms` end: shortly before midnight, so that their end is told in the day's session.
fn day_end_ms(now_ms: u64) -> u64 {
    (now_ms / DAY_MS + 1) * DAY_MS - BEFORE_MIDNIGHT_MS
}

fn tick_of(price: u64) -> Result<u32, SignedFault> {
    u32::try_from(price).map_err(|_| SignedFault::Price)
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
mod tests {
    use std::net::SocketAddr;

    use primitives::Digest;
    use primitives::venue::FillReport;
    use protocols::ouch::{OuchCancel, OuchRejected};
    use venue::check_orders;

    use super::*;
    use crate::ouch::{enter_of, symbol_of};

    fn settings() -> BridgeSettings {
        BridgeSettings {
            venue: SocketAddr::from(([127, 0, 0, 1], 1)),
            trading: SecretKey::from_seed([7; 32]),
            session: 1,
            ends_orders: false,
            dead_man_ms: None,
            fee_cap_ppm: 500,
            life_heights: 100,
        }
    }

    fn news() -> BridgeNews {
        BridgeNews { scope: RequestScope { network: Digest([3; 32]), venue: 1, incarnation: 2 }, height: 40 }
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
        let (mut translator, scope) = (Translator::new(&settings()), news().scope);
        let now = 20_000 * 86_400_000 + 5;
        let enter = encoded(OuchInbound::Enter(plain_enter(9)));
        let signed = signed_in(&translator.to_venue(&enter, &news(), now).expect("signed"));
        assert_eq!(signed.order.number, OrderNumber { incarnation: 2, day: 20_000, reference: 9 });
        assert_eq!((signed.order.market, signed.order.tick, signed.order.lots, signed.order.expiry), (3, 77, 5, 140));
        assert!(check_orders(&scope.network, scope.venue, &[signed])[0].is_some());
        // A replacement keeps market and side of what it replaces.
        let OuchEnter { price, time_in_force, display, sweep, client_order, .. } = plain_enter(0);
        let replace =
            OuchReplace { before: 9, user_ref: 10, quantity: 6, price, time_in_force, display, sweep, client_order };
        let replaced = translator.to_venue(&encoded(OuchInbound::Replace(replace)), &news(), now).expect("signed");
        assert_eq!((signed_in(&replaced).order.side, signed_in(&replaced).order.lots), (VenueSide::Buy, 6));
        // What nobody has ordered is not replaced, and what no market is named by is not ordered.
        let unknown = OuchReplace { before: 8, ..replace };
        for refused in
            [OuchInbound::Replace(unknown), OuchInbound::Enter(OuchEnter { symbol: *b"EURUSD  ", ..plain_enter(11) })]
        {
            let rejected = translator.to_venue(&encoded(refused), &news(), now).expect_err("not signed");
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
            &Translator::new(&settings())
                .to_venue(&encoded(OuchInbound::Enter(plain_enter(1))), &news(), 0)
                .expect("signed"),
        );
        let mut bytes = Vec::new();
        enter_of(&signed).encode(&mut bytes).expect("an order fits");
        assert_eq!(signed_in(&bytes), signed, "bridge and venue write the same option");
        let report =
            FillReport::new(&Digest([3; 32]), (1, 2, 9), Digest([4; 32]), signed.key.address(), &settings().trading);
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
