//! The steps: of the old network, of its restart, of the new network, and of a second restart.

use crate::rules::{Listed, Rule, list, standing};
use crate::world::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Sign {
        member: usize,
        payment: u8,
    },
    Acknowledge {
        member: usize,
        payment: u8,
    },
    Deposit,
    /// A certificate gets into a block; a claim is credited at once or queued.
    Show {
        payment: u8,
        queued: bool,
    },
    PayQueue {
        payment: u8,
    },
    /// A verdict credits *o*: a binding set of members bars its payments and has accepted none.
    Lapse,
    Snapshot,
    /// A member's disk is restored from a backup.
    Restore {
        member: usize,
    },
    /// An operator closes a log and reads it.
    Read {
        member: usize,
    },
    /// The new network begins. These certificates were shown in the claim period.
    Restart {
        shown: u8,
    },
    /// In the new network the first listed output is paid to an account; this is settled.
    Spend,
    /// The restart runs again with more evidence.
    Rerun {
        shown: u8,
    },
    /// The new network restarts, from a snapshot before its first block.
    Again {
        shown: u8,
    },
}

/// A restart: what it was made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    pub evidence: u8,
    pub listed: Listed,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    pub logs: [Log; CORRECT],
    pub books: Books,
    pub snapshot: Option<Books>,
    /// Payments that a quorum acknowledged, at some time.
    pub settled: u8,
    pub restored: bool,
    /// Whether a stale log was read, and nothing in the evidence betrays it: then two members are faulty.
    pub deceived: bool,
    pub first: Option<Run>,
    pub spent: bool,
    pub rerun: Option<Run>,
    pub again: Option<Run>,
}

/// The space of a search.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    pub name: &'static str,
    /// Payments that exist.
    pub payments: u8,
    /// Whether *d* is deposited, whether verdicts come, whether a log is restored, whether there is a second restart.
    pub deposits: bool,
    pub verdicts: bool,
    pub restores: bool,
    pub again: bool,
}

#[derive(Clone, Copy)]
pub struct Machine<'a> {
    pub scenario: &'a Scenario,
    pub rule: Rule,
    pub state: State,
}

fn subsets(of: u8) -> impl Iterator<Item = u8> {
    (0..=of).filter(move |subset| subset & of == *subset)
}

