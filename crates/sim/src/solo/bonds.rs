//! Independent bookkeeping of the validators' stakes, and a comparison of the committees with it.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{BlockReceipts, Ledger, Member, Membership, Outcome, Refusal, Terms};
use primitives::{Address, Fraction, Height, Operation, PublicKey, Superblock, Transaction};

#[derive(Clone, PartialEq, Debug)]
struct Bond {
    key: PublicKey,
    network_address: String,
    stake: i128,
    /// By the height at which they are paid back.
    unbonding: BTreeMap<Height, i128>,
    excluded: bool,
    /// The last epoch for which its node said that it is present.
    present_for: u64,
}

impl Bond {
    fn of(key: PublicKey, network_address: String) -> Bond {
        Bond { key, network_address, stake: 0, unbonding: BTreeMap::new(), excluded: false, present_for: 0 }
    }
}

/// How an account stood when a committee was drawn.
#[derive(Clone, Copy)]
struct Stood {
    stake: i128,
    is_present: bool,
}

/// Refusals that every proposer could have foreseen: a sub-block with one of them earns nothing.
const FALSE: [Refusal; 17] = [
    Refusal::BAD_SIGNATURE,
    Refusal::WRONG_CHAIN,
    Refusal::UNKNOWN_ASSET,
    Refusal::ZERO_AMOUNT,
    Refusal::AMOUNT_TOO_LARGE,
    Refusal::SAME_ASSET,
    Refusal::SELF_PAYMENT,
    Refusal::RESERVED_ADDRESS,
    Refusal::ADDRESS_NOT_OF_KEY,
    Refusal::NETWORK_ADDRESS,
    Refusal::NOT_ISSUER,
    Refusal::SELLS_TOO_LITTLE,
    Refusal::ASKS_TOO_LITTLE,
    Refusal::COMMITTEE_FIXED,
    Refusal::NOT_POSSESSED,
    Refusal::BAD_EVIDENCE,
    Refusal::PRESENCE_NUMBER,
];

/// See the module text.
#[derive(Clone)]
pub(crate) struct Bonds {
    terms: Terms,
    pool: i128,
    bonds: BTreeMap<Address, Bond>,
    /// How the accounts stood at the last boundary.
    stood: BTreeMap<Address, Stood>,
    /// The seats before the last boundary.
    seats: Vec<Address>,
}

impl Bonds {
    pub fn new(membership: &Membership) -> Bonds {
        let bond = |one: &Member| {
            let stake = i128::from(one.stake);
            (one.account, Bond { stake, present_for: 1, ..Bond::of(one.key, one.address.clone()) })
        };
        Bonds {
            terms: membership.terms,
            pool: membership.reward_pool.into(),
            bonds: membership.founders.iter().map(bond).collect(),
            stood: BTreeMap::new(),
            seats: Vec::new(),
        }
    }

    /// The stakes of those that were not convicted.
    pub fn stakes(&self) -> BTreeMap<Address, i128> {
        let staked = self.bonds.iter().filter(|(_, bond)| bond.stake > 0 && !bond.excluded);
        staked.map(|(account, bond)| (*account, bond.stake)).collect()
    }

    /// A proposer gets this from the next block on.
    pub fn set_reward(&mut self, reward: u64) {
        self.terms.reward = reward;
    }

    pub fn total(&self) -> i128 {
        let of = |bond: &Bond| bond.stake + bond.unbonding.values().sum::<i128>();
        self.pool + self.bonds.values().map(of).sum::<i128>()
    }

