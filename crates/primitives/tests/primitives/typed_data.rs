//! Compares typed data with viem 2.57.20 and ethers 6.17.0: both compute these hashes and signatures, with the first
//! of the usual development keys, chain 31337 and a network of bytes 0x42.

use primitives::{
    Address, AssetId, Body, ClientId, Committed, Contradiction, Digest, Evidence, Life, OfferPlace, OfferReplacement,
    Operation, PublicKey, SecretKey, Signature, SignedBy, Stake, Transaction, TypedData, WalletKey, WalletSignature,
    WalletSignatureError, from_hex, to_hex, verify_transactions,
};

const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const NETWORK: Digest = Digest([0x42; 32]);

const VECTORS: [(&str, &str, &str); 12] = [
    (
        "CreateAccount",
        "0x83094bcb69a2d088fbec0350fff86b0102dd9b844cebc4faff4de83d5fd27781",
        concat!(
            "0x16a58ce665cbeed8e80ba2513fd4753b9232f17309e561399aac9b9ade4599cc44",
            "4981e185199e97eaf3510b2be467c7f072790919b1157fd4169f9d752ea9561c",
        ),
    ),
    (
        "CreateOffer",
        "0x874f34ca3a85528d32c69b9498fec207f1d719f2e94d4a9093b9e583d7d6e1b0",
        concat!(
            "0xb43055616514725b82f1f891e41bf749ef215f8021a363dde14c1d7e74114a5441",
            "7c58403c93ffd5d086aeea600ebc4c148c333c419b3e2f51b9901b29e476fb1c",
        ),
    ),
    (
        "Cancel",
        "0x080cc95256b915f592fa38f7bdb02b802cd148ddb2a7ad153d73d23aca2c1933",
        concat!(
            "0x485d870283980068563b585961a29b0b740c70597f4683fd7f5f2d2cab22c7852d",
            "efe6e1c8215a8d989ed932563c3cfd0b54cb4aaf5edd9e6cff92a66001c8f61b",
        ),
    ),
    (
        "Replace",
        "0xe4c98cfb3ddf32eda15a0d1e4d103746b8f5afd5f0a184580ca0bbe026c3f219",
        concat!(
            "0x8762b091cd527387aace3de0f39818efa7325a77682126e6f38c52b2ed14a33b32",
            "095eab029df9491d02fe504c0f9ecdde60ca791ce7ed5fb81cdb50a5d3261c1c",
        ),
    ),
    (
        "Pay",
        "0xb66fefcf9da537fd37bb7d8b6ccd1567a627bcb0f6cfe64d04b9e7e75e88e219",
        concat!(
            "0x5903de8b72fff8894c40d51c932621d36d45f2a57cd40b27b619eae3aba7853257",
            "2d6c8b0ef5a2d70bdfadf5d239a84bee95ac078be61db1b018b2032922da481c",
        ),
    ),
    (
        "Issue",
        "0xd643706aa1b6ebb1ca2adfed29002690070c1d753b28ab5f9fdc020014210366",
        concat!(
            "0xca94eeaec6d420430d66091b5e192b6cfa371b0118d66946cdf402a8418ccd5b08",
            "b7209645701a7065a32b52762286eaf553722d05cec7c4763a7e44e4cf11591c",
        ),
    ),
    (
        "Burn",
        "0x8597ca24e6a7d4269ad4bb78b79957fa9f13988c2f952b5ea1e8fa03aa7d0a41",
        concat!(
            "0x387fe082747782e1800ad0622261bd2a2ff29d661eca0bfb10337f5725d9526c38",
            "c84a60ac9afa76ba1e62c2844d95b79bd597ea1a16427a9be7d03595f084551b",
        ),
    ),
    (
        "Stake",
        "0x0c14995afc7ba7eadb7706e9714eed9282a3ce3ab40da097f531add03639e6e9",
        concat!(
            "0x61e402f15e6218db19df2826cd97f799b7155fc5f7a4dc78d1e4452dbf44174a3e",
            "9779729c7d4150e1b58412b1b5bf49438b50f5d576367e0c255c4c0ed0ebeb1c",
        ),
    ),
    (
        "Unstake",
        "0x7554d60dd6aeefe68db2c7d5a282dce2aae1aca7620faaa65be94906730711cc",
        concat!(
            "0x46740668001bdb6d10d5137967f22786c352d766342fb00c9a89bcdcadab144c58",
            "6bbf26dfb182071f3ee74741a132d7b64c04b46780742a38ad34f33f1c6f461b",
        ),
    ),
    (
        "Withdraw",
        "0x82b278bec44d45933f478f03af689d0c968c139c613161e368d9c73693c004b0",
        concat!(
            "0x15f369b4c3c9d7c81b73970b23bff82b9255dadca8c4bd07e20c58492ab98bde4a",
            "c4f9e7bca84dea522a2d247af73cddb6d2b425e56860b70de38aa581f008311c",
        ),
    ),
    (
        "Lane",
        "0x50fa8c0fc39e118a28deebc3aff8d677569ad2e5684cfbe0759e8f865271d017",
        concat!(
            "0xcb515c6c19cda5ad6e317f66dc2ca6c7e702598a927902faf5b6a8960872718851",
            "5ca38909cb78e52e8e7da51e702b792fd71dce66546091efa94a76312476011c",
        ),
    ),
    (
        "Accuse",
        "0x7e69dac2574af3c9498d4b38ae2623851d264b5baf52f637a5170dd6c44cf81a",
        concat!(
            "0xc962d8d3161d0d463d19877a91cf68b0abeaecb0b813179b543c99153d8df34241",
            "0a3e79553a2c57d8f25002df525cb9925619e5b60dea9ba353876a6d5118201c",
        ),
    ),
];

