//! The terms by which assets are listed on a running chain, in its genesis.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Amount, Height};

/// Heights that are called a day.
const DAY: Height = 86_400;
/// The longest notice of a closing: 400 days of blocks of a second.
const NOTICE_MAX: Height = 400 * DAY;
/// The most assets that may be open at one time on any chain.
pub(super) const ASSETS_MAX: u32 = 16_384;
/// The most fees of a first listing: doubled seven times, a transaction may still offer them.
pub(super) const FEES_MAX: u64 = 1 << 32;

/// Who lists assets after the genesis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum ListingPolicy {
    /// Nobody.
    #[default]
    Closed,
    /// Whoever pays for it.
    Priced,
    /// A vote of the validators, since [`primitives::RULES_OF_PROPOSALS`].
    Voted,
}

impl ListingPolicy {
    /// Its name in genesis files and answers.
    pub fn name(self) -> &'static str {
        match self {
            ListingPolicy::Closed => "closed",
            ListingPolicy::Priced => "priced",
            ListingPolicy::Voted => "voted",
        }
    }

    /// Its value as a parameter.
    pub(super) const fn code(self) -> u8 {
        self as u8
    }

    /// The policy with this value as a parameter.
    pub(super) fn of(code: u64) -> Option<ListingPolicy> {
        [ListingPolicy::Closed, ListingPolicy::Priced, ListingPolicy::Voted]
            .into_iter()
            .find(|of| u64::from(of.code()) == code)
    }
}

/// The terms of listings, from the genesis on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ListingTerms {
    /// Who lists.
    pub policy: ListingPolicy,
    /// Fees of a listing, while listed assets have less than an eighth of the room.
    pub fees: u64,
    /// The most assets that are open at one time, those of the genesis included.
    pub assets_max: u32,
    /// Heights from the announcement that an asset closes to the last one that it trades at.
    pub notice: Height,
}

impl Default for ListingTerms {
    /// Nobody lists. An asset closes thirty days after it was announced, of blocks of a second.
    fn default() -> ListingTerms {
        ListingTerms { policy: ListingPolicy::Closed, fees: 10_000_000, assets_max: 1_024, notice: 30 * DAY }
    }
}

impl ListingTerms {
    /// Assets are listed for the usual fees.
    pub fn priced() -> ListingTerms {
        ListingTerms { policy: ListingPolicy::Priced, ..ListingTerms::default() }
    }

    /// The fault of these terms on a chain with this fee and so many assets at the genesis, if there is one.
    pub(crate) fn fault(&self, fee: Amount, assets: usize) -> Option<&'static str> {
        let (lists, is_priced) = (self.policy != ListingPolicy::Closed, self.policy == ListingPolicy::Priced);
        Some(match () {
            _ if !(1..=FEES_MAX).contains(&self.fees) => "fees: choose from 1 to 4294967296",
            _ if self.assets_max > ASSETS_MAX => "assets_max: choose at most 16384",
            _ if lists && assets > self.assets_max as usize => "assets_max is below the assets of the genesis",
            _ if !(1..=NOTICE_MAX).contains(&self.notice) => "notice: choose from 1 to 34560000 heights",
            _ if is_priced && fee == 0 => "a listing costs fees, and this chain's fee is 0: set one",
            _ => return None,
        })
    }
}
