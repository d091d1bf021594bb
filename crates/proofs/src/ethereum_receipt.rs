//! The results of a block's Ethereum transactions, in archived and provable form.

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Digest, TransactionId, keccak256};

const RECEIPT_CONTEXT: &str = "walras 2026 ethereum receipt v1";
const REST_CONTEXT: &str = "walras 2026 contract phase v1";

/// A log of a contract.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct EthereumLog {
    /// The contract.
    pub address: Address,
    /// Up to four topics; the first is usually the event's hash.
    pub topics: Vec<[u8; 32]>,
    /// The data of the log.
    pub data: Vec<u8>,
}

/// How an executed transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum EvmStatus {
    /// It took effect.
    Succeeded,
    /// It reverted: only the fee remains of its effects.
    Reverted,
    /// It ran out of gas or broke a rule: only the fee remains of its effects, for all gas of its limit.
    Halted,
}

impl EvmStatus {
    /// A stable word for programs.
    pub fn name(self) -> &'static str {
        match self {
            EvmStatus::Succeeded => "succeeded",
            EvmStatus::Reverted => "reverted",
            EvmStatus::Halted => "halted",
        }
    }
}

/// Why a transaction was skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Skip {
    /// Its bytes are not a transaction of this chain.
    Malformed,
    /// Its signature is not valid.
    BadSignature,
    /// The same transaction occurs before it.
    Duplicate,
    /// Its nonce has been used.
    NonceTooLow,
    /// A lower nonce of its sender is missing.
    NonceTooHigh,
    /// Its sender cannot pay for its gas and value.
    Funds,
    /// It offers less for gas than the base fee.
    Price,
    /// Its sender is a contract.
    SenderHasCode,
    /// The quota of gas of its sub-block was used up.
    OverQuota,
    /// It is invalid in itself.
    Invalid,
}

/// The receipt of an Ethereum transaction that was executed and paid for.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct EthereumReceipt {
    /// The hash of the transaction.
    pub id: TransactionId,
    /// Its position among the block's Ethereum transactions, by sub-block and section. Receipts are in the order of
    /// execution. `None` marks the settlement receipt: it belongs to no transaction, comes first, and has the logs of
    /// what the block's batch did with offers that contracts placed.
    pub position: Option<u32>,
    /// Its sender.
    pub sender: Address,
    /// How it ended.
    pub status: EvmStatus,
    /// Gas that it paid for.
    pub gas_used: u64,
    /// Wei that it paid for a unit of gas.
    pub gas_price: u128,
    /// The contract that it created.
    pub contract: Option<Address>,
    /// Its logs.
    pub logs: Vec<EthereumLog>,
}

/// The results of the contract phase of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ContractReceipts {
    /// Transactions that were executed, in this order, after the settlement receipt where there is one.
    pub receipts: Vec<EthereumReceipt>,
    /// Transactions that were skipped, by their position among the block's Ethereum transactions, ascending.
    pub skipped: Vec<(u32, Skip)>,
    /// The base fee: the minimum price of a unit of gas in wei.
    pub base_fee: u64,
    /// Burnt wei: base fees, and wei that contracts destroyed.
    pub burnt: u128,
}

/// Ethereum's filter over addresses and topics of logs: 2,048 bits, three for each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bloom(pub [u8; 256]);

impl Bloom {
    fn add(&mut self, entry: &[u8]) {
        let hash = keccak256(entry);
        for pair in hash[..6].chunks_exact(2) {
            let bit = usize::from(u16::from_be_bytes([pair[0], pair[1]]) & 2_047);
            self.0[255 - bit / 8] |= 1 << (bit % 8);
        }
    }

    /// The filter of these logs.
    pub fn of<'a>(logs: impl Iterator<Item = &'a EthereumLog>) -> Bloom {
        let mut bloom = Bloom([0; 256]);
        for log in logs {
            bloom.add(&log.address.0);
            log.topics.iter().for_each(|topic| bloom.add(topic));
        }
        bloom
    }
}

impl EthereumReceipt {
    /// Its value in the trie of receipts, where its id is the key.
    pub fn digest(&self) -> [u8; 32] {
        blake3::derive_key(RECEIPT_CONTEXT, &borsh::to_vec(self).expect("writing to memory cannot fail"))
    }
}

impl ContractReceipts {
    /// Gas of all executed transactions.
    pub fn gas_used(&self) -> u64 {
        self.receipts.iter().map(|receipt| receipt.gas_used).sum()
    }

    /// The filter over all logs of the block.
    pub fn bloom(&self) -> Bloom {
        Bloom::of(self.receipts.iter().flat_map(|receipt| &receipt.logs))
    }

    /// The digest of everything but the receipts: skipped transactions, fees, and the filter over logs.
    pub fn digest(&self) -> Digest {
        let bytes = borsh::to_vec(&(&self.skipped, self.gas_used(), self.base_fee, self.burnt, self.bloom().0));
        Digest::of(REST_CONTEXT, &bytes.expect("writing to memory cannot fail"))
    }
}
