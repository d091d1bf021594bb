//! Since which rules operations exist.

use crate::control::RULES_OF_CONTROLS;
use crate::duty::RULES_OF_SEALS;
use crate::envelope::RULES_OF_ENVELOPES;
use crate::keys::RULES_OF_KEYS;
use crate::listing::RULES_OF_LISTINGS;
use crate::proposal::{RULES_OF_LANE_TERMS, RULES_OF_PROPOSALS};
use crate::{Operation, ProposedChange, SessionOperation};

impl Operation {
    /// The first rules that have it; 0 if all have it. Before them no ledger counts it, and no validator votes for a
    /// sub-block with it, since older programs cannot decode it.
    pub fn since_rules(&self) -> u32 {
        match self {
            Operation::PayReferenced { .. } | Operation::IssueReferenced { .. } => 12,
            Operation::SetKeys(_)
            | Operation::RecoverKeys(_)
            | Operation::CompleteKeys { .. }
            | Operation::SetReceiving { .. } => RULES_OF_KEYS,
            Operation::ListAsset(listing) if listing.control.freezes() => RULES_OF_CONTROLS,
            Operation::ListAsset(_) | Operation::CloseAsset { .. } => RULES_OF_LISTINGS,
            Operation::Propose(change) => match &**change {
                ProposedChange::List(listing) if listing.control.freezes() => RULES_OF_CONTROLS,
                ProposedChange::Lane(_) => RULES_OF_LANE_TERMS,
                _ => RULES_OF_PROPOSALS,
            },
            Operation::Vote { .. } => RULES_OF_PROPOSALS,
            Operation::SetHolder { .. } | Operation::Recover(_) => RULES_OF_CONTROLS,
            Operation::SealDuty { .. } => RULES_OF_SEALS,
            Operation::Sealed(_) => RULES_OF_ENVELOPES,
            Operation::Session(operation) => match &**operation {
                SessionOperation::Authorize { terms, .. } => terms.scope.since_rules(),
                _ => 0,
            },
            Operation::Venue(operation) => operation.since_rules(),
            _ => 0,
        }
    }
}
