//! Independent bookkeeping of proposals from the receipts: which are open, who wants them, which pass at a boundary,
//! and what acts at which height.
//!
//! Everything that counts is judged by these books as they stood before its block. Nothing of the ledger's judgement is
//! used; the seats of committees alone are read from it, as the draw is judged elsewhere.

use std::collections::{BTreeMap, BTreeSet};

use ledger::{Genesis, Ledger, ListingPolicy, Outcome};
use primitives::{
    Address, AssetId, Closing, Digest, Height, Operation, Parameter, PlainListing, ProposalWord, ProposedChange,
    Transaction,
};

use crate::listings::ListingBooks;

/// A transaction that counted, and what became of it.
type Counted<'a> = (&'a Transaction, Outcome);
/// The value of each parameter.
type Values = BTreeMap<Parameter, u64>;

/// Boundaries that count a proposal.
const BOUNDARIES: u8 = 4;
/// Heights that a parameter rests: thirty days of 86,400.
const REST: Height = 2_592_000;
/// Accounts that may stake at one time, if each stakes the minimum.
const STAKERS: i128 = 4_096;
/// Heights that every transaction may live.
const LIVES: u64 = 256;
/// The least units that the simulated chain's band permits.
const LEAST: u64 = 4_096;

#[derive(Clone, Debug, PartialEq)]
struct Open {
    id: Digest,
    change: ProposedChange,
    tallied: u8,
    words: BTreeMap<Address, bool>,
}

/// What begins at a height.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entering {
    acts: Height,
    pub values: Values,
    pub lists: Vec<PlainListing>,
    pub closes: Vec<AssetId>,
}

/// Who counts at a block: the stakes before it, and at a boundary the seats of the committees before and after it.
pub(crate) struct Electorate<'a> {
    pub stakes: BTreeMap<Address, i128>,
    pub before: &'a Ledger,
    pub after: &'a Ledger,
}

impl Electorate<'_> {
    fn seats(ledger: &Ledger, epoch: u64) -> Vec<Address> {
        ledger.committee(epoch).into_iter().flatten().map(|member| member.account).collect()
    }

    fn staked(&self) -> i128 {
        self.stakes.values().sum()
    }

    /// Whether an account has a stake, or a seat of one of the last two committees.
    fn has_say(&self, account: &Address) -> bool {
        let last = self.before.validators().last_epoch();
        let seats = (last.saturating_sub(1)..=last).flat_map(|epoch| Electorate::seats(self.before, epoch));
        self.stakes.contains_key(account) || seats.into_iter().any(|seat| seat == *account)
    }
}

/// What happened to proposals in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProposalCounts {
    /// Proposals that were accepted.
    pub proposed: u64,
    /// Of those, in the place of another one of their account.
    pub replaced: u64,
    /// Words about them.
    pub words: u64,
    /// Proposals that passed.
    pub passed: u64,
    /// Proposals that were over without.
    pub over: u64,
    /// Values that changed.
    pub changed: u64,
    /// Assets that a vote listed.
    pub listed: u64,
    /// Assets that a vote closed.
    pub closed: u64,
}

impl std::ops::AddAssign for ProposalCounts {
    fn add_assign(&mut self, other: ProposalCounts) {
        let ProposalCounts { proposed, replaced, words, passed, over, changed, listed, closed } = other;
        self.proposed += proposed;
        self.replaced += replaced;
        self.words += words;
        self.passed += passed;
        self.over += over;
        self.changed += changed;
        self.listed += listed;
        self.closed += closed;
    }
}

/// See the module text.
#[derive(Clone)]
pub(crate) struct ProposalBooks {
    first: Values,
    now: Values,
    seats: usize,
    /// Heights of an epoch, and from a boundary to the last height of the committee before.
    epoch: (Height, Height),
    open: BTreeMap<Address, Open>,
    waiting: Vec<Entering>,
    changed: BTreeMap<Parameter, Height>,
    closing: BTreeSet<AssetId>,
    pub counts: ProposalCounts,
}

