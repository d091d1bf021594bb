//! A model of proposals: two parameters that must fit together, a committee of four, and an account that stakes without
//! a seat. All short histories are judged by the machine and by an oracle that shares no code with it: it keeps all
//! words that were ever said, and reads them again at each boundary.
//!
//! A rule that is wrong is a [`Wrong`]: the model with it must find a history in which the two differ.

use std::collections::BTreeMap;

use primitives::{Address, Digest, Height};

use super::{Bounds, Change, Parameter, Proposals, Record, Voters};

/// Heights of an epoch, and from a boundary to the first height of its epoch.
const EPOCH: Height = 10;
const BEGINS: Height = 3;
const PAUSE: Height = 25;
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

fn account(number: u8) -> Address {
    Address([number; 20])
}

/// Ids fall with the number of the word, so that later proposals have lower ones.
fn id(number: usize) -> Digest {
    Digest([250 - number as u8; 32])
}

/// Two values whose product is at most forty.
fn fits(values: &[u64]) -> bool {
    values[0] * values[1] <= 40
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
    machine: Proposals,
    oracle: Oracle,
    height: Height,
    numbers: usize,
    committee: [u8; 4],
    gone: Option<u8>,
    wrong: Wrong,
}

impl Case {
    fn new(wrong: Wrong) -> Case {
        let machine = Proposals {
            records: vec![Record { values: vec![4, 4], acts: 0 }],
            bounds: vec![Bounds { least: 1, most: 32 }; 2],
            factor: 2,
            pause: PAUSE,
            changed: BTreeMap::new(),
            open: BTreeMap::new(),
            fits,
        };
        let records = vec![(0, [4, 4])];
        let oracle = Oracle {
            words: Vec::new(),
            boundaries: Vec::new(),
            records,
            changes: Default::default(),
            over: Vec::new(),
        };
        Case { machine, oracle, height: 0, numbers: 0, committee: SEATS[0], gone: None, wrong }
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
        let change = Change { parameter: Parameter(parameter), value };
        let judged = self.judging(|machine, height| machine.check(change, height).is_ok());
        let due = self.oracle.may(self.oracle.newest(), parameter, value, self.height);
        if judged != due {
            return Err(format!("{change:?} at {}: {judged}, and {due} by the oracle", self.height));
        }
        if !due {
            return Ok(());
        }
        self.numbers += 1;
        let before = self.machine.open.get(&account(by)).map(|proposal| proposal.votes.clone());
        self.machine.propose(account(by), id(self.numbers), change);
        if let (Wrong::VotesStay, Some(votes)) = (self.wrong, before) {
            self.machine.open.get_mut(&account(by)).expect("it is open").votes = votes;
        }
        self.oracle.words.push(Word::Proposes { height: self.height, by, number: self.numbers, parameter, value });
        Ok(())
    }

    /// What the machine judges, with the wrong rule in place of its own.
    fn judging<T>(&mut self, judge: impl FnOnce(&mut Proposals, Height) -> T) -> T {
        match self.wrong {
            Wrong::NoPause => self.machine.pause = 0,
            Wrong::AnyStep => self.machine.factor = 8,
            _ => {}
        }
        let judged = judge(&mut self.machine, self.height);
        (self.machine.pause, self.machine.factor) = (PAUSE, 2);
        judged
    }

    /// An account says something about the open proposal of another one.
    fn vote(&mut self, of: u8, by: u8, yes: bool) {
        let Some(proposal) = self.machine.open.get(&account(of)) else { return };
        let (id, number) = (proposal.id, usize::from(250 - proposal.id.0[0]));
        self.machine.check_vote(&id).expect("it is open");
        let is_first = !proposal.votes.contains_key(&account(by));
        if self.wrong != Wrong::FirstWordCounts || is_first {
            self.machine.vote(account(by), &id, yes);
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
        let seats = committees.map(|seats| seats.map(|who| (Some(who) != gone).then(|| account(who))));
        let before = if self.wrong == Wrong::OneCommittee { &seats[1] } else { &seats[0] };
        let staked = (0..7u8).filter(|who| Some(*who) != self.gone);
        let of_seats = |who: &u8| self.wrong != Wrong::NoStake || drawn.contains(who);
        let stakes: BTreeMap<Address, u64> =
            staked.filter(of_seats).map(|who| (account(who), STAKES[usize::from(who)])).collect();
        let voters = Voters { committees: [before, &seats[1]], stakes: &stakes };
        let waits = self.machine.records.len() > 1;
        let in_force = self.machine.records[0].clone();
        match self.wrong {
            Wrong::FitsAlone => self.machine.fits = |_| true,
            Wrong::Overwrites if waits => self.machine.records = vec![in_force],
            _ => {}
        }
        let acts = next + BEGINS + if self.wrong == Wrong::ActsAtOnce { 0 } else { EPOCH };
        self.judging(|machine, height| machine.tally(&voters, height, acts));
        self.machine.fits = fits;
        if self.wrong == Wrong::OpenForEver {
            self.machine.open.values_mut().for_each(|proposal| proposal.tallied = 0);
        }
        self.committee = drawn;
    }

    fn compare(&self) -> Result<(), String> {
        for height in [self.height + 1, self.height + BEGINS, self.height + EPOCH + BEGINS, Height::MAX] {
            let mut later = self.machine.clone();
            later.begin(height);
            let (theirs, ours) = (&later.records[0].values, self.oracle.values_at(height));
            if *theirs != ours || !fits(theirs) {
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
    let acting = |height: Height| {
        let mut machine = case.machine.clone();
        machine.begin(height);
        machine.records[0].values.clone()
    };
    // B(1) is 10 and F(2) is 23; B(2) is 20, before it, and F(3) is 33.
    assert_eq!([22, 23, 32, 33].map(acting), [vec![4, 4], vec![8, 4], vec![8, 4], vec![8, 5]]);
}
