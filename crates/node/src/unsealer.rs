//! The thread that opens envelopes: it finds which of a decided block open, makes the own shares of their keys,
//! combines shares and checks keys (`replica::unsealing`). It also answers peers that lack the keys of a block.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use consensus::Index;
use primitives::Height;
use replica::unsealing::{UnsealDone, UnsealJob};
use replica::{Input, Past};
use store::RealDisk;
use transport::LinkStream;

use crate::inbox::InboxSender;
use crate::shared::Shared;

/// What the thread does.
pub(crate) enum UnsealOrder {
    Job(UnsealJob),
    /// Send a peer of the links of a generation the keys of a block.
    Recall {
        generation: u64,
        peer: Index,
        height: Height,
    },
}

/// The thread; it ends when the validator does.
pub(crate) fn unseal(
    shared: &Arc<Shared>,
    past: &Past<RealDisk>,
    orders: &Receiver<UnsealOrder>,
    results: &InboxSender,
) {
    for order in orders {
        match order {
            UnsealOrder::Job(job) => {
                if !results.push_result(Input::Unsealed(performed(shared, job))) {
                    return;
                }
            }
            UnsealOrder::Recall { generation, peer, height } => match past.opened_keys(height) {
                Ok(Some(frame)) => shared.seat.send(generation, peer, LinkStream::Votes, frame.to_bytes().into()),
                Ok(None) => {}
                // A read error on behalf of others does not stop this node.
                Err(error) => tracing::warn!(%error, peer, height, "the keys of a block could not be read"),
            },
        }
    }
}

fn performed(shared: &Shared, job: UnsealJob) -> UnsealDone {
    match job {
        UnsealJob::Find(work) => {
            UnsealDone::Found(work.perform(|slot, payload| shared.seat.verified.envelopes(slot, payload)))
        }
        UnsealJob::Keys(work) => {
            let network = shared.read_ledger().network();
            UnsealDone::Keys(work.perform(|number| shared.seat.sealing.borrow().share(&network, number)))
        }
    }
}
