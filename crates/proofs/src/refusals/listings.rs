//! Why a listing is refused, and what no longer works with an asset that closes.

use primitives::Malformed;

use crate::refusal::{Reason, Refusal, invalid, refusals};
use crate::root_parts::RootPart;

refusals! {
    RootPart::LISTINGS =>
    /// The terms of a listing are out of bounds.
    ASSET_TERMS: invalid, "asset_terms",
        Malformed::AssetTerms.text();
    /// The chain lists no assets.
    NO_LISTINGS: invalid, "no_listings",
        "this chain lists no assets after its genesis: `listing` at /v1/limits tells how those are listed that do";
    /// The listing costs other fees now.
    LISTING_FEES: refused, "listing_fees",
        "a listing costs another number of fees now, and nothing was paid: sign again with `listing.fees` of \
         /v1/limits";
    /// The name could be taken for another one.
    LOOK_ALIKE: refused, "look_alike",
        "the name could be taken for that of an asset that the chain began with: choose a symbol that differs by more \
         than case, 0 and o, 1, i and l, 5 and s, or the signs . - _";
    /// The least units are too few.
    LISTED_LEAST_UNITS: invalid, "listed_least_units",
        "least_units are so few that rounding exceeds the band: choose 2 / (mu - epsilon) or more; see /v1/limits";
    /// There are as many open assets as the chain has room for.
    TOO_MANY_ASSETS: refused, "too_many_assets",
        "the chain has no room for another open asset (`listing.assets_max` at /v1/limits); nothing was paid";
    /// The asset is closed.
    ASSET_CLOSED: refused, "asset_closed",
        "the asset is closed: it can be paid, burnt and brought home, but no longer be offered, issued, pooled, \
         deposited or moved into the payment lane";
    /// The offer would outlive an asset.
    OUTLIVES_ASSET: refused, "outlives_asset",
        "one of the assets closes: let the offer end at its last height, `closes` of the asset, or earlier";
    /// Asset 0 never closes.
    FIRST_ASSET: invalid, "first_asset",
        "the first asset pays fees and is staked: it never closes";
    /// It closes already.
    CLOSES_ALREADY: refused, "closes_already",
        "the asset closes already, or is closed; `closes` of the asset is the last height that it trades at";
    /// It does not close.
    NOT_CLOSING: refused, "not_closing",
        "the asset does not close: there is nothing to revoke";
    /// Its last height has come.
    CLOSES_NOW: refused, "closes_now",
        "the last height of the asset has come: its closing can no longer be revoked";
    /// Offers of listed assets have their share of the book.
    LISTED_OFFERS_FULL: refused, "listed_offers_full",
        "offers that sell listed assets take half of the book, or those of this one a sixteenth; cancel some, or wait";
    /// Pairs of listed assets have their share of the pairs.
    LISTED_PAIRS_FULL: refused, "listed_pairs_full",
        "pairs of listed assets take half of all pairs, or those of one of these assets a sixteenth";
    /// Pools of listed assets have their share of the pools.
    LISTED_POOLS_FULL: refused, "listed_pools_full",
        "pools of listed assets take half of all pools";
    /// The chain lists no assets for a price now.
    NOT_PRICED: refused, "not_priced",
        "this chain lists no assets for a price now: `listing` at /v1/limits tells how it does";
    /// A vote closes the asset.
    CLOSED_BY_VOTE: refused, "closed_by_vote",
        "validators have voted that the asset closes: its issuer cannot take that back";
}
