//! What the bridge is told, and what it answers.

use super::*;

/// What may happen once in a block, and whose copies do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BridgeKey {
    /// A payment is redeemed.
    Payment(Digest),
    /// A case about an output is opened.
    Case(OutputId),
    /// A validator votes in a case.
    Vote(OutputId, u8),
    /// A validator of a committee posts a view of a case.
    View(OutputId, HomeEpoch, u8),
    /// A validator votes to halt in a round.
    Halt(HomeEpoch, u64, u8),
    /// A member registers keys for an epoch.
    Registration(HomeEpoch, u8),
    /// A member is convicted.
    Conviction(u8),
    /// A member deals in the key generation of an epoch.
    Dealing(HomeEpoch, u8),
    /// A member complains about a dealer in the key generation of an epoch.
    Complaint(HomeEpoch, u8, u8),
}

/// An operation whose signatures are valid, with who sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeFact {
    /// The sender's funds go to escrow and become an output, by this account under this sequence number.
    Withdraw {
        /// Whose funds.
        account: Address,
        /// The transaction's sequence number.
        sequence: u64,
        /// What becomes an output.
        output: Output,
    },
    /// Of [`BridgeOperation::Redeem`].
    Redeem(Arc<PaymentBody>),
    /// Of [`BridgeOperation::Resolve`], by this account, which paid the deposit.
    Resolve {
        /// Who gets the deposit back.
        opener: Address,
        /// What is contested.
        contested: ContestedOutput,
        /// Home and digest of the payment that created it.
        parent: Option<(HomeEpoch, Digest)>,
    },
    /// Of [`BridgeOperation::Vote`].
    Vote {
        /// The contested output.
        case: OutputId,
        /// Who.
        validator: u8,
        /// For what.
        payment: Arc<PaymentBody>,
    },
    /// Of [`BridgeOperation::View`].
    View {
        /// The contested output.
        case: OutputId,
        /// The validator's committee.
        committee: HomeEpoch,
        /// Who.
        validator: u8,
        /// What it saw.
        seen: BTreeSet<Digest>,
    },
    /// Of [`BridgeOperation::Halt`].
    Halt {
        /// The validator's committee.
        epoch: HomeEpoch,
        /// The round.
        round: u64,
        /// Who.
        validator: u8,
    },
    /// Of [`BridgeOperation::Register`].
    Register(LaneRegistration),
    /// Of [`BridgeOperation::Accuse`].
    Accuse(Convicted),
    /// Of [`BridgeOperation::Deal`].
    Deal {
        /// Whose group key is made.
        epoch: HomeEpoch,
        /// What is dealt.
        dealing: Box<Dealing>,
        /// The dealer's.
        signature: Signature,
    },
    /// Of [`BridgeOperation::Complain`].
    Complain {
        /// Whose group key is made.
        epoch: HomeEpoch,
        /// About whom, and why.
        complaint: Box<Complaint>,
    },
}

/// What a block owes, and what the lane learns from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeEvent {
    /// An account is credited, out of escrow.
    Credit {
        /// Whom.
        to: Address,
        /// Of what.
        asset: AssetId,
        /// How much.
        amount: Amount,
    },
    /// A deposit of a case goes back: asset 0.
    ReturnDeposit(Address, Amount),
    /// A deposit of a case is forfeited: a payment of the output had been certified. Asset 0.
    KeepDeposit(Amount),
    /// An output exists: validators of its home accept it once the block is certified.
    Backed(OutputId, Output),
    /// Something happened to a case.
    Case(CaseEvent),
    /// A member has registered keys for an epoch.
    Registered(HomeEpoch, u8),
    /// A member contradicted itself: its stake is slashed, once, and it registers no more keys.
    Convicted(u8),
    /// The key generation of an epoch has ended: with a group key, or with none.
    GroupKey(HomeEpoch, bool),
    /// A lane epoch begins with this block.
    Epoch(HomeEpoch),
    /// The lane is halted until it says otherwise, or goes on.
    Halted(bool),
    /// Escrow does not cover a claim: the lane is broken, and is halted.
    Uncovered(AssetId),
}

/// Units that moved into and out of escrow, of one asset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EscrowTotals {
    /// Backing of genesis outputs.
    pub backing: u128,
    /// Withdrawals from the ledger into the lane.
    pub deposits: u128,
    /// Paid for outputs to accounts of certified payments.
    pub redemptions: u128,
    /// Paid by verdicts.
    pub verdicts: u128,
}

impl EscrowTotals {
    /// What is in escrow; `None` if more left it than came.
    pub fn held(&self) -> Option<u128> {
        let came = self.backing.checked_add(self.deposits)?;
        came.checked_sub(self.redemptions)?.checked_sub(self.verdicts)
    }
}

/// Something that escrow owes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EscrowClaim {
    /// To whom.
    pub to: Address,
    /// Of what.
    pub asset: AssetId,
    /// How much is still owed.
    pub amount: Amount,
    /// Whether a verdict owes it.
    pub verdict: bool,
}
