//! A batch of limit orders in, one price vector and exact trade amounts out; also checks such an answer. Usable alone.
//!
//! # The problem
//!
//! Offers sell a fixed amount of one asset for as much as possible of another, at a limit price or better. A batch is
//! *cleared* by a valuation p_A > 0 for every asset and an amount x_AB sold on every ordered pair: everybody trades
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
//! 1 and 2 hold at any prices whatever. When 3 cannot be met, trade is maximised without it, and the clearing says
//! which assets stood in the way and why. At one price vector there is no arbitrage, and nothing to gain from being
//! first.
//!
//! 3 speaks of offers inside one strongly connected group of assets: those that chains of offers join both ways.
//! Between groups there is no price, and nothing trades. And 3 excuses nothing that prices chose: an offer whose
//! pay-out would be more than can exist must fill, so that such prices are not full; only one that *asks for* more than
//! can exist need not.
//!
//! # The way
//!
//! | step | module | of the paper |
//! |---|---|---|
//! | check the book, sum supply up by price | `book`, `run`, `effective`, `supply` | appendix G |
//! | split it into parts that can be solved alone | `market`, `blocks` | appendix E |
//! | prices: Newton with continuation, or Tâtonnement | `start`, `newton`, `system`, `tatonnement` | §5, appendix C |
//! | amounts: a flow of shortages, in whole units | `amounts`, `arc`, `flow`, `rounding`, `repair` | appendix D |
//! | pools; exact-amount buy orders | [`pool`]; [`order`] | §8 |
//! | fills: who gives and receives what | [`mod@fills`], `rate`, `minima`, `rows` | §4.2 |
//! | check a clearing without solving | `verify` | K.3 |
//! | say why an offer did or did not trade | `explain` | |
//! | what may be spent; what stood in the way | `budget`, `outcome` | |
//! | seeded books for tests and measurements | [`workload`] | §7 |
//!
//! [`clear`] does all of it; [`Market`] offers the steps one by one. [`Clearing::fills`] and [`Clearing::outcomes`]
//! tell what it means for each row of a list of offers, [`Clearing::rate`] gives the rate of a pair. `examples/` has
//! five programs to begin with: `clear_file`, `incremental`, `own_solver`, `pools` and `explain`.
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
//! - Doubles decide prices and which offers are worth trying; whole numbers decide everything that moves money.
//! - Every double that leaves a step of the price computation is finite, or the step is not taken; prices stay in the
//!   range of [`primitives::Price`]. No book makes a clearing fail.
//! - What a clearing costs is bounded by its [`Budget`], in proportion to the size of the book, each part on its own. A
//!   part without a solution keeps the best prices found. One whose amount step spends its budget trades nothing. Other
//!   parts do not notice. [`Report::obstacles`] names the assets and the [`Reason`].
//! - Books whose offers all sell and ask for [`least_units`] or more are full, or range or budget is the reason, or a
//!   unit of some asset on the only way round is worth more than the band of an offer that must fill.
//! - Those who must agree on clearings run the same rules: [`RULES`] counts the changes of results.
//!
//! # Deviations from the paper
//!
//! - **Limits are net and integral**: an offer fills only if what it receives, after commission and rounding down,
//!   satisfies its limit. What a trader sees is never worse than what was signed. So the band in which offers may trade
//!   ends at (1−ε)·p_A/p_B and not at the rate, and μ must exceed ε.
//! - **Fullness goes by effective limits**, as above: two orders that ask for the same units are treated alike. By bare
//!   limit prices, an offer of few units would jump from not being payable at all to having to fill, and books of such
//!   offers would have no full clearing at any prices. What must fill is walked first, see [`mod@fills`].
//! - **A book is given in runs** with their exact totals, so that preparing it costs the runs and not the offers, and a
//!   clearing does not depend on the cut.
//! - **Newton's method** finds prices by default; Tâtonnement is there to be compared with. Both know the exact slope
//!   of demand from the same prefix sums.
//! - **Amounts are a minimum-cost flow in whole units**, for ε = 0 and ε > 0 alike, and not a linear program in
//!   floating point whose answer has to be repaired.
//! - **Very large parts** have a sparse system in place of a dense one, see `sparse`; the paper stops at decomposition.
//! - **Pools and buy orders** are of this crate: [`pool`] and [`order`] state their rules. Buy orders make no prices,
//!   as §8 has it.
//! - **Failing 3 is reported**, never silent: `full` is false and the assets in short supply are named, with the
//!   reason.
//! - **Where whole units cannot follow the prices**, because a book is tiny or a unit is dear, amounts are repaired
//!   unit by unit, what is still short is made dearer by what it lacks, and prices are sought at which offers stand
//!   deeper in the band from μ to ε, before 3 is given up: see `repair` and `solve`. Some such books have no full
//!   clearing at any prices; nothing here searches for them, or proves that there is none.
//! - **What trades apart is cleared apart**: amounts are found for each set of assets between which anything trades at
//!   the prices, and a group of the market (see `market`) in which something is short is cleared again alone. So no
//!   group is worse for another.

mod amounts;
mod arc;
mod blocks;
mod book;
mod budget;
mod connected;
mod demand;
mod dense;
mod effective;
mod explain;
pub mod fills;
mod float;
mod flow;
mod market;
mod minima;
mod newton;
pub mod order;
mod outcome;
pub mod pool;
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
mod value;
mod verify;
mod wide;
pub mod workload;

pub use amounts::Amounts;
pub use book::{Book, InputError, Offer, PairBook, Params, Solver, SortedOffers};
pub use budget::{Budget, least_units};
pub use explain::{Explanation, Why, explain};
pub use fills::{PARTIAL_TRIES, PairFills, Partial, fills};
pub use market::Groups;
pub use minima::{Minima, TooSmall};
pub use order::{BuyOrder, Purchase, TRIES};
pub use outcome::{Clearing, Obstacle, Reason, Report, Spending, Trade};
pub use pool::{Pool, PoolTrade};
pub use rate::Rate;
pub use rows::{RowFill, RowOutcome};
pub use run::{RUN, Run, RunError, Total};
pub use solve::{Market, Prices, RULES, clear};
pub use verify::{Verified, Violation, verify};
