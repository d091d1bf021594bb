//! Why a transaction has no effect: one code and one sentence for each reason.
//!
//! A reason stands with the place of custody that gives it; the ones here are about the transaction itself, and about
//! what is issued. A reason is a pair of numbers, the tag of its place and its number there, so that a new place or a
//! new reason changes no other one.

use std::fmt::{Debug, Display, Formatter, Result as FmtResult};
use std::io::{Error, ErrorKind, Read, Result as IoResult};

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Malformed;

use crate::places::accounts::WindowError;
use crate::places::{CHAIN, Places};

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
    CHAIN =>
    /// The signature is not one by the signer over this body for this network.
    BAD_SIGNATURE: invalid, "bad_signature",
        "the signature is not the signer's, or is for another network; see `network` at /v1/limits";
    /// The transaction is signed for another chain.
    WRONG_CHAIN: invalid, "wrong_chain",
        "the transaction is for another chain; see `chain` under /v1/limits";
    /// The transaction is beyond the quota of its sub-block.
    OVER_QUOTA: refused, "over_quota",
        "the sub-block is over its quota of stakes, accusations or lane posts: send it again";
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
        "only the asset's issuer can issue or burn it";
    /// The block's issues of the asset would exceed the cap.
    ISSUE_TOO_LARGE: refused, "issue_too_large",
        "the block's issues of this asset would take it above 9223372036854775807 units; all of them are removed";
}

impl Refusal {
    pub(crate) const fn of(place: u8, number: u8) -> Refusal {
        Refusal { place, number }
    }

    fn reason(self) -> &'static Reason {
        self.known().expect("reasons are made from the tables, and others are not decoded")
    }

    fn known(self) -> Option<&'static Reason> {
        let table = if self.place == CHAIN { REASONS } else { Places::reasons(self.place) };
        table.get(usize::from(self.number))
    }

    /// Whether a correct proposer never includes the transaction: it is malformed, forged, or invalid by rules that
    /// never change on a chain. A sub-block with such a transaction earns no reward.
    pub(crate) fn is_false(self) -> bool {
        self.reason().is_invalid
    }

    /// The code by which programs recognize the reason.
    pub fn code(self) -> &'static str {
        self.reason().code
    }
}

impl BorshDeserialize for Refusal {
    fn deserialize_reader<R: Read>(from: &mut R) -> IoResult<Refusal> {
        let (place, number) = BorshDeserialize::deserialize_reader(from)?;
        let refusal = Refusal { place, number };
        let unknown = || Error::new(ErrorKind::InvalidData, "a transaction is refused for an unknown reason");
        refusal.known().map(|_| refusal).ok_or_else(unknown)
    }
}

impl Display for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(self.reason().text)
    }
}

impl Debug for Refusal {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str(self.reason().code)
    }
}

impl std::error::Error for Refusal {}

impl From<Malformed> for Refusal {
    fn from(malformed: Malformed) -> Refusal {
        match malformed {
            Malformed::ZeroAmount => Refusal::ZERO_AMOUNT,
            Malformed::AmountTooLarge => Refusal::AMOUNT_TOO_LARGE,
            Malformed::SameAsset => Refusal::SAME_ASSET,
            Malformed::SelfPayment => Refusal::SELF_PAYMENT,
            Malformed::AddressNotOfKey => Refusal::ADDRESS_NOT_OF_KEY,
            Malformed::NetworkAddress => Refusal::NETWORK_ADDRESS,
            Malformed::LanePostTooLong => Refusal::LANE_POST_TOO_LONG,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// All reasons, by place and number.
    fn all() -> Vec<Refusal> {
        let of_place = |place| (0..=u8::MAX).map(move |number| Refusal { place, number });
        (0..=u8::MAX).flat_map(of_place).filter(|refusal| refusal.known().is_some()).collect()
    }

    #[test]
    fn codes_of_refusals_are_unique_and_each_is_decoded_from_its_own_bytes() {
        let mut codes: Vec<&str> = all().into_iter().map(Refusal::code).collect();
        codes.sort_unstable();
        assert!(codes.len() >= 60 && codes.windows(2).all(|two| two[0] != two[1]), "{codes:?}");
        for refusal in all() {
            let bytes = borsh::to_vec(&refusal).expect("encodes");
            assert_eq!((bytes.len(), borsh::from_slice::<Refusal>(&bytes).expect("known")), (2, refusal));
            assert!(!refusal.to_string().is_empty());
        }
    }

    #[test]
    fn a_refusal_for_an_unknown_reason_is_not_decoded() {
        for bytes in [[CHAIN, REASONS.len() as u8], [3, 0], [254, 0], [255, 255]] {
            assert!(borsh::from_slice::<Refusal>(&bytes).is_err(), "{bytes:?}");
        }
    }
}
