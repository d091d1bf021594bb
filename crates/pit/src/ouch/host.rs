//! What a session's link asks of its venue.

use primitives::PublicKey;
use venue::{RequestScope, SessionNumber, TradeCommand};

use super::session::OuchSession;
use crate::clock::clock_ms;
use crate::shared::{PitInput, PitShared};

/// The venue as a session's link sees it: what the doors of a pit share with the root's thread, or a simulated one.
pub trait OuchHost {
    /// Milliseconds since 1970.
    fn now_ms(&self) -> u64;
    /// What orders are signed for; `None` while no root runs.
    fn scope(&self) -> Option<RequestScope>;
    /// Does something to a session of the day.
    fn with<T>(&self, session: SessionNumber, with: impl FnOnce(&mut OuchSession) -> T) -> T;
    /// Whether new orders are taken: not while the disk is full.
    fn takes_orders(&self) -> bool;
    /// Gives a command of a session to the root; false if it is not taken. Its answers go to the session.
    fn trade(&self, session: SessionNumber, key: PublicKey, command: TradeCommand) -> bool;
    /// A session lives.
    fn heartbeat(&self, session: SessionNumber);
    /// A session was told something that is to be made durable.
    fn wake(&self);
}

impl OuchHost for PitShared {
    fn now_ms(&self) -> u64 {
        clock_ms()
    }

    fn scope(&self) -> Option<RequestScope> {
        PitShared::scope(self).ok()
    }

    fn with<T>(&self, session: SessionNumber, with: impl FnOnce(&mut OuchSession) -> T) -> T {
        self.ouch.with(session, with)
    }

    fn takes_orders(&self) -> bool {
        self.check_disk().is_ok()
    }

    fn trade(&self, session: SessionNumber, key: PublicKey, command: TradeCommand) -> bool {
        // Answers go to the session.
        let (reply, _) = tokio::sync::oneshot::channel();
        self.send(PitInput::Trade { session, key, is_own_session: false, command, reply }).is_ok()
    }

    fn heartbeat(&self, session: SessionNumber) {
        // Another one follows.
        drop(self.send(PitInput::Heartbeat(session)));
    }

    fn wake(&self) {
        PitShared::wake(self);
    }
}
