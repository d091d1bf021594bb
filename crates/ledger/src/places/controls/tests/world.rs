//! A chain with an asset that its issuer controls, and with pools, venues and contracts.

use std::collections::BTreeMap;
use std::sync::Arc;

use primitives::venue::Delay;
use primitives::{
    Address, Amount, AssetControl, AssetId, Body, ClientId, Fraction, Height, HolderRecovery, HolderState, Life,
    Operation, Price, Reference, ReferenceKind, SecretKey, Sequence, Signature, SubBlock, Superblock, Transaction,
};
use proofs::{HolderRecord, Outcome, Pair, Refusal};

use crate::contracts::EthereumKey;
use crate::terms::{Genesis, Limits, Listing, PoolTerms, VenueTerms};
use crate::{Applied, Ledger, Restore, Roots, Signatures, Snapshot};

pub(in crate::places::controls) const USD: AssetId = AssetId(0);
/// The controlled one.
pub(in crate::places::controls) const CTL: AssetId = AssetId(1);
pub(in crate::places::controls) const EUR: AssetId = AssetId(2);
pub(in crate::places::controls) const ISSUER: u8 = 0;
pub(in crate::places::controls) const ANN: u8 = 1;
pub(in crate::places::controls) const BOB: u8 = 2;
pub(in crate::places::controls) const CY: u8 = 3;
/// The height that histories begin at: a day can have passed before.
pub(in crate::places::controls) const BEGINS: Height = 1_000_000;
pub(in crate::places::controls) const PEOPLE: u8 = 5;
pub(in crate::places::controls) const START: Amount = 1_000_000_000;
pub(in crate::places::controls) const DELAY: Delay = Delay { heights: 3, ms: 2_500 };

pub(in crate::places::controls) fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person + 1; 32])
}

pub(in crate::places::controls) fn account(person: u8) -> Address {
    key(person).public().address()
}

/// A wallet that sends Ethereum transactions.
pub(in crate::places::controls) fn wallet(person: u8) -> EthereumKey {
    EthereumKey::from_seed([person + 1; 32]).expect("a key")
}

pub(in crate::places::controls) fn reference() -> Reference {
    Reference::read(ReferenceKind::Text, "order 7/2026").expect("plain")
}

pub(in crate::places::controls) fn set(person: Address, state: HolderState) -> Operation {
    Operation::SetHolder { asset: CTL, account: person, state, reference: reference() }
}

pub(in crate::places::controls) fn freeze(person: u8) -> Operation {
    set(account(person), HolderState::Frozen)
}

pub(in crate::places::controls) fn unfreeze(person: u8) -> Operation {
    set(account(person), HolderState::Open)
}

pub(in crate::places::controls) fn recover(from: u8, to: u8, amount: Amount) -> Operation {
    let (from, to) = (account(from), account(to));
    Operation::Recover(Box::new(HolderRecovery { asset: CTL, from, to, amount, reference: reference() }))
}

pub(in crate::places::controls) fn pay(to: u8, asset: AssetId, amount: Amount) -> Operation {
    Operation::Pay { to: account(to), asset, amount }
}

/// An offer that asks for so many hundredths of what it sells.
pub(in crate::places::controls) fn offer(
    sell: AssetId,
    buy: AssetId,
    amount: Amount,
    hundredths: u64,
    life: Life,
) -> Operation {
    let limit = Price::ratio_rounding_up(hundredths, 100).expect("a price");
    Operation::CreateOffer { sell, buy, amount, limit, life, client: ClientId::NONE }
}

pub(in crate::places::controls) fn genesis(control: AssetControl) -> Genesis {
    let assets = ["USD", "CTL", "EUR"].map(|symbol| Listing::new(symbol, 6, account(ISSUER))).to_vec();
    let people = (0..PEOPLE).map(account).chain((0..PEOPLE).map(|person| wallet(person).address()));
    let balances = people.flat_map(|one| [USD, CTL, EUR].map(|asset| (one, asset, START))).collect();
    let limits =
        Limits { block_gas: 30_000_000, sub_block_gas: 30_000_000, least_base_fee: 1_000_000_000, ..Limits::default() };
    Genesis {
        chain: 7,
        fee: 1,
        mu: Fraction::power_of_two(10),
        limits,
        assets,
        balances,
        controls: vec![(CTL, control)],
        pools: Some(PoolTerms::default()),
        venues: Some(VenueTerms { delay: DELAY, bond_min: 1_000, life_max: 1_000_000, ..VenueTerms::default() }),
        ..Genesis::default()
    }
}

#[derive(Clone)]
pub(in crate::places::controls) struct World {
    pub ledger: Ledger,
    pub roots: Roots,
    numbers: BTreeMap<u8, Sequence>,
}

impl World {
    pub(in crate::places::controls) fn new(control: AssetControl) -> World {
        let mut world = World::of(&genesis(control));
        if control.admits() {
            let all = (1..PEOPLE).map(account).chain((0..PEOPLE).map(|person| wallet(person).address()));
            let admit = all.map(|one| (ISSUER, set(one, HolderState::Open))).collect();
            world.done(admit);
        }
        world
    }

