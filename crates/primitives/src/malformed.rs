//! What is wrong with a transaction by itself.

/// Faults for which every ledger refuses a transaction, found by looking only at the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The amount is zero.
    ZeroAmount,
    /// The amount is above [`crate::MAX_ISSUED`].
    AmountTooLarge,
    /// The offer sells and buys the same asset.
    SameAsset,
    /// The cancel does not name 1 to [`crate::CANCELS_MAX`] different offers.
    CancelList,
    /// The payment goes to its own sender.
    SelfPayment,
    /// The address is not the hash of the key it is registered under.
    AddressNotOfKey,
    /// The network address of a validator is malformed.
    NetworkAddress,
    /// A pool does not name the lower asset first.
    PoolAssets,
    /// The post about the payment lane is too long.
    LanePostTooLong,
    /// The terms of a session key are out of bounds.
    SessionTerms,
    /// The bytes of an operation at a venue are out of bounds; [`crate::venue::Settle::check`] names those of a settle.
    VenueBounds,
    /// A presence has another number than 0.
    PresenceNumber,
    /// The reference of a payment is not of its kind.
    Reference,
    /// A policy of keys is out of bounds.
    KeyPolicy,
    /// Signatures of several keys are too many, none, out of order, or several of one key.
    KeySignatures,
    /// The terms of a listing are out of bounds.
    AssetTerms,
    /// A post about the sealing key is too long, or has another number than 0.
    SealPost,
    /// An envelope is not signed by an ed25519 key alone.
    EnvelopeSigner,
}

impl Malformed {
    /// The reason as a sentence.
    pub const fn text(self) -> &'static str {
        match self {
            Malformed::ZeroAmount => "the amount is zero",
            Malformed::AmountTooLarge => "the amount exceeds 9223372036854775807, the most of an asset that can exist",
            Malformed::SameAsset => "the offer sells and buys the same asset",
            Malformed::CancelList => "a cancel names 1 to 32 offers, each once",
            Malformed::SelfPayment => "the payment goes to its own sender",
            Malformed::AddressNotOfKey => {
                "the address is not that of the key: a new account's address is the hash of its key"
            }
            Malformed::NetworkAddress => {
                "the network address is not host:port, such as a.example:9100, of at most 260 printable characters"
            }
            Malformed::PoolAssets => "a pool is between two assets and names that with the lower number first",
            Malformed::LanePostTooLong => "the post about the payment lane has more than 131072 bytes",
            Malformed::SessionTerms => {
                "a session key has a slot from 1 to 1048575, `alive` up to `until`, and at most 8 caps by rising asset"
            }
            Malformed::VenueBounds => {
                "the operation at a venue is out of bounds: a settle, a mandate or evidence that its bytes alone refute"
            }
            Malformed::PresenceNumber => "a validator's presence takes no sequence number: give 0",
            Malformed::Reference => {
                "a reference is 1 to 35 printable ASCII characters of text, or 16 bytes of a UUID, 32 of a message's \
                 hash, 8 of a number"
            }
            Malformed::KeyPolicy => {
                "a policy has 1 to 16 signers by rising key, each of a weight from 1 to 255, 1 <= move <= govern <= all \
                 weights, at most 8 guardians by rising key with their number, and a delay of at most 1048576 heights"
            }
            Malformed::KeySignatures => {
                "signatures stand by rising key, one of each signer: 1 to 16 on a request, to 32 on a change of keys"
            }
            Malformed::AssetTerms => {
                "a listing has a symbol of 1 to 6 letters, digits, - or _ that begins with a letter, at most 18 \
                 decimals, least_units and supply_max from 1 to 9223372036854775807, and at most 1099511627776 fees"
            }
            Malformed::SealPost => {
                "a post about the sealing key takes no sequence number, which is 0, and has at most 4096 bytes"
            }
            Malformed::EnvelopeSigner => {
                "an envelope is signed by one ed25519 key: that of the account, or a session key that trades for it"
            }
        }
    }
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Malformed {}
