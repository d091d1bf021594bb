//! Sessions of OUCH at the venue: how they are attached, and what their links ask of it.

use primitives::PublicKey;
use protocols::soup::{SoupPacket, SoupReject};
use tokio::sync::oneshot;
use venue::{CheckedOrderList, RequestScope, SessionNumber, TradeCommand, TraderAsk, TraderRequest, session_number};

use super::{PitInput, PitRefusal, PitShared};
use crate::clock::clock_ms;
use crate::ouch::{OuchHost, OuchLink, OuchParty, OuchSession};

/// A session that the root's thread was asked to attach.
pub(crate) struct Attaching(OuchParty);

impl Attaching {
    /// Asks for it; the root's thread answers when it has.
    pub fn ask(shared: &PitShared, request: &TraderRequest) -> Result<(Attaching, oneshot::Receiver<()>), PitRefusal> {
        let scope = shared.scope()?;
        let TraderAsk::Attach { session, ends_orders, dead_man_ms } = request.ask else {
            return Err(PitRefusal::Signature);
        };
        shared.check_key(&request.key)?;
        if !request.is_signed(&scope) {
            return Err(PitRefusal::Signature);
        }
        shared.claim_stamp(&request.key, request.stamp_ms)?;
        shared.claim_session(&request.key, session)?;
        let (session, key, number) = (session_number(&request.key, session), request.key, shared.new_link());
        let (reply, attached) = oneshot::channel();
        shared.send(PitInput::Attach { session, link: number, key, ends_orders, dead_man_ms, reply })?;
        Ok((Attaching(OuchParty { session, key, number, has_timer: dead_man_ms.is_some() }), attached))
    }

    /// The link. Whatever other one the session had ends.
    pub fn link(self, shared: &PitShared) -> OuchLink {
        OuchLink::begin(shared, self.0)
    }
}

/// What a participant is sent whose session cannot be attached.
pub(crate) fn refusal_of(why: &PitRefusal) -> Vec<u8> {
    let mut bytes = Vec::new();
    // The reason is short.
    SoupPacket::Debug(why.to_string().as_bytes()).encode(&mut bytes).ok();
    SoupPacket::LoginRejected(SoupReject::NotAuthorized).encode(&mut bytes).ok();
    bytes
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
        self.check_orders().is_ok()
    }

    fn trade(&self, session: SessionNumber, key: PublicKey, command: TradeCommand) -> bool {
        // Answers go to the session.
        let (reply, _) = tokio::sync::oneshot::channel();
        self.send(PitInput::Trade { session, key, is_own_session: false, command, reply }).is_ok()
    }

    fn list(&self, session: SessionNumber, list: CheckedOrderList) -> bool {
        let (list, replies) = (Box::new(list), Vec::new());
        self.send(PitInput::List { session, is_own_session: false, list, replies }).is_ok()
    }

    fn heartbeat(&self, session: SessionNumber) {
        // Another one follows.
        drop(self.send(PitInput::Heartbeat(session)));
    }

    fn wake(&self) {
        PitShared::wake(self);
    }
}

impl PitShared {
    /// Detaches the session of a link, unless it has another link by now.
    pub fn detach(&self, link: &OuchLink) {
        let OuchParty { session, number, .. } = *link.party();
        // The node may be stopping.
        drop(self.send(PitInput::Detach { session, link: number }));
    }
}
