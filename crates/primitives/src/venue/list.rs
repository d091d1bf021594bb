//! One signature for many orders.
//!
//! A market maker moves a ladder of sixty quotes at once. Were each signed, the venue would check sixty signatures, and
//! each settle as many as it has new orders. So a trading key may sign a *list* of up to [`LIST_ORDERS_MAX`] orders:
//! they are leaves of one tree ([`crate::merkle`]), and the key signs its root once. A settle that fills one of them
//! carries the siblings on its path.
//!
//! # The protocol
//!
//! - *The trader* draws a seed of 32 bytes that it uses for one list. Entry i, from 0, is an order, and the number of
//!   the open order in whose place it goes, if any. Its salt is a hash of seed, i and that number. The leaf is salt and
//!   order. The key signs network, venue, number of leaves, and root ([`ListHeader`]). Numbers of the orders ascend.
//! - *The venue* is sent seed, entries and signature ([`OrderList`]), looks at all fields first, then computes the root
//!   and verifies once. From there on each entry is an order by itself: it is taken or refused alone, and what others
//!   of its list do is nothing to it. Limits count a list as its number of orders.
//! - *The journal* holds seed and signature once a list; salts and paths are computed again.
//! - *A settle* has with an order either its own signature, or salt, place, number of leaves, path and signature of its
//!   list ([`ListedSignature`]), or nothing where the ledger has an entry. One signature of one key is checked once a
//!   settle: all orders under it must lead to one root. Claims carry orders in the same forms.
//! - *When*: from rules [`ORDER_LISTS_RULES`] on. A venue takes no list before a certified height whose next block
//!   counts them, and none where a settle has no room for the paths of one fill-or-kill order's fills.
//!
//! # Properties
//!
//! 1. *It says the same.* An order of a list has digest, number and life of one with a signature of its own.
//!    Leaves, entries and evidence of the ledger do not tell them apart, and one order in both forms is one order.
//! 2. *Only what was signed.* An order that verifies under a key was an entry of a list which that key signed for this
//!    network and venue, or was signed alone.
//! 3. *What is filled shows nothing of what rests.* A path holds hashes of orders that may never fill. Without salts
//!    who reads the chain could try all ticks and lots.
//! 4. *Bounded.* A path has at most six siblings. Its length and sides follow from place and number of leaves, so it is
//!    written without a length.
//! 5. *Separate.* Leaves and nodes have keys of their own, the header a tag of its own.
//!
//! # Attacks
//!
//! | attack | why it fails |
//! |---|---|
//! | a venue fills an order that the list does not have | no path leads from it to the root |
//! | an order is shown at another place, in a longer or shorter list, or with a cut path | sides and length follow from both, and the number of leaves is signed |
//! | an inner node or a leaf of another tree is shown as an order | keys of their own; a leaf has 64 to 72 bytes of known fields |
//! | a list for another network or venue, or of an ended incarnation | signed, or part of each order's number |
//! | a gateway changes what an entry replaces | each salt, and so the root, would be another |
//! | a list is sent again | its numbers are used: each order gets its first answer |
//! | two orders of a list have one number | refused by the venue; in a settle the entry of the first refuses the second, as of any two signed orders |
//! | a list of 64 whose last field is wrong makes the venue hash and verify | fields are looked at before any hash |
//! | one signature beside two roots makes the ledger verify twice for one fee | the settle is refused by its bytes, before any check |
//! | a venue shows a list that one key signed under another key, whose signature the ledger would take as checked | a signature is known by its key and its bytes |
//! | a settle is cut as if paths took no bytes, and the ledger refuses it for ever | a root counts the longest path of each order of a list |
//! | a settle of a thousand listed orders pays for one signature | it pays for the bytes of each path, which cost more to send than to hash; the quota counts signatures that are checked |
//! | hashes of what rests are tried out | 128 bits of salt |
//! | two lists have one seed | a salt that one shows is known in the other: clients draw seeds, and the guide says so |
//! | a thief of the seed | it hides orders and signs nothing |
//!
//! # Deviations
//!
//! - A list is not atomic: exchanges do not fill or refuse ladders as one, and a settle has fills of single orders.
//! - Several paths of one list in a settle are not joined into one proof: what is saved is less than its rules cost.

use std::io::{Error, ErrorKind, Read, Result as IoResult, Write};

use borsh::{BorshDeserialize, BorshSerialize};

