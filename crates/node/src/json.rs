//! What the interface says, as JSON: amounts and prices are exact decimal strings, ids are hexadecimal.

use std::collections::BTreeMap;

use crate::candles::Candle;
use ledger::{Asset, Ledger, Outcome, Pair, Refusal, Why};
use primitives::{Amount, AssetId, Operation, Price};
use serde::Serialize;
use utoipa::ToSchema;

use crate::views::{BatchSummary, BlockSummary};

mod committees;

pub use committees::{
    CertificateBody, CommitteeBody, HandoverBody, HandoversBody, MemberBody, UnbondingBody, ValidatorBody,
    ValidatorsBody, ValidatorsProofBody, validators,
};

/// An error: what is wrong, and a code that stays.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorText,
}

/// Code and sentence of an error.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ErrorText {
    /// Stable code, such as `overdraft`.
    #[schema(example = "overdraft")]
    pub code: &'static str,
    /// A sentence for people: what is wrong, and the remedy.
    pub message: String,
}

impl From<Refusal> for ErrorText {
    fn from(refusal: Refusal) -> ErrorText {
        ErrorText { code: refusal.code(), message: refusal.to_string() }
    }
}

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
pub struct Limits {
    /// The chain's number, to be signed into every transaction.
    pub chain: u64,
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
}

/// An account.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AccountBody {
    /// Its address.
    pub address: String,
    /// Height of the state that was read.
    pub height: u64,
    /// The key it registered, if it ever did.
    pub key: Option<String>,
    /// Its sequence numbers.
    pub sequence: SequenceBody,
    /// What it holds.
    pub balances: Vec<BalanceBody>,
}

/// Sequence numbers of an account.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SequenceBody {
    /// The highest that is committed.
    pub highest: u64,
    /// One that is free now, waiting transactions considered.
    pub next: u64,
}

/// Units of one asset that an account has.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BalanceBody {
    /// Symbol.
    pub asset: String,
    /// Units that it can spend.
    pub available: String,
    /// Units locked in its offers.
    pub locked: String,
}

/// Resting offers of an account.
#[derive(Debug, Serialize, ToSchema)]
pub struct Offers {
    /// Height of the state that was read.
    pub height: u64,
    /// By id.
    pub offers: Vec<OfferBody>,
    /// Whether there are more than were asked for.
    pub more: bool,
}

/// A resting offer.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct OfferBody {
    /// Symbol sold.
    pub sell: String,
    /// Symbol bought.
    pub buy: String,
    /// Limit price: units bought per unit sold, at least.
    pub limit: String,
    /// Id: the sequence number of the transaction that made it.
    pub id: u64,
    /// Units still for sale.
    pub amount: String,
}

/// Resting offers of one ordered pair, in order of execution.
#[derive(Debug, Serialize, ToSchema)]
pub struct RestingOffers {
    /// Height of the state that was read.
    pub height: u64,
    /// By limit, account and id.
    pub offers: Vec<RestingOffer>,
    /// Whether there are more in the range.
    pub more: bool,
}

/// A resting offer and its owner.
#[derive(Debug, Serialize, ToSchema)]
pub struct RestingOffer {
    /// Who made it.
    pub account: String,
    /// The offer.
    #[serde(flatten)]
    pub offer: OfferBody,
}

/// Whether a block changed an account.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModifiedBody {
    /// Height of the block.
    pub height: u64,
    /// The account.
    pub address: String,
    /// Whether it did.
    pub changed: bool,
    /// Root of the block's receipts.
    pub receipts_root: String,
    /// Hexadecimal; `ModifiedProof` of the ledger's documentation.
    pub proof: String,
}

/// All markets.
#[derive(Debug, Serialize, ToSchema)]
pub struct Markets {
    /// Height of the state that was read.
    pub height: u64,
    /// Pairs with offers or trades, in the order of their assets.
    pub markets: Vec<Market>,
}

/// An unordered pair of assets.
#[derive(Debug, Serialize, ToSchema)]
pub struct Market {
    /// `BASE/QUOTE`.
    pub market: String,
    /// The asset that is priced.
    pub base: String,
    /// The asset that it is priced in.
    pub quote: String,
    /// The price at which it last traded, quote per base; nothing if it never has.
    pub price: Option<String>,
    /// The height at which it last traded.
    pub price_height: Option<u64>,
    /// What the latest valuations say, where both sides have offers. Nobody traded at it.
    pub indicative: Option<String>,
    /// Base units that changed hands in the last batch.
    pub base_volume: String,
    /// Quote units that changed hands in the last batch.
    pub quote_volume: String,
    /// Resting offers, both sides.
    pub offers: usize,
    /// Lowest limit of those who sell the base.
    pub best_sell: Option<String>,
    /// Highest price that those who sell the quote accept.
    pub best_buy: Option<String>,
}

