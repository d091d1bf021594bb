//! DBFT superblocks: every validator proposes a sub-block, and all agree on the set of sub-blocks that make the next
//! superblock (Smart Red Belly, appendix A; Crain, Gramoli, Larrea and Raynal 2018).
//!
//! This crate has no clock, socket, disk or thread. [`Engine`] takes frames, fired timers, ticks, proposals and the
//! progress of the ledger, and answers with a [`Turn`]: what to make durable, and then what to send, which timers to
//! set, what was decided and certified. A node, a simulator and a test drive the same object. Inside it, [`Height`]
//! is a single height.
//!
//! # The protocol
//!
//! A committee has `n` validators, of which at most `f = ⌊(n−1)/3⌋` may be Byzantine. One height makes one
//! superblock. In it each validator `j` has a *slot*: a reliable broadcast of its proposal and a binary consensus on
//! whether that proposal is in.
//!
//! **Reliable broadcast** (Bracha 1987, by digest; [`broadcast`]). The proposer sends its proposal to all. A
//! validator echoes the digest of the first valid proposal that it gets from the proposer. Upon ⌊(n+f)/2⌋+1 equal
//! echoes, or f+1 equal readies, it is ready for that digest. Upon 2f+1 equal readies, and holding the proposal, it
//! delivers. A validator that has the readies but not the proposal waits a little for it, and then fetches it from
//! those who echoed it.
//!
//! **Binary consensus** ([`binary`]). Rounds 1, 2, 3 …. In each round, estimates are exchanged so that only values that
//! some correct validator has can enter a validator's *bin values*. A rotating coordinator suggests one. Each validator
//! sends one *auxiliary* vote with the values that it saw. n−f such votes whose values are all among the bin values end
//! the round. If they contain one value, it becomes the estimate, and is decided if it has the parity of the round. If
//! they contain both, the parity becomes the estimate. So 1 can be decided in the first round, and 0 in the second at
//! the earliest.
//!
//! **Reduction to a superblock** ([`height`]). On delivering a proposal a validator proposes 1 for its slot. When `Z`
//! slots are decided 1, and a grace period has passed, it proposes 0 for every slot for which it has not yet
//! proposed. When every slot is decided and every proposal of a slot decided 1 is delivered, these proposals are the
//! superblock.
//!
//! **Heights** ([`engine`]). Heights above the last decided one are decided in parallel, and output in order.
//! Proposals are made for at most W heights above the last one that the ledger has applied, so that consensus never
//! runs ahead of execution without bound. Votes are accepted up to 2W heights above the last decided one (the
//! *horizon*), so that a validator that lags by a window still follows. The votes of one turn to one height travel as
//! one frame of bit sets ([`frame`]), and in a large committee those of a step ([`gather`]).
//!
//! **Commits and certificates** ([`certificate`]). For every height that was output, a validator signs the
//! superblock, chained to the one below, and the outcome (state and receipts) of the height `lag` below it, which its
//! ledger has reached by then. ⌊(n+f)/2⌋+1 equal commits are a certificate. A validator that has it and the
//! superblock stops voting on the height and answers late votes with it; f+1 commits that contradict its own stop the
//! validator. When nothing more is to be decided, `lag` empty heights follow the last busy one, so that its outcome
//! is certified too.
//!
//! **Heartbeats** ([`Engine::on_heartbeat`]). When nothing was decided for a heartbeat, every validator begins the
//! next height, even with nothing to propose and whoever its first proposer is. So an idle network keeps deciding
//! heights, and everything that ends at a height ends: the silence after a lost vote log, epochs, unbonding.
//!
//! **Status messages** are never added to unchecked, nor is a single one trusted. An impossible status is rejected.
//! Whether this validator lags is decided by the (f+1)-th highest of what the connected members of the committee
//! report. Answers on demand (sub-blocks, repeated votes, archived heights) are limited by an allowance of bytes for
//! each peer, which every tick refills. A peer that has used it up asks again later.
//!
//! **Absence** ([`benches`]). A validator left out of three superblocks in a row has no slot for 1, 2, 4, … 64
//! heights.
//!
//! **Loss and restarts** (`links`, [`LogEntry`]). Validators send each other their status. When a link comes up, or a
//! validator's horizon rises, it is sent everything about the heights that were not sent to it yet. A validator makes
//! its own votes, estimates, commits, and every sub-block that it proposes or echoes durable before it sends anything
//! of the turn. After a restart it begins at its last archived certificate, restores its log, and continues. A
//! validator that has lost the log listens until n−f others have sent their status, and votes again above a horizon
//! over that.
//!
//! **Catching up** (`sync`). A validator that makes no progress while others have certificates asks one of them for
//! decided heights, checks each against its certificate and the chain of superblocks, and asks another one if an
//! answer was false.
//!
//! **Restarts of a network** ([`Rules::begins`]). A network may begin with a state of a certain height instead of a
//! genesis, under its own identity. Its first heights sign the outcome of that state, as those after a genesis do.
//!
//! **Epochs** ([`Chain`]). A committee decides the heights of its epoch and no others: its votes, proposals and
//! certificates above the last one do not count, so that keys which were given up later prove nothing about later
//! heights. When the last height is decided, certified and applied, the next epoch's engine begins there with its own
//! committee, which the shell reads from the ledger's state of a horizon below. A validator in another epoch is sent no
//! votes, and all of them when it enters this one. *Followers* have indices after the validators': they only catch up,
//! send their status, and do not vote. A validator of a later epoch follows until then.
//!
//! # Properties
//!
//! - *Agreement*: no two correct validators decide different superblocks. Delays, timers and the order of messages
//!   cannot break it; timers only help termination.
//! - *Validity*: a slot decided 1 was delivered by a correct validator, so its bytes are valid and held by f+1
//!   correct ones.
//! - *Inclusion*: with `Z = n−f` every superblock has at least n−f sub-blocks, at least n−2f of them from correct
//!   validators. Where b ≤ f validators are benched it is n−f−b, since others than these may be silent.
//! - *Termination*: after the network becomes timely every height ends.
//! - *Once*: a correct validator never signs two different statements or votes where only one is allowed, restarts
//!   included.
//! - *Evidence* convicts only faulty validators: two signed proposals for one slot, two signed commits of one height.
//! - *Order of slots*: the sub-blocks of a superblock are ordered by a hash over the superblock below, so that no
//!   validator is always first.
//! - *Bounded state*: at most 2W heights with n proposals each, and two for a validator that signs two. Per sender:
//!   one echo, one ready and one auxiliary vote per slot and round, two estimates, and one proof that it contradicted
//!   itself. Rounds are accepted at most [`ROUNDS_AHEAD`] ahead, in Tendermint one turn of proposers ahead, where
//!   only the first value proposed in a round is fetched.
//! - *Bounded answers*: f faulty validators cannot make a correct one send more than their allowances.
//!
//! A fault-free height costs 4n³+2n² messages if each vote travels alone, including messages to oneself (288 for n =
//! 4, 1,470 for n = 7), and five message delays. The votes of a turn travel together, and in large committees those of
//! a window of time.
//!
//! # Deviations from the paper
//!
//! - Z is n−f, not 1: under bad networks Z = 1 gives superblocks of one sub-block, and lets a fast proposer exclude
//!   others. 1 can be chosen ([`HeightSettings::enough`]).
//! - Decisions are counted, not visits of undelivered slots; the output waits for the proposals of all slots decided 1;
//!   every map is keyed by height. The paper's listing lacks these three.
//! - A decided validator stays in its round until the other value appears among its bin values, and then for two more
//!   rounds. If it stopped at once, a validator that has not decided could wait forever. A certificate ends this.
//! - The coordinator of a round rotates with slot and height, so that no validator coordinates all slots at once.
//! - The fast path counts 2f+1 ready votes for *one* digest as the estimates 1 of the first round, and ignores
//!   estimates 1 of that round. Counting both together would let one ready vote and a faulty validator's estimate
//!   bring in a proposal that is never delivered.
//! - *Benched* validators have no slot: their bit is 0 from the start. The benches follow from the history decided a
//!   horizon below, their digest is part of every certificate, and at most f are benched at once. A benched validator
//!   with transactions announces it, and the others keep deciding heights until its spell is over.
//! - With b validators benched, Z is at most n−b−f: the benched need not be those that are silent now.
//! - A certificate alone does not stop a validator that lacks the superblock. If all were killed at once, commits from
//!   their logs make a certificate before any of them has decided the height again, and all would stop forever.
//! - Sub-blocks are logged when they are echoed, not only their digests: if all were killed at once, perhaps only a
//!   faulty proposer would hold one that was decided.
//! - A validator logs the estimates that it relays, not only its own. Another validator may have counted a relayed
//!   estimate and voted for its value. If the log of the validator that had the estimate first is lost and all restart
//!   at once, nobody else sends that estimate again, the value never enters the bin values of the others, and the round
//!   never ends.
//! - A validator that sees an echo of another digest than the one it holds asks for that sub-block: it is the
//!   evidence.
//! - Nothing is pipelined between two epochs: the last heights of one are certified before the first of the next is
//!   proposed. This costs one round of messages per epoch and lets each engine know only one committee.
//! - A validator that has lost its log uses the highest height that any of the others claims to take part in, not the
//!   (f+1)-th highest. With n = 4, the only other correct validator that saw its earlier votes may be the one that is
//!   ahead of all. So a faulty validator can keep it silent by claiming to be far ahead; it must then be restarted
//!   without that link. A lost log counts as a fault: together with a lying validator it is more than f = 1. It costs
//!   only that validator's votes.

pub mod benches;
pub mod binary;
pub mod broadcast;
pub mod certificate;
pub mod engine;
pub mod frame;
pub mod gather;
pub mod height;
mod live;
mod members;
pub mod message;
mod output;
mod pen;
pub mod proposal;
pub mod refused;
pub mod tendermint;

pub use benches::Benches;
pub use binary::{Binary, ROUNDS_AHEAD};
pub use broadcast::Broadcast;
pub use certificate::{Commit, Link};
pub use engine::links::HEIGHT_MAX;
pub use engine::{
    Contents, Divergence, Engine, Finality, LogEntry, Opening, PayloadCheck, Protocol, Rules, Setup, Start, Superblock,
    Turn,
};
pub use frame::{Decided, Frame, Status, Votes};
pub use height::{Height, HeightSettings};
pub use members::Members;
pub use message::{Decision, HeightEffect, Mask, Record, Timer, Vote};
/// What clients verify of what is agreed on here.
pub use proofs::{ALL_HEIGHTS, Certificate, CertificateError, Chain, Committee, Index, MEMBERS_MAX, Statement};
pub use proposal::{Evidence, Payload, Proposal, payload_digest};
pub use refused::Refused;
