//! A root without a chain: after each step it gets facts as of blocks that settle everything at once.

use ::venue::{
    CertifiedFacts, CheckedOrder, CheckedOrderList, FillFate, KeyStanding, MarketSettings, OperatorStanding,
    SettlingTerms, ToldStep, TradeCommand, TwoStages, VenueEffect, VenueFact, VenueInput, VenueKeys, VenueLimits,
    VenueOptions, VenueRoot, VenueRootError, VenueSettings, VenueStanding,
};
use primitives::venue::{
    Delay, FillTree, KeyScope, ListEntry, ListFault, Mandate, MarketMandate, MarketTerms, OrderLife, OrderList,
    OrderNumber, STEP_REPORTS_RULES, SelfTradeRule, Settle, SignedOrder, VenueOperation, VenueOperator, VenueOrder,
    VenueSide,
};
use primitives::{Address, Amount, AssetId, Digest, Operation, PublicKey, SecretKey, Transaction};
use store::Disk;

use crate::flow::{FlowAction, FlowEvent};

const NETWORK: Digest = Digest([7; 32]);
const VENUE: u32 = 0;
/// The market of everything.
pub(crate) const MARKET: u32 = 0;
const USD: AssetId = AssetId(0);
const EUR: AssetId = AssetId(1);
const RICH: Amount = 1 << 60;
const BOND: Amount = 1 << 50;
/// Between two blocks, by height and clock.
const BLOCK_MS: u64 = 1_000;
/// Heights that an order lives.
const LIFE: u64 = 4;

fn seeded(kind: u8, number: u32) -> SecretKey {
    let mut seed = [kind; 32];
    seed[..4].copy_from_slice(&number.to_le_bytes());
    SecretKey::from_seed(seed)
}

/// The root with what its chain would say.
pub(crate) struct VenueWorld<D: Disk> {
    stages: TwoStages<D, ()>,
    /// The rules that blocks state.
    rules: u32,
    height: u64,
    tree: FillTree,
    used: u64,
    settles: Vec<Transaction>,
    /// Fills that were settled.
    pub fills: u64,
    /// Orders that were refused.
    pub refused: u64,
    /// Events of market data.
    pub events: u64,
}

fn keys() -> VenueKeys {
    VenueKeys { account: operator().account, operator: seeded(1, 0), report: seeded(1, 1) }
}

fn operator() -> VenueOperator {
    VenueOperator { account: seeded(1, 0).public().address(), report_key: seeded(1, 1).public() }
}

/// The trading key of an owner.
pub(crate) fn trading(owner: u32) -> SecretKey {
    seeded(3, owner)
}

fn account(owner: u32) -> Address {
    seeded(2, owner).public().address()
}

impl<D: Disk> VenueWorld<D> {
    /// A root with a market, and so many traders with keys and deposits that nothing exhausts.
    pub fn new(disk: D, owners: u32) -> Result<VenueWorld<D>, VenueRootError> {
        VenueWorld::under(STEP_REPORTS_RULES, disk, owners)
    }

    /// As [`VenueWorld::new`], on a chain with these rules.
    pub fn under(rules: u32, disk: D, owners: u32) -> Result<VenueWorld<D>, VenueRootError> {
        VenueWorld::of(rules, disk, owners, MarketSettings::default().orders)
    }

    /// As [`VenueWorld::new`], with room for so many resting orders.
    pub fn with_room(disk: D, owners: u32, orders: u32) -> Result<VenueWorld<D>, VenueRootError> {
        VenueWorld::of(STEP_REPORTS_RULES, disk, owners, orders)
    }

    fn of(rules: u32, disk: D, owners: u32, orders: u32) -> Result<VenueWorld<D>, VenueRootError> {
        let delay = Delay { heights: 32, ms: 10_000 };
        let terms = SettlingTerms {
            chain: 1,
            fee: 1,
            delay,
            bond_min: 1_000,
            settle_bytes: 1 << 20,
            entries_max: 1 << 40,
            life_max: 1 << 20,
        };
        let limits = VenueLimits::default();
        let limits = VenueLimits { numbers_of_key: 1 << 16, accounts: owners.max(limits.accounts), ..limits };
        let settings =
            VenueSettings { network: NETWORK, venue: VENUE, incarnation: 0, operator: operator(), terms, limits };
        let stages = TwoStages::new(VenueRoot::create(disk, settings, keys(), VenueOptions::default())?, || {});
        let tree = FillTree::default();
        let mut world = VenueWorld {
            stages,
            rules,
            height: 0,
            tree,
            used: 0,
            settles: Vec::new(),
            fills: 0,
            refused: 0,
            events: 0,
        };
        world.found(owners, orders)?;
        Ok(world)
    }