/// The resting offers of a market, by price.
#[derive(Debug, Serialize, ToSchema)]
pub struct BookBody {
    /// Height of the state that was read.
    pub height: u64,
    /// `BASE/QUOTE`.
    pub market: String,
    /// The price at which it last traded; nothing if it never has.
    pub price: Option<String>,
    /// The height at which it last traded.
    pub price_height: Option<u64>,
    /// What the latest valuations say, where both sides have offers. Nobody traded at it.
    pub indicative: Option<String>,
    /// Offers of the base, cheapest first.
    pub sells: Vec<Level>,
    /// Offers of the quote, highest price first.
    pub buys: Vec<Level>,
}

/// Offers at one price.
#[derive(Debug, Serialize, ToSchema)]
pub struct Level {
    /// Quote per base.
    pub price: String,
    /// Base units, rounded down.
    pub amount: String,
    /// Number of offers.
    pub offers: usize,
}

/// Supply and demand of a market in the last batch, before it traded.
#[derive(Debug, Serialize, ToSchema)]
pub struct Curves {
    /// Height of the batch.
    pub height: u64,
    /// `BASE/QUOTE`.
    pub market: String,
    /// Batch price.
    pub price: String,
    /// Base units offered at limits up to each price, rising.
    pub supply: Vec<CurvePoint>,
    /// Base units that offers of the quote would take at each price, falling.
    pub demand: Vec<CurvePoint>,
    /// Base units sold for the quote.
    pub sold: String,
    /// Base units bought with the quote.
    pub bought: String,
}

/// A point of a curve.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct CurvePoint {
    /// Quote per base.
    pub price: String,
    /// Base units.
    pub amount: String,
}

/// A market's price over time: the batches in which it traded.
#[derive(Debug, Serialize, ToSchema)]
pub struct History {
    /// `BASE/QUOTE`.
    pub market: String,
    /// Oldest first.
    pub points: Vec<HistoryPoint>,
}

/// One batch of a market.
#[derive(Debug, Serialize, ToSchema)]
pub struct HistoryPoint {
    /// Height.
    pub height: u64,
    /// The proposer's clock.
    pub time_ms: u64,
    /// Quote per base.
    pub price: String,
    /// Base units that changed hands.
    pub base_volume: String,
}

/// A market's candles.
#[derive(Debug, Serialize, ToSchema)]
pub struct CandlesBody {
    /// `BASE/QUOTE`.
    pub market: String,
    /// `1m`, `5m`, `15m`, `1h`, `4h` or `1d`.
    pub interval: &'static str,
    /// Oldest first; an interval without a trade has none.
    pub candles: Vec<CandleBody>,
}

/// What a market did in one interval, at batch prices.
#[derive(Debug, Serialize, ToSchema)]
pub struct CandleBody {
    /// Its beginning, milliseconds since 1970.
    pub time_ms: u64,
    /// First price, quote per base.
    pub open: String,
    /// Highest price.
    pub high: String,
    /// Lowest price.
    pub low: String,
    /// Last price.
    pub close: String,
    /// Base units that changed hands.
    pub base_volume: String,
    /// Quote units that did.
    pub quote_volume: String,
    /// Batches in which the market traded.
    pub batches: u32,
}

impl From<&Candle> for CandleBody {
    fn from(candle: &Candle) -> CandleBody {
        CandleBody {
            time_ms: candle.time_ms,
            open: rounded(candle.open),
            high: rounded(candle.high),
            low: rounded(candle.low),
            close: rounded(candle.close),
            base_volume: candle.base_volume.to_string(),
            quote_volume: candle.quote_volume.to_string(),
            batches: candle.batches,
        }
    }
}

/// Recent blocks.
#[derive(Debug, Serialize, ToSchema)]
pub struct Blocks {
    /// Newest first.
    pub blocks: Vec<BlockBody>,
}

