//! The reasons of each place of custody, by its tag.

mod accounts;
mod bridge;
mod charter;
mod controls;
mod keys;
mod listings;
mod offers;
mod pools;
mod seals;
mod stakes;
#[cfg(test)]
mod trial;
mod venues;

use crate::refusal::{self, Reason};
use crate::root_parts::RootPart;

/// The reasons for which the place with this tag refuses operations; a reason's position is its number.
pub(crate) const fn of_place(tag: u8) -> &'static [Reason] {
    match tag {
        RootPart::ASSETS => refusal::REASONS,
        RootPart::BALANCES => accounts::REASONS,
        RootPart::OFFERS => offers::REASONS,
        RootPart::ESCROW => bridge::REASONS,
        RootPart::STAKES => stakes::REASONS,
        RootPart::VENUES => venues::REASONS,
        RootPart::POOLS => pools::REASONS,
        RootPart::CHARTER => charter::REASONS,
        RootPart::KEYS => keys::REASONS,
        RootPart::LISTINGS => listings::REASONS,
        RootPart::CONTROLS => controls::REASONS,
        RootPart::SEALS => seals::REASONS,
        #[cfg(test)]
        trial::TAG => trial::REASONS,
        _ => &[],
    }
}
