//! What accounts do with venues: one operation of the ledger for each.

use borsh::{BorshDeserialize, BorshSerialize};

use super::{
    CarriedSignature, FillReport, FillTree, MarketId, MarketTerms, ORDER_LISTS_RULES, OrderNumber, PPM,
    STEP_REPORTS_RULES, Settle, SettledFill, SettledOrder, SignedReport, StepReport, TICK_MAX, VenueId, VenueReport,
    possession_bytes,
};
use crate::control::RULES_OF_CONTROLS;
use crate::key::Signed;
use crate::{Address, Amount, AssetId, Digest, Height, PublicKey, Signature};

const ENDED_CONTEXT: &str = "walras 2026 venue ended incarnation v1";

/// The most bytes of a settle on any chain; a chain's own limit is in its genesis.
pub const SETTLE_BYTES_MAX: usize = 1 << 20;
/// Signatures of orders in the settles of one sub-block. What has more is invalid by its bytes alone.
pub const VENUE_SIGNATURES_PER_SUB_BLOCK: u32 = 8_192;
/// The most markets of a mandate.
pub const MANDATE_MARKETS_MAX: usize = 16;
/// The most assets with a cap in a mandate: both of each market.
pub const MANDATE_CAPS_MAX: usize = 2 * MANDATE_MARKETS_MAX;
/// The most report keys of an incarnation; a further change needs a fence.
pub const REPORT_KEYS_MAX: usize = 8;
/// The longest path in a tree whose count has 64 bits.
const PATH_MAX: usize = 63;

/// The account that settles for a venue, and the key that signs its reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VenueOperator {
    /// The account.
    pub account: Address,
    /// The report key.
    pub report_key: PublicKey,
}

/// What a session key may do at all. One registry is to have the keys of all scopes; only the first is accepted now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub enum KeyScope {
    /// It trades at the venue.
    #[default]
    Venue,
    /// It trades in the batch market.
    Batch,
    /// It cancels, and nothing else.
    Cancel,
}

/// A market that a key may trade in, and at which prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct MarketMandate {
    /// The market.
    pub market: MarketId,
    /// The lowest price in ticks.
    pub tick_min: u32,
    /// The highest price in ticks.
    pub tick_max: u32,
}

/// What a trading key may do. It never changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Mandate {
    /// What the key is for.
    pub scope: KeyScope,
    /// The markets, by number.
    pub markets: Vec<MarketMandate>,
    /// The most units of an asset that the key may lose on balance, by asset; an asset that is missing has 0.
    pub caps: Vec<(AssetId, Amount)>,
}

/// An incarnation that a fence ended: a leaf of the tree over all of them, at the index that is its number.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct EndedIncarnation {
    /// Its number.
    pub incarnation: u32,
    /// The tree of its fills.
    pub tree: FillTree,
    /// Every report key that it had.
    pub report_keys: Vec<PublicKey>,
    /// The height of the fence.
    pub height: Height,
    /// The block time of the fence, in milliseconds since 1970.
    pub time_ms: u64,
}

/// An ended incarnation with the siblings on its path, the lowest first.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ProvenEnd {
    /// The incarnation.
    pub ended: EndedIncarnation,
    /// Its path.
    pub path: Vec<Digest>,
}

/// How a report is contradicted.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Contradicting<R = FillReport> {
    /// The tree has this leaf at its index, by the siblings on its path, the lowest first.
    Tree(Digest, Vec<Digest>),
    /// Another report contradicts it, and stands behind it ([`SignedReport::rank`]).
    Report(R),
}

/// Proof that a venue reported something else than it settled, or two things.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct VenueEvidence<R = FillReport> {
    /// The report.
    pub report: R,
    /// What contradicts it.
    pub contradicting: Contradicting<R>,
    /// The incarnation of the report, if it has ended.
    pub ended: Option<ProvenEnd>,
}

