//! Validators with disks that crash, and helpers to pay.
#![allow(dead_code, reason = "each test binary uses a part")]

pub mod ledger;

use std::collections::BTreeMap;

use kernel::LogDisk;
use payments::*;
use primitives::{Amount, AssetId, Digest, PublicKey, SecretKey};

pub const NETWORK: Digest = Digest([9; 32]);
pub const ASSET: AssetId = AssetId(0);

/// The answers of a certificate.
pub fn list(certificate: &mut PaymentCertificate) -> &mut Vec<LaneAnswer> {
    match certificate {
        PaymentCertificate::Answers(answers) => answers,
        _ => panic!("another form of certificate"),
    }
}

pub fn bls_key(epoch: HomeEpoch, validator: usize) -> BlsSecretKey {
    BlsSecretKey::from_seed(validator_key(epoch, validator, 77).to_seed())
}

/// A committee of one shard each, with BLS keys.
pub fn bls_committee(epoch: HomeEpoch, n: usize) -> LaneCommittee {
    let account = primitives::Address([3; 20]);
    let register = |validator| {
        let key = bls_key(epoch, validator);
        vec![(key.public(), account, key.prove_possession(&NETWORK, &account))]
    };
    committee_of(NETWORK, epoch, n, 1).with_bls((0..n).map(register).collect()).expect("proofs hold")
}

/// A signature of a Byzantine validator on anything.
pub fn forge(
    committee: &LaneCommittee,
    validator: usize,
    kind: StatementKind,
    owner: &PublicKey,
    digest: Digest,
) -> LaneAnswer {
    let shard = committee.shard_of(validator as u8, owner).expect("a member");
    let mut tree = LaneAnswer {
        validator: validator as u8,
        size: 1,
        index: 0,
        position: 1,
        signature: primitives::Signature([0; 64]),
        path: vec![],
    };
    let claim = Claim { kind, owner, digest: &digest };
    let header = tree.header(committee, &claim).expect("a tree of one leaf");
    tree.signature = validator_key(committee.epoch(), validator, shard.into()).sign(&header.bytes());
    tree
}

pub fn rules() -> LaneRules {
    LaneRules { network: NETWORK, assets: BTreeMap::new(), other: AssetRule { least_units: 1, fee: 0 } }
}

pub fn secret(kind: u8, number: u64) -> SecretKey {
    let mut seed = [kind; 32];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    SecretKey::from_seed(seed)
}

pub fn owner(number: u64) -> SecretKey {
    secret(1, number)
}

pub fn validator_key(epoch: HomeEpoch, validator: usize, shard: usize) -> SecretKey {
    secret(2, epoch * 1_000_000 + validator as u64 * 1_000 + shard as u64)
}

pub fn committee_of(network: Digest, epoch: HomeEpoch, n: usize, shards: usize) -> LaneCommittee {
    let keys = |validator| (0..shards).map(|shard| validator_key(epoch, validator, shard).public()).collect();
    LaneCommittee::new(network, epoch, (0..n).map(keys).collect())
}

pub fn committee(n: usize) -> LaneCommittee {
    committee_of(NETWORK, 0, n, 1)
}

pub fn settings(committee: &LaneCommittee, validator: usize, leaves: usize) -> LaneSettings {
    LaneSettings {
        rules: rules(),
        committee: committee.clone(),
        previous: None,
        validator: validator as u8,
        shard: 0,
        now: committee.epoch(),
        leaves,
        entries_max: 1 << 20,
        trees_waiting_max: 64,
        checks_per_peer: 100_000,
        checks_per_tick: 1_000_000,
        roots_per_validator: 1_024,
    }
}

pub fn fresh_log(settings: &LaneSettings) -> LogDisk {
    let owner = LogOwner {
        network: settings.rules.network,
        home: settings.committee.epoch(),
        validator: settings.validator,
        shard: settings.shard,
    };
    let bytes = new_log(&owner, [3; 32]);
    LogDisk::holding(bytes)
}

