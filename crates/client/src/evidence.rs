//! Accusations of venues and claims on their bonds, made from what a node shows of their fills.

use api::VenueBody;
use primitives::venue::{
    Contradicting, EndedIncarnation, FillTree, ProvenEnd, ReportedFill, SettledFill, SettledOrder, SignedReport,
    UnsettledFill, VenueEvidence, VenueOperation, VenueReport,
};
use primitives::{Digest, PublicKey};

use crate::error::ClientError;
use crate::node::NodeClient;
use crate::venues::tree_of;

/// Why a report proves nothing.
#[derive(Debug, thiserror::Error)]
pub enum NoEvidence {
    /// The node gives no answer that can be used.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Nobody signed the report for this network.
    #[error("the report is not signed by the key that it names, for network {0}: it is of another network, or damaged")]
    Unsigned(Digest),
    /// The incarnation does not have this report key.
    #[error("{0} is no report key of incarnation {1}: whoever signed the report is not the venue")]
    NotReportKey(PublicKey, u32),
    /// The venue was convicted since.
    #[error("the venue was convicted in or after incarnation {0}: its reports of that time prove no more")]
    Judged(u32),
    /// The incarnation has not begun.
    #[error("the venue has had no incarnation {0}")]
    NoIncarnation(u32),
    /// The ledger has the fill.
    #[error("fill {0} is settled as it was reported: there is nothing to accuse or to claim")]
    Settled(u64),
    /// The index is not settled.
    #[error(
        "fill {0} is not settled yet, and the incarnation goes on: the venue may still settle it. If it ends without, \
         claim it"
    )]
    Open(u64),
    /// The index was never settled.
    #[error("fill {0} was never settled before its incarnation ended: claim it, there is nothing to accuse")]
    NeverSettled(u64),
    /// The index is settled by another fill.
    #[error("fill {0} is settled by another fill than the reported one: accuse, there is nothing to claim")]
    Contradicted(u64),
    /// The reports do not contradict each other.
    #[error(
        "the reports are neither of one index with two leaves nor of one step with two trees: they do not contradict \
         each other"
    )]
    NoContradiction,
    /// The report is of another fill.
    #[error("the report is not of this fill between these orders: its leaf is {reported}, and theirs {theirs}")]
    OtherFill {
        /// The leaf of the report.
        reported: Digest,
        /// The leaf of the fill.
        theirs: Digest,
    },
}

/// The incarnation of a report: the leaves of its fills, its report keys, and its proof if it has ended.
struct Incarnation {
    leaves: Vec<Digest>,
    report_keys: Vec<PublicKey>,
    ended: Option<ProvenEnd>,
}

/// The accusation by a report: by the tree of the venue's fills, or by another report.
///
/// # Errors
/// [`NoEvidence`] says why it does not.
pub fn accusation(
    node: &NodeClient,
    network: &Digest,
    report: VenueReport,
    other: Option<VenueReport>,
) -> Result<VenueOperation, NoEvidence> {
    let of = incarnation_of(node, network, &report)?;
    let Some(other) = other else {
        let contradicting = contradicted(&of, &report.fill())?;
        return Ok(VenueOperation::accuse(VenueEvidence { report, contradicting, ended: of.ended }));
    };
    check_signed(network, &other, &of.report_keys)?;
    if !report.contradicts(&other) {
        return Err(NoEvidence::NoContradiction);
    }
    // One pair has one encoding.
    let (report, other) = if report.rank() < other.rank() { (report, other) } else { (other, report) };
    Ok(VenueOperation::accuse(VenueEvidence { report, contradicting: Contradicting::Report(other), ended: of.ended }))
}

