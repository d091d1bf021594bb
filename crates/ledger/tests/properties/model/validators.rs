//! The registry of validators in its simplest form.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{Ledger, Member, Membership, Refusal, Terms};
use primitives::{
    Address, Amount, Body, Contradiction, Digest, Evidence, Operation, PublicKey, Scope, SignedBy, Transaction,
};

#[derive(Clone, Debug, PartialEq)]
pub struct ModelValidator {
    pub key: PublicKey,
    pub address: String,
    pub stake: Amount,
    pub unbonding: BTreeMap<u64, Amount>,
    pub excluded: bool,
    pub present_for: u64,
}

#[derive(Clone)]
pub struct ModelValidators {
    pub chain: u64,
    pub terms: Terms,
    pub pool: Amount,
    /// The most accounts that may have staked.
    pub most: usize,
    pub height: u64,
    pub registry: BTreeMap<Address, ModelValidator>,
    /// The committees of every epoch so far; none is dropped.
    pub committees: Vec<Vec<Member>>,
}

impl ModelValidator {
    fn new(key: PublicKey) -> ModelValidator {
        let (address, unbonding) = (String::new(), BTreeMap::new());
        ModelValidator { key, address, stake: 0, unbonding, excluded: false, present_for: 0 }
    }
}

impl ModelValidators {
    pub fn new(chain: u64, membership: &Membership, most: usize) -> ModelValidators {
        let entry = |one: &Member| {
            let (key, address, stake) = (one.key, one.address.clone(), one.stake);
            let entry = ModelValidator { key, address, stake, ..ModelValidator::new(key) };
            (one.account, ModelValidator { present_for: 1, ..entry })
        };
        ModelValidators {
            chain,
            terms: membership.terms,
            pool: membership.reward_pool,
            most,
            height: 0,
            registry: membership.founders.iter().map(entry).collect(),
            committees: vec![membership.founders.clone()],
        }
    }

    /// Boundaries whose committee acts at a height, counted.
    pub fn epoch_at(&self, height: u64) -> u64 {
        let (heights, delay) = (self.terms.schedule.epoch_heights, self.terms.schedule.delay);
        if heights == 0 {
            return 0;
        }
        (1..).take_while(|epoch| epoch * heights + delay < height).count() as u64
    }

    fn last_height(&self, epoch: u64) -> u64 {
        (1..).find(|height| self.epoch_at(height + 1) > epoch).expect("epochs end")
    }

    fn is_boundary(&self, height: u64) -> bool {
        let heights = self.terms.schedule.epoch_heights;
        heights > 0 && height.is_multiple_of(heights)
    }

    /// Whether the validator's key signed a presence.
    pub fn speaks_for(&self, account: &Address, signed_by: &SignedBy) -> Result<(), Refusal> {
        let own = self.registry.get(account).ok_or(Refusal::NOT_A_VALIDATOR)?;
        match signed_by {
            SignedBy::Key { signer, .. } if *signer == own.key => Ok(()),
            _ => Err(Refusal::NOT_VALIDATORS_KEY),
        }
    }

    /// The epoch that is drawn next, for operations of the next block.
    pub fn next_drawn(&self) -> u64 {
        (self.height + 1) / self.terms.schedule.epoch_heights + 1
    }

