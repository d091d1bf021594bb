//! Offers of contracts: a reserved address ([`OFFERS`]) where contracts place, cancel and read resting offers.
//!
//! # The protocol
//!
//! - On *place*, the caller is debited at once. The offer's id is 2^63 plus the number of offers that the caller has
//!   placed here before; the counter is an ordinary slot. The offer rests from the end of the block, and takes part
//!   in the batch of the next one. Its limit price is the units it asks divided by the units it sells, rounded up.
//! - An offer may have a last height, as natively: it is in batches up to that height, and ends with that block. One
//!   batch is the height after the present one. A log `Ends` names the height, and when it has come a log `Ended` in
//!   the settlement receipt what returned.
//! - On *cancel*, the caller gets back at once what its offer locks. An offer can be cancelled in the block that it
//!   is placed in; then it never rests. A list cancels up to 32 offers, as natively: those that do not rest are
//!   skipped, and if none rests the call reverts.
//! - Fills come from settlement: units are added to the balance, and a log `Filled` to the settlement receipt of the
//!   height.
//! - Contracts identify an offer by one word: pair, limit and id ([`OfferName`]). The owner is known separately.
//!
//! The book is not written while transactions run. Their changes are recorded in *edits*: virtual slots by owner and
//! id, which are empty at the start of each block, revert with their frames, and are applied to the book after the
//! last transaction. Resting offers are read from the book as the native phase of the block left it.
//!
//! # Rules
//!
//! 1. Whatever the native operation refuses, this refuses too, with a named error: least sizes, unknown assets, a
//!    full book, too many pairs, assets that close, frozen holders, more than the balance.
//! 2. Only offers placed here are cancelled and shown here. The holder of a key can cancel them natively, too: the
//!    native phase comes first. So of two cancels in one block the native one counts, and the other reverts.
//! 3. Delegated and CALLCODE calls, calls with value, and static calls that would change state revert.
//! 4. A book that is full before the contract phase accepts no offer. One that is not full accepts the offers of the
//!    whole block, which its gas bounds. Pairs are counted exactly; one that was opened in a block counts even if its
//!    offers are cancelled in the same block.
//! 5. Gas pays for the slots, for what the native operation costs, and for the work of later batches ([`REST_GAS`]),
//!    the end included ([`END_GAS`]). The words of a list are paid for before they are read, and each cancel before it
//!    is done.

use std::sync::LazyLock;

use clearing::{Minima, TooSmall};
use primitives::{Amount, AssetId, CANCELS_MAX, Digest, Height, MAX_ISSUED, Price};
use proofs::{Batch, ContractReceipts, EndedOffer, EthereumLog, EthereumReceipt, EvmStatus, Fill, NO_END, Pair, Place};
use revm::context::{Block as _, ContextTr};
use revm::primitives::{Address, B256, U256, keccak256};

use super::call::{Arguments, Call, CallFault, Called, READ_GAS, evm_address, number, plain_address, word};
use super::evm_state::{Access, EvmState};
use super::offer_words::{
    BookEdit, FIRST_CONTRACT_OFFER, OPENED, OfferName, OpenedOf, count_slot, edit_slot, pair_bytes, tagged,
};
use super::tokens::{HolderFacts, TokenFacts, asset_at};
use crate::places::contracts::reserved::OFFERS;
use crate::places::controls::{HELD_OFFERS_MAX, HolderStanding};
use crate::places::offers::{EndFault, LIFE_MAX, check_end};

/// Gas of an offer on top of its slots: about what a native transaction costs, for the batches that it takes part in.
const REST_GAS: u64 = 21_000;
/// Gas of the end of an offer, which its removal costs in a later block: what a native transaction pays for it.
const END_GAS: u64 = 21_000;
const SETTLEMENT_CONTEXT: &str = "walras 2026 settlement of a height v1";

/// A running call of the offers.
pub(super) struct Offers<'c, 'a, S: EvmState, A: Access>(pub Call<'c, 'a, S, A>);

/// Functions.
static FUNCTIONS: LazyLock<[[u8; 4]; 8]> = LazyLock::new(|| {
    [
        "place(address,address,uint64,uint64)",
        "cancel(bytes32)",
        "amountOf(address,bytes32)",
        "placedBy(address)",
        "valuation(address)",
        "rate(address,address)",
        "place(address,address,uint64,uint64,uint64)",
        "cancel(bytes32[])",
    ]
    .map(|function| keccak256(function)[..4].try_into().expect("four bytes"))
});

static PLACED_EVENT: LazyLock<B256> =
    LazyLock::new(|| keccak256("Placed(address,bytes32,address,address,uint64,uint64)"));
