use blst::min_sig::SecretKey as Scalar;
use primitives::{Address, AssetId, Body, Digest, Enclosure, Operation, Price, SecretKey, Transaction};
use proptest::prelude::*;

use super::*;

mod vectors;

const NETWORK: Digest = Digest([7; 32]);

/// A committee of one, whose secret the tests know.
fn committee(seed: u8) -> Scalar {
    Scalar::key_gen(&[seed; 32], &[]).expect("32 bytes are enough")
}

fn key_of(secret: &Scalar) -> SealingKey {
    SealingKey::parse(&secret.sk_to_pk().compress()).expect("a public key is a point")
}

fn opening(secret: &Scalar, label: &Label) -> OpeningKey {
    OpeningKey(secret.sign(&label.0.0, SEALING_TAG, &[]).compress())
}

fn terms() -> EnvelopeTerms {
    let signer = SecretKey::from_seed([1; 32]).public();
    EnvelopeTerms { network: NETWORK, signer, key: 4, payer: Address([2; 20]), sequence: 9, until: 300 }
}

/// The envelope of [`terms`], for which what is in it is signed.
fn within() -> Enclosure {
    Enclosure { payer: terms().payer, sequence: terms().sequence }
}

fn signed(sequence: u64, operation: Operation, within: &Enclosure) -> Transaction {
    let body = Body { chain: 1, account: Address([4; 20]), sequence, until: 250, operation };
    body.sign_sealed(&NETWORK, within, &SecretKey::from_seed([3; 32]))
}

fn order() -> Operation {
    Operation::offer(AssetId(1), AssetId(0), 10_000, Price::ONE)
}

fn text_for(operations: usize, within: &Enclosure) -> SealedText {
    SealedText((0..operations as u64).map(|sequence| signed(sequence, order(), within)).collect())
}

fn text(operations: usize) -> SealedText {
    text_for(operations, &within())
}

fn sealed(operations: usize) -> (Scalar, Envelope, Label) {
    let secret = committee(1);
    let envelope = seal(&key_of(&secret), &terms(), &text(operations), &[6; 32]).expect("it fits");
    let label = envelope.label(&terms());
    (secret, envelope, label)
}

#[test]
fn the_committee_opens_what_is_sealed_to_it() {
    for operations in [0, 1, 3, 12, SEALED_OPERATIONS_MAX] {
        let (secret, envelope, label) = sealed(operations);
        let key = opening(&secret, &label);
        assert!(key_of(&secret).opens(&label, &key));
        assert_eq!(envelope.open(&label, &key), Ok(text(operations)));
        let again = Envelope::new(envelope.size(), *envelope.point(), envelope.sealed().to_vec());
        assert_eq!(again, Ok(envelope));
    }
    let sizes = [0, 2, 3, 11, 12, 32].map(|operations| sealed(operations).1.size());
    let [small, middle, large] = BoxSize::ALL;
    assert_eq!(sizes, [small, small, middle, middle, large, large]);
}

/// The bytes of a block are those of the envelope, and the terms of both are the same.
#[test]
fn an_envelope_goes_through_a_block() {
    let (_, envelope, label) = sealed(3);
    let bytes = envelope.to_bytes(terms().key);
    assert_eq!(Envelope::parse(&bytes), Ok(envelope));
    let body = Body {
        chain: 1,
        account: terms().payer,
        sequence: terms().sequence,
        until: terms().until,
        operation: Operation::Sealed(Box::new(bytes)),
    };
    let sent = body.sign(&NETWORK, &SecretKey::from_seed([1; 32]));
    let (bytes, name) = sent.envelope().expect("it is one");
    assert_eq!(name.enclosure, within());
    assert_eq!(EnvelopeTerms::of(NETWORK, bytes, &name, sent.body.until).label(bytes.size(), &bytes.point), label);
}

#[test]
fn an_envelope_shows_nothing_but_its_size() {
    let [one, other] = [1, 2].map(|operations| sealed(operations).1);
    assert_eq!(one.size(), other.size());
    // The same 32 bytes, drawn twice by mistake: the texts differ, so the points do, and so the streams.
    assert_ne!(one.point(), other.point());
    let crossed: Vec<u8> = one.sealed().iter().zip(other.sealed()).map(|(one, other)| one ^ other).collect();
    assert!(crossed.iter().filter(|byte| **byte == 0).count() < 20, "the streams are one");
}

#[test]
fn sealing_again_makes_the_same_bytes() {
    assert_eq!(sealed(3).1, sealed(3).1);
}

