//! The search for logs.
//!
//! An answer has at most 10,000 logs and 16 MiB of their data. A search that finds more is an error that names heights
//! to ask for. Where one block alone has more, or with `maxLogs`, a client reads page by page: `maxLogs` bounds a page,
//! and the next page begins at `fromBlock` and `fromLog`, the height and the index above those of the last log seen.
//! The last page is the empty one.

use primitives::{Height, to_hex};
use replica::{LOG_RESULTS_MAX, LogCursor, LogFilter, LogPlace, LogsPage};
use serde_json::{Value, json};

use super::Session;
use super::params::Params;
use super::values::{quantity, read_address, read_bytes, read_digest, read_u64};
use super::wire::{Answer, RpcError};

/// Maximum bytes of the data of all logs in one answer.
const DATA_MAX: usize = 16 << 20;

/// The requested logs, as parsed: heights may follow the chain.
#[derive(Clone, Debug)]
pub(super) struct LogsAsked {
    pub filter: LogFilter,
    /// The last height, if it was given as a number.
    pub to: Option<Height>,
    /// The size of a page, if the client reads page by page.
    most: Option<usize>,
}

/// The first logs that match a filter.
pub(super) struct LogsFound {
    pub logs: Vec<Value>,
    /// Where the rest begins; `None` if these are all.
    pub next: Option<LogCursor>,
}

/// One value or a list; anything for `null`, also in a list.
fn one_of<T>(value: Option<&Value>, read: impl Fn(&Value) -> Result<T, String>) -> Result<Vec<T>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(all)) if all.iter().any(Value::is_null) => Ok(Vec::new()),
        Some(Value::Array(all)) => all.iter().map(read).collect(),
        Some(one) => Ok(vec![read(one)?]),
    }
}

impl LogsAsked {
    /// Parses addresses and topics; heights are parsed by the caller.
    pub fn read(value: &Value) -> Result<LogsAsked, String> {
        let fields = value.as_object().ok_or("an object is expected")?;
        let addresses = one_of(fields.get("address"), read_address).map_err(|why| format!("address: {why}"))?;
        let topics = match fields.get("topics") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(all)) if all.len() <= 4 => {
                let topics = all.iter().map(|topic| one_of(Some(topic), read_bytes));
                topics.collect::<Result<_, _>>().map_err(|why: String| format!("topics: {why}"))?
            }
            Some(_) => return Err("topics: a list of at most four is expected".into()),
        };
        let of = |name: &str| fields.get(name).filter(|value| !value.is_null()).map(read_u64).transpose();
        let first_log = of("fromLog").map_err(|why| format!("fromLog: {why}"))?.unwrap_or(0);
        let first_log = u32::try_from(first_log).map_err(|_| "fromLog: no block has so many logs".to_string())?;
        let most = of("maxLogs").map_err(|why| format!("maxLogs: {why}"))?;
        if most.is_some_and(|most| !(1..=LOG_RESULTS_MAX as u64).contains(&most)) {
            return Err(format!("maxLogs: from 1 to {LOG_RESULTS_MAX}"));
        }
        let filter = LogFilter { from: 0, first_log, to: Height::MAX, addresses, topics };
        Ok(LogsAsked { filter, to: None, most: most.map(|most| most as usize) })
    }
}

/// A filter with its heights.
pub(super) fn logs_asked(session: &Session<'_>, params: &Params) -> Result<LogsAsked, RpcError> {
    let mut asked = params.read(0, LogsAsked::read)?;
    asked.filter.check()?;
    let value = params.get(0).expect("it was read");
    let of = |name: &str| value.get(name).filter(|value| !value.is_null());
    let named = |name: &str| params.read(0, |_| of(name).map(|value| session.named(value)).transpose());
    if let Some(hash) = of("blockHash") {
        if of("fromBlock").is_some() || of("toBlock").is_some() {
            return Err(RpcError::invalid_params(
                "cannot specify both blockHash and fromBlock/toBlock, choose one or the other",
            ));
        }
        let digest = params.read(0, |_| read_digest(hash))?;
        let height = session.height_of(&digest).ok_or_else(|| RpcError::server("unknown block"))?;
        (asked.filter.from, asked.filter.to, asked.to) = (height, height, Some(height));
        return Ok(asked);
    }
    let latest = session.latest();
    let from = named("fromBlock")?.flatten();
    // A tag follows the chain; a number ends the search.
    asked.to = named("toBlock")?.flatten().filter(|_| of("toBlock").and_then(Value::as_str).is_some_and(is_number));
    (asked.filter.from, asked.filter.to) = (from.unwrap_or(latest), asked.to.unwrap_or(latest));
    if asked.to.is_some_and(|to| to < asked.filter.from) {
        return Err(RpcError::invalid_params("invalid block range params"));
    }
    Ok(asked)
}

