//! Operations of transactions: one list, for what a node shows and for what it is asked to prepare.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::mandates::{MandateBody, SessionCapBody};

/// The operation of a transaction. Assets are symbols, and units are decimal text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OperationBody {
    /// Registers an account, or rotates the account's own key.
    CreateAccount {
        /// The account.
        account: String,
        /// The key that controls it from the next block on.
        key: String,
    },
    /// Offers an asset for another.
    CreateOffer {
        /// Symbol sold.
        sell: String,
        /// Symbol bought.
        buy: String,
        /// Maximum units to sell.
        amount: String,
        /// Minimum units bought per unit sold.
        limit: String,
        /// How long it rests: `rests` until it is sold or cancelled, `until` and the last height whose batch it is
        /// in, or `one batch`.
        #[serde(default = "rests")]
        life: String,
        /// What its client calls it: 16 bytes in hexadecimal. No state has it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<String>,
    },
    /// Cancels offers.
    Cancel {
        /// Where they rest, 1 to 32 places. What does not rest is skipped; one must.
        offers: Vec<OfferPlaceBody>,
    },
    /// Cancels an offer and places another one of the same pair.
    Replace {
        /// Symbol sold.
        sell: String,
        /// Symbol bought.
        buy: String,
        /// Limit of the old offer.
        old_limit: String,
        /// Id of the old offer.
        #[serde(deserialize_with = "whole")]
        offer: String,
        /// Units that the sender believes rest of it; no more do. The new offer is smaller by what was sold meanwhile.
        remains: String,
        /// Units that the new offer sells if `remains` rest.
        amount: String,
        /// Limit of the new offer.
        limit: String,
        /// How long it rests, as in `create_offer`.
        #[serde(default = "rests")]
        life: String,
        /// What its client calls it: 16 bytes in hexadecimal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<String>,
    },
    /// In the batch of its block, buys or sells exactly so many units within its bound; otherwise nothing happens.
    Exact {
        /// Symbol sold.
        sell: String,
        /// Symbol bought.
        buy: String,
        /// `buy`: exactly `units` of `buy` are bought; `sell`: exactly `units` of `sell` are sold.
        side: Cow<'static, str>,
        /// Units to buy or to sell.
        units: String,
        /// The most units of `sell` to pay, which it locks for the block, or the fewest of `buy` to receive.
        bound: String,
        /// What its client calls it: 16 bytes in hexadecimal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<String>,
    },
    /// Moves units to another account.
    Pay {
        /// Receiving account.
        to: String,
        /// Symbol.
        asset: String,
        /// Units.
        amount: String,
    },
    /// Creates units.
    Issue {
        /// Receiving account.
        to: String,
        /// Symbol.
        asset: String,
        /// Units.
        amount: String,
    },
    /// Destroys units.
    Burn {
        /// Symbol.
        asset: String,
        /// Units.
        amount: String,
    },
    /// Registers a validator, adds to its stake, or changes its key or address.
    Stake {
        /// Units of the first asset to add.
        units: String,
        /// The validator's key.
        key: String,
        /// Host and port.
        address: String,
        /// The validator key's proof of possession.
        possession: String,
    },
    /// Withdraws units from the account's own stake.
    Unstake {
        /// Units of the first asset.
        units: String,
    },
    /// Proves that a validator contradicted itself. To ask for it, give it as `encoded`.
    Accuse {
        /// The epoch of its committee.
        epoch: String,
        /// Its index in the committee.
        validator: u8,
        /// The height of its two statements.
        height: String,
        /// `proposals` or `commits`; in rounds, `round_votes` or `round_proposals`.
        statements: Cow<'static, str>,
    },
    /// Says that the account's validator is present. Its node posts it by itself; it is only shown in this form.
    Present {
        /// The epoch that it may be drawn for.
        epoch: String,
    },
    /// Moves units into the payment lane.
    Withdraw {
        /// The key that may spend them there.
        to: String,
        /// Symbol.
        asset: String,
        /// Units.
        amount: String,
    },
    /// Opens a constant-product pool.
    OpenPool {
        /// Symbol of the asset with the lower number.
        a: String,
        /// Symbol of the other asset.
        b: String,
        /// Fee class.
        #[serde(default)]
        class: u8,
        /// Units of `a`.
        x: String,
        /// Units of `b`.
        y: String,
    },
    /// Buys shares of a pool.
    Provide {
        /// Symbol of the asset with the lower number.
        a: String,
        /// Symbol of the other asset.
        b: String,
        /// Fee class.
        #[serde(default)]
        class: u8,
        /// Shares to buy.
        shares: String,
        /// The most units of `a` to pay; what is not needed returns.
        most_a: String,
        /// The most units of `b`.
        most_b: String,
    },
    /// Gives shares of a pool back.
    Leave {
        /// Symbol of the asset with the lower number.
        a: String,
        /// Symbol of the other asset.
        b: String,
        /// Fee class.
        #[serde(default)]
        class: u8,
        /// Shares to give back.
        shares: String,
        /// The fewest units of `a` to receive.
        least_a: String,
        /// The fewest units of `b`.
        least_b: String,
    },
    /// Lets a key cancel or trade for the account.
    AuthorizeSession {
        /// The slot: one above the last one that the account has given.
        slot: u32,
        /// The key.
        key: String,
        /// `cancel` or `trade`.
        scope: Cow<'static, str>,
        /// The last height at which its transactions count.
        #[serde(deserialize_with = "whole")]
        ends: String,
        /// Its offers end with this block, unless the height is raised before.
        #[serde(deserialize_with = "whole")]
        alive: String,
        /// Units that it may use of each asset, fees included; at most 8. Of others it may use nothing.
        caps: Vec<SessionCapBody>,
        /// The key's signature that it agrees.
        possession: String,
    },
    /// Ends a session key and its offers.
    RevokeSession {
        /// The slot.
        slot: u32,
    },
    /// Raises the height at whose end a session key's offers end; 0 ends them now.
    SessionAlive {
        /// The slot.
        slot: u32,
        /// The height, or 0.
        #[serde(deserialize_with = "whole")]
        through: String,
    },
    /// Does something at a venue of continuous markets.
    Venue(VenueOperationBody),
    /// Posts something about the payment lane.
    Lane {
        /// The bytes posted, in hexadecimal.
        post: String,
    },
    /// Any operation in its wire encoding, to ask for it. Answers show each by its kind.
    Encoded {
        /// The bytes, in hexadecimal.
        bytes: String,
    },
}

