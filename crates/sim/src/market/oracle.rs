//! Plain bookkeeping beside the ledger: what every trader has signed, deposited, traded and is owed, and what no block
//! may do to it, whoever runs the venue. It shares no rule with the ledger, and forgets nothing.

mod controls;

use std::collections::BTreeMap;

use ledger::{BustGuilt, BustReason, FillVerdict, Ledger, SettledFills};
use primitives::venue::{
    Contradicting, Delay, EndedIncarnation, FillTree, Mandate, OrderNumber, PPM, Settle, SettledFill, SignedOrder,
    SignedReport, VenueEvidence, VenueOperation, VenueOrder, VenueSide,
};
use primitives::{Address, Amount, AssetControl, AssetId, Digest, Height, Operation, PublicKey, Transaction};

use super::holders::{Holders, IssuerCounts};
use super::people::{
    ASSETS, BOND_DELAY, DELAY, EUR, EVERYBODY, FEE, FEE_CAP_PPM, LOT, MARKET, PENALTY, PENALTY_MIN, Person, START,
    TICK, USD, VENUE, address, operator, reporting,
};

/// An order that a trader has signed.
#[derive(Clone, Copy, Debug)]
pub(super) struct KnownOrder {
    pub person: Person,
    pub signed: SignedOrder,
}

/// A trading key.
#[derive(Clone, Debug)]
struct PlainKey {
    person: Person,
    mandate: Mandate,
    revoked: Option<Height>,
    raises: Vec<(Height, OrderNumber)>,
    /// The floor that filled orders stated.
    stated: Option<OrderNumber>,
    net: BTreeMap<AssetId, i128>,
}

#[derive(Clone, Copy, Debug, Default)]
struct PlainDeposit {
    free: Amount,
    leaving: Option<(Amount, Height)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Traded {
    lots: u32,
    quote: u128,
    fee: i128,
}

/// The books.
pub(super) struct Oracle {
    network: Digest,
    /// Block times by height.
    times: Vec<u64>,
    pub signed: BTreeMap<Digest, KnownOrder>,
    keys: BTreeMap<PublicKey, PlainKey>,
    traded: BTreeMap<Digest, Traded>,
    deposits: BTreeMap<(Person, AssetId), PlainDeposit>,
    balances: BTreeMap<(Person, AssetId), Amount>,
    bond: Amount,
    bond_leaving: Option<(Amount, Height)>,
    /// How often the owner has named another operator, and how often when the incarnation began.
    pub changes: u8,
    pub incarnation_from: u8,
    pub incarnation: u32,
    /// Incarnations that ended, each with its fills.
    pub ended: Vec<(Vec<Digest>, EndedIncarnation)>,
    /// The fills of the incarnation.
    pub leaves: Vec<Digest>,
    pub verdicts: Vec<FillVerdict>,
    /// Whom the issuer of EUR froze or admitted.
    pub holders: Holders,
    pub issuer: IssuerCounts,
}

fn person_of(account: &Address) -> Option<Person> {
    EVERYBODY.into_iter().find(|person| address(*person) == *account)
}

impl Oracle {
    pub fn new(network: Digest, control: AssetControl) -> Oracle {
        let balances = EVERYBODY.iter().flat_map(|person| ASSETS.map(|asset| ((*person, asset), START))).collect();
        Oracle {
            network,
            times: vec![0],
            signed: BTreeMap::new(),
            keys: BTreeMap::new(),
            traded: BTreeMap::new(),
            deposits: BTreeMap::new(),
            balances,
            bond: 0,
            bond_leaving: None,
            changes: 0,
            incarnation_from: 0,
            incarnation: 0,
            ended: Vec::new(),
            leaves: Vec::new(),
            verdicts: Vec::new(),
            holders: Holders::new(control),
            issuer: IssuerCounts::default(),
        }
    }

    pub fn network(&self) -> Digest {
        self.network
    }

    /// The height of the last block.
    pub fn height(&self) -> Height {
        self.times.len() as u64 - 1
    }

    /// Remembers what a trader signs.
    pub fn sign(&mut self, person: Person, signed: SignedOrder) {
        let digest = signed.order.digest(&self.network, VENUE, &signed.key);
        self.signed.insert(digest, KnownOrder { person, signed });
    }