/// The values that a genesis begins with.
fn values_of(genesis: &Genesis) -> Values {
    let terms = genesis.membership.as_ref().expect("the clients' genesis has validators").terms;
    let (limits, listings) = (&genesis.limits, &genesis.listings);
    let policy = match listings.policy {
        ListingPolicy::Closed => 0,
        ListingPolicy::Priced => 1,
        ListingPolicy::Voted => 2,
    };
    BTreeMap::from([
        (Parameter::Fee, genesis.fee),
        (Parameter::LeastBaseFee, limits.least_base_fee),
        (Parameter::RestingOffers, limits.resting_offers),
        (Parameter::OpenPairs, limits.open_pairs.into()),
        (Parameter::Validators, limits.validators.into()),
        (Parameter::UntilMax, limits.until_max),
        (Parameter::MinimumStake, terms.minimum_stake),
        (Parameter::Reward, terms.reward),
        (Parameter::AssetsMax, listings.assets_max.into()),
        (Parameter::ListingFees, listings.fees),
        (Parameter::ListingPolicy, policy),
    ])
}

/// What is proposed about: one boundary decides once about it.
fn subject(change: &ProposedChange) -> String {
    match change {
        ProposedChange::Parameter { parameter, .. } => parameter.name().into(),
        ProposedChange::List(listing) => format!("name {}", listing.symbol.to_uppercase()),
        ProposedChange::Close { asset } => format!("asset {asset}"),
        ProposedChange::Lane(terms) => format!("lane terms of asset {}", terms.asset),
    }
}

impl ProposalBooks {
    pub fn new(genesis: &Genesis) -> ProposalBooks {
        let terms = genesis.membership.as_ref().expect("the clients' genesis has validators").terms;
        let first = values_of(genesis);
        ProposalBooks {
            now: first.clone(),
            first,
            seats: terms.committee as usize,
            epoch: (terms.schedule.epoch_heights, terms.schedule.delay),
            open: BTreeMap::new(),
            waiting: Vec::new(),
            changed: BTreeMap::new(),
            closing: BTreeSet::new(),
            counts: ProposalCounts::default(),
        }
    }

    /// Names that wait to be listed.
    pub fn names(&self) -> Vec<&str> {
        self.waiting.iter().flat_map(|waiting| &waiting.lists).map(|listing| listing.symbol.as_str()).collect()
    }

    /// Processes what a block says about proposals, and its boundary. Returns what acts from the next height on.
    pub fn apply(
        &mut self,
        height: Height,
        effective: &[Counted],
        electorate: &Electorate,
        assets: &ListingBooks,
    ) -> Result<Option<Entering>, String> {
        let mut said: Vec<&Transaction> = effective.iter().map(|(transaction, _)| *transaction).collect();
        // Of several words of an account the last one counts.
        said.sort_by_key(|one| (one.body.account, one.body.sequence));
        let scene = (height, electorate.staked(), assets);
        for one in &said {
            self.check(one, electorate, scene)
                .map_err(|what| format!("{} of {}: {what}", one.body.operation.name(), one.body.account))?;
        }
        if height.is_multiple_of(self.epoch.0) {
            self.tally(electorate, scene);
        }
        for one in &said {
            let Operation::Propose(change) = &one.body.operation else { continue };
            let open = Open { id: one.id(), change: (**change).clone(), tallied: 0, words: BTreeMap::new() };
            self.counts.replaced += u64::from(self.open.insert(one.body.account, open).is_some());
            self.counts.proposed += 1;
        }
        for one in &said {
            let Operation::Vote { proposal, word } = one.body.operation else { continue };
            if let Some(open) = self.open.values_mut().find(|open| open.id == proposal) {
                open.words.insert(one.body.account, word == ProposalWord::Yes);
            }
            self.counts.words += 1;
        }
        let acts = self.waiting.first().is_some_and(|first| first.acts == height + 1);
        let entering = acts.then(|| self.waiting.remove(0));
        if let Some(entering) = &entering {
            let differ = |(parameter, value): (&Parameter, &u64)| self.now[parameter] != *value;
            self.counts.changed += entering.values.iter().filter(|one| differ(*one)).count() as u64;
            self.now.clone_from(&entering.values);
        }
        Ok(entering)
    }

    /// What counted may be said by the state before.
    fn check(
        &self,
        one: &Transaction,
        electorate: &Electorate,
        scene: (Height, i128, &ListingBooks),
    ) -> Result<(), String> {
        let account = &one.body.account;
        match &one.body.operation {
            Operation::Propose(_) | Operation::Vote { .. } if !electorate.has_say(account) => {
                Err("it has neither a stake nor a seat".into())
            }
            Operation::Propose(change) => self.permit(&self.last(0), change, scene),
            Operation::Vote { proposal, .. } if !self.open.values().any(|open| open.id == *proposal) => {
                Err(format!("{proposal} is not open"))
            }
            Operation::CloseAsset { asset, closing: Closing::Revoke } if self.closing.contains(asset) => {
                Err(format!("it takes back what a vote closes, asset {asset}"))
            }
            _ => Ok(()),
        }
    }

