//! The basic types of Walras that all other crates use: amounts, prices, ids, keys, hashes, signed transactions,
//! blocks, and the one wire codec.
//!
//! **The codec** is Borsh: integers are little-endian and of fixed width, sequences follow a 32-bit count,
//! enumerations follow a byte, nothing is optional and no bytes are left over, so that a value has one encoding and
//! an encoding one value. Prices are the one exception in byte order: big-endian, as in the tries. Data that is
//! stored or sent as a whole (blocks, sub-blocks, receipts, snapshots) begins with a byte that is the version of its
//! format.

mod amount;
mod block;
mod consents;
mod control;
mod duty;
mod envelope;
mod exact;
mod format;
mod hash;
mod height;
mod key;
mod keys;
mod listing;
mod login;
mod malformed;
pub mod merkle;
mod offer;
pub mod operations;
mod pool;
mod price;
mod proposal;
mod reference;
mod scientific;
mod sealed;
mod sequence;
mod session;
mod signed;
mod signer;
mod signing;
mod statement;
mod transaction;
mod typed_data;
mod upgrade;
pub mod venue;
mod wallet;

pub use amount::{Amount, AssetId, Fraction, FractionError, MAX_ISSUED, UnitsError, format_units, parse_units};
pub use block::{OPENING_KEY_BYTES, SubBlock, Superblock};
pub use consents::{AskedChange, policy_salt};
pub use control::{
    ASSET_CONTROLS, AssetControl, AssetControlError, HOLDER_STATES, HolderRecovery, HolderState, RULES_OF_CONTROLS,
};
pub use duty::{LANE_DUTY, RULES_OF_SEALS, SEAL_POST_BYTES_MAX, is_lane_duty};
pub use envelope::{
    BoxSize, Enclosure, EnvelopeBytes, EnvelopeName, RULES_OF_ENVELOPES, SEALED_AHEAD_MAX, SEALED_POINT_BYTES,
    SEALED_WEIGHT,
};
pub use exact::ExactSide;
pub use format::{read_format, write_format};
pub use hash::{Digest, HexError, from_hex, keccak256, to_hex};
pub use height::Height;
pub use key::{Address, AddressError, PublicKey, SecretKey, Signature, Signed, verify_all};
pub use keys::{
    CHANGE_SIGNATURES_MAX, ChangedBy, GUARDIANS_MAX, KEY_WEIGHT, KEYS_DELAY_MAX, KeyHolder, KeyPolicy, KeySignature,
    KeySignatures, KeySigner, KeysChange, PolicySigned, RULES_OF_KEYS, RecoverKeys, SIGNERS_MAX, SessionsFate, SetKeys,
    SignedByWallet, WalletSigner,
};
pub use listing::{AssetListing, Closing, DECIMALS_MAX, LISTED_SYMBOL_MAX, LISTING_FEES_MAX, RULES_OF_LISTINGS};
pub use login::login_bytes;
pub use malformed::Malformed;
pub use offer::{CANCELS_MAX, ClientId, Life, LifeError, OfferPlace, OfferReplacement};
pub use pool::{PoolKey, PoolOperation};
pub use price::{Price, PriceError};
pub use proposal::{
    LANE_DEPOSITS, LaneAssetTerms, PARAMETERS, PROPOSAL_WEIGHT, Parameter, PlainListing, ProposalWord, ProposedChange,
    RULES_OF_LANE_TERMS, RULES_OF_PROPOSALS,
};
pub use reference::{
    REFERENCE_KINDS, REFERENCE_RULES, REFERENCE_TEXT_MAX, Reference, ReferenceError, ReferenceKind, ReferenceRule,
};
pub use scientific::plain_decimal;
pub use sealed::{SEALED_DATA_NAME, verify_sealed};
pub use sequence::Sequence;
pub use session::{
    SESSION_CAPS_MAX, SESSION_NUMBER_BITS, SESSION_SLOTS_MAX, SESSION_WEIGHT, SessionCap, SessionOperation,
    SessionScope, SessionSlot, SessionTerms, number_in_slot, session_possession_bytes, slot_of, slot_sequence,
};
pub use signer::{Signer, SigningError, ValidatorPost, ValidatorSays};
pub use signing::{verify_transactions, verify_unknown};
pub use statement::{
    Committed, Contradiction, Evidence, Proposed, RoundProposed, RoundValue, RoundVoted, Scope, Signable,
    SigningRequest, Stake, VoteKind, is_network_address, link_key,
};
pub use transaction::{
    Body, EXACT_WEIGHT, LANE_POST_BYTES_MAX, Operation, POOL_WEIGHT, SignedBy, Transaction, TransactionId, UNTIL_USUAL,
    WEIGHT_BYTES,
};
pub use typed_data::{TYPED_DATA_NAME, TYPED_DATA_VERSION, TypedData, TypedList, TypedValue};
pub use upgrade::Upgrade;
pub use wallet::{WalletKey, WalletSignature, WalletSignatureError};
