//! What traders and the owner ask of the ledger, and what an operator that is changed does.

use ledger::Venues;
use primitives::venue::VenueOperation;

use super::MarketWorld;
use super::people::{ASSETS, BOND, OWNER, Person, SESSIONS, TRADERS, VENUE, deposit, operator};

impl MarketWorld {
    /// What traders and the owner do in a block.
    pub(super) fn operations(&mut self) -> Vec<(Person, VenueOperation)> {
        let (now, venues) = (self.moment(), self.chain.venues());
        let mut all = Vec::new();
        for person in TRADERS {
            if self.dice.once_in(2) {
                let (oracle, dice) = (&self.chain.oracle, &mut self.dice);
                all.extend(self.traders.operation(person, now, &venues, oracle, dice).map(|one| (person, one)));
            }
        }
        for person in SESSIONS {
            if self.wires.dice.once_in(10) {
                let asset = ASSETS[self.wires.dice.index(2)];
                all.push((person, deposit(asset, 1 + self.wires.dice.below(8_000))));
            }
        }
        if self.dice.once_in(60) && self.chain.height() > self.fenced_at + 12 {
            all.push((OWNER, VenueOperation::Fence { venue: VENUE, incarnation: now.incarnation }));
        }
        all.extend(self.own_bond_and_operator(&venues).map(|operation| (OWNER, operation)));
        all
    }

    /// The owner names another operator, withdraws a part of the bond, or adds to it.
    fn own_bond_and_operator(&mut self, venues: &Venues) -> Option<VenueOperation> {
        let record = venues.get(VENUE)?;
        match self.dice.below(60) {
            0 => {
                let changes = self.chain.oracle.changes;
                let (from, to) = (operator(changes), operator(changes + 1));
                Some(VenueOperation::ChangeOperator { venue: VENUE, from, to })
            }
            1 | 2 if record.leaving.is_none() && record.bond > BOND / 2 => {
                Some(VenueOperation::Unbond { venue: VENUE, units: 1 + self.dice.below(BOND / 4) })
            }
            3 => Some(VenueOperation::Bond { venue: VENUE, units: 1 + self.dice.below(BOND / 4) }),
            _ => None,
        }
    }

    /// Roots learn of another operator, and open with the new keys: at once where fills wait for long.
    pub(super) fn change_keys(&mut self, is_urgent: bool) -> Result<(), String> {
        let (changes, now_ms) = (self.chain.oracle.changes, self.chain.time_ms);
        for at in 0..self.hosts.len() {
            if self.hosts[at].changes != changes && (is_urgent || self.healed || self.dice.once_in(2)) {
                self.hosts[at].change_keys(changes, now_ms, &mut self.dice)?;
                self.report.operators += 1;
                self.collect(at)?;
            }
        }
        Ok(())
    }
}
