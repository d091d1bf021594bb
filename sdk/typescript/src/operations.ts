/** Operations of transactions, written by `make operations` from the table of operations. */

/** How long an offer rests: until it is sold or cancelled, up to the batch of a height, or in its own batch alone. */
export type Life = "rests" | `until ${bigint}` | "one batch";

/** A field: its name and type in typed data, and how it is encoded; of a choice its texts, of a list its structure. */
export type OperationField = { name: string; type: string; form: string; texts?: readonly string[]; of?: string };

/** Where an offer of the sender rests. */
export type OfferPlace = { sell: number; buy: number; limit: string; offer: bigint };

/** The most units of an asset that a session key may use. */
export type SessionLimit = { asset: number; units: bigint };

/** An ed25519 key that signs with a weight. */
export type KeySigner = { key: string; weight: number };

/** A wallet that signs with a weight. */
export type WalletSigner = { wallet: string; weight: number };

/** A guardian with an ed25519 key. */
export type GuardianKey = { key: string };

/** A guardian with a wallet. */
export type GuardianWallet = { wallet: string };

/** The signature of an ed25519 key. */
export type KeySignature = { key: string; signature: string };

/** The signature of a wallet: 64 bytes, in the form of EIP-2098. */
export type WalletSigned = { wallet: string; signature: string };

/** A market that a key may trade in, and at which prices. */
export type MarketLimits = { market: number; lowest: number; highest: number };

/** The most that a key may lose of an asset. */
export type MandateLimit = { asset: number; units: bigint };