    /// What will be in force once all that has passed acts.
    fn last(&self, acts: Height) -> Entering {
        let values = self.waiting.last().map_or(&self.now, |last| &last.values).clone();
        Entering { acts, values, lists: Vec::new(), closes: Vec::new() }
    }

    /// Whether a change may come to what will be in force.
    fn permit(
        &self,
        next: &Entering,
        change: &ProposedChange,
        (height, staked, assets): (Height, i128, &ListingBooks),
    ) -> Result<(), String> {
        match change {
            ProposedChange::Parameter { parameter, value } => {
                self.permit_value(&next.values, (*parameter, *value), height, staked)
            }
            ProposedChange::List(listing) => {
                let mut names = self.names();
                names.extend(next.lists.iter().map(|listing| listing.symbol.as_str()));
                match () {
                    () if self.now[&Parameter::ListingPolicy] != 2 => Err("no vote lists assets".into()),
                    () if listing.least_units < LEAST => Err("its least units are too few".into()),
                    () => assets.permit_plain(&listing.symbol, &names, height),
                }
            }
            ProposedChange::Close { asset } => {
                let is_voted = self.closing.contains(asset) || next.closes.contains(asset);
                let is_closed = asset.0 == 0 || is_voted || assets.is_closed(*asset, height);
                if is_closed { Err(format!("asset {asset} does not close by it")) } else { Ok(()) }
            }
            ProposedChange::Lane(_) => Err("the clients' chain has no payment lane".into()),
        }
    }

    fn permit_value(
        &self,
        values: &Values,
        (parameter, value): (Parameter, u64),
        height: Height,
        staked: i128,
    ) -> Result<(), String> {
        use Parameter::{ListingPolicy, MinimumStake, UntilMax, Validators};
        let (old, named) = (values[&parameter], parameter.name());
        let changed = self.changed.get(&parameter).copied();
        let is_step = parameter == ListingPolicy || (value <= 2 * old && old <= 2 * value);
        let (lowest, highest) = self.bounds(parameter);
        match () {
            () if value == old => Err(format!("{named} is {old} already")),
            () if old == 0 && parameter != ListingPolicy => Err(format!("{named} is 0 for ever")),
            () if !is_step => Err(format!("{named} goes from {old} to {value} at one step")),
            () if value < lowest || value > highest => Err(format!("{named} may be {lowest} to {highest}")),
            () if value < old && matches!(parameter, Validators | UntilMax) => Err(format!("{named} only rises")),
            () if value < old && parameter == MinimumStake && i128::from(value) * STAKERS < staked => {
                Err(format!("with {value} as {named} too many could stake"))
            }
            () if changed.is_some_and(|last| height < last + REST) => Err(format!("{named} has changed lately")),
            () => {
                let mut whole = values.clone();
                whole.insert(parameter, value);
                self.check_whole(&whole)
            }
        }
    }

    fn bounds(&self, parameter: Parameter) -> (u64, u64) {
        let first = self.first[&parameter];
        match parameter {
            Parameter::Fee | Parameter::LeastBaseFee | Parameter::MinimumStake => (1, first.saturating_mul(100)),
            Parameter::RestingOffers => (2, 1 << 27),
            Parameter::OpenPairs => (2, 1 << 18),
            Parameter::Validators => (first, 4_096),
            Parameter::UntilMax => (first, 1 << 22),
            Parameter::Reward => (first - first / 2, 2 * first),
            Parameter::AssetsMax => (1, 16_384),
            Parameter::ListingFees => (1, 1 << 32),
            Parameter::ListingPolicy => (0, 2),
        }
    }

    /// A whole record that could be a genesis'.
    fn check_whole(&self, values: &Values) -> Result<(), String> {
        let of = |parameter| values[&parameter];
        let fits = of(Parameter::RestingOffers) >= of(Parameter::OpenPairs)
            && of(Parameter::Validators) >= self.seats as u64
            && of(Parameter::UntilMax) >= LIVES
            && (of(Parameter::ListingPolicy) != 1 || of(Parameter::Fee) > 0);
        if fits { Ok(()) } else { Err(format!("no chain could begin with {values:?}")) }
    }

