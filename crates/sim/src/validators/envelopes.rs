//! Envelopes in a simulated network: clients who seal orders to the committee's key, and what must hold of what opens.
//!
//! Every validator has the same state after each block, whoever opened its envelopes and with whose shares: that is
//! checked for all blocks. Here: an envelope opens once, under a key in force, before it ends; and no correct validator
//! gives out what opens a height that it has not decided (`checks`).

use std::collections::BTreeMap;

use consensus::Index;
use kernel::Dice;
use ledger::{Applied, Genesis, Ledger, Outcome, SEAL_NOTICE, Seals};
use primitives::{
    Amount, AssetId, Body, Digest, Enclosure, EnvelopeName, Height, Operation, Price, SecretKey, Sequence, Superblock,
    Transaction,
};
use replica::Reject;
use sealing::{EnvelopeTerms, SealedText, SealingKey, seal};

use super::{SimNetwork, ledgers};

/// What who pays for envelopes has, and what the poor one has: enough for one.
const RICH: Amount = 1_000_000;
const POOR: Amount = 60 * ledgers::FEE;
const UNITS: Amount = 1_000_000;
/// The last that pays is poor.
const PAYERS: usize = 3;
const TRADERS: usize = 2;

/// Clients who seal, and what became of their envelopes.
pub(super) struct EnvelopeNetwork {
    network: Digest,
    dice: Dice,
    payers: Vec<(SecretKey, Sequence)>,
    traders: Vec<(SecretKey, Sequence)>,
    /// Envelopes that were sent: some are sent again.
    sent: Vec<Transaction>,
    /// The heights at which names were opened.
    opened: BTreeMap<EnvelopeName, Height>,
}

impl EnvelopeNetwork {
    pub fn new(network: Digest, seed: u64) -> EnvelopeNetwork {
        let mut dice = Dice::new(seed);
        let mut keys = |count: usize| -> Vec<(SecretKey, Sequence)> {
            (0..count).map(|_| (SecretKey::from_seed(std::array::from_fn(|_| dice.below(256) as u8)), 1)).collect()
        };
        let (payers, traders) = (keys(PAYERS), keys(TRADERS));
        EnvelopeNetwork { network, dice, payers, traders, sent: Vec::new(), opened: BTreeMap::new() }
    }

    /// Adds what they hold to a genesis.
    pub fn found(&self, genesis: &mut Genesis) {
        let account = |(key, _): &(SecretKey, Sequence)| key.public().address();
        let pays = self.payers.iter().enumerate();
        let of_payer = |(at, payer)| (account(payer), AssetId(0), if at + 1 < PAYERS { RICH } else { POOR });
        genesis.balances.extend(pays.map(of_payer));
        for trader in &self.traders {
            genesis.balances.extend((0..ledgers::ASSETS).map(|asset| (account(trader), AssetId(asset), UNITS)));
        }
    }

    /// The next envelope, by a client who reads this ledger; `None` without a key.
    fn draw(&mut self, ledger: &Ledger) -> Option<Transaction> {
        if !self.sent.is_empty() && self.dice.once_in(6) {
            return Some(self.sent[self.dice.index(self.sent.len())].clone());
        }
        let height = ledger.height() + 1;
        let key = ledger.seals()?.in_force(height + SEAL_NOTICE)?;
        let to = SealingKey::parse(&key.group).expect("the generation has made a point");
        let payer = self.dice.index(PAYERS);
        let until = height + 8 + self.dice.below(20);
        let sequence = next_of(&mut self.payers[payer], ledger);
        let signer = self.payers[payer].0.clone();
        let account = signer.public().address();
        let within = Enclosure { payer: account, sequence };
        let orders = (0..self.dice.below(4)).map(|_| self.order(ledger, &within, until)).collect();
        let terms = EnvelopeTerms {
            network: self.network,
            signer: signer.public(),
            key: key.number,
            payer: account,
            sequence,
            until,
        };
        let drawn = std::array::from_fn(|_| self.dice.below(256) as u8);
        let sealed = seal(&to, &terms, &SealedText(orders), &drawn).expect("it fits");
        let operation = Operation::Sealed(Box::new(sealed.to_bytes(key.number)));
        let body = Body { chain: ledgers::CHAIN, account, sequence, until, operation };
        let envelope = body.sign(&self.network, &signer);
        self.sent.push(envelope.clone());
        Some(envelope)
    }

