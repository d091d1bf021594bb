//! The registry of validators: stakes, committees drawn by stake, rewards and convictions (Smart Red Belly §3.5).
//!
//! # The attack
//!
//! A stake is money, and a validator is a machine. Four accounts staked a thousand times what the founders had, became
//! the whole committee at the next draw, and three of them had never run a node: nothing was decided any more. A draw
//! that asks only for stakes hands a network to whoever is rich and absent, on purpose or by mistake.
//!
//! # The rules
//!
//! An account becomes a validator by *staking* units of asset 0 and naming a key and a network address. It may add to
//! its stake, change key and address, and *unstake*. Heights are divided into *epochs* ([`proofs::Schedule`]). While
//! the block at the boundary of epoch `e` is applied, the *committee* of `e` is drawn from the registry before that
//! block. The seed is the state root that the block names. So the certified state is all that is needed to draw the
//! committee again. It begins `delay` heights later, when every validator has applied the boundary.
//!
//! 1. *Presence.* A validator is present for `e` if its node has said so since the boundary of `e − 1`, by the
//!    operation `Present` under the validator's key. It is free, has no number, and only the first one of an account
//!    and epoch is admitted: copies and others' change nothing. So they cost nothing and flood nothing. A new key has
//!    said nothing. Founders are present for epoch 1.
//! 2. *Draw.* All who have staked are drawn in an order, by stake and without replacement. The first of them who are
//!    present are *drawn*, as many as there are seats: the seat of who is absent falls to the next present one. Of
//!    those whose nodes cannot follow the confirmed rules a few are drawn, present or not; see the charter.
//! 3. *Change.* At most f seats change, or one where f is zero: those who come are chosen by lot from the drawn that
//!    have no seat. Seats become free in this order: of the convicted, of the absent, of those whose nodes cannot
//!    follow the confirmed rules and who are too many, of those who have unstaked. Then
//!    the committee grows. Then by lot from those that were not drawn. Others keep their seats.
//! 4. *No committee shrinks.* If nobody comes, who is absent, has left or was convicted keeps the seat. Otherwise a
//!    committee of seven with two liars and one absent would become six, which bear one liar. Only a genesis with
//!    more founders than seats lets seats go, f at a time.
//! 5. *When a committee is gone.* If more than f members are absent nothing is decided, no boundary comes, and no rule
//!    in the state can help. There is no rule for it: one that replaced a whole committee whose members look absent
//!    would hand the network to whoever makes them look so. Operators restart the network and may name its committee
//!    ([`crate::Restart`]); who has a seat then counts as present for the next draw, and nobody else.
//!
//! # Properties
//!
//! (`seats_tests` is a model of 4 to 30 seats with liars, absent ones and newcomers of any stakes.)
//!
//! * *Absence.* A stake without a node takes no seat, however large. If all founders are honest and everybody else
//!   falls silent as soon as it has a seat, at most f seats are silent at any time: the silent ones go first.
//! * *No favour.* Among the drawn are at most as many liars as liars and absent ones in a draw from all stakes with
//!   the same lots. Changing f at a time by lot gives everybody the seats that fresh draws would give it in the long
//!   run, in one account or in many: an account comes and goes in proportion to its chance of being drawn.
//! * *No lock-out.* Rotation goes on, f seats an epoch, whoever has the seats. f proposers cannot keep out a presence
//!   for an epoch, since every member proposes its own, and others post to one member after the other.
//! * *Never empty.* There is a committee, and its members are registered. Who keeps a seat without a stake is paid
//!   back when it can no longer be punished for that seat.
//!
//! A presence is talk: it says that a machine with the key is up, not that it will vote. Whoever stakes, posts and does
//! not vote is a liar, and the committee bears f of these. So the least stake has to be a real part of all stakes.
//! The liars of the present stakes must be fewer than a third: who is absent has no say about blocks, nor about draws.
//!
//! # Rewards, convictions, payback
//!
//! For each sub-block in a block its proposer's account is paid a *reward* out of a pool that the genesis filled,
//! unless the sub-block contains an invalid transaction. Two contradictory signed statements ([`Evidence`]) *convict*
//! a validator: a fraction of all it has staked, including units that are being paid back, goes to the pool, the rest
//! is unstaked, and it is never drawn again. If more accounts have staked than the chain's limits allow, those with
//! the lowest stakes are unstaked, so that cheap stakes keep no one out. Unstaked units are paid back at the first
//! boundary after `unbonding_epochs` epochs behind the last one that they can have counted in; older evidence is
//! refused. A member of the payment lane that contradicts itself there is convicted in the same way, and is not paid
//! back while it has keys in a lane epoch that still counts.
//!
//! **Properties.** All effects of a block are visible from the next one on, and none depends on the order of its
//! transactions. Only one validator at a time has a given key. Staked units, units being paid back and the pool are a
//! third place where asset 0 can be, besides balances and offers, and the three sums agree after every block.
//!
//! **The seed's bias.** A root covers every transaction of the blocks below it. So no one can foresee it before the
//! last of their sub-blocks is published, and a superblock contains sub-blocks of at least n−f proposers. The last
//! proposer can try several sub-blocks, but has to execute and hash the whole batch for each try, and can only choose
//! among as many draws as it tries within the grace period. Each of them is by stake. The state before the block
//! decides who can be drawn, so no one can choose a stake to fit a known seed.
//!
//! **Deviations from the paper.** There staking is a contract that publishes addresses in an event; here it is
//! native, so it is part of the state root. The paper leaves rewards, epochs and punishment open. Rewards are paid
//! for each included sub-block, empty or not: agreement needs everyone's proposal at every height, a payment per
//! transaction would reward spam, and a pot shared by the included proposers would reward keeping others out. The
//! accuser gets no share; otherwise proposers would copy accusations, and convicted validators would accuse
//! themselves.

