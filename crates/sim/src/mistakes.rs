//! Every mistake that a world can be told to make, with a run that finds it.

use consensus::Protocol;
use member::MemberMistake;
use replica::{Defect, LifeMistake, SeatMistake, UnsealMistake};
use venue::VenueMistake;

use crate::lane::{LaneOptions, run_lane};
use crate::market::{MarketOptions, run_market};
use crate::solo::{SimOptions, run};
use crate::validators::{Faults, SimNetwork, run_network};
use crate::world::{EngineMistake, Failure, LaneMistake, MarketMistake, Mistake};

/// The world that finds a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// One node.
    Solo,
    /// A network of validators, with faults for which the mistake matters.
    Validators,
    /// The payment lane, with this many blocks before the faults stop.
    Lane(u64),
    /// A continuous market.
    Market,
}

/// A mistake with a run that finds it.
#[derive(Clone, Copy, Debug)]
pub struct FoundMistake {
    /// The mistake.
    pub mistake: Mistake,
    /// The world.
    pub scene: Scene,
    /// The seed.
    pub seed: u64,
    /// What the check that finds it says.
    pub says: &'static str,
}

impl FoundMistake {
    /// The run with the mistake: it must fail.
    ///
    /// # Errors
    /// [`Failure`] names the check that finds the mistake.
    pub fn with_mistake(&self) -> Result<(), Failure> {
        self.play(Some(self.mistake))
    }

    /// The same run without the mistake: it must hold.
    ///
    /// # Errors
    /// [`Failure`] names the invariant that is broken.
    pub fn without_mistake(&self) -> Result<(), Failure> {
        self.play(None)
    }

    fn play(&self, mistake: Option<Mistake>) -> Result<(), Failure> {
        match self.scene {
            Scene::Solo => run(self.seed, SimOptions { mistake, ..SimOptions::default() }).map(drop),
            Scene::Lane(blocks) => {
                run_lane(self.seed, LaneOptions { blocks, mistake, ..LaneOptions::default() }).map(drop)
            }
            Scene::Market => {
                let options = MarketOptions { mistake, ..MarketOptions::default() };
                run_market(self.seed, options).map(drop)
            }
            Scene::Validators => {
                let (of, seed) = (self.mistake, self.seed);
                run_network(seed, || {
                    let (mut network, each) = network_for(of, seed);
                    network.mistake = mistake;
                    (network, each)
                })
                .map(drop)
            }
        }
    }
}

/// All mistakes that a world finds, each with its run.
pub fn found() -> impl Iterator<Item = FoundMistake> {
    SOLO.iter().chain(&VALIDATORS).chain(&LANE).chain(&MARKET).map(|(mistake, scene, seed, says)| FoundMistake {
        mistake: *mistake,
        scene: *scene,
        seed: *seed,
        says,
    })
}

/// Mistakes that tests of `replica`, `member` and `venue` find. There seats and unsealers walk through all short
/// orders; in the lane's world somebody else shows such certificates in time; in that of markets others come first to
/// what matters, and few orders are so large.
pub const FOUND_ELSEWHERE: [Mistake; 26] = {
    use Mistake::{Member, Seat, Unseal, Venue};
    [
        Seat(SeatMistake::DealsAnew),
        Seat(SeatMistake::DealsWrongShares),
        Seat(SeatMistake::ComplainsNeedlessly),
        Seat(SeatMistake::HidesLoss),
        Seat(SeatMistake::KeepsSecrets),
        Seat(SeatMistake::ErasesEarly),
        Unseal(UnsealMistake::KeysUnchecked),
        Unseal(UnsealMistake::FalseKept),
        Unseal(UnsealMistake::NeverAsks),
        Unseal(UnsealMistake::DoubtForgotten),
        Member(MemberMistake::LateCertificateNotTold),
        Member(MemberMistake::ShownNotPosted),
        Venue(VenueMistake::CreditsBuy),
        Venue(VenueMistake::BandAtLimitOnly),
        Venue(VenueMistake::GroupCut),
        Venue(VenueMistake::ListsBeforeTheirRules),
        Venue(VenueMistake::PathsForgotten),
        Venue(VenueMistake::NeverLate),
        Venue(VenueMistake::BondForgotten),
        Venue(VenueMistake::ReplaceForgetsExecuted),
        Venue(VenueMistake::DeadManEndsAll),
        Venue(VenueMistake::BacklogUnbounded),
        Venue(VenueMistake::AuctionInPause),
        Venue(VenueMistake::OpensOnOldBlocks),
        Venue(VenueMistake::NumbersRunAway),
        Venue(VenueMistake::SignerForgotten),
    ]
};

