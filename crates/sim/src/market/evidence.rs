//! What traders hold against a venue: reports that another one or the tree contradicts, and fills that a fence left.

use std::collections::BTreeMap;

use ledger::Outcome;
use primitives::Digest;
use primitives::venue::{
    Contradicting, FillReport, FillTree, ProvenEnd, SettledFill, SettledOrder, SignedReport, UnsettledFill,
    VenueEvidence, VenueOperation, VenueReport,
};
use venue::VenueFill;

use super::MarketWorld;
use super::host::Host;
use super::oracle::Oracle;
use super::people::{BLOCK_MS, BOND, OWNER, VENUE, WITNESS, key};
use super::villain::{lie, other_tree};

/// Claims that are tried after a fence.
const CLAIMS: usize = 4;

/// All reports that traders were ever given.
#[derive(Default)]
pub(super) struct Evidence {
    /// By incarnation and index.
    reports: BTreeMap<(u32, u64), Vec<VenueReport>>,
    /// By incarnation and step, one for each header.
    steps: BTreeMap<(u32, u64), Vec<VenueReport>>,
}

impl Evidence {
    pub fn keep(&mut self, reports: &[VenueReport]) {
        for report in reports {
            let fill = report.fill();
            let of = self.reports.entry((fill.incarnation, fill.index)).or_default();
            if !of.contains(report) {
                of.push(report.clone());
            }
            let Some(header) = report.header() else { continue };
            let of = self.steps.entry((fill.incarnation, header.step)).or_default();
            if of.iter().all(|known| known.header() != Some(header)) {
                of.push(report.clone());
            }
        }
    }

    fn of(&self, incarnation: u32) -> impl Iterator<Item = (u64, &Vec<VenueReport>)> {
        self.reports.range((incarnation, 0)..=(incarnation, u64::MAX)).map(|((_, index), reports)| (*index, reports))
    }

    /// A report of an honest-looking venue, to be lied about.
    pub fn any(&self, incarnation: u32, at: usize) -> Option<&VenueReport> {
        self.of(incarnation).nth(at).and_then(|(_, reports)| reports.first())
    }

    /// Proof against the present incarnation.
    pub fn first(&self, oracle: &Oracle) -> Option<VenueEvidence<VenueReport>> {
        self.against(oracle.incarnation, &oracle.leaves, None)
    }

    /// Proof against the last incarnation that ended.
    fn of_ended(&self, oracle: &Oracle) -> Option<VenueEvidence<VenueReport>> {
        let (leaves, ended) = oracle.ended.last()?;
        self.against(ended.incarnation, leaves, Some(proven(oracle)?))
    }

    fn against(
        &self,
        incarnation: u32,
        leaves: &[Digest],
        ended: Option<ProvenEnd>,
    ) -> Option<VenueEvidence<VenueReport>> {
        for (index, reports) in self.of(incarnation) {
            let lowest = reports.iter().min_by_key(|one| one.rank())?;
            let highest = reports.iter().max_by_key(|one| one.rank())?;
            if lowest.fill().leaf != highest.fill().leaf {
                return Some(pair(lowest, highest, ended));
            }
            let Some(leaf) = leaves.get(index as usize).filter(|leaf| **leaf != lowest.fill().leaf) else { continue };
            let (report, path) = (lowest.clone(), FillTree::path(leaves, index)?);
            return Some(VenueEvidence { report, contradicting: Contradicting::Tree(*leaf, path), ended });
        }
        let mut steps = self.steps.range((incarnation, 0)..=(incarnation, u64::MAX));
        let (_, twice) = steps.find(|(_, reports)| reports.len() > 1)?;
        let mut twice: Vec<&VenueReport> = twice.iter().collect();
        twice.sort_by_key(|one| one.rank());
        Some(pair(twice[0], twice[1], ended))
    }

