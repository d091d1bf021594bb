//! The inputs of the thread that has the sessions behind an edge.

use std::sync::mpsc::Sender;

use fairnet::MemberId;

/// Gives that thread an input.
pub(crate) type EdgeSessionsSender = Sender<EdgeSessionsInput>;

/// An input of that thread.
pub(crate) enum EdgeSessionsInput {
    /// The next order of the sequencer: whose, of which life of the gateway, and what it says.
    Order { gateway: MemberId, life: u32, body: Vec<u8> },
    /// A gateway is gone.
    Evicted(MemberId),
    /// The venue's root has sent something.
    Told,
    /// Ends the thread.
    Stop,
}
