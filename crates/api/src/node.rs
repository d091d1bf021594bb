//! The node and the constants of its chain.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{EthereumLimitsBody, LaneShardBody};

/// The status of the node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeStatus {
    /// Version of this software.
    pub version: Cow<'static, str>,
    /// The chain's number.
    pub chain: String,
    /// The engine that decides blocks.
    pub engine: Cow<'static, str>,
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
    /// The shards of the member of the payment lane that this node is; none in other nodes.
    #[serde(default)]
    pub lane_shards: Vec<LaneShardBody>,
    /// The committee's sealing key, or why there is none; null on chains that make none.
    #[serde(default)]
    pub sealing: Option<SealingStatus>,
}

/// The committee's sealing key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SealingStatus {
    /// The number of the key that is in force in the next block; null if there is none.
    pub in_force: Option<u64>,
    /// For how many heights it has been in force.
    pub age: Option<u64>,
    /// How many hold a share of it.
    pub holders: usize,
    /// Why there is no key, in words; null if there is one.
    pub missing: Option<String>,
}

/// A state root and its height.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StateRoot {
    /// Height.
    pub height: u64,
    /// Root.
    pub root: String,
}

/// Pending transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MempoolStatus {
    /// Their number.
    pub transactions: usize,
    /// Maximum number.
    pub limit: usize,
}

/// Constants of the chain and limits of this node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
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
    /// How many heights ahead an offer may end.
    pub life_max: u64,
    /// The most offers that end at one height; a block adds what it places.
    pub ends_max: u32,
    /// Maximum size of a request body, in bytes.
    pub body_bytes: usize,
    /// Requests that one address can have under way, if it shares the node with nobody; `RateLimit` of each answer says
    /// how many it may begin beside those.
    pub requests_of_one: usize,
    /// Bytes of request bodies that one address can have under way, likewise.
    pub body_bytes_of_one: usize,
    /// Requests of one address that may wait for a turn, of those that execute contracts or scan.
    pub waiting_of_one: usize,
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
    /// Stream connections that one address can have, if it shares the node with nobody.
    pub streams_of_one: usize,
    /// Maximum number of channels of a stream connection.
    pub stream_channels: usize,
    /// The most levels of a side in a channel of a book.
    pub stream_book_levels: usize,
    /// Maximum size of a client's message on the stream, in bytes: a longer one ends the connection with code 1009.
    pub stream_message_bytes: usize,
    /// How assets are listed on this chain; older nodes say nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listing: Option<ListingBody>,
    /// Limits of Ethereum's JSON-RPC, on a chain with contracts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ethereum: Option<EthereumLimitsBody>,
}

/// All assets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Assets)]
pub struct AssetsBody {
    /// By number.
    pub assets: Vec<AssetBody>,
}

/// An asset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
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
    /// How it was listed; an asset of the genesis has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed: Option<ListedAssetBody>,
    /// What its issuer controls in the hands of others, if anything: `freezable`, `admitted`, `recoverable` or
    /// `admitted_recoverable`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Cow<'static, str>>,
    /// The last height that it trades at, if it closes or is closed. Afterwards it is paid, burnt and brought home, and
    /// nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closes: Option<u64>,
}

/// An account as a holder of an asset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HolderBody {
    /// Height of the state.
    pub height: u64,
    /// What the issuer of the asset controls in the hands of others, as in `control` of the asset, or `open`.
    pub control: Cow<'static, str>,
    /// What may be done with the asset at the account: `open`, everything; `frozen` or `not_admitted`, nothing but
    /// bringing home what it has elsewhere.
    pub standing: Cow<'static, str>,
    /// The height at which the issuer changed this last; missing if it never said anything of the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<u64>,
}

/// How an asset was listed on the running chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = ListedAsset)]
pub struct ListedAssetBody {
    /// The height of the block that listed it.
    pub height: u64,
    /// What its issuer controls in the hands of others: `open`, nothing; `freezable`, `admitted`, `recoverable` or
    /// `admitted_recoverable`.
    pub control: Cow<'static, str>,
    /// The most units that may exist at one time.
    pub supply_max: String,
    /// The digest of a document that says what it is, in hexadecimal; zero for none.
    pub document: String,
}

/// How assets are listed on this chain, as it is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Listing)]
pub struct ListingBody {
    /// Who lists: `closed`, nobody; `priced`, whoever pays.
    pub policy: Cow<'static, str>,
    /// Fees that a listing in the next block names and pays.
    pub fees: String,
    /// Assets that are not closed.
    pub open: usize,
    /// The most assets that are open at one time.
    pub assets_max: u32,
    /// Heights from the announcement that an asset closes to the last one that it trades at.
    pub notice: u64,
}

/// The status of a node's doors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
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
