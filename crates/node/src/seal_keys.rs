//! The file of a seat's secrets for sealing keys: `data/seal-keys`.
//!
//! Only its owner can read it. It is encrypted (XChaCha20-Poly1305) under a key that is derived from the node's link
//! key, which its home has under the passphrase. A change is written beside the file, synced, and takes its place;
//! then what was there is overwritten. A crash leaves the file of before or the new one, and perhaps an unfinished
//! one, which the next change replaces. A disk that relocates overwritten data may keep a copy, which nobody can read
//! without the link key.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use borsh::{BorshDeserialize, BorshSerialize};
use chacha20poly1305::aead::Aead;
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use primitives::{Digest, SecretKey};
use replica::{Network, Proposals, SealSeat, SeatSecret, SeatSecrets};
use zeroize::Zeroizing;

use crate::lane::keys::random;
use crate::shared::{ExchangeError, Shared};

const NAME: &str = "seal-keys";
const UNFINISHED: &str = "seal-keys.unfinished";
const KEY_CONTEXT: &str = "walras 2026 seals key of the file of secrets v1";
const NONCE: usize = 24;

/// The secrets of one key: its number, whether they are the share, and the bytes.
#[derive(BorshSerialize, BorshDeserialize)]
struct Entry {
    number: u64,
    is_share: bool,
    secret: [u8; 32],
}

/// Where a seat's secrets are kept.
pub(crate) struct SealFile {
    data: PathBuf,
    cipher: XChaCha20Poly1305,
    /// Whether secrets are to be written that are not.
    is_due: bool,
}

impl SealFile {
    /// The file in the node's data directory.
    pub(crate) fn of(data: &Path, links: &SecretKey) -> SealFile {
        let key = Zeroizing::new(Digest::of(KEY_CONTEXT, &links.to_seed()).0);
        SealFile { data: data.into(), cipher: XChaCha20Poly1305::new((&*key).into()), is_due: false }
    }

