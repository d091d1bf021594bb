//! What traders say to the venue and do on the ledger. Two of them keep to the rules; the others forge, repeat, sign
//! stale and impossible orders, replace by the dozen, take their deposits away and revoke keys under open orders.

use std::collections::BTreeMap;

use kernel::Dice;
use primitives::venue::{
    ListEntry, OrderLife, OrderList, OrderNumber, SelfTradeRule, SignedOrder, TICK_MAX, VenueOperation, VenueOrder,
    VenueSide, possession_bytes,
};
use primitives::{Digest, Height, PublicKey, Signature};
use venue::{CheckedOrder, TradeCommand, VenueInput, check_lists, check_orders};

use super::oracle::Oracle;
use super::people::{
    ASSETS, EVERYBODY, FEE_CAP_PPM, HOSTILE, MARKET, Person, TRADERS, VENUE, address, collect, deposit, mandate,
    public, trading,
};

/// Orders that are remembered, to be cancelled, replaced and repeated.
const RECENT: usize = 24;
/// Replacements in one step.
const STORM: usize = 12;

/// What an order of now may say.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub network: Digest,
    pub incarnation: u32,
    pub height: Height,
    pub time_ms: u64,
}

/// All traders.
#[derive(Default)]
pub(super) struct Traders {
    /// The number of the last key of each.
    keys: BTreeMap<Person, u8>,
    reference: u32,
    /// What decides about lists, if traders sign any: what else happens does not depend on them.
    pub lists: Option<Dice>,
    recent: Vec<(Person, SignedOrder)>,
    /// Orders that no gateway may let pass, and that one did.
    pub passed: u64,
    /// Orders that were tried although they were forged.
    pub forged: u64,
}

impl Traders {
    pub fn new(lists: Option<Dice>) -> Traders {
        Traders { lists, ..Traders::default() }
    }

    fn key_number(&self, person: Person) -> u8 {
        self.keys.get(&person).copied().unwrap_or(0)
    }

    /// Sessions of all traders, each for all of its keys.
    pub fn attach(&self) -> Vec<VenueInput> {
        let one = |person: Person| {
            let keys = (0..=self.key_number(person)).map(|number| public(person, number)).collect();
            VenueInput::Attach { session: person.into(), keys, ends_orders: false, dead_man_ms: None }
        };
        TRADERS.map(one).to_vec()
    }

    /// A trader authorises its present key.
    pub fn authorize(&self, person: Person, network: &Digest) -> VenueOperation {
        let secret = trading(person, self.key_number(person));
        let possession = secret.sign(&possession_bytes(network, VENUE, &address(person), &secret.public()));
        VenueOperation::Authorize { venue: VENUE, key: secret.public(), mandate: mandate(person), possession }
    }

    /// What sessions say in a step.
    pub fn inputs(&mut self, now: Moment, oracle: &mut Oracle, dice: &mut Dice) -> Vec<VenueInput> {
        let mut inputs: Vec<VenueInput> = (0..1 + dice.below(8)).flat_map(|_| self.say(now, oracle, dice)).collect();
        if let Some(mut apart) = self.lists.take() {
            let list = if apart.once_in(3) { self.list(now, oracle, &mut apart) } else { None };
            inputs.extend(list);
            self.lists = Some(apart);
        }
        inputs
    }

    fn say(&mut self, now: Moment, oracle: &mut Oracle, dice: &mut Dice) -> Vec<VenueInput> {
        let person = TRADERS[dice.index(TRADERS.len())];
        if HOSTILE.contains(&person) && dice.once_in(2) {
            return self.attack(person, now, oracle, dice);
        }
        match dice.below(12) {
            0..=7 => {
                let order = self.order(now, dice);
                self.place(person, order, now, oracle).into_iter().collect()
            }
            8 => self.known(dice).map(|(of, one)| cancel(of, one.key, one.order.number, 0)).into_iter().collect(),
            9 => {
                let lower =
                    |(of, one): (Person, SignedOrder)| cancel(of, one.key, one.order.number, one.order.lots / 2);
                self.known(dice).map(lower).into_iter().collect()
            }
            10 => self.replace(now, oracle, dice).into_iter().collect(),
            _ => {
                let key = public(person, self.key_number(person));
                let side = if dice.once_in(2) { Some(VenueSide::Buy) } else { None };
                let all = TradeCommand::CancelAll { key, market: Some(MARKET), side };
                vec![VenueInput::Trade(person.into(), all)]
            }
        }
    }

