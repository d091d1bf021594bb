//! Index of receipts by transaction, and of logs by address and topic.
//!
//! Pure, and in memory. A node adds the contract receipts of each block when it publishes the block, and those of its
//! archive when it starts. The index holds *places*; the receipts themselves stay in the archive and its caches.
//!
//! *Properties.* Heights are added without gaps, oldest first. The size is bounded: beyond the limit, whole blocks
//! are dropped, the oldest first, and a search that needs them is rejected instead of answered in part. A search
//! looks at no more than [`LOG_HEIGHTS_MAX`] heights and returns no more than [`LOG_RESULTS_MAX`] logs. It walks the
//! posting lists of one criterion, the one with the fewest logs in the range, and tests each log against the other
//! criteria.
//!
//! *Nothing is left out without a sign.* What does not fit into one answer is read page by page: a page says where the
//! next one begins, also within a block, since one block alone may have more logs than an answer.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use ledger::contracts::ContractReceipts;
use primitives::{Address, Height, TransactionId};

/// Maximum number of logs that a search returns.
pub const LOG_RESULTS_MAX: usize = 10_000;
/// Maximum number of heights that a search covers.
pub const LOG_HEIGHTS_MAX: u64 = 10_000;
/// Maximum number of addresses and topics that a search names.
pub const LOG_ALTERNATIVES_MAX: usize = 1_000;
/// Maximum number of topics of a log.
const TOPICS: usize = 4;

/// The place of a receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReceiptPlace {
    /// Height of the block.
    pub height: Height,
    /// Index of the receipt in the block, in execution order.
    pub receipt: u32,
}

/// The place of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace {
    /// Height of the block.
    pub height: Height,
    /// Index of the receipt in the block, in execution order.
    pub receipt: u32,
    /// Index of the log in the receipt.
    pub log: u32,
}

/// Where a search goes on: at a log of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogCursor {
    /// Height of the block.
    pub height: Height,
    /// Index of the log among all logs of the block.
    pub log: u32,
}

/// The first logs that match a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogsPage {
    /// Their places, in order.
    pub places: Vec<LogPlace>,
    /// Where the next page begins; `None` if there are no more logs.
    pub next: Option<LogCursor>,
}

/// Selects logs. An empty list matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// The first height.
    pub from: Height,
    /// The first log of the first height, by its index in the block: the logs before it do not match.
    pub first_log: u32,
    /// The last height.
    pub to: Height,
    /// The contract must be one of these.
    pub addresses: Vec<Address>,
    /// For each position, the topic must be one of these.
    pub topics: Vec<Vec<[u8; 32]>>,
}

/// Why a log search is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogsError {
    /// Too many heights.
    #[error("{0} heights in one search; ask for at most 10000 at a time")]
    Heights(u64),
    /// Too many logs.
    #[error(
        "more than 10000 logs: the first 10000 end before log {} of height {}; ask for fewer heights, name addresses \
         or topics, or ask page by page", next.log, next.height
    )]
    Results {
        /// The first log that does not fit.
        next: LogCursor,
    },
    /// Too many addresses and topics.
    #[error("{0} addresses and topics in one search; name at most 1000")]
    Alternatives(usize),
    /// Older than the index.
    #[error("this node has no index of logs below height {first}: search from that height, or ask another node")]
    Forgotten {
        /// The first indexed height.
        first: Height,
    },
}

#[derive(Clone, Debug)]
struct IndexedLog {
    receipt: u32,
    log: u32,
    address: Address,
    topics: Vec<[u8; 32]>,
}

#[derive(Clone, Debug, Default)]
struct IndexedBlock {
    ids: Vec<TransactionId>,
    logs: Vec<IndexedLog>,
}

/// A posting: the height of a block, and the index of the log among the logs of the block.
type Postings = VecDeque<(Height, u32)>;

/// See the module text.
#[derive(Debug)]
pub struct EthereumIndex {
    limit: usize,
    weight: usize,
    first: Height,
    blocks: VecDeque<IndexedBlock>,
    receipts: HashMap<TransactionId, ReceiptPlace>,
    addresses: HashMap<Address, Postings>,
    topics: HashMap<(usize, [u8; 32]), Postings>,
}

