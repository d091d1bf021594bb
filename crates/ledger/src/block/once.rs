//! What transactions of a block claim together: sums with a limit, and keys that count once.

use payments::BridgeKey;
use primitives::{Address, AssetId, PoolKey, PublicKey, Sequence, SessionSlot, TransactionId};
use proofs::{Pair, Place, Refusal};

use crate::places::controls::HolderId;
use crate::places::scope::Scope;
use crate::places::venues::VenueOnce;

/// A sum of units with a limit that the transactions of a block may not exceed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Sum {
    /// What the sender spends of an asset; its balance is the limit.
    Spent(AssetId),
    /// What a session key of the sender uses of an asset; the room under its cap is the limit.
    Key(SessionSlot, AssetId),
    /// Offers that a session key of the sender opens; what it may still open is the limit.
    Offers(SessionSlot),
    /// What all accounts issue of an asset; the cap on existing units is the limit.
    Issued(AssetId),
    /// Shares of a pool that all accounts buy; the cap on shares is the limit.
    Minted(PoolKey),
    /// Shares of a pool that the sender gives back; what it holds is the limit.
    Shares(PoolKey),
    /// For the trial operations: all draw on one sum with a cap.
    #[cfg(test)]
    Capped,
    /// For the trial operations: a venue draws on its deposit.
    #[cfg(test)]
    Deposit,
}

/// A key that may be claimed only once in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Once {
    /// A sequence number of the sender is used.
    Sequence(Sequence),
    /// An offer of the sender is replaced.
    Replace(Pair, Place),
    /// A session key is authorised.
    Session,
    /// The sender's key changes.
    Key,
    /// The sender says what it receives.
    Receiving,
    /// The sender's stake changes.
    Stake,
    /// The sender's validator is present.
    Present,
    /// The sender says something about the rules.
    Approval,
    /// The sender's seat posts about the sealing key.
    Seal,
    /// The sender proposes something.
    Proposal,
    /// The sender says whether it wants what was proposed under this id.
    Word(TransactionId),
    /// The sender says something about the end of an asset.
    Closing(AssetId),
    /// The sender says something of a holder of its asset.
    Holder(HolderId),
    /// The sender recovers units of a holder of its asset.
    Recovered(HolderId),
    /// A key becomes the key of a validator.
    ValidatorKey(PublicKey),
    /// An account is created.
    Created(Address),
    /// The keys of an account change, or a change of them acts.
    Keys(Address),
    /// A pool is opened.
    Pool(PoolKey),
    /// Something happens at the bridge to the payment lane.
    Bridge(BridgeKey),
    /// Something happens at a venue.
    Venue(VenueOnce),
    /// For the trial operations: something is redeemed, by any sender.
    #[cfg(test)]
    Redeemed(u8),
}

impl Once {
    pub(crate) fn scope(&self) -> Scope {
        match self {
            Once::Sequence(_) => Scope::Account(Refusal::SEQUENCE_CONFLICT),
            Once::Replace(..) | Once::Session | Once::Receiving | Once::Closing(_) => Scope::Latest,
            Once::Proposal | Once::Word(_) | Once::Holder(_) | Once::Recovered(_) => Scope::Latest,
            Once::Key => Scope::Account(Refusal::KEY_CONFLICT),
            Once::Stake => Scope::Account(Refusal::STAKE_CONFLICT),
            Once::Present => Scope::Account(Refusal::PRESENT_ALREADY),
            Once::Approval => Scope::Sender(Refusal::APPROVED_ALREADY),
            Once::Seal => Scope::Sender(Refusal::SEAL_POSTED),
            Once::ValidatorKey(_) => Scope::Sides(Refusal::VALIDATOR_KEY_CONFLICT),
            Once::Created(_) | Once::Keys(_) | Once::Pool(_) | Once::Bridge(_) => Scope::KeepOne,
            Once::Venue(once) => once.scope(),
            #[cfg(test)]
            Once::Redeemed(_) => Scope::KeepOne,
        }
    }
}

impl Sum {
    /// Whether the sum belongs to the sender, so that a conflict concerns only its account.
    pub(crate) fn is_own(self) -> bool {
        match self {
            Sum::Spent(_) | Sum::Shares(_) | Sum::Key(..) | Sum::Offers(_) => true,
            Sum::Issued(_) | Sum::Minted(_) => false,
            #[cfg(test)]
            Sum::Capped => false,
            #[cfg(test)]
            Sum::Deposit => true,
        }
    }

    /// Why transactions that exceed the limit together are refused.
    pub(crate) fn refusal(self) -> Refusal {
        match self {
            Sum::Spent(_) => Refusal::OVERDRAFT,
            Sum::Key(..) => Refusal::SESSION_CAP,
            Sum::Offers(_) => Refusal::SESSION_OFFERS,
            Sum::Issued(_) => Refusal::ISSUE_TOO_LARGE,
            Sum::Minted(_) => Refusal::TOO_MANY_SHARES,
            Sum::Shares(_) => Refusal::SHARES_NOT_HELD,
            #[cfg(test)]
            Sum::Capped => Refusal::ISSUE_TOO_LARGE,
            #[cfg(test)]
            Sum::Deposit => Refusal::OVERDRAFT,
        }
    }
}
