//! A chain with a payment lane, its people, and a committee whose members sign anything.

use std::collections::BTreeMap;

use ledger::{
    Applied, Attached, Genesis, LaneAsset, LaneBls, LaneOutflow, LaneOutput, LaneTerms, Ledger, Listing, Outcome,
    Refusal, Restore, Roots, Signatures, Snapshot,
};
use payments::{
    BridgeOperation, Claim, ContestClaim, ContestedOutput, HomeEpoch, LaneAnswer, LaneCommittee, Output, OutputId,
    Payment, PaymentBody, PaymentCertificate, Recipient, SpentOutput, StatementKind,
};
use primitives::{
    Address, Amount, AssetId, Body, Digest, Fraction, Operation, PublicKey, SecretKey, Sequence, Signature, SubBlock,
    Superblock, Transaction,
};

pub const USD: AssetId = AssetId(0);
pub const EUR: AssetId = AssetId(1);
pub const PEOPLE: u8 = 6;
pub const START: Amount = 1_000_000;
pub const FEE: Amount = 2;
pub const HEIGHTS: u64 = 4;
pub const CASE_DEPOSIT: Amount = 50;

pub fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person; 32])
}

pub fn address(person: u8) -> Address {
    key(person).public().address()
}

pub fn shard_key(member: usize) -> SecretKey {
    SecretKey::from_seed([200 + member as u8; 32])
}

pub fn terms() -> LaneTerms {
    let asset = |asset| LaneAsset { asset, least_units: 10, fee: 0, outflow: None };
    LaneTerms {
        epoch_heights: HEIGHTS,
        halt_heights: 3,
        case_deposit: CASE_DEPOSIT,
        lapse_penalty: 100_000,
        members: (0..4).map(|member| vec![shard_key(member).public()]).collect(),
        registrars: Vec::new(),
        bls: LaneBls::None,
        accounts: Vec::new(),
        assets: vec![asset(USD), asset(EUR)],
        outputs: vec![],
    }
}

pub fn genesis(lane: Option<LaneTerms>) -> Genesis {
    let assets = ["USD", "EUR"].map(|symbol| Listing::new(symbol, 2, address(9))).to_vec();
    let balances = (1..=PEOPLE).flat_map(|person| [USD, EUR].map(|asset| (address(person), asset, START))).collect();
    Genesis { chain: 1, fee: FEE, mu: Fraction::power_of_two(10), assets, balances, lane, ..Genesis::default() }
}

/// A coin that an owner may spend in the lane.
#[derive(Clone, Copy, Debug)]
pub struct Coin {
    pub id: OutputId,
    pub home: HomeEpoch,
    pub owner: u8,
    pub asset: AssetId,
    pub amount: Amount,
}

pub struct World {
    pub ledger: Ledger,
    pub roots: Roots,
    pub sequences: BTreeMap<u8, Sequence>,
}

impl World {
    pub fn new(lane: LaneTerms) -> World {
        World::of(&genesis(Some(lane)))
    }

    pub fn of(genesis: &Genesis) -> World {
        let ledger = Ledger::new(genesis).expect("sound");
        let roots = Roots::of(&ledger);
        World { ledger, roots, sequences: BTreeMap::new() }
    }

    pub fn epoch(&self) -> HomeEpoch {
        self.ledger.lane().expect("the chain has a lane").bridge().clock().epoch()
    }

    pub fn network(&self) -> Digest {
        self.ledger.lane().expect("the chain has a lane").network()
    }

    pub fn balance(&self, person: u8, asset: AssetId) -> Amount {
        self.ledger.accounts().get(&address(person)).map_or(0, |account| account.balance(asset))
    }

    pub fn escrow(&self, asset: AssetId) -> u128 {
        self.ledger.lane().expect("the chain has a lane").held(asset)
    }

    pub fn sign(&mut self, person: u8, operation: Operation) -> Transaction {
        let sequence = self.sequences.entry(person).or_default();
        *sequence += 1;
        Body { chain: 1, account: address(person), sequence: *sequence, until: 50_000, operation }
            .sign(&self.ledger.network(), &key(person))
    }

