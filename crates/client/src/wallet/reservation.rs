//! One command at a time gives a key's transactions their sequence numbers, and a key keeps to one network.
//!
//! A node counts the transactions that it knows. Two commands that ask it at the same instant would get the same
//! number, and one of their transactions would be refused. So a command holds a lock beside the key file from before
//! it asks until its own transaction is stored in the folder of pending ones, where the next command sees its number.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use primitives::Digest;

use super::beside;
use crate::durable::write_durable;
use crate::error::ClientError;

/// Excludes other commands with the same key file until it is dropped.
pub struct Reservation {
    _lock: File,
}

impl Reservation {
    /// Waits until no other command gives a number to a transaction of this key.
    ///
    /// # Errors
    /// [`ClientError::File`].
    pub fn wait(key: &Path) -> Result<Reservation, ClientError> {
        let path = beside(key, ".lock");
        let open = || {
            let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            file.lock()?;
            Ok::<_, std::io::Error>(file)
        };
        let unlocked =
            |cause| ClientError::file(&path, format!("cannot be locked, so nothing is sent: {cause}"), cause);
        Ok(Reservation { _lock: open().map_err(unlocked)? })
    }
}

/// The network for which a key signs: the one that it first signed for, until somebody names another.
pub struct NetworkPin(PathBuf);

impl NetworkPin {
    /// That of a key file.
    pub fn of(key: &Path) -> NetworkPin {
        NetworkPin(beside(key, ".network"))
    }

    /// The network that the key signed for before, if it has signed.
    ///
    /// # Errors
    /// [`ClientError::File`].
    pub fn known(&self) -> Result<Option<Digest>, ClientError> {
        match std::fs::read_to_string(&self.0) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(ClientError::file(&self.0, error.to_string(), error)),
            Ok(text) => {
                let damaged = |_| ClientError::contents(&self.0, "names no network: remove it, or sign with --network");
                text.trim().parse().map(Some).map_err(damaged)
            }
        }
    }

    /// Refuses the network of a node that is not the named one, or without a name not the one that the key signed for
    /// before. Otherwise remembers it.
    ///
    /// # Errors
    /// [`ClientError::OtherNetwork`], [`ClientError::KeyOfOtherNetwork`] or [`ClientError::File`].
    pub fn check(&self, of_node: &Digest, named: Option<Digest>, url: &str) -> Result<(), ClientError> {
        if let Some(named) = named.filter(|named| named != of_node) {
            return Err(ClientError::OtherNetwork { server: url.into(), found: *of_node, named });
        }
        let known = self.known()?;
        if named.is_none() {
            self.refuse_another(known, of_node, url)?;
        }
        if known == Some(*of_node) { Ok(()) } else { self.remember(of_node) }
    }

    /// A warning for a reader, if the node is of another network than the key signed for before.
    ///
    /// # Errors
    /// [`ClientError::File`].
    pub fn warning(&self, of_node: &Digest, url: &str) -> Result<Option<String>, ClientError> {
        let another = self.known()?.filter(|known| known != of_node);
        Ok(another.map(|known| format!("this key signed for network {known}, and the node at {url} is of {of_node}")))
    }

    fn refuse_another(&self, known: Option<Digest>, of_node: &Digest, url: &str) -> Result<(), ClientError> {
        match known.filter(|known| known != of_node) {
            None => Ok(()),
            Some(known) => Err(ClientError::KeyOfOtherNetwork { server: url.into(), found: *of_node, known }),
        }
    }

    fn remember(&self, network: &Digest) -> Result<(), ClientError> {
        write_durable(&self.0, format!("{network}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_to_the_network_that_it_first_signed_for() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let pin = NetworkPin::of(&folder.path().join("alice.json"));
        let (first, other) = (Digest([1; 32]), Digest([2; 32]));
        assert_eq!(pin.known().expect("readable"), None);
        assert!(pin.check(&first, Some(other), "here").is_err(), "the node is of another network than was named");
        pin.check(&first, None, "here").expect("the first one");
        assert_eq!(pin.warning(&first, "here").expect("readable"), None);
        assert!(
            pin.warning(&other, "http://there").expect("readable").is_some_and(|text| text.contains("http://there"))
        );
        let refused = pin.check(&other, None, "http://there").expect_err("another network").to_string();
        assert!(refused.contains("http://there") && refused.contains(&format!("--network {other}")), "{refused}");
        pin.check(&other, Some(other), "there").expect("it was named");
        assert_eq!(pin.known().expect("readable"), Some(other));
        std::fs::write(folder.path().join("alice.json.network"), "nonsense").expect("written");
        assert!(pin.check(&other, None, "there").is_err());
    }

    #[test]
    fn only_one_command_at_a_time_holds_the_reservation_of_a_key() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let key = folder.path().join("alice.json");
        let held = Reservation::wait(&key).expect("free");
        let file = File::options().write(true).open(beside(&key, ".lock")).expect("there");
        assert!(file.try_lock().is_err(), "another command has to wait");
        drop(held);
        assert!(file.try_lock().is_ok());
    }
}
