//! The keys of an operator.

use primitives::venue::VenueOperator;
use primitives::{Address, SecretKey};

/// The secret keys of an operator.
#[derive(Clone)]
pub struct VenueKeys {
    /// The account that settles.
    pub account: Address,
    /// Signs settles for it.
    pub operator: SecretKey,
    /// Signs reports.
    pub report: SecretKey,
}

impl VenueKeys {
    /// The operator as the ledger knows it.
    pub(crate) fn stated(&self) -> VenueOperator {
        VenueOperator { account: self.account, report_key: self.report.public() }
    }
}
