//! Claims on escrow: queued by limits on net outflow, never refused, never expired.

use std::collections::{BTreeMap, BTreeSet};

use primitives::{Address, Amount, AssetId};

use crate::layout::Reader;
use crate::resolve::read_map;
use crate::{BridgeEntry, EscrowClaim, LaneRefusal, OutputId};

/// A limit on the net outflow of one asset. It is a bucket that holds at most `most` units, gains `per_height` each
/// height and all units that enter escrow, and loses all units that are paid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutflowLimit {
    /// The most that can leave at once.
    pub most: Amount,
    /// What is regained at each height, at least 1, so that each claim is eventually paid.
    pub per_height: Amount,
}

/// Claims of each asset by height and output id, with the limits.
///
/// A block costs the claims that it pays and one more look for each asset with pending claims. The number of pending
/// claims does not matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutflowQueue {
    limits: BTreeMap<AssetId, (OutflowLimit, Amount)>,
    /// Contains only assets with claims.
    claims: BTreeMap<AssetId, BTreeMap<(u64, OutputId), EscrowClaim>>,
}

/// What one block pays.
pub(crate) struct Paid {
    /// The paid part of each claim, by height and output id.
    pub(crate) claims: Vec<((u64, OutputId), EscrowClaim)>,
    /// Number of claims looked at.
    pub(crate) looks: usize,
    /// Assets whose claims exceed escrow.
    pub(crate) uncovered: BTreeSet<AssetId>,
}

impl OutflowQueue {
    /// # Panics
    /// If a limit would let a claim wait forever.
    pub(crate) fn new(limits: &BTreeMap<AssetId, OutflowLimit>) -> OutflowQueue {
        let mut queue = OutflowQueue { limits: BTreeMap::new(), claims: BTreeMap::new() };
        queue.set_limits(limits);
        queue
    }

    /// Other limits are in force. Of what one permitted as much stays as the new one permits; a new one permits its
    /// most.
    ///
    /// # Panics
    /// If a limit would let a claim wait forever.
    pub(crate) fn set_limits(&mut self, limits: &BTreeMap<AssetId, OutflowLimit>) {
        assert!(
            limits.values().all(|limit| limit.per_height > 0 && limit.most > 0),
            "every limit must let claims pass"
        );
        let level = |asset: &AssetId| self.limits.get(asset).map_or(Amount::MAX, |(_, level)| *level);
        self.limits = limits.iter().map(|(asset, of)| (*asset, (*of, level(asset).min(of.most)))).collect();
    }

    /// Whether these are its limits.
    pub(crate) fn has_limits(&self, limits: &BTreeMap<AssetId, OutflowLimit>) -> bool {
        self.limits.iter().map(|(asset, (limit, _))| (asset, limit)).eq(limits)
    }

    /// The pending claims: by asset, first to last.
    pub fn claims(&self) -> impl Iterator<Item = (&OutputId, &EscrowClaim)> {
        self.places().map(|((_, id), claim)| (id, claim))
    }

    /// The number of pending claims.
    pub fn len(&self) -> usize {
        self.claims.values().map(BTreeMap::len).sum()
    }

