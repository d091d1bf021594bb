//! Records what was signed, and refuses to sign anything else in its place.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Digest, Height, Presence, PublicKey, SecretKey, Signature, SigningRequest};
use store::{Disk, StoreError, VoteLog, VoteOptions};

/// Heights below the highest signed one of a network whose statements are kept. A validator works on a few dozen at a
/// time.
pub const HEIGHTS_KEPT: u64 = 1_024;
/// The most statements that are kept. Above this number, the lowest heights are dropped.
pub const PLACES_MAX: usize = 200_000;

/// A place where only one statement may be signed.
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
    /// Another statement was signed in this place.
    #[error(
        "another statement was signed at height {height} in this place: the node has lost its vote log, or a second \
         node uses this validator's signer; stop both and find out which"
    )]
    Contradiction {
        /// The height.
        height: Height,
    },
    /// The statements signed at this height are no longer known.
    #[error("height {height} is below {floor}: the signed statements there are forgotten, so no more are signed there")]
    Below {
        /// The height.
        height: Height,
        /// The lowest height at which it signs.
        floor: Height,
    },
    /// An error of the log.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record of the log cannot be decoded.
    #[error("the signer's log holds a record at height {0} that it did not write: restore the log that belongs here")]
    Undecodable(Height),
}

/// The key, and the statements it signed.
pub struct Guard<D: Disk> {
    key: SecretKey,
    log: VoteLog<D>,
    signed: BTreeMap<Place, Digest>,
    floor: Height,
}

impl<D: Disk> Guard<D> {
    /// Creates the log of a key that has never signed.
    ///
    /// # Errors
    /// [`StoreError::VotesExist`] if there is one; or a disk error.
    pub fn create(disk: D) -> Result<(), StoreError> {
        VoteLog::create(disk, VoteOptions::default()).map(drop)
    }

    /// Opens the guard of this key at the end of its log.
    ///
    /// # Errors
    /// [`StoreError::VotesLost`] if there is no log; or the damage.
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

    /// Signs a statement, unless another one was signed in its place. The record is durable when this returns.
    ///
    /// # Errors
    /// [`GuardError`]; after a disk error it signs nothing new.
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

    /// Signs that the validator is present. Two presences never contradict each other, so nothing is recorded.
    pub fn sign_presence(&self, presence: &Presence) -> Signature {
        self.key.sign(&presence.body().signing_bytes(&presence.network))
    }

    /// Drops the lowest heights.
    fn forget(&mut self) -> Result<(), StoreError> {
        let highest = self.signed.last_key_value().map_or(0, |(place, _)| place.height);
        let mut floor = self.floor.max(highest.saturating_sub(HEIGHTS_KEPT));
        if self.signed.len() > PLACES_MAX
            && let Some((lowest, _)) = self.signed.first_key_value()
        {
            floor = floor.max(lowest.height.saturating_add(1));
        }
        if floor > self.floor {
            // Dropped heights are refused from now on, whether the log remembers the floor or not: a reopened log
            // knows more, not less.
            self.floor = floor;
            self.signed = self.signed.split_off(&Place { height: floor, network: Digest([0; 32]), kind: 0, round: 0 });
            self.log.forget(floor)?;
        }
        Ok(())
    }
}