    /// Whether an action counts by now: D heights and τ later.
    fn is_past(&self, since: Height) -> bool {
        self.is_past_by(DELAY, since)
    }

    fn is_past_by(&self, delay: Delay, since: Height) -> bool {
        let now = self.height() as usize;
        let then = usize::try_from(since).unwrap_or(usize::MAX);
        now as u64 > since.saturating_add(delay.heights)
            && self.times.get(then).is_some_and(|then| self.times[now] > then + delay.ms)
    }

    /// Follows a block and compares the ledger with the books.
    pub fn follow(
        &mut self,
        ledger: &Ledger,
        time_ms: u64,
        applied: &[&Transaction],
        settles: &[SettledFills],
    ) -> Result<(), String> {
        self.times.push(time_ms);
        let of_settle = |one: &&Transaction| match venue_operation(one) {
            Some(VenueOperation::Settle(settle)) => Some(settle.clone()),
            _ => None,
        };
        let bodies: Vec<Settle> = applied.iter().filter_map(of_settle).collect();
        for (settled, body) in settles.iter().zip(&bodies) {
            self.settle(settled, body)?;
        }
        if settles.len() != bodies.len() || settles.len() > 1 {
            return Err(format!("{} settles of one venue counted in a block", settles.len()));
        }
        let operations = || applied.iter().filter_map(|one| Some((one.body.account, venue_operation(one)?)));
        for (_, operation) in operations() {
            match operation {
                VenueOperation::Accuse(evidence) => self.convict(evidence),
                VenueOperation::AccuseStep(evidence) => self.convict(evidence),
                _ => {}
            }
        }
        operations().for_each(|(_, operation)| self.change_bond(operation));
        operations().for_each(|(_, operation)| self.unbond(operation, ledger.height()));
        self.operate(ledger.height(), applied);
        self.control(ledger.height(), applied)?;
        self.pay_out();
        self.compare(ledger)
    }

    fn settle(&mut self, settled: &SettledFills, body: &Settle) -> Result<(), String> {
        if (settled.incarnation, settled.from) != (self.incarnation, self.leaves.len() as u64) {
            return Err(format!("a settle of fill {} counts, and {} are settled", settled.from, self.leaves.len()));
        }
        for (fill, verdict) in body.fills.iter().zip(&settled.verdicts) {
            match verdict {
                FillVerdict::Applied => self.apply(body, fill)?,
                FillVerdict::Bust(reason, guilt) => {
                    let is_blameless = *guilt == BustGuilt::Nobody && self.is_frozen(body, fill);
                    if *reason == BustReason::Frozen && !is_blameless {
                        return Err(format!("a fill is bust as frozen, and {guilt:?} is guilty"));
                    }
                    self.bust(body, fill, *guilt);
                }
            }
        }
        self.leaves.extend(&settled.leaves);
        self.verdicts.extend(&settled.verdicts);
        Ok(())
    }

    /// A fill moves what both traders have signed, and nothing else.
    fn apply(&mut self, body: &Settle, fill: &SettledFill) -> Result<(), String> {
        if self.is_frozen(body, fill) {
            return Err("a fill moves units of a party that is frozen".into());
        }
        let sides = [(fill.buy, VenueSide::Buy, fill.fee_buy), (fill.sell, VenueSide::Sell, fill.fee_sell)];
        let (base, quote) = (u64::from(fill.lots) * LOT, u64::from(fill.lots) * u64::from(fill.tick) * TICK);
        let mut owners = Vec::new();
        for (at, side, fee) in sides {
            let order = &body.orders[usize::from(at)];
            let digest = order.order.digest(&self.network, VENUE, &order.key);
            let signed = *self.signed.get(&digest).ok_or("a fill of an order that nobody signed moves units")?;
            self.permits(&signed, side, fill).map_err(|why| format!("a fill moves units: {why}"))?;
            self.count(&digest, &signed.signed.order, fill.lots, quote, fee)?;
            owners.push(signed.person);
            let (in_asset, gain, out_asset, loss) = match side {
                VenueSide::Buy => (EUR, i128::from(base), USD, i128::from(quote) + i128::from(fee)),
                VenueSide::Sell => (USD, i128::from(quote) - i128::from(fee), EUR, i128::from(base)),
            };
            self.move_units(&signed, in_asset, gain);
            self.move_units(&signed, out_asset, -loss);
        }
        // The order in which deposits pay: both debits, then both credits.
        let [buyer, seller] = [owners[0], owners[1]];
        if buyer == seller {
            return Err("a fill is between two orders of one owner".into());
        }
        let (paid, received) = (signed_sum(quote, fill.fee_buy)?, signed_sum(quote, -fill.fee_sell)?);
        self.draw(buyer, USD, paid)?;
        self.draw(seller, EUR, base)?;
        self.deposits.entry((buyer, EUR)).or_default().free += base;
        self.deposits.entry((seller, USD)).or_default().free += received;
        let short = self.keys.iter().find(|(_, key)| {
            let is_beyond = |(asset, net): (&AssetId, &i128)| *net < -i128::from(key.mandate.cap(*asset));
            key.net.iter().any(is_beyond)
        });
        short.map_or(Ok(()), |(_, key)| Err(format!("a key of {} loses more than its cap", key.person)))
    }

