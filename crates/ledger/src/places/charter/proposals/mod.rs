//! Parameters by vote: how validators change a number of a running chain, list an asset under a plain name, close one,
//! and carry one in the payment lane.
//!
//! # The protocol
//!
//! The parameters in force are one record ([`Parameters`]). A proposal changes one *thing*: a parameter of it, what a
//! plain name means, whether an asset stays, or its terms in the lane. Every block is judged by the state before it,
//! boundaries and their tallies too. B(k) is the boundary of epoch k, F(k) the first height that its committee decides.
//! A committee has n seats, f = ⌊(n−1)/3⌋.
//!
//! - Upon *Propose{change}* of an account with a stake or a seat, for 1,000 fees: the change is open under the id of
//!   its transaction, from the next block on and for four boundaries. An account has one open: a newer one replaces
//!   it, with all its votes. What is out of bounds, what changes nothing, and what does not fit beside the record that
//!   will be in force is refused.
//! - *Few are open*: 64. Beyond that the proposal falls out whose account stakes least, of equals that of the highest
//!   address; a newcomer that would fall out itself is refused.
//! - Upon *Vote{id, word}* of an account with a stake or a seat: that is its word about the proposal of this id. Of
//!   several words the last one counts. At a boundary the words of accounts without both are forgotten.
//! - *Tally*, at B(k), of each open proposal: it *passes* with the yes of n − f seats of committee k−1 and of
//!   committee k, and of accounts with 2/3 of all stake. A seat whose holder has unstaked or was convicted says
//!   nothing.
//! - *One change a thing*: of those that pass for the same thing, that with more seats of committee k, then the one
//!   with the lower id. The others are over.
//! - *They fit together*: by rising id, each is written into the record that will be in force, if the whole record
//!   then passes the checks of a genesis. Those that do not fit are over.
//! - The record of B(k) acts from F(k+1), which is after B(k+1): so the record of B(k+1) is made on top of one that
//!   does not act yet. At most two wait at a time.
//! - *Step*: a parameter at most doubles or halves, and its next change passes at the earliest 30 days after its last
//!   one did. Zero stays zero. A parameter stays within its bounds ([`Parameters`]), which are made of the genesis. The
//!   policy of listings has no steps.
//! - A *List* that passes keeps room and name from then on. At the end of F(k+1) − 1 it lists, for nothing, under a
//!   plain name, for the issuer that it names: it is there when the record acts. Only the policy `voted` has it.
//! - A *Close* that passes announces at that height, as the issuer would. What the issuer has announced before stays,
//!   and it can take nothing back.
//! - *Terms of the lane* that pass are those of the lane epochs that begin after F(k+1) (`bridge::assets`). Since rules
//!   19.
//! - *One node*: the operator that the genesis names proposes, and nobody votes. Its change acts as many heights later
//!   as the charter gives notice.
//! - *A restart* drops what is open and what waits. The record in force stays.
//! - *Light clients* read the records of the genesis, in force and to come from a [`proofs::ParametersProof`]. Of what
//!   is open the root has a digest beside them.
//!
//! Never by vote: ε, μ and least units, which resting offers rely on; epochs, windows, lag and unbonding, which light
//! clients rely on; slashes; notices; delays and bonds of venues; epochs of the lane; classes of pools.
//!
//! # Properties
//!
//! (`model` checks them for all short histories of two parameters against an oracle that keeps lists of words.)
//!
//! - *Whole*: every record that is ever in force passes the checks of a genesis.
//! - *Warning*: a record stands in the state at least an epoch before it acts, and is not changed in between.
//! - *Slow*: in 30 days no parameter more than doubles or halves.
//! - *Majority*: nothing passes without n − f seats of two committees in a row, and 2/3 of the stake.
//! - *Nothing is lost*: what has passed acts, whatever passes after it.
//! - *Commute*: the order of a block's proposals and votes changes nothing.
//!
//! # Attacks
//!
//! | attack | answer |
//! |---|---|
//! | two values that fit alone, and stop the chain together | the whole next record is checked, by rising id |
//! | a value that no block can have stops the chain when it acts | the checks of a genesis at proposal and tally |
//! | a proposal is exchanged for another one after it has its votes | votes are for an id, which its content determines |
//! | a proposal passes between the tally of another and its first height, and overwrites it | made on top of what waits |
//! | a committee that is drawn once by luck | the committee before, and 2/3 of the stake |
//! | holders vote, unstake, and stake elsewhere to vote again | seats and stakes are counted at the tally, each staked once |
//! | a cartel raises fees | twice a month, seen an epoch ahead, at most 100 times |
//! | ×2 upon ×2 through several proposals of one boundary | one change a thing, one in 30 days |
//! | an id is ground so that others fall out as not fitting | it must pass by itself; what it displaces is proposed again |
//! | a flood of proposals | one open an account, 1,000 fees, no more accounts than validate |
//! | a proposal is kept open until voters have forgotten it | four boundaries |
//! | a vote is posted again after its proposal was replaced | the id is unknown |
//! | an id is ground so that others fall out of the 64 | they fall by stake, which no id changes |
//! | 64 accounts with the least stake keep all others from proposing | whoever stakes more takes the place of one |
//! | accounts stake, vote and leave, one after the other, so that words pile up | forgotten at each boundary |
//! | somebody stakes so much that the minimum stake is too low for a genesis, and no record fits any more | only a lower minimum stake is measured by what is staked |
//! | a lower limit ends what rests | it stops new ones only |
//! | what accounts said about rules is forgotten after the longest life of a transaction; that shrinks, and old ones come back | it only rises |
//! | the policy of listings ends, and proposers lose their reward for listings that they had admitted | refused, and not invalid, since rules 16 |
//! | a name is listed for a price between the vote and its height | refused: what waits counts as listed |
//! | an issuer announces a closing that is voted on, and revokes it later | a vote can pass beside it, and nobody revokes that |
//! | a state with another fee or limit is served to a validator that fetches one | the record in force is part of the root, and the head of a state must agree with it |
//! | a transaction was admitted under the record before, and costs more | the pool reserves by the dearer record, and judges again when one acts |
//!
//! # Deviations
//!
//! From the design of a network that lives for years:
//!
//! - *The charter keeps two records that wait*, not one "next": what passes at B(k) acts from F(k+1), after the tally
//!   of B(k+1), whose record must not overwrite it.
//! - *Not checked again when it acts*: nothing but a tally changes a record, and no tally changes one that waits, so
//!   the check at its tally is that of its first height.
//! - *The 30 days count from tally to tally*, so that a boundary needs to know no heights to come.
//! - *A step is bounded on both sides*, ×2 and ×½: to halve a limit at once, of gas or of offers, is as sudden.
//! - *What changes nothing is refused*, since it would use up the 30 days of its parameter.
//! - *Members* (`registry: voted`) have no place in the state yet.
//! - *Bytes and gas of sub-blocks, gas of a block, committee, timers and heartbeat* stay those of the genesis. A
//!   validator judges the size and the gas of a sub-block before its vote, by settings of its node. They size vote
//!   logs and links, too, and no state has them. Headers of Ethereum blocks are made with the chain's gas. More seats
//!   than a node has made room for would stop it.
//! - *Longest end and number of validators only rise*: see the attacks.
//! - *An asset that a vote lists* takes its part of the half of the book that listed assets have, and of the doubling
//!   of their fees. Which assets are junk is not told by how they were listed.
//! - *The pool admits by the record in force.* It reserves by the dearer fee; what another record refuses is refused
//!   without a cost to anybody.
//! - *The base fee of the first block of a record* was made by the block before it, with the floor of that one.

