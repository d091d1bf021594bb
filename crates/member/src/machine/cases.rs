//! Contested outputs: the facts that shards get about cases, and their reports.

use std::sync::Arc;

use payments::{
    BridgeOperation, CaseEvent, CertifiedPayment, ContestedOutput, HomeEpoch, LaneAnswer, LaneInput, OutputId,
    PaymentBody, ViewParts,
};
use primitives::{Digest, Height, PublicKey};

use super::LaneMember;
use super::owing::ASK_BLOCKS;
use crate::MemberMistake;

/// A case that certified blocks opened.
pub(super) struct OpenCase {
    pub contested: ContestedOutput,
    /// The payments of the output, once these are fixed.
    pub candidates: Option<Vec<Arc<PaymentBody>>>,
    /// At this height the shards are asked again for what the ledger lacks.
    pub ask: Height,
}

impl OpenCase {
    pub fn new(contested: ContestedOutput, candidates: Option<Vec<Arc<PaymentBody>>>, height: Height) -> OpenCase {
        OpenCase { contested, candidates, ask: height + ASK_BLOCKS }
    }

    /// Whether it concerns a home: that of its output, and the next one, into which candidates may pay. Other homes
    /// need not wait for the verdict, so that nobody can keep their keys alive with case after case.
    pub fn concerns(&self, home: HomeEpoch) -> bool {
        self.homes().contains(&home)
    }

    pub fn homes(&self) -> [HomeEpoch; 2] {
        [self.contested.home, self.contested.home + 1]
    }
}

impl LaneMember {
    pub(super) fn on_case(&mut self, event: CaseEvent, height: Height) {
        match event {
            CaseEvent::Opened(contested) => {
                let case = OpenCase::new(contested, None, height);
                case.homes().into_iter().for_each(|home| self.tell_home(home, &LaneInput::CaseOpened(contested)));
                self.cases.insert(contested.output.id, case);
            }
            CaseEvent::Fixed(id, bodies) => {
                let Some(case) = self.cases.get_mut(&id) else { return };
                case.candidates = Some(bodies.clone());
                let homes = case.homes();
                self.bar(homes, &bodies);
                let fact = LaneInput::CandidatesFixed(id, bodies);
                homes.into_iter().for_each(|home| self.tell_home(home, &fact));
            }
            CaseEvent::Ruled(contested, verdict) => {
                let id = contested.output.id;
                self.tell_all(&LaneInput::CaseRuled(id, verdict));
                self.homes.values_mut().for_each(|home| drop(home.parts.remove(&id)));
                self.cases.remove(&id);
            }
            CaseEvent::Alarm(digest) => {
                tracing::error!(%digest, "two certificates of the lane contradict each other: the lane halts");
            }
            CaseEvent::Stands(_) | CaseEvent::Proven(_) => {}
        }
    }

    /// Shards of these homes bar the candidates of a case, also when it is closed without a verdict on them.
    fn bar(&mut self, homes: [HomeEpoch; 2], candidates: &[Arc<PaymentBody>]) {
        let is_forgotten = self.has(MemberMistake::LateCertificateNotTold);
        for (_, of) in self.homes.iter_mut().filter(|(home, _)| homes.contains(home) && !is_forgotten) {
            of.barred.extend(candidates.iter().map(|body| (body.digest, Some(body.clone()))));
        }
    }

    /// Tells a shard that has started of the open cases that concern its home.
    pub(super) fn tell_cases(&mut self, home: HomeEpoch, shard: u16) {
        let concerned = self.cases.iter().filter(|(_, case)| case.concerns(home));
        let facts: Vec<LaneInput<'static>> = concerned
            .flat_map(|(id, case)| {
                let fixed = case.candidates.clone().map(|bodies| LaneInput::CandidatesFixed(*id, bodies));
                [LaneInput::CaseOpened(case.contested)].into_iter().chain(fixed)
            })
            .collect();
        facts.into_iter().for_each(|fact| self.tell(home, shard, fact));
    }

    /// A shard bars the candidates of a case. Once all shards of the home do, the one that signs for the owner signs
    /// the view.
    pub(super) fn on_barred(
        &mut self,
        home: HomeEpoch,
        shard: u16,
        case: OutputId,
        paid: Option<Box<CertifiedPayment>>,
    ) {
        let Some(owner) = self.contested_owner(&case) else { return };
        let Some(of) = self.homes.get_mut(&home) else { return };
        let parts = of.parts.entry(case).or_insert_with(|| ViewParts::new(of.shards));
        let Some(paid) = parts.add(shard, paid) else { return };
        let paid = paid.cloned().map(Box::new);
        let posting = of.term.committee.shard_of(self.settings.index, &owner).ok();
        if let Some(posting) = posting.filter(|posting| of.running.contains(posting)) {
            self.tell(home, posting, LaneInput::AllBarred(case, paid));
        }
    }

    pub(super) fn on_view(
        &mut self,
        committee: HomeEpoch,
        case: OutputId,
        paid: Option<Box<CertifiedPayment>>,
        answer: LaneAnswer,
    ) {
        let Some(owner) = self.contested_owner(&case) else { return };
        self.posts.owe(BridgeOperation::View { case, committee, owner, paid, answer });
    }

    /// Somebody has shown a shard the certificate of a payment that it bars: the ledger gets it, and the bar is lifted
    /// once it has. After a restart the member does not know what the candidates of an expired case were; whoever has
    /// the payment posts it then.
    pub(super) fn on_shown(&mut self, home: HomeEpoch, of: CertifiedPayment, network: &Digest) {
        if self.has(MemberMistake::ShownNotPosted) {
            return;
        }
        let digest = of.digest(network);
        let barred = self.homes.get(&home).and_then(|of| of.barred.get(&digest)).cloned().flatten();
        let candidates = self.cases.values().flat_map(|case| case.candidates.iter().flatten());
        let Some(body) = barred.or_else(|| candidates.into_iter().find(|body| body.digest == digest).cloned()) else {
            return;
        };
        let (payment, certificate) = (body.payment.encode(), of.certificate);
        self.posts.owe(BridgeOperation::Redeem { payment, certificate });
    }

    fn contested_owner(&self, case: &OutputId) -> Option<PublicKey> {
        self.cases.get(case).map(|case| case.contested.owner)
    }
}
