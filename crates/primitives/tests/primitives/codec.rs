//! One encoding per value: golden digests fix the wire format, and anything that decodes encodes back to the same
//! bytes.

use primitives::{
    Address, AssetId, Body, ClientId, Committed, Contradiction, Digest, Evidence, KeyPolicy, KeySignatures, KeySigner,
    KeysChange, Life, Malformed, OfferPlace, OfferReplacement, Operation, Price, Proposed, PublicKey, RecoverKeys,
    Reference, ReferenceKind, ReferenceRule, RoundProposed, RoundValue, RoundVoted, SecretKey, SessionsFate, SetKeys,
    Signature, Stake, SubBlock, Superblock, Transaction, Upgrade, VoteKind, WalletKey, WalletSigner,
};
use proptest::prelude::*;

fn operations() -> Vec<Operation> {
    let key = SecretKey::from_seed([7; 32]).public();
    let (sell, buy, limit) = (AssetId(1), AssetId(2), "0.91".parse::<Price>().expect("a price"));
    vec![
        Operation::CreateAccount { account: key.address(), key },
        Operation::offer(sell, buy, 100, limit),
        Operation::cancel(sell, buy, limit, 5),
        Operation::Replace(Box::new(OfferReplacement {
            old: OfferPlace { sell, buy, limit, offer: 5 },
            remains: 90,
            amount: 100,
            limit,
            life: Life::Until(60_000),
            client: ClientId([3; 16]),
        })),
        Operation::Pay { to: Address([9; 20]), asset: sell, amount: 12 },
        Operation::Issue { to: Address([9; 20]), asset: sell, amount: 1_000 },
        Operation::Burn { asset: buy, amount: 3 },
        Operation::Stake(Box::new(stake(50, "a.example:9100"))),
        Operation::Unstake { units: 20 },
        Operation::Accuse(Box::new(evidence(Contradiction::Proposals([1, 2].map(|payload| Proposed {
            payload: Digest([payload; 32]),
            length: 9,
            signature: Signature([payload; 64]),
        }))))),
        Operation::Accuse(Box::new(evidence(Contradiction::Commits([1, 2].map(|root| Committed {
            superblock: Digest([3; 32]),
            root: Digest([root; 32]),
            signature: Signature([root; 64]),
        }))))),
        Operation::Accuse(Box::new(evidence(Contradiction::RoundVotes {
            round: 3,
            kind: VoteKind::Precommit,
            votes: [None, Some(value(4))].map(|value| RoundVoted { value, signature: Signature([1; 64]) }),
        }))),
        Operation::Accuse(Box::new(evidence(Contradiction::RoundProposals {
            round: 3,
            proposals: [None, Some(2)].map(|valid_round| RoundProposed {
                value: value(4),
                valid_round,
                signature: Signature([2; 64]),
            }),
        }))),
        Operation::Withdraw { to: PublicKey([6; 32]), asset: buy, amount: 3 },
        Operation::Lane(vec![2, 0, 255].into()),
        Operation::Approve { upgrade: Upgrade { rules: 12, manifest: Digest([7; 32]), notice: 604_800 }, at: 9 },
        Operation::Unapprove { rules: 12, at: 9 },
        referenced(ReferenceKind::Text, b"invoice 7"),
        Operation::IssueReferenced {
            to: Address([9; 20]),
            asset: sell,
            amount: 1_000,
            reference: Reference { kind: ReferenceKind::Uuid, bytes: [7; 16][..].into() },
        },
    ]
}

fn referenced(kind: ReferenceKind, bytes: &[u8]) -> Operation {
    let reference = Reference { kind, bytes: bytes.into() };
    Operation::PayReferenced { to: Address([9; 20]), asset: AssetId(1), amount: 12, reference }
}

fn policy() -> KeyPolicy {
    KeyPolicy {
        keys: [KeySigner { key: PublicKey([4; 32]), weight: 2 }].into(),
        wallets: [WalletSigner { wallet: Address([5; 20]), weight: 1 }].into(),
        moves: 2,
        governs: 3,
        guardian_keys: [PublicKey([6; 32])].into(),
        guardian_wallets: [Address([7; 20])].into(),
        guardians: 2,
        delay: 600,
    }
}

/// Signatures of both kinds, which nobody has made.
fn signatures() -> KeySignatures {
    let of_wallet = WalletKey::from_bytes([1; 32]).expect("in range").sign(&[3; 32]);
    KeySignatures::of_key(PublicKey([4; 32]), Signature([9; 64]))
        .with(&KeySignatures::of_wallet(Address([5; 20]), of_wallet))
}