mod acting;
#[cfg(test)]
mod model;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{
    Address, Amount, AssetId, Digest, Height, LaneAssetTerms, Parameter, ProposalWord, ProposedChange, TransactionId,
};
use proofs::{Asset, Refusal, Validators};

pub use acting::{Coming, Support};

use crate::places::assets::Listings;
use crate::places::bridge::{LaneAssets, LaneTermsBounds};
use crate::places::controls::Controls;
use crate::terms::{Parameters, STAKES_MAX, only_rises};

/// Boundaries at which a proposal is tallied before it is over.
const BOUNDARIES: u8 = 4;
/// Proposals that are open at one time.
const OPEN_MAX: usize = 64;
/// Heights from one change of a parameter to the next: thirty days of blocks of a second.
pub const PARAMETER_PAUSE: Height = 30 * 86_400;
/// How many times a parameter may grow or shrink at one time.
const FACTOR: u64 = 2;

/// The bounds of every change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Law {
    pub factor: u64,
    pub pause: Height,
    /// Whether a whole record passes the checks of a genesis with committees of this size.
    pub fits: fn(&Parameters, u32) -> bool,
}

/// Those of all chains.
pub(crate) const LAW: Law = Law { factor: FACTOR, pause: PARAMETER_PAUSE, fits: Parameters::fits };

