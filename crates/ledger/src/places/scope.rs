//! What happens to transactions that claim the same thing once.

use proofs::Refusal;

/// Which transactions fail if a block claims a once-key more than once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of the sender's: the key belongs to the sender.
    Account(Refusal),
    /// None: of the sender's, the one with the lowest number counts; the others pay fee and number and do nothing. A
    /// pool refuses the second with this.
    Sender(Refusal),
    /// None: of the sender's, the one with the highest number counts, unless the sender cancels what they claim. The
    /// others pay fee and number and do nothing. Pools reserve nothing of it.
    Latest,
    /// Those that claim it, from any sender.
    Sides(Refusal),
    /// None: the effect does not depend on the sender. Of those that are left after all others are removed, the one
    /// with the lowest id counts. The others pay fee and sequence number and do nothing.
    KeepOne,
}
