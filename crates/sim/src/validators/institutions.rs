//! Institutions in a simulated network: accounts with several keys, issuers who list and control assets, and
//! validators who vote. Which of them sends what to which validator, and the invariants.
//!
//! Independent books judge what counts, as in the world of one node. They read the state before a block, and the seats,
//! from a ledger of their own: it applies each decided superblock once, whatever validators restart or fetch.

use std::collections::BTreeMap;

use consensus::Index;
use kernel::Dice;
use ledger::{Genesis, Ledger, Listing, Outcome, Pair, Place, PoolTerms, Validators};
use primitives::{
    Address, Amount, AssetControl, AssetId, Body, Digest, Height, Operation, ProposedChange, RULES_OF_CONTROLS,
    SecretKey, Sequence, Superblock, Transaction,
};
use replica::Reject;

use super::{NetworkReport, SimNetwork, ledgers};
use crate::controls::ControlBooks;
use crate::listings::{ListingBooks, ListingClients, listing_terms};
use crate::policies::{PolicyBooks, PolicyClients};
use crate::proposals::{Electorate, ProposalBooks, ProposalClients};

/// Accounts with several keys.
const ACCOUNTS: usize = 2;
/// Units of asset 0 with which a validator proposes and votes.
const FEES: Amount = 10_000_000;
/// The asset of the genesis that its issuer controls, and may close. Nobody else trades it.
const OWN: AssetId = AssetId(ledgers::ASSETS);

struct Voter {
    key: SecretKey,
    next: Sequence,
}

/// What the books say after a block, with the ledger that they read.
struct Books {
    ledger: Ledger,
    policies: PolicyBooks,
    listings: ListingBooks,
    proposals: ProposalBooks,
    controls: ControlBooks,
}

/// The institutions of a network, and what became of their transactions.
pub(super) struct InstitutionNetwork {
    network: Digest,
    dice: Dice,
    policies: PolicyClients,
    listings: ListingClients,
    proposals: ProposalClients,
    voters: Vec<Voter>,
    /// `None` before the genesis.
    books: Option<Books>,
}

impl InstitutionNetwork {
    pub fn new(network: Digest, validators: &[SecretKey], seed: u64) -> InstitutionNetwork {
        let (mut dice, chain, assets) = (Dice::new(seed), ledgers::CHAIN, u64::from(OWN.0) + 1);
        let policies = PolicyClients::new(ACCOUNTS, assets, (chain, network), &mut dice);
        let mut others: Vec<Address> = policies.balances().map(|(account, ..)| account).collect();
        others.dedup();
        let listings = ListingClients::new(assets, (chain, network), others, &mut dice);
        let proposals = ProposalClients { issuer: listings.issuer() };
        let voters = validators.iter().map(|key| Voter { key: key.clone(), next: 1 }).collect();
        InstitutionNetwork { network, dice, policies, listings, proposals, voters, books: None }
    }

    /// Adds what they hold to a genesis, and begins the books. Where rules are older, nothing is controlled at first.
    pub fn found(&mut self, genesis: &mut Genesis) {
        genesis.assets.push(Listing::new(format!("A{}", OWN.0), 2, self.listings.issuer()));
        let fees = self.voters.iter().map(|voter| (voter.key.public().address(), AssetId(0), FEES));
        genesis.balances.extend(self.policies.balances().chain(self.listings.balances()).chain(fees));
        genesis.listings = listing_terms(genesis.fee);
        genesis.pools = Some(PoolTerms::default());
        if genesis.rules >= RULES_OF_CONTROLS {
            genesis.controls = vec![(OWN, AssetControl::Recoverable)];
        }
        self.books = Some(Books {
            ledger: Ledger::new(genesis).expect("a sound genesis"),
            policies: PolicyBooks::default(),
            listings: ListingBooks::new(genesis),
            proposals: ProposalBooks::new(genesis),
            controls: ControlBooks::new(genesis),
        });
    }

    /// The next transaction, by clients who read this ledger, and whether every validator must refuse it.
    fn draw(&mut self, ledger: &Ledger) -> (Transaction, bool) {
        match self.dice.below(3) {
            0 => self.policies.draw(ledger, &mut self.dice),
            1 if !ledger.schedule().is_fixed() => (self.vote(ledger), false),
            _ => (self.listings.draw(ledger, &mut self.dice), false),
        }
    }

    /// A validator proposes or votes.
    fn vote(&mut self, ledger: &Ledger) -> Transaction {
        let accounts: Vec<Address> = self.voters.iter().map(|voter| voter.key.public().address()).collect();
        let (who, mut operation) = self.proposals.draw(ledger, &accounts, &mut self.dice);
        if let Operation::Propose(change) = &mut operation
            && let ProposedChange::Close { asset } = &mut **change
        {
            // The other assets of the genesis are those of clients whose transactions must all count.
            *asset = (*asset).max(OWN);
        }
        let highest = ledger.accounts().get(&accounts[who]).map_or(0, |account| account.window().highest());
        let voter = &mut self.voters[who];
        let sequence = voter.next.clamp(highest + 1, highest + 40);
        voter.next = sequence + 1;
        let body = Body { chain: ledgers::CHAIN, account: accounts[who], sequence, until: 50_000, operation };
        body.sign(&self.network, &voter.key)
    }
}

