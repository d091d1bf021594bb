//! The state of a developers' chain as one value, for `anvil_dumpState` and `anvil_loadState`.
//!
//! The form is that of anvil, not compressed: the bytes of a JSON object with the accounts. Blocks, the assets of the
//! exchange besides the one that pays for gas, and offers are not part of it. Loading adds to the present state: an
//! account of the file has its balance, code and slots afterwards, and its nonce if that is not lower.

use ledger::contracts::{DeveloperEdit, DumpedAccount};
use primitives::Address;
use serde_json::{Map, Value, json};

use super::Session;
use super::params::Params;
use super::values::{data, quantity, read_address, read_data, read_quantity, read_slot};
use super::wire::{Answer, RpcError};
use crate::backend::{DeveloperCommand, Moment};

/// How a file that gzip has compressed begins.
const GZIP: [u8; 2] = [0x1f, 0x8b];

fn account_json(account: &DumpedAccount) -> Value {
    let slots = account.slots.iter().map(|(slot, value)| (format!("{slot:#066x}"), format!("{value:#066x}").into()));
    json!({
        "nonce": account.nonce,
        "balance": quantity(account.wei),
        "code": data(&account.code),
        "storage": slots.collect::<Map<_, _>>(),
    })
}

pub(super) fn dump_state(session: &Session, _: &Params) -> Answer {
    let accounts = session.rpc.api.backend.dump_accounts();
    let accounts: Map<String, Value> =
        accounts.iter().map(|account| (account.address.to_string(), account_json(account))).collect();
    let state = json!({
        "block": null,
        "accounts": accounts,
        "best_block_number": quantity(session.latest()),
        "blocks": [],
        "transactions": [],
    });
    Ok(data(state.to_string()))
}

/// A number as anvil writes it: a JSON number, or hexadecimal.
fn read_nonce(value: &Value) -> Result<u64, String> {
    match value.as_u64() {
        Some(number) => Ok(number),
        None => super::values::read_u64(value),
    }
}

fn read_edits(session: &Session, account: Address, value: &Value) -> Result<Vec<DeveloperEdit>, RpcError> {
    let wrong = |name: &'static str| move |why: String| RpcError::invalid_params(format!("{account}: {name}: {why}"));
    let mut edits = Vec::new();
    let of = |name: &str| value.get(name).filter(|value| !value.is_null());
    if let Some(balance) = of("balance") {
        // An amount that does not fit is above the maximum anyway, and the ledger names that maximum.
        let wei = read_quantity(balance).map_err(wrong("balance"))?.saturating_to::<u128>();
        edits.push(DeveloperEdit::Balance { account, wei });
    }
    if let Some(nonce) = of("nonce") {
        let nonce = read_nonce(nonce).map_err(wrong("nonce"))?;
        let present = session.rpc.api.backend.ethereum_account(&account, Moment::After(session.latest()))?.nonce;
        edits.extend((nonce > present).then_some(DeveloperEdit::Nonce { account, nonce }));
    }
    if let Some(code) = of("code") {
        let code = read_data(code).map_err(wrong("code"))?;
        edits.extend((!code.is_empty()).then_some(DeveloperEdit::Code { account, code }));
    }
    for (slot, value) in of("storage").and_then(Value::as_object).into_iter().flatten() {
        let slot = read_slot(&Value::from(slot.as_str())).map_err(wrong("storage"))?;
        edits.push(DeveloperEdit::Slot { account, slot, value: read_slot(value).map_err(wrong("storage"))? });
    }
    Ok(edits)
}

pub(super) fn load_state(session: &Session, params: &Params) -> Answer {
    let bytes = params.read(0, read_data)?;
    if bytes.starts_with(&GZIP) {
        return Err(RpcError::invalid_params("the state is compressed: decompress it with gzip first"));
    }
    let state: Value = serde_json::from_slice(&bytes)
        .map_err(|error| RpcError::invalid_params(format!("the state is no JSON object with accounts: {error}")))?;
    let accounts = state.get("accounts").and_then(Value::as_object);
    let accounts = accounts.ok_or_else(|| RpcError::invalid_params("the state has no accounts"))?;
    let mut edits = Vec::new();
    for (address, value) in accounts {
        let account = read_address(&Value::from(address.as_str()))
            .map_err(|why| RpcError::invalid_params(format!("{address}: {why}")))?;
        edits.extend(read_edits(session, account, value)?);
    }
    session.order(DeveloperCommand::Edits(edits))?;
    Ok(true.into())
}
