//! The names of envelopes that were opened at the last heights: an envelope opens once.
//!
//! Upon the end of each block, the names that it opened are noted under its height, and those of heights too far back
//! are forgotten. An envelope ends at most [`SEALED_AHEAD_MAX`] heights above the block that holds it. So whoever keeps
//! its bytes cannot have them opened again: as long as they have not ended, their name is here.
//!
//! **Properties.** The record is a function of the chain's last heights alone: a ledger that has replayed them, and one
//! that was restored, have the same digest. A clone shares its memory. It has at most
//! [`SEALED_AHEAD_MAX`] · `ENVELOPES_MAX` names of 60 bytes, under one megabyte.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Digest, EnvelopeName, Height, SEALED_AHEAD_MAX};

const NAMES_CONTEXT: &str = "walras 2026 sealed names of a height v1";
const RECORD_CONTEXT: &str = "walras 2026 sealed names v1";

/// The names of a height, in order, and their digest.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamesOfHeight {
    names: Arc<[EnvelopeName]>,
    digest: Digest,
}

/// The names of the envelopes that were opened at the last [`SEALED_AHEAD_MAX`] heights.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenedNames {
    heights: BTreeMap<Height, NamesOfHeight>,
}

impl NamesOfHeight {
    fn of(mut names: Vec<EnvelopeName>) -> NamesOfHeight {
        names.sort_unstable();
        names.dedup();
        let digest = Digest::of(NAMES_CONTEXT, &borsh::to_vec(&names).expect("writing to memory cannot fail"));
        NamesOfHeight { names: names.into(), digest }
    }
}

impl OpenedNames {
    /// The height that has opened an envelope of this name.
    pub fn opened_at(&self, name: &EnvelopeName) -> Option<Height> {
        let mut having = self.heights.iter().filter(|(_, of_height)| of_height.names.binary_search(name).is_ok());
        having.next().map(|(height, _)| *height)
    }

    /// The block of a height has opened these, and the next height is judged from now on. Returns whether that changes
    /// the record.
    pub fn note(&mut self, height: Height, names: Vec<EnvelopeName>) -> bool {
        let before = self.heights.len();
        self.heights.retain(|of, _| of.saturating_add(SEALED_AHEAD_MAX) > height);
        let is_new = !names.is_empty();
        let has_forgotten = self.heights.len() < before;
        if is_new {
            self.heights.insert(height, NamesOfHeight::of(names));
        }
        is_new || has_forgotten
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.heights.values().map(|of_height| of_height.names.len()).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.heights.is_empty()
    }

    /// The digest of the record, which the state root has.
    pub fn digest(&self) -> Digest {
        let heights: Vec<(Height, Digest)> = self.heights.iter().map(|(height, of)| (*height, of.digest)).collect();
        Digest::of(RECORD_CONTEXT, &borsh::to_vec(&heights).expect("writing to memory cannot fail"))
    }
}

impl BorshSerialize for OpenedNames {
    fn serialize<W: Write>(&self, to: &mut W) -> Result<()> {
        (self.heights.len() as u32).serialize(to)?;
        self.heights.iter().try_for_each(|(height, of_height)| (height, &of_height.names[..]).serialize(to))
    }
}

impl BorshDeserialize for OpenedNames {
    /// Reads what [`BorshSerialize`] has written. Whoever restores a state compares the digest.
    fn deserialize_reader<R: Read>(from: &mut R) -> Result<OpenedNames> {
        let heights = Vec::<(Height, Vec<EnvelopeName>)>::deserialize_reader(from)?;
        let first = heights.first().map_or(0, |(height, _)| *height);
        let is_sound = heights.is_sorted_by(|one, next| one.0 < next.0)
            && heights.iter().all(|(height, names)| {
                height - first < SEALED_AHEAD_MAX && !names.is_empty() && names.is_sorted_by(|one, next| one < next)
            });
        if !is_sound {
            return Err(Error::new(ErrorKind::InvalidData, "names of envelopes are out of order, twice or too many"));
        }
        let heights = heights.into_iter().map(|(height, names)| (height, NamesOfHeight::of(names))).collect();
        Ok(OpenedNames { heights })
    }
}

#[cfg(test)]
mod tests {
    use primitives::{Address, Enclosure, PublicKey};

    use super::*;

    fn name(signer: u8, sequence: u64) -> EnvelopeName {
        EnvelopeName { signer: PublicKey([signer; 32]), enclosure: Enclosure { payer: Address([1; 20]), sequence } }
    }

    /// An envelope that ends as late as it may is refused at each height at which it has not ended.
    #[test]
    fn a_name_is_kept_until_its_envelope_has_ended() {
        let mut names = OpenedNames::default();
        names.note(10, vec![name(1, 1)]);
        for height in 11..=10 + SEALED_AHEAD_MAX {
            assert_eq!(names.opened_at(&name(1, 1)), Some(10), "at {height}");
            names.note(height, vec![name(2, height)]);
        }
        assert_eq!((names.opened_at(&name(1, 1)), names.len() as u64), (None, SEALED_AHEAD_MAX));
        names.note(11 + 2 * SEALED_AHEAD_MAX, Vec::new());
        assert_eq!(names, OpenedNames::default());
    }

    #[test]
    fn a_strangers_envelope_has_another_name() {
        let mut names = OpenedNames::default();
        names.note(10, vec![name(2, 1)]);
        assert_eq!((names.opened_at(&name(1, 1)), names.opened_at(&name(2, 2))), (None, None));
    }

    #[test]
    fn the_record_is_one_of_its_content() {
        let (mut one, mut other) = (OpenedNames::default(), OpenedNames::default());
        one.note(1, vec![name(9, 9)]);
        one.note(2 + SEALED_AHEAD_MAX, vec![name(1, 1), name(2, 1), name(1, 1)]);
        other.note(2 + SEALED_AHEAD_MAX, vec![name(2, 1), name(1, 1)]);
        assert_eq!((&one, one.digest()), (&other, other.digest()));
        let bytes = borsh::to_vec(&one).expect("memory");
        assert_eq!(borsh::from_slice::<OpenedNames>(&bytes).expect("its own bytes"), one);
        assert_ne!(one.digest(), OpenedNames::default().digest());
        let wrong: [Vec<(Height, Vec<EnvelopeName>)>; 5] = [
            vec![(5, vec![])],
            vec![(5, vec![name(2, 1), name(1, 1)])],
            vec![(5, vec![name(1, 1), name(1, 1)])],
            vec![(6, vec![name(1, 1)]), (5, vec![name(1, 1)])],
            vec![(5, vec![name(1, 1)]), (5 + SEALED_AHEAD_MAX, vec![name(2, 1)])],
        ];
        for wrong in wrong {
            let bytes = borsh::to_vec(&wrong).expect("memory");
            assert!(borsh::from_slice::<OpenedNames>(&bytes).is_err(), "{wrong:?}");
        }
    }
}
