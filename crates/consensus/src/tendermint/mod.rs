//! Tendermint: each height is decided in rounds with one proposer each (Buchman, Kwon and Milosevic 2018), by the
//! round logic of `malachite` (`arc-malachitebft-core-consensus`), which others run in production.
//!
//! A network chooses it in its genesis ([`crate::Protocol::Tendermint`]). It replaces only the slots of a height: the
//! window, output in order, commits over superblock and lagged outcome, certificates, links, catch-up, silence after
//! a lost log, epochs and evidence are those of [`crate::engine`], and a light client checks the same things. A
//! superblock then has one sub-block.
//!
//! # The protocol
//!
//! The proposer of round `r` of height `h` is validator `(h + r) mod n`. It sends its *payload*, signed once per height
//! like any sub-block, and a *proposal*: this value, in this round. Upon a proposal with a valid payload that it holds,
//! a validator *prevotes* for it, unless it is locked on another. If there is none within the time of the round, it
//! prevotes for nil. Upon prevotes of more than two thirds for one value it locks on it and *precommits*. Upon
//! precommits of more than two thirds for one value, that value is decided. Otherwise the next round begins: its
//! proposer proposes the value for which more than two thirds prevoted, if it knows one, with those prevotes (a
//! *polka*) as proof, and otherwise its own.
//!
//! **Clocks.** A payload contains the time of its proposer's clock. If that time differs by more than two seconds from
//! a validator's own clock on arrival, the validator does not prevote for the payload. Each later round allows twice as
//! much. Once more than two thirds have voted for the payload, or when it is fetched as a decided height, nothing is
//! compared. So a proposer cannot move the time of a block by more than clocks differ anyway, and a height ends
//! whatever the clocks show: with clocks an hour apart in the twelfth round.
//!
//! **Beginning.** A height begins at a validator when a message about it arrives, when it or another has something to
//! propose, or, at ticks, while an outcome waits to be certified. From then on a silent proposer is skipped.
//!
//! **Payloads** travel from their makers to all. Votes name them by maker and digest, and a validator that lacks one
//! asks those who prevoted for it.
//!
//! **Loss.** As in the other engine, links send again what may have been lost: own proposals and votes, the newest
//! polka, and the newest votes that justified a round. A validator that has decided answers those who are still in a
//! later round with the precommits of the decision.
//!
//! **Restarts.** The inputs of the round logic (votes and proposals of others and its own, payloads, fired timers) are
//! in the vote log, in order, before anything of the turn is sent. A restarted validator replays them, makes the same
//! votes, and sends the recorded ones. If they differed, it would take no further part in the height.
//!
//! # Properties
//!
//! - *Agreement*, *Once*, *Evidence*: as in [`crate`]. Evidence of two votes or two proposals of one round is kept
//!   until the height ends, at most three pairs per validator. It convicts in a ledger like other evidence: the
//!   layout of signed messages is in `primitives`, and includes the network and the epoch.
//! - *Validity*: at least f+1 correct validators, which hold its bytes, prevoted for a decided value.
//! - *Inclusion*: none in a height; a correct and timely validator proposes every n-th height. A transaction waits
//!   for the turn of the validator that has it.
//! - A fault-free height takes three message delays to the decision and one more to the certificate, and
//!   `(n−1)(3n+2)` messages: payload and proposal to each, and prevote, precommit and commit of each to each other.
//! - *Bounded state*: the horizon of the engine; per height two payloads of each validator, and those that were
//!   agreed on. The round logic accepts votes at most ten rounds ahead, and keeps two proposals per round.
//!
//! # Deviations from the paper, and from malachite
//!
//! - Validity is a pure function of the bytes, as in the other engine: it does not read the ledger. So a height can
//!   be voted on before the one below is applied, and a slow ledger cannot make correct validators vote nil. Invalid
//!   transactions are removed when the block is applied.
//! - A validator makes at most one payload per height, whatever the number of its rounds: two prove a fault.
//! - Validators have equal power, so that a quorum here is also one for certificates.
//! - After the decision commits are exchanged, although precommits of two thirds would be enough: they contain the
//!   lagged outcome, and so certificates are the same with both engines.
//! - Timers for rebroadcasting are not set, and those of steps are not cancelled: links send lost messages again, and
//!   a timer of a finished step does nothing. They grow by one unit per round, without bound.
//! - A validator that waits for its own ledger does not ask the others for heights: they would run ahead of it.
//! - Nobody is benched: a silent proposer costs the time of its turn whenever that comes.
//! - Metrics are off. The round logic records the time at which a height began, but nothing uses it.

mod drive;
mod instance;
mod message;
mod types;

pub(crate) use instance::Instance;
pub use message::{EntryProof, Kind, Message, Messages, Proposal, Quorum, Round, RoundRecord, Step, Value, Vote};