    /// An order for an envelope; some are signed as plain ones, and count nowhere in it.
    fn order(&mut self, ledger: &Ledger, within: &Enclosure, until: Height) -> Transaction {
        let who = self.dice.index(TRADERS);
        let sequence = next_of(&mut self.traders[who], ledger);
        let sell = self.dice.below(u64::from(ledgers::ASSETS)) as u32;
        let buy = (sell + 1 + self.dice.below(u64::from(ledgers::ASSETS) - 1) as u32) % ledgers::ASSETS;
        let limit = Price::from_f64(0.5 + self.dice.below(100) as f64 / 100.0).expect("in range");
        let operation = Operation::offer(AssetId(sell), AssetId(buy), 1 + self.dice.below(500), limit);
        let key = &self.traders[who].0;
        let body = Body { chain: ledgers::CHAIN, account: key.public().address(), sequence, until, operation };
        match self.dice.once_in(8) {
            true => body.sign(&self.network, key),
            false => body.sign_sealed(&self.network, within, key),
        }
    }

    /// What a block opened.
    fn count(&mut self, block: &Superblock, applied: &Applied, seals: &Seals) -> u64 {
        let transactions = block.sub_blocks.iter().flat_map(|sub| &sub.native);
        let mut opened = 0;
        for (transaction, outcome) in transactions.zip(&applied.outcomes) {
            let (Outcome::Sealed(_), Some((envelope, name))) = (outcome, transaction.envelope()) else { continue };
            let until = transaction.body.until;
            assert!(block.height <= until, "an envelope opens at {}, after its end {until}", block.height);
            let key = seals.opening(envelope.key, block.height);
            assert!(key.is_some(), "an envelope opens at {} under the key {}", block.height, envelope.key);
            let before = self.opened.insert(name, block.height);
            assert!(before.is_none(), "a name opens at {} and at {before:?}", block.height);
            opened += 1;
        }
        assert_eq!(opened, block.openings.len() as u64, "one key for each envelope that opens");
        opened
    }
}

/// The next number of an account, which stays within its window.
fn next_of((key, next): &mut (SecretKey, Sequence), ledger: &Ledger) -> Sequence {
    let account = ledger.accounts().get(&key.public().address());
    let highest = account.map_or(0, |account| account.window().highest());
    let sequence = (*next).clamp(highest + 1, highest + 40);
    *next = sequence + 1;
    sequence
}

/// Somebody sends an envelope to a validator, if that one runs and there is a key. It may be sent again.
pub(super) fn send_envelope(sim: &mut SimNetwork, to: Index) {
    let Some(network) = &mut sim.envelope_network else { return };
    let Some(process) = &sim.hosts[usize::from(to)].process else { return };
    let Some(envelope) = network.draw(&process.ledger) else { return };
    let entered = sim.enter(to, envelope);
    let is_known = matches!(entered, None | Some(Ok(()) | Err(Reject::Refused(_) | Reject::Full | Reject::Waiting)));
    assert!(is_known, "{to} answers an envelope: {entered:?}");
}

/// Processes a block that is applied for the first time anywhere.
pub(super) fn count_envelopes(sim: &mut SimNetwork, of: Index, block: &Superblock, applied: &Applied) {
    let Some(network) = &mut sim.envelope_network else { return };
    let process = sim.hosts[usize::from(of)].process.as_ref().expect("it applies");
    let Some(seals) = process.ledger.seals() else { return };
    sim.report.opened += network.count(block, applied, seals);
    sim.report.sealed_orders += applied.opened.len() as u64;
}
