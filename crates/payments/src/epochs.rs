//! Protocol H: lane epochs without forwarding spent sets.
//!
//! 1. Lane epochs count certified heights. Heights at which the lane is halted do not count. Each epoch has fresh keys,
//!    registered in the epoch before; it does not begin before a quorum has registered (see `registration.rs`).
//! 2. An output's id contains its *home* epoch. Only the home committee ever signs payments that spend it.
//! 3. Committee h signs payments into h during h, and into h+1 during h+1. During h+2 it signs only *exits*: payments
//!    that send one output, whole, to the ledger account of its owner. Anyone who shows the output's certificate can
//!    request one, without the owner's signature. Then the committee destroys its keys and drops its set. An open case
//!    of home h or h−1 postpones both. If it confirms a payment, the committee signs exits through the epoch after the
//!    verdict ([`crate::CommitteeLife`]).
//! 4. Outputs of home h count as inputs through h+2; certificates of committee c are redeemable for one epoch after the
//!    last in which it signs: through c+3, and at most through c+6 after a late verdict.
//!
//! # Why no money is lost or created at a boundary
//!
//! One committee and one durable set always sign for an output. So at most one payment of an output is certified,
//! whenever its signatures were made: signatures that were withheld over a boundary only complete the one payment
//! that correct validators are bound to. New committees start empty and load nothing.
//!
//! # Deviations from the design, each with the loss that it prevents
//!
//! * **An open case of home h postpones the end of committee h+1, too.** Its members report whether they accepted an
//!   output of a candidate (see [`crate::Resolver`]), for which they need their set.
//! * **A case of home h may be opened until the middle of h+2, not until its end.** Counterexample: Alice pays o to
//!   Bob, output o' of home h, and contests o in the last block of h+2. The validators bar o', so that no one signs
//!   the exit of o'. Bob posts the certificate; the verdict is that his payment stands, but it comes in h+3, in which
//!   committee h signs nothing. Bob's money stays in escrow forever, and Alice only lost a deposit. With the rule Bob
//!   has half an epoch to post the certificate and send o' home. An owner whose payment was stuck when h+1 ended has
//!   the other half to contest it.

use crate::HomeEpoch;
use crate::layout::Reader;
use crate::{LaneRefusal, Quorums};

/// The number of epochs after its home for which an output counts as an input.
pub const SPEND_EPOCHS: u64 = 2;
/// The number of epochs after its own for which the certificates of a committee are redeemable.
pub const REDEEM_EPOCHS: u64 = 3;
/// A case expires after as many block heights as this many epochs have, however slowly lane time passes.
const CASE_EPOCHS: u64 = 8;
/// The minimum number of epochs for which a validator's stake stays bonded: checked in the genesis.
pub const UNBONDING_EPOCHS_MIN: u64 = 4;

// Everyone that may sign or post a view is bonded, and the last signed payments can still be redeemed.
const _: () = assert!(SPEND_EPOCHS < REDEEM_EPOCHS && REDEEM_EPOCHS < UNBONDING_EPOCHS_MIN);

/// What a committee signs at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HomePhase {
    /// Its epoch has not begun: it signs nothing.
    Registered,
    /// Its own epoch h: it signs payments into h.
    Own,
    /// The epoch h+1: it signs payments into h+1.
    Next,
    /// The epoch h+2: it signs exits only.
    Exit,
    /// From h+3 on it signs no payment. Without an open case its keys are destroyed.
    Ended,
}

impl HomePhase {
    /// The phase of committee `home` in lane epoch `now`.
    pub fn of(home: HomeEpoch, now: HomeEpoch) -> HomePhase {
        match now.checked_sub(home) {
            None => HomePhase::Registered,
            Some(0) => HomePhase::Own,
            Some(1) => HomePhase::Next,
            Some(2) => HomePhase::Exit,
            Some(_) => HomePhase::Ended,
        }
    }

    /// Whether the committee may reserve the inputs of a payment from `home` into `into` now, for the first time.
    pub fn signs(self, home: HomeEpoch, into: HomeEpoch, exit: bool) -> bool {
        match self {
            HomePhase::Registered | HomePhase::Ended => false,
            HomePhase::Own => into == home,
            HomePhase::Next => exit || home.checked_add(1) == Some(into),
            HomePhase::Exit => exit,
        }
    }

    /// Whether an exit needs no signature of the owner.
    pub fn sends_anyone_home(self) -> bool {
        self == HomePhase::Exit
    }
}

/// Whether a certificate of committee `committee` is redeemable in lane epoch `now`.
pub fn is_redeemable(committee: HomeEpoch, now: HomeEpoch) -> bool {
    committee <= now && now - committee <= REDEEM_EPOCHS
}

