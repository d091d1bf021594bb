//! What Ethereum sees of the state: now, after each of the last blocks, and between the phases of a block.

use std::sync::Arc;

use primitives::{Address, Amount, AssetId, Digest, Height, MAX_ISSUED, Superblock};
use proofs::{Pair, Place, slot_key};
use revm::context::Cfg;
use revm::primitives::{Address as EvmAddress, B256, U256};

use super::ledger::Ledger;
use crate::contracts::{
    BlockEnv, BookFacts, CfgEnv, DeveloperBlock, DeveloperEdit, DumpedAccount, EditError, EthereumAccount,
    EthereumRules, EvmContext, GAS_ASSET, HolderFacts, TokenFacts, UndoError, dumped, fact_slot, holder_of, seen,
    shown, shown_code_of, shown_nonce, units_slot, wei_of,
};
use crate::places::contracts::EvmCode;
use crate::places::contracts::reserved::{is_reserved, token_at};

const RANDOM_CONTEXT: &str = "walras 2026 prevrandao v1";

impl Ledger {
    /// The environment of the transactions of a sub-block. The beneficiary is zero where there is no such sub-block,
    /// or where its proposer is no longer known.
    pub fn ethereum_context(&self, block: &Superblock, sub_block: usize, base_fee: u64) -> EvmContext {
        let chosen = self.chosen_block(block);
        let proposer = self.proposer_account(block, sub_block).unwrap_or_default();
        let random = borsh::to_vec(&(block.parent, block.height)).expect("writing to memory cannot fail");
        let mut env = BlockEnv {
            number: U256::from(block.height),
            beneficiary: EvmAddress::new(chosen.coinbase.unwrap_or(proposer).0),
            timestamp: U256::from(block.time_ms / 1_000),
            gas_limit: chosen.gas_limit.unwrap_or(self.limits.block_gas),
            basefee: base_fee,
            slot_num: block.height,
            prevrandao: Some(B256::new(chosen.random.unwrap_or_else(|| Digest::of(RANDOM_CONTEXT, &random).0))),
            ..BlockEnv::default()
        };
        let rules = self.ethereum_rules(block.height);
        env.set_blob_excess_gas_and_price(0, rules.blob_base_fee_update_fraction());
        EvmContext { block: env, rules }
    }

    /// What a transaction is judged by in the block at a height, before any state is looked at.
    pub fn transaction_rules(&self, height: Height) -> EthereumRules {
        EthereumRules { chain: self.chain, spec: self.contracts().forks().at(height).spec() }
    }

    /// The same for the next block.
    pub fn next_transaction_rules(&self) -> EthereumRules {
        self.transaction_rules(self.next_height())
    }

    /// The interpreter's rules at a height.
    pub fn ethereum_rules(&self, height: Height) -> CfgEnv {
        let mut rules = self.contracts().forks().at(height).rules(self.chain);
        // A contract signs nothing (EIP-3607); on a developers' chain, the node sends for contracts too.
        rules.disable_eip3607 = self.is_developers;
        rules
    }

    /// What a developer has chosen for a block.
    pub(crate) fn chosen_block(&self, block: &Superblock) -> DeveloperBlock {
        let sections = block.sub_blocks.iter().filter(|_| self.is_developers).flat_map(|one| &one.ethereum);
        let mut possible =
            sections.filter_map(|bytes| DeveloperEdit::decode(bytes)).filter(|edit| self.check_edit(edit).is_ok());
        let chosen =
            possible.find_map(|edit| if let DeveloperEdit::Block(chosen) = edit { Some(chosen) } else { None });
        chosen.unwrap_or_default()
    }

    /// The account of the validator that proposed a sub-block, where there are validators.
    pub(crate) fn proposer_account(&self, block: &Superblock, sub_block: usize) -> Option<Address> {
        let members = self.committee(self.schedule().epoch_of(block.height))?;
        let proposer = block.sub_blocks.get(sub_block)?.proposer;
        members.get(proposer as usize).map(|member| member.account)
    }

    /// Wei of an account: its units of asset 0, and the remainder below one unit.
    pub fn wei(&self, address: &Address) -> u128 {
        self.places.accounts.get(address).map_or(0, |account| wei_of(account, self.wei_per_unit()))
    }

    /// The nonce of the next Ethereum transaction of an account.
    pub fn ethereum_nonce(&self, address: &Address) -> u64 {
        self.places.accounts.get(address).map_or(0, shown_nonce)
    }

    /// Facts about the tokens of the assets.
    pub(crate) fn tokens(&self) -> Arc<[TokenFacts]> {
        (0..self.assets.len() as u32).filter_map(|number| self.token(AssetId(number))).collect()
    }

