//! What a step made, told in its order.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use primitives::venue::{MarketId, OrderNumber, VenueOperation};
use primitives::{Operation, PublicKey, Transaction};
use venue::{FillFate, MatchingStage, OrderRefusal, ReportKind, ToldStep, TradeReport, VenueEffect};

use super::keeping::Shown;
use super::opening::NoRoot;
use super::{Gathered, Host, Operated, ReportsQuestion};
use crate::clock::clock_ms;
use crate::events::{BookTop, StepEvents, TOP_LEVELS};
use crate::shared::EdgeSessionsInput;

/// What is kept of a step while it is written, to tell it then.
pub(super) struct Begun {
    pub gathered: Gathered,
    /// The time of the step.
    pub now_ms: u64,
    /// The best levels of the markets that changed.
    pub tops: Vec<(MarketId, BookTop)>,
    pub shown: Shown,
}

impl Begun {
    /// The best levels of markets.
    pub fn tops(state: &MatchingStage, markets: impl IntoIterator<Item = MarketId>) -> Vec<(MarketId, BookTop)> {
        let top = |market| Some((market, BookTop::of(state.book(market)?, TOP_LEVELS)));
        markets.into_iter().filter_map(top).collect()
    }
}

impl Host {
    /// Does the effects of a step that is durable, in their order, and answers.
    pub(super) fn tell(&mut self, step: ToldStep<Begun>) -> Result<(), NoRoot> {
        let ToldStep { effects, effects_told, taken: Begun { mut gathered, now_ms, tops, shown } } = step;
        self.shared.tape.tell(&effects, now_ms);
        self.tell_effects(effects, effects_told, tops, &mut gathered)?;
        self.tell_nothing(gathered)?;
        self.show_as(shown);
        Ok(())
    }

    /// What follows a step, or a turn without one.
    pub(super) fn tell_nothing(&mut self, gathered: Gathered) -> Result<(), NoRoot> {
        if let Some(incarnation) = self.ahead().map(|state| state.settings().incarnation) {
            self.begin_day(incarnation)?;
        }
        for reply in gathered.reached {
            // Who asked may be gone.
            reply.send(()).ok();
        }
        Ok(())
    }

    /// Does effects that the root made again when it was opened, or by itself.
    pub(super) fn tell_again(&mut self, effects: Vec<VenueEffect>) -> Result<(), NoRoot> {
        let root = self.ahead().expect("it is open");
        let market = |effect: &VenueEffect| match effect {
            VenueEffect::Market(market, ..) => Some(*market),
            _ => None,
        };
        let markets: BTreeSet<MarketId> = effects.iter().filter_map(market).collect();
        let (tops, told) = (Begun::tops(root, markets), root.effects_told());
        self.tell_effects(effects, told, tops, &mut Gathered::default())
    }