    /// A fill of the last ended incarnation that it reported and never settled.
    fn claim(&self, oracle: &Oracle, fill: &VenueFill) -> Option<UnsettledFill<VenueReport>> {
        let ended = proven(oracle)?;
        let reports = self.reports.get(&(ended.ended.incarnation, fill.index))?;
        let report = reports.iter().find(|report| report.fill().leaf == fill.leaf)?.clone();
        let order = |of: &venue::FillParty| {
            let own = oracle.signed.values().map(|one| one.signed);
            let mut own = own.filter(|one| (one.key, one.order.number) == (of.key, of.number));
            own.find(|one| one.order.lots >= fill.terms.lots).map(SettledOrder::from)
        };
        let (buy, sell) = (order(&fill.buyer)?, order(&fill.seller)?);
        let claim = UnsettledFill { report, ended, buy, sell, fill: SettledFill { buy: 0, sell: 1, ..fill.terms } };
        // A trader who signed two orders under one number knows which of them was filled.
        (claim.leaf(&oracle.network()) == fill.leaf).then_some(claim)
    }
}

/// An accusation by two reports, the first of which is the lower one.
fn pair(report: &VenueReport, other: &VenueReport, ended: Option<ProvenEnd>) -> VenueEvidence<VenueReport> {
    VenueEvidence { report: report.clone(), contradicting: Contradicting::Report(other.clone()), ended }
}

/// The last ended incarnation with its path in the tree over all of them.
fn proven(oracle: &Oracle) -> Option<ProvenEnd> {
    let (_, ended) = oracle.ended.last()?;
    let leaves: Vec<Digest> = oracle.ended.iter().map(|(_, of)| of.leaf(VENUE)).collect();
    let path = FillTree::path(&leaves, ended.incarnation.into())?;
    Some(ProvenEnd { ended: ended.clone(), path })
}

impl MarketWorld {
    /// Somebody convicts a venue that has cheated; nobody convicts one that has not. The owner goes on as it must.
    pub(super) fn accuse(&mut self) -> Result<(), String> {
        if self.dice.once_in(10) {
            self.accuse_without_proof()?;
        }
        let proof = self.evidence.first(&self.chain.oracle);
        if let Some(proof) = proof.filter(|_| self.has_cheated && (self.healed || self.dice.once_in(3))) {
            self.check_contradicted()?;
            self.convict(proof)?;
            return self.fence();
        }
        // A venue that cheats without a proof, and one that the owner finds out about first.
        if self.has_cheated && (self.healed || self.dice.once_in(8)) { self.fence() } else { Ok(()) }
    }

    /// A root that learns that the ledger has another fill than it reported stops.
    fn check_contradicted(&mut self) -> Result<(), String> {
        self.certify(0)?;
        let leaves = &self.chain.oracle.leaves;
        let mut going = self.hosts.iter().filter(|host| host.root.stopped().is_none());
        match going.any(|host| host.is_contradicted(leaves)) {
            true => Err("a root goes on although the ledger has another fill than it reported".into()),
            false => Ok(()),
        }
    }

    fn convict(&mut self, proof: VenueEvidence<VenueReport>) -> Result<(), String> {
        if self.outcome(VenueOperation::accuse(proof))? != Outcome::Applied {
            return Err("a venue that contradicts its report is not convicted".into());
        }
        self.report.convicted += 1;
        Ok(())
    }

    /// Ends the incarnation, with a full bond for the next one.
    fn fence(&mut self) -> Result<(), String> {
        let incarnation = self.chain.oracle.incarnation;
        let bond = VenueOperation::Bond { venue: VENUE, units: BOND };
        self.chain.must(vec![(OWNER, bond), (OWNER, VenueOperation::Fence { venue: VENUE, incarnation })])?;
        self.check_fates()?;
        self.conditions.villainy = None;
        Ok(())
    }

    fn outcome(&mut self, operation: VenueOperation) -> Result<Outcome, String> {
        let outcomes = self.chain.block(vec![(WITNESS, operation)], Vec::new(), BLOCK_MS)?;
        Ok(outcomes[0])
    }