/// A fill that an ended incarnation reported and never settled.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct UnsettledFill<R = FillReport> {
    /// The report.
    pub report: R,
    /// The incarnation.
    pub ended: ProvenEnd,
    /// The order that buys, with its signature.
    pub buy: SettledOrder,
    /// The order that sells, with its signature.
    pub sell: SettledOrder,
    /// The fill; its positions are 0 and 1.
    pub fill: SettledFill,
}

/// What an operation does at a venue.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum VenueOperation {
    /// Opens a venue; the sender owns it. Of several openings of one number in a block one counts.
    Open {
        /// Its number: the next free one.
        venue: VenueId,
        /// Who settles and reports.
        operator: VenueOperator,
        /// The most that an order pays in fees, in millionths of the quote units that it trades.
        fee_cap_ppm: u32,
        /// Units of asset 0 that become its bond.
        bond: Amount,
    },
    /// Lists a market, by the owner.
    List {
        /// The venue.
        venue: VenueId,
        /// The market's number: the next free one of the venue.
        market: MarketId,
        /// Its terms.
        terms: MarketTerms,
    },
    /// Ends an incarnation, by the owner.
    Fence {
        /// The venue.
        venue: VenueId,
        /// The incarnation.
        incarnation: u32,
    },
    /// Replaces the operator, by the owner.
    ChangeOperator {
        /// The venue.
        venue: VenueId,
        /// The present one.
        from: VenueOperator,
        /// The next one.
        to: VenueOperator,
    },
    /// Adds to the bond, by the owner.
    Bond {
        /// The venue.
        venue: VenueId,
        /// Units of asset 0.
        units: Amount,
    },
    /// Withdraws from the bond, by the owner; one withdrawal at a time.
    Unbond {
        /// The venue.
        venue: VenueId,
        /// Units of asset 0.
        units: Amount,
    },
    /// Settles fills, by the operator.
    Settle(Settle),
    /// Deposits units of the sender.
    Deposit {
        /// The venue.
        venue: VenueId,
        /// The asset.
        asset: AssetId,
        /// Units.
        units: Amount,
    },
    /// Asks for units of the sender's deposit, or for all if it has fewer.
    Collect {
        /// The venue.
        venue: VenueId,
        /// The asset.
        asset: AssetId,
        /// Units.
        units: Amount,
    },
    /// Lets a key trade for the sender.
    Authorize {
        /// The venue.
        venue: VenueId,
        /// The key.
        key: PublicKey,
        /// The mandate of the key.
        mandate: Mandate,
        /// The key's signature on [`possession_bytes`].
        possession: Signature,
    },
    /// Ends a key of the sender for ever.
    Revoke {
        /// The venue.
        venue: VenueId,
        /// The key.
        key: PublicKey,
    },
    /// Lower numbers of a key of the sender are dead.
    RaiseFloor {
        /// The venue.
        venue: VenueId,
        /// The key.
        key: PublicKey,
        /// The lowest number that lives.
        floor: OrderNumber,
    },
    /// Convicts a venue; anybody may.
    Accuse(Box<VenueEvidence>),
    /// Makes a fill that was reported and never settled cost the bond; anybody may.
    Claim(Box<UnsettledFill>),
    /// Convicts a venue by a report of a step, or by two reports of which at least one is of a step; anybody may.
    AccuseStep(Box<VenueEvidence<VenueReport>>),
    /// As [`VenueOperation::Claim`], by a report of a step.
    ClaimStep(Box<UnsettledFill<StepReport>>),
    /// Asks for all that a frozen holder has at the venue; only the issuer of a recoverable asset can. A collection
    /// that waits begins again with it. Since [`RULES_OF_CONTROLS`].
    Recall {
        /// The venue.
        venue: VenueId,
        /// The asset.
        asset: AssetId,
        /// The frozen holder, to whom the units return.
        account: Address,
    },
}

