//! States in other bytes, and states that differ from what the model says.

use super::*;

/// The encoding of one account chunk with its first account changed; all accounts of a small ledger fill one chunk a
/// shard.
fn forged(chunk: &[u8], change: impl FnOnce(&mut Vec<AccountState>)) -> Vec<u8> {
    let mut states: Vec<AccountState> = borsh::from_slice(&chunk[1..]).expect("accounts");
    change(&mut states);
    [&chunk[..1], &borsh::to_vec(&states).expect("encodes")].concat()
}

#[test]
fn what_the_model_says_of_session_keys_differs_from_a_ledger_with_a_mistake() {
    let genesis = genesis(1, Fraction::ZERO);
    let (mut model, mut ledger) = (Model::new(&genesis), Ledger::new(&genesis).expect("sound"));
    let (account, secret) = (address(0), session_key(0));
    let possession = secret.sign(&session_possession_bytes(&model.network, &account, 1, &secret.public()));
    let caps = [0, 1].map(|asset| SessionCap { asset: AssetId(asset), units: 50_000 }).into();
    let (until, alive, scope) = (9, 9, SessionScope::Trade);
    let terms = SessionTerms { slot: 1, key: secret.public(), scope, until, alive, caps };
    let authorize = Operation::Session(Box::new(SessionOperation::Authorize { terms, possession }));
    let offer = Operation::offer(AssetId(1), AssetId(0), 20_000, Price::ONE);
    let by = |sequence, operation| Body { chain: 7, account, sequence, until: 9, operation };
    let first = by(1, authorize).sign(&model.network, &key(0));
    let second = by(slot_sequence(1, 1), offer).sign(&model.network, &secret);
    for transaction in [first, second] {
        let block = vec![vec![transaction.clone()], Vec::new(), Vec::new()];
        let applied = apply(&mut ledger, Digest::default(), block);
        model.apply(std::slice::from_ref(&transaction), &Digest::default(), &Attached::of(&applied.batch));
        assert_eq!(applied.outcomes[0].refusal(), None);
    }
    let mistakes: [fn(&mut ledger::SessionRecord); 4] = [
        |_| {},
        // What an offer locks is forgotten, and so could be used again.
        |record| record.budgets[1].used = 0,
        // A timer runs on after it was stopped.
        |record| record.alive = 8,
        // A number could be used twice.
        |record| record.window = ledger::Window::default(),
    ];
    let chunks: Vec<Vec<u8>> = Snapshot::of(&ledger).collect();
    for (at, mistake) in mistakes.into_iter().enumerate() {
        let change = |chunk: &Vec<u8>| match chunk[0] {
            RootPart::BALANCES => forged(chunk, |states| {
                let of_them = states.iter_mut().filter_map(|state| state.sessions.as_mut());
                of_them.for_each(|sessions| mistake(&mut sessions.records[0]));
            }),
            _ => chunk.clone(),
        };
        let mut restore = Restore::default();
        chunks.iter().map(change).for_each(|chunk| restore.push(&chunk).expect("in place"));
        let other = restore.finish().expect("sound in itself");
        let compared = std::panic::AssertUnwindSafe(|| model.assert_same_sessions(&other));
        assert_eq!(std::panic::catch_unwind(compared).is_ok(), at == 0, "mistake {at}");
    }
}

/// A state has one encoding: other bytes for the same state are refused.
#[test]
fn a_snapshot_in_other_bytes_is_refused() {
    let ledger = Ledger::new(&genesis(0, Fraction::ZERO)).expect("sound");
    let chunks: Vec<Vec<u8>> = Snapshot::of(&ledger).collect();
    restored(&chunks);
    let accounts: Vec<usize> = (0..chunks.len()).filter(|at| chunks[*at][0] == RootPart::BALANCES).collect();
    let refuses = |chunks: &[Vec<u8>]| {
        let mut restore = Restore::default();
        let pushed = chunks.iter().try_for_each(|chunk| restore.push(chunk));
        assert!(matches!(pushed, Err(SnapshotError::OutOfPlace(_))), "{pushed:?}");
    };
    let with = |at: usize, chunk: Vec<u8>| {
        let mut other = chunks.clone();
        other[at] = chunk;
        other
    };
    let rich = accounts.iter().copied().find(|at| {
        let states: Vec<AccountState> = borsh::from_slice(&chunks[*at][1..]).expect("accounts");
        states[0].balances.len() > 1
    });
    let rich = rich.expect("an account holds two assets");
    refuses(&with(rich, forged(&chunks[rich], |states| states[0].balances.reverse())));
    refuses(&with(rich, forged(&chunks[rich], |states| states[0].balances.push((AssetId(ASSETS), 0)))));
    refuses(&with(rich, forged(&chunks[rich], |states| states.clear())));
    let mut swapped = chunks.clone();
    swapped.swap(accounts[0], accounts[1]);
    refuses(&swapped);
    let mut empty = chunks.clone();
    empty.insert(1, forged(&chunks[1], |states| states.clear()));
    refuses(&empty);
}
