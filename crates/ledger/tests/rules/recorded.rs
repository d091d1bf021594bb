//! Recorded chains: a state under the rules before, and blocks across the height from which the rules act, with every
//! operation that they have. Whoever changes the program replays them for ever with the same roots and outcomes.
//!
//! A file is written once, when its rules are released, and never again: `cargo test -p ledger --test rules
//! record_rules -- --ignored` writes those that are not there. This file has the history of rules 14.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use borsh::{BorshDeserialize, BorshSerialize};
use ledger::{Applied, Genesis, Ledger, Outcome, Refusal, Restore, Roots, Signatures, Snapshot, manifest};
use primitives::venue::{ORDER_LISTS_RULES, STEP_REPORTS_RULES, VenueOperation};
use primitives::{
    AssetId, Body, ChangedBy, Committed, Contradiction, Digest, Evidence, KeyPolicy, KeySignatures, KeySigner,
    KeysChange, Operation, RULES_OF_CONTROLS, RULES_OF_ENVELOPES, RULES_OF_KEYS, RULES_OF_LANE_TERMS,
    RULES_OF_LISTINGS, RULES_OF_PROPOSALS, RULES_OF_SEALS, RecoverKeys, Reference, ReferenceKind, ReferenceRule, Scope,
    SecretKey, Sequence, SessionCap, SessionOperation, SessionScope, SessionTerms, SessionsFate, SetKeys, SignedBy,
    Superblock, Transaction, Upgrade, WalletKey, WalletSigner, session_possession_bytes, slot_of, slot_sequence,
};

use crate::charter::{NETWORK, World, account, genesis, key, node};
use crate::recorded_references::RULES_OF_REFERENCES;

/// A state, and the blocks that followed with what became of them.
#[derive(BorshSerialize, BorshDeserialize)]
struct Recorded {
    /// The state before, in the chunks of a snapshot.
    state: Vec<Vec<u8>>,
    blocks: Vec<RecordedBlock>,
}

#[derive(BorshSerialize, BorshDeserialize)]
struct RecordedBlock {
    block: Vec<u8>,
    /// The outcomes of its transactions, in their order.
    outcomes: Vec<u8>,
    /// The state root after it.
    root: Digest,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn read(path: &Path) -> Recorded {
    borsh::from_slice(&std::fs::read(path).expect("readable")).expect("a recorded chain")
}

fn restored(state: &[Vec<u8>]) -> Ledger {
    let mut restore = Restore::default();
    state.iter().for_each(|chunk| restore.push(chunk).expect("a chunk"));
    restore.finish().expect("a sound state")
}

/// Applies the blocks to the state; `each` is told what became of each.
fn replay(state: &[Vec<u8>], blocks: &[Superblock], mut each: impl FnMut(usize, &Applied, Digest, &Ledger)) {
    let mut ledger = restored(state);
    let mut roots = Roots::of(&ledger);
    for (at, block) in blocks.iter().enumerate() {
        let applied = ledger.apply(block, Signatures::Unchecked, &mut |_| {}).expect("it applies");
        let root = roots.apply(&applied.changes);
        assert_eq!(Roots::of(&ledger).parts().root(), root, "the tries follow");
        ledger.audit().expect("sound");
        each(at, &applied, root, &ledger);
    }
}

fn decoded(recorded: &Recorded) -> Vec<Superblock> {
    recorded.blocks.iter().map(|one| borsh::from_slice(&one.block).expect("a block")).collect()
}

#[test]
fn every_recorded_chain_replays() {
    let files = std::fs::read_dir(fixtures()).expect("the fixtures").map(|entry| entry.expect("readable").path());
    let chains: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|one| one == "chain")).collect();
    assert!(!chains.is_empty(), "there is one");
    for path in chains {
        let recorded = read(&path);
        replay(&recorded.state, &decoded(&recorded), |at, applied, root, ledger| {
            let (one, height) = (&recorded.blocks[at], ledger.height());
            assert_eq!(
                borsh::to_vec(&applied.outcomes).expect("memory"),
                one.outcomes,
                "{}: block {height}",
                path.display()
            );
            assert_eq!(root, one.root, "{}: the root after block {height}", path.display());
            // What comes later goes through a snapshot, too.
            let chunks: Vec<_> = Snapshot::of(ledger).collect();
            assert_eq!(Snapshot::of(&restored(&chunks)).collect::<Vec<_>>(), chunks);
        });
    }
}

