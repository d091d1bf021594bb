//! What a trader asks of a venue beside orders, as its key signs it, and how a replay of it is noticed.
//!
//! An order is signed for ever and has a number. A request is signed for a moment and has a *stamp*, the time by the
//! trader's clock. A venue takes each stamp of a key once, and none that is further than [`STAMP_WINDOW_MS`] from its
//! own clock, so that a request that somebody has copied does nothing later. Nothing of a request reaches the ledger.

use std::collections::{BTreeMap, BTreeSet};

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::venue::{MarketId, OrderNumber, VenueId, VenueSide};
use primitives::{Digest, PublicKey, SecretKey, Signature};

const SIGNING_TAG: &[u8] = b"walras venue request v1\0";
const SESSION_CONTEXT: &str = "walras 2026 venue session v1";

/// How far the stamp of a request may be from the venue's clock.
pub const STAMP_WINDOW_MS: u64 = 30_000;
/// The most requests of a key within two windows.
pub const STAMPS_OF_KEY: usize = 8_192;
/// The most sessions of a key in a day: a venue keeps something of each until the day is over.
pub const SESSIONS_OF_KEY: usize = 64;

const DAY_MS: u64 = 86_400_000;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum TraderAsk {
    /// Attach a session of the key.
    Attach {
        /// Its number among the sessions of the key.
        session: u32,
        /// Whether its open orders end when its link breaks.
        ends_orders: bool,
        /// Its open orders end if it says nothing for this long.
        dead_man_ms: Option<u64>,
    },
    /// End an order, or lower its total lots.
    Cancel {
        /// Its number.
        number: OrderNumber,
        /// Its total lots from now on; zero ends it.
        keeps: u32,
    },
    /// End all orders, or those of a market or of a side.
    CancelAll {
        /// Only of this market.
        market: Option<MarketId>,
        /// Only of this side.
        side: Option<VenueSide>,
    },
    /// Put a signed order in the place of an open one.
    Replace {
        /// The open one.
        old: OrderNumber,
        /// The order that comes with this request.
        new: OrderNumber,
    },
    /// How an order stands.
    Status(OrderNumber),
    /// The fills of the key from an index on, with their reports; of a key that watches, those of its account.
    Fills(u64),
    /// A drop copy: all reports of all keys of the account, for a key that its account has authorised to lose nothing.
    Watch,
}

/// A request with its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct TraderRequest {
    /// The trading key.
    pub key: PublicKey,
    /// Milliseconds since 1970 by the trader's clock; each is used once.
    pub stamp_ms: u64,
    /// What is asked.
    pub ask: TraderAsk,
    /// The key's signature.
    pub signature: Signature,
}

impl TraderRequest {
    /// Signs a request to an incarnation of a venue.
    pub fn sign(of: &RequestScope, trading: &SecretKey, stamp_ms: u64, ask: TraderAsk) -> TraderRequest {
        let key = trading.public();
        let signature = trading.sign(&of.signing_bytes(&key, stamp_ms, &ask));
        TraderRequest { key, stamp_ms, ask, signature }
    }

    /// Whether its key has signed it for this incarnation of this venue.
    pub fn is_signed(&self, of: &RequestScope) -> bool {
        self.key.verify(&of.signing_bytes(&self.key, self.stamp_ms, &self.ask), &self.signature)
    }
}

/// What requests are signed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestScope {
    /// The identity of the network.
    pub network: Digest,
    /// The venue.
    pub venue: VenueId,
    /// Its incarnation.
    pub incarnation: u32,
}

impl RequestScope {
    fn signing_bytes(&self, key: &PublicKey, stamp_ms: u64, ask: &TraderAsk) -> Vec<u8> {
        let mut bytes = SIGNING_TAG.to_vec();
        let signed = (&self.network, self.venue, self.incarnation, key, stamp_ms, ask);
        signed.serialize(&mut bytes).expect("writing to memory cannot fail");
        bytes
    }
}

/// The number by which a root knows a session of a key.
pub fn session_number(key: &PublicKey, session: u32) -> u64 {
    let digest = Digest::of(SESSION_CONTEXT, &borsh::to_vec(&(key, session)).expect("writing to memory cannot fail"));
    let (first, _) = digest.0.split_first_chunk().expect("32 bytes");
    u64::from_le_bytes(*first)
}

/// Why a stamp is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StampRefusal {
    /// It is too far from the clock.
    #[error("the stamp is more than 30 seconds from the venue's clock, which shows {0} ms: set the clock, sign again")]
    Clock(u64),
    /// The key has used it.
    #[error("the stamp was used: sign the request again with another one")]
    Used,
    /// Too many requests.
    #[error("the key has sent too many requests within a minute: send fewer")]
    TooMany,
    /// Too many sessions.
    #[error("the key has named {SESSIONS_OF_KEY} sessions today (UTC): attach one of them again")]
    Sessions,
}

/// The stamps of the last minute and the sessions of the day, by key.
#[derive(Clone, Debug, Default)]
pub struct RequestStamps {
    used: BTreeMap<PublicKey, BTreeSet<u64>>,
    day: u64,
    sessions: BTreeMap<PublicKey, BTreeSet<u32>>,
}

impl RequestStamps {
    /// Uses a stamp of a key whose signature was checked.
    ///
    /// # Errors
    /// [`StampRefusal`]; then it is not used.
    pub fn claim(&mut self, now_ms: u64, key: &PublicKey, stamp_ms: u64) -> Result<(), StampRefusal> {
        if stamp_ms.abs_diff(now_ms) > STAMP_WINDOW_MS {
            return Err(StampRefusal::Clock(now_ms));
        }
        let used = self.used.entry(*key).or_default();
        *used = used.split_off(&now_ms.saturating_sub(STAMP_WINDOW_MS));
        if used.contains(&stamp_ms) {
            return Err(StampRefusal::Used);
        }
        if used.len() >= STAMPS_OF_KEY {
            return Err(StampRefusal::TooMany);
        }
        used.insert(stamp_ms);
        Ok(())
    }

