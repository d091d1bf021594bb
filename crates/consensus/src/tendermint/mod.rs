//! Tendermint: each height is decided in rounds with one proposer each (Buchman, Kwon and Milosevic 2018), by the round
//! logic of `malachite` (`arc-malachitebft-core-consensus`), which others run in production.
//!
//! A network chooses it in its genesis ([`crate::Protocol::Tendermint`]). It takes the place of the slots of a height
//! and of nothing else: the window, output in order, commits over superblock and lagged outcome, certificates, links,
//! catch-up, silence after a lost log, epochs and evidence are those of [`crate::engine`], and so is what a light
//! client checks. A superblock then has one sub-block.
//!
//! # The protocol
//!
//! The proposer of round `r` of height `h` is validator `(h + r) mod n`. It sends its *payload*, signed once a height
//! as any sub-block is, and a *proposal*: this value, in this round. Upon a proposal whose payload is here and valid, a
//! validator *prevotes* for it, unless it is locked on another; upon none within the time of the round, for nil. Upon
//! prevotes of more than two thirds for one value it locks on it and *precommits*; upon precommits of more than two
//! thirds for one value, that is decided; otherwise the next round begins, and its proposer proposes the value that
//! more than two thirds prevoted for, if it knows one, with those prevotes (a *polka*) as proof, and else its own.
//!
//! **Clocks.** A payload says what its proposer's clock showed. Upon a payload whose clock is off by more than two
//! seconds from the own one when it arrives, a validator does not prevote for it; in each later round it takes twice as
//! much. Once more than two thirds have voted for the payload, or when it is fetched as a decided height, nothing is
//! compared. So a proposer cannot move the time of a block by more than clocks differ anyway, and a height ends
//! whatever the clocks show: with clocks an hour apart in the twelfth round.
//!
//! **Beginning.** A height begins at a validator when a message about it arrives, when it or another has something to
//! propose, or, at ticks, while an outcome waits to be certified. From then on a silent proposer is passed by.
//!
//! **Payloads** travel from who made them to all. Votes name them by maker and digest, and who lacks one asks those who
//! prevoted for it.
//!
//! **Loss.** Links say again what may have been lost, as for the other engine: own proposals and votes, the newest
//! polka, and the newest votes that justified a round. Who has decided answers whoever is still in a later round with
//! the precommits that decided.
//!
//! **Restarts.** What the round logic took in is in the vote log in that order (votes and proposals of others and own
//! ones, payloads, timers that fired) before anything of the turn is sent. A restarted validator takes it in again,
//! comes to the same votes, and sends the recorded ones; if they differed it would take no further part in the height.
//!
//! # Properties
//!
//! - *Agreement*, *Once*, *Evidence*: as in [`crate`]; evidence of two votes or two proposals of one round is kept
//!   until the height ends, at most three pairs of each validator. It convicts before a ledger as other evidence does:
//!   what is signed is laid out in `primitives`, with the network and the epoch in it.
//! - *Validity*: what is decided was prevoted for by f+1 correct validators at least, which hold its bytes.
//! - *Inclusion*: none in a height; a validator that is correct and timely proposes every n-th height. A transaction
//!   waits for the turn of the validator that has it.
//! - A fault-free height takes three message delays to the decision and one more to the certificate, and
//!   `(n−1)(3n+2)` messages: payload and proposal to each, and prevote, precommit and commit of each to each other.
//! - *Bounded state*: the horizon of the engine, two payloads of each validator a height and those that were agreed on;
//!   the round logic takes votes of at most ten rounds ahead, and keeps two proposals a round.
//!
//! # Deviations from the paper, and from malachite
//!
//! - Validity is a pure function of the bytes, as for the other engine: it does not ask the ledger. So a height can be
//!   voted on before the one below is applied, and no ledger that is slow can make correct validators vote nil.
//!   Transactions that do not hold are removed when the block is applied.
//! - A validator makes at most one payload a height, whatever the number of its rounds: two prove a fault.
//! - Validators have equal power, so that a quorum here is one of the certificates too.
//! - After the decision commits are exchanged, although precommits of two thirds would do: they hold the lagged
//!   outcome, and so certificates are the same whatever the engine.
//! - Timers that rebroadcast are not set, and those of steps are not cancelled: links say again what may be lost, and a
//!   timer of a step that is over does nothing. They grow by one unit a round, without bound.
//! - A validator that waits for its own ledger does not ask the others for heights: they would run away from it.
//! - Nobody is benched: a silent proposer costs its turn's time whenever that comes.
//! - Metrics are off, and the time at which a height began is noted by the round logic and used by nothing.

mod drive;
mod instance;
mod message;
mod types;

pub(crate) use instance::Instance;
pub use message::{Entry, Kind, Message, Messages, Proposal, Quorum, Record, Round, Step, Value, Vote};
