//! The node and the constants of its chain.

use ledger::Asset;
use ledger::contracts::token_address;
use primitives::AssetId;
use serde::Serialize;
use utoipa::ToSchema;

/// The node in numbers.
#[derive(Debug, Serialize, ToSchema)]
pub struct NodeStatus {
    /// Version of this software.
    pub version: &'static str,
    /// The chain's number.
    pub chain: u64,
    /// Who decides blocks.
    pub engine: &'static str,
    /// Why no block can be decided, in words; nothing while enough validators are connected.
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
    /// Waiting transactions.
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

/// A state root and the height that it is of.
#[derive(Debug, Serialize, ToSchema)]
pub struct StateRoot {
    /// Height.
    pub height: u64,
    /// Root.
    pub root: String,
}

/// Waiting transactions.
#[derive(Debug, Serialize, ToSchema)]
pub struct MempoolStatus {
    /// How many wait.
    pub transactions: usize,
    /// How many may.
    pub limit: usize,
}

/// Constants of the chain and limits of this node.
#[derive(Debug, Serialize, ToSchema)]
pub struct LimitsBody {
    /// The chain's number, to be signed into every transaction.
    pub chain: u64,
    /// The identity of the network, for which every transaction is signed.
    pub network: String,
    /// Units of the fee asset that a transaction costs.
    pub fee: String,
    /// The asset that fees are paid in.
    pub fee_asset: String,
    /// The auctioneer's commission ε.
    pub epsilon: String,
    /// The band μ below the rate within which an offer may be left unfilled.
    pub mu: String,
    /// How far ahead of the highest used one a sequence number may be.
    pub sequence_window: u64,
    /// Largest request body.
    pub body_bytes: usize,
    /// Most transactions in one batch call.
    pub batch_transactions: usize,
    /// Most transactions in a block.
    pub block_transactions: usize,
    /// How long a transaction waits for a block at most, when there is room.
    pub block_interval_ms: u64,
    /// Most waiting transactions.
    pub mempool_transactions: usize,
    /// Most connections of the stream.
    pub stream_connections: usize,
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
    /// Decimal places that people see.
    pub decimals: u8,
    /// The account that issues it.
    pub issuer: String,
    /// Units of it that an offer sells, or asks, at least.
    pub least_units: String,
    /// Units in existence.
    pub issued: String,
    /// Its valuation in the last batch, if it had a price there.
    pub valuation: Option<String>,
    /// The address of its ERC-20 token, on a chain with contracts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

/// Assets as listed, with their tokens where the chain has contracts.
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

/// How the doors of a node stand.
#[derive(Debug, Serialize, ToSchema)]
pub struct DoorsBody {
    /// Where clients are answered.
    pub listen: String,
    /// Where probes are answered, too.
    pub probes: Option<String>,
    /// Whether clients speak TLS.
    pub tls: bool,
    /// Whether a proxy is said to stand before it.
    pub behind_proxy: bool,
    /// Names that it may be called by.
    pub hosts: Vec<String>,
    /// Origins whose pages may call it.
    pub origins: Vec<String>,
    /// Whether the operator has stopped the intake.
    pub draining: bool,
    /// Requests that are being served.
    pub requests: usize,
    /// Connections of the stream.
    pub streams: usize,
}
