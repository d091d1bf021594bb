//! The tables. The node answers from the column `row`; the others are for whoever asks in SQL.

use strum::VariantArray;

/// The time of a row for people: blocks may be dated later than any calendar, and are shown at its end then.
const TIME: &str =
    "time timestamptz GENERATED ALWAYS AS (to_timestamp(LEAST(time_ms, 253402300799999) / 1000.0)) STORED";

/// What makes the tables in a schema, in a transaction.
pub fn tables_in(schema: &str) -> String {
    TABLES.replace("{schema}", schema).replace("{time}", TIME)
}

const TABLES: &str = r#"
CREATE SCHEMA IF NOT EXISTS {schema};
CREATE TABLE IF NOT EXISTS {schema}.span (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    tag bytea NOT NULL,
    known_from bigint NOT NULL,
    height bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS {schema}.orders (
    account bytea NOT NULL, height bigint NOT NULL, position bigint NOT NULL, time_ms bigint NOT NULL, {time},
    id bytea NOT NULL, number numeric(20) NOT NULL, until numeric(20) NOT NULL, sell bigint NOT NULL,
    buy bigint NOT NULL, limit_price numeric NOT NULL, amount numeric(20) NOT NULL, life text NOT NULL, client bytea,
    replaces numeric(20), outcome text NOT NULL, row bytea NOT NULL,
    PRIMARY KEY (account, height, position)
);
ALTER TABLE {schema}.orders ADD COLUMN IF NOT EXISTS sealed_by bytea;
CREATE INDEX IF NOT EXISTS orders_by_number ON {schema}.orders (account, number, height, position);
CREATE INDEX IF NOT EXISTS orders_by_client ON {schema}.orders (account, client, height, position)
    WHERE client IS NOT NULL;
CREATE INDEX IF NOT EXISTS orders_by_height ON {schema}.orders USING brin (height);
CREATE TABLE IF NOT EXISTS {schema}.fills (
    account bytea NOT NULL, height bigint NOT NULL, position bigint NOT NULL, time_ms bigint NOT NULL, {time},
    offer numeric(20) NOT NULL, sell bigint NOT NULL, buy bigint NOT NULL, limit_price numeric NOT NULL,
    sold numeric(20) NOT NULL, bought numeric(20) NOT NULL, rests numeric(20) NOT NULL, returned numeric(20) NOT NULL,
    row bytea NOT NULL,
    PRIMARY KEY (account, height, position)
);
CREATE INDEX IF NOT EXISTS fills_by_height ON {schema}.fills USING brin (height);
CREATE TABLE IF NOT EXISTS {schema}.offer_changes (
    account bytea NOT NULL, offer numeric(20) NOT NULL, height bigint NOT NULL, position bigint NOT NULL,
    time_ms bigint NOT NULL, {time}, change text NOT NULL, row bytea NOT NULL,
    PRIMARY KEY (account, offer, height, position)
);
CREATE INDEX IF NOT EXISTS offer_changes_by_height ON {schema}.offer_changes USING brin (height);
CREATE TABLE IF NOT EXISTS {schema}.transfers (
    account bytea NOT NULL, height bigint NOT NULL, position bigint NOT NULL, time_ms bigint NOT NULL, {time},
    id bytea NOT NULL, kind text NOT NULL, received boolean NOT NULL, asset bigint NOT NULL,
    amount numeric(20) NOT NULL, counterparty bytea, reference_kind text, reference text, row bytea NOT NULL,
    PRIMARY KEY (account, height, position)
);
CREATE INDEX IF NOT EXISTS transfers_by_reference
    ON {schema}.transfers (account, reference_kind, reference, height, position) WHERE reference IS NOT NULL;
CREATE INDEX IF NOT EXISTS transfers_by_height ON {schema}.transfers USING brin (height);
CREATE TABLE IF NOT EXISTS {schema}.balance_rows (
    account bytea NOT NULL, height bigint NOT NULL, position bigint NOT NULL, row bytea NOT NULL,
    PRIMARY KEY (account, height, position)
);
CREATE INDEX IF NOT EXISTS balance_rows_by_height ON {schema}.balance_rows USING brin (height);
CREATE TABLE IF NOT EXISTS {schema}.balances (
    account bytea NOT NULL, asset bigint NOT NULL, height bigint NOT NULL, time_ms bigint NOT NULL, {time},
    state bigint NOT NULL, available numeric(20) NOT NULL, locked numeric(20),
    PRIMARY KEY (account, asset, height)
);
CREATE INDEX IF NOT EXISTS balances_by_height ON {schema}.balances USING brin (height);
"#;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub enum SqlTable {
    Orders,
    Fills,
    OfferChanges,
    Transfers,
    BalanceRows,
    Balances,
}

impl SqlTable {
    /// All that have rows of blocks.
    pub const ALL: &[SqlTable] = SqlTable::VARIANTS;

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            SqlTable::Orders => "orders",
            SqlTable::Fills => "fills",
            SqlTable::OfferChanges => "offer_changes",
            SqlTable::Transfers => "transfers",
            SqlTable::BalanceRows => "balance_rows",
            SqlTable::Balances => "balances",
        }
    }

    /// The columns that are sent, in the order of [`crate::lines`].
    pub fn columns(self) -> &'static str {
        match self {
            SqlTable::Orders => {
                "account, height, position, time_ms, id, number, until, sell, buy, limit_price, amount, life, client, \
                 replaces, outcome, sealed_by, row"
            }
            SqlTable::Fills => {
                "account, height, position, time_ms, offer, sell, buy, limit_price, sold, bought, rests, returned, row"
            }
            SqlTable::OfferChanges => "account, offer, height, position, time_ms, change, row",
            SqlTable::Transfers => {
                "account, height, position, time_ms, id, kind, received, asset, amount, counterparty, reference_kind, \
                 reference, row"
            }
            SqlTable::BalanceRows => "account, height, position, row",
            SqlTable::Balances => "account, asset, height, time_ms, state, available, locked",
        }
    }
}
