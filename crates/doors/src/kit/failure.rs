//! Errors for clients: a status, a stable code, and a sentence with the remedy.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use ledger::contracts::EthereumFault;
use replica::EthereumReject;
use sockets::NoTurn;

use crate::backend::{Closed, ReadError};
use crate::json::{ErrorBody, ErrorText};
use crate::roles::Role;

impl From<NoTurn> for Failure {
    fn from(none: NoTurn) -> Failure {
        match none {
            NoTurn::Stopping => Failure::stopping(),
            NoTurn::Crowded => Failure::busy("too_many_requests", &none.to_string()),
            NoTurn::OverBudget { .. } => Failure::busy("too_much_was_false", &none.to_string()),
        }
    }
}

/// An error for a client.
pub(crate) struct Failure(pub(crate) StatusCode, pub(crate) ErrorText);

impl Failure {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Failure {
        Failure(status, ErrorText { code: code.into(), message: message.into() })
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, "malformed", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub(crate) fn stopping() -> Failure {
        let message = "the node is recovering or stopping; try another node, or try again shortly";
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready", message)
    }

    pub(crate) fn not_certified(message: impl Into<String>) -> Failure {
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "not_certified", message)
    }

    pub(crate) fn draining() -> Failure {
        let message = "the operator has stopped the intake of this node; submit to another node";
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "draining", message)
    }

    pub(crate) fn disk_full() -> Failure {
        let message = "the disk of this node is almost full, and it accepts no transactions; submit to another node, \
                       and tell its operator: space must be freed, see [store] free_bytes and keep_blocks";
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "disk_full", message)
    }

    pub(crate) fn unauthorized(role: Role) -> Failure {
        let setting = match role {
            Role::Submit => "submit_token_file",
            _ => "operator_token_file",
        };
        let message = format!("this call requires the token of [http] {setting}, as `Authorization: Bearer TOKEN`");
        Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }

    pub(crate) fn follows() -> Failure {
        let message = "this node is a follower and not a validator now; submit to a validator, see /v1/validators";
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "follows", message)
    }

    pub(crate) fn needs_rules(message: String) -> Failure {
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, "needs_rules", message)
    }

    pub(crate) fn too_large() -> Failure {
        let message = "the body is larger than this node accepts; see `body_bytes` under /v1/limits";
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }

    pub(crate) fn slow(seconds: u64) -> Failure {
        let message = format!("the body did not arrive within {seconds} s; send it at once, or in smaller batches");
        Failure::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message)
    }

    pub(crate) fn busy(code: &'static str, message: &str) -> Failure {
        Failure::new(StatusCode::TOO_MANY_REQUESTS, code, message)
    }
}

impl From<Closed> for Failure {
    fn from(closed: Closed) -> Failure {
        match closed {
            Closed::Busy => Failure::busy("too_many_requests", "too many submissions are queued; try again shortly"),
            Closed::OverBudget { again_ms } => NoTurn::OverBudget { again_ms }.into(),
            Closed::Stopping => Failure::stopping(),
            Closed::DiskFull => Failure::disk_full(),
            Closed::Follows => Failure::follows(),
            Closed::NeedsRules(_) => Failure::needs_rules(closed.to_string()),
        }
    }
}

impl From<EthereumReject> for Failure {
    fn from(reject: EthereumReject) -> Failure {
        match reject {
            EthereumReject::Full => Failure::busy(reject.code(), "the pool is full; try again shortly"),
            EthereumReject::Fault(EthereumFault::Undecodable) => Failure::malformed(reject.to_string()),
            _ => Failure::new(StatusCode::UNPROCESSABLE_ENTITY, reject.code(), reject.to_string()),
        }
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Failure {
        match error {
            ReadError::Stopping => Failure::stopping(),
            ReadError::Archive(_) => {
                tracing::error!(%error, "cannot read the archive for a client's request");
                let message = "the archive cannot be read; the node's log says why";
                Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "archive_failed", message)
            }
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let later = matches!(self.0, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        let status = self.0;
        let mut response = (self.0, Json(ErrorBody { error: self.1 })).into_response();
        if later {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// The answer to a call.
pub(crate) type Answered<T> = Result<Json<T>, Failure>;
