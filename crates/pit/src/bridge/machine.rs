//! The machine of a bridge of plain OUCH: the messages to both sides, as steps. It has no sockets, and no clock of its
//! own.

use std::collections::{BTreeSet, VecDeque};

use primitives::venue::VenueReport;
use protocols::ouch::{OuchInbound, OuchMessage, OuchOutbound};
use protocols::soup::server::{SoupLog, SoupServer, SoupServerEffect, SoupServerInput};
use protocols::soup::{SoupClose, SoupLimits, SoupSession};

use super::gather::{Gather, Passed};
use super::translator::{away, rejection, to_participant};
use super::{BridgeMoment, BridgeSettings};
use crate::ouch::OuchList;

/// Messages that the machine keeps for its participant.
const MESSAGES: u64 = 65_536;

/// What comes of a step. Reports are kept before the participant is told anything: they are its evidence.
#[derive(Debug, Default)]
pub struct OuchMachineTurn {
    /// Signed reports of fills that are about to be told.
    pub reports: Vec<VenueReport>,
    /// Messages for the venue.
    pub to_venue: Vec<Vec<u8>>,
    /// Bytes for the participant's connection.
    pub to_participant: Vec<u8>,
    /// The participant's connection is to be closed after these bytes, for this reason if it gave one.
    pub close: Option<Option<SoupClose>>,
}

/// The state of a bridge of plain OUCH. A process that begins again begins with a new one, and hears the venue's
/// session from its first message on.
pub struct OuchMachine {
    gather: Gather,
    log: SoupLog,
    /// Numbers that the venue has answered, or this machine has refused by itself. One that comes again is a repetition
    /// and never leaves.
    answered: BTreeSet<u32>,
    /// When the log's session began, which names it.
    began_ms: u64,
    /// The participant's connection.
    server: Option<SoupServer>,
    /// The session of the venue whose messages the log has.
    venue: Option<SoupSession>,
}

/// A session's name: no two of a bridge begin within a millisecond.
fn named(began_ms: u64) -> SoupSession {
    let mut name = [b' '; 10];
    let text = format!("{:>10}", began_ms % 10_000_000_000);
    name.copy_from_slice(text.as_bytes());
    name
}

impl OuchMachine {
    /// A machine without a participant, whose session is named by the time.
    pub fn new(settings: &BridgeSettings, now_ms: u64) -> OuchMachine {
        let (gather, log) = (Gather::new(settings), SoupLog::new(named(now_ms)));
        OuchMachine { gather, log, answered: BTreeSet::new(), began_ms: now_ms, server: None, venue: None }
    }

    /// When its session began, which names it: a machine that takes the place of this one begins later.
    pub fn began_ms(&self) -> u64 {
        self.began_ms
    }

    /// Whether a participant is connected.
    pub fn is_connected(&self) -> bool {
        self.server.is_some()
    }

    /// When the participant's connection wants a step.
    pub fn deadline_ms(&self) -> Option<u64> {
        self.server.as_ref().and_then(SoupServer::deadline_ms)
    }

    /// When orders that wait for others leave, in microseconds since 1970.
    pub fn gathered_us(&self) -> Option<u64> {
        self.gather.deadline_us()
    }

    /// A participant comes, in the place of the one before.
    pub fn connect(&mut self, now_ms: u64) {
        self.server = Some(SoupServer::new(SoupLimits::default(), now_ms));
    }

    /// Something happens to the participant's connection, or time passed.
    pub fn step(&mut self, at: &BridgeMoment, input: SoupServerInput<'_>) -> OuchMachineTurn {
        let mut turn = OuchMachineTurn::default();
        let due = self.gather.wake(at);
        self.pass(at, due, &mut turn);
        match input {
            SoupServerInput::Lost => self.server = None,
            input => self.feed(at, input, &mut turn),
        }
        turn
    }

    /// The venue's link is there, for a session. If it is another one than before, so is the participant's. What was on
    /// its way over a link before may be lost: a participant that is still there sends it again once it has come back.
    pub fn opened(&mut self, at: &BridgeMoment, session: SoupSession) -> OuchMachineTurn {
        let is_other = self.venue.is_some_and(|known| known != session);
        self.venue = Some(session);
        let mut turn = OuchMachineTurn::default();
        // What waits for another session was never signed.
        let waiting = self.gather.flush(&BridgeMoment { news: at.news.filter(|_| !is_other), ..*at });
        self.pass(at, waiting, &mut turn);
        if !is_other {
            return OuchMachineTurn { close: self.leave().close, ..turn };
        }
        tracing::info!("the venue has a new session: the bridge's begins with message 1, too");
        self.began_ms = at.now_ms().max(self.began_ms + 1);
        self.log = SoupLog::new(named(self.began_ms));
        self.answered.clear();
        self.gather.forget();
        OuchMachineTurn { close: self.leave().close, ..turn }
    }

