//! Permissions of callers: one table, one check.
//!
//! | role | who may call it |
//! |---|---|
//! | read | everybody |
//! | submit | everybody; if `[http] submit_token_file` is set, callers with its token or the operator's |
//! | operator | callers with the token of `[http] operator_token_file`; nobody if that is not set |
//! | probe | everybody at a door on loopback and at `[http] probes`; elsewhere callers with the operator's token |
//!
//! A token is the first line of a file that only its owner can read, and is sent as `Authorization: Bearer TOKEN`.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use axum::http::{HeaderMap, header};
use primitives::Digest;

use crate::settings::Http;

/// Minimum number of characters of a token.
const TOKEN_LEAST: usize = 32;

/// The permission that an endpoint requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Reads public data.
    Read,
    /// Submits transactions.
    Submit,
    /// Operates the node.
    Operator,
    /// Measures the node.
    Probe,
}

/// Every endpoint with its role. All other paths are files of the page.
pub const ENDPOINTS: &[(&str, &str, Role)] = &[
    ("GET", "/healthz", Role::Read),
    ("GET", "/readyz", Role::Read),
    ("GET", "/metrics", Role::Probe),
    ("GET", "/v1/openapi.json", Role::Read),
    ("GET", "/v1/asyncapi.json", Role::Read),
    ("GET", "/v1/stream", Role::Read),
    ("GET", "/v1/status", Role::Read),
    ("GET", "/v1/limits", Role::Read),
    ("GET", "/v1/upgrade", Role::Read),
    ("GET", "/v1/parameters", Role::Read),
    ("GET", "/v1/parameters/proof", Role::Read),
    ("GET", "/v1/seal", Role::Read),
    ("GET", "/v1/seal/proof", Role::Read),
    ("GET", "/v1/assets", Role::Read),
    ("GET", "/v1/assets/{number}/proof", Role::Read),
    ("GET", "/v1/assets/{number}/holders/{address}", Role::Read),
    ("GET", "/v1/assets/{number}/holders/{address}/proof", Role::Read),
    ("GET", "/v1/accounts/{address}", Role::Read),
    ("GET", "/v1/accounts/{address}/offers", Role::Read),
    ("GET", "/v1/accounts/{address}/proof", Role::Read),
    ("GET", "/v1/accounts/{address}/keys/proof", Role::Read),
    ("GET", "/v1/accounts/{address}/orders", Role::Read),
    ("GET", "/v1/accounts/{address}/orders/{id}", Role::Read),
    ("GET", "/v1/accounts/{address}/clients/{client}", Role::Read),
    ("GET", "/v1/accounts/{address}/fills", Role::Read),
    ("GET", "/v1/accounts/{address}/transfers", Role::Read),
    ("GET", "/v1/accounts/{address}/balances", Role::Read),
    ("GET", "/v1/offers/{sell}/{buy}/{limit}/{account}/{id}/proof", Role::Read),
    ("GET", "/v1/markets", Role::Read),
    ("GET", "/v1/tickers", Role::Read),
    ("GET", "/v1/markets/{base}/{quote}/ticker", Role::Read),
    ("GET", "/v1/markets/{base}/{quote}/book", Role::Read),
    ("GET", "/v1/markets/{base}/{quote}/curves", Role::Read),
    ("GET", "/v1/markets/{base}/{quote}/history", Role::Read),
    ("GET", "/v1/markets/{base}/{quote}/candles", Role::Read),
    ("GET", "/v1/markets/{base}/{quote}/offers", Role::Read),
    ("GET", "/v1/quote", Role::Read),
    ("GET", "/v1/blocks", Role::Read),
    ("GET", "/v1/blocks/{height}", Role::Read),
    ("GET", "/v1/blocks/{height}/batch", Role::Read),
    ("GET", "/v1/blocks/{height}/ended", Role::Read),
    ("GET", "/v1/blocks/{height}/ethereum", Role::Read),
    ("GET", "/v1/blocks/{height}/raw", Role::Read),
    ("GET", "/v1/blocks/{height}/receipts", Role::Read),
    ("GET", "/v1/blocks/{height}/certificate", Role::Read),
    ("GET", "/v1/blocks/{height}/accounts/{address}", Role::Read),
    ("GET", "/v1/validator", Role::Read),
    ("GET", "/v1/validators", Role::Read),
    ("GET", "/v1/validators/proof", Role::Read),
    ("GET", "/v1/handovers", Role::Read),
    ("GET", "/v1/lane", Role::Read),
    ("GET", "/v1/lane/outputs/{id}", Role::Read),
    ("GET", "/v1/lane/boards/{epoch}", Role::Read),
    ("GET", "/v1/lane/cases", Role::Read),
    ("GET", "/v1/lane/registrations/proof", Role::Read),
    ("POST", "/v1/lane/relay", Role::Submit),
    ("GET", "/v1/accounts/{address}/deposits", Role::Read),
    ("GET", "/v1/accounts/{address}/deposits/{venue}/{asset}/proof", Role::Read),
    ("GET", "/v1/accounts/{address}/trading-keys", Role::Read),
    ("GET", "/v1/blocks/{height}/settles", Role::Read),
    ("GET", "/v1/pools", Role::Read),
    ("GET", "/v1/pools/{a}/{b}/{fee_class}/proof", Role::Read),
    ("GET", "/v1/accounts/{address}/pools", Role::Read),
    ("GET", "/v1/accounts/{address}/pools/{a}/{b}/{fee_class}/proof", Role::Read),
    ("GET", "/v1/venues", Role::Read),
    ("GET", "/v1/venues/{venue}", Role::Read),
    ("GET", "/v1/venues/{venue}/proof", Role::Read),
    ("GET", "/v1/venues/{venue}/markets", Role::Read),
    ("GET", "/v1/venues/{venue}/markets/{market}/proof", Role::Read),
    ("GET", "/v1/venues/{venue}/deposits", Role::Read),
    ("GET", "/v1/venues/{venue}/keys/{key}", Role::Read),
    ("GET", "/v1/venues/{venue}/keys/{key}/proof", Role::Read),
    ("GET", "/v1/venues/{venue}/keys/{key}/orders", Role::Read),
    ("GET", "/v1/venues/{venue}/keys/{key}/orders/{incarnation}/{day}/{reference}/proof", Role::Read),
    ("GET", "/v1/venues/{venue}/settles", Role::Read),
    ("GET", "/v1/venues/{venue}/fills/{incarnation}/{index}/proof", Role::Read),
    ("GET", "/v1/venues/{venue}/incarnations", Role::Read),
    ("GET", "/v1/venues/{venue}/claims/{incarnation}/{index}/proof", Role::Read),
    ("GET", "/v1/transactions/{id}", Role::Read),
    ("POST", "/v1/transactions", Role::Submit),
    ("POST", "/v1/transactions/batch", Role::Submit),
    ("POST", "/v1/typed-data", Role::Read),
    ("POST", "/v1/transactions/prepare", Role::Read),
    ("GET", "/v1/ethereum/{hash}", Role::Read),
    ("GET", "/v1/ethereum/{hash}/output", Role::Read),
    ("POST", "/v1/ethereum", Role::Submit),
    ("POST", "/v1/ethereum/batch", Role::Submit),
    ("GET", "/v1/operator/doors", Role::Operator),
    ("POST", "/v1/operator/drain", Role::Operator),
    ("POST", "/v1/operator/resume", Role::Operator),
];

