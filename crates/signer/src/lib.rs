//! A process that holds a validator's key, so that the node, which talks to the world, does not.
//!
//! # The protocol
//!
//! The node connects to a Unix socket that only its user can open, and asks one thing at a time ([`wire`]): for the
//! key, or for a signature on a statement. It sends the statement itself, not a digest: so the signer knows height,
//! round and kind, and makes what is signed by itself.
//!
//! The *guard* ([`Guard`]) keeps what was signed in a log of its own, durable before a signature leaves. Asked again
//! for the same statement it gives the same signature; asked for another one in the same place (network, height, kind
//! and round) it refuses. A place that lies below all that is kept is refused too.
//!
//! # Properties
//!
//! * **Once.** Whatever the node asks, of whatever version it is, and whatever power cut comes when: no two signatures
//!   of this guard contradict each other. The vote log of the node promises the same; both must fail.
//! * **A lost log is no empty one.** A guard is made once ([`Guard::create`]). Without its log it signs nothing.
//! * **Bounded.** The newest [`HEIGHTS_KEPT`] heights are kept, and [`PLACES_MAX`] places at most.
//! * **A node without its signer stops.** It writes nothing down and sends nothing of the turn in which a signature was
//!   missing; its service starts it again.
//!
//! What it does not promise: a node that was taken over can have anything signed once. It cannot make the validator
//! lose its stake.

mod client;
mod guard;
mod server;
pub mod wire;

pub use client::RemoteSigner;
pub use guard::{Guard, GuardError, HEIGHTS_KEPT, PLACES_MAX};
pub use server::serve;
