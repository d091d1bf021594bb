//! A participant that speaks FIX, and its bridge: the machine with its journal, on a disk of its own.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{Dice, FaultDisk, Surviving};
use pit::bridge::BridgeMoment;
use pit::bridge::fix::{FixJournalFile, FixMachine, FixTurn};
use primitives::venue::{OrderLife, SignedOrder};
use protocols::fix::journal::FixJournal;
use protocols::fix::session::{FixEffect, FixInput, FixLimits, FixSession};
use protocols::fix::{FixBody, FixCancelRequest, FixDecimal, FixExecution, FixLogon, FixNewOrder, FixText, FixTime};

use super::pipe::Pipe;
use super::plain::{news, signed_in, signing};
use super::told::Told;
use super::uplink::{Heard, Uplink};
use super::{ORDERS, WireMoment, Wish};
use crate::market::people::{FIX, Person, trading};

/// A bridge that cancels what a participant leaves behind.
const LIMITS: FixLimits = FixLimits {
    message_max: protocols::fix::MESSAGE_MAX,
    unsent_max: 262_144,
    queued_max: 1_048_576,
    heartbeat_s_max: 60,
    patience_ms: 10_000,
    cancel_after_ms: Some(12_000),
};

fn text(text: &str) -> FixText {
    FixText::new(text).expect("a text without separators")
}

/// The names of bridge and participant.
fn names() -> (FixText, FixText) {
    (text("WALRAS"), text("ADA"))
}

type Opened = (FixMachine, FixJournalFile<FaultDisk>);

fn open(disk: &FaultDisk, now_ms: u64) -> Result<Opened, String> {
    let failed = |error: &dyn std::fmt::Display| format!("a bridge does not open again: {error}");
    let (mut file, entries) = FixJournalFile::on(disk.clone()).map_err(|error| failed(&error))?;
    let opened = FixMachine::open(&signing(FIX), LIMITS, names(), 0, entries, now_ms);
    let (machine, begins) = opened.ok_or("the bridge's journal has other names")?;
    if !begins.is_empty() {
        file.append(&begins).map_err(|error| failed(&error))?;
    }
    Ok((machine, file))
}

pub(super) struct FixParty {
    pub uplink: Uplink,
    pub told: Told,
    pub signed: Vec<(Person, SignedOrder)>,
    disk: FaultDisk,
    file: FixJournalFile<FaultDisk>,
    machine: FixMachine,
    /// The participant's side, with what it keeps.
    journal: FixJournal,
    session: Option<FixSession>,
    /// The connection of participant and bridge.
    pipe: Option<Pipe>,
    /// The incarnation in which each number of the venue was signed.
    signed_in: BTreeMap<u32, u32>,
    /// Names of orders that were answered.
    answered: BTreeSet<FixText>,
    /// Orders of this incarnation, and names of all.
    count: u32,
    issued: u32,
}

impl FixParty {
    pub fn new(seed: u64) -> Result<FixParty, String> {
        let disk = FaultDisk::new(seed);
        let (machine, file) = open(&disk, 0)?;
        let (bridge, participant) = names();
        Ok(FixParty {
            uplink: Uplink::new(trading(FIX, 0)),
            told: Told::default(),
            signed: Vec::new(),
            disk,
            file,
            machine,
            journal: FixJournal::new(participant, bridge),
            session: None,
            pipe: None,
            signed_in: BTreeMap::new(),
            answered: BTreeSet::new(),
            count: 0,
            issued: 0,
        })
    }

    /// An incarnation begins.
    pub fn begin(&mut self) {
        self.count = 0;
    }

    fn moment(&self, at: &WireMoment) -> BridgeMoment {
        BridgeMoment { now_us: at.now_ms * 1_000, news: Some(news(at)).filter(|_| self.uplink.is_open) }
    }

    /// The participant connects.
    pub fn call(&mut self, at: &WireMoment) -> Result<(), String> {
        if at.is_calm && self.session.is_none() && self.machine.is_connected() {
            // The bridge learns that nobody is there.
            self.feed(at, FixInput::Lost)?;
        }
        if self.session.is_some() || self.machine.is_connected() || !self.uplink.is_open {
            return Ok(());
        }
        let (encryption, heartbeat_s) = (0, 10);
        let logon = FixLogon { encryption, heartbeat_s, data: None, is_reset: None, username: None, password: None };
        self.session = Some(FixSession::open(LIMITS, logon, at.now_ms));
        self.pipe = Some(Pipe::default());
        self.machine.connect(at.now_ms);
        self.participate(at, FixInput::Wake)
    }

    /// Orders or cancels something. Some orders come within a moment, and are signed together.
    pub fn order(&mut self, at: &WireMoment, dice: &mut Dice) -> Result<(), String> {
        (0..1 + dice.below(4)).try_for_each(|_| self.order_one(at, dice))
    }