/// What a recorded chain has.
pub struct Seen {
    /// The operations that counted, by name, those at venues by action, and how they were signed if that came with
    /// rules 14.
    pub done: BTreeSet<String>,
    pub refused: BTreeSet<&'static str>,
    /// Why offers left otherwise than by trading.
    pub ended: BTreeSet<&'static str>,
}

impl Seen {
    /// Of the chain of these rules, which has blocks on both sides of their first height, and two epochs after it.
    pub fn of(rules: u32) -> Seen {
        Seen::from(rules, rules - 1)
    }

    /// Of the chain of these rules, which begins under those.
    pub fn from(rules: u32, first: u32) -> Seen {
        let recorded = read(&fixtures().join(format!("rules-{rules}.chain")));
        let blocks = decoded(&recorded);
        let (done, refused, ended) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut seen = Seen { done, refused, ended };
        let mut acted = BTreeSet::new();
        replay(&recorded.state, &blocks, |at, applied, _, ledger| {
            acted.insert(ledger.next_rules());
            let transactions = blocks[at].sub_blocks.iter().flat_map(|sub| &sub.native);
            transactions.zip(&applied.outcomes).for_each(|(one, outcome)| seen.note(one, outcome));
            applied.opened.iter().for_each(|one| seen.note(&one.transaction, &one.outcome));
            seen.ended.extend(applied.batch.ended.iter().map(|ended| ended.why.name()));
        });
        assert!(acted.contains(&first) && acted.contains(&rules) && blocks.len() > 45, "{acted:?}");
        seen
    }

    fn note(&mut self, transaction: &Transaction, outcome: &Outcome) {
        let row = transaction.body.operation.row();
        let names = [named(transaction), row.name, row.action.unwrap_or_default()];
        match outcome.refusal() {
            None => self.done.extend(names.map(String::from).into_iter().filter(|name| !name.is_empty())),
            Some(refusal) => drop(self.refused.insert(refusal.code())),
        }
    }

    /// The file is worth keeping only if it has all that its rules brought.
    pub fn has(&self, done: &[&str], refused: &[Refusal]) {
        for name in done {
            assert!(self.done.contains(*name), "{name} is not in {:?}", self.done);
        }
        for why in refused {
            assert!(self.refused.contains(why.code()), "{why:?} is not in {:?}", self.refused);
        }
    }
}

#[test]
fn the_chain_of_rules_14_has_all_that_they_brought_and_crosses_their_first_height() {
    let done = ["set_keys", "recover_keys", "complete_keys", "set_receiving", "by a policy", "by a duty key"];
    let refused = [Refusal::RULES_TO_COME, Refusal::POLICY_SIGNS, Refusal::KEYS_CHANGED, Refusal::NEEDS_REFERENCE];
    Seen::of(RULES_OF_KEYS).has(&done, &refused);
}

/// How a transaction is signed, if that came with these rules.
fn named(transaction: &Transaction) -> &'static str {
    match (&transaction.signed_by, &transaction.body.operation) {
        (SignedBy::Policy(_), _) => "by a policy",
        (_, Operation::Accuse(_)) if slot_of(transaction.body.sequence) > 0 => "by a duty key",
        (_, Operation::Venue(one)) if one.since_rules() == ORDER_LISTS_RULES => match **one {
            VenueOperation::Settle(_) => "settle in lists",
            _ => "claim in lists",
        },
        (_, Operation::SetHolder { .. }) if slot_of(transaction.body.sequence) > 0 => "by a control key",
        _ => "",
    }
}

/// The institution, whoever sends its changes, and a shop.
const TREASURY: u8 = 4;
const SENDER: u8 = 5;
const SHOP: u8 = 1;
const USD: AssetId = AssetId(0);

fn signer(number: u8) -> SecretKey {
    SecretKey::from_seed([60 + number; 32])
}

fn wallet() -> WalletKey {
    WalletKey::from_bytes([9; 32]).expect("in range")
}

fn policy(from: u8) -> KeyPolicy {
    let mut keys = [from, from + 1].map(|one| KeySigner { key: signer(one).public(), weight: 1 });
    keys.sort_by_key(|one| one.key);
    KeyPolicy {
        keys: keys.into(),
        wallets: [WalletSigner { wallet: wallet().address(), weight: 1 }].into(),
        moves: 1,
        governs: 2,
        guardian_keys: [signer(9).public()].into(),
        guardian_wallets: [].into(),
        guardians: 1,
        delay: 2,
    }
}

