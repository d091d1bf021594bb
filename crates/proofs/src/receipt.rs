//! What a block did: per transaction, per offer and per asset.

use std::io::{Error, ErrorKind, Read, Result, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use primitives::{Address, Amount, AssetId, Digest, Height, Price, TransactionId, read_format, write_format};

use crate::ethereum_receipt::ContractReceipts;
use crate::exact::{ExactOutcome, ExactTrade};
use crate::fill::{EndedOffer, Fill};
use crate::offer::Pair;
use crate::pool::{PoolFill, Pooled};
use crate::refusal::Refusal;
use crate::settles::SettledFills;

/// The outcome of one transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Outcome {
    /// It took effect.
    Applied,
    /// It placed an offer, which was part of this block's batch.
    Offered(Traded),
    /// It had no effect, and its sequence number is still free.
    Refused(Refusal),
    /// It paid its fee, its sequence number is used, and it did nothing else. Another replacement or a cancel of the
    /// offer counted, or another operation at the venue. Or the settle was not the next one, or the venue's bond was
    /// too low for it. Or another opening of the pool counted, or pools with lower keys took the last places, or
    /// another word of the issuer about the end of the asset counted.
    Void,
    /// It cancelled the offers that it names and that rested before the block; the batch lists each of them as ended.
    Cancelled(Cancelled),
    /// It replaced an offer, which the batch lists as ended.
    Replaced(Replaced),
    /// It opened a pool, provided to it or left it.
    Pooled(Pooled),
    /// It was an exact order in the batch of this block.
    Exact(ExactOutcome),
    /// It listed an asset, which has this number for ever.
    Listed(AssetId),
    /// It was an envelope that this block opened.
    Sealed(SealedFate),
}

/// What became of an envelope that a block opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum SealedFate {
    /// It paid, and held so many operations. Each has its own outcome behind those of the block's transactions.
    Opened(u8),
    /// It paid, and what it held is no list of signed operations.
    Garbage,
    /// It is open, and nothing in it counts, since its payer did not pay for this reason. Its name is used up, and the
    /// number is free.
    Unpaid(Refusal),
}

/// What a replacement found and did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Replaced {
    /// Units that rested of the old offer.
    pub remained: Amount,
    /// How the new offer was executed in the batch of the block.
    pub met: Traded,
}

/// What a cancel found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Cancelled {
    /// Offers that it names and that rested, at least 1.
    pub found: u8,
    /// Offers that it names and that did not rest: they had traded or ended.
    pub missing: u8,
}

/// How an offer was executed in the batch of the block that placed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Traded {
    /// Units sold.
    pub sold: Amount,
    /// Units received, net of commission.
    pub bought: Amount,
    /// Units that rest in the book.
    pub left: Amount,
    /// Units returned to the account: they are too few for an offer, or it ended with its own block.
    pub returned: Amount,
    /// Why it sold this much.
    pub why: FillReason,
}

/// Why an offer sold all, some or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum FillReason {
    /// The rate is better than the limit: sold in full.
    Filled,
    /// The rate is at the limit, within μ, and the market took part of the offer.
    Part,
    /// The rate is at the limit, within μ, and the market took nothing of the offer.
    AtTheMargin,
    /// The rate, net of commission, is worse than the limit.
    AboveTheRate,
    /// The rate is better than the limit, but it is not after rounding to whole units.
    Rounding,
    /// The rate is better than the limit by more than μ, but the market could not take more: the batch names the group
    /// of the pair as not full.
    NotTaken,
    /// Of a replacement: too little was left to place, and everything went back.
    NotPlaced,
}

impl Traded {
    /// Of a replacement that placed nothing.
    pub const NOT_PLACED: Traded = Traded { sold: 0, bought: 0, left: 0, returned: 0, why: FillReason::NotPlaced };
}

/// What one pair traded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PairTrade {
    /// The pair.
    pub pair: Pair,
    /// Units sold by its offers.
    pub sold: Amount,
    /// Units paid to them, net of commission.
    pub bought: Amount,
}

/// The batch of a block: one valuation per asset, and what traded at it.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Batch {
    /// Valuation of each asset, by number; empty where nothing was for sale.
    pub valuations: Vec<Price>,
    /// The pairs that traded, in order.
    pub trades: Vec<PairTrade>,
    /// Every fill, by pair and place.
    pub fills: Vec<Fill>,
    /// What pools traded, by pool.
    pub pools: Vec<PoolFill>,
    /// Exact orders that were filled, in the order in which they were tried.
    pub exacts: Vec<ExactTrade>,
    /// Every offer that left the book otherwise than by trading, by pair and place.
    pub ended: Vec<EndedOffer>,
    /// The groups of assets that are not full: some offer or pool there trades less than it must, an offer whose limit
    /// is better than the rate by more than μ. Each group is named by its lowest asset, in order.
    pub short: Vec<AssetId>,
    /// Units burnt of each asset: commission, rounding and fees; only assets with a nonzero amount.
    pub burnt: Vec<(AssetId, Amount)>,
}

