//! Continuous markets: orders that traders sign for a venue, fills that it settles, and reports that convict it.
//!
//! A venue matches orders by price and time outside the ledger and settles the fills on it. This module has what both
//! sides must agree on byte by byte. Signed orders ([`VenueOrder`]) come first, and fills in a settle ([`Settle`]) with
//! the faults that its bytes alone show ([`Settle::check`]). The tree over all fills of an incarnation ([`FillTree`])
//! and signed reports of fills ([`FillReport`], [`StepReport`]) follow. It also says when an action counts
//! ([`Horizon`]), and what lots, ticks and fees are worth ([`MarketTerms`]). Whether a fill applies or busts depends on
//! the state and is decided in the ledger.
//!
//! # Properties
//!
//! 1. *One function for all.* Gateway, venue and ledger call the same [`Settle::check`], which needs no state: a settle
//!    that fails it is as invalid as a forged transaction. Arithmetic is checked, since a decided block that overflows
//!    would stop every validator.
//! 2. *An order is for one network, venue and incarnation.* Network and venue are part of what is signed and not of
//!    what is sent. The incarnation is the first part of its number.
//! 3. *A leaf does not depend on the verdict.* It commits to both orders, lots, tick, fees and the taker's side, so
//!    that a report can be given before the ledger applies or busts the fill.
//! 4. *A report convicts.* It names network, venue, incarnation, index, leaf, and the account of the trader it was made
//!    to. Another leaf at its index in the tree of that incarnation is a contradiction, and so is a second report of
//!    the index with another leaf. From some rules on one signature holds for all reports of a step; that is a protocol
//!    of its own, in `step`.
//! 5. *Domains are separate.* Orders, reports and possessions begin with tags of their own when signed; orders, leaves
//!    and nodes of the tree are hashed in contexts of their own.
//!
//! # Rules of penalties and convictions that models found missing
//!
//! The exhaustive models in the ledger's tests (`venue_model`) reject the first rules of claims and evidence. What the
//! ledger does must follow these:
//!
//! - A conviction ends all incarnations up to the present one: their reports convict no more, and nothing settles
//!   before a fence. Otherwise the same bytes burn each new bond, and a stolen report key ends a venue for ever.
//! - What a claim costs the bond is burnt. Were it paid, a venue about to be convicted would fence and let its own
//!   accounts claim the bond first: the part of the bond that penalties cannot touch does not bind claims.
//! - Reports of judged incarnations claim nothing, either: a stolen report key would burn each new bond by claims of
//!   fills that the thief signs for both sides.
//! - Claims reach the units of the bond that leave: else an owner who withdraws the bond and fences owes nothing.
//! - A penalty has two halves. If one side is guilty, the other side receives both; if neither is, or both are, all is
//!   burnt.

mod horizon;
mod list;
mod market;
mod operation;
mod order;
mod report;
mod settle;
mod signed_order;
mod step;
mod tree;
mod weight;

pub use horizon::{Delay, Horizon};
pub use list::{
    CheckedList, LIST_ORDERS_MAX, ListEntry, ListFault, ListHeader, ListedSignature, ORDER_LISTS_RULES, OrderList, Salt,
};
pub use market::{FillUnits, MarketTerms, is_within_cap};
pub use operation::{
    Contradicting, EndedIncarnation, KeyScope, MANDATE_CAPS_MAX, MANDATE_MARKETS_MAX, Mandate, MarketMandate,
    ProvenEnd, REPORT_KEYS_MAX, SETTLE_BYTES_MAX, UnsettledFill, VENUE_SIGNATURES_PER_SUB_BLOCK, VenueEvidence,
    VenueOperation, VenueOperator,
};
pub use order::{OrderLife, OrderNumber, OrderNumberError, SelfTradeRule, VenueOrder, VenueSide};
pub use report::{CarriedSignature, FillReport, ReportedFill, SignedReport, StepHeader, possession_bytes};
pub use settle::{GROUP_FILLS_MAX, Settle, SettleFault, SettledFill};
pub use signed_order::{OrderSignature, SettledOrder, SignedOrder};
pub use step::{STEP_REPORTS_RULES, SignedStep, StepReport, VenueReport};
pub use tree::{FillTree, PathFault, verify_leaf};

/// The number of a venue.
pub type VenueId = u32;
/// The number of a market of a venue.
pub type MarketId = u32;

/// The highest tick: prices of market data have 31 bits.
pub const TICK_MAX: u32 = 2_000_000_000;
/// Millionths in one: a fee cap of this much permits a fee of the whole quote amount.
pub const PPM: u32 = 1_000_000;
