//! Why a request or a receipt is refused.

use primitives::{AssetId, Digest};

use crate::{DkgRefusal, HomeEpoch, OutputId};

/// Why a validator or a wallet refuses what it was given. A validator keeps no state of what it refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneRefusal {
    /// The bytes are not of the layout.
    #[error("the bytes are malformed: {0}; send the layout of the documentation")]
    Malformed(&'static str),
    /// Of another network.
    #[error("it is of network {0}; send it to that network")]
    ForeignNetwork(Digest),
    /// Its inputs are of a home that this validator does not sign for.
    #[error("its inputs live in epoch {0}; ask the committee of that epoch")]
    ForeignHome(HomeEpoch),
    /// The owner belongs to another shard of this validator.
    #[error("its owner is of shard {0} of this validator; send it there")]
    ForeignShard(u16),
    /// The payment names a home of its outputs that is not the present epoch.
    #[error("its outputs go into epoch {into}, but the present one is {now}; build it for the present epoch")]
    WrongEpoch {
        /// The home it names.
        into: HomeEpoch,
        /// The present epoch.
        now: HomeEpoch,
    },
    /// An asset's inputs are not the sum of its outputs and its fee.
    #[error("asset {asset}: inputs are {inputs}, outputs and fee {outputs}; make them equal")]
    WrongSum {
        /// Which.
        asset: AssetId,
        /// Sum of inputs.
        inputs: u128,
        /// Sum of outputs and the asset's fee.
        outputs: u128,
    },
    /// An output is smaller than its asset allows.
    #[error("an output of {amount} units of asset {asset} is below the least of {least}")]
    TooSmall {
        /// Which.
        asset: AssetId,
        /// Its amount.
        amount: u64,
        /// The least amount of the asset.
        least: u64,
    },
    /// More assets than a payment may have.
    #[error("it moves more than 4 assets; split it")]
    TooManyAssets,
    /// The owner did not sign the payment.
    #[error("the owner's signature is not valid for this payment")]
    WrongOwnerSignature,
    /// The ledger did not create the output, as far as this validator knows.
    #[error("output {0} is not known as the ledger's; send its certificate, or wait until its deposit is certified")]
    UnknownOutput(OutputId),
    /// What proves an input names another output.
    #[error("the proof of output {0} is of another output, owner, asset or amount")]
    ProofOfAnother(OutputId),
    /// A certificate without exactly q distinct signers in ascending order, all of the committee.
    #[error("a certificate needs {needed} distinct signers of its committee in ascending order")]
    WrongSigners {
        /// The quorum q.
        needed: usize,
    },
    /// A path that does not fit size and index of its tree.
    #[error("a Merkle path does not fit the size of its tree and the index in it")]
    WrongPath,
    /// A signature of a certificate is not valid.
    #[error("validator {0} did not sign this; collect its answer again")]
    WrongSignature(u8),
    /// A BLS key that is not in the subgroup, is the identity, or whose possession is not proved; or there is none.
    #[error("a BLS key is not valid, not registered, or its possession is not proved")]
    WrongBlsKey,
    /// An aggregated signature is not valid.
    #[error("the signers of the aggregate did not sign this; collect their answers again")]
    WrongAggregate,
    /// The certificate is of an epoch whose keys are not known here.
    #[error("the committee of epoch {0} is not known here")]
    UnknownCommittee(HomeEpoch),
    /// An input is spent by another payment.
    #[error("output {output} is spent by payment {by}; finish that payment instead")]
    Conflict {
        /// Which.
        output: OutputId,
        /// The digest of the payment that spends it.
        by: Digest,
    },
    /// The peer's, or everybody's, budget of costly checks is used up, or too many trees wait for the disk.
    #[error("the validator is busy; send the same bytes again later")]
    Busy,
    /// The spent set of this home epoch has reached its bound.
    #[error("the spent set of this epoch is full; wait for the next epoch")]
    Full,
    /// The validator does not sign.
    #[error("the validator does not sign: {0}; ask the others")]
    Muted(MuteReason),
    /// The lane is halted: nothing new is signed.
    #[error("the lane is halted; send the same bytes again later")]
    Halted,
    /// The payment, or the one that created an input, is a candidate of an open case or void.
    #[error("payment {0} is contested; post its certificate to the ledger")]
    Barred(Digest),
    /// A member that revealed a share of the group's secret.
    #[error("validator {0} revealed its share of the group's key; its signatures do not count")]
    RevealedShare(u8),
    /// The epoch has no group key.
    #[error("this epoch has no group key: no key generation ended well; use an aggregate")]
    NoGroupKey,
    /// A validator that registered no key for the epoch.
    #[error("validator {0} registered no key for this epoch; ask the others")]
    Unregistered(u8),
    /// Keys of an epoch whose registrar or whose proofs of possession do not hold.
    #[error("the registration of keys does not hold: the member's registrar and each key sign it")]
    WrongRegistration,
    /// A dealing whose dealer did not sign it, or whose proofs do not hold for its board.
    #[error("the dealing does not hold: its dealer signs it, and proves what it deals to the members of the epoch")]
    WrongDealing,
    /// The home epoch of the inputs has ended.
    #[error("epoch {0} has ended and its keys are destroyed")]
    Ended(HomeEpoch),
}

