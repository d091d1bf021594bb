//! Session keys of the batch market: what an account lets another key do, and how that key's transactions are numbered.
//!
//! The keys of an account stand in numbered *slots*. A number of a transaction has the slot in its upper bits, so that
//! each key has numbers of its own, and an offer's id says which key placed it. Slot 0 is the account's own key. The
//! rules are the ledger's (module `sessions`).

use borsh::{BorshDeserialize, BorshSerialize};

use crate::control::RULES_OF_CONTROLS;
use crate::height::Height;
use crate::keys::RULES_OF_KEYS;
use crate::sequence::Sequence;
use crate::{Address, Amount, AssetId, Digest, MAX_ISSUED, PublicKey, Signature};

/// The number of a slot; 0 is the account's own key.
pub type SessionSlot = u32;

/// Bits of a number below its slot.
pub const SESSION_NUMBER_BITS: u32 = 43;
/// The highest slot: slots have 20 bits, and the highest bit of a number is that of contracts' offers.
pub const SESSION_SLOTS_MAX: SessionSlot = (1 << 20) - 1;
/// The most assets for which a session key has caps.
pub const SESSION_CAPS_MAX: usize = 8;
/// What authorising a session key costs, in fees: it takes one of few places of the account.
pub const SESSION_WEIGHT: u64 = 100;

/// What a session key signs to show that it agrees to act for an account in a slot.
const POSSESSION_TAG: &[u8] = b"walras session key possession v1\0";

const NUMBERS: u64 = 1 << SESSION_NUMBER_BITS;

/// What a session key may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum SessionScope {
    /// Cancel the account's offers, and stop its other session keys.
    #[default]
    Cancel,
    /// Place offers and exact orders and replace its own, too.
    Trade,
    /// Cancel and stop, and do what one person or node owes: approve rules, accuse, post duties of the lane.
    Duty,
    /// Cancel and stop, and freeze holders of assets that the account issues: of each as many as the key's cap of it.
    Control,
}

/// The most units of an asset that a session key may use up: units locked and sold less units bought, fees included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct SessionCap {
    /// The asset.
    pub asset: AssetId,
    /// Units.
    pub units: Amount,
}

/// What an account authorises a key to do.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SessionTerms {
    /// The slot: one above the last one that the account has given.
    pub slot: SessionSlot,
    /// The key.
    pub key: PublicKey,
    /// The scope of the key.
    pub scope: SessionScope,
    /// The last height at which its transactions count.
    pub until: Height,
    /// At the end of this block its offers end, unless the height is raised before.
    pub alive: Height,
    /// At most [`SESSION_CAPS_MAX`], by asset; of all other assets it may use nothing.
    pub caps: Box<[SessionCap]>,
}

/// What is done about the session keys of an account.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum SessionOperation {
    /// Authorises a key.
    Authorize {
        /// The terms.
        terms: SessionTerms,
        /// The key's signature on [`session_possession_bytes`].
        possession: Signature,
    },
    /// Ends a slot and its offers with the block.
    Revoke {
        /// The slot.
        slot: SessionSlot,
    },
    /// Raises the height at whose end a slot's offers end; 0 ends them with the block.
    Alive {
        /// The slot.
        slot: SessionSlot,
        /// The height, or 0.
        through: Height,
    },
}

/// The slot that a number belongs to; 0 is the account's own key. Numbers of contracts' offers belong to no slot.
pub const fn slot_of(sequence: Sequence) -> SessionSlot {
    let slot = sequence >> SESSION_NUMBER_BITS;
    if slot <= SESSION_SLOTS_MAX as u64 { slot as SessionSlot } else { 0 }
}

/// A number within its slot, counted from 1.
pub const fn number_in_slot(sequence: Sequence) -> u64 {
    if slot_of(sequence) == 0 { sequence } else { sequence % NUMBERS }
}

/// The number of a transaction of a slot; `number` is counted from 1 and below 2^43.
pub const fn slot_sequence(slot: SessionSlot, number: u64) -> Sequence {
    ((slot as u64) << SESSION_NUMBER_BITS) | (number % NUMBERS)
}

