//! The table of methods: used to dispatch requests, and to generate the OpenRPC document.

use serde_json::{Value, json};

use super::accounts::{SEND, SENT};
use super::developer::DEVELOPER_METHODS;
use super::method::{Method, heavy, method};
use super::params::{Param, option, param};
use super::sync::{SEND_SYNC, SENT_SYNC};
use super::{accounts, blocks, calls, chain, filters, forks, logs, replays, simulate, sync, touched, traces, txpool};
use crate::roles::Role;

const ADDRESS: Param = param("address", "address");
const AT: Param = option("block", "blockNumberTagOrHash");
const BLOCK: Param = param("block", "blockNumberOrTag");
const HASH: Param = param("hash", "hash32");
const FULL: Param = option("fullTransactions", "boolean");
const INDEX: Param = param("index", "uint");
const CALL: Param = param("transaction", "call");
const STATE: Param = option("stateOverrides", "overrides");
const BLOCK_PARTS: Param = option("blockOverrides", "overrides");
const FILTER: Param = param("filter", "filter");
const FILTER_ID: Param = param("id", "string");

/// Every method that a request can name. `eth_subscribe` and `eth_unsubscribe` belong to WebSocket connections.
#[rustfmt::skip]
pub(super) const METHODS: &[Method] = &[
    method("web3_clientVersion", "Name and version of the node.", &[], "string", chain::client_version),
    method("web3_sha3", "Keccak-256 of bytes.", &[param("data", "bytes")], "hash32", chain::sha3),
    method("net_version", "The number of the chain, in decimal.", &[], "string", chain::net_version),
    method("net_listening", "Whether the node listens: it does.", &[], "boolean", chain::listening),
    method("net_peerCount", "The number of other validators that are connected.", &[], "uint", chain::peer_count),
    method("eth_chainId", "The number of the chain.", &[], "uint", chain::chain_id),
    method("eth_blockNumber", "The newest height.", &[], "uint", chain::block_number),
    method("eth_syncing", "False, or how far the node is behind.", &[], "syncing", chain::syncing),
    method("eth_accounts", "Accounts for which the node signs: none.", &[], "list", chain::accounts),
    method("eth_gasPrice", "A gas price that the next blocks accept.", &[], "uint", chain::gas_price),
    method("eth_maxPriorityFeePerGas", "The tip to offer: zero, since a tip does not buy a place in a block.", &[],
        "uint", chain::priority_fee),
    method("eth_blobBaseFee", "One: there are no blobs.", &[], "uint", chain::blob_base_fee),
    heavy(method("eth_feeHistory", "Base fees, gas usage and tips of up to 256 blocks.",
        &[param("blockCount", "uint"), param("newestBlock", "blockNumberOrTag"), option("percentiles", "list")],
        "object", chain::fee_history)),
    method("eth_getBalance", "The balance of an account in wei.", &[ADDRESS, AT], "uint", accounts::get_balance),
    method("eth_getTransactionCount", "The nonce of an account's next transaction.", &[ADDRESS, AT], "uint",
        accounts::get_transaction_count),
    method("eth_getCode", "The code of an account.", &[ADDRESS, AT], "bytes", accounts::get_code),
    method("eth_getStorageAt", "The value of a slot.", &[ADDRESS, param("slot", "uint256"), AT], "hash32",
        accounts::get_storage_at),
    heavy(method("eth_getProof",
        "An account and some of its slots, with Walras' own proofs under the newest state root.",
        &[ADDRESS, param("slots", "list"), AT], "object", accounts::get_proof)),
    heavy(method("eth_call", "The result of a call, without a transaction.", &[CALL, AT, STATE, BLOCK_PARTS],
        "bytes", calls::call)),
    heavy(method("eth_estimateGas", "The smallest gas limit with which a transaction succeeds.",
        &[CALL, AT, STATE, BLOCK_PARTS], "uint", calls::estimate_gas)),
    heavy(method("eth_createAccessList", "The addresses and slots that a call touches, and its gas with them.",
        &[CALL, AT, STATE], "object", touched::create_access_list)),
    Method { role: Role::Submit, ..method(SEND, "Sends a signed transaction of type 0, 1, 2 or 4.",
        SENT, "hash32", accounts::send_raw_transaction) },
    Method { role: Role::Submit, ..method(SEND_SYNC,
        "Sends a signed transaction and returns its receipt, or an error with code 4 if no block has it in time.",
        SENT_SYNC, "object", sync::send_raw_transaction_sync) },
    heavy(method("eth_simulateV1", "Simulates blocks of calls, each over what those before it wrote.",
        &[param("simulation", "simulation"), AT], "list", simulate::simulate)),
    method("eth_config", "The rules of contracts now, after the next fork, and after the last one.", &[],
        "object", forks::config),
    method("eth_getTransactionByHash", "A transaction, executed or pending here.", &[HASH], "object",
        blocks::get_transaction_by_hash),
    method("eth_getRawTransactionByHash", "The bytes of a transaction, executed or pending here.", &[HASH], "any",
        txpool::raw_transaction),
    method("eth_getTransactionByBlockNumberAndIndex", "A transaction of a block.", &[BLOCK, INDEX], "object",
        blocks::get_transaction_by_block_number_and_index),
    method("eth_getTransactionByBlockHashAndIndex", "A transaction of a block.", &[HASH, INDEX], "object",
        blocks::get_transaction_by_block_hash_and_index),
    method("eth_getTransactionReceipt", "The receipt of an executed transaction.", &[HASH], "object",
        blocks::get_transaction_receipt),
    heavy(method("eth_getBlockReceipts", "All receipts of a block.", &[BLOCK], "list", blocks::get_block_receipts)),
    method("eth_getBlockByNumber", "A block.", &[BLOCK, FULL], "object", blocks::get_block_by_number),
    method("eth_getBlockByHash", "A block.", &[HASH, FULL], "object", blocks::get_block_by_hash),
    method("eth_getBlockTransactionCountByNumber", "The number of executed transactions of a block.", &[BLOCK], "uint",
        blocks::get_block_transaction_count_by_number),
    method("eth_getBlockTransactionCountByHash", "The number of executed transactions of a block.", &[HASH], "uint",
        blocks::get_block_transaction_count_by_hash),
    heavy(method("eth_getLogs", "Logs of at most 10,000 heights, at most 10,000 logs.", &[FILTER], "list",
        logs::get_logs)),
    method("eth_newFilter", "Creates a filter that reports new logs.", &[FILTER], "string", filters::new_filter),
    method("eth_newBlockFilter", "Creates a filter that reports new blocks.", &[], "string", filters::new_block_filter),
    method("eth_newPendingTransactionFilter", "Creates a filter that reports transactions arriving at this node.", &[],
        "string", filters::new_pending_transaction_filter),
    method("eth_uninstallFilter", "Removes a filter.", &[FILTER_ID], "boolean", filters::uninstall_filter),
    heavy(method("eth_getFilterChanges", "Changes since the last request for this filter.", &[FILTER_ID], "list",
        filters::get_filter_changes)),
    heavy(method("eth_getFilterLogs", "All logs of a filter.", &[FILTER_ID], "list", filters::get_filter_logs)),
    heavy(method("debug_traceTransaction",
        "A trace of a transaction of the last 256 blocks: step logs, `callTracer`, `flatCallTracer` or `prestateTracer`.",
        &[HASH, option("options", "object")], "object", traces::trace_transaction)),
    heavy(method("debug_traceBlockByNumber", "The traces of all transactions of a block.",
        &[BLOCK, option("options", "object")], "list", traces::trace_block_by_number)),
    heavy(method("debug_traceBlockByHash", "The traces of all transactions of a block.",
        &[HASH, option("options", "object")], "list", traces::trace_block_by_hash)),
    heavy(method("trace_transaction", "The calls of a transaction of the last 256 blocks, as a list.", &[HASH], "list",
        replays::trace_transaction)),
    heavy(method("trace_block", "The calls of all transactions of a block, as a list.", &[BLOCK], "list",
        replays::trace_block)),
    heavy(method("trace_replayTransaction", "What a transaction returned, and its calls as a list.",
        &[HASH, param("kinds", "list")], "object", replays::replay_transaction)),
    heavy(method("trace_replayBlockTransactions", "What each transaction of a block returned, and its calls as a list.",
        &[BLOCK, param("kinds", "list")], "list", replays::replay_block)),
    heavy(method("txpool_status", "The number of pending transactions at this node, and of those above a gap.", &[],
        "object", txpool::status)),
    heavy(method("txpool_content", "The pending transactions at this node, by sender and nonce.", &[], "object",
        txpool::whole_content)),
    heavy(method("txpool_contentFrom", "The pending transactions of a sender at this node, by nonce.", &[ADDRESS],
        "object", txpool::content_from)),
    heavy(method("txpool_inspect", "The pending transactions at this node, in words.", &[], "object",
        txpool::inspect)),
    heavy(method("debug_traceCall", "A trace of a call.", &[CALL, AT, option("options", "object")], "object",
        traces::trace_call)),
];

