import type { AccountKeys } from "./policy.js";
import type { OperationBody } from "./operations.js";
import type { PaymentReference } from "./references.js";

/** The shapes of a node's answers, as docs/api.md describes them. Amounts are strings of units. */

export type Units = string;
export type PriceText = string;

export type Status = {
  version: string;
  chain: string;
  engine: string;
  /** Why no block can be decided, in words. */
  stalled: string | null;
  height: number;
  block: string;
  time_ms: number;
  state: { height: number; root: string };
  accounts: number;
  offers: number;
  mempool: { transactions: number; limit: number };
  uptime_ms: number;
  transactions_per_second: number;
  committed: number;
  refused: number;
  /** The shards of the member of the payment lane that the node is. */
  lane_shards: LaneShardStatus[];
  /** The committee's sealing key, or why there is none; null on chains that make none, and older nodes do not say. */
  sealing?: { in_force: number | null; age: number | null; holders: number; missing: string | null } | null;
};

/** A shard of a member of the payment lane; `since_ms` is when it came up, or went down. */
export type LaneShardStatus = {
  shard: number;
  apart: boolean;
  up: boolean;
  since_ms: number;
  epoch: number | null;
  facts_height: number;
  signed: number;
  refused: number;
  log_bytes: number;
};

/** What the issuer of an asset controls: it freezes holders, and may admit them, or recover units of those frozen for long. */
export type AssetControl = "open" | "freezable" | "admitted" | "recoverable" | "admitted_recoverable";

/** An account as a holder of an asset; `since` is the height at which the issuer last changed it. */
export type Holder = { height: number; control: AssetControl; standing: "open" | "frozen" | "not_admitted"; since?: number };

export type Asset = {
  asset: number;
  symbol: string;
  decimals: number;
  issuer: string;
  least_units: Units;
  issued: Units;
  valuation: PriceText | null;
  /** The address of its ERC-20 token, where the chain has contracts. */
  token?: string;
  /** How it was listed; an asset of the genesis has none. */
  listed?: { height: number; control: AssetControl; supply_max: Units; document: string };
  /** What its issuer controls in the hands of others, if anything. */
  control?: AssetControl;
  /** The last height that it trades at, if it closes or is closed. */
  closes?: number;
};

export type Market = {
  market: string;
  base: string;
  quote: string;
  /** At which it last traded, in whole assets; with `_units`, in units of both. */
  price: PriceText | null;
  price_units: PriceText | null;
  price_height: number | null;
  /** What the latest valuations say; nobody traded at it. */
  indicative: PriceText | null;
  base_volume: Units;
  quote_volume: Units;
  offers: number;
  best_sell: PriceText | null;
  best_sell_units: PriceText | null;
  best_buy: PriceText | null;
  best_buy_units: PriceText | null;
};

