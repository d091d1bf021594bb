//! What a developers' chain signs for the accounts whose keys everybody knows.

use ledger::contracts::ethereum::{B256, keccak256};
use ledger::contracts::{EthereumKey, EthereumRequest};
use primitives::{Address, from_hex};
use serde_json::Value;

use super::Session;
use super::calls::{CallRequest, estimate_gas};
use super::eip712::typed_data_hash;
use super::params::Params;
use super::values::{data, read_address, read_data, read_u64};
use super::wire::{Answer, RpcError};
use crate::backend::Moment;

/// The secret keys of the accounts of the mnemonic "test test test test test test test test test test test junk".
pub const DEVELOPER_KEYS: [&str; 10] = [
    "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    "0x7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
    "0x47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
    "0x8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
    "0x92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
    "0x4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
    "0xdbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
    "0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
];

fn key_of(account: &Address) -> Result<EthereumKey, RpcError> {
    let keys = DEVELOPER_KEYS.iter().filter_map(|key| EthereumKey::from_seed(from_hex(key).ok()?));
    let known = keys.into_iter().find(|key| key.address() == *account);
    known.ok_or_else(|| RpcError::server(format!("no key for {account}: this node signs for its ten accounts only")))
}

fn signature(account: &Address, hash: B256) -> Answer {
    let signature = key_of(account)?.sign_hash(hash);
    let parity = 27 + u8::from(signature.v());
    Ok(data([&signature.r().to_be_bytes::<32>()[..], &signature.s().to_be_bytes::<32>(), &[parity]].concat()))
}

/// The hash of a message as wallets sign it.
fn message_hash(message: &[u8]) -> B256 {
    let head = format!("\x19Ethereum Signed Message:\n{}", message.len());
    keccak256([head.as_bytes(), message].concat())
}

pub(super) fn sign(_: &Session, params: &Params) -> Answer {
    signature(&params.address(0)?, message_hash(&params.read(1, read_data)?))
}

pub(super) fn personal_sign(_: &Session, params: &Params) -> Answer {
    let message = params.read(0, read_data)?;
    signature(&params.address(1)?, message_hash(&message))
}

pub(super) fn sign_typed_data(_: &Session, params: &Params) -> Answer {
    let account = params.address(0)?;
    let hash = params.read(1, |value| match value.as_str() {
        Some(text) => typed_data_hash(&serde_json::from_str(text).map_err(|error| format!("not JSON: {error}"))?),
        None => typed_data_hash(value),
    })?;
    signature(&account, hash)
}

pub(super) fn sign_transaction(session: &Session, params: &Params) -> Answer {
    let from = params.read(0, |value: &Value| read_address(&value["from"]))?;
    let key = key_of(&from)?;
    Ok(data(key.sign(&to_send(session, params, &from)?)))
}

/// The transaction of the first parameter, with the sender's next nonce, and with gas and a fee if it has none.
pub(super) fn to_send(session: &Session, params: &Params, from: &Address) -> Result<EthereumRequest, RpcError> {
    let request = params.read(0, CallRequest::read)?;
    let backend = &session.rpc.api.backend;
    let gas = match request.gas() {
        Some(gas) => gas,
        None => read_u64(&estimate_gas(session, params)?).map_err(RpcError::internal)?,
    };
    let nonce = backend.ethereum_account(from, Moment::After(session.latest()))?.nonce;
    let nonce = backend.ethereum_nonce_above(from, nonce);
    let base_fee = session.terms()?.base_fee;
    let sent = request.to_request(session.rpc.outline().chain, nonce, gas, 2 * u128::from(base_fee));
    sent.map_err(RpcError::invalid_params)
}
