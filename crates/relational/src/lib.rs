//! The history of accounts in PostgreSQL: for an operator whose history has outgrown files, or who wants to ask in SQL.
//!
//! The rows are those of [`readers::history`], from the same published blocks as the index in files. Each block is one
//! transaction: its rows go in by `COPY`, and the span of known heights with them. So whoever reads sees whole blocks.
//! The last blocks may be lost if the database's machine crashes (`synchronous_commit` is off). The node asks for the
//! span when it connects again, and adds them once more from the blocks that it keeps.
//!
//! Each table has the columns that people ask for, and `row`: the bytes from which the node answers, the same as in
//! files. Amounts are in units; an asset is its number in the genesis.
//!
//! **Invariants.** One node writes (an advisory lock). A database of another chain or of another form of rows is
//! refused and never emptied. No setting brings a password into a log.

mod connect;
mod lines;
mod schema;
#[cfg(feature = "testing")]
mod testing;

use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, Row, Transaction};
use primitives::Height;
use readers::history::{HistoryPlace, HistoryRange, HistoryRow};
use readers::history_entries::{HistoryQuestion, HistoryTopic};

use connect::Connector;
use lines::lines_of;
use schema::{SqlTable, tables_in};

#[cfg(feature = "testing")]
pub use testing::TestServer;

/// Connections that answer questions.
const READERS: usize = 4;
/// How long the database may take to say that it is there.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a node waits for the one before it to let go.
const LOCK_MS: u32 = 3_000;
/// The advisory lock of the node that writes: "walras" as a number.
const WRITER: i64 = 0x0000_7761_6c72_6173;

/// Why the history cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RelationalError {
    /// A setting is wrong.
    #[error("[history] {0}")]
    Settings(String),
    /// The database does not answer, or refuses.
    #[error("the database of the history: {}", told(.0))]
    Database(#[from] postgres::Error),
    /// It is another chain's, or of another version.
    #[error(
        "the schema {0} of the database has the history of another chain, or one of another version: name another schema as \
         `postgres_schema`, or drop this one, and it is made again from the blocks that the node keeps"
    )]
    Another(String),
    /// Another node writes.
    #[error(
        "another node writes the history into the schema {0}: each node needs a schema of its own (`postgres_schema`)"
    )]
    Taken(String),
    /// A block does not come after the last one.
    #[error("block {found} does not come after block {last} of the history")]
    OutOfOrder {
        /// The last height that is there.
        last: Height,
        /// The height that was to be added.
        found: Height,
    },
    /// Bytes that are no row, or no range.
    #[error("a row of the history is malformed: {0}")]
    Malformed(#[from] std::io::Error),
}

fn told(error: &postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |refused| refused.message().to_string())
}

/// Where the history is.
#[derive(Clone, Copy, Debug)]
pub struct RelationalSettings<'a> {
    /// The database, without a password.
    pub address: &'a str,
    /// The password, if it wants one.
    pub password: Option<&'a str>,
    /// Certificates that may sign for it: without them it must be on this machine.
    pub issuers: Option<&'a Path>,
    /// The schema of the tables.
    pub schema: &'a str,
}

/// What the node knows of the database while it is connected.
struct Writer {
    client: Client,
    known_from: Height,
    height: Height,
}

/// The history of accounts in PostgreSQL.
pub struct RelationalHistory {
    connector: Connector,
    schema: String,
    tag: [u8; 32],
    writer: Mutex<Option<Writer>>,
    readers: [Mutex<Option<Client>>; READERS],
}

