//! Native transactions: what an account asks of the ledger, and its signature. An ed25519 key signs bytes; the key of a
//! wallet of Ethereum signs typed data ([`TypedData`]).
//!
//! All parameters stand in the transaction, and all effects are visible from the next block on, so that the
//! transactions of a block commute (SPEEDEX §3).

use std::borrow::Borrow;

use borsh::{BorshDeserialize, BorshSerialize};
use rayon::prelude::*;

use crate::statement::{Evidence, Stake, is_network_address};
use crate::typed_data::{TypedData, WalletKey, WalletSignature};
use crate::{
    Address, Amount, AssetId, Digest, MAX_ISSUED, Price, PublicKey, SecretKey, Signature, key::Signed, verify_all,
};

/// The bytes before a signed transaction body: what is signed here is signed for nothing else.
const SIGNING_TAG: &[u8] = b"walras native transaction v2\0";
const ID_CONTEXT: &str = "walras 2026 native transaction id v3";
const TYPED_ID_CONTEXT: &str = "walras 2026 typed data transaction id v2";

/// Bytes of the largest post about the payment lane.
pub const LANE_POST_BYTES_MAX: usize = 128 << 10;

/// An account's number for one of its transactions; each is used once (rule 4).
pub type Sequence = u64;

/// What one transaction does.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Operation {
    /// Registers `account` under `key`. For the sender's own account this replaces the key from the next block on. For
    /// another one the address must be that of `key`, and the account must not exist.
    CreateAccount {
        /// The account to register.
        account: Address,
        /// The key that controls it from the next block on.
        key: PublicKey,
    },
    /// Locks `amount` of `sell` in a resting limit offer. The offer's id is the transaction's sequence number.
    CreateOffer {
        /// The asset to sell.
        sell: AssetId,
        /// The asset to receive.
        buy: AssetId,
        /// Units of `sell` to sell at most.
        amount: Amount,
        /// Units of `buy` per unit of `sell` to receive at least, after commission and rounding.
        limit: Price,
    },
    /// Takes an own resting offer out of the book and unlocks what is left of it. The fields name its place.
    CancelOffer {
        /// The asset that the offer sells.
        sell: AssetId,
        /// The asset that it buys.
        buy: AssetId,
        /// Its limit price.
        limit: Price,
        /// Its id: the sequence number of the transaction that created it.
        offer: Sequence,
    },
    /// Moves `amount` of `asset` to another account, which need not be registered.
    Pay {
        /// The receiving account.
        to: Address,
        /// The asset to send.
        asset: AssetId,
        /// Units to send.
        amount: Amount,
    },
    /// Creates new units of an asset; only its issuer can.
    Issue {
        /// The receiving account.
        to: Address,
        /// The asset to issue.
        asset: AssetId,
        /// Units to create.
        amount: Amount,
    },
    /// Destroys units of an asset that its issuer holds.
    Burn {
        /// The asset to burn.
        asset: AssetId,
        /// Units to destroy.
        amount: Amount,
    },
    /// Registers a validator, or adds to its stake, or changes its key or address from the next draw on.
    Stake(Box<Stake>),
    /// Takes units out of the own stake. They count for no further draw, and are paid back when what the validator may
    /// have done until then can no longer be punished.
    Unstake {
        /// Units of asset 0 to take out.
        units: Amount,
    },
    /// Shows that a validator contradicted itself. Anybody may.
    Accuse(Box<Evidence>),
    /// Moves `amount` of `asset` into the escrow of the payment lane, where it becomes an output of `to`.
    Withdraw {
        /// The key that spends the output in the lane.
        to: PublicKey,
        /// The asset to move.
        asset: AssetId,
        /// Units to move.
        amount: Amount,
    },
    /// Posts something about the payment lane: a redemption, a contested output, a validator's vote or view, a vote to
    /// halt. The `payments` crate says what the bytes mean (`BridgeOperation`).
    Lane(Box<[u8]>),
}

/// A transaction before it is signed.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Body {
    /// The chain that this transaction is for.
    pub chain: u64,
    /// The account that acts.
    pub account: Address,
    /// Its number for this transaction.
    pub sequence: Sequence,
    /// What it does.
    pub operation: Operation,
}

/// A signed native transaction.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Transaction {
    /// What is signed.
    pub body: Body,
    /// Who signed, and the signature.
    pub signed_by: SignedBy,
}

/// How a transaction is signed. Signatures can be checked without the ledger, which holds the signer against the
/// account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub enum SignedBy {
    /// By an ed25519 key, on [`Body::signing_bytes`].
    Key {
        /// The key.
        signer: PublicKey,
        /// Its signature.
        signature: Signature,
    },
    /// By the secp256k1 key of the account's address, on [`TypedData::hash`].
    TypedData {
        /// The network that the wallet signed for.
        network: Digest,
        /// Its signature.
        signature: WalletSignature,
    },
}

