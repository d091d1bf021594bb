//! The methods of a developers' chain for contract developers, with the names of anvil and hardhat.
//!
//! These methods are in a separate table, which only a developers' chain uses: on every other chain they are unknown
//! (-32601). All of them require the submit role. Each has one name in the table; `anvil_`, `hardhat_` and `evm_`
//! before the same word mean the same, unless both exist.
//!
//! **Deviations from anvil.** An edit of an account is a block of its own. What is chosen for the next block, its time,
//! coinbase, random number or gas limit, applies to the next mined one, not to that of an edit. Gas is paid for as on
//! any chain, also by impersonated accounts. There is no forking. A dumped state contains accounts without the other
//! assets of the exchange, and is not compressed.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ledger::contracts::{DeveloperBlock, DeveloperEdit};
use primitives::Address;
use serde_json::{Value, json};

use super::Session;
use super::chain::client_version;
use super::method::{Method, method};
use super::params::{Param, Params, option, param};
use super::signing::{personal_sign, sign, sign_transaction, sign_typed_data, to_send};
use super::state_file::{dump_state, load_state};
use super::values::{data, quantity, read_address, read_data, read_number, read_slot};
use super::wire::{Answer, RpcError};
use crate::backend::{DeveloperCommand, DeveloperRefusal, Mining, Moment};
use crate::roles::Role;

/// The accounts of the mnemonic "test test test test test test test test test test test junk".
pub const DEVELOPERS: [&str; 10] = [
    "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
    "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
    "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
    "0x90f79bf6eb2c4f870365e785982e1f101e93b906",
    "0x15d34aaf54267db7d7c367839aaf71a00a2c6a65",
    "0x9965507d1a55bcc2695c58ba16fb37d819b0a4dc",
    "0x976ea74026e726554db657fa54763abd0c3a0aa9",
    "0x14dc79964da2c08b23698b3d3cc7ca32193d9955",
    "0x23618e81e3f5cdf7f54c3d65f7fbc0abf5b21e8f",
    "0xa0ee7a142d267c1f36714e4a8f75612f20a79720",
];

/// Maximum number of impersonated accounts at a time, besides those.
const IMPERSONATED_MAX: usize = 1_000;

const ADDRESS: Param = param("address", "address");
const NUMBER: Param = param("number", "number");
const SECONDS: Param = param("seconds", "number");

const fn own(
    name: &'static str,
    summary: &'static str,
    params: &'static [Param],
    result: &'static str,
    run: fn(&Session, &Params) -> Answer,
) -> Method {
    Method { role: Role::Submit, ..method(name, summary, params, result, run) }
}

