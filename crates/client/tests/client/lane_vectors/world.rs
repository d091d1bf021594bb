//! The network of the vectors: four members, their keys in three epochs, and what each of them signs.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use payments::*;
use primitives::{Address, AssetId, Digest, PublicKey, SecretKey, Signature};

pub const NETWORK: Digest = Digest([0x5a; 32]);
pub const MEMBERS: usize = 4;
/// Asset 0 has no fee, asset 7 has one.
pub const FREE: AssetId = AssetId(0);
pub const TAXED: AssetId = AssetId(7);
/// The epoch of trees, in which members have different numbers of shards and the last one has none.
pub const TREES: HomeEpoch = 4;
/// The epoch with BLS keys and a group key.
pub const GROUP: HomeEpoch = 5;
/// The epoch with BLS keys of two shards each, and so without a group key.
pub const SHARDS: HomeEpoch = 6;

pub fn secret(kind: u8, epoch: HomeEpoch, member: u8, shard: u8) -> SecretKey {
    let mut seed = [0x11; 32];
    seed[..4].copy_from_slice(&[kind, epoch as u8, member, shard]);
    SecretKey::from_seed(seed)
}

pub fn owner(number: u8) -> SecretKey {
    secret(1, 0, number, 0)
}

pub fn registrar(member: u8) -> SecretKey {
    secret(2, 0, member, 0)
}

pub fn shard_key(epoch: HomeEpoch, member: u8, shard: u8) -> SecretKey {
    secret(3, epoch, member, shard)
}

pub fn bls_key(epoch: HomeEpoch, member: u8, shard: u8) -> BlsSecretKey {
    BlsSecretKey::of_shard(&shard_key(epoch, member, shard))
}

pub fn rules() -> LaneRules {
    let assets = BTreeMap::from([(TAXED, AssetRule { least_units: 10, fee: 3 })]);
    LaneRules { network: NETWORK, assets, other: AssetRule { least_units: 1, fee: 0 } }
}

fn shards(epoch: HomeEpoch, member: u8) -> u8 {
    match epoch {
        TREES => [1, 2, 3, 0][usize::from(member)],
        SHARDS => 2,
        _ => 1,
    }
}

/// A member's registration for an epoch, with the proofs of its keys.
pub fn registration(epoch: HomeEpoch, member: u8) -> Option<(LaneRegistration, Vec<Signature>)> {
    let count = shards(epoch, member);
    let keys: Vec<SecretKey> = (0..count).map(|shard| shard_key(epoch, member, shard)).collect();
    let bls: Vec<BlsSecretKey> = match epoch {
        TREES => Vec::new(),
        _ => (0..count).map(|shard| bls_key(epoch, member, shard)).collect(),
    };
    (count > 0).then(|| LaneRegistration::make_with_bls(&NETWORK, epoch, member, &keys, &bls, &registrar(member)))
}

/// The committee of an epoch as its registrations make it, without a group key.
pub fn plain(epoch: HomeEpoch) -> LaneCommittee {
    static MADE: LazyLock<BTreeMap<HomeEpoch, LaneCommittee>> =
        LazyLock::new(|| [TREES, GROUP, SHARDS].map(|epoch| (epoch, seat(epoch))).into());
    MADE[&epoch].clone()
}

fn seat(epoch: HomeEpoch) -> LaneCommittee {
    let mut committee = LaneCommittee::unregistered(NETWORK, epoch, MEMBERS);
    for (registration, proofs) in (0..MEMBERS as u8).filter_map(|member| registration(epoch, member)) {
        let registrar = registrar(registration.member).public();
        assert_eq!(registration.verify(&NETWORK, &registrar), Ok(()));
        assert_eq!(registration.check_possession(&NETWORK, &registrar, &proofs), Ok(()));
        committee.seat(&registration).expect("a member of this epoch");
    }
    committee
}

/// The key generation: the last dealer deals a wrong share to member 0, which complains.
pub fn generation() -> (KeyGeneration, Complaint) {
    static MADE: LazyLock<(KeyGeneration, Complaint)> = LazyLock::new(generate);
    MADE.clone()
}

