//! One end of the line between a node and a shard: sessions, numbers, what is kept until it is acknowledged.
//!
//! ```text
//! frame  1 hello · session 16 · received 8 · knows 1
//!        2 item · received 8 · bytes
//!        3 acknowledgement · received 8
//! ```
//!
//! `received` counts what the sender has performed of the other end's items in this session. Connections keep the
//! order of frames, so an item needs no number of its own.

use std::collections::VecDeque;

use kernel::Planted;

/// The name of a session, which no other session of this shard has.
pub type ShardSession = u128;

/// Items that an end keeps for the other one at most.
pub const KEPT_MAX: usize = 1 << 16;
/// Bytes of items that an end keeps at most.
const KEPT_BYTES_MAX: usize = 256 << 20;
/// Items that are on their way at a time.
pub const WINDOW: u64 = 64;
/// Bytes of the largest frame: the keys of the largest committee, twice.
pub const FRAME_BYTES_MAX: usize = 32 << 20;

const HELLO: u8 = 1;
const ITEM: u8 = 2;
const ACKNOWLEDGEMENT: u8 = 3;

/// Wrong rules that the model finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShardLineMistake {
    /// A shard that does not know the session is taken for one that does.
    SessionNotCompared,
    /// A session goes on although the shard has forgotten what it was told in it.
    SessionKept,
    /// When there is no room, the oldest item is dropped and the session goes on.
    OldestDropped,
    /// After a connection broke, what was on its way is not sent again.
    NotRepeated,
    /// What a broken connection had brought is performed again.
    PerformedTwice,
}

/// What the shell does for an end of the line, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardLineEffect {
    /// Send a frame on the present connection.
    Send(Vec<u8>),
    /// A session has begun at both ends: nothing was said in it yet.
    Begin,
    /// The session has ended: what was said in it counts no more.
    End,
    /// An item of the other end, to be performed now.
    Item(Vec<u8>),
    /// Close the present connection: what came on it is no frame, or there is no session.
    Close,
}

/// The end of a node or of a shard. The node names sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShardLineEnd {
    is_node: bool,
    session: Option<ShardSession>,
    /// Whether the shell was told that the session has begun.
    has_begun: bool,
    /// Whether a connection is there, and both have said hello on it.
    is_connected: bool,
    is_met: bool,
    /// The number of the first kept item, and of the next one to send on this connection.
    first: u64,
    next: u64,
    kept: VecDeque<Vec<u8>>,
    kept_bytes: usize,
    kept_max: usize,
    received: u64,
    mistake: Planted<ShardLineMistake>,
}

impl ShardLineEnd {
    /// The end of a node, or of a shard, before any connection.
    pub fn new(is_node: bool) -> ShardLineEnd {
        ShardLineEnd {
            is_node,
            session: None,
            has_begun: false,
            is_connected: false,
            is_met: false,
            first: 0,
            next: 0,
            kept: VecDeque::new(),
            kept_bytes: 0,
            kept_max: KEPT_MAX,
            received: 0,
            mistake: Planted::NOTHING,
        }
    }

    /// The same end with another number of items that it keeps, and a mistake: for models.
    pub fn planted(self, kept_max: usize, mistake: Planted<ShardLineMistake>) -> ShardLineEnd {
        ShardLineEnd { kept_max, mistake, ..self }
    }

    /// Whether both ends have met on the present connection.
    pub fn is_met(&self) -> bool {
        self.is_met
    }

    /// Whether a session has begun and not ended: items that are pushed will arrive, or the session ends.
    pub fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The present session.
    pub fn session(&self) -> Option<ShardSession> {
        self.session
    }

    /// A connection is there. `fresh` names a session if the node needs a new one.
    pub fn connected(&mut self, fresh: ShardSession) -> Vec<ShardLineEffect> {
        (self.is_connected, self.is_met) = (true, false);
        if !self.is_node {
            return Vec::new();
        }
        self.session.get_or_insert(fresh);
        vec![self.hello(true)]
    }

    /// The connection is gone.
    pub fn disconnected(&mut self) {
        (self.is_connected, self.is_met) = (false, false);
    }

    /// Says something in the session. Nothing if there is none; if there is no room, the session ends.
    pub fn push(&mut self, item: Vec<u8>) -> Vec<ShardLineEffect> {
        if !self.has_begun {
            return Vec::new();
        }
        if self.kept.len() >= self.kept_max || self.kept_bytes + item.len() > KEPT_BYTES_MAX {
            if !self.mistake.is(ShardLineMistake::OldestDropped) {
                return self.end();
            }
            self.kept.pop_front();
        }
        self.kept_bytes += item.len();
        self.kept.push_back(item);
        self.send_due()
    }

    /// Whether there is room for something that may as well be dropped: half of the room is for what may not.
    pub fn has_room(&self) -> bool {
        self.has_begun && self.kept.len() < self.kept_max / 2 && self.kept_bytes < KEPT_BYTES_MAX / 2
    }

    /// A frame has come on the present connection.
    pub fn frame(&mut self, frame: &[u8]) -> Vec<ShardLineEffect> {
        let Some((kind, rest)) = frame.split_first() else { return self.refuse() };
        match *kind {
            // A node that begins another session says hello again.
            HELLO if !self.is_met || !self.is_node => self.on_hello(rest),
            ITEM if self.is_met => self.on_item(rest),
            ACKNOWLEDGEMENT if self.is_met && rest.len() == 8 => self.on_acknowledgement(rest),
            _ => self.refuse(),
        }
    }