/// All methods that only a developers' chain has.
#[rustfmt::skip]
pub(super) const DEVELOPER_METHODS: &[Method] = &[
    own("evm_mine", "Makes a block, or `blocks` of an object, at a time that may be given.",
        &[option("timestampOrOptions", "any")], "string", evm_mine),
    own("anvil_mine", "Makes blocks, with some seconds between them.",
        &[option("blocks", "number"), option("interval", "number")], "null", anvil_mine),
    own("evm_snapshot", "Keeps the present state; returns its number.", &[], "uint", snapshot),
    own("evm_revert", "Reverts to a kept state; returns false if there is none with this number.", &[NUMBER],
        "boolean", revert),
    own("anvil_reset", "Reverts to the genesis.", &[option("forking", "object")], "null", reset),
    own("anvil_setBalance", "Sets the balance of an account in wei.", &[ADDRESS, param("wei", "number")], "null",
        set_balance),
    own("anvil_setNonce", "Sets an account's nonce; it cannot be lowered.", &[ADDRESS, NUMBER], "null",
        set_nonce),
    own("anvil_setCode", "Sets an account's code.", &[ADDRESS, param("code", "bytes")], "null", set_code),
    own("anvil_setStorageAt", "Sets a slot of an account's storage.",
        &[ADDRESS, param("slot", "uint256"), param("value", "uint256")], "boolean", set_storage_at),
    own("evm_increaseTime", "Moves time forward; returns how many seconds the chain is ahead of the clock.",
        &[SECONDS], "integer", increase_time),
    own("evm_setNextBlockTimestamp", "Sets the time of the next block.", &[SECONDS], "null", next_time),
    own("anvil_setBlockTimestampInterval", "Sets the seconds between blocks, whatever the clock says.", &[SECONDS],
        "null", step_time),
    own("anvil_removeBlockTimestampInterval", "Makes the time of blocks follow the clock again.", &[], "boolean",
        follow_clock),
    own("evm_setAutomine", "Sets whether a block is made as soon as a transaction is pending.",
        &[param("enabled", "boolean")], "null", set_automine),
    own("anvil_getAutomine", "Whether a block is made as soon as a transaction is pending.", &[], "boolean",
        get_automine),
    own("evm_setIntervalMining", "Makes a block at an interval in seconds; with 0, only when asked.", &[SECONDS],
        "null", set_interval),
    own("hardhat_dropTransaction", "Removes a transaction from the pool; returns whether it was there.",
        &[param("hash", "hash32")], "boolean", drop_transaction_as_hardhat),
    own("anvil_dropTransaction", "Removes a transaction from the pool; returns its hash if it was there.",
        &[param("hash", "hash32")], "object", drop_transaction),
    own("anvil_dropAllTransactions", "Removes all transactions from the pool.", &[], "null", drop_all),
    own("anvil_removePoolTransactions", "Removes all transactions of an account from the pool.", &[ADDRESS], "null",
        remove_pool_transactions),
    own("anvil_setNextBlockBaseFeePerGas", "Sets the base fee of the next block.", &[param("wei", "number")], "null",
        set_base_fee),
    own("anvil_setCoinbase", "Sets the coinbase of the next blocks.", &[ADDRESS], "null", set_coinbase),
    own("anvil_setPrevRandao", "Sets the random number of the next block.", &[param("random", "uint256")], "null",
        set_random),
    own("anvil_setBlockGasLimit", "Sets the gas limit of the next blocks, which bounds each transaction.",
        &[param("gas", "number")], "boolean", set_block_gas),
    own("anvil_addBalance", "Adds wei to the balance of an account.", &[ADDRESS, param("wei", "number")], "null",
        add_balance),
    own("anvil_getIntervalMining", "The seconds between blocks that are made at an interval, otherwise null.", &[],
        "any", get_interval),
    own("anvil_dumpState", "The accounts of the chain as one value.", &[], "bytes", dump_state),
    own("anvil_loadState", "Adds dumped accounts to the chain.", &[param("state", "bytes")], "boolean", load_state),
    own("anvil_metadata", "The node, the chain and its newest block.", &[], "object", metadata),
    own("anvil_impersonateAccount", "Allows `eth_sendTransaction` to send for an account.", &[ADDRESS], "null",
        impersonate),
    own("anvil_stopImpersonatingAccount", "Ends the impersonation of an account.", &[ADDRESS], "null",
        stop_impersonating),
    own("anvil_autoImpersonateAccount", "Allows `eth_sendTransaction` to send for every account, or ends that.",
        &[param("enabled", "boolean")], "null", auto_impersonate),
    own("anvil_setLoggingEnabled", "Has no effect: the operator controls the node's log.",
        &[option("enabled", "boolean")], "null", |_, _| Ok(Value::Null)),
    own("anvil_nodeInfo", "The newest block, and the current rules.", &[], "object", node_info),
    own("eth_accounts", "Accounts for which the node sends.", &[], "list", accounts),
    own("eth_sign", "Signs a message for one of the ten accounts.", &[ADDRESS, param("message", "bytes")], "bytes",
        sign),
    own("personal_sign", "Signs a message for one of the ten accounts.", &[param("message", "bytes"), ADDRESS],
        "bytes", personal_sign),
    own("eth_signTypedData_v4", "Signs typed data (EIP-712) for one of the ten accounts.",
        &[ADDRESS, param("data", "any")], "bytes", sign_typed_data),
    own("eth_signTransaction", "Signs a transaction for one of the ten accounts, without sending it.",
        &[param("transaction", "call")], "bytes", sign_transaction),
    own("eth_sendTransaction", "Sends for an account without its key.",
        &[param("transaction", "call")], "hash32", send_transaction),
];

/// The method of this name on a developers' chain.
pub(super) fn find_developers(name: &str) -> Option<&'static Method> {
    let by_name = |name: &str| DEVELOPER_METHODS.iter().find(|method| method.name == name);
    let (prefix, word) = name.split_once('_')?;
    by_name(name).or_else(|| match prefix {
        "anvil" | "hardhat" | "evm" => ["anvil", "evm"].iter().find_map(|prefix| by_name(&format!("{prefix}_{word}"))),
        _ => None,
    })
}

