//! The JSON of the interface: amounts and prices are exact decimal strings, ids are hexadecimal.

use ledger::Refusal;
use serde::Serialize;
use utoipa::ToSchema;

mod accounts;
mod blocks;
mod committees;
mod ethereum;
mod lane;
mod markets;
mod node;
mod symbols;

pub use accounts::{
    AccountBody, AccountEthereumBody, AccountProofBody, BalanceBody, CodeBody, ModifiedBody, OfferBody, OfferProofBody,
    Offers, RestingOffer, RestingOffers, SequenceBody,
};
pub use blocks::{
    BatchBody, BlockBody, BlockDetail, BlocksBody, OperationBody, OutcomeBody, PreparedBody, ResultBody, Results,
    SolverBody, TradeBody, TransactionBody, TransactionOutcome, TypedDataBody, block,
};
pub use committees::{
    CertificateBody, CommitteeBody, HandoverBody, HandoversBody, MemberBody, UnbondingBody, ValidatorBody,
    ValidatorsBody, ValidatorsProofBody, validators,
};
pub use ethereum::{
    EthereumBlockBody, EthereumBody, EthereumExecutedBody, EthereumLimitsBody, EthereumLogBody, EthereumOutputBody,
    EthereumReceiptBody, EthereumResultBody, EthereumResults, EthereumTransactionBody,
};
pub use lane::{
    HOME_PORTS, LaneAssetBody, LaneBoardBody, LaneBody, LaneCandidateBody, LaneCaseBody, LaneCasesBody, LaneOutputBody,
    LaneRegistrationBody, LaneRegistrationsProofBody, RegisteredBlsBody, lane, lane_cases, lane_output,
    lane_registration,
};
pub use markets::{
    BookBody, CandleBody, CandlesBody, CurvePoint, Curves, HistoryBody, HistoryPoint, Level, MarketBody, MarketsBody,
    price, rounded,
};
pub use node::{AssetBody, Assets, DoorsBody, LimitsBody, MempoolStatus, NodeStatus, StateRoot, assets};
pub use symbols::Symbols;

/// An error: a description and a stable code.
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