type Row = (Mistake, Scene, u64, &'static str);

const fn solo(mistake: EngineMistake, seed: u64, says: &'static str) -> Row {
    (Mistake::Engine(mistake), Scene::Solo, seed, says)
}

const fn of_life(mistake: LifeMistake, scene: Scene, seed: u64, says: &'static str) -> Row {
    (Mistake::Life(mistake), scene, seed, says)
}

const fn of_replica(mistake: Defect, seed: u64, says: &'static str) -> Row {
    (Mistake::Replica(mistake), Scene::Validators, seed, says)
}

const fn of_member(mistake: MemberMistake, seed: u64, blocks: u64, says: &'static str) -> Row {
    (Mistake::Member(mistake), Scene::Lane(blocks), seed, says)
}

const fn of_lane(mistake: LaneMistake, seed: u64, says: &'static str) -> Row {
    (Mistake::Lane(mistake), Scene::Lane(34), seed, says)
}

const fn of_venue(mistake: VenueMistake, seed: u64, says: &'static str) -> Row {
    (Mistake::Venue(mistake), Scene::Market, seed, says)
}

const fn of_market(mistake: MarketMistake, seed: u64, says: &'static str) -> Row {
    (Mistake::Market(mistake), Scene::Market, seed, says)
}

const SOLO: [Row; 52] = [
    of_life(LifeMistake::AnswersBeforeSync, Scene::Solo, 2, "acknowledged and are lost"),
    of_life(LifeMistake::RootBeforeBlock, Scene::Solo, 0, "the root after block"),
    of_life(LifeMistake::RootNotAwaited, Scene::Solo, 0, "contains another state root than its parent has"),
    of_life(LifeMistake::PublishesOutOfOrder, Scene::Solo, 10, "the store refused: receipts"),
    of_life(LifeMistake::CheckpointBeforeReceipts, Scene::Solo, 3, "the receipts end at height"),
    of_life(LifeMistake::ForgetsBeforeCheckpoint, Scene::Solo, 5, "cannot be recovered"),
    solo(EngineMistake::SyncSkipped, 0, "were acknowledged and are lost"),
    solo(EngineMistake::DiskErrorIgnored, 1, "were acknowledged and are lost"),
    solo(EngineMistake::ReceiptsSkipped, 1, "the store refused: receipts"),
    solo(EngineMistake::ReceiptsChanged, 2, "the receipts of block"),
    solo(EngineMistake::CheckpointOfLaterState, 1, "holds the state of height"),
    solo(EngineMistake::CheckpointInPlace, 35, "cannot be recovered"),
    solo(EngineMistake::RootsSkipped, 1, "contains another state root than its parent has"),
    solo(EngineMistake::SignaturesUnchecked, 3, "was answered Waits"),
    solo(EngineMistake::SequenceNotMarked, 0, "used but still free"),
    solo(EngineMistake::RefundTwice, 0, "bookkeeping"),
    solo(EngineMistake::FeeNotBurnt, 0, "units were kept"),
    solo(EngineMistake::RoundedUp, 3, "clearing"),
    solo(EngineMistake::TradeOverstated, 0, "clearing"),
    solo(EngineMistake::RewardTwice, 0, "bookkeeping"),
    solo(EngineMistake::OfferOfARevertedCall, 13, "clearing"),
    solo(EngineMistake::ReplaceNotCharged, 11, "its caps and uses are"),
    solo(EngineMistake::SessionNumberNotMarked, 0, "used but still free"),
    solo(EngineMistake::TimersForgotten, 1, "its key, scope and heights are"),
    solo(EngineMistake::KeyCountsTwice, 0, "was answered Waits"),
    solo(EngineMistake::StalePolicySigns, 0, "a request names an earlier change of keys"),
    solo(EngineMistake::WaitingPolicySigns, 0, "no signer of the policy in force"),
    solo(EngineMistake::CompletesEarly, 0, "is completed before its wait is over"),
    solo(EngineMistake::RecoversBesideChange, 0, "a recovery counts although a change waits"),
    solo(EngineMistake::BarePayments, 0, "a bare payment to"),
    solo(EngineMistake::ReferencesNotAsked, 0, "need references, not"),
    solo(EngineMistake::ReferencesAskedFor, 0, "need references, not"),
    solo(EngineMistake::ReferencedPaysLess, 1, "bookkeeping"),
    solo(EngineMistake::NumbersByPlace, 11, "by its id a listing gets the number"),
    solo(EngineMistake::RefusedListingPays, 19, "units were kept, but burnt"),
    solo(EngineMistake::ListingFeesFound, 2, "are asked for"),
    solo(EngineMistake::NamesCopied, 6, "could be taken for"),
    solo(EngineMistake::WordsCountTwice, 15, "waits, but by the votes"),
    solo(EngineMistake::LastCommitteeDecides, 15, "waits, but by the votes"),
    solo(EngineMistake::ActsEarly, 23, "the parameters are"),
    solo(EngineMistake::ProposalsNeverEnd, 39, "is open, but by the receipts"),
    solo(EngineMistake::WordsOutliveProposal, 7, "is open, but by the receipts"),
    solo(EngineMistake::StepsUnbounded, 7, "at one step"),
    solo(EngineMistake::ClosesLate, 10, "were over, but"),
    solo(EngineMistake::RevokedLate, 11, "says Revoke at"),
    solo(EngineMistake::OffersOutlive, 0, "closes at"),
    solo(EngineMistake::ReturnLost, 1, "issued, but"),
    solo(EngineMistake::FrozenSpends, 32, "in which it is frozen"),
    solo(EngineMistake::FrozenIsPaid, 50, "in which it is frozen"),
    solo(EngineMistake::FreezeLost, 0, "of holders the ledger says"),
    solo(EngineMistake::FreezeDatedBack, 0, "of holders the ledger says"),
    solo(EngineMistake::FrozenEndUntold, 11, "were over, but"),
];

const VALIDATORS: [Row; 23] = [
    of_life(LifeMistake::ForgetsUncertified, Scene::Validators, 2, "the run does not end"),
    of_life(LifeMistake::HandoverNotAwaited, Scene::Validators, 0, "handovers lead to epoch 0"),
    of_replica(Defect::VotesUnlogged, 0, "has sent a vote that is not in its log"),
    of_replica(Defect::RelaysUnlogged, 5, "the run does not end"),
    of_replica(Defect::VotesForgottenEarly, 0, "OutOfOrder"),
    of_replica(Defect::VotesKept, 0, "the run does not end"),
    of_replica(Defect::SilenceBroken, 0, "contradicts itself"),
    of_replica(Defect::NeverBeats, 0, "the run does not end"),
    of_replica(Defect::LeftOutLost, 0, "the run does not end"),
    of_replica(Defect::ForwardedLost, 0, "the run does not end"),
    of_replica(Defect::CommitteeKept, 0, "wrongly signed"),
    of_replica(Defect::ReceiptsUnsigned, 0, "a certificate of another outcome"),
    of_replica(Defect::CertificatesUnsynced, 0, "durable"),
    of_replica(Defect::GenerationsMixed, 4, "without a slot"),
    of_replica(Defect::LaggardsUnanswered, 0, "the run does not end"),
    of_replica(Defect::PaceIgnored, 0, "came too soon"),
    of_replica(Defect::QuotaHoldsAll, 0, "has waited for"),
    of_replica(Defect::KeysKeepOwnersOut, 0, "keeps its owner out"),
    of_replica(Defect::NeverPresent, 0, "the run does not end"),
    of_replica(Defect::RulesNotAwaited, 0, "newest: "),
    of_replica(Defect::OpensWithoutRules, 10, "newest: "),
    of_replica(Defect::ApprovesBlindly, 1, "cannot follow rules that were confirmed"),
    of_replica(Defect::NeverReady, 0, "has not said so"),
];

const LANE: [Row; 25] = [
    of_member(MemberMistake::ReportNotAskedAgain, 53, 34, "is lost"),
    of_member(MemberMistake::PostNotRepeated, 47, 34, "has not registered for epoch"),
    of_member(MemberMistake::PostRepeatedEarly, 1, 34, "has posted Registration"),
    of_member(MemberMistake::EpochBegunEarly, 0, 34, "begins epoch 2, and certified is epoch 1"),
    of_member(MemberMistake::KeysDestroyedEarly, 0, 34, "has destroyed the key of epoch 0"),
    of_member(MemberMistake::KeysKept, 0, 90, "holds the key of epoch 0"),
    of_member(MemberMistake::FactsDuringStart, 1, 34, "was not told of"),
    of_member(MemberMistake::CasesNotTold, 0, 34, "was not told of"),
    of_member(MemberMistake::VerdictNotTold, 0, 34, "which is confirmed"),
    of_member(MemberMistake::LogMadeAgain, 1, 34, "certified twice"),
    of_member(MemberMistake::NeedlessComplaints, 0, 34, "is correct, but the generation"),
    of_member(MemberMistake::PreparationGivenUp, 1, 34, "has not registered for epoch"),
    of_lane(LaneMistake::AnswerBeforeSync, 0, "certified twice"),
    of_lane(LaneMistake::OthersAnswer, 2, "is liable for no faulty member"),
    of_lane(LaneMistake::DutyUnmarked, 0, "has not registered for epoch"),
    of_lane(LaneMistake::ForeignSigner, 0, "a certificate of payment"),
    of_lane(LaneMistake::RestartKeepsName, 0, "older than the restart"),
    of_lane(LaneMistake::RestartCountsLaterDeposits, 9, "is listed, and nothing of it is in the snapshot"),
    of_lane(LaneMistake::RestartIgnoresCertificates, 2, "is settled, and the list lacks its output"),
    of_lane(LaneMistake::TermsAtOnce, 0, "whose terms have"),
    of_lane(LaneMistake::ClosedTakesDeposits, 0, "whose terms have"),
    of_lane(LaneMistake::ClosedKeepsIn, 0, "does not return to the ledger"),
    of_lane(LaneMistake::ShardsJudgeByNewest, 0, "refuses a payment for other terms"),
    of_lane(LaneMistake::PayersPayByNewest, 0, "refuses a payment for other terms"),
    of_lane(LaneMistake::RestartForgetsTerms, 8, "whose terms have"),
];

const MARKET: [Row; 30] = [
    of_venue(VenueMistake::ReportsBeforeSync, 4, "is not in the journal"),
    of_venue(VenueMistake::LeavingBuys, 4, "of an honest venue is bust: Deposit"),
    of_venue(VenueMistake::DrawdownForgetsFills, 12, "of an honest venue is bust: Drawdown"),
    of_venue(VenueMistake::RevokedTrades, 2, "of an honest venue is bust: Dead"),
    of_venue(VenueMistake::RaisesLater, 11, "of an honest venue is bust: Dead"),
    of_venue(VenueMistake::FloorsIgnored, 0, "of an honest venue is bust: Dead"),
    of_venue(VenueMistake::ExpiredTrades, 14, "of an honest venue is bust: Expired"),
    of_venue(VenueMistake::UncoveredOrdersStay, 36, "of an honest venue is bust: Deposit"),
    of_venue(VenueMistake::TwoInFlight, 0, "a settle of an honest venue is void"),
    of_venue(VenueMistake::RetryIsNew, 9, "and after a crash it is"),
    of_venue(VenueMistake::SignatureLeftOut, 0, "a settle of an honest venue is void"),
    of_venue(VenueMistake::StepsBeginAgain, 0, "is signed twice"),
    of_venue(VenueMistake::IgnoresFence, 1, "although its incarnation has ended"),
    of_venue(VenueMistake::IgnoresContradiction, 13, "goes on although the ledger has another fill"),
    of_venue(VenueMistake::FrozenTrades, 7, "of an honest venue is bust: Frozen"),
    of_venue(VenueMistake::FrozenRests, 86, "of an honest venue is bust: Frozen"),
    of_venue(VenueMistake::AdmissionForgotten, 14, "of an honest venue is bust: Frozen"),
    of_venue(VenueMistake::FrozenOwnerEarns, 25, "of an honest venue is bust: Frozen"),
    of_market(MarketMistake::DelayTooShort, 0, "the deposit of"),
    of_market(MarketMistake::OrdersUnverified, 51, "that nobody signed"),
    of_market(MarketMistake::BustsApplied, 31, "a fill moves units"),
    of_market(MarketMistake::EventLost, 0, "who follows market"),
    of_market(MarketMistake::LastServedFirst, 0, "passes over orders"),
    of_market(MarketMistake::JournalMadeAnew, 2, "an honest root has stopped"),
    of_market(MarketMistake::FactsLeftOut, 0, "of an honest venue is bust: Deposit"),
    of_market(MarketMistake::FreezesLeftOut, 46, "of an honest venue is bust: Frozen"),
    of_market(MarketMistake::SessionsForgotten, 33, "was never told"),
    of_market(MarketMistake::SessionsToldAgain, 0, "twice"),
    of_market(MarketMistake::LostUnanswered, 56, "has never answered"),
    of_market(MarketMistake::BridgeBeginsLate, 0, "a bridge of plain OUCH was told other fills"),
];

/// A network in which a mistake of this kind matters, and the number of transactions for each validator.
fn network_for(mistake: Mistake, seed: u64) -> (SimNetwork, u64) {
    match mistake {
        Mistake::Replica(defect) => network_for_replicas(defect, seed),
        Mistake::Seat(mistake) => network_for_seats(mistake, seed),
        Mistake::Unseal(mistake) => network_for_unsealing(mistake, seed),
        Mistake::Life(LifeMistake::HandoverNotAwaited) => {
            let mut network = SimNetwork::new(5, 3_800 + seed);
            network.epoch_heights = Some(10);
            (network, 40)
        }
        _ => {
            let mut network = SimNetwork::new(4, 3_800 + seed);
            (network.blackouts, network.checkpoint_blocks, network.keep_blocks) = (3, 1, 1);
            (network, 40)
        }
    }
}

fn network_for_seats(mistake: SeatMistake, seed: u64) -> (SimNetwork, u64) {
    let mut network = SimNetwork::new(4, 3_500 + seed);
    (network.seals, network.envelopes_within) = (true, 8_000_000);
    match mistake {
        SeatMistake::DealsAnew => network.kills = 20,
        SeatMistake::DealsWrongShares | SeatMistake::ComplainsNeedlessly => network.must_open = true,
        SeatMistake::HidesLoss => network.lost_logs = 2,
        SeatMistake::KeepsSecrets => {
            network = SimNetwork::new(5, 3_500 + seed);
            (network.seals, network.envelopes_within) = (true, 8_000_000);
            network.epoch_heights = Some(40);
            return (network, 200);
        }
        SeatMistake::ErasesEarly => {}
    }
    (network, 40)
}

fn network_for_unsealing(mistake: UnsealMistake, seed: u64) -> (SimNetwork, u64) {
    let mut network = SimNetwork::new(4, 3_600 + seed);
    (network.seals, network.envelopes_within) = (true, 8_000_000);
    match mistake {
        UnsealMistake::NeverAsks => (network.must_open, network.cuts, network.kills) = (true, 10, 6),
        UnsealMistake::KeysUnchecked | UnsealMistake::FalseKept | UnsealMistake::DoubtForgotten => {
            (network.tails, network.must_open, network.false_seat) = (false, true, Some(2));
        }
    }
    (network, 60)
}

fn network_for_replicas(defect: Defect, seed: u64) -> (SimNetwork, u64) {
    let mut network = SimNetwork::new(4, 3_000 + seed);
    let mut each = 20;
    match defect {
        Defect::VotesUnlogged => network.kills = 4,
        Defect::RelaysUnlogged => {
            // With one sub-block as enough, validators often give up a slot that others have already delivered.
            network = SimNetwork::new(4, 4_085 + seed);
            network.rules.enough = Some(1);
            (network.tears, network.cuts, each) = (6, 60, 40);
            (network.blackouts, network.blackout_loses_log) = (1, true);
        }
        Defect::VotesForgottenEarly | Defect::CertificatesUnsynced => (network.blackouts, each) = (3, 40),
        Defect::VotesKept => {
            // No step of a silent validator's slot is complete. What is stalled is sent again after 500 ms.
            (network.gather_from, network.patience, each) = (1, 450_000, 40);
            network.faults.insert(2, Faults::Silent);
        }
        // One at a time: while two of four do not vote no height is decided.
        Defect::SilenceBroken => (network.lost_logs, each) = (1, 60),
        Defect::NeverBeats => {
            network = SimNetwork::of(Protocol::Tendermint, 4, 350 + seed);
            (network.lost_logs, each) = (1, 1);
        }
        Defect::LeftOutLost => (network.slow, network.cuts) = (Some(1), 20),
        Defect::ForwardedLost => {
            network = SimNetwork::new(5, 3_100 + seed);
            (network.epoch_heights, network.kills, each) = (Some(10), 10, 60);
        }
        Defect::CommitteeKept | Defect::GenerationsMixed => {
            network = SimNetwork::new(5, 3_200 + seed);
            (network.epoch_heights, each) = (Some(10), 40);
        }
        Defect::ReceiptsUnsigned => {}
        Defect::LaggardsUnanswered => network.late = Some(1),
        Defect::PaceIgnored => (network.interval, each) = (50_000, 100),
        Defect::QuotaHoldsAll | Defect::KeysKeepOwnersOut => (network.interval, network.prompt) = (50_000, Some(4)),
        Defect::NeverPresent => {
            network = SimNetwork::new(5, 3_300 + seed);
            (network.epoch_heights, each) = (Some(10), 40);
        }
        Defect::RulesNotAwaited | Defect::OpensWithoutRules | Defect::ApprovesBlindly | Defect::NeverReady => {
            network = SimNetwork::new(5, 3_400 + seed);
            (network.epoch_heights, network.kills, each) = (Some(10), 6, 20);
            network.mix_versions((defect != Defect::ApprovesBlindly).then_some(2));
        }
    }
    (network, each)
}
