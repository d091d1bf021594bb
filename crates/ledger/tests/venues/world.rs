//! A chain with venues: a venue of two markets, traders with keys and deposits, and blocks one second apart.

use std::collections::BTreeMap;

use ledger::{
    Applied, FillVerdict, Genesis, Ledger, Listing, ListingTerms, Outcome, Refusal, Restore, Roots, Signatures,
    Snapshot, VenueDeposit, VenueRecord, VenueTerms,
};
use primitives::venue::{
    Contradicting, Delay, EndedIncarnation, FillReport, FillTree, Mandate, MarketMandate, MarketTerms, OrderLife,
    OrderNumber, ProvenEnd, SelfTradeRule, Settle, SettledFill, SettledOrder, SignedOrder, SignedStep, StepReport,
    UnsettledFill, VenueEvidence, VenueOperation, VenueOperator, VenueOrder, VenueSide, possession_bytes,
};
use primitives::{
    Address, Amount, AssetId, Body, Digest, Fraction, Height, Operation, PublicKey, SecretKey, Sequence, SubBlock,
    Superblock, Transaction,
};

pub const USD: AssetId = AssetId(0);
pub const EUR: AssetId = AssetId(1);
pub const GLD: AssetId = AssetId(2);
pub const START: Amount = 1_000_000_000;
pub const OWNER: u8 = 1;
pub const OPERATOR: u8 = 2;
pub const BUYER: u8 = 3;
pub const SELLER: u8 = 4;
pub const PEOPLE: u8 = 8;
pub const VENUE: u32 = 0;
pub const DELAY: Delay = Delay { heights: 4, ms: 2_500 };
pub const BOND_MIN: Amount = 10_000;
pub const BOND: Amount = 50_000;
/// Penalty of a lot.
pub const PENALTY: Amount = 5;
/// Base units of a lot, and quote units of a lot for each tick.
pub const LOT: Amount = 10;
pub const TICK: Amount = 2;
/// Milliseconds between blocks.
pub const STEP: u64 = 1_000;

pub fn key(person: u8) -> SecretKey {
    SecretKey::from_seed([person; 32])
}

pub fn address(person: u8) -> Address {
    key(person).public().address()
}

/// The trading key of a person.
pub fn trading(person: u8) -> SecretKey {
    SecretKey::from_seed([100 + person; 32])
}

/// A report key.
pub fn reporting(number: u8) -> SecretKey {
    SecretKey::from_seed([200 + number; 32])
}

pub fn terms() -> VenueTerms {
    VenueTerms {
        delay: DELAY,
        bond_min: BOND_MIN,
        bond_delay: Delay { heights: 20, ms: 20_000 },
        settle_bytes: 1 << 16,
        entries_max: 100,
        penalty_min: 1,
        venues_max: 3,
        per_block: 2_000,
        life_max: 50,
    }
}

pub fn market() -> MarketTerms {
    MarketTerms {
        base: EUR,
        quote: USD,
        lot_units: LOT,
        tick_units: TICK,
        lots_max: 1_000,
        fee_cap_ppm: 10_000,
        penalty: PENALTY,
    }
}

pub fn genesis(terms: Option<VenueTerms>) -> Genesis {
    let assets = ["USD", "EUR", "GLD"].map(|symbol| Listing::new(symbol, 2, address(9))).to_vec();
    let of = |person| [USD, EUR, GLD].map(|asset| (address(person), asset, START));
    let balances = (1..=PEOPLE).flat_map(of).collect();
    let mu = Fraction::power_of_two(10);
    let listings = ListingTerms { notice: 4, ..ListingTerms::default() };
    Genesis { chain: 1, fee: 1, mu, assets, balances, listings, venues: terms, ..Genesis::default() }
}

pub fn operator(account: u8, report: u8) -> VenueOperator {
    VenueOperator { account: address(account), report_key: reporting(report).public() }
}

/// Both markets at all prices, with room to lose everything.
pub fn mandate() -> Mandate {
    let of = |market| MarketMandate { market, tick_min: 1, tick_max: 1_000_000 };
    let caps = vec![(USD, START), (EUR, START), (GLD, START)];
    Mandate { markets: vec![of(0), of(1)], caps, ..Mandate::default() }
}

/// An order that a test changes.
pub fn order(side: VenueSide, reference: u32) -> VenueOrder {
    let number = |reference| OrderNumber { incarnation: 0, day: 1, reference };
    VenueOrder {
        market: 0,
        number: number(reference),
        floor: number(0),
        side,
        life: OrderLife::Rests,
        self_trade: SelfTradeRule::ExpireBoth,
        tick: 100,
        lots: 10,
        expiry: 40,
        until_ms: None,
        fee_cap_ppm: 10_000,
    }
}

