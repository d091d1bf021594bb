//! When actions count, each behind its own name: every one of them is past by height and by clock.

use primitives::Height;

use super::Venues;
use super::mistake::VenueMistake;

impl Venues {
    /// Whether an action at a height counts in the present block.
    pub(super) fn is_past(&self, since: Height) -> bool {
        let (horizon, delay) = (&self.horizon, self.horizon.delay());
        let time = |height| horizon.time_of(height).unwrap_or(u64::MAX);
        match () {
            _ if self.makes(VenueMistake::PastByHeightAlone) => horizon.height() > since.saturating_add(delay.heights),
            _ if self.makes(VenueMistake::PastByClockAlone) => {
                horizon.is_past(since) || horizon.time_ms() > time(since).saturating_add(delay.ms)
            }
            _ => horizon.is_past(since),
        }
    }

    /// Whether it is past, or a later height is reached and a mistake lets that suffice.
    fn is_past_or(&self, mistake: VenueMistake, since: Height) -> bool {
        (self.makes(mistake) && self.horizon.height() > since) || self.is_past(since)
    }

    /// Whether a revocation counts.
    pub(super) fn is_revocation_in_force(&self, since: Height) -> bool {
        self.is_past_or(VenueMistake::RevocationAtOnce, since)
    }

    /// Whether a raise of a floor counts.
    pub(super) fn is_raise_in_force(&self, since: Height) -> bool {
        self.is_past_or(VenueMistake::FloorAtOnce, since)
    }

    /// Whether nothing fills an order with this expiry any more.
    pub(super) fn is_expired(&self, expiry: Height) -> bool {
        self.is_past_or(VenueMistake::ExpiryAtOnce, expiry)
    }

    /// Whether the entry of an order with this expiry is forgotten.
    pub(super) fn is_forgotten(&self, expiry: Height) -> bool {
        self.is_past_or(VenueMistake::EntryForgottenEarly, expiry)
    }

    /// Whether units that were asked for at a height are owed.
    pub(super) fn is_owed(&self, since: Height) -> bool {
        let is_next = self.horizon.height() + 1 > since.saturating_add(self.horizon.delay().heights);
        (self.makes(VenueMistake::PayoutEarly) && is_next) || self.is_past(since)
    }

    /// Whether units that were asked for at a height still pay for fills.
    pub(super) fn pays_for_fills(&self, since: Height) -> bool {
        match () {
            _ if self.makes(VenueMistake::LeavingIgnored) => false,
            _ if self.makes(VenueMistake::LeavingCountedWhenPast) => true,
            _ => !self.is_past(since),
        }
    }
}