/// One shard with its disk.
pub struct Node {
    pub settings: LaneSettings,
    pub disk: LogDisk,
    pub validator: LaneValidator,
    pub backed: Vec<Holding>,
    starts: u8,
}

pub type Answers = Vec<(LanePeer, StatementKind, Digest, LaneAnswer)>;

impl Node {
    pub fn new(settings: LaneSettings, backed: &[Holding]) -> Node {
        let disk = fresh_log(&settings);
        Node::open(settings, disk, backed.to_vec(), 0)
    }

    fn open(settings: LaneSettings, mut disk: LogDisk, backed: Vec<Holding>, starts: u8) -> Node {
        let key = validator_key(settings.committee.epoch(), settings.validator.into(), settings.shard.into());
        let (mut validator, intact) = LaneValidator::open(settings.clone(), key, [starts; 32], Some(&disk.bytes));
        assert_eq!(intact.is_none(), validator.muted().is_some());
        if let Some(intact) = intact {
            disk.bytes.truncate(intact as usize);
            disk.durable = intact as usize;
        }
        for holding in &backed {
            validator.step(&disk.bytes, LaneInput::Backed(holding.id, holding.output));
        }
        Node { settings, disk, validator, backed, starts: starts + 1 }
    }

    /// The same node under the BLS scheme.
    pub fn with_bls(mut self) -> Node {
        let key = bls_key(self.settings.committee.epoch(), self.settings.validator.into());
        self.validator = self.validator.with_bls(key);
        self
    }

    /// A step whose appends reach the page cache, not the disk.
    pub fn step(&mut self, input: LaneInput<'_>) -> Vec<LaneEffect> {
        let effects = self.validator.step(&self.disk.bytes, input);
        for effect in &effects {
            if let LaneEffect::Append(bytes) = effect {
                self.disk.bytes.extend(bytes);
            }
        }
        effects
    }

    pub fn request(&mut self, bytes: &[u8]) -> Vec<LaneEffect> {
        self.step(LaneInput::Request { peer: 7, bytes })
    }

    pub fn sync(&mut self) -> Vec<LaneEffect> {
        self.disk.durable = self.disk.bytes.len();
        self.step(LaneInput::Synced(self.disk.durable as u64))
    }

    /// A request, a tick and a sync: returns the answer or the refusal.
    pub fn ask(&mut self, bytes: &[u8]) -> Result<LaneAnswer, LaneRefusal> {
        let mut effects = self.request(bytes);
        effects.extend(self.step(LaneInput::Tick));
        effects.extend(self.sync());
        if let Some(refusal) = refusals(&effects).pop() {
            return Err(refusal);
        }
        Ok(answers(effects).pop().expect("an answer or a refusal").3)
    }

    /// A power cut that keeps `kept` bytes of what was not durable, the rest replaced by `garbage`.
    pub fn crash(self, kept: usize, garbage: &[u8]) -> Node {
        let mut disk = self.disk;
        disk.bytes.truncate(disk.durable + kept);
        disk.bytes.extend(garbage);
        disk.durable = disk.bytes.len();
        Node::open(self.settings, disk, self.backed, self.starts)
    }
}

pub fn answers(effects: Vec<LaneEffect>) -> Answers {
    let answer = |effect| match effect {
        LaneEffect::Answer { peer, kind, digest, answer } => Some((peer, kind, digest, answer)),
        _ => None,
    };
    effects.into_iter().filter_map(answer).collect()
}

pub fn refusals(effects: &[LaneEffect]) -> Vec<LaneRefusal> {
    let refusal = |effect: &LaneEffect| match effect {
        LaneEffect::Refuse { refusal, .. } => Some(refusal.clone()),
        _ => None,
    };
    effects.iter().filter_map(refusal).collect()
}

pub fn output(to: PublicKey, amount: Amount) -> Output {
    Output { to: Recipient::Key(to), asset: ASSET, amount }
}