/// Accounts for which the node sends.
#[derive(Default)]
pub(super) struct Impersonated(Mutex<(BTreeSet<Address>, bool)>);

impl Impersonated {
    fn lock(&self) -> MutexGuard<'_, (BTreeSet<Address>, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn developers() -> impl Iterator<Item = Address> {
    DEVELOPERS.iter().filter_map(|address| address.parse().ok())
}

impl Session<'_> {
    pub(super) fn order(&self, order: DeveloperCommand) -> Result<u64, RpcError> {
        Ok(self.rpc.api.backend.develop(order)?)
    }

    /// Reverts as an order says; returns whether the target existed.
    fn go_back(&self, order: DeveloperCommand) -> Result<bool, RpcError> {
        let is_back = self.order(order)? == 1;
        if is_back {
            self.rpc.filters.go_back(self.latest());
        }
        Ok(is_back)
    }

    /// Performs an order and returns null.
    fn done(&self, order: DeveloperCommand) -> Answer {
        self.order(order).map(|_| Value::Null)
    }
}

impl From<DeveloperRefusal> for RpcError {
    fn from(refusal: DeveloperRefusal) -> RpcError {
        RpcError::server(refusal.0)
    }
}

fn read_small(value: &Value) -> Result<u64, String> {
    u64::try_from(read_number(value)?).map_err(|_| "a number of at most 64 bits is expected".into())
}

fn read_bool(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "true or false is expected".into())
}

fn evm_mine(session: &Session, params: &Params) -> Answer {
    let asked = params.read_if(0, |value| {
        let Some(fields) = value.as_object() else { return Ok((Some(read_small(value)?), 1)) };
        let of = |name: &str| fields.get(name).filter(|value| !value.is_null()).map(read_small).transpose();
        Ok((of("timestamp")?, of("blocks")?.unwrap_or(1)))
    })?;
    let (time, blocks) = asked.unwrap_or((None, 1));
    if let Some(seconds) = time {
        session.order(DeveloperCommand::NextTime(seconds))?;
    }
    session.order(DeveloperCommand::Mine(blocks, 0))?;
    Ok("0x0".into())
}

fn anvil_mine(session: &Session, params: &Params) -> Answer {
    let blocks = params.read_if(0, read_small)?.unwrap_or(1);
    session.done(DeveloperCommand::Mine(blocks, params.read_if(1, read_small)?.unwrap_or(0)))
}

fn snapshot(session: &Session, _: &Params) -> Answer {
    Ok(quantity(session.order(DeveloperCommand::Snapshot)?))
}

fn revert(session: &Session, params: &Params) -> Answer {
    let number = params.read(0, read_small)?;
    Ok(session.go_back(DeveloperCommand::Revert(number))?.into())
}

fn reset(session: &Session, params: &Params) -> Answer {
    let forks = params.get(0).and_then(Value::as_object).is_some_and(|options| !options.is_empty());
    if forks {
        return Err(RpcError::server("this chain forks no other one: reset it without options"));
    }
    session.go_back(DeveloperCommand::Reset)?;
    Ok(Value::Null)
}

fn set_balance(session: &Session, params: &Params) -> Answer {
    let account = params.address(0)?;
    // An amount that does not fit is above the maximum anyway, and the ledger names that maximum.
    let wei = params.read(1, read_number)?.saturating_to::<u128>();
    session.done(DeveloperCommand::Edit(DeveloperEdit::Balance { account, wei }))
}

fn set_nonce(session: &Session, params: &Params) -> Answer {
    let (account, nonce) = (params.address(0)?, params.read(1, read_small)?);
    session.done(DeveloperCommand::Edit(DeveloperEdit::Nonce { account, nonce }))
}

fn set_code(session: &Session, params: &Params) -> Answer {
    let (account, code) = (params.address(0)?, params.read(1, read_data)?);
    session.done(DeveloperCommand::Edit(DeveloperEdit::Code { account, code }))
}

fn set_storage_at(session: &Session, params: &Params) -> Answer {
    let (account, slot, value) = (params.address(0)?, params.read(1, read_slot)?, params.read(2, read_slot)?);
    session.order(DeveloperCommand::Edit(DeveloperEdit::Slot { account, slot, value }))?;
    Ok(true.into())
}

