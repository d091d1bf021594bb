//! The index that makes the cost of a block depend on what it changes, and not on what is open.
//!
//! All of it is derived from the open cases. A case can be decided only after an event that concerns it. Such an event
//! is a vote or a view in it, or a vote in a case about another input of one of its payments. It can also be a verdict
//! or a certificate about an input or an output of such a payment, or the end of the time after which the case may
//! lapse or expires. So each of these marks the cases that it concerns, and only marked cases are judged.

use super::*;

/// The verdicts, in the order in which they are tried.
pub(super) const RULES: usize = 4;

#[derive(Clone, Debug, Default)]
pub(super) struct CaseIndex {
    /// Cases by the inputs and outputs of their payments.
    by_output: BTreeMap<OutputId, BTreeSet<OutputId>>,
    /// Cases by the payments that were voted for.
    by_payment: BTreeMap<Digest, BTreeSet<OutputId>>,
    /// Number of cases by home.
    homes: BTreeMap<HomeEpoch, usize>,
    /// Cases that may lapse or expire from an epoch on.
    due: BTreeSet<(HomeEpoch, OutputId)>,
    /// Cases that expire at a block height.
    due_heights: BTreeSet<(u64, OutputId)>,
    /// Cases to judge, for each rule.
    marked: [BTreeSet<OutputId>; RULES],
}

fn outputs_of(body: &PaymentBody) -> impl Iterator<Item = OutputId> + '_ {
    body.input_ids().chain(body.output_ids())
}

impl CaseIndex {
    /// The index of the cases of a decoded state. Each is judged once more, which changes nothing.
    pub(super) fn of(cases: &BTreeMap<OutputId, Case>, heights_max: u64) -> CaseIndex {
        let mut index = CaseIndex::default();
        for (id, case) in cases {
            index.open(*id, case, heights_max);
            case.bodies.values().for_each(|body| index.add(*id, body));
            index.mark(id);
        }
        index
    }

    pub(super) fn open(&mut self, id: OutputId, case: &Case, heights_max: u64) {
        *self.homes.entry(case.contested.home).or_default() += 1;
        let end = case.opened.expiry(heights_max);
        self.due.extend([(case.opened.lapses_from(), id), (end.epoch, id)]);
        self.due_heights.insert((end.height, id));
    }

    /// Records a vote for a payment in a case.
    pub(super) fn add(&mut self, id: OutputId, body: &PaymentBody) {
        for output in outputs_of(body) {
            self.by_output.entry(output).or_default().insert(id);
        }
        self.by_payment.entry(body.digest).or_default().insert(id);
    }

    pub(super) fn close(&mut self, id: &OutputId, case: &Case, heights_max: u64) {
        let home = case.contested.home;
        if let Some(count) = self.homes.get_mut(&home) {
            *count -= 1;
            if *count == 0 {
                self.homes.remove(&home);
            }
        }
        let end = case.opened.expiry(heights_max);
        self.due.remove(&(case.opened.lapses_from(), *id));
        self.due.remove(&(end.epoch, *id));
        self.due_heights.remove(&(end.height, *id));
        for marked in &mut self.marked {
            marked.remove(id);
        }
        for body in case.bodies.values() {
            outputs_of(body).for_each(|output| forget(&mut self.by_output, &output, id));
            forget(&mut self.by_payment, &body.digest, id);
        }
    }

    /// Marks a case.
    fn mark(&mut self, id: &OutputId) {
        for marked in &mut self.marked {
            marked.insert(*id);
        }
    }

    /// Marks the cases that an event about an output concerns.
    pub(super) fn mark_output(&mut self, output: &OutputId) {
        self.mark(output);
        let concerned: Vec<OutputId> = self.by_output.get(output).into_iter().flatten().copied().collect();
        concerned.iter().for_each(|id| self.mark(id));
    }

    /// Marks the cases that a certificate of a payment concerns.
    pub(super) fn mark_payment(&mut self, digest: &Digest) {
        let concerned: Vec<OutputId> = self.by_payment.get(digest).into_iter().flatten().copied().collect();
        concerned.iter().for_each(|id| self.mark(id));
    }

    /// Marks the cases that may lapse or expire by now, once.
    pub(super) fn mark_due(&mut self, now: LaneTime) {
        while let Some((from, id)) = self.due.first().copied().filter(|(from, _)| *from <= now.epoch) {
            self.due.remove(&(from, id));
            self.mark(&id);
        }
        while let Some((from, id)) = self.due_heights.first().copied().filter(|(from, _)| *from <= now.height) {
            self.due_heights.remove(&(from, id));
            self.mark(&id);
        }
    }

    /// The next case to judge, and the rule: the rules in their order, cases by output.
    pub(super) fn next(&mut self) -> Option<(usize, OutputId)> {
        let mut rules = self.marked.iter_mut().enumerate();
        rules.find_map(|(rule, marked)| marked.pop_first().map(|id| (rule, id)))
    }

    pub(super) fn has_home(&self, home: HomeEpoch) -> bool {
        self.homes.contains_key(&home)
    }
}

fn forget<K: Ord>(map: &mut BTreeMap<K, BTreeSet<OutputId>>, key: &K, id: &OutputId) {
    if let Some(set) = map.get_mut(key) {
        set.remove(id);
        if set.is_empty() {
            map.remove(key);
        }
    }
}