/// Lengths of the lane's periods, in heights, from the genesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSchedule {
    /// Heights of a lane epoch, at least 2.
    pub epoch_heights: u64,
    /// Heights for which one halt stops the lane.
    pub halt_heights: u64,
}

impl LaneSchedule {
    /// Block heights after its opening at which a case expires, however slowly lane time passes.
    pub fn case_heights(&self) -> u64 {
        self.epoch_heights.saturating_mul(CASE_EPOCHS)
    }
}

/// Lane time, computed only from certified heights. Halted heights do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneClock {
    schedule: LaneSchedule,
    height: u64,
    ticks: u64,
    halted: bool,
    halted_until: u64,
    halts: u64,
    halt_votes: std::collections::BTreeSet<u8>,
}

impl LaneClock {
    /// The clock at the genesis, height 0.
    ///
    /// # Panics
    /// If an epoch is shorter than 2 heights.
    pub fn new(schedule: LaneSchedule) -> LaneClock {
        assert!(schedule.epoch_heights >= 2, "a lane epoch has at least 2 heights");
        let halt_votes = std::collections::BTreeSet::new();
        LaneClock { schedule, height: 0, ticks: 0, halted: false, halted_until: 0, halts: 0, halt_votes }
    }

    /// The clock of a restarted network: the first epoch begins at the same height.
    pub(crate) fn restarted(&self) -> LaneClock {
        LaneClock { height: self.height, ..LaneClock::new(self.schedule) }
    }

    pub(crate) fn schedule(&self) -> LaneSchedule {
        self.schedule
    }

    /// The height that it shows.
    pub fn height(&self) -> u64 {
        self.height
    }

    /// Begins the next height. Returns whether a new epoch begins with it. An epoch whose committee is not `ready`
    /// does not begin: the previous one continues.
    pub fn advance(&mut self, ready: bool) -> bool {
        self.height += 1;
        self.halted = self.height < self.halted_until;
        let begins = (self.ticks + 1).is_multiple_of(self.schedule.epoch_heights);
        if self.halted || begins && !ready {
            return false;
        }
        self.ticks += 1;
        if begins {
            // The next committee starts a new vote.
            self.halt_votes.clear();
        }
        begins
    }

    /// The lane epoch.
    pub fn epoch(&self) -> HomeEpoch {
        self.ticks / self.schedule.epoch_heights
    }

    /// Remaining heights of the epoch, including this one, while the lane is not halted.
    pub fn heights_left(&self) -> u64 {
        self.schedule.epoch_heights - self.ticks % self.schedule.epoch_heights
    }

    /// Whether validators sign no payments at this height. A halt begins with the height after the one that decides it.
    pub fn is_halted(&self) -> bool {
        self.halted
    }

    /// The halt that the members vote on: the number of halts before it. It is part of what they sign, so that a vote
    /// counts only once.
    pub fn halt_round(&self) -> u64 {
        self.halts
    }

    /// Whether a member has voted in this round to halt the lane.
    pub(crate) fn has_vote(&self, validator: u8) -> bool {
        self.halt_votes.contains(&validator)
    }

    /// Counts a vote of a member of the present committee to halt the lane. q votes halt it for a fixed number of
    /// heights; votes of the next round renew it. Copies and votes of other rounds change nothing. Returns whether
    /// this vote halts the lane.
    pub fn vote_halt(&mut self, quorums: Quorums, validator: u8, round: u64) -> bool {
        if round != self.halts || usize::from(validator) >= quorums.validators || !self.halt_votes.insert(validator) {
            return false;
        }
        let halts = self.halt_votes.len() >= quorums.certificate;
        if halts {
            self.halt();
        }
        halts
    }

    /// Halts the lane from the next height on.
    pub fn halt(&mut self) {
        self.halts += 1;
        self.halt_votes.clear();
        self.halted_until = self.halted_until.max((self.height + 1).saturating_add(self.schedule.halt_heights));
    }