mod custody;
mod draw;
mod seats;
#[cfg(test)]
mod seats_tests;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use primitives::{Address, Amount, Digest, Evidence, Fraction, Height, PublicKey, Stake, Superblock};
use proofs::{Member, Refusal, RulesReadiness, Terms, Validator, Validators};

use crate::places::Readiness;
use crate::places::sums::Credit;
use crate::terms::STAKED;
pub(crate) use seats::{Candidate, Standing, next_seats};

/// The registry with the rules by which it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stakes {
    /// What is hashed and proved.
    pub registered: Validators,
}

/// What an operation does to the registry of validators.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RegistryEdit<'a> {
    /// The sender stakes.
    Stake(&'a Stake),
    /// The sender withdraws units from its stake.
    Unstake(Amount),
    /// The sender's validator is present, and may be drawn for this epoch.
    Present(u64),
    /// A validator is convicted.
    Convict(&'a Evidence),
}

/// What the payment lane requires of stakes.
pub(crate) struct LaneStakes<'a> {
    /// Accounts whose members contradicted themselves there.
    pub convicted: &'a [Address],
    /// Accounts that answer for members that evidence may still convict: they are not paid back yet.
    pub answering: BTreeSet<Address>,
    /// Block heights that they wait for the lane at most, counted from when they would be paid: lane time may stand
    /// still, and nobody's stake waits for it for ever.
    pub heights_max: Height,
}

/// The effects of a block's registry operations outside the registry.
pub(crate) struct Moved {
    /// Credits that are paid out.
    pub credits: Vec<Credit>,
    /// Change of units that are staked, being paid back, or in the pool.
    pub bonded: i128,
}

impl Stakes {
    /// The registry of founders, who are the first committee in this order.
    pub(crate) fn found(terms: Terms, pool: Amount, founders: &[Member]) -> Stakes {
        // A founder is present until the first draw.
        let entry = |member: &Member| Validator { present_for: 1, ..newcomer(member.clone()) };
        let mut registry: Vec<Validator> = founders.iter().map(entry).collect();
        registry.sort_unstable_by_key(|one| one.member.account);
        let committees = vec![founders.to_vec()];
        Stakes { registered: Validators { terms, pool, registry, first_epoch: 0, committees } }
    }