    fn hello(&self, knows: bool) -> ShardLineEffect {
        let session = self.session.expect("it has been named").to_le_bytes();
        let frame = [&[HELLO][..], &session, &self.received.to_le_bytes(), &[u8::from(knows)]].concat();
        ShardLineEffect::Send(frame)
    }

    /// Ends the session, so that the next connection begins another one.
    pub fn end(&mut self) -> Vec<ShardLineEffect> {
        let ended = self.has_begun.then_some(ShardLineEffect::End);
        self.forget();
        ended.into_iter().chain(self.refuse()).collect()
    }

    fn forget(&mut self) {
        self.session = None;
        (self.has_begun, self.first, self.next, self.received) = (false, 0, 0, 0);
        self.kept.clear();
        self.kept_bytes = 0;
    }

    fn refuse(&mut self) -> Vec<ShardLineEffect> {
        let is_connected = std::mem::take(&mut self.is_connected);
        self.is_met = false;
        is_connected.then_some(ShardLineEffect::Close).into_iter().collect()
    }

    fn on_hello(&mut self, rest: &[u8]) -> Vec<ShardLineEffect> {
        let Some((session, rest)) = rest.split_first_chunk::<16>() else { return self.refuse() };
        let Some((received, [knows @ (0 | 1)])) = rest.split_first_chunk::<8>() else { return self.refuse() };
        let (session, received) = (u128::from_le_bytes(*session), u64::from_le_bytes(*received));
        if self.is_node { self.on_answer(session, received, *knows == 1) } else { self.on_named(session, received) }
    }

    /// The shard hears which session the node is in.
    fn on_named(&mut self, session: ShardSession, received: u64) -> Vec<ShardLineEffect> {
        let knows = self.session == Some(session) && self.may_resume(received);
        let knows = knows || self.session.is_some() && self.mistake.is(ShardLineMistake::SessionNotCompared);
        let mut effects = Vec::new();
        if !knows {
            effects.extend(self.has_begun.then_some(ShardLineEffect::End));
            self.forget();
            (self.session, self.has_begun) = (Some(session), true);
            effects.push(ShardLineEffect::Begin);
        }
        effects.push(self.hello(knows));
        effects.extend(self.resume(received));
        effects
    }

    /// The node hears what the shard has of the session.
    fn on_answer(&mut self, session: ShardSession, received: u64, knows: bool) -> Vec<ShardLineEffect> {
        if self.session != Some(session) {
            return self.refuse();
        }
        let is_new = !self.has_begun && received == 0;
        let is_known = knows && self.may_resume(received);
        let goes_on = self.has_begun && (is_known || self.mistake.is(ShardLineMistake::SessionKept));
        if !is_new && !goes_on {
            let mut effects: Vec<ShardLineEffect> =
                self.has_begun.then_some(ShardLineEffect::End).into_iter().collect();
            self.forget();
            self.session = Some(session.wrapping_add(1));
            effects.push(self.hello(true));
            return effects;
        }
        let begins = !std::mem::replace(&mut self.has_begun, true);
        let mut effects = self.resume(received);
        effects.extend(begins.then_some(ShardLineEffect::Begin));
        effects
    }

    fn may_resume(&self, received: u64) -> bool {
        (self.first..=self.first + self.kept.len() as u64).contains(&received)
    }

    /// Both ends have met, and the other one has so many items.
    fn resume(&mut self, received: u64) -> Vec<ShardLineEffect> {
        self.is_met = true;
        self.drop_until(received);
        if !self.mistake.is(ShardLineMistake::NotRepeated) {
            self.next = self.first;
        }
        self.send_due()
    }

    fn drop_until(&mut self, received: u64) {
        while self.first < received
            && let Some(item) = self.kept.pop_front()
        {
            self.kept_bytes -= item.len().min(self.kept_bytes);
            self.first += 1;
        }
        self.next = self.next.max(self.first);
    }

    fn send_due(&mut self) -> Vec<ShardLineEffect> {
        let mut effects = Vec::new();
        while self.is_met && self.next < self.first + WINDOW {
            let Some(item) = self.kept.get((self.next - self.first) as usize) else { break };
            effects.push(ShardLineEffect::Send([&[ITEM][..], &self.received.to_le_bytes(), item].concat()));
            self.next += 1;
        }
        effects
    }

    fn on_item(&mut self, rest: &[u8]) -> Vec<ShardLineEffect> {
        let Some((received, item)) = rest.split_first_chunk::<8>() else { return self.refuse() };
        let acknowledged = self.on_acknowledgement(received);
        if !self.is_met {
            return acknowledged;
        }
        if !self.mistake.is(ShardLineMistake::PerformedTwice) || self.received == 0 {
            self.received += 1;
        }
        let mut effects = vec![ShardLineEffect::Item(item.to_vec())];
        effects.push(ShardLineEffect::Send([&[ACKNOWLEDGEMENT][..], &self.received.to_le_bytes()].concat()));
        effects.extend(acknowledged);
        effects
    }

    fn on_acknowledgement(&mut self, received: &[u8]) -> Vec<ShardLineEffect> {
        let received = u64::from_le_bytes(received.try_into().expect("eight bytes"));
        if received > self.next || received < self.first {
            return self.refuse();
        }
        self.drop_until(received);
        self.send_due()
    }
}
