//! Whether a transaction is valid alone, by the state before its block.

use primitives::{
    Address, AssetListing, Body, Closing, Life, OfferPlace, Operation, PoolKey, RULES_OF_PROPOSALS, SEALED_AHEAD_MAX,
    SignedBy, Transaction, slot_of,
};
use proofs::{Pair, Refusal};

use super::footprint::{Footprint, Requirement, Visitor, place_of};
use super::uses::check_uses;
use crate::places::accounts::{Account, Shard, shard_of};
use crate::places::charter;
use crate::places::offers::{EndFault, check_end, too_small};
use crate::places::pools::{LISTED_POOLS_MAX, opens_with};
use crate::state::Ledger;

/// The most offers of one limit price that are searched to explain why a cancellation finds nothing. The sender
/// chooses the price, and an account that fills one price with offers must not make others do long searches.
const EXPLAINED: usize = 64;

/// Checks the requirements of a footprint.
struct Check<'l> {
    ledger: &'l Ledger,
    sender: Address,
    /// How many of the offers that a cancel names rest.
    found: u8,
}

impl<'a> Visitor<'a> for Check<'_> {
    #[inline]
    fn require(&mut self, requirement: Requirement<'a>) -> Result<(), Refusal> {
        let Check { ledger, sender, .. } = self;
        let permit = |holds: bool, refusal| if holds { Ok(()) } else { Err(refusal) };
        match requirement {
            Requirement::Listed(asset) => permit((asset.0 as usize) < ledger.assets.len(), Refusal::UNKNOWN_ASSET),
            Requirement::Absent(account) => {
                permit(ledger.places.accounts.get(account).is_none(), Refusal::ACCOUNT_EXISTS)
            }
            Requirement::OneRests(places) => {
                let rests = |named: &&OfferPlace| ledger.places.book.rests(place_of(*sender, named)).is_some();
                self.found = places.iter().filter(rests).count() as u8;
                permit(self.found > 0, Refusal::UNKNOWN_OFFER)
            }
            Requirement::Remains(replace) => {
                let rests = ledger.places.book.rests(place_of(*sender, &replace.old)).ok_or(Refusal::UNKNOWN_OFFER)?;
                permit(rests <= replace.remains, Refusal::REMAINS_TOO_FEW)
            }
            Requirement::Size(pair, amount, limit) => ledger.minima(pair).check(amount, limit).map_err(too_small),
            Requirement::ExactSize(asset, units) => {
                permit(units >= ledger.assets[asset.0 as usize].least_units, Refusal::EXACT_TOO_SMALL)
            }
            Requirement::Room(pair) => check_room(ledger, pair),
            Requirement::Alive(pair, life) => {
                ledger.listings().check_life(pair, life, ledger.next_height())?;
                check_life(ledger, life)
            }
            Requirement::Open(asset) => ledger.listings().check_open(asset, ledger.next_height()),
            Requirement::PoolRoom(pool) => check_pool_room(ledger, pool),
            Requirement::Listing(listing) => check_listing(ledger, listing),
            Requirement::Closing(asset, Closing::Revoke) if ledger.proposals().closes(asset) => {
                Err(Refusal::CLOSED_BY_VOTE)
            }
            Requirement::Closing(asset, closing) => {
                ledger.listings().check_closing(asset, closing, ledger.next_height())
            }
            Requirement::Reserve(asset, units) => {
                let least = ledger.assets[asset.0 as usize].least_units;
                permit(opens_with(units, least), Refusal::POOL_TOO_SMALL)
            }
            Requirement::Issuer(asset) => {
                permit(ledger.assets[asset.0 as usize].issuer == *sender, Refusal::NOT_ISSUER)
            }
            Requirement::Unreferenced(to) => {
                permit(!ledger.places.accounts.needs_reference(to), Refusal::NEEDS_REFERENCE)
            }
            Requirement::Session(operation) => {
                let account = ledger.places.accounts.get(sender).ok_or(Refusal::UNKNOWN_ACCOUNT)?;
                ledger.session_rules().check_operation(account, operation)
            }
            Requirement::Proposed(change) => {
                charter::check_say(ledger.charter(), &ledger.electorate(), sender)?;
                let stakes = charter::stakes_of(ledger.validators());
                ledger.proposals().check(&ledger.scene(&stakes), change, (sender, &stakes))
            }
            Requirement::Votable(id) => {
                charter::check_say(ledger.charter(), &ledger.electorate(), sender)?;
                ledger.proposals().check_vote(&id)
            }
            Requirement::Holder(asset, account) => ledger.controls().check_holder(asset, account),
            Requirement::HolderRecovery(recovery) => {
                let holder = ledger.places.accounts.get(&recovery.from);
                let balance = holder.map_or(0, |holder| holder.balance(recovery.asset));
                ledger.controls().check_recovery(recovery, balance, ledger.next_height())
            }
            Requirement::Frozen(asset, account) => ledger.controls().check_acts(asset, account, ledger.next_height()),
            Requirement::Charter(edit) => charter::check(ledger.charter(), &ledger.electorate(), sender, edit),
            Requirement::Keys(edit) => {
                let account = ledger.places.accounts.get(&edit.account());
                ledger.places.keys.check(account, edit, ledger.height.saturating_add(1))
            }
            Requirement::Place(edit) => ledger.places.check(&ledger.rules(), *sender, edit),
        }
    }
}

