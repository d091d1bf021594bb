//! Posts about the lane to the ledger.

use payments::BridgeOperation;
use primitives::{Operation, TransactionId};

use crate::wallet::report::{self, Fate};
use crate::wallet::send::Sender;

/// Posts an operation of the lane to the ledger. Returns its transaction if it was committed; otherwise prints what
/// happened.
pub(super) fn post(json: bool, sender: &Sender, operation: &BridgeOperation) -> anyhow::Result<Option<TransactionId>> {
    let signer = sender.signer()?;
    let (id, fate) = sender.submit(json, &signer, &Operation::Lane(operation.encode().into()))?;
    if let Fate::Committed(_) = fate {
        return Ok(Some(id));
    }
    report::print(&fate, json, &id, &signer.assets);
    Ok(None)
}