    /// Processes a block between two ledgers; returns the payments to accounts.
    pub fn apply(
        &mut self,
        block: &Superblock,
        receipts: &BlockReceipts,
        effective: &[&Transaction],
        (before, after): (&Ledger, &Ledger),
    ) -> Result<Vec<(Address, i128)>, String> {
        if self.is_boundary(block.height) {
            let epoch = block.height / self.terms.schedule.epoch_heights;
            let is_present = |bond: &Bond| bond.stake > 0 && !bond.excluded && bond.present_for == epoch;
            let stood = |bond: &Bond| Stood { stake: bond.stake, is_present: is_present(bond) };
            self.stood = self.bonds.iter().map(|(account, bond)| (*account, stood(bond))).collect();
            let seats = before.committee(epoch - 1).ok_or("the last committee is missing")?;
            self.seats = seats.iter().map(|member| member.account).collect();
        }
        let mut paid = self.reward(block, receipts, before)?;
        let free = self.free(block.height);
        // A stake that changes the key voids a presence of the same block.
        let (presences, others): (Vec<&&Transaction>, Vec<&&Transaction>) =
            effective.iter().partition(|one| matches!(one.body.operation, Operation::Present { .. }));
        for transaction in presences.into_iter().chain(others) {
            self.act(transaction, free);
        }
        let accused = effective.iter().filter_map(|transaction| match &transaction.body.operation {
            Operation::Accuse(evidence) => Some((evidence.epoch, usize::from(evidence.member))),
            _ => None,
        });
        let accounts: BTreeSet<Address> = accused
            .map(|(epoch, member)| Some(before.committee(epoch)?.get(member)?.account))
            .collect::<Option<_>>()
            .ok_or("a conviction of an unknown validator")?;
        accounts.iter().for_each(|account| self.convict(account, free));
        if self.is_boundary(block.height) {
            self.pay_back(block.height, after, &mut paid);
        }
        Ok(paid)
    }

    fn is_boundary(&self, height: Height) -> bool {
        height.is_multiple_of(self.terms.schedule.epoch_heights)
    }

    fn reward(
        &mut self,
        block: &Superblock,
        receipts: &BlockReceipts,
        before: &Ledger,
    ) -> Result<Vec<(Address, i128)>, String> {
        let epoch = self.terms.schedule.epoch_of(block.height);
        let committee = before.committee(epoch).ok_or("no committee is known for this epoch")?;
        let mut outcomes = receipts.outcomes.iter().map(|(_, outcome)| outcome);
        let mut members = Vec::new();
        for sub in &block.sub_blocks {
            let is_false = |outcome: &Outcome| outcome.refusal().is_some_and(|refusal| FALSE.contains(&refusal));
            let is_sound = outcomes.by_ref().take(sub.native.len()).filter(|outcome| is_false(outcome)).count() == 0;
            members.extend(committee.get(sub.proposer as usize).filter(|_| is_sound));
        }
        let is_open = |account: &Address| self.bonds.get(account).is_none_or(|bond| !bond.excluded);
        let accounts: Vec<Address> = members.into_iter().map(|member| member.account).filter(is_open).collect();
        let each = i128::from(self.terms.reward).min(self.pool / accounts.len().max(1) as i128);
        self.pool -= each * accounts.len() as i128;
        Ok(accounts.into_iter().map(|account| (account, each)).collect())
    }

    /// The first boundary after the epochs in which an amount unstaked at a height can be punished.
    fn free(&self, height: Height) -> Height {
        let schedule = self.terms.schedule;
        let end = (height / schedule.epoch_heights + self.terms.unbonding_epochs + 1) * schedule.epoch_heights;
        (end + schedule.delay).next_multiple_of(schedule.epoch_heights)
    }

    fn act(&mut self, transaction: &Transaction, free: Height) {
        let account = transaction.body.account;
        match &transaction.body.operation {
            Operation::Stake(stake) => {
                let new = || Bond::of(stake.key, stake.address.clone());
                let bond = self.bonds.entry(account).or_insert_with(new);
                if bond.key != stake.key {
                    bond.present_for = 0;
                }
                bond.stake += i128::from(stake.units);
                bond.key = stake.key;
                bond.network_address.clone_from(&stake.address);
            }
            Operation::Present { epoch } => {
                self.bonds.get_mut(&account).expect("compared with the registry before").present_for = *epoch;
            }
            Operation::Unstake { units } => {
                let bond = self.bonds.get_mut(&account).expect("compared with the registry before");
                bond.stake -= i128::from(*units);
                *bond.unbonding.entry(free).or_default() += i128::from(*units);
            }
            _ => {}
        }
    }

