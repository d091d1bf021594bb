//! A purse: a folder with a seed, the keys made of it, and the proofs of its money.
//!
//! | file | contents |
//! |---|---|
//! | `lane.json` | the lane that the purse is for, pinned when it was made |
//! | `proved-epochs.json` | the keys of lane epochs, which the ledger has proved (see `trust.rs`) |
//! | `terms.json` | the terms of the lane's assets, as a node told them last (see `terms.rs`) |
//! | `validators.json` | the chain's newest validators that were proved, where they change |
//! | `seed.json` | the seed, encrypted like other keys |
//! | `keys.json` | the public keys made of the seed: one for each deposit, address and change |
//! | `deposits/` | withdrawals from the ledger that become outputs |
//! | `received/` | receipts of others' payments, and marks of those that are settled |
//! | `outbox/` | payments, durable before they are first sent, with their certificates |
//! | `posted/` | marks of payments whose certificate is in the ledger |
//! | `contested/` | marks of payments whose money the ledger was asked to decide about |
//! | `device` | a file that copies of the folder do not match: it shows a purse that it was restored |
//!
//! The purse's balance follows from these files: outputs of deposits, of received receipts and of own payments, minus
//! what own payments spend. A file gets its name once it is durable.
//!
//! ```text
//! Purse::open ─► Session::begin ─► pay ─► spend::receipts       a payer
//! Slip::read ─► checked ─► Purse::keep_receipt ─► settle_all     a payee
//! ```
//!
//! The lane's keys are believed with a proof of the ledger's validators only ([`LedgerTrust`]).

mod deposit;
mod error;
mod files;
mod folder;
mod held;
mod keys;
mod lanes;
mod network;
mod now;
mod pinned;
mod plan;
mod registrations;
mod resolve;
mod restore;
mod session;
mod slip;
pub mod spend;
mod take;
mod terms;
mod trust;

pub use deposit::Deposit;
pub use error::{Invalid, PurseError, PurseRemedy, ReceiptFault, SlipError};
pub use folder::{Purse, PurseContents, pin_network, read_network};
pub use held::HeldOutput;
pub use keys::{KeyRing, Seed};
pub use lanes::{Asking, Lanes};
pub use network::LaneNetwork;
pub use now::LaneNow;
pub use pinned::{PinnedCommittee, PinnedLane, PinnedMoney, PinnedTrust};
pub use resolve::resolve_deposits;
pub use restore::ask as ask_spent;
pub use session::{Paid, Session};
pub use slip::{DepositSlip, ProvedSlip, Slip};
pub use take::checked;
pub use terms::LaneMoney;
pub use trust::{Anchor, LedgerTrust};
