//! What calls of reserved addresses share: arguments, gas, reads, writes and logs.

use primitives::AssetId;
use revm::context::{ContextTr, JournalTr};
use revm::context_interface::journaled_state::account::JournaledAccountTr;
use revm::interpreter::{CallInputs, Gas};
use revm::primitives::{Address, B256, Bytes, Log, LogData, U256};

use super::evm_state::{Access, EvmState, Waits};
use super::frame::EvmFrameContext;
use super::slots::GAS_ASSET;
use super::tokens::{HolderFacts, TokenFacts, balance_slot};
use crate::places::contracts::reserved::token_address;

/// Gas of a call on top of its reads and writes.
const BASE_GAS: u64 = 400;
/// Gas of a word of input that is read.
const WORD_GAS: u64 = 3;
/// Bytes of input that are read: a selector and the seven arguments of `permit`, which has the most.
const INPUT_MAX: usize = 4 + 7 * 32;
/// Where the words of a list begin that is the only argument: after the selector, its place and its length.
const LIST_AT: usize = 4 + 2 * 32;
/// Gas of a read, as of a cold slot.
pub(super) const READ_GAS: u64 = 2_100;
/// Gas of a write to a nonzero slot.
const WRITE_GAS: u64 = 2_900;
/// Gas of a write to an empty slot.
const CREATE_GAS: u64 = 20_000;
/// Gas of a log and of each topic.
const LOG_GAS: u64 = 375;
/// Gas of a byte of a log.
const LOG_BYTE_GAS: u64 = 8;

/// Converts an address of the ledger to one of the interpreter.
pub(super) fn evm_address(address: &primitives::Address) -> Address {
    Address::new(address.0)
}

/// Converts an address of the interpreter to one of the ledger.
pub(super) fn plain_address(address: &Address) -> primitives::Address {
    primitives::Address(address.0.0)
}

/// Why a call of a reserved address fails.
pub(super) enum CallFault {
    /// It reverts with these bytes, encoded like a Solidity error.
    Reverts(Bytes),
    OutOfGas,
    /// A read found the estimate of a lower transaction.
    Waits(Waits),
}

impl CallFault {
    /// It reverts with `Error(string)`.
    pub fn reason(why: &str) -> CallFault {
        CallFault::Reverts([&[0x08, 0xc3, 0x79, 0xa0][..], &text(why)].concat().into())
    }
}

impl From<Waits> for CallFault {
    fn from(waits: Waits) -> CallFault {
        CallFault::Waits(waits)
    }
}

pub(super) type Called<T> = Result<T, CallFault>;

/// A running call of a reserved address.
pub(super) struct Call<'c, 'a, S: EvmState, A: Access> {
    pub context: &'c mut EvmFrameContext<'a, S, A>,
    pub inputs: &'c CallInputs,
    pub gas: &'c mut Gas,
}

impl<S: EvmState, A: Access> Call<'_, '_, S, A> {
    pub fn pay(&mut self, gas: u64) -> Called<()> {
        if self.gas.record_regular_cost(gas) { Ok(()) } else { Err(CallFault::OutOfGas) }
    }

    /// The first [`INPUT_MAX`] bytes of the input, once the call and their words are paid for. The rest is never
    /// looked at: the interpreter does not charge for the length of an input that lies in memory already.
    pub fn paid_input(&mut self) -> Called<Vec<u8>> {
        let length = self.inputs.input.len().min(INPUT_MAX);
        self.pay(BASE_GAS + WORD_GAS * length.div_ceil(32) as u64)?;
        let input = self.inputs.input.as_bytes(&*self.context);
        Ok(input[..length.min(input.len())].to_vec())
    }

    /// The words of a list that is the only argument of a function, once they are paid for: at most `most`. Only the
    /// usual encoding is read, in which the list begins after its own place.
    pub fn paid_list(&mut self, of: &Arguments, most: usize) -> Called<Result<Vec<[u8; 32]>, U256>> {
        let length = of.number(1)?;
        if of.number(0)? != U256::from(32) {
            return Err(CallFault::reason("the list must begin at the second word"));
        }
        let Some(length) = usize::try_from(length).ok().filter(|length| *length <= most) else {
            return Ok(Err(length));
        };
        self.pay(WORD_GAS * length as u64)?;
        let input = self.inputs.input.as_bytes(&*self.context);
        let words =
            input.get(LIST_AT..LIST_AT + 32 * length).map(|bytes| bytes.chunks_exact(32).map(word_of).collect());
        words.map(Ok).ok_or_else(|| CallFault::reason("arguments are missing"))
    }