export type Level = { price: PriceText; price_units: PriceText; amount: Units; offers: number };
export type Book = { height: number; time_ms: number; market: string; price: PriceText | null; price_height: number | null; sells: Level[]; buys: Level[] };
/** What an order asks for in its market, as it was placed: amount in base units, price in whole quote per whole base. */
export type OrderTerms = { side: "buy" | "sell"; base: string; quote: string; amount: Units; price: PriceText; price_units: PriceText };
/** An order in a block, and how its offer stands: `refused`, `resting`, `ended` or `void`. */
export type PastOrder = {
  height: number;
  time_ms: number;
  id: string;
  sequence: string;
  until: string;
  sell: string;
  buy: string;
  limit: PriceText;
  amount: Units;
  life: string;
  client: string | null;
  replaces: string | null;
  /** Of an exact order; `limit` is the least rate that it means, `amount` what it locks. */
  exact?: { side: "buy" | "sell"; units: Units; bound: Units } | null;
  /** Null if it names assets that there are not, or no amount. */
  asked?: OrderTerms | null;
  outcome: Outcome;
  status: string;
  why: string | null;
  left: Units;
  /** The envelope that held it, if one did. */
  sealed_by?: string;
  /** In all of its fills; `bought` is null where these are too many. Nodes of earlier versions tell neither. */
  sold?: Units;
  bought?: Units | null;
  changed_height: number;
};
export type PastFill = {
  height: number;
  time_ms: number;
  sell: string;
  buy: string;
  limit: PriceText;
  offer: string;
  sold: Units;
  bought: Units;
  left: Units;
  returned: Units;
};
/** Units that left or reached an account: `direction` is `in` or `out`; `kind` `payment`, `issue`, `burn`, `stake`, `lane` or `venue`. */
export type PastTransfer = {
  height: number;
  time_ms: number;
  id: string;
  asset: string;
  amount: Units;
  direction: string;
  kind: string;
  with: string | null;
  /** What for, if its sender said so; nobody has checked it. */
  reference?: PaymentReference | null;
};
/** An account's own orders on the stream: the newest, or those that changed; `pending` are all that are in no block yet. */
export type OwnOrders = { height: number; account: string; orders: PastOrder[]; fills: PastFill[]; pending: PendingOrder[] };
export type PendingOrder = { id: string; sequence: string; until: string };
/** The definite answer about an order; `pending` and `refused` ones may count until block `until`. */
export type OrderFate = {
  account: string;
  height: number;
  known_from: number;
  status: string;
  until: string;
  why: string | null;
  id: string;
  sequence: string;
  order: PastOrder | null;
  sold: Units;
  bought: Units | null;
  returned: Units;
  fills: PastFill[];
  others: string[];
};
/** The 24 hours up to the last block; `complete` if the node has every batch of them. */
export type Day = {
  since_ms: number;
  complete: boolean;
  open: PriceText;
  high: PriceText;
  low: PriceText;
  close: PriceText;
  change_percent: string;
  base_volume: Units;
  quote_volume: Units;
  batches: number;
};
export type Ticker = {
  market: string;
  height: number;
  time_ms: number;
  price: PriceText | null;
  best_sell: PriceText | null;
  best_buy: PriceText | null;
  /** Null if the market did not trade in them. */
  day: Day | null;
};
/** What the next batch would do with an offer if nothing else came; amounts are units. */
export type Quote = {
  height: number;
  sell: string;
  buy: string;
  amount: Units;
  limit: PriceText;
  /** Null if it was asked about without a limit. */
  asked?: OrderTerms | null;
  /** What it asks for exactly; null for an offer. */
  exact?: { side: "buy" | "sell"; units: Units; bound: Units } | null;
  sold: Units;
  bought: Units;
  left: Units;
  returned: Units;
  why: string;
  price: PriceText | null;
  price_units: PriceText | null;
  last_price: PriceText | null;
  last_price_units: PriceText | null;
};
/** What a market of a venue traded in the last 24 hours; prices are ticks. `complete` if the node knows all of them. */
export type VenueDay = {
  since_ms: number;
  complete: boolean;
  open: number;
  high: number;
  low: number;
  close: number;
  change_percent: string;
  lots: string;
  base_volume: Units;
  quote_volume: Units;
  trades: number;
};
/** A continuous market of the node's venue; assets are their numbers, `bid`, `ask` and `last` ticks. */
export type VenueMarket = {
  market: number;
  symbol: string;
  base: number;
  quote: number;
  lot_units: Units;
  tick_units: Units;
  lots_max: number;
  fee_cap_ppm: number;
  maker_ppm: number | null;
  taker_ppm: number | null;
  lots_min: number | null;
  least_quote_units: Units | null;
  phase: string;
  bid: number | null;
  ask: number | null;
  last: number | null;
  day: VenueDay | null;
};
/** An execution of a venue, without its parties; `side` is the one that took. */
export type VenueTrade = { index: string; time_ms: number; side: "buy" | "sell"; tick: number; lots: number };
export type VenueTrades = { market: number; trades: VenueTrade[]; next: string | null };
export type CurvePoint = { price: PriceText; price_units: PriceText; amount: Units };
export type Curves = {
  height: number;
  market: string;
  /** Null where the pair did not trade in this batch. */
  price: PriceText | null;
  price_units: PriceText | null;
  indicative: PriceText | null;
  supply: CurvePoint[];
  demand: CurvePoint[];
  sold: Units;
  bought: Units;
};
export type HistoryPoint = { height: number; time_ms: number; price: PriceText; price_units: PriceText; base_volume: Units };

