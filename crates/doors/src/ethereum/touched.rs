//! What an execution touches: the trace of the state before it (`prestateTracer`), and access lists for calls.

use ledger::contracts::ethereum::U256;
use ledger::contracts::{AccessList, AccessListItem, AccountInfo, EvmCode, EvmState, EvmTouched};
use serde_json::{Map, Value, json};

use super::Session;
use super::blocks::access_list_json;
use super::calls::returned;
use super::overrides::{BlockOverrides, StateOverrides};
use super::params::Params;
use super::past_state::PastState;
use super::values::{data, quantity};
use super::wire::{Answer, RpcError};

fn word(value: U256) -> Value {
    data(value.to_be_bytes::<32>())
}

fn code_of(state: &PastState, info: &AccountInfo) -> EvmCode {
    info.code.clone().unwrap_or_else(|| match info.is_empty_code_hash() {
        true => EvmCode::default(),
        false => state.code(0, &info.code_hash),
    })
}

/// A record as the tracer shows it, without the parts that `same` has too.
fn record(state: &PastState, info: &AccountInfo, same: Option<&AccountInfo>) -> Map<String, Value> {
    let mut shown = Map::new();
    if same.is_none_or(|same| same.balance != info.balance) {
        shown.insert("balance".into(), quantity(info.balance));
    }
    if same.map_or(0, |same| same.nonce) != info.nonce {
        shown.insert("nonce".into(), info.nonce.into());
    }
    if same.map_or(info.is_empty_code_hash(), |same| same.code_hash == info.code_hash) {
        return shown;
    }
    shown.insert("code".into(), data(code_of(state, info).original_byte_slice()));
    shown
}

/// The accounts as they were before the execution, with the slots that it looked at.
pub(super) fn before(state: &PastState, touched: &[EvmTouched]) -> Value {
    let one = |touched: &EvmTouched| {
        let info = touched.before.clone().unwrap_or_default();
        let mut shown = record(state, &info, None);
        let slots: Map<String, Value> =
            touched.slots.iter().map(|(slot, before, _)| (format!("{slot:#066x}"), word(*before))).collect();
        if !slots.is_empty() {
            shown.insert("storage".into(), slots.into());
        }
        (data(touched.address).as_str().unwrap_or_default().to_string(), Value::from(shown))
    };
    touched.iter().map(one).collect::<Map<_, _>>().into()
}

/// What the execution changed: the changed accounts before it, and their changed parts after it.
pub(super) fn difference(state: &PastState, touched: &[EvmTouched]) -> Value {
    let (mut pre, mut post) = (Map::new(), Map::new());
    for EvmTouched { address, before, after, slots, .. } in touched {
        let changed: Vec<_> = slots.iter().filter(|(_, before, after)| before != after).collect();
        if before == after && changed.is_empty() {
            continue;
        }
        let storage = |pick: fn(&(U256, U256, U256)) -> U256| -> Map<String, Value> {
            let some = changed.iter().filter(|slot| !pick(slot).is_zero());
            some.map(|slot| (format!("{:#066x}", slot.0), word(pick(slot)))).collect()
        };
        let with = |mut shown: Map<String, Value>, storage: Map<String, Value>| {
            if !storage.is_empty() {
                shown.insert("storage".into(), storage.into());
            }
            shown
        };
        let name = data(address).as_str().unwrap_or_default().to_string();
        if let Some(info) = before {
            pre.insert(name.clone(), with(record(state, info, None), storage(|slot| slot.1)).into());
        }
        if let Some(info) = after {
            post.insert(name, with(record(state, info, before.as_ref()), storage(|slot| slot.2)).into());
        }
    }
    json!({"pre": pre, "post": post})
}

/// The addresses and slots that a call touches, and the gas that it uses when it names them. What it finds warm anyway
/// is named only with slots.
pub(super) fn create_access_list(session: &Session, params: &Params) -> Answer {
    let replaced = params.read_if(2, StateOverrides::read)?.unwrap_or_default();
    let mut prepared = session.prepare(params, &replaced, &BlockOverrides::default())?;
    session.check_gas()?;
    let mut transaction = prepared.transaction();
    let (called, touched) =
        prepared.view.touched_by_call(&prepared.context, transaction.clone()).map_err(RpcError::server)?;
    session.pay_gas(called.gas_used);
    prepared.view.state().check()?;
    let item = |one: &EvmTouched| AccessListItem {
        address: one.address,
        storage_keys: one.slots.iter().map(|(slot, ..)| (*slot).into()).collect(),
    };
    let shown = touched.iter().filter(|one| !one.is_warm || !one.slots.is_empty());
    let list = AccessList(shown.map(item).collect());
    if transaction.tx_type == 0 {
        transaction.tx_type = 1;
    }
    transaction.access_list = list.clone();
    session.check_gas()?;
    let (called, _) = prepared.view.touched_by_call(&prepared.context, transaction).map_err(RpcError::server)?;
    session.pay_gas(called.gas_used);
    let mut answer = json!({"accessList": access_list_json(&list), "gasUsed": quantity(called.gas_used)});
    if let Err(error) = returned(called) {
        answer["error"] = error.message.into();
    }
    Ok(answer)
}