    /// What it has; nothing if there is no file.
    ///
    /// # Errors
    /// Of the disk, or if the file is of another link key or damaged.
    pub(crate) fn load(&self) -> io::Result<SeatSecrets> {
        let path = self.data.join(NAME);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SeatSecrets::default()),
            Err(error) => return Err(error),
        };
        let wrong = || {
            let why =
                "it is damaged, or of another link key: move it away, and the seat tells that its shares are lost";
            io::Error::other(format!("{}: {why}", path.display()))
        };
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>().ok_or_else(wrong)?;
        let opened = Zeroizing::new(self.cipher.decrypt(&XNonce::from(*nonce), sealed).map_err(|_| wrong())?);
        let (network, entries): (Digest, Vec<Entry>) = borsh::from_slice(&opened).map_err(|_| wrong())?;
        let secret = |Entry { number, is_share, secret }| {
            (number, if is_share { SeatSecret::Share(secret) } else { SeatSecret::Seed(secret) })
        };
        Ok(SeatSecrets { network, secrets: entries.into_iter().map(secret).collect() })
    }

    /// Makes secrets durable if they changed, now or when the disk failed before. What it had is overwritten.
    ///
    /// # Errors
    /// Of the disk: then a later call tries again.
    pub(crate) fn store(&mut self, secrets: &SeatSecrets, changed: bool) -> io::Result<()> {
        self.is_due |= changed;
        if self.is_due {
            self.write(secrets)?;
            self.is_due = false;
        }
        Ok(())
    }

    fn write(&self, secrets: &SeatSecrets) -> io::Result<()> {
        let entry = |(number, secret): (&u64, &SeatSecret)| {
            let (is_share, secret) = match secret {
                SeatSecret::Seed(seed) => (false, *seed),
                SeatSecret::Share(share) => (true, *share),
            };
            Entry { number: *number, is_share, secret }
        };
        let entries: Vec<Entry> = secrets.secrets.iter().map(entry).collect();
        let plain = Zeroizing::new(borsh::to_vec(&(secrets.network, entries))?);
        let nonce = *random::<NONCE>()?;
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), plain.as_slice());
        let sealed = sealed.map_err(|_| io::Error::other("the secrets of the seat cannot be encrypted"))?;
        let (path, unfinished) = (self.data.join(NAME), self.data.join(UNFINISHED));
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        file.write_all(&nonce)?;
        file.write_all(&sealed)?;
        file.sync_all()?;
        let before = OpenOptions::new().write(true).open(&path);
        std::fs::rename(&unfinished, &path)?;
        File::open(&self.data)?.sync_all()?;
        match before {
            Ok(mut before) => {
                before.write_all(&vec![0; before.metadata()?.len() as usize])?;
                before.sync_all()
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The pool's worker with its seat, if the chain makes sealing keys, and the file of the seat's secrets.
///
/// # Errors
/// If the file cannot be read.
pub(crate) fn seated(
    proposals: Proposals,
    network: &Network,
    shared: &Shared,
    data: &Path,
) -> Result<(Proposals, Option<SealFile>), ExchangeError> {
    if shared.read_ledger().seals().is_none() {
        return Ok((proposals, None));
    }
    let file = SealFile::of(data, &network.own.links);
    let secrets = file.load().map_err(|error| ExchangeError::directory("data/seal-keys", error))?;
    shared.seat.sealing.send_replace(secrets.clone());
    Ok((proposals.seated(SealSeat::new(network.own.votes.clone(), secrets)), Some(file)))
}

/// Does what this validator's seat owes for the sealing key: the secrets are durable before its post is signed.
pub(crate) fn take_seat(shared: &Shared, proposals: &mut Proposals, file: &mut SealFile) {
    let Some(work) = shared.ledger.try_read().map(|ledger| proposals.seal_work(&ledger)) else { return };
    let done = work.map(|work| random::<32>().map(|fresh| work.perform(*fresh))).transpose();
    let Some(ledger) = shared.ledger.try_read() else { return };
    let (network, height) = ((ledger.network(), ledger.chain()), ledger.height());
    let certified = shared.seat.certified.load(Ordering::Acquire);
    let kept = done.and_then(|done| {
        let changed = proposals.take_sealed(done, &ledger, certified);
        drop(ledger);
        let Some(seat) = proposals.seat() else { return Ok(()) };
        file.store(seat.secrets(), changed)?;
        shared.seat.sealing.send_if_modified(|held| {
            let is_new = held != seat.secrets();
            held.clone_from(seat.secrets());
            is_new
        });
        Ok(())
    });
    match kept {
        Ok(()) => proposals.sign_sealed(network, height),
        Err(error) => tracing::error!(%error, "the secrets of this seat are not durable: it does not take part"),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn secrets(share: u8) -> SeatSecrets {
        let secrets = [(3, SeatSecret::Share([share; 32])), (4, SeatSecret::Seed([7; 32]))].into();
        SeatSecrets { network: Digest([1; 32]), secrets }
    }

    #[test]
    fn secrets_survive_only_under_the_link_key_and_only_their_owner_reads_them() {
        let data = tempfile::tempdir().expect("a directory");
        let key = SecretKey::from_seed([1; 32]);
        let mut file = SealFile::of(data.path(), &key);
        assert_eq!(file.load().expect("none yet"), SeatSecrets::default());
        file.store(&secrets(5), true).expect("written");
        let path = data.path().join(NAME);
        let first = std::fs::read(&path).expect("there");
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        assert!(!first.windows(8).any(|window| window == [5; 8] || window == [7; 8]), "encrypted");
        assert_eq!(SealFile::of(data.path(), &key).load().expect("readable"), secrets(5));
        let other = SealFile::of(data.path(), &SecretKey::from_seed([2; 32])).load();
        assert!(other.expect_err("another key").to_string().contains("another link key"));
        // Nothing changed, nothing is written.
        file.store(&secrets(6), false).expect("nothing");
        assert_eq!(std::fs::read(&path).expect("there"), first);
        file.store(&secrets(6), true).expect("written");
        assert_eq!(file.load().expect("readable"), secrets(6));
        assert!(!data.path().join(UNFINISHED).exists());
    }

    #[test]
    fn what_a_failing_disk_did_not_take_is_written_later() {
        let parent = tempfile::tempdir().expect("a directory");
        let data = parent.path().join("data");
        let mut file = SealFile::of(&data, &SecretKey::from_seed([1; 32]));
        assert!(file.store(&secrets(5), true).is_err(), "there is no directory");
        std::fs::create_dir(&data).expect("made");
        file.store(&secrets(5), false).expect("written");
        assert_eq!(file.load().expect("readable"), secrets(5));
    }
}