/// Where an offer of the sender rests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OfferPlaceBody {
    /// Symbol sold.
    pub sell: String,
    /// Symbol bought.
    pub buy: String,
    /// Its limit.
    pub limit: String,
    /// Its id.
    #[serde(deserialize_with = "whole")]
    pub offer: String,
}

/// What an operation does at a venue. Evidence and settles are asked for as `encoded`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum VenueOperationBody {
    /// Opens a venue, which the sender owns.
    Open {
        /// Its number: the next free one.
        venue: u32,
        /// Who settles and reports.
        operator: VenueOperatorBody,
        /// The most that an order pays in fees, in millionths of the quote units that it trades.
        fee_cap_ppm: u32,
        /// Units of the first asset that become its bond.
        bond: String,
    },
    /// Lists a market.
    List {
        /// The venue.
        venue: u32,
        /// The market's number: the next free one of the venue.
        market: u32,
        /// Its terms, for ever.
        terms: VenueMarketTermsBody,
    },
    /// Ends an incarnation.
    Fence {
        /// The venue.
        venue: u32,
        /// The incarnation.
        incarnation: u32,
    },
    /// Replaces the operator.
    ChangeOperator {
        /// The venue.
        venue: u32,
        /// The present one.
        from: VenueOperatorBody,
        /// The next one.
        to: VenueOperatorBody,
    },
    /// Adds to the bond.
    Bond {
        /// The venue.
        venue: u32,
        /// Units of the first asset.
        units: String,
    },
    /// Withdraws from the bond.
    Unbond {
        /// The venue.
        venue: u32,
        /// Units of the first asset.
        units: String,
    },
    /// Deposits units of the sender.
    Deposit {
        /// The venue.
        venue: u32,
        /// Symbol.
        asset: String,
        /// Units.
        units: String,
    },
    /// Asks for units of the sender's deposit, or for all if it has fewer.
    Collect {
        /// The venue.
        venue: u32,
        /// Symbol.
        asset: String,
        /// Units.
        units: String,
    },
    /// Lets a key trade for the sender.
    Authorize {
        /// The venue.
        venue: u32,
        /// The key.
        key: String,
        /// What it may do.
        mandate: MandateBody,
        /// The key's signature that it agrees.
        possession: String,
    },
    /// Ends a key of the sender for ever.
    Revoke {
        /// The venue.
        venue: u32,
        /// The key.
        key: String,
    },
    /// Lower numbers of a key of the sender are dead.
    RaiseFloor {
        /// The venue.
        venue: u32,
        /// The key.
        key: String,
        /// The lowest number that lives.
        floor: OrderNumberBody,
    },
    /// Settles fills.
    Settle {
        /// The venue.
        venue: u32,
        /// Its incarnation.
        incarnation: u32,
        /// The index of the first fill.
        from: String,
        /// Number of fills.
        fills: usize,
    },
    /// Proves that a venue reported something else than it settled.
    Accuse {
        /// The venue.
        venue: u32,
        /// The incarnation of the report.
        incarnation: u32,
        /// The index of the reported fill.
        index: String,
        /// The account to which the report was made.
        account: String,
    },
    /// Claims a reported fill that an ended incarnation never settled.
    Claim {
        /// The venue.
        venue: u32,
        /// The incarnation of the report.
        incarnation: u32,
        /// The index of the reported fill.
        index: String,
        /// The account to which the report was made.
        account: String,
    },
}