impl Books {
    /// Applies the next superblock, judges what counted in it, and compares the ledger with what it must have made.
    fn count(&mut self, block: &Superblock) -> Result<(), String> {
        let (before, height) = (self.ledger.clone(), block.height);
        let applied = replica::apply(&mut self.ledger, block, &mut |_| {}).map_err(|fault| fault.to_string())?;
        let transactions = block.sub_blocks.iter().flat_map(|sub| &sub.native);
        let counted = |(_, outcome): &(&Transaction, Outcome)| outcome.refusal().is_none();
        let effective: Vec<_> = transactions.zip(applied.outcomes.iter().copied()).filter(counted).collect();
        self.policies.apply(height, &effective)?;
        let (resting, waiting) = (offers(&before), self.proposals.names());
        let mut listings = self.listings.clone();
        listings.apply(height, &effective, &applied.batch, (&resting, &waiting))?;
        let electorate = Electorate { stakes: stakes(before.validators()), before: &before, after: &self.ledger };
        let entering = self.proposals.apply(height, &effective, &electorate, &self.listings)?;
        self.listings = listings;
        let pairs = |offers: &BTreeMap<(Pair, Place), Amount>| offers.keys().map(|(pair, _)| *pair).collect();
        let after = offers(&self.ledger);
        self.listings.check_pairs(&pairs(&after), &pairs(&resting))?;
        self.controls.apply(height, &effective)?;
        if let Some(entering) = entering {
            let (listed, closed) = self.listings.enter(height, &entering.values, (&entering.lists, &entering.closes));
            self.proposals.counts.listed += listed;
            self.proposals.counts.closed += closed;
        }
        after.keys().try_for_each(|(pair, place)| self.controls.check_offer(*pair, &place.account))?;
        self.policies.hold(&self.ledger)?;
        self.listings.hold(&self.ledger)?;
        self.proposals.hold(&self.ledger)?;
        self.controls.hold(&self.ledger)
    }

    fn report(&self, report: &mut NetworkReport) {
        report.policies = self.policies.counts;
        report.listings = self.listings.counts;
        report.proposals = self.proposals.counts;
        report.controls = self.controls.counts;
    }
}

fn offers(ledger: &Ledger) -> BTreeMap<(Pair, Place), Amount> {
    let all = ledger.book().iter().flat_map(|(pair, offers)| offers.iter().map(move |offer| (pair, offer)));
    all.map(|(pair, offer)| ((pair, offer.place), offer.amount)).collect()
}

fn stakes(validators: &Validators) -> BTreeMap<Address, i128> {
    let staked = validators.registry.iter().filter(|one| one.is_staked());
    staked.map(|one| (one.member.account, one.member.stake.into())).collect()
}

/// Somebody sends a transaction to a validator, if that one runs. It is not sent again.
pub(super) fn send_of_institution(sim: &mut SimNetwork, to: Index) {
    let Some(network) = &mut sim.institution_network else { return };
    let Some(process) = &sim.hosts[usize::from(to)].process else { return };
    let (transaction, must_refuse) = network.draw(&process.ledger);
    let body = must_refuse.then(|| transaction.body.clone());
    // Others are refused, too: clients do not know what holds now.
    let entered = sim.enter(to, transaction);
    let is_refused = matches!(entered, Some(Err(Reject::Refused(_) | Reject::Full)));
    assert!(!must_refuse || is_refused, "{to} takes what one signer signed for several: {body:?}");
}

/// Processes a block that is applied for the first time anywhere: the books apply it, too, and those before it that a
/// crash left logged, which a restart has applied.
pub(super) fn count_institutions(sim: &mut SimNetwork, of: Index, block: &Superblock, applied: &Digest) {
    let Some(books) = sim.institution_network.as_mut().and_then(|network| network.books.as_mut()) else { return };
    let process = sim.hosts[usize::from(of)].process.as_ref().expect("it applies");
    let logged = |height: Height| process.past.block(height).expect("readable").expect("it is logged");
    let missed: Vec<Superblock> = (books.ledger.height() + 1..block.height).map(logged).collect();
    for block in missed.iter().chain([block]) {
        books.count(block).unwrap_or_else(|what| panic!("block {}: {what}", block.height));
    }
    assert_eq!(books.ledger.last_block(), *applied, "{of} makes another state of block {}", block.height);
    books.report(&mut sim.report);
}
