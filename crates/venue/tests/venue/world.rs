//! A root and the real ledger: traders, blocks, a pool that keeps every settle it was ever sent, and a disk that fails.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{FaultDisk, Surviving};
use ledger::{BustReason, FillVerdict, Genesis, Ledger, Outcome, Signatures, VenueTerms};
use primitives::venue::{
    FillTree, Mandate, OrderLife, OrderNumber, SelfTradeRule, SignedOrder, SignedReport, VenueOperation, VenueOrder,
    VenueReport, VenueSide, possession_bytes,
};
use primitives::{Body, Digest, Height, Operation, PublicKey, SecretKey, Sequence, SubBlock, Superblock, Transaction};
use venue::{
    Acceptance, CertifiedFacts, CheckedOrder, MarketSettings, OrderEnd, OrderStanding, ReportKind, SettlingTerms,
    TradeCommand, TradeReport, VenueEffect, VenueFact, VenueInput, VenueKeys, VenueLimits, VenueMistake, VenueOptions,
    VenueRoot, VenueRootError, VenueSettings, VenueStanding, check_orders,
};

use crate::reading::{fate, standings};
pub use crate::terms::*;

/// The chain, the pool, and what was told to traders.
pub struct World {
    pub ledger: Ledger,
    pub time_ms: u64,
    sequences: BTreeMap<u8, Sequence>,
    /// Facts of all blocks, by height from the first one that a root needs.
    pub facts: Vec<CertifiedFacts>,
    known: Vec<VenueFact>,
    pub disk: FaultDisk,
    pub root: Option<VenueRoot<FaultDisk>>,
    pub options: VenueOptions,
    /// Every settle that was ever sent; the last one is in the pool.
    pub sent: Vec<Transaction>,
    /// Whether a body was sent while another one under its number had not ended.
    pub signed_twice: bool,
    /// Leaves of the ledger's tree.
    pub leaves: Vec<Digest>,
    pub busts: Vec<BustReason>,
    pub voids: usize,
    /// Reports that traders have, by index.
    pub told: BTreeMap<u64, Vec<VenueReport>>,
    /// First answers that traders have.
    pub answers: BTreeMap<(PublicKey, OrderNumber), Acceptance>,
    pub ids: BTreeSet<u64>,
    /// What was told that must never be.
    pub wrong: Vec<&'static str>,
    pub incarnation: u32,
    limits: VenueLimits,
    market: MarketSettings,
    terms: VenueTerms,
    next: u32,
}

impl World {
    /// A venue with a market, and traders with keys and deposits; its root has a session for each.
    pub fn new(mistake: Option<VenueMistake>) -> World {
        World::with(mistake, mandate(), VenueLimits { quiet_ms: QUIET, ..VenueLimits::default() })
    }

    pub fn with(mistake: Option<VenueMistake>, of_cleo: Mandate, limits: VenueLimits) -> World {
        World::on(FaultDisk::new(1), mistake, of_cleo, limits)
    }

    pub fn on(disk: FaultDisk, mistake: Option<VenueMistake>, of_cleo: Mandate, limits: VenueLimits) -> World {
        World::run(disk, mistake, of_cleo, (limits, market_settings()))
    }

    /// One whose market is run otherwise.
    pub fn run(
        disk: FaultDisk,
        mistake: Option<VenueMistake>,
        of_cleo: Mandate,
        (limits, market): (VenueLimits, MarketSettings),
    ) -> World {
        World::founded(&genesis(), disk, mistake, of_cleo, (limits, market))
    }

