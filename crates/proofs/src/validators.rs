//! The registry of validators as it is hashed and proved: stakes, committees, and the terms for both.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, Digest, Fraction, Height, PublicKey};

use crate::charter::{ChainRules, charter_root};
use crate::root_parts::{ProofFault, RootPart, RootParts};
use crate::schedule::Schedule;

const CONTEXT: &str = "walras 2026 validators v2";

/// The terms for all validators of a chain, from its genesis on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Terms {
    /// The identity of the network, to which everything that validators sign is bound.
    pub network: Digest,
    /// When committees change.
    pub schedule: Schedule,
    /// Validators in a committee, if that many can be drawn.
    pub committee: u32,
    /// The minimum stake of a validator, in units.
    pub minimum_stake: Amount,
    /// Epochs for which a stake can be punished after the last epoch that it counted in.
    pub unbonding_epochs: u64,
    /// Reward of the proposer of a sub-block, in units.
    pub reward: Amount,
    /// The part of its stake that a convicted validator loses.
    pub slash: Fraction,
}

/// A validator of an epoch, as it was when it was drawn. Its position in the committee is its index in consensus.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Member {
    /// The account that staked; it receives the rewards.
    pub account: Address,
    /// The key with which it signs and authenticates.
    pub key: PublicKey,
    /// Host and port (UDP); empty for a founder that has not set one since: then the genesis file has it.
    pub address: String,
    /// Units staked.
    pub stake: Amount,
}

/// An entry of the registry.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Validator {
    /// Its account, key and address now, and the units that count in the next draw.
    pub member: Member,
    /// Units being paid back, by the height from which they are free, ascending.
    pub unbonding: Vec<(Height, Amount)>,
    /// Whether it was convicted.
    pub excluded: bool,
    /// The last epoch for whose draw its node has said that it is present, under the key that the entry names now; 0
    /// if there is none.
    pub present_for: u64,
}

impl Validator {
    /// Whether it may be drawn for an epoch: it has a stake, was not convicted, and is present.
    pub fn is_present_for(&self, epoch: u64) -> bool {
        self.is_staked() && self.present_for >= epoch
    }

    /// Whether it has a stake and was not convicted.
    pub fn is_staked(&self) -> bool {
        self.member.stake > 0 && !self.excluded
    }

    /// Units that it has staked and that are not paid back yet.
    pub fn bonded(&self) -> Amount {
        self.member.stake + self.unbonding.iter().map(|(_, units)| units).sum::<Amount>()
    }
}

/// The registry, the committees that may still be needed, and the pool of rewards.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Validators {
    /// The terms for all validators.
    pub terms: Terms,
    /// Units of asset 0 that pay rewards.
    pub pool: Amount,
    /// All accounts that have staked and are not fully paid back, and the convicted, by account.
    pub registry: Vec<Validator>,
    /// The epoch of the first of `committees`.
    pub first_epoch: u64,
    /// The committees of consecutive epochs, up to the last one drawn.
    pub committees: Vec<Vec<Member>>,
}

impl Validators {
    /// The validator of an account.
    pub fn get(&self, account: &Address) -> Option<&Validator> {
        self.find(account).ok().map(|at| &self.registry[at])
    }

    /// Whether an account has a stake and was not convicted.
    pub fn is_staked(&self, account: &Address) -> bool {
        self.get(account).is_some_and(Validator::is_staked)
    }

    /// Whether an account that was not convicted has a seat in one of the two committees drawn last.
    pub fn holds_seat(&self, account: &Address) -> bool {
        let seats = self.committees.iter().rev().take(2).flatten();
        let is_convicted = |one: &Validator| one.excluded;
        !self.get(account).is_none_or(is_convicted) && seats.into_iter().any(|member| member.account == *account)
    }

    /// The committee of an epoch; none if it is not drawn yet, or no longer needed.
    pub fn committee(&self, epoch: u64) -> Option<&[Member]> {
        let at = usize::try_from(epoch.checked_sub(self.first_epoch)?).ok()?;
        self.committees.get(at).map(Vec::as_slice)
    }

    /// The last epoch whose committee is drawn.
    pub fn last_epoch(&self) -> u64 {
        self.first_epoch.saturating_add(self.committees.len() as u64).saturating_sub(1)
    }

    /// The digest in the state root.
    pub fn digest(&self) -> Digest {
        Digest::of(CONTEXT, &borsh::to_vec(self).expect("writing to memory cannot fail"))
    }

    /// Units of asset 0 in stakes, being paid back, and in the pool.
    pub fn bonded(&self) -> u128 {
        let unbonding = |one: &Validator| one.unbonding.iter().map(|(_, units)| u128::from(*units)).sum::<u128>();
        let of = |one: &Validator| u128::from(one.member.stake) + unbonding(one);
        u128::from(self.pool) + self.registry.iter().map(of).sum::<u128>()
    }

    /// The position of an account in the registry, or where it would be.
    ///
    /// # Errors
    /// The second.
    pub fn find(&self, account: &Address) -> Result<usize, usize> {
        self.registry.binary_search_by_key(account, |one| one.member.account)
    }
}

/// A proof of the staked accounts and the committees.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ValidatorsProof {
    /// The parts of the state root.
    pub parts: RootParts,
    /// The whole registry.
    pub validators: Validators,
    /// The rules of the chain by height: who takes over decides under those of its epoch.
    pub rules: ChainRules,
    /// The digest of the rest of the charter.
    pub charter: Digest,
}

impl ValidatorsProof {
    /// Checks the proof against a state root; returns the registry with its committees. The rules hold, too.
    ///
    /// # Errors
    /// [`ProofFault`] if the proof is invalid.
    pub fn verify(&self, root: &Digest) -> Result<&Validators, ProofFault> {
        if self.parts.part(root, RootPart::STAKES)? != self.validators.digest() {
            return Err(ProofFault::OtherValue);
        }
        if self.parts.part(root, RootPart::CHARTER)? != charter_root(&self.rules, &self.charter) {
            return Err(ProofFault::OtherValue);
        }
        Ok(&self.validators)
    }
}
