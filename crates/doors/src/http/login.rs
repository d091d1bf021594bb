//! Logins on the stream: a client proves that it has an account's key, by a signature over a challenge.
//!
//! `{"challenge": true}` is answered with a nonce of this connection, which counts once. `{"login": {…}}` brings the
//! signature: by an ed25519 key over the bytes of [`login_bytes`], or by an Ethereum wallet over typed data
//! `StreamLogin(address account,bytes32 nonce,string server)` in the domain of the network's transactions. The keys are
//! those that sign for the account: its own, or the one that it registered; and its session keys.
//!
//! *Properties.* A signature is of use on one connection, once. It names the server as the client called it, so that a
//! node that a client was led to cannot log in at another one with what it was given. It is no transaction and no
//! order: their bytes and structures begin otherwise. A connection has at most [`LOGINS`] tries.
//!
//! A login ends with its key: when the account registers another one, or the slot is over or has another key, the
//! channels that needed the login end, and the client is told so.
//!
//! A session key logs in as its slot. It has the channel of own orders as long as the slot is not over, and may leave
//! what it signed itself ([`super::disconnect`]).
//!
//! What the chain says of an account is public. A login is needed for what this node alone knows: orders that it took
//! and that are in no block yet.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, header};
use ledger::{AccountKeys, AccountState, SessionRecord};
use primitives::{
    Address, Digest, PublicKey, SessionSlot, Signature, TypedData, TypedValue, WalletSignature, login_bytes, to_hex,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Api;
use super::channels::{Channel, name};
use super::unsigned::bytes_of_hex;
use crate::backend::AccountRead;

/// Tries of a connection, failed ones included.
pub(crate) const LOGINS: usize = 16;
/// A longer name of a server is none.
const SERVER_BYTES: usize = 255;

/// A client's request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Login {
    account: String,
    /// The ed25519 key that signs; without it the signature is over typed data.
    key: Option<String>,
    signature: String,
}

/// The logins of a connection.
pub(super) struct Logins {
    /// The server as the client called it.
    server: String,
    nonce: Option<[u8; 32]>,
    tries: usize,
    /// Accounts with the slot of the key that logged in, 0 of the account's own, and the key; `None` of a wallet.
    signers: BTreeMap<(Address, SessionSlot), Option<PublicKey>>,
}

