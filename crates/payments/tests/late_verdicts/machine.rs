//! The machine: what members, the ledger and the adversary do. The rules come from `payments`; a [`Rule`] breaks one.

use payments::{BindingCount, CaseEnd, CaseFacts, CommitteeLife, LaneTime, OPEN_EPOCHS, ViewClaim};

use crate::rules::{Rule, Step};
use crate::state::*;

/// Who posts a view.
#[derive(Clone, Copy)]
enum Viewer {
    Correct(usize),
    Faulty,
}

fn bit(place: usize) -> u8 {
    1 << place
}

pub fn has(mask: u8, place: usize) -> bool {
    mask >> place & 1 == 1
}

/// The machine in one state.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    pub scenario: &'a Scenario,
    pub rule: Rule,
    pub state: State,
}

impl Machine<'_> {
    pub fn epoch(&self) -> u64 {
        u64::from(self.state.now)
    }

    pub fn life(&self, committee: usize) -> CommitteeLife {
        let concerns = |output: usize| {
            let home = self.scenario.home_of(output);
            self.state.cases[output].open && (home == committee || home + 1 == committee)
        };
        let is_concerned = (0..CONTESTABLE).any(concerns);
        CommitteeLife { last: u64::from(self.state.last[committee]), is_concerned }
    }

    pub fn holds_keys(&self, committee: usize) -> bool {
        self.life(committee).signs(self.epoch())
    }

    pub fn is_kept(&self, committee: usize) -> bool {
        let is_open = |output: usize| self.state.cases[output].open && self.scenario.home_of(output) <= committee;
        match self.rule {
            Rule::Before => self.epoch() <= committee as u64 + 3 || (0..CONTESTABLE).any(is_open),
            _ => self.life(committee).is_kept(self.epoch()),
        }
    }

    pub fn redeems(&self, committee: usize) -> bool {
        match self.rule {
            Rule::Before | Rule::ShortRedeem => {
                let is_open = |o: usize| self.state.cases[o].open && self.scenario.home_of(o) == committee;
                self.epoch() <= committee as u64 + 3 || (0..CONTESTABLE).any(is_open)
            }
            Rule::WideRedeem => true,
            _ => self.is_kept(committee),
        }
    }

    /// Whether the adversary can hold a certificate: its member signs everything.
    pub fn certified(&self, payment: usize) -> bool {
        let lock = payment as u8 + 1;
        let signed = |of: &&Member| self.scenario.inputs(payment).iter().all(|input| of.locks[*input] == lock);
        let members = self.state.correct(self.scenario, self.scenario.home(payment));
        members.iter().filter(signed).count() + 1 >= self.scenario.quorums().certificate
    }

    pub fn exit_certified(&self, output: usize) -> bool {
        let members = self.state.correct(self.scenario, self.scenario.home_of(output));
        let exits = members.iter().filter(|of| of.locks[output] == EXIT).count();
        exits + 1 >= self.scenario.quorums().certificate
    }

    /// Whether a payment can still stand; `Err(true)` if it contradicts another certificate.
    fn check(&self, payment: usize) -> Result<(), bool> {
        let fates = || self.scenario.inputs(payment).iter().map(|input| self.state.fates[*input]);
        let is_void = |fate| matches!(fate, Fate::Void | Fate::Lapsed);
        let contradicts = |fate| !matches!(fate, Fate::Unknown) && fate != Fate::By(payment as u8);
        match (fates().any(is_void), fates().any(contradicts)) {
            (true, _) => Err(false),
            (false, contradicts) => {
                if contradicts {
                    Err(true)
                } else {
                    Ok(())
                }
            }
        }
    }

    fn claim(&mut self, output: usize, claim: u8) {
        self.state.past.twice |= self.state.past.claims[output] & claim != 0;
        self.state.past.claims[output] |= claim;
    }

    /// A certificate of a payment reaches the ledger, or a verdict confirms it.
    fn confirm(&mut self, payment: usize) {
        match self.check(payment) {
            Err(contradicts) => return self.state.past.alarm |= contradicts,
            Ok(()) => self.state.stands |= bit(payment),
        }
        for &input in self.scenario.inputs(payment) {
            if self.state.fates[input] == Fate::Unknown {
                self.state.fates[input] = Fate::By(payment as u8);
                self.claim(input, bit(payment));
            }
            if payment == T && self.state.cases[input].open {
                self.state.past.confirmed = self.state.now + 1;
            }
        }
        for of in self.state.members.iter_mut().flatten() {
            of.barred &= !bit(payment);
        }
    }

    /// Members with a vote that `kind` accepts, over all open cases of a payment's inputs.
    fn voters(&self, payment: usize, kind: impl Fn(u8) -> bool) -> usize {
        let inputs = || self.scenario.inputs(payment).iter().filter(|input| self.state.cases[**input].open);
        let votes = |of: &&Member| inputs().any(|input| has(of.voted, *input) && kind(of.locks[*input]));
        let correct = self.state.correct(self.scenario, self.scenario.home(payment)).iter().filter(votes).count();
        let faulty = |vote: u8| vote != 0 && kind(vote);
        correct + usize::from(inputs().any(|input| faulty(self.state.cases[*input].faulty_vote)))
    }

    /// Members that count without a statement.
    fn absent(&self, committee: usize) -> usize {
        if self.rule == Rule::SilentUnregistered { 0 } else { self.scenario.unregistered[committee] }
    }

    fn binding(&self) -> usize {
        let quorums = self.scenario.quorums();
        if self.rule == Rule::TwoFaultyPlusOne { 2 * quorums.faulty + 1 } else { quorums.binding() }
    }

    /// The committees whose views a case needs.
    pub fn asked(&self, output: usize) -> [Option<usize>; 2] {
        let (home, candidates) = (self.scenario.home_of(output), self.state.cases[output].candidates);
        let crosses = |payment: usize| has(candidates, payment) && self.scenario.pays_into(payment) > home;
        [Some(home), (0..PAYMENTS).any(crosses).then_some(home + 1)]
    }

    fn empty_views(&self, output: usize, committee: usize) -> BindingCount {
        let correct = self.state.correct(self.scenario, committee).iter().filter(|of| has(of.empty, output)).count();
        let faulty = usize::from(has(self.state.cases[output].faulty_empty, committee));
        let binding = if self.rule == Rule::FewViews { self.scenario.quorums().witness() } else { self.binding() };
        BindingCount { members: correct + faulty + self.absent(committee), binding }
    }

    /// Before late verdicts: whether f+1 views of a committee name T.
    fn named(&self, output: usize) -> bool {
        let names = |committee: usize| {
            let of = self.state.correct(self.scenario, committee).iter().filter(|of| has(of.named, output)).count();
            let faulty = usize::from(has(self.state.cases[output].faulty_named, committee));
            of + faulty >= self.scenario.quorums().witness()
        };
        self.rule == Rule::Before && (0..COMMITTEES).any(names)
    }

    /// Fixes the candidates, once enough members have voted.
    fn fix(&mut self, output: usize) {
        let (case, home) = (self.state.cases[output], self.scenario.home_of(output));
        let members = self.state.correct(self.scenario, home);
        let votes = || members.iter().filter(|of| has(of.voted, output)).map(|of| of.locks[output]);
        let count = votes().count() + usize::from(case.faulty_vote != 0) + self.absent(home);
        if !case.fixed && count >= self.binding() {
            let payments = votes().chain([case.faulty_vote]).filter(|vote| ![0, EXIT].contains(vote));
            self.state.cases[output].candidates = payments.fold(0, |all, vote| all | bit(usize::from(vote) - 1));
            self.state.cases[output].fixed = true;
        }
    }

    /// Confirms what votes, a child or, before late verdicts, views confirm.
    fn confirm_known(&mut self, output: usize) {
        let scenario = self.scenario;
        for payment in scenario.spenders(output) {
            let lock = payment as u8 + 1;
            let for_it = self.voters(payment, |vote| vote == lock);
            let child = payment == T && has(self.state.stands, C) && for_it > 0;
            let named = payment == T && self.named(output);
            if self.check(payment).is_ok() && (for_it >= self.scenario.quorums().certificate || child || named) {
                self.confirm(payment);
            }
        }
        let exits = self.state.correct(self.scenario, self.scenario.home_of(output));
        let exits = exits.iter().filter(|of| has(of.voted, output) && of.locks[output] == EXIT).count();
        let faulty = usize::from(self.state.cases[output].faulty_vote == EXIT);
        if exits + faulty >= self.scenario.quorums().certificate {
            self.redeem_exit_of(output);
        }
    }

    fn redeem_exit_of(&mut self, output: usize) {
        match self.state.fates[output] {
            Fate::Unknown => {
                self.state.fates[output] = Fate::By(EXIT);
                self.claim(output, EXITED);
            }
            Fate::By(EXIT) | Fate::Freed | Fate::Lapsed | Fate::Void => {}
            Fate::By(_) => self.state.past.alarm = true,
        }
    }

    fn end_of(&self, output: usize, is_over: bool) -> Option<CaseEnd> {
        let case = self.state.cases[output];
        let opened = LaneTime { epoch: u64::from(case.epoch), height: 0 };
        let now = LaneTime { epoch: self.epoch(), height: 0 };
        let living = (0..PAYMENTS).filter(|payment| has(case.candidates, *payment) && self.check(*payment).is_ok());
        let bound = |payment: usize| {
            let against = self.voters(payment, |vote| vote != payment as u8 + 1);
            BindingCount { members: against + self.absent(self.scenario.home_of(output)), binding: self.binding() }
        };
        let against: Vec<BindingCount> = living.map(bound).collect();
        let asked = self.asked(output).into_iter().flatten();
        let empty: Vec<BindingCount> = asked.map(|committee| self.empty_views(output, committee)).collect();
        let may_lapse = opened.may_lapse(now.epoch) || self.rule == Rule::LapseAtOnce;
        let facts = CaseFacts {
            is_confirmed: matches!(self.state.fates[output], Fate::By(_)),
            against: case.fixed.then_some(&against[..]),
            empty: if self.rule == Rule::LapseByTime { &[] } else { &empty },
            may_lapse,
            is_expired: is_over || opened.is_expired(now, u64::MAX),
        };
        match facts.end() {
            Some(CaseEnd::Expired) if self.rule == Rule::Before => None,
            Some(CaseEnd::Expired) if self.rule == Rule::LapseAtDeadline => Some(CaseEnd::Lapsed),
            end => end,
        }
    }

    /// Closes the cases that can be closed, confirmations first.
    fn decide(&mut self) {
        loop {
            let is_open = self.state.cases.map(|case| case.open);
            let cases = || (0..CONTESTABLE).filter(|output| is_open[*output]);
            cases().for_each(|output| self.fix(output));
            cases().for_each(|output| self.confirm_known(output));
            let ends = cases().filter_map(|output| Some((output, self.end_of(output, false)?)));
            let rank =
                |end: CaseEnd| [CaseEnd::Confirmed, CaseEnd::Freed].iter().position(|of| *of == end).unwrap_or(2);
            let Some((output, end)) = ends.min_by_key(|(_, end)| rank(*end)) else { return };
            self.close(output, end, false);
        }
    }

    fn close(&mut self, output: usize, end: CaseEnd, stalled: bool) {
        let (case, home) = (self.state.cases[output], self.scenario.home_of(output));
        if end == CaseEnd::Expired && !stalled {
            self.state.past.idle |= !self.is_somebody_late(output);
        }
        if end == CaseEnd::Lapsed {
            self.state.past.hasty |= self.state.now < case.epoch + 2;
        }
        for committee in [home, home + 1].into_iter().filter(|of| *of < COMMITTEES) {
            if !matches!(self.rule, Rule::KeysDestroyed | Rule::Before) {
                self.state.last[committee] = self.life(committee).after(end, self.epoch()) as u8;
            }
        }
        let replayed = self.rule == Rule::ReplayedViews && end == CaseEnd::Expired;
        let lifts = replayed || self.rule == Rule::LiftOnExpiry && end == CaseEnd::Expired;
        for of in self.state.members.iter_mut().flatten() {
            of.voted &= !bit(output);
            of.named &= !bit(output);
            of.empty &= if replayed { u8::MAX } else { !bit(output) };
            of.barred &= if lifts { !case.candidates } else { u8::MAX };
        }
        let faulty_empty = if replayed { case.faulty_empty } else { 0 };
        self.state.cases[output] =
            Contest { closed: true, expired: end == CaseEnd::Expired, faulty_empty, ..Contest::default() };
        if matches!(end, CaseEnd::Freed | CaseEnd::Lapsed) {
            self.credit(output, end, case.candidates);
        }
    }

    fn credit(&mut self, output: usize, end: CaseEnd, candidates: u8) {
        self.claim(output, CREDITED);
        if end == CaseEnd::Freed {
            self.state.past.freed |= bit(output);
            self.state.fates[output] = Fate::Freed;
            return;
        }
        self.state.fates[output] = Fate::Lapsed;
        for void in [FIRST, SIBLING].into_iter().filter(|_| has(candidates, T)) {
            if self.state.fates[void] == Fate::Unknown {
                self.state.fates[void] = Fate::Void;
            }
        }
    }

    /// Whether a correct member could still post something that the case waits for.
    fn is_somebody_late(&self, output: usize) -> bool {
        let home = self.scenario.home_of(output);
        let votes = self.state.correct(self.scenario, home).iter().any(|of| !has(of.voted, output));
        let asked = self.asked(output).into_iter().flatten();
        let views = asked.flat_map(|committee| self.state.correct(self.scenario, committee));
        votes || self.state.cases[output].fixed && views.into_iter().any(|of| self.view_of(of, output).is_some())
    }

    /// The view that a member would sign now; `None` if it signs none.
    pub fn view_of(&self, of: &Member, output: usize) -> Option<ViewClaim<usize>> {
        if has(of.empty | of.named, output) {
            return None;
        }
        let accepted = |payment: &usize| has(of.accepted, *payment);
        let Some(payment) = self.scenario.spenders(output).find(accepted) else { return Some(ViewClaim::Empty) };
        match self.rule {
            Rule::EmptyAfterCrash if has(of.unproven, payment) => Some(ViewClaim::Empty),
            _ if has(of.unproven, payment) => None,
            Rule::Before => Some(ViewClaim::Paid { payment, certified: None }),
            _ => Some(ViewClaim::Paid { payment, certified: Some(payment) }),
        }
    }

    /// The ledger receives a view.
    fn receive(&mut self, committee: usize, output: usize, viewer: Viewer, claim: ViewClaim<usize>) {
        let named = match (claim.proven(), claim) {
            (Ok(None), _) => false,
            (Ok(Some(payment)), _) => return self.confirm(payment),
            (Err(_), ViewClaim::Paid { payment, certified: Some(_) }) if self.rule == Rule::AnyCertificate => {
                return self.confirm(payment);
            }
            (Err(_), _) if self.rule == Rule::UnprovenIsEmpty => false,
            (Err(_), _) if matches!(self.rule, Rule::Strip | Rule::Before) => true,
            (Err(_), _) => return,
        };
        match (viewer, named) {
            (Viewer::Correct(member), true) => self.state.members[committee][member].named |= bit(output),
            (Viewer::Correct(member), false) => self.state.members[committee][member].empty |= bit(output),
            (Viewer::Faulty, true) => self.state.cases[output].faulty_named |= bit(committee),
            (Viewer::Faulty, false) => self.state.cases[output].faulty_empty |= bit(committee),
        }
    }

    pub fn may_open(&self, output: usize) -> bool {
        let (case, home) = (self.state.cases[output], self.scenario.home_of(output) as u64);
        let again = self.rule == Rule::ReplayedViews && case.expired;
        let time =
            self.scenario.opens >> self.state.now & 1 == 1 && (home..=home + OPEN_EPOCHS).contains(&self.epoch());
        let backed = output != FIRST || self.check(T).is_ok() && (has(self.state.stands, T) || self.certified(T));
        let contested = has(self.scenario.contested, output) && !case.open && (!case.closed || again);
        contested && time && backed && self.state.fates[output] == Fate::Unknown
    }

    fn open(&mut self, output: usize) {
        if output == FIRST {
            // The output's proof is a certificate of T.
            self.confirm(T);
        }
        self.decide();
        let case = &mut self.state.cases[output];
        let faulty_empty = case.faulty_empty;
        *case = Contest { open: true, epoch: self.state.now, faulty_empty, ..Contest::default() };
    }

    /// Drops what the ledger no longer keeps.
    fn prune(&mut self) {
        let dropped: Vec<usize> = (0..COMMITTEES).filter(|committee| !self.is_kept(*committee)).collect();
        for committee in dropped {
            for output in (0..OUTPUTS).filter(|output| self.scenario.home_of(*output) == committee) {
                self.state.fates[output] = Fate::Unknown;
            }
            for payment in self.scenario.payments().filter(|payment| self.scenario.home(*payment) == committee) {
                self.state.stands &= !bit(payment);
            }
        }
    }

    /// The state after a step.
    pub fn after(mut self, step: Step) -> State {
        match step {
            Step::Sign { committee, member, payment } => {
                let of = &mut self.state.members[committee][member];
                for input in self.scenario.inputs(payment) {
                    of.locks[*input] = payment as u8 + 1;
                }
                if payment == C {
                    of.accepted |= bit(T);
                    of.unproven |= if self.rule == Rule::ChildWithoutProof { bit(T) } else { 0 };
                }
            }
            Step::Accept { committee, member, payment } => {
                self.state.members[committee][member].accepted |= bit(payment)
            }
            Step::Crash { committee, member, payment } => {
                self.state.members[committee][member].unproven |= bit(payment)
            }
            Step::Open { output } => self.open(output),
            Step::Vote { member, output } => {
                let of = &mut self.state.members[self.scenario.home_of(output)][member];
                of.voted |= bit(output);
                if of.locks[output] == 0 {
                    of.locks[output] = EXIT;
                }
            }
            Step::FaultyVote { output, vote } => self.state.cases[output].faulty_vote = vote,
            Step::View { committee, member, output } => {
                let claim = self.view_of(&self.state.members[committee][member], output).expect("it signs one");
                self.state.members[committee][member].barred |= self.state.cases[output].candidates;
                self.receive(committee, output, Viewer::Correct(member), claim);
            }
            Step::Relayed { committee, member, output, certified } => {
                let claim = self.view_of(&self.state.members[committee][member], output).expect("it signs one");
                let ViewClaim::Paid { payment, .. } = claim else { unreachable!("an empty view has no certificate") };
                self.state.members[committee][member].barred |= self.state.cases[output].candidates;
                self.receive(committee, output, Viewer::Correct(member), ViewClaim::Paid { payment, certified });
            }
            Step::FaultyView { committee, output, claim } => self.receive(committee, output, Viewer::Faulty, claim),
            Step::Show { payment } => self.confirm(payment),
            Step::ShowExit { output } => self.redeem_exit_of(output),
            Step::SignExit => self.state.exit = true,
            Step::RedeemExit => self.redeem_exit_of(SIBLING),
            Step::Pass => self.state.now += 1,
            Step::Stall => {
                let open: Vec<usize> = (0..CONTESTABLE).filter(|output| self.state.cases[*output].open).collect();
                open.into_iter().for_each(|output| {
                    let end = self.end_of(output, true).unwrap_or(CaseEnd::Expired);
                    self.close(output, end, true);
                });
            }
        }
        self.decide();
        if step == Step::Pass {
            self.prune();
        }
        self.note_settled();
        self.state.canonical(self.scenario)
    }

    fn note_settled(&mut self) {
        for payment in self.scenario.payments() {
            let by = |committee: usize| {
                let members = self.state.correct(self.scenario, committee).iter();
                members.filter(|of| has(of.accepted, payment)).count() + 1 >= self.scenario.quorums().certificate
            };
            if by(self.scenario.home(payment)) || by(self.scenario.pays_into(payment)) {
                self.state.past.settled |= bit(payment);
            }
        }
    }
}
