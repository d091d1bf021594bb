//! What a restart makes of a snapshot and of evidence.

use crate::world::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Sound,
    /// The lane keeps its name: certificates of the old network are redeemed in the new one.
    KeepName,
    /// A payment stands if this many logs have reserved its inputs for it.
    CountLogs(usize),
    /// f+1 logs are enough.
    FewLogs,
    /// A log that was read takes more records.
    OpenLogs,
    /// A log counts although its member signed what it lacks.
    StaleLogs,
    /// A certificate stands whatever the snapshot knows of its inputs.
    IgnoreTaken,
    /// Outputs of the genesis exist again.
    ReviveGenesis,
    /// Account outputs become claims although they are queued.
    IgnoreQueue,
    /// Only outputs of keys are carried over.
    DropAccounts,
    /// Deposits after the snapshot count in full.
    IgnoreTaint,
    /// The identity is that of the old network and the number of the restart.
    ListNotInIdentity,
    /// Certificates of the network before the last one are evidence.
    OldCertificates,
}

/// What the new lane begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Listed {
    /// Units listed of *o*, of *d*, of *p*, and of both outputs of the mixed payment.
    pub outputs: [u64; 5],
    /// Units that others have, and those of genesis outputs.
    pub others: u64,
    pub claims: u64,
    pub queue: u64,
}

impl Listed {
    pub fn sum(&self) -> u64 {
        self.outputs.iter().sum::<u64>() + self.others + self.claims + self.queue
    }
}

/// Payments of the evidence that stand.
pub fn standing(rule: Rule, snapshot: &Books, evidence: u8) -> u8 {
    let is_taken = |payment: u8| match snapshot.fate {
        OFate::Unknown => false,
        OFate::By(by) => by != payment,
        OFate::Credited => true,
    };
    let stands = |payment: &&u8| {
        let spends_o = inputs(**payment).contains(&O);
        evidence & **payment != 0 && (rule == Rule::IgnoreTaken || !spends_o || !is_taken(**payment))
    };
    PAYMENTS.iter().filter(stands).sum()
}

/// Rules 3 to 5: what stands, what is listed of it, and which part of it the snapshot's escrow knows. `end` is what the
/// old ledger knew last.
pub fn list(rule: Rule, snapshot: &Books, end: &Books, evidence: u8) -> Listed {
    let stands = standing(rule, snapshot, evidence);
    let spent = |output: usize| PAYMENTS.iter().any(|of| stands & of != 0 && inputs(*of).contains(&output));
    let is_known = snapshot.deposited || end.deposited && rule == Rule::IgnoreTaint;
    let later = if is_known { UNITS[D] } else { 0 };
    let known = [UNITS[O], later, UNITS[O]];
    let mixed = |amount: u64| amount * (known[P] + known[D]) / (UNITS[O] + UNITS[D]);
    let created = |payment: u8, amount: u64| if stands & payment != 0 { amount } else { 0 };
    let mut outputs = [
        if snapshot.fate == OFate::Unknown { known[O] } else { 0 },
        known[D],
        created(PAY, known[P]),
        created(MIX, mixed(MIXED[0])),
        created(MIX, mixed(MIXED[1])),
    ];
    for output in [O, D, P].into_iter().filter(|output| spent(*output)) {
        outputs[output] = 0;
    }
    let open = stands & !snapshot.credited & if rule == Rule::IgnoreQueue { u8::MAX } else { !snapshot.queued };
    let part = |payment: u8| known[inputs(payment)[0]];
    let claims = PAYMENTS.iter().filter(|of| open & **of != 0 && to_account(**of)).map(|of| part(*of)).sum();
    Listed {
        outputs,
        others: OTHERS + if rule == Rule::ReviveGenesis { UNITS[D] } else { 0 },
        claims: if rule == Rule::DropAccounts { 0 } else { claims },
        queue: Books::sum(snapshot.queued),
    }
}
