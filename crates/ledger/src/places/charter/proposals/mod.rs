//! Parameters by vote: how validators change a number of a running chain, list an asset under a plain name, and close
//! one.
//!
//! No operation leads here yet: this is the machine of proposals by itself, and `model` checks it. Tests alone are
//! built with it until rules have `Propose` and `Vote`.
//!
//! # The protocol
//!
//! The parameters in force are one record. A proposal changes one *thing* of it: a parameter, what a plain symbol
//! means, or whether an asset stays. Every block is judged by the state before it, boundaries and their tallies too.
//! B(k) is the boundary of epoch k, F(k) the first height that its committee decides. A committee has n seats, f =
//! ⌊(n−1)/3⌋.
//!
//! - Upon *Propose{change}* of a validator account, for 1,000 fees: the change is open under the id of its
//!   transaction, from the next block on and for four boundaries. An account has one open: a newer one replaces it,
//!   with all its votes. What is out of bounds, what changes nothing, and what does not fit beside the record that
//!   will be in force is refused.
//! - Upon *Vote{id, yes}* of an account with a stake or a seat: that is its word about the proposal of this id. Of
//!   several words the last one counts.
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
//!   one did. Zero stays zero. A parameter stays within its bounds (the table below), which are made of the genesis.
//! - A *List* that passes lists, for nothing, under a plain name, for the issuer that it names. A *Close* announces,
//!   as the issuer would.
//!
//! | parameter | bounds |
//! |---|---|
//! | fee, least base fee | up to 100 times the genesis |
//! | gas of a block and of a sub-block, committee | those of a genesis, jointly |
//! | resting offers, open pairs, most assets, longest end | 2^27, 2^18, 16,384, 2^22; a lower value stops new ones only |
//! | minimum stake | binds new stakes |
//! | accounts that validate | up only |
//! | reward | half to twice the genesis |
//! | fees and policy of listings | those of a genesis |
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
//! | a lower limit ends what rests | it stops new ones only |
//! | a transaction was admitted under the record before, and costs more | the pool reserves by the dearer record, and judges again at F |
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
//! - *Members* (`registry: voted`), and terms of the lane of an asset, have no place in the state yet.

#[cfg(test)]
mod model;

use std::collections::{BTreeMap, BTreeSet};

use primitives::{Address, Digest, Height};

/// Boundaries at which a proposal is tallied before it is over.
const BOUNDARIES: u8 = 4;

/// A parameter of a record, by its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Parameter(pub usize);

/// What a parameter may become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub least: u64,
    pub most: u64,
}

/// The change that a proposal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub parameter: Parameter,
    pub value: u64,
}

impl Change {
    /// These values with it.
    fn of(self, values: &[u64]) -> Vec<u64> {
        let mut values = values.to_vec();
        values[self.parameter.0] = self.value;
        values
    }
}

/// Values by parameter, from a height on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub values: Vec<u64>,
    pub acts: Height,
}

/// What is asked for, and who has said what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposal {
    pub id: Digest,
    pub change: Change,
    /// Boundaries that have tallied it.
    pub tallied: u8,
    pub votes: BTreeMap<Address, bool>,
}

/// Why a proposal or a vote is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unheard {
    /// The record has no such parameter.
    UnknownParameter,
    /// The value is the one that will be in force.
    ChangesNothing,
    /// The value is beyond the parameter's bounds, or zero would become something.
    OutOfBounds,
    /// The value is more than twice the one that will be in force, or less than half of it.
    TooFar,
    /// The parameter has changed within thirty days.
    TooSoon,
    /// The whole record would not pass the checks of a genesis.
    DoesNotFit,
    /// No proposal has this id.
    UnknownProposal,
}

/// Parameters, and what is proposed.
#[derive(Clone, Debug)]
pub(crate) struct Proposals {
    /// In force first, and then those that wait, by height.
    pub records: Vec<Record>,
    pub bounds: Vec<Bounds>,
    /// How many times a parameter may grow or shrink at one time.
    pub factor: u64,
    /// Heights from one change of a parameter to the next.
    pub pause: Height,
    /// The height of the last tally that changed a parameter.
    pub changed: BTreeMap<Parameter, Height>,
    /// By proposer.
    pub open: BTreeMap<Address, Proposal>,
    /// Whether a whole record passes the checks of a genesis.
    pub fits: fn(&[u64]) -> bool,
}

/// What a tally counts: the holders of seats of two committees that still stake, the stake of each account, and sizes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Voters<'a> {
    /// Of the committee before and of the one that is drawn: each seat, `None` if its holder stakes no more.
    pub committees: [&'a [Option<Address>]; 2],
    pub stakes: &'a BTreeMap<Address, u64>,
}