    /// A message of the venue.
    pub fn hear(&mut self, at: &BridgeMoment, message: &[u8]) -> OuchMachineTurn {
        let mut turn = OuchMachineTurn::default();
        if let Ok(OuchMessage { body, .. }) = OuchMessage::<OuchOutbound>::decode(message) {
            self.note(&body);
        }
        let (plain, report) = to_participant(message);
        turn.reports.extend(report);
        if let Some(plain) = plain {
            self.tell(at, plain, &mut turn);
        }
        turn
    }

    /// A number that the venue has answered is in use, also if this machine was not there to pass it on.
    fn note(&mut self, body: &OuchOutbound) {
        let answered = match body {
            OuchOutbound::Accepted(of) => of.user_ref,
            OuchOutbound::Replaced(of) => of.user_ref,
            OuchOutbound::Rejected(of) => of.user_ref,
            OuchOutbound::MassCancelResponse(of) => of.user_ref,
            _ => return,
        };
        self.answer(answered);
    }

    /// A number has its answer: it is in use, and what comes under it again is ignored.
    fn answer(&mut self, number: u32) {
        self.gather.use_number(number);
        self.answered.insert(number);
        if self.answered.len() as u64 > MESSAGES {
            self.answered.pop_first();
        }
    }

    /// The venue's link is gone: nobody trades into nothing, so the participant's ends, too.
    pub fn leave(&mut self) -> OuchMachineTurn {
        let close = self.server.take().map(|_| None);
        OuchMachineTurn { close, ..OuchMachineTurn::default() }
    }

    /// The link did not take a message for the venue: the participant is told.
    pub fn not_taken(&mut self, at: &BridgeMoment, message: &[u8]) -> OuchMachineTurn {
        let mut turn = OuchMachineTurn::default();
        self.reject(at, message, &mut turn);
        turn
    }

    fn feed(&mut self, at: &BridgeMoment, input: SoupServerInput<'_>, turn: &mut OuchMachineTurn) {
        let Some(server) = &mut self.server else { return };
        let mut effects: VecDeque<_> = server.step(at.now_ms(), input, &self.log).into();
        while let Some(effect) = effects.pop_front() {
            match effect {
                SoupServerEffect::Send(bytes) => turn.to_participant.extend(bytes),
                SoupServerEffect::Authorize(_) => {
                    let verdict = SoupServerInput::Verdict(at.news.is_some());
                    effects.extend(self.server.iter_mut().flat_map(|of| of.step(at.now_ms(), verdict, &self.log)));
                }
                SoupServerEffect::Message(message) => self.sign(at, &message, turn),
                SoupServerEffect::Close(why) => {
                    tracing::info!(%why, "the participant's link ends");
                    (self.server, turn.close) = (None, Some(Some(why)));
                }
            }
        }
    }

    fn sign(&mut self, at: &BridgeMoment, message: &[u8], turn: &mut OuchMachineTurn) {
        let number = OuchMessage::<OuchInbound>::decode(message).ok().and_then(|read| read.body.new_user_ref());
        if number.is_some_and(|number| self.answered.contains(&number)) {
            return;
        }
        if at.news.is_none() {
            let waiting = self.gather.flush(at);
            self.pass(at, waiting, turn);
            match number.is_none_or(|number| self.gather.is_new(number)) {
                true => self.reject(at, message, turn),
                // The venue has it, or it was lost on its way: the participant sends it again when the venue is there.
                false => turn.close = turn.close.take().or(self.leave().close),
            }
            return;
        }
        let passed = self.gather.take(at, message);
        self.pass(at, passed, turn);
    }

    fn pass(&mut self, at: &BridgeMoment, passed: Vec<Passed>, turn: &mut OuchMachineTurn) {
        for passed in passed {
            match passed {
                Passed::On(_, message) => turn.to_venue.push(message),
                Passed::Refused(rejected) => self.refuse(at, rejected, turn),
            }
        }
    }

    fn reject(&mut self, at: &BridgeMoment, message: &[u8], turn: &mut OuchMachineTurn) {
        let bodies: Vec<OuchInbound> = match OuchList::decode(message) {
            Some(list) => list.messages().copied().collect(),
            None => OuchMessage::<OuchInbound>::decode(message).map(|read| read.body).into_iter().collect(),
        };
        for body in bodies {
            let rejected = rejection(&body, &away(), at.now_ms());
            if !rejected.is_empty() {
                self.refuse(at, rejected, turn);
            }
        }
    }

    /// Tells a refusal of this machine's own.
    fn refuse(&mut self, at: &BridgeMoment, rejected: Vec<u8>, turn: &mut OuchMachineTurn) {
        if let Ok(OuchMessage { body: OuchOutbound::Rejected(of), .. }) = OuchMessage::decode(&rejected) {
            self.answer(of.user_ref);
        }
        self.tell(at, rejected, turn);
    }