/// Checks one transaction against the state before the block; returns the sender's position in its shard, and how
/// many of the offers that a cancel names rest.
pub(super) fn check_in(
    ledger: &Ledger,
    shard: &Shard,
    transaction: &Transaction,
    signed: bool,
    is_beyond_quota: bool,
) -> Result<(u32, u8), Refusal> {
    transaction.check()?;
    let body = &transaction.body;
    let is_for_this = match &transaction.signed_by {
        SignedBy::Key { .. } | SignedBy::Policy(_) => true,
        SignedBy::TypedData { network, .. } => *network == ledger.network(),
    };
    if body.chain != ledger.chain || !is_for_this {
        return Err(Refusal::WRONG_CHAIN);
    }
    if !signed {
        return Err(Refusal::BAD_SIGNATURE);
    }
    if is_beyond_quota {
        return Err(Refusal::OVER_QUOTA);
    }
    let position = shard.find(&body.account).ok_or(Refusal::UNKNOWN_ACCOUNT)?;
    let account = shard.at(position);
    match slot_of(body.sequence) {
        _ if body.is_of_validator() => check_validators_key(ledger, transaction)?,
        0 => {
            check_owner(ledger, account, transaction)?;
            account.window().check(body.sequence)?;
        }
        _ => ledger.session_rules().check(account, transaction)?,
    }
    if ledger.next_rules() < transaction.since_rules() {
        return Err(Refusal::RULES_TO_COME);
    }
    check_until(ledger, body)?;
    let mut check = Check { ledger, sender: body.account, found: 0 };
    transaction.emit(ledger.fee, &mut check)?;
    check_uses(ledger, transaction)?;
    Ok((position, check.found))
}

/// Whether those signed who sign for the account: the signers of its policy, if it has one, else its own key.
fn check_owner(ledger: &Ledger, account: &Account, transaction: &Transaction) -> Result<(), Refusal> {
    let Body { account: address, operation, .. } = &transaction.body;
    match &transaction.signed_by {
        SignedBy::Policy(_) if matches!(operation, Operation::CreateAccount { account, .. } if account == address) => {
            Err(Refusal::POLICY_SIGNS)
        }
        SignedBy::Policy(signed) => ledger.places.keys.permit(address, signed, operation.row().needs),
        _ if account.has_policy() => Err(Refusal::POLICY_SIGNS),
        by if account.is_signed_for_by(by) => Ok(()),
        _ => Err(Refusal::WRONG_SIGNER),
    }
}

/// Whether the validator's key signed: it speaks for the account in what is said of the validator alone.
fn check_validators_key(ledger: &Ledger, transaction: &Transaction) -> Result<(), Refusal> {
    let own = ledger.places.validators.registered.get(&transaction.body.account).ok_or(Refusal::NOT_A_VALIDATOR)?;
    match transaction.signed_by {
        SignedBy::Key { signer, .. } if signer == own.member.key => Ok(()),
        _ => Err(Refusal::NOT_VALIDATORS_KEY),
    }
}