impl Signed for CarriedSignature {
    fn signature(&self) -> (PublicKey, Signature) {
        (self.key, self.signature)
    }

    fn signed_bytes(&self) -> Vec<u8> {
        self.message.clone()
    }
}

impl Mandate {
    /// The prices at which a market may be traded in; `None` if it may not.
    pub fn market(&self, market: MarketId) -> Option<&MarketMandate> {
        let at = self.markets.binary_search_by_key(&market, |of| of.market).ok()?;
        Some(&self.markets[at])
    }

    /// The most units of an asset that the key may lose.
    pub fn cap(&self, asset: AssetId) -> Amount {
        self.caps.binary_search_by_key(&asset, |(of, _)| *of).map_or(0, |at| self.caps[at].1)
    }

    /// Whether it is within bounds: markets and caps ascend, price bands are not empty.
    pub fn is_plain(&self) -> bool {
        let is_band = |of: &MarketMandate| of.tick_min >= 1 && of.tick_min <= of.tick_max && of.tick_max <= TICK_MAX;
        (1..=MANDATE_MARKETS_MAX).contains(&self.markets.len())
            && self.caps.len() <= MANDATE_CAPS_MAX
            && self.markets.is_sorted_by(|a, b| a.market < b.market)
            && self.caps.is_sorted_by(|a, b| a.0 < b.0)
            && self.markets.iter().all(is_band)
    }
}

impl KeyScope {
    /// Every scope.
    pub const ALL: [KeyScope; 3] = [KeyScope::Venue, KeyScope::Batch, KeyScope::Cancel];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            KeyScope::Venue => "venue",
            KeyScope::Batch => "batch",
            KeyScope::Cancel => "cancel",
        }
    }
}

impl EndedIncarnation {
    /// Its leaf in the tree over the ended incarnations of a venue.
    pub fn leaf(&self, venue: VenueId) -> Digest {
        let bytes = borsh::to_vec(&(venue, self)).expect("writing to memory cannot fail");
        Digest::of(ENDED_CONTEXT, &bytes)
    }
}

impl ProvenEnd {
    /// Whether the tree over the ended incarnations of the venue has it.
    pub fn is_in(&self, finals: &FillTree, venue: VenueId) -> bool {
        let index = u64::from(self.ended.incarnation);
        finals.verify(index, &self.ended.leaf(venue), &self.path).is_ok()
    }

    fn is_plain(&self) -> bool {
        self.path.len() <= PATH_MAX && self.ended.report_keys.len() <= REPORT_KEYS_MAX
    }
}

impl<R: SignedReport> VenueEvidence<R> {
    /// The reports that it shows.
    pub fn reports(&self) -> impl Iterator<Item = &R> {
        let other = match &self.contradicting {
            Contradicting::Tree(..) => None,
            Contradicting::Report(other) => Some(other),
        };
        std::iter::once(&self.report).chain(other)
    }

    fn is_plain(&self) -> bool {
        let is_plain = match &self.contradicting {
            Contradicting::Tree(leaf, path) => *leaf != self.report.fill().leaf && path.len() <= PATH_MAX,
            // One pair of reports has one encoding.
            Contradicting::Report(other) => self.report.contradicts(other) && self.report.rank() < other.rank(),
        };
        // The shape is looked at first: whatever is computed from a path costs no more than the longest one.
        self.reports().all(R::is_plain) && is_plain && self.ended.as_ref().is_none_or(ProvenEnd::is_plain)
    }

    fn carried(&self, network: &Digest) -> Vec<CarriedSignature> {
        self.reports().map(|report| report.carried(network)).collect()
    }
}

