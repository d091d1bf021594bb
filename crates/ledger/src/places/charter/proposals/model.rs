//! A model of proposals: two parameters that must fit together, a committee of four, and an account that stakes without
//! a seat. All short histories are judged by the machine and by an oracle that shares no code with it: it keeps all
//! words that were ever said, and reads them again at each boundary.
//!
//! A rule that is wrong is a [`Wrong`]: the model with it must find a history in which the two differ.

use std::collections::BTreeMap;

use primitives::{Address, Digest, Height, Parameter, ProposalWord, ProposedChange};

use super::{Ballot, Law, Scene, Voters};
use crate::places::assets::Listings;
use crate::places::controls::Controls;
use crate::terms::{ListingTerms, Parameters};

/// Heights of an epoch, and from a boundary to the first height of its epoch.
const EPOCH: Height = 10;
const BEGINS: Height = 3;
const PAUSE: Height = 25;
/// The two parameters, by their places in the oracle.
const TWO: [Parameter; 2] = [Parameter::RestingOffers, Parameter::OpenPairs];
/// What the chain begins with.
const FIRST: [u64; 2] = [4, 4];
/// Who holds seats, first and if others are drawn.
const SEATS: [[u8; 4]; 2] = [[0, 1, 2, 3], [0, 3, 4, 5]];
/// Units by account. The last one never has a seat.
const STAKES: [u64; 7] = [1, 1, 1, 1, 1, 1, 4];

/// A rule that looks as good and is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// The committee that is drawn decides alone.
    OneCommittee,
    /// Seats decide alone.
    NoStake,
    /// A seat counts although its holder has unstaked.
    GoneSeatsCount,
    /// What passes at one boundary fits each by itself.
    FitsAlone,
    /// What passes replaces what waits.
    Overwrites,
    /// A parameter changes as often as it is voted.
    NoPause,
    /// A value may be any within the bounds.
    AnyStep,
    /// A newer proposal of an account keeps the votes of the older one.
    VotesStay,
    /// The first word of an account counts.
    FirstWordCounts,
    /// A proposal is open until it passes.
    OpenForEver,
    /// What passes acts with the epoch of its boundary, whose record nobody has seen.
    ActsAtOnce,
}

const WRONGS: &[Wrong] = &[
    Wrong::OneCommittee,
    Wrong::NoStake,
    Wrong::GoneSeatsCount,
    Wrong::FitsAlone,
    Wrong::Overwrites,
    Wrong::NoPause,
    Wrong::AnyStep,
    Wrong::VotesStay,
    Wrong::FirstWordCounts,
    Wrong::OpenForEver,
    Wrong::ActsAtOnce,
];

/// What the next block has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// An account proposes a value for a parameter.
    Propose(u8, usize, u64),
    /// Seats and stake that suffice say yes to what an account has proposed; the seats alone; the stake with too few.
    Most(u8),
    Seats(u8),
    Stake(u8),
    /// One of those takes its word back.
    Recant(u8),
    /// The holder of a seat unstakes.
    Unstake,
    /// Blocks follow up to a boundary, which draws these again, or others.
    Boundary,
    OthersDrawn,
}

const ACTS: &[Act] = &[
    Act::Propose(0, 0, 8),
    Act::Propose(0, 0, 2),
    Act::Propose(0, 0, 16),
    Act::Propose(1, 1, 5),
    Act::Propose(1, 1, 8),
    Act::Propose(1, 0, 2),
    Act::Most(0),
    Act::Most(1),
    Act::Seats(0),
    Act::Stake(0),
    Act::Recant(0),
    Act::Unstake,
    Act::Boundary,
    Act::OthersDrawn,
];

/// The stakes of these.
fn stakes(of: &[u8]) -> BTreeMap<Address, u64> {
    of.iter().map(|who| (account(*who), STAKES[usize::from(*who)])).collect()
}

fn account(number: u8) -> Address {
    Address([number; 20])
}

/// Ids fall with the number of the word, so that later proposals have lower ones.
fn id(number: usize) -> Digest {
    Digest([250 - number as u8; 32])
}

/// Two values whose product is at most forty.
fn fits(values: &Parameters, _: u32) -> bool {
    let [first, second] = of(values);
    first * second <= 40
}

/// The values of the two.
fn of(values: &Parameters) -> [u64; 2] {
    TWO.map(|parameter| values.get(parameter))
}

fn first() -> Parameters {
    TWO.into_iter().zip(FIRST).fold(Parameters::default(), |all, (parameter, value)| all.with(parameter, value))
}

/// The values in force at a height, if nothing else passes.
fn acting(machine: &Ballot, height: Height) -> [u64; 2] {
    let mut later = machine.clone();
    later.begin(height);
    later.record().map_or(FIRST, |record| of(&record.now))
}

