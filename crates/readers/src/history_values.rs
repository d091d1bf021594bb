//! What the rows of the history of accounts say.

use std::io::{Read, Result, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use ledger::{EndReason, Fill, Outcome, Pair};
use primitives::{
    Address, Amount, AssetId, ClientId, ExactSide, Height, Life, Price, Reference, Sequence, TransactionId,
};

/// An order: a transaction that places an offer, or an exact order, whatever its outcome.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct OrderRow {
    /// The block's time, milliseconds since 1970.
    pub time_ms: u64,
    /// The transaction.
    pub id: TransactionId,
    /// The account's number of it, which is the offer's id.
    pub sequence: Sequence,
    /// The last height at which it may count.
    pub until: Height,
    /// What it sells and buys.
    pub pair: Pair,
    /// Its limit price.
    pub limit: Price,
    /// Units that it asks to sell.
    pub amount: Amount,
    /// How long it rests.
    pub life: Life,
    /// What its client calls it.
    pub client: ClientId,
    /// The offer whose place it takes.
    pub replaces: Option<Sequence>,
    /// Of an exact order the side, its units, and its bound; it places no offer.
    pub exact: Option<(ExactSide, Amount, Amount)>,
    /// The outcome.
    pub outcome: Outcome,
    /// The envelope that held it. The bytes of a plain order end before.
    #[borsh(serialize_with = "write_tail", deserialize_with = "read_tail")]
    pub sealed_by: Option<TransactionId>,
}

fn write_tail<W: Write>(id: &Option<TransactionId>, to: &mut W) -> Result<()> {
    id.map_or(Ok(()), |id| id.serialize(to))
}

/// The id that the rest of the bytes is, if there is a rest.
fn read_tail<R: Read>(from: &mut R) -> Result<Option<TransactionId>> {
    let mut first = [0];
    if from.read(&mut first)? == 0 {
        return Ok(None);
    }
    TransactionId::deserialize_reader(&mut first.chain(from)).map(Some)
}

/// An execution of an offer or of an exact order. Of the latter the place's limit is that of its order, and what
/// returns is what it locked and did not sell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct FillRow {
    /// The block's time, milliseconds since 1970.
    pub time_ms: u64,
    /// The execution.
    pub fill: Fill,
}

/// What became of an offer in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum OfferChange {
    /// It executed.
    Filled(FillRow),
    /// It left the book otherwise.
    Ended {
        /// The block's time, milliseconds since 1970.
        time_ms: u64,
        /// Units returned.
        returned: Amount,
        /// Why.
        why: EndReason,
    },
}

/// Why units moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum TransferKind {
    /// A payment.
    Payment,
    /// Units that the issuer created.
    Issue,
    /// Units that the issuer destroyed.
    Burn,
    /// Units added to a stake.
    Stake,
    /// Units moved into the payment lane.
    Lane,
    /// Units deposited at a venue, or its bond.
    Venue,
}

impl TransferKind {
    /// Its name in interfaces and tables.
    pub fn name(self) -> &'static str {
        match self {
            TransferKind::Payment => "payment",
            TransferKind::Issue => "issue",
            TransferKind::Burn => "burn",
            TransferKind::Stake => "stake",
            TransferKind::Lane => "lane",
            TransferKind::Venue => "venue",
        }
    }
}

/// Units that left or reached an account.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct TransferRow {
    /// The block's time, milliseconds since 1970.
    pub time_ms: u64,
    /// The transaction.
    pub id: TransactionId,
    /// The asset.
    pub asset: AssetId,
    /// Units.
    pub amount: Amount,
    /// Whether the account received them.
    pub received: bool,
    /// The other account, if there is one.
    pub with: Option<Address>,
    /// Why.
    pub kind: TransferKind,
    /// What for, if its sender said so.
    pub reference: Option<Reference>,
}

/// What an account has of an asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct HeldUnits {
    /// The asset.
    pub asset: AssetId,
    /// Units that it can spend.
    pub available: Amount,
    /// Units that its offers lock; `None` if that was not known at this height.
    pub locked: Option<Amount>,
}

/// What an account has after a block that changed it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct BalanceRow {
    /// The block's time, milliseconds since 1970.
    pub time_ms: u64,
    /// Height of the state that was read: that of the block, or a later one if the index was behind.
    pub state: Height,
    /// The assets that the block may have changed.
    pub held: Vec<HeldUnits>,
}

#[cfg(test)]
mod tests {
    use ledger::Refusal;

    use super::*;

    /// An index that was written before envelopes is read on: only a sealed order has more bytes.
    #[test]
    fn the_bytes_of_a_plain_order_end_before_the_envelope() {
        let plain = OrderRow {
            time_ms: 1,
            id: TransactionId::default(),
            sequence: 2,
            until: 3,
            pair: Pair { sell: AssetId(0), buy: AssetId(1) },
            limit: Price::ONE,
            amount: 4,
            life: Life::Rests,
            client: ClientId::NONE,
            replaces: None,
            exact: None,
            outcome: Outcome::Refused(Refusal::OVERDRAFT),
            sealed_by: None,
        };
        let envelope = TransactionId::of("test", b"an envelope");
        let sealed = OrderRow { sealed_by: Some(envelope), ..plain.clone() };
        let [of_plain, of_sealed] = [&plain, &sealed].map(|row| borsh::to_vec(row).expect("memory"));
        assert_eq!(of_sealed, [&of_plain[..], &envelope.0].concat());
        assert_eq!(borsh::from_slice::<OrderRow>(&of_plain).expect("whole"), plain);
        assert_eq!(borsh::from_slice::<OrderRow>(&of_sealed).expect("whole"), sealed);
        assert!(borsh::from_slice::<OrderRow>(&of_sealed[..of_sealed.len() - 1]).is_err());
        assert!(borsh::from_slice::<OrderRow>(&[&of_sealed[..], &[0]].concat()).is_err());
    }
}
