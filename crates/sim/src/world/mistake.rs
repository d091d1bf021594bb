//! What a world can be told to do wrong.

use member::MemberMistake;
use replica::{Defect, LifeMistake, SeatMistake, UnsealMistake};
use store::StoreMistake;
use strum::VariantArray;
use venue::VenueMistake;

/// A mistake that must be detected. Those of `replica`, `store`, `member` and `venue` are in the code that runs in
/// production and are planted there ([`kernel::Planted`]). The product is compiled without them. That code contains
/// none of the others: the world does something wrongly, or changes a result of an engine before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    /// In the life of a block.
    Life(LifeMistake),
    /// Of a validator's replica.
    Replica(Defect),
    /// Of a seat that makes sealing keys.
    Seat(SeatMistake),
    /// Of a validator that opens envelopes.
    Unseal(UnsealMistake),
    /// Of a member of the payment lane.
    Member(MemberMistake),
    /// Of an engine, or of a worker that performs a job of a block.
    Engine(EngineMistake),
    /// Around the payment lane.
    Lane(LaneMistake),
    /// Of the root of a venue.
    Venue(VenueMistake),
    /// Around a continuous market.
    Market(MarketMistake),
}

impl Mistake {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Mistake> {
        let lives = LifeMistake::ALL.iter().copied().map(Mistake::Life);
        let replicas = Defect::ALL.iter().copied().map(Mistake::Replica);
        let seats = SeatMistake::ALL.iter().copied().map(Mistake::Seat);
        let unsealers = UnsealMistake::ALL.iter().copied().map(Mistake::Unseal);
        let members = MemberMistake::ALL.iter().copied().map(Mistake::Member);
        let engines = EngineMistake::ALL.iter().copied().map(Mistake::Engine);
        let lanes = LaneMistake::ALL.iter().copied().map(Mistake::Lane);
        let venues = VenueMistake::ALL.iter().copied().map(Mistake::Venue);
        let markets = MarketMistake::ALL.iter().copied().map(Mistake::Market);
        lives
            .chain(replicas)
            .chain(seats)
            .chain(unsealers)
            .chain(members)
            .chain(engines)
            .chain(lanes)
            .chain(venues)
            .chain(markets)
    }

    /// The mistake that the life of blocks makes.
    pub(crate) fn of_life(self) -> Option<LifeMistake> {
        if let Mistake::Life(mistake) = self { Some(mistake) } else { None }
    }

    /// The mistake that the store makes besides: it would tolerate that of the life alone.
    pub(crate) fn of_store(self) -> Option<StoreMistake> {
        match self.of_life()? {
            LifeMistake::CheckpointBeforeReceipts => Some(StoreMistake::CheckpointBeforeReceipts),
            LifeMistake::ForgetsBeforeCheckpoint => Some(StoreMistake::ForgetsAboveCheckpoints),
            _ => None,
        }
    }

    /// The mistake that replicas make.
    pub(crate) fn of_replica(self) -> Option<Defect> {
        if let Mistake::Replica(defect) = self { Some(defect) } else { None }
    }

    /// The mistake that seats make.
    pub(crate) fn of_seat(self) -> Option<SeatMistake> {
        if let Mistake::Seat(mistake) = self { Some(mistake) } else { None }
    }

    /// The mistake that validators make when they open envelopes.
    pub(crate) fn of_unsealing(self) -> Option<UnsealMistake> {
        if let Mistake::Unseal(mistake) = self { Some(mistake) } else { None }
    }

    /// The mistake that the members of the payment lane make.
    pub(crate) fn of_member(self) -> Option<MemberMistake> {
        if let Mistake::Member(mistake) = self { Some(mistake) } else { None }
    }

    /// The mistake of an engine or a worker.
    pub(crate) fn of_engine(self) -> Option<EngineMistake> {
        if let Mistake::Engine(mistake) = self { Some(mistake) } else { None }
    }

    /// The mistake that the root of a venue makes.
    pub(crate) fn of_venue(self) -> Option<VenueMistake> {
        if let Mistake::Venue(mistake) = self { Some(mistake) } else { None }
    }

