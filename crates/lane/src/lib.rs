//! The shell of the payment lane: what a shard of [`payments`] needs of the world, and what its clients do.
//!
//! ```text
//!  clients ─► readers ─► machine: LaneValidator::step ─► log (append) ─► syncer (fdatasync)
//!     ▲                     │  ▲                                             │
//!     └────── writers ◄─────┘  └──────────────── Synced ◄────────────────────┘
//! ```
//!
//! | thread | owns | does |
//! |---|---|---|
//! | machine | the state machine of [`payments`], the log's end | takes requests in batches, appends, answers |
//! | syncer | | makes the log durable, up to the last position that was asked for |
//! | sockets | connections | reads requests, writes replies |
//!
//! A shard is a process or a part of one: shards of a validator share nothing. Validators do not speak with each other
//! either, but for one question: how far a starting shard had signed ([`wire`]).
//!
//! # Properties
//!
//! * **Durable before signed.** The machine signs what the syncer has synced. After a failed sync it signs nothing
//!   more.
//! * **A restart trusts the disk, not the page cache.** A log is written again where it stands, and synced, before it
//!   is read: pages that an earlier failed sync left clean are written too ([`FileLog`]).
//! * **One process a log.** The directory is locked.
//! * **An old copy of a log does not sign.** A shard begins once n − f validators, itself among them, have told the
//!   highest position of its log that it signed. What they tell is signed by the shard itself, so that nobody can lie
//!   upward. A position beyond the end of the log mutes the shard.
//! * **A client finishes what it began.** An [`Outbox`] makes a request durable before it is first sent, and repeats
//!   these bytes after a crash.
//! * **TLS is an option.** Answers authenticate themselves. With TLS, under the shard's registered key, nobody on the
//!   way reads who pays whom (`tls.rs`). A shard speaks either TLS or none.
//! * **An address that is taken is waited for.** A shard whose port somebody else has tries again, with growing waits,
//!   and meanwhile hears of the ledger and votes (`door.rs`).
//! * **Every queue is bounded.** So are connections, in all and by address, bytes of a request, replies that a client
//!   does not read, and the time in which a connection says nothing.

mod client;
mod door;
mod log;
mod machine;
mod outbox;
mod shard;
mod sockets;
mod tls;
pub mod wire;

pub use client::{LaneClient, LaneClientError, LaneDirectory};
pub use log::{FileLog, LogError};
pub use outbox::{Outbox, OutboxError, SentPayment};
pub use shard::{LaneShard, ShardCounts, ShardError, ShardLimits, ShardNews, ShardSetup};
pub use tls::{LaneReceiver, LaneSender, connect};
