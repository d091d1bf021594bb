//! Envelopes as bytes, and signatures that are bound to them.

use primitives::{
    Address, AssetId, Body, BoxSize, Digest, Enclosure, EnvelopeBytes, Operation, Price, SEALED_POINT_BYTES, SecretKey,
    SignedBy, Transaction, WalletKey, verify_sealed, verify_transactions,
};
use proptest::prelude::*;

const NETWORK: Digest = Digest([7; 32]);

fn body(account: Address) -> Body {
    let operation = Operation::offer(AssetId(1), AssetId(0), 10_000, Price::ONE);
    Body { chain: 1, account, sequence: 9, until: 250, operation }
}

fn within() -> Enclosure {
    Enclosure { payer: Address([2; 20]), sequence: 5 }
}

/// The same operation by a key and by a wallet, signed for an envelope and plainly.
fn signed() -> [[Transaction; 2]; 2] {
    let (key, wallet) = (SecretKey::from_seed([3; 32]), WalletKey::from_bytes([4; 32]).expect("a key"));
    let (own, of_wallet) = (body(key.public().address()), body(wallet.address()));
    let sealed = own.clone().sign_sealed(&NETWORK, &within(), &key);
    let typed = of_wallet.clone().sign_sealed_typed(NETWORK, &within(), &wallet);
    [[sealed, typed], [own.sign(&NETWORK, &key), of_wallet.sign_typed(NETWORK, &wallet)]]
}

fn holds(network: &Digest, within: Enclosure, one: &Transaction) -> bool {
    verify_sealed(network, &[(within, one)])[0]
}

#[test]
fn what_is_signed_for_an_envelope_is_valid_in_it_alone() {
    let [sealed, plain] = signed();
    let others = [
        Enclosure { payer: Address([3; 20]), ..within() },
        Enclosure { sequence: 6, ..within() },
        Enclosure { sequence: 5 << 32, ..within() },
    ];
    for one in &sealed {
        assert!(holds(&NETWORK, within(), one));
        assert!(others.iter().all(|other| !holds(&NETWORK, *other, one)));
        assert!(!one.is_signed(&NETWORK) && verify_transactions(&NETWORK, &[one]) == [false]);
    }
    assert!(!holds(&Digest([8; 32]), within(), &sealed[0]), "another network");
    for one in &plain {
        assert!(one.is_signed(&NETWORK) && !holds(&NETWORK, within(), one));
    }
    let all: Vec<(Enclosure, &Transaction)> = sealed.iter().chain(&plain).map(|one| (within(), one)).collect();
    assert_eq!(verify_sealed(&NETWORK, &all), [true, true, false, false]);
}

#[test]
fn ids_cover_payer_and_number() {
    let [sealed, _] = signed();
    for one in sealed {
        let ids = [
            one.id(),
            one.sealed_id(&within()),
            one.sealed_id(&Enclosure { payer: Address([3; 20]), ..within() }),
            one.sealed_id(&Enclosure { sequence: 6, ..within() }),
        ];
        assert!(ids.iter().enumerate().all(|(at, id)| !ids[..at].contains(id)));
    }
}

/// A domain of its own: neither the hash nor the salt is that of a plain transaction.
#[test]
fn typed_data_has_a_domain_of_its_own() {
    let body = body(Address([1; 20]));
    let other = Enclosure { sequence: 6, ..within() };
    assert_ne!(within().salt(&NETWORK), other.salt(&NETWORK));
    assert_ne!(body.sealed_hash(&NETWORK, &within()), body.sealed_hash(&NETWORK, &other));
    let [[_, typed], _] = signed();
    assert!(matches!(typed.signed_by, SignedBy::TypedData { network: NETWORK, .. }));
}

fn envelope(size: BoxSize) -> Operation {
    let sealed = vec![6; size.bytes()].into();
    Operation::Sealed(Box::new(EnvelopeBytes::new(4, [5; SEALED_POINT_BYTES], sealed).expect("a size")))
}

/// Code, number of the key, size, point, box; and what it costs.
#[test]
fn an_envelope_is_as_long_as_its_size_says() {
    for (size, fees) in BoxSize::ALL.into_iter().zip([33, 34, 40]) {
        let operation = envelope(size);
        assert_eq!(operation.weight(), fees);
        let bytes = borsh::to_vec(&operation).expect("memory");
        assert_eq!((bytes[0], bytes.len()), (32, 1 + 8 + 1 + 4 + 96 + 4 + size.bytes()));
        assert_eq!(borsh::from_slice::<Operation>(&bytes).expect("its own bytes"), operation);
        for (at, wrong) in [(9, 3), (9, (size as u8 + 1) % 3), (10, 95), (13, 1), (110, 1), (113, 1)] {
            let mut changed = bytes.clone();
            changed[at] = wrong;
            assert!(borsh::from_slice::<Operation>(&changed).is_err(), "byte {at} is {wrong}");
        }
    }
    assert_eq!(EnvelopeBytes::new(4, [5; 96], vec![0; 513].into()), None);
    assert!(borsh::from_slice::<Operation>(&[31]).is_err(), "no operation has the code before");
}

proptest! {
    /// No bytes make reading an envelope panic, and what is read is written as it was.
    #[test]
    fn any_bytes_are_an_envelope_or_none(at in 0usize..130, byte in any::<u8>(), length in 0usize..640) {
        let mut bytes = borsh::to_vec(&envelope(BoxSize::Small)).expect("memory");
        bytes.resize(length, 0);
        if let Some(changed) = bytes.get_mut(at) {
            *changed = byte;
        }
        if let Ok(read) = borsh::from_slice::<Operation>(&bytes) {
            prop_assert_eq!(borsh::to_vec(&read).expect("memory"), bytes);
        }
    }
}