    /// The mistake around a continuous market.
    pub(crate) fn of_market(self) -> Option<MarketMistake> {
        if let Mistake::Market(mistake) = self { Some(mistake) } else { None }
    }

    /// The mistake around the lane.
    pub(crate) fn of_lane(self) -> Option<LaneMistake> {
        if let Mistake::Lane(mistake) = self { Some(mistake) } else { None }
    }
}

/// A mistake of an engine, or of a worker that performs a job of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum EngineMistake {
    /// The log is never synced.
    SyncSkipped,
    /// A disk error is treated as success.
    DiskErrorIgnored,
    /// Receipts of some blocks are not archived.
    ReceiptsSkipped,
    /// Receipts are archived with another outcome.
    ReceiptsChanged,
    /// A checkpoint holds the state of a later block than it claims.
    CheckpointOfLaterState,
    /// A checkpoint is overwritten in place.
    CheckpointInPlace,
    /// The tries miss a block's changes.
    RootsSkipped,
    /// Signatures are not checked.
    SignaturesUnchecked,
    /// A used sequence number stays free.
    SequenceNotMarked,
    /// A cancelled offer is paid back twice, out of new units.
    RefundTwice,
    /// A fee is given back, and counted as never taken.
    FeeNotBurnt,
    /// A payout is rounded up, at the expense of the burnt amount.
    RoundedUp,
    /// The batch claims a larger amount sold than was sold.
    TradeOverstated,
    /// A proposer is paid twice, out of new units.
    RewardTwice,
    /// An offer that a contract placed is not removed when the call reverts.
    OfferOfARevertedCall,
    /// What a session key adds to an offer by replacing it does not count as used.
    ReplaceNotCharged,
    /// A used number of a session key stays free.
    SessionNumberNotMarked,
    /// A restart forgets the timers of session keys: lapsed ones go on trading.
    TimersForgotten,
    /// A signer of a policy counts as often as it stands among those who signed.
    KeyCountsTwice,
    /// A request counts that was signed before the account's last change of keys.
    StalePolicySigns,
    /// Signers of a policy that waits sign requests already.
    WaitingPolicySigns,
    /// A change of keys is completed before its wait is over.
    CompletesEarly,
    /// A recovery of keys counts while a change waits.
    RecoversBesideChange,
    /// An account that needs references is paid without.
    BarePayments,
    /// An account that begins to ask for references is not noted.
    ReferencesNotAsked,
    /// One that no longer asks for them is not noted.
    ReferencesAskedFor,
    /// A payment with a reference moves a unit less than it says.
    ReferencedPaysLess,
    /// Listings of a block get their numbers in its order.
    NumbersByPlace,
    /// A listing that is refused pays its fees all the same.
    RefusedListingPays,
    /// Whatever fees a listing names, it pays those that are asked for.
    ListingFeesFound,
    /// A listed asset may look like one of the genesis.
    NamesCopied,
    /// An asset closes a height late: it is in another batch, and what rests stays.
    ClosesLate,
    /// A closing is revoked at the last height.
    RevokedLate,
    /// An offer may outlive its asset, as far as anybody can see.
    OffersOutlive,
    /// Of the offers of a closed asset that return one comes back without its units.
    ReturnLost,
    /// The word of an account about a proposal counts for another account, too.
    WordsCountTwice,
    /// A proposal passes with the seats of the committee before alone, without the one that is drawn and the stake.
    LastCommitteeDecides,
    /// What has passed acts a block early.
    ActsEarly,
    /// A proposal is counted at more than four boundaries.
    ProposalsNeverEnd,
    /// What was said about a proposal counts for the one that takes its place.
    WordsOutliveProposal,
    /// A parameter more than doubles at one step.
    StepsUnbounded,
    /// A frozen holder pays, or offers.
    FrozenSpends,
    /// A frozen holder is paid.
    FrozenIsPaid,
    /// A freeze of a block is lost.
    FreezeLost,
    /// A freeze counts from the block before its own, so that it ripens early.
    FreezeDatedBack,
    /// Of the offers that a freeze ends one is not told.
    FrozenEndUntold,
}