    fn found(&mut self, owners: u32, orders: u32) -> Result<(), VenueRootError> {
        let market = MarketTerms {
            base: EUR,
            quote: USD,
            lot_units: 1,
            tick_units: 1,
            lots_max: 1 << 20,
            fee_cap_ppm: 10_000,
            penalty: 1,
        };
        let mut facts = vec![VenueFact::Market(MARKET, market)];
        for owner in 0..owners {
            facts.extend([USD, EUR].map(|asset| VenueFact::Deposit {
                account: account(owner),
                asset,
                free: RICH / 4,
                leaving: 0,
            }));
            facts.push(VenueFact::Key(trading(owner).public(), standing(owner)));
        }
        let block = self.block(facts);
        let attach = |owner: u32| {
            let keys = vec![trading(owner).public()];
            VenueInput::Attach { session: owner.into(), keys, ends_orders: false, dead_man_ms: None }
        };
        let settings = MarketSettings {
            orders,
            orders_of_account: 1 << 16,
            window_base: 1,
            window_ticks: 1 << 16,
            ..MarketSettings::default()
        };
        let inputs: Vec<VenueInput> = [block]
            .into_iter()
            .chain((0..owners).map(attach))
            .chain([VenueInput::OpenMarket(MARKET, settings)])
            .collect();
        self.step(&inputs).map(drop)
    }

    /// The next block, which settles what is in flight.
    pub fn next_block(&mut self) -> VenueInput {
        let mut facts = Vec::new();
        for transaction in std::mem::take(&mut self.settles) {
            let is_next = |settle: &Settle| settle.from == self.tree.count();
            let Some(settle) = settle_of(&transaction).filter(|settle| is_next(settle)) else { continue };
            let leaves = settle.leaves(&NETWORK);
            leaves.iter().for_each(|leaf| assert!(self.tree.append(*leaf), "few leaves"));
            let fates = vec![FillFate::Applied; leaves.len()];
            self.fills += leaves.len() as u64;
            self.used = self.used.max(transaction.body.sequence);
            facts.push(VenueFact::Settled { incarnation: 0, from: settle.from, leaves, fates });
        }
        self.block(facts)
    }

    fn block(&mut self, mut facts: Vec<VenueFact>) -> VenueInput {
        self.height += 1;
        facts.push(VenueFact::Venue(VenueStanding {
            incarnation: 0,
            operator: operator(),
            is_convicted: false,
            fee_cap_ppm: 10_000,
            settled: self.tree.count(),
            bond: BOND,
            entries: 0,
        }));
        facts.push(VenueFact::Rules(self.rules));
        let account = operator().account;
        facts.push(VenueFact::Operator(OperatorStanding {
            account,
            balance: BOND,
            highest: self.used,
            used: u64::MAX,
        }));
        let (height, time_ms) = (self.height, self.height * BLOCK_MS);
        VenueInput::Certified(CertifiedFacts { height, time_ms, newest: height, facts })
    }

    /// The height up to which an order of now lives, if blocks come after so many orders.
    pub fn expiry(at: usize, orders_of_block: usize) -> u64 {
        1 + (at / orders_of_block) as u64 + LIFE
    }

    /// The root; between the steps that overlap there is none.
    pub fn root(&self) -> &VenueRoot<D> {
        self.stages.root().expect("no step is being written")
    }

    /// A step, one stage after the other.
    pub fn step(&mut self, inputs: &[VenueInput]) -> Result<Vec<VenueEffect>, VenueRootError> {
        let root = self.stages.root_mut().expect("no step is being written");
        let effects = root.step(self.height * BLOCK_MS, inputs)?;
        self.see(&effects);
        Ok(effects)
    }

    /// Matches a step while the one before is written; returns what was told meanwhile.
    pub fn begin(&mut self, inputs: &[VenueInput]) -> Result<Vec<VenueEffect>, VenueRootError> {
        let told = self.stages.begin(self.height * BLOCK_MS, inputs, |_, _| ())?;
        Ok(self.told(told))
    }

    /// Waits for the step that is being written.
    pub fn finish(&mut self) -> Result<Vec<VenueEffect>, VenueRootError> {
        let told = self.stages.settle()?;
        Ok(self.told(told))
    }

    fn told(&mut self, step: Option<ToldStep<()>>) -> Vec<VenueEffect> {
        let effects = step.map_or_else(Vec::new, |step| step.effects);
        self.see(&effects);
        effects
    }