/** What the ledger is asked for. Assets are numbers, amounts units, limits shortest decimals in units. */
export type Operation =
  /** Registers an account, or rotates the account's own key. */
  | { kind: "CreateAccount"; registered: string; key: string }
  /** Offers an asset for another. */
  | { kind: "CreateOffer"; sell: number; buy: number; amount: bigint; limit: string; life?: Life; client?: string }
  /** Cancels offers. */
  | { kind: "Cancel"; offers: OfferPlace[] }
  /** Moves units to another account. */
  | { kind: "Pay"; to: string; asset: number; amount: bigint }
  /** Creates units, for their issuer. */
  | { kind: "Issue"; to: string; asset: number; amount: bigint }
  /** Destroys units, for their issuer. */
  | { kind: "Burn"; asset: number; amount: bigint }
  /** Registers a validator, adds to its stake, or changes its key or address. */
  | { kind: "Stake"; units: bigint; key: string; host: string; possession: string }
  /** Withdraws units from the account's own stake. */
  | { kind: "Unstake"; units: bigint }
  /** Moves units into the payment lane. */
  | { kind: "Withdraw"; to: string; asset: number; amount: bigint }
  /** Posts something about the payment lane. */
  | { kind: "Lane"; post: string }
  /** Cancels an offer and places another one of the same pair. */
  | { kind: "Replace"; sell: number; buy: number; oldLimit: string; offer: bigint; remains: bigint; amount: bigint; limit: string; life?: Life; client?: string }
  /** Opens a constant-product pool. A 256th of both amounts can never be taken out again. */
  | { kind: "OpenPool"; a: number; b: number; class: number; x: bigint; y: bigint }
  /** Buys shares of a pool. */
  | { kind: "Provide"; a: number; b: number; class: number; shares: bigint; mostA: bigint; mostB: bigint }
  /** Gives shares of a pool back. */
  | { kind: "Leave"; a: number; b: number; class: number; shares: bigint; leastA: bigint; leastB: bigint }
  /** In the batch of its block, buys or sells exactly so many units within its bound; otherwise nothing happens. */
  | { kind: "Exact"; sell: number; buy: number; side: "buy" | "sell"; units: bigint; bound: bigint; client?: string }
  /** Lets a key cancel or trade for the account. */
  | { kind: "AuthorizeSession"; slot: number; key: string; scope: "cancel" | "trade" | "duty" | "control"; ends: bigint; alive: bigint; caps: SessionLimit[]; possession: string }
  /** Ends a session key and its offers. */
  | { kind: "RevokeSession"; slot: number }
  /** Raises the height at whose end a session key's offers end; 0 ends them now. */
  | { kind: "SessionAlive"; slot: number; through: bigint }
  /** Says that the validator's node can decide under these rules, and that its operator wants them. A validating node posts it by itself, for nothing. */
  | { kind: "Approve"; rules: number; manifest: string; notice: bigint; at: bigint }
  /** Withdraws an approval of rules. */
  | { kind: "Unapprove"; rules: number; at: bigint }
  /** Moves units to another account, and says what for. Since rules 12. */
  | { kind: "PayReferenced"; to: string; asset: number; amount: bigint; referenceKind: "text" | "uuid" | "message" | "number"; reference: string }
  /** Creates units of an asset; only its issuer can. It says what for. Since rules 12. */
  | { kind: "IssueReferenced"; to: string; asset: number; amount: bigint; referenceKind: "text" | "uuid" | "message" | "number"; reference: string }
  /** Gives an account a policy of several keys, or another one. Any account sends it; those sign who govern the account, and those who will. Since rules 14. */
  | { kind: "SetKeys"; changed: string; last: string; keys: KeySigner[]; wallets: WalletSigner[]; move: number; govern: number; guardianKeys: GuardianKey[]; guardianWallets: GuardianWallet[]; guardians: number; delay: number; sessions: "close" | "keep"; first: string; keySignatures: KeySignature[]; walletSignatures: WalletSigned[] }
  /** Gives an account whose keys are lost another policy. Any account sends it; its guardians sign, and those who will govern it. Since rules 14. */
  | { kind: "RecoverKeys"; changed: string; last: string; keys: KeySigner[]; wallets: WalletSigner[]; move: number; govern: number; guardianKeys: GuardianKey[]; guardianWallets: GuardianWallet[]; guardians: number; delay: number; sessions: "close" | "keep"; keySignatures: KeySignature[]; walletSignatures: WalletSigned[] }
  /** Makes a change of keys act whose wait is over. Any account sends it. Since rules 14. */
  | { kind: "CompleteKeys"; changed: string }
  /** Says whether payments and issues to the account need a reference, from the next block on. Since rules 14. */
  | { kind: "SetReceiving"; references: "optional" | "required" }
  /** Lists an asset, which its sender issues. Its name is the symbol, a point and its number. Since rules 15. */
  | { kind: "ListAsset"; symbol: string; decimals: number; control: "open" | "freezable" | "admitted" | "recoverable" | "admitted_recoverable"; leastUnits: bigint; supplyMax: bigint; document: string; fees: bigint }
  /** Announces that an asset closes, or takes that back; only its issuer can. Since rules 15. */
  | { kind: "CloseAsset"; asset: number; closing: "announce" | "revoke" }
  /** Proposes another value of a parameter of the chain, on which validators vote. Since rules 16. */
  | { kind: "ProposeParameter"; parameter: "fee" | "least_base_fee" | "resting_offers" | "open_pairs" | "validators" | "until_max" | "minimum_stake" | "reward" | "assets_max" | "listing_fees" | "listing_policy"; value: bigint }
  /** Proposes an asset with a plain name, on which validators vote. Since rules 16. */
  | { kind: "ProposeListing"; issuer: string; symbol: string; decimals: number; control: "open" | "freezable" | "admitted" | "recoverable" | "admitted_recoverable"; leastUnits: bigint; supplyMax: bigint; document: string }
  /** Proposes that an asset closes, whatever its issuer says; validators vote on it. Since rules 16. */
  | { kind: "ProposeClosing"; asset: number }
  /** Proposes the terms of an asset in the payment lane, on which validators vote. Since rules 19. */
  | { kind: "ProposeLaneTerms"; asset: number; leastUnits: bigint; fee: bigint; deposits: "refused" | "taken"; outflowMost: bigint; outflowPerHeight: bigint }
  /** Says whether the account wants what was proposed; of several words the last one counts. Since rules 16. */
  | { kind: "Vote"; proposal: string; word: "no" | "yes" }
  /** Freezes or opens a holder of an asset; only its issuer can. Since rules 17. */
  | { kind: "SetHolder"; asset: number; holder: string; state: "frozen" | "open"; referenceKind: "text" | "uuid" | "message" | "number"; reference: string }
  /** Moves units of a holder who has been frozen for 86400 heights; only the issuer of a recoverable asset can. Since rules 17. */
  | { kind: "Recover"; asset: number; from: string; to: string; amount: bigint; referenceKind: "text" | "uuid" | "message" | "number"; reference: string }
  /** Brings an envelope: signed orders that nobody reads before their block is decided. An ed25519 key signs it. Since rules 21. */
  | { kind: "Sealed"; key: bigint; size: number; point: string; sealed: string }
  /** Opens a venue, which the sender owns. */
  | { kind: "VenueOpen"; venue: number; operator: string; reportKey: string; feeCapPpm: number; bond: bigint }
  /** Lists a market. */
  | { kind: "VenueList"; venue: number; market: number; base: number; quote: number; lotUnits: bigint; tickUnits: bigint; lotsMax: number; feeCapPpm: number; penalty: bigint }
  /** Ends an incarnation. */
  | { kind: "VenueFence"; venue: number; incarnation: number }
  /** Replaces the operator. */
  | { kind: "VenueChangeOperator"; venue: number; from: string; fromReportKey: string; to: string; toReportKey: string }
  /** Adds to the bond. */
  | { kind: "VenueBond"; venue: number; units: bigint }
  /** Withdraws from the bond. */
  | { kind: "VenueUnbond"; venue: number; units: bigint }
  /** Deposits units of the sender. */
  | { kind: "VenueDeposit"; venue: number; asset: number; units: bigint }
  /** Asks for units of the sender's deposit, or for all if it has fewer. */
  | { kind: "VenueCollect"; venue: number; asset: number; units: bigint }
  /** Lets a key trade for the sender. */
  | { kind: "VenueAuthorize"; venue: number; key: string; scope: "venue" | "batch" | "cancel"; markets: MarketLimits[]; caps: MandateLimit[]; possession: string }
  /** Ends a key of the sender for ever. */
  | { kind: "VenueRevoke"; venue: number; key: string }
  /** Lower numbers of a key of the sender are dead. */
  | { kind: "VenueRaiseFloor"; venue: number; key: string; incarnation: number; day: number; reference: number }
  /** Asks for all that a frozen holder has at a venue, for the issuer of a recoverable asset. Since rules 17. */
  | { kind: "VenueRecall"; venue: number; asset: number; holder: string };