impl EngineMistake {
    /// All of them.
    pub const ALL: &[EngineMistake] = EngineMistake::VARIANTS;
}

/// A mistake in the shell of a shard, in the genesis, in a restart, or in a payer's collector, which the lane's world
/// plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum LaneMistake {
    /// A signature is sent before it is durable.
    AnswerBeforeSync,
    /// The genesis names wrong accounts as liable for the members.
    OthersAnswer,
    /// Members' posts are not marked as duties: they cost fees that an empty account cannot pay.
    DutyUnmarked,
    /// A restart of the network leaves the lane its name: what was signed over the rolled back state still counts.
    RestartKeepsName,
    /// The list of a restart counts what the old network's last state backs: deposits that are rolled back, too.
    RestartCountsLaterDeposits,
    /// The list of a restart ignores certificates: what settled payments have spent is listed again.
    RestartIgnoresCertificates,
    /// A payer uses the sum of one signature too few, with the bit of a validator that did not sign.
    ForeignSigner,
    /// Terms of assets are those of the epoch in which they begin to act.
    TermsAtOnce,
    /// The end of an asset's deposits is noted, and they are taken all the same.
    ClosedTakesDeposits,
    /// What pays out an asset that takes no deposits is left out of every block.
    ClosedKeepsIn,
    /// Shards judge payments by the newest terms, and not by those of their home.
    ShardsJudgeByNewest,
    /// Payers build payments by the newest terms.
    PayersPayByNewest,
    /// A restart of the network brings back the terms of the genesis.
    RestartForgetsTerms,
}

impl LaneMistake {
    /// All of them.
    pub const ALL: &[LaneMistake] = LaneMistake::VARIANTS;

    /// Whether operators make it who restart the network.
    pub(crate) fn is_of_restarts(self) -> bool {
        use LaneMistake::{
            RestartCountsLaterDeposits, RestartForgetsTerms, RestartIgnoresCertificates, RestartKeepsName,
        };
        matches!(self, RestartKeepsName | RestartCountsLaterDeposits | RestartIgnoresCertificates | RestartForgetsTerms)
    }

    /// Whether it matters only where terms of assets are voted.
    pub(crate) fn is_of_terms(self) -> bool {
        use LaneMistake::{
            ClosedKeepsIn, ClosedTakesDeposits, PayersPayByNewest, RestartForgetsTerms, ShardsJudgeByNewest,
            TermsAtOnce,
        };
        matches!(
            self,
            TermsAtOnce
                | ClosedTakesDeposits
                | ClosedKeepsIn
                | ShardsJudgeByNewest
                | PayersPayByNewest
                | RestartForgetsTerms
        )
    }
}

/// A mistake of the ledger, the engine or the host around a continuous market, which its world plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub enum MarketMistake {
    /// The ledger counts actions of traders one height too early.
    DelayTooShort,
    /// The ledger does not verify the signatures of the orders in a settle.
    OrdersUnverified,
    /// The ledger applies a fill that it has judged bust, and says so.
    BustsApplied,
    /// Events of the engine do not reach the readers of market data.
    EventLost,
    /// The engine serves the last order of a price before the first.
    LastServedFirst,
    /// A host that lost its journal makes a new one in the same incarnation.
    JournalMadeAnew,
    /// A host tells its root the heights of some blocks, and not what they changed.
    FactsLeftOut,
    /// A root is not told whom an issuer freezes.
    FreezesLeftOut,
    /// A door that begins again has lost what its sessions were told.
    SessionsForgotten,
    /// A door that begins again tells its sessions everything that the root's journal can tell.
    SessionsToldAgain,
    /// A door that begins again asks nobody about numbers without an answer.
    LostUnanswered,
    /// A bridge of plain OUCH that begins again asks the venue for what it has not heard, although it has kept nothing.
    BridgeBeginsLate,
}

impl MarketMistake {
    /// All of them.
    pub const ALL: &[MarketMistake] = MarketMistake::VARIANTS;
}
