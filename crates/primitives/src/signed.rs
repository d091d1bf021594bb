//! A signed transaction as a whole: its id, its price, and what every ledger refuses by looking at it alone.

use borsh::BorshSerialize;

use crate::duty::SEAL_POST_BYTES_MAX;
use crate::keys::{RULES_OF_KEYS, SIGNERS_MAX};
use crate::malformed::Malformed;
use crate::offer::is_list;
use crate::statement::is_network_address;
use crate::transaction::{Body, LANE_POST_BYTES_MAX, Operation, SignedBy, Transaction, TransactionId};
use crate::{Amount, Digest, MAX_ISSUED, PublicKey, Signature};

const ID_CONTEXT: &str = "walras 2026 native transaction id v4";
const TYPED_ID_CONTEXT: &str = "walras 2026 typed data transaction id v3";
const POLICY_ID_CONTEXT: &str = "walras 2026 policy transaction id v1";

impl SignedBy {
    /// What an id has of the signer, with the context of its kind: of a key, of typed data, of a policy.
    pub(crate) fn named(&self, [key, typed, policy]: [&'static str; 3]) -> (&'static str, &[u8]) {
        match self {
            SignedBy::Key { signer, .. } => (key, &signer.0),
            SignedBy::TypedData { network, .. } => (typed, &network.0),
            SignedBy::Policy(_) => (policy, &[]),
        }
    }
}

impl Transaction {
    /// A transaction with the signature of an ed25519 key.
    pub fn by_key(body: Body, signer: PublicKey, signature: Signature) -> Transaction {
        Transaction { body, signed_by: SignedBy::Key { signer, signature } }
    }

    /// The id by which receipts and clients name this transaction. The signature is not part of it, since a signer can
    /// make many for one body. So an id identifies a request only once the signature is known to be valid.
    pub fn id(&self) -> TransactionId {
        let mut bytes = Vec::with_capacity(192);
        self.body.serialize(&mut bytes).expect("writing to memory cannot fail");
        let (context, signer) = self.signed_by.named([ID_CONTEXT, TYPED_ID_CONTEXT, POLICY_ID_CONTEXT]);
        bytes.extend_from_slice(signer);
        Digest::of(context, &bytes)
    }

    /// The first rules that have its operation and this way to sign it; see [`Operation::since_rules`].
    pub fn since_rules(&self) -> u32 {
        let signed = if let SignedBy::Policy(_) = self.signed_by { RULES_OF_KEYS } else { 0 };
        self.body.operation.since_rules().max(signed)
    }

    /// How many fees it costs: those of its body, and one for each further signature of a policy.
    pub fn weight(&self) -> u64 {
        match (self.body.weight(), &self.signed_by) {
            (fees, SignedBy::Policy(signed)) if fees > 0 => fees + (signed.signatures.len() as u64).saturating_sub(1),
            (fees, _) => fees,
        }
    }

    /// Units of asset 0 that it costs, on a chain with this fee. A chain's fee is such that no weight overflows.
    pub fn cost(&self, fee: Amount) -> Amount {
        fee.saturating_mul(self.weight())
    }

    /// Checks everything that needs no ledger and no signature.
    ///
    /// # Errors
    /// [`Malformed`] names the broken rule.
    pub fn check(&self) -> Result<(), Malformed> {
        match self.body.operation.amount() {
            Some(0) => return Err(Malformed::ZeroAmount),
            Some(amount) if amount > MAX_ISSUED => return Err(Malformed::AmountTooLarge),
            _ => {}
        }
        if let SignedBy::Policy(signed) = &self.signed_by
            && !signed.signatures.is_plain(SIGNERS_MAX)
        {
            return Err(Malformed::KeySignatures);
        }
        match &self.body.operation {
            Operation::CreateOffer { sell, buy, .. } | Operation::Exact { sell, buy, .. } if sell == buy => {
                Err(Malformed::SameAsset)
            }
            Operation::Exact { bound: 0, .. } => Err(Malformed::ZeroAmount),
            Operation::Exact { bound, .. } if *bound > MAX_ISSUED => Err(Malformed::AmountTooLarge),
            Operation::Replace(replace) if replace.old.sell == replace.old.buy => Err(Malformed::SameAsset),
            Operation::Replace(replace) if replace.remains > MAX_ISSUED => Err(Malformed::AmountTooLarge),
            Operation::Cancel(places) if !is_list(places) => Err(Malformed::CancelList),
            Operation::Pool(operation) if operation.pool().a >= operation.pool().b => Err(Malformed::PoolAssets),
            Operation::Pool(operation) if operation.is_nothing() => Err(Malformed::ZeroAmount),
            Operation::Pool(operation) if operation.is_too_large() => Err(Malformed::AmountTooLarge),
            Operation::Pay { to, .. } | Operation::PayReferenced { to, .. } if *to == self.body.account => {
                Err(Malformed::SelfPayment)
            }
            Operation::Recover(recovery) if recovery.from == recovery.to => Err(Malformed::SelfPayment),
            operation if operation.reference().is_some_and(|reference| !reference.is_plain()) => {
                Err(Malformed::Reference)
            }
            Operation::CreateAccount { account, key } if *account != self.body.account && key.address() != *account => {
                Err(Malformed::AddressNotOfKey)
            }
            Operation::Stake(stake) if stake.units > MAX_ISSUED => Err(Malformed::AmountTooLarge),
            Operation::Lane(bytes) if bytes.len() > LANE_POST_BYTES_MAX => Err(Malformed::LanePostTooLong),
            Operation::Venue(operation) if !operation.is_plain() => Err(Malformed::VenueBounds),
            Operation::Session(operation) if !operation.is_plain() => Err(Malformed::SessionTerms),
            Operation::Present { .. } if self.body.sequence != 0 => Err(Malformed::PresenceNumber),
            Operation::SealDuty { post, .. } if self.body.sequence != 0 || post.len() > SEAL_POST_BYTES_MAX => {
                Err(Malformed::SealPost)
            }
            Operation::Stake(stake) if !is_network_address(&stake.address) => Err(Malformed::NetworkAddress),
            Operation::ListAsset(listing) if !listing.is_plain() => Err(Malformed::AssetTerms),
            Operation::Propose(change) if !change.is_plain() => Err(Malformed::AssetTerms),
            Operation::Sealed(_) if !matches!(self.signed_by, SignedBy::Key { .. }) => Err(Malformed::EnvelopeSigner),
            Operation::SetKeys(_) | Operation::RecoverKeys(_) => {
                self.body.operation.key_change().expect("it is one").check()
            }
            _ => Ok(()),
        }
    }
}
