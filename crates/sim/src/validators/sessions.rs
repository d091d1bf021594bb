//! Session keys in a simulated network: which client sends what to which validator, and the invariants.

use consensus::Index;
use kernel::Dice;
use ledger::{Applied, Batch, Outcome};
use primitives::{Digest, Height, Superblock, Transaction};
use replica::Reject;

use super::{SimNetwork, ledgers};
use crate::sessions::{SessionBlock, SessionBooks, SessionClients};

/// Clients with session keys.
const OWNERS: usize = 2;
/// Heights of a key's life, for one where clients have a turn in each block.
const PATIENCE: u64 = 6;

/// The clients with session keys of a network, and what became of their transactions.
pub(super) struct SessionNetwork {
    pub clients: SessionClients,
    dice: Dice,
    books: SessionBooks,
    /// The last height in the books.
    height: Height,
}

impl SessionNetwork {
    pub fn new(network: Digest, seed: u64) -> SessionNetwork {
        let mut dice = Dice::new(seed);
        let mut clients = SessionClients::new(OWNERS, ledgers::ASSETS.into(), (ledgers::CHAIN, network), &mut dice);
        clients.patience = PATIENCE;
        SessionNetwork { clients, dice, books: SessionBooks::new(network, ledgers::FEE), height: 0 }
    }

    fn count(&mut self, block: &Superblock, outcomes: &[Outcome], batch: &Batch) {
        let transactions = block.sub_blocks.iter().flat_map(|sub| &sub.native);
        let counted = |(_, outcome): &(&Transaction, Outcome)| outcome.refusal().is_none();
        let effective: Vec<_> = transactions.zip(outcomes.iter().copied()).filter(counted).collect();
        let height = block.height;
        let applied = self.books.apply(SessionBlock { height, effective: &effective, batch });
        applied.unwrap_or_else(|what| panic!("block {height}: {what}"));
        self.height = height;
    }
}

/// A client sends a transaction to a validator, if that one runs. It is not sent again.
pub(super) fn send_of_session(sim: &mut SimNetwork, to: Index) {
    let Some(network) = &mut sim.session_network else { return };
    let Some(process) = &sim.hosts[usize::from(to)].process else { return };
    let (transaction, must_refuse) = network.clients.draw(&process.ledger, &mut network.dice);
    let body = must_refuse.then(|| transaction.body.clone());
    // Others are refused, too: clients do not know what holds now.
    let entered = sim.enter(to, transaction);
    let is_refused = matches!(entered, Some(Err(Reject::Refused(_) | Reject::Full)));
    assert!(!must_refuse || is_refused, "{to} takes what a session key may not do: {body:?}");
}

/// Processes a block that is applied for the first time anywhere: session keys did what they may, and the ledger
/// of the validator that applied it has recorded it.
pub(super) fn count_sessions(sim: &mut SimNetwork, of: Index, block: &Superblock, applied: &Applied) {
    let Some(network) = &mut sim.session_network else { return };
    let process = sim.hosts[usize::from(of)].process.as_ref().expect("it applies");
    // Blocks that a crash left logged were applied by a restart, and nobody has counted them.
    for height in network.height + 1..block.height {
        let block = process.past.block(height).expect("readable").expect("it is logged");
        let receipts = process.past.receipts(height).expect("readable").expect("it is logged");
        let outcomes: Vec<Outcome> = receipts.outcomes.iter().map(|(_, outcome)| *outcome).collect();
        network.count(&block, &outcomes, &receipts.batch);
    }
    network.count(block, &applied.outcomes, &applied.batch);
    let held = network.books.hold(&process.ledger);
    held.unwrap_or_else(|what| panic!("{of}, after block {}: {what}", block.height));
    sim.report.sessions = network.books.counts;
}