    /// What no honest trader says.
    fn attack(&mut self, person: Person, now: Moment, oracle: &mut Oracle, dice: &mut Dice) -> Vec<VenueInput> {
        let order = self.order(now, dice);
        match dice.below(9) {
            0 => {
                self.forge(person, order, now);
                Vec::new()
            }
            1 => self.known(dice).and_then(|(of, one)| submit(of, one, now)).into_iter().collect(),
            2 => {
                // Another order under a number that is used.
                let Some((of, one)) = self.known(dice) else { return Vec::new() };
                let order = VenueOrder { number: one.order.number, ..order };
                self.place(of, order, now, oracle).into_iter().collect()
            }
            3 => {
                let order = stale(order, now, dice);
                self.place(person, order, now, oracle).into_iter().collect()
            }
            4 => (0..STORM).filter_map(|_| self.replace(now, oracle, dice)).collect(),
            5 => {
                let order = extreme(order, dice);
                self.place(person, order, now, oracle).into_iter().collect()
            }
            6 => {
                // A cancel overtakes its order.
                let key = public(person, self.key_number(person));
                let placed = self.place(person, order, now, oracle);
                [Some(cancel(person, key, order.number, 0)), placed].into_iter().flatten().collect()
            }
            7 => {
                let old = self.key_number(person).saturating_sub(1);
                self.place_with(person, old, order, now, oracle).into_iter().collect()
            }
            _ => {
                // Somebody else's order.
                let other = self.known(dice).map(|(_, one)| cancel(person, one.key, one.order.number, 0));
                other.into_iter().collect()
            }
        }
    }

    /// Some orders under one signature, of which some replace others; what a gateway changed in one is refused there.
    fn list(&mut self, now: Moment, oracle: &mut Oracle, dice: &mut Dice) -> Option<VenueInput> {
        let person = TRADERS[dice.index(TRADERS.len())];
        let key = trading(person, self.key_number(person));
        let mut entries = Vec::new();
        for _ in 0..1 + dice.index(9) {
            let order = self.order(now, dice);
            oracle.sign(person, SignedOrder::sign(&now.network, VENUE, &key, order));
            let own = self.recent.iter().rev().find(|(of, _)| *of == person && dice.once_in(3));
            entries.push(ListEntry { order, replaces: own.map(|(_, one)| one.order.number) });
        }
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&dice.bits().to_le_bytes());
        let list = OrderList::sign(&now.network, VENUE, seed, entries, &key).ok()?;
        let mut forged = list.clone();
        forged.entries[0].order.lots += 1;
        let [forged, checked] = <[_; 2]>::try_from(check_lists(&now.network, VENUE, vec![forged, list])).ok()?;
        self.forged += 1;
        self.passed += u64::from(forged.is_ok());
        Some(VenueInput::List(person.into(), checked.ok()?))
    }

    fn known(&self, dice: &mut Dice) -> Option<(Person, SignedOrder)> {
        (!self.recent.is_empty()).then(|| self.recent[dice.index(self.recent.len())])
    }

    fn replace(&mut self, now: Moment, oracle: &mut Oracle, dice: &mut Dice) -> Option<VenueInput> {
        let (person, old) = self.known(dice)?;
        let VenueOrder { side, life, self_trade, number, .. } = old.order;
        let order = VenueOrder { side, life, self_trade, ..self.order(now, dice) };
        let checked = self.signed(person, self.key_number(person), order, now, oracle)?;
        Some(VenueInput::Trade(person.into(), TradeCommand::Replace(number, checked)))
    }

    fn order(&mut self, now: Moment, dice: &mut Dice) -> VenueOrder {
        self.reference += 1;
        let one = |dice: &mut Dice, all: &[OrderLife]| all[dice.index(all.len())];
        let lives = [
            OrderLife::Rests,
            OrderLife::Rests,
            OrderLife::Rests,
            OrderLife::PostOnly,
            OrderLife::ImmediateOrCancel,
            OrderLife::FillOrKill,
        ];
        let rules = [SelfTradeRule::ExpireMaker, SelfTradeRule::ExpireTaker, SelfTradeRule::ExpireBoth];
        let (is_short, floors) = (dice.once_in(3), dice.once_in(12));
        let number = |reference| OrderNumber { incarnation: now.incarnation, day: 1, reference };
        let life = dice.below(6);
        VenueOrder {
            market: MARKET,
            number: number(self.reference),
            floor: number(if floors { self.reference.saturating_sub(6) } else { 0 }),
            side: if dice.once_in(2) { VenueSide::Buy } else { VenueSide::Sell },
            life: one(dice, &lives),
            self_trade: rules[dice.index(3)],
            tick: 98 + dice.below(5) as u32,
            lots: 1 + dice.below(30) as u32,
            expiry: now.height + if is_short { life } else { 100 },
            until_ms: (is_short && dice.once_in(2)).then_some(now.time_ms + life * 500),
            fee_cap_ppm: FEE_CAP_PPM,
        }
    }

    fn place(&mut self, person: Person, order: VenueOrder, now: Moment, oracle: &mut Oracle) -> Option<VenueInput> {
        self.place_with(person, self.key_number(person), order, now, oracle)
    }

    fn place_with(
        &mut self,
        person: Person,
        key: u8,
        order: VenueOrder,
        now: Moment,
        oracle: &mut Oracle,
    ) -> Option<VenueInput> {
        let checked = self.signed(person, key, order, now, oracle)?;
        Some(VenueInput::Trade(person.into(), TradeCommand::New(checked)))
    }

    /// A signed order as a gateway forwards it; nothing if the gateway refuses its fields.
    fn signed(
        &mut self,
        person: Person,
        key: u8,
        order: VenueOrder,
        now: Moment,
        oracle: &mut Oracle,
    ) -> Option<CheckedOrder> {
        let secret = trading(person, key);
        let signed = SignedOrder::sign(&now.network, VENUE, &secret, order);
        oracle.sign(person, signed);
        if self.recent.len() == RECENT {
            self.recent.remove(0);
        }
        self.recent.push((person, signed));
        check_orders(&now.network, VENUE, &[signed])[0]
    }

    /// An order in the name of another trader's key, which a gateway must not let pass.
    fn forge(&mut self, person: Person, order: VenueOrder, now: Moment) {
        let victim = TRADERS[usize::from(person) % 2];
        let own = SignedOrder::sign(&now.network, VENUE, &trading(person, 0), order);
        let key = public(victim, self.key_number(victim));
        let tries = [own.signature, Signature([7; 64])].map(|signature| SignedOrder { key, order, signature });
        self.forged += tries.len() as u64;
        self.passed += check_orders(&now.network, VENUE, &tries).iter().flatten().count() as u64;
    }

    /// What a trader does on the ledger in a block.
    pub fn operation(
        &mut self,
        person: Person,
        now: Moment,
        venues: &ledger::Venues,
        oracle: &Oracle,
        dice: &mut Dice,
    ) -> Option<VenueOperation> {
        let is_hostile = HOSTILE.contains(&person);
        let key = public(person, self.key_number(person));
        if !oracle.is_usable(&key) {
            let is_known = venues.key(VENUE, &key).is_some();
            if is_known {
                *self.keys.entry(person).or_default() += 1;
            }
            return Some(self.authorize(person, &now.network));
        }
        let asset = ASSETS[dice.index(2)];
        let held = venues.deposit(VENUE, &address(person), asset);
        match dice.below(if is_hostile { 8 } else { 24 }) {
            0..=1 => Some(deposit(asset, 1 + dice.below(8_000))),
            2..=3 if held.leaving.is_none() && held.free > 0 => {
                let all = if is_hostile { 1 } else { 4 };
                Some(collect(asset, held.free.div_ceil(all)))
            }
            4 if dice.once_in(3) => {
                let floor = OrderNumber {
                    incarnation: now.incarnation,
                    day: 1,
                    reference: self.reference.saturating_sub(dice.below(4) as u32),
                };
                Some(VenueOperation::RaiseFloor { venue: VENUE, key, floor })
            }
            5 if is_hostile && dice.once_in(3) => Some(VenueOperation::Revoke { venue: VENUE, key }),
            _ => None,
        }
    }
}

