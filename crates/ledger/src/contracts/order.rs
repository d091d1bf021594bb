//! The order in which a superblock's Ethereum transactions are executed, and the quota of each sub-block.
//!
//! Sub-blocks are in slot order, rotated by height, so that no validator is always first. A transaction that occurs
//! again is a duplicate. The transactions of one sender fill their combined positions in the order of their nonces,
//! and by position if nonces are equal: so nonces are in order however many sub-blocks they came through.

use hashbrown::HashSet;
use primitives::{Address, Digest, Superblock};
use proofs::Skip;
use rayon::prelude::*;

use super::edit::DeveloperEdit;
use super::transaction::{EthereumFault, EthereumRules, EthereumTransaction};

/// A transaction that will be executed.
#[derive(Clone, Debug)]
pub(crate) struct Ordered {
    /// Its position among the block's Ethereum transactions, by sub-block and section.
    pub position: u32,
    /// The position of its sub-block in the block.
    pub sub_block: usize,
    pub sender: Address,
    pub transaction: EthereumTransaction,
}

/// Checks bytes of a section without state and without signature, and counts their gas against the rest of the quota of
/// their sub-block.
///
/// # Errors
/// [`EthereumFault`]; also if the quota is exceeded, see [`EthereumFault::Quota`].
pub fn check_in_section(
    bytes: &[u8],
    rules: EthereumRules,
    gas_left: &mut u64,
) -> Result<EthereumTransaction, EthereumFault> {
    let transaction = EthereumTransaction::decode(bytes)?;
    transaction.check(rules)?;
    let gas = transaction.gas_limit();
    *gas_left = gas_left.checked_sub(gas).ok_or(EthereumFault::Quota { gas, left: *gas_left })?;
    Ok(transaction)
}

/// The signer of each transaction of a section, recovered on the current rayon pool.
pub fn recover_senders(section: &[Vec<u8>]) -> Vec<Option<Address>> {
    let sender = |bytes: &Vec<u8>| EthereumTransaction::decode(bytes).ok()?.recover_sender().ok();
    section.par_iter().map(sender).collect()
}

/// The content of the sections of a block.
#[derive(Default)]
pub(crate) struct Sections {
    /// The transactions to execute, in order.
    pub standing: Vec<Ordered>,
    /// Transactions that are skipped, by position.
    pub skipped: Vec<(u32, Skip)>,
    /// Edits of a developers' chain, by position.
    pub edits: Vec<(u32, DeveloperEdit)>,
}

/// Sorts the content of the sections of a block. Only a developers' chain has edits.
pub(crate) fn in_order(block: &Superblock, rules: EthereumRules, quota: u64, is_developers: bool) -> Sections {
    let (mut standing, mut skipped, mut edits) = (Vec::new(), Vec::new(), Vec::new());
    let mut seen: HashSet<Digest> = HashSet::new();
    let count = block.sub_blocks.len();
    let starts: Vec<usize> = block
        .sub_blocks
        .iter()
        .map(|sub| sub.ethereum.len())
        .scan(0, |sum, len| {
            *sum += len;
            Some(*sum - len)
        })
        .collect();
    for slot in 0..count {
        let sub_block = (slot + (block.height % count as u64) as usize) % count;
        let sub = &block.sub_blocks[sub_block];
        let mut gas_left = quota;
        for (at, bytes) in sub.ethereum.iter().enumerate() {
            let position = (starts[sub_block] + at) as u32;
            if let Some(edit) = is_developers.then(|| DeveloperEdit::decode(bytes)).flatten() {
                edits.push((position, edit));
                continue;
            }
            let judged = check_in_section(bytes, rules, &mut gas_left).and_then(|transaction| {
                let sender = match sub.senders.get(at) {
                    Some(sender) => sender.ok_or(EthereumFault::Signature)?,
                    None => transaction.recover_sender()?,
                };
                Ok((sender, transaction))
            });
            match judged {
                Ok((_, transaction)) if !seen.insert(transaction.hash()) => skipped.push((position, Skip::Duplicate)),
                Ok((sender, transaction)) => standing.push(Ordered { position, sub_block, sender, transaction }),
                Err(EthereumFault::Quota { .. }) => skipped.push((position, Skip::OverQuota)),
                Err(EthereumFault::Signature) => skipped.push((position, Skip::BadSignature)),
                Err(_) => skipped.push((position, Skip::Malformed)),
            }
        }
    }
    Sections { standing: by_nonce(standing), skipped, edits }
}

/// Assigns the positions of each sender to its transactions in the order of their nonces.
fn by_nonce(standing: Vec<Ordered>) -> Vec<Ordered> {
    let mut places: Vec<(Address, usize)> = standing.iter().enumerate().map(|(at, one)| (one.sender, at)).collect();
    places.sort_unstable();
    let mut nonces: Vec<(Address, u64, usize)> =
        standing.iter().enumerate().map(|(at, one)| (one.sender, one.transaction.nonce(), at)).collect();
    nonces.sort_unstable();
    let mut order: Vec<(usize, usize)> =
        places.iter().zip(&nonces).map(|((_, place), (_, _, from))| (*place, *from)).collect();
    order.sort_unstable();
    let mut from: Vec<Option<Ordered>> = standing.into_iter().map(Some).collect();
    order.into_iter().map(|(_, at)| from[at].take().expect("each occurs once")).collect()
}
