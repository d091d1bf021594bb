//! Models of a venue's custody: the rules of settles, guilt, penalties, claims and accusations, all small histories.
//!
//! The models share no code with the ledger. `custody` has one market, two traders, a venue that settles in time or
//! late, and traders that collect, revoke and raise their floors at the worst height, while the clock stands or
//! leaps. `liability` has a hostile venue that tries to keep its bond after a false report: by fences, changes of its
//! operator, withdrawals, claims and penalties that its own accounts receive. `roots` has what a venue journals,
//! reports and signs, with restarts, stale copies and two live roots. `queue` has the pools' queue for settles under a
//! paid flood. Each model must hold, and each of the planted bugs must break it. Snapshots and replays are in the tests
//! of the place itself (`places/venues/tests`), whose model the real machine must equal.
//!
//! **Holes that the models found in the first rules, and how they are closed.**
//!
//! 1. *Evidence convicts for ever.* A report stays a contradiction, so the same bytes burn the bond again after the
//!    owner has bonded anew: one stolen report key ends a venue, whatever it pays. Now a conviction ends all
//!    incarnations up to the present one: their reports convict no more, and nothing settles before a fence.
//! 2. *Claims that are paid empty the bond.* A venue about to be convicted fences, lets its own accounts claim fills
//!    that it reported to them, and has its bond back before the accusation is applied. The floor that penalties keep
//!    (`bond_min`) does not hold claims. Now what a claim costs is burnt.
//! 3. *Half of a penalty has no owner.* If one side is guilty, its half goes to the other side, but who receives the
//!    other half was not said. Paid to the guilty side, it rewards whoever makes fills bust at a venue that is late.
//!    Now the innocent side receives both halves; if no side is guilty, or both are, all is burnt.
//! 4. *Judged reports empty a new bond.* A conviction ended the reports as evidence, but not as claims: whoever stole a
//!    report key convicts the venue with it, waits for the fence and the new bond, and burns it by claims of fills that
//!    he signs for both sides. Now reports of judged incarnations claim nothing.
//! 5. *What leaves owes nothing.* An owner withdraws the whole bond, stops settling and fences: claims find no bond.
//!    Now claims reach what leaves, as accusations do.

mod custody;
mod liability;
mod queue;
mod roots;
