//! The inputs and outputs of the bridge.

use super::*;

/// An event that can happen once in a block; copies of it do nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BridgeKey {
    /// A payment is redeemed.
    Payment(Digest),
    /// Cases about outputs, of which this is a digest, are opened for this bid: those who bid the same do the same.
    Cases(Digest, Amount),
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

/// An operation with valid signatures, and its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeFact {
    /// The sender's funds go to escrow and become an output, by this account under this sequence number.
    Withdraw {
        /// The sender's account.
        account: Address,
        /// The transaction's sequence number.
        sequence: u64,
        /// The output to create.
        output: Output,
    },
    /// A [`BridgeOperation::Redeem`].
    Redeem(Arc<PaymentBody>),
    /// A [`BridgeOperation::Resolve`] by this account.
    Resolve {
        /// The account that pays the bid.
        opener: Address,
        /// Units of asset 0 for each case.
        bid: Amount,
        /// The contested outputs, each with home and digest of the payment that created it.
        cases: Vec<(ContestedOutput, Option<(HomeEpoch, Digest)>)>,
    },
    /// A [`BridgeOperation::Vote`].
    Vote {
        /// The contested output.
        case: OutputId,
        /// The validator.
        validator: u8,
        /// The payment.
        payment: Arc<PaymentBody>,
    },
    /// A [`BridgeOperation::View`].
    View {
        /// The contested output.
        case: OutputId,
        /// The validator's committee.
        committee: HomeEpoch,
        /// The validator.
        validator: u8,
        /// Home and digest of the payment that it names, whose certificate is verified.
        paid: Option<(HomeEpoch, Digest)>,
    },
    /// A [`BridgeOperation::Halt`].
    Halt {
        /// The validator's committee.
        epoch: HomeEpoch,
        /// The round.
        round: u64,
        /// The validator.
        validator: u8,
    },
    /// A [`BridgeOperation::Register`].
    Register(LaneRegistration),
    /// A [`BridgeOperation::Accuse`].
    Accuse(Convicted),
    /// A [`BridgeOperation::Deal`].
    Deal {
        /// The epoch of the group key.
        epoch: HomeEpoch,
        /// The dealing.
        dealing: Box<Dealing>,
        /// The dealer's signature.
        signature: Signature,
    },
    /// A [`BridgeOperation::Complain`].
    Complain {
        /// The epoch of the group key.
        epoch: HomeEpoch,
        /// The dealer, and the reason.
        complaint: Box<Complaint>,
    },
}

/// What a block pays, and what the lane learns from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeEvent {
    /// An account is credited from escrow.
    Credit {
        /// The account.
        to: Address,
        /// The asset.
        asset: AssetId,
        /// The number of units.
        amount: Amount,
    },
    /// A bid for a case that was not opened, or what an expired case did not use of it, is returned, in asset 0.
    ReturnDeposit(Address, Amount),
    /// A case has used up a bid: asset 0.
    KeepDeposit(Amount),
    /// An output exists: validators of its home accept it once the block is certified.
    Backed(OutputId, Output),
    /// The ledger has confirmed, in a case, the payment that created this output: its home committee, whose epoch is
    /// named, signs its exit without another proof.
    Proven(HomeEpoch, OutputId, Output),
    /// An event of a case.
    Case(CaseEvent),
    /// A member has registered keys for an epoch.
    Registered(HomeEpoch, u8),
    /// A member contradicted itself: its stake is slashed, once, and it registers no more keys.
    Convicted(u8),
    /// The key generation of an epoch has ended, with a group key or without one.
    GroupKey(HomeEpoch, bool),
    /// A lane epoch begins with this block.
    Epoch(HomeEpoch),
    /// The lane is halted until further notice, or continues.
    Halted(bool),
    /// Escrow does not cover a claim: the lane is broken and is halted.
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
    /// Units in escrow; `None` if more left it than entered.
    pub fn held(&self) -> Option<u128> {
        let came = self.backing.checked_add(self.deposits)?;
        came.checked_sub(self.redemptions)?.checked_sub(self.verdicts)
    }
}

/// A debt of escrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EscrowClaim {
    /// The account to pay.
    pub to: Address,
    /// The asset.
    pub asset: AssetId,
    /// The units still owed.
    pub amount: Amount,
    /// Whether it comes from a verdict.
    pub verdict: bool,
}
