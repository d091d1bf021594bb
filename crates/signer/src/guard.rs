//! Records what was signed, and refuses to sign anything else in its place.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Digest, Height, PublicKey, SecretKey, Signature, SigningRequest, ValidatorPost};
use store::{Disk, StoreError, VoteLog, VoteOptions};

/// Heights of a network whose statements are kept. A validator works on a few dozen at a time.
pub const HEIGHTS_KEPT: usize = 1_024;
/// The most statements that are kept of a network. Above this number, the lowest heights are dropped.
pub const PLACES_MAX: usize = 50_000;
/// The most networks that a key signs for. Each restart of a network makes another one.
pub const NETWORKS_MAX: usize = 64;
/// Records after which those still needed are written again at the end of the log, and the older ones are removed.
const REWRITE_AFTER: u64 = 400_000;
/// Stands for all networks in a floor: an earlier version had one floor for all of them.
const EVERYWHERE: Digest = Digest([0; 32]);

/// A place where only one statement may be signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
struct Place {
    height: Height,
    network: Digest,
    kind: u8,
    round: u32,
}

/// A record of the log: what was signed in a place. The log numbers its records.
#[derive(BorshSerialize, BorshDeserialize)]
struct Record {
    place: Place,
    digest: Digest,
}

/// A record of the log: nothing new is signed below a height of a network. The two have different lengths.
#[derive(BorshSerialize, BorshDeserialize)]
struct Floor {
    network: Digest,
    height: Height,
}

/// What was signed for a network.
#[derive(Default)]
struct Signed {
    floor: Height,
    places: BTreeMap<Place, Digest>,
    /// Places of each height.
    heights: BTreeMap<Height, usize>,
}

impl Signed {
    fn insert(&mut self, place: Place, digest: Digest) {
        if self.places.insert(place, digest).is_none() {
            *self.heights.entry(place.height).or_default() += 1;
        }
    }

    /// Raises the floor until no more is kept than must be. How far a height is ahead of the others does not count: one
    /// request for the highest height of all drops nothing but the lowest one.
    fn forget(&mut self) {
        while self.heights.len() > HEIGHTS_KEPT || (self.places.len() > PLACES_MAX && self.heights.len() > 1) {
            let Some((lowest, _)) = self.heights.pop_first() else { return };
            self.raise(lowest.saturating_add(1));
        }
    }

    fn raise(&mut self, floor: Height) {
        self.floor = self.floor.max(floor);
        let first = Place { height: self.floor, network: Digest([0; 32]), kind: 0, round: 0 };
        self.places = self.places.split_off(&first);
        self.heights = self.heights.split_off(&self.floor);
    }
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
    /// The key has signed for as many networks as it may.
    #[error("the key has signed for {NETWORKS_MAX} networks, and signs for no other: give this validator a new key")]
    Networks,
    /// An error of the log.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record of the log cannot be decoded.
    #[error("record {0} of the signer's log is none that a signer writes: restore the log that belongs here")]
    Undecodable(u64),
}

/// The key, and the statements it signed.
pub struct Guard<D: Disk> {
    key: SecretKey,
    log: VoteLog<D>,
    networks: BTreeMap<Digest, Signed>,
    /// The floor of networks that are not known, from a log of an earlier version.
    floor: Height,
    /// The number of the next record.
    next: u64,
    /// The number of the first record after the last time that the log was written again.
    rewritten: u64,
    /// See [`REWRITE_AFTER`].
    rewrite_after: u64,
}

impl<D: Disk> Guard<D> {
    /// Creates the log of a key that has never signed.
    ///
    /// # Errors
    /// [`StoreError::VotesExist`] if there is one; or a disk error.
    pub fn create(disk: D) -> Result<(), StoreError> {
        let mut log = VoteLog::create(disk, VoteOptions::default())?;
        log.append(log.floor(), &bytes_of(&Floor { network: EVERYWHERE, height: 0 }))?;
        log.sync()
    }

    /// Opens the guard of this key at the end of its log.
    ///
    /// # Errors
    /// [`StoreError::VotesLost`] if there is no log; or the damage.
    pub fn open(disk: D, key: SecretKey) -> Result<Guard<D>, GuardError> {
        let (log, found) = VoteLog::open(disk, VoteOptions::default())?;
        let next = found.records.last_key_value().map_or(found.floor, |(last, _)| last.saturating_add(1));
        let (networks, rewritten, rewrite_after) = (BTreeMap::new(), found.floor, REWRITE_AFTER);
        let mut guard = Guard { key, log, networks, floor: 0, next, rewritten, rewrite_after };
        let mut has_floors = false;
        for (number, bytes) in found.records.iter().flat_map(|(number, all)| all.iter().map(move |one| (*number, one)))
        {
            has_floors |= guard.read(bytes).ok_or(GuardError::Undecodable(number))?;
        }
        if !has_floors {
            // An earlier version numbered its records by height, and had one floor for all networks.
            guard.floor = found.floor;
            guard.write(&Floor { network: EVERYWHERE, height: found.floor })?;
            guard.log.sync()?;
        }
        guard.networks.values_mut().for_each(Signed::forget);
        Ok(guard)
    }