    /// Reads a slot of the called address.
    pub fn read(&mut self, slot: U256) -> Called<U256> {
        self.pay(READ_GAS)?;
        Ok(self.context.journal_mut().sload(self.inputs.target_address, slot)?.data)
    }

    /// Writes a slot of the called address.
    pub fn write(&mut self, slot: U256, before: U256, after: U256) -> Called<()> {
        self.write_at(self.inputs.target_address, slot, before, after)
    }

    /// Writes a slot of a reserved address that has been read.
    fn write_at(&mut self, address: Address, slot: U256, before: U256, after: U256) -> Called<()> {
        self.pay(if before.is_zero() && !after.is_zero() { CREATE_GAS } else { WRITE_GAS })?;
        let journal = self.context.journal_mut();
        journal.touch_account(address);
        journal.sstore(address, slot, after)?;
        Ok(())
    }

    /// Units of an asset that a holder has; for asset 0 the whole units of its wei.
    pub fn units(&mut self, asset: AssetId, holder: Address) -> Called<U256> {
        self.pay(READ_GAS)?;
        if asset == GAS_ASSET {
            let wei = self.context.journal_mut().load_account(holder)?.data.info.balance;
            return Ok(wei / self.wei_per_unit());
        }
        let token = evm_address(&token_address(asset));
        let journal = self.context.journal_mut();
        journal.load_account(token)?;
        Ok(journal.sload(token, holder_slot(&holder))?.data)
    }

    /// Facts about a holder of a controlled asset; of an open one nothing is looked at and nothing paid.
    pub fn holder(&mut self, asset: AssetId, facts: &TokenFacts, holder: Address) -> Called<HolderFacts> {
        if !facts.control.freezes() {
            return Ok(HolderFacts::default());
        }
        self.pay(READ_GAS)?;
        let reader = self.context.db();
        Ok(reader.state.holder(reader.space, asset, &holder))
    }

    /// Changes a holder's units of an asset from `before` to `after`.
    pub fn set_units(&mut self, asset: AssetId, holder: Address, before: U256, after: U256) -> Called<()> {
        if asset != GAS_ASSET {
            return self.write_at(evm_address(&token_address(asset)), holder_slot(&holder), before, after);
        }
        self.pay(if before.is_zero() && !after.is_zero() { CREATE_GAS } else { WRITE_GAS })?;
        let wei_per_unit = self.wei_per_unit();
        let mut account = self.context.journal_mut().load_account_mut(holder)?.data;
        let wei = *account.balance() % wei_per_unit + after * wei_per_unit;
        account.set_balance(wei);
        Ok(())
    }

    fn wei_per_unit(&self) -> U256 {
        let reader = self.context.db();
        U256::from(reader.state.token(reader.space, GAS_ASSET).expect("a state with assets").wei_per_unit())
    }

    /// Logs at the called address.
    pub fn log(&mut self, topics: Vec<B256>, data: Vec<u8>) -> Called<()> {
        self.pay(LOG_GAS * (1 + topics.len() as u64) + LOG_BYTE_GAS * data.len() as u64)?;
        let data = LogData::new_unchecked(topics, data.into());
        self.context.journal_mut().log(Log { address: self.inputs.target_address, data });
        Ok(())
    }
}

/// The arguments of a call.
pub(super) struct Arguments<'i>(pub &'i [u8]);

impl Arguments<'_> {
    pub fn word(&self, at: usize) -> Called<[u8; 32]> {
        let word = self.0.get(32 * at..32 * at + 32);
        word.map(|word| word.try_into().expect("a word")).ok_or_else(|| CallFault::reason("arguments are missing"))
    }

    pub fn number(&self, at: usize) -> Called<U256> {
        Ok(U256::from_be_bytes(self.word(at)?))
    }

    pub fn address(&self, at: usize) -> Called<Address> {
        let word = self.word(at)?;
        match word[..12] == [0; 12] {
            true => Ok(Address::from_slice(&word[12..])),
            false => Err(CallFault::reason("an address has twenty bytes")),
        }
    }
}

fn word_of(bytes: &[u8]) -> [u8; 32] {
    bytes.try_into().expect("a word")
}

pub(super) fn holder_slot(holder: &Address) -> U256 {
    U256::from_be_bytes(balance_slot(&plain_address(holder)))
}

pub(super) fn number(value: U256) -> Vec<u8> {
    value.to_be_bytes_vec()
}

pub(super) fn word(value: u64) -> Vec<u8> {
    number(U256::from(value))
}

/// A text as Solidity encodes it.
pub(super) fn text(text: &str) -> Vec<u8> {
    let mut bytes = [word(32), word(text.len() as u64), text.as_bytes().to_vec()].concat();
    bytes.resize(64 + text.len().next_multiple_of(32), 0);
    bytes
}
