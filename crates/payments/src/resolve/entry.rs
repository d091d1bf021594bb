//! Entries of the bridge's state. Some are written once and remain until their epoch is dropped; others are open:
//! cases, their deposits and pending claims.
//!
//! There are many entries, and a block writes few. The ledger keeps them in a trie, so that the cost of a block's
//! root grows neither with the age of an epoch nor with what is open.

use primitives::{Address, Amount, Digest, Signature};

use super::{Case, Taken};
use crate::threshold::Judged;
use crate::{Dealing, EscrowClaim, HomeEpoch, LaneRegistration, Output, OutputId};

const VALUE_CONTEXT: &str = "walras 2026 lane bridge entry v1";

/// The epoch in the keys of open entries: no end of an epoch drops them.
const OPEN: HomeEpoch = HomeEpoch::MAX;

/// One entry: its key begins with its epoch, so that an epoch is dropped as a prefix of all keys.
///
/// ```text
/// key    epoch 8, big-endian · kind 1 (1 backed output, 2 taken output, 3 certified payment, 10 expired
///        case, 11 proven output) · id or digest 32
///        epoch 8, big-endian · kind 1 (7 registered keys, 8 dealing) · member 1 and 31 zeros
///        epoch 8, big-endian · kind 1 (9 complaint decided) · member 1 · (0 it is out | 1 struck) 1 and 30 zeros
///        255 8 times · kind 1 (4 case, 5 deposit of a case, 6 claim) · output 32
/// value  H(output 45) | H(how it was taken) | H() | H() | H(output 45)
///        H(registration) | H(dealing · signature 64) | H()
///        H(case) | H(opener 20 · deposit 8) | H(height 8 · claim 33)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BridgeEntry {
    /// The key of the entry.
    pub key: [u8; BridgeEntry::KEY],
    /// A hash of the entry's content; `None` if the entry is removed.
    pub value: Option<[u8; 32]>,
}

impl BridgeEntry {
    /// Bytes of a key.
    pub const KEY: usize = 41;

    /// Its key and value, as a proof of the bridge is checked against them.
    pub fn pair(&self) -> ([u8; BridgeEntry::KEY], Option<[u8; 32]>) {
        (self.key, self.value)
    }

    fn new(home: HomeEpoch, kind: u8, id: &[u8; 32], value: Option<&[u8]>) -> BridgeEntry {
        let mut key = [0; BridgeEntry::KEY];
        key[..8].copy_from_slice(&home.to_be_bytes());
        key[8] = kind;
        key[9..].copy_from_slice(id);
        BridgeEntry { key, value: value.map(|value| Digest::of(VALUE_CONTEXT, value).0) }
    }

    /// The entry of an output that the ledger created in an epoch.
    pub fn backed(home: HomeEpoch, id: &OutputId, output: &Output) -> BridgeEntry {
        let mut value = Vec::with_capacity(45);
        output.write(&mut value);
        BridgeEntry::new(home, 1, &id.0, Some(&value))
    }

    pub(crate) fn proven(home: HomeEpoch, id: &OutputId, output: &Output) -> BridgeEntry {
        let mut value = Vec::with_capacity(45);
        output.write(&mut value);
        BridgeEntry::new(home, 11, &id.0, Some(&value))
    }

    pub(super) fn taken(home: HomeEpoch, id: &OutputId, taken: Taken) -> BridgeEntry {
        let mut value = Vec::with_capacity(33);
        taken.write(&mut value);
        BridgeEntry::new(home, 2, &id.0, Some(&value))
    }

    pub(super) fn certified(home: HomeEpoch, digest: &Digest) -> BridgeEntry {
        BridgeEntry::new(home, 3, &digest.0, Some(&[]))
    }

    pub(super) fn expired(home: HomeEpoch, output: &OutputId) -> BridgeEntry {
        BridgeEntry::new(home, 10, &output.0, Some(&[]))
    }

    /// The entry of a member's registered keys.
    pub fn registration(registration: &LaneRegistration) -> BridgeEntry {
        let mut id = [0; 32];
        id[0] = registration.member;
        BridgeEntry::new(registration.epoch, 7, &id, Some(&registration.encode()))
    }

    pub(crate) fn dealing(epoch: HomeEpoch, dealing: &Dealing, signature: &Signature) -> BridgeEntry {
        let mut id = [0; 32];
        id[0] = dealing.dealer;
        BridgeEntry::new(epoch, 8, &id, Some(&[&dealing.encode()[..], &signature.0].concat()))
    }

    pub(crate) fn judged(epoch: HomeEpoch, judged: Judged) -> BridgeEntry {
        let mut id = [0; 32];
        (id[0], id[1]) = match judged {
            Judged::Out(dealer) => (dealer, 0),
            Judged::Struck(member) => (member, 1),
        };
        BridgeEntry::new(epoch, 9, &id, Some(&[]))
    }

    pub(super) fn case(id: &OutputId, case: Option<&Case>) -> BridgeEntry {
        let mut value = Vec::new();
        case.iter().for_each(|case| case.write(&mut value));
        BridgeEntry::new(OPEN, 4, &id.0, case.map(|_| &value[..]))
    }

    pub(crate) fn deposit(id: &OutputId, deposit: Option<&(Address, Amount)>) -> BridgeEntry {
        let value = deposit.map(|(opener, amount)| [&opener.0[..], &amount.to_le_bytes()].concat());
        BridgeEntry::new(OPEN, 5, &id.0, value.as_deref())
    }

    pub(crate) fn claim(id: &OutputId, claim: Option<(u64, &EscrowClaim)>) -> BridgeEntry {
        let value = claim.map(|(height, claim)| {
            let mut value = height.to_le_bytes().to_vec();
            claim.write(&mut value);
            value
        });
        BridgeEntry::new(OPEN, 6, &id.0, value.as_deref())
    }

    /// The last key that an entry of an epoch before this one can have; `None` if there is none before.
    pub fn last_before(home: HomeEpoch) -> Option<[u8; BridgeEntry::KEY]> {
        let mut key = [u8::MAX; BridgeEntry::KEY];
        key[..8].copy_from_slice(&home.checked_sub(1)?.to_be_bytes());
        Some(key)
    }
}