fn generate() -> (KeyGeneration, Complaint) {
    let mut board = KeyGeneration::new(DkgTerms::of(&plain(GROUP)).expect("one shard each"));
    for dealer in 0..MEMBERS as u8 {
        let seed = [dealer; 32];
        let dealing = match dealer {
            3 => false_dealing(board.terms(), dealer, &seed, 0),
            _ => dealing(board.terms(), dealer, &seed),
        };
        board.deal(dealing).expect("its proofs hold");
    }
    board.close_dealing();
    let complaint = board.complaint(0, &bls_key(GROUP, 0, 0), 3).expect("a wrong share");
    board.complain(&complaint).expect("proved");
    board.finish().expect("a group key");
    (board, complaint)
}

/// A board as nodes send it.
pub fn board_bytes(dealings: &[(Dealing, Signature)], out: &[u8], struck: &[u8]) -> Vec<u8> {
    let mut bytes = vec![dealings.len() as u8];
    for (dealing, signature) in dealings {
        bytes.extend(dealing.encode());
        bytes.extend(signature.0);
    }
    for members in [out, struck] {
        bytes.push(members.len() as u8);
        bytes.extend(members);
    }
    bytes
}

/// The dealings of the board, each with its dealer's signature.
pub fn dealings() -> Vec<(Dealing, Signature)> {
    let (board, _) = generation();
    let signed = |dealer: u8| {
        let dealing = board.dealing_of(dealer).expect("all have dealt").clone();
        let signature = dealing.sign(&NETWORK, GROUP, &shard_key(GROUP, dealer, 0));
        (dealing, signature)
    };
    (0..MEMBERS as u8).map(signed).collect()
}

pub fn committee(epoch: HomeEpoch) -> LaneCommittee {
    static GROUPED: LazyLock<LaneCommittee> =
        LazyLock::new(|| with_told_board(plain(GROUP), &board_bytes(&dealings(), &[3], &[])).expect("a group key"));
    if epoch == GROUP { GROUPED.clone() } else { plain(epoch) }
}

pub fn output(to: Recipient, asset: AssetId, amount: u64) -> Output {
    Output { to, asset, amount }
}

pub fn to(number: u8) -> Recipient {
    Recipient::Key(owner(number).public())
}

pub fn account(byte: u8) -> Recipient {
    Recipient::Account(Address([byte; 20]))
}

/// An output of the ledger that this owner holds.
pub fn deposit(home: HomeEpoch, number: u8, sequence: u64, asset: AssetId, amount: u64) -> Holding {
    let id = OutputId::of_deposit(&NETWORK, home, &Address([number; 20]), sequence);
    Holding { id, output: output(to(number), asset, amount), proof: OutputProof::Ledger }
}

pub fn pay(number: u8, home: HomeEpoch, into: HomeEpoch, spent: &[Holding], outputs: Vec<Output>) -> SignedPayment {
    build_payment(&rules(), &owner(number), home, into, spent.to_vec(), outputs).expect("a correct payment")
}

/// An output of a payment as its receipt proves it.
pub fn received(payment: &SignedPayment, index: u8, certificate: PaymentCertificate) -> FastReceipt {
    let view = PaymentView::parse(&payment.payment).expect("sound");
    FastReceipt::of(&view, index, certificate).expect("it has this output")
}

/// What members sign about.
#[derive(Clone, Copy)]
pub struct Subject {
    pub kind: StatementKind,
    pub epoch: HomeEpoch,
    pub owner: PublicKey,
    pub digest: Digest,
}

impl Subject {
    pub fn of(kind: StatementKind, payment: &SignedPayment) -> Subject {
        let view = PaymentView::parse(&payment.payment).expect("sound");
        Subject { kind, epoch: view.home(), owner: view.owner(), digest: payment.digest }
    }