    fn tell(&mut self, at: &BridgeMoment, message: Vec<u8>, turn: &mut OuchMachineTurn) {
        // A session that has not ended takes every message of OUCH.
        if let Err(error) = self.log.publish(message) {
            return tracing::error!(%error, "a message of the venue cannot be passed on");
        }
        self.log.forget_before(self.log.next().saturating_sub(MESSAGES));
        self.feed(at, SoupServerInput::Wake, turn);
    }
}

#[cfg(test)]
mod tests {
    use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
    use protocols::soup::{ANY_SESSION, SoupLogin};

    use super::super::GATHER_US_MAX;
    use super::super::translator::tests::{news, settings};
    use super::*;
    use crate::ouch::list_tests::enter;

    const NOW_MS: u64 = 20_000 * 86_400_000 + 5;
    const SESSION: SoupSession = *b"0FFK002000";

    struct Bridge {
        machine: OuchMachine,
        client: SoupClient,
        rejected: Vec<u32>,
        to_venue: Vec<Vec<u8>>,
        at: BridgeMoment,
    }

    impl Bridge {
        fn step(&mut self, input: SoupClientInput<'_>) {
            let mut effects: VecDeque<_> = self.client.step(self.at.now_ms(), input).into();
            while let Some(effect) = effects.pop_front() {
                match effect {
                    SoupClientEffect::Send(bytes) => {
                        let turn = self.machine.step(&self.at, SoupServerInput::Received(&bytes));
                        self.to_venue.extend(turn.to_venue);
                        let received = SoupClientInput::Received(&turn.to_participant);
                        effects.extend(self.client.step(self.at.now_ms(), received));
                    }
                    SoupClientEffect::Message { message, .. } => {
                        if let Ok(OuchMessage { body: OuchOutbound::Rejected(of), .. }) = OuchMessage::decode(&message)
                        {
                            self.rejected.push(of.user_ref);
                        }
                    }
                    _ => {}
                }
            }
        }

        fn connect(&mut self) {
            self.machine.opened(&self.at, SESSION);
            self.machine.connect(self.at.now_ms());
            self.step(SoupClientInput::Connected);
        }

        fn order(&mut self, number: u32) {
            let mut bytes = Vec::new();
            OuchMessage::plain(OuchInbound::Enter(enter(number))).encode(&mut bytes).expect("it has no options");
            self.step(SoupClientInput::Send(&bytes));
        }
    }

    /// A program that has not heard the refusal sends its orders again.
    #[test]
    fn a_number_that_the_bridge_refused_never_leaves_later() {
        let (username, password) = (*b"ADA   ", *b"x         ");
        let login = SoupLogin { username, password, session: ANY_SESSION, next: 1, timeout_ms: None };
        let mut bridge = Bridge {
            machine: OuchMachine::new(&settings(GATHER_US_MAX), NOW_MS),
            client: SoupClient::new(login, SoupLimits::default()),
            rejected: Vec::new(),
            to_venue: Vec::new(),
            at: BridgeMoment { now_us: NOW_MS * 1_000, news: Some(news(true)) },
        };
        bridge.connect();
        (1..3).for_each(|number| bridge.order(number));
        // The link breaks while they wait, and they are refused.
        bridge.machine.leave();
        bridge.step(SoupClientInput::Lost);
        bridge.at = BridgeMoment { now_us: bridge.at.now_us + 2 * GATHER_US_MAX, news: None };
        assert!(bridge.machine.step(&bridge.at, SoupServerInput::Wake).to_venue.is_empty());
        bridge.at.news = Some(news(true));
        bridge.connect();
        (1..4).for_each(|number| bridge.order(number));
        bridge.at.now_us += 2 * GATHER_US_MAX;
        let left = bridge.machine.step(&bridge.at, SoupServerInput::Wake).to_venue;
        assert_eq!((bridge.to_venue.len(), left.len(), &bridge.rejected[..]), (0, 1, &[1, 2][..]));
        // What the venue was sent it answers, or it was lost on its way: the program sends it again when it is back.
        bridge.at.news = None;
        bridge.order(4);
        assert_eq!((&bridge.rejected[..], bridge.machine.is_connected()), (&[1, 2, 4][..], true));
        bridge.order(3);
        assert_eq!((&bridge.rejected[..], bridge.machine.is_connected()), (&[1, 2, 4][..], false));
        bridge.step(SoupClientInput::Lost);
        bridge.at.news = Some(news(true));
        bridge.connect();
        bridge.order(3);
        bridge.at.now_us += 2 * GATHER_US_MAX;
        let left = bridge.machine.step(&bridge.at, SoupServerInput::Wake).to_venue;
        assert_eq!(bridge.to_venue.len() + left.len(), 1);
        // A link that takes the place of one whose end nobody told: what was on its way may be lost.
        bridge.machine.opened(&bridge.at, SESSION);
        assert!(!bridge.machine.is_connected());
    }
}
