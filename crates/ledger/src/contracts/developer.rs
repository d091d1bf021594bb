//! Edits of accounts, which blocks of a developers' chain may contain.
//!
//! An edit is in the section of Ethereum transactions, as bytes that begin with [`EDIT_TYPE`], a type that Ethereum
//! does not use. So blocks stay the only source of state; replays, roots and proofs need no knowledge of edits, and no
//! format changes. A chain whose genesis does not set `developers` treats such bytes as an invalid transaction: no
//! validator votes for a sub-block that contains them, and a block that contains them skips them.
//!
//! Edits are applied before the transactions of their block. They have no receipt and cost nothing. An edit that
//! cannot be made changes nothing and is listed as skipped.
//!
//! *Conservation.* Wei that an edit gives to an account are issued with it, and wei that it takes are no longer
//! issued, so that Σ wei + carried wei = issued units still holds. No edit issues more than may exist.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, Digest, MAX_ISSUED};
use revm::primitives::{B256, U256, eip170};

use super::evm::{AccountInfo, evm_code};
use super::phase::{Books, Phase};
use super::reserved::is_reserved;
use super::state::{GAS_ASSET, shown_nonce, slot_key, wei_of};
use crate::Ledger;
use crate::places::accounts::EvmRecord;

/// The first byte of an edit.
pub const EDIT_TYPE: u8 = 0x7d;

/// The new state of a part of an account.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum DeveloperEdit {
    /// Its wei.
    Balance {
        /// The account.
        account: Address,
        /// Wei.
        wei: u128,
    },
    /// The nonce of its next transaction.
    Nonce {
        /// The account.
        account: Address,
        /// The nonce; not less than the present one.
        nonce: u64,
    },
    /// Its code.
    Code {
        /// The account.
        account: Address,
        /// The code; empty to make a contract an ordinary account.
        code: Vec<u8>,
    },
    /// A slot of its storage.
    Slot {
        /// The account.
        account: Address,
        /// The slot, big-endian.
        slot: [u8; 32],
        /// The value, big-endian.
        value: [u8; 32],
    },
    /// The base fee of the next block, in wei per unit of gas; of no account.
    BaseFee {
        /// Wei.
        wei: u64,
    },
}

/// Why an edit cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The address is that of a token or of the offers.
    #[error(
        "{0} belongs to the exchange: tokens and offers show balances and the book, and have no state of their own"
    )]
    Reserved(Address),
    /// The edit gives more wei than may exist.
    #[error("at most {0} wei: more units of the asset that pays for gas cannot exist")]
    TooMuch(u128),
    /// The nonce has been used.
    #[error("the nonce is already {0} and can only rise: otherwise executed transactions could run again")]
    Nonce(u64),
    /// The code is too long.
    #[error("{0} bytes of code; at most 24576 (EIP-170)")]
    Code(usize),
}

impl DeveloperEdit {
    /// The encoding in a section.
    pub fn encode(&self) -> Vec<u8> {
        borsh::to_vec(&(EDIT_TYPE, self)).expect("writing to memory cannot fail")
    }

    /// Decodes bytes of a section; `None` if they are not an edit.
    pub fn decode(bytes: &[u8]) -> Option<DeveloperEdit> {
        let (_, edit) = Some(bytes).filter(|bytes| bytes.first() == Some(&EDIT_TYPE)).and_then(|bytes| {
            let decoded: Result<(u8, DeveloperEdit), _> = borsh::from_slice(bytes);
            decoded.ok()
        })?;
        Some(edit)
    }

    fn account(&self) -> Option<&Address> {
        match self {
            DeveloperEdit::Balance { account, .. }
            | DeveloperEdit::Nonce { account, .. }
            | DeveloperEdit::Code { account, .. }
            | DeveloperEdit::Slot { account, .. } => Some(account),
            DeveloperEdit::BaseFee { .. } => None,
        }
    }
}

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
            DeveloperEdit::Code { .. } | DeveloperEdit::Slot { .. } | DeveloperEdit::BaseFee { .. } => Ok(()),
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
            code_hash: if code == Digest::default() { super::evm::NO_CODE } else { B256::new(code.0) },
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
