//! Bids for cases: which cases a block opens, and what they pay.

use super::*;
use crate::PAYMENT_BYTES_MAX;
use crate::request::{ANSWER_BYTES_MAX, CERTIFICATE_BYTES_MAX};

/// The most cases that a block opens, for committees of few members.
const CASES_MAX: usize = 16;
/// The most signature checks that one post may cost, since a sub-block has no more for all its posts, nor for all its
/// members' duties.
pub const POST_CHECKS_MAX: u32 = 1_024;

/// The most cases that one block opens. The votes and views of all members about them fit into the share of each block
/// that is reserved for members' duties: in the long run a block has as many posts as it opens cases.
pub fn cases_per_block(quorums: Quorums) -> usize {
    // A vote with its owner's signature, and views of two committees with a certificate each.
    let checks = 2 + 2 * (1 + quorums.certificate);
    (POST_CHECKS_MAX as usize / checks).clamp(1, CASES_MAX)
}

/// Fees that the posts of a case would cost where a committee has this many members: n votes and 2n views of the
/// largest size.
pub fn case_weight(members: usize) -> u64 {
    let certificate = (Quorums::new(members).certificate * ANSWER_BYTES_MAX + 1).min(CERTIFICATE_BYTES_MAX);
    let vote = 1 + 32 + 2 + PAYMENT_BYTES_MAX + 1 + 64 + ANSWER_BYTES_MAX;
    let view = 1 + 32 + 8 + 32 + 1 + crate::PaymentSummary::BYTES + certificate + ANSWER_BYTES_MAX;
    let weight = |bytes: usize| (bytes as u64).div_ceil(primitives::WEIGHT_BYTES);
    members as u64 * (weight(vote) + 2 * weight(view))
}

/// A bid for a case.
pub(super) struct CaseBid {
    pub(super) bid: Amount,
    /// The first of the outputs that are contested together.
    pub(super) first: OutputId,
    pub(super) opener: Address,
    pub(super) contested: ContestedOutput,
    pub(super) parent: Option<(HomeEpoch, Digest)>,
}

impl CaseBid {
    /// The bids of one operation.
    pub(super) fn of_all(
        opener: Address,
        bid: Amount,
        cases: Vec<(ContestedOutput, Option<(HomeEpoch, Digest)>)>,
    ) -> impl Iterator<Item = CaseBid> {
        let first = cases.iter().map(|(contested, _)| contested.output.id).min().unwrap_or(OutputId([0; 32]));
        cases.into_iter().map(move |(contested, parent)| CaseBid { bid, first, opener, contested, parent })
    }
}

impl Bridge {
    /// The bids that a block accepts, and the return of all others. The facts of the cases are added to `cases`.
    pub(super) fn take_bids(&self, mut all: Vec<CaseBid>, cases: &mut Vec<CaseFact>) -> (Bids, Vec<BridgeEvent>) {
        // Of one output the highest bid first, of equal ones that of the lowest address.
        all.sort_unstable_by_key(|of| (of.contested.output.id, std::cmp::Reverse(of.bid), of.opener, of.first));
        let (mut best, mut returned): (Vec<CaseBid>, Vec<BridgeEvent>) = Default::default();
        for of in all {
            match best.last() {
                Some(last) if last.contested.output.id == of.contested.output.id => {
                    returned.push(BridgeEvent::ReturnDeposit(of.opener, of.bid));
                }
                _ => best.push(of),
            }
        }
        // Outputs that are contested together come together.
        best.sort_by_key(|of| (std::cmp::Reverse(of.bid), of.first, of.contested.output.id));
        let mut bids = Bids::new();
        let mut opened = 0;
        for CaseBid { bid, opener, contested, parent, .. } in best {
            let room = self.resolver.quorums(contested.home).map_or(0, cases_per_block);
            let opens = self.resolver.would_open(&contested);
            if opens && opened >= room {
                returned.push(BridgeEvent::ReturnDeposit(opener, bid));
                continue;
            }
            opened += usize::from(opens);
            cases.extend(parent.map(|(home, digest)| CaseFact::CertifiedDigest(home, digest)));
            cases.push(CaseFact::Open(contested));
            bids.insert(contested.output.id, (bid, opener));
        }
        (bids, returned)
    }

    /// What an expired case did not use of its bid: it has at most n votes and 2n views.
    pub(super) fn unused(&self, home: HomeEpoch, bid: Amount, used: usize) -> Amount {
        let posts = self.resolver.quorums(home).map_or(0, |quorums| 3 * quorums.validators as u128);
        let left = posts.saturating_sub(used as u128);
        let unused = (u128::from(bid) * left).checked_div(posts).unwrap_or(0);
        Amount::try_from(unused).map_or(bid, |unused| unused.min(bid))
    }

    /// Whether an operation that passes [`Bridge::check`] changes what members owe: the first of a member's votes,
    /// views and other duties does, and a copy does not. Of redemptions it is the first of a contested payment.
    pub fn changes(&self, fact: &BridgeFact) -> bool {
        match fact {
            BridgeFact::Withdraw { .. } | BridgeFact::Resolve { .. } => true,
            BridgeFact::Redeem(body) => self.resolver.awaits_certificate(body),
            BridgeFact::Vote { case, validator, .. } => !self.resolver.has_vote(case, *validator),
            BridgeFact::View { case, committee, validator, paid: None } => {
                self.resolver.awaits_views(case) && !self.resolver.has_view(case, *committee, *validator)
            }
            BridgeFact::View { paid: Some((home, digest)), .. } => !self.resolver.is_certified(*home, digest),
            BridgeFact::Halt { validator, .. } => !self.clock.has_vote(*validator),
            BridgeFact::Register(of) => !self.registrations.contains_key(&(of.epoch, of.member)),
            BridgeFact::Accuse(of) => !self.convicted.contains(&of.validator),
            BridgeFact::Deal { epoch, dealing, .. } => {
                self.generation(*epoch).is_some_and(|generation| generation.dealing_of(dealing.dealer).is_none())
            }
            // A complaint that decides nothing is not permitted.
            BridgeFact::Complain { .. } => true,
        }
    }
}
