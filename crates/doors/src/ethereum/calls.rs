//! Executions without effect: calls, and gas estimation.

use std::sync::Arc;

use ledger::contracts::ethereum::{self, B256, Bytes, TxKind, U256};
use ledger::contracts::{
    AccessList, AccessListItem, Authorization, Either, EthereumRequest, EvmCalled, EvmContext, EvmStatus, EvmView,
    SignedAuthorization, TRANSACTION_GAS_MAX, TxEnv,
};
use primitives::{Address, Height};
use serde_json::{Map, Value};

use super::overrides::{BlockOverrides, StateOverrides};
use super::params::Params;
use super::past_state::PastState;
use super::values::{data, quantity, read_address, read_data, read_quantity, read_u64, read_u128};
use super::wire::{Answer, RpcError};
use super::{CALL_GAS_MAX, Session};
use crate::backend::{Moment, NextBlock};

/// Maximum number of addresses and slots that a call names.
const NAMED_MAX: usize = 10_000;
/// Maximum number of delegations of a call: the gas of a transaction pays for no more.
const AUTHORIZATIONS_MAX: usize = 700;
/// Gas of a transfer to an account without code.
const TRANSFER_GAS: u64 = 21_000;

/// The parameters of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct CallRequest {
    from: Address,
    to: Option<Address>,
    gas: Option<u64>,
    max_fee: u128,
    max_tip: Option<u128>,
    value: U256,
    nonce: Option<u64>,
    chain: Option<u64>,
    input: Vec<u8>,
    access_list: Option<AccessList>,
    authorizations: Option<Vec<SignedAuthorization>>,
}

impl CallRequest {
    pub fn read(value: &Value) -> Result<CallRequest, String> {
        let fields = value.as_object().ok_or("an object is expected")?;
        let of = |name: &str| fields.get(name).filter(|value| !value.is_null());
        fn read<T>(
            value: Option<&Value>,
            name: &str,
            read: impl FnOnce(&Value) -> Result<T, String>,
        ) -> Result<Option<T>, String> {
            value.map(|value| read(value).map_err(|why| format!("{name}: {why}"))).transpose()
        }
        let price = read(of("gasPrice"), "gasPrice", read_u128)?;
        let max_fee = read(of("maxFeePerGas"), "maxFeePerGas", read_u128)?;
        let max_tip = read(of("maxPriorityFeePerGas"), "maxPriorityFeePerGas", read_u128)?;
        if price.is_some() && (max_fee.is_some() || max_tip.is_some()) {
            return Err("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified".into());
        }
        let (input, older) = (read(of("input"), "input", read_data)?, read(of("data"), "data", read_data)?);
        if input.is_some() && older.is_some() && input != older {
            return Err("both \"data\" and \"input\" are set and not equal; use \"input\"".into());
        }
        Ok(CallRequest {
            from: read(of("from"), "from", read_address)?.unwrap_or_default(),
            to: read(of("to"), "to", read_address)?,
            gas: read(of("gas"), "gas", read_u64)?,
            max_fee: price.or(max_fee).unwrap_or(0),
            max_tip: max_tip.or(max_fee.map(|_| 0)),
            value: read(of("value"), "value", read_quantity)?.unwrap_or_default(),
            nonce: read(of("nonce"), "nonce", read_u64)?,
            chain: read(of("chainId"), "chainId", read_u64)?,
            input: input.or(older).unwrap_or_default(),
            access_list: read(of("accessList"), "accessList", access_list)?,
            authorizations: read(of("authorizationList"), "authorizationList", authorizations)?,
        })
    }

    /// Whether it is for a chain, as far as it names one.
    fn check_chain(&self, chain: u64) -> Result<(), String> {
        match self.chain.filter(|named| *named != chain) {
            Some(named) => Err(format!("chainId does not match node's (have={named}, want={chain})")),
            None => Ok(()),
        }
    }

    /// Who calls.
    pub fn from(&self) -> &Address {
        &self.from
    }

    /// Wei that it sends.
    pub fn value(&self) -> U256 {
        self.value
    }

    /// The gas in the parameters, if given.
    pub fn gas(&self) -> Option<u64> {
        self.gas
    }

    /// The transaction to send, with the given nonce and gas, and with a fee if it has none.
    ///
    /// # Errors
    /// The reason if there can be no such transaction.
    pub fn to_request(&self, chain: u64, nonce: u64, gas_limit: u64, max_fee: u128) -> Result<EthereumRequest, String> {
        if self.authorizations.is_some() {
            return Err("a transaction with authorizations has to be signed by its sender".into());
        }
        self.request(chain, nonce, gas_limit, max_fee)
    }

