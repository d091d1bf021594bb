//! Blocks that are only imagined: `eth_simulateV1`.
//!
//! A request names blocks above an existing one, each with parts that it replaces and calls that it makes. Every call
//! finds what those before it wrote, and nothing stays. Without `validation` calls need no nonce and pay no gas, and
//! the base fee is zero. With it they are checked and charged as transactions, and the first that is invalid fails the
//! request with its code. With `traceTransfers`, wei that move are logs of [`ETHER`].
//!
//! **Deviations from geth.** A block comes a second after its parent. The base fee of all blocks is that of the next
//! one. A simulated block has a hash of its own content, and no roots. Precompiles cannot be moved.

use std::sync::Arc;

use ledger::contracts::ethereum::{self, B256, Bytes, Log, LogData, U256, keccak256};
use ledger::contracts::{
    EvmCalled, EvmContent, EvmContext, EvmPlace, EvmStatus, EvmView, TRACE_BYTES_MAX, TRANSACTION_GAS_MAX, TraceCall,
    TraceSettings, Tracer,
};
use primitives::Height;
use serde_json::{Map, Value, json};

use super::blocks::unmined_json;
use super::calls::{CallRequest, flag, returned};
use super::overrides::{BlockOverrides, StateOverrides};
use super::params::Params;
use super::past_state::PastState;
use super::values::{data, quantity};
use super::wire::{Answer, RpcError};
use super::{CALL_GAS_MAX, Session};
use crate::backend::Moment;

/// Maximum number of blocks, and of calls in all of them.
const BLOCKS_MAX: u64 = 256;
const CALLS_MAX: usize = 5_000;
/// Seconds between simulated blocks.
const STEP: u64 = 1;
/// The address of logs of transfers of wei, as other nodes have it.
const ETHER: [u8; 20] = [0xee; 20];

/// Errors by the codes of execution-apis, and the words of the failures that they stand for.
const CODES: [(&str, i64); 8] = [
    ("nonce too low", -38_010),
    ("nonce too high", -38_011),
    ("max fee per gas less than block base fee", -38_012),
    ("intrinsic gas too low", -38_013),
    ("insufficient funds", -38_014),
    ("exceeds block gas limit", -38_015),
    ("sender not an eoa", -38_024),
    ("max initcode size exceeded", -38_025),
];
const NUMBER_NOT_ABOVE: i64 = -38_020;
const TIME_NOT_ABOVE: i64 = -38_021;
const TOO_MANY_BLOCKS: i64 = -38_026;
const VM_ERROR: i64 = -32_015;

/// One block of a request.
struct AskedBlock {
    block: BlockOverrides,
    state: StateOverrides,
    calls: Vec<CallRequest>,
}

/// A request.
struct Simulation {
    blocks: Vec<AskedBlock>,
    traces_transfers: bool,
    validates: bool,
    is_full: bool,
}

impl AskedBlock {
    fn read(value: &Value) -> Result<AskedBlock, String> {
        let fields = value.as_object().ok_or("an object is expected")?;
        let of = |name: &str| fields.get(name).filter(|value| !value.is_null());
        let named = |name: &'static str| move |why: String| format!("{name}: {why}");
        let calls = match of("calls") {
            None => Vec::new(),
            Some(Value::Array(calls)) => calls.iter().map(CallRequest::read).collect::<Result<_, _>>()?,
            Some(_) => return Err("calls: a list is expected".into()),
        };
        let block = of("blockOverrides").map(BlockOverrides::read).transpose().map_err(named("blockOverrides"))?;
        let state = of("stateOverrides").map(StateOverrides::read).transpose().map_err(named("stateOverrides"))?;
        Ok(AskedBlock { block: block.unwrap_or_default(), state: state.unwrap_or_default(), calls })
    }
}

