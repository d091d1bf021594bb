//! Clients that fill the quota of stops, and thieves of their session keys: they must neither keep payments waiting nor
//! keep the owners out.

use consensus::Index;
use primitives::{
    Address, Amount, AssetId, Body, ClientId, Life, Operation, SecretKey, Sequence, SessionCap, SessionOperation,
    SessionScope, SessionSlot, SessionTerms, Transaction, session_possession_bytes, slot_sequence,
};

use super::{SimNetwork, ledgers};

const OWNERS: u8 = 8;
const SLOT: SessionSlot = 1;
const BALANCE: Amount = 10_000_000;
/// Stops that each owner sends to each validator: together a quota for several sub-blocks.
const STOPS: Sequence = 12;

fn owner(number: u8) -> SecretKey {
    SecretKey::from_seed(std::array::from_fn(|at| if at == 0 { number } else { 0x5a }))
}

fn bot(number: u8) -> SecretKey {
    SecretKey::from_seed(std::array::from_fn(|at| if at == 0 { number } else { 0x5b }))
}

fn address(number: u8) -> Address {
    owner(number).public().address()
}

/// What they have.
pub(super) fn balances() -> impl Iterator<Item = (Address, AssetId, Amount)> {
    (0..OWNERS).map(|number| (address(number), AssetId(0), BALANCE))
}

/// What happens at a validator.
#[derive(Clone, Copy, Debug)]
pub(super) enum StopEvent {
    /// Owners open sessions.
    Open,
    /// Thieves reserve all that the owners have; the owners stop their keys.
    Stop,
}

impl SimNetwork {
    /// Schedules the events at all validators.
    pub(super) fn schedule_stops(&mut self) {
        let all = self.correct();
        self.push(1_000, all[0], super::Event::Stops(StopEvent::Open));
        all.into_iter().for_each(|index| self.push(700_000, index, super::Event::Stops(StopEvent::Stop)));
    }

    pub(super) fn send_stops(&mut self, to: Index, event: StopEvent) {
        for number in 0..OWNERS {
            match event {
                StopEvent::Open => self.open_session(to, number),
                StopEvent::Stop => self.stop_session(to, number),
            }
        }
    }

    fn open_session(&mut self, to: Index, number: u8) {
        let (account, key) = (address(number), bot(number).public());
        let caps = [SessionCap { asset: AssetId(0), units: BALANCE }].into();
        let (slot, scope, until, alive) = (SLOT, SessionScope::Trade, 50_000, 50_000);
        let terms = SessionTerms { slot, key, scope, until, alive, caps };
        let possession = bot(number).sign(&session_possession_bytes(&self.identity, &account, slot, &key));
        let operation = SessionOperation::Authorize { terms, possession };
        let opens = self.signed(&owner(number), number, 1, Operation::Session(Box::new(operation)));
        assert_eq!(self.enter(to, opens), Some(Ok(())), "a session of {number}");
    }

    fn stop_session(&mut self, to: Index, number: u8) {
        let Some(process) = self.process(to) else { return };
        let account = process.ledger.accounts().get(&address(number)).expect("it has a balance");
        let (has_session, all) = (account.session(SLOT).is_some(), account.balance(AssetId(0)));
        assert!(has_session, "{number} has opened a session in time");
        let (sell, buy, limit) = (AssetId(0), AssetId(1), "1000000".parse().expect("a price"));
        let (amount, life, client) = (all - 2 * ledgers::FEE, Life::OneBatch, ClientId::NONE);
        let absurd = Operation::CreateOffer { sell, buy, amount, limit, life, client };
        // The others hear of it with its block.
        if to == self.correct()[0] {
            let theft = self.signed(&bot(number), number, slot_sequence(SLOT, 1), absurd);
            assert_eq!(self.enter(to, theft), Some(Ok(())), "a theft of {number}");
        }
        for at in 0..STOPS {
            let sequence = 2 + Sequence::from(to) * STOPS + at;
            let operation = SessionOperation::Alive { slot: SLOT, through: 0 };
            let stop = self.signed(&owner(number), number, sequence, Operation::Session(Box::new(operation)));
            assert_eq!(self.enter(to, stop), Some(Ok(())), "a key of {number} keeps its owner out");
        }
    }

    fn signed(&self, secret: &SecretKey, number: u8, sequence: Sequence, operation: Operation) -> Transaction {
        let body = Body { chain: ledgers::CHAIN, account: address(number), sequence, until: 50_000, operation };
        body.sign(&self.identity, secret)
    }
}
