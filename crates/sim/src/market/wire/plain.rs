//! A participant that speaks OUCH and signs its orders itself.

use std::collections::BTreeMap;

use pit::bridge::{BridgeNews, BridgeSettings, Translator};
use pit::ouch::{SETTLED, SIGNED_ORDER, symbol_of};
use primitives::venue::{OrderLife, SettledOrder};
use protocols::ouch::{OuchCancel, OuchEnter, OuchInbound, OuchMessage, OuchOption, OuchOutbound, OuchReplace};
use protocols::soup::{ANY_SESSION, SoupSession};

use super::told::Told;
use super::uplink::{Heard, Uplink};
use super::{ORDERS, WireMoment, Wish};
use crate::kernel::Dice;
use crate::market::people::{FEE_CAP_PPM, MARKET, OUCH, Person, trading};

/// How a participant of sessions signs.
pub(super) fn translator(person: Person) -> Translator {
    Translator::new(&BridgeSettings {
        venue: ([127, 0, 0, 1], 1).into(),
        trading: trading(person, 0),
        session: 1,
        ends_orders: false,
        dead_man_ms: None,
        fee_cap_ppm: FEE_CAP_PPM,
        life_heights: 100,
    })
}

pub(super) fn news(at: &WireMoment) -> BridgeNews {
    BridgeNews { scope: at.scope, height: at.height }
}

/// The signed order of a message to the venue.
pub(super) fn signed_in(bytes: &[u8]) -> Option<SettledOrder> {
    let message = OuchMessage::<OuchInbound>::decode(bytes).ok()?;
    message.options?.iter().find_map(|option| match option {
        OuchOption::Unknown { tag: SIGNED_ORDER, value } => borsh::from_slice(value).ok(),
        _ => None,
    })
}

/// The index of a fill that is settled.
fn settled_index(options: Option<&[OuchOption]>) -> Option<u64> {
    options?.iter().find_map(|option| match option {
        OuchOption::Unknown { tag: SETTLED, value } => Some(u64::from_be_bytes(*value.first_chunk()?)),
        _ => None,
    })
}

pub(super) struct PlainParty {
    pub uplink: Uplink,
    pub told: Told,
    translator: Translator,
    incarnation: u32,
    session: SoupSession,
    /// The messages of the session.
    heard: Vec<Vec<u8>>,
    /// What the venue was sent and has not answered.
    unanswered: BTreeMap<u32, Vec<u8>>,
    /// Orders that may be open.
    open: Vec<u32>,
    reference: u32,
}

impl PlainParty {
    pub fn new() -> PlainParty {
        PlainParty {
            uplink: Uplink::new(trading(OUCH, 0)),
            told: Told::default(),
            translator: translator(OUCH),
            incarnation: 0,
            session: ANY_SESSION,
            heard: Vec::new(),
            unanswered: BTreeMap::new(),
            open: Vec::new(),
            reference: 0,
        }
    }

    /// An incarnation begins.
    pub fn begin(&mut self, incarnation: u32) {
        let told = std::mem::take(&mut self.told);
        *self = PlainParty { told, incarnation, ..PlainParty::new() };
    }

    /// The program begins again. What it heard last it may not have kept.
    pub fn begin_again(&mut self, dice: &mut Dice) {
        let (session, next) = self.uplink.position();
        if session != ANY_SESSION {
            self.uplink.resume(session, next - dice.below(next.min(6)));
        }
    }