    /// Signs what is only asked for: the next transaction has the same number.
    pub fn sign_only(&self, person: u8, operation: Operation) -> Transaction {
        let sequence = self.next_sequence(person);
        Body { chain: 1, account: address(person), sequence, until: 50_000, operation }
            .sign(&self.ledger.network(), &key(person))
    }

    /// Runs one block of these sub-blocks, once by solving and once by checking the result; both must agree. Then the
    /// state goes through a snapshot.
    pub fn run(&mut self, parts: Vec<Vec<Transaction>>) -> Applied {
        let ledger = &mut self.ledger;
        let sub = |(proposer, native)| SubBlock { proposer, native, ..SubBlock::default() };
        let (height, parent) = (ledger.height() + 1, ledger.last_block());
        let sub_blocks = (0..).zip(parts).map(sub).collect();
        let block = Superblock { height, parent, sub_blocks, ..Superblock::default() };
        let mut follower = ledger.clone();
        let applied = ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        let attached = Attached::of(&applied.batch);
        follower.apply_attached(&block, &attached, Signatures::Unchecked, &mut |_| {}).expect("holds");
        let root = self.roots.apply(&applied.changes);
        ledger.audit().expect("conserved");
        let chunks: Vec<Vec<u8>> = Snapshot::of(ledger).collect();
        assert_eq!(Snapshot::of(&follower).collect::<Vec<_>>(), chunks);
        let mut restore = Restore::default();
        chunks.iter().for_each(|chunk| restore.push(chunk).expect("a snapshot's own chunk"));
        *ledger = restore.finish().expect("sound");
        assert_eq!(Snapshot::of(ledger).collect::<Vec<_>>(), chunks);
        assert_eq!(Roots::of(ledger).parts().root(), root, "the tries follow the changes");
        applied
    }

    /// Runs one block of one sub-block.
    pub fn block(&mut self, operations: Vec<(u8, Operation)>) -> Applied {
        let native = operations.into_iter().map(|(person, operation)| self.sign(person, operation)).collect();
        self.run(vec![native])
    }

    /// The refusal of one operation that is alone in a block, if it is refused.
    pub fn outcome(&mut self, person: u8, operation: Operation) -> Option<Refusal> {
        let transaction = self.sign(person, operation);
        let admitted = self.ledger.admit(&transaction).err();
        let outcome = self.run(vec![vec![transaction]]).outcomes[0].refusal();
        assert_eq!(admitted, outcome, "admission and the filter agree");
        if outcome.is_some() {
            *self.sequences.get_mut(&person).expect("it signed") -= 1;
        }
        outcome
    }

    pub fn empty_blocks(&mut self, blocks: usize) {
        (0..blocks).for_each(|_| drop(self.run(vec![])));
    }

    /// Withdraws into the lane, in a separate block.
    pub fn withdraw(&mut self, person: u8, asset: AssetId, amount: Amount) -> Coin {
        let (home, sequence) = (self.epoch(), self.sequences.get(&person).copied().unwrap_or(0) + 1);
        let applied = self.block(vec![(person, withdrawal(person, asset, amount))]);
        assert_eq!(applied.outcomes, [Outcome::Applied]);
        self.coin(person, sequence, home, asset, amount)
    }

    /// The coin that a withdrawal created.
    pub fn coin(&self, owner: u8, sequence: Sequence, home: HomeEpoch, asset: AssetId, amount: Amount) -> Coin {
        let id = OutputId::of_deposit(&self.network(), home, &address(owner), sequence);
        let bridge = self.ledger.lane().expect("there is one").bridge();
        let output = Output { to: Recipient::Key(key(owner).public()), asset, amount };
        assert!(bridge.backed(home).any(|backed| backed == (&id, &output)), "the output is backed");
        Coin { id, home, owner, asset, amount }
    }

    /// The number of this person's next transaction.
    pub fn next_sequence(&self, person: u8) -> Sequence {
        self.sequences.get(&person).copied().unwrap_or(0) + 1
    }