/// Checks the last height of a transaction for the next block.
fn check_until(ledger: &Ledger, &Body { until, ref operation, .. }: &Body) -> Result<(), Refusal> {
    let next = ledger.height.saturating_add(1);
    match operation {
        _ if until < next => Err(Refusal::ENDED),
        _ if until - next > ledger.limits.until_max => Err(Refusal::ENDS_TOO_LATE),
        Operation::Sealed(_) if until - next > SEALED_AHEAD_MAX => Err(Refusal::SEALED_TOO_LATE),
        _ => Ok(()),
    }
}

/// Whether the book takes one more offer of a pair in the next block.
fn check_room(ledger: &Ledger, pair: Pair) -> Result<(), Refusal> {
    if ledger.is_book_full {
        return Err(Refusal::BOOK_FULL);
    }
    ledger.crowd.check_offer(ledger.listings(), pair.sell)?;
    let has_room = pairs_room(ledger) > 0;
    if has_room && !ledger.listings().touches(pair) || ledger.places.book.get(pair).is_some() {
        return Ok(());
    }
    ledger.crowd.check_pair(ledger.listings(), pair, &ledger.limits)?;
    if has_room { Ok(()) } else { Err(Refusal::TOO_MANY_PAIRS) }
}

/// Whether the chain lists such an asset for a price. Once votes can change who lists, a listing that comes too late is
/// no proposer's fault.
fn check_listing(ledger: &Ledger, listing: &AssetListing) -> Result<(), Refusal> {
    let (height, least) = (ledger.next_height(), ledger.band_least_units());
    let beside = (&ledger.assets[..], &ledger.proposals().coming_names()[..]);
    let is_voted_on = ledger.next_rules() >= RULES_OF_PROPOSALS;
    ledger.listings().check_listing(listing, beside, least, height).map_err(|why| match why {
        Refusal::NO_LISTINGS if is_voted_on => Refusal::NOT_PRICED,
        why => why,
    })
}

/// Whether pools with listed assets leave room for one more.
fn check_pool_room(ledger: &Ledger, pool: PoolKey) -> Result<(), Refusal> {
    let listings = ledger.listings();
    let is_listed = |key: &PoolKey| listings.touches(Pair { sell: key.a, buy: key.b });
    let taken = || ledger.pools().map_or(0, |pools| pools.iter().filter(|(key, _)| is_listed(key)).count());
    if is_listed(&pool) && taken() >= LISTED_POOLS_MAX { Err(Refusal::LISTED_POOLS_FULL) } else { Ok(()) }
}

/// Whether an offer with this life may be placed in the next block.
fn check_life(ledger: &Ledger, life: Life) -> Result<(), Refusal> {
    let Life::Until(until) = life else { return Ok(()) };
    check_end(until, ledger.height.saturating_add(1), |height| ledger.places.book.ending_at(height)).map_err(|fault| {
        match fault {
            EndFault::Past => Refusal::LIFE_ENDED,
            EndFault::TooFar => Refusal::LIFE_TOO_LONG,
            EndFault::Crowded => Refusal::ENDS_CROWDED,
        }
    })
}

/// Pairs that may still be opened.
pub(super) fn pairs_room(ledger: &Ledger) -> usize {
    (ledger.limits.open_pairs as usize).saturating_sub(ledger.places.book.pairs())
}

/// Distinguishes a cancel of another account's offer from one that finds no offer, if a short search can tell.
fn explain(ledger: &Ledger, refusal: Refusal, transaction: &Transaction) -> Refusal {
    let is_anothers = |named: &OfferPlace| {
        let offers = ledger.places.book.get(Pair { sell: named.sell, buy: named.buy });
        offers.is_some_and(|offers| offers.any_at(named.limit, named.offer, EXPLAINED))
    };
    match &transaction.body.operation {
        Operation::Cancel(places) if refusal == Refusal::UNKNOWN_OFFER && places.first().is_some_and(is_anothers) => {
            Refusal::NOT_YOUR_OFFER
        }
        _ => refusal,
    }
}

/// The sender of a transaction that [`Ledger::admit`] would accept if the sender had the balance.
pub(crate) fn admit_but_for_balance<'l>(ledger: &'l Ledger, transaction: &Transaction) -> Result<&'l Account, Refusal> {
    let shard = &ledger.places.accounts.shards()[shard_of(&transaction.body.account)];
    let (position, _) =
        check_in(ledger, shard, transaction, true, false).map_err(|refusal| explain(ledger, refusal, transaction))?;
    Ok(shard.at(position))
}
