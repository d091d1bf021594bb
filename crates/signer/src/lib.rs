//! A separate process that holds a validator's key, so that the node, which is exposed to the network, does not.
//!
//! # The protocol
//!
//! The node connects to a Unix socket that only its user can open, and asks one question at a time ([`wire`]): for
//! the key, or for a signature on a statement. It sends the statement itself, not a digest: so the signer knows
//! height, round and kind, and computes the signed bytes itself.
//!
//! The *guard* ([`Guard`]) records what it signed in a separate log, durably before a signature leaves. If asked again
//! for the same statement it gives the same signature. If asked for another one in the same place (network, height,
//! kind and round) it refuses. It also refuses a place below all that it keeps of the network. What its validator
//! says of itself ([`primitives::ValidatorPost`]) it signs without a record: no two of these contradict each other. It
//! makes the transaction from what is said, so that the node cannot have it sign any other.
//!
//! # Properties
//!
//! * **Once.** Whatever the node asks, whatever its version, and whenever power fails: no two signatures of this
//!   guard contradict each other. The vote log of the node guarantees the same; a contradiction needs both to fail.
//! * **A lost log is not an empty one.** A guard is created once ([`Guard::create`]). Without its log it signs
//!   nothing.
//! * **Bounded.** Of each network [`HEIGHTS_KEPT`] heights are kept, and at most [`PLACES_MAX`] places. When there are
//!   more, the lowest height is dropped, and nothing new is signed there. Floors belong to a network: a restarted one
//!   begins below that of the one before. One request far ahead drops one height.
//! * **A node without its signer stops.** If a signature is missing in a turn, the node writes and sends nothing of
//!   that turn; its service restarts it.
//!
//! Not guaranteed: an attacker that controls the node can have anything signed once. It cannot make the validator
//! lose its stake.

mod client;
mod guard;
mod server;
pub mod wire;

pub use client::RemoteSigner;
pub use guard::{Guard, GuardError, HEIGHTS_KEPT, NETWORKS_MAX, PLACES_MAX};
pub use server::serve;
