//! Accounts with policies of several keys, with real signatures. Every block goes through a snapshot (`World::run`), so
//! each wait is crossed by one. The histories of thieves and guardians are in the model of the place `keys`.

use ledger::{Genesis, Outcome, RECOVERY_WAIT_MIN, Refusal, Restart, RestartError, RootPart, Roots, Snapshot};
use primitives::{
    Address, Body, ChangedBy, Digest, KEY_WEIGHT, KeyPolicy, KeySignatures, KeySigner, KeysChange, Operation,
    RecoverKeys, SecretKey, Sequence, SessionScope, SessionTerms, SessionsFate, SetKeys, Stake, Transaction, WalletKey,
    WalletSigner, slot_sequence,
};

use crate::sessions::{authorize, bot, caps, sells};
use crate::world::{EUR, FEE, START, USD, World, address, genesis, key};

/// The treasury, and those who send its changes.
pub const TREASURY: u8 = 1;
const SENDER: u8 = 2;
const OTHER: u8 = 3;
const DELAY: u32 = 4;

fn signer(number: u8) -> SecretKey {
    SecretKey::from_seed([60 + number; 32])
}

fn wallet() -> WalletKey {
    WalletKey::from_bytes([9; 32]).expect("in range")
}

fn guardian(number: u8) -> SecretKey {
    SecretKey::from_seed([90 + number; 32])
}

/// A treasury of five with a threshold of three, one of them a wallet; `from` is the number of its first key.
pub fn policy(from: u8) -> KeyPolicy {
    let mut keys: Vec<KeySigner> =
        (from..from + 4).map(|one| KeySigner { key: signer(one).public(), weight: 1 }).collect();
    keys.sort_by_key(|one| one.key);
    let mut guards = [guardian(1).public(), guardian(2).public()];
    guards.sort();
    KeyPolicy {
        keys: keys.into(),
        wallets: [WalletSigner { wallet: wallet().address(), weight: 1 }].into(),
        moves: 2,
        governs: 3,
        guardian_keys: guards.into(),
        guardian_wallets: [].into(),
        guardians: 2,
        delay: DELAY,
    }
}

fn last(world: &World) -> Digest {
    world.ledger.account_keys(&address(TREASURY)).map_or(Digest::default(), |keys| keys.last)
}

fn change(world: &World, policy: KeyPolicy) -> KeysChange {
    KeysChange { account: address(TREASURY), last: last(world), policy, sessions: SessionsFate::Close }
}

/// The change with the signatures of these keys, and of the wallet.
fn signed(world: &World, change: &KeysChange, by: ChangedBy, keys: &[SecretKey]) -> KeySignatures {
    let network = world.ledger.network();
    let of_wallet = change.sign_typed(by, 1, &network, &wallet());
    keys.iter().fold(of_wallet, |all, key| all.with(&change.sign(by, &network, key)))
}

fn set(world: &World, policy: KeyPolicy, keys: &[SecretKey]) -> Operation {
    let change = change(world, policy);
    let signatures = signed(world, &change, ChangedBy::Signers, keys);
    Operation::SetKeys(Box::new(SetKeys { change, first: key(TREASURY).public(), signatures }))
}

fn recover(world: &World, policy: KeyPolicy, keys: &[SecretKey]) -> Operation {
    let change = change(world, policy);
    let signatures = signed(world, &change, ChangedBy::Guardians, keys);
    Operation::RecoverKeys(Box::new(RecoverKeys { change, signatures }))
}

fn complete() -> Operation {
    Operation::CompleteKeys { account: address(TREASURY) }
}

/// The treasury with its first policy.
pub fn founded() -> World {
    let mut world = World::of(&genesis(None));
    let first = set(&world, policy(1), &[key(TREASURY), signer(1), signer(2), signer(3)]);
    assert_eq!(world.block(vec![(SENDER, first)]).outcomes, [Outcome::Applied]);
    world
}

fn body(sequence: Sequence, operation: Operation) -> Body {
    Body { chain: 1, account: address(TREASURY), sequence, until: 50_000, operation }
}

fn pays(amount: u64) -> Operation {
    Operation::Pay { to: address(OTHER), asset: EUR, amount }
}