impl Machine<'_> {
    fn payments(&self) -> impl Iterator<Item = u8> + '_ {
        PAYMENTS.into_iter().filter(|payment| self.scenario.payments & payment != 0)
    }

    pub fn certified(&self, payment: u8) -> bool {
        let signed = |of: &&Log| {
            let locked = inputs(payment).iter().all(|input| of.locks[*input] == payment);
            locked || of.lacks & payment != 0
        };
        self.state.logs.iter().filter(signed).count() + 1 >= QUORUM
    }

    fn all_certified(&self) -> u8 {
        self.payments().filter(|payment| self.certified(*payment)).sum()
    }

    fn is_settled(&self, payment: u8) -> bool {
        let acknowledged = self.state.logs.iter().filter(|of| of.certificates & payment != 0).count();
        acknowledged + 1 >= QUORUM
    }

    fn acts(&self, of: &Log) -> bool {
        !of.stale && (!of.read || self.rule == Rule::OpenLogs)
    }

    fn may_sign(&self, of: &Log, payment: u8) -> bool {
        let free = inputs(payment).iter().all(|input| of.locks[*input] == 0);
        let deposited = self.state.books.deposited || !inputs(payment).contains(&D);
        let proven = !inputs(payment).contains(&P) || self.certified(PAY);
        let barred = of.barred && payment != EARLY;
        self.acts(of) && free && deposited && proven && !barred
    }

    /// Certificates that restarts find: in logs that were read, in blocks of the old chain, and those that are shown.
    fn evidence(&self, shown: u8) -> u8 {
        let read = self.state.logs.iter().filter(|of| of.read).fold(0, |all, of| all | of.read_certificates);
        match self.rule {
            Rule::CountLogs(needed) => {
                let reserved =
                    |of: &&Log, payment: u8| of.read && inputs(payment).iter().all(|input| of.locks[*input] == payment);
                // The faulty member's log says what the adversary likes.
                let forged = |payment: u8| usize::from(shown & payment != 0);
                let count =
                    |payment: u8| self.state.logs.iter().filter(|of| reserved(of, payment)).count() + forged(payment);
                self.payments().filter(|payment| count(*payment) >= needed).sum::<u8>() | self.state.books.known
            }
            _ => read | shown | self.state.books.known,
        }
    }

    /// Logs that count, if this is the evidence; the faulty member's is one of them.
    fn complete_logs(&self, evidence: u8) -> usize {
        let counts = |of: &&Log| of.read && (of.lacks & evidence == 0 || self.rule == Rule::StaleLogs);
        self.state.logs.iter().filter(counts).count() + 1
    }

    /// Whether a stale log is read that nobody can recognise.
    fn is_deceived(&self, evidence: u8) -> bool {
        self.state.logs.iter().any(|of| of.read && of.stale && of.lacks & evidence == 0)
    }

    /// The identity of a restarted network.
    pub fn identity(&self, run: &Run) -> (u8, Option<Listed>) {
        (1, (self.rule != Rule::ListNotInIdentity).then_some(run.listed))
    }

    /// What a restart with this evidence begins with.
    fn run(&self, evidence: u8) -> Run {
        let snapshot = self.state.snapshot.expect("a restart has a snapshot");
        let mut listed = list(self.rule, &snapshot, &self.state.books, evidence);
        if self.rule == Rule::KeepName {
            // All goes on as in the snapshot, and the old certificates are redeemed besides.
            let later = self.certified(EARLY) && !snapshot.deposited;
            listed =
                Listed { claims: if later { UNITS[D] } else { 0 }, others: snapshot.escrow(), ..Listed::default() };
        }
        Run { evidence, listed }
    }

    pub fn after(mut self, step: Step) -> State {
        match step {
            Step::Sign { member, payment } => {
                let of = &mut self.state.logs[member];
                inputs(payment).iter().for_each(|input| of.locks[*input] = payment);
                // Who signs a payment of *p* holds the certificate that made it.
                of.certificates |= if inputs(payment).contains(&P) { PAY } else { 0 };
            }
            Step::Acknowledge { member, payment } => self.state.logs[member].certificates |= payment,
            Step::Deposit => self.state.books.deposited = true,
            Step::Show { payment, queued } => {
                let books = &mut self.state.books;
                books.known |= payment;
                if inputs(payment).contains(&O) {
                    books.fate = OFate::By(payment);
                }
                let place = if queued { &mut books.queued } else { &mut books.credited };
                *place |= if to_account(payment) { payment } else { 0 };
            }
            Step::PayQueue { payment } => {
                self.state.books.queued &= !payment;
                self.state.books.credited |= payment;
            }
            Step::Lapse => {
                self.state.books.fate = OFate::Credited;
                let free = |of: &&mut Log| of.certificates & (PAY | HOME) == 0 && !of.stale;
                self.state.logs.iter_mut().filter(free).take(QUORUM - 1).for_each(|of| of.barred = true);
            }
            Step::Snapshot => self.state.snapshot = Some(self.state.books),
            Step::Restore { member } => {
                let of = self.state.logs[member];
                let lacks = of.locks.iter().fold(0, |all, payment| all | payment);
                self.state.logs[member] = Log { stale: true, lacks, read: of.read, ..Log::default() };
                self.state.restored = true;
            }
            Step::Read { member } => {
                let of = &mut self.state.logs[member];
                (of.read, of.read_certificates) = (true, of.certificates);
            }
            Step::Restart { shown } => {
                let evidence = self.evidence(shown);
                self.state.deceived = self.is_deceived(evidence);
                self.state.first = Some(self.run(evidence));
            }
            Step::Spend => self.state.spent = true,
            Step::Rerun { shown } => {
                let evidence = self.evidence(shown);
                self.state.deceived = self.is_deceived(evidence);
                self.state.rerun = Some(self.run(evidence));
            }
            Step::Again { shown } => self.state.again = Some(self.again(shown)),
        }
        for payment in PAYMENTS {
            self.state.settled |= if self.is_settled(payment) { payment } else { 0 };
        }
        self.state.logs.sort_unstable();
        self.state
    }

    /// A second restart: the settled payment of the first listed output is in each log of the new network.
    fn again(&self, shown: u8) -> Run {
        let first = self.state.first.expect("it restarted once");
        let mut listed = first.listed;
        if let Some(output) = self.spendable() {
            listed.claims += std::mem::take(&mut listed.outputs[output]);
        }
        if self.rule == Rule::OldCertificates {
            // A certificate of the old network spends the output that is listed under its old name.
            let snapshot = self.state.snapshot.expect("it restarted once");
            let old = standing(self.rule, &snapshot, shown & !first.evidence);
            listed.outputs[P] += if old & PAY != 0 { UNITS[O] } else { 0 };
        }
        Run { evidence: first.evidence | shown, listed }
    }

    /// The first listed output of a key.
    pub fn spendable(&self) -> Option<usize> {
        self.state.first?.listed.outputs.iter().position(|units| *units > 0)
    }

    pub fn steps(&self) -> Vec<Step> {
        let mut steps = self.lane_steps();
        if self.state.first.is_none() {
            self.ledger_steps(&mut steps);
        }
        let certified = self.all_certified();
        let shows = if matches!(self.rule, Rule::CountLogs(_)) { self.scenario.payments } else { certified };
        // n + f + 1 − q = 3, where q = 3.
        let needed = if self.rule == Rule::FewLogs { 2 } else { 3 };
        for shown in subsets(shows) {
            let ready = self.state.snapshot.is_some() && self.complete_logs(self.evidence(shown)) >= needed;
            if ready && self.state.first.is_none() {
                steps.push(Step::Restart { shown });
            }
            let goes_on = self.scenario.again && self.state.first.is_some();
            if ready && goes_on && self.state.rerun.is_none() && self.state.again.is_none() {
                steps.extend([Step::Rerun { shown }, Step::Again { shown }]);
            }
        }
        if self.scenario.again && !self.state.spent && self.spendable().is_some() && self.state.rerun.is_none() {
            steps.push(Step::Spend);
        }
        steps
    }

    /// Members go on in the old network until their logs are closed.
    fn lane_steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for (member, of) in self.state.logs.iter().enumerate() {
            if member > 0 && self.state.logs[member - 1] == *of {
                continue;
            }
            for payment in self.payments() {
                if self.may_sign(of, payment) {
                    steps.push(Step::Sign { member, payment });
                }
                let barred = of.barred && payment & (PAY | HOME) != 0;
                if self.acts(of) && self.certified(payment) && !barred && of.certificates & payment == 0 {
                    steps.push(Step::Acknowledge { member, payment });
                }
            }
            if !of.read {
                steps.push(Step::Read { member });
            }
            if self.scenario.restores && !self.state.restored && !of.read {
                steps.push(Step::Restore { member });
            }
        }
        steps
    }

    fn ledger_steps(&self, steps: &mut Vec<Step>) {
        let books = self.state.books;
        if self.scenario.deposits && !books.deposited {
            steps.push(Step::Deposit);
        }
        for payment in self.payments().filter(|payment| self.certified(*payment) && books.known & payment == 0) {
            if inputs(payment).contains(&O) && books.fate != OFate::Unknown {
                continue;
            }
            steps.push(Step::Show { payment, queued: false });
            if to_account(payment) {
                steps.push(Step::Show { payment, queued: true });
            }
        }
        let queued = self.payments().filter(|payment| books.queued & payment != 0);
        steps.extend(queued.map(|payment| Step::PayQueue { payment }));
        let free = self.state.logs.iter().filter(|of| of.certificates & (PAY | HOME) == 0 && !of.stale).count();
        if self.scenario.verdicts && books.fate == OFate::Unknown && free + 1 >= QUORUM {
            steps.push(Step::Lapse);
        }
        if self.state.snapshot.is_none() {
            steps.push(Step::Snapshot);
        }
    }
}
