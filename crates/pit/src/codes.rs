//! What refusals, ends and pauses are called in answers: a code for programs, and a number in OUCH.

use venue::{FillBust, FillFate, OrderEnd, OrderRefusal, VenuePause};

macro_rules! refusals {
    ($($number:literal $code:literal $pattern:pat,)*) => {
        /// The numbers and codes of all refusals.
        #[cfg(test)]
        const REFUSALS: &[(u16, &str)] = &[$(($number, $code)),*];

        /// The number and the code of a refusal. Neither ever changes its meaning.
        pub fn refusal_name(why: &OrderRefusal) -> (u16, &'static str) {
            match why { $($pattern => ($number, $code),)* }
        }
    };
}

refusals! {
    1 "not_attached" OrderRefusal::NotAttached,
    2 "unknown_key" OrderRefusal::UnknownKey,
    3 "stopped" OrderRefusal::Stopped(_),
    4 "paused" OrderRefusal::Paused(_),
    5 "incarnation" OrderRefusal::Incarnation(_),
    6 "number_stale" OrderRefusal::NumberStale(_),
    7 "number_taken" OrderRefusal::NumberTaken,
    8 "overtaken" OrderRefusal::Overtaken,
    9 "key_revoked" OrderRefusal::KeyRevoked,
    10 "killed" OrderRefusal::Killed,
    11 "below_floor" OrderRefusal::BelowFloor(_),
    12 "market_not_open" OrderRefusal::MarketNotOpen,
    13 "mandate" OrderRefusal::Mandate,
    14 "expired" OrderRefusal::Expired(_),
    15 "until_passed" OrderRefusal::UntilPassed(_),
    16 "expires_too_late" OrderRefusal::ExpiresTooLate(_),
    17 "band" OrderRefusal::Band(_),
    18 "collar" OrderRefusal::Collar(_),
    19 "band_in_call" OrderRefusal::BandInCall(_),
    20 "lots" OrderRefusal::Lots(_),
    21 "too_few_lots" OrderRefusal::TooFewLots(_),
    22 "size" OrderRefusal::Size,
    23 "fee_cap" OrderRefusal::FeeCap(_),
    24 "market_fee_cap" OrderRefusal::MarketFeeCap,
    25 "funds" OrderRefusal::Funds { .. },
    26 "drawdown" OrderRefusal::Drawdown { .. },
    27 "too_many_entries" OrderRefusal::TooManyEntries(_),
    28 "venue_full" OrderRefusal::VenueFull,
    29 "book_full" OrderRefusal::BookFull,
    30 "halted" OrderRefusal::Halted,
    31 "not_in_call" OrderRefusal::NotInCall,
    32 "would_take" OrderRefusal::WouldTake(_),
    33 "not_fillable" OrderRefusal::NotFillable,
    34 "not_open" OrderRefusal::NotOpen,
    35 "differs" OrderRefusal::Differs,
    36 "nothing_left" OrderRefusal::NothingLeft(_),
    37 "too_many_accounts" OrderRefusal::TooManyAccounts,
    38 "too_many_keys" OrderRefusal::TooManyKeys(_),
    39 "phase" OrderRefusal::Phase,
    40 "market_settings" OrderRefusal::MarketSettings,
    41 "too_small" OrderRefusal::TooSmall(_),
    42 "too_many_makers" OrderRefusal::TooManyMakers(_),
    43 "frozen" OrderRefusal::HolderFrozen(_),
    44 "not_admitted" OrderRefusal::HolderNotAdmitted(_),
    45 "owner_frozen" OrderRefusal::OwnerFrozen(_),
    46 "lists_to_come" OrderRefusal::ListsToCome,
}

/// The number of an order that is not what its signature says, in OUCH.
pub const NOT_SIGNED: u16 = 100;
/// The number of an order that the venue does not take now, in OUCH.
pub const NOT_TAKEN: u16 = 101;
/// The number of a message that names no market, in OUCH.
pub const NO_MARKET: u16 = 102;
/// The number of what came before a restart and was not taken, in OUCH.
pub const LOST: u16 = 103;
/// What [`NOT_TAKEN`] means.
pub(crate) const NOT_TAKEN_WORDS: &str = "the venue takes nothing now: its status says why, and what to wait for";

/// Why an order ended.
pub fn end_code(why: &OrderEnd) -> &'static str {
    match why {
        OrderEnd::Filled => "filled",
        OrderEnd::Asked => "cancelled",
        OrderEnd::Replaced(_) => "replaced",
        OrderEnd::Immediate => "immediate",
        OrderEnd::SelfTrade => "self_trade",
        OrderEnd::Killed => "killed",
        OrderEnd::Expired => "expired",
        OrderEnd::Revoked => "revoked",
        OrderEnd::BelowFloor => "below_floor",
        OrderEnd::Uncovered => "uncovered",
        OrderEnd::Disconnected => "disconnected",
        OrderEnd::DeadMan => "dead_man",
        OrderEnd::BandInCall => "band_in_call",
        OrderEnd::Stopped => "stopped",
        OrderEnd::Frozen => "frozen",
    }
}

/// Why an order ended, in OUCH.
pub(crate) fn end_letter(why: &OrderEnd) -> u8 {
    match why {
        OrderEnd::Asked | OrderEnd::Filled | OrderEnd::Replaced(_) => b'U',
        OrderEnd::Immediate => b'I',
        OrderEnd::Expired => b'T',
        OrderEnd::SelfTrade => b'Q',
        _ => b'S',
    }
}

/// What became of a fill.
pub fn fate_code(fate: &FillFate) -> &'static str {
    match fate {
        FillFate::Applied => "applied",
        FillFate::Bust(why) => match why {
            FillBust::Parties => "parties",
            FillBust::Dead => "dead",
            FillBust::Expired => "expired",
            FillBust::Outside => "outside",
            FillBust::Size => "size",
            FillBust::Deposit => "deposit",
            FillBust::Drawdown => "drawdown",
            FillBust::Frozen => "frozen",
            FillBust::Fenced => "fenced",
        },
    }
}

/// Why matching pauses.
pub fn pause_code(why: &VenuePause) -> &'static str {
    match why {
        VenuePause::NoBlocks => "no_blocks",
        VenuePause::Behind => "behind",
        VenuePause::Operator => "operator",
        VenuePause::Late => "late",
        VenuePause::Bond => "bond",
        VenuePause::Fees => "fees",
        VenuePause::Backlog => "backlog",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_in_the_venues_document() {
        let document = include_str!("../../../docs/venue-api.md");
        let doors = [(NOT_SIGNED, "not_signed"), (NOT_TAKEN, "not_taken"), (NO_MARKET, "no_market"), (LOST, "lost")];
        for (number, code) in REFUSALS.iter().copied().chain(doors) {
            assert!(document.contains(&format!("\n| {number} | `{code}` | ")), "{number} {code}");
        }
    }
}