/// A request of the treasury with the signatures of these keys.
pub fn request(world: &World, sequence: Sequence, operation: Operation, keys: &[u8], with_wallet: bool) -> Transaction {
    let (body, last, network) = (body(sequence, operation), last(world), world.ledger.network());
    let mut signatures = KeySignatures::default();
    for one in keys {
        signatures = signatures.with(&body.sign_for_policy(&last, &network, &signer(*one)));
    }
    if with_wallet {
        signatures = signatures.with(&body.sign_typed_for_policy(&last, &network, &wallet()));
    }
    Transaction::by_policy(body, last, signatures)
}

/// What becomes of one transaction that is alone in a block.
pub fn fate(world: &mut World, transaction: Transaction) -> Option<Refusal> {
    let admitted = world.ledger.admit(&transaction).err();
    let outcome = world.run(vec![vec![transaction]]).outcomes[0].refusal();
    assert!(admitted == outcome || outcome == Some(Refusal::BAD_SIGNATURE), "admission and the filter agree");
    outcome
}

/// Sends what nobody's numbers but the sender's concern.
fn send(world: &mut World, operation: Operation) -> Option<Refusal> {
    world.outcome(SENDER, operation)
}

#[test]
fn the_first_policy_acts_at_once_and_no_key_signs_alone_any_more() {
    let mut world = World::of(&genesis(None));
    let bare = set(&world, policy(1), &[signer(1), signer(2), signer(3)]);
    assert_eq!(send(&mut world, bare), Some(Refusal::WRONG_SIGNER), "the present key has not signed");
    let early = recover(&world, policy(1), &[guardian(1), guardian(2), signer(1), signer(2)]);
    assert_eq!(send(&mut world, early), Some(Refusal::NO_POLICY));
    let unknown = Transaction::by_policy(body(1, pays(5)), Digest::default(), {
        body(1, pays(5)).sign_for_policy(&Digest::default(), &world.ledger.network(), &key(TREASURY))
    });
    assert_eq!(fate(&mut world, unknown), Some(Refusal::NO_POLICY));
    assert!(Roots::of(&world.ledger).parts().get(RootPart::KEYS).is_none(), "nobody has a policy");

    let mut world = founded();
    let network = world.ledger.network();
    for operation in [
        pays(5),
        Operation::CreateAccount { account: address(TREASURY), key: key(7).public() },
        Operation::CreateAccount { account: address(7), key: key(7).public() },
    ] {
        let alone = body(1, operation).sign(&network, &key(TREASURY));
        assert_eq!(fate(&mut world, alone), Some(Refusal::POLICY_SIGNS));
    }
    let rotation = Operation::CreateAccount { account: address(TREASURY), key: key(7).public() };
    let together = request(&world, 1, rotation, &[1, 2, 3, 4], true);
    assert_eq!(fate(&mut world, together), Some(Refusal::POLICY_SIGNS), "keys change by SetKeys alone");
    let typed = body(1, pays(5)).sign_typed(network, &wallet());
    assert_eq!(fate(&mut world, typed), Some(Refusal::BAD_SIGNATURE), "typed data recovers to the wallet's account");
    let requested = request(&world, 1, pays(5), &[1], true);
    assert_eq!(fate(&mut world, requested), None);
    assert_eq!(world.balance(OTHER, EUR), START + 5);
}

#[test]
fn each_request_needs_its_weight_of_signers_and_of_nobody_else() {
    let mut world = founded();
    let pay = |world: &World, keys: &[u8], with_wallet| request(world, 1, pays(5), keys, with_wallet);
    let one = pay(&world, &[1], false);
    assert_eq!(fate(&mut world, one), Some(Refusal::TOO_FEW_SIGNED));
    let stranger = pay(&world, &[1, 2, 9], false);
    assert_eq!(fate(&mut world, stranger), Some(Refusal::NOT_A_SIGNER), "it would cost the account a fee");
    let stake = || Operation::Stake(Box::new(Stake::new(100, "a.example:9100".into(), 1, &address(TREASURY), &key(7))));
    let moved = request(&world, 1, stake(), &[1, 2], false);
    assert_eq!(fate(&mut world, moved), Some(Refusal::TOO_FEW_SIGNED), "what it needs is the weight that governs");
    let before = world.balance(TREASURY, USD);
    let more = pay(&world, &[1, 2, 3, 4], true);
    assert_eq!(fate(&mut world, more), None, "more than needed is fine");
    assert_eq!(world.balance(TREASURY, USD), before - 5 * FEE, "a fee for each signature");
    let again = pay(&world, &[2, 3], false);
    assert_eq!(fate(&mut world, again), Some(Refusal::SEQUENCE_USED), "the request counts once, whoever signs");
}

