//! Bodies of answers, from what was read: amounts and prices are exact decimal strings, ids are hexadecimal.

use ledger::Refusal;

mod asked;
mod blocks;
mod committees;
mod ethereum;
mod history;
mod keys;
mod lane;
mod markets;
mod node;
mod operations;
mod proposals;
mod seal;
mod symbols;
mod typed_data;
mod upgrade;
mod venues;

pub use api::*;
pub(crate) use asked::ExactTerms;
pub use blocks::{block, outcome};
pub use committees::validators;
pub use ethereum::{ethereum_committed, ethereum_executed, ethereum_output, ethereum_pending, ethereum_transaction};
pub(crate) use history::OrderSums;
pub use history::{OfferStanding, standing};
pub use keys::account_keys;
pub use lane::{lane, lane_cases, lane_output, lane_registration};
pub(crate) use markets::Limit;
pub use markets::{candle, price, rounded};
pub use node::{assets, holder, listing};
pub use operations::{order_number, venue_operator};
pub use proposals::{parameters, proposed_words};
pub use seal::{seal, sealing};
pub use symbols::Symbols;
pub use typed_data::typed_data;
pub use upgrade::{rules_to_come, upgrade};
pub use venues::{ended, filled_order, settled, settled_fill, venue, venue_terms};

/// The code and the sentence of a refusal.
pub fn refused(refusal: Refusal) -> ErrorText {
    ErrorText { code: refusal.code().into(), message: refusal.to_string() }
}