pub fn buy(reference: u32) -> VenueOrder {
    order(VenueSide::Buy, reference)
}

pub fn sell(reference: u32) -> VenueOrder {
    order(VenueSide::Sell, reference)
}

/// A fill of two orders of two people.
#[derive(Clone, Copy)]
pub struct Match {
    pub buyer: (u8, VenueOrder),
    pub seller: (u8, VenueOrder),
    pub lots: u32,
    pub tick: u32,
    pub fees: (i64, i64),
    pub taker: VenueSide,
}

/// A fill at 100 ticks without fees, in which the buyer takes.
pub fn fill(buy: VenueOrder, sell: VenueOrder, lots: u32) -> Match {
    let (buyer, seller) = ((BUYER, buy), (SELLER, sell));
    Match { buyer, seller, lots, tick: 100, fees: (0, 0), taker: VenueSide::Buy }
}

#[derive(Clone)]
pub struct World {
    pub ledger: Ledger,
    pub roots: Roots,
    pub sequences: BTreeMap<u8, Sequence>,
    pub time_ms: u64,
    /// All leaves of the present incarnation.
    pub leaves: Vec<Digest>,
    /// What the last block did with the fills of the venue.
    pub verdicts: Vec<FillVerdict>,
    /// Ended incarnations by number.
    pub ended: Vec<EndedIncarnation>,
}

impl World {
    /// A chain without a venue yet.
    pub fn empty(terms: VenueTerms) -> World {
        let ledger = Ledger::new(&genesis(Some(terms))).expect("sound");
        let roots = Roots::of(&ledger);
        let (sequences, leaves, verdicts, ended) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        World { ledger, roots, sequences, time_ms: 1_000_000, leaves, verdicts, ended }
    }

    /// A venue with two markets, and traders with deposits of 100,000 units of each asset.
    pub fn new() -> World {
        World::of(terms())
    }

    pub fn of(terms: VenueTerms) -> World {
        let mut world = World::empty(terms);
        let open =
            VenueOperation::Open { venue: VENUE, operator: operator(OPERATOR, 0), fee_cap_ppm: 10_000, bond: BOND };
        world.done(vec![(OWNER, open)]);
        let list = |market, terms| VenueOperation::List { venue: VENUE, market, terms };
        world.done(vec![(OWNER, list(0, market()))]);
        world.done(vec![(OWNER, list(1, MarketTerms { base: GLD, ..market() }))]);
        let people = [BUYER, SELLER, 5, 6];
        let deposit = |asset| move |person| (person, deposit(asset, 100_000));
        let all = [USD, EUR, GLD].into_iter().flat_map(|asset| people.map(deposit(asset)));
        world.done(all.collect());
        let authorize = people.map(|person| (person, world.authorize(person, &trading(person), mandate())));
        world.done(authorize.to_vec());
        world
    }

    pub fn height(&self) -> Height {
        self.ledger.height()
    }

    pub fn venue(&self) -> VenueRecord {
        self.ledger.venues().expect("the chain has venues").get(VENUE).expect("it is open").clone()
    }

    pub fn deposit(&self, person: u8, asset: AssetId) -> VenueDeposit {
        self.ledger.venues().expect("the chain has venues").deposit(VENUE, &address(person), asset)
    }

    /// Free units of a deposit.
    pub fn free(&self, person: u8, asset: AssetId) -> Amount {
        self.deposit(person, asset).free
    }

    pub fn balance(&self, person: u8, asset: AssetId) -> Amount {
        self.ledger.accounts().get(&address(person)).map_or(0, |account| account.balance(asset))
    }

    pub fn network(&self) -> Digest {
        self.ledger.network()
    }

    pub fn issued(&self) -> Amount {
        self.ledger.assets()[0].issued
    }

    pub fn sign(&mut self, person: u8, operation: VenueOperation) -> Transaction {
        self.sign_native(person, Operation::Venue(Box::new(operation)))
    }

    /// Signs an operation that is at no venue.
    pub fn sign_native(&mut self, person: u8, operation: Operation) -> Transaction {
        let sequence = self.sequences.entry(person).or_default();
        *sequence += 1;
        Body { chain: 1, account: address(person), sequence: *sequence, until: self.ledger.height() + 100, operation }
            .sign(&self.ledger.network(), &key(person))
    }

    /// Runs a block of these transactions a step later. The state goes through a snapshot, and the tries follow.
    pub fn run(&mut self, native: Vec<Transaction>) -> Applied {
        self.run_at(self.time_ms + STEP, native)
    }

