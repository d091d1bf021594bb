//! Rows as lines of `COPY … FROM STDIN`, text format: columns are separated by tabs, `\N` is null, and a backslash of
//! a `bytea` in hexadecimal or of a reference stands twice. No column has a tab or a line's end.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use ledger::Outcome;
use primitives::{Address, ClientId};
use readers::history::{HistoryPlace, HistoryRow, OfferChange};
use readers::history_entries::{HistoryEntry, read_entry};

use crate::schema::SqlTable;

/// The lines of a block by table.
///
/// # Errors
/// If a row is malformed.
pub fn lines_of(rows: &[HistoryRow]) -> Result<BTreeMap<SqlTable, String>, std::io::Error> {
    let mut lines = BTreeMap::new();
    for row in rows {
        let (account, place, entry) = read_entry(row)?;
        add(&mut lines, &account, place, entry, &row.1);
    }
    Ok(lines)
}

fn add(
    lines: &mut BTreeMap<SqlTable, String>,
    account: &Address,
    place: HistoryPlace,
    entry: HistoryEntry,
    row: &[u8],
) {
    let HistoryPlace { height, position } = place;
    let (account, row) = (bytes(&account.0), bytes(row));
    let mut lines = Lines { lines, account };
    match entry {
        HistoryEntry::Name => {}
        HistoryEntry::Order(order) => {
            let line = lines.begin(SqlTable::Orders).with(height).with(position).with(time(order.time_ms));
            let line = line.with(bytes(&order.id.0)).with(order.sequence).with(order.until);
            let line = line.with(order.pair.sell.0).with(order.pair.buy.0).with(order.limit).with(order.amount);
            let client = Some(order.client).filter(|client| *client != ClientId::NONE);
            let line = line.with(order.life).with_some(client.map(|client| bytes(&client.0)));
            let line = line.with_some(order.replaces).with(outcome(&order.outcome));
            line.with_some(order.sealed_by.map(|id| bytes(&id.0))).end(row);
        }
        HistoryEntry::Fill(fill) => {
            let (time, fill) = (time(fill.time_ms), fill.fill);
            let line = lines.begin(SqlTable::Fills).with(height).with(position).with(time).with(fill.place.id);
            let line = line.with(fill.pair.sell.0).with(fill.pair.buy.0).with(fill.place.limit);
            line.with(fill.sold).with(fill.bought).with(fill.left).with(fill.returned).end(row);
        }
        HistoryEntry::Change(offer, change) => {
            let (time_ms, what) = match change {
                OfferChange::Filled(fill) => (fill.time_ms, "filled"),
                OfferChange::Ended { time_ms, why, .. } => (time_ms, why.name()),
            };
            let line = lines.begin(SqlTable::OfferChanges).with(offer).with(height).with(position).with(time(time_ms));
            line.with(what).end(row);
        }
        HistoryEntry::Transfer(moved) => {
            let line = lines.begin(SqlTable::Transfers).with(height).with(position).with(time(moved.time_ms));
            let line = line.with(bytes(&moved.id.0)).with(moved.kind.name()).with(moved.received);
            let line = line.with(moved.asset.0).with(moved.amount);
            let line = line.with_some(moved.with.map(|other| bytes(&other.0)));
            let line = line.with_some(moved.reference.as_ref().map(|reference| reference.kind.name()));
            line.with_some(moved.reference.map(|reference| reference.to_string().replace('\\', "\\\\"))).end(row);
        }
        HistoryEntry::Balance(balance) => {
            lines.begin(SqlTable::BalanceRows).with(height).with(position).end(row);
            for held in balance.held {
                let line = lines.begin(SqlTable::Balances).with(held.asset.0).with(height).with(time(balance.time_ms));
                let line = line.with(balance.state).with(held.available);
                line.with_some(held.locked.map(|units| units.to_string())).finish();
            }
        }
    }
}

/// The lines of an account.
struct Lines<'a> {
    lines: &'a mut BTreeMap<SqlTable, String>,
    account: String,
}

impl Lines<'_> {
    fn begin(&mut self, table: SqlTable) -> Line<'_> {
        let text = self.lines.entry(table).or_default();
        text.push_str(&self.account);
        Line(text)
    }
}

/// A line while it is written.
struct Line<'a>(&'a mut String);

impl<'a> Line<'a> {
    fn with(self, column: impl Display) -> Line<'a> {
        let _ = write!(self.0, "\t{column}");
        self
    }

    fn with_some(self, column: Option<impl Display>) -> Line<'a> {
        match column {
            Some(column) => self.with(column),
            None => self.with("\\N"),
        }
    }

    fn end(self, row: String) {
        self.with(row).finish();
    }

    fn finish(self) {
        self.0.push('\n');
    }
}

fn bytes(bytes: &[u8]) -> String {
    format!("\\\\x{}", primitives::to_hex(bytes))
}

/// Milliseconds since 1970 as a `bigint`.
fn time(time_ms: u64) -> i64 {
    i64::try_from(time_ms).unwrap_or(i64::MAX)
}

fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Offered(_) => "placed",
        Outcome::Replaced(_) => "replaced",
        other => match (other.exact(), other.refusal()) {
            (Some(exact), _) => exact.why.name(),
            (None, refusal) => refusal.map_or("superseded", |refusal| refusal.code()),
        },
    }
}
