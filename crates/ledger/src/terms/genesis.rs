//! The state before the first block, and the constants of a chain.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, AssetId, Digest, Fraction, UNTIL_USUAL, is_network_address};
use proofs::{CharterTerms, ControlledAsset, Member, SealTerms, Terms};

use super::forks::ForkSchedule;
use super::lane::LaneTerms;
use super::limits::{Limits, TRANSACTION_GAS_MAX};
use super::listings::ListingTerms;
use super::pools::PoolTerms;
use super::rules::{RULES_FLOOR, RULES_NEWEST};
use super::venues::VenueTerms;

/// The number of every developers' chain. Its account keys are public, and people sign for it carelessly.
pub const DEVELOPERS_CHAIN: u64 = 31_337;
/// The longest notice and patience of rules: 400 days of blocks of a second.
pub(crate) const CHARTER_HEIGHTS_MAX: u64 = 400 * 86_400;
/// The asset that is staked.
pub(crate) const STAKED: AssetId = AssetId(0);
/// The least units of an asset that an offer sells or asks for, unless a genesis sets another number.
pub const LEAST_UNITS: Amount = 4_096;
/// The usual fee is one whole asset 0 (10^decimals units) divided by this.
const FEES_IN_ONE: Amount = 10_000;
/// The minimum stake is at least the founders' total stake divided by this: filling a registry of cheap stakes then
/// costs more than it gains.
pub(crate) const STAKES_MAX: u128 = 4_096;
/// The most validators of a committee: an index is a byte.
const COMMITTEE_MAX: u32 = 256;

/// An asset as a genesis lists it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Listing {
    /// Short name; see [`proofs::Asset::symbol`].
    pub symbol: String,
    /// Decimal places for display.
    pub decimals: u8,
    /// The account that can issue and burn the asset.
    pub issuer: Address,
    /// The least units of the asset that an offer sells or asks for.
    pub least_units: Amount,
}

impl Listing {
    /// An asset with the usual minimum size of offers.
    pub fn new(symbol: impl Into<String>, decimals: u8, issuer: Address) -> Listing {
        Listing { symbol: symbol.into(), decimals, issuer, least_units: LEAST_UNITS }
    }
}

/// The usual fee of a chain, in units of an asset 0 with this many decimals: 0.0001, and at least one unit. It makes
/// a sender pay for the work that a transaction causes.
pub fn usual_fee(decimals: u8) -> Amount {
    (10u64.saturating_pow(decimals.into()) / FEES_IN_ONE).max(1)
}

/// What every validator of a chain must agree on before the first block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Genesis {
    /// The number of the rules that the chain begins with; [`RULES_NEWEST`] unless it says another one.
    pub rules: u32,
    /// The terms by which its rules change.
    pub charter: CharterTerms,
    /// The number of the chain; signed into every transaction.
    pub chain: u64,
    /// Units of asset 0 that each native transaction costs, times its weight ([`primitives::Operation::weight`]). They
    /// are burnt. Where clients are not trusted the fee is
    /// at least one: see [`usual_fee`].
    pub fee: Amount,
    /// The auctioneer's commission ε (SPEEDEX §4.1).
    pub epsilon: Fraction,
    /// The band μ below the rate, beyond which an offer must execute in full.
    pub mu: Fraction,
    /// The upper bounds of what the chain carries.
    pub limits: Limits,
    /// The assets, numbered from 0 in this order.
    pub assets: Vec<Listing>,
    /// Units that accounts hold at the start.
    pub balances: Vec<(Address, AssetId, Amount)>,
    /// For a network of validators: its validators, and the terms by which others replace them.
    pub membership: Option<Membership>,
    /// The payment lane, if the chain has one.
    pub lane: Option<LaneTerms>,
    /// The terms of continuous markets, if the chain has venues.
    pub venues: Option<VenueTerms>,
    /// The terms of constant-product pools, if the chain has them.
    pub pools: Option<PoolTerms>,
    /// The terms by which assets are listed after the genesis, and by which assets close.
    pub listings: ListingTerms,
    /// The assets whose issuers control them, by number: none of them is asset 0 or in the payment lane.
    pub controls: Vec<ControlledAsset>,
    /// The terms of the committee's sealing key, if it makes one.
    pub seals: Option<SealTerms>,
    /// The forks of Ethereum whose rules contracts run under, by height.
    pub forks: ForkSchedule,
    /// Whether it is a developers' chain: its only node may edit accounts, choose the time, and go back to earlier
    /// heights. See [`crate::contracts::DeveloperEdit`].
    pub is_developers: bool,
}