/// A block in short.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BlockBody {
    /// Height.
    pub height: u64,
    /// Digest.
    pub block: String,
    /// Digest of the block below.
    pub parent: String,
    /// The proposer's clock, milliseconds since 1970.
    pub time_ms: u64,
    /// Validators whose sub-blocks are in the block, by index.
    pub proposers: Vec<u32>,
    /// Transactions.
    pub transactions: usize,
    /// Transactions that took effect.
    pub applied: usize,
    /// Transactions that the filter removed.
    pub refused: usize,
    /// Offers that executed.
    pub fills: usize,
    /// Pairs that traded.
    pub pairs: usize,
    /// Whether every offer beyond the band was filled.
    pub full: bool,
    /// Root of the receipts.
    pub receipts_root: String,
    /// Root of the state after the block, once known.
    pub state_root: Option<String>,
    /// Milliseconds of each stage.
    pub stages_ms: BTreeMap<&'static str, f64>,
}

/// A block with what became of its transactions.
#[derive(Debug, Serialize, ToSchema)]
pub struct BlockDetail {
    /// The block in short.
    #[serde(flatten)]
    pub block: BlockBody,
    /// Outcomes in the order of the block.
    pub outcomes: Vec<TransactionOutcome>,
    /// Whether there are more than were asked for.
    pub more: bool,
}

/// What became of one transaction.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TransactionOutcome {
    /// Id.
    pub id: String,
    /// The account that acted.
    pub account: String,
    /// Its number for this transaction.
    pub sequence: u64,
    /// What it asked for.
    pub operation: OperationBody,
    /// Outcome.
    pub outcome: OutcomeBody,
}

/// What a transaction asks for.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OperationBody {
    /// Registers an account, or rotates the own key.
    CreateAccount {
        /// The account.
        account: String,
        /// The key that controls it from the next block on.
        key: String,
    },
    /// Offers an asset for another.
    CreateOffer {
        /// Symbol sold.
        sell: String,
        /// Symbol bought.
        buy: String,
        /// Units to sell at most.
        amount: String,
        /// Units bought per unit sold, at least.
        limit: String,
    },
    /// Takes an offer back.
    CancelOffer {
        /// Symbol sold.
        sell: String,
        /// Symbol bought.
        buy: String,
        /// Its limit.
        limit: String,
        /// Its id.
        offer: u64,
    },
    /// Moves units to another account.
    Pay {
        /// Receiving account.
        to: String,
        /// Symbol.
        asset: String,
        /// Units.
        amount: String,
    },
    /// Creates units.
    Issue {
        /// Receiving account.
        to: String,
        /// Symbol.
        asset: String,
        /// Units.
        amount: String,
    },
    /// Destroys units.
    Burn {
        /// Symbol.
        asset: String,
        /// Units.
        amount: String,
    },
    /// Registers a validator, adds to its stake, or changes its key or address.
    Stake {
        /// Units of the first asset that are added.
        units: String,
        /// The validator's key.
        key: String,
        /// Host and port.
        address: String,
    },
    /// Takes units out of the own stake.
    Unstake {
        /// Units of the first asset.
        units: String,
    },
    /// Shows that a validator contradicted itself.
    Accuse {
        /// The epoch of its committee.
        epoch: u64,
        /// Its index in the committee.
        validator: u8,
        /// The height that it made two statements about.
        height: u64,
        /// `proposals` or `commits`; of rounds, `round_votes` or `round_proposals`.
        statements: &'static str,
    },
}

/// An outcome.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "result", rename_all = "snake_case")]
pub enum OutcomeBody {
    /// It took effect.
    Applied,
    /// It placed an offer.
    Offered {
        /// Units sold in this block's batch.
        sold: String,
        /// Units received.
        bought: String,
        /// Units that rest.
        left: String,
        /// Units that went back to the account, because they are too few for an offer.
        returned: String,
        /// Why: `filled`, `part`, `at_the_margin`, `above_the_rate`, `rounding` or `not_taken`.
        why: &'static str,
    },
    /// It had no effect.
    Refused {
        /// Stable code.
        code: &'static str,
        /// A sentence.
        message: String,
    },
}

