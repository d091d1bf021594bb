//! What validators vote about: a parameter of the chain, an asset with a plain name, the end of an asset, its terms in
//! the payment lane. When a proposal passes and what it does is the ledger's rule (its place `charter::proposals`).

use borsh::{BorshDeserialize, BorshSerialize};

use crate::AssetControl;
use crate::listing::DECIMALS_MAX;
use crate::{Address, Amount, AssetId, Digest, MAX_ISSUED};

/// The first rules with proposals and votes.
pub const RULES_OF_PROPOSALS: u32 = 16;
/// The first rules with proposals about the terms of assets in the payment lane.
pub const RULES_OF_LANE_TERMS: u32 = 19;
/// What a proposal costs, in fees: each is counted at four boundaries, and few are open at one time.
pub const PROPOSAL_WEIGHT: u64 = 1_000;
/// The longest plain name of an asset that a vote lists, as of one that a genesis lists.
const PLAIN_SYMBOL_MAX: usize = 12;

/// The names of parameters, by code.
pub const PARAMETERS: [&str; Parameter::ALL.len()] = [
    "fee",
    "least_base_fee",
    "resting_offers",
    "open_pairs",
    "validators",
    "until_max",
    "minimum_stake",
    "reward",
    "assets_max",
    "listing_fees",
    "listing_policy",
];

/// A number of a running chain that a vote may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum Parameter {
    /// Units of asset 0 that one unit of a native transaction's weight costs.
    Fee,
    /// The minimum price of a unit of gas, in wei.
    LeastBaseFee,
    /// Resting offers.
    RestingOffers,
    /// Ordered pairs that have resting offers.
    OpenPairs,
    /// Accounts that validate.
    Validators,
    /// How many heights ahead a native transaction may end.
    UntilMax,
    /// The minimum stake of a validator, in units.
    MinimumStake,
    /// The reward of the proposer of a sub-block, in units.
    Reward,
    /// The most assets that are open at one time.
    AssetsMax,
    /// Fees of a listing, while listed assets have less than an eighth of the room.
    ListingFees,
    /// Who lists assets: 0 nobody, 1 whoever pays, 2 a vote.
    ListingPolicy,
}

impl Parameter {
    /// All of them, by code.
    pub const ALL: [Parameter; 11] = [
        Parameter::Fee,
        Parameter::LeastBaseFee,
        Parameter::RestingOffers,
        Parameter::OpenPairs,
        Parameter::Validators,
        Parameter::UntilMax,
        Parameter::MinimumStake,
        Parameter::Reward,
        Parameter::AssetsMax,
        Parameter::ListingFees,
        Parameter::ListingPolicy,
    ];

    /// Its name in JSON, typed data and files.
    pub fn name(self) -> &'static str {
        PARAMETERS[self as usize]
    }
}

/// An asset that a vote lists under a plain name.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PlainListing {
    /// The account that issues and burns it.
    pub issuer: Address,
    /// Its name: 1 to 12 letters, digits, `-` or `_`, a letter first.
    pub symbol: String,
    /// Decimal places for display.
    pub decimals: u8,
    /// What its issuer controls.
    pub control: AssetControl,
    /// The least units of it that an offer sells or asks for.
    pub least_units: Amount,
    /// The most units of it that may ever exist at one time.
    pub supply_max: Amount,
    /// The digest of a document that says what it is; zero for none.
    pub document: Digest,
}

impl PlainListing {
    /// Whether it is within the bounds of every chain.
    fn is_plain(&self) -> bool {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        (1..=PLAIN_SYMBOL_MAX).contains(&self.symbol.len())
            && self.symbol.starts_with(|first: char| first.is_ascii_alphabetic())
            && self.symbol.bytes().all(is_sign)
            && self.decimals <= DECIMALS_MAX
            && (1..=MAX_ISSUED).contains(&self.least_units)
            && (1..=MAX_ISSUED).contains(&self.supply_max)
    }
}

/// Whether the payment lane takes deposits of an asset, by code.
pub const LANE_DEPOSITS: [&str; 2] = ["refused", "taken"];

/// The terms of an asset in the payment lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct LaneAssetTerms {
    /// The asset.
    pub asset: AssetId,
    /// The smallest output and the smallest deposit, in units.
    pub least_units: Amount,
    /// Units that each payment leaves in escrow.
    pub fee: Amount,
    /// Whether units may enter the lane. Those that are in it always leave.
    pub deposits: bool,
    /// The most units that leave at once beyond what enters; 0 without a limit.
    pub outflow_most: Amount,
    /// Units of that limit that are regained at each height; 0 without a limit.
    pub outflow_per_height: Amount,
}

