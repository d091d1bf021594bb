//! Keys of a member's shards: a file for each lane epoch and shard, created in the epoch before and destroyed after
//! the last epoch in which the home committee signs.
//!
//! The file is `data/lane/EPOCH/SHARD/shard-key`; only its owner can read it. It is encrypted like the other keys of a
//! home, under the passphrase that the node was started with ([`LaneKeySafe`]). Without a passphrase it contains the 32
//! bytes of the key. Files made before the node had a passphrase are read as they are. A key is worthless after its
//! epoch. The file is overwritten before it is removed. A disk that relocates overwritten data (a solid-state one, a
//! copying file system) may keep a copy, which nobody can read without the passphrase.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use payments::HomeEpoch;
use primitives::{PublicKey, SecretKey};
use zeroize::Zeroizing;

const NAME: &str = "shard-key";
const UNFINISHED: &str = "shard-key.unfinished";

/// The encryption of lane key files.
#[derive(Clone)]
pub struct LaneKeySafe {
    /// The passphrase of all keys of the home.
    pub passphrase: Zeroizing<String>,
    /// Encrypts a key; returns the bytes of its file.
    pub seal: fn(&SecretKey, &str) -> io::Result<Vec<u8>>,
    /// Decrypts the bytes of a key file.
    pub open: fn(&[u8], &str) -> io::Result<SecretKey>,
}

/// The directory of a shard in a home epoch.
pub(crate) fn directory(lane: &Path, home: HomeEpoch, shard: u16) -> PathBuf {
    lane.join(home.to_string()).join(shard.to_string())
}

