//! The context of a frame of the interpreter, and the database that it reads from.

use revm::context::{Context, Journal, LocalContext};
use revm::database_interface::Database;
use revm::primitives::{Address, B256, U256};

use super::codes::CODES;
use super::evm_state::{Access, AccountInfo, BlockEnv, CfgEnv, EvmContent, EvmPlace, EvmState, TxEnv, Waits};
use crate::places::contracts::EvmCode;

pub(super) type EvmFrameContext<'a, S, A> =
    Context<&'a BlockEnv, &'a TxEnv, &'a CfgEnv, Reader<'a, S, A>, Journal<Reader<'a, S, A>>, (), LocalContext>;

/// The database that revm reads from.
pub(super) struct Reader<'a, S, A> {
    pub state: &'a S,
    pub space: u32,
    pub access: &'a mut A,
}

impl<S: EvmState, A: Access> Database for Reader<'_, S, A> {
    type Error = Waits;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, Waits> {
        match self.access.read(&EvmPlace { space: self.space, address, slot: None })? {
            EvmContent::Account(info) => Ok(info),
            EvmContent::Slot(_) => unreachable!("the record of an account is no slot"),
        }
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<EvmCode, Waits> {
        Ok(CODES.with_borrow_mut(|codes| codes.get(hash, || self.state.code(self.space, &hash))))
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, Waits> {
        match self.access.read(&EvmPlace { space: self.space, address, slot: Some(slot) })? {
            EvmContent::Slot(value) => Ok(value),
            EvmContent::Account(_) => unreachable!("a slot is no account"),
        }
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, Waits> {
        Ok(self.state.block_hash(self.space, number))
    }
}
