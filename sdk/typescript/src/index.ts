/** A client of Walras nodes; see the README. */
export { Assets, AssetInfo, type Amount } from "./assets.js";
export { BookBrokenError, LocalBook, type Change } from "./book.js";
export { checkCertificate, quorumOf, type Committee } from "./certificate.js";
export { Client, type Options } from "./client.js";
export { Signed, checkedAddress, poolKeeps, type Body, type Operation } from "./encoding.js";
export * from "./errors.js";
export type { Event } from "./feed.js";
export { DisconnectGuard } from "./guard.js";
export { Holders } from "./holders.js";
export { Ed25519Key, EthereumKey, WalletKey, type Key, type LoginSignature, type LoginTerms, type Provider } from "./keys.js";
export type { AssetControl, Holder, VenueDay, VenueMarket, VenueTrade, VenueTrades } from "./bodies.js";
export type {
  Account,
  Balance,
  Batch,
  BatchTrade,
  Book,
  Candle,
  Fate,
  Fill,
  Level,
  Market,
  Offer,
  OrderFate,
  OrderStatus,
  OrderTerms,
  OwnOrders,
  Outcome,
  PastFill,
  PastOrder,
  PastTransfer,
  PendingOrder,
  PricePoint,
  Quote,
  SessionBudget,
  SessionKey,
  Ticker,
  Trade,
} from "./models.js";
export type { PaymentReference } from "./references.js";
export type { OfferOptions, SendOptions } from "./sending.js";
export type { Limits } from "./session.js";
export { slotOf, slotSequence } from "./slot.js";
export { KeepAlive, type SessionTerms } from "./slots.js";
export {
  PolicyRequest,
  changeId,
  consentBytes,
  encodedChange,
  policySalt,
  type AccountKeys,
  type ByteSigner,
  type KeyChange,
  type KeyPolicy,
  type Signatures,
} from "./policy.js";
export { ProofError, proveAccount, proveHolder, proveKeys, proveOutcome, proveParameters, type ParameterValues, type ProvedAccount, type ProvedHolder, type ProvedParameters } from "./proof.js";
export { MemoryStore, TextStore, type Store } from "./store.js";
export { TradingKey, isReportSigned, numberText, readNumber, readReport } from "./venue.js";
export { isListSigned, signList, type ListedOrder, type SignedList } from "./venue-list.js";
export { OrderRefusedError, UndecidedOrdersError, UnsignedReportError } from "./venue-reports.js";
export type { Execution, ExecutionsPage, FillFate, OrderReport, OrderStanding, PlacedOrder, VenueStatus } from "./venue-reports.js";
export { VenueTerms } from "./venue-terms.js";
export { VenueTrader, type Numbered, type OrderRules, type TraderOptions, type VenueQuote } from "./venue-trader.js";
export type { TraderEvent } from "./venue-stream.js";
export type { OrderNumber, SignedOrder, VenueAsk, VenueOrder, VenueReport, VenueRequest, VenueScope, VenueStep } from "./venue.js";