/** The first bytes and the fields of each operation, in the order in which they are encoded and hashed. */
export const OPERATIONS: Record<Operation["kind"], { code: readonly number[]; fields: readonly OperationField[] }> = {
  CreateAccount: {
    code: [0],
    fields: [
      { name: "registered", type: "address", form: "address" },
      { name: "key", type: "bytes32", form: "raw" },
    ],
  },
  CreateOffer: {
    code: [1],
    fields: [
      { name: "sell", type: "uint32", form: "u32" },
      { name: "buy", type: "uint32", form: "u32" },
      { name: "amount", type: "uint64", form: "u64" },
      { name: "limit", type: "string", form: "price" },
      { name: "life", type: "string", form: "life" },
      { name: "client", type: "bytes16", form: "raw" },
    ],
  },
  Cancel: {
    code: [2],
    fields: [
      { name: "offers", type: "Offer[]", form: "list", of: "Offer" },
    ],
  },
  Pay: {
    code: [3],
    fields: [
      { name: "to", type: "address", form: "address" },
      { name: "asset", type: "uint32", form: "u32" },
      { name: "amount", type: "uint64", form: "u64" },
    ],
  },
  Issue: {
    code: [4],
    fields: [
      { name: "to", type: "address", form: "address" },
      { name: "asset", type: "uint32", form: "u32" },
      { name: "amount", type: "uint64", form: "u64" },
    ],
  },
  Burn: {
    code: [5],
    fields: [
      { name: "asset", type: "uint32", form: "u32" },
      { name: "amount", type: "uint64", form: "u64" },
    ],
  },
  Stake: {
    code: [6],
    fields: [
      { name: "units", type: "uint64", form: "u64" },
      { name: "key", type: "bytes32", form: "raw" },
      { name: "host", type: "string", form: "text" },
      { name: "possession", type: "bytes", form: "raw" },
    ],
  },
  Unstake: {
    code: [7],
    fields: [
      { name: "units", type: "uint64", form: "u64" },
    ],
  },
  Withdraw: {
    code: [9],
    fields: [
      { name: "to", type: "bytes32", form: "raw" },
      { name: "asset", type: "uint32", form: "u32" },
      { name: "amount", type: "uint64", form: "u64" },
    ],
  },
  Lane: {
    code: [10],
    fields: [
      { name: "post", type: "bytes", form: "bytes" },
    ],
  },
  Replace: {
    code: [12],
    fields: [
      { name: "sell", type: "uint32", form: "u32" },
      { name: "buy", type: "uint32", form: "u32" },
      { name: "oldLimit", type: "string", form: "price" },
      { name: "offer", type: "uint64", form: "u64" },
      { name: "remains", type: "uint64", form: "u64" },
      { name: "amount", type: "uint64", form: "u64" },
      { name: "limit", type: "string", form: "price" },
      { name: "life", type: "string", form: "life" },
      { name: "client", type: "bytes16", form: "raw" },
    ],
  },
  OpenPool: {
    code: [13, 0],
    fields: [
      { name: "a", type: "uint32", form: "u32" },
      { name: "b", type: "uint32", form: "u32" },
      { name: "class", type: "uint8", form: "u8" },
      { name: "x", type: "uint64", form: "u64" },
      { name: "y", type: "uint64", form: "u64" },
    ],
  },
  Provide: {
    code: [13, 1],
    fields: [
      { name: "a", type: "uint32", form: "u32" },
      { name: "b", type: "uint32", form: "u32" },
      { name: "class", type: "uint8", form: "u8" },
      { name: "shares", type: "uint64", form: "u64" },
      { name: "mostA", type: "uint64", form: "u64" },
      { name: "mostB", type: "uint64", form: "u64" },
    ],
  },
  Leave: {
    code: [13, 2],
    fields: [
      { name: "a", type: "uint32", form: "u32" },
      { name: "b", type: "uint32", form: "u32" },
      { name: "class", type: "uint8", form: "u8" },
      { name: "shares", type: "uint64", form: "u64" },
      { name: "leastA", type: "uint64", form: "u64" },
      { name: "leastB", type: "uint64", form: "u64" },
    ],
  },
  Exact: {
    code: [14],
    fields: [
      { name: "sell", type: "uint32", form: "u32" },
      { name: "buy", type: "uint32", form: "u32" },
      { name: "side", type: "string", form: "choice", texts: ["buy", "sell"] },
      { name: "units", type: "uint64", form: "u64" },
      { name: "bound", type: "uint64", form: "u64" },
      { name: "client", type: "bytes16", form: "raw" },
    ],
  },
  AuthorizeSession: {
    code: [15, 0],
    fields: [
      { name: "slot", type: "uint32", form: "u32" },
      { name: "key", type: "bytes32", form: "raw" },
      { name: "scope", type: "string", form: "choice", texts: ["cancel", "trade", "duty", "control"] },
      { name: "ends", type: "uint64", form: "u64" },
      { name: "alive", type: "uint64", form: "u64" },
      { name: "caps", type: "SessionCap[]", form: "list", of: "SessionCap" },
      { name: "possession", type: "bytes", form: "raw" },
    ],
  },
  RevokeSession: {
    code: [15, 1],
    fields: [
      { name: "slot", type: "uint32", form: "u32" },
    ],
  },
  SessionAlive: {
    code: [15, 2],
    fields: [
      { name: "slot", type: "uint32", form: "u32" },
      { name: "through", type: "uint64", form: "u64" },
    ],
  },
  Approve: {
    code: [17],
    fields: [
      { name: "rules", type: "uint32", form: "u32" },
      { name: "manifest", type: "bytes32", form: "raw" },
      { name: "notice", type: "uint64", form: "u64" },
      { name: "at", type: "uint64", form: "u64" },
    ],
  },
  Unapprove: {
    code: [18],
    fields: [
      { name: "rules", type: "uint32", form: "u32" },
      { name: "at", type: "uint64", form: "u64" },
    ],
  },
  PayReferenced: {
    code: [19],
    fields: [
      { name: "to", type: "address", form: "address" },
      { name: "asset", type: "uint32", form: "u32" },
      { name: "amount", type: "uint64", form: "u64" },
      { name: "referenceKind", type: "string", form: "choice", texts: ["text", "uuid", "message", "number"] },
      { name: "reference", type: "bytes", form: "bytes" },
    ],
  },
  IssueReferenced: {
    code: [20],
    fields: [
      { name: "to", type: "address", form: "address" },
      { name: "asset", type: "uint32", form: "u32" },
      { name: "amount", type: "uint64", form: "u64" },
      { name: "referenceKind", type: "string", form: "choice", texts: ["text", "uuid", "message", "number"] },
      { name: "reference", type: "bytes", form: "bytes" },
    ],
  },
  SetKeys: {
    code: [21],
    fields: [
      { name: "changed", type: "address", form: "address" },
      { name: "last", type: "bytes32", form: "raw" },
      { name: "keys", type: "KeySigner[]", form: "list", of: "KeySigner" },
      { name: "wallets", type: "WalletSigner[]", form: "list", of: "WalletSigner" },
      { name: "move", type: "uint32", form: "u16" },
      { name: "govern", type: "uint32", form: "u16" },
      { name: "guardianKeys", type: "GuardianKey[]", form: "list", of: "GuardianKey" },
      { name: "guardianWallets", type: "GuardianWallet[]", form: "list", of: "GuardianWallet" },
      { name: "guardians", type: "uint8", form: "u8" },
      { name: "delay", type: "uint32", form: "u32" },
      { name: "sessions", type: "string", form: "choice", texts: ["close", "keep"] },
      { name: "first", type: "bytes32", form: "raw" },
      { name: "keySignatures", type: "KeySignature[]", form: "list", of: "KeySignature" },
      { name: "walletSignatures", type: "WalletSigned[]", form: "list", of: "WalletSigned" },
    ],
  },
  RecoverKeys: {
    code: [22],
    fields: [
      { name: "changed", type: "address", form: "address" },
      { name: "last", type: "bytes32", form: "raw" },
      { name: "keys", type: "KeySigner[]", form: "list", of: "KeySigner" },
      { name: "wallets", type: "WalletSigner[]", form: "list", of: "WalletSigner" },
      { name: "move", type: "uint32", form: "u16" },
      { name: "govern", type: "uint32", form: "u16" },
      { name: "guardianKeys", type: "GuardianKey[]", form: "list", of: "GuardianKey" },
      { name: "guardianWallets", type: "GuardianWallet[]", form: "list", of: "GuardianWallet" },
      { name: "guardians", type: "uint8", form: "u8" },
      { name: "delay", type: "uint32", form: "u32" },
      { name: "sessions", type: "string", form: "choice", texts: ["close", "keep"] },
      { name: "keySignatures", type: "KeySignature[]", form: "list", of: "KeySignature" },
      { name: "walletSignatures", type: "WalletSigned[]", form: "list", of: "WalletSigned" },
    ],
  },
  CompleteKeys: {
    code: [23],
    fields: [
      { name: "changed", type: "address", form: "address" },
    ],
  },
  SetReceiving: {
    code: [24],
    fields: [
      { name: "references", type: "string", form: "choice", texts: ["optional", "required"] },
    ],
  },
  ListAsset: {
    code: [25],
    fields: [
      { name: "symbol", type: "string", form: "text" },
      { name: "decimals", type: "uint8", form: "u8" },
      { name: "control", type: "string", form: "choice", texts: ["open", "freezable", "admitted", "recoverable", "admitted_recoverable"] },
      { name: "leastUnits", type: "uint64", form: "u64" },
      { name: "supplyMax", type: "uint64", form: "u64" },
      { name: "document", type: "bytes32", form: "raw" },
      { name: "fees", type: "uint64", form: "u64" },
    ],
  },
  CloseAsset: {
    code: [26],
    fields: [
      { name: "asset", type: "uint32", form: "u32" },
      { name: "closing", type: "string", form: "choice", texts: ["announce", "revoke"] },
    ],
  },
  ProposeParameter: {
    code: [27, 0],
    fields: [
      { name: "parameter", type: "string", form: "choice", texts: ["fee", "least_base_fee", "resting_offers", "open_pairs", "validators", "until_max", "minimum_stake", "reward", "assets_max", "listing_fees", "listing_policy"] },
      { name: "value", type: "uint64", form: "u64" },
    ],
  },
  ProposeListing: {
    code: [27, 1],
    fields: [
      { name: "issuer", type: "address", form: "address" },
      { name: "symbol", type: "string", form: "text" },
      { name: "decimals", type: "uint8", form: "u8" },
      { name: "control", type: "string", form: "choice", texts: ["open", "freezable", "admitted", "recoverable", "admitted_recoverable"] },
      { name: "leastUnits", type: "uint64", form: "u64" },
      { name: "supplyMax", type: "uint64", form: "u64" },
      { name: "document", type: "bytes32", form: "raw" },
    ],
  },
  ProposeClosing: {
    code: [27, 2],
    fields: [
      { name: "asset", type: "uint32", form: "u32" },
    ],
  },
  ProposeLaneTerms: {
    code: [27, 3],
    fields: [
      { name: "asset", type: "uint32", form: "u32" },
      { name: "leastUnits", type: "uint64", form: "u64" },
      { name: "fee", type: "uint64", form: "u64" },
      { name: "deposits", type: "string", form: "choice", texts: ["refused", "taken"] },
      { name: "outflowMost", type: "uint64", form: "u64" },
      { name: "outflowPerHeight", type: "uint64", form: "u64" },
    ],
  },
  Vote: {
    code: [28],
    fields: [
      { name: "proposal", type: "bytes32", form: "raw" },
      { name: "word", type: "string", form: "choice", texts: ["no", "yes"] },
    ],
  },
  SetHolder: {
    code: [29],
    fields: [
      { name: "asset", type: "uint32", form: "u32" },
      { name: "holder", type: "address", form: "address" },
      { name: "state", type: "string", form: "choice", texts: ["frozen", "open"] },
      { name: "referenceKind", type: "string", form: "choice", texts: ["text", "uuid", "message", "number"] },
      { name: "reference", type: "bytes", form: "bytes" },
    ],
  },
  Recover: {
    code: [30],
    fields: [
      { name: "asset", type: "uint32", form: "u32" },
      { name: "from", type: "address", form: "address" },
      { name: "to", type: "address", form: "address" },
      { name: "amount", type: "uint64", form: "u64" },
      { name: "referenceKind", type: "string", form: "choice", texts: ["text", "uuid", "message", "number"] },
      { name: "reference", type: "bytes", form: "bytes" },
    ],
  },
  Sealed: {
    code: [32],
    fields: [
      { name: "key", type: "uint64", form: "u64" },
      { name: "size", type: "uint8", form: "u8" },
      { name: "point", type: "bytes", form: "bytes" },
      { name: "sealed", type: "bytes", form: "bytes" },
    ],
  },
  VenueOpen: {
    code: [11, 0],
    fields: [
      { name: "venue", type: "uint32", form: "u32" },
      { name: "operator", type: "address", form: "address" },
      { name: "reportKey", type: "bytes32", form: "raw" },
      { name: "feeCapPpm", type: "uint32", form: "u32" },
      { name: "bond", type: "uint64", form: "u64" },
    ],
  },
  VenueList: {
    code: [11, 1],
    fields: [
      { name: "venue", type: "uint32", form: "u32" },
      { name: "market", type: "uint32", form: "u32" },
      { name: "base", type: "uint32", form: "u32" },
      { name: "quote", type: "uint32", form: "u32" },
      { name: "lotUnits", type: "uint64", form: "u64" },
      { name: "tickUnits", type: "uint64", form: "u64" },
      { name: "lotsMax", type: "uint32", form: "u32" },
      { name: "feeCapPpm", type: "uint32", form: "u32" },
      { name: "penalty", type: "uint64", form: "u64" },
    ],
  },
  VenueFence: {
    code: [11, 2],
    fields: [
      { name: "venue", type: "uint32", form: "u32" },
      { name: "incarnation", type: "uint32", form: "u32" },
    ],
  },
  VenueChangeOperator: {
    code: [11, 3],
    fields: [
      { name: "venue", type: "uint32", form: "u32" },
      { name: "from", type: "address", form: "address" },
      { name: "fromReportKey", type: "bytes32", form: "raw" },
      { name: "to", type: "address", form: "address" },
      { name: "toReportKey", type: "bytes32", form: "raw" },
    ],
  },
  VenueBond: {
    code: [11, 4],
    fields: [
      { name: "venue", type: "uint32", form: "u32" },
      { name: "units", type: "uint64", form: "u64" },
    ],
  },
  VenueUnbond: {
    code: [11, 5],
    fields: [
      { name: "venue", type: "uint32", form: "u32" },
      { name: "units", type: "uint64", form: "u64" },
    ],
  },
  VenueDeposit: {
    code: [11, 7],
    fields: [
      { name: "venue", type: "uint32", form: "u32" },
      { name: "asset", type: "uint32", form: "u32" },
      { name: "units", type: "uint64", form: "u64" },
    ],
  },
  VenueCollect: {
    code: [11, 8],
    fields: [
      { name: "venue", type: "uint32", form: "u32" },
      { name: "asset", type: "uint32", form: "u32" },
      { name: "units", type: "uint64", form: "u64" },
    ],
  },
  VenueAuthorize: {
    code: [11, 9],
    fields: [
      { name: "venue", type: "uint32", form: "u32" },
      { name: "key", type: "bytes32", form: "raw" },
      { name: "scope", type: "string", form: "choice", texts: ["venue", "batch", "cancel"] },
      { name: "markets", type: "VenueMarket[]", form: "list", of: "VenueMarket" },
      { name: "caps", type: "VenueCap[]", form: "list", of: "VenueCap" },
      { name: "possession", type: "bytes", form: "raw" },
    ],
  },
  VenueRevoke: {
    code: [11, 10],
    fields: [
      { name: "venue", type: "uint32", form: "u32" },
      { name: "key", type: "bytes32", form: "raw" },
    ],
  },
  VenueRaiseFloor: {
    code: [11, 11],
    fields: [
      { name: "venue", type: "uint32", form: "u32" },
      { name: "key", type: "bytes32", form: "raw" },
      { name: "incarnation", type: "uint32", form: "u32" },
      { name: "day", type: "uint32", form: "u16" },
      { name: "reference", type: "uint32", form: "u32" },
    ],
  },
  VenueRecall: {
    code: [11, 16],
    fields: [
      { name: "venue", type: "uint32", form: "u32" },
      { name: "asset", type: "uint32", form: "u32" },
      { name: "holder", type: "address", form: "address" },
    ],
  },
};

