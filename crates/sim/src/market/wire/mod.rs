//! Participants behind sessions: one speaks OUCH and signs itself, one speaks FIX and one plain OUCH to a bridge.
//!
//! ```text
//!  OUCH ───────── SoupClient ═════ link ═══╗
//!  FIX ═════════ link ═══ bridge machine ══╬══ door: pit's links and sessions ── root
//!  plain OUCH ══ link ═══ bridge machine ══╝
//! ```
//!
//! Everything between the links is the code that runs in production: both sides of Soup and FIX, the sessions of a day
//! with their journal, the links of a door, and the bridge's machine with its journal. Links are streams: they deliver
//! in pieces of one byte or many, and break at any byte, for both ends, or for one of them while the other one waits
//! for somebody who is gone. Processes end at any moment, and disks keep what they like of what was not synced: the
//! venue's, the bridge's of FIX; the one of plain OUCH keeps nothing but reports. An OUCH program that begins again may
//! have forgotten what it heard last, and is told it again.
//!
//! What a session was told is what the venue's journal says: each fill of its key once, in their order and with their
//! lots and prices, and then its fate; a message of a number never is another one. When the faults have stopped,
//! nothing is missing.

mod bridge;
mod bridged;
mod door;
mod pipe;
mod plain;
mod program;
mod told;
mod uplink;

use std::collections::BTreeMap;

use kernel::Dice;
use primitives::venue::{OrderLife, SignedOrder};
use venue::RequestScope;

use super::people::{BRIDGED, FIX, OUCH, Person, SESSIONS};
use crate::world::MarketMistake;
use bridge::FixParty;
use bridged::BridgedParty;
pub(super) use door::Door;
use pipe::Pipe;
use plain::PlainParty;
pub(super) use told::Journaled;
use uplink::Uplink;

/// Orders of a session in an incarnation: a root forgets final numbers of keys that have many more.
const ORDERS: u32 = 48;

/// The venue and the time, as participants know them.
#[derive(Clone, Copy)]
pub(super) struct WireMoment {
    pub now_ms: u64,
    pub scope: RequestScope,
    pub height: u64,
    /// Whether the venue takes lists of orders.
    pub takes_lists: bool,
    /// The faults have stopped.
    pub is_calm: bool,
}

/// What a participant wants to order.
#[derive(Clone, Copy)]
struct Wish {
    is_buy: bool,
    tick: u32,
    lots: u32,
    life: OrderLife,
}

impl Wish {
    fn draw(dice: &mut Dice) -> Wish {
        let lives = [OrderLife::Rests, OrderLife::Rests, OrderLife::PostOnly, OrderLife::ImmediateOrCancel];
        Wish {
            is_buy: dice.once_in(2),
            tick: 98 + dice.below(5) as u32,
            lots: 1 + dice.below(20) as u32,
            life: lives[dice.index(lives.len())],
        }
    }
}

/// The participants, and the links to the venue.
pub(super) struct Wires {
    pub dice: Dice,
    plain: PlainParty,
    fix: FixParty,
    bridged: BridgedParty,
    /// Links to the venue by their numbers. One that its participant has given up lives on until the venue knows.
    pipes: BTreeMap<u64, Pipe>,
    next: u64,
    /// Orders that were signed, of whom.
    signed: Vec<(Person, SignedOrder)>,
    pub cuts: u64,
}

impl Wires {
    pub fn new(seed: u64, mistake: Option<MarketMistake>) -> Result<Wires, String> {
        let mut dice = Dice::new(seed ^ 0x00_f1_0c);
        let fix = FixParty::new(dice.bits())?;
        let (plain, bridged, pipes) = (PlainParty::new(), BridgedParty::new(mistake), BTreeMap::new());
        Ok(Wires { dice, plain, fix, bridged, pipes, next: 1, signed: Vec::new(), cuts: 0 })
    }

