//! What participants were told of fills, and what the venue's journal says.

use std::collections::BTreeMap;

use primitives::venue::VenueSide;
use venue::{FillFate, VenueFill};

use super::Person;
use crate::market::people::address;

/// A fill as its party is told: its index, lots and price.
pub(in crate::market) type ToldFill = (u64, u32, u64);

/// What the journals of a venue say, of the present incarnation and of those that have ended.
#[derive(Clone, Default)]
pub(in crate::market) struct Journaled {
    incarnations: BTreeMap<u32, (Vec<VenueFill>, BTreeMap<u64, FillFate>)>,
}

/// What the journals say of one participant, by incarnation.
pub(super) type OfPerson = BTreeMap<u32, (Vec<ToldFill>, BTreeMap<u64, FillFate>)>;

impl Journaled {
    pub fn note(&mut self, incarnation: u32, fills: Vec<VenueFill>, fates: BTreeMap<u64, FillFate>) {
        self.incarnations.insert(incarnation, (fills, fates));
    }

    pub(super) fn of(&self, person: Person) -> OfPerson {
        let account = address(person);
        let is_own = |fill: &&VenueFill| {
            [VenueSide::Buy, VenueSide::Sell].iter().any(|side| fill.party(*side).account == account)
        };
        let told = |fill: &VenueFill| (fill.index, fill.terms.lots, u64::from(fill.terms.tick));
        let of_person = |(fills, fates): &(Vec<VenueFill>, BTreeMap<u64, FillFate>)| {
            let own: Vec<ToldFill> = fills.iter().filter(is_own).map(told).collect();
            let fates = fates.iter().filter(|(index, _)| own.binary_search_by_key(*index, |of| of.0).is_ok());
            let fates = fates.map(|(index, fate)| (*index, *fate)).collect();
            (own, fates)
        };
        self.incarnations.iter().map(|(incarnation, of)| (*incarnation, of_person(of))).collect()
    }
}

/// What one participant was told, by incarnation.
#[derive(Default)]
pub(super) struct Told {
    /// Plain OUCH has no word for a fill that is settled: only busts are told.
    pub has_busts_alone: bool,
    fills: BTreeMap<u32, Vec<ToldFill>>,
    /// Whether each settled fill was applied.
    fates: BTreeMap<(u32, u64), bool>,
}

impl Told {
    pub fn fill(&mut self, incarnation: u32, fill: ToldFill) -> Result<(), String> {
        let of = self.fills.entry(incarnation).or_default();
        if of.iter().any(|(index, ..)| *index == fill.0) {
            return Err(format!("a session is told fill {} twice", fill.0));
        }
        of.push(fill);
        Ok(())
    }

    pub fn fate(&mut self, incarnation: u32, index: u64, is_applied: bool) -> Result<(), String> {
        let is_told = self.fills.get(&incarnation).is_some_and(|of| of.iter().any(|(of, ..)| *of == index));
        if !is_told {
            return Err(format!("a session is told the fate of fill {index} and not the fill"));
        }
        match self.fates.insert((incarnation, index), is_applied) {
            None => Ok(()),
            Some(_) => Err(format!("a session is told the fate of fill {index} twice")),
        }
    }

    /// All of an incarnation is told again.
    pub fn forget(&mut self, incarnation: u32) {
        self.fills.remove(&incarnation);
        self.fates.retain(|(of, _), _| *of != incarnation);
    }

    /// The index of the last fill.
    pub fn last(&self, incarnation: u32) -> Option<u64> {
        self.fills.get(&incarnation)?.last().map(|(index, ..)| *index)
    }

    pub fn count(&self) -> u64 {
        self.fills.values().map(|of| of.len() as u64).sum()
    }

    /// What was told is the beginning of what the journal says; with `is_all`, of the last incarnation it is all.
    pub fn check(&self, who: &str, journaled: &OfPerson, is_all: bool) -> Result<(), String> {
        let nothing = Default::default();
        for (incarnation, told) in &self.fills {
            let (fills, fates) = journaled.get(incarnation).unwrap_or(&nothing);
            if !fills.starts_with(told) {
                return Err(format!("{who} was told other fills than the journal has: {told:?} instead of {fills:?}"));
            }
            for ((_, index), is_applied) in self.fates.range((*incarnation, 0)..=(*incarnation, u64::MAX)) {
                if fates.get(index).map(|fate| *fate == FillFate::Applied) != Some(*is_applied) {
                    return Err(format!("{who} was told another fate of fill {index} than the root"));
                }
            }
        }
        let Some((incarnation, (fills, fates))) = journaled.last_key_value().filter(|_| is_all) else { return Ok(()) };
        let told = self.fills.get(incarnation).map_or(0, Vec::len);
        if told < fills.len() {
            return Err(format!("{who} was never told {} of its {} fills", fills.len() - told, fills.len()));
        }
        let is_told = |fate: &FillFate| !self.has_busts_alone || *fate != FillFate::Applied;
        let mut to_tell = fates.iter().filter(|(_, fate)| is_told(fate)).map(|(index, _)| index);
        match to_tell.find(|index| !self.fates.contains_key(&(*incarnation, **index))) {
            Some(index) => Err(format!("{who} was never told the fate of fill {index}")),
            None => Ok(()),
        }
    }
}
