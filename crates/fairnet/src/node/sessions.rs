//! Which orders the root takes: each once, whatever is sent again.

use std::collections::BTreeMap;

use crate::seating::MemberId;
use crate::tokens::{Admission, Duplicates, OrderToken};

/// References of each participant that the root remembers.
const REFERENCES: usize = 1 << 13;

/// The last two sessions of each gateway, and the orders that were taken in them.
#[derive(Debug)]
pub(super) struct Sessions {
    duplicates: Duplicates,
    last: BTreeMap<MemberId, [u32; 2]>,
}

impl Sessions {
    pub(super) fn new() -> Sessions {
        Sessions { duplicates: Duplicates::new(REFERENCES), last: BTreeMap::new() }
    }

    /// Whether an order is the first of its reference in this session. Sessions before the last two are over.
    pub(super) fn admit(&mut self, gateway: MemberId, session: u32, token: OrderToken) -> Admission {
        let id = |session: u32| gateway << 32 | u64::from(session);
        let [before, last] = self.last.entry(gateway).or_default();
        if session > *last {
            self.duplicates.forget(id(*before));
            (*before, *last) = (*last, session);
        } else if session < *before {
            return Admission::Duplicate;
        }
        self.duplicates.admit(id(session), token)
    }
}
