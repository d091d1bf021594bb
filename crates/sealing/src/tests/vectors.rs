//! The vectors of `docs/sealed-vectors.json`: what another implementation must make, open and refuse. This test
//! generates the file (`WALRAS_WRITE_VECTORS=1`) and compares with it.

use std::path::Path;

use blst::min_sig::{PublicKey as Curve2, Signature as Curve1};
use primitives::{SEALED_DATA_NAME, WalletKey, to_hex};
use serde_json::{Value, json};

use super::*;
use crate::curve;

fn hex(bytes: &[u8]) -> String {
    format!("0x{}", to_hex(bytes))
}

fn made(operations: usize, drawn: u8, sequence: u64) -> Value {
    let secret = committee(1);
    let terms = EnvelopeTerms { sequence, ..terms() };
    let text = text_for(operations, &Enclosure { sequence, ..within() });
    let to = key_of(&secret);
    let envelope = seal(&to, &terms, &text, &[drawn; 32]).expect("it fits");
    let label = envelope.label(&terms);
    let key = opening(&secret, &label);
    let point = Curve2::key_validate(envelope.point()).expect("a point");
    let element = curve::pairing(Curve1::sig_validate(&key.0, true).expect("a key"), point);
    json!({
        "terms": {
            "network": hex(&terms.network.0),
            "signer": hex(&terms.signer.0),
            "key": terms.key.to_string(),
            "payer": hex(&terms.payer.0),
            "sequence": terms.sequence.to_string(),
            "until": terms.until.to_string(),
        },
        "committee": hex(&to.to_bytes()),
        "operations": text.0.iter().map(|one| hex(&borsh::to_vec(one).expect("memory"))).collect::<Vec<_>>(),
        "drawn": hex(&[drawn; 32]),
        "size": BoxSize::ALL.iter().position(|size| *size == envelope.size()),
        "point": hex(envelope.point()),
        "label": hex(&label.0.0),
        "pairing": hex(&element),
        "opening_key": hex(&key.0),
        "box": hex(envelope.sealed()),
    })
}

/// How what is in an envelope is signed: by an ed25519 key its bytes, by a wallet typed data in a domain of its own.
fn inside(by_wallet: bool, sequence: u64) -> Value {
    let within = Enclosure { payer: Address([2; 20]), sequence };
    let (key, wallet) = (SecretKey::from_seed([3; 32]), WalletKey::from_bytes([7; 32]).expect("a key"));
    let account = if by_wallet { wallet.address() } else { key.public().address() };
    let body = Body { chain: 31_337, account, sequence: 9, until: 250, operation: order() };
    let signing_bytes = body.sealed_signing_bytes(&NETWORK, &within);
    let hash = body.sealed_hash(&NETWORK, &within);
    let encoded = hex(&borsh::to_vec(&body).expect("memory"));
    let signed = match by_wallet {
        true => body.sign_sealed_typed(NETWORK, &within, &wallet),
        false => body.sign_sealed(&NETWORK, &within, &key),
    };
    json!({
        "network": hex(&NETWORK.0),
        "payer": hex(&within.payer.0),
        "sequence": sequence.to_string(),
        "by": if by_wallet { "wallet" } else { "key" },
        "secret": hex(&if by_wallet { [7; 32] } else { [3; 32] }),
        "body": encoded,
        "signing_bytes": hex(&signing_bytes),
        "domain_name": SEALED_DATA_NAME,
        "salt": hex(&within.salt(&NETWORK).0),
        "hash": hex(&hash),
        "transaction": hex(&borsh::to_vec(&signed).expect("memory")),
        "id": hex(&signed.sealed_id(&within).0),
    })
}

/// Points that every client must refuse, by the length of their encoding.
fn refused_points() -> Vec<Value> {
    let identity = |length: usize| [vec![0xc0], vec![0; length - 1]].concat();
    let outside = |length: usize| {
        let at = |x: u8| [vec![0x80], vec![0; length - 2], vec![x]].concat();
        let is_on_curve = |bytes: &[u8]| match length {
            48 => Curve1::uncompress(bytes).is_ok(),
            _ => Curve2::uncompress(bytes).is_ok(),
        };
        (1..=255).map(at).find(|bytes| is_on_curve(bytes)).expect("a point of the curve")
    };
    let why = ["the identity", "a point of the curve outside the subgroup", "not a point of the curve"];
    let of = |length: usize| [identity(length), outside(length), vec![0xff; length]];
    [("opening_key", 48), ("point", 96)]
        .into_iter()
        .flat_map(|(what, length)| {
            why.iter().zip(of(length)).map(move |(why, bytes)| json!({"what": what, "bytes": hex(&bytes), "why": why}))
        })
        .collect()
}

fn refused_texts() -> Vec<Value> {
    let (_, one) = text(1).padded().expect("it fits");
    let changed = |at: usize, byte: u8| {
        let mut bytes = one.clone();
        bytes[at] = byte;
        bytes
    };
    let wrong = [
        ("a count above 32", changed(0, 33)),
        ("fewer operations than the count says", changed(0, 2)),
        ("more operations than the count says", changed(0, 0)),
        ("a length one too small", changed(1, one[1] - 1)),
        ("a length beyond the text", changed(2, 0xff)),
        ("a byte behind the operations", changed(511, 1)),
    ];
    let told = |(why, bytes): (&str, Vec<u8>)| {
        assert_eq!(SealedText::unpadded(&bytes), Err(SealFault::Garbage), "{why}");
        json!({"text": hex(&bytes), "why": why})
    };
    wrong.into_iter().map(told).collect()
}

#[test]
fn vectors_are_as_written() {
    let vectors = json!({
        "tag": std::str::from_utf8(SEALING_TAG).expect("a text"),
        "made": [made(0, 1, 0), made(1, 2, 9), made(3, 3, 9), made(12, 4, 10), made(32, 255, u64::MAX)],
        "inside": [inside(false, 5), inside(true, 5), inside(true, u64::MAX)],
        "refused_points": refused_points(),
        "refused_texts": refused_texts(),
    });
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sealed-vectors.json");
    let text = serde_json::to_string_pretty(&vectors).expect("JSON") + "\n";
    if std::env::var_os("WALRAS_WRITE_VECTORS").is_some() {
        std::fs::write(&path, &text).expect("the file is written");
    }
    let written = std::fs::read_to_string(&path).expect("docs/sealed-vectors.json is there");
    assert!(written == text, "docs/sealed-vectors.json differs: look at why, then WALRAS_WRITE_VECTORS=1");
}