/// Why the state does not permit an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BridgeRefusal {
    /// Redeemed too early or too late.
    #[error("certificates of committee {0} are redeemable from epoch {0} until three epochs later")]
    NotRedeemable(HomeEpoch),
    /// An input was credited to its owner, or does not exist.
    #[error("the payment is void: an input was credited to its owner by a verdict")]
    Void,
    /// No case of such an output may be opened now.
    #[error("a case about an output of epoch {0} can be opened until the middle of the second epoch after it")]
    TooLate(HomeEpoch),
    /// No such output was withdrawn.
    #[error("the ledger has no such output; show the certificate of the payment that created it")]
    UnknownOutput,
    /// A dealing or a complaint that no key generation awaits now.
    #[error("no key generation awaits this now: {0}")]
    NotAwaited(DkgRefusal),
    /// A complaint whose proof does not hold.
    #[error("the complaint's proof does not hold")]
    WrongComplaint,
    /// There is no such case.
    #[error("there is no open case about this output")]
    NoCase,
    /// It votes for another round or epoch than the present one.
    #[error("the lane is in epoch {epoch}, round {round}; vote in that round")]
    WrongRound {
        /// The present epoch.
        epoch: HomeEpoch,
        /// The present round.
        round: u64,
    },
    /// Keys are registered for another epoch than the next one, twice, or again, or by a convicted member; or this
    /// chain's keys do not change.
    #[error("a member that was not convicted registers fresh keys once, for lane epoch {0}")]
    WrongRegistration(HomeEpoch),
    /// Evidence of an epoch that the ledger has forgotten.
    #[error("the keys of lane epoch {0} are forgotten: nobody is convicted by them any more")]
    EvidenceTooOld(HomeEpoch),
}

/// Why a validator has stopped signing for the rest of its home epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MuteReason {
    /// There is no log, though the validator made one when its keys were registered.
    #[error("its log is missing")]
    MissingLog,
    /// The log is of another validator, shard, epoch or network.
    #[error("its log belongs to another validator, shard, epoch or network")]
    ForeignLog,
    /// The log is damaged below what had been durable.
    #[error("its log is damaged")]
    DamagedLog,
    /// The log could not be read.
    #[error("its log cannot be read")]
    UnreadableLog,
    /// A sync failed: nobody knows what is on the disk.
    #[error("its log could not be synced")]
    SyncFailed,
    /// It met a signature of its own above the end of its log: the log was rolled back.
    #[error("its log is older than its signatures")]
    RolledBackLog,
}
