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

/// Selects logs. An empty list matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    /// The first height.
    pub from: Height,
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
    #[error("more than 10000 logs; ask for fewer heights, or name addresses or topics")]
    Results,
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
        filter.check()?;
        let (from, to) = (filter.from.max(1), filter.to.min(self.next() - 1));
        if from > to || filter.topics.len() > TOPICS {
            return Ok(Vec::new());
        }
        if from < self.first {
            return Err(LogsError::Forgotten { first: self.first });
        }
        if to - from >= LOG_HEIGHTS_MAX {
            return Err(LogsError::Heights(to - from + 1));
        }
        let mut found = Vec::new();
        for (height, number) in self.candidates(filter, from, to) {
            let log = &self.blocks[(height - self.first) as usize].logs[number as usize];
            if !filter.matches(log) {
                continue;
            }
            if found.len() == LOG_RESULTS_MAX {
                return Err(LogsError::Results);
            }
            found.push(LogPlace { height, receipt: log.receipt, log: log.log });
        }
        Ok(found)
    }

    /// The postings of the criterion that has the fewest of them in the range, in order; without any criterion, of all
    /// logs in the range.
    fn candidates(&self, filter: &LogFilter, from: Height, to: Height) -> Vec<(Height, u32)> {
        let mut criteria: Vec<Vec<&Postings>> = Vec::new();
        if !filter.addresses.is_empty() {
            criteria.push(filter.addresses.iter().filter_map(|address| self.addresses.get(address)).collect());
        }
        for (at, topics) in filter.topics.iter().enumerate().filter(|(_, topics)| !topics.is_empty()) {
            criteria.push(topics.iter().filter_map(|topic| self.topics.get(&(at, *topic))).collect());
        }
        let part = |list: &Postings| {
            list.partition_point(|(height, _)| *height < from)..list.partition_point(|(height, _)| *height <= to)
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
                let all = (from..=to).flat_map(|height| (0..logs(height)).map(move |number| (height, number)));
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
mod tests {
    use super::*;
    use ledger::contracts::{EthereumLog, EthereumReceipt, EvmStatus};
    use primitives::Digest;
    use proptest::prelude::*;

    /// A few addresses and topics, so that logs share them.
    fn address(number: u8) -> Address {
        Address([number; 20])
    }

    fn topic(number: u8) -> [u8; 32] {
        [number; 32]
    }

    fn receipt(height: Height, number: u32, logs: &[(u8, Vec<u8>)]) -> EthereumReceipt {
        let log = |(of, topics): &(u8, Vec<u8>)| EthereumLog {
            address: address(*of),
            topics: topics.iter().map(|number| topic(*number)).collect(),
            data: Vec::new(),
        };
        EthereumReceipt {
            id: Digest::of("test", &[height.to_le_bytes().to_vec(), number.to_le_bytes().to_vec()].concat()),
            position: Some(number),
            sender: Address::default(),
            status: EvmStatus::Succeeded,
            gas_used: 0,
            gas_price: 0,
            contract: None,
            logs: logs.iter().map(log).collect(),
        }
    }

    type Block = Vec<Vec<(u8, Vec<u8>)>>;

    fn blocks() -> impl Strategy<Value = Vec<Block>> {
        let log = (0u8..4, prop::collection::vec(0u8..4, 0..=4));
        prop::collection::vec(prop::collection::vec(prop::collection::vec(log, 0..4), 0..4), 1..12)
    }

    fn filters() -> impl Strategy<Value = LogFilter> {
        let of = |max| prop::collection::vec(0u8..5, 0..max);
        (0u64..14, 0u64..14, of(3), prop::collection::vec(of(3), 0..=5)).prop_map(|(from, to, addresses, topics)| {
            let topics = topics.into_iter().map(|list| list.into_iter().map(topic).collect()).collect();
            LogFilter { from, to, addresses: addresses.into_iter().map(address).collect(), topics }
        })
    }

    proptest! {
        /// A cut restores the index to what it was before the blocks above were added.
        #[test]
        fn a_cut_leaves_what_was_there_before(
            blocks in blocks(),
            filters in prop::collection::vec(filters(), 1..20),
            kept in 0u64..12,
        ) {
            let of = |height: Height, block: &Block| ContractReceipts {
                receipts: (0..).zip(block).map(|(number, logs)| receipt(height, number, logs)).collect(),
                ..Default::default()
            };
            let (mut index, mut before) = (EthereumIndex::new(0, 10_000), EthereumIndex::new(0, 10_000));
            for (height, block) in (1..).zip(&blocks) {
                index.add(&of(height, block));
                if height <= kept {
                    before.add(&of(height, block));
                }
            }
            index.cut_above(kept);
            // A different history continues from there.
            let more = of(before.next(), &blocks[0]);
            index.add(&more);
            before.add(&more);
            prop_assert_eq!((index.next(), index.weight), (before.next(), before.weight));
            prop_assert_eq!(&index.receipts, &before.receipts);
            prop_assert_eq!((&index.addresses, &index.topics), (&before.addresses, &before.topics));
            for filter in &filters {
                prop_assert_eq!(index.logs(filter), before.logs(filter));
            }
        }

        /// Compares with a linear scan of all logs.
        #[test]
        fn a_search_finds_what_a_walk_over_all_logs_finds(
            blocks in blocks(),
            filters in prop::collection::vec(filters(), 1..20),
            limit in 1usize..200,
        ) {
            let mut index = EthereumIndex::new(0, limit);
            let mut all = Vec::new();
            for (height, block) in (1..).zip(&blocks) {
                let receipts: Vec<_> =
                    (0..).zip(block).map(|(number, logs)| receipt(height, number, logs)).collect();
                for (number, one) in (0..).zip(&receipts) {
                    for (log, of) in (0..).zip(&one.logs) {
                        all.push((LogPlace { height, receipt: number, log }, of.clone()));
                    }
                }
                index.add(&ContractReceipts { receipts, ..ContractReceipts::default() });
                prop_assert!(index.weight <= limit || index.blocks.len() == 1);
            }
            let held: usize = index.blocks.iter().map(|block| block.logs.len()).sum();
            prop_assert_eq!(index.addresses.values().map(VecDeque::len).sum::<usize>(), held);
            for (height, block) in (1..).zip(&blocks) {
                for (number, logs) in (0..).zip(block) {
                    let place = (height >= index.first).then_some(ReceiptPlace { height, receipt: number });
                    prop_assert_eq!(index.receipt(&receipt(height, number, logs).id), place);
                }
            }
            for filter in filters {
                let is_wanted = |log: &EthereumLog| {
                    let topic = |(at, wanted): (usize, &Vec<[u8; 32]>)| {
                        log.topics.get(at).is_some_and(|topic| wanted.is_empty() || wanted.contains(topic))
                    };
                    (filter.addresses.is_empty() || filter.addresses.contains(&log.address))
                        && filter.topics.iter().enumerate().all(topic)
                };
                let range = filter.from..=filter.to;
                let expected: Vec<LogPlace> = all
                    .iter()
                    .filter(|(place, log)| range.contains(&place.height) && is_wanted(log))
                    .map(|(place, _)| *place)
                    .collect();
                match index.logs(&filter) {
                    Ok(found) => prop_assert_eq!(found, expected),
                    Err(error) => {
                        prop_assert_eq!(error, LogsError::Forgotten { first: index.first });
                        prop_assert!(filter.from < index.first);
                    }
                }
            }
        }
    }

    #[test]
    fn searches_that_are_too_large_are_refused() {
        let mut index = EthereumIndex::new(0, usize::MAX);
        let many = vec![(1, vec![7]); LOG_RESULTS_MAX];
        index.add(&ContractReceipts { receipts: vec![receipt(1, 0, &many)], ..ContractReceipts::default() });
        let all = |to| LogFilter { from: 1, to, ..LogFilter::default() };
        assert_eq!(index.logs(&all(1)).map(|found| found.len()), Ok(LOG_RESULTS_MAX));
        index.add(&ContractReceipts { receipts: vec![receipt(2, 0, &[(1, vec![7])])], ..ContractReceipts::default() });
        assert_eq!(index.logs(&all(2)), Err(LogsError::Results));
        let one = LogFilter { topics: vec![vec![topic(7)]], ..all(2) };
        assert_eq!(index.logs(&one), Err(LogsError::Results));
        for _ in 3..=LOG_HEIGHTS_MAX + 1 {
            index.add(&ContractReceipts::default());
        }
        assert_eq!(index.logs(&all(u64::MAX)), Err(LogsError::Heights(LOG_HEIGHTS_MAX + 1)));
        let named = LogFilter { addresses: vec![address(1); LOG_ALTERNATIVES_MAX + 1], ..all(1) };
        assert_eq!(index.logs(&named), Err(LogsError::Alternatives(LOG_ALTERNATIVES_MAX + 1)));
        assert_eq!(index.logs(&LogFilter { topics: vec![Vec::new(); 5], ..all(1) }), Ok(Vec::new()));
    }
}
