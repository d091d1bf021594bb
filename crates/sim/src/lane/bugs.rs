//! Seeded mistakes: a check that never fires proves nothing. Those of a member live in `member`; the others are in the
//! shell of a shard, in the genesis, in a restart and in a payer's collector, which the simulator plays.

use member::MemberMistake;

/// A mistake that must be detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneBug {
    /// A mistake of a member.
    OfMember(MemberMistake),
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
}

impl LaneBug {
    /// All bugs.
    pub fn all() -> impl Iterator<Item = LaneBug> {
        let others = [LaneBug::AnswerBeforeSync, LaneBug::OthersAnswer, LaneBug::DutyUnmarked, LaneBug::ForeignSigner];
        MemberMistake::ALL.map(LaneBug::OfMember).into_iter().chain(others).chain(LaneBug::OF_RESTARTS)
    }

    /// Mistakes of operators who restart the network.
    pub(super) const OF_RESTARTS: [LaneBug; 3] =
        [LaneBug::RestartKeepsName, LaneBug::RestartCountsLaterDeposits, LaneBug::RestartIgnoresCertificates];

    /// The mistake that the members make.
    pub(super) fn of_member(self) -> Option<MemberMistake> {
        match self {
            LaneBug::OfMember(mistake) => Some(mistake),
            _ => None,
        }
    }
}
