//! Orders whose bytes and signatures are checked, before they reach a root.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::venue::{SettledOrder, VenueId, VenueOrder};
use primitives::{Digest, PublicKey, Signature, Signed, verify_all};

/// An order that its key has signed for this network and venue. Only [`check_orders`] makes one, and a journal that
/// was written by a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CheckedOrder {
    signed: SettledOrder,
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
        CheckedOrder { signed: SettledOrder { key, order, signature: Some(signature) }, digest }
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

    /// The order as a settle has it, with its signature.
    pub fn signed(&self) -> &SettledOrder {
        &self.signed
    }
}

struct Claimed<'a> {
    order: &'a SettledOrder,
    signature: Signature,
    message: Vec<u8>,
}

impl Signed for Claimed<'_> {
    fn signature(&self) -> (PublicKey, Signature) {
        (self.order.key, self.signature)
    }

    fn signed_bytes(&self) -> Vec<u8> {
        self.message.clone()
    }
}

fn claim<'a>(network: &Digest, venue: VenueId, order: &'a SettledOrder) -> Option<Claimed<'a>> {
    let signature = order.signature.filter(|_| order.order.is_plain())?;
    Some(Claimed { order, signature, message: order.order.signing_bytes(network, venue) })
}

/// Checks orders in a batch, on all threads of the current rayon pool; `None` where the fields of an order are out of
/// bounds, or it lacks a valid signature. Gateways call this before they forward.
pub fn check_orders(network: &Digest, venue: VenueId, orders: &[SettledOrder]) -> Vec<Option<CheckedOrder>> {
    let (places, claimed): (Vec<usize>, Vec<Claimed<'_>>) =
        orders.iter().enumerate().filter_map(|(at, order)| Some((at, claim(network, venue, order)?))).unzip();
    let mut checked = vec![None; orders.len()];
    for (at, _) in places.into_iter().zip(verify_all(&claimed)).filter(|(_, is_valid)| *is_valid) {
        let signed = orders[at];
        checked[at] = Some(CheckedOrder { signed, digest: signed.order.digest(network, venue, &signed.key) });
    }
    checked
}
