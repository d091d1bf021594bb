//! Present and past accounts, and the submission of transactions.

use std::sync::Arc;

use ledger::contracts::ethereum::KECCAK_EMPTY;
use ledger::contracts::{EthereumAccount, EthereumTransaction};
use primitives::{Address, Digest, Height, TransactionId};
use replica::EthereumReject;
use serde_json::{Value, json};

use super::Session;
use super::params::{Param, Params, param};
use super::values::{data, quantity, read_data, read_digest, read_slot, read_u64};
use super::wire::{Answer, Request, RpcError};
use crate::EthereumTaken;
use crate::backend::Moment;
use crate::roles::Role;

/// Maximum number of slots of one proof.
const PROVED_SLOTS: usize = 100;

/// The method that submits transactions, and its parameter.
pub(super) const SEND: &str = "eth_sendRawTransaction";
pub(super) const SENT: &[Param] = &[param("transaction", "bytes")];

impl Session<'_> {
    /// The height that a parameter names: a number, a tag, or a block by its hash; the newest height if it is
    /// omitted.
    pub(super) fn height(&self, params: &Params, at: usize) -> Result<Height, RpcError> {
        // A hash is written like a number, but does not fit into 64 bits.
        let read = |value: &Value| match value.as_str().is_some_and(|text| text.len() == 66) {
            true => Ok(self.height_of(&read_digest(value)?)),
            false => self.named(value),
        };
        let Some(named) = params.read_if(at, read)? else { return Ok(self.latest()) };
        named.filter(|height| *height <= self.latest()).ok_or_else(|| RpcError::server("header not found"))
    }

    /// The height that a value names; `None` if no block with that hash is known.
    pub(super) fn named(&self, value: &Value) -> Result<Option<Height>, String> {
        match value {
            Value::String(tag) => match tag.as_str() {
                "latest" | "pending" | "safe" | "finalized" => Ok(Some(self.latest())),
                "earliest" => Ok(Some(0)),
                _ => read_u64(value).map(Some),
            },
            Value::Object(fields) => match (fields.get("blockNumber"), fields.get("blockHash")) {
                (Some(number), None) => read_u64(number).map(Some),
                (None, Some(hash)) => Ok(self.height_of(&read_digest(hash)?)),
                _ => Err("either blockNumber or blockHash is expected".into()),
            },
            _ => Err("a number, a tag such as \"latest\", or a block's hash is expected".into()),
        }
    }

    /// The height of a block, by its digest.
    pub(super) fn height_of(&self, digest: &Digest) -> Option<Height> {
        let known = self.rpc.api.published().views().height_of(digest);
        known.or_else(|| (self.genesis_digest().ok().flatten() == Some(*digest)).then_some(0))
    }

    fn account(&self, address: &Address, height: Height) -> Result<EthereumAccount, RpcError> {
        Ok(self.rpc.api.backend.ethereum_account(address, Moment::After(height))?)
    }

    /// Sends transactions together; returns one answer for each.
    pub(super) fn send_all(&self, requests: &[Request]) -> Vec<Answer> {
        let read = |request: &Request| {
            self.check_role(Role::Submit)?;
            Params::new(&request.params, SENT)?.read(0, read_data)
        };
        let mut answers: Vec<Result<Vec<u8>, RpcError>> = requests.iter().map(read).collect();
        let bytes = answers.iter_mut().filter_map(|one| one.as_mut().ok()).map(std::mem::take).collect();
        let mut sent = self.submit(bytes).into_iter();
        let answered = |one: Result<Vec<u8>, RpcError>| match one {
            Ok(_) => sent.next().expect("one for each"),
            Err(error) => Err(error),
        };
        answers.into_iter().map(answered).collect()
    }

    /// Whether transactions are accepted.
    pub(super) fn check_intake(&self) -> Result<(), RpcError> {
        if self.rpc.api.is_draining() {
            return Err(RpcError::server("the operator has stopped the intake of this node; submit to another"));
        }
        Ok(())
    }

    /// Whether the gas limit that a developer has chosen for blocks admits a transaction with this limit.
    pub(super) fn check_block_gas(&self, gas: u64) -> Result<(), RpcError> {
        match self.rpc.api.backend.next_block().chosen.gas_limit.filter(|most| gas > *most) {
            Some(most) => {
                Err(RpcError::server(format!("exceeds block gas limit: {gas} gas, where a block has {most}")))
            }
            None => Ok(()),
        }
    }

    /// As [`Session::check_block_gas`], of encoded transactions.
    fn check_gas_of(&self, transactions: &[Vec<u8>]) -> Result<(), RpcError> {
        if self.rpc.api.backend.next_block().chosen.gas_limit.is_none() {
            return Ok(());
        }
        let mut decoded = transactions.iter().filter_map(|bytes| EthereumTransaction::decode(bytes).ok());
        decoded.try_for_each(|transaction| self.check_block_gas(transaction.gas_limit()))
    }

    fn submit(&self, transactions: Vec<Vec<u8>>) -> Vec<Answer> {
        let count = transactions.len();
        let refused = |error: RpcError| (0..count).map(|_| Err(error.clone())).collect();
        if let Err(error) = self.check_intake().and_then(|()| self.check_gas_of(&transactions)) {
            return refused(error);
        }
        match self.rpc.api.backend.submit_ethereum(self.caller.client, transactions) {
            Err(closed) => refused(closed.into()),
            Ok(EthereumTaken { answers, is_new }) => {
                self.has_paid.set(self.has_paid.get() || is_new);
                let answer = |answer: Result<TransactionId, EthereumReject>| match answer {
                    Ok(id) => Ok(data(id.0)),
                    Err(reject) => Err(reject.into()),
                };
                answers.into_iter().map(answer).collect()
            }
        }
    }
}

