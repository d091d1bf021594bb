//! Coming rules, as validators approve them.

use borsh::{BorshDeserialize, BorshSerialize};

use crate::{Digest, Height};

/// Rules that a chain may come to follow. Approvals count together only if all of it is equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct Upgrade {
    /// The number of the rules.
    pub rules: u32,
    /// The digest of what a program means by the number: two programs that mean different things do not agree.
    pub manifest: Digest,
    /// The fewest heights from the agreement until the rules act.
    pub notice: Height,
}
