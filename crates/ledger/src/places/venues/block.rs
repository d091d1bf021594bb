//! A block at the venues, step by step.

use primitives::Address;
use primitives::venue::VenueOperation;

use super::Venues;
use super::edit::VenueEdit;
use super::evidence::{charge, convict};
use super::mistake::VenueMistake;
use super::payouts::{forget, pay_out};
use super::settle::{SettleEdit, settle_all};
use super::step::Step;

/// The steps of a block, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Settles,
    Accusations,
    Claims,
    Bonds,
    Deposits,
    Edits,
    Fences,
}

fn stage_of(operation: &VenueOperation) -> Stage {
    match operation {
        VenueOperation::Settle(_) => Stage::Settles,
        VenueOperation::Accuse(_) | VenueOperation::AccuseStep(_) => Stage::Accusations,
        VenueOperation::Claim(_) | VenueOperation::ClaimStep(_) => Stage::Claims,
        VenueOperation::Open { .. } | VenueOperation::Bond { .. } | VenueOperation::Unbond { .. } => Stage::Bonds,
        VenueOperation::Deposit { .. } => Stage::Deposits,
        VenueOperation::List { .. }
        | VenueOperation::ChangeOperator { .. }
        | VenueOperation::Authorize { .. }
        | VenueOperation::Revoke { .. }
        | VenueOperation::RaiseFloor { .. }
        | VenueOperation::Recall { .. }
        | VenueOperation::Collect { .. } => Stage::Edits,
        VenueOperation::Fence { .. } => Stage::Fences,
    }
}

/// Within the bonds, additions come before withdrawals.
fn is_withdrawal(operation: &VenueOperation) -> bool {
    matches!(operation, VenueOperation::Unbond { .. })
}

impl Venues {
    /// Applies the accepted operations of the next block, whose order does not matter.
    pub(super) fn apply_block(&mut self, time_ms: u64, edits: &[(Address, VenueEdit<'_>)], step: &mut Step<'_>) {
        // Block times rise; a block whose time does not is as late as the next millisecond.
        let time_ms = time_ms.max(self.horizon.time_ms().saturating_add(1));
        assert!(self.horizon.advance(time_ms), "the time rises");
        let mut edits: Vec<&(Address, VenueEdit<'_>)> = edits.iter().collect();
        edits.sort_by_key(|(sender, edit)| {
            (stage_of(edit.operation), is_withdrawal(edit.operation), *sender, edit.sequence)
        });
        let settles: Vec<SettleEdit<'_>> = edits.iter().filter_map(|edit| as_settle(edit)).collect();
        settle_all(self, &settles, step);
        for (sender, VenueEdit { operation, .. }) in edits {
            match operation {
                VenueOperation::Accuse(evidence) => convict(self, evidence, step),
                VenueOperation::Claim(claim) => charge(self, claim, step),
                VenueOperation::AccuseStep(evidence) => convict(self, evidence, step),
                VenueOperation::ClaimStep(claim) => charge(self, claim, step),
                VenueOperation::Fence { .. } if self.makes(VenueMistake::TwoFences) => {
                    self.edit(*sender, operation, step);
                    self.edit(*sender, operation, step);
                }
                other => self.edit(*sender, other, step),
            }
        }
        pay_out(self, step);
        forget(self);
    }
}

fn as_settle<'a>((sender, edit): &(Address, VenueEdit<'a>)) -> Option<SettleEdit<'a>> {
    match edit.operation {
        VenueOperation::Settle(settle) => Some(SettleEdit { sender: *sender, sequence: edit.sequence, settle }),
        _ => None,
    }
}
