//! The shell of the payment lane: the I/O that a shard of [`payments`] needs, and its clients.
//!
//! ```text
//!  clients ─► readers ─► machine: LaneValidator::step ─► log (append) ─► syncer (fdatasync)
//!     ▲                     │  ▲                                             │
//!     └────── writers ◄─────┘  └──────────────── Synced ◄────────────────────┘
//! ```
//!
//! | thread | owns | does |
//! |---|---|---|
//! | machine | the state machine of [`payments`], the log's end | processes requests in batches, appends, answers |
//! | syncer | | makes the log durable, up to the last requested position |
//! | sockets | connections | reads requests, writes replies |
//!
//! A shard is a process or a part of one: shards of a validator share nothing. Validators exchange only one query:
//! how far a starting shard had signed ([`wire`]).
//!
//! # Properties
//!
//! * **Durable before signed.** The machine signs only what the syncer has synced. After a failed sync it signs
//!   nothing more.
//! * **A restart trusts the disk, not the page cache.** A log is rewritten in place, and synced, before it is read:
//!   pages that an earlier failed sync left clean are written too ([`FileLog`]).
//! * **One process per log.** The directory is locked.
//! * **An old copy of a log does not sign.** A shard begins once n − f validators, including itself, have reported
//!   the highest position of its log that it signed. The shard itself has signed what they report, so no one can
//!   report too high a position. A position beyond the end of the log mutes the shard.
//! * **A client finishes what it began.** An [`Outbox`] makes a request durable before it is first sent, and repeats
//!   these bytes after a crash.
//! * **TLS is optional.** Answers authenticate themselves. With TLS, under the shard's registered key, no one on the
//!   network path can read who pays whom (`tls.rs`). A shard uses either TLS or plain TCP.
//! * **A shard waits for an address that is in use.** If another process has its port, the shard tries again with
//!   growing delays, and meanwhile it follows the ledger and votes (`door.rs`).
//! * **Addresses are served in turn** ([`sockets::Turns`]). A connection has one batch of requests in the queue at a
//!   time, or eight once a payment that it brought was signed on it. Such a connection has a
//!   queue of its own.
//! * **Every queue is bounded.** So are connections, in total and by address, bytes of a request, replies that a
//!   client does not read, and the idle time of a connection.

mod client;
mod log;
mod outbox;
mod shard;
mod tls;
mod turns;
pub mod wire;

pub use client::{LaneClient, LaneClientError, LaneDirectory};
pub use log::{FileLog, LogError};
pub use outbox::{Outbox, OutboxError, SentPayment};
pub use shard::{LaneShard, ShardCounts, ShardError, ShardLimits, ShardSetup};
pub use tls::{LaneReceiver, LaneSender, answer_node, connect, connect_over, dial_shard};