fn increase_time(session: &Session, params: &Params) -> Answer {
    Ok(session.order(DeveloperCommand::IncreaseTime(params.read(0, read_small)?))?.into())
}

fn next_time(session: &Session, params: &Params) -> Answer {
    session.done(DeveloperCommand::NextTime(params.read(0, read_small)?))
}

fn step_time(session: &Session, params: &Params) -> Answer {
    session.done(DeveloperCommand::StepTime(Some(params.read(0, read_small)?)))
}

fn follow_clock(session: &Session, _: &Params) -> Answer {
    session.order(DeveloperCommand::StepTime(None))?;
    Ok(true.into())
}

fn set_automine(session: &Session, params: &Params) -> Answer {
    let mining = if params.read(0, read_bool)? { Mining::Instant } else { Mining::Manual };
    session.done(DeveloperCommand::Mining(mining))
}

fn get_automine(session: &Session, _: &Params) -> Answer {
    Ok((session.order(DeveloperCommand::IsInstant)? == 1).into())
}

fn set_interval(session: &Session, params: &Params) -> Answer {
    let mining = match params.read(0, read_small)? {
        0 => Mining::Manual,
        seconds => Mining::Interval(seconds.saturating_mul(1_000)),
    };
    session.done(DeveloperCommand::Mining(mining))
}

fn drop_transaction(session: &Session, params: &Params) -> Answer {
    let hash = params.digest(0)?;
    let was_there = session.order(DeveloperCommand::Drop(hash))? == 1;
    Ok(if was_there { data(hash.0) } else { Value::Null })
}

fn drop_transaction_as_hardhat(session: &Session, params: &Params) -> Answer {
    Ok((session.order(DeveloperCommand::Drop(params.digest(0)?))? == 1).into())
}

fn set_coinbase(session: &Session, params: &Params) -> Answer {
    let chosen = DeveloperBlock { coinbase: Some(params.address(0)?), ..DeveloperBlock::default() };
    session.done(DeveloperCommand::Choose(chosen))
}

fn set_random(session: &Session, params: &Params) -> Answer {
    let chosen = DeveloperBlock { random: Some(params.read(0, read_slot)?), ..DeveloperBlock::default() };
    session.done(DeveloperCommand::Choose(chosen))
}

fn set_block_gas(session: &Session, params: &Params) -> Answer {
    let (gas, most) = (params.read(0, read_small)?, session.terms()?.block_gas);
    if gas == 0 || gas > most {
        return Err(RpcError::invalid_params(format!("gas {gas}: a block of this chain has 1 to {most}")));
    }
    session.order(DeveloperCommand::Choose(DeveloperBlock { gas_limit: Some(gas), ..DeveloperBlock::default() }))?;
    Ok(true.into())
}

fn drop_all(session: &Session, _: &Params) -> Answer {
    session.done(DeveloperCommand::DropAll(None))
}

fn remove_pool_transactions(session: &Session, params: &Params) -> Answer {
    session.done(DeveloperCommand::DropAll(Some(params.address(0)?)))
}

fn set_base_fee(session: &Session, params: &Params) -> Answer {
    session.done(DeveloperCommand::Edit(DeveloperEdit::BaseFee { wei: params.read(0, read_small)? }))
}

fn add_balance(session: &Session, params: &Params) -> Answer {
    let (account, more) = (params.address(0)?, params.read(1, read_number)?.saturating_to::<u128>());
    let held = session.rpc.api.backend.ethereum_account(&account, Moment::After(session.latest()))?.wei;
    let wei = held.saturating_add(more);
    session.done(DeveloperCommand::Edit(DeveloperEdit::Balance { account, wei }))
}

fn get_interval(session: &Session, _: &Params) -> Answer {
    Ok(match session.order(DeveloperCommand::IntervalMs)? {
        0 => Value::Null,
        interval => (interval / 1_000).into(),
    })
}

fn metadata(session: &Session, params: &Params) -> Answer {
    let (outline, height) = (session.rpc.outline(), session.latest());
    let block = session.load(height)?.ok_or_else(|| RpcError::internal("the newest block is missing"))?;
    Ok(json!({
        "clientVersion": client_version(session, params)?,
        "chainId": outline.chain,
        "latestBlockNumber": height,
        "latestBlockHash": data(block.digest.0),
        "snapshots": {},
    }))
}