    /// A boundary: what passes is written into one record, by rising id.
    fn tally(&mut self, electorate: &Electorate, scene: (Height, i128, &ListingBooks)) {
        let height = scene.0;
        let epoch = height / self.epoch.0;
        let [old, drawn] = [(electorate.before, epoch - 1), (electorate.after, epoch)]
            .map(|(ledger, epoch)| Electorate::seats(ledger, epoch));
        let says_yes = |open: &Open, account: &Address| open.words.get(account) == Some(&true);
        // Who stakes nothing says nothing, whatever seat it has.
        let seats = |open: &Open, all: &[Address]| {
            all.iter().filter(|seat| electorate.stakes.contains_key(*seat) && says_yes(open, seat)).count()
        };
        let enough = |open: &Open, all: &[Address]| seats(open, all) >= all.len() - (all.len() - 1) / 3;
        let stake = |open: &Open| -> i128 {
            electorate.stakes.iter().filter(|(account, _)| says_yes(open, account)).map(|(_, units)| units).sum()
        };
        let passes =
            |open: &&Open| enough(open, &old) && enough(open, &drawn) && scene.1 > 0 && stake(open) * 3 >= scene.1 * 2;
        let passed: Vec<(usize, Open)> =
            self.open.values().filter(passes).map(|open| (seats(open, &drawn), open.clone())).collect();
        let is_first = |(seats, open): &&(usize, Open)| {
            let better = |(others, other): &(usize, Open)| {
                subject(&other.change) == subject(&open.change)
                    && (others > seats || (others == seats && other.id < open.id))
            };
            !passed.iter().any(better)
        };
        let mut first: Vec<&Open> = passed.iter().filter(is_first).map(|(_, open)| open).collect();
        first.sort_by_key(|open| open.id);
        self.decide(&first, scene);
        self.counts.passed += passed.len() as u64;
        let before = self.open.len() - passed.len();
        self.open.retain(|_, open| {
            open.tallied += 1;
            open.words.retain(|account, _| electorate.stakes.contains_key(account));
            open.tallied < BOUNDARIES && !passed.iter().any(|(_, other)| other.id == open.id)
        });
        self.counts.over += (before - self.open.len()) as u64;
    }

    /// What passed acts from the first height of the epoch after the one that was drawn, as far as it fits.
    fn decide(&mut self, passed: &[&Open], scene: (Height, i128, &ListingBooks)) {
        let height = scene.0;
        let mut next = self.last(height + self.epoch.0 + self.epoch.1 + 1);
        let before = next.clone();
        for open in passed {
            if self.permit(&next, &open.change, scene).is_err() {
                continue;
            }
            match &open.change {
                ProposedChange::Parameter { parameter, value } => {
                    next.values.insert(*parameter, *value);
                    self.changed.insert(*parameter, height);
                }
                ProposedChange::List(listing) => next.lists.push(listing.clone()),
                ProposedChange::Close { asset } => next.closes.push(*asset),
                ProposedChange::Lane(_) => {}
            }
        }
        if next != before {
            self.closing.extend(&next.closes);
            self.waiting.push(next);
        }
    }

    /// Compares a ledger with these books.
    pub fn hold(&self, ledger: &Ledger) -> Result<(), String> {
        let values = |of: &ledger::Parameters| -> Values { Parameter::ALL.map(|one| (one, of.get(one))).into() };
        let now = values(&ledger.parameters());
        if now != self.now {
            return Err(format!("the parameters are {now:?}, but by the votes {:?}", self.now));
        }
        let ballot = ledger.proposals();
        let coming = |of: &ledger::Coming| Entering {
            acts: of.acts,
            values: values(&of.values),
            lists: of.lists.clone(),
            closes: of.closes.clone(),
        };
        let waiting: Vec<Entering> = ballot.coming().iter().map(coming).collect();
        if waiting != self.waiting {
            return Err(format!("{waiting:?} waits, but by the votes {:?}", self.waiting));
        }
        let open = |(proposer, of): (&Address, &ledger::OpenProposal)| {
            let words = of.votes.iter().map(|(account, word)| (*account, *word == ProposalWord::Yes)).collect();
            (*proposer, Open { id: of.id, change: of.change.clone(), tallied: of.tallied, words })
        };
        let open: BTreeMap<Address, Open> = ballot.open().iter().map(open).collect();
        if open != self.open {
            return Err(format!("{open:?} is open, but by the receipts {:?}", self.open));
        }
        let changed = |parameter: &Parameter| ballot.changed(*parameter) != self.changed.get(parameter).copied();
        match Parameter::ALL.iter().find(|parameter| changed(parameter)) {
            Some(parameter) => Err(format!("{} changed at another height", parameter.name())),
            None => Ok(()),
        }
    }
}
