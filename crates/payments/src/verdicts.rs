//! The rules of views and late verdicts, as pure functions: what a view proves, what ends a case and when, and how
//! long a committee counts. The ledger and the exhaustive model (`tests/late_verdicts`) call the same functions.
//!
//! # A view proves what it claims
//!
//! A view names one payment or none. If it names one, it is valid only with that payment's certificate, which confirms
//! the payment at once, whether or not it is a candidate. Otherwise the ledger refuses the view, and it counts as
//! nothing: neither as empty, since a relay can strip a certificate off, nor as its member's only view, since the
//! original follows. Only a signed empty view is empty. A member without registered keys counts as an empty view, and
//! as a vote for something else.
//!
//! # What ends a case
//!
//! In this order: a confirmed payment; *freed*; *lapsed*, not before the epoch after the opening has ended; *expired*,
//! when the third epoch after the opening begins, or after a number of block heights. An expired case credits nothing
//! and voids nothing, its bars stay, and it is not opened again. A certificate still confirms its payment as long as
//! the ledger keeps the epoch.
//!
//! # How long a committee counts
//!
//! Committee c signs until c+2. An open case of home c or c−1 keeps its keys. If that case confirms a payment, the
//! committee signs exits of its outputs through the epoch after the verdict. The ledger keeps what it knows of the
//! epoch for one epoch more, and one predicate, [`CommitteeLife::is_kept`], answers for redemption, evidence, facts
//! about inputs, and keys: what is redeemable is known, and what is known is redeemable.
//!
//! # Rules 1 and 2 of the design, sentence by sentence
//!
//! | rule | where |
//! |---|---|
//! | a view that names a payment brings its certificate | [`ViewClaim::proven`]; layout in `bridge/operation.rs` |
//! | L from binding empty views, and not early | [`CaseFacts::end`], [`LaneTime::may_lapse`] |
//! | a member without keys is an empty view and a vote for something else | `resolve.rs`, `absent` |
//! | a vote for a payment other than the exit carries its owner's signature | `bridge/operation.rs`, `check_voted` |
//! | the certificate lies in the log before what relies on it | `validator.rs`, `rest_on` |
//! | a bit without its certificate: no view, no signature | `validator/cases.rs`, `bar`; `validator.rs`, `recover` |
//! | acknowledge only what fits into a view | `ShownCertificate::bytes` |
//! | who is shown the certificate of a barred candidate posts it | `validator.rs`, `note_shown`; `member`, `on_shown` |
//! | expiry: nothing credited or void, not reopened, listed | [`LaneTime::is_expired`]; `Resolver::expired` |
//! | only a confirmation lifts a bar | `validator/cases.rs`, `lift_bar` |
//! | proven outputs apart from backed ones; their exits | `Bridge::proven`; [`CommitteeLife::after`] |
//! | one predicate keeps an epoch | [`CommitteeLife::is_kept`] |
//! | all inputs of a stuck payment at once | `bridge/contest.rs`, `ContestClaim` |
//! | stake waits at most U block heights | `ledger`, `LaneBridge::stake_heights` |
//!
//! Where the code deviates, `resolve.rs` says why.
//!
//! *Homes that began before these rules* do not exist where they hold. They came with rules 5 of the ledger, and a
//! binary follows one number of rules, which the genesis names. A chain of older rules is refused by that number, from
//! its genesis and from a snapshot (`ledger`, `lane`: `a_lane_of_older_rules_is_refused_by_number`). So no switch by
//! epoch is needed. A log of a build between releases that has an acknowledgement without its certificate is damaged.
//!
//! ```text
//! case of home h   opening ≤ h+2   lapses from h+4   expires at h+5   exits ≤ h+5   redemption ≤ h+6
//! ```

use crate::{HomeEpoch, REDEEM_EPOCHS, SPEND_EPOCHS};

/// A case is opened at most this many epochs after the home of its output.
pub const OPEN_EPOCHS: u64 = SPEND_EPOCHS;
/// An output lapses at the earliest this many epochs after the epoch in which its case was opened.
pub const LAPSE_EPOCHS: u64 = 2;
/// A case expires when this many epochs have begun after the one in which it was opened.
pub const EXPIRY_EPOCHS: u64 = 3;
/// After a verdict that confirms a payment, the committees concerned sign exits for this many epochs more.
pub const EXIT_EPOCHS: u64 = 1;
/// An epoch is kept for this many epochs after the last one in which its committee signs.
pub const KEPT_EPOCHS: u64 = 1;
/// The last epoch in which a committee may sign, counted from its own.
pub const SIGN_EPOCHS_MAX: u64 = OPEN_EPOCHS + EXPIRY_EPOCHS;
/// The last epoch in which a certificate is redeemable, counted from its committee's.
pub const REDEEM_EPOCHS_MAX: u64 = SIGN_EPOCHS_MAX + KEPT_EPOCHS;
/// A log is kept for this many epochs after its own, at least 8 after its keys are destroyed where no case kept them.
/// It is evidence when the network restarts from an older snapshot. Older snapshots restart without what that home had.
pub const LOG_EPOCHS: u64 = SPEND_EPOCHS + 8;
/// Ports that a shard uses in turn, one for each home that may be alive at once. A home uses the port of the home this
/// many epochs before it.
pub const HOME_PORTS: u64 = 8;