    /// Names a session of a key whose signature was checked, perhaps again.
    ///
    /// # Errors
    /// [`StampRefusal::Sessions`].
    pub fn claim_session(&mut self, now_ms: u64, key: &PublicKey, session: u32) -> Result<(), StampRefusal> {
        if std::mem::replace(&mut self.day, now_ms / DAY_MS) != self.day {
            self.sessions.clear();
        }
        let named = self.sessions.entry(*key).or_default();
        if named.len() >= SESSIONS_OF_KEY && !named.contains(&session) {
            return Err(StampRefusal::Sessions);
        }
        named.insert(session);
        Ok(())
    }

    /// Forgets what no stamp can repeat any more.
    pub fn forget(&mut self, now_ms: u64) {
        let oldest = now_ms.saturating_sub(STAMP_WINDOW_MS);
        self.used.retain(|_, used| used.last().is_some_and(|last| *last >= oldest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> RequestScope {
        RequestScope { network: Digest([1; 32]), venue: 2, incarnation: 3 }
    }

    #[test]
    fn a_request_is_signed_for_one_incarnation_one_moment_and_one_ask() {
        let key = SecretKey::from_seed([7; 32]);
        let number = OrderNumber { incarnation: 3, day: 4, reference: 5 };
        let request = TraderRequest::sign(&scope(), &key, 1_000, TraderAsk::Cancel { number, keeps: 0 });
        assert!(request.is_signed(&scope()));
        for scope in [
            RequestScope { network: Digest([2; 32]), ..scope() },
            RequestScope { venue: 3, ..scope() },
            RequestScope { incarnation: 4, ..scope() },
        ] {
            assert!(!request.is_signed(&scope));
        }
        assert!(!TraderRequest { stamp_ms: 1_001, ..request }.is_signed(&scope()));
        assert!(!TraderRequest { ask: TraderAsk::Cancel { number, keeps: 1 }, ..request }.is_signed(&scope()));
        assert_eq!(
            borsh::from_slice::<TraderRequest>(&borsh::to_vec(&request).expect("memory")).expect("same"),
            request
        );
    }

    #[test]
    fn a_stamp_counts_once_and_near_the_clock() {
        let (key, other) = (SecretKey::from_seed([7; 32]).public(), SecretKey::from_seed([8; 32]).public());
        let mut stamps = RequestStamps::default();
        let now = 10 * STAMP_WINDOW_MS;
        assert_eq!(stamps.claim(now, &key, now), Ok(()));
        assert_eq!(stamps.claim(now, &key, now), Err(StampRefusal::Used));
        assert_eq!(stamps.claim(now, &other, now), Ok(()));
        assert_eq!(stamps.claim(now, &key, now - STAMP_WINDOW_MS), Ok(()));
        assert_eq!(stamps.claim(now, &key, now - STAMP_WINDOW_MS - 1), Err(StampRefusal::Clock(now)));
        assert_eq!(stamps.claim(now, &key, now + STAMP_WINDOW_MS + 1), Err(StampRefusal::Clock(now)));
        // A stamp of the future is remembered for as long as it could be repeated.
        assert_eq!(stamps.claim(now, &key, now + STAMP_WINDOW_MS), Ok(()));
        let later = now + 2 * STAMP_WINDOW_MS;
        stamps.forget(later);
        assert_eq!(stamps.claim(later, &key, now + STAMP_WINDOW_MS), Err(StampRefusal::Used));
        stamps.forget(later + 1);
        assert!(stamps.used.is_empty());
    }

    /// One key that attaches ever new sessions, each with a dead man's timer of a day, must not fill the venue.
    #[test]
    fn a_key_has_so_many_sessions_in_a_day() {
        let (key, other) = (SecretKey::from_seed([7; 32]).public(), SecretKey::from_seed([8; 32]).public());
        let mut stamps = RequestStamps::default();
        let now = 20_000 * DAY_MS;
        assert!((0..SESSIONS_OF_KEY as u32).all(|session| stamps.claim_session(now, &key, session).is_ok()));
        assert_eq!(stamps.claim_session(now, &key, 1_000), Err(StampRefusal::Sessions));
        assert_eq!(stamps.claim_session(now, &key, 3), Ok(()), "one of them comes back");
        assert_eq!(stamps.claim_session(now, &other, 1_000), Ok(()));
        assert_eq!(stamps.claim_session(now + DAY_MS, &key, 1_000), Ok(()));
    }

    #[test]
    fn a_key_has_so_many_stamps() {
        let key = SecretKey::from_seed([7; 32]).public();
        let mut stamps = RequestStamps::default();
        let now = 10 * STAMP_WINDOW_MS;
        for stamp in 0..STAMPS_OF_KEY as u64 {
            assert_eq!(stamps.claim(now, &key, now - stamp), Ok(()));
        }
        assert_eq!(stamps.claim(now, &key, now + 1), Err(StampRefusal::TooMany));
    }

    #[test]
    fn sessions_of_keys_have_different_numbers() {
        let keys = [7, 8].map(|seed| SecretKey::from_seed([seed; 32]).public());
        let mut numbers: Vec<u64> =
            keys.iter().flat_map(|key| (0..100).map(|session| session_number(key, session))).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 200);
    }
}