/// The version of the encoding of receipts without settles of venues.
const RECEIPTS_FORMAT: u8 = 10;
/// The version of the encoding of receipts with such settles, which follow at the end.
const VENUE_RECEIPTS_FORMAT: u8 = 11;

/// The receipts of a block as archived; their encoding begins with the version of its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockReceipts {
    /// Height of the block.
    pub height: Height,
    /// Digest of the block.
    pub block: Digest,
    /// Each transaction's id and outcome, in the order of the block, and behind them those of the operations in its
    /// envelopes, by their sealed ids and in the order of the envelopes. An id may be here more than once;
    /// [`outcomes_by_id`] has the one outcome of each id.
    pub outcomes: Vec<(TransactionId, Outcome)>,
    /// Accounts that the block changed, by address.
    pub modified: Vec<Address>,
    /// The batch.
    pub batch: Batch,
    /// The results of Ethereum transactions.
    pub contracts: ContractReceipts,
    /// The settles of venues that counted, with the verdicts of their fills.
    pub venues: Vec<SettledFills>,
}

impl BorshSerialize for BlockReceipts {
    fn serialize<W: Write>(&self, writer: &mut W) -> Result<()> {
        let has_settles = !self.venues.is_empty();
        write_format(writer, if has_settles { VENUE_RECEIPTS_FORMAT } else { RECEIPTS_FORMAT })?;
        (self.height, self.block).serialize(writer)?;
        (&self.outcomes, &self.modified, &self.batch, &self.contracts).serialize(writer)?;
        if has_settles { self.venues.serialize(writer) } else { Ok(()) }
    }
}

impl BorshDeserialize for BlockReceipts {
    fn deserialize_reader<R: Read>(reader: &mut R) -> Result<BlockReceipts> {
        let mut format = [0];
        reader.read_exact(&mut format)?;
        if format != [VENUE_RECEIPTS_FORMAT] {
            read_format(&mut &format[..], "receipts", RECEIPTS_FORMAT)?;
        }
        let (height, block, outcomes, modified, batch, contracts) = BorshDeserialize::deserialize_reader(reader)?;
        let mut venues = Vec::new();
        if format == [VENUE_RECEIPTS_FORMAT] {
            venues = BorshDeserialize::deserialize_reader(reader)?;
            if venues.is_empty() {
                return Err(Error::new(
                    ErrorKind::InvalidData,
                    "receipts without settles are written without their list",
                ));
            }
        }
        Ok(BlockReceipts { height, block, outcomes, modified, batch, contracts, venues })
    }
}

impl Outcome {
    /// The refusal, if the transaction had no effect.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Outcome::Refused(refusal) => Some(*refusal),
            _ => None,
        }
    }

    /// What became of an order for an exact amount.
    pub fn exact(&self) -> Option<&ExactOutcome> {
        match self {
            Outcome::Exact(exact) => Some(exact),
            _ => None,
        }
    }

    /// The rank of this outcome among those of one id: effects first, then refusals by number, and last those of
    /// copies. `None` for an invalid signature: its author had nothing from the signer, so the copy does not count
    /// under the id.
    fn rank(&self) -> Option<(u8, Option<Refusal>)> {
        match self.refusal() {
            None => Some((0, None)),
            Some(Refusal::BAD_SIGNATURE) => None,
            Some(Refusal::DUPLICATE) => Some((2, None)),
            Some(refusal) => Some((1, Some(refusal))),
        }
    }
}

/// The one outcome of each transaction of a block, by id. Of several outcomes under one id an effect counts,
/// otherwise the refusal with the lowest number; copies with an invalid signature do not count under the id.
pub fn outcomes_by_id(outcomes: impl IntoIterator<Item = (TransactionId, Outcome)>) -> Vec<(TransactionId, Outcome)> {
    let ranked = outcomes.into_iter().filter_map(|(id, outcome)| Some((id, outcome.rank()?, outcome)));
    let mut ranked: Vec<_> = ranked.collect();
    ranked.sort_by_key(|(id, rank, _)| (*id, *rank));
    ranked.dedup_by_key(|(id, _, _)| *id);
    ranked.into_iter().map(|(id, _, outcome)| (id, outcome)).collect()
}

impl Batch {
    /// Whether every offer better than the rate by more than μ was sold in full, in every group.
    pub fn full(&self) -> bool {
        self.short.is_empty()
    }

    /// The fills of one pair.
    pub fn fills_of(&self, pair: Pair) -> &[Fill] {
        let from = self.fills.partition_point(|fill| fill.pair < pair);
        let to = from + self.fills[from..].partition_point(|fill| fill.pair == pair);
        &self.fills[from..to]
    }
}
