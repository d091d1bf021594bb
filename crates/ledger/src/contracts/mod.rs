//! Ethereum transactions on the ledger's own balances: what executes them. The contract phase of a block
//! (`block::ethereum`) runs it.
//!
//! The phase follows *Smart Red Belly Blockchain: Reducing Congestion for Web3* (§2–4) for blocks of many proposers
//! and runs by Block-STM (`stm`). revm executes single transactions; `evm` is the only file that uses more of it than
//! types. Ether transfers that run no code are executed without it (`transfer`).
//!
//! # The protocol
//!
//! - A sub-block has a section of Ethereum transactions beside the native one. For each sub-block, [`check_in_section`]
//!   checks each transaction by its bytes alone: encoding, chain, intrinsic gas, and the rest of the sub-block's
//!   quota of declared gas. Quota times committee is at most the gas of a block, which the genesis asserts. So no
//!   transaction is dropped for lack of block gas during execution.
//! - The sender is recovered once, by [`recover_senders`], while consensus runs or when a client sends the
//!   transaction. It is written into the block like the positions of invalid signatures, so replays recover nothing.
//! - For a decided block, the native phase comes first: filter, batch, settlement, effects. Then `order` puts the
//!   Ethereum transactions of all sub-blocks into one order: slots rotated by height. Only the first of several copies.
//!   The positions of one sender in the order of its nonces.
//! - `executor` executes them with the result of sequential execution. The state is the ledger after its native phase
//!   ([`EvmState`]): wei of an account are its units of asset 0 times 10^(18 − decimals) and a remainder below one
//!   unit.
//! - A transaction that is invalid at its position (nonce, funds, price) is *skipped*: it has no effect and no
//!   receipt, and is listed by position. One that reverts or halts is executed and pays.
//! - After the last transaction each proposer is paid the tips of its sub-block. Base fees and wei that contracts
//!   destroy are burnt: whole units leave the issue, the rest is carried.
//! - Then the changed accounts are hashed, the storage trie is updated, and the base fee of the next height is set. It
//!   changes by at most 1/64, and never falls below the floor of the genesis.
//!
//! # Properties
//!
//! 1. *Order*: outcomes, logs and state are those of the sequential execution, for any number of threads.
//! 2. *Conservation*: accounts, in wei, lose exactly what transactions paid and did not pay to proposers. Each
//!    transaction loses its fee and no more, unless a contract destroyed itself in it. Either failure is a
//!    [`Fault::Wei`](crate::Fault), and stops the ledger. Units of other assets, in accounts and offers, sum to
//!    zero. [`Ledger::audit`](crate::Ledger::audit) sums everything.
//! 3. *Containment*: a panic of a speculative execution is discarded. A panic of a final one is a failure of the
//!    transaction, which pays for all its gas. No transaction can make the block fail.
//! 4. *Control*: a contract signs nothing, whoever created it: no key controls its account, not even one that hashes
//!    to its address. An account that has acted natively shows a nonce, so that no contract is created over it.
//! 5. *Completeness*: nonce, remainder and code hash are part of the account's digest; storage, base fee, carried wei
//!    and the last 256 block digests are under `contracts`. A checkpoint contains them all, and code by its hash.
//! 6. *Idle cost*: a block without Ethereum transactions costs one extra digest of the block hashes; a chain without
//!    contracts ([`Limits::block_gas`](crate::Limits) zero) costs nothing.
//!
//! The state after each of the last blocks can be read from undo records, see [`HISTORY_BLOCKS`].
//!
//! # Unpaid work
//!
//! A proposer pays for work that it causes for others without pay. Bytes that are no transaction of the chain, or
//! beyond the quota, are rejected with their sub-block before a vote. A signature that recovers to no address is found
//! when the block is executed: the sub-block earns no reward. A used nonce, a gap, a copy or lacking funds can be
//! honest, since proposers do not see each other's sub-blocks. The quota bounds them, to one recovery per 21,000 gas.
//!
//! # What contracts see
//!
//! | opcode | value |
//! |---|---|
//! | NUMBER, CHAINID | height, number of the chain |
//! | TIMESTAMP | seconds of the block's time; equal in blocks that follow each other quickly |
//! | GASLIMIT, BASEFEE | the gas of a block from the genesis, the base fee of the height |
//! | COINBASE | the account of the validator whose sub-block holds the transaction; zero where there are none |
//! | BLOCKHASH | the digest of a superblock, of the last 256 |
//! | PREVRANDAO | BLAKE3 of parent digest and height: predictable for everyone |
//! | BLOBBASEFEE | the minimum; there are no blobs |
//!
//! The fork of Ethereum follows from the height, by the schedule of the genesis ([`crate::ForkSchedule`]): Osaka,
//! unless it says something else. No system contracts exist. Opcodes, addresses and code hashes are Keccak's.
//!
//! # Deviations from the paper
//!
//! - **One run over the superblock** instead of sub-block by sub-block (§3.3): the paper gains by alternating storage
//!   and execution. Here blocks are logged while they are executed, and one run has more parallelism.
//! - **Parallel execution.** The paper executes sequentially.
//! - **Native operations are no Ethereum transactions.** They form one batch before the contracts of the block.
//! - **Order by nonce across sub-blocks.** The paper takes sub-blocks in the given order, and loses transactions of a
//!   sender whose sub-blocks were decided in another order.
//! - **BLAKE3 for tries**, as in the paper (§3.4), and over the ledger's own trie, not Ethereum's.
//!
//! Assets are tokens too: each is an ERC-20 at a reserved address, over the same balances, see [`token_address`].
//! Contracts place offers at another reserved address ([`OFFERS`]), and each genesis has a [`WETH9`].
//!
//! Only on a developers' chain, blocks can also contain edits of accounts and of what they show: see [`DeveloperEdit`].
//!
//! Deviations from Ethereum: tips are credited after the last transaction of the block; legacy transactions without a
//! chain id, delegations for any chain and blobs are refused; block hashes are digests of superblocks.