impl Default for Genesis {
    /// An empty genesis with the newest rules of this program.
    fn default() -> Genesis {
        Genesis {
            rules: RULES_NEWEST,
            charter: CharterTerms::default(),
            chain: 0,
            fee: 0,
            epsilon: Fraction::default(),
            mu: Fraction::default(),
            limits: Limits::default(),
            assets: Vec::new(),
            balances: Vec::new(),
            membership: None,
            lane: None,
            venues: None,
            pools: None,
            listings: ListingTerms::default(),
            controls: Vec::new(),
            seals: None,
            forks: ForkSchedule::default(),
            is_developers: false,
        }
    }
}

/// The validators at the start, and the terms for all later ones. Their stakes and the pool are units of asset 0 on
/// top of the balances.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Membership {
    /// The terms for all validators.
    pub terms: Terms,
    /// Units that pay rewards.
    pub reward_pool: Amount,
    /// The committee of epoch 0, by index.
    pub founders: Vec<Member>,
}

/// What is wrong with a genesis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenesisError {
    /// The chain follows rules that this program does not implement.
    #[error(
        "the chain follows rules {0}, and this program rules {RULES_FLOOR} to {RULES_NEWEST}: start a version of \
         walras for rules {0}"
    )]
    Rules(u32),
    /// The terms by which rules change are impossible.
    #[error("charter: {0}")]
    Charter(&'static str),
    /// The symbol is malformed or not unique.
    #[error(
        "asset {0}: symbol {1:?} must be 1 to 12 letters, digits, '.', '-' or '_', not begin with a sign, and not be used before"
    )]
    Symbol(usize, String),
    /// Offers could be so small that rounding exceeds the band.
    #[error("asset {number} ({symbol}): least_units {given} is below {needed}, the minimum for these mu and epsilon")]
    LeastUnits {
        /// The asset.
        number: usize,
        /// Its symbol.
        symbol: String,
        /// The least units given.
        given: Amount,
        /// The minimum of the least units: 2 / (mu − epsilon), rounded up.
        needed: Amount,
    },
    /// The asset has too many decimals.
    #[error("asset {0}: {1} decimals; at most 18")]
    Decimals(usize, u8),
    /// A balance names an asset that is not listed.
    #[error("account {0} holds asset {1}, which is not listed")]
    UnknownAsset(Address, AssetId),
    /// The balances hold more units than an asset may have.
    #[error("asset {0}: the balances sum to more than 9223372036854775807 units")]
    TooMuch(AssetId),
    /// There is no asset 0, which pays fees.
    #[error("no assets are listed: list at least asset 0, which pays the fees")]
    NoAssets,
    /// The terms of the payment lane are impossible.
    #[error("lane: {0}")]
    Lane(&'static str),
    /// The terms of venues are impossible.
    #[error("venues: {0}")]
    Venues(&'static str),
    /// The terms of pools are impossible.
    #[error("pools: {0}")]
    Pools(&'static str),
    /// The terms of listings are impossible.
    #[error("listings: {0}")]
    Listings(&'static str),
    /// What issuers control is impossible.
    #[error("controls: {0}")]
    Controls(&'static str),
    /// The committee cannot make a sealing key.
    #[error("seals: {0}")]
    Seals(&'static str),
    /// Two assets could be taken for each other.
    #[error(
        "asset {0}: symbol {1:?} could be taken for {2:?}: choose one that differs by more than case, 0 and o, 1, i and l, \
         5 and s, or the signs . - _"
    )]
    LookAlike(usize, String, String),
    /// The developers' chain could be mistaken for a real one.
    #[error("a developers' chain {0}: leave \"developers\" out of the genesis, or change the part that does not fit")]
    Developers(&'static str),
    /// The schedule of forks is impossible.
    #[error("forks: {0}")]
    Forks(&'static str),
    /// A founder cannot be a validator.
    #[error("validator {0}: {1}")]
    Founder(usize, &'static str),
    /// The terms are impossible for any network.
    #[error("terms of the validators: {0}")]
    Terms(&'static str),
    /// Limits do not fit the genesis or each other.
    #[error("limits.{limit} is {given}, but {needed_by} needs {needed}: raise the limit or lower the need")]
    Limit {
        /// The limit.
        limit: &'static str,
        /// The given value.
        given: u64,
        /// What conflicts with it.
        needed_by: &'static str,
        /// The value that this needs.
        needed: u64,
    },
    /// The band is not wider than the commission.
    #[error("mu ({mu}) must exceed epsilon ({epsilon}): an offer inside the commission cannot be promised execution")]
    Band {
        /// The band given.
        mu: Fraction,
        /// The commission given.
        epsilon: Fraction,
    },
}

impl Genesis {
    /// The identity of the network that this genesis founds: a chain of one node is identified by the genesis, whose
    /// digest is `last_block`.
    pub(crate) fn network(&self, last_block: Digest) -> Digest {
        self.membership.as_ref().map_or(last_block, |membership| membership.terms.network)
    }

    /// The fault of the terms by which rules change, if there is one.
    pub(crate) fn charter_fault(&self) -> Option<&'static str> {
        let CharterTerms { operator, notice_min, patience } = self.charter;
        let heights = 1..=CHARTER_HEIGHTS_MAX;
        Some(match () {
            _ if !heights.contains(&notice_min) => "notice_min: choose from 1 to 34560000 heights",
            _ if !heights.contains(&patience) => "patience: choose from 1 to 34560000 heights",
            _ if self.membership.is_some() && operator != Address::default() => {
                "an operator names the rules of a chain of one node: leave it out where validators approve them"
            }
            _ => return None,
        })
    }

    /// Assets on a developers' chain are worth nothing, so others must not be able to rely on it.
    pub(crate) fn developers_fault(&self) -> Option<&'static str> {
        match () {
            _ if !self.is_developers => None,
            _ if self.chain != DEVELOPERS_CHAIN => Some("has the number 31337"),
            _ if self.membership.is_some() => Some("has one node and no validators"),
            _ if self.lane.is_some() => {
                Some("has no payment lane, because its certificates outlive heights that are undone")
            }
            _ if self.venues.is_some() => Some("has no venues, because their reports outlive heights that are undone"),
            _ if !self.limits.has_contracts() => Some("has contracts (limits.block_gas above 0)"),
            _ => None,
        }
    }

    /// Checks that the limits leave room for the initial state, and for each other.
    pub(crate) fn check_limits(&self) -> Result<(), GenesisError> {
        let Limits { resting_offers, open_pairs, validators, block_gas, sub_block_gas, least_base_fee, until_max } =
            self.limits;
        let (founders, committee) =
            self.membership.as_ref().map_or((0, 0), |all| (all.founders.len(), all.terms.committee));
        let quotas = sub_block_gas.saturating_mul(committee.max(1).into());
        let (with_price, with_gas) = (u64::from(least_base_fee > 0), u64::from(self.limits.has_contracts()));
        for (limit, given, needed_by, needed) in [
            ("resting_offers", resting_offers, "one market", 2),
            ("open_pairs", open_pairs.into(), "one market", 2),
            ("resting_offers", resting_offers, "limits.open_pairs", open_pairs.into()),
            ("validators", validators.into(), "consensus.committee", committee.into()),
            ("validators", validators.into(), "consensus.validators", founders as u64),
            ("block_gas", block_gas, "sub_block_gas of a committee", quotas),
            ("block_gas", block_gas, "limits.least_base_fee", with_price),
            ("sub_block_gas", sub_block_gas, "one transaction", with_gas * TRANSACTION_GAS_MAX),
            ("least_base_fee", least_base_fee, "limits.block_gas", with_gas),
            ("until_max", until_max, "the usual end of a transaction", UNTIL_USUAL),
        ] {
            if given < needed {
                return Err(GenesisError::Limit { limit, given, needed_by, needed });
            }
        }
        Ok(())
    }
}

impl Membership {
    /// Units of asset 0 that are neither in balances nor in offers, with their owners; the pool has no owner.
    pub(crate) fn bonded(&self) -> impl Iterator<Item = (Address, AssetId, Amount)> {
        let stakes = self.founders.iter().map(|founder| (founder.account, STAKED, founder.stake));
        stakes.chain([(Address::default(), STAKED, self.reward_pool)])
    }

    pub(crate) fn check(&self) -> Result<(), GenesisError> {
        if !(1..=COMMITTEE_MAX).contains(&self.terms.committee) {
            return Err(GenesisError::Terms("a committee has 1 to 256 validators"));
        }
        if self.founders.is_empty() || self.founders.len() > COMMITTEE_MAX as usize {
            return Err(GenesisError::Terms("a network is founded by 1 to 256 validators"));
        }
        let staked: u128 = self.founders.iter().map(|founder| u128::from(founder.stake)).sum();
        if !self.terms.schedule.is_fixed() && u128::from(self.terms.minimum_stake.max(1)) < staked.div_ceil(STAKES_MAX)
        {
            return Err(GenesisError::Terms("minimum_stake is below 1/4096 of what the founders stake together"));
        }
        for (number, founder) in self.founders.iter().enumerate() {
            let before = &self.founders[..number];
            let fault = match () {
                _ if founder.stake < self.terms.minimum_stake.max(1) => "its stake is below the least",
                _ if !founder.address.is_empty() && !is_network_address(&founder.address) => {
                    "its address is not host:port"
                }
                _ if before.iter().any(|other| other.key == founder.key) => "another one has its key",
                _ if before.iter().any(|other| other.account == founder.account) => "another one has its account",
                _ => continue,
            };
            return Err(GenesisError::Founder(number, fault));
        }
        Ok(())
    }
}
