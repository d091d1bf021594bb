//! Signed transactions whose result the wallet has not seen, in a folder beside the key file.
//!
//! A transaction is written there before it is sent, and removed when it is committed or can no longer be. So it can
//! be sent again unchanged, with the same id, and takes effect once. Those that are left with a node, which this wallet
//! does not send, lie in folders of their own.

use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use primitives::{Transaction, TransactionId};

use super::beside;
use crate::error::ClientError;

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
        self.write(&path, &bytes).map_err(unwritten)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.0)?;
        let mut file = std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::File::open(&self.0)?.sync_all()
    }

    /// Removes a transaction whose result is known.
    pub fn forget(&self, id: &TransactionId) {
        // The file may be missing; a file that remains is only asked about again.
        let _ = std::fs::remove_file(self.file(id));
        let _ = std::fs::remove_dir(&self.0);
    }

    /// A stored transaction.
    ///
    /// # Errors
    /// [`ClientError::File`].
    pub fn get(&self, id: &TransactionId) -> Result<Option<Transaction>, ClientError> {
        let path = self.file(id);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = std::fs::read(&path).map_err(|cause| ClientError::file(&path, cause.to_string(), cause))?;
        let unreadable = |_| ClientError::contents(&path, "does not contain a transaction: remove it");
        borsh::from_slice(&bytes).map_err(unreadable).map(Some)
    }

    /// All stored transactions.
    ///
    /// # Errors
    /// [`ClientError::File`].
    pub fn all(&self) -> Result<Vec<Transaction>, ClientError> {
        let Ok(entries) = std::fs::read_dir(&self.0) else { return Ok(Vec::new()) };
        let mut all = Vec::new();
        for entry in entries {
            let name = entry.map_err(|cause| ClientError::file(&self.0, cause.to_string(), cause))?.file_name();
            if let Some(id) = name.to_str().and_then(|name| name.parse().ok()) {
                all.extend(self.get(&id)?);
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use primitives::{AssetId, Body, Digest, Operation, SecretKey};

    use super::*;

    #[test]
    fn what_is_kept_is_there_until_it_is_forgotten() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let pending = Pending::of(&folder.path().join("alice.json"));
        let key = SecretKey::from_seed([1; 32]);
        let pay = |sequence| {
            let operation = Operation::Pay { to: key.public().address(), asset: AssetId(0), amount: 5 };
            Body { chain: 1, account: key.public().address(), sequence, until: 50_000, operation }
                .sign(&Digest::default(), &key)
        };
        assert!(pending.all().expect("an empty list").is_empty());
        (1..=2).for_each(|sequence| pending.keep(&pay(sequence)).expect("kept"));
        assert_eq!(pending.all().expect("readable").len(), 2);
        assert_eq!(pending.get(&pay(1).id()).expect("readable"), Some(pay(1)));
        (1..=3).for_each(|sequence| pending.forget(&pay(sequence).id()));
        assert_eq!(pending.get(&pay(1).id()).expect("readable"), None);
        assert!(!folder.path().join("alice.json.pending").exists());
    }
}