    /// The bytes of a transaction that nobody signs or sends.
    pub fn imagined(&self, chain: u64, nonce: u64, gas_limit: u64) -> Result<Vec<u8>, String> {
        Ok(self.request(chain, nonce, gas_limit, 0)?.unsigned(&self.from))
    }

    fn request(&self, chain: u64, nonce: u64, gas_limit: u64, max_fee: u128) -> Result<EthereumRequest, String> {
        self.check_chain(chain)?;
        Ok(EthereumRequest {
            chain,
            nonce: self.nonce.unwrap_or(nonce),
            to: self.to,
            value: u128::try_from(self.value).map_err(|_| "value: more wei than exist".to_string())?,
            gas_limit,
            max_fee: if self.max_fee == 0 { max_fee } else { self.max_fee },
            max_tip: if self.max_fee == 0 { 0 } else { self.max_tip.unwrap_or(0) },
            has_one_price: self.max_fee > 0 && self.max_tip.is_none(),
            access_list: self.access_list.clone().unwrap_or_default(),
            data: self.input.clone(),
            delegations: self.authorizations.clone().unwrap_or_default(),
        })
    }

    /// The transaction, with this gas limit, and with this nonce if it names none.
    pub fn to_transaction(&self, chain: u64, nonce: u64, gas_limit: u64) -> TxEnv {
        let delegates = self.authorizations.is_some();
        let tx_type = match (delegates, self.max_tip.is_some(), self.access_list.is_some()) {
            (true, ..) => 4,
            (_, true, _) => 2,
            (_, _, true) => 1,
            _ => 0,
        };
        let authorizations = self.authorizations.iter().flatten().cloned();
        TxEnv {
            tx_type,
            caller: ethereum::Address::new(self.from.0),
            gas_limit,
            gas_price: self.max_fee,
            kind: self.to.map_or(TxKind::Create, |to| TxKind::Call(ethereum::Address::new(to.0))),
            value: self.value,
            data: Bytes::from(self.input.clone()),
            nonce: self.nonce.unwrap_or(nonce),
            chain_id: Some(chain),
            access_list: self.access_list.clone().unwrap_or_default(),
            gas_priority_fee: if tx_type == 2 || tx_type == 4 { Some(self.max_tip.unwrap_or(0)) } else { None },
            authorization_list: authorizations.map(|one| Either::Right(one.into_recovered())).collect(),
            ..TxEnv::default()
        }
    }
}

fn access_list(value: &Value) -> Result<AccessList, String> {
    let all = value.as_array().ok_or("a list is expected")?;
    let mut named = all.len();
    let mut item = |value: &Value| {
        let keys = value["storageKeys"].as_array().map_or(&[][..], Vec::as_slice);
        named += keys.len();
        if named > NAMED_MAX {
            return Err(format!("more than {NAMED_MAX} addresses and slots"));
        }
        let slot = |key: &Value| super::values::read_bytes(key).map(B256::new);
        let address = ethereum::Address::new(read_address(&value["address"])?.0);
        Ok(AccessListItem { address, storage_keys: keys.iter().map(slot).collect::<Result<_, _>>()? })
    };
    Ok(AccessList(all.iter().map(&mut item).collect::<Result<_, _>>()?))
}

fn authorizations(value: &Value) -> Result<Vec<SignedAuthorization>, String> {
    let all = value.as_array().filter(|all| all.len() <= AUTHORIZATIONS_MAX);
    let all = all.ok_or_else(|| format!("a list of at most {AUTHORIZATIONS_MAX} is expected"))?;
    let one = |value: &Value| {
        let authorization = Authorization {
            chain_id: read_quantity(&value["chainId"])?,
            address: ethereum::Address::new(read_address(&value["address"])?.0),
            nonce: read_u64(&value["nonce"])?,
        };
        let parity = if value["yParity"].is_null() { &value["v"] } else { &value["yParity"] };
        let parity = u8::try_from(read_u64(parity)?).map_err(|_| "yParity is 0 or 1".to_string())?;
        let (r, s) = (read_quantity(&value["r"])?, read_quantity(&value["s"])?);
        Ok(SignedAuthorization::new_unchecked(authorization, parity, r, s))
    };
    all.iter().map(one).collect()
}

/// A call that is ready for execution, with its state and rules.
pub(super) struct Prepared {
    pub view: EvmView<PastState>,
    pub context: Arc<EvmContext>,
    pub request: CallRequest,
    chain: u64,
    /// Gas that it may use.
    gas: u64,
}