/// The first logs that match a filter, `most` at most, in order.
pub(super) fn find_logs(session: &Session<'_>, filter: &LogFilter, most: usize) -> Result<LogsFound, RpcError> {
    let LogsPage { places, next } = session.rpc.api.published().views().ethereum().page(filter, most)?;
    let (mut logs, mut bytes) = (Vec::with_capacity(places.len()), 0);
    for of_block in places.chunk_by(|one, other| one.height == other.height) {
        let height = of_block[0].height;
        let gone = || RpcError::server(format!("the receipts of block {height} are not held here any more"));
        let block = session.load(height)?.ok_or_else(gone)?;
        // The index of the first log of the current receipt.
        let (mut first, mut counted) = (0, 0);
        for of_receipt in of_block.chunk_by(|one, other| one.receipt == other.receipt) {
            let at = of_receipt[0].receipt as usize;
            first += block.receipts()[counted..at].iter().map(|one| one.logs.len()).sum::<usize>();
            counted = at;
            let receipt = &block.receipts()[at];
            for LogPlace { log, .. } in of_receipt {
                let of = &receipt.logs[*log as usize];
                let number = first + *log as usize;
                bytes += of.data.len();
                if bytes > DATA_MAX && !logs.is_empty() {
                    return Ok(LogsFound { logs, next: Some(LogCursor { height, log: number as u32 }) });
                }
                logs.push(block.log_json(at, receipt, number, of));
            }
        }
    }
    Ok(LogsFound { logs, next })
}

/// The logs that were asked for.
fn answer_logs(session: &Session<'_>, asked: &LogsAsked) -> Answer {
    let LogsFound { logs, next } = find_logs(session, &asked.filter, asked.most.unwrap_or(LOG_RESULTS_MAX))?;
    match next.filter(|_| asked.most.is_none()) {
        None => Ok(logs.into()),
        Some(next) => Err(too_many(&asked.filter, next)),
    }
}

/// The error of a search that finds more than an answer holds: heights whose logs fit, or, if the first block alone
/// has more, how to read it page by page.
fn too_many(filter: &LogFilter, next: LogCursor) -> RpcError {
    let (from, limit) = (filter.from, LOG_RESULTS_MAX);
    if next.height > from {
        let (from, to) = (quantity(from), quantity(next.height - 1));
        let range = format!("[{}, {}]", from.as_str().unwrap_or_default(), to.as_str().unwrap_or_default());
        let message = format!(
            "query returned more than {limit} results, or 16 MiB. Try with this block range {range}, and go on above it"
        );
        return RpcError::limit(message).with_data(json!({"fromBlock": from, "toBlock": to}));
    }
    let message = format!(
        "query returned more than {limit} results, or 16 MiB, in block {from} alone. Name addresses or topics, or read \
         it page by page: with \"maxLogs\": \"0x3e8\", and then \"fromLog\" above the logIndex of the last log seen"
    );
    let page = json!({"fromBlock": quantity(from), "toBlock": quantity(from), "fromLog": "0x0", "maxLogs": "0x3e8"});
    RpcError::limit(message).with_data(page)
}

fn is_number(text: &str) -> bool {
    text.starts_with("0x") || text == "earliest"
}

pub(super) fn get_logs(session: &Session, params: &Params) -> Answer {
    answer_logs(session, &logs_asked(session, params)?)
}

/// All logs of a filter that heights may have been added to.
pub(super) fn get_filter_logs(session: &Session, asked: &LogsAsked) -> Answer {
    let mut asked = asked.clone();
    asked.filter.to = asked.to.unwrap_or(session.latest());
    answer_logs(session, &asked)
}

/// An unguessable id, from a number that is used once.
pub(super) fn id_of(random: &impl std::hash::BuildHasher, number: u64) -> String {
    let parts = [random.hash_one((number, 0u8)), random.hash_one((number, 1u8))];
    format!("0x{}", to_hex(&parts.map(u64::to_be_bytes).concat()))
}