fn impersonate(session: &Session, params: &Params) -> Answer {
    let address = params.address(0)?;
    let mut impersonated = session.rpc.impersonated.lock();
    if impersonated.0.len() >= IMPERSONATED_MAX {
        return Err(RpcError::limit(format!(
            "at most {IMPERSONATED_MAX} accounts at a time; stop impersonating others"
        )));
    }
    impersonated.0.insert(address);
    Ok(Value::Null)
}

fn stop_impersonating(session: &Session, params: &Params) -> Answer {
    session.rpc.impersonated.lock().0.remove(&params.address(0)?);
    Ok(Value::Null)
}

fn auto_impersonate(session: &Session, params: &Params) -> Answer {
    session.rpc.impersonated.lock().1 = params.read(0, read_bool)?;
    Ok(Value::Null)
}

fn accounts(session: &Session, _: &Params) -> Answer {
    let impersonated = session.rpc.impersonated.lock();
    Ok(developers().chain(impersonated.0.iter().copied()).map(|account| data(account.0)).collect())
}

fn send_transaction(session: &Session, params: &Params) -> Answer {
    let from = params.read(0, |value| read_address(&value["from"]))?;
    let is_known = {
        let impersonated = session.rpc.impersonated.lock();
        impersonated.1 || impersonated.0.contains(&from) || developers().any(|developer| developer == from)
    };
    if !is_known {
        return Err(RpcError::server(format!(
            "no signer for {from}: sign the transaction, or impersonate the account"
        )));
    }
    session.check_intake()?;
    let sent = to_send(session, params, &from)?;
    session.check_block_gas(sent.gas_limit)?;
    Ok(data(session.rpc.api.backend.impersonate(&from, sent.unsigned(&from))??.0))
}

fn node_info(session: &Session, _: &Params) -> Answer {
    let (outline, terms, height) = (session.rpc.outline(), session.terms()?, session.latest());
    let block = session.load(height)?.ok_or_else(|| RpcError::internal("the newest block is missing"))?;
    let header = block.header();
    Ok(json!({
        "currentBlockNumber": quantity(height),
        "currentBlockTimestamp": header["timestamp"],
        "currentBlockHash": header["hash"],
        "hardFork": session.rpc.api.backend.forks().at(height).name(),
        "transactionOrder": "fifo",
        "environment": {
            "baseFee": quantity(terms.base_fee),
            "chainId": outline.chain,
            "gasLimit": quantity(terms.block_gas),
            "gasPrice": quantity(terms.base_fee),
        },
        "forkConfig": {},
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_tools_mean_the_same() {
        let name = |name: &str| find_developers(name).map(|method| method.name);
        for (asked, found) in [
            ("evm_mine", "evm_mine"),
            ("anvil_mine", "anvil_mine"),
            ("hardhat_mine", "anvil_mine"),
            ("hardhat_setBalance", "anvil_setBalance"),
            ("anvil_setNextBlockTimestamp", "evm_setNextBlockTimestamp"),
            ("anvil_snapshot", "evm_snapshot"),
            ("anvil_dropTransaction", "anvil_dropTransaction"),
            ("hardhat_dropTransaction", "hardhat_dropTransaction"),
            ("hardhat_setCoinbase", "anvil_setCoinbase"),
            ("evm_setBlockGasLimit", "anvil_setBlockGasLimit"),
        ] {
            assert_eq!(name(asked), Some(found), "{asked}");
        }
        for unknown in ["mine", "eth_mine", "ganache_mine", "hardhat_accounts", "anvil_", "_mine", "evm_setEverything"]
        {
            assert_eq!(name(unknown), None, "{unknown}");
        }
        assert_eq!(developers().count(), DEVELOPERS.len());
    }

    #[test]
    fn numbers_are_read_as_tools_write_them() {
        for seven in [json!(7), json!("7"), json!("0x7"), json!("0x07")] {
            assert_eq!(read_small(&seven), Ok(7), "{seven}");
        }
        for wrong in [json!(-7), json!(7.5), json!("0x"), json!(""), json!("seven"), json!(null), json!([7])] {
            assert!(read_number(&wrong).is_err(), "{wrong}");
        }
        assert!(read_small(&json!("18446744073709551616")).is_err());
    }
}
