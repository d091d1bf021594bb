//! A participant that speaks plain OUCH to a bridge, which signs for it: the bridge's machine, without a journal.
//!
//! A bridge that begins again hears the venue's session from its first message on, and tells all of it again in a
//! session of its own with another name.

use std::collections::BTreeSet;

use kernel::Dice;
use pit::bridge::{BridgeMoment, OuchMachine, OuchMachineTurn};
use primitives::venue::{SignedOrder, SignedReport};
use protocols::soup::client::{SoupClient, SoupClientEffect, SoupClientInput};
use protocols::soup::server::SoupServerInput;
use protocols::soup::{ANY_SESSION, SoupClose, SoupLimits, SoupLogin, SoupReject, SoupSession};

use super::WireMoment;
use super::pipe::Pipe;
use super::plain::{news, signed_in, signing};
use super::program::{Ordered, OuchProgram};
use super::uplink::{Heard, Uplink};
use crate::market::people::{BRIDGED, Person, trading};
use crate::world::MarketMistake;

pub(super) struct BridgedParty {
    pub uplink: Uplink,
    pub program: OuchProgram,
    pub signed: Vec<(Person, SignedOrder)>,
    machine: OuchMachine,
    /// Fills whose signed reports the bridge has kept, by incarnation and index.
    reports: BTreeSet<(u32, u64)>,
    /// The participant's side.
    client: SoupClient,
    is_open: bool,
    /// The connection of participant and bridge.
    pipe: Option<Pipe>,
    mistake: Option<MarketMistake>,
}

fn client(session: SoupSession, next: u64) -> SoupClient {
    let (username, password) = (*b"PLAIN ", *b"          ");
    SoupClient::new(SoupLogin { username, password, session, next, timeout_ms: None }, SoupLimits::default())
}

impl BridgedParty {
    pub fn new(mistake: Option<MarketMistake>) -> BridgedParty {
        let mut program = OuchProgram::new();
        program.told.has_busts_alone = true;
        BridgedParty {
            uplink: Uplink::new(trading(BRIDGED, 0)),
            program,
            signed: Vec::new(),
            machine: OuchMachine::new(&signing(BRIDGED), 0),
            reports: BTreeSet::new(),
            client: client(ANY_SESSION, 1),
            is_open: false,
            pipe: None,
            mistake,
        }
    }

    /// An incarnation begins. The bridge goes on; what it has told and was not heard is of the one before.
    pub fn begin(&mut self, at: &WireMoment) -> Result<(), String> {
        self.end(at)?;
        self.program.begin(at.scope.incarnation);
        Ok(())
    }

    fn moment(&self, at: &WireMoment) -> BridgeMoment {
        BridgeMoment { now_us: at.now_ms * 1_000, news: Some(news(at)).filter(|_| self.uplink.is_open) }
    }

    /// The participant connects.
    pub fn call(&mut self, at: &WireMoment) -> Result<(), String> {
        if at.is_calm && self.pipe.is_none() && self.machine.is_connected() {
            // The bridge learns that nobody is there.
            self.feed(at, SoupServerInput::Lost)?;
        }
        if self.pipe.is_some() || self.machine.is_connected() || !self.uplink.is_open {
            return Ok(());
        }
        self.pipe = Some(Pipe::default());
        self.machine.connect(at.now_ms);
        self.participate(at, SoupClientInput::Connected)
    }

    /// Orders, replaces or cancels something, if the session is there.
    pub fn order(&mut self, at: &WireMoment, dice: &mut Dice) -> Result<(), String> {
        if !self.is_open {
            return Ok(());
        }
        // Some come within a moment, and are signed together.
        for _ in 0..1 + dice.below(4) {
            let Some(Ordered { user_ref, bytes }) = self.program.order(dice) else { return Ok(()) };
            if let Some(user_ref) = user_ref {
                self.program.sent(user_ref, bytes.clone());
            }
            self.participate(at, SoupClientInput::Send(&bytes))?;
        }
        Ok(())
    }

