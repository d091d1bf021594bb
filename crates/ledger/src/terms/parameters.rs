//! Parameters: the numbers of a running chain that a vote may change, as one record.
//!
//! A chain reads each of them where it always stood: the fee and the limits in the ledger, the minimum stake and the
//! reward in the registry, the rest in the terms of listings. A record is taken from there, and written back there when
//! it begins to act. So nothing that uses a parameter looks up a vote.
//!
//! | parameter | bounds |
//! |---|---|
//! | fee, least base fee, minimum stake | from 1 to 100 times the genesis |
//! | resting offers, open pairs | up to 2^27 and 2^18, as those of a genesis fit together |
//! | validators, longest end | up only, to 4,096 and 2^22 |
//! | reward | half to twice the genesis |
//! | most assets, fees and policy of listings | those of a genesis |
//!
//! What a genesis has beyond these bounds may stay. Zero stays zero: it says that the chain does without.

use std::ops::RangeInclusive;

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Amount, Height, MAX_ISSUED, Parameter, UNTIL_USUAL};
use proofs::Terms;

use super::limits::Limits;
use super::listings::{ASSETS_MAX, FEES_MAX, ListingPolicy, ListingTerms};

/// How many times what the genesis says fees and the minimum stake may become.
const TIMES_MAX: u64 = 100;
const RESTING_OFFERS_MAX: u64 = 1 << 27;
const OPEN_PAIRS_MAX: u64 = 1 << 18;
/// The registry is hashed whole.
const VALIDATORS_MAX: u64 = 4_096;
const UNTIL_MAX_MAX: Height = 1 << 22;

/// The value of each parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Parameters([u64; Parameter::ALL.len()]);

impl Parameters {
    /// The values of a chain, from where they stand.
    pub(crate) fn of(fee: Amount, limits: &Limits, registry: &Terms, listings: &ListingTerms) -> Parameters {
        let mut all = Parameters::default();
        for (parameter, value) in [
            (Parameter::Fee, fee),
            (Parameter::LeastBaseFee, limits.least_base_fee),
            (Parameter::RestingOffers, limits.resting_offers),
            (Parameter::OpenPairs, limits.open_pairs.into()),
            (Parameter::Validators, limits.validators.into()),
            (Parameter::UntilMax, limits.until_max),
            (Parameter::MinimumStake, registry.minimum_stake),
            (Parameter::Reward, registry.reward),
            (Parameter::AssetsMax, listings.assets_max.into()),
            (Parameter::ListingFees, listings.fees),
            (Parameter::ListingPolicy, listings.policy.code().into()),
        ] {
            all = all.with(parameter, value);
        }
        all
    }

    /// The values by code.
    pub(crate) fn codes(&self) -> [u64; Parameter::ALL.len()] {
        self.0
    }

    /// The value of one.
    pub fn get(&self, parameter: Parameter) -> u64 {
        self.0[parameter as usize]
    }

    /// With another value of one.
    pub(crate) fn with(mut self, parameter: Parameter, value: u64) -> Parameters {
        self.0[parameter as usize] = value;
        self
    }

    /// Units of asset 0 that one unit of weight costs.
    pub fn fee(&self) -> Amount {
        self.get(Parameter::Fee)
    }

    /// The limits of a chain with these values.
    pub fn limits(&self, before: Limits) -> Limits {
        let count = |parameter| u32::try_from(self.get(parameter)).unwrap_or(u32::MAX);
        Limits {
            resting_offers: self.get(Parameter::RestingOffers),
            open_pairs: count(Parameter::OpenPairs),
            validators: count(Parameter::Validators),
            least_base_fee: self.get(Parameter::LeastBaseFee),
            until_max: self.get(Parameter::UntilMax),
            ..before
        }
    }

    /// The terms of its validators.
    pub(crate) fn registry(&self, before: Terms) -> Terms {
        let (minimum_stake, reward) = (self.get(Parameter::MinimumStake), self.get(Parameter::Reward));
        Terms { minimum_stake, reward, ..before }
    }

    /// The terms of its listings.
    pub(crate) fn listings(&self, before: ListingTerms) -> ListingTerms {
        let policy = ListingPolicy::of(self.get(Parameter::ListingPolicy)).unwrap_or(before.policy);
        let assets_max = u32::try_from(self.get(Parameter::AssetsMax)).unwrap_or(ASSETS_MAX);
        ListingTerms { policy, fees: self.get(Parameter::ListingFees), assets_max, ..before }
    }

