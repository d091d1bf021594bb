//! Envelopes in a block: what opens, who pays, and what counts of what is in them.

mod batch;
mod opening;
mod random;

use blst::min_sig::SecretKey as Scalar;
use ledger::{
    Applied, Attached, Fault, Genesis, Ledger, OpenedEnvelopes, OpenedNames, OpenedOperation, Outcome, Refusal, Roots,
    Signatures, Snapshot, Unsealing, enclosed,
};
use primitives::{
    Address, Amount, AssetId, Body, Digest, Enclosure, Height, Operation, SecretKey, Sequence, SubBlock, Superblock,
    Transaction, WalletKey,
};
use sealing::{EnvelopeTerms, OpeningKey, SEALING_TAG, SealedText, SealingKey, seal};

use crate::world::{EUR, FEE, START, USD, address, genesis, key};

const ALICE: u8 = 1;
const BOB: u8 = 2;
/// Pays for envelopes, and trades nothing.
const PAYER: u8 = 3;
/// The number of the committee's key.
const KEY: u64 = 5;
/// What the smallest envelope costs.
const SMALL: Amount = 33 * FEE;

/// A committee of one, whose secret the tests know.
fn committee(seed: u8) -> Scalar {
    Scalar::key_gen(&[seed; 32], &[]).expect("32 bytes are enough")
}

fn sealing_key(secret: &Scalar) -> SealingKey {
    SealingKey::parse(&secret.sk_to_pk().compress()).expect("a public key is a point")
}

/// A chain whose committee opens all that its rules open.
#[derive(Clone)]
struct World {
    ledger: Ledger,
    drawn: u8,
}

/// What is sealed, and by whom.
#[derive(Clone)]
struct Letter {
    signer: SecretKey,
    payer: Address,
    sequence: Sequence,
    until: Height,
    key: u64,
}

impl Letter {
    fn of(payer: u8, sequence: Sequence) -> Letter {
        Letter { signer: key(payer), payer: address(payer), sequence, until: 200, key: KEY }
    }

    fn enclosure(&self) -> Enclosure {
        Enclosure { payer: self.payer, sequence: self.sequence }
    }
}

impl World {
    fn new() -> World {
        World::of(&genesis(None))
    }

    fn of(genesis: &Genesis) -> World {
        World { ledger: Ledger::new(genesis).expect("sound"), drawn: 0 }
    }

    fn plain(&self, person: u8, sequence: Sequence, operation: Operation) -> Transaction {
        body(person, sequence, operation).sign(&self.ledger.network(), &key(person))
    }

    /// An operation that a person signs for an envelope.
    fn inside(&self, person: u8, sequence: Sequence, within: &Letter, operation: Operation) -> Transaction {
        body(person, sequence, operation).sign_sealed(&self.ledger.network(), &within.enclosure(), &key(person))
    }

    /// An envelope of these operations.
    fn seal(&mut self, letter: &Letter, operations: Vec<Transaction>) -> Transaction {
        self.drawn = self.drawn.wrapping_add(1);
        let Letter { signer, payer, sequence, until, key } = letter;
        let network = self.ledger.network();
        let terms = EnvelopeTerms {
            network,
            signer: signer.public(),
            key: *key,
            payer: *payer,
            sequence: *sequence,
            until: *until,
        };
        let to = sealing_key(&committee(1));
        let sealed = seal(&to, &terms, &SealedText(operations), &[self.drawn; 32]).expect("it fits");
        let operation = Operation::Sealed(Box::new(sealed.to_bytes(*key)));
        let body = Body { chain: 1, account: *payer, sequence: *sequence, until: *until, operation };
        body.sign(&network, signer)
    }

    fn next(&self, parts: Vec<Vec<Transaction>>) -> Superblock {
        let sub = |(proposer, native)| SubBlock { proposer, native, ..SubBlock::default() };
        let (height, parent) = (self.ledger.height() + 1, self.ledger.last_block());
        Superblock { height, parent, sub_blocks: (0..).zip(parts).map(sub).collect(), ..Superblock::default() }
    }

    fn opening(&self, block: &Superblock) -> OpenedEnvelopes {
        let native: Vec<&Transaction> = block.sub_blocks.iter().flat_map(|sub| &sub.native).collect();
        let valid = primitives::verify_transactions(&self.ledger.network(), &native);
        self.ledger.opening(block, Some(&valid), &[KEY])
    }