mod assets;
mod call;
mod codes;
mod deployer;
mod dump;
mod edit;
mod engine;
mod evm;
mod evm_state;
mod executor;
mod failures;
mod frame;
mod history;
mod key;
mod machine;
mod offer_words;
mod offers;
mod order;
mod outcome;
mod reserved;
mod shown;
mod slots;
mod state;
#[cfg(test)]
mod tests;
mod tokens;
mod trace;
mod transaction;
mod transfer;
mod view;
mod wrapped;

pub use crate::places::contracts::reserved::{OFFERS, is_reserved, token_address, token_at};
pub use crate::places::contracts::{BLOCK_HASHES, Contracts, ContractsHead, EvmCode, evm_code};
pub use crate::terms::TRANSACTION_GAS_MAX;
pub use deployer::CREATE2_DEPLOYER;
pub(crate) use deployer::found_deployer;
pub use dump::DumpedAccount;
pub(crate) use dump::dumped;
pub use edit::{DeveloperBlock, DeveloperEdit, EDIT_TYPE, EditError};
pub(crate) use engine::EvmEngine;
pub(crate) use evm_state::NO_CODE;
pub use evm_state::{AccountInfo, BlockEnv, CfgEnv, EvmContent, EvmContext, EvmJob, EvmPlace, EvmState, SpecId, TxEnv};
pub use executor::{EvmBlock, EvmProgram, evm_tuning, evm_workers, parallel_tuning};
pub use history::{HISTORY_BLOCKS, HISTORY_RECORDS, UndoError};
pub(crate) use history::{History, SeenBefore, Undo, shown};
pub use key::{EthereumKey, EthereumRequest, contract_address};
pub(crate) use offer_words::{BookEdit, OffersSlot};
pub use offer_words::{BookFacts, FIRST_CONTRACT_OFFER, OfferName};
pub use offers::OfferEvent;
pub(crate) use offers::settlement;
pub(crate) use order::{Ordered, Sections, in_order};
pub use order::{check_in_section, recover_senders};
pub use outcome::{EvmExecution, EvmOutcome};
/// What is proved of contracts and their receipts.
pub use proofs::{Bloom, ContractReceipts, EthereumLog, EthereumReceipt, EvmStatus, Skip, SlotKey};
pub use reserved::precompiles;
/// Access lists of a transaction (EIP-2930), and delegations (EIP-7702).
pub use revm::context::{
    either::Either,
    transaction::{AccessList, AccessListItem, Authorization, SignedAuthorization},
};
/// Ethereum's numbers, addresses and hashes.
pub use revm::primitives as ethereum;
pub(crate) use shown::{fact_slot, shown_code_of};
pub(crate) use slots::GAS_ASSET;
pub use state::EthereumAccount;
pub(crate) use state::{LedgerState, seen, shown_nonce, split, units_slot, wei_of};
pub use stm::Workers;
pub(crate) use tokens::holder_of;
pub use tokens::{HolderFacts, TokenFacts};
pub use trace::{TRACE_BYTES_MAX, TRACE_STEPS_MAX, TraceCall, TraceLog, TraceSettings, TraceStep, Tracer};
pub use transaction::{EthereumFault, EthereumParts, EthereumRules, EthereumTransaction};
pub use view::{EvmCalled, EvmTouched, EvmView};
pub use wrapped::WETH9;
pub(crate) use wrapped::found_weth9;