pub(super) fn get_balance(session: &Session, params: &Params) -> Answer {
    let account = session.account(&params.address(0)?, session.height(params, 1)?)?;
    Ok(quantity(account.wei))
}

/// The nonce of the next transaction; at `pending`, the next above the gapless pending ones.
pub(super) fn get_transaction_count(session: &Session, params: &Params) -> Answer {
    let address = params.address(0)?;
    let nonce = session.account(&address, session.height(params, 1)?)?.nonce;
    let is_pending = params.get(1).is_some_and(|tag| tag == "pending");
    let above = || session.rpc.api.backend.ethereum_nonce_above(&address, nonce);
    Ok(quantity(if is_pending { above() } else { nonce }))
}

pub(super) fn get_code(session: &Session, params: &Params) -> Answer {
    let account = session.account(&params.address(0)?, session.height(params, 1)?)?;
    let code = session.rpc.api.backend.ethereum_code(&account.code);
    Ok(code.map_or_else(|| data([]), |code| data(code.original_byte_slice())))
}

pub(super) fn get_storage_at(session: &Session, params: &Params) -> Answer {
    let (address, slot) = (params.address(0)?, params.read(1, read_slot)?);
    let height = session.height(params, 2)?;
    let value = session.rpc.api.backend.ethereum_slot(&address, &slot, Moment::After(height))?;
    Ok(data(value.unwrap_or_default()))
}

pub(super) fn send_raw_transaction(session: &Session, params: &Params) -> Answer {
    let bytes = params.read(0, read_data)?;
    session.submit(vec![bytes]).pop().expect("one for each")
}

/// An account and some of its slots, each with a Walras proof as the only element, under the newest state root.
/// Verifiers of Ethereum's tries do not accept it; `docs/specification.md` describes how to verify it.
pub(super) fn get_proof(session: &Session, params: &Params) -> Answer {
    let address = params.address(0)?;
    let slots = params.read(1, |value| {
        let all = value.as_array().ok_or("a list of slots is expected")?;
        if all.len() > PROVED_SLOTS {
            return Err(format!("{} slots; at most {PROVED_SLOTS} at a time", all.len()));
        }
        all.iter().map(read_slot).collect::<Result<Vec<_>, _>>()
    })?;
    let asked = session.height(params, 2)?;
    let backend: &Arc<_> = &session.rpc.api.backend;
    let proved = backend.prove_storage(&address, &slots)?;
    let is_newest = params.get(2).is_none_or(|value| value.is_string() && asked == session.latest());
    if !is_newest && asked != proved.height {
        return Err(RpcError::server("proofs are available only for the latest block"));
    }
    let account = session.account(&address, proved.height)?;
    let bytes = |proof: &[u8]| json!([data(proof)]);
    let encoded = |proof: Result<Vec<u8>, _>| proof.map_err(|_: std::io::Error| RpcError::internal("no proof"));
    let (account_proof, slot_proofs) = &proved.proof;
    let mut storage = Vec::new();
    for (slot, proof) in slots.iter().zip(slot_proofs) {
        let value = ledger::contracts::ethereum::U256::from_be_bytes(proof.value.unwrap_or_default());
        let proof = encoded(borsh::to_vec(proof))?;
        storage.push(json!({"key": data(slot), "value": quantity(value), "proof": bytes(&proof)}));
    }
    let code = if account.code == Digest::default() { KECCAK_EMPTY.0 } else { account.code.0 };
    Ok(json!({
        "address": data(address.0),
        "balance": quantity(account.wei),
        "nonce": quantity(account.nonce),
        "codeHash": data(code),
        "storageHash": data(slot_proofs.first().map(|proof| proof.storage).unwrap_or_default().0),
        "accountProof": bytes(&encoded(borsh::to_vec(account_proof))?),
        "storageProof": storage,
        "blockNumber": quantity(proved.height),
        "stateRoot": data(proved.root.0),
    }))
}