/// The `index`-th genesis output, of `number`'s key.
pub fn genesis(index: u32, number: u64, amount: Amount) -> Holding {
    let id = OutputId::of_genesis(&NETWORK, 0, index);
    Holding { id, output: output(owner(number).public(), amount), proof: OutputProof::Ledger }
}

pub fn pay(from: u64, holdings: &[Holding], outputs: Vec<Output>) -> SignedPayment {
    build_payment(&rules(), &owner(from), 0, 0, holdings.to_vec(), outputs).expect("a correct payment")
}

pub fn nodes(n: usize, leaves: usize, backed: &[Holding]) -> Vec<Node> {
    let committee = committee(n);
    (0..n).map(|validator| Node::new(settings(&committee, validator, leaves), backed)).collect()
}

/// Sends the request `bytes` to every node and makes a certificate of the answers.
pub fn certify(nodes: &mut [Node], kind: StatementKind, payment: &SignedPayment, bytes: &[u8]) -> PaymentCertificate {
    let committee = nodes[0].settings.committee.clone();
    let view = PaymentView::parse(&payment.payment).expect("well-formed");
    let mut collector = AnswerCollector::new(kind, view.summary());
    let mut roots = RootCache::new(16);
    let mut certificate = None;
    for node in nodes {
        let answer = node.ask(bytes).expect("a correct payment is answered");
        certificate = collector.add(&committee, &mut roots, answer).expect("a correct answer").or(certificate);
    }
    certificate.expect("all validators are a quorum")
}

pub fn receipts(payment: &SignedPayment, certificate: &PaymentCertificate) -> Vec<FastReceipt> {
    let view = PaymentView::parse(&payment.payment).expect("well-formed");
    (0..16).map_while(|index| FastReceipt::of(&view, index, certificate.clone())).collect()
}

pub fn summary(payment: &SignedPayment) -> PaymentSummary {
    PaymentView::parse(&payment.payment).unwrap().summary()
}

pub fn bls_nodes(n: usize, backed: &[Holding]) -> Vec<Node> {
    let committee = bls_committee(0, n);
    (0..n).map(|validator| Node::new(settings(&committee, validator, 4), backed).with_bls()).collect()
}

/// A request, a tick and a sync: returns all effects.
pub fn effects(node: &mut Node, bytes: &[u8]) -> Vec<LaneEffect> {
    let mut effects = node.request(bytes);
    effects.extend(node.step(LaneInput::Tick));
    effects.extend(node.sync());
    effects
}

pub fn bls_certify(
    nodes: &mut [Node],
    kind: StatementKind,
    payment: &SignedPayment,
    bytes: &[u8],
) -> PaymentCertificate {
    certify_under(AnswerScheme::Bls, nodes, kind, payment, bytes).expect("q of n − 1 correct answers are enough")
}

pub fn certify_under(
    scheme: AnswerScheme,
    nodes: &mut [Node],
    kind: StatementKind,
    payment: &SignedPayment,
    bytes: &[u8],
) -> Option<PaymentCertificate> {
    let committee = nodes[0].settings.committee.clone();
    let mut collector = match scheme {
        AnswerScheme::Share => BlsCollector::of_shares(kind, summary(payment)),
        _ => BlsCollector::new(kind, summary(payment)),
    };
    // A Byzantine validator's signature is dropped, and the others are sufficient.
    let wrong = bls_key(9, 9).sign(&NETWORK, 0, kind, &payment.digest);
    assert_eq!(collector.add(&committee, 0, wrong), None);
    for (validator, node) in (0..).zip(nodes).skip(1) {
        for effect in effects(node, &scheme.ask(bytes)) {
            if let LaneEffect::BlsAnswer { signature, digest, .. } = effect {
                assert_eq!(digest, payment.digest);
                if let Some(certificate) = collector.add(&committee, validator, signature) {
                    return Some(certificate);
                }
            }
        }
    }
    None
}
