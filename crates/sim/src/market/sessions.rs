//! Sessions of OUCH and FIX in a market: turns of their participants, and what they must have been told.

use kernel::DiskFault;
use venue::RequestScope;

use super::MarketWorld;
use super::people::BLOCK_MS;
use super::wire::{Journaled, WireMoment};

/// Turns after which everything that was to be told has been, a second each.
const CALM_TURNS: u64 = 96;

impl MarketWorld {
    pub(super) fn wire_moment(&self) -> WireMoment {
        let settings = self.hosts[0].root.settings();
        let scope =
            RequestScope { network: settings.network, venue: settings.venue, incarnation: settings.incarnation };
        let height = self.hosts[0].root.height().unwrap_or(0);
        let takes_lists = self.hosts[0].root.takes_lists();
        WireMoment { now_ms: self.chain.time_ms, scope, height, takes_lists, is_calm: self.healed }
    }

    /// A turn of the sessions, and of the root with what came over them.
    pub(super) fn wire(&mut self) -> Result<(), String> {
        let at = self.wire_moment();
        if std::mem::take(&mut self.hosts[0].has_ended) {
            self.wires.lose_venue(&at)?;
        }
        self.wires.turn(&at, &mut self.hosts[0].door)?;
        for (person, signed) in self.wires.take_signed() {
            self.chain.oracle.sign(person, signed);
        }
        if !self.healed && self.wires.dice.once_in(48) {
            let disk = &self.hosts[0].door.disk;
            disk.inject(disk.points() + self.wires.dice.below(8), DiskFault::Error);
        }
        self.hosts[0].give_door(at.now_ms, &mut self.wires.dice)?;
        self.collect(0)?;
        if !self.healed && !self.wires.dice.once_in(8) {
            return Ok(());
        }
        self.wires.check(&self.journaled()?, false)
    }

    /// What the venue's journals say of all incarnations.
    fn journaled(&self) -> Result<Journaled, String> {
        let (mut journaled, host) = (self.journaled.clone(), &self.hosts[0]);
        journaled.note(host.root.settings().incarnation, host.fills(0)?, host.fates().clone());
        Ok(journaled)
    }

    /// Links hold from now on: sessions are told all that they were not.
    pub(super) fn check_sessions(&mut self) -> Result<(), String> {
        let mut left = Ok(());
        for _ in 0..CALM_TURNS {
            self.chain.time_ms += BLOCK_MS;
            self.wire()?;
            left = self.wires.check(&self.journaled()?, true);
            if left.is_ok() {
                break;
            }
        }
        left
    }

    /// Every fill has the fate that traders were told.
    pub(super) fn check_all_told(&self) -> Result<(), String> {
        let host = &self.hosts[0];
        let (fills, settled) = host.root.counts();
        if fills != settled && !self.has_cheated {
            return Err(format!("{} fills never get a fate", fills - settled));
        }
        for (index, fate) in host.fates() {
            let found = self.chain.fate(*index);
            if found != Some(*fate) && !self.has_cheated {
                return Err(format!("fill {index} was told {fate:?}, and the ledger has {found:?}"));
            }
        }
        Ok(())
    }
}
