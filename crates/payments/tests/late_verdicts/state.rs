//! What a state of the model is made of, and its canonical bytes.

use payments::Quorums;

/// Outputs: *a* and *b* of home 0; the first output of T, and its sibling.
pub const A: usize = 0;
pub const B: usize = 1;
pub const FIRST: usize = 2;
pub const SIBLING: usize = 3;
pub const OUTPUTS: usize = 4;
/// Outputs that can be contested or spent by a payment that is no exit.
pub const CONTESTABLE: usize = 3;

/// Payments: T; its rival Z; the child C, which spends the first output of T.
pub const T: usize = 0;
pub const Z: usize = 1;
pub const C: usize = 2;
pub const PAYMENTS: usize = 3;

/// A lock or a vote: nothing, payment p as p + 1, or the output's exit.
pub const EXIT: u8 = 4;

/// Claims to an output that are no payment: its exit; a verdict's credit.
pub const EXITED: u8 = 8;
pub const CREDITED: u8 = 16;

pub const COMMITTEES: usize = 3;
/// Correct members of a committee, at n = 6.
pub const CORRECT_MAX: usize = 5;

/// The space of one search.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: &'static str,
    /// Members of each committee; one of them is Byzantine.
    pub members: usize,
    /// Members of each committee that have no registered keys.
    pub unregistered: [usize; COMMITTEES],
    /// The home that T pays into: 0 or 1.
    pub into: usize,
    /// The home that the rival pays into; `None` without a rival.
    pub rival: Option<usize>,
    /// Whether T spends *a* and *b*.
    pub both: bool,
    /// Whether the first output of T is spent by a child, into the epoch after its home.
    pub child: bool,
    /// Outputs about which a case may be opened, one bit each.
    pub contested: u8,
    /// Epochs in which a case may be opened, one bit each.
    pub opens: u16,
    /// Whether block heights may pass while lane time stands still.
    pub stalls: bool,
    /// The last epoch.
    pub last: u8,
}

impl Scenario {
    pub fn quorums(&self) -> Quorums {
        Quorums::new(self.members)
    }

    /// Correct members with keys.
    pub fn correct(&self, committee: usize) -> usize {
        self.members - 1 - self.unregistered[committee]
    }

    pub fn payments(&self) -> impl Iterator<Item = usize> {
        [true, self.rival.is_some(), self.child].into_iter().enumerate().filter(|(_, exists)| *exists).map(|of| of.0)
    }

    /// The inputs of a payment. The rival spends *b* if T spends both.
    pub fn inputs(&self, payment: usize) -> &'static [usize] {
        match (payment, self.both) {
            (T, true) => &[A, B],
            (T, false) => &[A],
            (Z, true) => &[B],
            (Z, false) => &[A],
            _ => &[FIRST],
        }
    }

    pub fn spends(&self, payment: usize, output: usize) -> bool {
        self.inputs(payment).contains(&output)
    }

    pub fn spenders(&self, output: usize) -> impl Iterator<Item = usize> {
        self.payments().filter(move |payment| self.spends(*payment, output))
    }

    pub fn home_of(&self, output: usize) -> usize {
        if output >= FIRST { self.into } else { 0 }
    }

    pub fn home(&self, payment: usize) -> usize {
        self.home_of(self.inputs(payment)[0])
    }

    pub fn pays_into(&self, payment: usize) -> usize {
        match payment {
            T => self.into,
            Z => self.rival.unwrap_or(0),
            _ => self.into + 1,
        }
    }
}

/// A correct member of a committee, with what the ledger knows of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// What each output of its home is reserved for.
    pub locks: [u8; CONTESTABLE],
    /// Payments that it acknowledged, or an output of which it signed a payment of. One bit each, as below.
    pub accepted: u8,
    /// Accepted payments whose certificates its log does not have.
    pub unproven: u8,
    pub barred: u8,
    /// Cases in which its vote is committed.
    pub voted: u8,
    /// Cases in which its empty view is committed.
    pub empty: u8,
    /// Cases in which a view of it is committed that names T without a certificate: only in broken rules.
    pub named: u8,
}

