//! Tags that belong to no place, and their order.

use proofs::RootPart;

/// The tag of the chain itself and its assets: the first chunk of a snapshot, the first part of a root.
pub(crate) const CHAIN: u8 = RootPart::ASSETS;

/// The tag of the end of a snapshot.
pub(crate) const END: u8 = 255;

/// Whether each tag is above the one before.
pub(super) const fn rise(tags: &[u8]) -> bool {
    let mut at = 1;
    while at < tags.len() {
        if tags[at - 1] >= tags[at] {
            return false;
        }
        at += 1;
    }
    true
}
