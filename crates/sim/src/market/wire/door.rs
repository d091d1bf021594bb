//! The venue's end of the links: its door, and the sessions of a day with their journal, on a disk of their own.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use kernel::{FaultDisk, Surviving};
use pit::ouch::{OuchHost, OuchLink, OuchParty, OuchSession, OuchSessions, day_of, read_hello};
use primitives::PublicKey;
use protocols::soup::server::SoupServerInput;
use venue::{
    CheckedOrderList, MatchingStage, RequestScope, SessionNumber, TradeCommand, TradeReport, TraderAsk, VenueInput,
    session_number,
};

use crate::world::MarketMistake;

/// What links share with whoever runs the root.
struct Venue {
    sessions: RefCell<OuchSessions<FaultDisk>>,
    inputs: RefCell<Vec<VenueInput>>,
    now_ms: Cell<u64>,
    scope: Cell<Option<RequestScope>>,
}

impl OuchHost for Venue {
    fn now_ms(&self) -> u64 {
        self.now_ms.get()
    }

    fn scope(&self) -> Option<RequestScope> {
        self.scope.get()
    }

    fn with<T>(&self, session: SessionNumber, with: impl FnOnce(&mut OuchSession) -> T) -> T {
        self.sessions.borrow_mut().with(session, with)
    }

    fn takes_orders(&self) -> bool {
        true
    }

    fn trade(&self, session: SessionNumber, _: PublicKey, command: TradeCommand) -> bool {
        self.inputs.borrow_mut().push(VenueInput::Trade(session, command));
        true
    }

    fn list(&self, session: SessionNumber, list: CheckedOrderList) -> bool {
        self.inputs.borrow_mut().push(VenueInput::List(session, list));
        true
    }

    fn heartbeat(&self, session: SessionNumber) {
        self.inputs.borrow_mut().push(VenueInput::Heartbeat(session));
    }

    fn wake(&self) {}
}

enum Stage {
    /// The packet before the login is not whole yet.
    Hello(Vec<u8>),
    /// The root is asked to attach the session; bytes that came meanwhile.
    Attaching(OuchParty, Vec<u8>),
    Open(Box<OuchLink>),
}

/// The door of one root.
pub(in crate::market) struct Door {
    pub disk: FaultDisk,
    venue: Venue,
    links: BTreeMap<u64, Stage>,
    /// The link that each session has.
    linked: BTreeMap<SessionNumber, u64>,
    output: Vec<(u64, Vec<u8>, bool)>,
    incarnation: u32,
    mistake: Option<MarketMistake>,
    /// Effects of the root that sessions were told.
    told: u64,
}

impl Door {
    /// The door of an incarnation, on an empty disk.
    pub fn new(disk: FaultDisk, incarnation: u32, mistake: Option<MarketMistake>, told: u64) -> Result<Door, String> {
        let venue = Venue {
            sessions: RefCell::default(),
            inputs: RefCell::default(),
            now_ms: Cell::new(0),
            scope: Cell::new(None),
        };
        let (links, linked, output) = Default::default();
        let mut door = Door { disk, venue, links, linked, output, incarnation, mistake, told };
        door.open()?;
        Ok(door)
    }

    fn open(&mut self) -> Result<Option<u64>, String> {
        let now_ms = self.venue.now_ms.get();
        let mut sessions = OuchSessions::default();
        let opened = sessions.open(self.disk.clone(), day_of(now_ms), self.incarnation, now_ms);
        self.venue.sessions = RefCell::new(sessions);
        opened.map_err(|error| format!("the journal of sessions does not open again: {error}"))
    }

    /// The process has ended: no connection is left, and the disk has what it kept. From which effect on the root must
    /// tell sessions again; sessions have lost their links, so they are detached.
    pub fn reopen(&mut self, surviving: Surviving) -> Result<u64, String> {
        self.disk = self.disk.after_crash(surviving);
        if self.mistake == Some(MarketMistake::SessionsForgotten) {
            self.disk = FaultDisk::new(self.told);
        }
        self.links.clear();
        self.output.clear();
        let found = self.open()?;
        let lost = std::mem::take(&mut self.linked).into_keys();
        self.venue.inputs = RefCell::new(lost.map(VenueInput::Detach).collect());
        self.told = match self.mistake {
            Some(MarketMistake::SessionsToldAgain) => 0,
            _ => found.unwrap_or(self.told),
        };
        Ok(self.told)
    }

    /// Numbers of sessions that the root, which has told all, has not answered: it is asked about them first.
    pub fn void_lost(&mut self, root: &MatchingStage) {
        if self.mistake == Some(MarketMistake::LostUnanswered) {
            return;
        }
        let asked = self.venue.sessions.borrow_mut().void_lost(self.venue.now_ms.get(), root);
        self.venue.inputs.get_mut().splice(..0, asked);
    }

