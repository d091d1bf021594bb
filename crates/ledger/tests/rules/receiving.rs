//! Accounts to which no payment comes without a reference: who says so, when it acts, and what still comes without.

use ledger::contracts::ethereum::U256;
use ledger::contracts::token_address;
use ledger::{Genesis, Outcome, Refusal, Restart, RestartError, Snapshot};
use primitives::{AssetId, Body, KeyPolicy, Operation, RULES_OF_KEYS, Reference, ReferenceKind, ReferenceRule};

use crate::evm;
use crate::keys::{TREASURY, fate, founded, policy, request};
use crate::sessions::{self, by};
use crate::world::{EUR, FEE, START, USD, World, address, genesis, key};

const SHOP: u8 = 1;
const BUYER: u8 = 2;
/// Who issues the assets of this genesis.
const ISSUER: u8 = 9;

fn asks(references: ReferenceRule) -> Operation {
    Operation::SetReceiving { references }
}

fn bare(amount: u64) -> Operation {
    Operation::Pay { to: address(SHOP), asset: EUR, amount }
}

fn reference() -> Reference {
    Reference { kind: ReferenceKind::Text, bytes: b"order 7"[..].into() }
}

fn referenced(amount: u64) -> Operation {
    Operation::PayReferenced { to: address(SHOP), asset: EUR, amount, reference: reference() }
}

/// A shop that needs a reference of each payment.
fn shop() -> World {
    let mut world = World::of(&genesis(None));
    assert_eq!(world.outcome(SHOP, asks(ReferenceRule::Required)), None);
    world
}

/// The attack: somebody pays in without saying what for, and the receiver's books never balance.
#[test]
fn a_payment_without_a_reference_is_refused_by_name_and_costs_nothing() {
    let mut world = shop();
    let before = world.balance(BUYER, USD);
    assert_eq!(world.outcome(BUYER, bare(5)), Some(Refusal::NEEDS_REFERENCE));
    assert!(Refusal::NEEDS_REFERENCE.to_string().contains("pay_referenced"), "the remedy");
    assert_eq!((world.balance(BUYER, USD), world.balance(SHOP, EUR)), (before, START));
    assert_eq!(world.outcome(BUYER, referenced(5)), None);
    assert_eq!(world.balance(SHOP, EUR), START + 5);
    assert_eq!(world.outcome(SHOP, asks(ReferenceRule::Optional)), None);
    assert_eq!(world.outcome(BUYER, bare(5)), None);
    assert!(!world.ledger.accounts().get(&address(SHOP)).expect("there").state().needs_reference);
}

/// What an issuer creates for somebody is a payment to it; for itself it needs to say nothing.
#[test]
fn an_issue_needs_a_reference_as_a_payment_does() {
    let mut world = shop();
    let funds = Operation::Pay { to: address(ISSUER), asset: USD, amount: 10 * FEE };
    assert_eq!(world.outcome(BUYER, funds), None);
    let issue = |to: u8| Operation::Issue { to: address(to), asset: EUR, amount: 9 };
    assert_eq!(world.outcome(ISSUER, issue(SHOP)), Some(Refusal::NEEDS_REFERENCE));
    let named = Operation::IssueReferenced { to: address(SHOP), asset: EUR, amount: 9, reference: reference() };
    assert_eq!(world.outcome(ISSUER, named), None);
    assert_eq!(world.outcome(ISSUER, asks(ReferenceRule::Required)), None);
    assert_eq!(world.outcome(ISSUER, issue(ISSUER)), None, "its own issue");
}

/// A block is judged by the state before it, whatever the order of its transactions.
#[test]
fn what_an_account_asks_for_acts_from_the_next_block_on() {
    for is_first in [true, false] {
        let mut world = World::of(&genesis(None));
        let mut both = vec![(SHOP, asks(ReferenceRule::Required)), (BUYER, bare(5))];
        if !is_first {
            both.reverse();
        }
        assert_eq!(world.block(both).outcomes, [Outcome::Applied, Outcome::Applied]);
        assert_eq!(world.outcome(BUYER, bare(5)), Some(Refusal::NEEDS_REFERENCE));
    }
}

#[test]
fn of_what_an_account_says_of_its_references_in_a_block_the_highest_number_counts() {
    for last in [ReferenceRule::Required, ReferenceRule::Optional] {
        let mut world = World::of(&genesis(None));
        let first = if last == ReferenceRule::Required { ReferenceRule::Optional } else { ReferenceRule::Required };
        let before = world.balance(SHOP, USD);
        let applied = world.block(vec![(SHOP, asks(first)), (SHOP, asks(last))]);
        assert_eq!(applied.outcomes, [Outcome::Void, Outcome::Applied]);
        assert_eq!(world.balance(SHOP, USD), before - 2 * FEE, "both pay");
        let expected = (last == ReferenceRule::Required).then_some(Refusal::NEEDS_REFERENCE);
        assert_eq!(world.outcome(BUYER, bare(5)), expected);
    }
}