/// A code and its sentence.
pub(super) type Refused = (&'static str, String);

impl Logins {
    /// Of a connection whose request had these headers.
    pub(super) fn of(headers: &HeaderMap) -> Logins {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let server = host.filter(|host| host.len() <= SERVER_BYTES).unwrap_or_default().to_string();
        Logins { server, nonce: None, tries: 0, signers: BTreeMap::new() }
    }

    /// A new challenge; the one before counts no more.
    pub(super) fn challenge(&mut self, api: &Api) -> Value {
        let mut nonce = [0; 32];
        getrandom::fill(&mut nonce).expect("the system gives random numbers");
        self.nonce = Some(nonce);
        let network = network_of(api).1;
        json!({
            "type": "challenge", "nonce": format!("0x{}", to_hex(&nonce)), "server": self.server,
            "network": network.to_string(),
        })
    }

    /// Takes a login; returns the answer.
    pub(super) fn login(&mut self, api: &Api, login: &Login) -> Result<Value, Refused> {
        self.tries += 1;
        if self.tries > LOGINS {
            let message = format!("a connection has {LOGINS} logins: connect again");
            return Err(("too_many_logins", message));
        }
        let Some(nonce) = self.nonce.take() else {
            let message = r#"send {"challenge":true} first: each challenge counts for one login"#;
            return Err(("no_challenge", message.into()));
        };
        let (account, slot, key) = self.checked(api, login, nonce).map_err(|why| ("login_refused", why))?;
        self.signers.insert((account, slot), key);
        Ok(json!({"type": "login", "account": account.to_string(), "slot": slot}))
    }

    /// Whether the key of an account's slot has logged in.
    pub(super) fn has(&self, account: Address, slot: SessionSlot) -> bool {
        self.signers.contains_key(&(account, slot))
    }

    /// The account of a login whose signature is its owner's or its session key's, and the slot and the key.
    fn checked(
        &self,
        api: &Api,
        login: &Login,
        nonce: [u8; 32],
    ) -> Result<(Address, SessionSlot, Option<PublicKey>), String> {
        let account: Address = login.account.parse().map_err(|error| format!("account: {error}"))?;
        let key = login.key.as_ref().map(|key| key.parse::<PublicKey>());
        let key = key.transpose().map_err(|error| format!("key: {error}"))?;
        let signature = bytes_of_hex("signature", &login.signature).map_err(|failure| failure.1.message)?;
        let (chain, network) = network_of(api);
        let mut slot = 0;
        let is_signed = match key {
            Some(key) => {
                let signature =
                    <[u8; 64]>::try_from(signature).map_err(|_| "signature: an ed25519 signature has 64 bytes")?;
                slot = slot_of_key(api, &account, &key)?;
                key.verify(&login_bytes(&network, &account, &nonce, &self.server), &Signature(signature))
            }
            None => {
                let signature =
                    WalletSignature::from_bytes(&signature).map_err(|error| format!("signature: {error}"))?;
                let hash = typed(account, nonce, &self.server).hash(chain, &network);
                signature.recover(&hash) == Some(account)
            }
        };
        let wrong = || {
            format!(
                "the signature is not {account}'s over this challenge: it names network {network}, the account, the \
                 nonce, and the server {:?}",
                self.server
            )
        };
        is_signed.then_some((account, slot, key)).ok_or_else(wrong)
    }

    /// Whether a key that logged in may still act for an account: it is the account's present key, or that of a slot
    /// that is not over.
    pub(super) fn speaks_for(&self, api: &Api, account: &Address) -> bool {
        let mut signers = self.signers.range((*account, 0)..=(*account, SessionSlot::MAX)).peekable();
        if signers.peek().is_none() {
            return false;
        }
        let AccountRead { height, account: state, keys } = api.backend.account(account);
        signers.any(|((_, slot), key)| match (slot, key) {
            (0, None) => true,
            (0, Some(key)) => is_key_of(account, state.as_ref(), keys.as_ref(), key).is_ok(),
            (slot, key) => {
                let record = state.as_ref().and_then(|state| state.sessions.as_ref()?.get(*slot));
                record.is_some_and(|record| Some(record.key) == *key && !record.is_over(height))
            }
        })
    }

    /// Why this connection may not have a channel.
    pub(super) fn refuses(&self, api: &Api, channel: &Channel) -> Option<Refused> {
        let Channel::Orders(address) = channel else { return None };
        if !self.speaks_for(api, address) {
            let message = format!(
                r#"{}: log in as this account first: send {{"challenge":true}}, sign it, and send {{"login":…}}"#,
                name(channel)
            );
            return Some(("login_required", message));
        }
        api.backend.history().err().map(|none| ("no_history", none.to_string()))
    }
}

/// The slot of a key that signs for an account: 0 of its own, or that of a session key that has not ended.
fn slot_of_key(api: &Api, account: &Address, key: &PublicKey) -> Result<SessionSlot, String> {
    let AccountRead { height, account: state, keys } = api.backend.account(account);
    let mut records = state.iter().flat_map(|state| &state.sessions).flat_map(|sessions| &sessions.records);
    let is_its = |record: &&SessionRecord| record.key == *key && !record.is_closed && record.until > height;
    if let Some(record) = records.rfind(is_its) {
        return Ok(record.slot);
    }
    is_key_of(account, state.as_ref(), keys.as_ref(), key).map(|()| 0)
}

/// The key that an account registered signs for it; without one that of its address. No key signs alone for an account
/// with a policy.
pub(super) fn is_key_of(
    account: &Address,
    state: Option<&AccountState>,
    keys: Option<&AccountKeys>,
    key: &PublicKey,
) -> Result<(), String> {
    if keys.is_some() {
        return Err(format!("key: {account} has a policy of several keys; a session key of it speaks alone"));
    }
    match state.and_then(|state| state.key.as_ref()) {
        Some(registered) if registered == key => Ok(()),
        None if key.address() == *account => Ok(()),
        Some(_) => Err(format!("key: {account} has registered another one")),
        None => Err(format!("key: it is that of {}, not of {account}", key.address())),
    }
}

fn network_of(api: &Api) -> (u64, Digest) {
    let views = api.published().views();
    let outline = views.outline();
    (outline.chain, outline.validators.terms.network)
}

fn typed(account: Address, nonce: [u8; 32], server: &str) -> TypedData {
    let fields = vec![
        ("account", TypedValue::Address(account)),
        ("nonce", TypedValue::Bytes32(nonce)),
        ("server", TypedValue::Text(server.into())),
    ];
    TypedData { primary: "StreamLogin", fields }
}