    /// One on a chain that begins otherwise.
    pub fn founded(
        genesis: &Genesis,
        disk: FaultDisk,
        mistake: Option<VenueMistake>,
        of_cleo: Mandate,
        (limits, market): (VenueLimits, MarketSettings),
    ) -> World {
        let ledger = Ledger::new(genesis).expect("sound");
        let options = VenueOptions { mistake: mistake.into(), ..VenueOptions::default() };
        let mut world = World {
            ledger,
            time_ms: 1_000_000,
            sequences: BTreeMap::new(),
            facts: Vec::new(),
            known: Vec::new(),
            disk,
            root: None,
            options,
            sent: Vec::new(),
            signed_twice: false,
            leaves: Vec::new(),
            busts: Vec::new(),
            voids: 0,
            told: BTreeMap::new(),
            answers: BTreeMap::new(),
            ids: BTreeSet::new(),
            wrong: Vec::new(),
            incarnation: 0,
            limits,
            market,
            terms: genesis.venues.expect("the chain has venues"),
            next: 0,
        };
        world.found(of_cleo);
        let settings = world.settings(limits);
        world.root = Some(VenueRoot::create(world.disk.clone(), settings, keys(), options).expect("an empty disk"));
        world.open_market();
        world
    }

    fn open_market(&mut self) {
        let attach = TRADERS.map(|person| attach(person, false, None));
        self.certify();
        self.step(&attach);
        self.step(&[VenueInput::OpenMarket(MARKET, self.market)]);
    }

    /// After a fence: the root of the next incarnation, on an empty disk.
    pub fn begin_again(&mut self) {
        self.incarnation += 1;
        self.root = None;
        self.disk = FaultDisk::new(self.incarnation.into());
        (self.leaves, self.told, self.answers, self.ids) = Default::default();
        let last = self.facts.last().expect("blocks").clone();
        self.facts = vec![CertifiedFacts { facts: self.known.clone(), ..last }];
        let settings = self.settings(self.limits);
        self.root = Some(VenueRoot::create(self.disk.clone(), settings, keys(), self.options).expect("an empty disk"));
        self.open_market();
    }

    /// The number of an order of the present incarnation.
    pub fn number(&self, reference: u32) -> OrderNumber {
        OrderNumber { incarnation: self.incarnation, ..number(reference) }
    }

    pub fn settings(&self, limits: VenueLimits) -> VenueSettings {
        let VenueTerms { delay, bond_min, settle_bytes, entries_max, life_max, .. } = self.terms;
        let terms = SettlingTerms { chain: 1, fee: 1, delay, bond_min, settle_bytes, entries_max, life_max };
        let incarnation = self.ledger.venues().and_then(|venues| venues.get(VENUE)).map_or(0, |of| of.incarnation);
        VenueSettings { network: self.ledger.network(), venue: VENUE, incarnation, operator: operator(), terms, limits }
    }

    fn found(&mut self, of_cleo: Mandate) {
        crate::holders::admit(self);
        let open = VenueOperation::Open { venue: VENUE, operator: operator(), fee_cap_ppm: 10_000, bond: BOND };
        self.block(vec![(OWNER, open)]);
        self.block(vec![(OWNER, VenueOperation::List { venue: VENUE, market: MARKET, terms: market() })]);
        let deposits = TRADERS.iter().flat_map(|person| [USD, EUR].map(|asset| (*person, deposit(asset, DEPOSIT))));
        self.block(deposits.collect());
        let authorize = TRADERS.map(|person| {
            let mandate = if person == CLEO { of_cleo.clone() } else { mandate() };
            (person, self.authorize(person, &trading(person), mandate))
        });
        self.block(authorize.to_vec());
    }

    pub fn authorize(&self, person: u8, trading: &SecretKey, mandate: Mandate) -> VenueOperation {
        let public = trading.public();
        let possession = trading.sign(&possession_bytes(&self.ledger.network(), VENUE, &address(person), &public));
        VenueOperation::Authorize { venue: VENUE, key: public, mandate, possession }
    }

    pub fn height(&self) -> Height {
        self.ledger.height()
    }

    pub fn root(&mut self) -> &mut VenueRoot<FaultDisk> {
        self.root.as_mut().expect("it is open")
    }

    fn sign(&mut self, person: u8, operation: VenueOperation) -> Transaction {
        self.sign_any(person, Operation::Venue(Box::new(operation)))
    }

    pub fn sign_any(&mut self, person: u8, operation: Operation) -> Transaction {
        let sequence = self.sequences.entry(person).or_default();
        *sequence += 1;
        Body { chain: 1, account: address(person), sequence: *sequence, until: self.ledger.height() + 100, operation }
            .sign(&self.ledger.network(), &key(person))
    }

