//! What was signed, and that nothing else is signed in its place.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Digest, Height, PublicKey, SecretKey, Signature, SigningRequest};
use store::{Disk, StoreError, VoteLog, VoteOptions};

/// Heights below the highest one signed whose statements are kept. A validator works on a few dozen at a time.
pub const HEIGHTS_KEPT: u64 = 1_024;
/// Statements that are kept at most. Above, the lowest heights are given up.
pub const PLACES_MAX: usize = 200_000;

/// Where only one statement may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
struct Place {
    height: Height,
    network: Digest,
    kind: u8,
    round: u32,
}

/// A record of the log.
#[derive(BorshSerialize, BorshDeserialize)]
struct Record {
    place: Place,
    digest: Digest,
}

/// Why nothing was signed.
#[derive(Debug, thiserror::Error)]
pub enum GuardError {
    /// Another statement stands there.
    #[error(
        "another statement was signed at height {height} in this place: whoever asks has lost its vote log, or a second \
         node has this validator's signer; stop both and find out which"
    )]
    Contradiction {
        /// The height.
        height: Height,
    },
    /// What was signed so far below is not known any more.
    #[error("height {height} lies below {floor}: what was signed there is forgotten, and nothing more is signed there")]
    Below {
        /// The height.
        height: Height,
        /// The lowest height at which it signs.
        floor: Height,
    },
    /// The log.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record of the log that is none.
    #[error("the signer's log holds a record at height {0} that it did not write: put back the log that belongs here")]
    Undecodable(Height),
}

/// The key, and what it signed.
pub struct Guard<D: Disk> {
    key: SecretKey,
    log: VoteLog<D>,
    signed: BTreeMap<Place, Digest>,
    floor: Height,
}

impl<D: Disk> Guard<D> {
    /// Makes the log of a key that has never signed.
    ///
    /// # Errors
    /// [`StoreError::VotesExist`] if there is one; or of the disk.
    pub fn create(disk: D) -> Result<(), StoreError> {
        VoteLog::create(disk, VoteOptions::default()).map(drop)
    }

    /// A guard of this key that goes on where its log ends.
    ///
    /// # Errors
    /// [`StoreError::VotesLost`] if there is no log; or what is damaged.
    pub fn open(disk: D, key: SecretKey) -> Result<Guard<D>, GuardError> {
        let (log, found) = VoteLog::open(disk, VoteOptions::default())?;
        let mut signed = BTreeMap::new();
        for (height, bytes) in found.records.iter().flat_map(|(height, all)| all.iter().map(move |one| (*height, one)))
        {
            let Record { place, digest } = borsh::from_slice(bytes).map_err(|_| GuardError::Undecodable(height))?;
            signed.insert(place, digest);
        }
        Ok(Guard { key, log, signed, floor: found.floor })
    }

    /// The key.
    pub fn public(&self) -> PublicKey {
        self.key.public()
    }

    /// Signs a statement, unless another one stands in its place. What it signed is durable when this returns.
    ///
    /// # Errors
    /// [`GuardError`]; after one of the disk it signs nothing that is new.
    pub fn sign(&mut self, request: &SigningRequest) -> Result<Signature, GuardError> {
        let SigningRequest { scope, height, .. } = *request;
        let (kind, round) = request.place();
        let place = Place { height, network: scope.network, kind, round };
        let digest = request.digest();
        match self.signed.get(&place) {
            Some(signed) if *signed != digest => return Err(GuardError::Contradiction { height }),
            Some(_) => {}
            None if height < self.floor => return Err(GuardError::Below { height, floor: self.floor }),
            None => {
                let record = borsh::to_vec(&Record { place, digest }).expect("writing to memory cannot fail");
                self.log.append(height, &record)?;
                self.log.sync()?;
                self.signed.insert(place, digest);
                self.forget()?;
            }
        }
        Ok(self.key.sign(&digest.0))
    }

    /// Gives up the lowest heights.
    fn forget(&mut self) -> Result<(), StoreError> {
        let highest = self.signed.last_key_value().map_or(0, |(place, _)| place.height);
        let mut floor = self.floor.max(highest.saturating_sub(HEIGHTS_KEPT));
        if self.signed.len() > PLACES_MAX
            && let Some((lowest, _)) = self.signed.first_key_value()
        {
            floor = floor.max(lowest.height.saturating_add(1));
        }
        if floor > self.floor {
            // What is forgotten is refused from now on, whether the log remembers the floor or not: a log that is
            // opened again knows more, not less.
            self.floor = floor;
            self.signed = self.signed.split_off(&Place { height: floor, network: Digest([0; 32]), kind: 0, round: 0 });
            self.log.forget(floor)?;
        }
        Ok(())
    }
}