/// The method with this name.
pub(super) fn find(name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|method| method.name == name)
}

/// The OpenRPC document of the interface; a copy is kept as `docs/openrpc.json`.
pub fn openrpc() -> Value {
    let schema = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let param =
        |param: &Param| json!({"name": param.name, "required": param.is_required, "schema": schema(param.schema)});
    let method = |method: &Method, summary: String| {
        json!({
            "name": method.name,
            "summary": summary,
            "paramStructure": "by-position",
            "params": method.params.iter().map(param).collect::<Vec<_>>(),
            "result": {"name": "result", "schema": schema(method.result)},
        })
    };
    let everywhere = METHODS.iter().map(|one| method(one, one.summary.into()));
    // Methods that also exist on other chains are in the document once.
    let own = DEVELOPER_METHODS.iter().filter(|one| find(one.name).is_none());
    let own = own.map(|one| method(one, format!("Only on a developers' chain. {}", one.summary)));
    let methods = everywhere.chain(own);
    let quantity = "^0x(0|[1-9a-f][0-9a-f]*)$";
    json!({
        "openrpc": "1.2.6",
        "info": {
            "title": "Walras: Ethereum JSON-RPC",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache-2.0"},
            "description": "Ethereum's JSON-RPC over HTTP and WebSocket. Over a WebSocket there are `eth_subscribe` \
                and `eth_unsubscribe` (newHeads, logs, newPendingTransactions) too. Methods of a developers' chain \
                (`walras demo --developer`) are unknown on every other one; there `anvil_`, `evm_` and `hardhat_` \
                before the same word mean the same.",
        },
        "methods": methods.collect::<Vec<_>>(),
        "components": {"schemas": {
            "address": {"type": "string", "pattern": "^0x[0-9a-fA-F]{40}$"},
            "hash32": {"type": "string", "pattern": "^0x[0-9a-f]{64}$"},
            "bytes": {"type": "string", "pattern": "^0x([0-9a-fA-F]{2})*$"},
            "uint": {"type": "string", "pattern": quantity},
            "uint256": {"type": "string", "pattern": "^0x[0-9a-fA-F]{0,64}$"},
            "string": {"type": "string"},
            "boolean": {"type": "boolean"},
            "integer": {"type": "integer"},
            "number": {"type": ["integer", "string"]},
            "any": {},
            "null": {"type": "null"},
            "list": {"type": "array"},
            "object": {"type": ["object", "null"]},
            "overrides": {"type": "object"},
            "simulation": {"type": "object", "properties": {
                "blockStateCalls": {"type": "array", "items": {"type": "object", "properties": {
                    "blockOverrides": schema("overrides"), "stateOverrides": schema("overrides"),
                    "calls": {"type": "array", "items": schema("call")},
                }}},
                "traceTransfers": schema("boolean"), "validation": schema("boolean"),
                "returnFullTransactions": schema("boolean"),
            }},
            "syncing": {"oneOf": [{"type": "boolean"}, {"type": "object"}]},
            "blockNumberOrTag": {"oneOf": [
                {"type": "string", "enum": ["earliest", "finalized", "safe", "latest", "pending"]},
                {"type": "string", "pattern": quantity},
            ]},
            "blockNumberTagOrHash": {"oneOf": [
                schema("blockNumberOrTag"),
                {"type": "object", "properties": {"blockNumber": schema("uint"), "blockHash": schema("hash32")}},
            ]},
            "call": {"type": "object", "properties": {
                "from": schema("address"), "to": schema("address"), "gas": schema("uint"),
                "gasPrice": schema("uint"), "maxFeePerGas": schema("uint"), "maxPriorityFeePerGas": schema("uint"),
                "value": schema("uint"), "input": schema("bytes"), "data": schema("bytes"), "nonce": schema("uint"),
                "accessList": schema("list"), "authorizationList": schema("list"), "chainId": schema("uint"),
            }},
            "filter": {"type": "object", "properties": {
                "fromBlock": schema("blockNumberOrTag"), "toBlock": schema("blockNumberOrTag"),
                "blockHash": schema("hash32"), "address": {"type": ["string", "array", "null"]},
                "topics": schema("list"), "fromLog": schema("uint"), "maxLogs": schema("uint"),
            }},
        }},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openrpc.json");

    /// `WALRAS_WRITE_OPENRPC=1` rewrites the document.
    #[test]
    fn the_document_is_what_the_table_says() {
        let expected = format!("{:#}\n", openrpc());
        if std::env::var_os("WALRAS_WRITE_OPENRPC").is_some() {
            std::fs::write(DOCUMENT, &expected).expect("writable");
        }
        let found = std::fs::read_to_string(DOCUMENT).expect("docs/openrpc.json is there");
        assert_eq!(found, expected, "write it anew: WALRAS_WRITE_OPENRPC=1 cargo test -p doors openrpc");
    }

    #[test]
    fn names_are_unique_and_schemas_are_there() {
        let document = openrpc();
        let schemas = document["components"]["schemas"].as_object().expect("schemas");
        for methods in [METHODS, DEVELOPER_METHODS] {
            let names: std::collections::BTreeSet<&str> = methods.iter().map(|method| method.name).collect();
            assert_eq!(names.len(), methods.len());
        }
        for method in METHODS.iter().chain(DEVELOPER_METHODS) {
            assert!(schemas.contains_key(method.result), "{}", method.name);
            assert!(method.params.iter().all(|param| schemas.contains_key(param.schema)), "{}", method.name);
            let required = method.params.iter().map(|param| param.is_required);
            assert!(required.rev().is_sorted(), "{}: what is required comes first", method.name);
        }
    }
}
