//! A hostile venue and its bond: false reports, fences, operators, withdrawals, claims and accusations.
//!
//! The venue has given its victim a report of fill 0 under one of its report keys, and its own accounts reports of
//! fills that it will never settle. It may do anything in any order. The victim's accusation is in a block within two
//! heights of the contradiction, and its claim follows the end of the incarnation.

use std::collections::{BTreeSet, HashSet};

/// Heights that a withdrawal of the bond waits, and that claims are open after a fence.
const DELAY: u8 = 3;
const BOND: u8 = 6;
/// The bond below which nothing settles.
const BOND_MIN: u8 = 4;
const PENALTY: u8 = 2;
/// Report keys of an incarnation.
const KEYS: usize = 2;
const END: u8 = 7;
/// Blocks within which the victim's accusation is in a block.
const WITHIN: u8 = 2;
/// Acts of the venue in a history.
const BUSY: u8 = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    ClaimsArePaid,
    ClaimsCountTwice,
    ClaimsNeverEnd,
    EvidenceConvictsAgain,
    FinalsForgetKeys,
    OperatorsForgetKeys,
    FencesForgetTheTree,
    WithdrawalsAreNotLiable,
    PenaltiesTakeTheWholeBond,
    AccuserIsPaid,
    AnyNumberOfKeys,
    SettlesAfterConviction,
    /// Reports of judged incarnations claim from a new bond.
    ClaimsOfJudged,
    /// Claims spare the units of the bond that leave.
    ClaimsSpareWhatLeaves,
}

/// What the ledger keeps of an incarnation that ended.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Final {
    tree: Vec<u8>,
    keys: Vec<u8>,
    at: u8,
}

/// A report: the fill of an index, under a key.
#[derive(Clone, Copy)]
struct Report {
    incarnation: usize,
    index: usize,
    leaf: u8,
    key: u8,
}

/// The report that the victim has.
const TOLD: Report = Report { incarnation: 0, index: 0, leaf: 7, key: 0 };

#[derive(Clone, PartialEq, Eq, Hash)]
struct Liability {
    height: u8,
    bond: u8,
    leaving: Option<(u8, u8)>,
    tree: Vec<u8>,
    keys: Vec<u8>,
    next_key: u8,
    finals: Vec<Final>,
    /// All incarnations below this one are judged.
    judged: usize,
    claimed: BTreeSet<(usize, usize)>,
    burnt: u8,
    /// What the venue's owner and its own accounts have of the bond again.
    regained: u8,
    victim: u8,
    /// What the owner has added since.
    added: u8,
    convictions: u8,
    /// When the first incarnation settled another fill than it reported, as an onlooker saw it.
    false_since: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Nothing,
    /// Settles a fill: true to the victim's report, or another one.
    SettleTrue,
    SettleOther,
    /// Settles a fill between its own accounts that busts: one of them receives the penalty.
    SettleBust,
    ChangeOperator,
    Fence,
    Unbond,
    Bond,
    /// Its own account claims a fill of the last incarnation.
    Claim(usize),
    /// It accuses itself, with the victim's report.
    AccuseItself,
}

const ACTS: [Act; 11] = [
    Act::Nothing,
    Act::SettleTrue,
    Act::SettleOther,
    Act::SettleBust,
    Act::ChangeOperator,
    Act::Fence,
    Act::Unbond,
    Act::Bond,
    Act::Claim(1),
    Act::Claim(2),
    Act::AccuseItself,
];

impl Liability {
    fn new() -> Liability {
        Liability {
            height: 0,
            bond: BOND,
            leaving: None,
            tree: Vec::new(),
            keys: vec![0],
            next_key: 1,
            finals: Vec::new(),
            judged: 0,
            claimed: BTreeSet::new(),
            burnt: 0,
            regained: 0,
            victim: 0,
            added: 0,
            convictions: 0,
            false_since: None,
        }
    }

    fn settle(&mut self, mistake: Mistake, leaf: u8, is_bust: bool) {
        let penalty = if is_bust { PENALTY } else { 0 };
        let floor = if mistake == Mistake::PenaltiesTakeTheWholeBond { 0 } else { BOND_MIN };
        let is_judged = self.judged > self.finals.len() && mistake != Mistake::SettlesAfterConviction;
        if is_judged || self.bond < floor + penalty {
            return;
        }
        if self.finals.is_empty() && self.tree.is_empty() && leaf != TOLD.leaf {
            self.false_since = Some(self.height);
        }
        self.tree.push(leaf);
        self.bond -= penalty;
        self.regained += penalty;
    }

    /// Tree and report keys of an incarnation.
    fn of(&self, incarnation: usize) -> Option<(&[u8], &[u8])> {
        match self.finals.get(incarnation) {
            Some(one) => Some((&one.tree, &one.keys)),
            None if incarnation == self.finals.len() => Some((&self.tree, &self.keys)),
            None => None,
        }
    }