static CANCELLED_EVENT: LazyLock<B256> = LazyLock::new(|| keccak256("Cancelled(address,bytes32,uint64)"));
static ENDS_EVENT: LazyLock<B256> = LazyLock::new(|| keccak256("Ends(address,bytes32,uint64)"));
static ENDED_EVENT: LazyLock<B256> = LazyLock::new(|| keccak256("Ended(address,bytes32,uint64)"));
static FILLED_EVENT: LazyLock<B256> =
    LazyLock::new(|| keccak256("Filled(address,bytes32,uint64,uint64,uint64,uint64)"));

/// An error of the offers, with its arguments.
fn error(signature: &str, arguments: &[U256]) -> CallFault {
    let words = arguments.iter().flat_map(U256::to_be_bytes::<32>);
    CallFault::Reverts(keccak256(signature)[..4].iter().copied().chain(words).collect())
}

fn unknown(named: &[u8; 32]) -> CallFault {
    error("UnknownOffer(bytes32)", &[U256::from_be_bytes(*named)])
}

fn amount_of(value: U256) -> Called<Amount> {
    let amount = Amount::try_from(value).ok().filter(|amount| *amount <= MAX_ISSUED);
    amount.ok_or_else(|| error("AmountTooLarge(uint256)", &[value]))
}

impl<S: EvmState, A: Access> Offers<'_, '_, S, A> {
    pub fn answer(mut self, input: &[u8]) -> Called<Vec<u8>> {
        // A refused caller pays for reading the error's name.
        self.0.pay(READ_GAS)?;
        let inputs = self.0.inputs;
        if inputs.bytecode_address != inputs.target_address {
            return Err(error("CalledByDelegation()", &[]));
        }
        if inputs.transfers_value() {
            return Err(error("TakesNoValue()", &[]));
        }
        let (selector, rest) = input.split_at_checked(4).ok_or_else(|| error("UnknownFunction()", &[]))?;
        let of = Arguments(rest);
        match FUNCTIONS.iter().position(|known| known == selector) {
            Some(0 | 1 | 6 | 7) if inputs.is_static => Err(error("StaticCall()", &[])),
            Some(0) => self.place(&of, NO_END),
            Some(1) => self.cancel(&of),
            Some(2) => self.amount(&of),
            Some(3) => Ok(number(self.0.read(count_slot(&of.address(0)?))?)),
            Some(4) => self.valuation(&of),
            Some(5) => self.rate(&of),
            Some(6) => {
                // Zero is no end; a height that no number holds is too far.
                let until = of.number(4)?.saturating_to::<Height>().min(NO_END - 1);
                self.place(&of, if until == 0 { NO_END } else { until })
            }
            Some(_) => self.cancel_all(&of),
            None => Err(error("UnknownFunction()", &[])),
        }
    }

    /// The asset of the token that an argument names.
    fn asset(&mut self, of: &Arguments, at: usize) -> Called<(AssetId, TokenFacts)> {
        self.0.pay(READ_GAS)?;
        let token = of.address(at)?;
        let reader = self.0.context.db();
        let facts = asset_at(&token).and_then(|asset| Some((asset, reader.state.token(reader.space, asset)?)));
        facts.ok_or_else(|| error("UnknownAsset(address)", &[token.into_word().into()]))
    }

