//! The tables of `walras export` about native operations: orders with their lives and names, what became of them, which
//! offers rest, and what accounts paid and received, with references.

use std::path::Path;

use ledger::{BlockReceipts, ExactOutcome, FillReason, Ledger, NO_END, Outcome, Traded};
use primitives::{Address, Amount, AssetId, ClientId, Digest, Life, Operation, Sequence, Superblock};

use readers::history::{ActedTransaction, TransferRow, acted, transfers_of};

use super::cells::{AssetCells, TIME};
use crate::files::parquet_files::{Cell, Table};

pub const ORDERS: [&str; 21] = [
    "required int64 height",
    TIME,
    "required binary transaction (STRING)",
    "required binary account (STRING)",
    "required int64 offer (INTEGER(64,false))",
    "optional int64 replaces (INTEGER(64,false))",
    "required binary sell (STRING)",
    "required binary buy (STRING)",
    "required int64 amount",
    "required binary min_price (STRING)",
    "required binary life (STRING)",
    "optional int64 until (INTEGER(64,false))",
    "optional binary client (STRING)",
    "required binary outcome (STRING)",
    "required int64 sold",
    "required int64 bought",
    "required int64 left",
    "required int64 returned",
    "required int64 sell_decimals",
    "required int64 buy_decimals",
    "optional binary sealed_by (STRING)",
];
pub const EXACTS: [&str; 18] = [
    "required int64 height",
    TIME,
    "required binary transaction (STRING)",
    "required binary account (STRING)",
    "required int64 order (INTEGER(64,false))",
    "required binary sell (STRING)",
    "required binary buy (STRING)",
    "required binary side (STRING)",
    "required int64 units",
    "required int64 bound",
    "optional binary client (STRING)",
    "required binary outcome (STRING)",
    "required int64 sold",
    "required int64 bought",
    "required int64 returned",
    "required int64 sell_decimals",
    "required int64 buy_decimals",
    "optional binary sealed_by (STRING)",
];
pub const ENDED: [&str; 10] = [
    "required int64 height",
    TIME,
    "required binary sell (STRING)",
    "required binary buy (STRING)",
    "required binary account (STRING)",
    "required int64 offer (INTEGER(64,false))",
    "required binary min_price (STRING)",
    "required int64 returned",
    "required binary why (STRING)",
    "required int64 sell_decimals",
];
const TRANSFERS: [&str; 12] = [
    "required int64 height",
    TIME,
    "required binary transaction (STRING)",
    "required binary account (STRING)",
    "required binary kind (STRING)",
    "required boolean received",
    "required binary asset (STRING)",
    "required int64 amount",
    "optional binary counterparty (STRING)",
    "optional binary reference_kind (STRING)",
    "optional binary reference (STRING)",
    "required int64 decimals",
];
const OFFERS: [&str; 9] = [
    "required int64 height",
    "required binary sell (STRING)",
    "required binary buy (STRING)",
    "required binary account (STRING)",
    "required int64 offer (INTEGER(64,false))",
    "required int64 amount",
    "required binary min_price (STRING)",
    "optional int64 until (INTEGER(64,false))",
    "required int64 sell_decimals",
];

/// The tables of a day about native operations.
pub struct OperationTables {
    orders: Table,
    exacts: Table,
    ended: Table,
    transfers: Table,
}

impl OperationTables {
    /// Begins the files; `file` has the path of a table's.
    pub fn create(file: impl Fn(&str) -> std::path::PathBuf) -> anyhow::Result<OperationTables> {
        Ok(OperationTables {
            orders: Table::create(&file("orders"), &ORDERS)?,
            exacts: Table::create(&file("exacts"), &EXACTS)?,
            ended: Table::create(&file("ended"), &ENDED)?,
            transfers: Table::create(&file("transfers"), &TRANSFERS)?,
        })
    }

    /// The tables with their names.
    pub fn named(self) -> [(&'static str, Table); 4] {
        [("orders", self.orders), ("exacts", self.exacts), ("ended", self.ended), ("transfers", self.transfers)]
    }

    /// The orders of a block, each with the outcome that counts of its id, the transfers that took effect, and the
    /// offers that left the book in it.
    pub fn write(
        &mut self,
        network: &Digest,
        block: &Superblock,
        receipts: &BlockReceipts,
        assets: &AssetCells,
    ) -> anyhow::Result<()> {
        let enclosed = ledger::enclosed(network, block, &receipts.outcomes);
        for (_, of) in acted(block, receipts, &enclosed) {
            let row = Row { block, of: &of, assets };
            if of.outcome == Outcome::Applied {
                let moved = transfers_of(of.body, of.id, block.time_ms);
                moved.iter().try_for_each(|(account, moved)| self.transfers.push(row.transfer(account, moved)))?;
            }
            match &of.body.operation {
                &Operation::CreateOffer { sell, buy, amount, ref limit, life, client } => {
                    let limit = limit.to_string();
                    self.orders.push(row.order(Asks { sell, buy, amount, limit, life, client, replaces: None }))?;
                }
                Operation::Replace(replace) => {
                    let (sell, buy, replaces) = (replace.old.sell, replace.old.buy, Some(replace.old.offer));
                    let (amount, limit) = (replace.amount, replace.limit.to_string());
                    let (life, client) = (replace.life, replace.client);
                    self.orders.push(row.order(Asks { sell, buy, amount, limit, life, client, replaces }))?;
                }
                Operation::Exact { .. } => self.exacts.push(row.exact())?,
                _ => {}
            }
        }
        for ended in &receipts.batch.ended {
            self.ended.push([
                block.height.into(),
                block.time_ms.into(),
                assets.symbol(ended.pair.sell),
                assets.symbol(ended.pair.buy),
                Cell::Text(ended.place.account.to_string()),
                ended.place.id.into(),
                Cell::Text(ended.place.limit.to_string()),
                ended.returned.into(),
                Cell::Text(ended.why.name().into()),
                assets.decimals(ended.pair.sell),
            ])?;
        }
        Ok(())
    }
}

/// What an order to place an offer asks for.
struct Asks {
    sell: AssetId,
    buy: AssetId,
    amount: Amount,
    limit: String,
    life: Life,
    client: ClientId,
    replaces: Option<Sequence>,
}

/// A transaction of a block with its outcome.
struct Row<'a> {
    block: &'a Superblock,
    of: &'a ActedTransaction<'a>,
    assets: &'a AssetCells,
}

