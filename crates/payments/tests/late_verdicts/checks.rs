//! What must hold in every state. Nothing here calls a rule of the machine: times are the ones that users are promised.

use crate::machine::Machine;
use crate::state::*;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An output has two claims, or one twice: money is made.
    Made,
    /// A payment was settled and another claim to its money was honoured.
    Unsettled,
    /// A freed output has a certified payment.
    FreedAndCertified,
    /// The alarm was raised with f faulty members.
    Alarm,
    /// An output lapsed although its recipient had less than a whole epoch to settle.
    Hasty,
    /// A case expired although all correct members had posted what they could.
    Idle,
    /// A case is open after its time.
    Open,
    /// An output of a payment that a verdict confirmed can not be sent home.
    Stuck,
    /// An exit can not be redeemed in the epoch after it was signed.
    Unredeemable,
    /// An epoch is kept for longer than six epochs.
    Kept,
}

impl Machine<'_> {
    /// The first fault among those that are looked for; all if `only` is empty.
    pub fn fault(&self, only: &[Fault]) -> Option<Fault> {
        let State { now, past, cases, .. } = self.state;
        let faults = [
            (past.alarm, Fault::Alarm),
            (past.twice || past.claims.iter().any(|claims| claims.count_ones() > 1), Fault::Made),
            (self.is_unsettled(), Fault::Unsettled),
            (self.is_freed_and_certified(), Fault::FreedAndCertified),
            (past.hasty, Fault::Hasty),
            (past.idle, Fault::Idle),
            (cases.iter().any(|case| case.open && now > case.epoch + 3), Fault::Open),
            (self.is_stuck(), Fault::Stuck),
            (self.is_unredeemable(), Fault::Unredeemable),
            ((0..COMMITTEES).any(|committee| self.is_kept(committee) && usize::from(now) > committee + 6), Fault::Kept),
        ];
        let found = |(holds, fault): &(bool, Fault)| *holds && (only.is_empty() || only.contains(fault));
        faults.into_iter().find(found).map(|(_, fault)| fault)
    }

    /// A settled payment is final: whatever else was honoured for an input of it is too much.
    fn is_unsettled(&self) -> bool {
        self.scenario.payments().filter(|payment| self.state.past.settled >> payment & 1 == 1).any(|payment| {
            self.scenario.inputs(payment).iter().any(|input| self.state.past.claims[*input] & !(1 << payment) != 0)
        })
    }

    fn is_freed_and_certified(&self) -> bool {
        let lapsed = |output: &usize| {
            self.state.past.claims[*output] & CREDITED != 0 && self.state.past.freed >> output & 1 == 0
        };
        self.scenario.payments().any(|payment| {
            let inputs = self.scenario.inputs(payment);
            let freed = inputs.iter().any(|input| self.state.past.freed >> input & 1 == 1);
            freed && !inputs.iter().any(lapsed) && self.certified(payment)
        })
    }

    /// Through the epoch after the verdict, members have their keys and the ledger's proof.
    fn is_stuck(&self) -> bool {
        let State { now, past, stands, .. } = self.state;
        past.confirmed != 0 && now <= past.confirmed && !(self.holds_keys(self.scenario.into) && stands >> T & 1 == 1)
    }

    /// And one epoch later the ledger still redeems what they signed.
    fn is_unredeemable(&self) -> bool {
        let State { now, past, .. } = self.state;
        past.confirmed != 0 && now <= past.confirmed + 1 && !self.redeems(self.scenario.into)
    }
}
