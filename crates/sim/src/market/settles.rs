//! Settles on their way: what pools have, what proposers include, and what a hostile operator puts in their place.

use primitives::Transaction;
use primitives::venue::VenueOperation;

use super::MarketWorld;
use super::people::operates;
use super::villain::{Villainy, false_settle, reordered, settle_in};

impl MarketWorld {
    /// What a root submits reaches the pools; they keep it, and what they had.
    pub(super) fn submit(&mut self, settles: Vec<Transaction>) {
        settles.into_iter().for_each(|settle| self.chain.send(settle));
    }

    /// What proposers include. They may hold what is new for a while; what is old comes from stale pools.
    pub(super) fn propose(&mut self, is_urgent: bool) -> Vec<Transaction> {
        let pool = &self.chain.settles;
        let holds = if self.conditions.censors && !self.healed { 14 } else { 3 };
        let mut all = Vec::new();
        match self.conditions.villainy {
            Some((Villainy::Withholds, _)) if self.has_cheated => {}
            // With two roots, the pools have a settle of each.
            _ if is_urgent || self.dice.below(holds) < holds.min(3) - 1 => {
                all.extend(pool.iter().rev().take(self.hosts.len()).cloned());
            }
            _ => {}
        }
        if !pool.is_empty() && self.dice.once_in(4) {
            let stale = pool[self.dice.index(pool.len())].clone();
            if !all.contains(&stale) && !self.is_withheld() {
                all.push(stale);
            }
        }
        all.append(&mut self.forced);
        all
    }

    fn is_withheld(&self) -> bool {
        self.has_cheated && matches!(self.conditions.villainy, Some((Villainy::Withholds | Villainy::Reorders, _)))
    }

    /// What a hostile venue does before a block.
    pub(super) fn cheat(&mut self) -> Result<(), String> {
        let Some((villainy, from)) = self.conditions.villainy else { return Ok(()) };
        if self.healed || self.chain.blocks() < from {
            return Ok(());
        }
        match villainy {
            Villainy::FalseFills if self.dice.once_in(2) => {
                let settle = false_settle(&self.chain.oracle, &mut self.dice).map(|settle| self.chain.settle(settle));
                self.has_cheated |= settle.is_some();
                self.forced.extend(settle);
            }
            Villainy::Reorders => self.reorder(),
            Villainy::Withholds => self.has_cheated = true,
            Villainy::TwoReports => self.report_twice(),
            Villainy::Twins if self.hosts.len() == 1 => {
                self.hosts.push(self.hosts[0].twin()?);
                self.has_cheated = true;
            }
            Villainy::FalseFills | Villainy::Twins => {}
        }
        Ok(())
    }

    /// Signs another order of the fills in flight under the same number.
    fn reorder(&mut self) {
        let network = self.chain.network();
        let Some(last) = self.chain.settles.last().cloned() else { return };
        let Some(other) = settle_in(&last).and_then(|settle| reordered(settle, &network)) else { return };
        let forged =
            self.chain.sign(operates(self.chain.oracle.changes), last.body.sequence, VenueOperation::Settle(other));
        self.has_cheated = true;
        self.forced.push(forged);
        self.chain.settles.clear();
    }
}