    fn see(&mut self, effects: &[VenueEffect]) {
        for effect in effects {
            match effect {
                VenueEffect::Submit(settle) => self.settles.push((**settle).clone()),
                VenueEffect::Market(..) => self.events += 1,
                VenueEffect::Report(report) if matches!(report.what, ::venue::ReportKind::Refused(_)) => {
                    self.refused += 1
                }
                _ => {}
            }
        }
    }
}

fn settle_of(transaction: &Transaction) -> Option<&Settle> {
    match &transaction.body.operation {
        Operation::Venue(operation) => match &**operation {
            VenueOperation::Settle(settle) => Some(settle),
            _ => None,
        },
        _ => None,
    }
}

fn standing(owner: u32) -> KeyStanding {
    let markets = vec![MarketMandate { market: MARKET, tick_min: 1, tick_max: 1 << 20 }];
    let floor = number(0);
    let mandate = Mandate { scope: KeyScope::Venue, markets, caps: vec![(USD, RICH), (EUR, RICH)] };
    KeyStanding { owner: account(owner), mandate, net: Vec::new(), is_revoked: false, floor, raised: floor }
}

fn number(reference: u32) -> OrderNumber {
    OrderNumber { incarnation: 0, day: 1, reference }
}

/// The orders of a flow or of a part that begins at `first`, signed, with the expiry of each position; nothing where an
/// arrival is no order.
pub(crate) fn sign(flow: &[FlowEvent], first: usize, expiry: impl Fn(usize) -> u64) -> Vec<Option<SignedOrder>> {
    let mut sides = Vec::with_capacity(flow.len());
    let signed = flow.iter().enumerate().map(|(at, event)| {
        let (side, tick, lots, life) = match event.action {
            FlowAction::Rest(side, tick, lots) => (side, tick, lots, OrderLife::Rests),
            FlowAction::Take(side, tick, lots) => (side, tick, lots, OrderLife::ImmediateOrCancel),
            FlowAction::Replace(of, tick, lots) => (sides[of], tick, lots, OrderLife::Rests),
            FlowAction::Cancel(of) => {
                sides.push(sides[of]);
                return None;
            }
        };
        sides.push(side);
        let side = if side == ::matching::Side::Buy { VenueSide::Buy } else { VenueSide::Sell };
        let order = VenueOrder {
            market: MARKET,
            number: number((first + at) as u32 + 1),
            floor: number(0),
            side,
            life,
            self_trade: SelfTradeRule::ExpireMaker,
            tick,
            lots,
            expiry: expiry(at),
            until_ms: None,
            fee_cap_ppm: 10_000,
        };
        let key = trading(event.owner);
        Some(SignedOrder::sign(&NETWORK, VENUE, &key, order))
    });
    signed.collect()
}

/// Signs orders of an owner, by ascending number, as a list.
pub(crate) fn sign_list(owner: u32, entries: Vec<ListEntry>) -> OrderList {
    let key = trading(owner);
    let first = entries.first().map_or(0, |entry| entry.order.number.reference);
    let Digest(seed) = Digest::of("walras bench list", &first.to_le_bytes());
    OrderList::sign(&NETWORK, VENUE, seed, entries, &key).expect("their fields are plain")
}

/// Checks lists as gateways do.
pub(crate) fn check_of_lists(lists: Vec<OrderList>) -> Vec<Result<CheckedOrderList, ListFault>> {
    ::venue::check_lists(&NETWORK, VENUE, lists)
}

/// Checks orders as gateways do.
pub(crate) fn check(orders: &[SignedOrder]) -> Vec<Option<CheckedOrder>> {
    ::venue::check_orders(&NETWORK, VENUE, orders)
}

/// The command of an arrival, with its order if it has one.
pub(crate) fn input(event: &FlowEvent, at: usize, order: Option<CheckedOrder>) -> Option<VenueInput> {
    let key: PublicKey = trading_public(event.owner, order.as_ref());
    let of = |of: usize| number(of as u32 + 1);
    let command = match (event.action, order) {
        (FlowAction::Cancel(of_order), _) => TradeCommand::Cancel { key, number: of(of_order), keeps: 0 },
        (FlowAction::Replace(old, ..), Some(order)) => TradeCommand::Replace(of(old), order),
        (_, Some(order)) => TradeCommand::New(order),
        (_, None) => return None,
    };
    debug_assert!(at < u32::MAX as usize);
    Some(VenueInput::Trade(event.owner.into(), command))
}

fn trading_public(owner: u32, order: Option<&CheckedOrder>) -> PublicKey {
    order.map_or_else(|| trading(owner).public(), |order| *order.key())
}
