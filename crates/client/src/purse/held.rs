//! Money of a purse.

use payments::{Holding, HomeEpoch, PaymentSummary};
use primitives::PublicKey;

/// An output that the purse can or could spend.
#[derive(Clone, Debug)]
pub struct HeldOutput {
    /// The output, and what proves it.
    pub holding: Holding,
    /// Its home.
    pub home: HomeEpoch,
    /// The key that it belongs to.
    pub owner: PublicKey,
    /// The payment that created it; `None` for a deposit.
    pub payment: Option<(PaymentSummary, payments::PaymentCertificate)>,
    /// Whether a quorum has acknowledged that payment, or the ledger created the output.
    pub is_settled: bool,
    /// Whether the receipt came from another payer, not from an own payment.
    pub is_received: bool,
}
