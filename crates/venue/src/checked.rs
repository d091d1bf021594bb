//! Orders whose bytes and signatures are checked, before they reach a root.

use std::io::{Error, ErrorKind, Read, Result as IoResult, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::venue::{
    CarriedSignature, CheckedList, ListFault, OrderList, OrderNumber, OrderSignature, SettledOrder, SignedOrder,
    VenueId, VenueOrder,
};
use primitives::{Digest, PublicKey, Signature, verify_all};
use rayon::prelude::*;

/// An order that its key has signed for this network and venue. Only [`check_orders`] makes one, and a journal that
/// was written by a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CheckedOrder {
    signed: SignedOrder,
    digest: Digest,
}

impl CheckedOrder {
    /// An order of a journal, which takes only what was checked.
    pub(crate) fn journaled(
        network: &Digest,
        venue: VenueId,
        key: PublicKey,
        order: VenueOrder,
        signature: Signature,
    ) -> CheckedOrder {
        let digest = order.digest(network, venue, &key);
        CheckedOrder { signed: SignedOrder { key, order, signature }, digest }
    }

    /// The trading key.
    pub fn key(&self) -> &PublicKey {
        &self.signed.key
    }

    /// The order.
    pub fn order(&self) -> &VenueOrder {
        &self.signed.order
    }

    /// The digest by which leaves and entries of the ledger name it.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The order with its signature.
    pub fn signed(&self) -> &SignedOrder {
        &self.signed
    }
}

/// A list of orders that its key has signed for this network and venue. Only [`check_lists`] makes one, and a journal
/// that was written by a root.
#[derive(Clone, Debug)]
pub struct CheckedOrderList {
    list: OrderList,
    tree: CheckedList,
    digests: Vec<Digest>,
}

impl CheckedOrderList {
    /// A list of a journal, which takes only what was checked.
    pub(crate) fn journaled(network: &Digest, venue: VenueId, list: OrderList) -> Result<CheckedOrderList, ListFault> {
        let tree = list.journaled()?;
        Ok(CheckedOrderList::of(network, venue, list, tree))
    }

    fn of(network: &Digest, venue: VenueId, list: OrderList, tree: CheckedList) -> CheckedOrderList {
        let digests = list.entries.iter().map(|entry| entry.order.digest(network, venue, &list.key)).collect();
        CheckedOrderList { list, tree, digests }
    }

    /// The trading key.
    pub fn key(&self) -> &PublicKey {
        &self.list.key
    }

    /// The list as its trader sent it.
    pub fn list(&self) -> &OrderList {
        &self.list
    }

    /// Its orders one by one, each with the number of the order in whose place it goes.
    pub(crate) fn arriving(&self) -> impl Iterator<Item = (ArrivingOrder, Option<OrderNumber>)> {
        self.list.entries.iter().zip(&self.digests).enumerate().map(|(place, (entry, digest))| {
            let signature = OrderSignature::Listed(Box::new(self.tree.listed(place)));
            (ArrivingOrder { key: self.list.key, order: entry.order, digest: *digest, signature }, entry.replaces)
        })
    }
}

impl BorshSerialize for CheckedOrderList {
    fn serialize<W: Write>(&self, to: &mut W) -> IoResult<()> {
        (&self.list, &self.digests).serialize(to)
    }
}

impl BorshDeserialize for CheckedOrderList {
    fn deserialize_reader<R: Read>(from: &mut R) -> IoResult<CheckedOrderList> {
        let (list, digests) = <(OrderList, Vec<Digest>)>::deserialize_reader(from)?;
        match list.journaled() {
            Ok(tree) if digests.len() == list.entries.len() => Ok(CheckedOrderList { list, tree, digests }),
            _ => Err(Error::new(ErrorKind::InvalidData, "no root wrote this list")),
        }
    }
}

/// What follows from the list is not compared.
impl PartialEq for CheckedOrderList {
    fn eq(&self, other: &CheckedOrderList) -> bool {
        self.list == other.list && self.digests == other.digests
    }
}

impl Eq for CheckedOrderList {}

/// An order that arrives, alone or in a list.
pub(crate) struct ArrivingOrder {
    pub key: PublicKey,
    pub order: VenueOrder,
    pub digest: Digest,
    pub signature: OrderSignature,
}

impl From<&CheckedOrder> for ArrivingOrder {
    fn from(CheckedOrder { signed, digest }: &CheckedOrder) -> ArrivingOrder {
        let SignedOrder { key, order, signature } = *signed;
        ArrivingOrder { key, order, digest: *digest, signature: OrderSignature::Own(signature) }
    }
}

/// Checks orders in a batch, on all threads of the current rayon pool; `None` where the fields of an order are out of
/// bounds, or its signature is invalid. Gateways call this before they forward.
pub fn check_orders(network: &Digest, venue: VenueId, orders: &[SignedOrder]) -> Vec<Option<CheckedOrder>> {
    let claim = |(at, signed): (usize, &SignedOrder)| {
        let carried = SettledOrder::from(*signed).carried(network, venue)?;
        signed.order.is_plain().then_some((at, carried))
    };
    let (places, carried): (Vec<usize>, Vec<CarriedSignature>) = orders.iter().enumerate().filter_map(claim).unzip();
    let mut checked = vec![None; orders.len()];
    for (at, _) in places.into_iter().zip(verify_all(&carried)).filter(|(_, is_valid)| *is_valid) {
        let SignedOrder { key, order, signature } = orders[at];
        checked[at] = Some(CheckedOrder::journaled(network, venue, key, order, signature));
    }
    checked
}

/// Checks lists, on all threads of the current rayon pool: one signature for each.
///
/// # Errors
/// [`ListFault`] names the first fault of each that has one.
pub fn check_lists(
    network: &Digest,
    venue: VenueId,
    lists: Vec<OrderList>,
) -> Vec<Result<CheckedOrderList, ListFault>> {
    let check = |list: OrderList| {
        let tree = list.verify(network, venue)?;
        Ok(CheckedOrderList::of(network, venue, list, tree))
    };
    lists.into_par_iter().map(check).collect()
}
