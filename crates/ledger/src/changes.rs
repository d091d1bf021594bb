//! What a block changed, as input for the tries. It is taken while the values do not change, so that hashing the
//! tries can continue while the next block is applied. Accounts are given by the digests of their states, offers by
//! place and amount.

use std::sync::LazyLock;

use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};
use primitives::{Amount, Digest};

use crate::genesis::Asset;
use crate::places::accounts::{Account, AccountState};
use crate::places::bridge::BridgeChange;
use crate::places::offers::{Edit, Pair, Place};

const ACCOUNT_CONTEXT: &str = "walras 2026 account state v2";
const ASSET_CONTEXT: &str = "walras 2026 asset state v1";

type ValueDigest = [u8; 32];
/// Accounts with the digests of their states, by address.
pub(crate) type AccountDigests = Vec<([u8; 20], Option<ValueDigest>)>;

/// The entries of a block for the tries, each list sorted by key.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Accounts that changed.
    pub accounts: Vec<([u8; 20], Option<ValueDigest>)>,
    /// Offers that changed, by pair.
    pub pairs: Vec<PairChange>,
    /// All assets.
    pub assets: Vec<(u32, ValueDigest)>,
    /// The registry of validators.
    pub validators: Digest,
    /// Slots of contracts that changed: account and slot, with the value if it is not zero.
    pub slots: Vec<([u8; 52], Option<ValueDigest>)>,
    /// What contracts see besides accounts and storage; `None` on a chain without them.
    pub contracts: Option<Digest>,
    /// The bridge to the payment lane; `None` on a chain without one.
    pub bridge: Option<BridgeChange>,
}

/// The offers of one pair that changed. Offers that were placed and fully executed in the same block are not
/// included.
#[derive(Clone, Debug)]
pub struct PairChange {
    /// The pair.
    pub pair: Pair,
    /// Every offer up to and including this place leaves, most of them as whole subtrees; then the edits are applied.
    pub through: Option<Place>,
    /// Offers that are added, changed or removed, by place.
    pub edits: Vec<Edit>,
}

/// A context for hashing many values: the context itself is hashed once.
struct Context(LazyLock<ContextKey>);

impl Context {
    const fn new(of: fn() -> ContextKey) -> Context {
        Context(LazyLock::new(of))
    }

    fn digest(&self, bytes: &[u8]) -> ValueDigest {
        blake3::Hasher::new_from_context_key(&self.0).update(bytes).finalize().into()
    }
}

static ACCOUNT: Context = Context::new(|| hash_derive_key_context(ACCOUNT_CONTEXT));

/// The digest of an account's present state; `room` is overwritten.
pub(crate) fn account_digest(account: &Account, room: &mut Vec<u8>) -> ValueDigest {
    room.clear();
    account.write_state(room);
    ACCOUNT.digest(room)
}

/// The digest of an account in the account trie.
pub fn account_state_digest(state: &AccountState) -> ValueDigest {
    ACCOUNT.digest(&borsh::to_vec(state).expect("writing to memory cannot fail"))
}

/// The value of an offer in the trie of its pair: its amount. The key is its place.
pub fn offer_value(amount: Amount) -> [u8; 8] {
    amount.to_le_bytes()
}

/// The digest of an asset in the trie of assets.
pub fn asset_digest(asset: &Asset) -> ValueDigest {
    blake3::derive_key(ASSET_CONTEXT, &borsh::to_vec(asset).expect("writing to memory cannot fail"))
}