    /// Accusations that prove nothing: of true reports, and by keys that are not the venue's.
    fn accuse_without_proof(&mut self) -> Result<(), String> {
        let oracle = &self.chain.oracle;
        let (incarnation, network) = (oracle.incarnation, self.chain.network());
        let at = self.dice.index(8);
        let Some(report) = self.evidence.any(incarnation, at).cloned() else { return Ok(()) };
        let other = Digest([self.dice.below(250) as u8; 32]);
        let fill = report.fill();
        let tree = FillTree::path(&oracle.leaves, fill.index).unwrap_or_default();
        let stranger = FillReport::new(&network, (VENUE, incarnation, fill.index), other, fill.account, &key(WITNESS));
        let stranger = VenueReport::Single(stranger);
        let (low, high) =
            if report.rank() < stranger.rank() { (report.clone(), stranger) } else { (stranger, report.clone()) };
        let contradicting = match self.dice.below(2) {
            0 => Contradicting::Tree(other, tree),
            _ => Contradicting::Report(high),
        };
        let report = if matches!(contradicting, Contradicting::Tree(..)) { report } else { low };
        let evidence = VenueEvidence { report, contradicting, ended: None };
        self.report.unproved += 1;
        match self.outcome(VenueOperation::accuse(evidence))?.refusal() {
            Some(_) => Ok(()),
            None => Err("a venue is convicted without proof".into()),
        }
    }

    /// After a fence: whoever has a proof against what ended may still use it, and fills that nobody settled are
    /// claimed, each once.
    pub(super) fn claim_unsettled(&mut self, hosts: &[Host]) -> Result<(), String> {
        let proof = self.evidence.of_ended(&self.chain.oracle);
        let is_judged = {
            let venues = self.chain.venues();
            let judged = venues.get(VENUE).map_or(0, |venue| venue.judged);
            judged >= self.chain.oracle.incarnation
        };
        if is_judged {
            return Ok(());
        }
        if let Some(proof) = proof {
            if !self.has_cheated {
                return Err("an honest venue contradicts itself".into());
            }
            self.convict(proof)?;
            return self.fence();
        }
        let settled = self.chain.oracle.ended.last().map_or(0, |(leaves, _)| leaves.len() as u64);
        let unsettled = hosts[0].fills(settled)?;
        for fill in unsettled.iter().take(CLAIMS) {
            let Some(claim) = self.evidence.claim(&self.chain.oracle, fill) else { continue };
            let operation = VenueOperation::claim(claim);
            let first = self.outcome(operation.clone())?;
            if first != Outcome::Applied {
                return Err(format!("fill {} was reported and not settled, and its claim is {first:?}", fill.index));
            }
            self.report.claimed += 1;
            if self.outcome(operation)?.refusal().is_none() {
                return Err(format!("fill {} is claimed twice", fill.index));
            }
        }
        Ok(())
    }

    /// A report of a fill as another one, to somebody else, or another tree of its step: whoever has a report key can
    /// sign it, a thief as well.
    pub(super) fn report_twice(&mut self) {
        let (incarnation, network) = (self.chain.oracle.incarnation, self.chain.network());
        let at = self.dice.index(8);
        let Some(report) = self.evidence.any(incarnation, at).cloned() else { return };
        // A key that the incarnation had before convicts as well.
        let (oracle, dice) = (&self.chain.oracle, &mut self.dice);
        let changes =
            oracle.incarnation_from + dice.below(u64::from(oracle.changes - oracle.incarnation_from) + 1) as u8;
        let lied = lie(&report.fill(), &network, changes, dice);
        // The other tree says nothing of any fill that was told.
        let other = report.header().filter(|_| dice.once_in(2)).map(|header| other_tree(&header, &network, changes));
        self.evidence.keep(&[other.map_or(VenueReport::Single(lied), VenueReport::Step)]);
        self.has_cheated = true;
    }
}
