//! The threads of envelopes. One opens them: it finds which of a decided block open, makes the own shares of their
//! keys, combines shares and checks keys (`replica::unsealing`). The other answers peers that lack the keys of a block:
//! what they ask for keeps no job waiting.

use std::sync::mpsc::Receiver;

use consensus::Index;
use primitives::Height;
use replica::unsealing::{UnsealDone, UnsealJob};
use replica::{Input, Past};
use store::RealDisk;
use transport::LinkStream;

use crate::inbox::InboxSender;
use crate::shared::Shared;

/// What a peer of the links of a generation asks for: the keys of a block.
pub(crate) struct Recall {
    pub generation: u64,
    pub peer: Index,
    pub height: Height,
}

/// The thread that opens; it ends when the validator does.
pub(crate) fn unseal(shared: &Shared, jobs: &Receiver<UnsealJob>, results: &InboxSender) {
    let network = shared.read_ledger().network();
    for job in jobs {
        let done = match job {
            UnsealJob::Find(work) => {
                UnsealDone::Found(work.perform(|slot, payload| shared.seat.verified.envelopes(slot, payload)))
            }
            UnsealJob::Keys(work) => {
                UnsealDone::Keys(work.perform(|number| shared.seat.sealing.borrow().share(&network, number)))
            }
        };
        if !results.push_result(Input::Unsealed(done)) {
            return;
        }
    }
}

/// The thread that answers; it ends when the validator does.
pub(crate) fn recall(shared: &Shared, past: &Past<RealDisk>, asked: &Receiver<Recall>) {
    for Recall { generation, peer, height } in asked {
        match past.opened_keys(height) {
            Ok(Some(frame)) => shared.seat.send(generation, peer, LinkStream::Votes, frame.to_bytes().into()),
            Ok(None) => {}
            // A read error on behalf of others does not stop this node.
            Err(error) => tracing::warn!(%error, peer, height, "the keys of a block could not be read"),
        }
    }
}