    pub fn begin_turn(&mut self, now_ms: u64, scope: RequestScope) {
        self.venue.now_ms.set(now_ms);
        self.venue.scope.set(Some(scope));
    }

    /// Connections and sessions say what came, before the root takes it.
    pub fn write(&self, effects: u64) -> bool {
        self.venue.sessions.borrow_mut().write(effects).is_ok()
    }

    /// Tells sessions what the root told, and what they have not heard of it yet; false if their disk fails.
    pub fn tell(&mut self, reports: &[(u64, TradeReport)], effects: u64) -> bool {
        let told = self.told;
        let new: Vec<TradeReport> =
            reports.iter().filter(|(number, _)| *number >= told).map(|(_, report)| report.clone()).collect();
        let is_written = self.venue.sessions.borrow_mut().tell(&new, effects, self.venue.now_ms.get()).is_ok();
        if is_written {
            self.told = effects;
        }
        is_written
    }

    /// What the root is to be given.
    pub fn take_inputs(&mut self) -> Vec<VenueInput> {
        std::mem::take(&mut *self.venue.inputs.borrow_mut())
    }

    /// The root has taken the inputs: sessions are attached, and what came meanwhile is heard.
    pub fn attach(&mut self) {
        let is_ready = |of: &(&u64, &Stage)| matches!(of.1, Stage::Attaching(..));
        let ready: Vec<u64> = self.links.iter().filter(is_ready).map(|(number, _)| *number).collect();
        for number in ready {
            let Some(Stage::Attaching(party, early)) = self.links.remove(&number) else { continue };
            self.linked.insert(party.session, number);
            self.links.insert(number, Stage::Open(Box::new(OuchLink::begin(&self.venue, party))));
            self.step(number, SoupServerInput::Received(&early));
        }
    }

    pub fn accept(&mut self, number: u64) {
        self.links.insert(number, Stage::Hello(Vec::new()));
    }

    pub fn receive(&mut self, number: u64, bytes: &[u8]) {
        match self.links.get_mut(&number) {
            Some(Stage::Hello(early)) => {
                early.extend(bytes);
                let early = std::mem::take(early);
                self.hello(number, early);
            }
            Some(Stage::Attaching(_, early)) => early.extend(bytes),
            Some(Stage::Open(_)) => self.step(number, SoupServerInput::Received(bytes)),
            None => {}
        }
    }

    fn hello(&mut self, number: u64, bytes: Vec<u8>) {
        let packet = bytes.split_first_chunk().and_then(|(length, rest)| {
            let length = usize::from(u16::from_be_bytes(*length));
            rest.split_at_checked(length)
        });
        let Some((packet, rest)) = packet else {
            self.links.insert(number, Stage::Hello(bytes));
            return;
        };
        let request = read_hello(packet).zip(self.venue.scope.get());
        let request = request.filter(|(request, scope)| request.is_signed(scope)).map(|(request, _)| request);
        let Some((TraderAsk::Attach { session, ends_orders, dead_man_ms }, key)) = request.map(|of| (of.ask, of.key))
        else {
            return self.refuse(number);
        };
        let (session, has_timer) = (session_number(&key, session), dead_man_ms.is_some());
        let keys = vec![key];
        self.venue.inputs.borrow_mut().push(VenueInput::Attach { session, keys, ends_orders, dead_man_ms });
        let party = OuchParty { session, key, number, has_timer };
        self.links.insert(number, Stage::Attaching(party, rest.to_vec()));
    }

    fn refuse(&mut self, number: u64) {
        self.links.remove(&number);
        self.output.push((number, Vec::new(), true));
    }

    /// The socket took bytes.
    pub fn sent(&mut self, number: u64, bytes: usize) {
        self.step(number, SoupServerInput::Sent(bytes));
    }

    pub fn wake(&mut self) {
        let numbers: Vec<u64> = self.links.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.step(number, SoupServerInput::Wake));
    }

    fn step(&mut self, number: u64, input: SoupServerInput<'_>) {
        let Some(Stage::Open(link)) = self.links.get_mut(&number) else { return };
        let turn = link.step(&self.venue, input);
        if turn.is_over {
            self.lose(number);
        }
        self.output.push((number, turn.bytes, turn.is_over));
    }

    /// A connection has ended. A session that has another link by now goes on.
    pub fn lose(&mut self, number: u64) {
        self.links.remove(&number);
        let session = self.linked.iter().find(|(_, link)| **link == number).map(|(session, _)| *session);
        if let Some(session) = session {
            self.linked.remove(&session);
            self.venue.inputs.borrow_mut().push(VenueInput::Detach(session));
        }
    }

    /// Bytes for connections, and which of them end after those.
    pub fn take_output(&mut self) -> Vec<(u64, Vec<u8>, bool)> {
        std::mem::take(&mut self.output)
    }
}
