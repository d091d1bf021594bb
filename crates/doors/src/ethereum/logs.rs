//! The search for logs.

use primitives::{Height, to_hex};
use replica::{LogFilter, LogPlace};
use serde_json::Value;

use super::Session;
use super::params::Params;
use super::values::{read_address, read_bytes, read_digest};
use super::wire::{Answer, RpcError};

/// Maximum bytes of the data of all logs in one answer.
const DATA_MAX: usize = 16 << 20;

/// The requested logs, as parsed: heights may follow the chain.
#[derive(Clone, Debug)]
pub(super) struct LogsAsked {
    pub filter: LogFilter,
    /// The last height, if it was given as a number.
    pub to: Option<Height>,
}

/// One value or a list, or anything for `null`.
fn one_of<T>(value: Option<&Value>, read: impl Fn(&Value) -> Result<T, String>) -> Result<Vec<T>, String> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
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
        let filter = LogFilter { from: 0, to: Height::MAX, addresses, topics };
        Ok(LogsAsked { filter, to: None })
    }
}

impl Session<'_> {
    /// A filter with its heights.
    pub(super) fn logs_asked(&self, params: &Params) -> Result<LogsAsked, RpcError> {
        let mut asked = params.read(0, LogsAsked::read)?;
        asked.filter.check()?;
        let value = params.get(0).expect("it was read");
        let of = |name: &str| value.get(name).filter(|value| !value.is_null());
        let named = |name: &str| params.read(0, |_| of(name).map(|value| self.named(value)).transpose());
        if let Some(hash) = of("blockHash") {
            if of("fromBlock").is_some() || of("toBlock").is_some() {
                return Err(RpcError::invalid_params(
                    "cannot specify both blockHash and fromBlock/toBlock, choose one or the other",
                ));
            }
            let digest = params.read(0, |_| read_digest(hash))?;
            let height = self.height_of(&digest).ok_or_else(|| RpcError::server("unknown block"))?;
            (asked.filter.from, asked.filter.to, asked.to) = (height, height, Some(height));
            return Ok(asked);
        }
        let latest = self.latest();
        let from = named("fromBlock")?.flatten();
        // A tag follows the chain; a number ends the search.
        asked.to = named("toBlock")?.flatten().filter(|_| of("toBlock").and_then(Value::as_str).is_some_and(is_number));
        (asked.filter.from, asked.filter.to) = (from.unwrap_or(latest), asked.to.unwrap_or(latest));
        if asked.to.is_some_and(|to| to < asked.filter.from) {
            return Err(RpcError::invalid_params("invalid block range params"));
        }
        Ok(asked)
    }

    /// The logs that match a filter, in order.
    pub(super) fn logs(&self, filter: &LogFilter) -> Result<Vec<Value>, RpcError> {
        let places = self.rpc.api.published().views().ethereum().logs(filter)?;
        let (mut logs, mut bytes) = (Vec::with_capacity(places.len()), 0);
        for of_block in places.chunk_by(|one, other| one.height == other.height) {
            let height = of_block[0].height;
            let gone = || RpcError::server(format!("the receipts of block {height} are not held here any more"));
            let block = self.load(height)?.ok_or_else(gone)?;
            // The index of the first log of the current receipt.
            let (mut first, mut counted) = (0, 0);
            for of_receipt in of_block.chunk_by(|one, other| one.receipt == other.receipt) {
                let at = of_receipt[0].receipt as usize;
                first += block.receipts()[counted..at].iter().map(|one| one.logs.len()).sum::<usize>();
                counted = at;
                let receipt = &block.receipts()[at];
                for LogPlace { log, .. } in of_receipt {
                    let of = &receipt.logs[*log as usize];
                    bytes += of.data.len();
                    if bytes > DATA_MAX {
                        return Err(RpcError::limit("query returned more than 16 MiB of data; ask for fewer heights"));
                    }
                    logs.push(block.log_json(at, receipt, first + *log as usize, of));
                }
            }
        }
        Ok(logs)
    }
}

fn is_number(text: &str) -> bool {
    text.starts_with("0x") || text == "earliest"
}

pub(super) fn get_logs(session: &Session, params: &Params) -> Answer {
    let asked = session.logs_asked(params)?;
    Ok(session.logs(&asked.filter)?.into())
}

/// An unguessable id, from a number that is used once.
pub(super) fn id_of(random: &impl std::hash::BuildHasher, number: u64) -> String {
    let parts = [random.hash_one((number, 0u8)), random.hash_one((number, 1u8))];
    format!("0x{}", to_hex(&parts.map(u64::to_be_bytes).concat()))
}
