//! The bridge of a restarted network: the list, claims and queue of the lane before it. See [`crate::LaneCarryOver`].

use super::*;
use crate::{CarryRefusal, LaneCarryOver};

impl Bridge {
    /// The bridge of the lane that takes the place of this one under other rules, with another identity. Also returns
    /// the deposits of open cases, with the accounts that get them back: these cases end without a verdict.
    ///
    /// Lane epochs begin again at 0. Everything in escrow backs the new lane: what the list does not need stays there.
    ///
    /// # Errors
    /// [`CarryRefusal::Uncovered`] if the list needs more than escrow has.
    pub fn restarted(
        &self,
        rules: BridgeRules,
        carried: &LaneCarryOver,
    ) -> Result<(Bridge, Vec<(Address, Amount)>), CarryRefusal> {
        self.covers(carried)?;
        let (mut bridge, _) = Bridge::new(rules, &[]);
        bridge.clock = self.clock.restarted();
        bridge.convicted.clone_from(&self.convicted);
        let limits = std::mem::take(&mut bridge.rules.outflow);
        bridge.queue = self.queue.clone();
        bridge.set_limits(limits);
        for (asset, totals) in &self.totals {
            let backing = totals.held().expect("no more is paid than escrow holds");
            bridge.totals.insert(*asset, EscrowTotals { backing, ..EscrowTotals::default() });
        }
        let network = bridge.rules.network;
        let outputs = carried.outputs.iter().map(|(id, output)| (id.carried_into(&network), *output));
        bridge.backed.insert(0, outputs.collect());
        let height = bridge.clock.height();
        for (id, output) in &carried.claims {
            let Recipient::Account(to) = output.to else { continue };
            let claim = EscrowClaim { to, asset: output.asset, amount: output.amount, verdict: false };
            bridge.queue.push(height, *id, claim);
        }
        Ok((bridge, self.deposits.values().copied().collect()))
    }

    /// Whether escrow covers a list beside the claims that are queued.
    pub(crate) fn covers(&self, carried: &LaneCarryOver) -> Result<(), CarryRefusal> {
        let mut needed = carried.needed();
        for (_, claim) in self.queue.claims() {
            *needed.entry(claim.asset).or_default() += u128::from(claim.amount);
        }
        let uncovered = needed.into_iter().find(|(asset, needed)| *needed > self.escrow(*asset));
        uncovered
            .map_or(Ok(()), |(asset, needed)| Err(CarryRefusal::Uncovered { asset, needed, held: self.escrow(asset) }))
    }

    /// The outputs that the ledger created in epochs that it keeps, or proves, with their homes.
    pub(crate) fn kept_outputs(&self) -> impl Iterator<Item = (HomeEpoch, OutputId, Output)> + '_ {
        let of_home = |(home, outputs): (&HomeEpoch, &BTreeMap<OutputId, Output>)| {
            let home = *home;
            outputs.iter().map(move |(id, output)| (home, *id, *output)).collect::<Vec<_>>()
        };
        self.backed.iter().chain(&self.proven).flat_map(of_home)
    }

    /// What became of an output, as far as the ledger knows: see [`Resolver::fate`].
    pub(crate) fn fate(&self, home: HomeEpoch, output: &OutputId) -> Option<Option<Digest>> {
        self.resolver.fate(home, output)
    }
}
