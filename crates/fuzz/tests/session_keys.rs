//! Session keys from bytes: their operations, the transactions that they sign, and the records in a state.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use fuzz::{Room, Target};
use ledger::{Genesis, Ledger, Listing, Restore, Signatures, Snapshot};
use primitives::{
    Address, AssetId, Body, ClientId, Digest, ExactSide, Fraction, Height, Life, OfferPlace, OfferReplacement,
    Operation, Price, SecretKey, SessionCap, SessionOperation, SessionScope, SessionSlot, SessionTerms, SubBlock,
    Superblock, Transaction, TypedData, WalletKey, session_possession_bytes, slot_sequence, verify_transactions,
};

const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const UNTIL: Height = 50_000;

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number + 1; 32])
}

fn owner() -> Address {
    key(1).public().address()
}

fn wallet() -> WalletKey {
    WalletKey::from_bytes([3; 32]).expect("in range")
}

/// The key of a slot.
fn bot(slot: SessionSlot) -> SecretKey {
    key(100 + slot as u8)
}

fn genesis() -> Genesis {
    let (epsilon, mu) = (Fraction::power_of_two(15), Fraction::power_of_two(10));
    let assets = ["USD", "EUR"].map(|symbol| Listing::new(symbol, 2, owner())).to_vec();
    let balances = [owner(), wallet().address()]
        .into_iter()
        .flat_map(|of| [USD, EUR].map(|asset| (of, asset, 10_000_000)))
        .collect();
    Genesis { chain: 1, fee: 3, epsilon, mu, assets, balances, ..Genesis::default() }
}

fn encoded(value: &impl BorshSerialize) -> Vec<u8> {
    borsh::to_vec(value).expect("in memory")
}

/// A reader of a format with one encoding.
fn canonical<T: BorshDeserialize + BorshSerialize>(bytes: &[u8]) -> Result<T, String> {
    let value: T = borsh::from_slice(bytes).map_err(|error| error.to_string())?;
    assert_eq!(encoded(&value), bytes, "a second encoding");
    Ok(value)
}

fn authorize(network: &Digest, account: &Address, slot: SessionSlot) -> SessionOperation {
    let caps = [(USD, 2_000_000), (EUR, 3_000_000)].map(|(asset, units)| SessionCap { asset, units }).into();
    let (secret, scope) = (bot(slot), SessionScope::Trade);
    let terms = SessionTerms { slot, key: secret.public(), scope, until: 400, alive: 100, caps };
    let possession = secret.sign(&session_possession_bytes(network, account, slot, &terms.key));
    SessionOperation::Authorize { terms, possession }
}

fn session(operation: SessionOperation) -> Operation {
    Operation::Session(Box::new(operation))
}

fn sells(amount: u64) -> Operation {
    let (limit, life, client) = (Price::ONE, Life::Rests, ClientId::NONE);
    Operation::CreateOffer { sell: EUR, buy: USD, amount, limit, life, client }
}

fn body(sequence: u64, operation: Operation) -> Body {
    Body { chain: 1, account: owner(), sequence, until: UNTIL, operation }
}

fn apply(ledger: &mut Ledger, native: Vec<Transaction>) {
    let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
    let (height, parent) = (ledger.height() + 1, ledger.last_block());
    let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
    ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("no block stops a ledger");
    ledger.audit().expect("conserved");
    for record in
        ledger.accounts().get(&owner()).and_then(|account| account.sessions()).into_iter().flat_map(|all| &all.records)
    {
        let within = record.budgets.iter().all(|budget| i128::from(budget.used) <= i128::from(budget.cap));
        assert!(within, "a key uses more than its cap: {record:?}");
    }
}

/// A ledger with an account that has two session keys, the first of which has an offer, and a wallet that has one.
fn ledger() -> Ledger {
    let mut ledger = Ledger::new(&genesis()).expect("sound");
    let network = ledger.network();
    for slot in 1..=2 {
        let operation = session(authorize(&network, &owner(), slot));
        apply(&mut ledger, vec![body(slot.into(), operation).sign(&network, &key(1))]);
    }
    let account = wallet().address();
    let of_wallet = Body { account, ..body(1, session(authorize(&network, &account, 1))) };
    apply(&mut ledger, vec![of_wallet.sign_typed(network, &wallet())]);
    apply(&mut ledger, vec![body(slot_sequence(1, 1), sells(50_000)).sign(&network, &bot(1))]);
    ledger
}