    /// Whether no claim is pending.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    fn places(&self) -> impl Iterator<Item = (&(u64, OutputId), &EscrowClaim)> {
        self.claims.values().flatten()
    }

    /// The trie entries of all claims.
    pub(crate) fn entries(&self) -> impl Iterator<Item = BridgeEntry> + '_ {
        self.places().map(|((height, id), claim)| BridgeEntry::claim(id, Some((*height, claim))))
    }

    /// The trie entry of one claim.
    pub(crate) fn entry(&self, asset: AssetId, place: &(u64, OutputId)) -> BridgeEntry {
        let claim = self.claims.get(&asset).and_then(|claims| claims.get(place));
        BridgeEntry::claim(&place.1, claim.map(|claim| (place.0, claim)))
    }

    pub(crate) fn push(&mut self, height: u64, id: OutputId, claim: EscrowClaim) {
        self.claims.entry(claim.asset).or_default().insert((height, id), claim);
    }

    fn gain(&mut self, asset: AssetId, amount: Amount) {
        if let Some((limit, level)) = self.limits.get_mut(&asset) {
            *level = level.saturating_add(amount).min(limit.most);
        }
    }

    pub(crate) fn deposit(&mut self, asset: AssetId, amount: Amount) {
        self.gain(asset, amount);
    }

    /// Advances the limits by one height.
    pub(crate) fn recover(&mut self) {
        self.limits.values_mut().for_each(|(limit, level)| {
            *level = level.saturating_add(limit.per_height).min(limit.most);
        });
    }

    /// Pays the claims of each asset from the first on; in part where limit or escrow is exhausted.
    pub(crate) fn pay(&mut self, held: impl Fn(AssetId) -> u128) -> Paid {
        let mut paid = Paid { claims: Vec::new(), looks: 0, uncovered: BTreeSet::new() };
        for (asset, claims) in &mut self.claims {
            let limit = self.limits.get_mut(asset).map(|(_, level)| level);
            pay_asset(claims, held(*asset), limit, &mut paid);
        }
        self.claims.retain(|_, claims| !claims.is_empty());
        paid.claims.sort_unstable_by_key(|(place, _)| *place);
        paid
    }

    /// Writes what each limit permits.
    pub(crate) fn write_limits(&self, to: &mut Vec<u8>) {
        to.extend((self.limits.len() as u32).to_le_bytes());
        for (asset, (limit, level)) in &self.limits {
            to.extend(asset.0.to_le_bytes());
            [limit.most, limit.per_height, *level].iter().for_each(|number| to.extend(number.to_le_bytes()));
        }
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        self.write_limits(to);
        let claims: BTreeMap<_, _> = self.places().collect();
        to.extend((claims.len() as u32).to_le_bytes());
        for ((height, id), claim) in claims {
            to.extend(height.to_le_bytes());
            to.extend(id.0);
            claim.write(to);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<OutflowQueue, LaneRefusal> {
        let count = reader.u32()?;
        let limits = read_map(reader, count, |reader| {
            let asset = AssetId(reader.u32()?);
            let limit = OutflowLimit { most: reader.u64()?, per_height: reader.u64()? };
            let level = reader.u64()?;
            let sound = limit.per_height > 0 && limit.most > 0 && level <= limit.most;
            if sound { Ok((asset, (limit, level))) } else { Err(LaneRefusal::Malformed("a limit is not sound")) }
        })?;
        let count = reader.u32()?;
        let places = read_map(reader, count, |reader| {
            let key = (reader.u64()?, OutputId(reader.array()?));
            let (to, asset) = (Address(reader.array()?), AssetId(reader.u32()?));
            let amount = crate::layout::read_amount(reader)?;
            let verdict = match reader.u8()? {
                0 => false,
                1 => true,
                _ => return Err(LaneRefusal::Malformed("a claim is of a payment (0) or of a verdict (1)")),
            };
            Ok((key, EscrowClaim { to, asset, amount, verdict }))
        })?;
        let mut queue = OutflowQueue { limits, claims: BTreeMap::new() };
        places.into_iter().for_each(|((height, id), claim)| queue.push(height, id, claim));
        Ok(queue)
    }
}

/// Pays the claims of one asset. A claim that is not paid in full stops it: the others are later in the queue.
fn pay_asset(
    claims: &mut BTreeMap<(u64, OutputId), EscrowClaim>,
    mut held: u128,
    mut level: Option<&mut Amount>,
    paid: &mut Paid,
) {
    while let Some(mut first) = claims.first_entry() {
        let (place, claim) = (*first.key(), first.get_mut());
        let most = claim.amount.min(level.as_deref().copied().unwrap_or(Amount::MAX));
        let amount = most.min(Amount::try_from(held).unwrap_or(Amount::MAX));
        paid.looks += 1;
        if amount < most {
            paid.uncovered.insert(claim.asset);
        }
        if amount > 0 {
            held -= u128::from(amount);
            level.iter_mut().for_each(|level| **level -= amount);
            paid.claims.push((place, EscrowClaim { amount, ..*claim }));
            claim.amount -= amount;
        }
        if claim.amount > 0 {
            return;
        }
        first.remove();
    }
}

impl EscrowClaim {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.extend(self.to.0);
        to.extend(self.asset.0.to_le_bytes());
        to.extend(self.amount.to_le_bytes());
        to.push(u8::from(self.verdict));
    }
}
