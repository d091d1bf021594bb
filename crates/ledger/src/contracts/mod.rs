//! Ethereum transactions on the ledger's own balances: the contract phase of a block.
//!
//! The phase follows *Smart Red Belly Blockchain: Reducing Congestion for Web3* (§2–4) for blocks of many proposers and
//! runs by Block-STM (`stm`). revm executes single transactions; `evm` is the only file that names it beside types.
//! Transfers of ether that nothing runs for are executed without it (`transfer`).
//!
//! # The protocol
//!
//! - A sub-block has a lane of Ethereum transactions beside the native one. Upon a sub-block, [`check_in_lane`] judges
//!   each transaction by its bytes alone: encoding, chain, gas for itself, and what is left of the sub-block's quota of
//!   declared gas. Quota times committee is at most the gas of a block, which the genesis asserts. So nothing is cut
//!   off for gas while a block is executed.
//! - The sender is recovered once, by [`recover_senders`], while consensus runs or when a client sends it, and is
//!   written into the block like the positions of false signatures: replays recover nothing.
//! - Upon a decided block, the native phase comes first: filter, batch, settlement, effects. Then `order` puts the
//!   Ethereum transactions of all sub-blocks into one order: slots rotated by height; of copies the first; the
//!   positions of one sender in the order of its nonces.
//! - `executor` executes them as if one by one. The state is the ledger after its native phase ([`EvmState`]): wei of
//!   an account are its units of asset 0 times 10^(18 − decimals) and a remainder below one unit.
//! - A transaction that is bad in its place (nonce, funds, price) is *skipped*: it has no effect, no receipt, and
//!   stands in a list by position. One that reverts or halts is executed and pays.
//! - After the last transaction each proposer is paid the tips of its sub-block. Base fees and what contracts destroy
//!   are burnt: whole units leave the issue, the rest is carried.
//! - Then the digests of the accounts that changed are taken, the storage trie follows, and the base fee of the next
//!   height is set: by at most 1/64, never below the floor of the genesis.
//!
//! # Properties
//!
//! 1. *Order*: outcomes, logs and state are those of the sequential execution, for any number of threads.
//! 2. *Conservation*: accounts, in wei, lose exactly what transactions paid and did not pay to proposers. Each
//!    transaction loses its fee and no more, unless a contract destroyed itself in it. Either failure is a
//!    [`Fault::Wei`](crate::Fault), and stops the ledger. Units of other assets, in accounts and offers, sum to
//!    zero. [`Ledger::audit`](crate::Ledger::audit) sums everything.
//! 3. *Containment*: a panic of a speculative execution is discarded; of a final one it is the transaction's failure,
//!    for all its gas. Nothing that a transaction does fails the block.
//! 4. *Control*: whoever created it, a contract signs nothing: no key controls its account, also one whose hash is its
//!    address. An account that has acted natively shows a nonce, so that no contract is created over it.
//! 5. *Completeness*: nonce, remainder and code hash stand in the account's digest; storage, base fee, carried wei and
//!    the last 256 block digests under `contracts`. A checkpoint holds them all, and code by its hash.
//! 6. *Idleness*: a block without Ethereum transactions costs a digest of the block hashes more; a chain without
//!    contracts ([`Limits::block_gas`](crate::Limits) zero) costs nothing.
//!
//! The state after each of the last blocks can be looked back at: undo records, see [`HISTORY_BLOCKS`].
//!
//! # Unpaid work
//!
//! What others must look at without pay costs its proposer. Bytes that are no transaction of the chain, or beyond the
//! quota, are refused with their sub-block before a vote. A signature that recovers to nobody is found when the block
//! is executed: the sub-block earns no reward. A used nonce, a gap, a copy or lacking funds can be honest, since
//! proposers do not see each other's sub-blocks; the quota bounds them, to one recovery for 21,000 gas.
//!
//! # What contracts see
//!
//! | opcode | value |
//! |---|---|
//! | NUMBER, CHAINID | height, number of the chain |
//! | TIMESTAMP | seconds of the block's time; equal in blocks that follow fast |
//! | GASLIMIT, BASEFEE | the gas of a block from the genesis, the base fee of the height |
//! | COINBASE | the account of the validator whose sub-block holds the transaction; zero where there are none |
//! | BLOCKHASH | the digest of a superblock, of the last 256 |
//! | PREVRANDAO | BLAKE3 of parent digest and height: known to everybody beforehand |
//! | BLOBBASEFEE | the least; there are no blobs |
//!
//! The rules are those of the fork Osaka. No system contracts exist. Opcodes, addresses and code hashes are Keccak's.
//!
//! # Deviations from the paper
//!
//! - **One run over the superblock** instead of sub-block by sub-block (§3.3): the paper's gain is that storage and
//!   execution alternate; here blocks are logged beside their execution, and one run has more parallelism.
//! - **Parallel execution.** The paper executes sequentially.
//! - **Native operations are no Ethereum transactions.** They are one batch before the contracts of the block.
//! - **Order by nonce across sub-blocks.** The paper takes sub-blocks as they are, and loses transactions of a sender
//!   whose sub-blocks were decided in another order.
//! - **BLAKE3 for tries**, as in the paper (§3.4), and over the ledger's own trie, not Ethereum's.
//!
//! Assets are tokens too: each is an ERC-20 at a reserved address, over the same balances, see [`token_address`].
//! Contracts place offers at another one ([`OFFERS`]), and each genesis has a [`WETH9`].
//!
//! On a developers' chain blocks hold edits of accounts, too: see [`DeveloperEdit`]. Nowhere else.
//!
//! Deviations from Ethereum: tips are credited after the last transaction of the block; legacy transactions without a
//! chain id, delegations for any chain and blobs are refused; block hashes are digests of superblocks.