    fn convict(&mut self, account: &Address, free: Height) {
        let Some(bond) = self.bonds.get_mut(account).filter(|bond| !bond.excluded) else { return };
        bond.excluded = true;
        let slash = i128::from(self.terms.slash.units());
        for units in bond.unbonding.values_mut().chain([&mut bond.stake]) {
            let lost = (*units * slash + i128::from(Fraction::ONE_IN_UNITS) - 1) / i128::from(Fraction::ONE_IN_UNITS);
            *units -= lost;
            self.pool += lost;
        }
        *bond.unbonding.entry(free).or_default() += std::mem::take(&mut bond.stake);
        bond.unbonding.retain(|_, units| *units > 0);
    }

    /// Pays back, but not who keeps a seat without a stake that can still be punished.
    fn pay_back(&mut self, height: Height, after: &Ledger, paid: &mut Vec<(Address, i128)>) {
        let oldest = self.terms.schedule.epoch_of(height + 1).saturating_sub(self.terms.unbonding_epochs);
        let seats = (oldest..=height / self.terms.schedule.epoch_heights).filter_map(|epoch| after.committee(epoch));
        let serving: BTreeSet<Address> =
            seats.flatten().filter(|seat| seat.stake == 0).map(|seat| seat.account).collect();
        for (account, bond) in
            self.bonds.iter_mut().filter(|(account, bond)| bond.excluded || !serving.contains(account))
        {
            let later = bond.unbonding.split_off(&(height + 1));
            let due = std::mem::replace(&mut bond.unbonding, later);
            paid.extend(due.into_values().map(|units| (*account, units)));
        }
        self.bonds.retain(|_, bond| bond.stake > 0 || !bond.unbonding.is_empty() || bond.excluded);
    }

    /// Compares a ledger's registry and its newest committee with these books.
    pub fn hold(&self, ledger: &Ledger) -> Result<(), String> {
        let validators = ledger.validators();
        if i128::from(validators.pool) != self.pool {
            return Err(format!("the pool of rewards holds {}, but should hold {}", validators.pool, self.pool));
        }
        let entry = |one: &ledger::Validator| {
            let unbonding = one.unbonding.iter().map(|(height, units)| (*height, i128::from(*units))).collect();
            let (stake, excluded, present_for) = (i128::from(one.member.stake), one.excluded, one.present_for);
            let bond = Bond::of(one.member.key, one.member.address.clone());
            (one.member.account, Bond { stake, unbonding, excluded, present_for, ..bond })
        };
        let theirs: BTreeMap<Address, Bond> = validators.registry.iter().map(entry).collect();
        if theirs != self.bonds {
            return Err(format!("the registry is {theirs:?}, but by the receipts {:?}", self.bonds));
        }
        if ledger.height() < self.terms.schedule.epoch_heights {
            return Ok(());
        }
        self.hold_committee(ledger.committee(validators.last_epoch()).ok_or("the newest committee is missing")?)
    }

    /// Nobody has two seats; who came was present, at most f came or went, and nobody is missing while one could come.
    fn hold_committee(&self, committee: &[Member]) -> Result<(), String> {
        let after: BTreeSet<Address> = committee.iter().map(|one| one.account).collect();
        let before: BTreeSet<Address> = self.seats.iter().copied().collect();
        let stood = |account: &Address| self.stood.get(account).copied();
        let is_present = |account: &Address| stood(account).is_some_and(|stood| stood.is_present);
        let came: Vec<&Address> = after.difference(&before).collect();
        let (most, size) = (((before.len() - 1) / 3).max(1), self.terms.committee as usize);
        let could_come = self.stood.keys().any(|account| is_present(account) && !before.contains(account));
        let should_come = before.len() < size || before.iter().any(|account| !is_present(account));
        let fault = match () {
            _ if after.len() != committee.len() => "somebody has two seats",
            _ if came.iter().any(|account| !is_present(account)) => "an absent account took a seat",
            _ if came.len() > most || before.difference(&after).count() > most => "too many seats changed",
            _ if after.len() < before.len().min(size) || after.len() > before.len().max(size) => "of another size",
            _ if could_come && should_come && came.is_empty() && before.len() <= size => "nobody came",
            _ if !committee
                .iter()
                .all(|one| stood(&one.account).is_some_and(|stood| stood.stake == i128::from(one.stake))) =>
            {
                "another stake"
            }
            _ => return Ok(()),
        };
        Err(format!("{fault}: {committee:?} after {:?}", self.seats))
    }
}