/** The trades of a market in one interval. */
export type Candle = {
  time_ms: number;
  complete: boolean;
  open: PriceText;
  high: PriceText;
  low: PriceText;
  close: PriceText;
  base_volume: Units;
  quote_volume: Units;
  batches: number;
};
export type Candles = { market: string; interval: string; candles: Candle[] };

export type Block = {
  height: number;
  block: string;
  parent: string;
  time_ms: number;
  /** Validators whose sub-blocks are in it. */
  proposers: number[];
  /** Native ones. */
  transactions: number;
  applied: number;
  refused: number;
  /** Ethereum transactions that were executed. */
  ethereum: number;
  fills: number;
  pairs: number;
  full: boolean;
  receipts_root: string;
  state_root: string | null;
  /** Empty for a block from before the node's last start. */
  stages_ms: Record<string, number>;
};

/** How far a validator is, as the asked one knows it; heights are the last it said while it is not connected. */
export type Peer = {
  validator: number;
  connected: boolean;
  decided: number;
  certified: number;
  /** In which round its slot of the last height was decided. */
  rounds: number | null;
  round_trip_ms: number | null;
};
export type Validator = {
  engine: "dbft" | "tendermint";
  me: number;
  validators: number;
  decided: number;
  certified: number;
  certified_anywhere: number;
  connected: number;
  epoch: number;
  /** Whether it has no vote in the epoch. */
  follows: boolean;
  /** Until which epoch it is not admitted, and why; older nodes do not say. */
  admission?: string | null;
  silent: boolean;
  /** Whether it lacks blocks that nobody gives any more. */
  stranded: boolean;
  /** The decided height whose envelopes are not open yet, and the holders from whom no share has come; older nodes do not say. */
  sealed_wait?: { height: number; ms: number; silent: number[] } | null;
  benched: number[];
  /** The epoch's validators by index, and after them who follows; the asked one too. */
  peers: Peer[];
};

export type Why = "filled" | "part" | "at_the_margin" | "above_the_rate" | "rounding" | "not_taken" | "not_placed";
export type ExactWhy = "filled" | "no_price" | "beyond_bound" | "group_not_full" | "no_room";
export type Outcome =
  | { result: "applied" }
  | { result: "void" }
  | { result: "cancelled"; found: number; missing: number }
  | { result: "replaced"; remained: Units; sold: Units; bought: Units; left: Units; returned: Units; why: Why }
  | { result: "offered"; sold: Units; bought: Units; left: Units; returned: Units; why: Why }
  | { result: "pooled"; a: Units; b: Units; shares: string }
  | { result: "exact"; sold: Units; bought: Units; returned: Units; why: ExactWhy }
  | { result: "listed"; number: number }
  /** An envelope; of an unpaid one why. Each operation in it has its own outcome. */
  | { result: "sealed"; became: "opened" | "garbage" | "unpaid"; operations: number; code?: string; message?: string }
  | { result: "refused"; code: string; message: string };
export type { OperationBody as Operation } from "./operations.js";
export type IdOutcome = { id: string; outcome: Outcome };
export type BlockOutcome = IdOutcome & { account: string; sequence: string; operation: OperationBody };
export type BlockDetail = Block & { outcomes: BlockOutcome[]; more: boolean };

