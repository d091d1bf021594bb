//! What a restarted network carries over from the lane of the network before.
//!
//! A network that goes back to an earlier state, its *snapshot*, rolls back deposits, redemptions and verdicts. What
//! its members signed in the lane cannot be rolled back: whoever holds a certificate would redeem it from the escrow
//! of others. So a restarted network has a lane of its own, under an identity of its own, and begins it with a list.
//! The functions here decide the list; the exhaustive model in `tests/restarts` checks the same rules.
//!
//! 1. *Close.* Each operator closes its member's logs ([`closing`]) before anybody reads them. A closed log takes no
//!    record, and no shard opens it.
//! 2. *Evidence* is certificates only: from closed logs, from the blocks of the old chain, and those that anyone shows
//!    in a claim period. Homes that the snapshot keeps count, and later ones.
//! 3. A payment *stands* if it has a certificate, and the snapshot does not know an input of it as taken by something
//!    else.
//! 4. *Listed* are outputs that the snapshot backs, or that a standing payment created, and which no standing payment
//!    spends. Outputs of standing payments to accounts become claims, unless the snapshot has credited or queued them.
//!    An output is listed only if *binding* members closed complete logs of the shard of its owner. Otherwise it stays
//!    aside, named, and its units stay in escrow. A log that lacks a payment that its member signed, or is shorter than
//!    a position that its member signed, is not complete.
//! 5. *Known part.* Of a deposit after the snapshot nothing is known: its depositor has the units again. A payment of a
//!    home from before the snapshot's epoch, and an output that the snapshot backs, are known in full. Of every other
//!    payment's output ⌊amount × known inputs / inputs⌋ is known, per asset. Only known parts are listed.
//! 6. Outputs, claims and queued claims together never exceed escrow, for each asset; otherwise there is no list.
//!
//! The list and the keys of the first committee are part of the new identity: a restart that runs again with more
//! evidence makes another network. Open cases end, and their deposits are returned.
//!
//! # Why it is safe
//!
//! A settled payment was acknowledged by q members; a binding set of complete logs includes one that is correct, with
//! the certificate in it. A correct signer of a payment of its output has the certificate too, so no ancestry is
//! needed. Certificates of the old network mean nothing in the new one, whose name is in everything that is signed.
//!
//! # What it does not do
//!
//! q members whose operators collude can forge certificates, and take all that the snapshot's escrow holds.

mod carried;
mod evidence;
mod log;
mod part;

pub use carried::LaneCarryOver;
pub use evidence::{CarryRefusal, RestartEvidence};
pub use log::{ClosedLog, closing};
pub use part::{PostedCertificates, RestartPart, ShownPayment};