    pub fn claim(&self) -> Claim<'_> {
        Claim { kind: self.kind, owner: &self.owner, digest: &self.digest }
    }

    /// A member's answer, whose tree has this many leaves and the subject at `index`.
    pub fn answer(&self, member: u8, size: u8, index: u8) -> LaneAnswer {
        let other = |leaf: u8| Digest([leaf; 32]);
        let leaves: Vec<Digest> = (0..size).map(|leaf| if leaf == index { self.digest } else { other(leaf) }).collect();
        let (_, mut paths) = signing_tree(&leaves);
        let mut answer = LaneAnswer {
            validator: member,
            size: size.into(),
            index: index.into(),
            position: 1_000 + u64::from(member),
            signature: Signature([0; 64]),
            path: paths.swap_remove(usize::from(index)),
        };
        let header = answer.header(&plain(self.epoch), &self.claim()).expect("a registered member");
        answer.signature = shard_key(self.epoch, member, header.shard as u8).sign(&header.bytes());
        answer
    }

    pub fn answers(&self, members: &[u8]) -> PaymentCertificate {
        PaymentCertificate::Answers(members.iter().map(|member| self.answer(*member, 1, 0)).collect())
    }

    /// Answers whose trees have 7, 8 and 9 leaves.
    pub fn trees(&self, members: &[u8]) -> PaymentCertificate {
        let of = |(at, member): (u8, &u8)| self.answer(*member, 7 + at, 6);
        PaymentCertificate::Answers((0..).zip(members).map(of).collect())
    }

    pub fn bls(&self, member: u8) -> BlsSignature {
        let shard = plain(self.epoch).shard_of(member, &self.owner).expect("a registered member");
        bls_key(self.epoch, member, shard as u8).sign(&NETWORK, self.epoch, self.kind, &self.digest)
    }

    pub fn aggregate(&self, members: &[u8]) -> BlsAggregate {
        let parts: Vec<_> = members.iter().map(|member| (*member, self.bls(*member))).collect();
        BlsAggregate::of(&plain(self.epoch), &parts).expect("signatures of distinct members")
    }

    pub fn share(&self, member: u8) -> BlsSignature {
        let (board, _) = generation();
        let share = board.share(member, &bls_key(GROUP, member, 0)).expect("a share");
        share.sign(&NETWORK, GROUP, self.kind, &self.digest)
    }

    pub fn threshold(&self, members: &[u8]) -> PaymentCertificate {
        let parts: Vec<_> = members.iter().map(|member| (*member, self.share(*member))).collect();
        let (committee, claim) = (committee(GROUP), self.claim());
        let group = committee.group().expect("a group key");
        PaymentCertificate::Threshold(group.combine(&committee.home(), &claim, &parts).expect("a quorum"))
    }

    /// The place of the subject in a broker's tree of five payments.
    pub fn place(&self) -> (SharedPlace, Digest) {
        let mut leaves: Vec<Digest> = (0..5).map(|leaf| Digest([0x40 + leaf; 32])).collect();
        leaves[4] = self.digest;
        let (root, mut paths) = signing_tree(&leaves);
        (SharedPlace { size: 5, index: 4, path: paths.swap_remove(4) }, root)
    }

    pub fn batch_answer(&self, member: u8, excluded: &[u16]) -> BatchAnswer {
        let (place, root) = self.place();
        let shard = plain(self.epoch).shard_of(member, &self.owner).expect("a registered member");
        let header = RootHeader {
            network: NETWORK,
            epoch: self.epoch,
            validator: member,
            shard,
            kind: StatementKind::SharedConfirmation,
            size: place.size,
            position: 2_000,
            root: shared_digest(&root, place.size, excluded),
        };
        let signature = SharedSignature::Lane(shard_key(self.epoch, member, shard as u8).sign(&header.bytes()));
        BatchAnswer { validator: member, position: 2_000, excluded: excluded.to_vec(), signature }
    }

    pub fn shared(&self, parts: &[(u8, &[u16])]) -> PaymentCertificate {
        let answers = parts.iter().map(|(member, excluded)| self.batch_answer(*member, excluded)).collect();
        PaymentCertificate::Shared(Box::new(SharedCertificate::Answers(self.place().0, answers)))
    }

    pub fn shared_aggregate(&self, members: &[u8], excluded: &[u16]) -> PaymentCertificate {
        let (place, root) = self.place();
        let digest = shared_digest(&root, place.size, excluded);
        let signed = Subject { kind: StatementKind::SharedConfirmation, digest, ..*self };
        let shared = SharedCertificate::Aggregate(place, excluded.to_vec(), signed.aggregate(members));
        PaymentCertificate::Shared(Box::new(shared))
    }
}
