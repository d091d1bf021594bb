//! The state, the pool and the context of execution, as Ethereum sees them.

use ledger::contracts::{BookFacts, CfgEnv, EthereumAccount, EvmCode, EvmContext, HolderFacts, TokenFacts, UndoError};
use ledger::{ForkSchedule, Pair, Place};
use primitives::{Address, Amount, AssetId, Digest, Height, Superblock, TransactionId};
use replica::PoolDrop;

/// The state, the pool and the context of execution, as Ethereum sees them.
pub trait EthereumReads {
    /// A pending Ethereum transaction, and its sender.
    fn ethereum_waiting(&self, id: &TransactionId) -> Option<(Vec<u8>, Address)>;

    /// The pending Ethereum transactions, by sender and nonce, `most` at most, and their number.
    fn ethereum_pool(&self, _most: usize) -> (Vec<PooledTransaction>, usize) {
        (Vec::new(), 0)
    }

    /// Why a transaction that this node had accepted left its pool without a block; `None` if it did not, or long ago.
    fn ethereum_dropped(&self, _: &TransactionId) -> Option<PoolDrop> {
        None
    }

    /// The nonce above the gapless pending nonces of an account whose next nonce is `next`.
    fn ethereum_nonce_above(&self, address: &Address, next: u64) -> u64;

    /// The account in the form that Ethereum sees, at a moment.
    ///
    /// # Errors
    /// [`UndoError`] if the state of that moment is not kept.
    fn ethereum_account(&self, address: &Address, moment: Moment) -> Result<EthereumAccount, UndoError>;

    /// The value of a slot at a moment, big-endian; `None` means zero.
    ///
    /// # Errors
    /// [`UndoError`] if the state of that moment is not kept.
    fn ethereum_slot(&self, address: &Address, slot: &[u8; 32], moment: Moment) -> Result<Option<[u8; 32]>, UndoError>;

    /// Units for sale, at a moment, of an offer that a contract placed; `None` if it does not rest.
    ///
    /// # Errors
    /// [`UndoError`] if the state of that moment is not kept.
    fn ethereum_offer(&self, pair: Pair, place: &Place, moment: Moment) -> Result<Option<Amount>, UndoError>;

    /// The facts about the token of an asset after a height.
    ///
    /// # Errors
    /// [`UndoError`] if the state after that height is not kept.
    fn token_facts(&self, asset: AssetId, height: Height) -> Result<Option<TokenFacts>, UndoError>;

    /// Facts about a holder of a controlled asset after a block, and in its contract phase.
    ///
    /// # Errors
    /// [`UndoError`] if the state after this height is not kept.
    fn holder_facts(&self, asset: AssetId, account: &Address, height: Height) -> Result<HolderFacts, UndoError>;

    /// The book's current room for offers, and whether it has offers of a pair.
    fn book_facts(&self, pair: Option<Pair>) -> (BookFacts, bool);

    /// Resting offers that end at a height.
    fn offers_ending_at(&self, height: Height) -> u32;

    /// Code that an account has, or had at a height that is kept.
    fn ethereum_code(&self, hash: &Digest) -> Option<EvmCode>;

    /// The digest of a block, if contracts can ask for it.
    fn block_digest(&self, height: Height) -> Option<Digest>;

    /// Which fork begins at which height.
    fn forks(&self) -> ForkSchedule;

    /// The interpreter's rules at a height.
    fn ethereum_rules(&self, height: Height) -> CfgEnv;

    /// The context in which the transactions of a sub-block are executed.
    fn ethereum_context(&self, block: &Superblock, sub_block: usize, base_fee: u64) -> EvmContext;
}

/// A pending Ethereum transaction.
#[derive(Clone, Debug)]
pub struct PooledTransaction {
    /// Its hash.
    pub id: TransactionId,
    /// In its EIP-2718 form.
    pub bytes: Vec<u8>,
    /// Its sender.
    pub sender: Address,
    /// Its nonce.
    pub nonce: u64,
    /// Whether it can be proposed: neither a nonce gap nor the base fee keeps it from it.
    pub is_ready: bool,
}

/// A moment of the chain, as Ethereum sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// After a block.
    After(Height),
    /// In a block, before its first Ethereum transaction.
    Within(Height),
}