/// All that session keys do and that is done about them, signed by the account's key, its wallet, or the key of a slot.
fn transactions(network: &Digest) -> Vec<Transaction> {
    let old = OfferPlace { sell: EUR, buy: USD, limit: Price::ONE, offer: slot_sequence(1, 1) };
    let (limit, life, client) = (Price::ONE, Life::Until(90), ClientId([5; 16]));
    let replace = OfferReplacement { old, remains: 50_000, amount: 70_000, limit, life, client };
    let exact = Operation::Exact { sell: USD, buy: EUR, side: ExactSide::Buy, units: 5_000, bound: 6_000, client };
    let of_owner = [
        session(authorize(network, &owner(), 3)),
        session(SessionOperation::Revoke { slot: 1 }),
        session(SessionOperation::Alive { slot: 2, through: 200 }),
        session(SessionOperation::Alive { slot: 1, through: 0 }),
    ];
    let of_bot = [
        sells(9_000),
        exact,
        Operation::Replace(Box::new(replace)),
        Operation::Cancel([old].into()),
        session(SessionOperation::Alive { slot: 1, through: 150 }),
        session(SessionOperation::Alive { slot: 1, through: 0 }),
    ];
    let wallet = wallet();
    let of_wallet = [
        session(authorize(network, &wallet.address(), 2)),
        session(SessionOperation::Revoke { slot: 1 }),
        session(SessionOperation::Alive { slot: 1, through: 200 }),
        session(SessionOperation::Alive { slot: 1, through: 0 }),
        sells(9_000),
    ];
    let typed = (7..).zip(of_wallet).map(|(sequence, operation)| {
        let account = wallet.address();
        Body { account, ..body(sequence, operation) }.sign_typed(*network, &wallet)
    });
    let own =
        (7..).zip(&of_owner).map(|(sequence, operation)| body(sequence, operation.clone()).sign(network, &key(1)));
    let by_bot = (2..)
        .zip(&of_bot)
        .map(|(number, operation)| body(slot_sequence(1, number), operation.clone()).sign(network, &bot(1)));
    typed.chain(own).chain(by_bot).collect()
}

/// Whatever a transaction says, it has one encoding, what a wallet signs for it stands for nothing else, and a block
/// with it and a copy of it leaves every key within its caps.
#[test]
fn transactions_of_session_keys_and_blocks_with_them() {
    let ledger = ledger();
    let network = ledger.network();
    let seeds = transactions(&network).iter().map(encoded).collect();
    // The ledger's own memory counts, too.
    let target =
        Target { room: Some(Room { base: 64 << 20, factor: 512 }), ..Target::new("session transaction", seeds) };
    let mut signed_as: BTreeMap<[u8; 32], Vec<u8>> = BTreeMap::new();
    let ran = target.run(|bytes| {
        let transaction: Transaction = canonical(bytes)?;
        transaction.check().map_err(|error| format!("{error:?}"))?;
        let body = &transaction.body;
        let hash = TypedData::of(body).hash(body.chain, &network);
        let first = signed_as.entry(hash).or_insert_with(|| encoded(body));
        assert_eq!(*first, encoded(body), "a wallet signs two bodies by one hash");
        let is_signed = verify_transactions(&network, &[&transaction])[0];
        let admitted = ledger.admit(&transaction).map_err(|refusal| format!("{refusal:?}"));
        let kind = format!("{} {is_signed}", body.operation.name());
        apply(&mut ledger.clone(), vec![transaction.clone(), transaction]);
        admitted.map(|()| kind)
    });
    assert!(ran.taken > 20 && ran.kinds > 20, "{ran:?}");
}

/// States with session keys: what is restored is sound, and the next block of it, too.
#[test]
fn records_of_session_keys_in_a_state() {
    let ledger = ledger();
    let chunks: Vec<Vec<u8>> = Snapshot::of(&ledger).collect();
    let whole = |chunks: &[Vec<u8>]| -> Vec<u8> {
        chunks.iter().flat_map(|chunk| [&(chunk.len() as u32).to_le_bytes()[..], chunk].concat()).collect()
    };
    let room = Some(Room { base: 64 << 20, factor: 512 });
    let target = Target { room, ..Target::new("session snapshot", vec![whole(&chunks)]) };
    let params = ledger.clearing_params();
    target.run(|bytes| {
        let (mut restore, mut rest, mut given) = (Restore::default(), bytes, Vec::new());
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (chunk, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize).ok_or("cut off")?;
            restore.push(chunk).map_err(|error| error.to_string())?;
            given.push(chunk.to_vec());
            rest = after;
        }
        let mut restored = restore.finish().map_err(|error| error.to_string())?;
        assert_eq!(Snapshot::of(&restored).collect::<Vec<_>>(), given, "a second encoding");
        let open: Vec<u32> = (1..=2).map(|slot| restored.open_in_slot(owner(), slot)).collect();
        // Parameters, fees and rules come with a digest that somebody trusts. No record of keys stops the next block.
        let is_same = restored.charter().rules == ledger.charter().rules && restored.clearing_params() == params;
        if is_same && restored.height() == ledger.height() {
            apply(&mut restored, Vec::new());
        }
        Ok(format!("a state with {open:?} offers of keys"))
    });
}
