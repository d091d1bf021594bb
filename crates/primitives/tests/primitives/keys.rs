//! Policies of several keys: what their bounds are, and what their signatures are valid for.

use primitives::{
    Address, AssetId, Body, ChangedBy, Digest, KeyPolicy, KeySignatures, KeySigner, KeysChange, Malformed, Operation,
    PublicKey, RecoverKeys, SecretKey, SessionsFate, SetKeys, SignedBy, Transaction, WalletKey, WalletSigner,
    verify_transactions,
};

const NETWORK: Digest = Digest([2; 32]);
const CHAIN: u64 = 31_337;
const LAST: Digest = Digest([5; 32]);

fn key(number: u8) -> SecretKey {
    SecretKey::from_seed([number; 32])
}

fn wallet() -> WalletKey {
    WalletKey::from_bytes([1; 32]).expect("in range")
}

fn account() -> Address {
    key(1).public().address()
}

/// Keys 2, 3 and 4 and a wallet; two of them spend, three govern, and key 9 is the guardian.
fn policy() -> KeyPolicy {
    let mut keys: Vec<KeySigner> = (2..=4).map(|one| KeySigner { key: key(one).public(), weight: 1 }).collect();
    keys.sort_by_key(|one| one.key);
    KeyPolicy {
        keys: keys.into(),
        wallets: [WalletSigner { wallet: wallet().address(), weight: 1 }].into(),
        moves: 2,
        governs: 3,
        guardian_keys: [key(9).public()].into(),
        guardian_wallets: [].into(),
        guardians: 1,
        delay: 100,
    }
}

fn change() -> KeysChange {
    KeysChange { account: account(), last: LAST, policy: policy(), sessions: SessionsFate::Close }
}

fn body() -> Body {
    let operation = Operation::Pay { to: Address([9; 20]), asset: AssetId(0), amount: 5 };
    Body { chain: CHAIN, account: account(), sequence: 7, until: 50_000, operation }
}

/// The body with the signatures of these keys, and of the wallet.
fn request(keys: &[u8], with_wallet: bool) -> Transaction {
    let body = body();
    let mut signatures = KeySignatures::default();
    for one in keys {
        signatures = signatures.with(&body.sign_for_policy(&LAST, &NETWORK, &key(*one)));
    }
    if with_wallet {
        signatures = signatures.with(&body.sign_typed_for_policy(&LAST, &NETWORK, &wallet()));
    }
    Transaction::by_policy(body, LAST, signatures)
}

fn signed(mut transaction: Transaction, change: impl FnOnce(&mut KeySignatures, &mut Digest)) -> Transaction {
    let SignedBy::Policy(signed) = &mut transaction.signed_by else { panic!("a policy signs") };
    change(&mut signed.signatures, &mut signed.last);
    transaction
}

fn sent(operation: Operation) -> Transaction {
    let sender = key(8);
    Body { account: sender.public().address(), operation, ..body() }.sign(&NETWORK, &sender)
}

fn set_keys(change: KeysChange, signatures: KeySignatures) -> Operation {
    Operation::SetKeys(Box::new(SetKeys { change, first: key(1).public(), signatures }))
}

#[test]
fn keys_and_wallets_sign_one_request_and_each_signature_must_be_valid() {
    let request = request(&[2, 3], true);
    assert!(request.is_signed(&NETWORK) && request.check().is_ok());
    assert_eq!((request.signature_count(), request.policy_signatures(), request.recoveries()), (3, 2, 1));
    assert_eq!(request.weight(), 3, "a fee for each signature");
    let forged_key = signed(request.clone(), |signatures, _| signatures.keys[0].signature.0[40] ^= 1);
    let forged_wallet = signed(request.clone(), |signatures, _| signatures.wallets[0].signature.0[5] ^= 1);
    let other_wallet = signed(request.clone(), |signatures, _| signatures.wallets[0].wallet.0[0] ^= 1);
    let other_last = signed(request.clone(), |_, last| last.0[0] ^= 1);
    let other_body = Transaction { body: Body { sequence: 8, ..body() }, ..request.clone() };
    let all = [request, forged_key, forged_wallet, other_wallet, other_last, other_body];
    assert_eq!(verify_transactions(&NETWORK, &all), [true, false, false, false, false, false]);
    assert_eq!(all.iter().map(|one| one.is_signed(&NETWORK)).collect::<Vec<_>>(), verify_transactions(&NETWORK, &all));
    assert!(!all[0].is_signed(&Digest([3; 32])), "another network");
}