/// What changes are judged by: the state before a block of this height.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'a> {
    pub law: Law,
    pub height: Height,
    /// The record in force.
    pub now: Parameters,
    /// Seats of a committee.
    pub committee: u32,
    /// Units staked.
    pub staked: u128,
    pub listings: &'a Listings,
    pub assets: &'a [Asset],
    /// The fewest least units that the chain's band permits.
    pub least_units: Amount,
    pub controls: &'a Controls,
    /// The terms of assets in the payment lane, if the chain has one.
    pub lane: Option<&'a LaneAssets>,
}

/// What is asked for, and who has said what.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct OpenProposal {
    /// The id of its transaction.
    pub id: TransactionId,
    /// The change.
    pub change: ProposedChange,
    /// Boundaries that have tallied it.
    pub tallied: u8,
    /// The last word of each account.
    pub votes: BTreeMap<Address, ProposalWord>,
}

/// The record that the chain began with, and that in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VotedParameters {
    /// That of the genesis.
    pub first: Parameters,
    /// That in force.
    pub now: Parameters,
}

/// What is proposed, and what waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Ballot {
    /// `None` until something is proposed: the chain is as its genesis says.
    record: Option<VotedParameters>,
    /// What has passed and does not act yet, by height.
    coming: Vec<Coming>,
    /// The height of the last tally that changed a parameter.
    changed: BTreeMap<Parameter, Height>,
    /// By proposer.
    open: BTreeMap<Address, OpenProposal>,
    /// Assets whose closing was voted.
    closing: BTreeSet<AssetId>,
}

/// What a change is about: one boundary changes it once.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Parameter(Parameter),
    Name(String),
    Asset(AssetId),
    Lane(AssetId),
}

impl Thing {
    fn of(change: &ProposedChange) -> Thing {
        match change {
            ProposedChange::Parameter { parameter, .. } => Thing::Parameter(*parameter),
            ProposedChange::List(listing) => Thing::Name(listing.symbol.to_ascii_uppercase()),
            ProposedChange::Close { asset } => Thing::Asset(*asset),
            ProposedChange::Lane(terms) => Thing::Lane(terms.asset),
        }
    }
}

/// What a tally counts: the holders of seats of two committees that still stake, and the stake of each account.
#[derive(Clone, Debug)]
pub(crate) struct Voters {
    /// Of the committee before and of the one that is drawn: each seat, `None` if its holder stakes no more.
    pub committees: [Vec<Option<Address>>; 2],
    pub stakes: BTreeMap<Address, Amount>,
}

impl Voters {
    /// Those of a boundary: the registry before its block, and the accounts that it draws.
    pub(crate) fn of(before: &Validators, drawn: &[Address]) -> Voters {
        let seat = |account: &Address| Some(*account).filter(|account| before.is_staked(account));
        let last = before.committees.last().into_iter().flatten();
        let committees = [last.map(|member| seat(&member.account)).collect(), drawn.iter().map(seat).collect()];
        Voters { committees, stakes: stakes_of(before) }
    }

    /// The seats of a committee that say yes.
    fn seats(&self, committee: usize, proposal: &OpenProposal) -> usize {
        let says_yes = |seat: &&Option<Address>| seat.is_some_and(|holder| proposal.says_yes(&holder));
        self.committees[committee].iter().filter(says_yes).count()
    }

    fn pass(&self, proposal: &OpenProposal) -> bool {
        let enough = |committee: usize| {
            let seats = self.committees[committee].len();
            self.seats(committee, proposal) >= super::seats_needed(seats, true)
        };
        let (yes, all) = self.stake(proposal);
        enough(0) && enough(1) && all > 0 && yes * 3 >= all * 2
    }

    /// Units of the accounts that say yes, and of all.
    fn stake(&self, proposal: &OpenProposal) -> (u128, u128) {
        let yes = self.stakes.iter().filter(|(account, _)| proposal.says_yes(account));
        (sum(yes.map(|(_, units)| units)), sum(self.stakes.values()))
    }

    /// Whether an account has a stake or a seat.
    fn has(&self, account: &Address) -> bool {
        self.stakes.contains_key(account) || self.committees.iter().flatten().any(|seat| *seat == Some(*account))
    }
}

/// The stake of each account that was not convicted.
pub(crate) fn stakes_of(registered: &Validators) -> BTreeMap<Address, Amount> {
    let staked = registered.registry.iter().filter(|one| one.is_staked());
    staked.map(|one| (one.member.account, one.member.stake)).collect()
}

fn sum<'a>(units: impl Iterator<Item = &'a Amount>) -> u128 {
    units.map(|units| u128::from(*units)).sum()
}

impl OpenProposal {
    fn says_yes(&self, account: &Address) -> bool {
        self.votes.get(account) == Some(&ProposalWord::Yes)
    }
}