mod assets;
mod developer;
mod evm;
mod executor;
mod history;
mod key;
mod machine;
mod offers;
mod order;
mod outcome;
mod phase;
mod receipt;
mod reserved;
mod state;
#[cfg(test)]
mod tests;
mod trace;
mod transaction;
mod transfer;
mod view;
mod wrapped;

pub use assets::{TokenFacts, token_address, token_at};
pub use developer::{DeveloperEdit, EDIT_TYPE, EditError};
pub use evm::{
    AccountInfo, BlockEnv, CfgEnv, EvmCode, EvmContent, EvmContext, EvmJob, EvmPlace, EvmState, SpecId, TxEnv, evm_code,
};
pub use executor::{EvmBlock, EvmProgram, evm_tuning, evm_workers, parallel_tuning};
pub use history::{EthereumAccount, HISTORY_BLOCKS, HISTORY_RECORDS, UndoError};
pub(crate) use history::{History, SeenBefore, Undo};
pub use key::{EthereumKey, EthereumRequest, contract_address};
pub use offers::{BookFacts, FIRST_CONTRACT_OFFER, OFFERS, OfferEvent, OfferName};
pub use order::{check_in_lane, recover_senders};
pub use outcome::{EvmExecution, EvmOutcome, EvmStatus, Skip};
pub(crate) use phase::{EvmEngine, Phase};
pub use receipt::{Bloom, ContractReceipts, EthereumLog, EthereumReceipt};
pub use reserved::is_reserved;
/// Addresses and slots that a transaction names beforehand (EIP-2930), and delegations (EIP-7702).
pub use revm::context::{
    either::Either,
    transaction::{AccessList, AccessListItem, Authorization, SignedAuthorization},
};
/// Ethereum's numbers, addresses and hashes.
pub use revm::primitives as ethereum;
pub use state::{BLOCK_HASHES, Contracts, ContractsHead, SlotKey};
pub(crate) use state::{seen, slot_key};
pub use stm::Workers;
pub use trace::{TRACE_BYTES_MAX, TRACE_STEPS_MAX, TraceCall, TraceSettings, TraceStep, Tracer};
pub use transaction::{EthereumFault, EthereumParts, EthereumTransaction, TRANSACTION_GAS_MAX};
pub use view::{EvmCalled, EvmView};
pub use wrapped::WETH9;
pub(crate) use wrapped::found_weth9;
