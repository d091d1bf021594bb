//! Compares the one acceptance rule with published vectors: RFC 8032 §7.1, Wycheproof, and the twelve edge cases of
//! "Taming the many EdDSAs" (Chalkias, Garillot, Nikolaenko; eprint 2020/1244, appendix C). Each is verified alone
//! and in a batch of good signatures; the two answers must agree.

use primitives::{PublicKey, SecretKey, Signature, Signed, from_hex, verify_all};
use wycheproof::{TestResult, eddsa};

#[derive(Clone)]
struct Vector {
    key: PublicKey,
    signature: Signature,
    message: Vec<u8>,
}

impl Signed for Vector {
    fn signature(&self) -> (PublicKey, Signature) {
        (self.key, self.signature)
    }

    fn signed_bytes(&self) -> Vec<u8> {
        self.message.clone()
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("hexadecimal")).collect()
}

/// Whether it is accepted alone; also checks that a batch of nine gives the same answer.
fn accepted(vector: &Vector) -> bool {
    let alone = vector.key.verify(&vector.message, &vector.signature);
    let mut batch: Vec<Vector> = (0..8u8)
        .map(|i| {
            let secret = SecretKey::from_seed([i + 1; 32]);
            Vector { key: secret.public(), signature: secret.sign(&[i]), message: vec![i] }
        })
        .collect();
    batch.insert(5, vector.clone());
    let expected: Vec<bool> = (0..9).map(|i| i != 5 || alone).collect();
    assert_eq!(verify_all(&batch), expected, "a batch must give the same answer as single checks");
    alone
}

#[test]
fn rfc_8032() {
    for (seed, public, message, signature) in [
        (
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
            "",
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
        ),
        (
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
            "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            "72",
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
        ),
        (
            "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
            "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
            "af82",
            "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
        ),
    ] {
        let secret = SecretKey::from_seed(from_hex(seed).expect("32 bytes"));
        assert_eq!(secret.public(), PublicKey(from_hex(public).expect("32 bytes")));
        assert_eq!(secret.sign(&bytes(message)), Signature(from_hex(signature).expect("64 bytes")));
        assert!(accepted(&Vector {
            key: secret.public(),
            signature: secret.sign(&bytes(message)),
            message: bytes(message)
        }));
    }
}

#[test]
fn wycheproof() {
    let suite = eddsa::TestSet::load(eddsa::TestName::Ed25519).expect("the crate carries its vectors");
    let mut checked = 0;
    let mut differing = Vec::new();
    for group in suite.test_groups {
        let key = PublicKey(group.key.pk.as_slice().try_into().expect("32 bytes"));
        for test in group.tests {
            let Ok(signature) = <[u8; 64]>::try_from(test.sig.as_slice()) else {
                assert_eq!(test.result, TestResult::Invalid, "case {}: a signature has 64 bytes", test.tc_id);
                continue;
            };
            let vector = Vector { key, signature: Signature(signature), message: test.msg.to_vec() };
            if accepted(&vector) != (test.result == TestResult::Valid) {
                differing.push((test.tc_id, test.comment));
            }
            checked += 1;
        }
    }
    assert!(checked > 80, "only {checked} cases");
    // The one difference: ZIP-215 lets a point be encoded with the sign of an x that is zero, RFC 8032 does not.
    assert_eq!(differing.len(), 1, "{differing:#?}");
    assert!(differing[0].1.starts_with("R encodes y = 1 with the sign bit of x set"), "{differing:#?}");
}

