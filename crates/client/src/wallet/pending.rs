//! Signed transactions whose result the wallet has not seen, in a folder beside the key file.
//!
//! A transaction is written there before it is sent, and removed when it is committed or can no longer be. So it can
//! be sent again unchanged, with the same id, and takes effect once. Those that are left with a node, which this wallet
//! does not send, lie in folders of their own.
//!
//! A file gets its name once it is whole and durable. So a *torn* one (empty, cut short, of another id) tells of a disk
//! that failed or of an older version. Only what was stored whole was ever sent; the chain is asked about its id.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use primitives::{Transaction, TransactionId};

use super::beside;
use crate::durable::write_durable;
use crate::error::ClientError;

/// How often a folder is made again that other commands remove.
const FOLDER_TRIES: u32 = 64;

/// See the module text.
pub struct Pending(PathBuf);

impl Pending {
    /// The folder of a key file.
    pub fn of(key: &Path) -> Pending {
        Pending(beside(key, ".pending"))
    }

    /// The folder of those that are left with a node.
    pub(super) fn held(key: &Path) -> Pending {
        Pending(beside(key, ".held"))
    }

    /// The folder of those that were left and are let go: their numbers are taken next.
    pub(super) fn released(key: &Path) -> Pending {
        Pending(beside(key, ".released"))
    }

    fn file(&self, id: &TransactionId) -> PathBuf {
        self.0.join(id.to_string())
    }

    /// Stores a transaction durably.
    ///
    /// # Errors
    /// [`ClientError::File`]; then nothing may be sent.
    pub fn keep(&self, transaction: &Transaction) -> Result<(), ClientError> {
        let path = self.file(&transaction.id());
        let bytes = borsh::to_vec(transaction).expect("writing to memory cannot fail");
        let unwritten =
            |cause| ClientError::file(&path, format!("cannot be written, so nothing is sent: {cause}"), cause);
        // Another command may remove the folder, which it has emptied, before this one writes into it.
        let mut tries = 0..FOLDER_TRIES;
        loop {
            self.make_folder().map_err(unwritten)?;
            match write_durable(&path, &bytes) {
                Err(ClientError::File { cause: Some(cause), .. })
                    if cause.kind() == std::io::ErrorKind::NotFound && tries.next().is_some() => {}
                Err(ClientError::File { cause: Some(cause), .. }) => return Err(unwritten(cause)),
                done => return done,
            }
        }
    }

    fn make_folder(&self) -> std::io::Result<()> {
        if self.0.is_dir() {
            return Ok(());
        }
        std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.0)?;
        let above = self.0.parent().filter(|above| !above.as_os_str().is_empty());
        std::fs::File::open(above.unwrap_or(Path::new(".")))?.sync_all()
    }

    /// Removes a transaction whose result is known.
    pub fn forget(&self, id: &TransactionId) {
        // The file may be missing; a file that remains is only asked about again.
        let _ = std::fs::remove_file(self.file(id));
        let _ = std::fs::remove_dir(&self.0);
    }

    /// A stored transaction; `None` also of a torn file.
    ///
    /// # Errors
    /// [`ClientError::File`].
    pub fn get(&self, id: &TransactionId) -> Result<Option<Transaction>, ClientError> {
        let path = self.file(id);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = std::fs::read(&path).map_err(|cause| ClientError::file(&path, cause.to_string(), cause))?;
        Ok(borsh::from_slice(&bytes).ok().filter(|kept: &Transaction| kept.id() == *id))
    }

    /// All stored transactions.
    ///
    /// # Errors
    /// [`ClientError::File`].
    pub fn all(&self) -> Result<Vec<Transaction>, ClientError> {
        Ok(self.entries()?.into_iter().filter_map(|(_, kept)| kept).collect())
    }

    /// The ids of torn files.
    ///
    /// # Errors
    /// [`ClientError::File`].
    pub fn torn(&self) -> Result<Vec<TransactionId>, ClientError> {
        Ok(self.entries()?.into_iter().filter(|(_, kept)| kept.is_none()).map(|(id, _)| id).collect())
    }

    fn entries(&self) -> Result<Vec<(TransactionId, Option<Transaction>)>, ClientError> {
        let Ok(entries) = std::fs::read_dir(&self.0) else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for entry in entries {
            let name = entry.map_err(|cause| ClientError::file(&self.0, cause.to_string(), cause))?.file_name();
            if let Some(id) = name.to_str().and_then(|name| name.parse().ok()) {
                all.push((id, self.get(&id)?));
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use primitives::{AssetId, Body, Digest, Operation, SecretKey};

    use super::*;

    fn pay(sequence: u64) -> Transaction {
        let key = SecretKey::from_seed([1; 32]);
        let operation = Operation::Pay { to: key.public().address(), asset: AssetId(0), amount: 5 };
        Body { chain: 1, account: key.public().address(), sequence, until: 50_000, operation }
            .sign(&Digest::default(), &key)
    }

    #[test]
    fn what_is_kept_is_there_until_it_is_forgotten() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let pending = Pending::of(&folder.path().join("alice.json"));
        assert!(pending.all().expect("an empty list").is_empty());
        (1..=2).for_each(|sequence| pending.keep(&pay(sequence)).expect("kept"));
        assert_eq!(pending.all().expect("readable").len(), 2);
        assert_eq!(pending.get(&pay(1).id()).expect("readable"), Some(pay(1)));
        (1..=3).for_each(|sequence| pending.forget(&pay(sequence).id()));
        assert_eq!(pending.get(&pay(1).id()).expect("readable"), None);
        assert!(!folder.path().join("alice.json.pending").exists());
    }

    #[test]
    fn a_torn_file_is_no_transaction_and_another_is_whole() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let pending = Pending::of(&folder.path().join("alice.json"));
        (1..=2).for_each(|sequence| pending.keep(&pay(sequence)).expect("kept"));
        let (whole, torn) = (borsh::to_vec(&pay(1)).expect("memory"), pay(2).id());
        for content in [&[][..], &whole[..whole.len() / 2], &[0; 120], &whole] {
            std::fs::write(pending.file(&torn), content).expect("written");
            assert_eq!(
                (pending.all().expect("readable"), pending.torn().expect("readable")),
                (vec![pay(1)], vec![torn])
            );
            assert_eq!(pending.get(&torn).expect("readable"), None);
        }
    }
}
