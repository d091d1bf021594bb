//! What a root knows: accounts, keys, orders, sessions and unsettled fills. All of it is in snapshots.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use borsh::{BorshDeserialize, BorshSerialize};
use hashbrown::DefaultHashBuilder;
use primitives::venue::{FillTree, Horizon, Mandate, MarketId, MarketTerms, OrderNumber, VenueOperator, VenueSide};
use primitives::{Address, Amount, AssetId, Body, Digest, Height, PublicKey, Sequence};

use crate::expiries::Expiries;
use crate::facts::{FreezableAsset, OperatorStanding, VenueStanding};
use crate::input::SessionNumber;
use crate::order::{Order, OrderProof};
use crate::refusal::{OrderRefusal, VenuePause, VenueStop};
use crate::report::VenueFill;
use crate::settings::VenueSettings;

/// An asset in an account's deposit.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Holding {
    pub asset: AssetId,
    /// What the certified ledger has.
    pub free: Amount,
    pub leaving: Amount,
    /// What open orders reserve, and what unsettled fills owe.
    pub open: u128,
    pub owed: u128,
}

#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Account {
    pub address: Address,
    /// Its number in the books, while it has a place.
    pub owner: Option<u32>,
    /// How many effects there were when it last began or ended an order.
    pub used: u64,
    pub is_killed: bool,
    /// By asset.
    pub holdings: Vec<Holding>,
    /// Positions of its keys.
    pub keys: Vec<u32>,
    /// What its small orders cost today.
    pub spared: Spared,
}

/// Ledger fees that were spared in a day (UTC).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Spared {
    pub day: u64,
    pub fees: u64,
}

impl Spared {
    /// Those of a day.
    pub fn on(self, day: u64) -> u64 {
        if self.day == day { self.fees } else { 0 }
    }
}

/// What a key may lose of an asset by open orders and unsettled fills.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Exposure {
    pub asset: AssetId,
    pub open: u128,
    pub owed: u128,
}

/// What is known of a number. There are many of them, and few of refused ones.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) enum Remembered {
    /// The slot of an order that was taken.
    Taken(u32),
    /// An order with this digest was refused.
    Refused(Box<(Digest, OrderRefusal)>),
    /// A cancel came first.
    Overtaken,
}

#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Key {
    pub public: PublicKey,
    pub account: u32,
    pub mandate: Mandate,
    pub net: Vec<(AssetId, i128)>,
    pub is_revoked: bool,
    /// The floor that the ledger has in force.
    pub floor: OrderNumber,
    /// The highest floor that was asked for, on the ledger or by an order.
    pub raised: OrderNumber,
    pub exposures: Vec<Exposure>,
    pub numbers: BTreeMap<OrderNumber, Remembered>,
    /// The highest number that was forgotten.
    pub stale: Option<OrderNumber>,
    /// Orders that are open, or filled and not past.
    pub entries: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Session {
    /// Keys for which it may trade, sorted; and all for which it might since it first attached.
    pub keys: Vec<PublicKey>,
    pub had_keys: BTreeSet<PublicKey>,
    pub ends_orders: bool,
    pub dead_man_ms: Option<u64>,
    /// When its open orders end, unless it says something before.
    pub deadline_ms: Option<u64>,
    pub is_attached: bool,
}

/// A fill that is not settled, with the slots of its orders.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Pending {
    pub fill: VenueFill,
    pub buyer: u32,
    pub seller: u32,
    /// What a bust costs the bond.
    pub penalty: Amount,
}

impl Pending {
    pub fn slot(&self, side: VenueSide) -> u32 {
        if side == VenueSide::Buy { self.buyer } else { self.seller }
    }

    pub fn taker(&self) -> u32 {
        self.slot(self.fill.terms.taker)
    }

    /// What a side pays, of which asset of its market.
    pub fn debit(&self, side: VenueSide, terms: &MarketTerms) -> (AssetId, u128) {
        match side {
            VenueSide::Buy => {
                let paid = i128::from(self.fill.quote) + i128::from(self.fill.terms.fee_buy);
                (terms.quote, paid.max(0) as u128)
            }
            VenueSide::Sell => (terms.base, u128::from(self.fill.base)),
        }
    }

    /// What a side receives.
    pub fn credit(&self, side: VenueSide, terms: &MarketTerms) -> (AssetId, u128) {
        match side {
            VenueSide::Buy => (terms.base, u128::from(self.fill.base)),
            VenueSide::Sell => {
                let received = i128::from(self.fill.quote) - i128::from(self.fill.terms.fee_sell);
                (terms.quote, received.max(0) as u128)
            }
        }
    }
}

