//! Clears a batch of limit orders: computes one price vector and exact trade amounts, and verifies such a result.
//! Usable as a standalone library.
//!
//! # The problem
//!
//! Offers sell a fixed amount of one asset for as much as possible of another, at a limit price or better. A batch is
//! *cleared* by a valuation p_A > 0 for every asset and an amount x_AB sold on every ordered pair: all offers trade
//! with an auctioneer at the rate p_A/p_B, less a commission ε. A clearing is (ε, μ)-approximate (SPEEDEX appendix B)
//! when
//!
//! 1. every asset is conserved: what is sold of A covers what is paid out of A, in whole units, account by account;
//! 2. no offer executes below its limit price;
//! 3. every offer whose effective limit is at most (1−μ)·p_A/p_B executes in full.
//!
//! As pay-outs are whole units, an offer of a units at limit l asks for ceil(a·l) of them; its *effective limit* is
//! ceil(a·l)/a. For all but very small amounts that is its limit price.
//!
//! Conditions 1 and 2 can be met at any prices. When 3 cannot be met, trade is maximised without it, and the clearing
//! says which assets prevented it and why. At one price vector there is no arbitrage, and nothing is gained by being
//! first.
//!
//! Condition 3 covers offers inside one strongly connected group of assets: those that chains of offers join both ways.
//! Between groups there is no price, and nothing trades. Condition 3 makes no exception for the choice of prices: an
//! offer whose pay-out would be more than can exist must fill, so that such prices are not full. Only an offer that
//! *asks for* more than can exist need not.
//!
//! # The steps
//!
//! | step | module | of the paper |
//! |---|---|---|
//! | check the book, sum up supply by price | `book`, `run`, `effective`, `supply` | appendix G |
//! | split it into parts that can be solved alone | `market`, `blocks` | appendix E |
//! | prices of thick parts: Newton, or Tâtonnement | `start`, `newton`, `tatonnement` | §5, appendix C |
//! | prices of thin parts: an interior-point method | `interior` | appendix F.1 |
//! | linear systems of both | `system`, `dense`, `sparse` | |
//! | amounts: a flow of shortages, in whole units | `amounts`, `arc`, `flow`, `rounding`, `repair` | appendix D |
//! | whole units at any prices, or a proof that there are none | `units` | |
//! | pools; orders for exact amounts | [`pool`]; [`order`] | §8 |
//! | fills: what each offer gives and receives | [`mod@fills`], `rate`, `minima`, `rows` | §4.2 |
//! | check a clearing without solving | `verify` | K.3 |
//! | explain why an offer did or did not trade | `explain` | |
//! | budget; obstacles to fullness | `budget`, `outcome` | |
//! | seeded books for tests and measurements | [`workload`] | §7 |
//!
//! [`clear`] does all of it; [`Market`] offers the steps one by one. [`Clearing::fills`] and [`Clearing::outcomes`]
//! give the results for each row of a list of offers, [`Clearing::rate`] the rate of a pair. `examples/` has five
//! programs to start from: `clear_file`, `incremental`, `own_solver`, `pools` and `explain`.
//!
//! ```
//! use clearing::{Offer, Params, SortedOffers, clear, verify};
//! use primitives::AssetId;
//!
//! let (eur, usd) = (AssetId(0), AssetId(1));
//! let offers = [
//!     Offer { sell: eur, buy: usd, amount: 1_000_000, limit: "1.08".parse()? },
//!     Offer { sell: usd, buy: eur, amount: 1_200_000, limit: "0.90".parse()? },
//! ];
//! let sorted = SortedOffers::new(2, &offers);
//! let (book, params) = (sorted.book(), Params::default());
//! let clearing = clear(&book, &params, None)?;
//! assert!(clearing.full);
//! let verified = verify(&book, &params, &clearing)?;
//! assert_eq!(verified.executed, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Properties
//!
//! - A clearing is a function of the book, the parameters and the earlier prices: no clock, no randomness, budgets in
//!   iterations; doubles only by + − × ÷ and square root in a fixed order; the same for any number of threads.
//! - Doubles decide prices and which offers are worth trying; integers decide everything that moves money.
//! - Every double that leaves a step of the price computation is finite, or the step is not taken; prices stay in the
//!   range of [`primitives::Price`]. No book makes a clearing fail.
//! - The cost of a clearing is bounded by its [`Budget`], in proportion to the size of the book, separately for each
//!   part. A part without a solution keeps the best prices found. A part whose amount step uses up its budget trades
//!   nothing. Other parts are not affected. [`Report::obstacles`] names the assets and the [`Reason`].
//! - Books whose offers all sell and ask for [`least_units`] or more are full, with two exceptions. The reason may be
//!   range or budget. Or a unit of some asset on the only path is worth more than the band of an offer that must fill.
//!   Then no prices help, and for most such books there is a [`UnitsProof`].
//! - Nodes that must agree on clearings run the same rules: [`RULES`] counts the changes of results.
//!
//! # Deviations from the paper
//!
//! - **Limits are net and integral**: an offer fills only if what it receives, after commission and rounding down,
//!   satisfies its limit. A trader never gets less than the signed limit. So the band in which offers may trade ends
//!   at (1−ε)·p_A/p_B and not at the rate, and μ must exceed ε.
//! - **Fullness uses effective limits**, as above: two orders that ask for the same units are treated alike. With
//!   bare limit prices, an offer of few units would jump from not being payable at all to having to fill, and books
//!   of such offers would have no full clearing at any prices. Offers that must fill are walked first, see
//!   [`mod@fills`].
//! - **A book is given in runs** with their exact totals, so that preparing it costs time per run and not per offer,
//!   and a clearing does not depend on how the runs are cut.
//! - **Newton's method** finds prices of thick parts; Tâtonnement is kept for comparison. Both compute the exact slope
//!   of demand from the same prefix sums.
//! - **A demand query runs on one thread.** In §9.2 helper threads that spin on a lock do its binary searches. Here
//!   most pairs need none: a pair remembers the band of its last evaluation and reads only the offers that the band
//!   moves over, see `demand`, so that a query costs less than waking a thread. Threads work on supply, on the parts of
//!   the market and on instances of Tâtonnement. So one large part gains little from many cores.
//! - **An interior-point method** on the convex program of appendix F.1 finds prices of thin parts, and of all for
//!   which Newton's method fails. The paper dismisses the program because its size grows with the number of offers.
//!   Here adjacent offers far from the margin share a variable, see `interior`. `solve` says which method runs.
//! - **Amounts are a minimum-cost flow in whole units**, for ε = 0 and ε > 0 alike, instead of a linear program in
//!   floating point whose result must be repaired.
//! - **Very large parts** use a sparse system instead of a dense one, see `sparse`; the paper stops at decomposition.
//! - **Pools and exact orders** are additions of this crate: [`pool`] and [`order`] state their rules. The latter do
//!   not influence prices, as in §8.
//! - **A failure of condition 3 is always reported**: `full` is false and the assets in short supply are named, with
//!   the reason.
//! - **Where whole units cannot follow the prices**, because a book is tiny or a unit is dear, three things are tried
//!   before condition 3 is given up. Amounts are repaired unit by unit. Prices are sought at which offers are elsewhere
//!   in the band from μ to ε, see `repair` and `interior`. All cases of units sold and paid are divided until one has
//!   full amounts, or a contradiction closes each. Then the clearing carries a [`UnitsProof`] that none is full, which
//!   [`verify`] checks; see `units`.
//! - **Sets that trade separately are cleared separately**: amounts are found for each set of assets between which
//!   anything trades at the prices, and a group of the market (see `market`) with a shortage is cleared again part by
//!   part, see `again`. So no part is worse off because of another.

