//! The committee's sealing key, as it is proved: who seals orders encrypts them to it.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Digest, Height};

use crate::Committee;
use crate::root_parts::{ProofFault, RootPart, RootParts};

const ROOT_CONTEXT: &str = "walras 2026 seals root v1";

/// How many seats open an envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum SealThreshold {
    /// One more than may be faulty; a quorum where none may be.
    Fewest,
    /// A quorum. Then a seat that does not take part may leave the committee without a key.
    Quorum,
}

/// The terms of sealing keys, from the genesis on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SealTerms {
    /// How many seats open an envelope.
    pub threshold: SealThreshold,
}

impl SealTerms {
    /// The name of the threshold in files and answers.
    pub fn name(&self) -> &'static str {
        match self.threshold {
            SealThreshold::Fewest => "fewest",
            SealThreshold::Quorum => "quorum",
        }
    }

    /// The terms whose threshold has this name.
    pub fn named(name: &str) -> Option<SealTerms> {
        let all = [SealThreshold::Fewest, SealThreshold::Quorum].map(|threshold| SealTerms { threshold });
        all.into_iter().find(|terms| terms.name() == name)
    }

    /// How many shares of a committee of so many seats open an envelope, and how many seats must hold one: so many more
    /// that the faulty seats cannot keep the others from opening.
    pub fn shares(&self, seats: usize) -> (usize, usize) {
        let committee = Committee::new(seats);
        let needed = match self.threshold {
            SealThreshold::Fewest if committee.faulty > 0 => committee.faulty + 1,
            SealThreshold::Fewest | SealThreshold::Quorum => committee.echoes,
        };
        (needed, needed + committee.faulty)
    }
}

/// A seat that holds a share of a sealing key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SealHolder {
    /// The account of the seat.
    pub account: Address,
    /// Its place in the generation: its share is the value of the secret polynomial at this number plus one.
    pub place: u8,
    /// The key that its share signs under: a compressed point of G2.
    pub key: [u8; 96],
}

/// A sealing key, and who holds it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SealKeyRecord {
    /// Its number: that of the generation that made it.
    pub number: u64,
    /// The key that texts are sealed to: a compressed point of G2.
    pub group: [u8; 96],
    /// How many shares open an envelope.
    pub t: u8,
    /// How many holders it needs: with fewer it ends.
    pub least: u8,
    /// Who holds a share, by place.
    pub holders: Vec<SealHolder>,
    /// The first height whose envelopes it opens.
    pub from: Height,
    /// The last one; `u64::MAX` while none is known.
    pub last: Height,
}

impl SealKeyRecord {
    /// Whether it opens envelopes of a height.
    pub fn is_in_force(&self, height: Height) -> bool {
        (self.from..=self.last).contains(&height)
    }
}

/// What the part of the state root is the digest of.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SealsRecord {
    /// The terms.
    pub terms: SealTerms,
    /// The keys that are in force or will be: at most two, by number.
    pub keys: Vec<SealKeyRecord>,
    /// The digest of the generation in progress and of how the last one failed.
    pub board: Digest,
    /// The digest of the names of opened envelopes; zero while none is kept.
    pub names: Digest,
}

impl SealsRecord {
    /// The part of the state root.
    pub fn root(&self) -> Digest {
        Digest::of(ROOT_CONTEXT, &borsh::to_vec(self).expect("writing to memory cannot fail"))
    }

    /// The newest key that opens envelopes of a height: clients seal to it.
    pub fn in_force(&self, height: Height) -> Option<&SealKeyRecord> {
        self.keys.iter().rev().find(|key| key.is_in_force(height))
    }
}

/// A proof of the sealing keys.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SealsProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// What the part is the digest of; `None` proves that the chain has no sealing keys.
    pub record: Option<SealsRecord>,
}