#[test]
fn edge_cases_that_implementations_disagree_on() {
    // Message, key, R and s, and the answer of ZIP-215: 0-5 and 9-11 have odd points that the cofactor clears or
    // non-canonical encodings that it permits; 6 and 7 have s ≥ L; 8 is valid only if R is re-encoded before hashing.
    let cases = [
        (
            "8c93255d71dcab10e8f379c26200f3c7bd5f09d9bc3068d3ef4edeb4853022b6",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a0000000000000000000000000000000000000000000000000000000000000000",
            true,
        ),
        (
            "9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
            "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43a5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04",
            true,
        ),
        (
            "aebf3f2601a0c8c5d39cc7d8911642f740b78168218da8471772b35f9d35b9ab",
            "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
            "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa8c4bd45aecaca5b24fb97bc10ac27ac8751a7dfe1baff8b953ec9f5833ca260e",
            true,
        ),
        (
            "9bd9f44f4dcc75bd531b56b2cd280b0bb38fc1cd6d1230e14861d861de092e79",
            "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
            "9046a64750444938de19f227bb80485e92b83fdb4b6506c160484c016cc1852f87909e14428a7a1d62e9f22f3d3ad7802db02eb2e688b6c52fcd6648a98bd009",
            true,
        ),
        (
            "e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c",
            "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
            "160a1cb0dc9c0258cd0a7d23e94d8fa878bcb1925f2c64246b2dee1796bed5125ec6bc982a269b723e0668e540911a9a6a58921d6925e434ab10aa7940551a09",
            true,
        ),
        (
            "e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c",
            "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
            "21122a84e0b5fca4052f5b1235c80a537878b38f3142356b2c2384ebad4668b7e40bc836dac0f71076f9abe3a53f9c03c1ceeeddb658d0030494ace586687405",
            true,
        ),
        (
            "85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40",
            "442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623",
            "e96f66be976d82e60150baecff9906684aebb1ef181f67a7189ac78ea23b6c0e547f7690a0e2ddcd04d87dbc3490dc19b3b3052f7ff0538cb68afb369ba3a514",
            false,
        ),
        (
            "85e241a07d148b41e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec40",
            "442aad9f089ad9e14647b1ef9099a1ff4798d78589e66f28eca69c11f582a623",
            "8ce5b96c8f26d0ab6c47958c9e68b937104cd36e13c33566acd2fe8d38aa19427e71f98a4734e74f2f13f06f97c20d58cc3f54b8bd0d272f42b695dd7e89a8c2",
            false,
        ),
        (
            "9bedc267423725d473888631ebf45988bad3db83851ee85c85e241a07d148b41",
            "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff03be9678ac102edcd92b0210bb34d7428d12ffc5df5f37e359941266a4e35f0f",
            false,
        ),
        (
            "9bedc267423725d473888631ebf45988bad3db83851ee85c85e241a07d148b41",
            "f7badec5b8abeaf699583992219b7b223f1df3fbbea919844e3f7c554a43dd43",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffca8c5b64cd208982aa38d4936621a4775aa233aa0505711d8fdcfdaa943d4908",
            true,
        ),
        (
            "e96b7021eb39c1a163b6da4e3093dcd3f21387da4cc4572be588fafae23c155b",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "a9d55260f765261eb9b84e106f665e00b867287a761990d7135963ee0a7d59dca5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04",
            true,
        ),
        (
            "39a591f5321bbe07fd5a23dc2f39d025d74526615746727ceefd6e82ae65c06f",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "a9d55260f765261eb9b84e106f665e00b867287a761990d7135963ee0a7d59dca5bb704786be79fc476f91d3f3f89b03984d8068dcf1bb7dfc6637b45450ac04",
            true,
        ),
    ];
    let answers: Vec<bool> = cases
        .iter()
        .map(|(message, key, signature, _)| {
            accepted(&Vector {
                key: PublicKey(from_hex(key).expect("32 bytes")),
                signature: Signature(from_hex(signature).expect("64 bytes")),
                message: bytes(message),
            })
        })
        .collect();
    let expected: Vec<bool> = cases.iter().map(|case| case.3).collect();
    assert_eq!(answers, expected);
}

#[test]
fn every_bad_signature_of_a_large_batch_is_found() {
    let mut vectors: Vec<Vector> = (0..1_000u32)
        .map(|i| {
            let secret = SecretKey::from_seed([(i % 50) as u8; 32]);
            let message = i.to_le_bytes().to_vec();
            Vector { key: secret.public(), signature: secret.sign(&message), message }
        })
        .collect();
    for bad in [0, 255, 256, 700, 999] {
        vectors[bad].message.push(0);
    }
    let invalid: Vec<usize> =
        verify_all(&vectors).iter().enumerate().filter(|(_, valid)| !**valid).map(|(i, _)| i).collect();
    assert_eq!(invalid, [0, 255, 256, 700, 999]);
}
