//! What costly checks may cost.

use crate::LaneRefusal;

/// The cost of verifying an aggregated BLS signature, in verifications of ed25519 signatures.
pub const AGGREGATE_COST: u32 = 24;

/// The remaining number of costly checks: verifications of roots that are not cached, and reads of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckBudget(pub u32);

impl CheckBudget {
    pub(crate) fn spend(&mut self, checks: u32) -> Result<(), LaneRefusal> {
        self.0 = self.0.checked_sub(checks).ok_or(LaneRefusal::Busy)?;
        Ok(())
    }
}
