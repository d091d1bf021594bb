//! Why a request or a receipt is refused.

use primitives::{AssetId, Digest};

use crate::{HomeEpoch, OutputId};

/// Why a validator or a wallet refuses a request or receipt. A validator keeps no state of what it refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneRefusal {
    /// The bytes do not have the expected layout.
    #[error("the bytes are malformed: {0}; send the layout of the documentation")]
    Malformed(&'static str),
    /// It belongs to another network.
    #[error("it is of network {0}; send it to that network")]
    ForeignNetwork(Digest),
    /// Its inputs have a home epoch that this validator does not sign for.
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
        /// The asset.
        asset: AssetId,
        /// Sum of inputs.
        inputs: u128,
        /// Sum of outputs and the asset's fee.
        outputs: u128,
    },
    /// An output is smaller than its asset allows.
    #[error("an output of {amount} units of asset {asset} is below the least of {least}; make it larger")]
    TooSmall {
        /// The asset.
        asset: AssetId,
        /// Its amount.
        amount: u64,
        /// The least amount of the asset.
        least: u64,
    },
    /// The payment moves more assets than allowed.
    #[error("it moves more than 4 assets; split it")]
    TooManyAssets,
    /// The owner did not sign the payment.
    #[error("the owner's signature is not valid for this payment; sign it with the key that owns its inputs")]
    WrongOwnerSignature,
    /// As far as this validator knows, the ledger did not create the output.
    #[error("output {0} is not known as the ledger's; send its certificate, or wait until its deposit is certified")]
    UnknownOutput(OutputId),
    /// The proof of an input is for another output.
    #[error("the proof of output {0} is of another output, owner, asset or amount; send the one of this output")]
    ProofOfAnother(OutputId),
    /// The certificate does not have exactly q distinct signers in ascending order, all of the committee.
    #[error(
        "a certificate needs {needed} distinct signers of its committee in ascending order; collect their answers again"
    )]
    WrongSigners {
        /// The quorum q.
        needed: usize,
    },
    /// A path does not fit the size of its tree and the index.
    #[error("a Merkle path does not fit the size of its tree and the index in it; collect the answer again")]
    WrongPath,
    /// A signature of a certificate is not valid.
    #[error("validator {0} did not sign this; collect its answer again")]
    WrongSignature(u8),
    /// The BLS key is missing, not in the subgroup, the identity, or its possession is not proved.
    #[error("a BLS key is not valid, not registered, or its possession is not proved")]
    WrongBlsKey,
    /// An aggregated signature is not valid.
    #[error("the signers of the aggregate did not sign this; collect their answers again")]
    WrongAggregate,
    /// The certificate is of an epoch whose keys are not known here.
    #[error(
        "the keys of lane epoch {0} are not known here: what an epoch signed that has not begun, or is long over, \
         proves nothing; of the present one, ask again later"
    )]
    UnknownCommittee(HomeEpoch),
    /// An input is spent by another payment.
    #[error("output {output} is spent by payment {by}; finish that payment instead")]
    Conflict {
        /// The output.
        output: OutputId,
        /// The digest of the payment that spends it.
        by: Digest,
    },
    /// The budget of costly checks, of the peer or of all peers, is used up, or too many trees wait for the disk.
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
    /// The member revealed a share of the group's secret.
    #[error("validator {0} revealed its share of the group's key; its signatures do not count")]
    RevealedShare(u8),
    /// The epoch has no group key.
    #[error("this epoch has no group key: no key generation ended well; use an aggregate")]
    NoGroupKey,
    /// The validator registered no key for the epoch.
    #[error("validator {0} registered no key for this epoch; ask the others")]
    Unregistered(u8),
    /// The registrar's signature or a proof of possession in a registration is invalid.
    #[error("the registration of keys does not hold: the member's registrar and each key sign it")]
    WrongRegistration,
    /// The dealing is not signed by its dealer, or its proofs do not hold for its board.
    #[error("the dealing does not hold: its dealer signs it, and proves what it deals to the members of the epoch")]
    WrongDealing,
    /// The home epoch of the inputs has ended.
    #[error("epoch {0} has ended and its keys are destroyed; redeem what pays accounts, the rest stays in escrow")]
    Ended(HomeEpoch),
}

/// Why the state does not permit an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BridgeRefusal {
    /// The certificate is redeemed too early or too late.
    #[error("certificates of committee {0} are redeemable from epoch {0} until three epochs later")]
    NotRedeemable(HomeEpoch),
    /// An input was credited to its owner, or does not exist.
    #[error("the payment is void: an input was credited to its owner by a verdict")]
    Void,
    /// No case of this output may be opened now.
    #[error("a case about an output of epoch {0} can be opened until the middle of the second epoch after it")]
    TooLate(HomeEpoch),
    /// No such output was withdrawn.
    #[error("the ledger has no such output; show the certificate of the payment that created it")]
    UnknownOutput,
    /// No key generation expects the dealing or complaint now.
    #[error("no key generation awaits this now: {0}")]
    NotAwaited(DkgRefusal),
    /// The proof of the complaint does not hold.
    #[error("the complaint's proof does not hold")]
    WrongComplaint,
    /// There is no such case.
    #[error("there is no open case about this output")]
    NoCase,
    /// The vote is for another round or epoch than the present one.
    #[error("the lane is in epoch {epoch}, round {round}; vote in that round")]
    WrongRound {
        /// The present epoch.
        epoch: HomeEpoch,
        /// The present round.
        round: u64,
    },
    /// Keys are registered for another epoch than the next one, twice, or by a convicted member; or the keys of this
    /// chain do not change.
    #[error("a member that was not convicted registers fresh keys once, for lane epoch {0}")]
    WrongRegistration(HomeEpoch),
    /// The evidence is of an epoch that the ledger has dropped.
    #[error("the keys of lane epoch {0} are forgotten: evidence of that epoch is too old")]
    EvidenceTooOld(HomeEpoch),
}

/// Why the board of a key generation refuses a post. The board is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DkgRefusal {
    /// Dealings come before complaints, complaints before the end.
    #[error("it comes too early or too late")]
    WrongPhase,
    /// The poster is not a member.
    #[error("member {0} is not of this committee")]
    Stranger(u8),
    /// The dealer has already dealt; its first dealing counts.
    #[error("member {0} has dealt already")]
    DealtBefore(u8),
    /// There are too many or too few commitments or shares.
    #[error("a dealing has a commitment for each of q coefficients and a share for each member")]
    WrongCounts,
    /// A point is the identity, or outside the subgroup.
    #[error("a point is the identity or outside the subgroup")]
    WrongPoint,
    /// The dealer does not know what it deals, or deals for another board.
    #[error("the proof of possession does not hold")]
    WrongPossession,
    /// The complaint is about a member that has not dealt.
    #[error("member {0} has not dealt")]
    NotDealt(u8),
    /// The proof of the shared point is invalid.
    #[error("the complaint's proof does not hold")]
    WrongProof,
}

/// Why a validator has stopped signing for the rest of its home epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MuteReason {
    /// There is no log, although the validator created one when its keys were registered.
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
    /// A sync failed: the content of the disk is unknown.
    #[error("its log could not be synced")]
    SyncFailed,
    /// The shard found one of its own signatures above the end of its log: the log was rolled back.
    #[error("its log is older than its signatures")]
    RolledBackLog,
    /// The log was closed, because the network restarts: its certificates are evidence now.
    #[error("its log is closed: the network restarts without it")]
    ClosedLog,
}
