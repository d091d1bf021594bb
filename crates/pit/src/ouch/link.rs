//! A session's link as steps: attaching, the participant's messages, the venue's messages. Connections of the venue's
//! own door drive it, and those of the gateways of its edge.

use primitives::PublicKey;
use primitives::venue::{ListFault, SignedOrder};
use protocols::ouch::{
    OuchAccountQueryResponse, OuchInbound, OuchMassCancelResponse, OuchMessage, OuchOption, OuchOutbound,
};
use protocols::soup::SoupLimits;
use protocols::soup::server::{SoupServer, SoupServerEffect, SoupServerInput};
use tokio::sync::watch;
use venue::{CheckedOrder, CheckedOrderList, SessionNumber, TradeCommand, check_lists, check_orders};

use super::host::OuchHost;
use super::inbound::{SignedFault, new_order, replacement, side_letter};
use super::list::{OuchList, OuchOrder};
use super::refusing::OuchRefusal;
use super::session::{Entered, OuchSession};
use super::{DAY_MS, market_of, symbol_of};
use crate::codes::{NO_MARKET, NOT_SIGNED, NOT_TAKEN, NOT_TAKEN_WORDS};

/// False signatures with which a link ends: whoever has the session's key can sign.
const FORGED_MOST: u64 = 256;
/// How often a session that speaks resets its dead man's timer, in milliseconds.
const HEARTBEAT_MS: u64 = 500;

/// Whose link it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OuchParty {
    /// The session as the root knows it.
    pub session: SessionNumber,
    /// The trading key.
    pub key: PublicKey,
    /// The number of the link: no other one has it.
    pub number: u64,
    /// Whether a dead man's timer runs.
    pub has_timer: bool,
}

/// A session with a link.
struct Link {
    of: OuchParty,
    changed: watch::Receiver<u64>,
}

/// What a step of a link came to.
#[derive(Clone, Debug, Default)]
pub struct OuchTurn {
    /// What the participant is sent.
    pub bytes: Vec<u8>,
    /// Whether the link ends after that.
    pub is_over: bool,
    /// Orders of the session's key whose signatures were false.
    pub forged: u64,
}

/// A session's link.
pub struct OuchLink {
    link: Link,
    soup: SoupServer,
    /// When its dead man's timer was reset last.
    spoke_ms: u64,
    /// Signatures of it that were false.
    forged: u64,
}

impl OuchLink {
    /// The link of a session that the root has attached. Whatever other one the session had ends.
    pub fn begin(host: &impl OuchHost, of: OuchParty) -> OuchLink {
        let changed = host.with(of.session, |session| {
            session.link.send_replace(of.number);
            session.link.subscribe()
        });
        let soup = SoupServer::new(SoupLimits::default(), host.now_ms());
        OuchLink { link: Link { of, changed }, soup, spoke_ms: 0, forged: 0 }
    }

    /// Told when there is something new for the session; closed when its day is over.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.link.changed.clone()
    }

    /// When a step is due at the latest.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.soup.deadline_ms()
    }

    /// Whose link it is.
    pub(crate) fn party(&self) -> &OuchParty {
        &self.link.of
    }

    /// One step.
    pub fn step(&mut self, host: &impl OuchHost, input: SoupServerInput<'_>) -> OuchTurn {
        let mut turn = OuchTurn::default();
        // The session has another link, or is over.
        if self.link.changed.has_changed().is_err() || *self.link.changed.borrow() != self.link.of.number {
            turn.is_over = true;
            return turn;
        }
        self.keep_alive(host, input);
        let mut effects = self.soup(host, input);
        while !effects.is_empty() && !turn.is_over {
            turn.forged += hear_all(host, &self.link, &effects);
            let mut next = Vec::new();
            for effect in effects {
                match effect {
                    SoupServerEffect::Send(bytes) => turn.bytes.extend(bytes),
                    // The request before the login stands for name and password.
                    SoupServerEffect::Authorize(_) => next.extend(self.soup(host, SoupServerInput::Verdict(true))),
                    // It is heard with the others.
                    SoupServerEffect::Message(_) => {}
                    SoupServerEffect::Close(why) => {
                        tracing::debug!(%why, session = self.link.of.session, "an OUCH session's link ends");
                        turn.is_over = true;
                    }
                }
            }
            effects = next;
        }
        self.forged += turn.forged;
        if self.forged > FORGED_MOST {
            tracing::debug!(session = self.link.of.session, "an OUCH session's link ends: its signatures are false");
            turn.is_over = true;
        }
        turn
    }

    fn soup(&mut self, host: &impl OuchHost, input: SoupServerInput<'_>) -> Vec<SoupServerEffect> {
        host.with(self.link.of.session, |of| self.soup.step(host.now_ms(), input, &of.log))
    }

    /// Whoever says something lives.
    fn keep_alive(&mut self, host: &impl OuchHost, input: SoupServerInput<'_>) {
        let now = host.now_ms();
        let is_due = self.link.of.has_timer && now.saturating_sub(self.spoke_ms) >= HEARTBEAT_MS;
        if is_due && matches!(input, SoupServerInput::Received(_)) {
            self.spoke_ms = now;
            host.heartbeat(self.link.of.session);
        }
    }
}