impl SealsProof {
    /// Checks the proof against a state root; returns the record. Whoever seals requires a root that is not old: a
    /// committee of the past reads what is sealed to its key.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest) -> Result<Option<&SealsRecord>, ProofFault> {
        match (self.parts.part(root, RootPart::SEALS), &self.record) {
            (Err(ProofFault::NoPart(_)), None) => Ok(None),
            (Err(fault), _) => Err(fault),
            (Ok(part), Some(record)) if record.root() == part => Ok(Some(record)),
            (Ok(_), _) => Err(ProofFault::OtherValue),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> SealsRecord {
        let terms = SealTerms { threshold: SealThreshold::Fewest };
        let holders = vec![SealHolder { account: Address([1; 20]), place: 0, key: [2; 96] }];
        let key = |number, from, last| SealKeyRecord {
            number,
            group: [3; 96],
            t: 2,
            least: 3,
            holders: holders.clone(),
            from,
            last,
        };
        let keys = vec![key(1, 9, 300), key(4, 40, u64::MAX)];
        SealsRecord { terms, keys, board: Digest([4; 32]), names: Digest::default() }
    }

    fn parts(root: Option<Digest>) -> RootParts {
        let assets = RootPart { tag: RootPart::ASSETS, root: Digest([7; 32]) };
        let seals = root.map(|root| RootPart { tag: RootPart::SEALS, root });
        RootParts::new(std::iter::once(assets).chain(seals).collect())
    }

    #[test]
    fn a_changed_key_holder_height_board_or_name_is_not_what_is_proved() {
        let parts = parts(Some(record().root()));
        let verify = |record| SealsProof { parts: parts.clone(), record }.verify(&parts.root()).is_ok();
        assert!(verify(Some(record())));
        let mut others = vec![record(); 7];
        others[0].keys[1].group[0] ^= 1;
        others[1].keys[0].last = 301;
        others[2].keys[1].holders.clear();
        others[3].keys.pop();
        others[4].board = Digest([5; 32]);
        others[5].names = Digest([5; 32]);
        others[6].keys[1].t = 1;
        assert!(others.into_iter().all(|other| !verify(Some(other))));
        assert!(!verify(None), "a state with the part has keys to tell");
    }

    #[test]
    fn a_chain_without_the_part_has_no_keys_and_proves_none() {
        let without = parts(None);
        let verify = |record| SealsProof { parts: without.clone(), record }.verify(&without.root()).map(|_| ());
        assert_eq!(verify(None), Ok(()));
        assert_eq!(verify(Some(record())), Err(ProofFault::NoPart(RootPart::SEALS)));
        let of_other = SealsProof { parts: without.clone(), record: None }.verify(&Digest([1; 32])).map(|_| ());
        assert_eq!(of_other, Err(ProofFault::OtherRoot));
    }

    #[test]
    fn clients_seal_to_the_newest_key_in_force() {
        let record = record();
        let number = |height| record.in_force(height).map(|key| key.number);
        assert_eq!(
            [8, 9, 39, 40, 300, 301, u64::MAX].map(number),
            [None, Some(1), Some(1), Some(4), Some(4), Some(4), Some(4)]
        );
    }

    #[test]
    fn thresholds_of_every_committee_tolerate_what_may_be_faulty() {
        let shares = |name, seats| SealTerms::named(name).expect("a name").shares(seats);
        let fewest = [2, 3, 4, 5, 7, 32].map(|seats| shares("fewest", seats));
        assert_eq!(fewest, [(2, 2), (2, 2), (2, 3), (2, 3), (3, 5), (11, 21)]);
        let quorum = [2, 3, 4, 5, 7, 32].map(|seats| shares("quorum", seats));
        assert_eq!(quorum, [(2, 2), (2, 2), (3, 4), (4, 5), (5, 7), (22, 32)]);
        for seats in 4..=32 {
            let faulty = Committee::new(seats).faulty;
            let (needed, holders) = shares("fewest", seats);
            // The faulty seats neither open, nor lower, nor keep the others from holding enough shares.
            assert!(needed > faulty && holders <= seats - faulty && holders - faulty >= needed);
        }
    }
}