    /// Continues as the registry of another network after this height: statements signed for the previous one convict
    /// no one. The accounts that are named take the seats; without any, the drawn committees keep them. Who holds a
    /// seat of the last committee counts as present in the next draw, and nobody else does.
    ///
    /// # Errors
    /// The account that cannot take a seat, and why.
    pub(crate) fn begin_again(
        &mut self,
        network: Digest,
        height: Height,
        named: &[Address],
    ) -> Result<(), (Address, &'static str)> {
        let seats: Vec<Member> =
            named.iter().enumerate().map(|(at, account)| self.seat(account, &named[..at])).collect::<Result<_, _>>()?;
        let registered = &mut self.registered;
        registered.terms.network = network;
        let acting = registered.terms.schedule.epoch_of(height + 1).saturating_sub(registered.first_epoch);
        let next = registered.last_epoch() + 1;
        let acting = &mut registered.committees[usize::try_from(acting).expect("fewer than were drawn")..];
        if !seats.is_empty() {
            acting.iter_mut().for_each(|committee| committee.clone_from(&seats));
        }
        let seated: BTreeSet<Address> = acting.iter().flatten().map(|member| member.account).collect();
        for one in &mut registered.registry {
            one.present_for = if seated.contains(&one.member.account) { next } else { 0 };
        }
        Ok(())
    }

    /// The seat of an account that is named for a committee, beside those named before.
    fn seat(&self, account: &Address, before: &[Address]) -> Result<Member, (Address, &'static str)> {
        match self.registered.get(account).filter(|one| one.is_staked()) {
            _ if before.contains(account) => Err((*account, "is named twice")),
            None => Err((*account, "has no stake, or was convicted")),
            Some(one) => Ok(one.member.clone()),
        }
    }

