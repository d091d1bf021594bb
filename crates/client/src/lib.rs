//! Clients of a network: what the command line, a page's server or another program stands on. Nothing is printed, and
//! every error names the server, what it said and what to do ([`ClientError`]).
//!
//! - [`NodeClient`]: one call for each question to a node, with the bodies of [`api`]; nothing that it says is verified
//! - [`HistoryPage`]: an account's orders, fills, transfers and balances, page by page
//! - [`Stream`]: blocks, batches, trades, books, tickers, candles, accounts and own orders, as they change.
//!   [`LocalBook`]: a book that follows its channel. [`DisconnectGuard`]: offers that end with a connection
//! - [`OrderForms`]: orders as people place them, by side, amount of the base and price
//! - [`light`]: believes what a quorum of validators signed, whatever the node is
//! - [`Assets`]: symbols, and amounts in decimals
//! - [`keystore`]: keys on disk, encrypted
//! - [`wallet`]: signs, numbers, sends and follows transactions so that none is paid twice or lost
//! - [`purse`]: money in the payment lane: pays, receives, settles, and follows the lane's epochs
//! - [`venues`]: deposits, keys and fills of venues; [`evidence`]: what convicts one; [`Ticks`]: prices of its markets
//! - [`durable`]: files that are whole after a crash

mod assets;
mod book;
pub mod durable;
mod error;
pub mod evidence;
mod guard;
pub mod hexadecimal;
mod history;
pub mod keystore;
pub mod light;
mod node;
mod orders;
pub mod purse;
mod stream;
mod ticks;
pub mod venues;
pub mod wallet;

pub use assets::{Assets, Listed};
pub use book::{BookBroken, LocalBook};
pub use error::ClientError;
pub use guard::{DisconnectGuard, Guards};
pub use history::HistoryPage;
pub use node::{NodeClient, SigningTerms, Unready};
pub use orders::{OrderError, OrderForms, WantedOrder, unit_price};
pub use stream::{Channel, Stream, Told};
pub use ticks::{NoTick, Ticks};