/// The key of a shard, if it exists.
pub(crate) fn load(
    lane: &Path,
    home: HomeEpoch,
    shard: u16,
    safe: Option<&LaneKeySafe>,
) -> io::Result<Option<SecretKey>> {
    let path = directory(lane, home, shard).join(NAME);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => Zeroizing::new(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let of_file = |what: &dyn std::fmt::Display| io::Error::other(format!("{}: {what}", path.display()));
    match (<[u8; 32]>::try_from(bytes.as_slice()).map(Zeroizing::new), safe) {
        (Ok(seed), _) => Ok(Some(SecretKey::from_seed(*seed))),
        (Err(_), Some(safe)) => (safe.open)(&bytes, &safe.passphrase).map(Some).map_err(|error| of_file(&error)),
        (Err(_), None) => Err(of_file(&"the key is encrypted: start the node with its passphrase")),
    }
}

/// The key of a shard, durable; it is created if there is none.
pub(crate) fn make(lane: &Path, home: HomeEpoch, shard: u16, safe: Option<&LaneKeySafe>) -> io::Result<SecretKey> {
    if let Some(key) = load(lane, home, shard, safe)? {
        return Ok(key);
    }
    let seed = random::<32>()?;
    let key = SecretKey::from_seed(*seed);
    let bytes = match safe {
        Some(safe) => Zeroizing::new((safe.seal)(&key, &safe.passphrase)?),
        None => Zeroizing::new(seed.to_vec()),
    };
    let directory = directory(lane, home, shard);
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
    let unfinished = directory.join(UNFINISHED);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    std::fs::rename(&unfinished, directory.join(NAME))?;
    File::open(&directory)?.sync_all()?;
    Ok(key)
}

/// Creates the keys of a member's shards in the first lane epoch, which the genesis names. `data` is the node's data
/// directory.
///
/// # Errors
/// The error of the disk.
pub fn make_first_lane_keys(data: &Path, shards: u16, safe: Option<&LaneKeySafe>) -> io::Result<Vec<PublicKey>> {
    let keys = make_first_lane_key_secrets(data, shards, safe)?;
    Ok(keys.iter().map(SecretKey::public).collect())
}

/// The same, with the secret keys: in a restarted network their registration is made before its ledger exists.
///
/// # Errors
/// The error of the disk.
pub fn make_first_lane_key_secrets(data: &Path, shards: u16, safe: Option<&LaneKeySafe>) -> io::Result<Vec<SecretKey>> {
    (0..shards).map(|shard| make(&data.join("lane"), 0, shard, safe)).collect()
}

/// Overwrites and removes the keys of an epoch, if there are any. Logs stay: they are evidence at a restart from an
/// older snapshot. A shard that runs apart may use the same home, so each process wipes its own.
pub(crate) fn destroy(lane: &Path, home: HomeEpoch, is_own: impl Fn(u16) -> bool) -> io::Result<()> {
    for shard in shards_or_none(lane, home)?.into_iter().filter(|shard| is_own(*shard)) {
        for name in [NAME, UNFINISHED] {
            wipe(&directory(lane, home, shard).join(name))?;
        }
    }
    Ok(())
}

fn wipe(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).open(path) {
        Ok(mut file) => {
            file.write_all(&vec![0; file.metadata()?.len() as usize])?;
            file.sync_all()?;
            std::fs::remove_file(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes the logs of an epoch, whose keys are destroyed, if there are any.
pub(crate) fn forget(lane: &Path, home: HomeEpoch, is_own: impl Fn(u16) -> bool) -> io::Result<()> {
    for shard in shards_or_none(lane, home)?.into_iter().filter(|shard| is_own(*shard)) {
        std::fs::remove_dir_all(directory(lane, home, shard))?;
    }
    match std::fs::remove_dir(lane.join(home.to_string())) {
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::DirectoryNotEmpty].contains(&error.kind()) => Ok(()),
        removed => removed,
    }
}

/// Random bytes.
pub(crate) fn random<const N: usize>() -> io::Result<Zeroizing<[u8; N]>> {
    let mut bytes = Zeroizing::new([0; N]);
    File::open("/dev/urandom")?.read_exact(&mut *bytes)?;
    Ok(bytes)
}

/// The epochs that have a directory.
pub(crate) fn homes(lane: &Path) -> Vec<HomeEpoch> {
    let entries = std::fs::read_dir(lane).into_iter().flatten().flatten();
    let mut homes: Vec<HomeEpoch> = entries.filter_map(|of| of.file_name().to_str()?.parse().ok()).collect();
    homes.sort_unstable();
    homes
}

fn shards_or_none(lane: &Path, home: HomeEpoch) -> io::Result<Vec<u16>> {
    match shards(lane, home) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        found => found,
    }
}

/// The shards that have a directory in an epoch.
pub(crate) fn shards(lane: &Path, home: HomeEpoch) -> io::Result<Vec<u16>> {
    let entries = std::fs::read_dir(lane.join(home.to_string()))?;
    let names = entries.map(|of| of.map(|of| of.file_name().to_str().and_then(|name| name.parse().ok())));
    let mut shards: Vec<u16> = names.filter_map(io::Result::transpose).collect::<io::Result<_>>()?;
    shards.sort_unstable();
    Ok(shards)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn all(_: u16) -> bool {
        true
    }

    #[test]
    fn a_process_wipes_its_own_keys_and_logs_and_no_other_shards() {
        let lane = tempfile::tempdir().expect("a directory");
        let lane = lane.path();
        let [own, other] = [0, 1].map(|shard| make(lane, 3, shard, None).expect("made").public());
        destroy(lane, 3, |shard| shard == 0).expect("destroyed");
        let public = |shard| load(lane, 3, shard, None).expect("readable").map(|key| key.public());
        assert_eq!((public(0), public(1)), (None, Some(other)), "{own}");
        forget(lane, 3, |shard| shard == 0).expect("removed");
        assert_eq!(shards(lane, 3).expect("there"), [1]);
        forget(lane, 3, |shard| shard == 1).expect("removed");
        assert!(homes(lane).is_empty(), "nothing is left");
    }

    #[test]
    fn a_key_is_made_once_and_destroyed_with_its_epoch() {
        let lane = tempfile::tempdir().expect("a directory");
        let lane = lane.path();
        let key = make(lane, 3, 1, None).expect("made");
        assert_eq!(make(lane, 3, 1, None).expect("there").public(), key.public(), "a restart finds it");
        assert_ne!(make(lane, 4, 1, None).expect("made").public(), key.public(), "each epoch has its own");
        let path = directory(lane, 3, 1).join(NAME);
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        // A reader that holds the file open when it is destroyed reads zeros.
        let mut held = File::open(&path).expect("open");
        destroy(lane, 3, all).expect("destroyed");
        destroy(lane, 3, all).expect("it is gone");
        let mut bytes = Vec::new();
        held.read_to_end(&mut bytes).expect("readable");
        assert_eq!(bytes, [0; 32]);
        assert!(load(lane, 3, 1, None).expect("no fault").is_none());
        assert_eq!(homes(lane), [3, 4], "its logs stay");
        forget(lane, 3, all).expect("removed");
        forget(lane, 3, all).expect("it is gone");
        assert_eq!(homes(lane), [4]);
    }

    /// A toy cipher: the passphrase is added to each byte, so that a file is longer than a key and a wrong passphrase
    /// yields another key.
    fn safe(passphrase: &str) -> LaneKeySafe {
        LaneKeySafe {
            passphrase: Zeroizing::new(passphrase.into()),
            seal: |key, passphrase| {
                let sum = passphrase.bytes().fold(0, u8::wrapping_add);
                let sealed = key.to_seed().map(|byte| byte.wrapping_add(sum)).to_vec();
                Ok([sealed, vec![sum; 2]].concat())
            },
            open: |bytes, passphrase| {
                let sum = passphrase.bytes().fold(0, u8::wrapping_add);
                let seed: [u8; 32] = bytes[..32].try_into().expect("32 bytes");
                if bytes[32] != sum {
                    return Err(io::Error::other("the passphrase is wrong"));
                }
                Ok(SecretKey::from_seed(seed.map(|byte| byte.wrapping_sub(sum))))
            },
        }
    }

    #[test]
    fn a_key_is_sealed_under_the_passphrase_and_a_plain_one_of_before_is_read() {
        let lane = tempfile::tempdir().expect("a directory");
        let lane = lane.path();
        let (right, wrong) = (safe("correct horse"), safe("battery staple"));
        let plain = make(lane, 3, 0, None).expect("made");
        let key = make(lane, 4, 0, Some(&right)).expect("made");
        let bytes = std::fs::read(directory(lane, 4, 0).join(NAME)).expect("there");
        assert!(!bytes.windows(32).any(|part| part == key.to_seed()), "the key is in its file in plain");
        let public = |home, safe| load(lane, home, 0, safe).map(|key| key.expect("there").public());
        assert_eq!(public(4, Some(&right)).expect("opens"), key.public());
        assert_eq!(public(3, Some(&right)).expect("opens"), plain.public());
        let refused = |safe| public(4, safe).expect_err("refused").to_string();
        assert!(refused(Some(&wrong)).contains("passphrase is wrong") && refused(None).contains("encrypted"));
        // A key that cannot be decrypted is not replaced.
        assert!(make(lane, 4, 0, Some(&wrong)).is_err());
        assert_eq!(std::fs::read(directory(lane, 4, 0).join(NAME)).expect("there"), bytes);
        let mut held = File::open(directory(lane, 4, 0).join(NAME)).expect("open");
        destroy(lane, 4, all).expect("destroyed");
        let mut left = Vec::new();
        held.read_to_end(&mut left).expect("readable");
        assert_eq!(left, vec![0; bytes.len()]);
    }
}