    /// A turn of everybody: something is ordered, bytes move, a link breaks. What the root is to be given waits in the
    /// door then.
    pub fn turn(&mut self, at: &WireMoment, door: &mut Door) -> Result<(), String> {
        door.begin_turn(at.now_ms, at.scope);
        self.call(at, door)?;
        if at.is_calm {
            // Bytes that are answered by bytes.
            while self.carry(at, door)? {}
            return self.wake(at, door);
        }
        match self.dice.below(28) {
            0 | 24 => self.cut(at, door)?,
            1 => self.fix.crash(at, &mut self.dice)?,
            2 => self.fix.cut(at, &mut self.dice)?,
            3 => self.plain.begin_again(&mut self.dice),
            4 => self.bridged.crash(at)?,
            5 => self.bridged.cut(at, &mut self.dice)?,
            6..=11 => self.plain.order(at, &mut self.dice, &mut self.signed),
            12..=17 => self.fix.order(at, &mut self.dice)?,
            18..=23 => self.bridged.order(at, &mut self.dice)?,
            _ => {}
        }
        self.carry(at, door)?;
        self.wake(at, door)
    }

    /// What was signed since the last call.
    pub fn take_signed(&mut self) -> Vec<(Person, SignedOrder)> {
        self.signed.append(&mut self.fix.signed);
        self.signed.append(&mut self.bridged.signed);
        std::mem::take(&mut self.signed)
    }

    /// The venue's process has ended, and all of its connections.
    pub fn lose_venue(&mut self, at: &WireMoment) -> Result<(), String> {
        self.pipes.clear();
        self.plain.uplink.lose(at);
        self.bridged.lose_venue(at)?;
        self.fix.lose_venue(at)
    }

    fn uplink(&mut self, person: Person) -> &mut Uplink {
        match person {
            OUCH => &mut self.plain.uplink,
            FIX => &mut self.fix.uplink,
            _ => &mut self.bridged.uplink,
        }
    }

    /// Whose end a link has.
    fn owner(&self, link: u64) -> Option<Person> {
        let of = [self.plain.uplink.link, self.fix.uplink.link, self.bridged.uplink.link];
        SESSIONS.into_iter().zip(of).find(|(_, of)| *of == Some(link)).map(|(person, _)| person)
    }

    /// An incarnation begins: its sessions are others.
    pub fn begin(&mut self, at: &WireMoment) -> Result<(), String> {
        self.lose_venue(at)?;
        self.plain.begin(at.scope.incarnation);
        self.fix.begin();
        self.bridged.begin(at)
    }

    /// Participants without a link call the venue.
    fn call(&mut self, at: &WireMoment, door: &mut Door) -> Result<(), String> {
        for person in SESSIONS {
            if self.uplink(person).link.is_some() || !(at.is_calm || self.dice.once_in(2)) {
                continue;
            }
            let (mut pipe, link) = (Pipe::default(), self.next);
            pipe.up.extend(self.uplink(person).call(at, link));
            self.pipes.insert(link, pipe);
            door.accept(link);
            self.next += 1;
        }
        if at.is_calm || self.dice.once_in(2) {
            self.fix.call(at)?;
        }
        if at.is_calm || self.dice.once_in(2) {
            self.bridged.call(at)?;
        }
        Ok(())
    }

    /// Moves bytes over all links; whether any moved.
    fn carry(&mut self, at: &WireMoment, door: &mut Door) -> Result<bool, String> {
        let mut moved = false;
        let numbers: Vec<u64> = self.pipes.keys().copied().collect();
        for number in numbers {
            let Some(pipe) = self.pipes.get_mut(&number) else { continue };
            let (up, down) = (pipe.take_up(at, &mut self.dice), pipe.take_down(at, &mut self.dice));
            moved |= !up.is_empty() || !down.is_empty();
            if !up.is_empty() {
                door.receive(number, &up);
            }
            if !down.is_empty() {
                door.sent(number, down.len());
                match self.owner(number) {
                    Some(OUCH) => self.plain.receive(at, &down)?,
                    Some(FIX) => self.fix.receive(at, &down)?,
                    Some(BRIDGED) => self.bridged.receive(at, &down)?,
                    _ => {}
                }
            }
        }
        self.collect(at, door);
        moved |= self.fix.carry(at, &mut self.dice)?;
        moved |= self.bridged.carry(at, &mut self.dice)?;
        self.collect(at, door);
        Ok(moved)
    }