/// The attack: a stolen session key, or those who may only spend, open or close the account to payments.
#[test]
fn who_may_only_trade_or_spend_changes_no_need_of_references() {
    let mut world = sessions::with_bot();
    let by_bot = by(&world, 1, 1, asks(ReferenceRule::Required));
    assert_eq!(world.run(vec![vec![by_bot]]).outcomes[0].refusal(), Some(Refusal::SESSION_SCOPE));
    let mut world = founded();
    let moved = request(&world, 1, asks(ReferenceRule::Required), &[1, 2], false);
    assert_eq!(fate(&mut world, moved), Some(Refusal::TOO_FEW_SIGNED));
    let governed = request(&world, 1, asks(ReferenceRule::Required), &[1, 2], true);
    assert_eq!(fate(&mut world, governed), None);
    let pay = Operation::Pay { to: address(TREASURY), asset: EUR, amount: 5 };
    assert_eq!(world.outcome(BUYER, pay), Some(Refusal::NEEDS_REFERENCE));
    let KeyPolicy { moves, governs, .. } = policy(1);
    assert!(moves < governs, "the two weights differ here");
}

/// Tokens, value and credits of the payment lane have no room for a reference.
#[test]
fn tokens_and_value_come_without_a_reference() {
    let mut chain = evm::Chain::new();
    let rich = evm::validator(9);
    let holder = rich.public().address();
    let operation = asks(ReferenceRule::Required);
    let asked = Body { chain: evm::CHAIN, account: holder, sequence: 1, until: 50_000, operation };
    let block = chain.block(vec![asked.sign(&evm::NETWORK, &rich)], vec![vec![]]);
    assert_eq!(chain.apply(&block).outcomes, [Outcome::Applied]);
    let held = |chain: &evm::Chain, asset| chain.ledger.accounts().get(&holder).map_or(0, |one| one.balance(asset));
    let before = held(&chain, AssetId(1));
    let moved = evm::asked::input("transfer(address,uint256)", &[evm::asked::of(holder), U256::from(7)]);
    let wei = chain.wei(&holder);
    chain.run(vec![vec![evm::call(1, 0, token_address(AssetId(1)), moved), evm::send(1, 1, holder, 5)]]);
    assert_eq!((held(&chain, AssetId(1)), chain.wei(&holder)), (before + 7, wei + 5));
    assert!(chain.restored().ledger.accounts().get(&holder).expect("there").needs_reference(), "it still asks");
}

#[test]
fn credits_of_the_payment_lane_come_without_a_reference() {
    let mut world = World::new(crate::world::terms());
    let coin = world.withdraw(BUYER, USD, 1_000);
    assert_eq!(world.outcome(SHOP, asks(ReferenceRule::Required)), None);
    let before = world.balance(SHOP, USD);
    let redemption = world.redemption(&world.pay(&coin, &[(SHOP, 1_000)]));
    assert_eq!(world.outcome(4, redemption), None);
    assert_eq!(world.balance(SHOP, USD), before + 1_000);
}

/// An account that asks for nothing has the encoding that it had before anybody could ask.
#[test]
fn only_an_account_that_needs_references_is_encoded_otherwise() {
    let world = World::of(&genesis(None));
    let encoded = |world: &World, of: u8| {
        let account = world.ledger.accounts().get(&address(of)).expect("there");
        borsh::to_vec(&account.state()).expect("in memory")
    };
    assert_eq!(encoded(&world, SHOP).last(), Some(&0));
    let world = shop();
    assert_eq!((encoded(&world, SHOP).last(), encoded(&world, BUYER).last()), (Some(&2), Some(&0)));
    let mut unknown = encoded(&world, SHOP);
    *unknown.last_mut().expect("bytes") = 4;
    assert!(borsh::from_slice::<ledger::AccountState>(&unknown).is_err(), "a bit that nobody knows");
}

#[test]
fn references_are_asked_for_since_their_rules_and_no_restart_forgets_it() {
    let mut older = World::of(&Genesis { rules: RULES_OF_KEYS - 1, ..genesis(None) });
    assert_eq!(older.outcome(SHOP, asks(ReferenceRule::Required)), Some(Refusal::RULES_TO_COME));
    let mut world = shop();
    let snapshot = Snapshot::digest(&world.ledger);
    let restart = |rules| Restart { number: 1, snapshot, committee: Vec::new(), lane: None, rules };
    let network = world.ledger.network();
    let refused = world.ledger.begin_again(&network, &restart(Some(RULES_OF_KEYS - 1)), None);
    assert_eq!(refused, Err(RestartError::Policies(RULES_OF_KEYS - 1)));
    world.ledger.begin_again(&network, &restart(None), None).expect("the rules of the state");
    assert_eq!(world.ledger.admit(&pay_by_buyer(&world)), Err(Refusal::NEEDS_REFERENCE));
}

fn pay_by_buyer(world: &World) -> primitives::Transaction {
    let body = Body { chain: 1, account: address(BUYER), sequence: 1, until: 50_000, operation: bare(5) };
    body.sign(&world.ledger.network(), &key(BUYER))
}