    /// Facts about the token of an asset, if it is listed.
    fn token(&self, asset: AssetId) -> Option<TokenFacts> {
        let record = self.assets.get(asset.0 as usize)?;
        let is_crowded = self.crowd.check_offer(self.listings(), asset).is_err();
        let pairs_left = self.listings().is_listed(asset).then(|| self.crowd.pairs_left_of(asset, &self.limits));
        let control = self.controls().control(asset);
        Some(TokenFacts {
            control,
            closes: self.listings().closes(asset),
            is_crowded,
            pairs_left,
            ..TokenFacts::of(record)
        })
    }

    /// The room for offers in the book.
    pub fn book_facts(&self) -> BookFacts {
        let most = self.limits.open_pairs as usize;
        let fits = self.assets.len().saturating_mul(self.assets.len()) <= most;
        let pairs_left = (!fits).then(|| most.saturating_sub(self.places.book.pairs()) as u32);
        let listed_pairs_left = self.crowd.pairs_left(&self.limits);
        let is_full = self.places.book.len() as u64 >= self.limits.resting_offers;
        BookFacts { is_full, pairs_left, listed_pairs_left }
    }

    /// Whether an edit can be made in the next block.
    ///
    /// # Errors
    /// [`EditError`] gives the reason why not.
    pub fn check_edit(&self, edit: &DeveloperEdit) -> Result<(), EditError> {
        if let Some(reserved) = edit.account().filter(|account| is_reserved(account)) {
            return Err(EditError::Reserved(*reserved));
        }
        match edit {
            DeveloperEdit::Balance { account, wei } => self.issue_with(account, *wei).map(drop),
            DeveloperEdit::Nonce { account, nonce } => {
                let next = self.ethereum_nonce(account);
                if *nonce >= next && *nonce < u64::MAX { Ok(()) } else { Err(EditError::Nonce(next)) }
            }
            DeveloperEdit::Code { code, .. }
                if code.len() > self.ethereum_rules(self.next_height()).max_code_size() =>
            {
                Err(EditError::Code(code.len()))
            }
            DeveloperEdit::Code { .. }
            | DeveloperEdit::Slot { .. }
            | DeveloperEdit::BaseFee { .. }
            | DeveloperEdit::Block(_) => Ok(()),
        }
    }

    /// The issued units of asset 0, and the carried wei below a unit, if an account has this many wei.
    pub(crate) fn issue_with(&self, account: &Address, wei: u128) -> Result<(Amount, u64), EditError> {
        let unit = u128::from(self.wei_per_unit());
        let carried = self.places.contracts.head().map_or(0, |head| head.carried);
        // Holdings of all others. They are not negative and fit in 128 bits: 2^63 units of at most 10^18 wei.
        let held =
            u128::from(self.assets[GAS_ASSET.0 as usize].issued) * unit - u128::from(carried) - self.wei(account);
        let most = u128::from(MAX_ISSUED) * unit - held;
        if wei > most {
            return Err(EditError::TooMuch(most));
        }
        let issued = (held + wei).div_ceil(unit);
        let carried = issued * unit - held - wei;
        Ok((issued as Amount, carried as u64))
    }

    /// What Ethereum sees of all accounts, by address: without the reserved ones, whose slots are the balances of other
    /// assets and the book.
    pub fn dump_accounts(&self) -> Vec<DumpedAccount> {
        dumped(&self.places.accounts, &self.places.contracts, self.wei_per_unit())
    }

    /// What Ethereum saw of an account after a block.
    ///
    /// # Errors
    /// [`UndoError`] if the state after this height is not kept.
    pub fn ethereum_account_at(&self, address: &Address, height: Height) -> Result<EthereumAccount, UndoError> {
        let noted = self.history.above(self.height, height)?.find_map(|undo| undo.before(address));
        let present = || self.places.accounts.get(address).map(|account| seen(account, self.wei_per_unit()));
        Ok(shown(address, noted.or_else(present).unwrap_or_default()))
    }

    /// The value of a slot after a block, big-endian; `None` means zero.
    ///
    /// # Errors
    /// [`UndoError`] if the state after this height is not kept.
    pub fn slot_at(&self, address: &Address, slot: &[u8; 32], height: Height) -> Result<Option<[u8; 32]>, UndoError> {
        let key = slot_key(address, slot);
        let noted = self.history.above(self.height, height)?.find_map(|undo| undo.slot_before(&key));
        Ok(noted.unwrap_or_else(|| self.present_slot(address, slot)))
    }

