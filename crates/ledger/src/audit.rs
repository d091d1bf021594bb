//! The whole state checked from scratch: what each block asserts of its changes, here of all balances and offers.

use primitives::{Amount, AssetId, MAX_ISSUED};
use rayon::prelude::*;

use crate::Ledger;
use crate::book::Pair;
use crate::validators::STAKED;

/// What exists of one asset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Sum of spendable balances.
    pub balances: Amount,
    /// Sum of what resting offers lock.
    pub locked: Amount,
    /// What validators have staked, what is on its way back to them, and the pool of rewards.
    pub bonded: Amount,
    /// Escrow of the payment lane, and deposits of its open cases.
    pub escrow: Amount,
    /// Units that remainders of wei make together, burnt ones that are carried among them; none but of asset 0.
    pub remainders: Amount,
    /// What is issued; equals the sum of all five.
    pub issued: Amount,
}

/// An invariant that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// Money appeared or vanished.
    #[error(
        "asset {asset}: balances {balances} + locked {locked} + bonded {bonded} + escrow {escrow} is not the issue {issued}"
    )]
    Conservation {
        /// The asset.
        asset: AssetId,
        /// Sum of spendable balances.
        balances: u128,
        /// Sum of what offers lock.
        locked: u128,
        /// Sum of what validators have staked.
        bonded: u128,
        /// Escrow of the payment lane.
        escrow: u128,
        /// What is issued.
        issued: Amount,
    },
    /// Remainders of wei do not make whole units together, or one makes a unit by itself.
    #[error("{0} wei below whole units: with what is carried they are no whole number of units, or one is too much")]
    Wei(u128),
    /// Code that no account has, or that is missing, or contracts where the chain has none.
    #[error("the code of contracts is not that which accounts name")]
    Code,
    /// A balance or an offer in an asset that is not listed.
    #[error("asset {0} is held or offered, but not listed")]
    UnknownAsset(AssetId),
    /// Offers out of order, an empty one, or more than can exist.
    #[error("the book of {0:?} is out of order, or holds an offer of nothing or more than can exist")]
    Book(Pair),
    /// A registry of validators that cannot be.
    #[error("the registry of validators is not sound: {0}")]
    Validators(&'static str),
    /// A payment lane that cannot be.
    #[error("the bridge to the payment lane is not sound: {0}")]
    Lane(&'static str),
}

impl Ledger {
    /// Sums every balance and offer, and holds them against what is issued; one entry per asset.
    ///
    /// # Errors
    /// [`AuditError`] names the asset or pair.
    pub fn audit(&self) -> Result<Vec<Audit>, AuditError> {
        self.check_assets()?;
        if self.lane.as_ref().is_some_and(|lane| lane.bridge().clock().height() != self.height + 1) {
            return Err(AuditError::Lane("lane time is not that of the next block"));
        }
        self.validators.fault(self.height).map_or(Ok(()), |fault| Err(AuditError::Validators(fault)))?;
        let sum = |mut sums: Vec<u128>, other: Vec<u128>| {
            sums.iter_mut().zip(other).for_each(|(sum, more)| *sum += more);
            sums
        };
        let zero = || vec![0u128; self.assets.len()];
        let balances = self.accounts.shards().par_iter().map(|shard| {
            let mut sums = zero();
            for (asset, amount) in shard.iter().flat_map(|account| account.balances()) {
                sums[asset.0 as usize] += u128::from(amount);
            }
            sums
        });
        let balances = balances.reduce(zero, sum);
        let remainders = self.remainders()?;
        let mut locked = zero();
        for (pair, offers) in self.book.iter() {
            if !offers.is_sound() {
                return Err(AuditError::Book(pair));
            }
            locked[pair.sell.0 as usize] += offers.locked();
        }
        let assets = self.assets.iter().enumerate().zip(balances.into_iter().zip(locked));
        assets
            .map(|((number, asset), (balances, locked))| {
                let id = AssetId(number as u32);
                let bonded = if id == STAKED { self.validators.bonded() } else { 0 };
                let escrow = self.lane.as_ref().map_or(0, |lane| lane.held(id));
                let issued = asset.issued;
                let remainders = if number == 0 { remainders } else { 0 };
                let held = balances + locked + bonded + u128::from(remainders);
                if held.checked_add(escrow) != Some(issued.into()) || issued > MAX_ISSUED {
                    return Err(AuditError::Conservation { asset: id, balances, locked, bonded, escrow, issued });
                }
                let [balances, locked, bonded, escrow] =
                    [balances, locked, bonded, escrow].map(|units| units as Amount);
                Ok(Audit { balances, locked, bonded, escrow, remainders, issued })
            })
            .collect()
    }
}

impl Ledger {
    /// Whole units that remainders of wei make, those of accounts and what is burnt and carried.
    fn remainders(&self) -> Result<Amount, AuditError> {
        let wei_per_unit = self.wei_per_unit();
        let accounts = self.accounts.shards().iter().flat_map(|shard| shard.iter());
        let carried = self.contracts.head().map_or(0, |head| head.carried);
        let mut wei = u128::from(carried);
        let mut is_sound = carried < wei_per_unit;
        for remainder in accounts.map(|account| account.evm().remainder) {
            is_sound &= remainder < wei_per_unit;
            wei += u128::from(remainder);
        }
        let units = Amount::try_from(wei / u128::from(wei_per_unit)).ok();
        let is_whole = is_sound && wei.is_multiple_of(wei_per_unit.into());
        units.filter(|_| is_whole).ok_or(AuditError::Wei(wei))
    }

    fn check_assets(&self) -> Result<(), AuditError> {
        let held = self.accounts.shards().iter().flat_map(|shard| shard.iter()).flat_map(|account| account.balances());
        let offered = self.book.iter().flat_map(|(pair, _)| [pair.sell, pair.buy]);
        let mut assets = held.map(|(asset, _)| asset).chain(offered);
        match assets.find(|asset| asset.0 as usize >= self.assets.len()) {
            Some(unlisted) => Err(AuditError::UnknownAsset(unlisted)),
            None => Ok(()),
        }
    }
}