/// The digest of a transaction's body and its signer: the same request signed twice by one key is the same transaction.
pub type TransactionId = Digest;

/// What no ledger could accept, found by looking at the transaction alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// An amount of zero.
    #[error("the amount is zero")]
    ZeroAmount,
    /// An amount above [`MAX_ISSUED`].
    #[error("the amount exceeds 9223372036854775807, the most of an asset that can exist")]
    AmountTooLarge,
    /// An offer whose two assets are one.
    #[error("the offer sells and buys the same asset")]
    SameAsset,
    /// A payment to oneself.
    #[error("the payment goes to its own sender")]
    SelfPayment,
    /// An address that is not that of the key it is registered under.
    #[error("the address is not that of the key: a new account's address is the hash of its key")]
    AddressNotOfKey,
    /// A validator's network address that is none.
    #[error("the network address is not host:port, such as a.example:9100, of at most 260 printable characters")]
    NetworkAddress,
    /// A post about the payment lane that is too long.
    #[error("the post about the payment lane has more than 131072 bytes")]
    LanePostTooLong,
}

impl Body {
    /// The bytes that the account signs, for the network of this identity. A network that was restarted and its
    /// predecessor, or two of one chain number, share no signature.
    pub fn signing_bytes(&self, network: &Digest) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(192);
        bytes.extend_from_slice(SIGNING_TAG);
        bytes.extend_from_slice(&network.0);
        self.serialize(&mut bytes).expect("writing to memory cannot fail");
        bytes
    }

    /// Signs with `key`, for a network.
    pub fn sign(self, network: &Digest, key: &SecretKey) -> Transaction {
        let signature = key.sign(&self.signing_bytes(network));
        Transaction::by_key(self, key.public(), signature)
    }

    /// Signs with the key of a wallet, for a network.
    pub fn sign_typed(self, network: Digest, key: &WalletKey) -> Transaction {
        let signature = key.sign(&TypedData::of(&self).hash(self.chain, &network));
        Transaction { body: self, signed_by: SignedBy::TypedData { network, signature } }
    }
}

impl Operation {
    /// The asset and the units that this takes from the sender's available balance.
    pub fn debit(&self) -> Option<(AssetId, Amount)> {
        match *self {
            Operation::CreateOffer { sell, amount, .. } => Some((sell, amount)),
            Operation::Pay { asset, amount, .. }
            | Operation::Burn { asset, amount }
            | Operation::Withdraw { asset, amount, .. } => Some((asset, amount)),
            Operation::Stake(ref stake) => Some((AssetId(0), stake.units)),
            Operation::CreateAccount { .. }
            | Operation::CancelOffer { .. }
            | Operation::Issue { .. }
            | Operation::Unstake { .. }
            | Operation::Accuse(_)
            | Operation::Lane(_) => None,
        }
    }

    /// The assets named, for the test that they exist.
    pub fn assets(&self) -> [Option<AssetId>; 2] {
        match *self {
            Operation::CreateOffer { sell, buy, .. } | Operation::CancelOffer { sell, buy, .. } => {
                [Some(sell), Some(buy)]
            }
            Operation::Pay { asset, .. }
            | Operation::Issue { asset, .. }
            | Operation::Burn { asset, .. }
            | Operation::Withdraw { asset, .. } => [Some(asset), None],
            Operation::CreateAccount { .. }
            | Operation::Stake(_)
            | Operation::Unstake { .. }
            | Operation::Accuse(_)
            | Operation::Lane(_) => [None, None],
        }
    }

    fn amount(&self) -> Option<Amount> {
        match *self {
            Operation::CreateOffer { amount, .. }
            | Operation::Pay { amount, .. }
            | Operation::Issue { amount, .. }
            | Operation::Burn { amount, .. }
            | Operation::Withdraw { amount, .. }
            | Operation::Unstake { units: amount } => Some(amount),
            Operation::CreateAccount { .. }
            | Operation::CancelOffer { .. }
            | Operation::Stake(_)
            | Operation::Accuse(_)
            | Operation::Lane(_) => None,
        }
    }

    /// The field's name for this operation.
    pub fn name(&self) -> &'static str {
        match self {
            Operation::CreateAccount { .. } => "create_account",
            Operation::CreateOffer { .. } => "create_offer",
            Operation::CancelOffer { .. } => "cancel_offer",
            Operation::Pay { .. } => "pay",
            Operation::Issue { .. } => "issue",
            Operation::Burn { .. } => "burn",
            Operation::Stake(_) => "stake",
            Operation::Unstake { .. } => "unstake",
            Operation::Accuse(_) => "accuse",
            Operation::Withdraw { .. } => "withdraw",
            Operation::Lane(_) => "lane",
        }
    }
}

