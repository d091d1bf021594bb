//! What to do about an error that stops a command, and what is safe meanwhile.

use anyhow::Error;
use node::{ExchangeError, ReplicaError, StartError};
use store::StoreError;

const FULL: &str = "The disk is full. Nothing that was acknowledged is lost. Free some space (old exports and \
     snapshots can go, and [store] keep_blocks bounds what a node keeps), then start again.";
const DAMAGED: &str = "Keep the damaged home as it is. `walras inspect --salvage --home HOME` shows how much of it \
     is intact. A validator fetches missing data from the others: make a new home from a snapshot of another \
     node. A single node starts from its own newest snapshot or backup. In both cases: `walras snapshot restore \
     FILE --home NEW --genesis HOME/genesis.json`.";
const EDITED: &str = "The first block does not build on this genesis. If genesis.json was edited after the first \
     start, restore the original: every state follows from it, and nothing is lost. If it was not edited, keep the \
     home and report this line.";
const DIVERGED: &str = "The home is unchanged. `walras inspect` shows whether its files are sound. If they are, \
     this version executes a block differently from the version that made it: start the earlier version, and \
     report this line.";

/// The remedy, where more can be said than the error itself says.
pub fn remedy(error: &Error) -> Option<&'static str> {
    if is_disk_full(error) {
        return Some(FULL);
    }
    if let Some(StoreError::Damaged { .. }) = store(error) {
        return Some(DAMAGED);
    }
    match replica(error)? {
        ReplicaError::Diverged { height: 0, .. } => Some(EDITED),
        ReplicaError::Diverged { .. } => Some(DIVERGED),
        _ => None,
    }
}

/// The replica's error, alone or inside the node's: transparent errors hide their source from the chain.
fn replica(error: &Error) -> Option<&ReplicaError> {
    error.chain().find_map(|cause| {
        let exchange = match cause.downcast_ref::<StartError>() {
            Some(StartError::Exchange(error)) => Some(error),
            Some(_) => None,
            None => cause.downcast_ref::<ExchangeError>(),
        };
        match exchange {
            Some(ExchangeError::Replica(error)) => Some(error),
            Some(_) => None,
            None => cause.downcast_ref::<ReplicaError>(),
        }
    })
}

fn store(error: &Error) -> Option<&StoreError> {
    match replica(error) {
        Some(ReplicaError::Store(error)) => Some(error),
        _ => error.chain().find_map(|cause| cause.downcast_ref::<StoreError>()),
    }
}

/// Also recognizes the text alone, which is all that is left of the error that stopped a thread.
fn is_disk_full(error: &Error) -> bool {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull).to_string();
    let text = format!("{error:#}");
    [full.as_str(), "No space left on device"].iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use std::io;

    use primitives::Digest;

    use super::*;

    fn remedy_of(error: impl Into<Error>) -> Option<&'static str> {
        remedy(&error.into().context("the command fails"))
    }

    #[test]
    fn every_stop_has_its_remedy() {
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        let io = |reason| StoreError::Io { action: "append to", file: "data/blocks-1".into(), reason };
        assert_eq!(remedy_of(io(full())), Some(FULL));
        assert_eq!(remedy_of(ReplicaError::Store(io(full()))), Some(FULL));
        assert_eq!(remedy_of(StartError::Exchange(ReplicaError::Store(io(full())).into())), Some(FULL));
        let raw = io::Error::from_raw_os_error(28);
        assert_eq!(remedy_of(anyhow::anyhow!("the node stopped itself: cannot append: {raw}")), Some(FULL));
        assert_eq!(remedy_of(io(io::Error::from(io::ErrorKind::PermissionDenied))), None);
        let diverged = |height| ReplicaError::Diverged { height, ours: Digest([1; 32]), logged: Digest([2; 32]) };
        assert_eq!(remedy_of(diverged(0)), Some(EDITED));
        assert_eq!(remedy_of(StartError::Exchange(diverged(7).into())), Some(DIVERGED));
        assert_eq!(remedy_of(anyhow::anyhow!("anything else")), None);
    }
}