    fn move_units(&mut self, of: &KnownOrder, asset: AssetId, units: i128) {
        if let Some(key) = self.keys.get_mut(&of.signed.key) {
            *key.net.entry(asset).or_default() += units;
            key.stated = key.stated.max(Some(of.signed.order.floor));
        }
    }

    /// What the order, its key and its mandate permit.
    fn permits(&self, of: &KnownOrder, side: VenueSide, fill: &SettledFill) -> Result<(), String> {
        let VenueOrder { number, tick, expiry, market, .. } = of.signed.order;
        let key = self.keys.get(&of.signed.key).ok_or("the key was never authorised")?;
        let is_better = if side == VenueSide::Buy { fill.tick <= tick } else { fill.tick >= tick };
        let band = key.mandate.market(MARKET).is_some_and(|of| (of.tick_min..=of.tick_max).contains(&fill.tick));
        let raises = key.raises.iter().filter(|(since, _)| self.is_past(*since)).map(|(_, floor)| *floor);
        for (holds, what) in [
            (market == MARKET && of.signed.order.side == side, "it is for another market or side"),
            (number.incarnation == self.incarnation, "it is for another incarnation"),
            (is_better, "the price is beyond its limit"),
            (band, "the price is outside of the mandate"),
            (!self.is_past(expiry), "it has expired"),
            (key.revoked.is_none_or(|since| !self.is_past(since)), "its key is revoked"),
            (raises.chain(key.stated).all(|floor| number >= floor), "it is below a floor"),
        ] {
            if !holds {
                return Err(format!("order {number:?} of {}: {what}", of.person));
            }
        }
        Ok(())
    }

    /// Lots and fees over all fills of an order.
    fn count(&mut self, id: &Digest, order: &VenueOrder, lots: u32, quote: u64, fee: i64) -> Result<(), String> {
        let traded = self.traded.entry(*id).or_default();
        traded.lots += lots;
        traded.quote += u128::from(quote);
        traded.fee += i128::from(fee);
        if traded.lots > order.lots {
            return Err(format!("order {:?} traded {} lots of {}", order.number, traded.lots, order.lots));
        }
        let cap = u128::from(order.fee_cap_ppm.min(FEE_CAP_PPM));
        let most = i128::try_from(traded.quote * cap / u128::from(PPM)).unwrap_or(i128::MAX);
        if traded.fee > most { Err(format!("order {:?} paid more fees than its cap", order.number)) } else { Ok(()) }
    }

    fn draw(&mut self, person: Person, asset: AssetId, units: Amount) -> Result<(), String> {
        let counts = |since: Height| !self.is_past(since);
        let deposit = self.deposits.get(&(person, asset)).copied().unwrap_or_default();
        let leaving = deposit.leaving.filter(|(_, since)| counts(*since)).map_or(0, |(units, _)| units);
        let from_free = units.min(deposit.free);
        let rest = units - from_free;
        if rest > leaving {
            return Err(format!("{person} pays {units} of asset {} and has less", asset.0));
        }
        let deposit = self.deposits.entry((person, asset)).or_default();
        deposit.free -= from_free;
        let left = deposit.leaving.map(|(units, since)| (units - rest, since));
        deposit.leaving = left.filter(|(units, _)| *units > 0);
        Ok(())
    }