    /// Reads a record; says whether it is a floor.
    fn read(&mut self, bytes: &[u8]) -> Option<bool> {
        if let Ok(Record { place, digest }) = borsh::from_slice(bytes) {
            self.networks.entry(place.network).or_default().insert(place, digest);
            return Some(false);
        }
        match borsh::from_slice(bytes).ok()? {
            Floor { network: EVERYWHERE, height } => self.floor = self.floor.max(height),
            Floor { network, height } => self.networks.entry(network).or_default().raise(height),
        }
        Some(true)
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
        let known = self.networks.get(&scope.network);
        let floor = known.map_or(0, |signed| signed.floor).max(self.floor);
        match known.and_then(|signed| signed.places.get(&place)) {
            Some(signed) if *signed != digest => return Err(GuardError::Contradiction { height }),
            Some(_) => {}
            None if height < floor => return Err(GuardError::Below { height, floor }),
            None if known.is_none() && self.networks.len() >= NETWORKS_MAX => return Err(GuardError::Networks),
            None => {
                self.write(&Record { place, digest })?;
                self.log.sync()?;
                let signed = self.networks.entry(scope.network).or_default();
                signed.insert(place, digest);
                signed.forget();
                self.rewrite()?;
            }
        }
        Ok(self.key.sign(&digest.0))
    }

    /// Signs what the validator says of itself. Two of these never contradict each other, so nothing is recorded.
    pub fn sign_post(&self, post: &ValidatorPost) -> Signature {
        self.key.sign(&post.body().signing_bytes(&post.network))
    }

    fn write(&mut self, record: &impl BorshSerialize) -> Result<(), StoreError> {
        self.log.append(self.next, &bytes_of(record))?;
        self.next = self.next.saturating_add(1);
        Ok(())
    }

    /// Keeps the log short: writes all that is kept at its end, durably, and drops what is before.
    fn rewrite(&mut self) -> Result<(), StoreError> {
        if self.next - self.rewritten < self.rewrite_after {
            return Ok(());
        }
        let first = self.next;
        let networks = std::mem::take(&mut self.networks);
        self.write(&Floor { network: EVERYWHERE, height: self.floor })?;
        for (network, signed) in &networks {
            self.write(&Floor { network: *network, height: signed.floor })?;
            for (place, digest) in &signed.places {
                self.write(&Record { place: *place, digest: *digest })?;
            }
        }
        self.networks = networks;
        self.log.sync()?;
        self.rewritten = first;
        self.log.forget(first)
    }
}

fn bytes_of(record: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(record).expect("writing to memory cannot fail")
}

#[cfg(test)]
mod tests {
    use kernel::FaultDisk;
    use primitives::{Scope, Signable};

    use super::*;

    fn commit(network: u8, height: u64, root: u8) -> SigningRequest {
        let statement = Signable::Commit { superblock: Digest([1; 32]), root: Digest([root; 32]) };
        SigningRequest { scope: Scope { network: Digest([network; 32]), epoch: 0 }, height, statement }
    }

    /// The log is written again many times, with two networks in it, and reopened each time.
    #[test]
    fn a_log_that_is_written_again_forgets_nothing() {
        let disk = FaultDisk::new(1);
        Guard::<FaultDisk>::create(disk.clone()).expect("none is there");
        let opened = || Guard::open(disk.clone(), SecretKey::from_seed([7; 32])).expect("opens");
        let mut guard = opened();
        guard.sign(&commit(9, 4, 1)).expect("signed");
        for height in 1..60 {
            guard.rewrite_after = 5;
            guard.sign(&commit(8, height, 1)).expect("signed");
            if height % 7 == 0 {
                drop(guard);
                guard = opened();
            }
        }
        assert!(guard.rewritten > 60, "{}", guard.rewritten);
        for height in 1..60 {
            assert!(matches!(guard.sign(&commit(8, height, 2)), Err(GuardError::Contradiction { .. })), "{height}");
        }
        assert!(matches!(guard.sign(&commit(9, 4, 2)), Err(GuardError::Contradiction { height: 4 })));
        guard.sign(&commit(9, 3, 2)).expect("nothing was signed there");
    }
}
