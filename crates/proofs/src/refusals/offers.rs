//! Why an offer or a cancellation is refused.

use primitives::Malformed;

use crate::refusal::{Reason, Refusal, invalid, refusals};
use crate::root_parts::RootPart;

refusals! {
    RootPart::OFFERS =>
    /// The offer sells and buys the same asset.
    SAME_ASSET: invalid, "same_asset",
        Malformed::SameAsset.text();
    /// No offer rests at the places that the transaction names.
    UNKNOWN_OFFER: refused, "unknown_offer",
        "no resting offer of this account has that pair, limit price and id; it may have traded or been cancelled";
    /// The offer that the transaction names belongs to another account.
    NOT_YOUR_OFFER: refused, "not_your_offer",
        "the offer belongs to another account";
    /// The cancel names no offer, too many, or one twice.
    CANCEL_LIST: invalid, "cancel_list",
        Malformed::CancelList.text();
    /// The offer sells less than the minimum.
    SELLS_TOO_LITTLE: invalid, "sells_too_little",
        "the offer sells less than the minimum of its asset; see `least_units` under /v1/assets";
    /// The offer asks for less than the minimum.
    ASKS_TOO_LITTLE: invalid, "asks_too_little",
        "the offer asks less than the minimum of the asset it buys: raise amount or limit; see /v1/assets";
    /// The book was full before the block.
    BOOK_FULL: refused, "book_full",
        "the book is full: it accepts new offers when some have traded or been cancelled; see `limits` in the genesis";
    /// The offer would open a pair, but the maximum number of pairs is open.
    TOO_MANY_PAIRS: refused, "too_many_pairs",
        "no more pairs can be opened: trade a pair that is open; see `limits` in the genesis";
    /// The offer would have ended below the height of the block.
    LIFE_ENDED: refused, "life_ended",
        "the offer's life is over: its last height (`life`) is below that of the block; sign it again with a later one";
    /// The offer would end too far ahead.
    LIFE_TOO_LONG: refused, "life_too_long",
        "the offer ends too far ahead: at most 4194304 heights; sign an earlier end, or one that `rests`";
    /// More of the offer rests than the replacement says.
    REMAINS_TOO_FEW: refused, "remains_too_few",
        "more of the offer rests than `remains` says: read the offer again and sign with what it shows";
    /// As many offers as may end at that height do.
    ENDS_CROWDED: refused, "ends_crowded",
        "524288 offers end at that height already: sign the offer again with another height, such as the next one";
    /// An exact order is for fewer units than the least.
    EXACT_TOO_SMALL: invalid, "exact_too_small",
        "the exact order buys or sells fewer units than the minimum of that asset; see `least_units` under /v1/assets";
}