/** The structures of lists, by name. */
export const LISTED: Record<string, readonly OperationField[]> = {
  Offer: [
      { name: "sell", type: "uint32", form: "u32" },
      { name: "buy", type: "uint32", form: "u32" },
      { name: "limit", type: "string", form: "price" },
      { name: "offer", type: "uint64", form: "u64" },
    ],
  SessionCap: [
      { name: "asset", type: "uint32", form: "u32" },
      { name: "units", type: "uint64", form: "u64" },
    ],
  KeySigner: [
      { name: "key", type: "bytes32", form: "raw" },
      { name: "weight", type: "uint8", form: "u8" },
    ],
  WalletSigner: [
      { name: "wallet", type: "address", form: "address" },
      { name: "weight", type: "uint8", form: "u8" },
    ],
  GuardianKey: [
      { name: "key", type: "bytes32", form: "raw" },
    ],
  GuardianWallet: [
      { name: "wallet", type: "address", form: "address" },
    ],
  KeySignature: [
      { name: "key", type: "bytes32", form: "raw" },
      { name: "signature", type: "bytes", form: "raw" },
    ],
  WalletSigned: [
      { name: "wallet", type: "address", form: "address" },
      { name: "signature", type: "bytes", form: "raw" },
    ],
  VenueMarket: [
      { name: "market", type: "uint32", form: "u32" },
      { name: "lowest", type: "uint32", form: "u32" },
      { name: "highest", type: "uint32", form: "u32" },
    ],
  VenueCap: [
      { name: "asset", type: "uint32", form: "u32" },
      { name: "units", type: "uint64", form: "u64" },
    ],
};