    /// A payment of a coin to accounts.
    pub fn pay(&self, coin: &Coin, to: &[(u8, Amount)]) -> Payment {
        let outputs = to.iter().map(|(person, amount)| Output {
            to: Recipient::Account(address(*person)),
            asset: coin.asset,
            amount: *amount,
        });
        Payment {
            network: self.network(),
            home: coin.home,
            into: coin.home,
            owner: key(coin.owner).public(),
            inputs: vec![spent(coin)],
            outputs: outputs.collect(),
        }
    }

    pub fn committee(&self, epoch: HomeEpoch) -> LaneCommittee {
        LaneCommittee::new(self.network(), epoch, terms().members)
    }

    pub fn answer(
        &self,
        epoch: HomeEpoch,
        member: usize,
        kind: StatementKind,
        owner: &PublicKey,
        digest: Digest,
    ) -> LaneAnswer {
        let (validator, signature) = (member as u8, Signature([0; 64]));
        let mut answer = LaneAnswer { validator, size: 1, index: 0, position: 1, signature, path: vec![] };
        let claim = Claim { kind, owner, digest: &digest };
        let header = answer.header(&self.committee(epoch), &claim).expect("a tree of one leaf");
        answer.signature = shard_key(member).sign(&header.bytes());
        answer
    }

    /// A redemption, signed by the first three members.
    pub fn redemption(&self, payment: &Payment) -> Operation {
        let body = PaymentBody::new(payment.clone());
        let sign = |member| self.answer(payment.home, member, StatementKind::Confirmation, &payment.owner, body.digest);
        let certificate = PaymentCertificate::Answers((0..3).map(sign).collect());
        post(&BridgeOperation::Redeem { payment: payment.encode(), certificate })
    }

    /// Opens a case, by the owner's signature on the exit.
    pub fn resolve(&self, coin: &Coin, deposit: Amount) -> Operation {
        let contested = contested(coin);
        let exit = PaymentBody::new(contested.exit(self.network()));
        let message = payments::owner_message(&self.network(), coin.home, &exit.digest);
        let (signature, proof) = (key(coin.owner).sign(&message), payments::OutputProof::Ledger);
        post(&BridgeOperation::Resolve { bid: deposit, outputs: vec![ContestClaim { contested, signature, proof }] })
    }

    pub fn vote(&self, coin: &Coin, member: usize, payment: &Payment) -> Operation {
        let digest = PaymentBody::new(payment.clone()).digest;
        let answer = self.answer(coin.home, member, StatementKind::Confirmation, &payment.owner, digest);
        let message = payments::owner_message(&self.network(), coin.home, &digest);
        let signature = (!payment.is_exit()).then(|| key(coin.owner).sign(&message));
        post(&BridgeOperation::Vote { case: coin.id, payment: payment.encode(), signature, answer })
    }

    pub fn halt(&self, member: usize) -> Operation {
        let clock = self.ledger.lane().expect("there is one").bridge().clock();
        let (epoch, round, owner) = (clock.epoch(), clock.halt_round(), key(1).public());
        let digest = payments::halt_digest(epoch, round);
        let answer = self.answer(epoch, member, StatementKind::Halt, &owner, digest);
        post(&BridgeOperation::Halt { epoch, round, owner, answer })
    }
}

pub fn spent(coin: &Coin) -> SpentOutput {
    SpentOutput { id: coin.id, asset: coin.asset, amount: coin.amount }
}

pub fn contested(coin: &Coin) -> ContestedOutput {
    ContestedOutput { output: spent(coin), home: coin.home, owner: key(coin.owner).public() }
}

pub fn withdrawal(person: u8, asset: AssetId, amount: Amount) -> Operation {
    Operation::Withdraw { to: key(person).public(), asset, amount }
}

pub fn post(operation: &BridgeOperation) -> Operation {
    Operation::Lane(operation.encode().into())
}

pub fn with_outflow(mut terms: LaneTerms, most: Amount, per_height: Amount) -> LaneTerms {
    terms.assets[0].outflow = Some(LaneOutflow { most, per_height });
    terms
}

pub fn with_output(mut terms: LaneTerms, person: u8, amount: Amount) -> LaneTerms {
    terms.outputs.push(LaneOutput { to: key(person).public(), asset: USD, amount });
    terms
}
