//! A block, from its transactions to the changes of the state.
//!
//! `footprint` is the one definition of what each operation means. The flow of a block (`apply`) begins with `filter`:
//! which transactions count, by `checks` of each alone and `claims` of those of an account. `orders` says what they ask
//! for. `trade` is the books: `clear`, or the check of an `attached` clearing, then `settle`. The places, `effects`
//! (the accounts) and `ethereum` (the contract phase) follow. `quote` asks the books what they would do with one more
//! offer.

mod apply;
mod attached;
mod checks;
mod claims;
mod clear;
mod conservation;
mod effects;
mod ethereum;
mod exacts;
mod fault;
mod filter;
mod footprint;
mod once;
mod orders;
mod outcomes;
mod quotas;
mod quote;
mod reservations;
mod room;
mod sealed;
mod settle;
mod spending;
mod stage;
mod together;
mod trade;
mod uses;

pub use apply::{Applied, Signatures};
pub use attached::{Attached, AttachedTrade};
pub use fault::{AttachedViolation, Fault};
pub use quotas::{
    ACCUSATIONS_PER_SUB_BLOCK, EXACTS_PER_SUB_BLOCK, LANE_CHECKS_PER_SUB_BLOCK, LANE_DUTY_CHECKS_PER_SUB_BLOCK,
    LISTINGS_PER_SUB_BLOCK, POLICY_SIGNATURES_PER_SUB_BLOCK, QUOTA_KINDS, Quota, QuotaKind, SEAL_POSTS_PER_SUB_BLOCK,
    SESSION_ENDS_PER_SUB_BLOCK, STAKES_PER_SUB_BLOCK, TYPED_DATA_PER_SUB_BLOCK, freeze_ends, quotas_of,
};
pub use quote::{NextBatch, Quote, QuoteError};
pub use reservations::{Reservations, ReserveError};
pub use sealed::{
    ENVELOPES_MAX, OpenedEnvelope, OpenedEnvelopes, OpenedOperation, OpeningRules, Unsealing, are_envelopes_sound,
    enclosed, envelopes_per_sub_block, opened,
};
pub use spending::spending;
pub use stage::Stage;