impl<R: SignedReport> UnsettledFill<R> {
    /// Whether the bytes show a fill of both signed orders that is the one reported, up to the network.
    fn is_plain(&self) -> bool {
        let (UnsettledFill { ended, buy, sell, fill, .. }, report) = (self, self.report.fill());
        let is_of = |order: &SettledOrder| {
            order.signature.is_there()
                && order.order.is_plain()
                && order.order.number.incarnation == report.incarnation
                && order.order.lots >= fill.lots
        };
        self.report.is_plain()
            && (fill.buy, fill.sell) == (0, 1)
            && fill.lots >= 1
            && (1..=TICK_MAX).contains(&fill.tick)
            && ended.is_plain()
            && ended.ended.incarnation == report.incarnation
            && is_of(buy)
            && is_of(sell)
    }

    fn has_lists(&self) -> bool {
        [&self.buy, &self.sell].into_iter().any(|order| order.list().is_some())
    }

    /// The leaf of the fill.
    pub fn leaf(&self, network: &Digest) -> Digest {
        let venue = self.report.fill().venue;
        let digest = |order: &SettledOrder| order.order.digest(network, venue, &order.key);
        self.fill.leaf(&digest(&self.buy), &digest(&self.sell))
    }

    fn carried(&self, network: &Digest) -> Vec<CarriedSignature> {
        let venue = self.report.fill().venue;
        let signed = [&self.buy, &self.sell].into_iter().filter_map(|order| order.carried(network, venue));
        std::iter::once(self.report.carried(network)).chain(signed).collect()
    }
}

impl VenueOperation {
    /// Convicts a venue by reports of any form. The older form is for single reports: every ledger has it.
    pub fn accuse(evidence: VenueEvidence<VenueReport>) -> VenueOperation {
        let single = match (&evidence.report, &evidence.contradicting) {
            (VenueReport::Single(report), Contradicting::Tree(leaf, path)) => {
                Some((*report, Contradicting::Tree(*leaf, path.clone())))
            }
            (VenueReport::Single(report), Contradicting::Report(VenueReport::Single(other))) => {
                Some((*report, Contradicting::Report(*other)))
            }
            _ => None,
        };
        match single {
            Some((report, contradicting)) => {
                VenueOperation::Accuse(Box::new(VenueEvidence { report, contradicting, ended: evidence.ended }))
            }
            None => VenueOperation::AccuseStep(Box::new(evidence)),
        }
    }

    /// Claims a fill by a report of any form.
    pub fn claim(claim: UnsettledFill<VenueReport>) -> VenueOperation {
        let UnsettledFill { report, ended, buy, sell, fill } = claim;
        match report {
            VenueReport::Single(report) => {
                VenueOperation::Claim(Box::new(UnsettledFill { report, ended, buy, sell, fill }))
            }
            VenueReport::Step(report) => {
                VenueOperation::ClaimStep(Box::new(UnsettledFill { report, ended, buy, sell, fill }))
            }
        }
    }

    /// Units that it names, which are at least one and at most what can exist.
    pub fn units(&self) -> Option<Amount> {
        match *self {
            VenueOperation::Open { bond: units, .. }
            | VenueOperation::Bond { units, .. }
            | VenueOperation::Unbond { units, .. }
            | VenueOperation::Deposit { units, .. }
            | VenueOperation::Collect { units, .. } => Some(units),
            _ => None,
        }
    }

    /// The asset and the units that it subtracts from the sender's available balance.
    pub fn debit(&self) -> Option<(AssetId, Amount)> {
        match *self {
            VenueOperation::Open { bond: units, .. } | VenueOperation::Bond { units, .. } => Some((AssetId(0), units)),
            VenueOperation::Deposit { asset, units, .. } => Some((asset, units)),
            _ => None,
        }
    }

    /// The assets that it names.
    pub fn assets(&self) -> [Option<AssetId>; 2] {
        match *self {
            VenueOperation::List { terms, .. } => [Some(terms.base), Some(terms.quote)],
            VenueOperation::Deposit { asset, .. }
            | VenueOperation::Collect { asset, .. }
            | VenueOperation::Recall { asset, .. } => [Some(asset), None],
            _ => [None, None],
        }
    }