impl Ballot {
    /// Whether nothing was ever proposed.
    pub(crate) fn is_nothing(&self) -> bool {
        self.record.is_none()
    }

    /// The record of the genesis and that in force; `None` until something is proposed.
    pub fn record(&self) -> Option<&VotedParameters> {
        self.record.as_ref()
    }

    /// What is open, by proposer.
    pub fn open(&self) -> &BTreeMap<Address, OpenProposal> {
        &self.open
    }

    /// The height of the last tally that changed a parameter.
    pub fn changed(&self, parameter: Parameter) -> Option<Height> {
        self.changed.get(&parameter).copied()
    }

    /// Whether a vote closes an asset: then its issuer takes nothing back.
    pub fn closes(&self, asset: AssetId) -> bool {
        self.closing.contains(&asset)
    }

    /// Checks a proposal of an account against the state before a block; its stake, and those of others, decide whether
    /// there is room.
    pub(crate) fn check(
        &self,
        scene: &Scene<'_>,
        change: &ProposedChange,
        (proposer, stakes): (&Address, &BTreeMap<Address, Amount>),
    ) -> Result<(), Refusal> {
        self.check_beside(&self.newest(&scene.now, scene.height), scene, change)?;
        let is_full = self.open.len() >= OPEN_MAX && !self.open.contains_key(proposer);
        let rank = |account: &Address| (stakes.get(account).copied().unwrap_or(0), Reverse(*account));
        let is_least = || self.open.keys().all(|other| rank(other) > rank(proposer));
        if is_full && is_least() { Err(Refusal::TOO_MANY_PROPOSALS) } else { Ok(()) }
    }

    /// Checks a change of what will be in force.
    fn check_beside(&self, next: &Coming, scene: &Scene<'_>, change: &ProposedChange) -> Result<(), Refusal> {
        match change {
            ProposedChange::Parameter { parameter, value } => self.check_value(next, scene, *parameter, *value),
            ProposedChange::List(listing) => {
                let names = self.names(next);
                scene.listings.check_plain(listing, (scene.assets, &names), scene.least_units, scene.height)
            }
            ProposedChange::Close { asset } => {
                let is_voted = self.closing.contains(asset) || next.closes.contains(asset);
                match scene.listings.is_closed(*asset, scene.height) {
                    _ if asset.0 == 0 => Err(Refusal::FIRST_ASSET),
                    is_closed if is_closed || is_voted => Err(Refusal::CLOSES_ALREADY),
                    _ => Ok(()),
                }
            }
            ProposedChange::Lane(terms) => self.check_lane(next, scene, terms),
        }
    }

    /// Checks terms of the lane beside those that will be in force.
    fn check_lane(&self, next: &Coming, scene: &Scene<'_>, terms: &LaneAssetTerms) -> Result<(), Refusal> {
        let (Law { factor, pause, .. }, height) = (scene.law, scene.height);
        let lane = scene.lane.ok_or(Refusal::NO_LANE)?;
        if scene.controls.control(terms.asset).freezes() {
            return Err(Refusal::CONTROLLED_IN_LANE);
        }
        if terms.deposits {
            scene.listings.check_open(terms.asset, height)?;
        }
        let waiting = self.coming.iter().chain([next]).flat_map(|coming| &coming.lane);
        let waiting: Vec<LaneAssetTerms> = waiting.copied().collect();
        lane.check(terms, &waiting, LaneTermsBounds { height, factor, pause })
    }

    /// Checks a value beside those that will be in force.
    fn check_value(&self, next: &Coming, scene: &Scene<'_>, parameter: Parameter, value: u64) -> Result<(), Refusal> {
        let Law { factor, pause, fits } = scene.law;
        let now = next.values.get(parameter);
        let is_policy = parameter == Parameter::ListingPolicy;
        let first = self.record.map_or(scene.now, |record| record.first);
        let since = self.changed.get(&parameter).map(|last| scene.height.saturating_sub(*last));
        let is_far = value > now.saturating_mul(factor) || value < now.div_ceil(factor);
        let falls = only_rises(parameter) && value < now;
        let is_cheap = parameter == Parameter::MinimumStake
            && value < now
            && u128::from(value) < scene.staked.div_ceil(STAKES_MAX);
        match () {
            () if value == now => Err(Refusal::CHANGES_NOTHING),
            () if now == 0 && !is_policy || falls || is_cheap => Err(Refusal::OUT_OF_BOUNDS),
            () if !first.bounds(parameter).contains(&value) => Err(Refusal::OUT_OF_BOUNDS),
            () if is_far && !is_policy => Err(Refusal::STEP_TOO_LARGE),
            () if since.is_some_and(|since| since < pause) => Err(Refusal::CHANGED_LATELY),
            () if !fits(&next.values.with(parameter, value), scene.committee) => Err(Refusal::DOES_NOT_FIT),
            () => Ok(()),
        }
    }

