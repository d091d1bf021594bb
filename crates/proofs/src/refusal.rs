//! Why a transaction has no effect: one code and one sentence for each reason.
//!
//! The reasons of each place of custody are a table in `refusals`; the ones here are about the transaction itself, and
//! about what is issued. When a transaction is refused is the ledger's rule; here is only how that is told and proved.
//! A reason is a pair of numbers, the tag of its place and its number there, so that a new place or a new reason
//! changes no other one.

use borsh::BorshSerialize;
use primitives::Malformed;

use crate::root_parts::RootPart;
use crate::window::WindowError;

/// Why a transaction is refused, when it is submitted or by the filter of a block.
///
/// Some reasons are found by looking at one transaction and the state before the block, others by looking at all
/// transactions of the block together (SPEEDEX §8 and appendix I).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize)]
pub struct Refusal {
    place: u8,
    number: u8,
}

/// What is known of a reason; its position in the table of its place is its number.
#[derive(Clone, Copy)]
pub(crate) struct Reason {
    /// Whether a correct proposer never includes the transaction.
    pub is_invalid: bool,
    pub code: &'static str,
    pub text: &'static str,
}

/// Declares the reasons of a place: constants of [`Refusal`], and the table `REASONS`. A reason is `invalid` if a
/// correct proposer never includes the transaction, since it is malformed, forged, or invalid by rules that never
/// change on a chain.
macro_rules! refusals {
    ($tag:expr => $($(#[$doc:meta])* $NAME:ident: $kind:ident, $code:literal, $text:expr;)*) => {
        impl Refusal {
            $($(#[$doc])* pub const $NAME: Refusal = Refusal::of($tag, Number::$NAME as u8);)*
        }

        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "the names of the constants")]
        enum Number { $($NAME,)* }

        pub(crate) const REASONS: &[Reason] = &[$(Reason { is_invalid: invalid!($kind), code: $code, text: $text },)*];
    };
}

macro_rules! invalid {
    (invalid) => {
        true
    };
    (refused) => {
        false
    };
}

pub(crate) use {invalid, refusals};

refusals! {
    RootPart::ASSETS =>
    /// The signature is not one by the signer over this body for this network.
    BAD_SIGNATURE: invalid, "bad_signature",
        "the signature is not the signer's, or is for another network; see `network` at /v1/limits";
    /// The transaction is signed for another chain.
    WRONG_CHAIN: invalid, "wrong_chain",
        "the transaction is for another chain; see `chain` under /v1/limits";
    /// The transaction is beyond the quota of its sub-block.
    OVER_QUOTA: refused, "over_quota",
        "the sub-block is over its quota of such operations (stakes, accusations, listings, lane posts, ends of session \
         keys, freezes): send it again";
    /// The transaction ended below the height of the block.
    ENDED: refused, "ended",
        "the transaction has ended: its last height (`until`) is past; sign it again with a later one";
    /// The transaction ends too late.
    ENDS_TOO_LATE: refused, "ends_too_late",
        "the transaction ends too late: `until` is further ahead than `until_max` of /v1/limits permits";
    /// The same transaction is in the block more than once; one copy counts.
    DUPLICATE: refused, "duplicate",
        "the same transaction is already in the block";
    /// The asset does not exist.
    UNKNOWN_ASSET: invalid, "unknown_asset",
        "no asset has this number; /v1/assets lists them";
    /// The amount is zero.
    ZERO_AMOUNT: invalid, "zero_amount",
        Malformed::ZeroAmount.text();
    /// The amount is above 2^63 − 1.
    AMOUNT_TOO_LARGE: invalid, "amount_too_large",
        Malformed::AmountTooLarge.text();
    /// An account other than the issuer issues or burns the asset.
    NOT_ISSUER: invalid, "not_issuer",
        "only the asset's issuer can issue, burn or close it";
    /// The block's issues of the asset would exceed the cap.
    ISSUE_TOO_LARGE: refused, "issue_too_large",
        "the block's issues of this asset would take it above the most that may exist, which is 9223372036854775807 \
         units or the `supply_max` of its listing; all of them are removed";
    /// The transaction alone exceeds a sub-block, or a quota of one.
    LARGER_THAN_SUB_BLOCK: refused, "larger_than_sub_block",
        "no sub-block of this network has room for the transaction, or it alone exceeds a quota of one (a member's \
         duty has half of the bytes); see `consensus.sub_block_bytes` in the genesis: split it";
    /// An envelope is not signed by an ed25519 key alone.
    ENVELOPE_SIGNER: invalid, "envelope_signer",
        Malformed::EnvelopeSigner.text();
    /// The envelope, or an operation in it, ends too late.
    SEALED_TOO_LATE: refused, "sealed_too_late",
        "an envelope, and what is in it, ends at most 256 heights ahead: seal again with an earlier `until`";
    /// The key that the envelope is sealed to is not in force.
    SEALED_KEY: refused, "sealed_key",
        "the committee's key that the envelope names is not in force: seal again to one of those that are";
    /// An envelope with this name was opened at an earlier height.
    NAME_OPENED: refused, "name_opened",
        "an envelope of this signer, payer and number was opened before: take the next free number";
    /// An envelope may not hold the operation.
    NOT_SEALABLE: refused, "not_sealable",
        "an envelope holds offers, exact orders, replacements and cancels, each signed by one key for this envelope";
    /// As many envelopes of the payer wait as a pool holds of one.
    ENVELOPES_WAIT: refused, "envelopes_wait",
        "four envelopes of this payer wait in this pool, and it holds no more of one: put up to 32 orders into each, \
         wait for a block, or pay from another account";
}

impl Refusal {
    pub(crate) const fn of(place: u8, number: u8) -> Refusal {
        Refusal { place, number }
    }

    pub(crate) const fn place(self) -> u8 {
        self.place
    }

    pub(crate) const fn number(self) -> u8 {
        self.number
    }
}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Refusal {
        match malformed {
            Malformed::ZeroAmount => Refusal::ZERO_AMOUNT,
            Malformed::AmountTooLarge => Refusal::AMOUNT_TOO_LARGE,
            Malformed::SameAsset => Refusal::SAME_ASSET,
            Malformed::CancelList => Refusal::CANCEL_LIST,
            Malformed::SelfPayment => Refusal::SELF_PAYMENT,
            Malformed::AddressNotOfKey => Refusal::ADDRESS_NOT_OF_KEY,
            Malformed::NetworkAddress => Refusal::NETWORK_ADDRESS,
            Malformed::PoolAssets => Refusal::POOL_ASSETS,
            Malformed::LanePostTooLong => Refusal::LANE_POST_TOO_LONG,
            Malformed::VenueBounds => Refusal::VENUE_BOUNDS,
            Malformed::PresenceNumber => Refusal::PRESENCE_NUMBER,
            Malformed::SessionTerms => Refusal::SESSION_TERMS,
            Malformed::Reference => Refusal::REFERENCE,
            Malformed::KeyPolicy => Refusal::KEY_POLICY,
            Malformed::KeySignatures => Refusal::KEY_SIGNATURES,
            Malformed::AssetTerms => Refusal::ASSET_TERMS,
            Malformed::SealPost => Refusal::SEAL_POST,
            Malformed::EnvelopeSigner => Refusal::ENVELOPE_SIGNER,
        }
    }
}

impl From<WindowError> for Refusal {
    fn from(error: WindowError) -> Refusal {
        match error {
            WindowError::Used => Refusal::SEQUENCE_USED,
            WindowError::TooOld => Refusal::SEQUENCE_TOO_OLD,
            WindowError::TooFar => Refusal::SEQUENCE_TOO_FAR,
        }
    }
}