impl Simulation {
    fn read(value: &Value) -> Result<Simulation, String> {
        let fields = value.as_object().ok_or("an object is expected")?;
        let blocks =
            fields.get("blockStateCalls").and_then(Value::as_array).ok_or("blockStateCalls: a list is missing")?;
        let blocks: Vec<AskedBlock> = blocks.iter().map(AskedBlock::read).collect::<Result<_, _>>()?;
        if blocks.is_empty() || blocks.iter().map(|block| block.calls.len()).sum::<usize>() > CALLS_MAX {
            return Err(format!("blockStateCalls: at least one block, and at most {CALLS_MAX} calls in all"));
        }
        let is = |name| flag(Some(fields), name).map_err(|error| error.message);
        let (traces_transfers, validates) = (is("traceTransfers")?, is("validation")?);
        Ok(Simulation { blocks, traces_transfers, validates, is_full: is("returnFullTransactions")? })
    }
}

/// A simulated block as far as it is made.
struct Made {
    context: EvmContext,
    parent: B256,
    gas_used: u64,
    transactions: Vec<Value>,
    hashes: Vec<B256>,
    calls: Vec<Value>,
    logs: usize,
}

/// The chain of simulated blocks.
struct Chain<'s> {
    session: &'s Session<'s>,
    asked: &'s Simulation,
    view: EvmView<PastState>,
    /// The number, time and hash of the newest block.
    number: u64,
    time: u64,
    hash: B256,
    made: Vec<Value>,
}

pub(super) fn simulate(session: &Session, params: &Params) -> Answer {
    let asked = params.read(0, Simulation::read)?;
    let height = session.height(params, 1)?;
    let base = session.load(height)?.ok_or_else(|| RpcError::server("header not found"))?;
    let view = EvmView::new(PastState::new(&session.rpc.api.backend, Moment::After(height)));
    let (number, time, hash) = (height, base.time(), B256::new(base.digest.0));
    let mut chain = Chain { session, asked: &asked, view, number, time, hash, made: Vec::new() };
    for block in &asked.blocks {
        chain.block(block, height)?;
    }
    Ok(chain.made.into())
}

/// An error with one of the codes of a simulation.
fn coded(code: i64, message: String) -> RpcError {
    RpcError { code, ..RpcError::server(message) }
}

/// The error of an invalid transaction.
fn invalid(message: String) -> RpcError {
    let code = CODES.iter().find(|(words, _)| message.starts_with(words)).map_or(-32_000, |(_, code)| *code);
    coded(code, message)
}