    /// What a parameter may become on a chain that began with these values.
    pub fn bounds(&self, parameter: Parameter) -> RangeInclusive<u64> {
        let first = self.get(parameter);
        let to = |most: u64| most.max(first);
        match parameter {
            // A chain without fees, contracts, rewards or a minimum stays without.
            _ if first == 0 && parameter != Parameter::ListingPolicy => 0..=0,
            Parameter::Fee | Parameter::LeastBaseFee | Parameter::MinimumStake => {
                1..=first.saturating_mul(TIMES_MAX).min(to(MAX_ISSUED))
            }
            Parameter::RestingOffers => 2..=to(RESTING_OFFERS_MAX),
            Parameter::OpenPairs => 2..=to(OPEN_PAIRS_MAX),
            Parameter::Validators => first..=to(VALIDATORS_MAX),
            Parameter::UntilMax => first..=to(UNTIL_MAX_MAX),
            Parameter::Reward => first.div_ceil(2)..=first.saturating_mul(2).min(to(MAX_ISSUED)),
            Parameter::AssetsMax => 1..=ASSETS_MAX.into(),
            Parameter::ListingFees => 1..=FEES_MAX,
            Parameter::ListingPolicy => 0..=ListingPolicy::Voted.code().into(),
        }
    }

    /// Whether each value of another record is within the bounds of a chain that began with this one.
    pub(crate) fn could_become(&self, other: &Parameters) -> bool {
        let is_within = |parameter: Parameter| {
            let value = other.get(parameter);
            value == self.get(parameter) || self.bounds(parameter).contains(&value)
        };
        Parameter::ALL.into_iter().all(is_within)
    }

    /// Whether the whole record could be that of a genesis, with committees of this size. Only constants of the chain
    /// are asked beside it: what others do, such as staking, must not make every later record impossible.
    pub(crate) fn fits(&self, committee: u32) -> bool {
        let get = |parameter| self.get(parameter);
        get(Parameter::RestingOffers) >= get(Parameter::OpenPairs)
            && get(Parameter::OpenPairs) >= 2
            && get(Parameter::Validators) >= committee.into()
            && get(Parameter::UntilMax) >= UNTIL_USUAL
            && self.listings(ListingTerms::default()).fault(self.fee(), 0).is_none()
    }
}

/// Whether a parameter only ever rises.
pub(crate) fn only_rises(parameter: Parameter) -> bool {
    matches!(parameter, Parameter::Validators | Parameter::UntilMax)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual() -> Parameters {
        let limits = Limits::default().with_contracts(4);
        let registry = Terms { minimum_stake: 1_000, reward: 10, ..Terms::default() };
        Parameters::of(5, &limits, &registry, &ListingTerms::priced())
    }

    /// A parameter that is read from one place and written to another one would change by itself.
    #[test]
    fn a_record_is_written_where_it_was_read() {
        let before = usual();
        for parameter in Parameter::ALL {
            let value = if parameter == Parameter::ListingPolicy { 2 } else { before.get(parameter) + 1 };
            let next = before.with(parameter, value);
            let limits = next.limits(Limits::default().with_contracts(4));
            let (registry, listings) = (next.registry(Terms::default()), next.listings(ListingTerms::default()));
            assert_eq!(Parameters::of(next.fee(), &limits, &registry, &listings), next, "{parameter:?}");
        }
    }

    #[test]
    fn what_a_genesis_has_is_within_the_bounds_and_fits() {
        assert!(usual().fits(4));
        for parameter in Parameter::ALL {
            assert!(usual().bounds(parameter).contains(&usual().get(parameter)), "{parameter:?}");
        }
    }

    #[test]
    fn what_is_zero_says_that_it_stays_zero() {
        let none = Parameters::default();
        for parameter in Parameter::ALL.into_iter().filter(|one| *one != Parameter::ListingPolicy) {
            assert_eq!(none.bounds(parameter), 0..=0, "{parameter:?}");
        }
    }

    #[test]
    fn values_that_no_genesis_could_have_together_do_not_fit() {
        let usual = usual();
        for (parameter, value) in [
            (Parameter::RestingOffers, u64::from(Limits::default().open_pairs) - 1),
            (Parameter::OpenPairs, 1),
            (Parameter::Validators, 3),
            (Parameter::UntilMax, UNTIL_USUAL - 1),
            (Parameter::AssetsMax, u64::from(ASSETS_MAX) + 1),
            (Parameter::ListingFees, 0),
            // A listing that is paid for costs fees.
            (Parameter::Fee, 0),
        ] {
            assert!(!usual.with(parameter, value).fits(4), "{parameter:?}");
        }
    }
}