impl From<&Outcome> for OutcomeBody {
    fn from(outcome: &Outcome) -> OutcomeBody {
        match outcome {
            Outcome::Applied => OutcomeBody::Applied,
            Outcome::Offered(met) => OutcomeBody::Offered {
                sold: met.sold.to_string(),
                bought: met.bought.to_string(),
                left: met.left.to_string(),
                returned: met.returned.to_string(),
                why: match met.why {
                    Why::Filled => "filled",
                    Why::Part => "part",
                    Why::AtTheMargin => "at_the_margin",
                    Why::AboveTheRate => "above_the_rate",
                    Why::Rounding => "rounding",
                    Why::NotTaken => "not_taken",
                },
            },
            Outcome::Refused(refusal) => OutcomeBody::Refused { code: refusal.code(), message: refusal.to_string() },
        }
    }
}

/// A batch.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct BatchBody {
    /// Height of its block.
    pub height: u64,
    /// The proposer's clock.
    pub time_ms: u64,
    /// Whether every offer beyond the band was filled.
    pub full: bool,
    /// Valuations by symbol.
    pub valuations: BTreeMap<String, String>,
    /// Pairs that traded.
    pub trades: Vec<TradeBody>,
    /// Units burnt by symbol.
    pub burnt: BTreeMap<String, String>,
    /// What the solver said, for batches since start.
    pub solver: Option<SolverBody>,
}

/// What one ordered pair traded.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct TradeBody {
    /// Symbol sold.
    pub sell: String,
    /// Symbol bought.
    pub buy: String,
    /// Units sold.
    pub sold: String,
    /// Units paid out.
    pub bought: String,
}

/// How the prices were found.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SolverBody {
    /// `newton` or `tatonnement`.
    pub name: &'static str,
    /// Steps.
    pub iterations: u32,
    /// Evaluations of the demand of the whole book.
    pub demand_queries: u32,
    /// Utility left on the table over utility gained.
    pub unrealized_utility_ratio: f64,
}

/// Where a transaction is.
#[derive(Debug, Serialize, ToSchema)]
pub struct TransactionBody {
    /// Id.
    pub id: String,
    /// `pending` or `committed`.
    pub status: &'static str,
    /// Height of its block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub height: Option<u64>,
    /// What became of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeBody>,
    /// The block's receipts root, if a proof was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipts_root: Option<String>,
    /// The proof of the receipt, if asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// Answers to a batch call, in order.
#[derive(Debug, Serialize, ToSchema)]
pub struct Results {
    /// One for each transaction.
    pub results: Vec<ResultBody>,
}

/// What a transaction of a batch call is answered.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum ResultBody {
    /// It waits, or is committed.
    Taken(TransactionBody),
    /// It is refused.
    Error(ErrorBody),
}

/// An account with a proof.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccountProofBody {
    /// Height of the root.
    pub height: u64,
    /// State root.
    pub root: String,
    /// The account; null if it is proved not to exist.
    pub account: Option<AccountBody>,
    /// The proof, in the ledger's encoding.
    pub proof: String,
}

/// An offer with a proof.
#[derive(Debug, Serialize, ToSchema)]
pub struct OfferProofBody {
    /// Height of the root.
    pub height: u64,
    /// State root.
    pub root: String,
    /// Units for sale; null if no such offer is proved to rest.
    pub amount: Option<String>,
    /// The proof, in the ledger's encoding.
    pub proof: String,
}

/// Symbols by number, for writing JSON.
pub struct Symbols(Vec<String>);

impl Symbols {
    /// Of a ledger.
    pub fn of(ledger: &Ledger) -> Symbols {
        Symbols(ledger.assets().iter().map(|asset| asset.symbol.clone()).collect())
    }

    /// The symbol of an asset.
    pub fn get(&self, asset: AssetId) -> &str {
        &self.0[asset.0 as usize]
    }

    /// The symbol of an asset, or its number if there is no such asset: refused transactions may name any.
    fn name(&self, asset: AssetId) -> String {
        self.0.get(asset.0 as usize).cloned().unwrap_or_else(|| asset.to_string())
    }

