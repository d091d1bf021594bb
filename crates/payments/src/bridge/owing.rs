//! Debts of escrow from verdicts and from payments that stand, and what becomes of bids.

use super::*;

impl Bridge {
    /// Other limits on outflow are in force. Claims keep their places.
    ///
    /// # Panics
    /// If a limit would let a claim wait forever.
    pub fn set_limits(&mut self, limits: BTreeMap<AssetId, OutflowLimit>) {
        self.queue.set_limits(&limits);
        self.rules.outflow = limits;
    }

    pub(super) fn follow(
        &mut self,
        event: CaseEvent,
        bids: &mut Bids,
        used: &BTreeMap<OutputId, usize>,
        step: &mut BridgeStep,
    ) {
        match &event {
            CaseEvent::Opened(contested) => {
                let id = contested.output.id;
                if let Some((bid, opener)) = bids.remove(&id) {
                    self.deposits.insert(id, (opener, bid));
                    self.deposited += u128::from(bid);
                    step.deposits.insert(id);
                }
            }
            CaseEvent::Stands(body) => self.owe_outputs(body, step),
            CaseEvent::Proven(body) => self.prove_outputs(body, step),
            CaseEvent::Ruled(contested, verdict) => self.owe_verdict(contested, *verdict, bids, used, step),
            CaseEvent::Alarm(_) => self.clock.halt(),
            CaseEvent::Fixed(..) => {}
        }
        step.events.push(BridgeEvent::Case(event));
    }

    /// Notes the outputs to keys of a payment that stands by a verdict.
    fn prove_outputs(&mut self, body: &PaymentBody, step: &mut BridgeStep) {
        let home = body.payment.into;
        if home < self.resolver.oldest() {
            return;
        }
        let to_keys = body.output_ids().zip(&body.payment.outputs).filter(|(_, of)| matches!(of.to, Recipient::Key(_)));
        for (id, output) in to_keys {
            if self.proven.entry(home).or_default().insert(id, *output).is_none() {
                step.proven.push(BridgeEntry::proven(home, &id, output));
                step.events.push(BridgeEvent::Proven(home, id, *output));
            }
        }
    }

    /// Makes the outputs to accounts of a payment that stands due.
    fn owe_outputs(&mut self, body: &PaymentBody, step: &mut BridgeStep) {
        for (id, output) in body.output_ids().zip(&body.payment.outputs) {
            if let Recipient::Account(to) = output.to {
                let claim = EscrowClaim { to, asset: output.asset, amount: output.amount, verdict: false };
                self.owe(id, claim, step);
            }
        }
    }

    fn owe(&mut self, id: OutputId, claim: EscrowClaim, step: &mut BridgeStep) {
        let height = self.clock.height();
        self.queue.push(height, id, claim);
        step.claims.insert((claim.asset, (height, id)));
    }

    fn owe_verdict(
        &mut self,
        contested: &ContestedOutput,
        verdict: Verdict,
        bids: &mut Bids,
        used: &BTreeMap<OutputId, usize>,
        step: &mut BridgeStep,
    ) {
        let SpentOutput { id, asset, amount } = contested.output;
        let penalty = (u128::from(amount) * u128::from(self.rules.lapse_penalty.min(1_000_000))).div_ceil(1_000_000);
        let credit = match verdict {
            Verdict::Confirmed(..) | Verdict::Expired => None,
            Verdict::Freed => Some(amount),
            Verdict::Lapsed => Some(amount - penalty as Amount),
        };
        if let Some(amount) = credit.filter(|amount| *amount > 0) {
            // The claim belongs to the exit, so that a lookup of the exit's output finds it.
            let exit = PaymentBody::new(contested.exit(self.rules.network));
            let output = OutputId::of_payment(contested.home, &exit.digest, 0);
            let claim = EscrowClaim { to: contested.owner.address(), asset, amount, verdict: true };
            self.owe(output, claim, step);
        }
        let opened_before = self.deposits.remove(&id);
        if let Some((_, deposit)) = opened_before {
            self.deposited -= u128::from(deposit);
            step.deposits.insert(id);
        }
        // A case about an output that a certified payment spends is never opened, and costs the bid.
        let opened_now = || bids.remove(&id).map(|(bid, opener)| (opener, bid));
        let Some((opener, bid)) = opened_before.or_else(opened_now) else { return };
        let returned = match verdict {
            Verdict::Expired => self.unused(contested.home, bid, used.get(&id).copied().unwrap_or(0)),
            Verdict::Confirmed(..) | Verdict::Freed | Verdict::Lapsed => 0,
        };
        if returned > 0 {
            step.events.push(BridgeEvent::ReturnDeposit(opener, returned));
        }
        step.events.push(BridgeEvent::KeepDeposit(bid - returned));
    }

    /// Pays what limits and escrow permit, by height and ascending output id.
    pub(super) fn pay(&mut self, step: &mut BridgeStep) {
        let totals = &mut self.totals;
        let held = |totals: &BTreeMap<AssetId, EscrowTotals>, asset: &AssetId| {
            totals.get(asset).and_then(EscrowTotals::held).unwrap_or(0)
        };
        let paid = self.queue.pay(|asset| held(totals, &asset));
        step.looks += paid.looks;
        for (place, claim) in paid.claims {
            let totals = totals.entry(claim.asset).or_default();
            *if claim.verdict { &mut totals.verdicts } else { &mut totals.redemptions } += u128::from(claim.amount);
            let EscrowClaim { to, asset, amount, .. } = claim;
            step.claims.insert((asset, place));
            step.events.push(BridgeEvent::Credit { to, asset, amount });
        }
        for asset in paid.uncovered {
            self.clock.halt();
            step.events.push(BridgeEvent::Uncovered(asset));
        }
    }
}