    fn is_contradicted(&self, report: Report) -> bool {
        let Some((tree, keys)) = self.of(report.incarnation) else { return false };
        keys.contains(&report.key) && tree.get(report.index).is_some_and(|leaf| *leaf != report.leaf)
    }

    /// A report that the tree contradicts costs the whole bond: a tenth, here a half, to the account that the
    /// report names, the rest burnt. It ends all incarnations up to the present one.
    fn accuse(&mut self, mistake: Mistake, report: Report, by_itself: bool) {
        let is_judged = report.incarnation < self.judged && mistake != Mistake::EvidenceConvictsAgain;
        let liable = self.bond + self.leaving.map_or(0, |(units, _)| units);
        if is_judged || liable == 0 || !self.is_contradicted(report) {
            return;
        }
        let kept = if mistake == Mistake::WithdrawalsAreNotLiable { self.leaving } else { None };
        let lost = liable - kept.map_or(0, |(units, _)| units);
        let reward = lost / 2;
        match mistake == Mistake::AccuserIsPaid && by_itself {
            true => self.regained += reward,
            false => self.victim += reward,
        }
        self.burnt += lost - reward;
        (self.bond, self.leaving) = (0, kept);
        self.judged = self.finals.len() + 1;
        self.convictions += 1;
    }

    /// A fill that an ended incarnation reported and never settled costs the bond its penalty, which is burnt.
    fn claim(&mut self, mistake: Mistake, report: Report, by_itself: bool) {
        let Some(ended) = self.finals.get(report.incarnation) else { return };
        let is_open = mistake == Mistake::ClaimsNeverEnd || self.height <= ended.at + DELAY;
        let is_first =
            mistake == Mistake::ClaimsCountTwice || !self.claimed.contains(&(report.incarnation, report.index));
        let is_reported = ended.keys.contains(&report.key) && report.index >= ended.tree.len();
        let is_judged = report.incarnation < self.judged && mistake != Mistake::ClaimsOfJudged;
        if !(is_open && is_first && is_reported) || is_judged {
            return;
        }
        self.claimed.insert((report.incarnation, report.index));
        let from_bond = PENALTY.min(self.bond);
        self.bond -= from_bond;
        let mut cost = from_bond;
        if let Some((units, since)) = self.leaving.filter(|_| mistake != Mistake::ClaimsSpareWhatLeaves) {
            let from_leaving = (PENALTY - from_bond).min(units);
            cost += from_leaving;
            self.leaving = (units > from_leaving).then_some((units - from_leaving, since));
        }
        match mistake {
            Mistake::ClaimsArePaid if by_itself => self.regained += cost,
            _ => self.burnt += cost,
        }
    }

    fn change_operator(&mut self, mistake: Mistake) {
        if self.keys.len() == KEYS && mistake != Mistake::AnyNumberOfKeys {
            return;
        }
        if mistake == Mistake::OperatorsForgetKeys {
            self.keys.clear();
        }
        self.keys.push(self.next_key);
        self.next_key += 1;
    }

    fn fence(&mut self, mistake: Mistake) {
        let current = *self.keys.last().expect("an operator has a key");
        let keys = if mistake == Mistake::FinalsForgetKeys { vec![current] } else { self.keys.clone() };
        let tree = if mistake == Mistake::FencesForgetTheTree { Vec::new() } else { self.tree.clone() };
        self.finals.push(Final { tree, keys, at: self.height });
        (self.tree, self.keys) = (Vec::new(), vec![current]);
    }

    fn act(&mut self, mistake: Mistake, act: Act) {
        let own = |index| Report { incarnation: 0, index, leaf: 9, key: 0 };
        match act {
            Act::Nothing => {}
            Act::SettleTrue => self.settle(mistake, TOLD.leaf, false),
            Act::SettleOther => self.settle(mistake, 5, false),
            Act::SettleBust => self.settle(mistake, 6, true),
            Act::AccuseItself => self.accuse(mistake, TOLD, true),
            Act::Claim(index) => self.claim(mistake, own(index), true),
            Act::Bond => {
                self.bond += BOND_MIN;
                self.added += BOND_MIN;
            }
            Act::ChangeOperator => self.change_operator(mistake),
            Act::Unbond => {
                if self.leaving.is_none() && self.bond > 0 {
                    self.leaving = Some((std::mem::take(&mut self.bond), self.height));
                }
            }
            Act::Fence => self.fence(mistake),
        }
    }