impl Transaction {
    /// With the signature of an ed25519 key.
    pub fn by_key(body: Body, signer: PublicKey, signature: Signature) -> Transaction {
        Transaction { body, signed_by: SignedBy::Key { signer, signature } }
    }

    /// The id by which receipts and clients name this transaction. The signature is no part of it, since a signer can
    /// make many for one body; so an id names what was asked for only once the signature is known to be valid.
    pub fn id(&self) -> TransactionId {
        let mut bytes = Vec::with_capacity(192);
        self.body.serialize(&mut bytes).expect("writing to memory cannot fail");
        let (context, signer) = match &self.signed_by {
            SignedBy::Key { signer, .. } => (ID_CONTEXT, &signer.0),
            SignedBy::TypedData { network, .. } => (TYPED_ID_CONTEXT, &network.0),
        };
        bytes.extend_from_slice(signer);
        Digest::of(context, &bytes)
    }

    /// Whether the signature is valid in the network of this identity; [`verify_transactions`] is faster for many.
    /// Typed data names its network, and the filter holds that against its own.
    pub fn is_signed(&self, network: &Digest) -> bool {
        match &self.signed_by {
            SignedBy::Key { signer, signature } => signer.verify(&self.body.signing_bytes(network), signature),
            SignedBy::TypedData { network, signature } => {
                let hash = TypedData::of(&self.body).hash(self.body.chain, network);
                signature.recover(&hash) == Some(self.body.account)
            }
        }
    }

    /// Checks what needs no ledger and no signature.
    ///
    /// # Errors
    /// [`Malformed`] says which rule is broken.
    pub fn check(&self) -> Result<(), Malformed> {
        match self.body.operation.amount() {
            Some(0) => return Err(Malformed::ZeroAmount),
            Some(amount) if amount > MAX_ISSUED => return Err(Malformed::AmountTooLarge),
            _ => {}
        }
        match &self.body.operation {
            Operation::CreateOffer { sell, buy, .. } | Operation::CancelOffer { sell, buy, .. } if sell == buy => {
                Err(Malformed::SameAsset)
            }
            Operation::Pay { to, .. } if *to == self.body.account => Err(Malformed::SelfPayment),
            Operation::CreateAccount { account, key } if *account != self.body.account && key.address() != *account => {
                Err(Malformed::AddressNotOfKey)
            }
            Operation::Stake(stake) if stake.units > MAX_ISSUED => Err(Malformed::AmountTooLarge),
            Operation::Lane(bytes) if bytes.len() > LANE_POST_BYTES_MAX => Err(Malformed::LanePostTooLong),
            Operation::Stake(stake) if !is_network_address(&stake.address) => Err(Malformed::NetworkAddress),
            _ => Ok(()),
        }
    }
}

/// A transaction that an ed25519 key signed.
struct ByKey<'t> {
    network: &'t Digest,
    body: &'t Body,
    signer: PublicKey,
    signature: Signature,
}

impl Signed for ByKey<'_> {
    fn signature(&self) -> (PublicKey, Signature) {
        (self.signer, self.signature)
    }

    fn signed_bytes(&self) -> Vec<u8> {
        self.body.signing_bytes(self.network)
    }
}

/// Checks the signature of each transaction for a network, on all threads of the current rayon pool; `true` where it is
/// valid. Ed25519 signatures are checked in batches, those on typed data one by one.
pub fn verify_transactions<T: Borrow<Transaction> + Sync>(network: &Digest, transactions: &[T]) -> Vec<bool> {
    let transactions = || transactions.iter().map(Borrow::borrow);
    let by_key = |transaction: &'_ Transaction| match transaction.signed_by {
        SignedBy::Key { signer, signature } => Some((signer, signature)),
        SignedBy::TypedData { .. } => None,
    };
    let keyed: Vec<ByKey> = transactions()
        .filter_map(|one| by_key(one).map(|(signer, signature)| ByKey { network, body: &one.body, signer, signature }))
        .collect();
    let typed: Vec<&Transaction> = transactions().filter(|one| by_key(one).is_none()).collect();
    let check_typed = || typed.par_iter().map(|one| one.is_signed(network)).collect::<Vec<bool>>();
    let (keyed, typed) = rayon::join(|| verify_all(&keyed), check_typed);
    let (mut keyed, mut typed) = (keyed.into_iter(), typed.into_iter());
    let mut next = |one| if by_key(one).is_some() { keyed.next() } else { typed.next() };
    transactions().map(|one| next(one).expect("one for each transaction")).collect()
}
