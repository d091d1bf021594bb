//! What is known of a reason: its code, its sentence, and whether a correct proposer includes such a transaction.

use std::fmt::{Debug, Display, Formatter, Result as FmtResult};
use std::io::{Error, ErrorKind, Read, Result as IoResult};

use borsh::BorshDeserialize;

use crate::refusal::{Reason, Refusal};
use crate::refusals::of_place;

impl Refusal {
    /// All reasons, by place and number.
    pub fn all() -> impl Iterator<Item = Refusal> {
        let numbers = |place: u8| (0..of_place(place).len()).map(move |number| Refusal::of(place, number as u8));
        (0..=u8::MAX).flat_map(numbers)
    }

    fn reason(self) -> &'static Reason {
        self.known().expect("reasons are made from the tables, and others are not decoded")
    }

    fn known(self) -> Option<&'static Reason> {
        of_place(self.place()).get(usize::from(self.number()))
    }

    /// Whether a correct proposer never includes the transaction: it is malformed, forged, or invalid by rules that
    /// never change on a chain. A sub-block with such a transaction earns no reward.
    pub fn is_false(self) -> bool {
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
        let refusal = Refusal::of(place, number);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::REASONS;

    /// All reasons, by place and number.
    fn all() -> Vec<Refusal> {
        let of_place = |place| (0..=u8::MAX).map(move |number| Refusal::of(place, number));
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
        for bytes in [[0, REASONS.len() as u8], [3, 0], [254, 0], [255, 255]] {
            assert!(borsh::from_slice::<Refusal>(&bytes).is_err(), "{bytes:?}");
        }
    }
}
