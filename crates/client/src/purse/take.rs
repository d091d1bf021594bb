//! Receipts of others' payments: what a purse checks before it takes one.

use payments::{FastReceipt, Holding, HomeEpoch, Recipient};

use super::error::ReceiptFault;
use super::folder::Purse;
use super::slip::{ProvedSlip, Slip};
use super::spend::is_spendable;

/// The receipt and the output of a slip, if it pays this purse. With `now`, the present lane epoch, its money must be
/// spendable now or later.
///
/// # Errors
/// [`ReceiptFault`].
pub fn checked<'a>(
    purse: &Purse,
    slip: &'a Slip,
    now: Option<HomeEpoch>,
) -> Result<(&'a FastReceipt, Holding), ReceiptFault> {
    let receipt = match slip {
        Slip::Receipt(receipt) => receipt,
        Slip::ToAccounts(..) => return Err(ReceiptFault::PaysAccounts),
        Slip::Deposit(_) => return Err(ReceiptFault::NoOutput),
    };
    let ProvedSlip::Output(holding) = slip.verify(&purse.network).map_err(ReceiptFault::Unproved)? else {
        return Err(ReceiptFault::NoOutput);
    };
    match holding.output.to {
        Recipient::Key(owner) if purse.keys.owns(&owner) => {}
        to => return Err(ReceiptFault::OtherOwner(to)),
    }
    let home = receipt.proof.summary.into;
    match now.filter(|now| *now >= home && !is_spendable(home, *now)) {
        Some(now) => Err(ReceiptFault::Late { home, now }),
        None => Ok((receipt, *holding)),
    }
}
