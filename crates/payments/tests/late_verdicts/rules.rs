//! The rules under test, and the steps of the model.

use payments::ViewClaim;

/// The rule under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The rules as they are.
    Sound,
    /// The rules before late verdicts: views prove nothing, f+1 of them confirm, no case expires, keys are destroyed
    /// once no case is open, and an open case keeps all later epochs.
    Before,
    /// A view that names a payment without its certificate counts as empty.
    UnprovenIsEmpty,
    /// Such a view counts as neither, and is its member's only view.
    Strip,
    /// A view is proven by a certificate of any payment.
    AnyCertificate,
    /// 2f+1 bind, instead of n + f + 1 − q.
    TwoFaultyPlusOne,
    /// An output lapses as soon as enough views are empty.
    LapseAtOnce,
    /// A case whose time is over lapses.
    LapseAtDeadline,
    /// f+1 empty views bind.
    FewViews,
    /// An output lapses when its epochs are over, whatever the views say.
    LapseByTime,
    /// A member signs an acceptance before its log has the certificate; after a crash it posts no view.
    BitBeforeCertificate,
    /// As before, and after a crash it posts an empty view.
    EmptyAfterCrash,
    /// Members without keys count as silent.
    SilentUnregistered,
    /// An expired case lifts its bars.
    LiftOnExpiry,
    /// An expired case can be opened again, and the views of the first opening count.
    ReplayedViews,
    /// A member signs a child and does not keep its parent's certificate.
    ChildWithoutProof,
    /// Certificates are redeemable through c+3, whatever was signed later.
    ShortRedeem,
    /// Certificates are redeemable for ever, though the ledger has dropped what it knew of the epoch.
    WideRedeem,
    /// A committee destroys its keys when its last case is closed.
    KeysDestroyed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A member reserves the inputs of a payment and signs it.
    Sign {
        committee: usize,
        member: usize,
        payment: usize,
    },
    /// A member is shown a certificate and acknowledges it, or signs a payment of an output of it.
    Accept {
        committee: usize,
        member: usize,
        payment: usize,
    },
    /// A member crashes; its log keeps the bit and drops the certificate.
    Crash {
        committee: usize,
        member: usize,
        payment: usize,
    },
    Open {
        output: usize,
    },
    Vote {
        member: usize,
        output: usize,
    },
    FaultyVote {
        output: usize,
        vote: u8,
    },
    /// A member bars the candidates and signs its view, and the view is committed.
    View {
        committee: usize,
        member: usize,
        output: usize,
    },
    /// The same, and a relay is first with the view, with another certificate or none.
    Relayed {
        committee: usize,
        member: usize,
        output: usize,
        certified: Option<usize>,
    },
    FaultyView {
        committee: usize,
        output: usize,
        claim: ViewClaim<usize>,
    },
    /// Anyone shows the ledger a certificate.
    Show {
        payment: usize,
    },
    ShowExit {
        output: usize,
    },
    /// A quorum of members signs the exit of the sibling, with proof from the ledger.
    SignExit,
    RedeemExit,
    /// The next lane epoch begins.
    Pass,
    /// Block heights pass, and lane time stands still.
    Stall,
}