    /// The connection of participant and bridge breaks: for both, or for one of them.
    pub fn cut(&mut self, at: &WireMoment, dice: &mut Dice) -> Result<(), String> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        (pipe.up, pipe.down, pipe.is_half_open) = Default::default();
        match dice.below(3) {
            0 => self.end(at),
            // The bridge waits for somebody who is gone.
            1 => self.leave(at),
            _ => {
                self.feed(at, SoupServerInput::Lost)?;
                if let Some(pipe) = &mut self.pipe {
                    (pipe.is_half_open, pipe.is_server_gone) = (true, true);
                }
                Ok(())
            }
        }
    }

    /// The participant's end is gone.
    fn leave(&mut self, at: &WireMoment) -> Result<(), String> {
        (self.pipe, self.is_open) = (None, false);
        self.participate(at, SoupClientInput::Lost)
    }

    /// The connection is gone on both sides.
    fn end(&mut self, at: &WireMoment) -> Result<(), String> {
        self.leave(at)?;
        self.feed(at, SoupServerInput::Lost)
    }

    /// The bridge's process ends, and begins again with nothing.
    pub fn crash(&mut self, at: &WireMoment) -> Result<(), String> {
        let began_ms = at.now_ms.max(self.machine.began_ms() + 1);
        self.machine = OuchMachine::new(&signing(BRIDGED), began_ms);
        match self.mistake {
            Some(MarketMistake::BridgeBeginsLate) => {
                let (session, next) = self.uplink.position();
                self.uplink.resume(session, next);
            }
            _ => self.uplink.resume(ANY_SESSION, 1),
        }
        self.leave(at)
    }

    /// The link to the venue broke.
    pub fn lose_venue(&mut self, at: &WireMoment) -> Result<(), String> {
        self.uplink.lose(at);
        let turn = self.machine.leave();
        self.perform(at, turn)
    }

    /// Bytes of the venue.
    pub fn receive(&mut self, at: &WireMoment, bytes: &[u8]) -> Result<(), String> {
        let heard = self.uplink.receive(at, bytes);
        self.hear_venue(at, heard)
    }

    /// Time passes.
    pub fn wake(&mut self, at: &WireMoment) -> Result<(), String> {
        let heard = self.uplink.wake(at);
        self.hear_venue(at, heard)?;
        self.feed(at, SoupServerInput::Wake)?;
        self.participate(at, SoupClientInput::Wake)
    }

    fn hear_venue(&mut self, at: &WireMoment, heard: Vec<Heard>) -> Result<(), String> {
        for heard in heard {
            let moment = self.moment(at);
            let turn = match heard {
                Heard::Opened(session) => self.machine.opened(&moment, session),
                Heard::Message(_, message) => self.machine.hear(&moment, &message),
                Heard::Closed => self.machine.leave(),
            };
            self.perform(at, turn)?;
        }
        Ok(())
    }

    /// Something happens to the bridge's end of the participant's connection.
    fn feed(&mut self, at: &WireMoment, input: SoupServerInput<'_>) -> Result<(), String> {
        let turn = self.machine.step(&self.moment(at), input);
        self.perform(at, turn)
    }

    /// Keeps reports, and then does what a turn of the machine says.
    fn perform(&mut self, at: &WireMoment, turn: OuchMachineTurn) -> Result<(), String> {
        self.reports.extend(turn.reports.iter().map(|report| (report.fill().incarnation, report.fill().index)));
        if let Some(pipe) = &mut self.pipe {
            pipe.down.extend(turn.to_participant);
            pipe.is_server_gone |= turn.close.is_some();
        }
        for message in &turn.to_venue {
            self.signed.extend(signed_in(BRIDGED, at, message));
            if !self.uplink.send(at, message) {
                let told = self.machine.not_taken(&self.moment(at), message);
                self.perform(at, told)?;
            }
        }
        Ok(())
    }

    /// Something happens to the participant's end.
    fn participate(&mut self, at: &WireMoment, input: SoupClientInput<'_>) -> Result<(), String> {
        for effect in self.client.step(at.now_ms, input) {
            match effect {
                SoupClientEffect::Send(bytes) => self.pipe.iter_mut().for_each(|pipe| pipe.up.extend(&bytes)),
                SoupClientEffect::Accepted { session, .. } => self.opened(at, session)?,
                SoupClientEffect::Message { number, message } => self.hear(number, message)?,
                SoupClientEffect::Unsequenced(_) | SoupClientEffect::Unsent(_) => {}
                SoupClientEffect::Close(why) => {
                    if matches!(why, SoupClose::Ended | SoupClose::Refused(SoupReject::NoSession)) {
                        self.client = client(ANY_SESSION, 1);
                    }
                    self.is_open = false;
                    self.pipe.iter_mut().for_each(|pipe| pipe.is_client_gone = true);
                }
            }
        }
        Ok(())
    }

    fn opened(&mut self, at: &WireMoment, session: SoupSession) -> Result<(), String> {
        self.is_open = true;
        if !self.program.is_of(&session) {
            // A bridge that has begun again tells all of the venue's session again.
            self.program.told.forget(self.program.incarnation);
        }
        for bytes in self.program.opened(session) {
            self.participate(at, SoupClientInput::Send(&bytes))?;
        }
        Ok(())
    }

    fn hear(&mut self, number: u64, message: Vec<u8>) -> Result<(), String> {
        self.program.hear(number, message)?;
        let incarnation = self.program.incarnation;
        match self.program.told.last(incarnation).filter(|index| !self.reports.contains(&(incarnation, *index))) {
            Some(index) => Err(format!("a bridge tells fill {index} and has kept no report of it")),
            None => Ok(()),
        }
    }

    /// Moves bytes between participant and bridge; whether any moved.
    pub fn carry(&mut self, at: &WireMoment, dice: &mut Dice) -> Result<bool, String> {
        let Some(pipe) = &mut self.pipe else { return Ok(false) };
        let (up, down) = (pipe.take_up(at, dice), pipe.take_down(at, dice));
        if !up.is_empty() {
            self.participate(at, SoupClientInput::Sent(up.len()))?;
            self.feed(at, SoupServerInput::Received(&up))?;
        }
        if !down.is_empty() {
            self.feed(at, SoupServerInput::Sent(down.len()))?;
            self.participate(at, SoupClientInput::Received(&down))?;
        }
        let ends = self.pipe.as_ref().is_some_and(|pipe| {
            let is_heard = pipe.down.is_empty() && pipe.up.is_empty();
            let is_over = if pipe.is_half_open { at.is_calm } else { is_heard };
            (pipe.is_server_gone || pipe.is_client_gone) && is_over
        });
        if ends {
            self.end(at)?;
        }
        Ok(!up.is_empty() || !down.is_empty())
    }
}
