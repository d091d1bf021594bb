//! What a session's link asks of its venue.

use primitives::PublicKey;
use venue::{CheckedOrderList, RequestScope, SessionNumber, TradeCommand};

use super::session::OuchSession;

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
    /// Gives a list of a session to the root; false if it is not taken. Answers of its orders go to the session.
    fn list(&self, session: SessionNumber, list: CheckedOrderList) -> bool;
    /// A session lives.
    fn heartbeat(&self, session: SessionNumber);
    /// A session was told something that is to be made durable.
    fn wake(&self);
}