impl EthereumIndex {
    /// An index that begins above a height. `limit` bounds the number of blocks, receipts, logs and topics together;
    /// the newest block is always retained.
    pub fn new(above: Height, limit: usize) -> EthereumIndex {
        EthereumIndex {
            limit,
            weight: 0,
            first: above + 1,
            blocks: VecDeque::new(),
            receipts: HashMap::new(),
            addresses: HashMap::new(),
            topics: HashMap::new(),
        }
    }

    /// The height above the last one added.
    pub fn next(&self) -> Height {
        self.first + self.blocks.len() as u64
    }

    /// Adds the contract receipts of the next block.
    pub fn add(&mut self, contracts: &ContractReceipts) {
        let height = self.next();
        let mut block = IndexedBlock::default();
        for (number, receipt) in (0..).zip(&contracts.receipts) {
            block.ids.push(receipt.id);
            self.receipts.insert(receipt.id, ReceiptPlace { height, receipt: number });
            for (log, of) in (0..).zip(&receipt.logs) {
                let posting = (height, block.logs.len() as u32);
                self.addresses.entry(of.address).or_default().push_back(posting);
                for (at, topic) in of.topics.iter().enumerate() {
                    self.topics.entry((at, *topic)).or_default().push_back(posting);
                }
                let (address, topics) = (of.address, of.topics.clone());
                block.logs.push(IndexedLog { receipt: number, log, address, topics });
            }
        }
        self.weight += block.weight();
        self.blocks.push_back(block);
        while self.weight > self.limit && self.blocks.len() > 1 {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let block = self.blocks.pop_front().expect("more than one");
        self.weight -= block.weight();
        for id in &block.ids {
            self.receipts.remove(id);
        }
        for log in &block.logs {
            forget(&mut self.addresses, log.address, Postings::pop_front);
            let topics = log.topics.iter().enumerate();
            topics.for_each(|(at, topic)| forget(&mut self.topics, (at, *topic), Postings::pop_front));
        }
        self.first += 1;
    }

    /// Removes everything above a height, when a developers' chain goes back to it.
    pub fn cut_above(&mut self, height: Height) {
        while self.next() > height + 1
            && let Some(block) = self.blocks.pop_back()
        {
            self.weight -= block.weight();
            for id in &block.ids {
                self.receipts.remove(id);
            }
            for log in &block.logs {
                forget(&mut self.addresses, log.address, Postings::pop_back);
                let topics = log.topics.iter().enumerate();
                topics.for_each(|(at, topic)| forget(&mut self.topics, (at, *topic), Postings::pop_back));
            }
        }
        self.first = self.first.min(height + 1);
    }

    /// Where the receipt of a transaction is.
    pub fn receipt(&self, id: &TransactionId) -> Option<ReceiptPlace> {
        self.receipts.get(id).copied()
    }

    /// The logs that match a filter, in order. Heights that do not exist yet have none.
    ///
    /// # Errors
    /// [`LogsError`] if the search is too large, or reaches below the first indexed height.
    pub fn logs(&self, filter: &LogFilter) -> Result<Vec<LogPlace>, LogsError> {
        let LogsPage { places, next } = self.page(filter, LOG_RESULTS_MAX)?;
        next.map_or(Ok(places), |next| Err(LogsError::Results { next }))
    }

    /// The first logs that match a filter, `most` at most and never more than [`LOG_RESULTS_MAX`].
    ///
    /// # Errors
    /// [`LogsError`] if the search covers too much, or reaches below the first indexed height.
    pub fn page(&self, filter: &LogFilter, most: usize) -> Result<LogsPage, LogsError> {
        filter.check()?;
        let mut page = LogsPage::default();
        let (from, to) = (filter.from.max(1), filter.to.min(self.next() - 1));
        if from > to || filter.topics.len() > TOPICS {
            return Ok(page);
        }
        if from < self.first {
            return Err(LogsError::Forgotten { first: self.first });
        }
        if to - from >= LOG_HEIGHTS_MAX {
            return Err(LogsError::Heights(to - from + 1));
        }
        let begin = (from, if from == filter.from { filter.first_log } else { 0 });
        for (height, number) in self.candidates(filter, begin, to) {
            let log = &self.blocks[(height - self.first) as usize].logs[number as usize];
            if !filter.matches(log) {
                continue;
            }
            if page.places.len() == most.min(LOG_RESULTS_MAX) {
                page.next = Some(LogCursor { height, log: number });
                break;
            }
            page.places.push(LogPlace { height, receipt: log.receipt, log: log.log });
        }
        Ok(page)
    }

    /// The postings of the criterion that has the fewest of them in the range, in order. Without any criterion, of the
    /// first logs in the range. The range begins at a log of a height, and ends with a height.
    fn candidates(&self, filter: &LogFilter, begin: (Height, u32), to: Height) -> Vec<(Height, u32)> {
        let mut criteria: Vec<Vec<&Postings>> = Vec::new();
        if !filter.addresses.is_empty() {
            criteria.push(filter.addresses.iter().filter_map(|address| self.addresses.get(address)).collect());
        }
        for (at, topics) in filter.topics.iter().enumerate().filter(|(_, topics)| !topics.is_empty()) {
            criteria.push(topics.iter().filter_map(|topic| self.topics.get(&(at, *topic))).collect());
        }
        let part = |list: &Postings| {
            list.partition_point(|posting| *posting < begin)..list.partition_point(|(height, _)| *height <= to)
        };
        let size = |lists: &Vec<&Postings>| lists.iter().map(|list| part(list).len()).sum::<usize>();
        match criteria.iter().min_by_key(|lists| size(lists)) {
            Some(lists) => {
                let mut all: Vec<_> = lists.iter().flat_map(|list| list.range(part(list)).copied()).collect();
                all.sort_unstable();
                // Who names an address twice looks for it once.
                all.dedup();
                all
            }
            None => {
                let logs = |height: Height| self.blocks[(height - self.first) as usize].logs.len() as u32;
                let first = |height: Height| if height == begin.0 { begin.1 } else { 0 };
                let all =
                    (begin.0..=to).flat_map(|height| (first(height)..logs(height)).map(move |number| (height, number)));
                all.take(LOG_RESULTS_MAX + 1).collect()
            }
        }
    }
}

impl IndexedBlock {
    fn weight(&self) -> usize {
        1 + self.ids.len() + self.logs.iter().map(|log| 1 + log.topics.len()).sum::<usize>()
    }
}

impl LogFilter {
    /// Whether it names no more than a search looks for. Filters that are kept are held to this when they are made.
    ///
    /// # Errors
    /// [`LogsError::Alternatives`] if it names more.
    pub fn check(&self) -> Result<(), LogsError> {
        let alternatives = self.addresses.len() + self.topics.iter().map(Vec::len).sum::<usize>();
        if alternatives > LOG_ALTERNATIVES_MAX { Err(LogsError::Alternatives(alternatives)) } else { Ok(()) }
    }

    fn matches(&self, log: &IndexedLog) -> bool {
        let is_one_of = |wanted: &Vec<[u8; 32]>, at: usize| {
            log.topics.get(at).is_some_and(|topic| wanted.is_empty() || wanted.contains(topic))
        };
        (self.addresses.is_empty() || self.addresses.contains(&log.address))
            && self.topics.iter().enumerate().all(|(at, wanted)| is_one_of(wanted, at))
    }
}

/// Forgets a posting of a key, from one end of its list.
fn forget<K: Hash + Eq>(lists: &mut HashMap<K, Postings>, key: K, from: fn(&mut Postings) -> Option<(Height, u32)>) {
    let list = lists.get_mut(&key).expect("each log is listed");
    from(list);
    if list.is_empty() {
        lists.remove(&key);
    }
}

#[cfg(test)]
mod tests;
