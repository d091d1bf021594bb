//! Each planted mistake is found by a scenario that holds without it.

use venue::VenueMistake;

use crate::{backlog, custody, holders, lists, orders, restarts, sessions, settles, steps};

type Scenario = fn(Option<VenueMistake>) -> Result<(), String>;

fn scenario(mistake: VenueMistake) -> Scenario {
    match mistake {
        VenueMistake::ReportsBeforeSync => restarts::unsynced,
        VenueMistake::CreditsBuy => custody::credits,
        VenueMistake::LeavingBuys => custody::leaving,
        VenueMistake::DrawdownForgetsFills => custody::drawdown,
        VenueMistake::RevokedTrades => custody::revocation,
        VenueMistake::FrozenTrades => holders::refused,
        VenueMistake::FrozenRests => holders::rests,
        VenueMistake::AdmissionForgotten => holders::admission,
        VenueMistake::FrozenOwnerEarns => holders::owner,
        VenueMistake::RaisesLater => custody::raise,
        VenueMistake::FloorsIgnored => custody::floor_of_an_order,
        VenueMistake::ExpiredTrades => custody::expiry,
        VenueMistake::BandAtLimitOnly => custody::band,
        VenueMistake::UncoveredOrdersStay => custody::uncovered,
        VenueMistake::TwoInFlight => settles::one_in_flight,
        VenueMistake::GroupCut => orders::group,
        VenueMistake::NeverLate => settles::late,
        VenueMistake::BondForgotten => custody::bond,
        VenueMistake::RetryIsNew => orders::retry,
        VenueMistake::ReplaceForgetsExecuted => orders::replacement,
        VenueMistake::DeadManEndsAll => sessions::dead_man,
        VenueMistake::ListsBeforeTheirRules => lists::rules,
        VenueMistake::PathsForgotten => lists::room,
        VenueMistake::SignatureLeftOut => settles::signatures,
        VenueMistake::IgnoresFence => settles::fence,
        VenueMistake::IgnoresContradiction => settles::two_roots,
        VenueMistake::BacklogUnbounded => backlog::bounded,
        VenueMistake::AuctionInPause => backlog::auction_in_pause,
        VenueMistake::OpensOnOldBlocks => restarts::old_blocks,
        VenueMistake::NumbersRunAway => backlog::numbers,
        VenueMistake::SignerForgotten => restarts::comes_back,
        VenueMistake::StepsBeginAgain => steps::restart,
    }
}

#[test]
fn every_planted_mistake_of_a_root_is_found() {
    for mistake in VenueMistake::ALL.iter().copied() {
        let found = scenario(mistake)(Some(mistake));
        let what = found.expect_err(&format!("{mistake:?} is not found"));
        println!("{mistake:?}: {what}");
    }
}