/// Everything that a label names, changed once: the key of the one opens nothing of the other.
#[test]
fn a_stranger_cannot_sign_my_label() {
    let (secret, envelope, label) = sealed(2);
    let own = terms();
    let others = [
        EnvelopeTerms { network: Digest([8; 32]), ..own },
        EnvelopeTerms { signer: SecretKey::from_seed([9; 32]).public(), ..own },
        EnvelopeTerms { key: 5, ..own },
        EnvelopeTerms { payer: Address([3; 20]), ..own },
        EnvelopeTerms { sequence: 10, ..own },
        EnvelopeTerms { until: 301, ..own },
    ];
    let point = key_of(&committee(2)).to_bytes();
    let mut labels: Vec<Label> = others.iter().map(|terms| envelope.label(terms)).collect();
    labels.extend([own.label(BoxSize::Large, envelope.point()), own.label(envelope.size(), &point)]);
    for (at, other) in labels.iter().enumerate() {
        assert_ne!(*other, label, "change {at} is not in the label");
        assert!(!labels[..at].contains(other));
        let theirs = opening(&secret, other);
        assert!(!key_of(&secret).opens(&label, &theirs));
        assert_eq!(envelope.open(&label, &theirs), Err(SealFault::Garbage));
        assert_eq!(envelope.open(other, &theirs), Err(SealFault::Garbage));
    }
}

#[test]
fn another_committee_opens_nothing() {
    let (secret, envelope, label) = sealed(2);
    let theirs = opening(&committee(2), &label);
    assert!(!key_of(&secret).opens(&label, &theirs));
    assert_eq!(envelope.open(&label, &theirs), Err(SealFault::Garbage));
}

/// Points that no library may take: the identity, one outside the subgroup, one off the curve, other encodings.
#[test]
fn points_are_checked_everywhere() {
    let identity = |length: usize| [vec![0xc0], vec![0; length - 1]].concat();
    // x = 1 … is a point of the curve for some x, and of the subgroup for almost none.
    let outside = |length: usize| {
        (1..=255u8).map(move |x| {
            let mut bytes = vec![0; length];
            (bytes[0], bytes[length - 1]) = (0x80, x);
            bytes
        })
    };
    let wrong = |length: usize| {
        [identity(length), vec![0; length], vec![0xff; length]].into_iter().chain(outside(length)).collect::<Vec<_>>()
    };
    let (secret, envelope, label) = sealed(1);
    for bytes in wrong(96) {
        let point: [u8; 96] = bytes.try_into().expect("96 bytes");
        assert_eq!(SealingKey::parse(&point).err(), Some(SealFault::Point));
        assert_eq!(Envelope::new(BoxSize::Small, point, envelope.sealed().to_vec()).err(), Some(SealFault::Point));
    }
    for bytes in wrong(48) {
        let key = OpeningKey(bytes.try_into().expect("48 bytes"));
        assert!(!key_of(&secret).opens(&label, &key));
        assert_eq!(envelope.open(&label, &key), Err(SealFault::Point));
        assert!(!check_keys(&key_of(&secret), &[(label, key), (label, opening(&secret, &label))]));
    }
}

#[test]
fn a_box_is_as_long_as_its_size_says() {
    let (_, envelope, _) = sealed(1);
    for length in [0, 511, 513, 2_048] {
        assert_eq!(Envelope::new(BoxSize::Small, *envelope.point(), vec![0; length]).err(), Some(SealFault::Box));
    }
}

#[test]
fn keys_of_a_block_are_checked_at_once() {
    let secret = committee(1);
    let keys: Vec<(Label, OpeningKey)> = (0..64u8)
        .map(|at| {
            let label = EnvelopeTerms { sequence: at.into(), ..terms() }.label(BoxSize::Small, &[at; 96]);
            (label, opening(&secret, &label))
        })
        .collect();
    let of = key_of(&secret);
    for count in [0, 1, 2, 33, 64] {
        assert!(check_keys(&of, &keys[..count]), "{count} keys");
    }
    for at in [0, 31, 63] {
        let mut wrong = keys.clone();
        wrong[at].1 = opening(&committee(2), &wrong[at].0);
        assert!(!check_keys(&of, &wrong));
    }
    // Two keys in one another's places: their sum is right.
    let mut swapped = keys;
    (swapped[3].1, swapped[4].1) = (swapped[4].1, swapped[3].1);
    assert!(!check_keys(&of, &swapped));
}

