//! A validator's part in protocol R: votes, bars and views. See `resolve.rs`.

use super::*;

impl LaneValidator {
    /// Votes for the payment that the output is locked to, and locks it to its exit if it is not.
    pub(super) fn vote(&mut self, log: &impl LaneLog, contested: &ContestedOutput) -> Result<(), LaneRefusal> {
        if !self.acts() || self.check_place(contested.home, &contested.owner).is_err() {
            return Ok(());
        }
        let (case, mut last) = (contested.output.id, None);
        let bound = self.spender(log, &case, &mut last, &mut CheckBudget(u32::MAX))?;
        let (payment, signature, digest) = match (bound, last) {
            (Some(digest), Some(spender)) => {
                let is_exit = PaymentView::parse(&spender.bytes).is_ok_and(|payment| payment.is_exit());
                (spender.bytes, Some(spender.signature).filter(|_| !is_exit), digest)
            }
            _ => {
                let exit = PaymentBody::new(contested.exit(self.settings.rules.network));
                let bytes = exit.payment.encode();
                let view = PaymentView::parse(&bytes).expect("an exit is well-formed");
                self.reserve(&view, &Signature([0; 64]));
                (bytes, None, exit.digest)
            }
        };
        self.add(StatementKind::Confirmation, Asker::Vote(case, payment, signature), digest);
        Ok(())
    }

    /// Bars candidates, and reports which of them this shard has acknowledged or accepted. An output of a candidate is
    /// in the spent set exactly if it was accepted as an input. If its log has such a record and lacks the certificate
    /// that belongs before it, the shard reports nothing: its validator posts no view.
    pub(super) fn bar(
        &mut self,
        log: &impl LaneLog,
        case: OutputId,
        candidates: &[Arc<PaymentBody>],
    ) -> Result<(), LaneRefusal> {
        if !self.acts() {
            return Ok(());
        }
        let (mut paid, mut unproven) = (None, false);
        let budget = &mut CheckBudget(u32::MAX);
        for candidate in candidates {
            let payment = BarredPayment::of(candidate);
            let mut accepted = self.is_acknowledged(log, &payment.digest, budget)?;
            for output in payment.output_ids() {
                accepted |= self.spender(log, &output, &mut None, budget)?.is_some();
            }
            let certified = if accepted { self.certified(log, &payment.digest)? } else { None };
            unproven |= accepted && certified.is_none();
            paid = paid.or(certified);
            if !self.barred.contains(&payment.digest) {
                self.write(RecordKind::Bar, &[&payment.bytes()]);
                self.remember_bar(payment);
            }
        }
        if paid.is_some() || !unproven {
            self.notices.push_back((self.written + self.tail.len() as u64, case, paid.map(Box::new)));
        }
        Ok(())
    }

    pub(super) fn remember_bar(&mut self, payment: BarredPayment) {
        self.barred.insert(payment.digest);
        self.barred_outputs.extend(payment.output_ids().map(|output| (output, payment.digest)));
    }

    /// A confirmed payment may be acknowledged, and its outputs may be spent.
    pub(super) fn lift_bar(&mut self, payment: &Digest) {
        self.barred.remove(payment);
        self.barred_outputs.retain(|_, by| by != payment);
    }

    /// Signs one view of a case, and never another one.
    pub(super) fn post_view(&mut self, case: OutputId, paid: Option<Box<CertifiedPayment>>) {
        let named = paid.as_ref().map(|paid| paid.digest(&self.settings.rules.network));
        let digest = view_digest(&case, named.as_ref());
        if !self.acts() || self.viewed.get(&case).is_some_and(|before| *before != digest) {
            return;
        }
        if self.viewed.insert(case, digest).is_none() {
            self.write(RecordKind::View, &[&case.0, &digest.0]);
        }
        self.add(StatementKind::View, Asker::View(case, paid), digest);
    }
}