/// A word in a block of this height.
#[derive(Clone, Copy, Debug)]
enum Word {
    Proposes { height: Height, by: u8, number: usize, parameter: usize, value: u64 },
    Says { by: u8, number: usize, yes: bool },
}

/// All words, boundaries and records.
#[derive(Clone, Debug)]
struct Oracle {
    words: Vec<Word>,
    /// Heights of boundaries.
    boundaries: Vec<Height>,
    /// Values, and from which height on.
    records: Vec<(Height, [u64; 2])>,
    /// Heights of tallies that changed a parameter.
    changes: [Vec<Height>; 2],
    over: Vec<usize>,
}

impl Oracle {
    fn values_at(&self, height: Height) -> [u64; 2] {
        self.records.iter().rev().find(|(acts, _)| *acts <= height).expect("the genesis acts").1
    }

    fn newest(&self) -> [u64; 2] {
        self.records.last().expect("the genesis").1
    }

    /// Whether a value may follow these.
    fn may(&self, values: [u64; 2], parameter: usize, value: u64, height: Height) -> bool {
        let now = values[parameter];
        let mut next = values;
        next[parameter] = value;
        let is_near = value != now && value <= 2 * now && 2 * value >= now;
        let rested = self.changes[parameter].iter().all(|changed| changed + PAUSE <= height);
        is_near && (1..=32).contains(&value) && rested && next[0] * next[1] <= 40
    }

    /// The open proposals: number, parameter, value.
    fn open(&self) -> Vec<(usize, usize, u64)> {
        let mut last: BTreeMap<u8, (usize, usize, u64, Height)> = BTreeMap::new();
        for word in &self.words {
            if let Word::Proposes { height, by, number, parameter, value } = *word {
                last.insert(by, (number, parameter, value, height));
            }
        }
        let tallied = |since: Height| self.boundaries.iter().filter(|boundary| **boundary > since).count();
        let open =
            last.into_values().filter(|(number, _, _, since)| !self.over.contains(number) && tallied(*since) < 4);
        open.map(|(number, parameter, value, _)| (number, parameter, value)).collect()
    }

    fn says_yes(&self, number: usize, who: u8) -> bool {
        let said = self.words.iter().rev().find_map(|word| match *word {
            Word::Says { by, number: of, yes, .. } if by == who && of == number => Some(yes),
            _ => None,
        });
        said == Some(true)
    }

    fn boundary(&mut self, height: Height, committees: [[u8; 4]; 2], gone: Option<u8>) {
        let yes = |number: usize, who: u8| Some(who) != gone && self.says_yes(number, who);
        let seats = |number: usize, of: usize| committees[of].iter().filter(|who| yes(number, **who)).count();
        let staked = |who: &u8| Some(*who) != gone;
        let all: u64 = (0..7).filter(staked).map(|who| STAKES[usize::from(who)]).sum();
        let mut best: BTreeMap<usize, (usize, usize, u64)> = BTreeMap::new();
        let mut over = Vec::new();
        for (number, parameter, value) in self.open() {
            let units: u64 = (0..7).filter(|who| yes(number, *who)).map(|who| STAKES[usize::from(who)]).sum();
            if seats(number, 0) < 3 || seats(number, 1) < 3 || units * 3 < all * 2 {
                continue;
            }
            over.push(number);
            // Of equal seats the later proposal has the lower id here.
            let own = (seats(number, 1), number, value);
            if best.get(&parameter).is_none_or(|other| (own.0, own.1) > (other.0, other.1)) {
                best.insert(parameter, own);
            }
        }
        let mut chosen: Vec<(usize, usize, u64)> =
            best.into_iter().map(|(parameter, (_, number, value))| (number, parameter, value)).collect();
        chosen.sort_unstable();
        let mut values = self.newest();
        for (_, parameter, value) in chosen.into_iter().rev() {
            if self.may(values, parameter, value, height) {
                values[parameter] = value;
                self.changes[parameter].push(height);
            }
        }
        if values != self.newest() {
            self.records.push((height + EPOCH + BEGINS, values));
        }
        self.over.extend(over);
        self.boundaries.push(height);
    }
}

#[derive(Clone)]
struct Case {
    machine: Ballot,
    oracle: Oracle,
    height: Height,
    numbers: usize,
    committee: [u8; 4],
    gone: Option<u8>,
    wrong: Wrong,
    law: Law,
}