use super::{CarriedSignature, OrderNumber, VenueId, VenueOrder};
use crate::merkle::{self, Family, Tree};
use crate::{Digest, PublicKey, SecretKey, Signature};

/// The first rules whose ledger takes orders of lists.
pub const ORDER_LISTS_RULES: u32 = 18;
/// The most orders under one signature.
pub const LIST_ORDERS_MAX: usize = FAMILY.leaves_max();

const FAMILY: Family = Family::VenueOrders;
const SIGNING_TAG: &[u8] = b"walras venue order list v1\0";
const SALT_CONTEXT: &str = "walras 2026 venue list salt v1";
const SIGNATURE_CONTEXT: &str = "walras 2026 known list v1";

/// What hides an order in its leaf.
pub type Salt = [u8; 16];

/// An entry of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ListEntry {
    /// The order.
    pub order: VenueOrder,
    /// The open order in whose place it goes.
    pub replaces: Option<OrderNumber>,
}

/// Orders under one signature, as their trader sends them to the venue.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct OrderList {
    /// The trading key.
    pub key: PublicKey,
    /// What salts are made of; it is for one list, and none but trader and venue know it.
    pub seed: [u8; 32],
    /// The entries, by ascending number.
    pub entries: Vec<ListEntry>,
    /// The key's signature on the header.
    pub signature: Signature,
}

/// Why a list is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListFault {
    /// It has none or too many orders.
    #[error("a list has 1 to {LIST_ORDERS_MAX} orders, this one has {0}: split it")]
    Size(usize),
    /// An order's fields are out of bounds.
    #[error("order {0} of the list has a tick, lots, fee cap or floor out of bounds")]
    Order(usize),
    /// Numbers do not ascend.
    #[error("the number of order {0} of the list is not above the one before: write them by ascending number")]
    Numbers(usize),
    /// The signature is invalid.
    #[error("the signature of the list is not of its key over these orders, for this network and venue")]
    Signature,
}

/// What a trading key signs of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize)]
pub struct ListHeader {
    /// The venue.
    pub venue: VenueId,
    /// Number of leaves, from 1 to [`LIST_ORDERS_MAX`].
    pub size: u8,
    /// The root of the tree over them.
    pub root: Digest,
}

impl ListHeader {
    /// The signed bytes.
    pub fn signing_bytes(&self, network: &Digest) -> Vec<u8> {
        let mut bytes = SIGNING_TAG.to_vec();
        (network, self).serialize(&mut bytes).expect("writing to memory cannot fail");
        bytes
    }
}

impl CarriedSignature {
    /// Whether it is of a list.
    pub fn is_of_list(&self) -> bool {
        self.message.starts_with(SIGNING_TAG)
    }

    /// Names key, signature and what is signed: one name is one verdict.
    pub fn name(&self) -> Digest {
        let CarriedSignature { key, signature, message } = self;
        Digest::of(SIGNATURE_CONTEXT, &[&key.0[..], &signature.0, message].concat())
    }
}

/// The signature of a list with what leads from one of its orders to the root: at most 274 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSignature {
    signature: Signature,
    salt: Salt,
    size: u8,
    place: u8,
    path: Vec<Digest>,
}

impl ListedSignature {
    /// The key's signature on the header.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// The header of which the key's signature must be, if the list has this order.
    pub fn header(&self, venue: VenueId, order: &VenueOrder) -> ListHeader {
        let (size, place) = (usize::from(self.size), usize::from(self.place));
        let root = merkle::root_of(FAMILY, leaf(&self.salt, order), size, place, &self.path);
        ListHeader { venue, size: self.size, root: root.expect("a path is read and made as long as it must be") }
    }

    /// Whether this key has signed a list with this order.
    pub fn verifies(&self, network: &Digest, venue: VenueId, key: &PublicKey, order: &VenueOrder) -> bool {
        key.verify(&self.header(venue, order).signing_bytes(network), &self.signature)
    }

    /// Bytes of its encoding.
    pub fn encoded_len(&self) -> usize {
        64 + 16 + 2 + 32 * self.path.len()
    }
}

impl BorshSerialize for ListedSignature {
    fn serialize<W: Write>(&self, to: &mut W) -> IoResult<()> {
        (self.signature, self.salt, self.size, self.place).serialize(to)?;
        self.path.iter().try_for_each(|sibling| sibling.serialize(to))
    }
}