    pub(in crate::places::controls) fn of(genesis: &Genesis) -> World {
        let mut ledger = Ledger::new(genesis).expect("sound");
        ledger.height = BEGINS;
        if let Some(venues) = &mut ledger.places.venues {
            Arc::make_mut(venues).begin_at(BEGINS);
        }
        World { roots: Roots::of(&ledger), ledger, numbers: BTreeMap::new() }
    }

    pub(in crate::places::controls) fn next(&mut self, person: u8) -> Sequence {
        let number = self.numbers.entry(person).or_default();
        *number += 1;
        *number
    }

    /// The last number of a person.
    pub(in crate::places::controls) fn number(&self, person: u8) -> Sequence {
        self.numbers.get(&person).copied().unwrap_or(0)
    }

    pub(in crate::places::controls) fn signed(&mut self, person: u8, operation: Operation) -> Transaction {
        let sequence = self.next(person);
        let (account, until) = (account(person), self.ledger.height() + 200);
        let body = Body { chain: 7, account, sequence, until, operation };
        Transaction::by_key(body, key(person).public(), Signature([0; 64]))
    }

    /// One block of these transactions; the state after it is sound, and the same from its chunks.
    pub(in crate::places::controls) fn block(&mut self, native: Vec<Transaction>, ethereum: Vec<Vec<u8>>) -> Applied {
        let applied = self.apply(native, ethereum);
        self.roots.apply(&applied.changes);
        self.ledger.audit().expect("sound");
        let mut restore = Restore::default();
        Snapshot::of(&self.ledger).for_each(|chunk| restore.push(&chunk).expect("a chunk"));
        let restored = restore.finish().expect("sound");
        assert_eq!(Roots::of(&restored).parts(), self.roots.parts());
        applied
    }

    /// One block, without any look at the state after it.
    pub(in crate::places::controls) fn apply(&mut self, native: Vec<Transaction>, ethereum: Vec<Vec<u8>>) -> Applied {
        let (height, parent) = (self.ledger.height() + 1, self.ledger.last_block());
        let sub = SubBlock { proposer: 0, native, ethereum, ..SubBlock::default() };
        let time_ms = 1_000 * height;
        let block = Superblock { height, parent, time_ms, sub_blocks: vec![sub], ..Superblock::default() };
        self.ledger.apply(&block, Signatures::Valid, &mut |_| {}).expect("conserves")
    }

    /// One block; the outcome of each operation.
    pub(in crate::places::controls) fn said(&mut self, operations: Vec<(u8, Operation)>) -> (Vec<Outcome>, Applied) {
        let native = operations.into_iter().map(|(who, one)| self.signed(who, one)).collect();
        let applied = self.block(native, Vec::new());
        (applied.outcomes.clone(), applied)
    }

    /// One block in which all of this is done.
    pub(in crate::places::controls) fn done(&mut self, operations: Vec<(u8, Operation)>) -> Applied {
        let (outcomes, applied) = self.said(operations);
        assert!(outcomes.iter().all(|one| !matches!(one, Outcome::Refused(_) | Outcome::Void)), "{outcomes:?}");
        applied
    }

    /// Why an operation is refused in the next block; nothing is applied.
    pub(in crate::places::controls) fn refused(&mut self, person: u8, operation: Operation) -> Option<Refusal> {
        let mut other = self.clone();
        let transaction = other.signed(person, operation);
        self.ledger.admit(&transaction).err()
    }

    /// As if so many heights had passed since the issuer's last word of a holder.
    pub(in crate::places::controls) fn age(&mut self, person: u8, heights: Height) {
        let (id, controls) = ((CTL, account(person)), Arc::make_mut(&mut self.ledger.places.controls));
        if let Some(record) = controls.holders.get(&id).copied() {
            controls.holders.insert(id, HolderRecord { since: record.since - heights, ..record });
        }
        self.roots = Roots::of(&self.ledger);
    }

    /// So many empty blocks.
    pub(in crate::places::controls) fn pass(&mut self, heights: u64) {
        for _ in 0..heights {
            let applied = self.apply(Vec::new(), Vec::new());
            self.roots.apply(&applied.changes);
        }
    }

    pub(in crate::places::controls) fn units(&self, person: u8, asset: AssetId) -> Amount {
        self.units_of(&account(person), asset)
    }

    pub(in crate::places::controls) fn units_of(&self, account: &Address, asset: AssetId) -> Amount {
        self.ledger.accounts().get(account).map_or(0, |one| one.balance(asset))
    }

    /// How many offers rest of a pair.
    pub(in crate::places::controls) fn rests(&self, sell: AssetId, buy: AssetId) -> usize {
        self.ledger.book().get(Pair { sell, buy }).map_or(0, |offers| offers.len())
    }
}