/// The operations of rules 14.
fn of_policies() -> Vec<Operation> {
    let account = Address([8; 20]);
    let change = KeysChange { account, last: Digest([1; 32]), policy: policy(), sessions: SessionsFate::Keep };
    let set = SetKeys { change: change.clone(), first: PublicKey([2; 32]), signatures: signatures() };
    vec![
        Operation::SetKeys(Box::new(set)),
        Operation::RecoverKeys(Box::new(RecoverKeys { change, signatures: signatures() })),
        Operation::CompleteKeys { account },
        Operation::SetReceiving { references: ReferenceRule::Required },
    ]
}

/// A request of an account with a policy.
fn request() -> Transaction {
    Transaction::by_policy(signed(operations().remove(4)).body, Digest([5; 32]), signatures())
}

fn value(byte: u8) -> RoundValue {
    RoundValue { slot: 1, digest: Digest([byte; 32]) }
}

fn stake(units: u64, address: &str) -> Stake {
    let account = SecretKey::from_seed([1; 32]).public().address();
    Stake::new(units, address.into(), 31_337, &account, &SecretKey::from_seed([8; 32]))
}

fn evidence(contradiction: Contradiction) -> Evidence {
    Evidence { epoch: 4, member: 2, height: 77, contradiction }
}

const NETWORK: Digest = Digest([2; 32]);

fn signed(operation: Operation) -> Transaction {
    let key = SecretKey::from_seed([1; 32]);
    Body { chain: 31_337, account: key.public().address(), sequence: 42, until: 50_000, operation }.sign(&NETWORK, &key)
}

fn golden<T: borsh::BorshSerialize>(value: &T) -> String {
    let bytes = borsh::to_vec(value).expect("in memory");
    format!("{} {}", bytes.len(), &Digest::of("walras golden fixture v1", &bytes).to_string()[2..18])
}

#[test]
fn the_wire_format_stands_still() {
    let mut lines: Vec<String> =
        operations().into_iter().map(|op| format!("{} {}", op.name(), golden(&signed(op)))).collect();
    let present = Operation::Present { epoch: 7 };
    lines.push(format!("{} {}", present.name(), golden(&signed(present))));
    lines.extend(of_policies().into_iter().map(|op| format!("{} {}", op.name(), golden(&signed(op)))));
    lines.push(format!("request of a policy {}", golden(&request())));
    lines.push(format!("request of a policy id {}", request().id()));
    let block = Superblock {
        height: 3,
        parent: Digest([1; 32]),
        time_ms: 1_700_000_000_000,
        parent_root: Digest([2; 32]),
        sub_blocks: vec![SubBlock {
            proposer: 0,
            time_ms: 0,
            native: operations().into_iter().map(signed).collect(),
            ethereum: vec![vec![2, 0xc0], vec![0xc1, 5]],
            forged: Vec::new(),
            senders: vec![Some(Address([3; 20])), None],
        }],
        ..Superblock::default()
    };
    let wallet = WalletKey::from_bytes([1; 32]).expect("in range");
    let body = signed(operations().remove(1)).body;
    let typed = Body { account: wallet.address(), ..body }.sign_typed(Digest([9; 32]), &wallet);
    lines.push(format!("typed data {}", golden(&typed)));
    lines.push(format!("typed data id {}", typed.id()));
    lines.push(format!("superblock {}", golden(&block)));
    lines.push(format!("address {}", SecretKey::from_seed([1; 32]).public().address()));
    lines.push(format!("transaction id {}", signed(operations().remove(1)).id()));
    assert_eq!(lines.join("\n"), include_str!("golden/codec.txt").trim_end());
}