#[test]
fn too_many_and_too_long_are_refused() {
    assert_eq!(text(33).padded(), Err(SealFault::TooMany(33)));
    let long = SealedText(vec![signed(0, Operation::Lane(vec![0; 9_000].into()), &within())]);
    assert!(matches!(long.padded(), Err(SealFault::TooLong(9_000..))));
}

proptest! {
    /// No text makes reading it panic, and what is read is written as it was.
    #[test]
    fn any_text_is_read_or_garbage(mut bytes in proptest::collection::vec(any::<u8>(), 0..600), count in 0u8..3) {
        if let Some(first) = bytes.first_mut() {
            *first = count;
        }
        if let Ok(read) = SealedText::unpadded(&bytes) {
            let (_, padded) = read.padded().expect("it was read");
            let length = padded.len().min(bytes.len());
            prop_assert_eq!(&padded[..length], &bytes[..length]);
        }
    }

    /// A text with something behind its operations is garbage.
    #[test]
    fn nothing_stands_behind_the_operations(operations in 0usize..4, at in any::<usize>(), byte in 1u8..) {
        let (size, mut padded) = text(operations).padded().expect("it fits");
        let used = 1 + operations * (2 + borsh::to_vec(&text(1).0[0]).expect("memory").len());
        padded[used + at % (size.bytes() - used)] = byte;
        prop_assert_eq!(SealedText::unpadded(&padded), Err(SealFault::Garbage));
    }
}

/// Shares of a secret for places 0 to n − 1, of which t make it.
fn dealt(secret: &Scalar, t: usize, n: u8) -> Vec<SealShare> {
    let scalar =
        |bytes: &[u8; 32]| Option::<blstrs::Scalar>::from(blstrs::Scalar::from_bytes_be(bytes)).expect("below");
    let drawn = |seed: u8| scalar(&committee(seed).to_bytes());
    let coefficients: Vec<_> = std::iter::once(scalar(&secret.to_bytes())).chain((1..t as u8).map(drawn)).collect();
    let at = |place: u8| {
        let x = blstrs::Scalar::from(u64::from(place) + 1);
        coefficients.iter().rev().fold(blstrs::Scalar::from(0), |sum, of| sum * x + of)
    };
    (0..n).map(|place| SealShare::parse(&at(place).to_bytes_be()).expect("not zero")).collect()
}

#[test]
fn any_t_shares_make_the_keys() {
    let secret = committee(1);
    let labels: Vec<Label> = (0..5).map(|seed| Label(Digest([seed; 32]))).collect();
    let expected: Vec<OpeningKey> = labels.iter().map(|label| opening(&secret, label)).collect();
    for (t, n) in [(1, 2), (2, 4), (3, 4), (11, 32)] {
        let shares = dealt(&secret, t, n);
        let part = |place: u8| (place, labels.iter().map(|label| shares[usize::from(place)].of(label)).collect());
        let parts: Vec<(u8, Vec<OpeningKey>)> = (0..n).map(part).collect();
        assert_eq!(combine(&parts[..t]).as_deref(), Some(&expected[..]), "{t} of {n}");
        assert_eq!(combine(&parts[parts.len() - t..]).as_deref(), Some(&expected[..]), "the last {t} of {n}");
        let mut mixed = parts[..t].to_vec();
        mixed[0].1.swap(0, 1);
        let made = combine(&mixed).expect("points");
        assert_ne!(made, expected, "a share in a wrong place");
        let checked: Vec<(Label, OpeningKey)> = labels.iter().copied().zip(made).collect();
        assert!(!check_keys(&key_of(&secret), &checked));
    }
}

#[test]
fn what_is_no_set_of_shares_makes_no_key() {
    let share = dealt(&committee(1), 2, 2).remove(0).of(&Label(Digest([1; 32])));
    assert_eq!(combine(&[]), None);
    assert_eq!(combine(&[(0, vec![share]), (0, vec![share])]), None, "one place twice");
    assert_eq!(combine(&[(0, vec![share]), (1, vec![])]), None, "other numbers");
    assert_eq!(combine(&[(0, vec![share]), (1, vec![OpeningKey([0xff; 48])])]), None, "no point");
    let identity = OpeningKey(std::array::from_fn(|at| if at == 0 { 0xc0 } else { 0 }));
    assert_eq!(combine(&[(0, vec![share]), (1, vec![identity])]), None, "the identity");
    assert!(SealShare::parse(&[0; 32]).is_err() && SealShare::parse(&[0xff; 32]).is_err());
}
