//! What a step made, told in its order.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use primitives::venue::{MarketId, OrderNumber, VenueOperation};
use primitives::{Operation, PublicKey, Transaction};
use venue::{FillFate, OrderRefusal, ReportKind, TradeReport, VenueEffect};

use super::opening::NoRoot;
use super::{Gathered, Host, Operated, ReportsQuestion};
use crate::clock::clock_ms;
use crate::events::{BookTop, StepEvents, TOP_LEVELS};
use crate::shared::EdgeSessionsInput;

impl Host {
    /// Does the effects of a step, in their order, and answers.
    pub(super) fn tell(&mut self, effects: Vec<VenueEffect>, gathered: &mut Gathered) -> Result<(), NoRoot> {
        let mut events = StepEvents::default();
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
        let root = self.root.as_ref().expect("it runs");
        // Everybody before the parties: no report is ahead of its market data.
        self.shared.feed.tell(&events, clock_ms());
        // Sessions have a journal of their own. If it fails, all of this is told again by the next root.
        self.shared.ouch.tell(&events, root.effects_told())?;
        self.passed = Some(root.effects_told());
        self.unopened.extend(refused.keys().filter(|market| root.book(**market).is_none()));
        let changed: BTreeSet<MarketId> = events.market.iter().map(|(market, ..)| *market).collect();
        let top = |market| Some((market, BookTop::of(root.book(market)?, TOP_LEVELS)));
        events.tops = changed.into_iter().filter_map(top).collect();
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
