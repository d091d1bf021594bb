//! Values that can be incremented.

/// A value that can be incremented by [`crate::TransactionView::add`], which makes a value of the sum. Several values
/// may have the same number, as an absent one and zero do.
pub trait Number: Clone {
    /// As a number.
    fn to_number(&self) -> i128;
    /// From a number within the bounds given to `add`.
    fn from_number(number: i128) -> Self;
}
