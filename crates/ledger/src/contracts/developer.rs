//! Edits of accounts, which blocks of a developers' chain may contain.
//!
//! An edit is in the section of Ethereum transactions, as bytes that begin with [`EDIT_TYPE`](super::EDIT_TYPE), a
//! type that Ethereum does not use. So blocks stay the only source of state; replays, roots and proofs need no
//! knowledge of edits, and no format changes. A chain whose genesis does not set `developers` treats such bytes as an
//! invalid transaction: no validator votes for a sub-block that contains them, and a block that contains them skips
//! them.
//!
//! Edits are applied before the transactions of their block. They have no receipt and cost nothing. An edit that
//! cannot be made changes nothing and is listed as skipped. An edit of the block itself changes no state: it is part of
//! the environment in which the block's transactions run.
//!
//! *Conservation.* Wei that an edit gives to an account are issued with it, and wei that it takes are no longer
//! issued, so that Σ wei + carried wei = issued units still holds. No edit issues more than may exist.

use primitives::{Address, Amount, Digest, MAX_ISSUED, Superblock};
use proofs::{EvmRecord, slot_key};
use revm::primitives::{B256, U256, eip170};

use super::call::is_reserved;
use super::edit::{DeveloperBlock, DeveloperEdit, EditError};
use super::evm_state::{AccountInfo, evm_code};
use super::phase::{Books, Phase};
use super::slots::GAS_ASSET;
use super::state::{shown_nonce, wei_of};
use crate::Ledger;

impl Ledger {
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
            DeveloperEdit::Code { code, .. } if code.len() > eip170::MAX_CODE_SIZE => Err(EditError::Code(code.len())),
            DeveloperEdit::Code { .. }
            | DeveloperEdit::Slot { .. }
            | DeveloperEdit::BaseFee { .. }
            | DeveloperEdit::Block(_) => Ok(()),
        }
    }

    /// The issued units of asset 0, and the carried wei below a unit, if an account has this many wei.
    fn issue_with(&self, account: &Address, wei: u128) -> Result<(Amount, u64), EditError> {
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

    /// What a developer has chosen for a block.
    pub(super) fn chosen_block(&self, block: &Superblock) -> DeveloperBlock {
        let sections = block.sub_blocks.iter().filter(|_| self.is_developers).flat_map(|one| &one.ethereum);
        let mut possible =
            sections.filter_map(|bytes| DeveloperEdit::decode(bytes)).filter(|edit| self.check_edit(edit).is_ok());
        let chosen =
            possible.find_map(|edit| if let DeveloperEdit::Block(chosen) = edit { Some(chosen) } else { None });
        chosen.unwrap_or_default()
    }

    /// Makes the edits of a block, in order. Those that cannot be made are skipped.
    pub(super) fn make_edits(&mut self, edits: Vec<(u32, DeveloperEdit)>, phase: &mut Phase) {
        for (position, edit) in edits {
            if self.check_edit(&edit).is_err() {
                phase.receipts.skipped.push((position, super::Skip::Malformed));
                continue;
            }
            match edit {
                DeveloperEdit::Balance { account, wei } => {
                    let Ok((issued, carried)) = self.issue_with(&account, wei) else { continue };
                    self.edit_account(&account, phase, |info| info.balance = U256::from(wei));
                    self.assets[GAS_ASSET.0 as usize].issued = issued;
                    self.places.contracts.head_mut().carried = carried;
                }
                DeveloperEdit::Nonce { account, nonce } => {
                    self.edit_account(&account, phase, |info| info.nonce = nonce);
                }
                DeveloperEdit::Code { account, code } => {
                    let code = evm_code(code.into());
                    // An account whose code only delegates can sign as before.
                    let is_contract = !code.is_empty() && !code.is_eip7702();
                    self.edit_account(&account, phase, |info| {
                        info.code_hash = code.hash_slow();
                        info.code = Some(code);
                    });
                    let account = self.places.accounts.get_or_insert(&account);
                    account.set_evm(EvmRecord { is_contract, ..account.evm() });
                }
                DeveloperEdit::BaseFee { wei } => phase.next_base_fee = Some(wei),
                // The environment of the block has it already.
                DeveloperEdit::Block(_) => {}
                DeveloperEdit::Slot { account, slot, value } => {
                    let (key, value) = (slot_key(&account, &slot), (value != [0; 32]).then_some(value));
                    let before = self.places.contracts.set_slot(key, value);
                    phase.undo.slots.entry(key).or_insert(before);
                    phase.slots.push((key, value));
                }
            }
        }
    }

    /// Writes an account as a transaction would.
    fn edit_account(&mut self, address: &Address, phase: &mut Phase, edit: impl FnOnce(&mut AccountInfo)) {
        let unit = self.wei_per_unit();
        let account = self.places.accounts.get_or_insert(address);
        let code = account.evm().code;
        let mut info = AccountInfo {
            balance: U256::from(wei_of(account, unit)),
            nonce: shown_nonce(account),
            code_hash: if code == Digest::default() { super::evm_state::NO_CODE } else { B256::new(code.0) },
            ..AccountInfo::default()
        };
        edit(&mut info);
        // Transactions must balance their books; an edit issues the difference.
        self.write_account(address, Some(info), &mut Books::default(), &mut phase.undo);
        phase.accounts.push(*address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_have_one_encoding_and_are_no_transactions() {
        let account = Address([7; 20]);
        for edit in [
            DeveloperEdit::Balance { account, wei: u128::MAX },
            DeveloperEdit::Nonce { account, nonce: 3 },
            DeveloperEdit::Code { account, code: vec![1, 2, 3] },
            DeveloperEdit::Slot { account, slot: [1; 32], value: [2; 32] },
            DeveloperEdit::BaseFee { wei: 7 },
            DeveloperEdit::Block(DeveloperBlock { gas_limit: Some(7), ..DeveloperBlock::default() }),
        ] {
            let bytes = edit.encode();
            assert_eq!(DeveloperEdit::decode(&bytes), Some(edit));
            assert!(super::super::EthereumTransaction::decode(&bytes).is_err());
            assert_eq!(DeveloperEdit::decode(&[&bytes[..], &[0]].concat()), None);
            assert_eq!(DeveloperEdit::decode(&bytes[..bytes.len() - 1]), None);
            assert_eq!(DeveloperEdit::decode(&[&[2], &bytes[1..]].concat()), None);
        }
        assert_eq!(DeveloperEdit::decode(&[]), None);
    }
}
