//! A step in two stages: the second writes, syncs and signs step N while the first matches step N + 1.
//!
//! ```text
//!  inputs N+1 ──► MatchingStage ──► MatchedStep N+1 ┐ (waits)
//!                                                   ▼
//!                    MatchedStep N ──► JournalStage: append ∥ sign, sync ──► effects N ──► told
//! ```
//!
//! # The protocol
//!
//! - Upon *inputs*: the first stage matches them, encodes their record and what it came to, and takes the next number.
//!   The second stage may be writing the step before.
//! - Upon a *matched step*: the second stage appends its record, syncs it, and signs its reports meanwhile. It takes
//!   steps in the order of their numbers, one at a time, and refuses any other.
//! - *A full queue*: one step may be written and one matched. Whoever matches more waits for the disk
//!   ([`TwoStages::begin`]).
//! - *Nothing is told before it is durable*: the effects of a step leave the second stage alone. While a step is
//!   between the stages the state of the first is ahead of the journal, so it is shown to nobody:
//!   [`TwoStages::root`] then has none. What telling a step needs of the state is taken when the step is matched.
//! - *In order*: effects of step N are returned before those of step N + 1, each with what was taken for it.
//! - *A short step* with nothing before it is written at once, by the thread that matched it: to wake another thread
//!   would cost more than the two could share.
//! - *Snapshots, forgetting, an operator's commands, and the end* wait until both stages are at the same step
//!   ([`TwoStages::settle`]).
//! - *Upon a failure of the disk*: nothing of the step, or of the one that was matched behind it, is told. The root is
//!   dropped and opened again.
//!
//! # Properties
//!
//! - *The same bytes*: the journal, the effects and the state are those of a root that takes the same steps one after
//!   the other ([`VenueRoot::step`](crate::VenueRoot::step)), however the stages overlap. The stages share nothing that
//!   either writes.
//! - *Steps of a journal have no gap*: a step that was matched behind one that failed is never written.
//!
//! # What a crash leaves
//!
//! | after | leaves |
//! |---|---|
//! | a step is matched, before its record is durable | nothing of it: nobody was told, senders send again |
//! | the record of N is durable, and N + 1 is matched | N, which is made again and told; nothing of N + 1 |
//!
//! So a crash between the stages is a crash before the sync of a later step. Dropping [`TwoStages`] waits for the disk:
//! no thread writes to a directory that is opened again.

mod journal;
mod matching;
mod overlap;

use std::collections::BTreeSet;

use primitives::venue::MarketId;

use crate::machine::Made;
use crate::report::{VenueEffect, VenueFill};
use crate::settings::VenueSettings;

pub use journal::JournalStage;
pub(crate) use journal::Signs;
pub use matching::MatchingStage;
pub use overlap::{ToldStep, TwoStages};

/// A step that was matched and is in no journal yet. Nothing of it may be told.
pub struct MatchedStep {
    /// The number of its record.
    number: u64,
    made: Vec<Made>,
    fills: Vec<VenueFill>,
    /// The clock under which one signature holds for all of its reports, if one does.
    signed_at_ms: Option<u64>,
    settings: VenueSettings,
    /// The record without the digest of the outcome.
    record: Vec<u8>,
    outcome: Vec<u8>,
}

impl MatchedStep {
    /// The markets of which it has events.
    pub fn markets(&self) -> BTreeSet<MarketId> {
        let market = |made: &Made| match made {
            Made::Effect(VenueEffect::Market(market, ..)) => Some(*market),
            _ => None,
        };
        self.made.iter().filter_map(market).collect()
    }

    /// How many effects it has.
    pub fn effects(&self) -> usize {
        self.made.len()
    }
}