/// The attack: one signer stands twice, and so counts twice.
#[test]
fn one_key_that_signs_twice_is_malformed() {
    let twice = |signatures: &mut KeySignatures, _: &mut Digest| {
        signatures.keys = [signatures.keys[0], signatures.keys[0]].into();
    };
    assert_eq!(signed(request(&[2], false), twice).check(), Err(Malformed::KeySignatures));
    let wallet_twice = |signatures: &mut KeySignatures, _: &mut Digest| {
        signatures.wallets = [signatures.wallets[0], signatures.wallets[0]].into();
    };
    assert_eq!(signed(request(&[2], true), wallet_twice).check(), Err(Malformed::KeySignatures));
    let disordered = |signatures: &mut KeySignatures, _: &mut Digest| signatures.keys.reverse();
    assert_eq!(signed(request(&[2, 3], false), disordered).check(), Err(Malformed::KeySignatures));
    let nobody = |signatures: &mut KeySignatures, _: &mut Digest| *signatures = KeySignatures::default();
    assert_eq!(signed(request(&[2], false), nobody).check(), Err(Malformed::KeySignatures));
    let seventeen: Vec<u8> = (2..=18).collect();
    assert_eq!(request(&seventeen[..16], false).check(), Ok(()));
    assert_eq!(request(&seventeen, false).check(), Err(Malformed::KeySignatures));
}

/// The attack: whoever passes a request on leaves a signature out or puts another in, and its sender follows an id that
/// is in no block.
#[test]
fn the_id_of_a_request_does_not_depend_on_who_signed() {
    let id = request(&[2, 3], false).id();
    assert!([request(&[2], false), request(&[3, 4], true)].iter().all(|other| other.id() == id));
    let by_one = body().sign(&NETWORK, &key(1));
    let typed = body().sign_typed(NETWORK, &wallet());
    assert!(by_one.id() != id && typed.id() != id, "another kind is another request");
    let other = Transaction { body: Body { sequence: 8, ..body() }, ..request(&[2], false) };
    assert_ne!(other.id(), id);
}

/// The attack: what is signed as one thing is used as another.
#[test]
fn a_consent_is_valid_for_one_change_and_as_one_kind_alone() {
    let (of_keys, of_wallet) = (change().sign(ChangedBy::Signers, &NETWORK, &key(2)), {
        change().sign_typed(ChangedBy::Signers, CHAIN, &NETWORK, &wallet())
    });
    for consent in [of_keys, of_wallet] {
        assert!(sent(set_keys(change(), consent.clone())).is_signed(&NETWORK));
        let recover = RecoverKeys { change: change(), signatures: consent.clone() };
        assert!(!sent(Operation::RecoverKeys(Box::new(recover))).is_signed(&NETWORK), "no recovery");
        let others = [
            KeysChange { last: Digest([6; 32]), ..change() },
            KeysChange { account: Address([3; 20]), ..change() },
            KeysChange { sessions: SessionsFate::Keep, ..change() },
            KeysChange { policy: KeyPolicy { moves: 1, ..policy() }, ..change() },
        ];
        for other in others {
            assert!(!sent(set_keys(other, consent.clone())).is_signed(&NETWORK));
        }
        let pays = Transaction::by_policy(body(), LAST, consent);
        assert!(!pays.is_signed(&NETWORK), "no request");
    }
}