mod again;
mod amounts;
mod arc;
mod band;
mod blocks;
mod book;
mod budget;
mod connected;
mod demand;
mod dense;
mod effective;
mod elimination;
mod explain;
pub mod fills;
mod float;
mod flow;
mod interior;
mod market;
mod minima;
mod newton;
pub mod order;
mod outcome;
pub mod pool;
mod prices;
mod quality;
mod range;
mod rate;
mod repair;
mod rounding;
mod rows;
mod run;
mod search;
mod solve;
mod sparse;
mod start;
mod supply;
mod system;
mod tatonnement;
mod threshold;
mod units;
mod value;
mod verify;
mod wide;
pub mod workload;

pub use amounts::Amounts;
pub use book::{Book, ExactOrder, InputError, Offer, PairBook, Params, Solver, SortedOffers};
pub use budget::{Budget, Spending, least_units};
pub use explain::{Explanation, TradeReason, explain};
pub use fills::{PairFills, Partial, fills};
pub use market::Groups;
pub use minima::{Minima, TooSmall};
pub use order::{ExactFill, TRIES, TRIES_IN_VAIN};
pub use outcome::{Clearing, Obstacle, Reason, Report, Trade};
pub use pool::{Pool, PoolTrade};
pub use prices::{Market, Prices};
pub use rate::{PARTIAL_TRIES, Rate};
pub use rows::{RowFill, RowOutcome};
pub use run::{RUN, Run, RunError, Total};
pub use solve::{RULES, clear};
pub use units::{Division, MOST_ASSETS, MOST_DIVISIONS, MOST_OFFERS, UnitsProof};
pub use verify::{Verified, Violation, check_pools, verify};