    pub fn alone(&self, account: &Address, operation: &Operation) -> Result<(), Refusal> {
        let own = self.registry.get(account);
        match operation {
            Operation::Present { .. } if own.is_some_and(|own| own.excluded) => Err(Refusal::EXCLUDED),
            Operation::Present { epoch } => match own.filter(|own| own.stake > 0) {
                None => Err(Refusal::NOT_A_VALIDATOR),
                Some(_) if *epoch != self.next_drawn() => Err(Refusal::PRESENCE_OF_OTHER_EPOCH),
                Some(own) if own.present_for >= *epoch => Err(Refusal::PRESENT_ALREADY),
                Some(_) => Ok(()),
            },
            Operation::Stake(_) | Operation::Unstake { .. } if self.terms.schedule.epoch_heights == 0 => {
                Err(Refusal::COMMITTEE_FIXED)
            }
            Operation::Stake(_) | Operation::Unstake { .. } if own.is_some_and(|own| own.excluded) => {
                Err(Refusal::EXCLUDED)
            }
            Operation::Stake(stake) => {
                if own.map_or(0, |own| own.stake) + stake.units < self.terms.minimum_stake {
                    return Err(Refusal::STAKE_TOO_SMALL);
                }
                let stakes: Vec<Amount> = self.registry.values().map(|one| one.stake).filter(|all| *all > 0).collect();
                let is_new = own.is_none_or(|own| own.stake == 0);
                if is_new && stakes.len() >= self.most && stakes.iter().all(|staked| *staked >= stake.units) {
                    return Err(Refusal::REGISTRY_FULL);
                }
                if self.registry.iter().any(|(other, one)| other != account && one.key == stake.key) {
                    return Err(Refusal::VALIDATOR_KEY_TAKEN);
                }
                if stake.is_possessed(self.chain, account) { Ok(()) } else { Err(Refusal::NOT_POSSESSED) }
            }
            Operation::Unstake { units } => {
                let staked = own.ok_or(Refusal::NOT_A_VALIDATOR)?.stake;
                if *units > staked {
                    return Err(Refusal::UNSTAKE_TOO_MUCH);
                }
                let rest = staked - units;
                if rest == 0 || rest >= self.terms.minimum_stake { Ok(()) } else { Err(Refusal::STAKE_TOO_SMALL) }
            }
            Operation::Accuse(evidence) => self.convicted(evidence).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn convicted(&self, evidence: &Evidence) -> Result<Address, Refusal> {
        if evidence.epoch + self.terms.unbonding_epochs < self.epoch_at(self.height + 1) {
            return Err(Refusal::EVIDENCE_TOO_OLD);
        }
        let committee = self.committees.get(evidence.epoch as usize).ok_or(Refusal::BAD_EVIDENCE)?;
        let member = committee.get(usize::from(evidence.member)).ok_or(Refusal::BAD_EVIDENCE)?;
        let entry = self.registry.get(&member.account).ok_or(Refusal::NOT_A_VALIDATOR)?;
        if entry.excluded {
            return Err(Refusal::EXCLUDED);
        }
        let scope = Scope { network: self.terms.network, epoch: evidence.epoch };
        let (height, slot) = (evidence.height, evidence.member);
        let statements: Vec<_> = match evidence.contradiction {
            Contradiction::Proposals(both) => {
                both.iter().map(|one| (scope.proposal(height, slot, &one.payload, one.length), one.signature)).collect()
            }
            Contradiction::Commits(both) => {
                both.iter().map(|one| (scope.commit(height, &one.superblock, &one.root), one.signature)).collect()
            }
            Contradiction::RoundVotes { round, kind, votes } => votes
                .iter()
                .map(|one| (scope.round_vote(height, round, kind, one.value.as_ref()), one.signature))
                .collect(),
            Contradiction::RoundProposals { round, proposals } => proposals
                .iter()
                .map(|one| (scope.round_proposal(height, round, &one.value, one.valid_round), one.signature))
                .collect(),
        };
        let signed = statements.iter().all(|(digest, signature)| member.key.verify(&digest.0, signature));
        if signed && statements[0].0 != statements[1].0 { Ok(member.account) } else { Err(Refusal::BAD_EVIDENCE) }
    }

    /// Applies a block; returns what is paid out.
    pub fn apply(&mut self, standing: &[&Transaction], proposers: &[u32], seed: &Digest) -> Vec<(Address, Amount)> {
        self.height += 1;
        let height = self.height;
        let accused: BTreeSet<Address> = standing
            .iter()
            .filter_map(|t| match &t.body.operation {
                Operation::Accuse(evidence) => {
                    Some(self.committees[evidence.epoch as usize][usize::from(evidence.member)].account)
                }
                _ => None,
            })
            .collect();
        if self.is_boundary(height) {
            self.draw(seed);
        }
        let mut paid = self.reward(proposers);
        // Units that are unstaked now counted in the draws so far, whose epochs end one after the other.
        let last_epoch = self.committees.len() as u64 - 1 + self.terms.unbonding_epochs;
        let free = (self.last_height(last_epoch)..).find(|at| self.is_boundary(*at)).expect("boundaries never end");
        for t in standing {
            if let Operation::Present { epoch } = t.body.operation {
                self.registry.get_mut(&t.body.account).expect("staked").present_for = epoch;
            }
        }
        for t in standing {
            let Body { account, operation, .. } = &t.body;
            match operation {
                Operation::Stake(stake) => {
                    let entry = self.registry.entry(*account).or_insert_with(|| ModelValidator::new(stake.key));
                    if entry.key != stake.key {
                        entry.present_for = 0;
                    }
                    entry.key = stake.key;
                    entry.address = stake.address.clone();
                    entry.stake += stake.units;
                }
                Operation::Unstake { units } => {
                    let entry = self.registry.get_mut(account).expect("staked");
                    entry.stake -= units;
                    *entry.unbonding.entry(free).or_default() += units;
                }
                _ => {}
            }
        }
        accused.iter().for_each(|account| self.convict(account, free));
        while self.registry.values().filter(|one| one.stake > 0).count() > self.most {
            let staked = self.registry.iter_mut().filter(|(_, one)| one.stake > 0);
            let (_, least) =
                staked.min_by_key(|(account, one)| (one.stake, std::cmp::Reverse(**account))).expect("one");
            *least.unbonding.entry(free).or_default() += std::mem::take(&mut least.stake);
        }
        if self.is_boundary(height) {
            let punishable = self.epoch_at(height + 1).saturating_sub(self.terms.unbonding_epochs) as usize;
            let seats = self.committees.iter().skip(punishable).flatten();
            let serving: BTreeSet<Address> = seats.filter(|seat| seat.stake == 0).map(|seat| seat.account).collect();
            for (account, entry) in &mut self.registry {
                if serving.contains(account) && !entry.excluded {
                    continue;
                }
                let kept = entry.unbonding.split_off(&(height + 1));
                let due: Amount = std::mem::replace(&mut entry.unbonding, kept).values().sum();
                if due > 0 {
                    paid.push((*account, due));
                }
            }
            self.registry.retain(|_, entry| entry.excluded || entry.stake > 0 || !entry.unbonding.is_empty());
        }
        paid
    }

    fn reward(&mut self, proposers: &[u32]) -> Vec<(Address, Amount)> {
        let committee = &self.committees[self.epoch_at(self.height) as usize];
        let accounts: Vec<Address> = proposers
            .iter()
            .filter_map(|index| committee.get(*index as usize))
            .map(|member| member.account)
            .filter(|account| self.registry.get(account).is_none_or(|entry| !entry.excluded))
            .collect();
        if accounts.is_empty() {
            return Vec::new();
        }
        let each = self.terms.reward.min(self.pool / accounts.len() as u64);
        self.pool -= each * accounts.len() as u64;
        accounts.into_iter().map(|account| (account, each)).filter(|(_, units)| *units > 0).collect()
    }

    fn convict(&mut self, account: &Address, free: u64) {
        let entry = self.registry.get_mut(account).expect("judged");
        entry.excluded = true;
        let slash = u128::from(self.terms.slash.units());
        let mut lost = 0;
        for units in entry.unbonding.values_mut().chain([&mut entry.stake]) {
            let part = ((u128::from(*units) * slash + (1 << 32) - 1) >> 32) as Amount;
            *units -= part;
            lost += part;
        }
        self.pool += lost;
        entry.unbonding.retain(|_, units| *units > 0);
        let rest = std::mem::take(&mut entry.stake);
        if rest > 0 {
            *entry.unbonding.entry(free).or_default() += rest;
        }
    }

    /// Draws all who have staked, keeps the first ones who are present, and gives them at most f seats, or one.
    fn draw(&mut self, seed: &Digest) {
        let epoch = self.committees.len() as u64;
        let mut lots = ModelLots::new(seed, epoch);
        let staked = self.registry.iter().filter(|(_, one)| one.stake > 0);
        let order = lots.order(staked.map(|(account, one)| (*account, u128::from(one.stake))).collect());
        let is_present =
            |account: &Address| self.registry[account].present_for >= epoch && !self.registry[account].excluded;
        let size = self.terms.committee as usize;
        let drawn: Vec<Address> = order.into_iter().filter(is_present).take(size).collect();
        let mut seats: Vec<Address> = self.committees.last().expect("founders").iter().map(|one| one.account).collect();
        let changes = std::cmp::max(1, (seats.len() - 1) / 3);
        let even = |some: Vec<Address>| some.into_iter().map(|account| (account, 1)).collect();
        let mut comes = lots.order(even(drawn.iter().filter(|one| !seats.contains(one)).copied().collect()));
        let mut goes = lots.order(even(seats.iter().filter(|one| !drawn.contains(one)).copied().collect()));
        // Convicted, absent, left, and those who only were not drawn.
        goes.sort_by_key(|account| {
            let own = &self.registry[account];
            match () {
                _ if own.excluded => 0,
                _ if own.stake > 0 && own.present_for < epoch => 1,
                _ if own.stake == 0 => 2,
                _ => 3,
            }
        });
        comes.truncate(changes);
        goes.truncate(changes);
        while seats.len() > size && !goes.is_empty() {
            let gone = goes.remove(0);
            seats.retain(|seat| *seat != gone);
        }
        let faulty = goes.iter().filter(|account| !is_present(account)).count();
        let (faulty, others) = goes.split_at(faulty);
        let mut comes = comes.into_iter();
        let swap = |seats: &mut Vec<Address>, gone: &Address, comes: Address| {
            let seat = seats.iter().position(|seat| seat == gone).expect("it has a seat");
            seats[seat] = comes;
        };
        for (gone, new) in faulty.iter().zip(comes.by_ref().take(faulty.len()).collect::<Vec<_>>()) {
            swap(&mut seats, gone, new);
        }
        let free = size.saturating_sub(seats.len());
        seats.extend(comes.by_ref().take(free));
        others.iter().zip(comes).for_each(|(gone, new)| swap(&mut seats, gone, new));
        let member = |account: Address| {
            let own = &self.registry[&account];
            Member { account, key: own.key, address: own.address.clone(), stake: own.stake }
        };
        self.committees.push(seats.into_iter().map(member).collect());
    }

    pub fn bonded(&self) -> Amount {
        let of = |entry: &ModelValidator| entry.stake + entry.unbonding.values().sum::<Amount>();
        self.pool + self.registry.values().map(of).sum::<Amount>()
    }

    pub fn assert_same(&self, real: &Ledger) {
        let validators = real.validators();
        assert_eq!(validators.pool, self.pool);
        let ours = self.registry.iter().map(|(account, one)| (*account, one.clone()));
        let theirs = validators.registry.iter().map(|one| {
            let (key, address, stake) = (one.member.key, one.member.address.clone(), one.member.stake);
            let unbonding = one.unbonding.iter().copied().collect();
            let (excluded, present_for) = (one.excluded, one.present_for);
            (one.member.account, ModelValidator { key, address, stake, unbonding, excluded, present_for })
        });
        assert_eq!(theirs.collect::<Vec<_>>(), ours.collect::<Vec<_>>());
        // The committees that may still act, decided the last block or can be punished are known, no older ones are,
        // and the known ones are correct.
        let punishable = self.epoch_at(self.height + 1).saturating_sub(self.terms.unbonding_epochs);
        let oldest = punishable.min(self.epoch_at(self.height));
        for (epoch, committee) in self.committees.iter().enumerate() {
            let known = (epoch as u64 >= oldest).then_some(committee.as_slice());
            assert_eq!(real.committee(epoch as u64), known, "epoch {epoch} at height {}", self.height);
        }
        assert_eq!(real.committee(self.committees.len() as u64), None);
        assert_eq!(validators.bonded(), u128::from(self.bonded()));
    }
}

/// Lots from one stream of eight-byte numbers; numbers above the last whole multiple of the sum are skipped.
struct ModelLots(blake3::OutputReader);

impl ModelLots {
    fn new(seed: &Digest, epoch: u64) -> ModelLots {
        let mut hasher = blake3::Hasher::new_derive_key("walras 2026 committee draw v1");
        ModelLots(hasher.update(&seed.0).update(&epoch.to_le_bytes()).finalize_xof())
    }

    /// All of these, each by a lot among the weights of those left.
    fn order(&mut self, mut left: Vec<(Address, u128)>) -> Vec<Address> {
        let mut order = Vec::new();
        while !left.is_empty() {
            let sum: u128 = left.iter().map(|(_, weight)| weight).sum();
            let lot = loop {
                let mut bytes = [0; 8];
                self.0.fill(&mut bytes);
                let number = u128::from(u64::from_le_bytes(bytes));
                if number < (1u128 << 64) / sum * sum {
                    break number % sum;
                }
            };
            let mut below = 0;
            let at = left.iter().position(|(_, weight)| {
                below += weight;
                lot < below
            });
            order.push(left.remove(at.expect("a lot is below the sum")).0);
        }
        order
    }
}
