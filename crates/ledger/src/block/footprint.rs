//! The footprint of an operation defines what the operation means.
//!
//! [`emit`] is the one place that defines what each native operation needs, spends, claims and changes. It calls a
//! [`Visitor`], which uses the parts that concern it; nothing is stored in between. The filter visits for
//! requirements, sums and once-keys, reservations for sums and once-keys, orders for the book, credits and the
//! registry, effects for the accounts. So two rules cannot diverge, and a new operation is one match arm.
//!
//! Everything that a transaction spends or owns is recorded under its sender, so that no account can make the
//! transactions of another one fail by spending. Keys that several senders may claim have their own scope
//! ([`Scope`](crate::places::scope::Scope)).

use payments::{Output, Recipient};
use primitives::venue::VenueOperation;
use primitives::{
    Address, Amount, AssetId, AssetListing, Body, Closing, ExactSide, HolderRecovery, Life, OfferPlace,
    OfferReplacement, Operation, PoolKey, PoolOperation, Price, ProposedChange, PublicKey, ReferenceRule, Sequence,
    SessionOperation, Transaction, TransactionId, slot_of,
};
use proofs::{ExactRequest, Offer, Pair, Place, Refusal};

use super::once::{Once, Sum};
use crate::contracts::is_reserved;
use crate::places::PlaceEdit;
use crate::places::assets::ListingEdit;
use crate::places::bridge::{BridgeEdit, claims};
use crate::places::charter::{CharterEdit, RulesEdit};
use crate::places::controls::HolderEdit;
use crate::places::keys::KeysEdit;
use crate::places::offers::last_height;
use crate::places::pools::PoolEdit;
use crate::places::seals::SealEdit;
use crate::places::stakes::RegistryEdit;
use crate::places::sums::{Credit, Taken};
use crate::places::venues::{VenueEdit, VenueOnce};

