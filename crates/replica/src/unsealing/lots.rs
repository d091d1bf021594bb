//! A height that is output and has envelopes that open, lot by lot.

use std::collections::BTreeMap;
use std::sync::Arc;

use consensus::Index;
use primitives::Height;
use sealing::Label;

use super::{Openings, Points, SealCommittee, UnsealFrame};

/// A height that is output, and has envelopes that open.
#[derive(Clone, Debug)]
pub(super) struct Closed {
    pub openings: Openings,
    /// By the number of their keys, in order.
    pub lots: Vec<LotAt>,
    pub open: Option<Points>,
    /// Ticks since it was output.
    pub ticks: u8,
    /// Answers with shares, which take the lots in turns.
    turns: usize,
}

/// What a height has under one key.
#[derive(Clone, Debug)]
pub(super) struct LotAt {
    pub committee: Arc<SealCommittee>,
    pub labels: Arc<[Label]>,
    /// Where each label stands among all that the height opens.
    places: Arc<[usize]>,
    pub own: Own,
    pub open: Option<Points>,
}

/// How far the own shares of a lot are.
#[derive(Clone, Debug)]
pub(super) enum Own {
    /// This seat holds no share of that key, or its shares could not be made.
    None,
    Due,
    Made(Points),
}

impl Closed {
    pub(super) fn new(committees: &[Arc<SealCommittee>], openings: Openings) -> Closed {
        let mut places: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        openings.iter().enumerate().for_each(|(at, (key, _))| places.entry(*key).or_default().push(at));
        let lot = |(key, places): (u64, Vec<usize>)| {
            let committee = committees.iter().find(|committee| committee.number() == key);
            let committee = committee.expect("whoever tells what opens knows its keys").clone();
            let own = if committee.is_holder() { Own::Due } else { Own::None };
            let labels = places.iter().map(|at| openings[*at].1).collect();
            LotAt { committee, labels, places: places.into(), own, open: None }
        };
        let lots = places.into_iter().map(lot).collect();
        Closed { openings, lots, open: None, ticks: 0, turns: 0 }
    }

    pub(super) fn lot(&self, key: u64) -> Option<&LotAt> {
        self.lots.iter().find(|lot| lot.committee.number() == key)
    }

    pub(super) fn lot_mut(&mut self, key: u64) -> Option<&mut LotAt> {
        self.lots.iter_mut().find(|lot| lot.committee.number() == key)
    }

    /// The numbers of its keys.
    pub(super) fn keys(&self) -> Vec<u64> {
        self.lots.iter().map(|lot| lot.committee.number()).collect()
    }

    /// The keys of all envelopes, in the order of the block, if all lots are open.
    pub(super) fn whole(&self) -> Option<Points> {
        let mut placed = BTreeMap::new();
        for lot in &self.lots {
            placed.extend(lot.places.iter().copied().zip(lot.open.as_ref()?.iter().copied()));
        }
        Some(placed.into_values().collect())
    }

    /// What is told to who asks for this height.
    pub(super) fn answer(&mut self, height: Height) -> Option<UnsealFrame> {
        if let Some(points) = self.open.clone() {
            return Some(UnsealFrame::Keys { height, points });
        }
        let made: Vec<(u64, Points)> = self.lots.iter().filter_map(LotAt::made).collect();
        let (key, points) = made.get(self.turns.checked_rem(made.len())?)?.clone();
        self.turns = self.turns.wrapping_add(1);
        Some(UnsealFrame::Shares { height, key, points })
    }
}

impl LotAt {
    fn made(&self) -> Option<(u64, Points)> {
        match &self.own {
            Own::Made(points) => Some((self.committee.number(), points.clone())),
            Own::None | Own::Due => None,
        }
    }

    /// The own shares, as those of a holder.
    pub(super) fn own_part(&self) -> Option<(Index, Points)> {
        let (_, points) = self.made()?;
        Some((self.committee.own()?, points))
    }

    /// Those of this lot among keys of the whole height.
    pub(super) fn of(&self, keys: &Points) -> Points {
        self.places.iter().map(|at| keys[*at]).collect()
    }
}