    /// What a bust pays.
    fn bust(&mut self, body: &Settle, fill: &SettledFill, guilt: BustGuilt) {
        // Orders of a market that nobody listed cost the least.
        let is_listed = body.orders[usize::from(fill.buy)].order.market == MARKET;
        let penalty = u64::from(fill.lots) * if is_listed { PENALTY } else { PENALTY_MIN };
        self.take_bond(penalty);
        let at = match guilt {
            BustGuilt::Buyer => fill.sell,
            BustGuilt::Seller => fill.buy,
            BustGuilt::Nobody | BustGuilt::Both => return,
        };
        let key = &body.orders[usize::from(at)].key;
        if let Some(person) = self.keys.get(key).map(|key| key.person) {
            self.pay(person, penalty);
        }
    }

    /// Asset 0 that a trader is paid by the bond.
    fn pay(&mut self, person: Person, units: Amount) {
        if let Some(balance) = self.balances.get_mut(&(person, USD)) {
            *balance += units;
        }
    }

    /// A conviction takes the bond; a tenth is for those to whom the reports were made.
    fn convict<R: SignedReport>(&mut self, evidence: &VenueEvidence<R>) {
        let accounts = match &evidence.contradicting {
            Contradicting::Tree(..) => vec![evidence.report.fill().account],
            Contradicting::Report(other) => vec![evidence.report.fill().account, other.fill().account],
        };
        let leaving = self.bond_leaving.take().map_or(0, |(units, _)| units);
        let share = (std::mem::take(&mut self.bond) + leaving) / 10 / accounts.len() as Amount;
        accounts.iter().filter_map(person_of).for_each(|person| self.pay(person, share));
    }

    fn change_bond(&mut self, operation: &VenueOperation) {
        match operation {
            VenueOperation::Open { bond: units, .. } | VenueOperation::Bond { units, .. } => self.bond += units,
            VenueOperation::Claim(claim) => self.take_bond(u64::from(claim.fill.lots) * PENALTY),
            VenueOperation::ClaimStep(claim) => self.take_bond(u64::from(claim.fill.lots) * PENALTY),
            _ => {}
        }
    }

    /// What leaves is liable until it is paid, after the bond itself.
    fn take_bond(&mut self, units: Amount) {
        let from_bond = units.min(self.bond);
        self.bond -= from_bond;
        let leaving = self.bond_leaving.map(|(left, since)| (left - left.min(units - from_bond), since));
        self.bond_leaving = leaving.filter(|(left, _)| *left > 0);
    }

    /// A withdrawal from the bond begins after everything that this block takes from it.
    fn unbond(&mut self, operation: &VenueOperation, height: Height) {
        let VenueOperation::Unbond { units, .. } = operation else { return };
        let leaves = (*units).min(self.bond);
        self.bond -= leaves;
        self.bond_leaving = (leaves > 0).then_some((leaves, height));
    }

    /// What traders did.
    fn operate(&mut self, height: Height, applied: &[&Transaction]) {
        for one in applied {
            let Some(person) = person_of(&one.body.account) else {
                let is_change = |of: &&VenueOperation| matches!(of, VenueOperation::ChangeOperator { .. });
                self.changes += u8::from(venue_operation(one).filter(is_change).is_some());
                continue;
            };
            self.take(person, USD, FEE * one.body.weight());
            let Some(operation) = venue_operation(one) else { continue };
            match operation {
                VenueOperation::Deposit { asset, units, .. } => {
                    self.take(person, *asset, *units);
                    self.deposits.entry((person, *asset)).or_default().free += units;
                }
                VenueOperation::Collect { asset, units, .. } => {
                    let deposit = self.deposits.entry((person, *asset)).or_default();
                    let leaves = (*units).min(deposit.free);
                    deposit.free -= leaves;
                    deposit.leaving = Some((leaves, height));
                }
                VenueOperation::Authorize { key, mandate, .. } => {
                    let (mandate, net) = (mandate.clone(), BTreeMap::new());
                    let new = PlainKey { person, mandate, revoked: None, raises: Vec::new(), stated: None, net };
                    self.keys.insert(*key, new);
                }
                VenueOperation::Revoke { key, .. } => {
                    self.keys.entry(*key).and_modify(|key| key.revoked = Some(height));
                }
                VenueOperation::RaiseFloor { key, floor, .. } => {
                    self.keys.entry(*key).and_modify(|key| key.raises.push((height, *floor)));
                }
                _ => {}
            }
        }
        // A fence ends what the block has made of its incarnation.
        for operation in applied.iter().filter_map(|one| venue_operation(one)) {
            if let VenueOperation::Fence { incarnation, .. } = operation {
                self.fence(*incarnation, height);
            }
        }
    }