impl BorshDeserialize for ListedSignature {
    fn deserialize_reader<R: Read>(from: &mut R) -> IoResult<ListedSignature> {
        let (signature, salt, size, place) = <(Signature, Salt, u8, u8)>::deserialize_reader(from)?;
        let fault = || Error::new(ErrorKind::InvalidData, "a list has 1 to 64 orders, and this place is none of it");
        let length = merkle::path_length(FAMILY, size.into(), place.into()).ok_or_else(fault)?;
        let path = (0..length).map(|_| Digest::deserialize_reader(from)).collect::<IoResult<_>>()?;
        Ok(ListedSignature { signature, salt, size, place, path })
    }
}

fn leaf(salt: &Salt, order: &VenueOrder) -> Digest {
    let mut bytes = salt.to_vec();
    order.serialize(&mut bytes).expect("writing to memory cannot fail");
    merkle::leaf(FAMILY, &bytes)
}

/// A list whose signature holds: what its orders are filled by.
#[derive(Clone, Debug)]
pub struct CheckedList {
    signature: Signature,
    salts: Vec<Salt>,
    tree: Tree,
}

impl CheckedList {
    /// The signature of the order at a place.
    ///
    /// # Panics
    /// If the list has no such place.
    pub fn listed(&self, place: usize) -> ListedSignature {
        ListedSignature {
            signature: self.signature,
            salt: self.salts[place],
            size: self.salts.len() as u8,
            place: place as u8,
            path: self.tree.path(place),
        }
    }
}

impl OrderList {
    /// Signs entries for a venue. The seed must be drawn for this list alone.
    ///
    /// # Errors
    /// [`ListFault`] names the first fault of the entries.
    pub fn sign(
        network: &Digest,
        venue: VenueId,
        seed: [u8; 32],
        entries: Vec<ListEntry>,
        key: &SecretKey,
    ) -> Result<OrderList, ListFault> {
        let unsigned = OrderList { key: key.public(), seed, entries, signature: Signature([0; 64]) };
        unsigned.check()?;
        let signature = key.sign(&unsigned.header(venue, &unsigned.tree(&unsigned.salts())).signing_bytes(network));
        Ok(OrderList { signature, ..unsigned })
    }

    /// Checks the fields, and then the signature.
    ///
    /// # Errors
    /// [`ListFault`] names the first fault.
    pub fn verify(&self, network: &Digest, venue: VenueId) -> Result<CheckedList, ListFault> {
        let checked = self.journaled()?;
        let header = self.header(venue, &checked.tree);
        let is_signed = self.key.verify(&header.signing_bytes(network), &self.signature);
        is_signed.then_some(checked).ok_or(ListFault::Signature)
    }

    /// The list of a journal, which takes only what was verified: its fields are checked, and its signature is not.
    ///
    /// # Errors
    /// [`ListFault`] names the first fault of the fields: no root wrote them.
    pub fn journaled(&self) -> Result<CheckedList, ListFault> {
        self.check()?;
        let salts = self.salts();
        Ok(CheckedList { signature: self.signature, tree: self.tree(&salts), salts })
    }

    fn check(&self) -> Result<(), ListFault> {
        let number = |entry: &ListEntry| entry.order.number;
        if !(1..=LIST_ORDERS_MAX).contains(&self.entries.len()) {
            return Err(ListFault::Size(self.entries.len()));
        }
        if let Some(at) = self.entries.iter().position(|entry| !entry.order.is_plain()) {
            return Err(ListFault::Order(at));
        }
        let fallen = self.entries.windows(2).position(|two| number(&two[0]) >= number(&two[1]));
        fallen.map_or(Ok(()), |at| Err(ListFault::Numbers(at + 1)))
    }

    fn salts(&self) -> Vec<Salt> {
        let salt = |(place, entry): (u8, &ListEntry)| {
            let Digest(hash) = Digest::of_short::<44>(SALT_CONTEXT, &(self.seed, place, entry.replaces));
            hash[..16].try_into().expect("a digest has 32 bytes")
        };
        (0..).zip(&self.entries).map(salt).collect()
    }

    fn tree(&self, salts: &[Salt]) -> Tree {
        let leaves = salts.iter().zip(&self.entries).map(|(salt, entry)| leaf(salt, &entry.order));
        Tree::new(FAMILY, leaves.collect())
    }

    fn header(&self, venue: VenueId, tree: &Tree) -> ListHeader {
        ListHeader { venue, size: self.entries.len() as u8, root: tree.root() }
    }
}

#[cfg(test)]
mod tests;
