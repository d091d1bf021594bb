//! Ethereum transactions, as JSON.

use ledger::contracts::{EthereumLog, EthereumParts, EthereumReceipt, EthereumTransaction, EvmCalled};
use primitives::{Address, Height, TransactionId, to_hex};

use api::{
    EthereumBody, EthereumExecutedBody, EthereumLogBody, EthereumOutputBody, EthereumReceiptBody,
    EthereumTransactionBody,
};

/// The body of a pending transaction.
pub fn ethereum_pending(id: &TransactionId) -> EthereumBody {
    let hash = id.to_string();
    EthereumBody { hash, status: "pending".into(), transaction: None, receipt: None, receipts_root: None, proof: None }
}

/// The body of an executed transaction.
pub fn ethereum_committed(height: Height, receipt: &EthereumReceipt) -> EthereumBody {
    let pending = ethereum_pending(&receipt.id);
    EthereumBody { status: "committed".into(), receipt: Some(ethereum_receipt(height, receipt)), ..pending }
}

/// Decodes the parameters of a transaction; `None` if it does not decode.
pub fn ethereum_transaction(bytes: &[u8], sender: &Address) -> Option<EthereumTransactionBody> {
    let parts = EthereumTransaction::decode(bytes).ok()?.parts();
    Some(EthereumTransactionBody {
        kind: parts.kind,
        sender: sender.to_string(),
        to: parts.to.map(|to| to.to_string()),
        nonce: parts.nonce.to_string(),
        value: parts.value.to_string(),
        gas_limit: parts.gas_limit.to_string(),
        max_fee: parts.max_fee.to_string(),
        input: hex(&parts.input),
    })
}

/// The result of an execution, with at most `bytes_max` bytes of its output.
pub fn ethereum_output(id: &TransactionId, called: EvmCalled, bytes_max: usize) -> EthereumOutputBody {
    let output = &called.output[..called.output.len().min(bytes_max)];
    EthereumOutputBody {
        hash: id.to_string(),
        result: called.status.name().into(),
        output: hex(output),
        output_bytes: called.output.len(),
        halt: called.halt,
    }
}

/// The summary of a receipt, with the parameters of its transaction, if it has one.
pub fn ethereum_executed(receipt: &EthereumReceipt, parts: Option<EthereumParts>) -> EthereumExecutedBody {
    let selector = |parts: &EthereumParts| hex(&parts.input[..parts.input.len().min(4)]);
    EthereumExecutedBody {
        hash: receipt.id.to_string(),
        position: receipt.position,
        sender: receipt.sender.to_string(),
        to: parts.as_ref().and_then(|parts| parts.to).map(|to| to.to_string()),
        contract: receipt.contract.map(|contract| contract.to_string()),
        value: parts.as_ref().map_or_else(|| "0".into(), |parts| parts.value.to_string()),
        selector: parts.as_ref().map_or_else(|| "0x".into(), selector),
        result: receipt.status.name().into(),
        gas_used: receipt.gas_used.to_string(),
        logs: receipt.logs.len(),
    }
}

fn hex(bytes: &[u8]) -> String {
    format!("0x{}", to_hex(bytes))
}

fn ethereum_receipt(height: Height, receipt: &EthereumReceipt) -> EthereumReceiptBody {
    EthereumReceiptBody {
        height,
        position: receipt.position,
        sender: receipt.sender.to_string(),
        result: receipt.status.name().into(),
        gas_used: receipt.gas_used.to_string(),
        gas_price: receipt.gas_price.to_string(),
        contract: receipt.contract.map(|contract| contract.to_string()),
        logs: receipt.logs.iter().map(log).collect(),
    }
}

fn log(log: &EthereumLog) -> EthereumLogBody {
    EthereumLogBody {
        address: log.address.to_string(),
        topics: log.topics.iter().map(|topic| hex(topic)).collect(),
        data: hex(&log.data),
    }
}
