//! Shards that run apart from their node, in processes and on machines of their own.
//!
//! # Who keeps what
//!
//! | the node keeps | a shard keeps |
//! |---|---|
//! | the ledger, and all that follows from it: [`crate::LaneMember`] | its key of each lane epoch, which never leaves it |
//! | the registrar's key, the account that pays for posts | its log, its spent set, its socket for clients |
//! | what the shard was told and has not acknowledged | its *pins*: what it was first told of each home |
//!
//! Clients speak with a shard as if it ran in the node: the protocol of payments is the same, byte for byte. Which
//! shard owns an output follows from the digest of its owner's key, so all inputs of a payment lie in one shard of
//! each member, and shards never speak with each other.
//!
//! # The protocol
//!
//! The node dials the shard over TLS under raw keys: the node shows the key of its registrar, which the genesis names,
//! and the shard the key that the node's configuration names. Nobody else gets past the handshake.
//!
//! ```text
//!  LaneMember ──effects──► NodeEnd ═══ orders, numbered ═══► ShardEnd ──► log, key, LaneShard
//!      ▲                      │                                 │              │
//!      └─ away, back, heard ──┘◄═══ answers, numbered ══════════┘◄── reports ──┘
//! ```
//!
//! A *session* is one sequence of orders and one of answers, each numbered from 0, over as many connections as it takes
//! ([`ShardLineEnd`]). Both ends keep what the other one has not acknowledged.
//!
//! - Upon a connection the node says *hello*: its session, and how many answers it has. The shard answers with how many
//!   orders it has, and whether it knew the session. Each then sends what the other lacks, in order.
//! - If the shard did not know the session, it has stopped everything that an earlier session had started. If the node
//!   had sent anything in that session, the node begins a new one: the shard has started again.
//! - A new session begins the shard from nothing: the member starts each home that lives with its *present* terms, and
//!   tells what a shard that starts in the node is told. A restart of either end, and a queue that overflowed, are this
//!   one case.
//! - Orders are those of [`ShardOrder`]. An order is acknowledged when it was performed. *Facts come in the order of
//!   blocks, none twice and none left out between a start and its stop.*
//! - A shard makes the key and the log of an epoch when it is told to prepare it, and answers with an *offer*: the
//!   public key and proofs of possession. The node registers the offers of all its shards.
//! - A shard counts what it signs and refuses, and its log's bytes, for its operator. The counts decide nothing. They
//!   are sent while the node is connected and there is room, and no count is kept for later.
//! - If a shard has offered nothing when the last quarter of an epoch begins, the node registers a key for it that
//!   nobody has. The shard signs nothing in the next epoch; the member's other shards do.
//! - Votes, bars, views and shown certificates come back as reports. The node checks that the signature of a vote or a
//!   view is of this shard, in its place, before it pays for a post (`genuine.rs`). A report is dropped when the queue
//!   is full: the member asks again.
//!
//! *A silent node.* The shard goes on signing in the homes that it has: it alone signs a spend of their outputs, so a
//! late epoch or an unknown deposit makes it refuse, and never sign twice. It votes and bars when it is told of a case.
//! It begins no home by itself. *A silent shard* costs its member's signatures on its range, and the member's view of
//! a case until it has answered; no block waits for it.
//!
//! # How many shards there are
//!
//! The number of a member's shards is a fact of each epoch: that of the keys which it has registered for it. It changes
//! with what the node is set to register, from the next epoch on that has no registration of this member.
//!
//! - A shard that is *added* is the next number. It makes its key and its log when that epoch is prepared.
//! - A shard that is *drained* is the last number. It is told to prepare nothing more, and goes on in its homes until
//!   they end. Its address is listed until then: a home whose shard has no address does not start there, and says so.
//! - *Where shards are* is a setting of each node, and no fact of the ledger. Purses take it from the nodes that they
//!   ask. A node dials what its own operator has listed: a member that could name addresses could make the nodes and
//!   the browsers' relays of all others dial whom it likes.
//! - A shard that starts asks the others how far it had signed. A member counts as having told that once all shards
//!   have which its keys in that epoch name. One without a listed address does not answer.
//!
//! # What a shard believes
//!
//! A shard and its node are one member, counted once in f. The shard believes what its node says of the ledger, as it
//! believes its own disk: *a node that lies makes its member Byzantine*, and no more than that. What a lie cannot do,
//! whatever the node says:
//!
//! - *Two spends of an output.* The log decides, and it is the shard's own.
//! - *Another home in the place of one that was told.* The terms of a home are pinned, durably, when it first starts:
//!   the network, and the keys of its committee. Another committee for it starts nothing ([`ShardPins`]).
//! - *A log made again.* A log is made only for an epoch above every one that the shard was ever told of; the pins
//!   outlast the log. Without its log a shard is mute in that home.
//! - *An output told twice.* What an output is said to be first stands.
//! - *A key taken out.* No order has a secret in its answer.
//!
//! # Attacks
//!
//! Tests are in `tests/member/apart.rs` unless another place is named.
//!
//! | attack | what holds, and why | test |
//! |---|---|---|
//! | a node tells its shards different histories | each pins what it was told first; other terms of that home start nothing, also after a restart | `a_shard_that_is_told_another_history_of_a_home_starts_nothing` |
//! | a node has the log of a begun epoch made again | refused: the pins know that the epoch was told | `a_log_of_an_epoch_that_was_told_is_never_made_again` |
//! | two processes with one shard key, one folder | the folder is locked | `a_shard_is_started_once_and_only_as_its_node_knows_it` (`walras`, `lane_shards`) |
//! | two processes with one shard key, a copied folder | the node speaks with one of them. The other one begins no home, and of those that it has runs at most until they end; one that starts from an old copy is mute where its log is behind what others hold of it. Two that both run are one Byzantine member: two spends convict it | `a_second_process_begins_nothing`, `an_old_copy_of_a_log_mutes_its_shard_and_the_others_go_on` (`lane`, `network`) |
//! | a node withholds certified blocks from one shard | the shard knows less: it refuses what it does not know, and signs what it does; its member posts no view without its bars | `a_shard_that_is_told_nothing_signs_only_what_it_knows`, `a_view_waits_for_a_shard_that_is_away` |
//! | inputs of a payment in shards that are Byzantine, silent or restarted between reservation and settlement | one shard a member, whatever it does, is one member's signature; the reservation is in its log | `a_shard_that_is_told_nothing_signs_only_what_it_knows`, `payments_go_on_while_shards_and_nodes_are_killed_and_no_unit_is_lost` (`walras`, `lane_shards`) |
//! | a shard lies to its node | a vote or view that is not its own is not posted, and costs no fee; a payment's certificate is verified | `a_report_that_is_not_the_shards_own_is_not_posted` |
//! | a shard floods its node | one frame of a shard at a time waits for the host; `ShardLineEnd` keeps as much as its bounds | `a_queue_that_overflows_begins_a_new_session` |
//! | a silent shard while the next epoch is prepared | a key that nobody has stands in for it | `a_shard_that_offers_no_key_costs_its_range_and_nothing_else`, `shards_that_run_apart_make_their_keys_of_each_epoch` (`walras`, `lane_shards`) |
//! | a drain in flight | the number of shards is a fact of the epoch, and its map does not change: a home that a shard no longer has in later epochs lives until it ends | `homes_with_other_numbers_of_shards_live_side_by_side` |
//! | a number that changes with every epoch, or at a restart between registration and boundary | the first registration counts, and no other; what was prepared and is in no registration signs nothing | `sim --lane --shards 4`, `a_member_adds_a_shard_and_drains_it_again` (`walras`, `lane_shards`) |
//! | a drained shard's address is taken out too early | its home does not start in that member, and the log names the shard; nobody else is concerned | `walras shard remove` refuses (`a_shard_is_over_once_no_epoch_that_counts_has_it`) |
//! | a member registers many shards so that others ask them all | a node asks those that its operator lists, one after another, and stops at the first that is silent | `a_shard_without_an_address_does_not_answer_for_its_member` (`lane`, `network`) |
//! | epochs that begin at different times in shards of one member | a shard signs by the epoch that it was told of; the home's committee alone spends its outputs, in any order of boundaries | `boundaries` of `payments` |
//! | an old copy of a log | n − f peers tell the highest position; beyond the log it is mute. A log that is gone is not made again | `an_old_copy_of_a_log_mutes_its_shard_and_the_others_go_on` (`lane`, `network`), `a_log_of_an_epoch_that_was_told_is_never_made_again` |
//! | frames that are no frames, orders that are no orders | the connection ends, and nothing was performed | `what_is_no_frame_ends_the_connection` |
//!
//! # Deviations from the paper
//!
//! The paper's shards each follow the blockchain (§4) and share nothing. Ours follow it through their node. A light
//! client in each shard would need proofs that *nothing was left out* of a block, which the ledger's state does not
//! give. Nor would it protect a member from itself: whoever holds the node has the registrar's key, and can register
//! other shards. What is lost is nothing that the model of f Byzantine *members* promises.
//!
//! # The model
//!
//! `tests/apart_model.rs` drives both ends through all interleavings of connections that break, processes that end,
//! and queues that overflow, and checks that what a running shard was told is what its member said since its start.
//! The rules in [`ShardLineMistake`] are found.

mod genuine;
mod link;
mod node_end;
mod orders;
mod pins;
mod shard_end;

pub(crate) use genuine::{Reporter, is_genuine};
pub use link::{FRAME_BYTES_MAX, KEPT_MAX, ShardLineEffect, ShardLineEnd, ShardLineMistake, ShardSession, WINDOW};
pub use node_end::{NodeEnd, NodeEndEffect};
pub use orders::{ShardAnswer, ShardFigures, ShardOrder};
pub use pins::ShardPins;
pub use shard_end::{ShardEnd, ShardEndEffect, ShardTask};