    fn fence(&mut self, incarnation: u32, height: Height) {
        let leaves = std::mem::take(&mut self.leaves);
        let mut tree = FillTree::default();
        leaves.iter().for_each(|leaf| assert!(tree.append(*leaf), "few leaves"));
        let mut report_keys: Vec<PublicKey> = Vec::new();
        for key in (self.incarnation_from..=self.changes).map(|changes| reporting(changes).public()) {
            if !report_keys.contains(&key) {
                report_keys.push(key);
            }
        }
        let time_ms = self.times[height as usize];
        let ended = EndedIncarnation { incarnation, tree, report_keys, height, time_ms };
        self.ended.push((leaves, ended));
        self.incarnation = incarnation + 1;
        self.verdicts.clear();
        self.incarnation_from = self.changes;
        self.keys.values_mut().for_each(|key| key.stated = None);
    }

    fn take(&mut self, person: Person, asset: AssetId, units: Amount) {
        if let Some(balance) = self.balances.get_mut(&(person, asset)) {
            *balance -= units;
        }
    }

    /// A collection is owed at the first block in which its request is past, whatever the venue does.
    fn pay_out(&mut self) {
        let due: Vec<_> =
            self.deposits.iter().filter_map(|(id, of)| of.leaving.map(|leaving| (*id, leaving))).collect();
        self.bond_leaving = self.bond_leaving.filter(|(_, since)| !self.is_past_by(BOND_DELAY, *since));
        for (id, (units, since)) in due {
            if self.is_past(since) {
                *self.balances.entry(id).or_default() += units;
                self.deposits.entry(id).or_default().leaving = None;
            }
        }
    }

    /// Balances and deposits of traders are those of the books, to the unit.
    fn compare(&self, ledger: &Ledger) -> Result<(), String> {
        self.holders.compare(ledger)?;
        let venues = ledger.venues().ok_or("the chain has no venues")?;
        if let Some(venue) = venues.get(VENUE) {
            let found = (venue.bond, venue.leaving.map(|leaving| (leaving.units, leaving.since.height)));
            if found != (self.bond, self.bond_leaving) {
                return Err(format!("the bond is {found:?} instead of {:?}", (self.bond, self.bond_leaving)));
            }
            if venue.operator != operator(self.changes) {
                return Err(format!("the venue has another operator after {} changes", self.changes));
            }
        }
        for (person, asset) in EVERYBODY.iter().flat_map(|person| ASSETS.map(|asset| (*person, asset))) {
            let found = venues.deposit(VENUE, &address(person), asset);
            let of = self.deposits.get(&(person, asset)).copied().unwrap_or_default();
            let found = (found.free, found.leaving.map(|leaving| (leaving.units, leaving.since)));
            if found != (of.free, of.leaving) {
                return Err(format!("the deposit of {person} in asset {} is {found:?} instead of {of:?}", asset.0));
            }
            let found = ledger.accounts().get(&address(person)).map_or(0, |of| of.balance(asset));
            let wanted = self.balances[&(person, asset)];
            if found != wanted {
                return Err(format!("{person} has {found} of asset {} instead of {wanted}", asset.0));
            }
        }
        Ok(())
    }

    /// Whether a key may be used for orders: it is authorised and not revoked.
    pub fn is_usable(&self, key: &PublicKey) -> bool {
        self.keys.get(key).is_some_and(|key| key.revoked.is_none())
    }
}

/// What a transaction does at a venue.
pub(super) fn venue_operation(of: &Transaction) -> Option<&VenueOperation> {
    match &of.body.operation {
        Operation::Venue(operation) => Some(operation),
        _ => None,
    }
}

fn signed_sum(units: u64, fee: i64) -> Result<Amount, String> {
    units.checked_add_signed(fee).ok_or_else(|| "fees are more than what is traded".into())
}
