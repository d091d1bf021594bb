//! What orders are sorted by on their way in: class, key, and how a queue puts both together.

use std::cmp::Ordering;

use crate::Nanos;

/// How a queue sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePolicy {
    /// By stamp, whatever the class: the FIFO twin, and the default.
    ByStamp,
    /// By (I_m, c, t).
    ByClass,
}

impl QueuePolicy {
    /// Whether the critical of two orders goes first.
    #[inline]
    pub(crate) fn is_first(self, critical: MergeKey, other: MergeKey) -> bool {
        match self {
            QueuePolicy::ByClass => critical.mid <= other.mid,
            QueuePolicy::ByStamp => {
                (critical.stamp, critical.source, critical.sub) <= (other.stamp, other.source, other.sub)
            }
        }
    }
}

/// The class of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OrderClass {
    /// Near the mid: may trade now.
    Critical,
    /// Waits in the book until the mid moves.
    Other,
}

impl OrderClass {
    /// Both, more urgent first.
    pub const ALL: [OrderClass; 2] = [OrderClass::Critical, OrderClass::Other];
}

/// What orders of one class are sorted by; as a watermark: no key below it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct MergeKey {
    /// Number of the mid-price, I_m.
    pub mid: u64,
    /// When the order was made, t.
    pub stamp: Nanos,
    /// Its gateway, which decides between equal stamps.
    pub source: u32,
    /// Place among restamped orders.
    pub sub: u32,
}

impl MergeKey {
    /// The key as two numbers, of which the first decides.
    #[inline]
    fn numbers(&self) -> (u128, u64) {
        let (mid, source) = (u128::from(self.mid), u64::from(self.source));
        (mid << 64 | u128::from(self.stamp), source << 32 | u64::from(self.sub))
    }

    /// Above every key.
    pub const END: MergeKey = MergeKey { mid: u64::MAX, stamp: u64::MAX, source: u32::MAX, sub: u32::MAX };

    /// Below every key of this mid made at `stamp` or later: what an idle gateway promises.
    pub fn at(mid: u64, stamp: Nanos) -> MergeKey {
        MergeKey { mid, stamp, source: 0, sub: 0 }
    }

    /// The lowest key above this one.
    pub fn above(self) -> MergeKey {
        MergeKey { sub: self.sub.saturating_add(1), ..self }
    }
}

impl Ord for MergeKey {
    fn cmp(&self, other: &MergeKey) -> Ordering {
        self.numbers().cmp(&other.numbers())
    }
}

impl PartialOrd for MergeKey {
    fn partial_cmp(&self, other: &MergeKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    /// A subtraction of 192 bits whose borrow is asked for: which of two streams is next cannot be predicted.
    #[inline]
    fn lt(&self, other: &MergeKey) -> bool {
        let ((high, low), (other_high, other_low)) = (self.numbers(), other.numbers());
        (high < other_high) | ((high == other_high) & (low < other_low))
    }
}

/// An order in sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequenced<T> {
    /// Its class.
    pub class: OrderClass,
    /// Its place.
    pub key: MergeKey,
    /// The key with which it came, if that was below the frontier.
    pub restamped: Option<MergeKey>,
    /// The order.
    pub item: T,
}