impl Voters<'_> {
    /// The seats of a committee that say yes.
    fn seats(&self, committee: usize, proposal: &Proposal) -> usize {
        let says_yes = |seat: &&Option<Address>| seat.is_some_and(|holder| proposal.says_yes(&holder));
        self.committees[committee].iter().filter(says_yes).count()
    }

    fn pass(&self, proposal: &Proposal) -> bool {
        let enough = |committee: usize| {
            let seats = self.committees[committee].len();
            self.seats(committee, proposal) >= super::seats_needed(seats, true)
        };
        let sum = |counts: &dyn Fn(&Address) -> bool| -> u128 {
            self.stakes.iter().filter(|(account, _)| counts(account)).map(|(_, units)| u128::from(*units)).sum()
        };
        let (yes, all) = (sum(&|account| proposal.says_yes(account)), sum(&|_| true));
        enough(0) && enough(1) && all > 0 && yes * 3 >= all * 2
    }
}

impl Proposal {
    fn says_yes(&self, account: &Address) -> bool {
        self.votes.get(account) == Some(&true)
    }
}

impl Proposals {
    /// The record that will be in force when all that has passed acts.
    fn newest(&self) -> &Record {
        self.records.last().expect("one is in force")
    }

    /// Checks a change against what will be in force.
    pub(crate) fn check(&self, change: Change, height: Height) -> Result<(), Unheard> {
        self.check_beside(&self.newest().values, change, height)
    }

    /// Checks a change of these values, which will be in force.
    fn check_beside(&self, values: &[u64], change: Change, height: Height) -> Result<(), Unheard> {
        let Change { parameter, value } = change;
        let now = *values.get(parameter.0).ok_or(Unheard::UnknownParameter)?;
        let Bounds { least, most } = self.bounds[parameter.0];
        let since = self.changed.get(&parameter).map(|last| height.saturating_sub(*last));
        match () {
            () if value == now => Err(Unheard::ChangesNothing),
            () if now == 0 || !(least..=most).contains(&value) => Err(Unheard::OutOfBounds),
            () if value > now.saturating_mul(self.factor) || value < now.div_ceil(self.factor) => Err(Unheard::TooFar),
            () if since.is_some_and(|since| since < self.pause) => Err(Unheard::TooSoon),
            () if !(self.fits)(&change.of(values)) => Err(Unheard::DoesNotFit),
            () => Ok(()),
        }
    }

    /// A change is open. It was checked against the state before its block.
    pub(crate) fn propose(&mut self, proposer: Address, id: Digest, change: Change) {
        self.open.insert(proposer, Proposal { id, change, tallied: 0, votes: BTreeMap::new() });
    }

    /// Whether a proposal has this id.
    pub(crate) fn check_vote(&self, id: &Digest) -> Result<(), Unheard> {
        let is_open = self.open.values().any(|proposal| proposal.id == *id);
        if is_open { Ok(()) } else { Err(Unheard::UnknownProposal) }
    }

    /// The word of an account. A block may have replaced the proposal: then it is about nothing.
    pub(crate) fn vote(&mut self, account: Address, id: &Digest, yes: bool) {
        let proposal = self.open.values_mut().find(|proposal| proposal.id == *id);
        if let Some(proposal) = proposal {
            proposal.votes.insert(account, yes);
        }
    }

    /// The boundary of this height: what passes is in the record that acts from `acts` on.
    pub(crate) fn tally(&mut self, voters: &Voters<'_>, height: Height, acts: Height) {
        let mut passed: Vec<(usize, Digest, Change)> = self
            .open
            .values()
            .filter(|proposal| voters.pass(proposal))
            .map(|proposal| (voters.seats(1, proposal), proposal.id, proposal.change))
            .collect();
        let over: BTreeSet<Digest> = passed.iter().map(|(_, id, _)| *id).collect();
        // Most seats first, then the lower id.
        passed.sort_by_key(|(seats, id, _)| (std::cmp::Reverse(*seats), *id));
        let mut things = BTreeSet::new();
        passed.retain(|(_, _, change)| things.insert(change.parameter));
        passed.sort_by_key(|(_, id, _)| *id);
        let mut values = self.newest().values.clone();
        for (_, _, change) in passed {
            // What passed an epoch ago may have moved the value, or left no room.
            if self.check_beside(&values, change, height).is_ok() {
                values = change.of(&values);
                self.changed.insert(change.parameter, height);
            }
        }
        if values != self.newest().values {
            self.records.push(Record { values, acts });
        }
        self.open.values_mut().for_each(|proposal| proposal.tallied += 1);
        self.open.retain(|_, proposal| proposal.tallied < BOUNDARIES && !over.contains(&proposal.id));
    }

    /// What waits acts, if this is its height.
    pub(crate) fn begin(&mut self, height: Height) {
        let acting = self.records.iter().rposition(|record| record.acts <= height).unwrap_or(0);
        self.records.drain(..acting);
    }
}