/// What a key signs to show that it agrees to act for an account in a slot. Nobody can claim the key of somebody else,
/// and the signature authorises it nowhere else.
pub fn session_possession_bytes(network: &Digest, account: &Address, slot: SessionSlot, key: &PublicKey) -> Vec<u8> {
    let mut bytes = POSSESSION_TAG.to_vec();
    (network, account, slot, key).serialize(&mut bytes).expect("writing to memory cannot fail");
    bytes
}

impl SessionScope {
    /// The first rules that have it; 0 if all have it.
    pub fn since_rules(self) -> u32 {
        match self {
            SessionScope::Cancel | SessionScope::Trade => 0,
            SessionScope::Duty => RULES_OF_KEYS,
            SessionScope::Control => RULES_OF_CONTROLS,
        }
    }

    /// Its name in the interfaces.
    pub const fn name(self) -> &'static str {
        match self {
            SessionScope::Cancel => "cancel",
            SessionScope::Trade => "trade",
            SessionScope::Duty => "duty",
            SessionScope::Control => "control",
        }
    }
}

impl SessionTerms {
    /// Whether slot, heights and caps are within their bounds.
    fn is_plain(&self) -> bool {
        (1..=SESSION_SLOTS_MAX).contains(&self.slot)
            && self.alive <= self.until
            && self.caps.len() <= SESSION_CAPS_MAX
            && self.caps.is_sorted_by(|a, b| a.asset < b.asset)
            && self.caps.iter().all(|cap| cap.units <= MAX_ISSUED)
    }
}

impl SessionOperation {
    /// The slot that it is about.
    pub fn slot(&self) -> SessionSlot {
        match self {
            SessionOperation::Authorize { terms, .. } => terms.slot,
            SessionOperation::Revoke { slot } | SessionOperation::Alive { slot, .. } => *slot,
        }
    }

    /// Whether it ends the offers of a slot with its block.
    pub fn ends_offers(&self) -> bool {
        matches!(self, SessionOperation::Revoke { .. } | SessionOperation::Alive { through: 0, .. })
    }

    /// Whether its numbers are within their bounds.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            SessionOperation::Authorize { terms, .. } => terms.is_plain(),
            other => (1..=SESSION_SLOTS_MAX).contains(&other.slot()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_says_its_slot_and_its_place_there(slot in 1..=SESSION_SLOTS_MAX, number in 0..NUMBERS) {
            let sequence = slot_sequence(slot, number);
            prop_assert_eq!((slot_of(sequence), number_in_slot(sequence)), (slot, number));
            prop_assert!(sequence < 1 << 63);
        }

        #[test]
        fn the_owners_numbers_and_those_of_contracts_are_in_no_slot(number in 0..NUMBERS, id in (1u64 << 63)..) {
            prop_assert_eq!((slot_of(number), number_in_slot(number)), (0, number));
            prop_assert_eq!((slot_of(id), number_in_slot(id)), (0, id));
        }
    }

    #[test]
    fn terms_out_of_bounds_are_malformed() {
        let cap = |asset, units| SessionCap { asset: AssetId(asset), units };
        let sound = SessionTerms {
            slot: 1,
            key: PublicKey([1; 32]),
            scope: SessionScope::Trade,
            until: 9,
            alive: 9,
            caps: (0..8).map(|asset| cap(asset, MAX_ISSUED)).collect(),
        };
        assert!(sound.is_plain());
        let changes: [fn(&mut SessionTerms); 6] = [
            |terms| terms.slot = 0,
            |terms| terms.slot = SESSION_SLOTS_MAX + 1,
            |terms| terms.alive = 10,
            |terms| terms.caps[1].asset = AssetId(0),
            |terms| terms.caps[7].units = MAX_ISSUED + 1,
            |terms| terms.caps = (0..9).map(|asset| SessionCap { asset: AssetId(asset), units: 1 }).collect(),
        ];
        for change in changes {
            let mut terms = sound.clone();
            change(&mut terms);
            assert!(!terms.is_plain(), "{terms:?}");
        }
    }
}
