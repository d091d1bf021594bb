//! A trading program that speaks OUCH: what it orders, what it has heard, and what of that it can send again.

use std::collections::BTreeMap;

use kernel::Dice;
use pit::ouch::{SETTLED, symbol_of};
use primitives::venue::OrderLife;
use protocols::ouch::{OuchCancel, OuchEnter, OuchInbound, OuchMessage, OuchOption, OuchOutbound, OuchReplace};
use protocols::soup::{ANY_SESSION, SoupSession};

use super::told::Told;
use super::{ORDERS, Wish};
use crate::market::people::MARKET;

/// The index of a fill that is settled.
fn settled_index(options: Option<&[OuchOption]>) -> Option<u64> {
    options?.iter().find_map(|option| match option {
        OuchOption::Unknown { tag: SETTLED, value } => Some(u64::from_be_bytes(*value.first_chunk()?)),
        _ => None,
    })
}

/// A message for the venue, with the number of the order that it places.
pub(super) struct Ordered {
    pub user_ref: Option<u32>,
    pub bytes: Vec<u8>,
}

pub(super) struct OuchProgram {
    pub told: Told,
    pub incarnation: u32,
    session: SoupSession,
    /// The messages of the session.
    heard: Vec<Vec<u8>>,
    /// Numbers that were answered, and whether they were rejected.
    answered: BTreeMap<u32, bool>,
    /// What the venue was sent and has not answered.
    unanswered: BTreeMap<u32, Vec<u8>>,
    /// Orders that may be open.
    open: Vec<u32>,
    reference: u32,
}

impl OuchProgram {
    pub fn new() -> OuchProgram {
        OuchProgram {
            told: Told::default(),
            incarnation: 0,
            session: ANY_SESSION,
            heard: Vec::new(),
            answered: BTreeMap::new(),
            unanswered: BTreeMap::new(),
            open: Vec::new(),
            reference: 0,
        }
    }

    /// An incarnation begins.
    pub fn begin(&mut self, incarnation: u32) {
        let told = std::mem::take(&mut self.told);
        *self = OuchProgram { told, incarnation, ..OuchProgram::new() };
    }

    /// A cancel, a replacement or an order.
    pub fn order(&mut self, dice: &mut Dice) -> Option<Ordered> {
        if !self.open.is_empty() && dice.once_in(4) {
            let user_ref = self.open.swap_remove(dice.index(self.open.len()));
            let mut bytes = Vec::new();
            let cancel = OuchInbound::Cancel(OuchCancel { user_ref, quantity: 0 });
            OuchMessage::plain(cancel).encode(&mut bytes).expect("it has no options");
            return Some(Ordered { user_ref: None, bytes });
        }
        if self.reference >= ORDERS {
            return None;
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
        Some(Ordered { user_ref: Some(user_ref), bytes })
    }

    /// An order leaves, as these bytes.
    pub fn sent(&mut self, user_ref: u32, bytes: Vec<u8>) {
        self.reference = user_ref;
        self.open.push(user_ref);
        self.unanswered.insert(user_ref, bytes);
    }

    /// Whether its messages are those of this session.
    pub fn is_of(&self, session: &SoupSession) -> bool {
        self.session == *session
    }

    /// The session is there. What is sent again: the venue ignores what it has, and its answers are among its messages.
    pub fn opened(&mut self, session: SoupSession) -> Vec<Vec<u8>> {
        if session != self.session {
            self.heard.clear();
            self.answered.clear();
        }
        self.session = session;
        self.unanswered.values().cloned().collect()
    }

    fn answer(&mut self, user_ref: u32, is_rejected: bool) -> Result<(), String> {
        self.unanswered.remove(&user_ref);
        match self.answered.insert(user_ref, is_rejected) {
            None => Ok(()),
            Some(_) => Err(format!("number {user_ref} of an OUCH session is answered twice")),
        }
    }

    /// No number waits for an answer.
    pub fn check_answered(&self, who: &str) -> Result<(), String> {
        match self.unanswered.first_key_value() {
            None => Ok(()),
            Some((number, _)) => Err(format!("{who} has never answered number {number}")),
        }
    }

    /// A message of the session.
    pub fn hear(&mut self, number: u64, message: Vec<u8>) -> Result<(), String> {
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
            OuchOutbound::Accepted(of) => self.answer(of.user_ref, false)?,
            OuchOutbound::Replaced(of) => self.answer(of.user_ref, false)?,
            OuchOutbound::Rejected(of) => self.answer(of.user_ref, true)?,
            OuchOutbound::Executed(of) if self.answered.get(&of.user_ref) == Some(&true) => {
                return Err(format!("order {} of an OUCH session was rejected, and trades", of.user_ref));
            }
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