impl Case {
    fn new(wrong: Wrong) -> Case {
        let (machine, records) = (Ballot::default(), vec![(0, FIRST)]);
        let pause = if wrong == Wrong::NoPause { 0 } else { PAUSE };
        let law = Law { factor: if wrong == Wrong::AnyStep { 8 } else { 2 }, pause, fits };
        let oracle = Oracle {
            words: Vec::new(),
            boundaries: Vec::new(),
            records,
            changes: Default::default(),
            over: Vec::new(),
        };
        Case { machine, oracle, height: 0, numbers: 0, committee: SEATS[0], gone: None, wrong, law }
    }

    /// One act; then machine and oracle are compared.
    fn step(&mut self, act: Act) -> Result<(), String> {
        match act {
            Act::Boundary => self.boundary(self.committee),
            Act::OthersDrawn => self.boundary(if self.committee == SEATS[0] { SEATS[1] } else { SEATS[0] }),
            _ => {
                // Between two boundaries there is room for all acts of a history.
                self.height += u64::from(!(self.height + 1).is_multiple_of(EPOCH));
                self.machine.begin(self.height);
                self.speak(act)?;
            }
        }
        self.compare()
    }

    fn speak(&mut self, act: Act) -> Result<(), String> {
        match act {
            Act::Propose(by, parameter, value) => return self.propose(by, parameter, value),
            Act::Most(of) => [0, 1, 2, 6].iter().for_each(|by| self.vote(of, *by, true)),
            Act::Seats(of) => [0, 1, 2].iter().for_each(|by| self.vote(of, *by, true)),
            Act::Stake(of) => [0, 1, 4, 6].iter().for_each(|by| self.vote(of, *by, true)),
            Act::Recant(of) => self.vote(of, 0, false),
            Act::Unstake => self.gone = Some(1),
            Act::Boundary | Act::OthersDrawn => unreachable!("{act:?} says nothing"),
        }
        Ok(())
    }

    fn propose(&mut self, by: u8, parameter: usize, value: u64) -> Result<(), String> {
        let change = ProposedChange::Parameter { parameter: TWO[parameter], value };
        let (by_stake, proposer) = (stakes(&[0, 1, 2, 3, 4, 5, 6]), account(by));
        let judged =
            self.judging(self.law, |machine, scene| machine.check(scene, &change, (&proposer, &by_stake)).is_ok());
        let due = self.oracle.may(self.oracle.newest(), parameter, value, self.height);
        if judged != due {
            return Err(format!("{change:?} at {}: {judged}, and {due} by the oracle", self.height));
        }
        if !due {
            return Ok(());
        }
        self.numbers += 1;
        let before = self.machine.open.get(&account(by)).map(|proposal| proposal.votes.clone());
        self.machine.propose(first(), account(by), id(self.numbers), change);
        if let (Wrong::VotesStay, Some(votes)) = (self.wrong, before) {
            self.machine.open.get_mut(&account(by)).expect("it is open").votes = votes;
        }
        self.oracle.words.push(Word::Proposes { height: self.height, by, number: self.numbers, parameter, value });
        Ok(())
    }