/// What the ledger knows of an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fate {
    #[default]
    Unknown,
    By(u8),
    Freed,
    Lapsed,
    Void,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contest {
    pub open: bool,
    /// It was opened before, and is closed.
    pub closed: bool,
    pub expired: bool,
    /// The epoch of the opening.
    pub epoch: u8,
    pub fixed: bool,
    pub candidates: u8,
    /// The Byzantine member's vote.
    pub faulty_vote: u8,
    /// Committees whose Byzantine member posted an empty view, and those where it named T without a certificate.
    pub faulty_empty: u8,
    pub faulty_named: u8,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    pub now: u8,
    pub members: [[Member; CORRECT_MAX]; COMMITTEES],
    pub cases: [Contest; CONTESTABLE],
    pub fates: [Fate; OUTPUTS],
    /// Payments whose certificates the ledger knows, or which stand by a verdict.
    pub stands: u8,
    /// The last epoch in which each committee signs, as its open cases left it.
    pub last: [u8; COMMITTEES],
    /// Whether a certificate of the sibling's exit exists.
    pub exit: bool,
    pub past: Past,
}

/// What has happened, for the checks alone: the machine never reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Past {
    /// Payments that a quorum accepted at some time.
    pub settled: u8,
    /// The claims to each output that the ledger honoured, one bit each: a payment, [`EXITED`], [`CREDITED`].
    pub claims: [u8; OUTPUTS],
    /// It honoured one claim twice.
    pub twice: bool,
    /// Outputs that were freed.
    pub freed: u8,
    /// The epoch, counted from 1, in which T was confirmed while a case was open.
    pub confirmed: u8,
    /// An output lapsed before a whole epoch had passed.
    pub hasty: bool,
    /// A case expired although all correct members had posted.
    pub idle: bool,
    /// A certificate contradicted the ledger.
    pub alarm: bool,
}

impl State {
    pub fn start() -> State {
        let last = std::array::from_fn(|committee| payments::CommitteeLife::of(committee as u64).last as u8);
        State { last, ..State::default() }
    }

    pub fn correct(&self, scenario: &Scenario, committee: usize) -> &[Member] {
        &self.members[committee][..scenario.correct(committee)]
    }

    /// Sorts members: which of them did something changes nothing.
    pub fn canonical(mut self, scenario: &Scenario) -> State {
        for committee in 0..COMMITTEES {
            self.members[committee][..scenario.correct(committee)].sort_unstable();
        }
        self
    }

    /// A key of the canonical state: a cryptographic hash, so that two states never share one.
    pub fn key(&self, scenario: &Scenario) -> u128 {
        let mut bytes = [0; 6 * CORRECT_MAX * COMMITTEES + 64];
        let mut length = 0;
        let mut push = |more: &[u8]| {
            bytes[length..length + more.len()].copy_from_slice(more);
            length += more.len();
        };
        for committee in 0..COMMITTEES {
            for of in self.correct(scenario, committee) {
                push(&of.locks);
                push(&[of.accepted | of.unproven << 4, of.barred | of.voted << 4, of.empty | of.named << 4]);
            }
        }
        for case in &self.cases {
            let flags = [case.open, case.closed, case.expired, case.fixed];
            let flags = flags.iter().fold(0, |all, flag| all << 1 | u8::from(*flag));
            let views = case.faulty_empty | case.faulty_named << 4;
            push(&[flags, case.epoch, case.candidates, case.faulty_vote, views]);
        }
        push(&self.fates.map(|fate| match fate {
            Fate::Unknown => 0,
            Fate::By(payment) => payment + 1,
            Fate::Freed => 11,
            Fate::Lapsed => 12,
            Fate::Void => 13,
        }));
        let Past { settled, claims, twice, freed, confirmed, hasty, idle, alarm } = self.past;
        push(&self.last);
        push(&claims);
        push(&[self.now, self.stands, u8::from(self.exit), settled, freed, confirmed]);
        push(&[twice, hasty, idle, alarm].map(u8::from));
        let hash = blake3::hash(&bytes[..length]);
        u128::from_le_bytes(hash.as_bytes()[..16].try_into().expect("16 of 32 bytes"))
    }
}