fn wallet() -> WalletKey {
    WalletKey::from_bytes(from_hex(KEY).expect("32 bytes")).expect("in range")
}

/// The bodies that the vectors sign, in their order.
fn bodies() -> Vec<Body> {
    let (limit, amount) = ("0.8".parse().expect("a price"), 25_000_000);
    let (one, to, key) = (AssetId(1), Address([0x22; 20]), PublicKey([0x33; 32]));
    let committed = |low| Committed {
        superblock: Digest([low; 32]),
        root: Digest([low + 8; 32]),
        signature: Signature([low + 2; 64]),
    };
    let contradiction = Contradiction::Commits([committed(3), committed(4)]);
    let stake = Stake { units: 9, key, address: "a.example:9100".into(), possession: Signature([0x44; 64]) };
    let operations = [
        Operation::CreateAccount { account: to, key },
        Operation::CreateOffer {
            sell: one,
            buy: AssetId(0),
            amount,
            limit,
            life: Life::Until(60_000),
            client: ClientId([0xab; 16]),
        },
        Operation::cancel(one, AssetId(0), limit, 6),
        Operation::Replace(Box::new(OfferReplacement {
            old: OfferPlace { sell: one, buy: AssetId(0), limit, offer: 6 },
            remains: 300,
            amount,
            limit: "1.25".parse().expect("a price"),
            life: Life::OneBatch,
            client: ClientId([0xcd; 16]),
        })),
        Operation::Pay { to, asset: one, amount: (1 << 63) - 1 },
        Operation::Issue { to, asset: AssetId(u32::MAX), amount: 1 },
        Operation::Burn { asset: one, amount: 5 },
        Operation::Stake(Box::new(stake)),
        Operation::Unstake { units: 9 },
        Operation::Withdraw { to: key, asset: one, amount: 5 },
        Operation::Lane([1, 2].into()),
        Operation::Accuse(Box::new(Evidence { epoch: 4, member: 2, height: 77, contradiction })),
    ];
    let body = |operation| Body { chain: 31_337, account: wallet().address(), sequence: 7, until: 50_000, operation };
    operations.into_iter().map(body).collect()
}

