//! Claims on escrow: queued by limits on net outflow, never refused, never expired.

use std::collections::{BTreeMap, BTreeSet};

use primitives::{Address, Amount, AssetId};

use crate::layout::Reader;
use crate::resolve::read_map;
use crate::{EscrowClaim, LaneRefusal, OutputId};

/// A limit on the net outflow of one asset: a bucket that holds at most `most` units, gains `per_height` each height
/// and what comes into escrow, and loses what is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutflowLimit {
    /// What may leave at once.
    pub most: Amount,
    /// What is gained at each height, at least 1, so that each claim is paid at last.
    pub per_height: Amount,
}

/// Claims by height and output id, with the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutflowQueue {
    limits: BTreeMap<AssetId, (OutflowLimit, Amount)>,
    claims: BTreeMap<(u64, OutputId), EscrowClaim>,
}

/// What one block pays.
pub(crate) struct Paid {
    pub(crate) claims: Vec<EscrowClaim>,
    /// Assets of which claims exceed escrow.
    pub(crate) uncovered: BTreeSet<AssetId>,
}

impl OutflowQueue {
    /// # Panics
    /// If a limit would let a claim wait for ever.
    pub(crate) fn new(limits: &BTreeMap<AssetId, OutflowLimit>) -> OutflowQueue {
        assert!(limits.values().all(|limit| limit.per_height > 0 && limit.most > 0), "limits let claims pass at last");
        let limits = limits.iter().map(|(asset, limit)| (*asset, (*limit, limit.most))).collect();
        OutflowQueue { limits, claims: BTreeMap::new() }
    }

    /// Whether these are its limits.
    pub(crate) fn has_limits(&self, limits: &BTreeMap<AssetId, OutflowLimit>) -> bool {
        self.limits.iter().map(|(asset, (limit, _))| (asset, limit)).eq(limits)
    }

    /// The claims that wait, first to last.
    pub fn claims(&self) -> impl Iterator<Item = (&OutputId, &EscrowClaim)> {
        self.claims.iter().map(|((_, id), claim)| (id, claim))
    }

    pub(crate) fn push(&mut self, height: u64, id: OutputId, claim: EscrowClaim) {
        self.claims.insert((height, id), claim);
    }

    fn gain(&mut self, asset: AssetId, amount: Amount) {
        if let Some((limit, level)) = self.limits.get_mut(&asset) {
            *level = level.saturating_add(amount).min(limit.most);
        }
    }

    pub(crate) fn deposit(&mut self, asset: AssetId, amount: Amount) {
        self.gain(asset, amount);
    }

    /// A height passes.
    pub(crate) fn recover(&mut self) {
        self.limits.values_mut().for_each(|(limit, level)| {
            *level = level.saturating_add(limit.per_height).min(limit.most);
        });
    }

    /// Pays claims from the first on, in part where limits or escrow end.
    pub(crate) fn pay(&mut self, held: impl Fn(AssetId) -> u128) -> Paid {
        let mut left: BTreeMap<AssetId, u128> = BTreeMap::new();
        let mut paid = Paid { claims: Vec::new(), uncovered: BTreeSet::new() };
        for claim in self.claims.values_mut() {
            let left = left.entry(claim.asset).or_insert_with(|| held(claim.asset));
            let level = self.limits.get(&claim.asset).map_or(Amount::MAX, |(_, level)| *level);
            let covered = Amount::try_from(*left).unwrap_or(Amount::MAX);
            if covered < claim.amount.min(level) {
                paid.uncovered.insert(claim.asset);
            }
            let amount = claim.amount.min(level).min(covered);
            if amount == 0 {
                continue;
            }
            *left -= u128::from(amount);
            claim.amount -= amount;
            if let Some((_, level)) = self.limits.get_mut(&claim.asset) {
                *level -= amount;
            }
            paid.claims.push(EscrowClaim { amount, ..*claim });
        }
        self.claims.retain(|_, claim| claim.amount > 0);
        paid
    }

    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        to.extend((self.limits.len() as u32).to_le_bytes());
        for (asset, (limit, level)) in &self.limits {
            to.extend(asset.0.to_le_bytes());
            [limit.most, limit.per_height, *level].iter().for_each(|number| to.extend(number.to_le_bytes()));
        }
        to.extend((self.claims.len() as u32).to_le_bytes());
        for ((height, id), claim) in &self.claims {
            to.extend(height.to_le_bytes());
            to.extend(id.0);
            to.extend(claim.to.0);
            to.extend(claim.asset.0.to_le_bytes());
            to.extend(claim.amount.to_le_bytes());
            to.push(u8::from(claim.verdict));
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
        let claims = read_map(reader, count, |reader| {
            let key = (reader.u64()?, OutputId(reader.array()?));
            let (to, asset) = (Address(reader.array()?), AssetId(reader.u32()?));
            let amount = crate::payment::read_amount(reader)?;
            let verdict = match reader.u8()? {
                0 => false,
                1 => true,
                _ => return Err(LaneRefusal::Malformed("a claim is of a payment (0) or of a verdict (1)")),
            };
            Ok((key, EscrowClaim { to, asset, amount, verdict }))
        })?;
        Ok(OutflowQueue { limits, claims })
    }
}
