//! A participant that speaks OUCH and signs its orders itself.

use kernel::Dice;
use pit::bridge::{BridgeNews, BridgeSettings, Translator};
use pit::ouch::{OuchList, SIGNED_ORDER};
use primitives::venue::{SettledOrder, SignedOrder};
use protocols::ouch::{OuchInbound, OuchMessage, OuchOption};
use protocols::soup::ANY_SESSION;
use venue::RequestScope;

use super::WireMoment;
use super::program::{Ordered, OuchProgram};
use super::uplink::{Heard, Uplink};
use crate::market::people::{FEE_CAP_PPM, OUCH, Person, trading};

/// How a participant of sessions signs.
pub(super) fn signing(person: Person) -> BridgeSettings {
    BridgeSettings {
        venue: ([127, 0, 0, 1], 1).into(),
        trading: trading(person, 0),
        session: 1,
        ends_orders: false,
        dead_man_ms: None,
        fee_cap_ppm: FEE_CAP_PPM,
        life_heights: 100,
        gather_us: 1_000,
    }
}

pub(super) fn translator(person: Person) -> Translator {
    Translator::new(&signing(person))
}

pub(super) fn news(at: &WireMoment) -> BridgeNews {
    BridgeNews { scope: at.scope, height: at.height, takes_lists: at.takes_lists }
}

/// The orders that a person signed in a message to the venue. Those of a list get a signature each, which is of the
/// same order.
pub(super) fn signed_in(person: Person, at: &WireMoment, bytes: &[u8]) -> Vec<(Person, SignedOrder)> {
    let key = trading(person, 0);
    let orders: Vec<SignedOrder> = match OuchList::decode(bytes) {
        Some(list) => {
            let entries = list.signed_by(key.public()).entries;
            let RequestScope { network, venue, .. } = at.scope;
            entries.iter().map(|entry| SignedOrder::sign(&network, venue, &key, entry.order)).collect()
        }
        None => own_in(bytes).into_iter().collect(),
    };
    orders.into_iter().map(|order| (person, order)).collect()
}

fn own_in(bytes: &[u8]) -> Option<SignedOrder> {
    let message = OuchMessage::<OuchInbound>::decode(bytes).ok()?;
    message.options?.iter().find_map(|option| match option {
        OuchOption::Unknown { tag: SIGNED_ORDER, value } => borsh::from_slice::<SettledOrder>(value).ok()?.own(),
        _ => None,
    })
}

pub(super) struct PlainParty {
    pub uplink: Uplink,
    pub program: OuchProgram,
    translator: Translator,
}

impl PlainParty {
    pub fn new() -> PlainParty {
        let (uplink, program) = (Uplink::new(trading(OUCH, 0)), OuchProgram::new());
        PlainParty { uplink, program, translator: translator(OUCH) }
    }

    /// An incarnation begins.
    pub fn begin(&mut self, incarnation: u32) {
        (self.uplink, self.translator) = (Uplink::new(trading(OUCH, 0)), translator(OUCH));
        self.program.begin(incarnation);
    }

    /// The program begins again. What it heard last it may not have kept.
    pub fn begin_again(&mut self, dice: &mut Dice) {
        let (session, next) = self.uplink.position();
        if session != ANY_SESSION {
            self.uplink.resume(session, next - dice.below(next.min(6)));
        }
    }

    /// Orders, replaces or cancels something.
    pub fn order(&mut self, at: &WireMoment, dice: &mut Dice, signed: &mut Vec<(Person, SignedOrder)>) {
        let Some(Ordered { user_ref, bytes }) = self.program.order(dice) else { return };
        let Some(user_ref) = user_ref else {
            self.uplink.send(at, &bytes);
            return;
        };
        // A replacement of what was never ordered is not signed.
        let Ok(bytes) = self.translator.to_venue(&bytes, &news(at), at.now_ms) else { return };
        signed.extend(signed_in(OUCH, at, &bytes));
        self.program.sent(user_ref, bytes.clone());
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
                Heard::Opened(session) => {
                    for bytes in self.program.opened(session) {
                        self.uplink.send(at, &bytes);
                    }
                }
                Heard::Message(number, message) => self.program.hear(number, message)?,
                Heard::Closed => {}
            }
        }
        Ok(())
    }
}