    /// Places an offer that ends with the block of a height, or [`NO_END`].
    fn place(&mut self, of: &Arguments, until: Height) -> Called<Vec<u8>> {
        let owner = self.0.inputs.caller;
        let ((sell, selling), (buy, buying)) = (self.asset(of, 0)?, self.asset(of, 1)?);
        let (amount, asks) = (amount_of(of.number(2)?)?, amount_of(of.number(3)?)?);
        if sell == buy {
            return Err(error("SameAsset()", &[]));
        }
        let (pair, minima) = (Pair { sell, buy }, Minima { sell: selling.least_units, buy: buying.least_units });
        let (sells, asks_too) = ("SellsTooLittle(uint64)", "AsksTooLittle(uint64)");
        let too_small = |small: TooSmall| match small {
            TooSmall::Sells => error(sells, &[U256::from(minima.sell)]),
            TooSmall::Asks => error(asks_too, &[U256::from(minima.buy)]),
        };
        // An offer that asks for nothing or sells nothing has no price.
        let limit = Price::ratio_rounding_up(asks, amount);
        let limit =
            limit.ok_or_else(|| too_small(if amount < minima.sell { TooSmall::Sells } else { TooSmall::Asks }))?;
        minima.check(amount, limit).map_err(too_small)?;
        self.check_holder(of, 0, sell, &selling)?;
        self.check_holder(of, 1, buy, &buying)?;
        self.check_closing(of, until, [selling.closes, buying.closes])?;
        self.check_room(pair, &selling, &buying)?;
        if until != NO_END {
            self.check_end(until)?;
        }
        self.0.pay(REST_GAS)?;
        self.debit(sell, amount)?;
        let count = self.0.read(count_slot(&owner))?;
        let placed = u64::try_from(count).expect("it is counted up from zero");
        self.0.write(count_slot(&owner), count, U256::from(placed + 1))?;
        let name = OfferName { pair, limit, id: FIRST_CONTRACT_OFFER + placed };
        let edit = BookEdit { pair, limit, amount, is_placed: true, until };
        self.0.write(edit_slot(&owner, name.id), U256::ZERO, edit.to_word())?;
        let data = [
            number(of.address(0)?.into_word().into()),
            number(of.address(1)?.into_word().into()),
            word(amount),
            word(asks),
        ];
        let name = B256::new(name.to_word());
        self.0.log(vec![*PLACED_EVENT, owner.into_word(), name], data.concat())?;
        if until != NO_END {
            self.0.log(vec![*ENDS_EVENT, owner.into_word(), name], word(until))?;
        }
        Ok(name.to_vec())
    }

    /// Whether an offer may end with the block of a height. Its first batch is that of the next one.
    fn check_end(&mut self, until: Height) -> Called<()> {
        self.0.pay(READ_GAS + END_GAS)?;
        let first = self.first_batch();
        let reader = self.0.context.db();
        let ending = |height| reader.state.ending_at(reader.space, height);
        check_end(until, first, ending).map_err(|fault| match fault {
            EndFault::Past => error("LifeEnded(uint64)", &[U256::from(first)]),
            EndFault::TooFar => error("LifeTooLong(uint64)", &[U256::from(first.saturating_add(LIFE_MAX))]),
            EndFault::Crowded => error("EndsCrowded(uint64)", &[U256::from(until)]),
        })
    }

    /// Whether the issuer of an asset, whose token is an argument, lets the caller place an offer of it.
    fn check_holder(&mut self, of: &Arguments, at: usize, asset: AssetId, facts: &TokenFacts) -> Called<()> {
        let owner = self.0.inputs.caller;
        let HolderFacts { standing, offers } = self.0.holder(asset, facts, owner)?;
        let why = match standing {
            HolderStanding::Open if offers < HELD_OFFERS_MAX => return Ok(()),
            HolderStanding::Open => "ControlledOffersFull(address)",
            HolderStanding::Frozen => "HolderFrozen(address)",
            HolderStanding::NotAdmitted => "HolderNotAdmitted(address)",
        };
        Err(error(why, &[of.address(at)?.into_word().into()]))
    }

    /// Whether an offer that ends with the block of a height, or [`NO_END`], ends before its assets close.
    fn check_closing(&mut self, of: &Arguments, until: Height, closes: [Option<Height>; 2]) -> Called<()> {
        let first = self.first_batch();
        for (at, last) in closes.into_iter().enumerate().filter_map(|(at, last)| Some((at, last?))) {
            if first > last {
                return Err(error("AssetClosed(address)", &[of.address(at)?.into_word().into()]));
            }
            if until > last {
                return Err(error("OutlivesAsset(uint64)", &[U256::from(last)]));
            }
        }
        Ok(())
    }

    /// The height of the first batch that an offer takes part in.
    fn first_batch(&self) -> Height {
        self.0.context.block().number().saturating_to::<Height>().saturating_add(1)
    }

    /// Whether the book takes one more offer of a pair.
    fn check_room(&mut self, pair: Pair, selling: &TokenFacts, buying: &TokenFacts) -> Called<()> {
        self.0.pay(READ_GAS)?;
        let (state, space) = (self.0.context.db().state, self.0.context.db().space);
        let facts = state.book(space);
        if facts.is_full {
            return Err(error("BookFull()", &[]));
        }
        if selling.is_crowded {
            return Err(error("ListedOffersFull()", &[]));
        }
        if state.is_open(space, pair) {
            return Ok(());
        }
        let of_one = [(pair.sell, selling.pairs_left), (pair.buy, buying.pairs_left)];
        let listed = of_one.iter().any(|(_, left)| left.is_some()).then_some(facts.listed_pairs_left);
        let rooms = [("TooManyPairs()", OpenedOf::All, facts.pairs_left.map(u64::from))];
        let rooms = rooms.into_iter().chain([("ListedPairsFull()", OpenedOf::Listed, listed)]);
        let rooms = rooms.chain(of_one.map(|(asset, left)| ("ListedPairsFull()", OpenedOf::Asset(asset), left)));
        let rooms: Vec<_> = rooms.filter_map(|(full, of, left)| Some((full, of.slot(), left?))).collect();
        let slot = tagged(OPENED, &[0; 20], pair_bytes(pair));
        if rooms.is_empty() || !self.0.read(slot)?.is_zero() {
            return Ok(());
        }
        let mut counts = Vec::with_capacity(rooms.len());
        for (full, count, left) in rooms {
            let opened = self.0.read(count)?;
            if opened >= U256::from(left) {
                return Err(error(full, &[]));
            }
            counts.push((count, opened));
        }
        self.0.write(slot, U256::ZERO, U256::from(1))?;
        counts.into_iter().try_for_each(|(count, opened)| self.0.write(count, opened, opened + U256::from(1)))
    }

