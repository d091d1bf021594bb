//! One node and its clients.
//!
//! A run drives the life of blocks ([`replica::life`]) and the engines that a node drives (mempool, ledger, tries,
//! store, recovery): intake and the jobs of each worker come in an order that the seed determines. Clients
//! send valid and invalid transactions; the clock is a number. The disk is [`kernel::FaultDisk`]: the process may
//! crash after every change of it, with unsynced writes lost, torn and reordered; calls fail; the disk fills up; bits
//! flip while the node is down. Recovery may crash too.
//!
//! After every block and every restart:
//!
//! 1. Money is conserved, for every asset ([`ledger::Ledger::audit`]), and so are wei while contracts are executed.
//! 2. Accounts, offers, sequence numbers and the issue equal the result of plain bookkeeping from the receipts; no
//!    account is overdrawn, no number is used twice, no fill is below its limit. Session keys use at most their caps,
//!    each number of theirs once, and nothing after their block of lapse, stop or revocation. For an account with a
//!    policy those have signed who must, each once, after its last change of keys; changes wait; who needs a reference
//!    gets no bare payment. Listings get their numbers by their ids, pay what is asked for and copy no name; closed
//!    assets trade nowhere, and what rested of them returns. Proposals pass with the seats of two committees and two
//!    thirds of the stake, within their bounds, and act from the first height of the epoch after the next.
//!    Who is frozen, or was never admitted, uses, sends and
//!    receives nothing of the asset; its offers and shares come home with the block of the freeze.
//! 3. The clearing verifies on the book that the batch met, and keeps the amounts that it should.
//! 4. State root and receipts equal those of a replay from genesis, on another number of threads, and with the
//!    block's transactions in another order; incrementally updated tries equal rebuilt ones.
//! 5. What a client was told remains true: its block, its outcome. What a reader saw remains too: state and root.
//! 6. After a disk error the node stops and nothing is retried.

mod batch;
mod bonds;
mod clients;
mod crash_points;
mod distorted;
mod exacts;
mod holder;
mod miscontrolled;
mod mislisted;
mod mistaken;
mod misvoted;
mod node;
mod offered;
mod oracle;
mod pools;
pub(crate) mod rewritten;
mod shadow;
mod world;

pub use crash_points::{CrashReport, crash_points};

use self::world::SoloWorld;
use crate::controls::ControlCounts;
use crate::listings::ListingCounts;
use crate::policies::PolicyCounts;
use crate::proposals::ProposalCounts;
use crate::sessions::SessionCounts;
use crate::world::{Failure, Mistake};

/// The size of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct SimOptions {
    /// Blocks to be made before all faults stop.
    pub blocks: u64,
    /// A mistake to make, which must be detected.
    pub mistake: Option<Mistake>,
}

impl Default for SimOptions {
    fn default() -> SimOptions {
        SimOptions { blocks: 30, mistake: None }
    }
}

/// The counters of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimReport {
    /// The seed.
    pub seed: u64,
    /// Steps of any kind.
    pub steps: u64,
    /// Blocks at the end.
    pub blocks: u64,
    /// Transactions sent, repetitions included.
    pub submitted: u64,
    /// Transactions refused at intake.
    pub refused: u64,
    /// Transactions whose outcome a client was told.
    pub acknowledged: u64,
    /// Starts of the node.
    pub restarts: u64,
    /// Crashes while it ran.
    pub crashes: u64,
    /// Crashes while it recovered.
    pub crashes_in_recovery: u64,
    /// Disk errors that stopped it.
    pub disk_errors: u64,
    /// Bits flipped while it was down.
    pub flips: u64,
    /// Number of those that kept it from starting; the others are found when the data is read, or lie in no data.
    pub flips_named: u64,
    /// What session keys did.
    pub sessions: SessionCounts,
    /// What accounts with policies did.
    pub policies: PolicyCounts,
    /// What happened to assets.
    pub listings: ListingCounts,
    /// What validators proposed and voted.
    pub proposals: ProposalCounts,
    /// What issuers did to holders.
    pub controls: ControlCounts,
    /// Transactions refused at intake because they exceed a cap of a session key.
    pub beyond_caps: u64,
    /// BLAKE3 over all events, in hexadecimal.
    pub trace: String,
}

/// Simulates one seed.
///
/// # Errors
/// [`Failure`] names the violated invariant.
pub fn run(seed: u64, options: SimOptions) -> Result<SimReport, Failure> {
    crate::world::run(seed, || SoloWorld::new(seed, options))
}