    /// Whether a case about an output of `home` may be opened now: until the middle of home+2.
    pub fn may_open(&self, home: HomeEpoch) -> bool {
        match HomePhase::of(home, self.epoch()) {
            HomePhase::Own | HomePhase::Next => true,
            HomePhase::Exit => self.ticks % self.schedule.epoch_heights < self.schedule.epoch_heights / 2,
            HomePhase::Registered | HomePhase::Ended => false,
        }
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        for number in [
            self.schedule.epoch_heights,
            self.schedule.halt_heights,
            self.height,
            self.ticks,
            self.halted_until,
            self.halts,
        ] {
            to.extend(number.to_le_bytes());
        }
        to.push(u8::from(self.halted));
        to.extend((self.halt_votes.len() as u16).to_le_bytes());
        to.extend(&self.halt_votes);
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<LaneClock, LaneRefusal> {
        let schedule = LaneSchedule { epoch_heights: reader.u64()?, halt_heights: reader.u64()? };
        if schedule.epoch_heights < 2 {
            return Err(LaneRefusal::Malformed("a lane epoch has at least 2 heights"));
        }
        let (height, ticks) = (reader.u64()?, reader.u64()?);
        let (halted_until, halts) = (reader.u64()?, reader.u64()?);
        let halted = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(LaneRefusal::Malformed("the lane is halted (1) or not (0)")),
        };
        let count = u16::from_le_bytes(reader.array()?);
        let votes = reader.bytes(count.into())?;
        if votes.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(LaneRefusal::Malformed("votes to halt do not ascend strictly"));
        }
        Ok(LaneClock {
            schedule,
            height,
            ticks,
            halted,
            halted_until,
            halts,
            halt_votes: votes.iter().copied().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> LaneClock {
        LaneClock::new(LaneSchedule { epoch_heights: 4, halt_heights: 3 })
    }

    #[test]
    fn each_phase_signs_what_the_protocol_says() {
        let table = |now| {
            let phase = HomePhase::of(5, now);
            [(5, false), (6, false), (5, true), (7, false), (6, true)].map(|(into, exit)| phase.signs(5, into, exit))
        };
        assert_eq!(table(4), [false; 5]);
        assert_eq!(table(5), [true, false, true, false, false]);
        assert_eq!(table(6), [false, true, true, false, true]);
        assert_eq!(table(7), [false, false, true, false, true]);
        assert_eq!(table(8), [false; 5]);
        assert_eq!(table(u64::MAX), [false; 5]);
        assert!(!HomePhase::of(u64::MAX, 0).signs(u64::MAX, 0, false), "no overflow");
    }

    #[test]
    fn every_signature_can_still_be_redeemed_in_the_epoch_after_the_last() {
        for home in [0, 7] {
            for now in home..home + 10 {
                let signs = HomePhase::of(home, now).signs(home, home, true);
                assert!(!signs || is_redeemable(home, now + 1));
                assert_eq!(is_redeemable(home, now), now <= home + REDEEM_EPOCHS);
            }
        }
        assert!(!is_redeemable(3, 2), "not before the committee exists");
    }

    #[test]
    fn a_halt_stops_lane_time_and_can_be_renewed() {
        let (mut clock, quorums) = (clock(), Quorums::new(4));
        for _ in 0..3 {
            clock.advance(true);
        }
        assert!(!clock.vote_halt(quorums, 0, 0) && !clock.vote_halt(quorums, 0, 0), "copies do not count");
        assert!(!clock.vote_halt(quorums, 1, 1), "a vote of another round");
        assert!(!clock.vote_halt(quorums, 4, 0), "a non-member");
        assert!(!clock.vote_halt(quorums, 1, 0) && !clock.is_halted());
        assert!(clock.vote_halt(quorums, 2, 0));
        let halted: Vec<bool> = (0..5)
            .map(|_| {
                clock.advance(true);
                clock.is_halted()
            })
            .collect();
        assert_eq!(halted, [true, true, true, false, false]);
        assert_eq!((clock.epoch(), clock.height()), (1, 8), "three heights did not count");
        clock.halt();
        clock.advance(true);
        for member in 0..3 {
            clock.vote_halt(quorums, member, 2);
        }
        let left = (0..10).take_while(|_| {
            clock.advance(true);
            clock.is_halted()
        });
        assert_eq!(left.count(), 3, "renewed for three more heights");
    }

    #[test]
    fn a_case_can_be_opened_until_the_middle_of_the_third_epoch() {
        let mut clock = clock();
        let mut open = vec![clock.may_open(0)];
        for _ in 0..14 {
            clock.advance(true);
            open.push(clock.may_open(0));
        }
        assert_eq!(open.iter().take_while(|open| **open).count(), 8 + 2);
        assert!(open[10..].iter().all(|open| !open));
        assert!(!clock.may_open(u64::MAX));
    }

    #[test]
    fn an_epoch_waits_until_its_committee_is_ready() {
        let mut clock = clock();
        let begins: Vec<bool> = (0..8).map(|height| clock.advance(height == 6)).collect();
        assert_eq!(begins.iter().position(|begins| *begins), Some(6));
        assert_eq!((clock.epoch(), clock.height(), clock.heights_left()), (1, 8, 3));
    }

    #[test]
    fn the_encoding_is_canonical() {
        let mut clock = clock();
        clock.advance(true);
        clock.vote_halt(Quorums::new(7), 3, 0);
        clock.vote_halt(Quorums::new(7), 1, 0);
        let mut bytes = Vec::new();
        clock.write(&mut bytes);
        assert_eq!(LaneClock::read(&mut Reader::new(&bytes)), Ok(clock));
        let last = bytes.len() - 1;
        bytes.swap(last, last - 1);
        assert!(LaneClock::read(&mut Reader::new(&bytes)).is_err());
    }
}