impl Session<'_> {
    /// Prepares the call in the first parameter, over the state after the block in the second one.
    pub(super) fn prepare(
        &self,
        params: &Params,
        replaced: &StateOverrides,
        block: &BlockOverrides,
    ) -> Result<Prepared, RpcError> {
        let request = params.read(0, CallRequest::read)?;
        request.check_chain(self.chain()).map_err(RpcError::invalid_params)?;
        let height = self.height(params, 1)?;
        let terms = self.terms()?;
        let backend = &self.rpc.api.backend;
        let mut context = self.context(height, request.max_fee > 0)?;
        if is_newest(params.get(1)) {
            context.rules = backend.ethereum_rules(height.saturating_add(1));
            see_next_block(&mut context, backend.next_block());
        }
        block.apply(&mut context, request.max_fee > 0);
        context.rules.tx_gas_limit_cap = Some(u64::MAX);
        let wei = match replaced.balance(&request.from) {
            Some(wei) => wei,
            None => U256::from(backend.ethereum_account(&request.from, Moment::After(height))?.wei),
        };
        let gas = gas_of(&request, wei, terms.block_gas)?;
        let mut state = PastState::new(backend, Moment::After(height));
        state.cleared = replaced.cleared();
        let mut view = EvmView::new(state);
        replaced.apply(&mut view);
        Ok(Prepared { view, context: Arc::new(context), request, chain: self.rpc.outline().chain, gas })
    }

    /// The environment of calls after a block. Those without a price see no base fee.
    fn context(&self, height: Height, has_price: bool) -> Result<EvmContext, RpcError> {
        let missing = || RpcError::server("header not found");
        let base_fee = if has_price { self.load(height)?.ok_or_else(missing)?.base_fee } else { 0 };
        self.context_with(height, base_fee)
    }

    /// The environment of calls after a block, with this base fee.
    pub(super) fn context_with(&self, height: Height, base_fee: u64) -> Result<EvmContext, RpcError> {
        let backend = &self.rpc.api.backend;
        let block = match height {
            0 => Arc::default(),
            _ => backend.block(height)?.ok_or_else(|| RpcError::server("header not found"))?,
        };
        Ok(backend.ethereum_context(&block, usize::MAX, base_fee))
    }

    /// Executes a call with this gas. The inner error says that the call itself is invalid.
    fn execute(&self, prepared: &mut Prepared, gas: u64) -> Result<Result<EvmCalled, String>, RpcError> {
        self.check_gas()?;
        let transaction = prepared.request.to_transaction(prepared.chain, 0, gas);
        let called = prepared.view.call(&prepared.context, transaction);
        prepared.view.state().check()?;
        self.pay_gas(called.as_ref().map_or(TRANSFER_GAS, |called| called.gas_used));
        Ok(called)
    }
}

/// A call over the newest state sees what a developer has chosen for the next block.
fn see_next_block(context: &mut EvmContext, NextBlock { time_ms, chosen }: NextBlock) {
    let block = &mut context.block;
    block.timestamp = time_ms.map_or(block.timestamp, |time_ms| U256::from(time_ms / 1_000));
    block.beneficiary = chosen.coinbase.map_or(block.beneficiary, |coinbase| ethereum::Address::new(coinbase.0));
    block.prevrandao = chosen.random.map(B256::new).or(block.prevrandao);
    block.gas_limit = chosen.gas_limit.unwrap_or(block.gas_limit);
}

/// Whether a parameter names the newest block by a tag, or names none.
fn is_newest(block: Option<&Value>) -> bool {
    block.is_none_or(|tag| tag == "latest" || tag == "pending")
}

/// The gas of a call: what it names, which is never cut, or that of a block as far as its sender can pay. The sender
/// must hold the value in any case.
fn gas_of(request: &CallRequest, wei: U256, block_gas: u64) -> Result<u64, RpcError> {
    let most = request.gas.unwrap_or(block_gas.min(CALL_GAS_MAX));
    if most > CALL_GAS_MAX {
        return Err(RpcError::limit(format!("gas {most:#x}: a call has at most {CALL_GAS_MAX:#x} here; name less")));
    }
    let short = |gas: u64| {
        let want = request.value.saturating_add(U256::from(gas).saturating_mul(U256::from(request.max_fee)));
        RpcError::server(format!("insufficient funds for gas * price + value: have {wei} want {want}"))
    };
    let least = request.gas.unwrap_or(TRANSFER_GAS);
    let left = wei.checked_sub(request.value).ok_or_else(|| short(least))?;
    if request.max_fee == 0 {
        return Ok(most);
    }
    let paid = u64::try_from(left / U256::from(request.max_fee)).unwrap_or(u64::MAX);
    if paid < least { Err(short(least)) } else { Ok(paid.min(most)) }
}

impl Prepared {
    pub fn transaction(&self) -> TxEnv {
        self.request.to_transaction(self.chain, 0, self.gas)
    }
}