    /// What the machine judges at this height by a law.
    fn judging<T>(&mut self, law: Law, judge: impl FnOnce(&mut Ballot, &Scene<'_>) -> T) -> T {
        let (height, listings) = (self.height, Listings::new(ListingTerms::default(), 1));
        let now = self.machine.record().map_or(first(), |record| record.now);
        let controls = Controls::default();
        let scene = Scene {
            law,
            height,
            now,
            committee: 4,
            staked: 10,
            listings: &listings,
            assets: &[],
            least_units: 1,
            controls: &controls,
            lane: None,
        };
        judge(&mut self.machine, &scene)
    }

    /// An account says something about the open proposal of another one.
    fn vote(&mut self, of: u8, by: u8, yes: bool) {
        let Some(proposal) = self.machine.open.get(&account(of)) else { return };
        let (id, number) = (proposal.id, usize::from(250 - proposal.id.0[0]));
        self.machine.check_vote(&id).expect("it is open");
        let is_first = !proposal.votes.contains_key(&account(by));
        if self.wrong != Wrong::FirstWordCounts || is_first {
            self.machine.vote(account(by), &id, if yes { ProposalWord::Yes } else { ProposalWord::No });
        }
        self.oracle.words.push(Word::Says { by, number, yes });
    }

    /// Blocks up to the next boundary, and its tally by the state before it.
    fn boundary(&mut self, drawn: [u8; 4]) {
        let next = (self.height / EPOCH + 1) * EPOCH;
        (self.height..=next).skip(1).for_each(|height| self.machine.begin(height));
        self.height = next;
        let committees = [self.committee, drawn];
        self.oracle.boundary(next, committees, self.gone);
        let gone = self.gone.filter(|_| self.wrong != Wrong::GoneSeatsCount);
        let seats = |who: [u8; 4]| who.map(|who| (Some(who) != gone).then(|| account(who))).to_vec();
        let before = if self.wrong == Wrong::OneCommittee { drawn } else { self.committee };
        let staked = (0..7u8).filter(|who| Some(*who) != self.gone);
        let of_seats = |who: &u8| self.wrong != Wrong::NoStake || drawn.contains(who);
        let stakes = stakes(&staked.filter(of_seats).collect::<Vec<u8>>());
        let voters = Voters { committees: [before, drawn].map(seats), stakes };
        let mut law = self.law;
        match self.wrong {
            Wrong::FitsAlone => law.fits = |_, _| true,
            Wrong::Overwrites => self.machine.coming.clear(),
            _ => {}
        }
        let acts = next + BEGINS + if self.wrong == Wrong::ActsAtOnce { 0 } else { EPOCH };
        self.judging(law, |machine, scene| machine.tally(&voters, scene, acts));
        if self.wrong == Wrong::OpenForEver {
            self.machine.open.values_mut().for_each(|proposal| proposal.tallied = 0);
        }
        self.committee = drawn;
    }

    fn compare(&self) -> Result<(), String> {
        for height in [self.height + 1, self.height + BEGINS, self.height + EPOCH + BEGINS, Height::MAX] {
            let (theirs, ours) = (acting(&self.machine, height), self.oracle.values_at(height));
            if theirs != ours || theirs[0] * theirs[1] > 40 {
                return Err(format!("at {height} {theirs:?} is in force, and {ours:?} by the oracle"));
            }
        }
        let mut theirs: Vec<Digest> = self.machine.open.values().map(|proposal| proposal.id).collect();
        let mut ours: Vec<Digest> = self.oracle.open().into_iter().map(|(number, ..)| id(number)).collect();
        theirs.sort_unstable();
        ours.sort_unstable();
        if theirs == ours { Ok(()) } else { Err(format!("{theirs:?} are open, and {ours:?} by the oracle")) }
    }
}

/// A history after which the two differ, of at most so many more acts.
fn search(case: &Case, depth: usize, steps: &mut usize) -> Option<(Vec<Act>, String)> {
    for act in ACTS.iter().filter(|_| depth > 0) {
        let mut next = case.clone();
        *steps += 1;
        if let Err(what) = next.step(*act) {
            return Some((vec![*act], what));
        }
        if let Some((mut acts, what)) = search(&next, depth - 1, steps) {
            acts.insert(0, *act);
            return Some((acts, what));
        }
    }
    None
}

/// Where histories begin.
const OPENINGS: &[&[Act]] = &[
    &[],
    &[Act::Propose(0, 0, 8), Act::Propose(1, 1, 8), Act::Most(0), Act::Most(1)],
    &[Act::Propose(0, 0, 8), Act::Most(0), Act::Boundary, Act::Propose(1, 1, 5)],
    &[Act::Propose(0, 0, 2), Act::Propose(1, 0, 2), Act::Boundary, Act::Boundary, Act::Boundary],
    &[Act::Propose(0, 0, 8), Act::Most(0), Act::Unstake],
];

fn begun(opening: &[Act], wrong: Wrong) -> Option<Case> {
    let mut case = Case::new(wrong);
    opening.iter().all(|act| case.step(*act).is_ok()).then_some(case)
}

#[test]
fn every_short_history_of_proposals_is_as_the_oracle_says() {
    let mut steps = 0;
    for opening in OPENINGS {
        let case = begun(opening, Wrong::Nothing).expect("the opening is sound");
        assert_eq!(search(&case, 4, &mut steps), None, "after {opening:?}");
    }
    assert!(steps > 100_000, "{steps}");
}

#[test]
fn each_wrong_rule_of_proposals_is_found() {
    for wrong in WRONGS {
        let found = OPENINGS.iter().any(|opening| {
            let Some(case) = begun(opening, *wrong) else { return true };
            search(&case, 4, &mut 0).is_some()
        });
        assert!(found, "{wrong:?}");
    }
}

#[test]
fn what_passes_acts_from_the_next_epoch_on_and_two_records_wait() {
    let mut case = Case::new(Wrong::Nothing);
    for act in [Act::Propose(0, 0, 8), Act::Most(0), Act::Boundary, Act::Propose(1, 1, 5), Act::Most(1), Act::Boundary]
    {
        case.step(act).expect("as the oracle says");
    }
    let acting = |height: Height| acting(&case.machine, height);
    // B(1) is 10 and F(2) is 23; B(2) is 20, before it, and F(3) is 33.
    assert_eq!([22, 23, 32, 33].map(acting), [[4, 4], [8, 4], [8, 4], [8, 5]]);
}