/** An operation as a node shows it. Assets are symbols, and units are decimal text. */
export type OperationBody =
  | { type: "create_account"; account: string; key: string }
  | { type: "create_offer"; sell: string; buy: string; amount: string; limit: string; life: string; client?: string }
  | { type: "cancel"; offers: { sell: string; buy: string; limit: string; offer: string }[] }
  | { type: "pay"; to: string; asset: string; amount: string }
  | { type: "issue"; to: string; asset: string; amount: string }
  | { type: "burn"; asset: string; amount: string }
  | { type: "stake"; units: string; key: string; address: string; possession: string }
  | { type: "unstake"; units: string }
  | { type: "accuse"; epoch: string; validator: number; height: string; statements: "proposals" | "commits" | "round_votes" | "round_proposals" }
  | { type: "withdraw"; to: string; asset: string; amount: string }
  | { type: "lane"; post: string }
  | { type: "replace"; sell: string; buy: string; old_limit: string; offer: string; remains: string; amount: string; limit: string; life: string; client?: string }
  | { type: "open_pool"; a: string; b: string; class: number; x: string; y: string }
  | { type: "provide"; a: string; b: string; class: number; shares: string; most_a: string; most_b: string }
  | { type: "leave"; a: string; b: string; class: number; shares: string; least_a: string; least_b: string }
  | { type: "exact"; sell: string; buy: string; side: "buy" | "sell"; units: string; bound: string; client?: string }
  | { type: "authorize_session"; slot: number; key: string; scope: "cancel" | "trade" | "duty" | "control"; ends: string; alive: string; caps: { asset: string; units: string }[]; possession: string }
  | { type: "revoke_session"; slot: number }
  | { type: "session_alive"; slot: number; through: string }
  | { type: "present"; epoch: string }
  | { type: "approve"; rules: number; manifest: string; notice: string; at: string }
  | { type: "unapprove"; rules: number; at: string }
  | { type: "pay_referenced"; to: string; asset: string; amount: string; reference_kind: "text" | "uuid" | "message" | "number"; reference: string }
  | { type: "issue_referenced"; to: string; asset: string; amount: string; reference_kind: "text" | "uuid" | "message" | "number"; reference: string }
  | { type: "set_keys"; account: string; last: string; keys: { key: string; weight: number }[]; wallets: { wallet: string; weight: number }[]; move: number; govern: number; guardian_keys: { key: string }[]; guardian_wallets: { wallet: string }[]; guardians: number; delay: number; sessions: "close" | "keep"; first: string; key_signatures: { key: string; signature: string }[]; wallet_signatures: { wallet: string; signature: string }[] }
  | { type: "recover_keys"; account: string; last: string; keys: { key: string; weight: number }[]; wallets: { wallet: string; weight: number }[]; move: number; govern: number; guardian_keys: { key: string }[]; guardian_wallets: { wallet: string }[]; guardians: number; delay: number; sessions: "close" | "keep"; key_signatures: { key: string; signature: string }[]; wallet_signatures: { wallet: string; signature: string }[] }
  | { type: "complete_keys"; account: string }
  | { type: "set_receiving"; references: "optional" | "required" }
  | { type: "list_asset"; symbol: string; decimals: number; control: "open" | "freezable" | "admitted" | "recoverable" | "admitted_recoverable"; least_units: string; supply_max: string; document: string; fees: string }
  | { type: "close_asset"; asset: string; closing: "announce" | "revoke" }
  | { type: "propose_parameter"; parameter: "fee" | "least_base_fee" | "resting_offers" | "open_pairs" | "validators" | "until_max" | "minimum_stake" | "reward" | "assets_max" | "listing_fees" | "listing_policy"; value: string }
  | { type: "propose_listing"; issuer: string; symbol: string; decimals: number; control: "open" | "freezable" | "admitted" | "recoverable" | "admitted_recoverable"; least_units: string; supply_max: string; document: string }
  | { type: "propose_closing"; asset: string }
  | { type: "propose_lane_terms"; asset: string; least_units: string; fee: string; deposits: "refused" | "taken"; outflow_most: string; outflow_per_height: string }
  | { type: "vote"; proposal: string; word: "no" | "yes" }
  | { type: "set_holder"; asset: string; account: string; state: "frozen" | "open"; reference_kind: "text" | "uuid" | "message" | "number"; reference: string }
  | { type: "recover"; asset: string; from: string; to: string; amount: string; reference_kind: "text" | "uuid" | "message" | "number"; reference: string }
  | { type: "seal_duty"; key: string; post: string }
  | { type: "sealed"; key: string; size: number; point: string; sealed: string }
  | { type: "venue"; action: "open"; venue: number; operator: { account: string; report_key: string }; fee_cap_ppm: number; bond: string }
  | { type: "venue"; action: "list"; venue: number; market: number; terms: { base: string; quote: string; lot_units: string; tick_units: string; lots_max: number; fee_cap_ppm: number; penalty: string } }
  | { type: "venue"; action: "fence"; venue: number; incarnation: number }
  | { type: "venue"; action: "change_operator"; venue: number; from: { account: string; report_key: string }; to: { account: string; report_key: string } }
  | { type: "venue"; action: "bond"; venue: number; units: string }
  | { type: "venue"; action: "unbond"; venue: number; units: string }
  | { type: "venue"; action: "settle"; venue: number; incarnation: number; from: string; fills: number }
  | { type: "venue"; action: "deposit"; venue: number; asset: string; units: string }
  | { type: "venue"; action: "collect"; venue: number; asset: string; units: string }
  | { type: "venue"; action: "authorize"; venue: number; key: string; mandate: { scope: "venue" | "batch" | "cancel"; markets: { market: number; tick_min: number; tick_max: number }[]; caps: { asset: string; units: string }[] }; possession: string }
  | { type: "venue"; action: "revoke"; venue: number; key: string }
  | { type: "venue"; action: "raise_floor"; venue: number; key: string; floor: { incarnation: number; day: number; reference: number } }
  | { type: "venue"; action: "accuse"; venue: number; incarnation: number; index: string; account: string }
  | { type: "venue"; action: "claim"; venue: number; incarnation: number; index: string; account: string }
  | { type: "venue"; action: "accuse_step"; venue: number; incarnation: number; index: string; account: string }
  | { type: "venue"; action: "claim_step"; venue: number; incarnation: number; index: string; account: string }
  | { type: "venue"; action: "recall"; venue: number; asset: string; account: string };