/// What the messages of the participant do, in their order. The signatures of those that came together are checked in
/// one batch, which costs half of what single checks do. Returns how many signatures were false.
fn hear_all(host: &impl OuchHost, link: &Link, effects: &[SoupServerEffect]) -> u64 {
    let (mut heard, mut own, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    for effect in effects {
        let SoupServerEffect::Message(bytes) = effect else { continue };
        // What is no message has no number to reject.
        match OuchList::decode(bytes) {
            Some(list) => {
                lists.push(list.signed_by(link.of.key));
                heard.push(Said::List(list));
            }
            None => {
                let Some(message) = Heard::read(bytes) else { continue };
                own.extend(message.signed_by(&link.of.key));
                heard.push(Said::Single(message));
            }
        }
    }
    let (checked, checked_lists) = match host.scope() {
        Some(scope) => {
            (check_orders(&scope.network, scope.venue, &own), check_lists(&scope.network, scope.venue, lists))
        }
        None => Default::default(),
    };
    let forged = checked.iter().filter(|order| order.is_none()).count()
        + checked_lists.iter().filter(|list| matches!(list, Err(ListFault::Signature))).count();
    let (mut checked, mut checked_lists) = (checked.into_iter(), checked_lists.into_iter());
    for said in heard {
        match said {
            Said::List(list) => {
                let checked = checked_lists.next().unwrap_or(Err(ListFault::Signature));
                hear_list(host, link, &list, checked.map_err(SignedFault::List));
            }
            Said::Single(heard) => {
                let order = match (heard.signed, heard.signed_by(&link.of.key)) {
                    (Err(fault), _) => Err(fault),
                    (Ok(_), None) => Err(SignedFault::OtherKey),
                    (Ok(_), Some(_)) => checked.next().flatten().ok_or(SignedFault::False),
                };
                hear(host, link, heard, order);
            }
        }
    }
    forged as u64
}

/// What a participant says.
enum Said {
    Single(Heard),
    List(OuchList),
}

/// What a list does, if its signature was checked and is valid.
fn hear_list(host: &impl OuchHost, link: &Link, list: &OuchList, checked: Result<CheckedOrderList, SignedFault>) {
    // In one go: the journal has all of its numbers or none.
    let (new, is_of_session) = host.with(link.of.session, |of| {
        let claimed = list.orders().iter().filter(|order| of.claim(order.fields.reference));
        let new: Vec<&OuchOrder> = claimed.collect();
        for order in &new {
            let (symbol, side) = order.symbol_and_side();
            of.enter(entered(order.message.body, symbol, side));
        }
        (new, of.number(0) == list.number(0))
    });
    let refused = match checked {
        // A repetition: the answers are among the session's messages.
        _ if new.is_empty() => None,
        _ if new.len() < list.orders().len() => Some((NOT_SIGNED, SignedFault::PartlyUsed.to_string())),
        Err(fault) => Some((NOT_SIGNED, fault.to_string())),
        Ok(_) if !is_of_session => Some((NOT_SIGNED, SignedFault::OtherSession.to_string())),
        Ok(list) => {
            let is_taken = host.takes_orders() && host.list(link.of.session, list);
            (!is_taken).then(|| (NOT_TAKEN, NOT_TAKEN_WORDS.to_string()))
        }
    };
    if let Some((reason, words)) = refused {
        new.iter().for_each(|order| reject(host, link, &order.message.body, reason, &words));
    }
}

/// A message of the participant, with its order if it has one.
struct Heard {
    body: OuchInbound,
    options: Vec<OuchOption>,
    signed: Result<SignedOrder, SignedFault>,
}

impl Heard {
    fn read(bytes: &[u8]) -> Option<Heard> {
        let message = OuchMessage::<OuchInbound>::decode(bytes).ok()?;
        let options = message.options.unwrap_or_default();
        let signed = match &message.body {
            OuchInbound::Enter(enter) => new_order(enter, &options),
            OuchInbound::Replace(replace) => replacement(replace, &options),
            _ => Err(SignedFault::Missing),
        };
        Some(Heard { body: message.body, options, signed })
    }

    /// Uses its number, and remembers what it orders, in one go: a crash leaves both or neither. False if the number
    /// was used.
    fn claim(&self, session: &mut OuchSession) -> bool {
        let Some(number) = self.body.new_user_ref() else { return true };
        let is_new = session.claim(number);
        let (symbol, side) = match self.body {
            OuchInbound::Enter(enter) => (enter.symbol, enter.side),
            OuchInbound::Replace(_) => self
                .signed
                .map_or(([b' '; 8], b' '), |signed| (symbol_of(signed.order.market), side_letter(signed.order.side))),
            _ => return is_new,
        };
        if is_new {
            session.enter(entered(self.body, symbol, side));
        }
        is_new
    }

    fn signed_by(&self, key: &PublicKey) -> Option<SignedOrder> {
        self.signed.ok().filter(|signed| signed.key == *key)
    }
}

/// What a message of the participant does; `order` is its order, if its signature was checked and is valid.
fn hear(host: &impl OuchHost, link: &Link, message: Heard, order: Result<CheckedOrder, SignedFault>) {
    if !host.with(link.of.session, |of| message.claim(of)) {
        // A repetition: its answer is among the session's messages.
        return;
    }
    match message.body {
        OuchInbound::Enter(_) => place(host, link, &message.body, order, None),
        OuchInbound::Replace(replace) => place(host, link, &message.body, order, Some(replace.before)),
        OuchInbound::Cancel(cancel) => keep(host, link, &message.body, cancel.user_ref, cancel.quantity),
        OuchInbound::Modify(modify) => keep(host, link, &message.body, modify.user_ref, modify.quantity),
        OuchInbound::MassCancel(mass) => {
            let is_all = mass.symbol == [b' '; 8];
            let market = market_of(&mass.symbol);
            let side = message.options.iter().find_map(|option| match option {
                OuchOption::Side(letter) => super::inbound::side_of(*letter).ok(),
                _ => None,
            });
            if market.is_none() && !is_all {
                return reject(host, link, &message.body, NO_MARKET, SignedFault::Market);
            }
            let command = TradeCommand::CancelAll { key: link.of.key, market, side };
            if !trade(host, link, command) {
                return reject(host, link, &message.body, NOT_TAKEN, NOT_TAKEN_WORDS);
            }
            let (nanoseconds, user_ref) = (nanoseconds(host), mass.user_ref);
            let (firm, symbol) = (mass.firm, mass.symbol);
            let response = OuchMassCancelResponse { nanoseconds, user_ref, firm, symbol };
            publish(host, link, OuchOutbound::MassCancelResponse(response));
        }
        OuchInbound::Disable(_) | OuchInbound::Enable(_) => {
            reject(host, link, &message.body, NOT_TAKEN, "nobody is disabled here: revoke the key on the ledger");
        }
        OuchInbound::AccountQuery(_) => {
            let next = host.with(link.of.session, |of| of.next_ref());
            let nanoseconds = nanoseconds(host);
            publish(host, link, OuchOutbound::AccountQueryResponse(OuchAccountQueryResponse { nanoseconds, next }));
        }
    }
}

fn entered(message: OuchInbound, symbol: [u8; 8], side: u8) -> Entered {
    Entered { message, symbol, side, is_answered: false, open: 0 }
}

fn nanoseconds(host: &impl OuchHost) -> u64 {
    host.now_ms() % DAY_MS * 1_000_000
}

/// Tells the participant something. The root's thread makes it durable first.
fn publish(host: &impl OuchHost, link: &Link, body: OuchOutbound) {
    tell(host, link, &OuchMessage::plain(body));
}

fn tell(host: &impl OuchHost, link: &Link, message: &OuchMessage<OuchOutbound>) {
    host.with(link.of.session, |of| of.tell(message));
    host.wake();
}

fn reject(host: &impl OuchHost, link: &Link, message: &OuchInbound, reason: u16, words: impl ToString) {
    let answer = OuchRefusal::new(reason, words).of(message, nanoseconds(host));
    answer.iter().for_each(|answer| tell(host, link, answer));
}

/// Gives an order to the root, if it is signed by this session's key and says what its message says.
fn place(
    host: &impl OuchHost,
    link: &Link,
    message: &OuchInbound,
    order: Result<CheckedOrder, SignedFault>,
    before: Option<u32>,
) {
    let numbers = host.with(link.of.session, |of| {
        (message.new_user_ref().map(|user_ref| of.number(user_ref)), before.map(|before| of.number(before)))
    });
    let order = match order {
        Ok(order) if Some(order.order().number) == numbers.0 => order,
        Ok(_) => return reject(host, link, message, NOT_SIGNED, SignedFault::OtherSession),
        Err(fault) => return reject(host, link, message, NOT_SIGNED, fault),
    };
    let command = numbers.1.map_or(TradeCommand::New(order), |old| TradeCommand::Replace(old, order));
    if !host.takes_orders() || !trade(host, link, command) {
        reject(host, link, message, NOT_TAKEN, NOT_TAKEN_WORDS);
    }
}

/// Ends an order, or lowers its total lots.
fn keep(host: &impl OuchHost, link: &Link, message: &OuchInbound, user_ref: u32, keeps: u32) {
    let number = host.with(link.of.session, |of| of.number(user_ref));
    let command = TradeCommand::Cancel { key: link.of.key, number, keeps };
    // A cancel that is lost without a word would leave an order that its owner believes to be gone.
    if !trade(host, link, command) {
        reject(host, link, message, NOT_TAKEN, NOT_TAKEN_WORDS);
    }
}

fn trade(host: &impl OuchHost, link: &Link, command: TradeCommand) -> bool {
    host.trade(link.of.session, link.of.key, command)
}