/// A settle that is sent until its number is used or it has ended.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct InFlight {
    pub body: Body,
    /// The index behind its last fill.
    pub to: u64,
}

/// An account whose settles the root signs, or signed.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Signer {
    /// The number signed last.
    pub last: Sequence,
    /// What was signed with it, until it is used or has ended.
    pub in_flight: Option<InFlight>,
}

/// All of it but the books.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Core {
    pub settings: VenueSettings,
    /// Milliseconds that went by, and what the host's clock said last: where it is set back no time went by.
    pub now_ms: u64,
    pub clock_ms: u64,
    /// Heights and times of certified blocks, from the first one on.
    pub horizon: Option<Horizon>,
    /// The highest decided block that the host has announced.
    pub newest: Height,
    /// When the last certified block came; `None` if none came since the root was opened.
    pub heard_ms: Option<u64>,
    pub standing: Option<VenueStanding>,
    /// The rules of the block after the last certified one; 0 before they are told.
    pub rules: u32,
    /// Whose keys the root has.
    pub acts_as: VenueOperator,
    pub operator: Option<OperatorStanding>,
    pub listed: BTreeMap<MarketId, MarketTerms>,
    pub accounts: Vec<Account>,
    pub account_of: BTreeMap<Address, u32>,
    /// Accounts that have a place, by their numbers in the books.
    pub owners: Vec<u32>,
    pub keys: Vec<Key>,
    /// Is looked up for each command, and never walked.
    pub key_of: HashMap<PublicKey, u32, DefaultHashBuilder>,
    pub orders: Vec<Option<Order>>,
    /// By the slots of their orders.
    pub order_proofs: Vec<OrderProof>,
    pub free: Vec<u32>,
    pub last_id: u64,
    /// What small orders cost today.
    pub spared: Spared,
    /// Effects so far.
    pub effects: u64,
    /// Orders whose end by block time waits.
    pub untils: BTreeSet<(u64, u32)>,
    /// Orders that are entries until their expiry is past: all that are open, and those with fills.
    pub entries: Expiries,
    pub sessions: BTreeMap<SessionNumber, Session>,
    pub tree: FillTree,
    pub pending: VecDeque<Pending>,
    /// By account. One that comes back must not sign a number for another body, so none is forgotten.
    pub signers: BTreeMap<Address, Signer>,
    /// Settles in a row that were void, and the height before which no other is cut.
    pub voids: u32,
    pub cut_from: Height,
    /// Whether the next settle brings all signatures: the last one was void.
    pub signs_all: bool,
    pub paused: Option<VenuePause>,
    pub stopped: Option<VenueStop>,
    /// Sums over unsettled fills and their orders.
    pub penalties: u128,
    pub weight: u64,
    pub bytes: u64,
    pub prospective: u64,
    /// It stands apart in snapshots, which had none of it before version 5.
    #[borsh(skip)]
    pub controls: KnownControls,
}

/// What issuers control, and what they have said of accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct KnownControls {
    /// The account that owns the venue.
    pub owner: Option<Address>,
    pub assets: BTreeMap<AssetId, FreezableAsset>,
    /// Whether an account is open.
    pub holders: BTreeMap<(AssetId, Address), bool>,
}

impl Core {
    pub fn new(settings: VenueSettings) -> Core {
        Core {
            settings,
            now_ms: 0,
            clock_ms: 0,
            horizon: None,
            newest: 0,
            heard_ms: None,
            standing: None,
            rules: 0,
            acts_as: settings.operator,
            operator: None,
            listed: BTreeMap::new(),
            accounts: Vec::new(),
            account_of: BTreeMap::new(),
            owners: Vec::new(),
            keys: Vec::new(),
            key_of: HashMap::default(),
            orders: Vec::new(),
            order_proofs: Vec::new(),
            free: Vec::new(),
            last_id: 0,
            spared: Spared::default(),
            effects: 0,
            untils: BTreeSet::new(),
            entries: Expiries::default(),
            sessions: BTreeMap::new(),
            tree: FillTree::default(),
            pending: VecDeque::new(),
            signers: BTreeMap::new(),
            voids: 0,
            cut_from: 0,
            signs_all: false,
            paused: None,
            stopped: None,
            penalties: 0,
            weight: 0,
            bytes: 0,
            prospective: 0,
            controls: KnownControls::default(),
        }
    }

    pub fn order(&self, slot: u32) -> &Order {
        self.orders[slot as usize].as_ref().expect("a slot in use")
    }