impl Chain<'_> {
    /// Makes a block, and empty ones before it if its number leaves a gap.
    fn block(&mut self, asked: &AskedBlock, base: Height) -> Result<(), RpcError> {
        let number = asked.block.number.map_or(self.number + 1, |number| number.saturating_to());
        if number <= self.number {
            let above = self.number;
            return Err(coded(NUMBER_NOT_ABOVE, format!("block numbers must be in order: {number} <= {above}")));
        }
        if number - base > BLOCKS_MAX {
            return Err(coded(TOO_MANY_BLOCKS, format!("too many blocks: at most {BLOCKS_MAX}")));
        }
        while self.number + 1 < number {
            let empty = self.begin(&BlockOverrides::default(), base)?;
            self.end(empty)?;
        }
        let mut made = self.begin(&asked.block, base)?;
        asked.state.apply_anew(&mut self.view);
        for call in &asked.calls {
            self.call(&mut made, call)?;
        }
        self.end(made)
    }

    fn begin(&mut self, block: &BlockOverrides, base: Height) -> Result<Made, RpcError> {
        let base_fee = if self.asked.validates { self.session.terms()?.base_fee } else { 0 };
        let mut context = self.session.context_with(base, base_fee)?;
        context.block.number = U256::from(self.number + 1);
        context.block.timestamp = U256::from(self.time + STEP);
        block.apply(&mut context, true);
        let number = context.block.number.saturating_to();
        context.rules = self.session.rpc.api.backend.ethereum_rules(number);
        context.rules.tx_gas_limit_cap = if self.asked.validates { None } else { Some(u64::MAX) };
        let time = context.block.timestamp.saturating_to();
        if time <= self.time {
            let above = self.time;
            return Err(coded(TIME_NOT_ABOVE, format!("block timestamps must be in order: {time} <= {above}")));
        }
        (self.number, self.time) = (self.number + 1, time);
        let (transactions, hashes, calls) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Made { context, parent: self.hash, gas_used: 0, transactions, hashes, calls, logs: 0 })
    }

    fn call(&mut self, made: &mut Made, call: &CallRequest) -> Result<(), RpcError> {
        self.session.check_gas()?;
        let left = made.context.block.gas_limit.saturating_sub(made.gas_used);
        let most = if self.asked.validates { TRANSACTION_GAS_MAX } else { CALL_GAS_MAX };
        let gas = call.gas().unwrap_or(left.min(most));
        if gas > left {
            return Err(invalid(format!("exceeds block gas limit: {gas} gas, where {left} are left")));
        }
        if gas > CALL_GAS_MAX {
            return Err(RpcError::limit(format!("gas {gas:#x}: a call has at most {CALL_GAS_MAX:#x} here")));
        }
        let place = EvmPlace { space: 0, address: ethereum::Address::new(call.from().0), slot: None };
        let sender = match self.view.content(&place) {
            EvmContent::Account(info) => info.unwrap_or_default(),
            EvmContent::Slot(_) => return Err(RpcError::internal("an account is no slot")),
        };
        if sender.balance < call.value() {
            let (have, want) = (sender.balance, call.value());
            return Err(invalid(format!("insufficient funds for transfer: have {have} want {want}")));
        }
        let chain = self.session.chain();
        let transaction = call.to_transaction(chain, sender.nonce, gas);
        let settings = TraceSettings { calls: self.asked.traces_transfers, ..TraceSettings::default() };
        let (context, tracer) = (Arc::new(made.context.clone()), Tracer::new(settings));
        let (called, tracer) = self.view.simulate(&context, transaction, self.asked.validates, tracer);
        self.view.state().check()?;
        let called = called.map_err(invalid)?;
        self.session.pay_gas(called.gas_used);
        made.gas_used += called.gas_used;
        if tracer.is_cut {
            let most = TRACE_BYTES_MAX >> 20;
            return Err(RpcError::limit(format!("the transfers of a call take more than {most} MiB")));
        }
        let logs = match tracer.call {
            Some(call) => with_transfers(&call),
            None => called.logs.clone(),
        };
        let sent = call.imagined(chain, sender.nonce, gas).map_err(RpcError::invalid_params)?;
        let hash = keccak256(&sent);
        made.transactions.push(if self.asked.is_full {
            unmined_json(&sent, hash, call.from(), chain)?
        } else {
            data(hash)
        });
        let at = made.hashes.len();
        made.hashes.push(hash);
        made.calls.push(call_json(called, &logs, made.logs, at, hash)?);
        made.logs += logs.len();
        Ok(())
    }

    /// Names the block in all that it contains.
    fn end(&mut self, made: Made) -> Result<(), RpcError> {
        let Made { context, parent, gas_used, mut transactions, hashes, mut calls, .. } = made;
        let block = &context.block;
        let content = [self.number, self.time, gas_used].map(u64::to_be_bytes).concat();
        let hashed = hashes.iter().flat_map(|hash| hash.0);
        self.hash = keccak256(parent.0.into_iter().chain(content).chain(hashed).collect::<Vec<u8>>());
        let named: Map<String, Value> = [
            ("blockHash".into(), data(self.hash)),
            ("blockNumber".into(), quantity(self.number)),
            ("blockTimestamp".into(), quantity(self.time)),
        ]
        .into_iter()
        .collect();
        let name = |value: &mut Value| value.as_object_mut().map_or((), |fields| fields.extend(named.clone()));
        let logs = calls.iter_mut().filter_map(|call| call["logs"].as_array_mut()).flatten();
        logs.chain(transactions.iter_mut()).for_each(name);
        for (at, transaction) in transactions.iter_mut().enumerate().filter(|(_, one)| one.is_object()) {
            transaction["transactionIndex"] = quantity(at);
        }
        let zero = B256::ZERO;
        let block = json!({
            "number": quantity(self.number),
            "hash": data(self.hash),
            "parentHash": data(parent),
            "timestamp": quantity(self.time),
            "gasLimit": quantity(block.gas_limit),
            "gasUsed": quantity(gas_used),
            "baseFeePerGas": quantity(block.basefee),
            "miner": data(block.beneficiary),
            "mixHash": data(block.prevrandao.unwrap_or_default()),
            "stateRoot": data(zero),
            "transactionsRoot": data(zero),
            "receiptsRoot": data(zero),
            "logsBloom": data([0; 256]),
            "sha3Uncles": data(super::blocks::NO_UNCLES),
            "extraData": "0x",
            "nonce": "0x0000000000000000",
            "difficulty": "0x0",
            "size": "0x0",
            "uncles": [],
            "transactions": transactions,
            "calls": calls,
        });
        self.session.bytes_after(self.made.iter().chain([&block]).map(super::weight).sum())?;
        self.made.push(block);
        Ok(())
    }
}