    fn debit(&mut self, asset: AssetId, amount: Amount) -> Called<()> {
        let owner = self.0.inputs.caller;
        let held = self.0.units(asset, owner)?;
        let units = U256::from(amount);
        let left =
            held.checked_sub(units).ok_or_else(|| error("InsufficientBalance(uint256,uint64)", &[held, units]))?;
        self.0.set_units(asset, owner, held, left)
    }

    fn cancel(&mut self, of: &Arguments) -> Called<Vec<u8>> {
        let named = of.word(0)?;
        match self.cancel_one(&named)? {
            0 => Err(unknown(&named)),
            returned => Ok(word(returned)),
        }
    }

    /// Cancels those offers of a list that rest, at least one; returns what came back of each.
    fn cancel_all(&mut self, of: &Arguments) -> Called<Vec<u8>> {
        let most = U256::from(CANCELS_MAX);
        let named = self.0.paid_list(of, CANCELS_MAX)?;
        let named = named.map_err(|length| error("TooManyOffers(uint256,uint256)", &[length, most]))?;
        let first = named.first().ok_or_else(|| error("NoOffers()", &[]))?;
        let is_new = |(at, name): (usize, &[u8; 32])| !named[..at].contains(name);
        if let Some((_, twice)) = named.iter().enumerate().find(|one| !is_new(*one)) {
            return Err(error("NamedTwice(bytes32)", &[U256::from_be_bytes(*twice)]));
        }
        let returned = named.iter().map(|name| self.cancel_one(name)).collect::<Called<Vec<Amount>>>()?;
        if returned.iter().all(|units| *units == 0) {
            return Err(unknown(first));
        }
        let head = [word(32), word(returned.len() as u64)];
        Ok(head.into_iter().chain(returned.into_iter().map(word)).flatten().collect())
    }

    /// Gives back what an offer of the caller's locks; nothing if it does not rest.
    fn cancel_one(&mut self, named: &[u8; 32]) -> Called<Amount> {
        let owner = self.0.inputs.caller;
        let Some(name) = OfferName::of_word(named) else { return Ok(0) };
        let slot = edit_slot(&owner, name.id);
        let (before, amount) = (self.0.read(slot)?, self.resting(&owner, &name)?);
        if amount == 0 {
            return Ok(0);
        }
        // An offer that was placed in this block never rests.
        let OfferName { pair, limit, .. } = name;
        let after = match before.is_zero() {
            true => BookEdit { pair, limit, amount, is_placed: false, until: NO_END }.to_word(),
            false => U256::ZERO,
        };
        self.0.write(slot, before, after)?;
        let held = self.0.units(pair.sell, owner)?;
        self.0.set_units(pair.sell, owner, held, held + U256::from(amount))?;
        self.0.log(vec![*CANCELLED_EVENT, owner.into_word(), B256::new(*named)], word(amount))?;
        Ok(amount)
    }

    /// Units that an offer has for sale at this point of the block.
    fn resting(&mut self, owner: &Address, name: &OfferName) -> Called<Amount> {
        let edit = self.0.read(edit_slot(owner, name.id))?;
        if let Some(edit) = BookEdit::of_word(edit) {
            let is_it = edit.is_placed && (edit.pair, edit.limit) == (name.pair, name.limit);
            return Ok(if is_it { edit.amount } else { 0 });
        }
        self.0.pay(READ_GAS)?;
        let reader = self.0.context.db();
        let place = name.place(&plain_address(owner));
        Ok(reader.state.resting(reader.space, name.pair, &place).unwrap_or(0))
    }

