//! A plain model of the rules of venues: one venue, every record for ever, every time.

use std::collections::{BTreeMap, BTreeSet};

use primitives::venue::{
    Contradicting, EndedIncarnation, FillTree, Mandate, MarketTerms, OrderNumber, ReportedFill, SignedReport,
    UnsettledFill, VenueEvidence, VenueOperation, VenueOperator,
};
use primitives::{Address, Amount, AssetId, Digest, PublicKey};

use crate::terms::VenueTerms;

pub const VENUE: u32 = 0;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlainKey {
    pub owner: Address,
    pub markets: BTreeMap<u32, (u32, u32)>,
    pub caps: BTreeMap<u32, Amount>,
    pub net: BTreeMap<u32, i128>,
    pub revoked: Option<usize>,
    /// All raises ever, and the highest floor that an order stated.
    pub raises: Vec<(usize, OrderNumber)>,
    pub stated: OrderNumber,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PlainEntry {
    pub digest: Digest,
    pub lots: u32,
    pub quote: i128,
    pub fee: i128,
    pub expiry: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PlainDeposit {
    pub free: Amount,
    pub leaving: Option<(Amount, usize)>,
}

#[derive(Clone)]
pub struct Plain {
    pub network: Digest,
    pub terms: VenueTerms,
    /// Block times by height; the first is the genesis.
    pub times: Vec<u64>,
    pub owner: Address,
    pub operator: VenueOperator,
    pub fee_cap: u32,
    pub incarnation: u32,
    pub judged: u32,
    pub report_keys: Vec<PublicKey>,
    pub leaves: Vec<Digest>,
    pub ended: Vec<(EndedIncarnation, Vec<Digest>)>,
    pub bond: Amount,
    pub leaving: Option<(Amount, usize)>,
    pub markets: Vec<MarketTerms>,
    pub deposits: BTreeMap<(Address, AssetId), PlainDeposit>,
    pub keys: BTreeMap<PublicKey, PlainKey>,
    pub entries: BTreeMap<(PublicKey, OrderNumber), PlainEntry>,
    pub claimed: BTreeSet<(u32, u64)>,
    /// What the block paid to accounts, and what it burnt.
    pub paid: BTreeMap<(Address, AssetId), Amount>,
    pub burnt: Amount,
}

pub fn zero() -> OrderNumber {
    OrderNumber { incarnation: 0, day: 0, reference: 0 }
}

impl Plain {
    pub fn height(&self) -> usize {
        self.times.len() - 1
    }

    /// By heights and by time, both.
    pub fn past(&self, since: usize) -> bool {
        self.past_by(since, self.terms.delay.heights, self.terms.delay.ms)
    }

    fn past_by(&self, since: usize, heights: u64, ms: u64) -> bool {
        let now = self.height();
        since < now && now as u64 > since as u64 + heights && self.times[now] > self.times[since] + ms
    }

    pub fn floor(&self, key: &PlainKey) -> OrderNumber {
        let in_force = key.raises.iter().filter(|(since, _)| self.past(*since)).map(|(_, floor)| *floor);
        in_force.chain([key.stated]).max().expect("one at least")
    }

    fn is_revoked(&self, key: &PlainKey) -> bool {
        key.revoked.is_some_and(|since| self.past(since))
    }

    pub fn is_dead(&self, key: &PlainKey, number: OrderNumber) -> bool {
        self.is_revoked(key) || number < self.floor(key)
    }

    pub fn pay(&mut self, to: Address, asset: AssetId, units: Amount) {
        if units > 0 {
            *self.paid.entry((to, asset)).or_default() += units;
        }
    }

    fn liable(&self) -> Amount {
        self.bond + self.leaving.map_or(0, |(units, _)| units)
    }

    fn is_convicting<R: SignedReport>(&self, evidence: &VenueEvidence<R>) -> bool {
        let report = evidence.report.fill();
        let Some((leaves, keys)) = self.incarnation(&report, evidence.ended.as_ref().map(|one| &one.ended)) else {
            return false;
        };
        let holds = match &evidence.contradicting {
            Contradicting::Tree(leaf, path) => {
                let at = leaves.get(report.index as usize);
                at == Some(leaf) && FillTree::path(leaves, report.index).as_ref() == Some(path) && *leaf != report.leaf
            }
            Contradicting::Report(other) => {
                let (own, theirs) = (evidence.report.header(), other.header());
                let is_index_twice = other.fill().index == report.index && other.fill().leaf != report.leaf;
                let is_step_twice =
                    own.zip(theirs).is_some_and(|(own, theirs)| own.step == theirs.step && own != theirs);
                keys.contains(&other.key()) && (is_index_twice || is_step_twice)
            }
        };
        holds && keys.contains(&evidence.report.key()) && report.incarnation >= self.judged && self.liable() > 0
    }

    fn incarnation(
        &self,
        report: &ReportedFill,
        ended: Option<&EndedIncarnation>,
    ) -> Option<(&[Digest], &[PublicKey])> {
        match ended {
            None => (report.incarnation == self.incarnation).then_some((&self.leaves[..], &self.report_keys[..])),
            Some(ended) => {
                let (known, leaves) = self.ended.get(report.incarnation as usize)?;
                (known == ended).then_some((&leaves[..], &known.report_keys[..]))
            }
        }
    }

    fn is_claimable<R: SignedReport>(&self, claim: &UnsettledFill<R>) -> bool {
        let report = claim.report.fill();
        let Some((leaves, keys)) = self.incarnation(&report, Some(&claim.ended.ended)) else { return false };
        let delay = self.terms.bond_delay;
        keys.contains(&claim.report.key())
            && report.incarnation >= self.judged
            && report.index as usize >= leaves.len()
            && report.leaf == claim.leaf(&self.network)
            && !self.claimed.contains(&(report.incarnation, report.index))
            && !self.past_by(claim.ended.ended.height as usize, delay.heights, delay.ms)
            && self.liable() > 0
            && (claim.buy.order.market as usize) < self.markets.len()
            && claim.buy.order.market == claim.sell.order.market
    }

    /// Whether an operation is admitted on the state before a block.
    pub fn permits(&self, sender: Address, operation: &VenueOperation) -> bool {
        let is_owner = sender == self.owner;
        match operation {
            VenueOperation::Fence { incarnation, .. } => is_owner && *incarnation == self.incarnation,
            VenueOperation::ChangeOperator { from, to, .. } => {
                let has_room = self.report_keys.contains(&to.report_key) || self.report_keys.len() < 8;
                is_owner && *from == self.operator && has_room
            }
            VenueOperation::Bond { .. } => is_owner,
            VenueOperation::Unbond { units, .. } => is_owner && self.leaving.is_none() && *units <= self.bond,
            VenueOperation::Settle(settle) => {
                sender == self.operator.account
                    && settle.incarnation == self.incarnation
                    && self.judged <= self.incarnation
            }
            VenueOperation::Deposit { .. } => true,
            VenueOperation::Collect { asset, .. } => {
                self.deposits.get(&(sender, *asset)).is_some_and(|of| of.leaving.is_none() && of.free > 0)
            }
            VenueOperation::Authorize { key, .. } => !self.keys.contains_key(key),
            VenueOperation::Revoke { key, .. } => self.is_own(sender, key),
            VenueOperation::RaiseFloor { key, floor, .. } => {
                self.is_own(sender, key) && {
                    let key = &self.keys[key];
                    let waiting = key.raises.iter().filter(|(since, _)| !self.past(*since)).count();
                    key.raises.iter().all(|(_, other)| floor > other) && *floor > key.stated && waiting < 4
                }
            }
            VenueOperation::Accuse(evidence) => self.is_convicting(evidence),
            VenueOperation::Claim(claim) => self.is_claimable(claim),
            VenueOperation::AccuseStep(evidence) => self.is_convicting(evidence),
            VenueOperation::ClaimStep(claim) => self.is_claimable(claim),
            VenueOperation::Recall { .. } => unreachable!("no asset of the model is recoverable"),
            VenueOperation::Open { .. } | VenueOperation::List { .. } => false,
        }
    }

    fn is_own(&self, sender: Address, key: &PublicKey) -> bool {
        self.keys.get(key).is_some_and(|key| key.owner == sender && key.revoked.is_none())
    }

    /// Everything of a block but settles and its end.
    pub fn act(&mut self, sender: Address, operation: &VenueOperation) {
        let now = self.height();
        match operation {
            VenueOperation::Accuse(evidence) => self.convict(evidence),
            VenueOperation::AccuseStep(evidence) => self.convict(evidence),
            VenueOperation::Claim(claim) => self.charge(claim),
            VenueOperation::ClaimStep(claim) => self.charge(claim),
            VenueOperation::Recall { .. } => unreachable!("no asset of the model is recoverable"),
            VenueOperation::Bond { units, .. } => self.bond += units,
            VenueOperation::Unbond { units, .. } => {
                let units = (*units).min(self.bond);
                self.bond -= units;
                self.leaving = (units > 0).then_some((units, now));
            }
            VenueOperation::Deposit { asset, units, .. } => {
                self.deposits.entry((sender, *asset)).or_default().free += units;
            }
            VenueOperation::Collect { asset, units, .. } => {
                let of = self.deposits.entry((sender, *asset)).or_default();
                let units = (*units).min(of.free);
                if units > 0 && of.leaving.is_none() {
                    of.free -= units;
                    of.leaving = Some((units, now));
                }
            }
            VenueOperation::Authorize { key, mandate, .. } => self.authorize(sender, key, mandate),
            VenueOperation::Revoke { key, .. } => self.keys.get_mut(key).expect("known").revoked = Some(now),
            VenueOperation::RaiseFloor { key, floor, .. } => {
                self.keys.get_mut(key).expect("known").raises.push((now, *floor));
            }
            VenueOperation::ChangeOperator { to, .. } => {
                self.operator = *to;
                if !self.report_keys.contains(&to.report_key) {
                    self.report_keys.push(to.report_key);
                }
            }
            VenueOperation::Fence { .. } => self.fence(),
            VenueOperation::Open { .. } | VenueOperation::List { .. } | VenueOperation::Settle(_) => {}
        }
    }

    fn authorize(&mut self, owner: Address, key: &PublicKey, mandate: &Mandate) {
        let markets = mandate.markets.iter().map(|of| (of.market, (of.tick_min, of.tick_max))).collect();
        let caps = mandate.caps.iter().map(|(asset, units)| (asset.0, *units)).collect();
        let (net, raises) = (BTreeMap::new(), Vec::new());
        let plain = PlainKey { owner, markets, caps, net, revoked: None, raises, stated: zero() };
        self.keys.insert(*key, plain);
    }

    /// Takes units from the bond, then from what leaves it.
    fn take(&mut self, units: Amount) -> Amount {
        let mut lost = 0;
        while lost < units && self.liable() > 0 {
            lost += 1;
            match (self.bond, self.leaving) {
                (0, Some((1, _))) => self.leaving = None,
                (0, Some((left, since))) => self.leaving = Some((left - 1, since)),
                _ => self.bond -= 1,
            }
        }
        lost
    }

    fn charge<R: SignedReport>(&mut self, claim: &UnsettledFill<R>) {
        let cost = self.markets[claim.buy.order.market as usize].penalty * u64::from(claim.fill.lots);
        let lost = self.take(cost);
        self.burnt += lost;
        let fill = claim.report.fill();
        self.claimed.insert((fill.incarnation, fill.index));
    }

    fn convict<R: SignedReport>(&mut self, evidence: &VenueEvidence<R>) {
        let lost = self.take(self.liable());
        let to = match &evidence.contradicting {
            Contradicting::Tree(..) => vec![evidence.report.fill().account],
            Contradicting::Report(other) => vec![evidence.report.fill().account, other.fill().account],
        };
        let share = lost / 10 / to.len() as u64;
        self.burnt += lost - share * to.len() as u64;
        to.into_iter().for_each(|account| self.pay(account, AssetId(0), share));
        self.judged = self.incarnation + 1;
    }

    fn fence(&mut self) {
        let mut tree = FillTree::default();
        assert!(self.leaves.iter().all(|leaf| tree.append(*leaf)));
        let ended = EndedIncarnation {
            incarnation: self.incarnation,
            tree,
            report_keys: self.report_keys.clone(),
            height: self.height() as u64,
            time_ms: self.times[self.height()],
        };
        self.ended.push((ended, std::mem::take(&mut self.leaves)));
        self.incarnation += 1;
        self.report_keys = vec![self.operator.report_key];
    }

    /// Payouts and forgetting.
    pub fn end(&mut self) {
        let due: Vec<_> = self.deposits.keys().copied().collect();
        for id in due {
            if let Some((units, since)) = self.deposits[&id].leaving
                && self.past(since)
            {
                self.deposits.get_mut(&id).expect("there").leaving = None;
                self.pay(id.0, id.1, units);
            }
        }
        self.deposits.retain(|_, of| *of != PlainDeposit::default());
        let delay = self.terms.bond_delay;
        if let Some((units, since)) = self.leaving
            && self.past_by(since, delay.heights, delay.ms)
        {
            self.leaving = None;
            self.pay(self.owner, AssetId(0), units);
        }
        let keeps = |(key, number): &(PublicKey, OrderNumber), entry: &PlainEntry| {
            let is_live = !self.is_dead(&self.keys[key], *number) && number.incarnation == self.incarnation;
            is_live && (entry.expiry > self.height() as u64 || !self.past(entry.expiry as usize))
        };
        let kept = self.entries.iter().filter(|(id, entry)| keeps(id, entry));
        self.entries = kept.map(|(id, entry)| (*id, entry.clone())).collect();
    }
}