    /// Orders or cancels something, if the session is there.
    fn order_one(&mut self, at: &WireMoment, dice: &mut Dice) -> Result<(), String> {
        if !self.session.as_ref().is_some_and(FixSession::is_open) {
            return Ok(());
        }
        let (symbol, time) = (text("M0"), FixTime::of_ms(at.now_ms));
        let body: FixBody = if self.issued > 0 && dice.once_in(4) {
            let original = text(&format!("o{}", 1 + dice.below(u64::from(self.issued))));
            self.issued += 1;
            let client_order = text(&format!("o{}", self.issued));
            FixCancelRequest { original, client_order, order: None, symbol, side: b'1', time, quantity: None }.into()
        } else if self.count < ORDERS {
            (self.count, self.issued) = (self.count + 1, self.issued + 1);
            let wish = Wish::draw(dice);
            let client_order = text(&format!("o{}", self.issued));
            FixNewOrder {
                client_order,
                account: None,
                instructions: (wish.life == OrderLife::PostOnly).then(|| text("6")),
                symbol,
                side: if wish.is_buy { b'1' } else { b'2' },
                time,
                quantity: wish.lots.into(),
                order_type: b'2',
                price: FixDecimal::new(wish.tick.into(), 4),
                time_in_force: Some(if wish.life == OrderLife::ImmediateOrCancel { b'3' } else { b'0' }),
                least_quantity: None,
                displayed_most: None,
                text: None,
            }
            .into()
        } else {
            return Ok(());
        };
        self.participate(at, FixInput::Send(&body))
    }