#[test]
fn what_no_ledger_could_accept() {
    let (sell, buy, limit) = (AssetId(1), AssetId(2), Price::ONE);
    let me = SecretKey::from_seed([1; 32]).public().address();
    let place = |offer| OfferPlace { sell, buy, limit, offer };
    let cases = [
        (Operation::Burn { asset: sell, amount: 0 }, Err(Malformed::ZeroAmount)),
        (Operation::offer(sell, buy, 1 << 63, limit), Err(Malformed::AmountTooLarge)),
        (Operation::offer(sell, sell, 1, limit), Err(Malformed::SameAsset)),
        (Operation::Cancel([].into()), Err(Malformed::CancelList)),
        (Operation::Cancel((0..32).map(place).collect()), Ok(())),
        (Operation::Cancel((0..33).map(place).collect()), Err(Malformed::CancelList)),
        (Operation::Cancel([place(1), place(2), place(1)].into()), Err(Malformed::CancelList)),
        (Operation::Pay { to: me, asset: sell, amount: 1 }, Err(Malformed::SelfPayment)),
        (
            Operation::CreateAccount { account: Address([3; 20]), key: PublicKey([0; 32]) },
            Err(Malformed::AddressNotOfKey),
        ),
        (Operation::CreateAccount { account: me, key: PublicKey([0; 32]) }, Ok(())),
        (Operation::Unstake { units: 0 }, Err(Malformed::ZeroAmount)),
        (referenced(ReferenceKind::Text, &[b'~'; 35]), Ok(())),
        (referenced(ReferenceKind::Text, &[b' '; 36]), Err(Malformed::Reference)),
        (referenced(ReferenceKind::Text, b""), Err(Malformed::Reference)),
        (referenced(ReferenceKind::Text, "ü".as_bytes()), Err(Malformed::Reference)),
        (referenced(ReferenceKind::Text, b"a\n"), Err(Malformed::Reference)),
        (referenced(ReferenceKind::Uuid, &[0; 16]), Ok(())),
        (referenced(ReferenceKind::Uuid, &[0; 36]), Err(Malformed::Reference)),
        (referenced(ReferenceKind::Message, &[0; 31]), Err(Malformed::Reference)),
        (referenced(ReferenceKind::Number, &[0; 8]), Ok(())),
        (referenced(ReferenceKind::Number, &[0; 7]), Err(Malformed::Reference)),
        (Operation::Unstake { units: 1 << 63 }, Err(Malformed::AmountTooLarge)),
        (Operation::Stake(Box::new(stake(1 << 63, "a:1"))), Err(Malformed::AmountTooLarge)),
        (Operation::Stake(Box::new(stake(1, "a"))), Err(Malformed::NetworkAddress)),
        (Operation::Stake(Box::new(stake(0, "a:1"))), Ok(())),
        (Operation::offer(sell, buy, (1 << 63) - 1, limit), Ok(())),
    ];
    for (operation, expected) in cases {
        assert_eq!(signed(operation.clone()).check(), expected, "{operation:?}");
    }
}

#[test]
fn the_signature_covers_every_field() {
    let original = signed(operations().remove(1));
    let mut bodies = vec![original.body.clone(); 4];
    bodies[0].chain += 1;
    bodies[1].account.0[0] ^= 1;
    bodies[2].sequence += 1;
    bodies[3].operation = operations().remove(2);
    for body in bodies {
        let changed = Transaction { body, ..original.clone() };
        assert!(!changed.is_signed(&NETWORK));
        assert_ne!(changed.id(), original.id());
    }
    assert!(original.is_signed(&NETWORK) && !original.is_signed(&Digest([3; 32])));
}

proptest! {
    #[test]
    fn whatever_decodes_encodes_back(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(transaction) = borsh::from_slice::<Transaction>(&bytes) {
            prop_assert_eq!(borsh::to_vec(&transaction).unwrap(), bytes);
        }
    }

    #[test]
    fn mutated_transactions_decode_canonically_or_not_at_all(
        which in any::<prop::sample::Index>(), position in any::<prop::sample::Index>(), flip in 1..=255u8,
            cut in any::<prop::sample::Index>()
    ) {
        let all = operations().into_iter().chain(of_policies()).map(signed).chain([request()]);
        let bytes = borsh::to_vec(which.get(&all.collect::<Vec<_>>())).unwrap();
        prop_assert!(borsh::from_slice::<Transaction>(&bytes[..cut.index(bytes.len())]).is_err());
        let mut longer = bytes.clone();
        longer.push(0);
        prop_assert!(borsh::from_slice::<Transaction>(&longer).is_err());
        let mut mutated = bytes.clone();
        let position = position.index(mutated.len());
        mutated[position] ^= flip;
        if let Ok(transaction) = borsh::from_slice::<Transaction>(&mutated) {
            prop_assert_eq!(borsh::to_vec(&transaction).unwrap(), mutated);
            prop_assert!(!transaction.is_signed(&NETWORK));
        }
    }

    #[test]
    fn a_large_count_allocates_little(count in any::<u32>()) {
        // A superblock that announces `count` sub-blocks but holds none must fail without allocating memory for them.
        let mut bytes = vec![0; 8 + 32 + 8 + 32];
        bytes.extend_from_slice(&count.to_le_bytes());
        prop_assert_eq!(borsh::from_slice::<Superblock>(&bytes).is_ok(), count == 0);
    }
}

#[test]
fn hexadecimal_reads_and_refuses() {
    let signature = Signature([0xab; 64]);
    assert_eq!(signature.to_string().parse::<Signature>(), Ok(signature));
    for bad in ["", "0x", "zz", "0xabc", &"a".repeat(126)] {
        assert!(bad.parse::<Signature>().is_err(), "{bad}");
    }
}
