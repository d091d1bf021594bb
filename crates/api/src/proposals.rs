//! The parameters of a chain, and what is proposed about them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::operations::OperationBody;

/// The parameters in force, what waits, and what is proposed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ParametersBody {
    /// Height of the state that was read.
    pub height: u64,
    /// The account that proposes on a chain of one node; null where validators vote, or nobody can.
    pub operator: Option<String>,
    /// Each parameter, as it is in the next block.
    pub parameters: Vec<ParameterBody>,
    /// What has passed and does not act yet, by height.
    pub coming: Vec<ComingChangeBody>,
    /// What is open, by the account that proposed it.
    pub proposals: Vec<ProposalBody>,
}

/// A parameter, and what it may become.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ParameterBody {
    /// Its name, as an operation names it.
    pub parameter: String,
    /// Its value in the next block.
    pub value: String,
    /// The least value that the chain's genesis permits.
    pub least: String,
    /// The highest.
    pub most: String,
    /// The first height whose boundary may change it again; null if it never changed.
    pub rests_until: Option<u64>,
}

/// What acts from a height on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ComingChangeBody {
    /// The first height.
    pub acts: u64,
    /// Parameters that have another value from then on.
    pub parameters: Vec<ChangedParameterBody>,
    /// Names of assets that are listed by then.
    pub lists: Vec<String>,
    /// Assets whose closing is announced by then.
    pub closes: Vec<String>,
    /// Assets on whose terms in the payment lane it decides: `/v1/lane` has them from then on.
    #[serde(default)]
    pub lane: Vec<String>,
}

/// A parameter and a value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangedParameterBody {
    /// Its name.
    pub parameter: String,
    /// The value.
    pub value: String,
}

/// An open proposal, and what it lacks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProposalBody {
    /// The id that votes name.
    pub id: String,
    /// The account that proposed it.
    pub proposer: String,
    /// The operation, as its transaction has it.
    pub change: OperationBody,
    /// What it asks for in words.
    pub words: String,
    /// Boundaries that will still count it.
    pub boundaries_left: u8,
    /// Seats of the last committee that want it.
    pub seats: usize,
    /// Seats of it that must.
    pub seats_needed: usize,
    /// Its seats.
    pub all_seats: usize,
    /// Units staked by the accounts that want it; two thirds of all must.
    pub stake: String,
    /// Units staked by all.
    pub all_stake: String,
    /// The accounts that want it.
    pub yes: Vec<String>,
    /// The accounts that do not.
    pub no: Vec<String>,
}