// An output does not lapse before a whole epoch has passed, and can lapse at all.
const _: () = assert!(LAPSE_EPOCHS >= 2 && LAPSE_EPOCHS < EXPIRY_EPOCHS);
// The last verdict comes before the expiry, so that its exits end with the committee's last epoch.
const _: () = assert!(OPEN_EPOCHS + EXPIRY_EPOCHS - 1 + EXIT_EPOCHS <= SIGN_EPOCHS_MAX);
// Without a case nothing changes: redemption through c+3.
const _: () = assert!(SPEND_EPOCHS + KEPT_EPOCHS == REDEEM_EPOCHS);
// Logs outlast the epochs that the ledger keeps.
const _: () = assert!(LOG_EPOCHS > REDEEM_EPOCHS_MAX);
// All homes that may be kept, and the next one, have ports of their own.
const _: () = assert!(REDEEM_EPOCHS_MAX + 2 <= HOME_PORTS);

/// What a view claims, and what comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewClaim<P> {
    /// The member has acknowledged and accepted no payment of the output.
    Empty,
    /// The member has acknowledged or accepted this payment.
    Paid {
        /// The payment that the signed view names.
        payment: P,
        /// The payment whose certificate came with the view, if one came.
        certified: Option<P>,
    },
}

impl<P: PartialEq> ViewClaim<P> {
    /// The payment that the view confirms, or `None` if the view is empty.
    ///
    /// # Errors
    /// The view names a payment and does not bring its certificate. It counts as nothing.
    pub fn proven(self) -> Result<Option<P>, UnprovenView> {
        match self {
            ViewClaim::Empty => Ok(None),
            ViewClaim::Paid { payment, certified } if certified.as_ref() == Some(&payment) => Ok(Some(payment)),
            ViewClaim::Paid { .. } => Err(UnprovenView),
        }
    }
}

/// A view names a payment without that payment's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the view names a payment without its certificate: post it together with the certificate")]
pub struct UnprovenView;

/// A moment of the lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneTime {
    /// The lane epoch.
    pub epoch: HomeEpoch,
    /// The block height. Block heights pass also while lane time stands still.
    pub height: u64,
}

impl LaneTime {
    /// Whether the output of a case opened at this time may lapse in an epoch: the one after the opening has ended.
    pub fn may_lapse(&self, now: HomeEpoch) -> bool {
        now >= self.lapses_from()
    }

    /// The first epoch in which it may lapse.
    pub fn lapses_from(&self) -> HomeEpoch {
        self.epoch.saturating_add(LAPSE_EPOCHS)
    }

    /// The epoch and the block height with which a case opened at this time expires, whichever comes first.
    pub fn expiry(&self, heights_max: u64) -> LaneTime {
        LaneTime { epoch: self.epoch.saturating_add(EXPIRY_EPOCHS), height: self.height.saturating_add(heights_max) }
    }

    /// Whether a case opened at this time has expired.
    pub fn is_expired(&self, now: LaneTime, heights_max: u64) -> bool {
        let end = self.expiry(heights_max);
        now.epoch >= end.epoch || now.height >= end.height
    }
}

/// Statements of one committee, and how many of them bind it: n + f + 1 − q.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindingCount {
    /// Members that made the statement, and members without registered keys.
    pub members: usize,
    /// The number that binds.
    pub binding: usize,
}

impl BindingCount {
    /// Whether enough members made the statement.
    pub fn binds(&self) -> bool {
        self.members >= self.binding
    }
}

/// What the ledger knows of an open case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaseFacts<'a> {
    /// Whether a payment of the output stands.
    pub is_confirmed: bool,
    /// For each candidate that can still stand, the votes for something else; `None` until candidates are fixed.
    pub against: Option<&'a [BindingCount]>,
    /// Empty views, for each committee asked.
    pub empty: &'a [BindingCount],
    /// Whether the epoch after the opening has ended.
    pub may_lapse: bool,
    /// Whether the time of the case is over.
    pub is_expired: bool,
}

/// How a case ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaseEnd {
    /// A payment stands.
    Confirmed,
    /// No payment can be certified: the output is credited in full.
    Freed,
    /// No payment is settled or spent: the output is credited less a penalty, and candidates are void.
    Lapsed,
    /// Time is over and nothing is decided: nothing is credited and nothing is void.
    Expired,
}

impl CaseFacts<'_> {
    /// How the case ends now; `None` if it stays open.
    pub fn end(&self) -> Option<CaseEnd> {
        if self.is_confirmed {
            return Some(CaseEnd::Confirmed);
        }
        if let Some(against) = self.against {
            if against.iter().all(BindingCount::binds) {
                return Some(CaseEnd::Freed);
            }
            if self.may_lapse && self.empty.iter().all(BindingCount::binds) {
                return Some(CaseEnd::Lapsed);
            }
        }
        self.is_expired.then_some(CaseEnd::Expired)
    }
}

/// How long a committee counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitteeLife {
    /// The last epoch in which it signs, as far as it is known: later if a case is open.
    pub last: HomeEpoch,
    /// Whether a case of its own home or of the home before it is open.
    pub is_concerned: bool,
}

impl CommitteeLife {
    /// The life of a committee without cases.
    pub fn of(committee: HomeEpoch) -> CommitteeLife {
        CommitteeLife { last: committee.saturating_add(SPEND_EPOCHS), is_concerned: false }
    }

    /// The last epoch in which it signs after a case that concerned it has ended in epoch `now`.
    pub fn after(self, end: CaseEnd, now: HomeEpoch) -> HomeEpoch {
        let more = if end == CaseEnd::Confirmed { EXIT_EPOCHS } else { 0 };
        self.last.max(now.saturating_add(more))
    }

    /// Whether its members have their keys and sets.
    pub fn signs(self, now: HomeEpoch) -> bool {
        self.is_concerned || now <= self.last
    }

    /// Whether the ledger keeps the epoch: certificates are redeemed, evidence is accepted, and facts about its
    /// outputs and the keys of its committee are known.
    pub fn is_kept(self, now: HomeEpoch) -> bool {
        self.is_concerned || now <= self.last.saturating_add(KEPT_EPOCHS)
    }
}

#[cfg(test)]
mod tests;
