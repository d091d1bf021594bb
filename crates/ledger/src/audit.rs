//! Checks the whole state from scratch: the invariants that each block asserts of its changes, here for all balances
//! and offers.

use primitives::{Amount, AssetId, MAX_ISSUED};
use rayon::prelude::*;

use crate::Ledger;
use crate::places::offers::Pair;
use crate::places::stakes::STAKED;

/// All existing units of one asset, by where they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Audit {
    /// Sum of spendable balances.
    pub balances: Amount,
    /// Sum of units that resting offers lock.
    pub locked: Amount,
    /// Units that validators have staked, units being paid back to them, and the pool of rewards.
    pub bonded: Amount,
    /// Escrow of the payment lane, and deposits of its open cases.
    pub escrow: Amount,
    /// Whole units that remainders of wei add up to, including burnt wei that are carried; only asset 0 has any.
    pub remainders: Amount,
    /// Issued units; equals the sum of all five.
    pub issued: Amount,
}

/// An invariant that is violated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// Units appeared or vanished.
    #[error(
        "asset {asset}: balances {balances} + locked {locked} + bonded {bonded} + escrow {escrow} != issue {issued}"
    )]
    Conservation {
        /// The asset.
        asset: AssetId,
        /// Sum of spendable balances.
        balances: u128,
        /// Sum of units that offers lock.
        locked: u128,
        /// Sum of units that validators have staked.
        bonded: u128,
        /// Escrow of the payment lane.
        escrow: u128,
        /// Issued units.
        issued: Amount,
    },
    /// Remainders of wei do not add up to whole units, or one of them is a whole unit by itself.
    #[error("{0} wei in remainders: with carried wei they are not whole units, or one remainder is too large")]
    Wei(u128),
    /// Code is stored that no account has, code is missing, or there are contracts on a chain without them.
    #[error("the stored code of contracts is not the code that accounts name")]
    Code,
    /// A balance or an offer is in an asset that is not listed.
    #[error("asset {0} is held or offered, but not listed")]
    UnknownAsset(AssetId),
    /// The offers of a pair are out of order, or one is empty or larger than can exist.
    #[error("the book of {0:?} is out of order, or contains an offer of zero units or of more than can exist")]
    Book(Pair),
    /// The registry of validators violates an invariant.
    #[error("the registry of validators violates an invariant: {0}")]
    Validators(&'static str),
    /// The payment lane violates an invariant.
    #[error("the bridge to the payment lane violates an invariant: {0}")]
    Lane(&'static str),
}

impl Ledger {
    /// Sums every balance and offer, and compares the sums with what is issued; one entry per asset.
    ///
    /// # Errors
    /// [`AuditError`] names the asset or pair.
    pub fn audit(&self) -> Result<Vec<Audit>, AuditError> {
        self.check_assets()?;
        if self.lane.as_ref().is_some_and(|lane| lane.bridge().clock().height() != self.height + 1) {
            return Err(AuditError::Lane("lane time is not the time of the next block"));
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
    /// Whole units in remainders of wei: those of accounts, and burnt wei that are carried.
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
