//! Orders with what shows that their keys signed them.

use borsh::{BorshDeserialize, BorshSerialize};

use super::{CarriedSignature, ListHeader, ListedSignature, VenueId, VenueOrder};
use crate::{Digest, PublicKey, SecretKey, Signature};

/// An order with its key's signature, as it reaches a venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SignedOrder {
    /// The trading key.
    pub key: PublicKey,
    /// The order.
    pub order: VenueOrder,
    /// The key's signature.
    pub signature: Signature,
}

impl SignedOrder {
    /// Signs an order for a venue.
    pub fn sign(network: &Digest, venue: VenueId, key: &SecretKey, order: VenueOrder) -> SignedOrder {
        SignedOrder { key: key.public(), order, signature: key.sign(&order.signing_bytes(network, venue)) }
    }
}

/// An order in a settle.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SettledOrder {
    /// The trading key.
    pub key: PublicKey,
    /// The order.
    pub order: VenueOrder,
    /// What shows that it is the key's.
    pub signature: OrderSignature,
}

/// What shows that an order is its key's.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum OrderSignature {
    /// Nothing: the ledger has an entry of the order.
    Entered,
    /// The key signed the order.
    Own(Signature),
    /// The key signed a list with the order. Since [`super::ORDER_LISTS_RULES`].
    Listed(Box<ListedSignature>),
}

impl OrderSignature {
    /// Whether it is of the order alone.
    pub fn is_own(&self) -> bool {
        matches!(self, OrderSignature::Own(_))
    }

    /// Whether there is one.
    pub fn is_there(&self) -> bool {
        *self != OrderSignature::Entered
    }
}

impl From<SignedOrder> for SettledOrder {
    fn from(SignedOrder { key, order, signature }: SignedOrder) -> SettledOrder {
        SettledOrder { key, order, signature: OrderSignature::Own(signature) }
    }
}

impl SettledOrder {
    /// The order with the signature of its own, if it has one.
    pub fn own(&self) -> Option<SignedOrder> {
        match self.signature {
            OrderSignature::Own(signature) => Some(SignedOrder { key: self.key, order: self.order, signature }),
            _ => None,
        }
    }

    /// The list that has it: the same bytes under another key are another signature.
    pub(super) fn list(&self) -> Option<(PublicKey, Signature)> {
        match &self.signature {
            OrderSignature::Listed(listed) => Some((self.key, *listed.signature())),
            _ => None,
        }
    }

    /// What its key signed, if it signed a list.
    pub(super) fn header(&self, venue: VenueId) -> Option<ListHeader> {
        match &self.signature {
            OrderSignature::Listed(listed) => Some(listed.header(venue, &self.order)),
            _ => None,
        }
    }

    /// The signature with what it must be of, if there is one.
    pub fn carried(&self, network: &Digest, venue: VenueId) -> Option<CarriedSignature> {
        let (signature, message) = match &self.signature {
            OrderSignature::Entered => return None,
            OrderSignature::Own(signature) => (*signature, self.order.signing_bytes(network, venue)),
            OrderSignature::Listed(listed) => {
                let header = listed.header(venue, &self.order);
                (*listed.signature(), header.signing_bytes(network))
            }
        };
        Some(CarriedSignature { key: self.key, signature, message })
    }

    /// Bytes of its encoding.
    pub fn encoded_len(&self) -> usize {
        let signature = match &self.signature {
            OrderSignature::Entered => 0,
            OrderSignature::Own(_) => 64,
            OrderSignature::Listed(listed) => listed.encoded_len(),
        };
        32 + self.order.encoded_len() + 1 + signature
    }
}