/// The claim that a reported fill was never settled.
///
/// # Errors
/// [`NoEvidence`] says why there is none.
pub fn claim(
    node: &NodeClient,
    network: &Digest,
    report: VenueReport,
    [buy, sell]: [SettledOrder; 2],
    fill: SettledFill,
) -> Result<VenueOperation, NoEvidence> {
    let of = incarnation_of(node, network, &report)?;
    let ReportedFill { index, leaf: reported, .. } = report.fill();
    let Some(ended) = of.ended else { return Err(NoEvidence::Open(index)) };
    match at(&of.leaves, index) {
        Some(leaf) if *leaf == reported => return Err(NoEvidence::Settled(index)),
        Some(_) => return Err(NoEvidence::Contradicted(index)),
        None => {}
    }
    let fill = SettledFill { buy: 0, sell: 1, ..fill };
    let claim = UnsettledFill { report, ended, buy, sell, fill };
    let theirs = claim.leaf(network);
    match theirs == reported {
        true => Ok(VenueOperation::claim(claim)),
        false => Err(NoEvidence::OtherFill { reported, theirs }),
    }
}

fn at(leaves: &[Digest], index: u64) -> Option<&Digest> {
    leaves.get(usize::try_from(index).ok()?)
}

/// The leaf that the ledger has instead of the reported one, with its path.
fn contradicted(of: &Incarnation, report: &ReportedFill) -> Result<Contradicting<VenueReport>, NoEvidence> {
    match at(&of.leaves, report.index) {
        Some(leaf) if *leaf == report.leaf => Err(NoEvidence::Settled(report.index)),
        Some(leaf) => {
            let path = FillTree::path(&of.leaves, report.index).unwrap_or_default();
            Ok(Contradicting::Tree(*leaf, path))
        }
        None if of.ended.is_some() => Err(NoEvidence::NeverSettled(report.index)),
        None => Err(NoEvidence::Open(report.index)),
    }
}

fn check_signed(network: &Digest, report: &VenueReport, keys: &[PublicKey]) -> Result<(), NoEvidence> {
    match () {
        _ if !report.is_signed(network) => Err(NoEvidence::Unsigned(*network)),
        _ if !keys.contains(&report.key()) => Err(NoEvidence::NotReportKey(report.key(), report.fill().incarnation)),
        _ => Ok(()),
    }
}

/// The incarnation that a report is of, once it is known that the report counts.
fn incarnation_of(node: &NodeClient, network: &Digest, report: &VenueReport) -> Result<Incarnation, NoEvidence> {
    let venue = node.venue(report.fill().venue)?;
    let found = match report.fill().incarnation {
        number if number < venue.judged => return Err(NoEvidence::Judged(number)),
        number if number > venue.incarnation => return Err(NoEvidence::NoIncarnation(number)),
        number if number == venue.incarnation => present(node, &venue)?,
        number => ended(node, &venue, number)?,
    };
    check_signed(network, report, &found.report_keys)?;
    Ok(found)
}

fn present(node: &NodeClient, venue: &VenueBody) -> Result<Incarnation, ClientError> {
    let fills = node.settled(venue.venue, venue.incarnation)?;
    let report_keys = venue.report_keys.iter().map(|key| node.number("report key", key)).collect::<Result<_, _>>()?;
    Ok(Incarnation { leaves: fills.iter().map(|fill| fill.leaf).collect(), report_keys, ended: None })
}

fn ended(node: &NodeClient, venue: &VenueBody, number: u32) -> Result<Incarnation, ClientError> {
    let all: Vec<EndedIncarnation> = node.ended(venue)?;
    let finals: Vec<Digest> = all.iter().map(|ended| ended.leaf(venue.venue)).collect();
    let path = FillTree::path(&finals, number.into()).unwrap_or_default();
    let ended = all.into_iter().find(|ended| ended.incarnation == number);
    let ended = ended.ok_or_else(|| node.foreign("it shows no such ended incarnation"))?;
    let fills = node.settled(venue.venue, number)?;
    if tree_of(&fills) != ended.tree {
        return Err(node.foreign("two answers about one ended incarnation differ"));
    }
    let report_keys = ended.report_keys.clone();
    let leaves = fills.iter().map(|fill| fill.leaf).collect();
    Ok(Incarnation { leaves, report_keys, ended: Some(ProvenEnd { ended, path }) })
}