    /// Orders, replaces or cancels something.
    pub fn order(&mut self, at: &WireMoment, dice: &mut Dice, signed: &mut Vec<(Person, SettledOrder)>) {
        if !self.open.is_empty() && dice.once_in(4) {
            let user_ref = self.open.swap_remove(dice.index(self.open.len()));
            let cancel = OuchInbound::Cancel(OuchCancel { user_ref, quantity: 0 });
            return self.send(at, OuchMessage::plain(cancel));
        }
        if self.reference >= ORDERS {
            return;
        }
        let wish = Wish::draw(dice);
        let user_ref = self.reference + 1;
        let (quantity, price, client_order) = (wish.lots, u64::from(wish.tick), [b' '; 14]);
        let (time_in_force, display, sweep) =
            (if wish.life == OrderLife::ImmediateOrCancel { b'3' } else { b'0' }, b'Y', b'N');
        let options = (wish.life == OrderLife::PostOnly).then_some(OuchOption::PostOnly(b'P'));
        let body = match self.open.pop().filter(|_| dice.once_in(3)) {
            Some(before) => OuchInbound::Replace(OuchReplace {
                before,
                user_ref,
                quantity,
                price,
                time_in_force,
                display,
                sweep,
                client_order,
            }),
            None => OuchInbound::Enter(OuchEnter {
                user_ref,
                side: if wish.is_buy { b'B' } else { b'S' },
                quantity,
                symbol: symbol_of(MARKET),
                price,
                time_in_force,
                display,
                capacity: b'P',
                sweep,
                cross: b'N',
                client_order,
            }),
        };
        let mut bytes = Vec::new();
        let message = OuchMessage { body, options: Some(options.into_iter().collect()) };
        message.encode(&mut bytes).expect("its options suit its kind");
        // A replacement of what was never ordered is not signed.
        let Ok(bytes) = self.translator.to_venue(&bytes, &news(at), at.now_ms) else { return };
        signed.extend(signed_in(&bytes).map(|order| (OUCH, order)));
        self.reference = user_ref;
        self.open.push(user_ref);
        self.unanswered.insert(user_ref, bytes.clone());
        self.uplink.send(at, &bytes);
    }

    fn send(&mut self, at: &WireMoment, message: OuchMessage<OuchInbound>) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes).expect("it has no options");
        self.uplink.send(at, &bytes);
    }

    pub fn receive(&mut self, at: &WireMoment, bytes: &[u8]) -> Result<(), String> {
        let heard = self.uplink.receive(at, bytes);
        self.hear_all(at, heard)
    }

    pub fn wake(&mut self, at: &WireMoment) -> Result<(), String> {
        let heard = self.uplink.wake(at);
        self.hear_all(at, heard)
    }

    fn hear_all(&mut self, at: &WireMoment, heard: Vec<Heard>) -> Result<(), String> {
        for heard in heard {
            match heard {
                Heard::Opened(session) => self.opened(at, session),
                Heard::Message(number, message) => self.hear(number, message)?,
                Heard::Closed => {}
            }
        }
        Ok(())
    }

    fn opened(&mut self, at: &WireMoment, session: SoupSession) {
        if session != self.session {
            self.heard.clear();
        }
        self.session = session;
        // The venue ignores what it has, and its answers are among its messages.
        let again: Vec<Vec<u8>> = self.unanswered.values().cloned().collect();
        again.iter().for_each(|bytes| self.uplink.send(at, bytes));
    }

    fn hear(&mut self, number: u64, message: Vec<u8>) -> Result<(), String> {
        let at = number as usize - 1;
        match self.heard.get(at) {
            Some(known) if *known == message => return Ok(()),
            Some(_) => return Err(format!("message {number} of an OUCH session is another one than before")),
            None if at > self.heard.len() => {
                return Err(format!("message {number} of an OUCH session has none before"));
            }
            None => {}
        }
        let read = OuchMessage::<OuchOutbound>::decode(&message).map_err(|error| error.to_string())?;
        self.heard.push(message);
        let incarnation = self.incarnation;
        match &read.body {
            OuchOutbound::Accepted(of) => drop(self.unanswered.remove(&of.user_ref)),
            OuchOutbound::Replaced(of) => drop(self.unanswered.remove(&of.user_ref)),
            OuchOutbound::Rejected(of) => drop(self.unanswered.remove(&of.user_ref)),
            OuchOutbound::Executed(of) => self.told.fill(incarnation, (of.matched, of.quantity, of.price))?,
            OuchOutbound::BrokenTrade(of) => self.told.fate(incarnation, of.matched, false)?,
            OuchOutbound::Restated(_) => {
                let index = settled_index(read.options.as_deref()).ok_or("a restatement without its fill")?;
                self.told.fate(incarnation, index, true)?;
            }
            _ => {}
        }
        Ok(())
    }
}
