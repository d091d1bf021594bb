//! Sessions: which keys they trade for, what ends with them, and dead men's timers.

use primitives::PublicKey;

use super::VenueMachine;
use crate::input::SessionNumber;
use crate::mistake::VenueMistake;
use crate::refusal::{OrderEnd, OrderRefusal};
use crate::state::Session;

/// The longest dead man's timer, a day: a session without a link is kept until its timer fires.
const DEAD_MAN_MS_MAX: u64 = 86_400_000;

pub(super) fn attach(
    machine: &mut VenueMachine,
    session: SessionNumber,
    keys: &[PublicKey],
    ends_orders: bool,
    dead_man_ms: Option<u64>,
) {
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.dedup();
    let dead_man_ms = dead_man_ms.map(|wait| wait.min(DEAD_MAN_MS_MAX));
    let deadline_ms = dead_man_ms.map(|wait| machine.core.now_ms.saturating_add(wait));
    let mut had_keys = machine.core.sessions.remove(&session).map_or_else(Default::default, |before| before.had_keys);
    had_keys.extend(&keys);
    let of = Session { keys, had_keys, ends_orders, dead_man_ms, deadline_ms, is_attached: true };
    machine.core.sessions.insert(session, of);
}

/// A session that ended, and with which nothing else ends, is forgotten.
pub(super) fn detach(machine: &mut VenueMachine, session: SessionNumber) {
    let Some(of) = machine.core.sessions.get_mut(&session) else { return };
    of.is_attached = false;
    if of.ends_orders {
        end_session_orders(machine, session, OrderEnd::Disconnected);
    }
    // The timer runs on without a link, because its purpose is to end orders then.
    if machine.core.sessions[&session].deadline_ms.is_none() {
        machine.core.sessions.remove(&session);
    }
}

/// A session said something: its timer begins again.
pub(super) fn heard(machine: &mut VenueMachine, session: SessionNumber) -> Option<&Session> {
    let of = machine.core.sessions.get_mut(&session)?;
    of.deadline_ms = of.dead_man_ms.map(|wait| machine.core.now_ms.saturating_add(wait));
    Some(of)
}

pub(super) fn fire_timers(machine: &mut VenueMachine) {
    let now = machine.core.now_ms;
    let is_due = |of: &Session| of.deadline_ms.is_some_and(|deadline| deadline <= now);
    let due: Vec<SessionNumber> =
        machine.core.sessions.iter().filter(|(_, of)| is_due(of)).map(|(session, _)| *session).collect();
    for session in due {
        end_session_orders(machine, session, OrderEnd::DeadMan);
        let of = machine.core.sessions.get_mut(&session).expect("it was just seen");
        of.deadline_ms = None;
        if !of.is_attached {
            machine.core.sessions.remove(&session);
        }
    }
}

/// Ends the open orders that a session placed; those of others stay.
fn end_session_orders(machine: &mut VenueMachine, session: SessionNumber, why: OrderEnd) {
    let keys = machine.core.sessions[&session].had_keys.iter();
    let positions = keys.filter_map(|key| machine.core.key_of.get(key).copied());
    let mut slots: Vec<u32> = positions.flat_map(|at| machine.core.open_orders(at)).collect();
    let spares_none = why == OrderEnd::DeadMan && machine.has(VenueMistake::DeadManEndsAll);
    slots.retain(|slot| spares_none || machine.core.order(*slot).session == session);
    slots.into_iter().for_each(|slot| machine.end(slot, why));
}

/// A session said something about a key: its position, if the session is attached and may trade for it.
pub(super) fn heard_for(
    machine: &mut VenueMachine,
    session: SessionNumber,
    key: &PublicKey,
) -> Result<u32, OrderRefusal> {
    let of = heard(machine, session);
    of.filter(|of| of.is_attached && of.keys.binary_search(key).is_ok()).ok_or(OrderRefusal::NotAttached)?;
    machine.core.key_of.get(key).copied().ok_or(OrderRefusal::UnknownKey)
}