    /// A block with these two acts of the venue, in the order of the ledger, beside what the victim does.
    fn block(&mut self, mistake: Mistake, acts: [Act; 2], accuses: bool) {
        self.height += 1;
        let stage = |act: &Act| match act {
            Act::SettleTrue | Act::SettleOther | Act::SettleBust => 0,
            Act::AccuseItself | Act::Claim(_) => 1,
            Act::Bond | Act::Unbond => 2,
            Act::Nothing | Act::ChangeOperator => 3,
            Act::Fence => 4,
        };
        let of_stage = |wanted: u8| acts.into_iter().filter(move |act| stage(act) == wanted);
        of_stage(0).for_each(|act| self.act(mistake, act));
        // Whoever comes first: the venue's own accusations and claims do.
        of_stage(1).for_each(|act| self.act(mistake, act));
        if accuses {
            self.accuse(mistake, TOLD, false);
        }
        self.claim(mistake, TOLD, false);
        (2..=4).for_each(|stage| of_stage(stage).for_each(|act| self.act(mistake, act)));
        if let Some((units, from)) = self.leaving
            && self.height > from + DELAY
        {
            self.regained += units;
            self.leaving = None;
        }
    }
}

/// What must hold after every block.
fn check(before: &Liability, after: &Liability) -> Result<(), String> {
    let there = after.bond + after.leaving.map_or(0, |(units, _)| units) + after.burnt + after.regained + after.victim;
    if there != BOND + after.added {
        return Err("units of the bond appeared or vanished".into());
    }
    if after.keys.len() > KEYS || after.finals.iter().any(|one| one.keys.len() > KEYS) {
        return Err("an incarnation has too many report keys".into());
    }
    if after.convictions > 1 {
        return Err("one report convicts twice".into());
    }
    let is_over = after.false_since.is_some_and(|since| after.height >= since + WITHIN);
    if is_over && after.burnt + after.victim < BOND_MIN {
        return Err("a false report costs less than the least bond".into());
    }
    if after.convictions > before.convictions && after.victim == before.victim {
        return Err("another account is paid for the victim's report".into());
    }
    if after.tree.len() > before.tree.len() && before.judged > before.finals.len() {
        return Err("a convicted venue settles before a fence".into());
    }
    let costs = u16::from(after.burnt - before.burnt) + u16::from(after.victim - before.victim);
    let is_new = after.claimed.len() > before.claimed.len() || after.convictions > before.convictions;
    if costs > 0 && !is_new {
        return Err("an index is claimed twice".into());
    }
    let is_convicted = after.convictions > before.convictions;
    let claims: Vec<_> = after.claimed.difference(&before.claimed).collect();
    if claims.iter().any(|(incarnation, _)| *incarnation < before.judged) {
        return Err("a report of a judged incarnation claims from a new bond".into());
    }
    let liable = before.bond + before.leaving.map_or(0, |(units, _)| units);
    if !claims.is_empty() && costs == 0 && liable > 0 && !is_convicted && after.regained == before.regained {
        return Err("a claim costs nothing although units of the bond are there".into());
    }
    let late =
        |index: &(usize, usize)| !before.claimed.contains(index) && after.height > after.finals[index.0].at + DELAY;
    if after.claimed.iter().any(late) {
        return Err("a claim is accepted when the bond may be gone".into());
    }
    Ok(())
}

/// Walks all histories in which the venue acts twice a block; returns the number of states, or the first violation.
fn search(mistake: Mistake) -> Result<usize, String> {
    let mut seen = HashSet::new();
    let mut open = vec![(Liability::new(), 0u8)];
    while let Some((state, spent)) = open.pop() {
        if state.height == END {
            continue;
        }
        for (at, first) in ACTS.into_iter().enumerate() {
            for second in ACTS.into_iter().skip(at) {
                let busy = spent + [first, second].iter().filter(|act| **act != Act::Nothing).count() as u8;
                if busy > BUSY {
                    continue;
                }
                let must = state.false_since.is_some_and(|since| state.height + 1 >= since + WITHIN);
                for accuses in [true, false].into_iter().filter(|accuses| *accuses || !must) {
                    let mut next = state.clone();
                    next.block(mistake, [first, second], accuses);
                    check(&state, &next).map_err(|error| format!("{error}: {first:?}, {second:?}"))?;
                    if seen.insert((next.clone(), busy)) {
                        open.push((next, busy));
                    }
                }
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn a_false_report_costs_the_least_bond_through_fences_operators_withdrawals_and_claims() {
    let states = search(Mistake::None).expect("holds");
    assert!(states > 10_000, "{states}");
}

#[test]
fn planted_mistakes_of_claims_evidence_and_report_keys_are_found() {
    use Mistake::*;
    let claims = [ClaimsArePaid, ClaimsCountTwice, ClaimsNeverEnd, ClaimsOfJudged, ClaimsSpareWhatLeaves];
    let evidence = [EvidenceConvictsAgain, AccuserIsPaid, SettlesAfterConviction, WithdrawalsAreNotLiable];
    let keys = [FinalsForgetKeys, OperatorsForgetKeys, FencesForgetTheTree, AnyNumberOfKeys, PenaltiesTakeTheWholeBond];
    for mistake in claims.into_iter().chain(evidence).chain(keys) {
        assert!(search(mistake).is_err(), "{mistake:?} is not found");
    }
}
