//! What trading keys of venues may do.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a trading key may do. It never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MandateBody {
    /// `venue`: it trades at the venue. Others are not accepted yet.
    pub scope: Cow<'static, str>,
    /// The markets, by number.
    pub markets: Vec<MarketMandateBody>,
    /// The most that it may lose on balance, by asset; of an asset that is missing nothing.
    pub caps: Vec<MandateCapBody>,
}

/// A market that a key may trade in, and at which prices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MarketMandateBody {
    /// The market.
    pub market: u32,
    /// The lowest price in ticks.
    pub tick_min: u32,
    /// The highest price in ticks.
    pub tick_max: u32,
}

/// The most that a key may lose of an asset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MandateCapBody {
    /// Symbol.
    pub asset: String,
    /// Units.
    pub units: String,
}