fn open<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn big(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn height_of(row: &Row, column: usize) -> Result<Height, RelationalError> {
    let number: i64 = row.try_get(column)?;
    Height::try_from(number).map_err(|_| std::io::Error::other("a height is negative").into())
}

impl RelationalHistory {
    /// Checks the settings; it connects when it is first used. The tag names the chain and the form of the rows.
    ///
    /// # Errors
    /// [`RelationalError::Settings`].
    pub fn new(settings: RelationalSettings<'_>, tag: [u8; 32]) -> Result<RelationalHistory, RelationalError> {
        let RelationalSettings { address, password, issuers, schema } = settings;
        let is_name = |text: &str| {
            let mut bytes = text.bytes();
            let begins = bytes.next().is_some_and(|byte| byte.is_ascii_lowercase());
            begins
                && text.len() <= 63
                && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        };
        if !is_name(schema) {
            return Err(RelationalError::Settings(format!(
                "`postgres_schema` is {schema:?}: use a small letter, then small letters, digits and _, at most 63"
            )));
        }
        let connector = Connector::new(address, password, issuers)?;
        let readers = std::array::from_fn(|_| Mutex::new(None));
        Ok(RelationalHistory { connector, schema: schema.into(), tag, writer: Mutex::new(None), readers })
    }

    /// The heights that are known, as the node knows them; `None` while the database cannot be reached.
    pub fn span(&self) -> Option<(Height, Height)> {
        open(&self.writer).as_ref().map(|writer| (writer.known_from, writer.height))
    }

    /// The heights that are known, from a connection that answers; connects anew if it does not.
    ///
    /// # Errors
    /// If the database cannot be reached, is another chain's, or another node writes.
    pub fn connect(&self) -> Result<(Height, Height), RelationalError> {
        let mut slot = open(&self.writer);
        if slot.as_mut().is_some_and(|writer| writer.client.is_valid(ANSWER).is_err()) {
            *slot = None;
        }
        drop(slot);
        self.write(|writer, _| Ok((writer.known_from, writer.height)))
    }

    /// Forgets everything, and begins above a height.
    ///
    /// # Errors
    /// [`RelationalError::Database`] and those of [`RelationalHistory::connect`].
    pub fn begin_after(&self, height: Height) -> Result<(), RelationalError> {
        self.write(|writer, schema| {
            let mut change = writer.client.transaction()?;
            let all: Vec<String> = SqlTable::ALL.iter().map(|table| format!("{schema}.{}", table.name())).collect();
            change.batch_execute(&format!("TRUNCATE {}", all.join(", ")))?;
            let known_from = height.saturating_add(1);
            set_span(&mut change, schema, known_from, height)?;
            change.commit()?;
            (writer.known_from, writer.height) = (known_from, height);
            Ok(())
        })
    }

    /// Adds the rows of the next height, in one transaction.
    ///
    /// # Errors
    /// [`RelationalError::OutOfOrder`], [`RelationalError::Malformed`], and those of
    /// [`RelationalHistory::begin_after`]; then nothing was added, or, if the connection was lost meanwhile, all of it.
    pub fn add(&self, height: Height, rows: &[HistoryRow]) -> Result<(), RelationalError> {
        let lines = lines_of(rows)?;
        self.write(|writer, schema| {
            if writer.height.checked_add(1) != Some(height) {
                return Err(RelationalError::OutOfOrder { last: writer.height, found: height });
            }
            let mut change = writer.client.transaction()?;
            for (table, text) in &lines {
                let mut copy =
                    change.copy_in(&format!("COPY {schema}.{} ({}) FROM STDIN", table.name(), table.columns()))?;
                copy.write_all(text.as_bytes()).map_err(lost)?;
                copy.finish()?;
            }
            set_span(&mut change, schema, writer.known_from, height)?;
            change.commit()?;
            writer.height = height;
            Ok(())
        })
    }

    /// Forgets rows of heights above this one.
    ///
    /// # Errors
    /// Those of [`RelationalHistory::begin_after`].
    pub fn cut_above(&self, height: Height) -> Result<(), RelationalError> {
        self.write(|writer, schema| {
            if height >= writer.height {
                return Ok(());
            }
            let known_from = writer.known_from.min(height.saturating_add(1));
            remove(writer, schema, "height >", height, (known_from, height))
        })
    }

    /// Forgets rows of heights below this one.
    ///
    /// # Errors
    /// Those of [`RelationalHistory::begin_after`].
    pub fn forget_below(&self, height: Height) -> Result<(), RelationalError> {
        self.write(|writer, schema| {
            let known_from = height.min(writer.height.saturating_add(1));
            if known_from <= writer.known_from {
                return Ok(());
            }
            let last = writer.height;
            remove(writer, schema, "height <", known_from, (known_from, last))
        })
    }

    /// At most `count` rows of a range, the newest first.
    ///
    /// # Errors
    /// [`RelationalError::Database`], or [`RelationalError::Malformed`] for a range of no one topic.
    pub fn last_rows(&self, range: &HistoryRange, count: usize) -> Result<Vec<HistoryRow>, RelationalError> {
        let none = || std::io::Error::other("a range is of no one topic");
        let question = range.question().ok_or_else(none)?;
        let answer = self.ask(&question, count)?;
        let place = |row: &Row| -> Result<HistoryRow, RelationalError> {
            let position: i64 = row.try_get(1)?;
            let position = u32::try_from(position).map_err(|_| std::io::Error::other("a position is too large"))?;
            let place = HistoryPlace { height: height_of(row, 0)?, position };
            let value: Option<Vec<u8>> = row.try_get(2)?;
            Ok((range.key_at(place), value.unwrap_or_default()))
        };
        answer.iter().map(place).collect()
    }

    /// Asks on a connection that is there, or on a new one. The server may have closed one that nobody used, which only
    /// shows when it is used: then the question is asked once more.
    fn ask(&self, question: &HistoryQuestion, count: usize) -> Result<Vec<Row>, RelationalError> {
        let mut slot = self.reader();
        if let Some(client) = &mut *slot {
            match ask(client, &self.schema, question, count) {
                Err(_) if client.is_closed() => *slot = None,
                answer => return Ok(answer?),
            }
        }
        let client = slot.insert(self.connector.connect()?);
        Ok(ask(client, &self.schema, question, count)?)
    }

    /// A connection that nobody uses, or the first.
    fn reader(&self) -> MutexGuard<'_, Option<Client>> {
        let free = self.readers.iter().find_map(|reader| match reader.try_lock() {
            Ok(free) => Some(free),
            Err(TryLockError::Poisoned(free)) => Some(free.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        });
        free.unwrap_or_else(|| open(&self.readers[0]))
    }

    /// Does something with the connection that writes, and forgets the connection if that fails.
    fn write<T>(
        &self,
        act: impl FnOnce(&mut Writer, &str) -> Result<T, RelationalError>,
    ) -> Result<T, RelationalError> {
        let mut slot = open(&self.writer);
        let writer = match &mut *slot {
            Some(writer) => writer,
            empty => empty.insert(self.begin()?),
        };
        let done = act(writer, &self.schema);
        if matches!(done, Err(RelationalError::Database(_))) {
            *slot = None;
        }
        done
    }

    /// Connects for writing: takes the lock, makes the tables, reads the span.
    fn begin(&self) -> Result<Writer, RelationalError> {
        let mut client = self.connector.connect()?;
        client.batch_execute("SET synchronous_commit = off")?;
        // The server may not have noticed yet that this node's connection of before has ended.
        client.batch_execute(&format!("SET lock_timeout = {LOCK_MS}"))?;
        let key: &[&(dyn ToSql + Sync)] = &[&WRITER, &self.schema];
        match client.execute("SELECT pg_advisory_lock($1 # hashtextextended($2, 0))", key) {
            Err(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
                return Err(RelationalError::Taken(self.schema.clone()));
            }
            taken => taken?,
        };
        let mut make = client.transaction()?;
        make.batch_execute(&tables_in(&self.schema))?;
        let schema = &self.schema;
        let first =
            format!("INSERT INTO {schema}.span (tag, known_from, height) VALUES ($1, 1, 0) ON CONFLICT DO NOTHING");
        make.execute(&first, &[&&self.tag[..]])?;
        let span = make.query_one(&format!("SELECT tag, known_from, height FROM {schema}.span"), &[])?;
        if span.try_get::<_, &[u8]>(0)? != self.tag {
            return Err(RelationalError::Another(schema.clone()));
        }
        let (known_from, height) = (height_of(&span, 1)?, height_of(&span, 2)?);
        make.commit()?;
        Ok(Writer { client, known_from, height })
    }
}

/// A connection ends by waiting for its runtime, which must not happen on a thread of another one.
impl Drop for RelationalHistory {
    fn drop(&mut self) {
        let writer = open(&self.writer).take().map(|writer| writer.client);
        let readers = self.readers.iter().filter_map(|reader| open(reader).take());
        let clients: Vec<Client> = writer.into_iter().chain(readers).collect();
        if !clients.is_empty() {
            drop(std::thread::spawn(move || drop(clients)).join());
        }
    }
}

/// An error while rows are sent is one of the database, with its reason inside.
fn lost(error: std::io::Error) -> RelationalError {
    match error.downcast::<postgres::Error>() {
        Ok(error) => RelationalError::Database(error),
        Err(error) => RelationalError::Malformed(error),
    }
}

fn set_span(
    change: &mut Transaction<'_>,
    schema: &str,
    known_from: Height,
    height: Height,
) -> Result<(), RelationalError> {
    let text = format!("UPDATE {schema}.span SET known_from = $1, height = $2");
    change.execute(&text, &[&big(known_from), &big(height)])?;
    Ok(())
}

/// Removes the rows of some heights.
fn remove(
    writer: &mut Writer,
    schema: &str,
    condition: &str,
    height: Height,
    span: (Height, Height),
) -> Result<(), RelationalError> {
    let mut change = writer.client.transaction()?;
    for table in SqlTable::ALL {
        change.execute(&format!("DELETE FROM {schema}.{} WHERE {condition} $1", table.name()), &[&big(height)])?;
    }
    set_span(&mut change, schema, span.0, span.1)?;
    change.commit()?;
    (writer.known_from, writer.height) = span;
    Ok(())
}

/// Height, position and value of the rows of a question, newest first.
fn ask(
    client: &mut Client,
    schema: &str,
    question: &HistoryQuestion,
    count: usize,
) -> Result<Vec<Row>, postgres::Error> {
    let HistoryQuestion { account, topic, from, below } = question;
    let (table, value, further) = match topic {
        HistoryTopic::Orders => (SqlTable::Orders, "row", None),
        HistoryTopic::Number(number) => (SqlTable::Orders, "NULL::bytea", Some(format!("number = {number}"))),
        HistoryTopic::Client(name) => {
            let condition = format!("client = '\\x{}'::bytea", primitives::to_hex(&name.0));
            (SqlTable::Orders, "NULL::bytea", Some(condition))
        }
        HistoryTopic::Fills => (SqlTable::Fills, "row", None),
        HistoryTopic::Changes(offer) => (SqlTable::OfferChanges, "row", Some(format!("offer = {offer}"))),
        HistoryTopic::Transfers => (SqlTable::Transfers, "row", None),
        HistoryTopic::Reference(reference) => {
            // Hexadecimal, since a text may have quotes and backslashes.
            let text = primitives::to_hex(reference.to_string().as_bytes());
            let value = format!("convert_from('\\x{text}'::bytea, 'UTF8')");
            let condition = format!("reference_kind = '{}' AND reference = {value}", reference.kind.name());
            (SqlTable::Transfers, "NULL::bytea", Some(condition))
        }
        HistoryTopic::Balances => (SqlTable::BalanceRows, "row", None),
    };
    let further = further.map_or(String::new(), |condition| format!(" AND {condition}"));
    let text = format!(
        "SELECT height, position, {value} FROM {schema}.{} WHERE account = $1{further} AND (height, position) >= ($2, $3) \
         AND (height, position) < ($4, $5) ORDER BY height DESC, position DESC LIMIT $6",
        table.name()
    );
    let (from_position, below_position) = (i64::from(from.position), i64::from(below.position));
    let values: &[&(dyn ToSql + Sync)] = &[
        &&account.0[..],
        &big(from.height),
        &from_position,
        &big(below.height),
        &below_position,
        &i64::try_from(count).unwrap_or(i64::MAX),
    ];
    client.query(&text, values)
}