export type BatchTrade = { sell: string; buy: string; sold: Units; bought: Units };
/** An exact order that was filled. */
export type ExactTrade = BatchTrade & { side: "buy" | "sell"; account: string; id: string };
export type Batch = {
  height: number;
  time_ms: number;
  full: boolean;
  valuations: Record<string, PriceText>;
  trades: BatchTrade[];
  pools?: (BatchTrade & { class: number })[];
  /** Orders for exact amounts that were filled, the first hundred of `exacts_count`. */
  exacts?: ExactTrade[];
  exacts_count?: number;
  /** The groups of assets that are not full, each by a symbol. */
  short?: string[];
  burnt: Record<string, Units>;
  /** Null for a batch from before the node's last start. */
  solver: { name: string; iterations: number; demand_queries: number; unrealized_utility_ratio: number | null } | null;
};

export type Balance = { asset: string; available: Units; locked: Units };
export type Account = {
  address: string;
  checked_address: string;
  height: number;
  key: string | null;
  sequence: { highest: string; next: string };
  balances: Balance[];
  keys?: AccountKeys;
  /** Whether payments to it need a reference. */
  needs_reference?: boolean;
  session_slots?: number;
  sessions?: SessionBody[];
  /** Where the chain has contracts. */
  ethereum?: AccountEthereum;
};
/** A session key; `used` is locked and sold less bought, fees included, and below zero if it bought more. */
export type SessionBody = {
  slot: number;
  key: string;
  scope: "cancel" | "trade" | "duty";
  status: "live" | "lapsed" | "ended";
  ends: string;
  alive: string;
  sequence: { highest: string; next: string };
  caps: { asset: string; units: Units; used: Units }[];
};
/** What Ethereum knows of an account; `wei` are those beside its units of the first asset. */
export type AccountEthereum = { nonce: string; wei: Units; is_contract: boolean; code?: { hash: string; bytes: number; delegate?: string } };
/** A resting offer; `asked` is what rests of it in the terms of its market. */
export type Offer = { sell: string; buy: string; limit: PriceText; price: PriceText; id: string; amount: Units; asked?: OrderTerms | null };

/** A committed transaction; what it asks for is missing where its block is no longer kept. */
export type CommittedStatus = {
  id: string;
  status: "committed";
  height: number;
  outcome: Outcome;
  account?: string;
  sequence?: string;
  operation?: OperationBody;
};
export type TransactionStatus = { id: string; status: "pending" } | CommittedStatus;

export type EthereumResult = "succeeded" | "reverted" | "halted";
export type EthereumLog = { address: string; topics: string[]; data: string };
export type EthereumReceipt = {
  height: number;
  /** Missing in the settlement receipt, which is of no transaction. */
  position?: number;
  sender: string;
  result: EthereumResult;
  gas_used: Units;
  gas_price: Units;
  contract?: string;
  logs: EthereumLog[];
};
export type EthereumTransaction = { type: number; sender: string; to?: string; nonce: string; value: Units; gas_limit: Units; max_fee: Units; input: string };
export type EthereumStatus = { hash: string; status: "pending" | "committed"; transaction?: EthereumTransaction; receipt?: EthereumReceipt };
/** The first bytes of what a transaction returned or reverted with, found by executing it again. */
export type EthereumOutput = { hash: string; result: EthereumResult; output: string; output_bytes: number; halt?: string };
/** An executed transaction in short, or the settlement receipt, which has no position. */
export type EthereumExecuted = {
  hash: string;
  position?: number;
  sender: string;
  to?: string;
  contract?: string;
  value: Units;
  selector: string;
  result: EthereumResult;
  gas_used: Units;
  logs: number;
};
export type EthereumBlock = {
  height: number;
  base_fee: Units;
  gas_used: Units;
  burnt: Units;
  executed: number;
  skipped: number;
  transactions: EthereumExecuted[];
  more: boolean;
};

export type LaneAsset = { asset: string; least_units: Units; fee: Units; escrow: Units };

/** The payment lane after the last block. */
export type Lane = {
  height: number;
  epoch: number;
  heights_left: number;
  epoch_heights: number;
  halted: boolean;
  open_cases: number;
  waiting_claims: number;
  members: string[][];
  assets: LaneAsset[];
};
