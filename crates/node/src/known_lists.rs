//! Signatures of lists of orders that have verified: a list is verified once and not with each settle that fills it.
//!
//! A market maker's list of sixty-four orders ([`primitives::venue::OrderList`]) is filled over many settles, and each
//! has its signature again. This memory spares work and decides nothing. What is not in it is verified, so validators
//! whose memories differ find the same.
//!
//! # The protocol
//!
//! - Upon *transactions*: signatures of lists that are known are taken as valid, all others are verified. Of a settle
//!   that is valid as a whole and of the venue's operator, the lists are known from then on.
//! - Upon *a block*: venues and their operators are those of the new state. Lists of venues that are gone are
//!   forgotten.
//! - *After a restart* nothing is known.
//!
//! # Properties
//!
//! 1. *The same verdict*: a known name is a hash of key, signature and all that was signed, network and venue included.
//! 2. *Never false*: only what was verified gets in.
//! 3. *Bounded, and fair by venue*: each venue has room for [`LISTS`], and the oldest gives way.
//!
//! # Attacks
//!
//! | attack | why it fails |
//! |---|---|
//! | a false list is remembered with valid ones of its settle | a settle with one false signature leaves nothing |
//! | a known signature beside another root, venue or key | that is another name |
//! | strangers fill a venue's room with lists of their own | only settles that the venue's operator signed leave anything |
//! | settles for venues that do not exist take memory | those leave nothing; a genesis bounds the venues |
//! | a venue has more lists than room | its own oldest ones are verified again; no other venue notices |

use std::borrow::Borrow;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use primitives::venue::{CarriedSignature, Settle, VenueId, VenueOperation};
use primitives::{Address, Digest, Operation, Transaction, verify_unknown};

/// Lists of a venue that are known: more than settles in flight have.
const LISTS: usize = 4_096;

/// The memory.
pub(crate) struct KnownLists {
    network: Digest,
    venues: Mutex<BTreeMap<VenueId, VenueLists>>,
}

/// What is known of a venue.
struct VenueLists {
    operator: Address,
    known: HashSet<Digest>,
    oldest_first: VecDeque<Digest>,
}

impl KnownLists {
    /// Nothing is known; signatures are those of a network.
    pub fn new(network: Digest) -> KnownLists {
        KnownLists { network, venues: Mutex::default() }
    }

    /// As [`primitives::verify_transactions`].
    pub fn verify<T: Borrow<Transaction> + Sync>(&self, transactions: &[T]) -> Vec<bool> {
        let valid = verify_unknown(&self.network, transactions, |carried| self.knows(carried));
        let transactions = transactions.iter().map(Borrow::borrow);
        transactions.zip(&valid).filter(|(_, valid)| **valid).for_each(|(one, _)| self.remember(one));
        valid
    }

    /// The venues are these, with the accounts of their operators.
    pub fn follow(&self, operators: impl Iterator<Item = (VenueId, Address)>) {
        let mut venues = self.venues();
        let mut before = std::mem::take(&mut *venues);
        for (venue, operator) in operators {
            let known = before.remove(&venue);
            let (known, oldest_first) = known.map_or_else(Default::default, |of| (of.known, of.oldest_first));
            venues.insert(venue, VenueLists { operator, known, oldest_first });
        }
    }

    /// Nothing else is locked while this is.
    fn venues(&self) -> MutexGuard<'_, BTreeMap<VenueId, VenueLists>> {
        self.venues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn knows(&self, carried: &CarriedSignature) -> bool {
        carried.is_of_list() && {
            let name = carried.name();
            self.venues().values().any(|of| of.known.contains(&name))
        }
    }

    /// Remembers the lists of a settle whose signatures are valid.
    fn remember(&self, transaction: &Transaction) {
        let Some(settle) = settle_of(transaction) else { return };
        let is_of_operator = |of: &VenueLists| of.operator == transaction.body.account;
        if !self.venues().get(&settle.venue).is_some_and(is_of_operator) {
            return;
        }
        let names: Vec<Digest> = settle.list_signatures(&self.network).iter().map(CarriedSignature::name).collect();
        let mut venues = self.venues();
        let Some(of) = venues.get_mut(&settle.venue) else { return };
        for name in names {
            if of.known.insert(name) {
                of.oldest_first.push_back(name);
            }
        }
        let surplus = of.oldest_first.len().saturating_sub(LISTS);
        for name in of.oldest_first.drain(..surplus) {
            of.known.remove(&name);
        }
    }
}

fn settle_of(transaction: &Transaction) -> Option<&Settle> {
    match &transaction.body.operation {
        Operation::Venue(operation) => match operation.borrow() {
            VenueOperation::Settle(settle) => Some(settle),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests;
