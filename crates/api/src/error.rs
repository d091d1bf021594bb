//! Errors: a sentence and a stable code.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An error: a description and a stable code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorText,
}

/// Code and sentence of an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ErrorText {
    /// Stable code, such as `overdraft`.
    #[schema(example = "overdraft")]
    pub code: Cow<'static, str>,
    /// A sentence for people: what is wrong, and the remedy.
    pub message: String,
}