    /// A block without settles.
    pub fn block(&mut self, operations: Vec<(u8, VenueOperation)>) {
        self.block_with(operations, Vec::new());
    }

    /// A block with operations that must apply, and copies of settles.
    pub fn block_with(&mut self, operations: Vec<(u8, VenueOperation)>, settles: Vec<Transaction>) {
        let count = operations.len();
        let mut native: Vec<Transaction> = operations.into_iter().map(|(who, what)| self.sign(who, what)).collect();
        native.extend(settles);
        self.time_ms += STEP;
        let (height, parent, time_ms) = (self.height() + 1, self.ledger.last_block(), self.time_ms);
        let sub_blocks = vec![SubBlock { native, ..SubBlock::default() }];
        let block = Superblock { height, parent, time_ms, sub_blocks, ..Superblock::default() };
        let applied = self.ledger.apply(&block, Signatures::Unchecked, &mut |_| {}).expect("applies");
        assert!(applied.outcomes[..count].iter().all(|of| *of == Outcome::Applied), "{:?}", applied.outcomes);
        self.voids += applied.outcomes[count..].iter().filter(|of| **of == Outcome::Void).count();
        let mut facts = Vec::new();
        for settled in &applied.venues {
            self.leaves.extend(&settled.leaves);
            let busts = settled.verdicts.iter().filter_map(|verdict| match verdict {
                FillVerdict::Applied => None,
                FillVerdict::Bust(reason, _) => Some(*reason),
            });
            self.busts.extend(busts);
            facts.push(VenueFact::Settled {
                incarnation: settled.incarnation,
                from: settled.from,
                leaves: settled.leaves.clone(),
                fates: settled.verdicts.iter().map(fate).collect(),
            });
        }
        let known = standings(&self.ledger);
        facts.extend(known.iter().filter(|fact| !self.known.contains(fact)).cloned());
        // A root begins with the state before its first order: all of it.
        match self.root.is_none() && self.sent.is_empty() {
            true => self.facts = vec![CertifiedFacts { height, time_ms, newest: height, facts: known.clone() }],
            false => self.facts.push(CertifiedFacts { height, time_ms, newest: height, facts }),
        }
        self.known = known;
    }

    /// A block with the settle in the pool.
    pub fn settling_block(&mut self) {
        let pool = self.pool();
        self.block_with(Vec::new(), pool);
    }

    /// The settle in the pool, unless a block has it.
    pub fn pool(&self) -> Vec<Transaction> {
        let is_free = |one: &&Transaction| {
            let account = self.ledger.accounts().get(&address(OPERATOR)).expect("it has units");
            account.window().check(one.body.sequence).is_ok() && one.body.until > self.height()
        };
        self.sent.last().filter(is_free).cloned().into_iter().collect()
    }

    /// Gives the root all blocks that it does not know.
    pub fn certify(&mut self) -> Vec<VenueEffect> {
        self.certify_to(self.height())
    }

    pub fn certify_to(&mut self, height: Height) -> Vec<VenueEffect> {
        let known = self.root().height().unwrap_or(0);
        let next = self.facts.iter().filter(|of| of.height > known && of.height <= height);
        let newest = self.ledger.height();
        let next = next.map(|of| CertifiedFacts { newest, ..of.clone() });
        let inputs: Vec<VenueInput> = next.map(VenueInput::Certified).collect();
        if inputs.is_empty() { Vec::new() } else { self.step(&inputs) }
    }

    /// Settles what is unsettled: blocks with what the pool has, each certified.
    pub fn settle_all(&mut self) -> Result<(), String> {
        for _ in 0..20 {
            let (fills, settled) = self.root().counts();
            if fills == settled {
                return self.check();
            }
            self.settling_block();
            self.certify();
        }
        Err("fills do not settle".into())
    }

    /// A proposer holds the settle as long as it may: D heights after the present one.
    pub fn settle_late(&mut self) -> Result<(), String> {
        for _ in 1..DELAY.heights {
            self.block(Vec::new());
            self.certify();
        }
        self.settle_all()
    }

