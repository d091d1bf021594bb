//! Compares typed data with viem 2.57.20 and ethers 6.17.0: both compute these hashes and signatures, with the first
//! of the usual development keys, chain 31337 and a network of bytes 0x42.

use primitives::{
    Address, AssetId, Body, Committed, Contradiction, Digest, Evidence, Operation, PublicKey, SecretKey, Signature,
    SignedBy, Stake, Transaction, TypedData, WalletKey, WalletSignature, WalletSignatureError, from_hex, to_hex,
    verify_transactions,
};

const KEY: &str = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80";
const NETWORK: Digest = Digest([0x42; 32]);

const VECTORS: [(&str, &str, &str); 11] = [
    (
        "CreateAccount",
        "0x840848ed37d6051eb07d258d4a76696ac3892cc999f0be8e528174ed95aaa671",
        concat!(
            "0x416d11e42ea5dfcc1cac1f8defcced7a91a8ddf0e8277cff76cb851a26bcd3af2e",
            "52bec9b97aa1f81a9bf173282fc1d16638ff91838eb20075296dac7bd895f71b",
        ),
    ),
    (
        "CreateOffer",
        "0xaf755ee6e3bccfc10d64e30cfd7190ce7daa0062534b60ae7ac079ff700811ed",
        concat!(
            "0xfea723c83683c343be29bd46cbb0fbff6f9966009b8c358032abbfcee611c7ca3b",
            "8be8797b0fd9dda17d46f71058870234773a8d00c166d307e996b765d802671c",
        ),
    ),
    (
        "CancelOffer",
        "0x50f8e03cf324badebf047e6625cbc62345f4ae6f570e30eea0beb4565e79df64",
        concat!(
            "0xacf53d2bc4eb98faae137ccde9599cf33f1a2005d8861f371405544829b354e256",
            "f5fdfb51ab8d7f65a5cb197ac0a916f4686676e365444525ed3f2b762d355c1b",
        ),
    ),
    (
        "Pay",
        "0x536c460249d6815aa1072ca9751cb9d746b2fa7e7a5165e4edb593b96583b640",
        concat!(
            "0x03b443f8f213d822773b6d9dc53e3637310ca7f59ca9eb6b5aaea4cf052ed9ce4b",
            "6783f9e9d35a8a0da987f43ac5e4c9c7370a5170bed1405965830912ad3b931c",
        ),
    ),
    (
        "Issue",
        "0xbb078d88c518aae0ede0eef768ae9a6d3caebf2e59c0fb6e9124e4a47e7310e3",
        concat!(
            "0x8ded41b71b69540692790c2b6e39926b006cb7eaf641d577bbcc4ea246d9006861",
            "46cd705339b96385c60ba5abcbcdb37a740e2adc4c4a49715616a3e25cca4b1b",
        ),
    ),
    (
        "Burn",
        "0xae754779c993489a2a6740f8cbc8d56fa1fd3f2443d455d6ce27b9efc1324c7c",
        concat!(
            "0x59374ffe0132e8aff654bfbd17c9b449f489b6e4ddd20fdd5801c0f79c26dc2c78",
            "903cbc808af3bbc088ca587e92499ac7c001291ba70da2a5472c87767141f61c",
        ),
    ),
    (
        "Stake",
        "0x352d42b7e2f9df5a188a6ee195db056ddbc044d78032508b46af817d33fe3282",
        concat!(
            "0xe3684d16db5ba6e46ca517608be66aba220e40fb5c5d46217df3bbac2f14ab392f",
            "cf16a3aafe7356db6209653e3bc27518e219dcdead4203ded5cadd4f056d9c1c",
        ),
    ),
    (
        "Unstake",
        "0xa3bd815e23b29e9c0ff6175374e29477897da91eee8849ac82017667a85a4403",
        concat!(
            "0x355fba711dd86a3815201230f7b12e21495062e27daf5de2aad8545043ae094579",
            "40d2484cb225d815310a60e9f8f37930eb37536c74f2ed7c5f8091f9c3a5a81b",
        ),
    ),
    (
        "Withdraw",
        "0x8136cac272a1d335f4a1f48eb6b70da6b9858504ef307db151a1b1f9ba9e3bbc",
        concat!(
            "0x88d2d3f050e2bd58d61844b20cf4e14d586ade7f97d9b818bb5fc9c1564884b45e",
            "d89eda10168d7ea813940c5796fe4c39e5cc298113a9ca7ba082ed7728bdba1c",
        ),
    ),
    (
        "Lane",
        "0x5c1e21e3fca19acf304737ad78b092e083ea2c9108e7a8f872cc9b8a9f8b5315",
        concat!(
            "0x0d61639fd1b27afa7a6bd212cc5e65a1744510005bdd25f7669fe1b2227bae3f58",
            "e131f6401d9b511224c4536113002a6480ac1792590919ba5ed28f9b3669ec1c",
        ),
    ),
    (
        "Accuse",
        "0x1ad33966590f128c2a5c3ef0a4c26381159201cbc03367e57d62254bf15545f8",
        concat!(
            "0xbbce037379c9107bd44a2ad9abc064533e54d7b75dd28d190ebcf2afabffeaa141",
            "7642436c3bd4eb45c4ff6f3cdc612c03ca6ea64d9e84c8278406b09a34a8171c",
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
        Operation::CreateOffer { sell: one, buy: AssetId(0), amount, limit },
        Operation::CancelOffer { sell: one, buy: AssetId(0), limit, offer: 6 },
        Operation::Pay { to, asset: one, amount: (1 << 63) - 1 },
        Operation::Issue { to, asset: AssetId(u32::MAX), amount: 1 },
        Operation::Burn { asset: one, amount: 5 },
        Operation::Stake(Box::new(stake)),
        Operation::Unstake { units: 9 },
        Operation::Withdraw { to: key, asset: one, amount: 5 },
        Operation::Lane([1, 2].into()),
        Operation::Accuse(Box::new(Evidence { epoch: 4, member: 2, height: 77, contradiction })),
    ];
    let body = |operation| Body { chain: 31_337, account: wallet().address(), sequence: 7, operation };
    operations.into_iter().map(body).collect()
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
    for documented in [include_str!("../src/typed_data.rs"), include_str!("../../../docs/specification.md")] {
        for body in bodies() {
            let text = TypedData::of(&body).type_text();
            assert!(documented.contains(&format!("`{text}`")), "{text} is not documented");
        }
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
            let body = Body { chain: 1, account, sequence: number, operation };
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