    /// The value of a slot between the native phase and the contract phase of a block, big-endian.
    ///
    /// # Errors
    /// [`UndoError`] if the state before this height is not kept.
    pub fn slot_within(
        &self,
        address: &Address,
        slot: &[u8; 32],
        height: Height,
    ) -> Result<Option<[u8; 32]>, UndoError> {
        let mut from = self.history.above(self.height, height.saturating_sub(1))?;
        let noted = from.next().and_then(|undo| undo.slots.get(&slot_key(address, slot)).copied());
        noted.map_or_else(|| self.slot_at(address, slot, height), Ok)
    }

    /// The present value of a slot; for a token, the holder's balance, or a fact about the asset.
    fn present_slot(&self, address: &Address, slot: &[u8; 32]) -> Option<[u8; 32]> {
        let Some((asset, holder)) = token_at(address).zip(holder_of(slot)) else {
            let asset = token_at(address).and_then(|asset| self.assets.get(asset.0 as usize));
            let fact = asset.and_then(|asset| fact_slot(slot, asset));
            return fact.or_else(|| self.places.contracts.slot(address, slot));
        };
        let account = self.places.accounts.get(&holder).filter(|_| asset != GAS_ASSET);
        units_slot(account.map_or(0, |account| account.balance(asset)))
    }

    /// What Ethereum saw of an account between the native phase and the contract phase of a block: what the block's
    /// first Ethereum transaction saw.
    ///
    /// # Errors
    /// [`UndoError`] if the state before this height is not kept.
    pub fn ethereum_account_within(&self, address: &Address, height: Height) -> Result<EthereumAccount, UndoError> {
        let mut from = self.history.above(self.height, height.saturating_sub(1))?;
        let noted = from.next().and_then(|undo| undo.accounts.get(address).copied());
        noted.map_or_else(|| self.ethereum_account_at(address, height), |noted| Ok(shown(address, noted)))
    }

    /// Units for sale, after a block, of an offer that a contract placed; `None` if it does not rest.
    ///
    /// # Errors
    /// [`UndoError`] if the state after this height is not kept.
    pub fn offer_at(&self, pair: Pair, place: &Place, height: Height) -> Result<Option<Amount>, UndoError> {
        let noted = self.history.above(self.height, height)?.find_map(|undo| undo.offer_before(&(pair, *place)));
        Ok(noted.unwrap_or_else(|| self.places.book.get(pair)?.get(place)))
    }

    /// Units for sale of an offer between the native phase and the contract phase of a block.
    ///
    /// # Errors
    /// [`UndoError`] if the state before this height is not kept.
    pub fn offer_within(&self, pair: Pair, place: &Place, height: Height) -> Result<Option<Amount>, UndoError> {
        let mut from = self.history.above(self.height, height.saturating_sub(1))?;
        let noted = from.next().and_then(|undo| undo.offers.get(&(pair, *place)).copied());
        noted.map_or_else(|| self.offer_at(pair, place, height), Ok)
    }

    /// Facts about the token of an asset after a block: its valuation then, and the rest as it is now.
    ///
    /// # Errors
    /// [`UndoError`] if the state after this height is not kept.
    pub fn token_facts_at(&self, asset: AssetId, height: Height) -> Result<Option<TokenFacts>, UndoError> {
        let then = self.history.above(self.height, height)?.find_map(|undo| undo.valuations.get(&asset).copied());
        Ok(self.token(asset).map(|now| TokenFacts { valuation: then.unwrap_or(now.valuation), ..now }))
    }

    /// Facts about a holder of a controlled asset after a block, and in its contract phase: its standing then, and its
    /// offers as they are now.
    ///
    /// # Errors
    /// [`UndoError`] if the state after this height is not kept.
    pub fn holder_facts_at(&self, asset: AssetId, account: &Address, height: Height) -> Result<HolderFacts, UndoError> {
        let id = (asset, *account);
        let then = self.history.above(self.height, height)?.find_map(|undo| undo.holders.get(&id).copied());
        let standing = then.unwrap_or_else(|| self.controls().standing(asset, account));
        Ok(HolderFacts { standing, offers: self.held.count(asset, account) })
    }

    /// Code that an account has, or had at a retained height.
    pub fn ethereum_code(&self, hash: &Digest) -> Option<EvmCode> {
        let contracts = &self.places.contracts;
        contracts.evm_code(hash).or_else(|| shown_code_of(hash)).or_else(|| self.history.released(hash))
    }

    /// The digest of a block, if contracts can ask for it.
    pub fn recent_digest(&self, height: Height) -> Option<Digest> {
        let hashes = &self.places.contracts.head()?.hashes;
        let back = usize::try_from(self.height.checked_sub(height)?).ok()?;
        hashes.len().checked_sub(back + 1).map(|at| hashes[at])
    }
}