    /// Blocks in which nothing happens.
    pub fn pass(&mut self, blocks: u64) {
        for _ in 0..blocks {
            self.block(Vec::new());
            self.certify();
        }
    }

    pub fn step(&mut self, inputs: &[VenueInput]) -> Vec<VenueEffect> {
        self.try_step(inputs).expect("the disk works")
    }

    pub fn try_step(&mut self, inputs: &[VenueInput]) -> Result<Vec<VenueEffect>, VenueRootError> {
        let now = self.time_ms;
        let effects = self.root().step(now, inputs)?;
        effects.iter().for_each(|effect| self.see(effect));
        Ok(effects)
    }

    /// What the world outside learns.
    fn see(&mut self, effect: &VenueEffect) {
        match effect {
            VenueEffect::Submit(settle) => {
                let certified = self.root().height().unwrap_or(0);
                let name = |one: &Transaction| (one.body.account, one.body.sequence);
                let lives = |one: &&Transaction| name(one) == name(settle) && one.body.until > certified;
                self.signed_twice |= self.sent.iter().filter(lives).any(|one| *one != **settle);
                if self.sent.last() != Some(settle) {
                    self.sent.push((**settle).clone());
                }
            }
            VenueEffect::Report(TradeReport { what: ReportKind::Executed(_, report), .. }) => {
                assert!(report.is_signed(&self.ledger.network()));
                self.told.entry(report.fill().index).or_default().push((**report).clone());
            }
            VenueEffect::Report(TradeReport { key, number, what: ReportKind::Accepted(first), .. }) => {
                let known = self.answers.insert((*key, *number), *first);
                if known.is_some_and(|known| known != *first) {
                    self.wrong.push("a retry gets another answer");
                }
                if known.is_none() && !self.ids.insert(first.id) {
                    self.wrong.push("an id is issued twice");
                }
            }
            _ => {}
        }
    }

    /// The same world beside this one, with a copy of its disk.
    pub fn copy(&self) -> World {
        let disk = self.disk.after_crash(Surviving::Everything);
        let (root, _) = VenueRoot::open(disk.clone(), keys(), self.options).expect("a copy opens");
        World {
            ledger: self.ledger.clone(),
            sequences: self.sequences.clone(),
            facts: self.facts.clone(),
            known: self.known.clone(),
            disk,
            root: Some(root),
            sent: self.sent.clone(),
            leaves: self.leaves.clone(),
            busts: self.busts.clone(),
            told: self.told.clone(),
            answers: self.answers.clone(),
            ids: self.ids.clone(),
            wrong: self.wrong.clone(),
            ..*self
        }
    }

    /// The process ends, and the root opens with what the disk then has.
    pub fn crash(&mut self, surviving: Surviving) -> Result<(), VenueRootError> {
        self.reopen(self.disk.after_crash(surviving))
    }

    /// Opens the root again on a disk.
    pub fn reopen(&mut self, disk: FaultDisk) -> Result<(), VenueRootError> {
        self.root = None;
        self.disk = disk;
        self.open_with(keys())
    }

    /// Opens the root again on its disk, for an operator.
    pub fn open_with(&mut self, keys: VenueKeys) -> Result<(), VenueRootError> {
        self.root = None;
        let (root, _) = VenueRoot::open(self.disk.clone(), keys, self.options)?;
        self.root = Some(root);
        Ok(())
    }

    /// The digest of the root as it is after it was opened again.
    pub fn opened_digest(&mut self) -> Result<Digest, VenueRootError> {
        self.try_step(&[VenueInput::Opened])?;
        Ok(self.root().digest())
    }