fn last(world: &World) -> Digest {
    world.ledger.account_keys(&account(TREASURY)).map_or(Digest::default(), |keys| keys.last)
}

/// A change of the treasury's keys, to the policy from this number on, signed by these keys and by the wallet.
fn change(world: &World, from: u8, by: ChangedBy, keys: &[SecretKey]) -> Operation {
    let change = KeysChange {
        account: account(TREASURY),
        last: last(world),
        policy: policy(from),
        sessions: SessionsFate::Keep,
    };
    let network = world.ledger.network();
    let of_wallet = change.sign_typed(by, 1, &network, &wallet());
    let signatures = keys.iter().fold(of_wallet, |all, key| all.with(&change.sign(by, &network, key)));
    match by {
        ChangedBy::Guardians => Operation::RecoverKeys(Box::new(RecoverKeys { change, signatures })),
        ChangedBy::Signers => {
            Operation::SetKeys(Box::new(SetKeys { change, first: key(TREASURY).public(), signatures }))
        }
    }
}

fn body(sequence: Sequence, operation: Operation) -> Body {
    Body { chain: 1, account: account(TREASURY), sequence, until: 50_000, operation }
}

/// A request of the treasury by one key, and by the wallet where more is needed.
fn request(last: Digest, body: Body, by: u8, with_wallet: bool) -> Transaction {
    let of_wallet =
        if with_wallet { body.sign_typed_for_policy(&last, &NETWORK, &wallet()) } else { KeySignatures::default() };
    let signatures = of_wallet.with(&body.sign_for_policy(&last, &NETWORK, &signer(by)));
    Transaction::by_policy(body, last, signatures)
}

fn pays(to: u8) -> Operation {
    Operation::Pay { to: account(to), asset: USD, amount: 10 }
}

fn required() -> Operation {
    Operation::SetReceiving { references: ReferenceRule::Required }
}

/// A session key of scope *duty*.
fn authorizes(world: &World) -> Operation {
    let bot = signer(20);
    let caps = [SessionCap { asset: USD, units: 1_000 }].into();
    let terms = SessionTerms { slot: 1, key: bot.public(), scope: SessionScope::Duty, until: 90, alive: 90, caps };
    let bytes = session_possession_bytes(&world.ledger.network(), &account(TREASURY), 1, &terms.key);
    Operation::Session(Box::new(SessionOperation::Authorize { terms, possession: bot.sign(&bytes) }))
}

/// The validator of person 3 has signed two commits of one height.
fn accuses(world: &World) -> Operation {
    let epoch = world.ledger.validators().last_epoch() - 1;
    let committee = world.ledger.committee(epoch).expect("known");
    let member = committee.iter().position(|one| one.account == account(3)).expect("it has a seat") as u8;
    let scope = Scope { network: NETWORK, epoch };
    let commits = [2, 3].map(|root| {
        let (superblock, root) = (Digest([1; 32]), Digest([root; 32]));
        Committed { superblock, root, signature: node(3).sign(&scope.commit(20, &superblock, &root).0) }
    });
    Operation::Accuse(Box::new(Evidence { epoch, member, height: 20, contradiction: Contradiction::Commits(commits) }))
}

/// A state, and the blocks that follow.
pub type History = (Vec<Vec<u8>>, Vec<Superblock>);

fn of_keys() -> History {
    let rules = RULES_OF_KEYS;
    let mut world = World::new(&Genesis { rules: rules - 1, ..genesis() });
    let state = Snapshot::of(&world.ledger).collect();
    world.until(2);
    let first = |world: &World| change(world, 1, ChangedBy::Signers, &[key(TREASURY), signer(1), signer(2)]);
    let early = world.sign(SENDER, first(&world));
    assert_eq!(world.apply(vec![early]), [Some(Refusal::RULES_TO_COME)]);
    upgrade(&mut world, rules);
    let first = first(&world);
    begins(&mut world, first);
    changes(&mut world);
    let height = world.ledger.height();
    world.until(height + 20);
    (state, world.blocks)
}

/// All approve these rules, and blocks follow until they act.
pub fn upgrade(world: &mut World, rules: u32) {
    let next = Upgrade { rules, manifest: manifest(rules).expect("this program knows them"), notice: 3 };
    let approvals = (0..4).map(|person| world.approval(person, next)).collect();
    assert!(world.apply(approvals).iter().all(Option::is_none));
    while world.ledger.next_rules() < rules {
        let height = world.ledger.height();
        world.until(height + 1);
    }
}