/// The role of an endpoint; the operator's for a route that is missing in the table.
pub(crate) fn role_of(method: &str, path: &str) -> Role {
    let method = if method == "HEAD" { "GET" } else { method };
    let found = ENDPOINTS.iter().find(|(known, route, _)| *known == method && *route == path);
    // For other methods a route answers 405 to every caller.
    let is_known = || ENDPOINTS.iter().any(|(_, route, _)| *route == path);
    match found {
        Some((_, _, role)) => *role,
        None if is_known() => Role::Read,
        None => Role::Operator,
    }
}

/// The access rules of a door.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Digests, so that a comparison reveals nothing about the token.
    operator: Option<Digest>,
    submit: Option<Digest>,
    /// Whether other machines can reach the door.
    is_exposed: bool,
}

/// Why tokens or keys cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The file cannot be read.
    #[error("{}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: std::io::Error,
    },
    /// Other users can read the file.
    #[error("{}: others can read it (mode {mode:o}); run `chmod 600` on it, and create a new secret", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A token is too short.
    #[error("{}: a token must be a line of at least 32 characters; run `openssl rand -hex 32`", .0.display())]
    Short(PathBuf),
}

/// Reads a file that only its owner can read.
///
/// # Errors
/// [`SecretError::Unreadable`] and [`SecretError::Open`].
pub fn read_secret(path: &Path) -> Result<String, SecretError> {
    let unreadable = |reason| SecretError::Unreadable { path: path.into(), reason };
    let mode = std::fs::metadata(path).map_err(unreadable)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(SecretError::Open { path: path.into(), mode });
    }
    std::fs::read_to_string(path).map_err(unreadable)
}

fn token(path: Option<&PathBuf>) -> Result<Option<Digest>, SecretError> {
    let Some(path) = path else { return Ok(None) };
    let text = read_secret(path)?;
    let line = text.lines().next().unwrap_or("").trim();
    if line.len() < TOKEN_LEAST {
        return Err(SecretError::Short(path.clone()));
    }
    Ok(Some(digest(line)))
}

fn digest(token: &str) -> Digest {
    Digest::of("walras access token", token.as_bytes())
}

impl Access {
    pub(crate) fn new(settings: &Http) -> Result<Access, SecretError> {
        Ok(Access {
            operator: token(settings.operator_token_file.as_ref())?,
            submit: token(settings.submit_token_file.as_ref())?,
            is_exposed: !settings.listen.ip().is_loopback(),
        })
    }

    /// The same for the address of probes, which anybody who can reach it may use.
    pub(crate) fn of_probes(&self) -> Access {
        Access { is_exposed: false, ..self.clone() }
    }

    /// Whether a request may make calls of a role.
    pub(crate) fn admits(&self, role: Role, headers: &HeaderMap) -> bool {
        let shown = bearer(headers).map(digest);
        let is = |token: Option<Digest>| token.is_some() && token == shown;
        match role {
            Role::Read => true,
            Role::Submit => self.submit.is_none() || is(self.submit) || is(self.operator),
            Role::Probe => !self.is_exposed || is(self.operator),
            Role::Operator => is(self.operator),
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