    /// The opening keys of a block's record.
    fn keys(&self, block: &Superblock) -> Vec<OpeningKey> {
        let secret = committee(1);
        let of = |label: sealing::Label| OpeningKey(secret.sign(&label.0.0, SEALING_TAG, &[]).compress());
        self.opening(block).opened.iter().map(|envelope| of(envelope.label)).collect()
    }

    fn apply(&mut self, block: &Superblock, keys: &[OpeningKey]) -> Result<Applied, Fault> {
        let in_force = [(KEY, sealing_key(&committee(1)))];
        let unsealing = Unsealing { in_force: &in_force, keys, are_checked: false };
        let mut follower = self.ledger.clone();
        let mut roots = Roots::of(&self.ledger);
        let applied = self.ledger.apply_unsealed(block, None, &unsealing, Signatures::Unchecked, &mut |_| {})?;
        // Who has the batch, and believes the keys of the record, comes to the same state.
        let (attached, unsealing) = (Attached::of(&applied.batch), Unsealing { are_checked: true, ..unsealing });
        follower
            .apply_unsealed(block, Some(&attached), &unsealing, Signatures::Unchecked, &mut |_| {})
            .expect("the batch holds");
        assert_eq!(state(&follower), state(&self.ledger));
        self.ledger.audit().expect("conserved");
        let root = roots.apply(&applied.changes);
        assert_eq!(Roots::of(&self.ledger).parts().root(), root, "the tries follow the changes");
        self.check_reading(block, keys, &applied);
        Ok(applied)
    }

    /// Whoever has the block, its keys and its outcomes reads what its envelopes held; on another network nobody does.
    fn check_reading(&self, block: &Superblock, keys: &[OpeningKey], applied: &Applied) {
        let block = Superblock { openings: keys.iter().map(|key| key.0).collect(), ..block.clone() };
        let ids = block.sub_blocks.iter().flat_map(|sub| &sub.native).map(Transaction::id);
        let opened = applied.opened.iter().map(|one| (one.id, one.outcome));
        let outcomes: Vec<_> = ids.zip(applied.outcomes.iter().copied()).chain(opened).collect();
        let told = |one: &OpenedOperation| (one.envelope, one.id, one.transaction.clone(), one.outcome);
        let read = enclosed(&self.ledger.network(), &block, &outcomes);
        assert!(read.iter().map(told).eq(applied.opened.iter().map(told)), "{read:?}");
        assert!(enclosed(&Digest([9; 32]), &block, &outcomes).is_empty());
    }

    fn run(&mut self, parts: Vec<Vec<Transaction>>) -> Applied {
        let block = self.next(parts);
        let keys = self.keys(&block);
        self.apply(&block, &keys).expect("applies")
    }

    fn balance(&self, person: u8, asset: AssetId) -> Amount {
        self.ledger.accounts().get(&address(person)).map_or(0, |account| account.balance(asset))
    }

    /// The state but for its head, which names the last block.
    fn places(&self) -> Vec<Vec<u8>> {
        Snapshot::of(&self.ledger).skip(1).collect()
    }

    /// Ids and amounts of the offers that rest.
    fn resting(&self, person: u8) -> Vec<(Sequence, Amount)> {
        let offers = self.ledger.book().iter().flat_map(|(_, offers)| offers.iter().collect::<Vec<_>>());
        let own = offers.filter(|offer| offer.place.account == address(person));
        own.map(|offer| (offer.place.id, offer.amount)).collect()
    }
}

fn body(person: u8, sequence: Sequence, operation: Operation) -> Body {
    Body { chain: 1, account: address(person), sequence, until: 200, operation }
}

/// The whole state, and the names.
fn state(ledger: &Ledger) -> (Vec<Vec<u8>>, OpenedNames) {
    (Snapshot::of(ledger).collect(), ledger.opened_names().clone())
}

/// Why operations of envelopes were refused, in order; `None` where one counts.
fn inside_refusals(applied: &Applied) -> Vec<Option<Refusal>> {
    applied.opened.iter().map(|one| one.outcome.refusal()).collect()
}

fn inside_outcomes(applied: &Applied) -> Vec<Outcome> {
    applied.opened.iter().map(|one| one.outcome).collect()
}