    /// What both sides have to say enters the links.
    fn collect(&mut self, at: &WireMoment, door: &mut Door) {
        for (number, bytes, is_over) in door.take_output() {
            if let Some(pipe) = self.pipes.get_mut(&number) {
                pipe.down.extend(bytes);
                pipe.is_server_gone |= is_over;
            }
        }
        for person in SESSIONS {
            let (said, link) = (self.uplink(person).take_unsent(), self.uplink(person).link);
            if let Some(pipe) = link.and_then(|link| self.pipes.get_mut(&link)) {
                pipe.up.extend(said);
            }
        }
        let uplinks = SESSIONS.map(|person| self.uplink(person).link);
        for (number, pipe) in &mut self.pipes {
            pipe.is_client_gone |= !uplinks.contains(&Some(*number));
        }
        self.bury(at, door);
    }

    /// Ends that are gone on both sides, or of which the other one has heard all.
    fn bury(&mut self, at: &WireMoment, door: &mut Door) {
        let (mut lost, calm) = (Vec::new(), at.is_calm);
        for (number, pipe) in &mut self.pipes {
            let is_heard = pipe.down.is_empty();
            if pipe.is_client_gone && !pipe.is_server_gone && (calm || (!pipe.is_half_open && is_heard)) {
                // The end of the connection reaches the venue.
                door.lose(*number);
                pipe.is_server_gone = true;
            }
            if pipe.is_server_gone && (calm || (!pipe.is_half_open && is_heard)) {
                lost.push(*number);
            }
        }
        for number in lost {
            self.pipes.remove(&number);
            if let Some(person) = self.owner(number) {
                self.uplink(person).lose(at);
            }
        }
    }

    /// A link to the venue breaks: for both ends, or for one, while the other one hears nothing any more.
    fn cut(&mut self, at: &WireMoment, door: &mut Door) -> Result<(), String> {
        let numbers: Vec<u64> = self.pipes.keys().copied().collect();
        if numbers.is_empty() {
            return Ok(());
        }
        self.cuts += 1;
        let number = numbers[self.dice.index(numbers.len())];
        let pipe = self.pipes.get_mut(&number).expect("it is there");
        (pipe.up, pipe.down) = Default::default();
        let ends = self.dice.below(3);
        pipe.is_half_open = ends > 0;
        if ends != 1 {
            door.lose(number);
            pipe.is_server_gone = true;
        }
        if ends != 2 {
            pipe.is_client_gone = true;
            match self.owner(number) {
                Some(OUCH) => self.plain.uplink.lose(at),
                Some(FIX) => self.fix.lose_venue(at)?,
                Some(BRIDGED) => self.bridged.lose_venue(at)?,
                _ => {}
            }
        }
        self.bury(at, door);
        Ok(())
    }

    /// Time passes for all machines.
    fn wake(&mut self, at: &WireMoment, door: &mut Door) -> Result<(), String> {
        door.wake();
        self.plain.wake(at)?;
        self.fix.wake(at)?;
        self.bridged.wake(at)?;
        self.collect(at, door);
        Ok(())
    }

    /// What was told so far is the beginning of what the journal says; with `is_all`, it is all of it.
    pub fn check(&self, journaled: &Journaled, is_all: bool) -> Result<(), String> {
        if is_all {
            self.plain.program.check_answered("an OUCH session")?;
            self.bridged.program.check_answered("a bridge of plain OUCH")?;
            self.fix.check_answered()?;
        }
        self.plain.program.told.check("an OUCH session", &journaled.of(OUCH), is_all)?;
        self.bridged.program.told.check("a bridge of plain OUCH", &journaled.of(BRIDGED), is_all)?;
        self.fix.told.check("a FIX session", &journaled.of(FIX), is_all)
    }

    /// Fills that all of them were told.
    pub fn told(&self) -> u64 {
        self.plain.program.told.count() + self.fix.told.count() + self.bridged.program.told.count()
    }
}