/// What must hold in the state before the block.
#[derive(Clone, Copy)]
pub(crate) enum Requirement<'a> {
    /// The asset is listed. This is required before anything else is checked about the asset.
    Listed(AssetId),
    /// There is no such account.
    Absent(&'a Address),
    /// An offer of the sender rests at one of these places.
    OneRests(&'a [OfferPlace]),
    /// The offer rests, and with no more units than the replacement says.
    Remains(&'a OfferReplacement),
    /// An offer of this size is not below the minimum.
    Size(Pair, Amount, Price),
    /// An exact order of so many units of an asset is not below the minimum.
    ExactSize(AssetId, Amount),
    /// The book has room for an offer of this pair.
    Room(Pair),
    /// An offer of a pair with this life is not over in the next block, and may end when it does.
    Alive(Pair, Life),
    /// The asset is not closed in the next block.
    Open(AssetId),
    /// A pool with these assets finds room.
    PoolRoom(PoolKey),
    /// The chain lists such an asset.
    Listing(&'a AssetListing),
    /// The end of an asset permits what its issuer says about it.
    Closing(AssetId, Closing),
    /// A new pool holds enough units of an asset.
    Reserve(AssetId, Amount),
    /// The sender issues the asset.
    Issuer(AssetId),
    /// Payments to the account need no reference.
    Unreferenced(&'a Address),
    /// The sender's session keys permit the operation.
    Session(&'a SessionOperation),
    /// The issuer may say something of a holder of the asset.
    Holder(AssetId, &'a Address),
    /// The issuer may recover units.
    HolderRecovery(&'a HolderRecovery),
    /// The issuer may act for a frozen holder of the asset.
    Frozen(AssetId, &'a Address),
    /// The charter permits what the sender says about the rules.
    Charter(RulesEdit),
    /// The sender may propose this.
    Proposed(&'a ProposedChange),
    /// The sender may vote about the proposal of this id.
    Votable(TransactionId),
    /// The account that it names has keys, and the change of them signatures, that permit the edit.
    Keys(KeysEdit<'a>),
    /// The place of custody permits the edit.
    Place(PlaceEdit<'a>),
}

/// Receives the parts of a footprint; it implements the ones that concern it and ignores the others.
pub(crate) trait Visitor<'a> {
    /// Something must hold in the state before the block. An error ends the footprint.
    fn require(&mut self, _: Requirement<'a>) -> Result<(), Refusal> {
        Ok(())
    }

    /// Units are added to a sum. Units of [`Sum::Spent`] leave the sender's balance, those of [`Sum::Key`] the room of
    /// a session key.
    fn sum(&mut self, _: Sum, _: Amount) {}

    /// A once-key is claimed.
    fn once(&mut self, _: Once) {}

    /// Units are paid to an account after the block's debits; zero units make the account exist.
    fn credit(&mut self, _: Credit) {}

    /// Units leave the balance of a holder who is not the sender.
    fn take(&mut self, _: Taken) {}

    /// An offer is placed.
    fn place(&mut self, _: Pair, _: Offer) {}

    /// An exact order joins the batch of the block.
    fn exact(&mut self, _: ExactRequest) {}

    /// An offer takes the place of one that rests before the block; its id is given.
    fn replace(&mut self, _: &'a OfferReplacement, _: Sequence) {}

    /// If an offer of the sender rests there before the block, it is removed from the book, and what it locks is
    /// credited once, however many transactions of the block name it.
    fn cancel(&mut self, _: Pair, _: Place) {}

    /// The number of existing units of an asset changes by this much.
    fn issue(&mut self, _: AssetId, _: i128) {}

    /// Something happens to the sender's session keys.
    fn session(&mut self, _: &'a SessionOperation) {}

    /// The sender's key changes.
    fn register(&mut self, _: PublicKey) {}

    /// The sender says whether payments to it need a reference.
    fn receive(&mut self, _: ReferenceRule) {}

    /// A place of custody is edited.
    fn edit(&mut self, _: PlaceEdit<'a>) {}
}

/// Anything that has a footprint.
pub(crate) trait Footprint {
    /// Emits the whole footprint to the visitor; one unit of weight costs `fee`.
    fn emit<'a>(&'a self, fee: Amount, visitor: &mut impl Visitor<'a>) -> Result<(), Refusal>;
}

impl Footprint for Transaction {
    #[inline]
    fn emit<'a>(&'a self, fee: Amount, visitor: &mut impl Visitor<'a>) -> Result<(), Refusal> {
        let &Body { account: sender, sequence, ref operation, .. } = &self.body;
        pay_for(self, fee, visitor);
        match operation {
            &Operation::CreateAccount { account, key } if account == sender => {
                visitor.once(Once::Key);
                visitor.register(key);
            }
            Operation::CreateAccount { account, .. } => {
                visitor.require(Requirement::Absent(account))?;
                visitor.once(Once::Created(*account));
                visitor.credit(Credit { to: *account, asset: AssetId(0), amount: 0 });
            }
            &Operation::CreateOffer { sell, buy, amount, limit, life, client: _ } => {
                let pair = listed(sell, buy, visitor)?;
                visitor.require(Requirement::Size(pair, amount, limit))?;
                visitor.require(Requirement::Room(pair))?;
                visitor.require(Requirement::Alive(pair, life))?;
                spend(sequence, sell, amount, visitor);
                open(sequence, life, visitor);
                let place = Place { limit, account: sender, id: sequence };
                visitor.place(pair, Offer { place, amount, until: last_height(life) });
            }
            &Operation::Exact { sell, buy, side, units, bound, client: _ } => {
                let pair = listed(sell, buy, visitor)?;
                let request = ExactRequest { pair, side, units, bound, account: sender, id: sequence };
                let exact = if side == ExactSide::Buy { buy } else { sell };
                visitor.require(Requirement::ExactSize(exact, units))?;
                visitor.require(Requirement::Open(sell))?;
                visitor.require(Requirement::Open(buy))?;
                spend(sequence, sell, request.locks(), visitor);
                visitor.exact(request);
            }
            Operation::Cancel(places) => {
                visitor.require(Requirement::OneRests(places))?;
                places
                    .iter()
                    .map(|named| place_of(sender, named))
                    .for_each(|(pair, place)| visitor.cancel(pair, place));
            }
            Operation::Replace(replace) => {
                let pair = listed(replace.old.sell, replace.old.buy, visitor)?;
                visitor.require(Requirement::Remains(replace))?;
                visitor.require(Requirement::Size(pair, replace.amount, replace.limit))?;
                visitor.require(Requirement::Alive(pair, replace.life))?;
                visitor.once(Once::Replace(pair, place_of(sender, &replace.old).1));
                if replace.debit() > 0 {
                    spend(sequence, pair.sell, replace.debit(), visitor);
                }
                visitor.replace(replace, sequence);
            }
            Operation::Pay { to, asset, amount } | Operation::PayReferenced { to, asset, amount, .. } => {
                let credit = Credit { to: *to, asset: *asset, amount: *amount };
                visitor.require(Requirement::Listed(credit.asset))?;
                receives(sender, to, operation, visitor)?;
                visitor.sum(Sum::Spent(credit.asset), credit.amount);
                visitor.credit(credit);
            }
            Operation::Issue { to, asset, amount } | Operation::IssueReferenced { to, asset, amount, .. } => {
                let credit = Credit { to: *to, asset: *asset, amount: *amount };
                visitor.require(Requirement::Listed(credit.asset))?;
                visitor.require(Requirement::Issuer(credit.asset))?;
                visitor.require(Requirement::Open(credit.asset))?;
                receives(sender, to, operation, visitor)?;
                visitor.sum(Sum::Issued(credit.asset), credit.amount);
                visitor.issue(credit.asset, i128::from(credit.amount));
                visitor.credit(credit);
            }
            &Operation::SetReceiving { references } => {
                visitor.once(Once::Receiving);
                visitor.receive(references);
            }
            &Operation::Burn { asset, amount } => {
                visitor.require(Requirement::Listed(asset))?;
                visitor.require(Requirement::Issuer(asset))?;
                visitor.sum(Sum::Spent(asset), amount);
                visitor.issue(asset, -i128::from(amount));
            }
            Operation::Stake(stake) => {
                edit(PlaceEdit::Stakes(RegistryEdit::Stake(stake)), visitor)?;
                visitor.once(Once::Stake);
                visitor.once(Once::ValidatorKey(stake.key));
                visitor.sum(Sum::Spent(AssetId(0)), stake.units);
            }
            &Operation::Unstake { units } => {
                edit(PlaceEdit::Stakes(RegistryEdit::Unstake(units)), visitor)?;
                visitor.once(Once::Stake);
            }
            &Operation::Present { epoch } => edit(PlaceEdit::Stakes(RegistryEdit::Present(epoch)), visitor)?,
            &Operation::Approve { upgrade, at } => say(RulesEdit::Approve { upgrade, at }, visitor)?,
            &Operation::Unapprove { rules, at } => say(RulesEdit::Unapprove { rules, at }, visitor)?,
            Operation::SealDuty { key, post } => edit(PlaceEdit::Seals(SealEdit { key: *key, post }), visitor)?,
            Operation::Accuse(evidence) => edit(PlaceEdit::Stakes(RegistryEdit::Convict(evidence)), visitor)?,
            &Operation::Withdraw { to, asset, amount } => {
                visitor.require(Requirement::Listed(asset))?;
                visitor.require(Requirement::Open(asset))?;
                let output = Output { to: Recipient::Key(to), asset, amount };
                edit(PlaceEdit::Bridge(BridgeEdit::Withdraw(sequence, output)), visitor)?;
                visitor.sum(Sum::Spent(asset), amount);
            }
            Operation::Lane(bytes) => {
                edit(PlaceEdit::Bridge(BridgeEdit::Post(bytes)), visitor)?;
                let (key, deposit) = claims(bytes)?;
                visitor.once(Once::Bridge(key));
                spend(sequence, AssetId(0), deposit, visitor);
            }
            Operation::Pool(operation) => {
                let pool = operation.pool();
                listed(pool.a, pool.b, visitor)?;
                if !matches!(**operation, PoolOperation::Leave { .. }) {
                    visitor.require(Requirement::Open(pool.a))?;
                    visitor.require(Requirement::Open(pool.b))?;
                }
                edit(PlaceEdit::Pools(PoolEdit { sequence, operation }), visitor)?;
                match **operation {
                    PoolOperation::Open { x, y, .. } => {
                        visitor.require(Requirement::PoolRoom(pool))?;
                        visitor.require(Requirement::Reserve(pool.a, x))?;
                        visitor.require(Requirement::Reserve(pool.b, y))?;
                        visitor.once(Once::Pool(pool));
                    }
                    PoolOperation::Provide { shares, .. } => visitor.sum(Sum::Minted(pool), shares),
                    PoolOperation::Leave { shares, .. } => visitor.sum(Sum::Shares(pool), shares),
                }
                let debits = self.body.operation.debits().into_iter().flatten();
                debits.for_each(|(asset, units)| visitor.sum(Sum::Spent(asset), units));
            }
            Operation::Session(operation) => {
                visitor.require(Requirement::Session(operation))?;
                if let SessionOperation::Authorize { terms, .. } = &**operation {
                    for cap in &terms.caps {
                        visitor.require(Requirement::Listed(cap.asset))?;
                    }
                    visitor.once(Once::Session);
                }
                visitor.session(operation);
            }
            Operation::SetKeys(_) | Operation::RecoverKeys(_) => {
                rekey(KeysEdit::Change(operation.key_change().expect("it is one")), visitor)?;
            }
            &Operation::CompleteKeys { account } => rekey(KeysEdit::Complete(account), visitor)?,
            Operation::ListAsset(listing) => {
                visitor.require(Requirement::Listing(listing))?;
                visitor.edit(PlaceEdit::Listings(ListingEdit::List(listing, self.id())));
            }
            &Operation::CloseAsset { asset, closing } => {
                visitor.require(Requirement::Listed(asset))?;
                visitor.require(Requirement::Issuer(asset))?;
                visitor.require(Requirement::Closing(asset, closing))?;
                visitor.once(Once::Closing(asset));
                visitor.edit(PlaceEdit::Listings(ListingEdit::Close(asset, closing)));
            }
            Operation::Propose(change) => {
                for asset in operation.assets().into_iter().flatten() {
                    visitor.require(Requirement::Listed(asset))?;
                }
                visitor.require(Requirement::Proposed(change))?;
                visitor.once(Once::Proposal);
                visitor.edit(PlaceEdit::Charter(CharterEdit::Propose(change, self.id())));
            }
            &Operation::Vote { proposal, word } => {
                visitor.require(Requirement::Votable(proposal))?;
                visitor.once(Once::Word(proposal));
                visitor.edit(PlaceEdit::Charter(CharterEdit::Vote(proposal, word)));
            }
            // What is in it has footprints of its own.
            Operation::Sealed(_) => {}
            Operation::SetHolder { asset, account, state, .. } => {
                let (asset, state) = (*asset, *state);
                visitor.require(Requirement::Listed(asset))?;
                visitor.require(Requirement::Issuer(asset))?;
                visitor.require(Requirement::Holder(asset, account))?;
                visitor.once(Once::Holder((asset, *account)));
                freeze(sequence, asset, visitor);
                visitor.edit(PlaceEdit::Controls(HolderEdit { asset, account: *account, state }));
            }
            Operation::Recover(recovery) => {
                let &HolderRecovery { asset, from, to, amount, .. } = &**recovery;
                visitor.require(Requirement::Listed(asset))?;
                visitor.require(Requirement::Issuer(asset))?;
                visitor.require(Requirement::HolderRecovery(recovery))?;
                receives(sender, &recovery.to, operation, visitor)?;
                visitor.once(Once::Recovered((asset, from)));
                visitor.take(Taken { from, asset, amount });
                visitor.credit(Credit { to, asset, amount });
            }
            Operation::Venue(operation) => {
                for asset in operation.assets().into_iter().flatten() {
                    visitor.require(Requirement::Listed(asset))?;
                }
                if let VenueOperation::Deposit { asset, .. } = **operation {
                    visitor.require(Requirement::Open(asset))?;
                }
                if let VenueOperation::Recall { asset, account, .. } = &**operation {
                    visitor.require(Requirement::Issuer(*asset))?;
                    visitor.require(Requirement::Frozen(*asset, account))?;
                }
                edit(PlaceEdit::Venues(VenueEdit { sequence, operation }), visitor)?;
                VenueOnce::of(operation).into_iter().for_each(|once| visitor.once(Once::Venue(once)));
                operation.debit().into_iter().for_each(|(asset, units)| visitor.sum(Sum::Spent(asset), units));
            }
        }
        Ok(())
    }
}

/// What is paid to an account or issued to it: by others with a reference, if it needs one. A reserved address receives
/// nothing: nobody could move what it holds.
fn receives<'a>(
    sender: Address,
    to: &'a Address,
    operation: &Operation,
    visitor: &mut impl Visitor<'a>,
) -> Result<(), Refusal> {
    match () {
        _ if is_reserved(to) => Err(Refusal::RESERVED_ADDRESS),
        _ if operation.reference().is_some() || *to == sender => Ok(()),
        _ => visitor.require(Requirement::Unreferenced(to)),
    }
}

/// What every transaction uses up, whatever its operation: fee and sequence number. What a validator says of itself has
/// no number: the validator's key must not use up those of the account.
pub(crate) fn pay_for<'a>(transaction: &Transaction, fee: Amount, visitor: &mut impl Visitor<'a>) {
    let body = &transaction.body;
    match body.operation {
        Operation::Present { .. } => visitor.once(Once::Present),
        Operation::SealDuty { .. } => visitor.once(Once::Seal),
        _ if body.is_of_validator() => {}
        _ => visitor.once(Once::Sequence(body.sequence)),
    }
    spend(body.sequence, AssetId(0), transaction.cost(fee), visitor);
}

/// Units leave the sender's balance, and the room of its session key if one signs.
fn spend<'a>(sequence: Sequence, asset: AssetId, units: Amount, visitor: &mut impl Visitor<'a>) {
    visitor.sum(Sum::Spent(asset), units);
    match slot_of(sequence) {
        0 => {}
        slot => visitor.sum(Sum::Key(slot, asset), units),
    }
}

/// A session key freezes a holder of an asset, if one signs: its cap of the asset counts holders.
fn freeze<'a>(sequence: Sequence, asset: AssetId, visitor: &mut impl Visitor<'a>) {
    match slot_of(sequence) {
        0 => {}
        slot => visitor.sum(Sum::Key(slot, asset), 1),
    }
}

/// A session key opens an offer, if one signs and the offer may rest.
fn open<'a>(sequence: Sequence, life: Life, visitor: &mut impl Visitor<'a>) {
    match slot_of(sequence) {
        0 => {}
        slot if life != Life::OneBatch => visitor.sum(Sum::Offers(slot), 1),
        _ => {}
    }
}

/// The pair and the place of an offer of this account.
pub(crate) fn place_of(account: Address, named: &OfferPlace) -> (Pair, Place) {
    let OfferPlace { sell, buy, limit, offer } = *named;
    (Pair { sell, buy }, Place { limit, account, id: offer })
}

fn listed<'a>(sell: AssetId, buy: AssetId, visitor: &mut impl Visitor<'a>) -> Result<Pair, Refusal> {
    visitor.require(Requirement::Listed(sell))?;
    visitor.require(Requirement::Listed(buy))?;
    Ok(Pair { sell, buy })
}

/// The sender says something about the rules.
fn say<'a>(says: RulesEdit, visitor: &mut impl Visitor<'a>) -> Result<(), Refusal> {
    visitor.require(Requirement::Charter(says))?;
    visitor.once(Once::Approval);
    visitor.edit(PlaceEdit::Charter(CharterEdit::Rules(says)));
    Ok(())
}

/// The keys of an account change, whoever sends it.
fn rekey<'a>(edit: KeysEdit<'a>, visitor: &mut impl Visitor<'a>) -> Result<(), Refusal> {
    visitor.require(Requirement::Keys(edit))?;
    visitor.once(Once::Keys(edit.account()));
    visitor.edit(PlaceEdit::Keys(edit));
    Ok(())
}

fn edit<'a>(edit: PlaceEdit<'a>, visitor: &mut impl Visitor<'a>) -> Result<(), Refusal> {
    visitor.require(Requirement::Place(edit))?;
    visitor.edit(edit);
    Ok(())
}
