//! Edits of accounts, which blocks of a developers' chain may contain.
//!
//! An edit is in the section of Ethereum transactions, as bytes that begin with a type that Ethereum does not use
//! ([`EDIT_TYPE`](crate::contracts::EDIT_TYPE)). So blocks stay the only source of state; replays, roots and proofs
//! need no knowledge of edits, and no format changes. A chain whose genesis does not set `developers` treats such
//! bytes as an invalid transaction: no validator votes for a sub-block that contains them, and a block that contains
//! them skips them.
//!
//! Edits are applied before the transactions of their block. They have no receipt and cost nothing. An edit that
//! cannot be made changes nothing and is listed as skipped. An edit of the block itself changes no state: it is part of
//! the environment in which the block's transactions run.
//!
//! *Conservation.* Wei that an edit gives to an account are issued with it, and wei that it takes are no longer
//! issued, so that Σ wei + carried wei = issued units still holds. No edit issues more than may exist.

use primitives::{Address, Digest};
use proofs::{EvmRecord, Skip, slot_key};
use revm::primitives::{B256, U256};

use super::{Books, Phase, write_account};
use crate::contracts::{AccountInfo, DeveloperEdit, GAS_ASSET, NO_CODE, shown_nonce, wei_of};
use crate::places::contracts::evm_code;
use crate::state::Ledger;

/// Makes the edits of a block, in order. Those that cannot be made are skipped.
pub(super) fn make_edits(ledger: &mut Ledger, edits: Vec<(u32, DeveloperEdit)>, phase: &mut Phase) {
    for (position, edit) in edits {
        if ledger.check_edit(&edit).is_err() {
            phase.receipts.skipped.push((position, Skip::Malformed));
            continue;
        }
        match edit {
            DeveloperEdit::Balance { account, wei } => {
                let Ok((issued, carried)) = ledger.issue_with(&account, wei) else { continue };
                edit_account(ledger, &account, phase, |info| info.balance = U256::from(wei));
                ledger.assets[GAS_ASSET.0 as usize].issued = issued;
                ledger.places.contracts.head_mut().carried = carried;
            }
            DeveloperEdit::Nonce { account, nonce } => {
                edit_account(ledger, &account, phase, |info| info.nonce = nonce);
            }
            DeveloperEdit::Code { account, code } => {
                let code = evm_code(code.into());
                // An account whose code only delegates can sign as before.
                let is_contract = !code.is_empty() && !code.is_eip7702();
                edit_account(ledger, &account, phase, |info| {
                    info.code_hash = code.hash_slow();
                    info.code = Some(code);
                });
                let account = ledger.places.accounts.get_or_insert(&account);
                account.set_evm(EvmRecord { is_contract, ..account.evm() });
            }
            DeveloperEdit::BaseFee { wei } => phase.next_base_fee = Some(wei),
            // The environment of the block has it already.
            DeveloperEdit::Block(_) => {}
            DeveloperEdit::Slot { account, slot, value } => {
                let (key, value) = (slot_key(&account, &slot), (value != [0; 32]).then_some(value));
                let before = ledger.places.contracts.set_slot(key, value);
                phase.undo.slots.entry(key).or_insert(before);
                phase.slots.push((key, value));
            }
        }
    }
}

/// Writes an account as a transaction would.
fn edit_account(ledger: &mut Ledger, address: &Address, phase: &mut Phase, edit: impl FnOnce(&mut AccountInfo)) {
    let unit = ledger.wei_per_unit();
    let account = ledger.places.accounts.get_or_insert(address);
    let code = account.evm().code;
    let mut info = AccountInfo {
        balance: U256::from(wei_of(account, unit)),
        nonce: shown_nonce(account),
        code_hash: if code == Digest::default() { NO_CODE } else { B256::new(code.0) },
        ..AccountInfo::default()
    };
    edit(&mut info);
    // Transactions must balance their books; an edit issues the difference.
    write_account(ledger, address, Some(info), &mut Books::default(), &mut phase.undo);
    phase.accounts.push(*address);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contracts::DeveloperBlock;

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
            assert!(crate::contracts::EthereumTransaction::decode(&bytes).is_err());
            assert_eq!(DeveloperEdit::decode(&[&bytes[..], &[0]].concat()), None);
            assert_eq!(DeveloperEdit::decode(&bytes[..bytes.len() - 1]), None);
            assert_eq!(DeveloperEdit::decode(&[&[2], &bytes[1..]].concat()), None);
        }
        assert_eq!(DeveloperEdit::decode(&[]), None);
    }
}