    fn amount(&mut self, of: &Arguments) -> Called<Vec<u8>> {
        let (owner, name) = (of.address(0)?, OfferName::of_word(&of.word(1)?));
        name.map_or(Ok(0), |name| self.resting(&owner, &name)).map(word)
    }

    /// A valuation of the batch of this block, times 10^34, and the height.
    fn valuation(&mut self, of: &Arguments) -> Called<Vec<u8>> {
        let (_, facts) = self.asset(of, 0)?;
        Ok([number(scaled(facts.valuation)), self.height()].concat())
    }

    /// Units of one asset for 10^18 units of another, by the batch of this block, rounded down, and the height.
    fn rate(&mut self, of: &Arguments) -> Called<Vec<u8>> {
        let ((_, selling), (_, buying)) = (self.asset(of, 0)?, self.asset(of, 1)?);
        let (sell, buy) = (scaled(selling.valuation), scaled(buying.valuation));
        let one = U256::from(10u64.pow(18));
        Ok([number((sell * one).checked_div(buy).unwrap_or_default()), self.height()].concat())
    }

    fn height(&self) -> Vec<u8> {
        number(self.0.context.block().number())
    }
}

/// A price times 10^34, exactly; zero if there is no price.
fn scaled(price: Option<Price>) -> U256 {
    let of = |price: Price| U256::from(price.mantissa()) * U256::from(10).pow(U256::from(price.exponent() + 34));
    price.map_or(U256::ZERO, of)
}

/// What a log of the offers reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferEvent {
    /// An offer of this many units rests from the end of the block on, unless it is cancelled before.
    Placed(Pair, Place, Amount),
    /// An offer was cancelled, and this many units were returned.
    Cancelled(Pair, Place, Amount),
}

impl OfferEvent {
    /// What contracts did to offers in a block, in order.
    pub fn of_block(contracts: &ContractReceipts) -> impl Iterator<Item = OfferEvent> + '_ {
        contracts.receipts.iter().flat_map(|receipt| &receipt.logs).filter_map(OfferEvent::of)
    }

    /// What a log reports; `None` for other logs. No other contract logs at the address of the offers.
    pub fn of(log: &EthereumLog) -> Option<OfferEvent> {
        let [event, owner, name] = &log.topics[..] else { return None };
        if log.address != OFFERS {
            return None;
        }
        let (name, owner) = (OfferName::of_word(name)?, primitives::Address(owner[12..].try_into().ok()?));
        let amount = |at: usize| log.data.get(at..at + 8).map(|bytes| u64::from_be_bytes(bytes.try_into().expect("8")));
        match B256::new(*event) {
            event if event == *PLACED_EVENT => Some(OfferEvent::Placed(name.pair, name.place(&owner), amount(88)?)),
            event if event == *CANCELLED_EVENT => {
                Some(OfferEvent::Cancelled(name.pair, name.place(&owner), amount(24)?))
            }
            _ => None,
        }
    }
}

/// The settlement receipt of a height: the part of its batch that concerns offers placed by contracts, fills and offers
/// that ended after the batch; `None` if there is none. Its id is made of the height and the digest of the block
/// before, so that it does not depend on the order of transactions.
pub(crate) fn settlement(height: Height, parent: &Digest, batch: &Batch) -> Option<EthereumReceipt> {
    let log = |event: B256, pair: Pair, place: &Place, data: Vec<u8>| {
        let (owner, name) = (evm_address(&place.account), OfferName { pair, limit: place.limit, id: place.id });
        EthereumLog { address: OFFERS, topics: vec![event.0, owner.into_word().0, name.to_word()], data }
    };
    let filled = |fill: &Fill| {
        let data = [fill.sold, fill.bought, fill.left, fill.returned].map(word).concat();
        log(*FILLED_EVENT, fill.pair, &fill.place, data)
    };
    let ended = |ended: &EndedOffer| log(*ENDED_EVENT, ended.pair, &ended.place, word(ended.returned));
    let is_own = |place: &Place| place.id >= FIRST_CONTRACT_OFFER;
    let fills = batch.fills.iter().filter(|fill| is_own(&fill.place)).map(filled);
    let over = batch.ended.iter().filter(|ended| ended.why.is_after_batch() && is_own(&ended.place));
    let logs: Vec<EthereumLog> = fills.chain(over.map(ended)).collect();
    let said = [&height.to_le_bytes()[..], &parent.0].concat();
    (!logs.is_empty()).then(|| EthereumReceipt {
        id: Digest::of(SETTLEMENT_CONTEXT, &said),
        position: None,
        sender: OFFERS,
        status: EvmStatus::Succeeded,
        gas_used: 0,
        gas_price: 0,
        contract: None,
        logs,
    })
}