/// One request reaches a block with signatures of different signers: it is the same request, and counts once.
#[test]
fn copies_of_a_request_with_other_signatures_count_once() {
    let mut world = founded();
    let copies = vec![
        request(&world, 1, pays(5), &[1, 2], false),
        request(&world, 1, pays(5), &[3], true),
        request(&world, 1, pays(5), &[4], false),
    ];
    assert!(copies.windows(2).all(|two| two[0].id() == two[1].id()));
    let mut outcomes: Vec<_> = world.run(vec![copies]).outcomes.iter().map(Outcome::refusal).collect();
    outcomes.sort();
    assert_eq!(outcomes, [None, Some(Refusal::DUPLICATE), Some(Refusal::TOO_FEW_SIGNED)]);
    assert_eq!(world.balance(OTHER, EUR), START + 5);
}

/// The attack: what was signed before a change of keys, by a thief or by owners, is posted after it.
#[test]
fn a_half_signed_request_counts_for_nothing_after_a_change() {
    let mut world = founded();
    let signed_before = request(&world, 1, pays(5), &[1, 2], true);
    let next = set(&world, policy(3), &[signer(1), signer(3), signer(4)]);
    assert_eq!(send(&mut world, next), None);
    assert_eq!(fate(&mut world, signed_before), Some(Refusal::KEYS_CHANGED), "while the change waits");
    let anew = request(&world, 1, pays(5), &[1, 2], false);
    assert_eq!(fate(&mut world, anew), None, "the old policy is in force until then");
    world.empty_blocks(DELAY as usize);
    assert_eq!(send(&mut world, complete()), None);
    let old = request(&world, 2, pays(5), &[1, 3], false);
    assert_eq!(fate(&mut world, old), Some(Refusal::NOT_A_SIGNER));
    let new = request(&world, 2, pays(5), &[5, 6], false);
    assert_eq!(fate(&mut world, new), None);
}

/// The attack: whoever spends uses up every number of the account, or all of its balance, so that nobody changes keys.
#[test]
fn a_change_stands_under_no_number_of_the_account_and_others_pay_it() {
    let mut world = founded();
    let numbers = (1..=64).map(|number| request(&world, number, pays(5), &[1, 2], false)).collect();
    assert!(world.run(vec![numbers]).outcomes.iter().all(|outcome| *outcome == Outcome::Applied));
    let rest = world.balance(TREASURY, USD) - 2 * FEE;
    let drain = Operation::Pay { to: address(OTHER), asset: USD, amount: rest };
    let drained = request(&world, 65, drain, &[1, 2], false);
    assert_eq!(fate(&mut world, drained), None);
    assert_eq!(world.balance(TREASURY, USD), 0);
    let before = world.balance(SENDER, USD);
    let next = set(&world, policy(3), &[signer(1), signer(3), signer(4)]);
    assert_eq!(send(&mut world, next), None);
    let weight = 1 + 7 * KEY_WEIGHT + 4;
    assert_eq!(world.balance(SENDER, USD), before - weight * FEE, "seven keys and four signatures");
}

/// Two owners post different changes at once: one counts, and the other pays and does nothing.
#[test]
fn of_several_changes_in_a_block_the_one_with_the_lowest_id_counts() {
    let mut world = founded();
    let one = set(&world, policy(2), &[signer(1), signer(2), signer(3)]);
    let other = set(&world, policy(3), &[signer(1), signer(3), signer(4)]);
    let transactions = [(SENDER, one), (OTHER, other)].map(|(person, operation)| world.sign(person, operation));
    let lowest = usize::from(transactions[1].id() < transactions[0].id());
    let outcomes = world.run(vec![transactions.to_vec()]).outcomes;
    assert_eq!((outcomes[lowest], outcomes[1 - lowest]), (Outcome::Applied, Outcome::Void));
    let keys = world.ledger.account_keys(&address(TREASURY)).expect("a policy");
    let waiting = keys.waiting.as_ref().expect("it waits");
    assert_eq!(waiting.policy, policy(2 + lowest as u8));
    assert_eq!(waiting.due, world.ledger.height() + u64::from(DELAY));
}