/// The id of a change names what is changed and what was before, and not who sent it.
#[test]
fn changes_have_ids_of_their_own() {
    let ids = [
        change().id(ChangedBy::Signers),
        change().id(ChangedBy::Guardians),
        KeysChange { last: Digest([6; 32]), ..change() }.id(ChangedBy::Signers),
        KeysChange { sessions: SessionsFate::Keep, ..change() }.id(ChangedBy::Signers),
    ];
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len());
}

/// The attack: the address of a wallet gets a policy, and what the wallet signs for Ethereum goes past it.
#[test]
fn the_address_of_a_wallet_gets_no_policy() {
    let of = |account, first: PublicKey| {
        let change = KeysChange { account, last: Digest::default(), ..change() };
        let signatures = change.sign(ChangedBy::Signers, &NETWORK, &key(1));
        sent(Operation::SetKeys(Box::new(SetKeys { change, first, signatures }))).check()
    };
    assert_eq!(of(account(), key(1).public()), Ok(()));
    assert_eq!(of(wallet().address(), key(1).public()), Err(Malformed::AddressNotOfKey));
    assert_eq!(of(account(), key(2).public()), Err(Malformed::AddressNotOfKey));
}

#[test]
fn a_policy_out_of_bounds_is_malformed() {
    let signatures = || change().sign(ChangedBy::Signers, &NETWORK, &key(2));
    let check = |policy: KeyPolicy| sent(set_keys(KeysChange { policy, ..change() }, signatures())).check();
    assert_eq!(check(policy()), Ok(()));
    let signer = |number: u8| KeySigner { key: PublicKey([number; 32]), weight: 255 };
    let guardians = |count: u8| (1..=count).map(|one| PublicKey([one; 32])).collect::<Box<[_]>>();
    assert_eq!(check(KeyPolicy { keys: (1..=15).map(signer).collect(), governs: 255 * 15 + 1, ..policy() }), Ok(()));
    assert_eq!(check(KeyPolicy { guardian_keys: guardians(8), guardians: 8, ..policy() }), Ok(()));
    assert_eq!(check(KeyPolicy { guardian_keys: [].into(), guardians: 0, ..policy() }), Ok(()));
    let refused = [
        KeyPolicy { keys: [].into(), wallets: [].into(), ..policy() },
        KeyPolicy { keys: (1..=16).map(signer).collect(), ..policy() },
        KeyPolicy { keys: policy().keys.iter().rev().copied().collect(), ..policy() },
        KeyPolicy { keys: [signer(1), signer(1)].into(), ..policy() },
        KeyPolicy { keys: [KeySigner { weight: 0, ..signer(1) }].into(), ..policy() },
        KeyPolicy { moves: 0, ..policy() },
        KeyPolicy { moves: 4, ..policy() },
        KeyPolicy { governs: 5, ..policy() },
        KeyPolicy { guardians: 0, ..policy() },
        KeyPolicy { guardians: 2, ..policy() },
        KeyPolicy { guardian_keys: guardians(9), ..policy() },
        KeyPolicy { guardian_keys: [].into(), ..policy() },
        KeyPolicy { delay: (1 << 20) + 1, ..policy() },
    ];
    for policy in refused {
        assert_eq!(check(policy.clone()), Err(Malformed::KeyPolicy), "{policy:?}");
    }
}

#[test]
fn a_change_costs_what_its_keys_and_signatures_take() {
    let signatures = change().sign(ChangedBy::Signers, &NETWORK, &key(2));
    let both = signatures.with(&change().sign_typed(ChangedBy::Signers, CHAIN, &NETWORK, &wallet()));
    let sent = sent(set_keys(change(), both));
    assert_eq!(sent.weight(), 1 + 5 * 100 + 2, "four signers and a guardian");
    assert_eq!((sent.signature_count(), sent.policy_signatures(), sent.recoveries()), (3, 1, 1));
    assert_eq!((sent.since_rules(), request(&[2], false).since_rules()), (14, 14));
}
