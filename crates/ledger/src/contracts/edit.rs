//! Edits of accounts and blocks on a developers' chain: what they say. See `developer` for what they do.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::Address;

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
    /// What contracts see of the block that contains it.
    Block(DeveloperBlock),
}

/// Parts of a block that a developer has chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct DeveloperBlock {
    /// COINBASE, which receives the tips.
    pub coinbase: Option<Address>,
    /// PREVRANDAO.
    pub random: Option<[u8; 32]>,
    /// GASLIMIT, which bounds each transaction.
    pub gas_limit: Option<u64>,
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

    pub(crate) fn account(&self) -> Option<&Address> {
        match self {
            DeveloperEdit::Balance { account, .. }
            | DeveloperEdit::Nonce { account, .. }
            | DeveloperEdit::Code { account, .. }
            | DeveloperEdit::Slot { account, .. } => Some(account),
            DeveloperEdit::Block(chosen) => chosen.coinbase.as_ref(),
            DeveloperEdit::BaseFee { .. } => None,
        }
    }
}
