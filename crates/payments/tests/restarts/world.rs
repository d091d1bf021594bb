//! The old network: what members sign, what the ledger knows, and what a snapshot has of it.

/// Outputs: *o* of Alice, backed from the start; *d*, a deposit of Bob at any time; *p*, which P pays to Bob.
pub const O: usize = 0;
pub const D: usize = 1;
pub const P: usize = 2;

/// Units of *o*, of *d*, and of what Carol has in the lane and never moves.
pub const UNITS: [u64; 2] = [3, 4];
pub const OTHERS: u64 = 5;
/// The outputs of the mixed payment: dust, and the rest.
pub const MIXED: [u64; 2] = [2, 5];

/// A payment, as a bit: Alice pays *o* to Bob's key, or to her account. Bob pays *p* and *d* together to keys, or *p*
/// to his account, or *d* to his account.
pub const PAY: u8 = 1;
pub const HOME: u8 = 2;
pub const MIX: u8 = 4;
pub const CASH: u8 = 8;
pub const EARLY: u8 = 16;
pub const PAYMENTS: [u8; 5] = [PAY, HOME, MIX, CASH, EARLY];

pub fn inputs(payment: u8) -> &'static [usize] {
    match payment {
        PAY | HOME => &[O],
        MIX => &[P, D],
        CASH => &[P],
        _ => &[D],
    }
}

/// Whether the payment's output is for an account of the ledger.
pub fn to_account(payment: u8) -> bool {
    [HOME, CASH, EARLY].contains(&payment)
}

/// n = 4 and f = 1: three correct members, and one that signs everything.
pub const CORRECT: usize = 3;
pub const QUORUM: usize = 3;

/// A correct member: its log, and what its operator has done with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Log {
    /// The payment that each output is reserved for.
    pub locks: [u8; 3],
    /// Payments whose certificates it has: it acknowledged them, or signed a payment of an output.
    pub certificates: u8,
    /// It bars the payments of *o* and signs nothing of them.
    pub barred: bool,
    /// It has been read for the restart. Then it is closed: it takes no record any more.
    pub read: bool,
    /// The certificates that were in it when it was read.
    pub read_certificates: u8,
    /// It was restored from a backup, without what it held.
    pub stale: bool,
    /// What the member had signed and its stale log lacks.
    pub lacks: u8,
}

/// What became of *o* on the ledger.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OFate {
    #[default]
    Unknown,
    By(u8),
    /// A verdict credited it to Alice.
    Credited,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Books {
    /// Bob has deposited *d*.
    pub deposited: bool,
    pub fate: OFate,
    /// Payments whose certificates are in blocks.
    pub known: u8,
    /// Of these, to accounts: the ones whose claims wait for the outflow limit, and the ones that are credited.
    pub queued: u8,
    pub credited: u8,
}

impl Books {
    /// Units of a payment to an account.
    pub fn amount(payment: u8) -> u64 {
        if payment == EARLY { UNITS[D] } else { UNITS[O] }
    }

    pub fn sum(mask: u8) -> u64 {
        PAYMENTS.iter().filter(|payment| mask & **payment != 0).map(|payment| Books::amount(*payment)).sum()
    }

    /// Deposits less what was credited. The genesis output of Dan was spent and redeemed long ago, in an epoch that the
    /// ledger has dropped: it added and took the same.
    pub fn escrow(&self) -> u64 {
        let deposits = OTHERS + UNITS[O] + if self.deposited { UNITS[D] } else { 0 };
        deposits - Books::sum(self.credited) - if self.fate == OFate::Credited { UNITS[O] } else { 0 }
    }
}
