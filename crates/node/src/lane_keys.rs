//! Keys of a member's shards: a file for each lane epoch and shard, made in the epoch before and destroyed after the
//! last epoch in which the home committee signs.
//!
//! The file is `data/lane/EPOCH/SHARD/shard-key`: 32 bytes that its owner alone reads, without a passphrase, since the
//! node makes it by itself and needs it after each restart. Its worth ends with its epoch. It is overwritten before it
//! is removed; a disk that moves what is overwritten (a solid-state one, a copying file system) may keep a copy, so
//! such a disk is to be encrypted.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use payments::HomeEpoch;
use primitives::{PublicKey, SecretKey};
use zeroize::Zeroizing;

const NAME: &str = "shard-key";
const UNFINISHED: &str = "shard-key.unfinished";

/// The directory of a shard in a home epoch.
pub(crate) fn directory(lane: &Path, home: HomeEpoch, shard: u16) -> PathBuf {
    lane.join(home.to_string()).join(shard.to_string())
}

/// The key of a shard, if it was made.
pub(crate) fn load(lane: &Path, home: HomeEpoch, shard: u16) -> io::Result<Option<SecretKey>> {
    let mut seed = Zeroizing::new([0; 32]);
    match File::open(directory(lane, home, shard).join(NAME)) {
        Ok(mut file) => file.read_exact(&mut *seed).map(|()| Some(SecretKey::from_seed(*seed))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The key of a shard, durable; it is made if there is none.
pub(crate) fn make(lane: &Path, home: HomeEpoch, shard: u16) -> io::Result<SecretKey> {
    if let Some(key) = load(lane, home, shard)? {
        return Ok(key);
    }
    let mut seed = Zeroizing::new([0; 32]);
    File::open("/dev/urandom")?.read_exact(&mut *seed)?;
    let directory = directory(lane, home, shard);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    let unfinished = directory.join(UNFINISHED);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(&*seed)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, directory.join(NAME))?;
    File::open(&directory)?.sync_all()?;
    Ok(SecretKey::from_seed(*seed))
}

/// Makes the keys of a member's shards in the first lane epoch, which the genesis names. `data` is the node's own
/// directory.
///
/// # Errors
/// As the disk says.
pub fn make_first_lane_keys(data: &Path, shards: u16) -> io::Result<Vec<PublicKey>> {
    (0..shards).map(|shard| make(&data.join("lane"), 0, shard).map(|key| key.public())).collect()
}

/// Overwrites and removes the keys of an epoch, and removes its logs.
pub(crate) fn destroy(lane: &Path, home: HomeEpoch) -> io::Result<()> {
    let of_home = lane.join(home.to_string());
    for shard in std::fs::read_dir(&of_home)? {
        for name in [NAME, UNFINISHED] {
            let path = shard.as_ref().map_err(|error| io::Error::from(error.kind()))?.path().join(name);
            match OpenOptions::new().write(true).open(&path) {
                Ok(mut file) => {
                    file.write_all(&[0; 32])?;
                    file.sync_all()?;
                    std::fs::remove_file(&path)?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    std::fs::remove_dir_all(&of_home)
}

/// The epochs that have a directory.
pub(crate) fn homes(lane: &Path) -> Vec<HomeEpoch> {
    let entries = std::fs::read_dir(lane).into_iter().flatten().flatten();
    let mut homes: Vec<HomeEpoch> = entries.filter_map(|of| of.file_name().to_str()?.parse().ok()).collect();
    homes.sort_unstable();
    homes
}

/// Whether to be told that no keys are registered for the next epoch: in the last quarter of this one.
pub(crate) fn is_urgent(heights_left: u64, epoch_heights: u64) -> bool {
    heights_left <= epoch_heights.div_ceil(4)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_destroyed_with_its_epoch() {
        let lane = tempfile::tempdir().expect("a directory");
        let lane = lane.path();
        let key = make(lane, 3, 1).expect("made");
        assert_eq!(make(lane, 3, 1).expect("there").public(), key.public(), "a restart finds it");
        assert_ne!(make(lane, 4, 1).expect("made").public(), key.public(), "each epoch has its own");
        let path = directory(lane, 3, 1).join(NAME);
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        // Whoever holds the file open when it is destroyed reads zeros.
        let mut held = File::open(&path).expect("open");
        destroy(lane, 3).expect("destroyed");
        let mut bytes = Vec::new();
        held.read_to_end(&mut bytes).expect("readable");
        assert_eq!(bytes, [0; 32]);
        assert!(load(lane, 3, 1).expect("no fault").is_none());
        assert_eq!(homes(lane), [4]);
    }

    #[test]
    fn a_member_is_told_in_the_last_quarter_of_an_epoch() {
        let told: Vec<u64> = (1..=10).filter(|left| is_urgent(*left, 10)).collect();
        assert_eq!(told, [1, 2, 3]);
        assert!(is_urgent(1, 2), "short epochs too");
    }
}
