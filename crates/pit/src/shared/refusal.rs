//! Why a venue does not take something to its root.

use primitives::Height;
use sockets::NoTurn;
use venue::StampRefusal;

/// Why something is not taken to the root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PitRefusal {
    /// The root does not run.
    #[error("the venue does not run: {0}")]
    NotRunning(String),
    /// Too much waits.
    #[error("the venue is busy: send it again shortly; an order that was taken gets its first answer")]
    Busy,
    /// The root failed meanwhile.
    #[error("the venue begins again: whether it took this is not known; send it again, and you get the first answer")]
    BeginsAgain,
    /// The disk is full.
    #[error("the venue's disk is nearly full: it takes cancels and no orders")]
    DiskFull,
    /// The node stops soon.
    #[error(
        "from height {height} on the chain follows rules {rules}, which the venue's program does not know: until its \
         operator installs a version of walras for them it takes cancels and no orders, so that what it matched settles"
    )]
    NeedsRules {
        /// The rules.
        rules: u32,
        /// Their first height.
        height: Height,
    },
    /// The signature is wrong.
    #[error("the signature is not the key's for this network, venue and incarnation, or a field is out of bounds")]
    Signature,
    /// The ledger has no such key.
    #[error("the venue has no such trading key on the ledger: run `walras wallet authorize`, and wait for its block")]
    UnknownKey,
    /// The key may trade.
    #[error("a drop copy is for a key of its own: authorise one without --lose, which cannot trade, and sign with it")]
    NoWatcher,
    /// It gets no turn.
    #[error(transparent)]
    Turn(#[from] NoTurn),
    /// The stamp is wrong.
    #[error(transparent)]
    Stamp(#[from] StampRefusal),
}
