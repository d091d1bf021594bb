//! What a member owes the ledger: derived with each block from what the ledger has and lacks.

use ledger::{LaneBridge, Ledger};
use payments::{BridgeKey, BridgeOperation, HomeEpoch, LaneFact, LaneInput, OutputId};
use primitives::Height;

use super::{LaneMember, lane};
use crate::keys::{KeyWorkKind, is_urgent};
use crate::{KeyWork, MemberEffect, MemberMistake};

/// Blocks after which shards are asked again for a vote or a view that the ledger lacks and no post has.
pub const ASK_BLOCKS: Height = 8;

impl LaneMember {
    /// With each certified block: what the ledger lacks of this member is made or asked for.
    pub(super) fn owe(&mut self, ledger: &Ledger) {
        self.prepare_next();
        self.note_confirmed(ledger);
        let lane = lane(ledger);
        self.register(lane);
        self.generate(lane);
        self.ask_again(lane, ledger.height());
    }

    /// Registers the keys of the next epoch, unless the ledger has them.
    pub(super) fn register(&mut self, lane: &LaneBridge) {
        let (next, bridge) = (self.now + 1, lane.bridge());
        let is_present = bridge.clock().epoch() == self.now && self.settings.has_registrar;
        let is_registered = bridge.registrations(next).any(|of| of.member == self.settings.index);
        if !is_present || is_registered {
            return;
        }
        self.warn_unregistered(lane);
        let key = BridgeKey::Registration(next, self.settings.index);
        if self.prepared >= next && !self.posts.contains(&key) {
            self.work(KeyWorkKind::Register(lane.terms().bls), lane);
        }
    }

    fn warn_unregistered(&self, lane: &LaneBridge) {
        let (next, heights_left, account) = (self.now + 1, lane.bridge().clock().heights_left(), self.settings.account);
        if is_urgent(heights_left, lane.terms().epoch_heights) {
            tracing::error!(
                next, heights_left, %account,
                "NO LANE KEYS ARE REGISTERED for the next lane epoch: this validator will sign nothing in it. The \
                 registration is posted again; see that the account can pay the fee"
            );
        }
    }

    /// Takes part in the key generation of the next epoch: deals once everybody has registered, and complains about
    /// wrong shares after the dealing period. The ledger may be ahead of certified blocks, not of decided ones.
    fn generate(&mut self, lane: &LaneBridge) {
        let (next, me, bridge) = (self.now + 1, self.settings.index, lane.bridge());
        let open = bridge.generation(next).filter(|_| bridge.clock().epoch() == self.now);
        let Some(generation) = open else { return };
        let deals = generation.awaits_dealings() && generation.dealing_of(me).is_none();
        if deals && !self.posts.contains(&BridgeKey::Dealing(next, me)) {
            self.work(KeyWorkKind::Deal(Box::new(generation.clone())), lane);
        }
        if generation.awaits_complaints() && self.looked < next {
            self.work(KeyWorkKind::Complain(Box::new(generation.clone())), lane);
        }
    }

    /// Gives out work with the keys of the next epoch.
    fn work(&mut self, kind: KeyWorkKind, lane: &LaneBridge) {
        let work = KeyWork::new(kind, lane, self.now + 1, self.settings.index, self.settings.mistake);
        self.effects.push(MemberEffect::Work(Box::new(work)));
    }

    /// If the keys cannot be read, the work is given out again with the next block.
    pub(super) fn on_worked(&mut self, work: &KeyWork, posts: Option<Vec<BridgeOperation>>) {
        let Some(posts) = posts else { return };
        posts.into_iter().for_each(|post| self.posts.owe(post));
        if matches!(work.kind, KeyWorkKind::Complain(_)) {
            self.looked = work.epoch();
        }
    }

    /// Asks shards again for votes and views that the ledger lacks and no post has.
    fn ask_again(&mut self, lane: &LaneBridge, height: Height) {
        if self.has(MemberMistake::ReportNotAskedAgain) {
            return;
        }
        let due: Vec<OutputId> = self.cases.iter().filter(|(_, of)| of.ask <= height).map(|(id, _)| *id).collect();
        for id in due {
            let lacking = self.lacking(&id, lane);
            lacking.into_iter().for_each(|(home, fact)| self.tell_home(home, &fact));
            self.cases.get_mut(&id).into_iter().for_each(|case| case.ask = height + ASK_BLOCKS);
        }
    }

    /// What must be told again in a case, and to which homes.
    fn lacking(&self, id: &OutputId, lane: &LaneBridge) -> Vec<(HomeEpoch, LaneFact)> {
        let (me, resolver) = (self.settings.index, lane.bridge().resolver());
        let Some(case) = self.cases.get(id).filter(|_| resolver.is_open(id)) else { return Vec::new() };
        let home = case.contested.home;
        let lacks_vote = !resolver.has_vote(id, me) && !self.posts.contains(&BridgeKey::Vote(*id, me));
        let vote = lacks_vote.then_some((home, LaneInput::CaseOpened(case.contested)));
        let lacks_view = |home: &HomeEpoch| {
            !resolver.has_view(id, *home, me) && !self.posts.contains(&BridgeKey::View(*id, *home, me))
        };
        let views = case.candidates.iter().flat_map(|bodies| {
            let homes = case.homes().into_iter().filter(lacks_view);
            homes.map(|home| (home, LaneInput::CandidatesFixed(*id, bodies.clone())))
        });
        vote.into_iter().chain(views).collect()
    }

    /// Gives out the posts that are due.
    pub(super) fn post(&mut self, ledger: &Ledger) {
        let posts = self.posts.due(lane(ledger), ledger.height(), self.settings.mistake);
        self.effects.extend(posts.into_iter().map(|post| MemberEffect::Post(Box::new(post))));
    }
}