    /// Runs a block at a time.
    pub fn run_at(&mut self, time_ms: u64, native: Vec<Transaction>) -> Applied {
        let applied = self.run_quickly(time_ms, native);
        let ledger = &mut self.ledger;
        ledger.audit().expect("conserved");
        let chunks: Vec<Vec<u8>> = Snapshot::of(ledger).collect();
        let mut restore = Restore::default();
        chunks.iter().for_each(|chunk| restore.push(chunk).expect("a snapshot's own chunk"));
        *ledger = restore.finish().expect("sound");
        assert_eq!(Snapshot::of(ledger).collect::<Vec<_>>(), chunks);
        assert_eq!(Roots::of(ledger).parts().root(), self.roots.parts().root(), "the tries follow the changes");
        applied
    }

    /// Runs a block at a time without a look at its snapshot.
    pub fn run_quickly(&mut self, time_ms: u64, native: Vec<Transaction>) -> Applied {
        self.time_ms = time_ms;
        let (height, parent) = (self.ledger.height() + 1, self.ledger.last_block());
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        let block = Superblock { height, parent, time_ms, sub_blocks, ..Superblock::default() };
        let applied = self.ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        self.roots.apply(&applied.changes);
        let of_venue = applied.venues.iter().find(|settled| settled.venue == VENUE);
        self.leaves.extend(of_venue.iter().flat_map(|settled| &settled.leaves));
        self.verdicts = of_venue.map_or(Vec::new(), |settled| settled.verdicts.clone());
        applied
    }

    pub fn block(&mut self, operations: Vec<(u8, VenueOperation)>) -> Applied {
        let native = operations.into_iter().map(|(person, operation)| self.sign(person, operation)).collect();
        self.run(native)
    }

    /// Runs a block whose operations must all be applied.
    pub fn done(&mut self, operations: Vec<(u8, VenueOperation)>) -> Applied {
        let applied = self.block(operations);
        assert!(applied.outcomes.iter().all(|outcome| *outcome == Outcome::Applied), "{:?}", applied.outcomes);
        applied
    }

    pub fn empty_blocks(&mut self, blocks: u64) {
        (0..blocks).for_each(|_| drop(self.run(vec![])));
    }

    /// The outcome of one operation that is alone in a block; if it is refused, admission says so too.
    pub fn outcome(&mut self, person: u8, operation: VenueOperation) -> Outcome {
        let transaction = self.sign(person, operation);
        let admitted = self.ledger.admit(&transaction).err();
        let outcome = self.run(vec![transaction]).outcomes[0];
        assert_eq!(admitted, outcome.refusal(), "admission and the filter agree");
        if outcome.refusal().is_some() {
            *self.sequences.get_mut(&person).expect("it signed") -= 1;
        }
        outcome
    }

    pub fn refusal(&mut self, person: u8, operation: VenueOperation) -> Option<Refusal> {
        self.outcome(person, operation).refusal()
    }

    pub fn authorize(&self, person: u8, trading: &SecretKey, mandate: Mandate) -> VenueOperation {
        let public = trading.public();
        let possession = trading.sign(&possession_bytes(&self.network(), VENUE, &address(person), &public));
        VenueOperation::Authorize { venue: VENUE, key: public, mandate, possession }
    }

    /// An order of a person, with its signature.
    pub fn signed(&self, person: u8, order: VenueOrder) -> SettledOrder {
        SignedOrder::sign(&self.network(), VENUE, &trading(person), order).into()
    }

    /// A settle of these fills that begins at the settled count; every order is signed.
    pub fn settle(&self, matches: &[Match]) -> Settle {
        let venue = self.venue();
        self.settle_from(venue.fills.count(), matches)
    }

    pub fn settle_from(&self, from: u64, matches: &[Match]) -> Settle {
        let sides = matches.iter().flat_map(|of| [of.buyer, of.seller]);
        let mut orders: Vec<SettledOrder> = sides.map(|(person, order)| self.signed(person, order)).collect();
        let name = |order: &SettledOrder| (order.key, order.order.number);
        orders.sort_by_key(name);
        orders.dedup_by_key(|order| name(order));
        let at = |(person, order): (u8, VenueOrder)| {
            let wanted = (trading(person).public(), order.number);
            orders.iter().position(|order| name(order) == wanted).expect("there") as u16
        };
        let fill = |of: &Match| SettledFill {
            buy: at(of.buyer),
            sell: at(of.seller),
            lots: of.lots,
            tick: of.tick,
            fee_buy: of.fees.0,
            fee_sell: of.fees.1,
            taker: of.taker,
        };
        let fills = matches.iter().map(fill).collect();
        Settle { venue: VENUE, incarnation: self.venue().incarnation, from, orders, fills }
    }