/// One of each operation at a venue, from the vectors.
fn at_venues() -> Vec<Body> {
    let vectors: serde_json::Value =
        serde_json::from_str(include_str!("../../../../docs/venue-vectors.json")).expect("vectors");
    let of = |operation: &serde_json::Value| {
        let bytes = from_hex_bytes(operation["bytes"].as_str().expect("bytes"));
        let operation = Operation::Venue(borsh::from_slice(&bytes).expect("an operation"));
        Body { operation, ..bodies().swap_remove(0) }
    };
    vectors["operations"].as_array().expect("a list").iter().map(of).collect()
}

fn from_hex_bytes(hex: &str) -> Vec<u8> {
    let digits = hex.trim_start_matches("0x");
    (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    from_hex::<65>(hex).expect("65 bytes").into()
}

#[test]
fn hashes_and_signatures_are_those_of_viem_and_ethers() {
    assert_eq!(wallet().address().checked(), "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266");
    for (body, (name, hash, signature)) in bodies().into_iter().zip(VECTORS) {
        let data = TypedData::of(&body);
        assert_eq!(data.primary, name);
        assert_eq!(format!("0x{}", to_hex(&data.hash(31_337, &NETWORK))), hash, "{}", data.type_text());
        let signature = WalletSignature::from_bytes(&bytes(signature)).expect("a signature");
        let signed_by = SignedBy::TypedData { network: NETWORK, signature };
        let transaction = Transaction { body: body.clone(), signed_by };
        assert!(transaction.is_signed(&NETWORK), "{name}");
        assert_eq!(body.sign_typed(NETWORK, &wallet()), transaction, "{name}");
    }
}

/// The structures in the documentation are those that are hashed.
#[test]
fn the_types_are_those_that_are_documented() {
    let documented = include_str!("../../../../docs/specification.md");
    for body in bodies().into_iter().chain(at_venues()) {
        let text = TypedData::of(&body).type_text();
        assert!(documented.contains(&format!("`{text}`")), "{text} is not documented");
    }
}

#[test]
fn a_changed_field_or_another_network_is_not_signed() {
    for (at, body) in bodies().into_iter().enumerate() {
        let signed = body.clone().sign_typed(NETWORK, &wallet());
        let others = [
            Body { chain: 31_338, ..body.clone() },
            Body { account: Address([1; 20]), ..body.clone() },
            Body { sequence: 8, ..body.clone() },
            Body { until: 9, ..body.clone() },
            Body { operation: bodies()[(at + 1) % 11].operation.clone(), ..body.clone() },
        ];
        for other in others {
            let changed = Transaction { body: other, ..signed.clone() };
            assert!(!changed.is_signed(&NETWORK), "{changed:?}");
            assert_ne!(changed.id(), signed.id());
        }
        let SignedBy::TypedData { signature, .. } = signed.signed_by else { panic!("it is typed data") };
        let elsewhere = SignedBy::TypedData { network: Digest([0x43; 32]), signature };
        let elsewhere = Transaction { signed_by: elsewhere, ..signed.clone() };
        assert!(!elsewhere.is_signed(&NETWORK));
        assert_ne!(elsewhere.id(), signed.id());
    }
}

/// The signature covers each bit of a transaction that a wallet signed.
#[test]
fn every_bit_is_signed_for() {
    let bytes = borsh::to_vec(&bodies().remove(1).sign_typed(NETWORK, &wallet())).expect("in memory");
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        if let Ok(transaction) = borsh::from_slice::<Transaction>(&changed) {
            assert!(!transaction.is_signed(&NETWORK), "bit {bit}");
        }
    }
}