    /// Whether everything that the bytes alone show is sound, but signatures and units ([`VenueOperation::units`]).
    pub fn is_plain(&self) -> bool {
        match self {
            VenueOperation::Open { fee_cap_ppm, .. } => *fee_cap_ppm <= PPM,
            VenueOperation::List { terms, .. } => terms.is_sound(0),
            VenueOperation::ChangeOperator { from, to, .. } => from != to,
            VenueOperation::Settle(settle) => {
                settle.check(SETTLE_BYTES_MAX).is_ok() && settle.signatures() <= VENUE_SIGNATURES_PER_SUB_BLOCK as usize
            }
            VenueOperation::Authorize { mandate, .. } => mandate.is_plain(),
            VenueOperation::Accuse(evidence) => evidence.is_plain(),
            VenueOperation::Claim(claim) => claim.is_plain(),
            // Two single reports are an accusation of the older form.
            VenueOperation::AccuseStep(evidence) => {
                evidence.is_plain() && evidence.reports().any(|report| matches!(report, VenueReport::Step(_)))
            }
            VenueOperation::ClaimStep(claim) => claim.is_plain(),
            VenueOperation::Fence { .. }
            | VenueOperation::Bond { .. }
            | VenueOperation::Unbond { .. }
            | VenueOperation::Deposit { .. }
            | VenueOperation::Collect { .. }
            | VenueOperation::Recall { .. }
            | VenueOperation::Revoke { .. }
            | VenueOperation::RaiseFloor { .. } => true,
        }
    }

    /// Whether it shows reports against a venue, which are verified.
    pub fn is_evidence(&self) -> bool {
        use VenueOperation::{Accuse, AccuseStep, Claim, ClaimStep};
        matches!(self, Accuse(_) | Claim(_) | AccuseStep(_) | ClaimStep(_))
    }

    /// The first rules that have it; 0 if all have it.
    pub fn since_rules(&self) -> u32 {
        match self {
            VenueOperation::Settle(settle) if settle.has_lists() => ORDER_LISTS_RULES,
            VenueOperation::Claim(claim) if claim.has_lists() => ORDER_LISTS_RULES,
            VenueOperation::ClaimStep(claim) if claim.has_lists() => ORDER_LISTS_RULES,
            VenueOperation::AccuseStep(_) | VenueOperation::ClaimStep(_) => STEP_REPORTS_RULES,
            VenueOperation::Recall { .. } => RULES_OF_CONTROLS,
            _ => 0,
        }
    }

    /// Signatures of orders that it settles: they count in a quota of the sub-block.
    pub fn order_signatures(&self) -> usize {
        match self {
            VenueOperation::Settle(settle) => settle.signatures(),
            _ => 0,
        }
    }

    /// The signatures that it carries beside that of its sender; all of them must be valid.
    pub fn carried(&self, network: &Digest, sender: &Address) -> Vec<CarriedSignature> {
        match self {
            VenueOperation::Settle(settle) => settle.carried(network),
            VenueOperation::Authorize { venue, key, possession, .. } => {
                let message = possession_bytes(network, *venue, sender, key);
                vec![CarriedSignature { key: *key, signature: *possession, message }]
            }
            VenueOperation::Accuse(evidence) => evidence.carried(network),
            VenueOperation::Claim(claim) => claim.carried(network),
            VenueOperation::AccuseStep(evidence) => evidence.carried(network),
            VenueOperation::ClaimStep(claim) => claim.carried(network),
            _ => Vec::new(),
        }
    }

    /// How many signatures it carries at most.
    pub fn carried_count(&self) -> usize {
        match self {
            VenueOperation::Settle(settle) => settle.orders.len(),
            VenueOperation::Authorize { .. } => 1,
            VenueOperation::Accuse(_) | VenueOperation::AccuseStep(_) => 2,
            VenueOperation::Claim(_) | VenueOperation::ClaimStep(_) => 3,
            _ => 0,
        }
    }
}
