//! Sessions: which keys they trade for, what ends with them, and dead men's timers.

use primitives::PublicKey;

use super::VenueMachine;
use crate::input::SessionNumber;
use crate::mistake::VenueMistake;
use crate::refusal::{OrderEnd, OrderRefusal};
use crate::state::Session;

/// The longest dead man's timer, a day: a session without a link is kept until its timer fires.
const DEAD_MAN_MS_MAX: u64 = 86_400_000;

impl VenueMachine {
    pub(super) fn attach(
        &mut self,
        session: SessionNumber,
        keys: &[PublicKey],
        ends_orders: bool,
        dead_man_ms: Option<u64>,
    ) {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        keys.dedup();
        let dead_man_ms = dead_man_ms.map(|wait| wait.min(DEAD_MAN_MS_MAX));
        let deadline_ms = dead_man_ms.map(|wait| self.core.now_ms.saturating_add(wait));
        let mut had_keys = self.core.sessions.remove(&session).map_or_else(Default::default, |before| before.had_keys);
        had_keys.extend(&keys);
        let of = Session { keys, had_keys, ends_orders, dead_man_ms, deadline_ms, is_attached: true };
        self.core.sessions.insert(session, of);
    }

    /// A session that ended, and with which nothing else ends, is forgotten.
    pub(super) fn detach(&mut self, session: SessionNumber) {
        let Some(of) = self.core.sessions.get_mut(&session) else { return };
        of.is_attached = false;
        if of.ends_orders {
            self.end_session_orders(session, OrderEnd::Disconnected);
        }
        // The timer runs on without a link: that is what it is for.
        if self.core.sessions[&session].deadline_ms.is_none() {
            self.core.sessions.remove(&session);
        }
    }

    /// A session said something: its timer begins again.
    pub(super) fn heard(&mut self, session: SessionNumber) {
        let now = self.core.now_ms;
        if let Some(of) = self.core.sessions.get_mut(&session) {
            of.deadline_ms = of.dead_man_ms.map(|wait| now.saturating_add(wait));
        }
    }

    pub(super) fn fire_timers(&mut self) {
        let now = self.core.now_ms;
        let is_due = |of: &Session| of.deadline_ms.is_some_and(|deadline| deadline <= now);
        let due: Vec<SessionNumber> =
            self.core.sessions.iter().filter(|(_, of)| is_due(of)).map(|(session, _)| *session).collect();
        for session in due {
            self.end_session_orders(session, OrderEnd::DeadMan);
            let of = self.core.sessions.get_mut(&session).expect("it was just seen");
            of.deadline_ms = None;
            if !of.is_attached {
                self.core.sessions.remove(&session);
            }
        }
    }

    /// Ends the open orders that a session placed; those of others stay.
    fn end_session_orders(&mut self, session: SessionNumber, why: OrderEnd) {
        let keys = self.core.sessions[&session].had_keys.iter();
        let positions = keys.filter_map(|key| self.core.key_of.get(key).copied());
        let mut slots: Vec<u32> = positions.flat_map(|at| self.core.open_orders(at)).collect();
        let spares_none = why == OrderEnd::DeadMan && self.has(VenueMistake::DeadManEndsAll);
        slots.retain(|slot| spares_none || self.core.order(*slot).session == session);
        slots.into_iter().for_each(|slot| self.end(slot, why));
    }

    /// The position of a key for which an attached session may trade.
    pub(super) fn key_of_session(&self, session: SessionNumber, key: &PublicKey) -> Result<u32, OrderRefusal> {
        let of = self.core.sessions.get(&session).filter(|of| of.is_attached && of.keys.binary_search(key).is_ok());
        of.ok_or(OrderRefusal::NotAttached)?;
        self.core.key_of.get(key).copied().ok_or(OrderRefusal::UnknownKey)
    }
}