/// The result of a call, or the error with which it failed.
pub(super) fn returned(called: EvmCalled) -> Result<EvmCalled, RpcError> {
    match called.status {
        EvmStatus::Succeeded => Ok(called),
        EvmStatus::Reverted => Err(RpcError::reverted(&called.output)),
        EvmStatus::Halted => Err(RpcError::server(called.halt.unwrap_or_else(|| "halted".into()))),
    }
}

pub(super) fn call(session: &Session, params: &Params) -> Answer {
    let replaced = params.read_if(2, StateOverrides::read)?.unwrap_or_default();
    let block = params.read_if(3, BlockOverrides::read)?.unwrap_or_default();
    let mut prepared = session.prepare(params, &replaced, &block)?;
    let gas = prepared.gas;
    let called = session.execute(&mut prepared, gas)?.map_err(RpcError::server)?;
    Ok(data(returned(called)?.output))
}

/// The smallest gas limit with which a transaction succeeds, at most the cap of transactions. First it tries the gas
/// used in an execution with all gas, then bisects the remaining range: a call keeps a 64th of its gas back from the
/// calls that it makes, and refunds come afterwards.
pub(super) fn estimate_gas(session: &Session, params: &Params) -> Answer {
    let replaced = params.read_if(2, StateOverrides::read)?.unwrap_or_default();
    let block = params.read_if(3, BlockOverrides::read)?.unwrap_or_default();
    let mut prepared = session.prepare(params, &replaced, &block)?;
    let most = prepared.gas.min(prepared.context.block.gas_limit).min(TRANSACTION_GAS_MAX);
    let called = session.execute(&mut prepared, most)?.map_err(RpcError::server)?;
    if called.halt.as_ref().is_some_and(|why| why.starts_with("out of gas")) {
        return Err(RpcError::server(format!("gas required exceeds allowance ({most})")));
    }
    let used = returned(called)?.gas_used.max(1);
    let (mut low, mut high, mut next) = (used - 1, most, used);
    while low + 1 < high {
        let called = session.execute(&mut prepared, next)?;
        if called.is_ok_and(|called| called.status == EvmStatus::Succeeded) {
            high = next;
        } else {
            low = next;
        }
        // The required gas is usually only slightly above the used gas.
        next = (low + (high - low) / 2).min(low + 1 + low / 16);
    }
    Ok(quantity(high))
}

/// A boolean option of an object; false if it is not given.
pub(super) fn flag(fields: Option<&Map<String, Value>>, name: &str) -> Result<bool, RpcError> {
    match fields.and_then(|fields| fields.get(name)) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(RpcError::invalid_params(format!("{name}: {other} is neither true nor false"))),
    }
}

/// An option that is an object, if it is given.
pub(super) fn object<'v>(value: Option<&'v Value>, name: &str) -> Result<Option<&'v Map<String, Value>>, RpcError> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(fields)) => Ok(Some(fields)),
        Some(other) => Err(RpcError::invalid_params(format!("{name}: {other} is no object"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::logs::LogsAsked;
    use super::*;
    use fuzz::Target;

    /// Any call or filter is parsed or rejected; a parsed call makes a transaction.
    #[test]
    fn calls_and_filters_of_strangers() {
        let seeds: [&[u8]; 3] = [
            br#"{"from":"0x0101010101010101010101010101010101010101","gas":"0x5208","value":"0x1","data":"0x00",
                "maxFeePerGas":"0x2","accessList":[{"address":"0x0101010101010101010101010101010101010101",
                "storageKeys":["0x0000000000000000000000000000000000000000000000000000000000000001"]}]}"#,
            br#"{"to":"0x0101010101010101010101010101010101010101","input":"0x","gasPrice":"0x1","nonce":"0x7",
                "authorizationList":[{"chainId":"0x1","address":"0x0101010101010101010101010101010101010101",
                "nonce":"0x0","yParity":"0x0","r":"0x1","s":"0x1"}]}"#,
            br#"{"fromBlock":"0x1","toBlock":"latest","address":["0x0101010101010101010101010101010101010101"],
                "topics":[null,["0x0000000000000000000000000000000000000000000000000000000000000001"]]}"#,
        ];
        let words = ["null", "0x", "[]", "{}", "\"0x00\"", "-1", "1e9", "\"type\":\"0x4\"", "[[[]]]", "true"];
        let seeds = seeds.map(<[u8]>::to_vec).to_vec();
        // Other tests allocate at the same time.
        Target { words: &words, room: None, ..Target::new("json_rpc_call", seeds) }.run(|bytes| {
            let value: Value = serde_json::from_slice(bytes).map_err(|_| "no JSON".to_string())?;
            let filter = LogsAsked::read(&value);
            let call = CallRequest::read(&value)?;
            let transaction = call.to_transaction(1, 0, 30_000);
            Ok(format!("type {} {}", transaction.tx_type, filter.is_ok()))
        });
    }
}
