//! A member's side of the control stream: joins, and shows that it is alive.

use super::{EdgeEffect, LinkEnd};
use crate::Nanos;
use crate::link::LinkMessage;
use crate::roster::MemberRole;
use crate::seating::{EdgePlace, MemberId, ROOT_MEMBER};

/// What a member has told the root of itself.
#[derive(Debug)]
pub(super) struct Presence {
    pub(super) member: MemberId,
    role: MemberRole,
    place: EdgePlace,
    is_open: bool,
    /// The tree that this member works by; 0 if it must join.
    epoch: u32,
    next: Nanos,
    beat: Nanos,
}

impl Presence {
    pub(super) fn new(member: MemberId, role: MemberRole, place: EdgePlace, beat: Nanos) -> Presence {
        Presence { member, role, place, is_open: false, epoch: 0, next: 0, beat }
    }

    pub(super) fn opened(&mut self) {
        (self.is_open, self.next) = (true, 0);
    }

    pub(super) fn closed(&mut self) {
        self.is_open = false;
    }

    /// Works by another tree, and says so at once.
    pub(super) fn installed(&mut self, epoch: u32) {
        (self.epoch, self.next) = (epoch, 0);
    }

    /// The root does not know this member any more.
    pub(super) fn unknown(&mut self) {
        (self.epoch, self.next) = (0, 0);
    }

    pub(super) fn too_soon(&mut self, until: Nanos) {
        (self.epoch, self.next) = (0, until);
    }

    pub(super) fn due(&self) -> Nanos {
        if self.is_open { self.next } else { Nanos::MAX }
    }

    pub(super) fn tick(&mut self, now: Nanos, out: &mut Vec<EdgeEffect>) {
        if now < self.due() {
            return;
        }
        let message = match self.epoch {
            0 => LinkMessage::Join(self.role, self.place),
            epoch => LinkMessage::Alive(epoch),
        };
        out.push(EdgeEffect::Message(LinkEnd::control(ROOT_MEMBER), message));
        self.next = now.saturating_add(self.beat);
    }
}