    pub fn order_mut(&mut self, slot: u32) -> &mut Order {
        self.orders[slot as usize].as_mut().expect("a slot in use")
    }

    /// The slots that hold an order.
    pub fn filled_slots(&self) -> impl Iterator<Item = (u32, &Order)> {
        (0..).zip(&self.orders).filter_map(|(slot, order)| Some((slot, order.as_ref()?)))
    }

    pub fn order_proof(&self, slot: u32) -> &OrderProof {
        &self.order_proofs[slot as usize]
    }

    /// The trading key of an order.
    pub fn public_of(&self, order: &Order) -> PublicKey {
        self.key(order.key).public
    }

    pub fn key(&self, at: u32) -> &Key {
        &self.keys[at as usize]
    }

    pub fn key_mut(&mut self, at: u32) -> &mut Key {
        &mut self.keys[at as usize]
    }

    pub fn account(&self, at: u32) -> &Account {
        &self.accounts[at as usize]
    }

    /// The account of a key.
    pub fn owner_of(&self, key: u32) -> &Account {
        self.account(self.key(key).account)
    }

    /// The last certified height; 0 before the first one.
    pub fn height(&self) -> Height {
        self.horizon.as_ref().map_or(0, Horizon::height)
    }

    /// Its block time.
    pub fn time_ms(&self) -> u64 {
        self.horizon.as_ref().map_or(0, Horizon::time_ms)
    }

    /// Lets the time go by that the host's clock says.
    pub fn pass_time(&mut self, clock_ms: u64) {
        let passed = if self.clock_ms == 0 { 0 } else { clock_ms.saturating_sub(self.clock_ms) };
        self.now_ms = self.now_ms.saturating_add(passed);
        self.clock_ms = clock_ms;
    }

    /// Fills that are settled.
    pub fn settled(&self) -> u64 {
        self.tree.count() - self.pending.len() as u64
    }

    /// The signer whose keys the root has.
    pub fn signer(&self) -> Option<&Signer> {
        self.signers.get(&self.acts_as.account)
    }

    /// Its settle in flight.
    pub fn in_flight(&self) -> Option<&InFlight> {
        self.signer()?.in_flight.as_ref()
    }

    pub fn holding_mut(&mut self, account: u32, asset: AssetId) -> &mut Holding {
        let holdings = &mut self.accounts[account as usize].holdings;
        let at = holdings.binary_search_by_key(&asset, |of| of.asset);
        let at = at.unwrap_or_else(|at| {
            holdings.insert(at, Holding { asset, free: 0, leaving: 0, open: 0, owed: 0 });
            at
        });
        &mut holdings[at]
    }

    pub fn exposure_mut(&mut self, key: u32, asset: AssetId) -> &mut Exposure {
        let exposures = &mut self.keys[key as usize].exposures;
        let at = exposures.binary_search_by_key(&asset, |of| of.asset);
        let at = at.unwrap_or_else(|at| {
            // A key has few, and there are many keys.
            exposures.reserve_exact(1);
            exposures.insert(at, Exposure { asset, open: 0, owed: 0 });
            at
        });
        &mut exposures[at]
    }

    /// Open orders of a key, oldest first.
    pub fn open_orders(&self, key: u32) -> Vec<u32> {
        let open = |remembered: &Remembered| match remembered {
            Remembered::Taken(slot) if self.order(*slot).end.is_none() => Some(*slot),
            _ => None,
        };
        let mut slots: Vec<u32> = self.key(key).numbers.values().filter_map(open).collect();
        slots.sort_unstable_by_key(|slot| self.order(*slot).id);
        slots
    }
}

impl Account {
    /// Whether it has an open order: each reserves something.
    pub fn has_open(&self) -> bool {
        self.holdings.iter().any(|of| of.open > 0)
    }

    pub fn holding(&self, asset: AssetId) -> Option<&Holding> {
        self.holdings.binary_search_by_key(&asset, |of| of.asset).ok().map(|at| &self.holdings[at])
    }
}

impl Key {
    /// Whether something is remembered of it.
    pub fn has_place(&self) -> bool {
        !self.numbers.is_empty()
    }

    pub fn exposure(&self, asset: AssetId) -> (u128, u128) {
        let at = self.exposures.binary_search_by_key(&asset, |of| of.asset);
        at.map_or((0, 0), |at| (self.exposures[at].open, self.exposures[at].owed))
    }

    pub fn net(&self, asset: AssetId) -> i128 {
        self.net.iter().find(|(of, _)| *of == asset).map_or(0, |(_, net)| *net)
    }
}