    fn tell_effects(
        &mut self,
        effects: Vec<VenueEffect>,
        effects_told: u64,
        tops: Vec<(MarketId, BookTop)>,
        gathered: &mut Gathered,
    ) -> Result<(), NoRoot> {
        let mut events = StepEvents { tops, ..StepEvents::default() };
        let mut refused: HashMap<MarketId, OrderRefusal> = HashMap::new();
        for effect in effects {
            match effect {
                VenueEffect::Report(report) => {
                    self.count_bust(&report);
                    events.reports.push(report);
                }
                VenueEffect::Market(market, number, event) => events.market.push((market, number, event)),
                VenueEffect::Submit(settle) => self.submit(&settle),
                VenueEffect::Pause(pause) => {
                    tracing::info!(pause = pause.map(|why| why.to_string()), "matching");
                    events.pause = Some(pause);
                }
                VenueEffect::WantsBlock(height) => tracing::error!(height, "the root was not given this block"),
                VenueEffect::Refused(market, why) => {
                    tracing::warn!(market, %why, "a command of the operator is refused");
                    refused.insert(market, why);
                }
                VenueEffect::Stopped(why) => {
                    tracing::error!(%why, "the venue has stopped");
                    events.stopped = Some(why);
                }
            }
        }
        // Everybody before the parties: no report is ahead of its market data.
        self.shared.feed.tell(&events, clock_ms());
        // Sessions have a journal of their own. If it fails, all of this is told again by the next root.
        self.shared.ouch.tell(&events, effects_told)?;
        self.passed = Some(effects_told);
        // Commands of the operator overlap with no other step: what is ahead is what was told.
        let is_closed = |market: &MarketId| self.ahead().is_some_and(|state| state.book(*market).is_none());
        let closed: Vec<MarketId> = refused.keys().copied().filter(is_closed).collect();
        self.unopened.extend(closed);
        for (session, link, reply) in gathered.attached.drain(..) {
            events.attached.push((session, link));
            // Who asked may be gone.
            reply.send(()).ok();
        }
        answer(std::mem::take(&mut gathered.asked), &events.reports);
        for Operated { market, reply } in gathered.operated.drain(..) {
            reply.send(market.and_then(|market| refused.get(&market).copied())).ok();
        }
        if !events.is_empty() {
            // Nobody may listen.
            drop(self.shared.events.send(Arc::new(events)));
        }
        self.shared.tell_edge_sessions(EdgeSessionsInput::Told);
        Ok(())
    }

    fn count_bust(&mut self, report: &TradeReport) {
        if let ReportKind::Settled { fate: FillFate::Bust(why), index, .. } = &report.what {
            self.busts += 1;
            tracing::warn!(index, ?why, "a fill is bust");
        }
    }

    pub(super) fn submit(&self, settle: &Transaction) {
        if let Some(chain) = self.shared.heard(|heard| heard.chain.clone()) {
            let fills = match &settle.body.operation {
                Operation::Venue(operation) => match &**operation {
                    VenueOperation::Settle(settle) => settle.fills.len(),
                    _ => 0,
                },
                _ => 0,
            };
            tracing::debug!(sequence = settle.body.sequence, fills, "a settle");
            chain.submit(settle);
        }
    }
}

/// Answers whoever asked with the reports about its order, or about all orders of its key. What a block of the same
/// step settled is no answer: it is told as news.
fn answer(asked: Vec<ReportsQuestion>, reports: &[TradeReport]) {
    let is_answer = |report: &&TradeReport| !matches!(report.what, ReportKind::Settled { .. });
    let mut of_order: HashMap<(PublicKey, OrderNumber), Vec<&TradeReport>> = HashMap::new();
    for report in reports.iter().filter(is_answer) {
        of_order.entry((report.key, report.number)).or_default().push(report);
    }
    for ReportsQuestion { key, number, reply } in asked {
        let found = match number {
            Some(number) => {
                of_order.get(&(key, number)).into_iter().flatten().map(|report| (*report).clone()).collect()
            }
            None => reports.iter().filter(is_answer).filter(|report| report.key == key).cloned().collect(),
        };
        // Who asked may be gone.
        drop(reply.send(found));
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use venue::Acceptance;

    use super::*;

    #[test]
    fn a_retry_is_answered_by_its_acceptance_although_a_block_settles_its_fill_in_the_same_step() {
        let (key, number) = (PublicKey([1; 32]), OrderNumber { incarnation: 0, day: 1, reference: 2 });
        let told = |what| TradeReport { session: 1, key, number, what };
        let accepted = Acceptance { id: 5, lots: 2, replaces: None, keeps_place: false };
        let settled = ReportKind::Settled { index: 0, height: 9, fate: FillFate::Applied };
        let reports = [told(settled), told(ReportKind::Accepted(accepted))];
        for number in [Some(number), None] {
            let (reply, mut answered) = oneshot::channel();
            answer(vec![ReportsQuestion { key, number, reply }], &reports);
            assert_eq!(answered.try_recv().expect("answered"), reports[1..]);
        }
    }
}