/// The treasury gets its policy, and its signers do what they may.
fn begins(world: &mut World, first: Operation) {
    let batch = vec![world.sign(SENDER, first), world.sign(SHOP, required())];
    assert_eq!(world.apply(batch), [None, None]);
    let alone = body(1, pays(2)).sign(&NETWORK, &key(TREASURY));
    let bare = world.sign(SENDER, pays(SHOP));
    let reference = Reference { kind: ReferenceKind::Text, bytes: b"order 7"[..].into() };
    let named = Operation::PayReferenced { to: account(SHOP), asset: USD, amount: 10, reference };
    let named = world.sign(SENDER, named);
    let together = request(last(world), body(2, pays(2)), 1, false);
    let expected = [Some(Refusal::POLICY_SIGNS), Some(Refusal::NEEDS_REFERENCE), None, None];
    assert_eq!(world.apply(vec![alone, bare, named, together]), expected);
    let governed = [(3, required()), (4, authorizes(world))];
    let governed = governed.map(|(sequence, operation)| request(last(world), body(sequence, operation), 2, true));
    assert_eq!(world.apply(governed.into()), [None, None]);
    let accusation = body(slot_sequence(1, 1), accuses(world)).sign(&NETWORK, &signer(20));
    assert_eq!(world.apply(vec![accusation]), [None]);
}

/// Its keys change, and others wait in vain.
fn changes(world: &mut World) {
    let before = last(world);
    let next = change(world, 2, ChangedBy::Signers, &[signer(1), signer(2), signer(3)]);
    let next = world.sign(SENDER, next);
    assert_eq!(world.apply(vec![next]), [None]);
    let complete = || Operation::CompleteKeys { account: account(TREASURY) };
    let stale = request(before, body(5, pays(2)), 1, false);
    let early = world.sign(SENDER, complete());
    assert_eq!(world.apply(vec![stale, early]), [Some(Refusal::KEYS_CHANGED), Some(Refusal::CHANGE_NOT_DUE)]);
    let due = world.sign(0, complete());
    assert_eq!(world.apply(vec![due]), [None]);
    let recovery = change(world, 5, ChangedBy::Guardians, &[signer(9), signer(5), signer(6)]);
    let recovery = world.sign(SENDER, recovery);
    assert_eq!(world.apply(vec![recovery]), [None]);
    let answer = change(world, 3, ChangedBy::Signers, &[signer(2), signer(3), signer(4)]);
    let answer = world.sign(0, answer);
    assert_eq!(world.apply(vec![answer]), [None]);
}

#[test]
#[ignore = "writes the files that the other tests read, once"]
fn record_rules() {
    let histories: [(u32, fn() -> History); 10] = [
        (RULES_OF_REFERENCES, crate::recorded_references::of_references),
        (STEP_REPORTS_RULES, crate::recorded_references::of_steps),
        (RULES_OF_KEYS, of_keys),
        (RULES_OF_LISTINGS, crate::recorded_listings::of_listings),
        (RULES_OF_PROPOSALS, crate::recorded_proposals::of_proposals),
        (RULES_OF_CONTROLS, crate::recorded_controls::of_controls),
        (ORDER_LISTS_RULES, crate::recorded_lists::of_lists),
        (RULES_OF_LANE_TERMS, crate::recorded_lane_terms::of_lane_terms),
        (RULES_OF_SEALS, crate::recorded_seals::of_seals),
        (RULES_OF_ENVELOPES, crate::recorded_seals::of_envelopes),
    ];
    let path = |rules: u32| fixtures().join(format!("rules-{rules}.chain"));
    let is_due = |rules: u32| manifest(rules).is_some() && !path(rules).exists();
    for (rules, history) in histories.into_iter().filter(|(rules, _)| is_due(*rules)) {
        let (state, blocks) = history();
        let mut recorded = Recorded { state, blocks: Vec::new() };
        replay(&recorded.state.clone(), &blocks, |at, applied, root, _| {
            let outcomes = borsh::to_vec(&applied.outcomes).expect("memory");
            recorded.blocks.push(RecordedBlock { block: blocks[at].to_bytes(), outcomes, root });
        });
        std::fs::write(path(rules), borsh::to_vec(&recorded).expect("memory")).expect("written");
    }
}
