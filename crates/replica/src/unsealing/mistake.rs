//! Mistakes that simulations plant.

use strum::VariantArray;

/// Mistakes that simulations plant in unsealing: a check that never fails proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, VariantArray)]
pub enum UnsealMistake {
    /// Keys that somebody sends are taken as they are.
    KeysUnchecked,
    /// Shares that are known to be false stay among those that are combined.
    FalseKept,
    /// Who lacks shares does not ask for them.
    NeverAsks,
    /// Shares of those who sent false ones before are combined as soon as any others.
    DoubtForgotten,
}

impl UnsealMistake {
    /// All of them.
    pub const ALL: &[UnsealMistake] = UnsealMistake::VARIANTS;
}
