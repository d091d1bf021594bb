//! Which steps are possible in a state.

use payments::{HomePhase, ViewClaim};

use crate::machine::{Machine, has};
use crate::rules::{Rule, Step};
use crate::state::*;

impl Machine<'_> {
    /// All steps that are possible. Of members in one state, the first takes them.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for payment in self.scenario.payments() {
            self.payment_steps(payment, &mut steps);
        }
        for output in 0..CONTESTABLE {
            if self.may_open(output) {
                steps.push(Step::Open { output });
            }
            if self.state.cases[output].open {
                self.case_steps(output, &mut steps);
            }
            let home = self.scenario.home_of(output);
            if self.redeems(home) && self.exit_certified(output) && self.state.fates[output] != Fate::By(EXIT) {
                steps.push(Step::ShowExit { output });
            }
        }
        let into = self.scenario.into;
        if !self.state.exit && has(self.state.stands, T) && self.holds_keys(into) && self.state.now >= into as u8 {
            steps.push(Step::SignExit);
        }
        if self.state.exit && self.redeems(into) && self.state.fates[SIBLING] == Fate::Unknown {
            steps.push(Step::RedeemExit);
        }
        if self.state.now < self.scenario.last {
            steps.push(Step::Pass);
        }
        if self.scenario.stalls && self.state.cases.iter().any(|case| case.open) && self.rule != Rule::Before {
            steps.push(Step::Stall);
        }
        steps
    }

    fn firsts(&self, committee: usize) -> impl Iterator<Item = (usize, &Member)> {
        let members = self.state.correct(self.scenario, committee);
        members.iter().enumerate().filter(move |(at, of)| *at == 0 || members[at - 1] != **of)
    }

    fn payment_steps(&self, payment: usize, steps: &mut Vec<Step>) {
        let (home, into) = (self.scenario.home(payment), self.scenario.pays_into(payment));
        let certified = self.certified(payment);
        let phase = HomePhase::of(home as u64, self.epoch());
        let is_proven = payment != C || self.certified(T) || has(self.state.stands, T);
        for (member, of) in self.firsts(home) {
            let free = self.scenario.inputs(payment).iter().all(|input| of.locks[*input] == 0);
            let barred = payment == C && has(of.barred, T);
            if free && !barred && is_proven && phase.signs(home as u64, into as u64, false) {
                steps.push(Step::Sign { committee: home, member, payment });
            }
        }
        let committees = [Some(home), (into != home).then_some(into)];
        for committee in committees.into_iter().flatten().filter(|of| *of <= usize::from(self.state.now)) {
            for (member, of) in self.firsts(committee).filter(|_| self.holds_keys(committee)) {
                if certified && !has(of.accepted | of.barred, payment) {
                    steps.push(Step::Accept { committee, member, payment });
                }
                let crashes = matches!(self.rule, Rule::BitBeforeCertificate | Rule::EmptyAfterCrash);
                if crashes && has(of.accepted & !of.unproven, payment) {
                    steps.push(Step::Crash { committee, member, payment });
                }
            }
        }
        if certified && self.redeems(home) && !has(self.state.stands, payment) {
            steps.push(Step::Show { payment });
        }
    }

    fn case_steps(&self, output: usize, steps: &mut Vec<Step>) {
        let case = self.state.cases[output];
        for (member, _) in self.firsts(self.scenario.home_of(output)).filter(|(_, of)| !has(of.voted, output)) {
            steps.push(Step::Vote { member, output });
        }
        if case.faulty_vote == 0 {
            let payments = self.scenario.spenders(output).map(|payment| payment as u8 + 1);
            steps.extend(payments.chain([EXIT]).map(|vote| Step::FaultyVote { output, vote }));
        }
        if case.fixed {
            let asked = self.asked(output).into_iter().flatten();
            asked.filter(|of| *of <= usize::from(self.state.now)).for_each(|of| self.view_steps(output, of, steps));
        }
    }

    fn view_steps(&self, output: usize, committee: usize, steps: &mut Vec<Step>) {
        let shown: Vec<Option<usize>> = std::iter::once(None)
            .chain(self.scenario.payments().filter(|payment| self.certified(*payment)).map(Some))
            .collect();
        for (member, of) in self.firsts(committee) {
            let Some(claim) = self.view_of(of, output) else { continue };
            steps.push(Step::View { committee, member, output });
            if let ViewClaim::Paid { payment, .. } = claim {
                let others = shown.iter().filter(|certified| **certified != Some(payment));
                steps.extend(others.map(|certified| Step::Relayed {
                    committee,
                    member,
                    output,
                    certified: *certified,
                }));
            }
        }
        let case = self.state.cases[output];
        if !has(case.faulty_empty | case.faulty_named, committee) {
            steps.push(Step::FaultyView { committee, output, claim: ViewClaim::Empty });
            for payment in self.scenario.spenders(output) {
                let claims = shown.iter().map(|certified| ViewClaim::Paid { payment, certified: *certified });
                steps.extend(claims.map(|claim| Step::FaultyView { committee, output, claim }));
            }
        }
    }
}