/// The attack: a thief has enough keys for an hour, and changes all of them.
#[test]
fn an_hour_is_undone_within_the_delay() {
    let mut world = founded();
    let stolen = set(&world, policy(11), &[signer(1), signer(2), signer(3), signer(11), signer(12)]);
    assert_eq!(send(&mut world, stolen.clone()), None);
    world.empty_blocks(1);
    assert_eq!(send(&mut world, complete()), Some(Refusal::CHANGE_NOT_DUE));
    let undone = set(&world, policy(3), &[signer(1), signer(3), signer(4)]);
    assert_eq!(send(&mut world, undone), None);
    world.empty_blocks(1);
    assert_eq!(
        send(&mut world, complete()),
        Some(Refusal::CHANGE_NOT_DUE),
        "the thief's wait is over, not the owners'"
    );
    assert_eq!(send(&mut world, stolen), Some(Refusal::KEYS_CHANGED), "it does not count again");
    world.empty_blocks(DELAY as usize);
    assert_eq!(send(&mut world, complete()), None);
    assert_eq!(world.ledger.account_keys(&address(TREASURY)).expect("a policy").policy, policy(3));
    assert_eq!(send(&mut world, complete()), Some(Refusal::NO_CHANGE_WAITS));
}

/// The attack: a typing error locks everybody out, in a change and in a recovery.
#[test]
fn keys_that_nobody_has_shown_govern_nothing() {
    let mut world = founded();
    let mistyped = set(&world, policy(11), &[signer(1), signer(2), signer(3)]);
    assert_eq!(send(&mut world, mistyped), Some(Refusal::NEW_SIGNERS_MISSING));
    let mistyped = recover(&world, policy(11), &[guardian(1), guardian(2)]);
    assert_eq!(send(&mut world, mistyped), Some(Refusal::NEW_SIGNERS_MISSING));
    let few = recover(&world, policy(11), &[guardian(1), signer(11), signer(12)]);
    assert_eq!(send(&mut world, few), Some(Refusal::TOO_FEW_GUARDIANS));
    let padded = set(&world, policy(3), &[signer(1), signer(3), signer(4), signer(20)]);
    assert_eq!(send(&mut world, padded), Some(Refusal::NOT_A_SIGNER));
}

#[test]
fn a_recovery_waits_a_day_and_owners_void_it() {
    let mut world = founded();
    let recovery = |world: &World| recover(world, policy(11), &[guardian(1), guardian(2), signer(11), signer(12)]);
    let first = recovery(&world);
    assert_eq!(send(&mut world, first), None);
    let due = |world: &World| {
        let keys = world.ledger.account_keys(&address(TREASURY)).expect("a policy");
        keys.waiting.as_ref().map(|waiting| (waiting.by, waiting.due))
    };
    let height = world.ledger.height();
    assert_eq!(due(&world), Some((ChangedBy::Guardians, height + RECOVERY_WAIT_MIN)));
    let second = recovery(&world);
    assert_eq!(send(&mut world, second), Some(Refusal::CHANGE_WAITS));
    let answer = set(&world, policy(1), &[signer(1), signer(2), signer(3)]);
    assert_eq!(send(&mut world, answer), None);
    assert!(due(&world).is_some_and(|(by, _)| by == ChangedBy::Signers), "owners have answered");
    let third = recovery(&world);
    assert_eq!(send(&mut world, third), Some(Refusal::CHANGE_WAITS), "guardians do not void the owners' change");
}

#[test]
fn session_keys_close_with_a_policy_unless_it_keeps_them() {
    for (sessions, expected) in [(SessionsFate::Close, Some(Refusal::SESSION_ENDED)), (SessionsFate::Keep, None)] {
        let mut world = crate::sessions::with_bot();
        assert_eq!(crate::sessions::ALICE, TREASURY);
        let change = KeysChange { sessions, ..change(&world, policy(1)) };
        let keys = [key(TREASURY), signer(1), signer(2), signer(3)];
        let signatures = signed(&world, &change, ChangedBy::Signers, &keys);
        let first = Operation::SetKeys(Box::new(SetKeys { change, first: key(TREASURY).public(), signatures }));
        assert_eq!(send(&mut world, first), None);
        let sold = crate::sessions::by(&world, 1, 1, sells(10_000));
        assert_eq!(fate(&mut world, sold), expected);
    }
}