/// An order that is over, for another incarnation, or under a number of long ago.
fn stale(order: VenueOrder, now: Moment, dice: &mut Dice) -> VenueOrder {
    let number = order.number;
    let other = OrderNumber { incarnation: number.incarnation ^ 1, ..number };
    match dice.below(4) {
        0 => VenueOrder { expiry: now.height.saturating_sub(1), ..order },
        1 => VenueOrder { until_ms: Some(now.time_ms.saturating_sub(1)), ..order },
        2 => VenueOrder { number: other, floor: OrderNumber { reference: 0, ..other }, ..order },
        _ => VenueOrder {
            number: OrderNumber { day: 0, ..number },
            floor: OrderNumber { day: 0, ..order.floor },
            ..order
        },
    }
}

/// An order with a field at its limit.
fn extreme(order: VenueOrder, dice: &mut Dice) -> VenueOrder {
    match dice.below(10) {
        0 => VenueOrder { tick: u32::MAX, ..order },
        1 => VenueOrder { tick: TICK_MAX, ..order },
        2 => VenueOrder { tick: 0, ..order },
        3 => VenueOrder { lots: u32::MAX, ..order },
        4 => VenueOrder { lots: u32::MAX, tick: TICK_MAX, ..order },
        5 => VenueOrder { expiry: u64::MAX, ..order },
        6 => VenueOrder { until_ms: Some(u64::MAX), ..order },
        7 => VenueOrder { fee_cap_ppm: u32::MAX, ..order },
        8 => VenueOrder { fee_cap_ppm: 0, ..order },
        _ => VenueOrder { market: u32::MAX, ..order },
    }
}

fn submit(person: Person, signed: SignedOrder, now: Moment) -> Option<VenueInput> {
    let checked = check_orders(&now.network, VENUE, &[signed])[0]?;
    Some(VenueInput::Trade(person.into(), TradeCommand::New(checked)))
}

fn cancel(person: Person, key: PublicKey, number: OrderNumber, keeps: u32) -> VenueInput {
    VenueInput::Trade(person.into(), TradeCommand::Cancel { key, number, keeps })
}

/// Everything that the traders have at the venue, to be taken out.
pub(super) fn collections(ledger: &ledger::Ledger) -> Vec<(Person, VenueOperation)> {
    let venues = ledger.venues().expect("the chain has venues");
    let held = |(person, asset)| (person, asset, venues.deposit(VENUE, &address(person), asset));
    let all = EVERYBODY.iter().flat_map(|person| ASSETS.map(|asset| held((*person, asset))));
    let due = all.filter(|(.., of)| of.free > 0 && of.leaving.is_none());
    due.map(|(person, asset, of)| (person, collect(asset, of.free))).collect()
}