    /// An operation.
    pub fn operation(&self, operation: &Operation) -> OperationBody {
        match operation {
            &Operation::CreateAccount { account, key } => {
                OperationBody::CreateAccount { account: account.to_string(), key: key.to_string() }
            }
            &Operation::CreateOffer { sell, buy, amount, limit } => OperationBody::CreateOffer {
                sell: self.name(sell),
                buy: self.name(buy),
                amount: amount.to_string(),
                limit: limit.to_string(),
            },
            &Operation::CancelOffer { sell, buy, limit, offer } => OperationBody::CancelOffer {
                sell: self.name(sell),
                buy: self.name(buy),
                limit: limit.to_string(),
                offer,
            },
            &Operation::Pay { to, asset, amount } => {
                OperationBody::Pay { to: to.to_string(), asset: self.name(asset), amount: amount.to_string() }
            }
            &Operation::Issue { to, asset, amount } => {
                OperationBody::Issue { to: to.to_string(), asset: self.name(asset), amount: amount.to_string() }
            }
            &Operation::Burn { asset, amount } => {
                OperationBody::Burn { asset: self.name(asset), amount: amount.to_string() }
            }
            Operation::Stake(stake) => OperationBody::Stake {
                units: stake.units.to_string(),
                key: stake.key.to_string(),
                address: stake.address.clone(),
            },
            Operation::Unstake { units } => OperationBody::Unstake { units: units.to_string() },
            Operation::Accuse(evidence) => OperationBody::Accuse {
                epoch: evidence.epoch,
                validator: evidence.member,
                height: evidence.height,
                statements: evidence.contradiction.name(),
            },
        }
    }

    /// The asset of a symbol.
    pub fn find(&self, symbol: &str) -> Option<AssetId> {
        self.0.iter().position(|known| known == symbol).map(|at| AssetId(at as u32))
    }

    /// `BASE/QUOTE`.
    pub fn market(&self, base: AssetId, quote: AssetId) -> String {
        format!("{}/{}", self.get(base), self.get(quote))
    }

    /// One trade.
    pub fn trade(&self, pair: Pair, sold: Amount, bought: Amount) -> TradeBody {
        TradeBody {
            sell: self.get(pair.sell).into(),
            buy: self.get(pair.buy).into(),
            sold: sold.to_string(),
            bought: bought.to_string(),
        }
    }

    /// A batch.
    pub fn batch(&self, summary: &BatchSummary) -> BatchBody {
        let batch = &summary.batch;
        let valuations =
            self.0.iter().zip(&batch.valuations).map(|(symbol, price)| (symbol.clone(), price.to_string()));
        BatchBody {
            height: summary.height,
            time_ms: summary.time_ms,
            full: batch.full,
            valuations: valuations.collect(),
            trades: batch.trades.iter().map(|trade| self.trade(trade.pair, trade.sold, trade.bought)).collect(),
            burnt: batch.burnt.iter().map(|(asset, units)| (self.get(*asset).into(), units.to_string())).collect(),
            solver: summary.report.as_ref().map(|report| SolverBody {
                name: report.solver.name(),
                iterations: report.iterations,
                demand_queries: report.demand_queries,
                unrealized_utility_ratio: report.unrealized_utility_ratio,
            }),
        }
    }
}

/// Assets as listed.
pub fn assets(assets: &[Asset]) -> Assets {
    let body = |(number, asset): (usize, &Asset)| AssetBody {
        asset: number as u32,
        symbol: asset.symbol.clone(),
        decimals: asset.decimals,
        issuer: asset.issuer.to_string(),
        least_units: asset.least_units.to_string(),
        issued: asset.issued.to_string(),
        valuation: asset.valuation.map(|valuation| valuation.to_string()),
    };
    Assets { assets: assets.iter().enumerate().map(body).collect() }
}

/// A block in short.
pub fn block(summary: &BlockSummary) -> BlockBody {
    BlockBody {
        height: summary.height,
        block: summary.block.to_string(),
        parent: summary.parent.to_string(),
        time_ms: summary.time_ms,
        proposers: summary.proposers.clone(),
        transactions: summary.transactions,
        applied: summary.applied,
        refused: summary.transactions - summary.applied,
        fills: summary.fills,
        pairs: summary.pairs,
        full: summary.full,
        receipts_root: summary.receipts_root.to_string(),
        state_root: summary.state_root.map(|root| root.to_string()),
        stages_ms: summary.stages_ms.iter().copied().collect(),
    }
}

/// The price of `base` in `quote`, to 12 significant digits: a ratio of valuations has no exact decimal.
pub fn price(base: Price, quote: Price) -> String {
    rounded(base.to_f64() / quote.to_f64())
}

/// A positive number to 12 significant digits, as a plain decimal.
pub fn rounded(value: f64) -> String {
    let Some(price) = Price::from_f64(value) else { return "0".into() };
    let keep = 100_000;
    let mantissa = (price.mantissa() + keep / 2) / keep * keep;
    Price::from_parts(mantissa, price.decade()).unwrap_or(price).to_string()
}
