//! Ethereum transactions in a simulated network: which client sends them to which validator, and the invariants.

use std::collections::{BTreeMap, BTreeSet};

use consensus::Index;
use kernel::Dice;
use ledger::contracts::{ContractReceipts, EvmStatus};
use primitives::{Address, SecretKey, SubBlock};

use super::SimNetwork;
use crate::ethereum::EthereumClients;

/// The clients of a network, and what is known about their transactions.
pub(super) struct EthereumNetwork {
    pub clients: EthereumClients,
    dice: Dice,
    /// The transactions that were sent, as bytes.
    sent: BTreeSet<Vec<u8>>,
    /// Transactions that each sender has paid for.
    paid: BTreeMap<Address, u64>,
}

impl EthereumNetwork {
    /// Clients that know the accounts of validators.
    pub fn new(validators: &[SecretKey], seed: u64) -> EthereumNetwork {
        let accounts = validators.iter().map(|secret| secret.public().address());
        let (sent, paid) = (BTreeSet::new(), BTreeMap::new());
        EthereumNetwork { clients: EthereumClients::new(accounts), dice: Dice::new(seed), sent, paid }
    }
}

/// A client sends a transaction to a validator, if that one runs. It is not sent again.
pub(super) fn send_ethereum(sim: &mut SimNetwork, to: Index) {
    let Some(network) = &mut sim.ethereum else { return };
    let Some(process) = &sim.hosts[usize::from(to)].process else { return };
    let bytes = network.clients.draw(&process.ledger, &mut network.dice);
    network.sent.insert(bytes.clone());
    enter_ethereum(sim, to, bytes);
}

/// The step of the intake, which may refuse it.
pub(super) fn enter_ethereum(sim: &mut SimNetwork, of: Index, bytes: Vec<u8>) {
    let now_ms = sim.time(of).milliseconds();
    let Some(process) = sim.process(of) else { return };
    // Some are drawn to be refused.
    let _ = process.pool.ethereum.admit(bytes, now_ms, &process.ledger);
    sim.nudge(of);
}

/// Validators forward only what clients sent.
pub(super) fn check_handed_ethereum(sim: &SimNetwork, of: Index, bytes: &[u8]) {
    let is_sent = sim.ethereum.as_ref().is_some_and(|network| network.sent.contains(bytes));
    assert!(is_sent || !sim.faults.is_empty(), "{of} receives a forwarded Ethereum transaction that nobody sent");
}

/// Processes the results of a block that is applied for the first time anywhere: each sender has paid for as many
/// transactions as its nonce says.
pub(super) fn count_ethereum(sim: &mut SimNetwork, of: Index, contracts: &ContractReceipts) {
    let Some(network) = &mut sim.ethereum else { return };
    for receipt in contracts.receipts.iter().filter(|receipt| receipt.position.is_some()) {
        *network.paid.entry(receipt.sender).or_default() += 1;
        sim.progress = sim.schedule.now();
        sim.report.ethereum[match receipt.status {
            EvmStatus::Succeeded => 0,
            EvmStatus::Reverted => 1,
            EvmStatus::Halted => 2,
        }] += 1;
    }
    sim.report.ethereum[3] += contracts.skipped.len() as u64;
    let ledger = &sim.hosts[usize::from(of)].process.as_ref().expect("it applies").ledger;
    for (sender, paid) in &network.paid {
        assert_eq!(ledger.ethereum_nonce(sender), *paid, "{sender} has not paid once for each nonce");
    }
}

/// Changes a validator's own sub-block as if it trusted itself about the senders: all senders are the same.
pub(super) fn trust_own(sim: &SimNetwork, of: Index, sub_block: &mut SubBlock) {
    let is_own = u64::from(sub_block.proposer) == u64::from(of);
    if sim.trusting == Some(of) && is_own {
        sub_block.senders.iter_mut().for_each(|sender| *sender = Some(Address::default()));
    }
}