    /// Settles fills in a block of their own; returns the verdicts.
    pub fn settles(&mut self, matches: &[Match]) -> Vec<FillVerdict> {
        let settle = self.settle(matches);
        self.done(vec![(OPERATOR, VenueOperation::Settle(settle))]);
        self.verdicts.clone()
    }

    /// A report of a fill to a person.
    pub fn report(&self, index: u64, leaf: Digest, person: u8, report_key: u8) -> FillReport {
        let incarnation = self.venue().incarnation;
        FillReport::new(&self.network(), (VENUE, incarnation, index), leaf, address(person), &reporting(report_key))
    }

    /// An accusation by the tree of the present incarnation.
    pub fn accusation(&self, report: FillReport) -> VenueOperation {
        let at = report.index as usize;
        let path = FillTree::path(&self.leaves, report.index).expect("it is settled");
        VenueOperation::Accuse(Box::new(VenueEvidence {
            report,
            contradicting: Contradicting::Tree(self.leaves[at], path),
            ended: None,
        }))
    }

    /// A report of a step with these leaves (index, leaf, person), for the one at a place.
    pub fn step_report(&self, (step, clock_ms): (u64, u64), told: &[(u64, Digest, u8)], place: usize) -> StepReport {
        let leaves: Vec<_> = told.iter().map(|(index, leaf, person)| (*index, *leaf, address(*person))).collect();
        let name = (VENUE, self.venue().incarnation);
        SignedStep::new(&self.network(), name, (step, clock_ms), &leaves, &reporting(0)).report(place, leaves[place])
    }

    /// Fences the venue in a block of its own.
    pub fn fence(&mut self) {
        let before = self.venue();
        self.done(vec![(OWNER, VenueOperation::Fence { venue: VENUE, incarnation: before.incarnation })]);
        self.note_fence(&before);
    }

    /// Notes what a fence in the last block ended.
    pub fn note_fence(&mut self, before: &VenueRecord) {
        self.ended.push(EndedIncarnation {
            incarnation: before.incarnation,
            tree: before.fills.clone(),
            report_keys: before.report_keys.clone(),
            height: self.height(),
            time_ms: self.time_ms,
        });
        self.leaves.clear();
    }

    /// An ended incarnation with its path.
    pub fn proven(&self, incarnation: u32) -> ProvenEnd {
        let leaves: Vec<Digest> = self.ended.iter().map(|ended| ended.leaf(VENUE)).collect();
        let path = FillTree::path(&leaves, incarnation.into()).expect("it has ended");
        ProvenEnd { ended: self.ended[incarnation as usize].clone(), path }
    }

    /// A claim of a fill that was reported at an index of an ended incarnation.
    pub fn claim(&self, incarnation: u32, index: u64, of: &Match, report_key: u8) -> VenueOperation {
        let (buy, sell) = (self.signed(of.buyer.0, of.buyer.1), self.signed(of.seller.0, of.seller.1));
        let fill = SettledFill {
            buy: 0,
            sell: 1,
            lots: of.lots,
            tick: of.tick,
            fee_buy: of.fees.0,
            fee_sell: of.fees.1,
            taker: of.taker,
        };
        let digest = |order: &SettledOrder| order.order.digest(&self.network(), VENUE, &order.key);
        let leaf = fill.leaf(&digest(&buy), &digest(&sell));
        let name = (VENUE, incarnation, index);
        let report = FillReport::new(&self.network(), name, leaf, address(of.buyer.0), &reporting(report_key));
        VenueOperation::Claim(Box::new(UnsettledFill { report, ended: self.proven(incarnation), buy, sell, fill }))
    }
}

pub fn deposit(asset: AssetId, units: Amount) -> VenueOperation {
    VenueOperation::Deposit { venue: VENUE, asset, units }
}

pub fn collect(asset: AssetId, units: Amount) -> VenueOperation {
    VenueOperation::Collect { venue: VENUE, asset, units }
}

pub fn revoke(person: u8) -> VenueOperation {
    VenueOperation::Revoke { venue: VENUE, key: trading(person).public() }
}

pub fn raise(person: u8, reference: u32) -> VenueOperation {
    let floor = OrderNumber { incarnation: 0, day: 1, reference };
    VenueOperation::RaiseFloor { venue: VENUE, key: trading(person).public(), floor }
}

pub fn key_of(person: u8) -> PublicKey {
    trading(person).public()
}
