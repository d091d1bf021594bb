//! Everything a member of the payment lane decides, as steps: no thread, no socket, no clock and no disk.
//!
//! # The protocol
//!
//! A member of the lane runs one [`payments::LaneValidator`] for each of its shards and each home epoch that still
//! signs. A [`LaneMember`] decides what is around them: when a shard's log and key are made, when it starts, what it is
//! told, what is posted to the ledger for it, and when its key is destroyed. A *shell* drives it: `node` with files,
//! sockets and threads, `sim` with seeded faults.
//!
//! ```text
//!  applied blocks ──► waiting ──certified──► facts ──────► shards of home h, h−1, h−2 …
//!                                              │              │ votes, bars, views
//!  ledger (newest) ──► what it lacks of me ────┴─► posts ◄────┘
//!                                                    └─► pool, under the next free number of the account
//! ```
//!
//! - Upon *applied(b)*: b waits. Shards learn nothing that has no certificate.
//! - Upon *certified(h)*: the waiting blocks up to h count, in order. Their facts go to the homes that they concern: a
//!   new output to the present home. An epoch, a halt and a verdict to all. A case to the home of its output and to the
//!   next one, into which candidates may pay.
//! - Upon *epoch e*: start the shards of home e with the term that the ledger knows. Prepare e + 1: make its logs, and
//!   fresh keys if the genesis has registrars; then post their registration.
//! - A shard that cannot start because of an error that may pass is tried again after 1, 2, 4 … 64 blocks, as if the
//!   member had restarted. Preparations and removals that fail are tried again with each block.
//! - A shard that starts is told of the open cases that concern its home, of a halt, of the last epoch in which it
//!   signs, and of the verdicts on payments that its log barred.
//! - Upon a *vote* or a *view* of a shard: post it. Upon the *bars* of all shards in a case: tell the shard that posts
//!   the view.
//! - **What must be said is derived, never queued.** With each block it looks at every open case that concerns a
//!   running home, and of which the ledger lacks this member's vote or view although no post has it. Every
//!   [`ASK_BLOCKS`] blocks the member tells the shards of such a case again: they report again what their logs bind
//!   them to. The registration of the next epoch, a dealing and complaints follow from the ledger and the keys of that
//!   epoch. A report that is lost on the way, because a queue is full, is only late.
//! - A post is made again when its last transaction has ended ([`POST_BLOCKS`]), and dropped when the ledger has it or
//!   needs it no longer. So a member that is more blocks behind says nothing until it has caught up.
//! - If the genesis asks for group keys: deal for the next epoch when all members have registered, and complain about
//!   wrong shares.
//! - Upon blocks whose posts contradict each other: accuse their signer.
//! - A shard may run apart from its node ([`apart`]). While it is *away* it is told nothing. When it is *back* it
//!   starts in each home that lives, with what certified blocks have said by then. No block waits for it.
//! - When no certified fact needs a home any more: stop its shards, wipe its keys. Its logs stay for
//!   [`payments::LOG_EPOCHS`]: they are evidence if the network restarts.
//!
//! # Properties
//!
//! - *Certified first*: a shard is told only what certified blocks contain.
//! - *A log is made once*, before its epoch begins, and never again: without it the shard is mute.
//! - *One number, one transaction*: two posts of the account that are in flight never have one sequence number, nor
//!   one of them and an accusation: the pool hands numbers out (`replica::Mempool::post`). A post is never in flight
//!   twice, unless the member restarted in between.
//! - *Keys live as long as they are needed*: until the last epoch in which their home signs, or the end of a case that
//!   concerns it, and no longer.
//! - *Bounded*: statements have places by once-key; blocks wait for their certificates, of which consensus bounds the
//!   lag.
//! - *Deterministic*: a pure function of the ledger's states and the inputs.
//!
//! # What a crash leaves
//!
//! A restart takes the recovered state, waits until its height is certified, and begins as if all homes began now.
//!
//! | after | leaves |
//! |---|---|
//! | Prepare, before it ends | some logs and keys of the next epoch; the start makes those that are missing. An epoch that has begun gets none |
//! | a registration is made | the keys; the registration is made again, byte for byte |
//! | a certified block, before its facts are told | the state after it, which contains them: open cases, outputs, confirmed payments |
//! | a vote or a bar is logged, before it is posted | the record in the shard's log; the shard is told of the open case again and repeats it |
//! | a post is in flight | perhaps two transactions with one post: the second one pays a fee and does nothing |
//! | a dealing is made | the same dealing: it follows from key and ledger |
//! | a home is over, before Remove ends | its folder, which the start removes |
//!
//! # Drivers
//!
//! `node/src/lane/host.rs` and `sim/src/lane/shards.rs`.

pub mod apart;
mod block;
mod homes;
mod interface;
mod keys;
mod machine;
mod mistake;
mod posts;
mod term;
mod witness;

pub use block::LaneBlock;
pub use interface::{MemberEffect, MemberInput, MemberSettings, ShardStart};
pub use keys::KeyWork;
pub use machine::{ASK_BLOCKS, LaneMember};
pub use mistake::MemberMistake;
pub use posts::{LanePost, POST_BLOCKS};
pub use term::{ShardSecrets, ShardTerm};
