//! Why an operation at a venue is refused.

use primitives::Malformed;

use crate::refusal::{Reason, Refusal, invalid, refusals};
use crate::root_parts::RootPart;

refusals! {
    RootPart::VENUES =>
    /// The operation is out of bounds by its bytes alone.
    VENUE_BOUNDS: invalid, "venue_bounds",
        Malformed::VenueBounds.text();
    /// The chain has no venues.
    NO_VENUES: invalid, "no_venues",
        "this chain has no venues of continuous markets; see `venues` in the genesis";
    /// The settle has more bytes than the chain permits.
    SETTLE_TOO_LONG: invalid, "settle_too_long",
        "the settle has more bytes than `venues.settle_bytes` of the genesis permits: split it";
    /// There is no such venue.
    UNKNOWN_VENUE: refused, "unknown_venue",
        "no venue has this number";
    /// The venue or market to open has another number than the next free one.
    WRONG_VENUE_NUMBER: refused, "wrong_venue_number",
        "a new venue or market takes the next free number: read how many there are, and sign again";
    /// There are as many venues as the chain permits.
    TOO_MANY_VENUES: refused, "too_many_venues",
        "the chain has as many venues as `venues.venues_max` of its genesis permits";
    /// The bond is too low to open a venue.
    BOND_TOO_LOW: invalid, "bond_too_low",
        "a venue opens with at least `venues.bond_min` of the genesis";
    /// The sender does not own the venue.
    NOT_VENUE_OWNER: refused, "not_venue_owner",
        "only the venue's owner can do this";
    /// The sender is not the operator of the venue, or the replaced operator is not the present one.
    NOT_OPERATOR: refused, "not_operator",
        "the venue has another operator";
    /// The terms of a market are impossible.
    MARKET_TERMS: invalid, "market_terms",
        "the market's terms are impossible, or its penalty is below `venues.penalty_min` of the genesis";
    /// The venue is in another incarnation.
    WRONG_INCARNATION: refused, "wrong_incarnation",
        "the venue is in another incarnation: read it, and sign again";
    /// The incarnation has as many report keys as it may have.
    TOO_MANY_REPORT_KEYS: refused, "too_many_report_keys",
        "the incarnation has had 8 report keys: fence it first";
    /// A withdrawal from the bond is running, or is of more than the bond.
    BOND_LEAVES: refused, "bond_leaves",
        "another withdrawal from the bond is running, or the bond has fewer units";
    /// The venue was convicted in this incarnation.
    VENUE_CONVICTED: refused, "venue_convicted",
        "the venue was convicted in this incarnation: nothing settles before a fence, and its reports prove no more";
    /// The sender has nothing to collect.
    NO_DEPOSIT: refused, "no_deposit",
        "the account has no units of this asset at the venue that are not leaving already";
    /// A request for the deposit is running.
    COLLECTING: refused, "collecting",
        "a request for units of this deposit is running: wait until it is paid";
    /// The key is authorised already, or was.
    KEY_TAKEN: refused, "key_taken",
        "the key was authorised at this venue before: use another one";
    /// The mandate names a market that the venue does not have.
    UNKNOWN_MARKET: refused, "unknown_market",
        "the venue has no such market";
    /// The sender has no such key at the venue.
    NOT_YOUR_KEY: refused, "not_your_key",
        "the account has no such key at the venue, or it is revoked";
    /// The floor does not rise.
    FLOOR_NOT_RAISED: refused, "floor_not_raised",
        "the floor is not above all floors of the key, or four raises of it wait";
    /// The evidence convicts nobody.
    BAD_VENUE_EVIDENCE: refused, "bad_venue_evidence",
        "the report is not by a report key of the incarnation, or nothing contradicts it: make its paths again";
    /// Nothing answers for the venue.
    NOTHING_BONDED: refused, "nothing_bonded",
        "the venue has no bond";
    /// The claim is too late, for a fill that settled, or was made before.
    BAD_CLAIM: refused, "bad_claim",
        "the fill is settled or claimed, is not the reported one, or its incarnation ended too long ago";
    /// The key is to be for something else than trading at a venue.
    KEY_SCOPE: invalid, "key_scope",
        "this version authorises keys of scope `venue` alone: `batch` and `cancel` are not accepted yet";
}
