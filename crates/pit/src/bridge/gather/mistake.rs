//! Mistakes that gathering could make: a check that never fires proves nothing.
//!
//! Only the tests of gathering plant one ([`kernel::Planted`]); the product is compiled without.

use strum::VariantArray;

/// A planted mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub(super) enum GatherMistake {
    /// What waits leaves only when a list is full.
    WaitsForever,
    /// A clock that steps back makes what waits wait for as long.
    WaitsForClock,
    /// What left as a list waits on.
    LeavesTwice,
    /// The bytes of a list are not counted.
    BytesUncounted,
    /// A cancel does not wait for the orders before it.
    CancelOvertakes,
    /// A number that is in use begins or joins a list.
    UsedNumberJoins,
    /// A replacement that comes after an order leaves before it.
    ReplacementOvertakes,
    /// What waits for a session that is gone leaves in the next one.
    OutlivesSession,
}
