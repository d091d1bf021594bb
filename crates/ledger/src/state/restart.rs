//! A restarted network begins with a state: what is checked before, and what changes in it ([`Restart`]).

use std::sync::Arc;

use payments::LaneCarryOver;
use primitives::{
    Digest, RULES_OF_CONTROLS, RULES_OF_KEYS, RULES_OF_LANE_TERMS, RULES_OF_LISTINGS, RULES_OF_PROPOSALS,
    RULES_OF_SEALS,
};
use proofs::{ChainRules, Charter};

use super::ledger::Ledger;
use super::snapshot::Snapshot;
use crate::places::bridge::{DEPOSITED, LaneBridge};
use crate::places::charter::ChainCharter;
use crate::places::seals::OpenedNames;
use crate::terms::{Restart, RestartError, RestartedLane, manifest};

const SNAPSHOT_CONTEXT: &str = "walras 2026 snapshot v1";

impl Snapshot<'_> {
    /// The digest of a ledger's state: over all its chunks, each preceded by its length.
    pub fn digest(ledger: &Ledger) -> Digest {
        let mut hasher = blake3::Hasher::new_derive_key(SNAPSHOT_CONTEXT);
        for chunk in Snapshot::of(ledger) {
            hasher.update(&(chunk.len() as u64).to_le_bytes()).update(&chunk);
        }
        Digest(hasher.finalize().into())
    }
}

impl Ledger {
    /// Starts the restarted network with this state and returns its identity. The state root changes with it. The
    /// accounts that the restart names take the seats of the committee. If the
    /// state has a payment lane, `carried` is the list that its lane begins with; open cases end, and their deposits
    /// are returned.
    ///
    /// # Errors
    /// [`RestartError`] if this is not what was agreed on; then nothing has changed.
    pub fn begin_again(
        &mut self,
        first: &Digest,
        restart: &Restart,
        carried: Option<&LaneCarryOver>,
    ) -> Result<Digest, RestartError> {
        let (found, agreed) = (Snapshot::digest(self), restart.snapshot);
        let seats = self.validators().terms.committee;
        match () {
            _ if restart.number == 0 => return Err(RestartError::Number),
            _ if found != agreed => return Err(RestartError::OtherSnapshot { found, agreed }),
            _ if restart.committee.len() > seats as usize => {
                return Err(RestartError::Seats(restart.committee.len(), seats));
            }
            _ => {}
        }
        let next = self.height.saturating_add(1);
        let of_state = (self.rules_at(next), Some(self.charter().rules.manifest_at(next)));
        let (rules, meant) = restart.rules.map_or(of_state, |rules| (rules, manifest(rules)));
        let meant = meant.filter(|meant| self.follows(rules, meant)).ok_or(RestartError::Rules(rules))?;
        if rules < RULES_OF_KEYS && (self.places.keys.len() > 0 || self.accounts().need_references()) {
            return Err(RestartError::Policies(rules));
        }
        if rules < RULES_OF_PROPOSALS && !self.proposals().is_nothing() {
            return Err(RestartError::Proposals(rules));
        }
        if rules < RULES_OF_LISTINGS && !self.listings().is_empty() {
            return Err(RestartError::Listings(rules));
        }
        if rules < RULES_OF_CONTROLS && !self.controls().is_empty() {
            return Err(RestartError::Controls(rules));
        }
        if rules < RULES_OF_LANE_TERMS && self.lane().is_some_and(|lane| lane.assets().are_voted()) {
            return Err(RestartError::LaneTerms(rules));
        }
        if rules < RULES_OF_SEALS && self.seals().is_some() {
            return Err(RestartError::Seals(rules));
        }
        let identity = restart.identity(first);
        let mut validators = self.places.validators.clone();
        let seats = Arc::make_mut(&mut validators).begin_again(identity, self.height, &restart.committee);
        seats.map_err(|(account, why)| RestartError::Seat(account, why))?;
        match (self.places.lane.clone(), &restart.lane, carried) {
            (None, None, None) => {}
            (Some(before), Some(lane), Some(carried)) => self.restart_lane(&before, identity, lane, carried)?,
            _ => return Err(RestartError::Lane),
        }
        self.places.validators = validators;
        let charter = Charter::new(self.charter().terms, ChainRules::new(rules, meant));
        self.places.charter = Arc::new(ChainCharter { charter, proposals: Arc::new(self.proposals().begin_again()) });
        if let Some(venues) = &mut self.places.venues {
            Arc::make_mut(venues).begin_again(identity);
        }
        if let Some(seals) = &mut self.places.seals {
            Arc::make_mut(seals).begin_again();
            self.names = OpenedNames::default();
        }
        Ok(identity)
    }

    fn restart_lane(
        &mut self,
        before: &LaneBridge,
        identity: Digest,
        lane: &RestartedLane,
        carried: &LaneCarryOver,
    ) -> Result<(), RestartError> {
        let (found, agreed) = (carried.digest(), lane.list);
        if found != agreed {
            return Err(RestartError::OtherList { found, agreed });
        }
        let (lane, returned) = before.restarted(identity, &lane.members, carried, self.assets.len())?;
        self.places.lane = Some(Arc::new(lane));
        for (opener, deposit) in returned {
            self.places.accounts.get_or_insert(&opener).credit(DEPOSITED, deposit);
        }
        Ok(())
    }
}