    /// Plain names that wait to be listed.
    fn names<'a>(&'a self, next: &'a Coming) -> Vec<&'a str> {
        let waiting = self.coming.iter().flat_map(|coming| &coming.lists);
        waiting.chain(&next.lists).map(|listing| listing.symbol.as_str()).collect()
    }

    /// Plain names that wait to be listed: what is listed for a price must not look like one of them.
    pub(crate) fn coming_names(&self) -> Vec<&str> {
        self.coming.iter().flat_map(|coming| &coming.lists).map(|listing| listing.symbol.as_str()).collect()
    }

    /// A change is open. It was checked against the state before its block, whose record in force is `now`.
    pub(crate) fn propose(&mut self, now: Parameters, proposer: Address, id: TransactionId, change: ProposedChange) {
        self.record.get_or_insert(VotedParameters { first: now, now });
        self.open.insert(proposer, OpenProposal { id, change, tallied: 0, votes: BTreeMap::new() });
    }

    /// Of more proposals than may be open, those of the accounts that stake least are over.
    pub(crate) fn make_room(&mut self, stakes: &BTreeMap<Address, Amount>) {
        while self.open.len() > OPEN_MAX {
            let rank = |account: &&Address| (stakes.get(account).copied().unwrap_or(0), Reverse(**account));
            let least = *self.open.keys().min_by_key(rank).expect("some are open");
            self.open.remove(&least);
        }
    }

    /// Checks that a proposal has this id.
    pub(crate) fn check_vote(&self, id: &TransactionId) -> Result<(), Refusal> {
        let is_open = self.open.values().any(|proposal| proposal.id == *id);
        if is_open { Ok(()) } else { Err(Refusal::UNKNOWN_PROPOSAL) }
    }

    /// The word of an account. A block may have replaced the proposal: then it is about nothing.
    pub(crate) fn vote(&mut self, account: Address, id: &TransactionId, word: ProposalWord) {
        let proposal = self.open.values_mut().find(|proposal| proposal.id == *id);
        if let Some(proposal) = proposal {
            proposal.votes.insert(account, word);
        }
    }

    /// The boundary of a scene: what passes acts from `acts` on.
    pub(crate) fn tally(&mut self, voters: &Voters, scene: &Scene<'_>, acts: Height) {
        let passes = self.open.values().filter(|proposal| voters.pass(proposal));
        let counted = |proposal: &OpenProposal| (voters.seats(1, proposal), proposal.id, proposal.change.clone());
        let mut passed: Vec<(usize, Digest, ProposedChange)> = passes.map(counted).collect();
        let over: BTreeSet<Digest> = passed.iter().map(|(_, id, _)| *id).collect();
        // Most seats first, then the lower id.
        passed.sort_by_key(|(seats, id, _)| (Reverse(*seats), *id));
        let mut things = BTreeSet::new();
        passed.retain(|(_, _, change)| things.insert(Thing::of(change)));
        passed.sort_by_key(|(_, id, _)| *id);
        let changes = passed.into_iter().map(|(_, _, change)| change);
        self.decide(changes, scene, acts);
        for proposal in self.open.values_mut() {
            proposal.tallied += 1;
            proposal.votes.retain(|account, _| voters.has(account));
        }
        self.open.retain(|_, proposal| proposal.tallied < BOUNDARIES && !over.contains(&proposal.id));
    }

    /// These changes act from a height on, as far as they fit: what passed an epoch ago may have moved a value, or left
    /// no room.
    pub(crate) fn decide(&mut self, changes: impl Iterator<Item = ProposedChange>, scene: &Scene<'_>, acts: Height) {
        let before = self.newest(&scene.now, acts);
        let mut next = before.clone();
        for change in changes {
            if self.check_beside(&next, scene, &change).is_err() {
                continue;
            }
            match change {
                ProposedChange::Parameter { parameter, value } => {
                    next.values = next.values.with(parameter, value);
                    self.changed.insert(parameter, scene.height);
                }
                ProposedChange::List(listing) => next.lists.push(listing),
                ProposedChange::Close { asset } => next.closes.push(asset),
                ProposedChange::Lane(terms) => next.lane.push(terms),
            }
        }
        if next != before {
            self.record.get_or_insert(VotedParameters { first: scene.now, now: scene.now });
            self.closing.extend(&next.closes);
            self.coming.push(next);
        }
    }
}
