//! Custody of continuous markets: deposits of traders at venues, bonds of venues, and the settles that move units.
//!
//! A *venue* matches orders outside the ledger. Its operator settles the fills here, in the venue's order. Each fill is
//! applied or *bust* by the ledger, on the state before the block, and both are leaves of the tree of fills. What a
//! trader does that could hurt a fill acts later, once it is *past*: D heights and τ milliseconds after it
//! ([`primitives::venue::Horizon`]). A report that the tree contradicts costs the bond; so do two reports that
//! contradict each other ([`primitives::venue::SignedReport`]), in whatever form they are signed. Formats are in
//! [`primitives::venue`].
//!
//! **When a settle counts.** By bytes alone (B1) it is sound, or it is forged. If the sender is not the operator, or
//! the incarnation is another one or convicted (B2), it is refused. If it does not begin at the settled count or an
//! order without signature has no entry (B3), or bond or room for entries do not suffice for all of it (B4), it pays
//! and does nothing. Of the settles of a venue that are left, the one with most fills counts, of equals the one with
//! the lowest id (B5). There is no once-key, so that a stale settle removes nothing of its operator.
//!
//! **Frozen parties** (F8): whom the issuer of an asset has frozen, or never admitted, trades it nowhere (`controls`).
//! A freeze counts once it is past; then fills bust, nobody is guilty, and the penalty is burnt. The venue's owner is a
//! party to each fill. The issuer of a recoverable asset *recalls*: it collects for a holder who has been frozen for
//! long.
//!
//! **A block**, in this order: settles; accusations, then claims; bonds; deposits; keys, collections, markets and
//! operators; fences; payouts; forgetting. Within a step by sender and sequence number. Markets, keys, revocations,
//! raises, operator, incarnation and bond are read from the state before the block; deposits, entries, floors that
//! orders state and gains run from fill to fill.
//!
//! **Where units are.** Two places of custody: deposits, and bonds. Each fill sums to zero in the deposits: fees go to
//! the deposit of the venue's owner. Penalties are paid to accounts, or burnt.
//!
//! **Properties.** No action of a trader turns a fill that would apply into a bust while it is not past. A venue that
//! settles within D heights of the state that it matched on meets no bust. Nobody loses more than the deposit, the
//! limit of the order, the fee cap and the cap of the key. A collection is owed at the first block in which its request
//! is past. A contradicted report convicts, through every fence, change of operator and withdrawal. Operations of a
//! block commute. A chain without venues has no such state.
//!
//! **What the design leaves open, and how it is decided here.**
//!
//! 1. *Claims of judged incarnations.* A conviction ends the reports of all incarnations up to the present one. If they
//!    could still claim, whoever stole a report key would convict the venue with it, wait until the owner has fenced
//!    and bonded anew, and burn the new bond by claims of fills that he signs for both sides. So claims, too, need an
//!    incarnation that is not judged.
//! 2. *Claims reach what leaves.* An owner that withdraws the whole bond, stops settling and fences would owe nothing
//!    for any fill. What leaves is liable for claims as for accusations; both delays are one.
//! 3. *A seller's fee above its proceeds* (F6) is the venue's fault and not the seller's: nobody is guilty.
//! 4. *Two reports that convict together* may name two accounts. Each is paid half of the tenth.
//! 5. *A thief of a report key can name himself* in a false report and be paid the tenth; nine tenths are burnt.
//! 6. *Guilt is looked for on both sides by all of its rules* (revoked, floor, deposit, drawdown) once a fill breaks
//!    F2, F6 or F7: else a side that is short would be paid because the other one is looked at first.
//! 7. *Openings of venues claim a number*: of several in a block one counts. An opening costs the fees of a thousand
//!    payments, since a venue takes one of few places for ever.

mod block;
mod check;
mod chunks;
mod custody;
mod edit;
mod edits;
mod evidence;
mod fill;
mod mistake;
mod payouts;
mod records;
mod running;
mod settle;
mod state;
mod step;
#[cfg(test)]
mod tests;
mod written;

pub(crate) use edit::{VenueEdit, VenueOnce};
#[cfg(test)]
pub(crate) use mistake::VenueMistake;
pub use state::Venues;