fn call_json(called: EvmCalled, logs: &[Log], first_log: usize, at: usize, hash: B256) -> Answer {
    let log = |(number, log): (usize, &Log)| {
        json!({
            "address": data(log.address),
            "topics": log.data.topics().iter().map(data).collect::<Vec<_>>(),
            "data": data(&log.data.data),
            "transactionHash": data(hash),
            "transactionIndex": quantity(at),
            "logIndex": quantity(first_log + number),
            "removed": false,
        })
    };
    let mut json = json!({
        "returnData": data(&called.output),
        "logs": logs.iter().enumerate().map(log).collect::<Vec<_>>(),
        "gasUsed": quantity(called.gas_used),
        "status": if called.status == EvmStatus::Succeeded { "0x1" } else { "0x0" },
    });
    let is_halted = called.status == EvmStatus::Halted;
    if let Err(error) = returned(called) {
        let code = if is_halted { VM_ERROR } else { error.code };
        json["error"] = RpcError { code, ..error }.to_json();
    }
    Ok(json)
}

/// The logs of a call and of those that it made, with one for each transfer of wei, in order.
fn with_transfers(call: &TraceCall) -> Vec<Log> {
    let mut logs = Vec::new();
    put_logs(call, &mut logs);
    logs
}

fn put_logs(call: &TraceCall, to: &mut Vec<Log>) {
    if call.error.is_some() {
        return;
    }
    let moves = matches!(call.kind, "CALL" | "CREATE" | "CREATE2" | "SELFDESTRUCT");
    if let (true, Some(value), Some(receiver)) = (moves, call.value.filter(|value| !value.is_zero()), call.to) {
        to.push(transfer(call.from, receiver, value));
    }
    let mut logs = call.logs.iter().peekable();
    for (position, inner) in call.calls.iter().enumerate() {
        while let Some(of) = logs.next_if(|of| of.position <= position) {
            to.push(of.log.clone());
        }
        put_logs(inner, to);
    }
    to.extend(logs.map(|of| of.log.clone()));
}

/// `Transfer(from, to, value)`, as a token would log it.
fn transfer(from: ethereum::Address, to: ethereum::Address, value: U256) -> Log {
    let topics = vec![keccak256("Transfer(address,address,uint256)"), from.into_word(), to.into_word()];
    let data = LogData::new_unchecked(topics, Bytes::from(value.to_be_bytes::<32>()));
    Log { address: ethereum::Address::new(ETHER), data }
}
