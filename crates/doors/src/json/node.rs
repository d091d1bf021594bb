//! The node and the constants of its chain.

use ledger::Asset;
use ledger::contracts::token_address;
use primitives::AssetId;
use serde::Serialize;
use utoipa::ToSchema;

use super::EthereumLimitsBody;

/// The status of the node.
#[derive(Debug, Serialize, ToSchema)]
pub struct NodeStatus {
    /// Version of this software.
    pub version: &'static str,
    /// The chain's number.
    pub chain: String,
    /// The engine that decides blocks.
    pub engine: &'static str,
    /// Why no block can be decided, in words; null while enough validators are connected.
    pub stalled: Option<String>,
    /// Height of the last block.
    pub height: u64,
    /// Its digest.
    pub block: String,
    /// The proposer's clock at that block, milliseconds since 1970; 0 before the first.
    pub time_ms: u64,
    /// The newest state root.
    pub state: StateRoot,
    /// Accounts in the ledger.
    pub accounts: usize,
    /// Resting offers.
    pub offers: usize,
    /// Pending transactions.
    pub mempool: MempoolStatus,
    /// Time since start.
    pub uptime_ms: u64,
    /// Transactions that took effect, per second over the last minute.
    pub transactions_per_second: f64,
    /// Transactions that took effect since start.
    pub committed: u64,
    /// Transactions that a block's filter removed since start.
    pub refused: u64,
}

/// A state root and its height.
#[derive(Debug, Serialize, ToSchema)]
pub struct StateRoot {
    /// Height.
    pub height: u64,
    /// Root.
    pub root: String,
}

/// Pending transactions.
#[derive(Debug, Serialize, ToSchema)]
pub struct MempoolStatus {
    /// Their number.
    pub transactions: usize,
    /// Maximum number.
    pub limit: usize,
}

/// Constants of the chain and limits of this node.
#[derive(Debug, Serialize, ToSchema)]
pub struct LimitsBody {
    /// The chain's number, which every transaction signs.
    pub chain: String,
    /// The identity of the network, which every transaction signs.
    pub network: String,
    /// The fee of a transaction, in units of the fee asset.
    pub fee: String,
    /// The asset in which fees are paid.
    pub fee_asset: String,
    /// The auctioneer's commission ε.
    pub epsilon: String,
    /// The band μ below the rate within which an offer may be left unfilled.
    pub mu: String,
    /// Maximum distance of a sequence number above the highest used one.
    pub sequence_window: u64,
    /// How many heights ahead a transaction may end.
    pub until_max: u64,
    /// Maximum size of a request body, in bytes.
    pub body_bytes: usize,
    /// Maximum number of transactions in one batch call.
    pub batch_transactions: usize,
    /// Maximum number of transactions in a block.
    pub block_transactions: usize,
    /// Maximum time that a transaction waits for a block, when there is room.
    pub block_interval_ms: u64,
    /// Maximum number of pending transactions.
    pub mempool_transactions: usize,
    /// Maximum number of stream connections.
    pub stream_connections: usize,
    /// Maximum number of channels of a stream connection.
    pub stream_channels: usize,
    /// Maximum size of a client's message on the stream, in bytes: a longer one ends the connection with code 1009.
    pub stream_message_bytes: usize,
    /// Limits of Ethereum's JSON-RPC, on a chain with contracts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ethereum: Option<EthereumLimitsBody>,
}

/// All assets.
#[derive(Debug, Serialize, ToSchema)]
pub struct Assets {
    /// By number.
    pub assets: Vec<AssetBody>,
}

/// An asset.
#[derive(Debug, Serialize, ToSchema)]
pub struct AssetBody {
    /// Its number.
    pub asset: u32,
    /// Its symbol.
    pub symbol: String,
    /// Decimal places shown to people.
    pub decimals: u8,
    /// The account that issues it.
    pub issuer: String,
    /// Minimum units of it that an offer sells or asks for.
    pub least_units: String,
    /// Units in existence.
    pub issued: String,
    /// Its valuation in the last batch, if it had a price there.
    pub valuation: Option<String>,
    /// The address of its ERC-20 token, on a chain with contracts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// Assets as listed, with their tokens if the chain has contracts.
pub fn assets(assets: &[Asset], has_contracts: bool) -> Assets {
    let body = |(number, asset): (usize, &Asset)| AssetBody {
        asset: number as u32,
        symbol: asset.symbol.clone(),
        decimals: asset.decimals,
        issuer: asset.issuer.to_string(),
        least_units: asset.least_units.to_string(),
        issued: asset.issued.to_string(),
        valuation: asset.valuation.map(|valuation| valuation.to_string()),
        token: has_contracts.then(|| token_address(AssetId(number as u32)).to_string()),
    };
    Assets { assets: assets.iter().enumerate().map(body).collect() }
}

/// The status of a node's doors.
#[derive(Debug, Serialize, ToSchema)]
pub struct DoorsBody {
    /// The address for clients.
    pub listen: String,
    /// An additional address for probes.
    pub probes: Option<String>,
    /// Whether clients speak TLS.
    pub tls: bool,
    /// Whether a proxy is configured in front of it.
    pub behind_proxy: bool,
    /// Host names that it accepts.
    pub hosts: Vec<String>,
    /// Origins whose pages may call it.
    pub origins: Vec<String>,
    /// Whether the operator has stopped the intake.
    pub draining: bool,
    /// Number of requests being served.
    pub requests: usize,
    /// Number of stream connections.
    pub streams: usize,
}
