//! How a gateway takes an order of its participant: a token, the pace, a stamp.

use super::gateway::{OWN, UnstampedOrder};
use super::{EdgeEffect, EdgeMistake, GatewayNode, NewEdgeOrder};
use crate::Nanos;
use crate::hop::HopInput;
use crate::key::{MergeKey, Sequenced};
use crate::link::EdgeOrder;
use crate::merge::MergeInput;
use crate::pace::{Pace, PaceEffect, PaceInput, PaceRules};

impl GatewayNode {
    /// Takes an order, unless too many wait for the pace or an acknowledgement. Its token says where in the feed it was
    /// made, and its stamp when it left.
    pub(super) fn on_order(&mut self, now: Nanos, order: NewEdgeOrder, out: &mut Vec<EdgeEffect>) {
        let waiting = self.pace.as_ref().map_or(0, Pace::waiting);
        let is_full = self.pace.as_ref().is_some_and(Pace::is_full);
        let has_room = !is_full && self.unacknowledged.len() + waiting < self.rules.unacknowledged;
        let Some(token) = has_room.then(|| self.tokens.next(0, self.shown)).flatten() else {
            self.counters.orders_refused += 1;
            return out.push(EdgeEffect::OrderRefused);
        };
        let early = self.rules.mistake.is(EdgeMistake::StampedEarly).then(|| self.stamps.next(now));
        let order = UnstampedOrder { order, token, md_seq: self.shown, at: now, early };
        match self.pace.is_some() {
            true => self.pace(now, PaceInput::Order(order), out),
            false => self.stamp(now, order, out),
        }
    }

    /// A step of the pace, if there is one.
    pub(super) fn pace(&mut self, now: Nanos, input: PaceInput<UnstampedOrder>, out: &mut Vec<EdgeEffect>) {
        let Some(pace) = &mut self.pace else { return };
        let mut effects = Vec::new();
        pace.step(now, input, &mut effects);
        for effect in effects {
            match effect {
                PaceEffect::Leave(order) => self.stamp(now, order, out),
                PaceEffect::Refuse(_) => unreachable!("there was room"),
            }
        }
    }

    fn stamp(&mut self, now: Nanos, order: UnstampedOrder, out: &mut Vec<EdgeEffect>) {
        let UnstampedOrder { order, token, md_seq, at, early } = order;
        // A strategy says when it made the order. One that has waited counts from when it leaves.
        let made = order.made.filter(|_| at == now).unwrap_or(now);
        let stamp = early.unwrap_or_else(|| self.stamps.next(made));
        let key = MergeKey { mid: self.mid, stamp, source: self.presence.member as u32, sub: 0 };
        let item =
            EdgeOrder { participant: self.presence.member, session: self.session, token, md_seq, body: order.body };
        let mut order = Sequenced { class: order.class, key, restamped: None, item };
        self.rules.lie.get().iter().for_each(|lie| lie.tell(&mut order.key, Some(&mut order.item)));
        self.counters.orders += 1;
        self.unacknowledged.insert(token.reference, order.clone());
        out.push(EdgeEffect::Stamped(token.reference, order.key.stamp));
        self.climb(now, HopInput::Child(MergeInput::Order(OWN, order)), out);
    }

    /// The slots of a gateway lie where its place is among all gateways of the tree: they tell nothing of orders.
    pub(super) fn place_slots(&mut self, index: u32, gateways: u32) {
        if let (Some(pace), Some(PaceRules { interval, .. })) = (&mut self.pace, self.rules.pace) {
            pace.place(interval / u64::from(gateways.max(1)) * u64::from(index));
        }
    }
}