/// The account that settles for a venue, and the key that signs its reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VenueOperatorBody {
    /// The account.
    pub account: String,
    /// The report key.
    pub report_key: String,
}

/// The terms of a market.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VenueMarketTermsBody {
    /// Symbol of the asset that is traded.
    pub base: String,
    /// Symbol of the asset in which it is paid.
    pub quote: String,
    /// Base units of a lot.
    pub lot_units: String,
    /// Quote units of a lot for one tick.
    pub tick_units: String,
    /// The most lots of an order.
    pub lots_max: u32,
    /// The most that an order pays in fees, in millionths of the quote units that it trades.
    pub fee_cap_ppm: u32,
    /// What a bust costs the bond, in units of the first asset for each lot.
    pub penalty: String,
}

/// The number of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrderNumberBody {
    /// The incarnation of the venue that the order is for.
    pub incarnation: u32,
    /// The day of the session.
    pub day: u16,
    /// The client's reference.
    pub reference: u32,
}

/// The life of an offer whose body says none.
fn rests() -> String {
    "rests".into()
}

/// A whole number as text, or as a JSON number.
fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Text(String),
        Json(u64),
    }
    Ok(match Number::deserialize(from)? {
        Number::Text(text) => text,
        Number::Json(number) => number.to_string(),
    })
}

impl OperationBody {
    /// Its `type`.
    pub fn name(&self) -> &'static str {
        match self {
            OperationBody::CreateAccount { .. } => "create_account",
            OperationBody::CreateOffer { .. } => "create_offer",
            OperationBody::Cancel { .. } => "cancel",
            OperationBody::Replace { .. } => "replace",
            OperationBody::Exact { .. } => "exact",
            OperationBody::Pay { .. } => "pay",
            OperationBody::Issue { .. } => "issue",
            OperationBody::Burn { .. } => "burn",
            OperationBody::Stake { .. } => "stake",
            OperationBody::Unstake { .. } => "unstake",
            OperationBody::Accuse { .. } => "accuse",
            OperationBody::Present { .. } => "present",
            OperationBody::Withdraw { .. } => "withdraw",
            OperationBody::OpenPool { .. } => "open_pool",
            OperationBody::Provide { .. } => "provide",
            OperationBody::Leave { .. } => "leave",
            OperationBody::AuthorizeSession { .. } => "authorize_session",
            OperationBody::RevokeSession { .. } => "revoke_session",
            OperationBody::SessionAlive { .. } => "session_alive",
            OperationBody::Venue(_) => "venue",
            OperationBody::Lane { .. } => "lane",
            OperationBody::Encoded { .. } => "encoded",
        }
    }
}

impl VenueOperationBody {
    /// Its `action`.
    pub fn name(&self) -> &'static str {
        match self {
            VenueOperationBody::Open { .. } => "open",
            VenueOperationBody::List { .. } => "list",
            VenueOperationBody::Fence { .. } => "fence",
            VenueOperationBody::ChangeOperator { .. } => "change_operator",
            VenueOperationBody::Bond { .. } => "bond",
            VenueOperationBody::Unbond { .. } => "unbond",
            VenueOperationBody::Deposit { .. } => "deposit",
            VenueOperationBody::Collect { .. } => "collect",
            VenueOperationBody::Authorize { .. } => "authorize",
            VenueOperationBody::Revoke { .. } => "revoke",
            VenueOperationBody::RaiseFloor { .. } => "raise_floor",
            VenueOperationBody::Settle { .. } => "settle",
            VenueOperationBody::Accuse { .. } => "accuse",
            VenueOperationBody::Claim { .. } => "claim",
        }
    }
}
