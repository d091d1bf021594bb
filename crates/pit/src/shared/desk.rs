//! What the desk of an edge is told.

use std::sync::mpsc::Sender;

use fairnet::MemberId;

/// Gives the desk something to do.
pub(crate) type DeskSender = Sender<DeskInput>;

/// What the desk is told.
pub(crate) enum DeskInput {
    /// The next order of the sequencer: whose, of which life of the gateway, and what it says.
    Order { gateway: MemberId, life: u32, body: Vec<u8> },
    /// A gateway is gone.
    Evicted(MemberId),
    /// The root has told something.
    Told,
    /// Ends the desk.
    Stop,
}