impl Row<'_> {
    fn begin(&self) -> [Cell; 5] {
        [
            self.block.height.into(),
            self.block.time_ms.into(),
            Cell::Text(self.of.id.to_string()),
            Cell::Text(self.of.body.account.to_string()),
            self.of.body.sequence.into(),
        ]
    }

    fn sealed_by(&self) -> Cell {
        Cell::Maybe(self.of.sealed_by.map(|id| id.to_string()))
    }

    fn order(&self, asks: Asks) -> [Cell; 21] {
        let (outcome, met) = match &self.of.outcome {
            Outcome::Offered(met) => ("placed", *met),
            Outcome::Replaced(replaced) => ("replaced", replaced.met),
            other => (other.refusal().map_or("superseded", |refusal| refusal.code()), NOTHING),
        };
        let [height, time, transaction, account, number] = self.begin();
        let until = if let Life::Until(until) = asks.life { Some(until) } else { None };
        let life = match asks.life {
            Life::Rests => "rests",
            Life::Until(_) => "until",
            Life::OneBatch => "one batch",
        };
        [
            height,
            time,
            transaction,
            account,
            number,
            Cell::MaybeCount(asks.replaces),
            self.assets.symbol(asks.sell),
            self.assets.symbol(asks.buy),
            asks.amount.into(),
            Cell::Text(asks.limit),
            Cell::Text(life.into()),
            Cell::MaybeCount(until),
            named(asks.client),
            Cell::Text(outcome.into()),
            met.sold.into(),
            met.bought.into(),
            met.left.into(),
            met.returned.into(),
            self.assets.decimals(asks.sell),
            self.assets.decimals(asks.buy),
            self.sealed_by(),
        ]
    }

    fn transfer(&self, account: &Address, moved: &TransferRow) -> [Cell; 12] {
        let [height, time, transaction, ..] = self.begin();
        let reference = moved.reference.as_ref();
        [
            height,
            time,
            transaction,
            Cell::Text(account.to_string()),
            Cell::Text(moved.kind.name().into()),
            Cell::Flag(moved.received),
            self.assets.symbol(moved.asset),
            moved.amount.into(),
            Cell::Maybe(moved.with.map(|other| other.to_string())),
            Cell::Maybe(reference.map(|reference| reference.kind.name().into())),
            Cell::Maybe(reference.map(|reference| reference.to_string())),
            self.assets.decimals(moved.asset),
        ]
    }

    fn exact(&self) -> [Cell; 18] {
        let Operation::Exact { sell, buy, side, units, bound, client } = self.of.body.operation else {
            unreachable!("only exact orders are asked for");
        };
        let (outcome, (sold, bought, returned)) = match &self.of.outcome {
            Outcome::Exact(ExactOutcome { sold, bought, returned, why }) => (why.name(), (*sold, *bought, *returned)),
            other => (other.refusal().map_or("superseded", |refusal| refusal.code()), (0, 0, 0)),
        };
        let [height, time, transaction, account, number] = self.begin();
        [
            height,
            time,
            transaction,
            account,
            number,
            self.assets.symbol(sell),
            self.assets.symbol(buy),
            Cell::Text(side.name().into()),
            units.into(),
            bound.into(),
            named(client),
            Cell::Text(outcome.into()),
            sold.into(),
            bought.into(),
            returned.into(),
            self.assets.decimals(sell),
            self.assets.decimals(buy),
            self.sealed_by(),
        ]
    }
}

/// What a refused order moved.
const NOTHING: Traded = Traded { sold: 0, bought: 0, left: 0, returned: 0, why: FillReason::NotTaken };

fn named(client: ClientId) -> Cell {
    Cell::Maybe((client != ClientId::NONE).then(|| client.to_string()))
}

/// Writes the offers that rest; returns the number of rows.
pub fn write_offers(ledger: &Ledger, assets: &AssetCells, path: &Path) -> anyhow::Result<u64> {
    let mut table = Table::create(path, &OFFERS)?;
    for (pair, offers) in ledger.book().iter() {
        for offer in offers.iter() {
            table.push([
                ledger.height().into(),
                assets.symbol(pair.sell),
                assets.symbol(pair.buy),
                Cell::Text(offer.place.account.to_string()),
                offer.place.id.into(),
                offer.amount.into(),
                Cell::Text(offer.place.limit.to_string()),
                Cell::MaybeCount((offer.until != NO_END).then_some(offer.until)),
                assets.decimals(pair.sell),
            ])?;
        }
    }
    let rows = table.count;
    table.finish()?;
    Ok(rows)
}
