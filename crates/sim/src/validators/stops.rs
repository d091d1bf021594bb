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

/// Schedules the events at all validators.
pub(super) fn schedule_stops(sim: &mut SimNetwork) {
    let all = sim.correct();
    sim.push(1_000, all[0], super::Event::Stops(StopEvent::Open));
    all.into_iter().for_each(|index| sim.push(700_000, index, super::Event::Stops(StopEvent::Stop)));
}

pub(super) fn send_stops(sim: &mut SimNetwork, to: Index, event: StopEvent) {
    for number in 0..OWNERS {
        match event {
            StopEvent::Open => open_session(sim, to, number),
            StopEvent::Stop => stop_session(sim, to, number),
        }
    }
}

fn open_session(sim: &mut SimNetwork, to: Index, number: u8) {
    let (account, key) = (address(number), bot(number).public());
    let caps = [SessionCap { asset: AssetId(0), units: BALANCE }].into();
    let (slot, scope, until, alive) = (SLOT, SessionScope::Trade, 50_000, 50_000);
    let terms = SessionTerms { slot, key, scope, until, alive, caps };
    let possession = bot(number).sign(&session_possession_bytes(&sim.identity, &account, slot, &key));
    let operation = SessionOperation::Authorize { terms, possession };
    let opens = signed(sim, &owner(number), number, 1, Operation::Session(Box::new(operation)));
    assert_eq!(sim.enter(to, opens), Some(Ok(())), "a session of {number}");
}

fn stop_session(sim: &mut SimNetwork, to: Index, number: u8) {
    let Some(process) = sim.process(to) else { return };
    let account = process.ledger.accounts().get(&address(number)).expect("it has a balance");
    let (has_session, all) = (account.session(SLOT).is_some(), account.balance(AssetId(0)));
    assert!(has_session, "{number} has opened a session in time");
    let (sell, buy, limit) = (AssetId(0), AssetId(1), "1000000".parse().expect("a price"));
    let (amount, life, client) = (all - 2 * ledgers::FEE, Life::OneBatch, ClientId::NONE);
    let absurd = Operation::CreateOffer { sell, buy, amount, limit, life, client };
    // The others hear of it with its block.
    if to == sim.correct()[0] {
        let theft = signed(sim, &bot(number), number, slot_sequence(SLOT, 1), absurd);
        assert_eq!(sim.enter(to, theft), Some(Ok(())), "a theft of {number}");
    }
    for at in 0..STOPS {
        let sequence = 2 + Sequence::from(to) * STOPS + at;
        let operation = SessionOperation::Alive { slot: SLOT, through: 0 };
        let stop = signed(sim, &owner(number), number, sequence, Operation::Session(Box::new(operation)));
        assert_eq!(sim.enter(to, stop), Some(Ok(())), "a key of {number} keeps its owner out");
    }
}

fn signed(sim: &SimNetwork, secret: &SecretKey, number: u8, sequence: Sequence, operation: Operation) -> Transaction {
    let body = Body { chain: ledgers::CHAIN, account: address(number), sequence, until: 50_000, operation };
    body.sign(&sim.identity, secret)
}