    /// The fault of a decoded registry of this height, if there is one.
    pub(crate) fn fault(&self, height: Height) -> Option<&'static str> {
        let mut keys: Vec<PublicKey> = self.registered.registry.iter().map(|one| one.member.key).collect();
        keys.sort_unstable();
        let is_empty = |one: &Validator| one.member.stake == 0 && one.unbonding.is_empty() && !one.excluded;
        let is_ordered = |one: &Validator| one.unbonding.is_sorted_by(|a, b| a.0 < b.0);
        match () {
            _ if !self.registered.registry.is_sorted_by(|a, b| a.member.account < b.member.account) => {
                Some("out of order")
            }
            _ if keys.windows(2).any(|two| two[0] == two[1]) => Some("two validators have one key"),
            _ if self.registered.registry.iter().any(is_empty) => Some("a validator has staked nothing"),
            _ if !self.registered.registry.iter().all(is_ordered) => Some("repayments out of order"),
            _ if self.registered.committees.is_empty() => Some("no committee"),
            _ if !self.seated().all(|member| self.registered.get(&member.account).is_some()) => {
                Some("a member of the last committee is not registered")
            }
            _ if self.registered.last_epoch() != self.registered.terms.schedule.last_drawn(height) => {
                Some("committees of other epochs")
            }
            _ => None,
        }
    }

    /// Checks one change against the present registry; `height` is that of the block it may be in.
    pub(crate) fn check(
        &self,
        chain: u64,
        sender: &Address,
        edit: RegistryEdit<'_>,
        height: Height,
        validators_max: usize,
    ) -> Result<(), Refusal> {
        match edit {
            RegistryEdit::Stake(stake) => self.check_stake(chain, sender, stake, validators_max),
            RegistryEdit::Unstake(units) => self.check_unstake(sender, units),
            RegistryEdit::Present(epoch) => self.check_present(sender, epoch, height),
            RegistryEdit::Convict(evidence) => self.convicted(evidence, height).map(|_| ()),
        }
    }

    fn check_stake(&self, chain: u64, sender: &Address, stake: &Stake, most: usize) -> Result<(), Refusal> {
        self.check_open(sender)?;
        let staked = self.registered.get(sender).map_or(0, |own| own.member.stake);
        let units = staked.saturating_add(stake.units);
        if units < self.registered.terms.minimum_stake.max(1) {
            return Err(Refusal::STAKE_TOO_SMALL);
        }
        if staked == 0 && self.is_full_for(units, most) {
            return Err(Refusal::REGISTRY_FULL);
        }
        if self.registered.registry.iter().any(|one| one.member.key == stake.key && one.member.account != *sender) {
            return Err(Refusal::VALIDATOR_KEY_TAKEN);
        }
        if stake.is_possessed(chain, sender) { Ok(()) } else { Err(Refusal::NOT_POSSESSED) }
    }

    /// Whether `most` accounts have staked, and none of them less than a newcomer would.
    fn is_full_for(&self, units: Amount, most: usize) -> bool {
        let staked = || self.registered.registry.iter().map(|one| one.member.stake).filter(|staked| *staked > 0);
        staked().count() >= most && staked().all(|staked| staked >= units)
    }

    fn check_unstake(&self, sender: &Address, units: Amount) -> Result<(), Refusal> {
        self.check_open(sender)?;
        let staked = self.registered.get(sender).ok_or(Refusal::NOT_A_VALIDATOR)?.member.stake;
        match staked.checked_sub(units) {
            None => Err(Refusal::UNSTAKE_TOO_MUCH),
            Some(rest) if rest > 0 && rest < self.registered.terms.minimum_stake => Err(Refusal::STAKE_TOO_SMALL),
            Some(_) => Ok(()),
        }
    }

    /// Only what changes the registry passes: a presence is free.
    fn check_present(&self, sender: &Address, epoch: u64, height: Height) -> Result<(), Refusal> {
        self.check_open(sender)?;
        let own = self.registered.get(sender).filter(|own| own.is_staked()).ok_or(Refusal::NOT_A_VALIDATOR)?;
        match () {
            _ if epoch != self.registered.terms.schedule.last_drawn(height).saturating_add(1) => {
                Err(Refusal::PRESENCE_OF_OTHER_EPOCH)
            }
            _ if own.is_present_for(epoch) => Err(Refusal::PRESENT_ALREADY),
            _ => Ok(()),
        }
    }

    fn check_open(&self, sender: &Address) -> Result<(), Refusal> {
        match self.registered.get(sender) {
            _ if self.registered.terms.schedule.is_fixed() => Err(Refusal::COMMITTEE_FIXED),
            Some(own) if own.excluded => Err(Refusal::EXCLUDED),
            _ => Ok(()),
        }
    }

    /// The position in the registry of the validator that the evidence convicts.
    pub(crate) fn convicted(&self, evidence: &Evidence, height: Height) -> Result<usize, Refusal> {
        if evidence.epoch < self.oldest_punishable(height) {
            return Err(Refusal::EVIDENCE_TOO_OLD);
        }
        let committee = self.registered.committee(evidence.epoch).ok_or(Refusal::BAD_EVIDENCE)?;
        let member = committee.get(usize::from(evidence.member)).ok_or(Refusal::BAD_EVIDENCE)?;
        let at = self.registered.find(&member.account).map_err(|_| Refusal::NOT_A_VALIDATOR)?;
        if self.registered.registry[at].excluded {
            return Err(Refusal::EXCLUDED);
        }
        if evidence.convicts(self.registered.terms.network, &member.key) { Ok(at) } else { Err(Refusal::BAD_EVIDENCE) }
    }

    fn oldest_punishable(&self, height: Height) -> u64 {
        self.registered.terms.schedule.epoch_of(height).saturating_sub(self.registered.terms.unbonding_epochs)
    }

    /// The height at which units that are unstaked in a block are paid back: a boundary.
    fn free(&self, height: Height) -> Height {
        let schedule = self.registered.terms.schedule;
        // The draw at this height, if there is one, uses the registry before the block.
        let last_epoch = schedule.last_drawn(height);
        schedule.boundary_from(schedule.last_height(last_epoch.saturating_add(self.registered.terms.unbonding_epochs)))
    }

    /// Whether a block with this many operations would leave everything unchanged.
    pub(crate) fn is_untouched_by(&self, block: &Superblock, operations: usize) -> bool {
        let schedule = self.registered.terms.schedule;
        let is_quiet = !schedule.is_boundary(block.height)
            && schedule.epoch_of(block.height) == schedule.epoch_of(block.height + 1);
        operations == 0 && is_quiet && (self.registered.terms.reward == 0 || self.registered.pool == 0)
    }

    /// Applies a block: rewards, and the admitted changes of the registry, whose order does not matter.
    ///
    /// `earning` are the proposers that are paid. If more than `validators_max` accounts have staked, those with the
    /// lowest stakes are unstaked.
    pub(crate) fn apply(
        &mut self,
        block: &Superblock,
        earning: &[u32],
        edits: &[(Address, RegistryEdit<'_>)],
        lane: &LaneStakes<'_>,
        validators_max: usize,
        readiness: &Readiness,
    ) -> Moved {
        let before = self.registered.bonded();
        let height = block.height;
        if self.registered.terms.schedule.is_boundary(height) {
            self.draw(&block.parent_root, readiness);
        }
        let mut credits = self.reward(height, earning);
        self.convict_and_move(edits, lane.convicted, height);
        self.displace(validators_max, height);
        if self.registered.terms.schedule.is_boundary(height) {
            self.release(height, lane, &mut credits);
        }
        self.forget(height);
        Moved { credits, bonded: self.registered.bonded() as i128 - before as i128 }
    }

    /// The members of the last committee that is drawn.
    fn seated(&self) -> impl Iterator<Item = &Member> {
        self.registered.committees.last().into_iter().flatten()
    }

    /// Draws the committee of the next epoch.
    fn draw(&mut self, seed: &Digest, readiness: &Readiness) {
        let Validators { terms, registry, .. } = &self.registered;
        let epoch = self.registered.last_epoch() + 1;
        let candidates: Vec<Candidate> = registry.iter().map(|one| candidate(one, epoch, readiness)).collect();
        let held: Vec<usize> =
            self.seated().map(|member| self.registered.find(&member.account).expect("it is bonded")).collect();
        let seats = next_seats(seed, epoch, &candidates, &held, terms.committee as usize, readiness.is_patient);
        let committee = seats.into_iter().map(|at| registry[at].member.clone()).collect();
        self.registered.committees.push(committee);
    }

    /// Pays proposers, as far as the pool suffices: then all get the same part.
    fn reward(&mut self, height: Height, earning: &[u32]) -> Vec<Credit> {
        let committee = self.registered.committee(self.registered.terms.schedule.epoch_of(height)).unwrap_or_default();
        let proposers: Vec<Address> = earning
            .iter()
            .filter_map(|proposer| committee.get(*proposer as usize))
            .map(|member| member.account)
            .filter(|account| !self.registered.get(account).is_some_and(|one| one.excluded))
            .collect();
        let Some(most) = self.registered.pool.checked_div(proposers.len() as Amount) else { return Vec::new() };
        let amount = self.registered.terms.reward.min(most);
        self.registered.pool -= amount * proposers.len() as Amount;
        let pay = |to| Credit { to, asset: STAKED, amount };
        if amount == 0 { Vec::new() } else { proposers.into_iter().map(pay).collect() }
    }

    /// Applies operations: first presences, whose keys were those before the block, then those of owners, then
    /// convictions.
    fn convict_and_move(&mut self, edits: &[(Address, RegistryEdit<'_>)], by_lane: &[Address], height: Height) {
        // The filter found the convicted validators in the registry before the block.
        let accused = edits.iter().filter_map(|(_, edit)| match edit {
            RegistryEdit::Convict(evidence) => {
                let member = self.registered.committee(evidence.epoch)?.get(usize::from(evidence.member))?;
                Some(member.account)
            }
            _ => None,
        });
        let accused: Vec<Address> = accused.collect();
        let free = self.free(height);
        for (sender, edit) in edits {
            if let RegistryEdit::Present(epoch) = edit {
                self.entry(sender).present_for = *epoch;
            }
        }
        for (sender, edit) in edits {
            match edit {
                RegistryEdit::Stake(stake) => self.stake(*sender, stake),
                RegistryEdit::Unstake(units) => self.unstake(sender, *units, free),
                RegistryEdit::Present(_) | RegistryEdit::Convict(_) => {}
            }
        }
        accused.iter().chain(by_lane).for_each(|account| self.convict(account, free));
    }

    fn stake(&mut self, account: Address, stake: &Stake) {
        let at = self.registered.find(&account).unwrap_or_else(|at| {
            let member = Member { account, key: stake.key, address: String::new(), stake: 0 };
            self.registered.registry.insert(at, newcomer(member));
            at
        });
        let own = &mut self.registered.registry[at];
        // That the node with the old key is up says nothing about the one with the new key.
        own.present_for *= u64::from(own.member.key == stake.key);
        let member = &mut own.member;
        member.stake += stake.units;
        member.key = stake.key;
        member.address.clone_from(&stake.address);
    }

    fn entry(&mut self, account: &Address) -> &mut Validator {
        let at = self.registered.find(account).expect("the filter has checked the stake");
        &mut self.registered.registry[at]
    }

    fn unstake(&mut self, account: &Address, units: Amount, free: Height) {
        let own = self.entry(account);
        own.member.stake = own.member.stake.checked_sub(units).expect("the filter has checked the amount");
        unbond(own, units, free);
    }

    /// Takes the slashed part from a convicted validator, and starts the payback of the rest. A validator is
    /// convicted only once.
    fn convict(&mut self, account: &Address, free: Height) {
        let (slash, is_fixed) = (self.registered.terms.slash, self.registered.terms.schedule.is_fixed());
        let Ok(at) = self.registered.find(account) else { return };
        let own = &mut self.registered.registry[at];
        if own.excluded {
            return;
        }
        own.excluded = true;
        let bonded = own.unbonding.iter_mut().map(|(_, units)| units).chain([&mut own.member.stake]);
        self.registered.pool += bonded.map(|units| lose(units, slash)).sum::<Amount>();
        own.unbonding.retain(|(_, units)| *units > 0);
        if !is_fixed {
            let rest = std::mem::take(&mut own.member.stake);
            unbond(own, rest, free);
        }
    }

    /// Unstakes the account with the lowest stake, of equals the one with the highest address, until no more than
    /// `most` are left.
    fn displace(&mut self, most: usize, height: Height) {
        let mut staked: Vec<(Amount, Reverse<usize>)> = (0..)
            .zip(&self.registered.registry)
            .filter(|(_, one)| one.member.stake > 0)
            .map(|(at, one)| (one.member.stake, Reverse(at)))
            .collect();
        let beyond = staked.len().saturating_sub(most);
        if beyond == 0 {
            return;
        }
        staked.sort_unstable();
        let free = self.free(height);
        for (_, Reverse(at)) in &staked[..beyond] {
            let own = &mut self.registered.registry[*at];
            let units = std::mem::take(&mut own.member.stake);
            unbond(own, units, free);
        }
    }

    /// Pays back units that are free, and removes validators that have nothing left. Accounts that answer for a
    /// member of the payment lane are paid later, and at the latest when they have waited as long as they must. Who
    /// keeps a seat without a stake is paid when it can be punished for that seat no more.
    fn release(&mut self, height: Height, lane: &LaneStakes<'_>, credits: &mut Vec<Credit>) {
        let serving = self.serving(height);
        let is_serving = |one: &Validator| !one.excluded && serving.contains(&one.member.account);
        for one in self.registered.registry.iter_mut().filter(|one| !is_serving(one)) {
            let waits = if lane.answering.contains(&one.member.account) { lane.heights_max } else { 0 };
            let is_free = |free: Height| free.saturating_add(waits) <= height;
            let amount = one.unbonding.iter().filter(|(free, _)| is_free(*free)).map(|(_, units)| units).sum();
            if amount > 0 {
                one.unbonding.retain(|(free, _)| !is_free(*free));
                credits.push(Credit { to: one.member.account, asset: STAKED, amount });
            }
        }
        self.registered.registry.retain(|one| one.bonded() > 0 || one.excluded);
    }

    /// The accounts that keep a seat without a stake, in committees that can be punished after this height.
    fn serving(&self, height: Height) -> BTreeSet<Address> {
        let oldest = self.oldest_punishable(height + 1).saturating_sub(self.registered.first_epoch);
        let committees = self.registered.committees.iter().skip(usize::try_from(oldest).unwrap_or(usize::MAX));
        committees.flatten().filter(|member| member.stake == 0).map(|member| member.account).collect()
    }

    /// Drops committees that neither act nor can be punished any more. A committee that decided this block is kept:
    /// it may have to decide it again, for a validator that lost its newest certificates in a power failure.
    fn forget(&mut self, height: Height) {
        let punishable = self.oldest_punishable(height + 1);
        let oldest = punishable.min(self.registered.terms.schedule.epoch_of(height)).min(self.registered.last_epoch());
        let old = usize::try_from(oldest.saturating_sub(self.registered.first_epoch)).expect("fewer than were drawn");
        self.registered.committees.drain(..old);
        self.registered.first_epoch += old as u64;
    }
}

/// An entry of the registry that has said nothing yet.
fn newcomer(member: Member) -> Validator {
    Validator { member, unbonding: Vec::new(), excluded: false, present_for: 0 }
}

/// How an account stands in the draw of an epoch.
pub(crate) fn candidate(one: &Validator, epoch: u64, readiness: &Readiness) -> Candidate {
    let (is_present, can_follow) = (one.is_present_for(epoch), readiness.of(&one.member.account));
    let standing = match can_follow {
        _ if one.excluded => Standing::Convicted,
        _ if one.member.stake == 0 => Standing::Left,
        // Its node has stopped: it cannot say that it is present.
        RulesReadiness::Stopped => Standing::Unready,
        _ if !is_present => Standing::Absent,
        RulesReadiness::Unready => Standing::Unready,
        RulesReadiness::Ready => Standing::Present,
    };
    Candidate { stake: one.member.stake, standing }
}

/// Starts the payback of units.
fn unbond(one: &mut Validator, units: Amount, free: Height) {
    match one.unbonding.last_mut() {
        _ if units == 0 => {}
        Some((last, sum)) if *last == free => *sum += units,
        _ => one.unbonding.push((free, units)),
    }
}

/// Subtracts a part of some units, rounded up; returns it.
fn lose(units: &mut Amount, part: Fraction) -> Amount {
    let lost = (u128::from(*units) * u128::from(part.units())).div_ceil(u128::from(Fraction::ONE_IN_UNITS)) as Amount;
    *units -= lost;
    lost
}

#[cfg(test)]
mod tests {
    use proofs::Schedule;

    use super::*;

    fn validator(number: u8) -> Validator {
        let member = Member {
            account: Address([number; 20]),
            key: PublicKey([number; 32]),
            address: "a.example:1".into(),
            stake: 5,
        };
        Validator { unbonding: vec![(10, 1), (20, 1)], ..newcomer(member) }
    }

    /// A sound registry after height 23 with epochs of ten.
    fn sound() -> Stakes {
        let terms = Terms { schedule: Schedule { epoch_heights: 10, delay: 0 }, ..Terms::default() };
        let registry = vec![validator(1), validator(2)];
        let committees = vec![Vec::new(), Vec::new()];
        Stakes { registered: Validators { terms, pool: 0, registry, first_epoch: 1, committees } }
    }

    type Spoil = fn(&mut Validators);

    #[test]
    fn what_cannot_be_is_named() {
        assert_eq!(sound().fault(23), None);
        assert_eq!(sound().registered.bonded(), 14);
        let faults: [(Spoil, &str); 8] = [
            (|all| all.registry.swap(0, 1), "out of order"),
            (|all| all.registry[1].member.account = all.registry[0].member.account, "out of order"),
            (|all| all.registry[1].member.key = all.registry[0].member.key, "two validators have one key"),
            (|all| all.registry[0] = Validator { unbonding: Vec::new(), ..validator(1) }, "nothing"),
            (|all| all.registry[1].unbonding.swap(0, 1), "repayments out of order"),
            (|all| all.committees.clear(), "no committee"),
            (|all| all.first_epoch = 0, "committees of other epochs"),
            (|all| all.first_epoch = u64::MAX, "committees of other epochs"),
        ];
        for (spoil, expected) in faults {
            let mut spoilt = sound();
            spoil(&mut spoilt.registered);
            spoilt.registered.registry[0].member.stake *= u64::from(!expected.contains("nothing"));
            assert!(
                spoilt.fault(23).is_some_and(|fault| fault.contains(expected)),
                "{expected}: {:?}",
                spoilt.fault(23)
            );
        }
    }

    #[test]
    fn a_part_is_rounded_up() {
        for (units, left) in [(0, 0), (1, 0), (4, 3), (5, 3), (u64::MAX >> 1, (u64::MAX >> 1) - (1 << 61))] {
            let mut rest = units;
            assert_eq!(lose(&mut rest, Fraction::power_of_two(2)), units - left);
            assert_eq!(rest, left);
        }
    }
}
