//! The bodies of the HTTP interface and its stream, both ways: servers write them and clients read them.
//!
//! Amounts, prices, sequence numbers and other 64-bit values that money depends on are exact decimal strings; ids and
//! keys are hexadecimal. The OpenAPI description of a node comes from these types, and so does the reference in
//! `docs/api.md`. A client ignores fields that it does not know: a server may add some.

mod accounts;
mod blocks;
mod committees;
mod error;
mod ethereum;
mod history;
mod keys;
mod lane;
mod mandates;
mod markets;
mod node;
mod operations;
mod pools;
mod proposals;
mod record_proof;
mod seal;
mod stream;
mod unions;
mod upgrade;
mod validator_status;
mod venue_asks;
mod venue_door;
mod venue_stream;
mod venues;

pub use accounts::{
    AccountBody, AccountEthereumBody, AccountProofBody, BalanceBody, CodeBody, ModifiedBody, OfferBody, OfferProofBody,
    Offers, RestingOffer, RestingOffers, SequenceBody, SessionBody, SessionBudgetBody,
};
pub use blocks::{
    BatchBody, BlockBody, BlockDetail, BlocksBody, EndedOfferBody, EndedOffersBody, ExactTradeBody, OutcomeBody,
    PreparedBody, ResultBody, Results, SolverBody, TradeBody, TransactionBody, TransactionOutcome, TypedDataBody,
};
pub use committees::{
    CertificateBody, CommitteeBody, HandoverBody, HandoversBody, MemberBody, UnbondingBody, ValidatorBody,
    ValidatorsBody, ValidatorsProofBody,
};
pub use error::{ErrorBody, ErrorText};
pub use ethereum::{
    EthereumBlockBody, EthereumBody, EthereumExecutedBody, EthereumLimitsBody, EthereumLogBody, EthereumOutputBody,
    EthereumReceiptBody, EthereumResultBody, EthereumResults, EthereumTransactionBody,
};
pub use history::{
    BalancesAtBody, BalancesBody, ExactTermsBody, FillsBody, HeldBody, HistoryFillBody, OrderFateBody, OrderTermsBody,
    OrdersBody, OwnOrdersBody, PendingOrderBody, PlacedOrderBody, ReferenceBody, TransferBody, TransfersBody,
};
pub use keys::{
    AccountKeysBody, GuardianKeyEntryBody, GuardianWalletEntryBody, KeyPolicyBody, PolicyKeyBody, PolicyWalletBody,
    WaitingKeysBody,
};
pub use lane::{
    HOME_PORTS, LaneAssetBody, LaneBoardBody, LaneBody, LaneCandidateBody, LaneCaseBody, LaneCasesBody, LaneOutputBody,
    LaneRegistrationBody, LaneRegistrationsProofBody, LaneShardBody, LaneTermsBody, RegisteredBlsBody,
};
pub use mandates::{MandateBody, MandateCapBody, MarketMandateBody};
pub use markets::{
    BOOK_CHECKED_LEVELS, BookBody, BookChangeBody, BookSnapshotBody, CandleBody, CandlesBody, CurvePoint, Curves,
    DayBody, ExactQuoteBody, HistoryBody, HistoryPoint, Level, MarketBody, MarketsBody, QuoteBody, TickerBody,
    TickersBody, book_checksum,
};
pub use node::{
    AssetBody, AssetsBody, DoorsBody, HolderBody, LimitsBody, ListedAssetBody, ListingBody, MempoolStatus, NodeStatus,
    SealingStatus, StateRoot,
};
pub use operations::{OperationBody, OrderNumberBody, VenueMarketTermsBody, VenueOperatorBody};
pub use pools::{HoldingBody, HoldingsBody, PoolBody, PoolFillBody, PoolsBody};
pub use proposals::{ChangedParameterBody, ComingChangeBody, ParameterBody, ParametersBody, ProposalBody};
pub use record_proof::RecordProofBody;
pub use seal::{SealBody, SealFailedBody, SealKeyBody, SealMakingBody};
pub use stream::{
    AccountIncrement, AccountSnapshot, ChannelSnapshot, ChannelState, MarketCandleBody, MarketTradeBody, OwnFillBody,
    OwnOutcomeBody, StreamMessage,
};
pub use unions::flatten_unions;
pub use upgrade::{ApprovedRulesBody, ComingRulesBody, UpgradeBody};
pub use validator_status::{PeerStatus, SealedWait, ValidatorStatus};
pub use venue_asks::{
    AskBody, LifeBody, ListBody, ListedOrderBody, OperatorBody, OrderBody, PlaceBody, PlaceListsBody, RequestBody,
    SelfTradeBody,
};
pub use venue_door::{
    AcceptedBody, AnswerBody, BookImageBody, BookTopBody, DoneBody, DoorMarketBody, DoorMarketsBody, ExecutedBody,
    FillFateBody, OrderEndedBody, OvertakenBody, OwnFillsBody, OwnVenueFillBody, PlacedBody, PlacedResult,
    PositionBody, ReducedBody, ReportBody, ReportsBody, RestingOrderBody, SideBody, StandingBody, VenueBookBody,
    VenueDayBody, VenueLevel, VenueTradeBody, VenueTradesBody,
};
pub use venue_stream::{BookChange, BookEventBody, VenueMessage, VenueSaid, VenueTold};
pub use venues::{
    BlockSettlesBody, EndedBody, FillProofBody, FillTreeBody, FilledOrderBody, FilledOrdersBody, IncarnationsBody,
    LeavingBondBody, LeavingDepositBody, NetBody, RaiseBody, SettledAtBody, SettledBody, SettledFillBody,
    TradingKeyAtBody, TradingKeyBody, TradingKeysBody, VenueAtBody, VenueBody, VenueCustodyBody, VenueDepositBody,
    VenueDepositsBody, VenueMarketBody, VenueMarketsBody, VenueSettlesBody, VenueTermsBody, VenuesBody,
};