    /// What must hold whatever happened, as long as the venue settles in time.
    pub fn check(&self) -> Result<(), String> {
        let network = self.ledger.network();
        let holds = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_string()) };
        holds(self.wrong.is_empty(), &format!("{:?}", self.wrong))?;
        holds(self.busts.is_empty(), &format!("busts: {:?}", self.busts))?;
        holds(self.voids == 0, "a settle is void")?;
        holds(!self.signed_twice, "two bodies under one number")?;
        for (index, reports) in &self.told {
            let leaf = reports[0].fill().leaf;
            holds(reports.iter().all(|report| report.fill().leaf == leaf), "two reports contradict each other")?;
            if let Some(settled) = self.leaves.get(*index as usize) {
                holds(*settled == leaf, &format!("the tree contradicts a report of fill {index} on {network:?}"))?;
            }
        }
        let mut steps = BTreeMap::new();
        for header in self.told.values().flatten().filter_map(SignedReport::header) {
            let first = *steps.entry(header.step).or_insert(header);
            holds(first == header, &format!("step {} is signed twice", header.step))?;
        }
        let count = self.venue().map_or(0, |of| of.settled);
        let mut tree = FillTree::default();
        let appended = self.leaves.iter().filter(|leaf| tree.append(**leaf)).count();
        holds(appended == self.leaves.len(), "leaves are counted")?;
        holds(tree.count() == count, "leaves are those of the ledger")
    }

    pub fn venue(&self) -> Option<VenueStanding> {
        self.known.iter().find_map(|fact| match fact {
            VenueFact::Venue(standing) => Some(*standing),
            _ => None,
        })
    }

    /// An order of a person with the next number, which a test changes.
    pub fn order(&mut self, side: VenueSide, tick: u32, lots: u32) -> VenueOrder {
        self.next += 1;
        VenueOrder {
            market: MARKET,
            number: self.number(self.next),
            floor: self.number(0),
            side,
            life: OrderLife::Rests,
            self_trade: SelfTradeRule::ExpireTaker,
            tick,
            lots,
            expiry: self.height() + 100,
            until_ms: None,
            fee_cap_ppm: 10_000,
        }
    }

    pub fn buy(&mut self, tick: u32, lots: u32) -> VenueOrder {
        self.order(VenueSide::Buy, tick, lots)
    }

    pub fn sell(&mut self, tick: u32, lots: u32) -> VenueOrder {
        self.order(VenueSide::Sell, tick, lots)
    }

    /// An order with its signature, as a gateway forwards it.
    pub fn checked(&self, person: u8, order: VenueOrder) -> CheckedOrder {
        let signed = SignedOrder::sign(&self.ledger.network(), VENUE, &trading(person), order);
        check_orders(&self.ledger.network(), VENUE, &[signed])[0].expect("it is signed")
    }

    pub fn new_order(&self, person: u8, order: VenueOrder) -> VenueInput {
        VenueInput::Trade(person.into(), TradeCommand::New(self.checked(person, order)))
    }

    /// Places an order through a person's session; returns the reports of the step.
    pub fn place(&mut self, person: u8, order: VenueOrder) -> Vec<ReportKind> {
        let input = self.new_order(person, order);
        reports(self.step(&[input]))
    }

    pub fn replace(&mut self, person: u8, old: OrderNumber, order: VenueOrder) -> Vec<ReportKind> {
        let command = TradeCommand::Replace(old, self.checked(person, order));
        reports(self.step(&[VenueInput::Trade(person.into(), command)]))
    }

    pub fn cancel(&mut self, person: u8, number: OrderNumber) -> Vec<ReportKind> {
        reports(self.step(&[cancel(person, number, 0)]))
    }

    pub fn standing(&mut self, person: u8, number: OrderNumber) -> Option<OrderStanding> {
        self.root().standing(&public(person), &number)
    }

    /// Open lots of an order.
    pub fn open(&mut self, person: u8, number: OrderNumber) -> Option<u32> {
        match self.standing(person, number) {
            Some(OrderStanding::Taken { ended: None, open, .. }) => Some(open),
            _ => None,
        }
    }

    /// Why an order ended.
    pub fn ended(&mut self, person: u8, number: OrderNumber) -> Option<OrderEnd> {
        match self.standing(person, number) {
            Some(OrderStanding::Taken { ended, .. }) => ended,
            _ => None,
        }
    }

    /// Sells and buys lots between two people at a tick: a fill.
    pub fn trade(&mut self, seller: u8, buyer: u8, tick: u32, lots: u32) {
        let (sell, buy) = (self.sell(tick, lots), self.buy(tick, lots));
        self.place(seller, sell);
        self.place(buyer, buy);
    }
}