/// A key of scope *duty* does what one person or node owes, and neither trades nor pays.
#[test]
fn a_duty_key_says_what_a_node_owes_and_spends_nothing() {
    let mut world = founded();
    let network = world.ledger.network();
    let terms = SessionTerms {
        slot: 1,
        key: bot(1).public(),
        scope: SessionScope::Duty,
        until: 60,
        alive: 50,
        caps: caps(1_000, 0),
    };
    let authorized = authorize(&world, TREASURY, terms);
    let moved = request(&world, 1, authorized.clone(), &[1, 2], false);
    assert_eq!(fate(&mut world, moved), Some(Refusal::TOO_FEW_SIGNED), "it needs the weight that governs");
    let governed = request(&world, 1, authorized, &[1, 2], true);
    assert_eq!(fate(&mut world, governed), None);
    let mut by_bot = |number, operation: Operation| {
        let transaction = body(slot_sequence(1, number), operation).sign(&network, &bot(1));
        fate(&mut world, transaction)
    };
    assert_eq!(by_bot(1, pays(5)), Some(Refusal::SESSION_SCOPE));
    assert_eq!(by_bot(1, sells(100)), Some(Refusal::SESSION_SCOPE));
    assert_eq!(by_bot(1, Operation::Lane([0].into())), Some(Refusal::SESSION_SCOPE), "a post that is no duty");
    // The chain asks nobody, so what it says is refused for that alone.
    assert_eq!(by_bot(1, Operation::Unapprove { rules: 14, at: 1 }), Some(Refusal::RULES_FIXED));
}

/// What an account does at the payment lane it asks for together, too.
#[test]
fn the_lane_is_entered_by_a_request_and_not_by_the_old_key() {
    let mut world = World::new(crate::world::terms());
    let first = set(&world, policy(1), &[key(TREASURY), signer(1), signer(2), signer(3)]);
    assert_eq!(world.block(vec![(SENDER, first)]).outcomes, [Outcome::Applied]);
    let enter = || crate::world::withdrawal(TREASURY, EUR, 100);
    let alone = body(1, enter()).sign(&world.ledger.network(), &key(TREASURY));
    assert_eq!(fate(&mut world, alone), Some(Refusal::POLICY_SIGNS));
    let together = request(&world, 1, enter(), &[1], true);
    assert_eq!(fate(&mut world, together), None);
    assert_eq!(world.escrow(EUR), 100);
}

#[test]
fn a_policy_is_proved_and_its_absence_too() {
    let mut world = founded();
    let root = world.roots.parts().root();
    let keys = world.ledger.account_keys(&address(TREASURY)).cloned();
    let proof = world.roots.prove_keys(&world.ledger, &address(TREASURY));
    assert_eq!(proof.verify(&root, &address(TREASURY)).expect("holds"), keys.as_ref());
    let none = world.roots.prove_keys(&world.ledger, &address(OTHER));
    assert_eq!(none.verify(&root, &address(OTHER)).expect("holds"), None);
    let mut forged = proof.clone();
    forged.keys = None;
    assert!(forged.verify(&root, &address(TREASURY)).is_err(), "a policy is not denied");
    let mut forged = none;
    forged.keys = keys;
    assert!(forged.verify(&root, &address(OTHER)).is_err(), "nor invented");
    let bare = World::of(&genesis(None));
    let mut roots = Roots::of(&bare.ledger);
    let proof = roots.prove_keys(&bare.ledger, &address(OTHER));
    assert_eq!(proof.verify(&roots.parts().root(), &address(OTHER)).expect("holds"), None);
}

/// Under older rules nobody could sign for the accounts that have policies.
#[test]
fn a_restart_under_rules_without_policies_is_refused_while_an_account_has_one() {
    let mut world = founded();
    let snapshot = Snapshot::digest(&world.ledger);
    let restart = |rules| Restart { number: 1, snapshot, committee: Vec::new(), lane: None, rules };
    let (network, mut older) = (world.ledger.network(), world.ledger.clone());
    let refused = older.begin_again(&network, &restart(Some(12)), None);
    assert_eq!(refused, Err(RestartError::Policies(12)));
    world.ledger.begin_again(&network, &restart(None), None).expect("the rules of the state");
}

/// The rules before have no policies: neither the operations nor the way to sign counts.
#[test]
fn policies_wait_for_their_rules() {
    let mut world = World::of(&Genesis { rules: 12, ..genesis(None) });
    let first = set(&world, policy(1), &[key(TREASURY), signer(1), signer(2), signer(3)]);
    assert_eq!(send(&mut world, first), Some(Refusal::RULES_TO_COME));
    assert_eq!(send(&mut world, complete()), Some(Refusal::RULES_TO_COME));
    assert!(world.ledger.account_keys(&Address::default()).is_none());
}