impl LaneAssetTerms {
    /// Whether what leaves is limited.
    pub fn is_limited(&self) -> bool {
        self.outflow_most > 0
    }

    /// Whether it is within the bounds of every chain.
    pub fn is_plain(&self) -> bool {
        let &LaneAssetTerms { least_units, fee, outflow_most, outflow_per_height, .. } = self;
        let units = 1..=MAX_ISSUED;
        let is_limit = units.contains(&outflow_most) && units.contains(&outflow_per_height);
        units.contains(&least_units) && fee <= MAX_ISSUED && (is_limit || (outflow_most, outflow_per_height) == (0, 0))
    }
}

/// One change, whole: what a proposal is about.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum ProposedChange {
    /// A parameter has this value.
    Parameter {
        /// The parameter.
        parameter: Parameter,
        /// The value.
        value: u64,
    },
    /// An asset is listed.
    List(PlainListing),
    /// An asset closes, whatever its issuer says.
    Close {
        /// The asset.
        asset: AssetId,
    },
    /// The payment lane carries an asset on these terms. Since [`RULES_OF_LANE_TERMS`].
    Lane(LaneAssetTerms),
}

impl ProposedChange {
    /// Whether it is within the bounds of every chain.
    pub(crate) fn is_plain(&self) -> bool {
        match self {
            ProposedChange::List(listing) => listing.is_plain(),
            ProposedChange::Lane(terms) => terms.is_plain(),
            ProposedChange::Parameter { .. } | ProposedChange::Close { .. } => true,
        }
    }
}

/// What an account says about a proposal. Of several words the last one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum ProposalWord {
    /// It does not want it.
    No,
    /// It wants it.
    Yes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_listing_is_within_its_bounds() {
        let listing = |symbol: &str| PlainListing {
            issuer: Address::default(),
            symbol: symbol.into(),
            decimals: 2,
            control: AssetControl::Open,
            least_units: 4_096,
            supply_max: MAX_ISSUED,
            document: Digest::default(),
        };
        for sound in ["JPY", "j", "WRAPPED_BTC2"] {
            assert!(ProposedChange::List(listing(sound)).is_plain(), "{sound}");
        }
        // With a point it could be the name of a listing that was paid for.
        for wrong in ["", "1JPY", "JPY.7", "WRAPPED_BTC23", "-J", "J Y", "J\u{430}"] {
            assert!(!listing(wrong).is_plain(), "{wrong:?}");
        }
        for wrong in [
            PlainListing { decimals: 19, ..listing("JPY") },
            PlainListing { least_units: 0, ..listing("JPY") },
            PlainListing { supply_max: 0, ..listing("JPY") },
            PlainListing { supply_max: MAX_ISSUED + 1, ..listing("JPY") },
        ] {
            assert!(!wrong.is_plain(), "{wrong:?}");
        }
    }

    #[test]
    fn terms_of_the_lane_limit_both_or_nothing() {
        let terms = LaneAssetTerms {
            asset: AssetId(1),
            least_units: 1,
            fee: 0,
            deposits: true,
            outflow_most: 0,
            outflow_per_height: 0,
        };
        assert!(ProposedChange::Lane(terms).is_plain());
        assert!(LaneAssetTerms { outflow_most: 9, outflow_per_height: 1, ..terms }.is_plain());
        for wrong in [
            LaneAssetTerms { least_units: 0, ..terms },
            LaneAssetTerms { least_units: MAX_ISSUED + 1, ..terms },
            LaneAssetTerms { fee: MAX_ISSUED + 1, ..terms },
            // A limit that regains nothing would hold claims for ever.
            LaneAssetTerms { outflow_most: 9, ..terms },
            LaneAssetTerms { outflow_per_height: 9, ..terms },
        ] {
            assert!(!wrong.is_plain(), "{wrong:?}");
        }
    }

    #[test]
    fn each_parameter_has_a_name_by_its_code() {
        let codes: Vec<u8> = Parameter::ALL.iter().map(|one| borsh::to_vec(one).expect("encodes")[0]).collect();
        assert_eq!(codes, (0..PARAMETERS.len() as u8).collect::<Vec<_>>());
        assert_eq!((Parameter::Fee.name(), Parameter::ListingPolicy.name()), ("fee", "listing_policy"));
    }
}
