//! Fair delivery between a venue and a thousand participants: Onyx (Haseeb et al., SIGCOMM 2025) as pure state
//! machines.
//!
//! *Out*: market data goes down an overlay tree, hedged and sprayed, and is shown to all participants at one deadline.
//! *In*: orders climb the same tree, and reach the engine in the order in which they were made.
//!
//! Each core is a step: the time and an input go in, effects come out. No core has a clock, a socket or a thread, so
//! the same code runs on sockets, in one process and in the simulator (`sim`, behind the feature `simulation`).
//!
//! | core | where | what |
//! |---|---|---|
//! | [`Plan`] | everywhere | who sends which packet to whom |
//! | [`Relay`] | proxies | first authentic copy wins; answers rewinds |
//! | [`Gaps`] | receivers | sequence, reordering, rewinds |
//! | [`Hold`] | receivers | shows packets at their deadlines, and says when that was not fair |
//! | [`DelayMeter`], [`DelayFold`], [`Deadlines`] | receivers, proxies, root | deadlines from measured delays |
//! | [`FeedMerge`], [`Tokens`], [`Duplicates`] | hedged receivers, root | two machines issue one participant's orders |
//! | [`Stamps`], [`MidHistory`], [`OrderClasses`] | gateways | stamps, classes, the action window |
//! | [`Pace`] | gateways | a burst waits where it was made |
//! | [`Merge`], [`Loq`], [`Hop`] | proxies, root | orders in sequence, urgent ones first |
//! | [`Collector`], [`Bundles`] | root | orders for the batch market, cut off by stamps |
//! | [`FromParticipant`], [`ToParticipant`], [`ParticipantOrder`] | gateways, the venue | a participant's connection, through the tree |
//! | [`Roster`] | root | members, epochs, the log of fairness events |
//! | [`RootSuccession`] | roots | which of several leads |
//! | [`RootNode`], [`ProxyNode`], [`GatewayNode`] | everywhere | the cores joined to members, with their messages |
//! | [`Estimator`], [`ClockMesh`] | root | clock offsets with bounds, from a mesh of probes |
//!
//! Each module restates its part of the paper, its properties, and where it deviates and why.
//!
//! # What is never claimed
//!
//! A release is called fair only if it was on time by a clock whose error is bounded within the target. Asymmetry of a
//! path cannot be measured by probes, so without a declaration the bound includes half of the least round trip.

mod bundles;
mod bytes;
mod classes;
mod deadlines;
mod estimator;
mod fairness;
mod gaps;
mod hold;
mod hop;
mod key;
mod link;
mod loq;
mod merge;
mod node;
mod pace;
mod packet;
mod participants;
mod plan;
mod relay;
mod roster;
mod seating;
mod seen;
mod sequence;
#[cfg(feature = "simulation")]
pub mod sim;
mod succession;
mod tokens;
mod tournament;
mod winner;

pub use bundles::{Bundle, BundleInput, BundleRules, BundledOrder, Bundles, ClosedBundle, Collector};
pub use classes::{ClassRequest, KillBarrier, MidHistory, MidState, OrderClasses, QuoteSide, Stamps};
pub use deadlines::{DeadlineRules, Deadlines, DelayFold, DelayMeter, FoldEffect, percentile};
pub use estimator::{ClockEstimate, Estimator, EstimatorRules, ProbePair};
pub use fairness::{DeliveryWindow, MedianAndP99, WindowFigures, Windows};
pub use gaps::{GapEffect, GapInput, GapRules, Gaps};
pub use hold::{ClockState, Hold, HoldInput, HoldKey, HoldRules, Released, Unfair};
pub use hop::{Hop, HopEffect, HopInput};
pub use key::{MergeKey, OrderClass, QueuePolicy, Sequenced};
pub use link::{
    EdgeOrder, LinkError, LinkMessage, LinkPurpose, LinkSeal, LinkTerms, MESSAGE_BYTES_MAX, ORDER_BYTES_MAX,
    ShownSample,
};
pub use loq::{Loq, lateness};
pub use merge::{Merge, MergeEffect, MergeInput, MergeRules};
pub use node::{
    ClockMesh, EdgeCounters, EdgeEffect, EdgeInput, EdgeLie, EdgeMistake, EdgeNode, EdgeRules, GatewayNode, LinkEnd,
    NewEdgeOrder, ProbeRules, ProxyNode, RootNode, ShownPacket,
};
pub use pace::{Pace, PaceEffect, PaceInput, PaceMistake, PaceRules};
pub use packet::{ENVELOPE_BYTES, EnvelopeError, PacketHeader, PacketKey, REWIND_BYTES, RewindRequest};
pub use participants::{
    FromParticipant, PARTICIPANT_PACKET_MAX, PARTICIPANT_WINDOW, ParticipantEvent, ParticipantOrder, ToParticipant,
};
pub use plan::{Plan, PlanError, PlanRequest, Plans, Spot, TreeCost};
pub use relay::{
    ByteBudget, FirstCopy, PacketDrop, PacketRing, Relay, RelayEffect, RelayInput, RelayLimits, RewindRefusal,
};
pub use roster::{
    FairnessEntry, FairnessEvent, FairnessLog, MemberRole, Roster, RosterEffect, RosterInput, RosterRules,
};
pub use seating::{EdgePlace, MemberId, ROOT_MEMBER, Seat, Seating, SeatingShape};
pub use seen::SeenWindow;
pub use succession::{EPOCHS, RootSuccession, SuccessionEffect, SuccessionInput, SuccessionRules};
pub use tokens::{Admission, Duplicates, FeedEvent, FeedMerge, OrderToken, Positioned, Tokens};

/// Time in nanoseconds, by the clock that all members share.
pub type Nanos = u64;