/// Of the two possible values of s only the low one is valid, so no second form of a signature can be made.
#[test]
fn a_high_s_is_refused() {
    let order: [u8; 32] =
        from_hex("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141").expect("32 bytes");
    let negated = |s: &[u8]| {
        let (mut borrow, mut high) = (0i16, [0; 32]);
        for at in (0..32).rev() {
            let difference = i16::from(order[at]) - i16::from(s[at]) - borrow;
            (high[at], borrow) = (difference.rem_euclid(256) as u8, i16::from(difference < 0));
        }
        high
    };
    for (body, (_, _, signature)) in bodies().into_iter().zip(VECTORS) {
        let mut other = bytes(signature);
        let high = negated(&other[32..64]);
        other[32..64].copy_from_slice(&high);
        other[64] ^= 27 ^ 28;
        assert_eq!(WalletSignature::from_bytes(&other), Err(WalletSignatureError::HighS));
        // In the compact form the parity bit replaces the top bit of a high s: the result is another signature that
        // belongs to no account.
        let compact = WalletSignature(other[..64].try_into().expect("64 bytes"));
        let signed_by = SignedBy::TypedData { network: NETWORK, signature: compact };
        assert!(!Transaction { body, signed_by }.is_signed(&NETWORK));
    }
    // The few high values that leave this bit free.
    let mut edge = [0x7f; 64];
    edge[33..].fill(0xff);
    assert_eq!(WalletSignature(edge).recover(&[1; 32]), None);
    let at_65 = [&edge[..], &[27]].concat();
    assert_eq!(WalletSignature::from_bytes(&at_65), Err(WalletSignatureError::HighS));
    for (wrong, why) in [
        (vec![], WalletSignatureError::Length),
        (vec![1; 63], WalletSignatureError::Length),
        (vec![1; 66], WalletSignatureError::Length),
        (vec![1; 65].into_iter().map(|byte| byte + 1).collect(), WalletSignatureError::Parity),
    ] {
        assert_eq!(WalletSignature::from_bytes(&wrong), Err(why));
    }
    for nothing in [[0; 64], [0xff; 64]] {
        assert_eq!(WalletSignature(nothing).recover(&[1; 32]), None);
    }
}

#[test]
fn both_kinds_are_checked_together() {
    let key = SecretKey::from_seed([5; 32]);
    let transactions: Vec<Transaction> = (0..700u64)
        .map(|number| {
            let operation = Operation::Burn { asset: AssetId(1), amount: 1 + number };
            let account = if number % 3 == 0 { wallet().address() } else { key.public().address() };
            let body = Body { chain: 1, account, sequence: number, until: 50_000, operation };
            let mut signed = match number % 3 {
                0 => body.sign_typed(NETWORK, &wallet()),
                _ => body.sign(&NETWORK, &key),
            };
            if number % 100 < 2 {
                signed.body.sequence += 1;
            }
            signed
        })
        .collect();
    let expected: Vec<bool> = (0..700).map(|number| number % 100 >= 2).collect();
    assert_eq!(verify_transactions(&NETWORK, &transactions), expected);
    let one_by_one: Vec<bool> = transactions.iter().map(|one| one.is_signed(&NETWORK)).collect();
    assert_eq!(one_by_one, expected);
    assert!(verify_transactions::<Transaction>(&NETWORK, &[]).is_empty());
}

/// Every field of an operation at a venue is in what is signed: bytes that decode to another operation have another
/// hash.
#[test]
fn every_byte_of_an_operation_at_a_venue_is_signed() {
    let operations = at_venues();
    assert_eq!(operations.len(), 19);
    for body in operations {
        let hash = |body: &Body| TypedData::of(body).hash(31_337, &NETWORK);
        let (signed, bytes) = (hash(&body), borsh::to_vec(&body.operation).expect("in memory"));
        let mut others = 0;
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let Ok(operation) = borsh::from_slice(&changed) else { continue };
            others += 1;
            assert_ne!(hash(&Body { operation, ..body.clone() }), signed, "byte {at} of {:?}", body.operation);
        }
        assert!(others >= bytes.len() / 2, "{others} of {}", bytes.len());
    }
}