    /// The connection of participant and bridge breaks: for both, or for one of them.
    pub fn cut(&mut self, at: &WireMoment, dice: &mut Dice) -> Result<(), String> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        (pipe.up, pipe.down, pipe.is_half_open) = Default::default();
        match dice.below(3) {
            0 => self.end(at),
            1 => {
                // The bridge waits for somebody who is gone.
                self.participate(at, FixInput::Lost)?;
                (self.session, self.pipe) = (None, None);
                Ok(())
            }
            _ => {
                self.feed(at, FixInput::Lost)?;
                if let Some(pipe) = &mut self.pipe {
                    (pipe.is_half_open, pipe.is_server_gone) = (true, true);
                }
                Ok(())
            }
        }
    }

    /// The connection is gone on both sides.
    fn end(&mut self, at: &WireMoment) -> Result<(), String> {
        self.pipe = None;
        self.participate(at, FixInput::Lost)?;
        self.session = None;
        self.feed(at, FixInput::Lost)
    }

    /// The bridge's process ends, and begins again with what its disk kept.
    pub fn crash(&mut self, at: &WireMoment, dice: &mut Dice) -> Result<(), String> {
        self.restart(at, Surviving::drawn(dice))
    }

    fn restart(&mut self, at: &WireMoment, surviving: Surviving) -> Result<(), String> {
        self.disk = self.disk.after_crash(surviving);
        (self.machine, self.file) = open(&self.disk, at.now_ms)?;
        let (session, next) = self.machine.position();
        self.uplink.resume(session, next);
        self.pipe = None;
        self.participate(at, FixInput::Lost)?;
        self.session = None;
        Ok(())
    }

    /// The link to the venue broke.
    pub fn lose_venue(&mut self, at: &WireMoment) -> Result<(), String> {
        self.uplink.lose(at);
        self.feed(at, FixInput::Leave("the link to the venue is lost"))
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
        self.feed(at, FixInput::Wake)?;
        self.participate(at, FixInput::Wake)
    }

    fn hear_venue(&mut self, at: &WireMoment, heard: Vec<Heard>) -> Result<(), String> {
        for heard in heard {
            let moment = self.moment(at);
            let turn = match heard {
                Heard::Opened(session) => self.machine.opened(&moment, session),
                Heard::Message(number, message) => self.machine.hear(&moment, number, &message),
                Heard::Closed => self.machine.step(&moment, FixInput::Leave("the link to the venue is lost")),
            };
            self.perform(at, turn)?;
        }
        Ok(())
    }

    /// Something happens to the bridge's end of the participant's connection.
    fn feed(&mut self, at: &WireMoment, input: FixInput<'_>) -> Result<(), String> {
        let turn = self.machine.step(&self.moment(at), input);
        self.perform(at, turn)
    }

    /// Makes a turn of the machine durable, and then does it. If the disk fails the bridge ends.
    fn perform(&mut self, at: &WireMoment, turn: FixTurn) -> Result<(), String> {
        let mut is_written = turn.entries.is_empty() || self.file.append(&turn.entries).is_ok();
        if turn.begins_session {
            is_written &= self.file.replace(&self.machine.entries()).is_ok();
        }
        if !is_written {
            return self.restart(at, Surviving::Nothing);
        }
        if let Some(pipe) = &mut self.pipe {
            pipe.down.extend(turn.to_participant);
            pipe.is_server_gone |= turn.close.is_some();
        }
        for message in &turn.to_venue {
            for (person, order) in signed_in(FIX, at, message) {
                self.signed_in.insert(order.order.number.reference, order.order.number.incarnation);
                self.signed.push((person, order));
            }
            self.uplink.send(at, message);
        }
        Ok(())
    }

    /// Something happens to the participant's end.
    fn participate(&mut self, at: &WireMoment, input: FixInput<'_>) -> Result<(), String> {
        let Some(session) = &mut self.session else { return Ok(()) };
        let mut effects = session.step(at.now_ms, input, &mut self.journal);
        if effects.iter().any(|effect| matches!(effect, FixEffect::Authorize(_))) {
            effects.extend(session.step(at.now_ms, FixInput::Verdict(true), &mut self.journal));
        }
        let mut is_over = false;
        for effect in effects {
            match effect {
                FixEffect::Send(bytes) => {
                    if let Some(pipe) = &mut self.pipe {
                        pipe.up.extend(bytes);
                    }
                }
                FixEffect::Message(message) => self.hear(&message.body)?,
                FixEffect::Close(_) => is_over = true,
                // The machine has changed the journal, which this program does not lose.
                _ => {}
            }
        }
        if is_over {
            self.session = None;
            if let Some(pipe) = &mut self.pipe {
                pipe.is_client_gone = true;
            }
        }
        Ok(())
    }

    /// Moves bytes between participant and bridge; whether any moved.
    pub fn carry(&mut self, at: &WireMoment, dice: &mut Dice) -> Result<bool, String> {
        let Some(pipe) = &mut self.pipe else { return Ok(false) };
        let (up, down) = (pipe.take_up(at, dice), pipe.take_down(at, dice));
        if !up.is_empty() {
            self.participate(at, FixInput::Sent(up.len()))?;
            self.feed(at, FixInput::Received(&up))?;
        }
        if !down.is_empty() {
            self.feed(at, FixInput::Sent(down.len()))?;
            self.participate(at, FixInput::Received(&down))?;
        }
        let ends = self.pipe.as_ref().is_some_and(|pipe| {
            let is_heard = pipe.down.is_empty() && pipe.up.is_empty();
            (pipe.is_server_gone || pipe.is_client_gone) && (at.is_calm || (!pipe.is_half_open && is_heard))
        });
        if ends {
            self.end(at)?;
        }
        Ok(!up.is_empty() || !down.is_empty())
    }

    /// A message of the bridge, once and in order.
    fn hear(&mut self, body: &FixBody) -> Result<(), String> {
        let FixBody::Execution(of) = body else { return Ok(()) };
        match of.exec_type {
            b'F' => {
                let (index, incarnation) = self.named(&of.execution)?;
                let units = |number: Option<FixDecimal>, decimals| number.and_then(|of| of.in_units(decimals));
                let (lots, tick) = (units(of.last_quantity, 0), units(of.last_price, 4));
                let (lots, tick) = lots.zip(tick).ok_or("a trade without lots or price")?;
                self.told.fill(incarnation, (index, lots as u32, tick))
            }
            b'H' => {
                let (index, incarnation) = self.named(of.corrects.as_ref().ok_or("a bust of nothing")?)?;
                self.told.fate(incarnation, index, false)
            }
            b'I' => self.hear_status(of),
            b'0' | b'8' => self.answer(of.client_order.clone().ok_or("an answer to no order")?),
            _ => Ok(()),
        }
    }

    fn answer(&mut self, name: FixText) -> Result<(), String> {
        let is_first = self.answered.insert(name.clone());
        if is_first { Ok(()) } else { Err(format!("order {name:?} of a FIX session is answered twice")) }
    }

    /// While its link is open no order that was signed waits for an answer.
    pub fn check_answered(&self) -> Result<(), String> {
        match self.machine.waiting() {
            count if count == 0 || !self.uplink.is_open => Ok(()),
            count => Err(format!("the venue has never answered {count} messages of a FIX session")),
        }
    }

    /// The state of an order: after a trade is settled, or because it was asked for.
    fn hear_status(&mut self, of: &FixExecution) -> Result<(), String> {
        let said = of.text.as_ref().map(|said| String::from_utf8_lossy(said.as_bytes()).into_owned());
        let index = said.as_deref().and_then(|said| said.strip_prefix("trade ")?.split(' ').next()?.parse().ok());
        match index {
            Some(index) => self.told.fate(self.incarnation_of(&of.execution)?, index, true),
            None => Ok(()),
        }
    }

    /// The fill of a name, and its incarnation.
    fn named(&self, name: &FixText) -> Result<(u64, u32), String> {
        let name = String::from_utf8_lossy(name.as_bytes()).into_owned();
        let parts = name.strip_prefix('T').and_then(|rest| rest.split_once('.'));
        let parts = parts.and_then(|(index, number)| Some((index.parse().ok()?, number.parse().ok()?)));
        let (index, number): (u64, u32) = parts.ok_or_else(|| format!("{name} is no trade"))?;
        let incarnation = self.signed_in.get(&number).ok_or_else(|| format!("{name} is of no order"))?;
        Ok((index, *incarnation))
    }

    /// The incarnation of the order that a report is of.
    fn incarnation_of(&self, report: &FixText) -> Result<u32, String> {
        let name = String::from_utf8_lossy(report.as_bytes()).into_owned();
        let number = name.strip_prefix('R').and_then(|rest| rest.split_once('.')?.0.parse().ok());
        let of = number.and_then(|number: u32| self.signed_in.get(&number).copied());
        of.ok_or_else(|| format!("{name} is of no order"))
    }
}
