//! What Ethereum sees of the node without a pipeline: the ledger as it is, and as it was.

use doors::backend::{EthereumReads, Moment};
use ledger::contracts::{BookFacts, CfgEnv, EthereumAccount, EvmCode, EvmContext, HolderFacts, TokenFacts, UndoError};
use ledger::{ForkSchedule, Pair, Place};
use primitives::{Address, Amount, AssetId, Digest, Height, Superblock, TransactionId};

use super::Fake;

impl EthereumReads for Fake {
    fn ethereum_waiting(&self, _id: &TransactionId) -> Option<(Vec<u8>, Address)> {
        None
    }

    fn ethereum_nonce_above(&self, _address: &Address, next: u64) -> u64 {
        next
    }

    fn ethereum_account(&self, address: &Address, moment: Moment) -> Result<EthereumAccount, UndoError> {
        match moment {
            Moment::After(height) => self.ledger().ethereum_account_at(address, height),
            Moment::Within(height) => self.ledger().ethereum_account_within(address, height),
        }
    }

    fn ethereum_slot(
        &self,
        _address: &Address,
        _slot: &[u8; 32],
        _moment: Moment,
    ) -> Result<Option<[u8; 32]>, UndoError> {
        Ok(None)
    }

    fn ethereum_offer(&self, pair: Pair, place: &Place, moment: Moment) -> Result<Option<Amount>, UndoError> {
        let ledger = self.ledger();
        match moment {
            Moment::After(height) => ledger.offer_at(pair, place, height),
            Moment::Within(height) => ledger.offer_within(pair, place, height),
        }
    }

    fn holder_facts(&self, asset: AssetId, account: &Address, height: Height) -> Result<HolderFacts, UndoError> {
        self.ledger().holder_facts_at(asset, account, height)
    }

    fn token_facts(&self, asset: AssetId, height: Height) -> Result<Option<TokenFacts>, UndoError> {
        self.ledger().token_facts_at(asset, height)
    }

    fn book_facts(&self, pair: Option<Pair>) -> (BookFacts, bool) {
        let ledger = self.ledger();
        (ledger.book_facts(), pair.is_some_and(|pair| ledger.book().get(pair).is_some()))
    }

    fn offers_ending_at(&self, height: Height) -> u32 {
        self.ledger().book().ending_at(height)
    }

    fn ethereum_code(&self, hash: &Digest) -> Option<EvmCode> {
        self.ledger().ethereum_code(hash)
    }

    fn block_digest(&self, height: Height) -> Option<Digest> {
        self.ledger().recent_digest(height)
    }

    fn forks(&self) -> ForkSchedule {
        self.ledger().contracts().forks().clone()
    }

    fn ethereum_rules(&self, height: Height) -> CfgEnv {
        self.ledger().ethereum_rules(height)
    }

    fn ethereum_context(&self, block: &Superblock, sub_block: usize, base_fee: u64) -> EvmContext {
        self.ledger().ethereum_context(block, sub_block, base_fee)
    }
}
