//! The index against a scan of all logs.

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
        LogFilter { from, first_log: 0, to, addresses: addresses.into_iter().map(address).collect(), topics }
    })
}

/// All logs that match a filter, read page by page.
fn paged(index: &EthereumIndex, filter: &LogFilter, most: usize) -> Vec<LogPlace> {
    let (mut filter, mut found) = (filter.clone(), Vec::new());
    loop {
        let LogsPage { places, next } = index.page(&filter, most).expect("as the first one");
        assert!(places.len() == most || next.is_none(), "only the last page is short");
        found.extend(places);
        let Some(next) = next else { return found };
        (filter.from, filter.first_log) = (next.height, next.log);
    }
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
        page in 1usize..6,
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
                Ok(found) => {
                    prop_assert_eq!(&found, &expected);
                    prop_assert_eq!(paged(&index, &filter, page), expected);
                }
                Err(error) => {
                    prop_assert_eq!(error, LogsError::Forgotten { first: index.first });
                    prop_assert!(filter.from < index.first);
                }
            }
        }
    }
}

/// A block with more logs than an answer is read page by page; a stranger's logs in it cost others no page.
#[test]
fn a_block_above_the_limit_of_logs_is_read_page_by_page() {
    let mut index = EthereumIndex::new(0, usize::MAX);
    let mut logs = vec![(1, vec![7]); 2 * LOG_RESULTS_MAX];
    logs.insert(LOG_RESULTS_MAX + 5, (2, vec![7]));
    index.add(&ContractReceipts { receipts: vec![receipt(1, 0, &logs)], ..ContractReceipts::default() });
    let all = LogFilter { from: 1, to: 1, ..LogFilter::default() };
    assert!(matches!(index.logs(&all), Err(LogsError::Results { next: LogCursor { height: 1, log: 10_000 } })));
    assert_eq!(paged(&index, &all, LOG_RESULTS_MAX).len(), 2 * LOG_RESULTS_MAX + 1);
    let topics = vec![vec![topic(7)]];
    assert_eq!(paged(&index, &LogFilter { topics, ..all.clone() }, 999).len(), 2 * LOG_RESULTS_MAX + 1);
    let other = LogFilter { addresses: vec![address(2)], ..all };
    assert_eq!(index.logs(&other).map(|found| found.len()), Ok(1));
}

#[test]
fn searches_that_are_too_large_are_refused() {
    let mut index = EthereumIndex::new(0, usize::MAX);
    let many = vec![(1, vec![7]); LOG_RESULTS_MAX];
    index.add(&ContractReceipts { receipts: vec![receipt(1, 0, &many)], ..ContractReceipts::default() });
    let all = |to| LogFilter { from: 1, to, ..LogFilter::default() };
    assert_eq!(index.logs(&all(1)).map(|found| found.len()), Ok(LOG_RESULTS_MAX));
    index.add(&ContractReceipts { receipts: vec![receipt(2, 0, &[(1, vec![7])])], ..ContractReceipts::default() });
    let next = LogCursor { height: 2, log: 0 };
    assert_eq!(index.logs(&all(2)), Err(LogsError::Results { next }));
    let one = LogFilter { topics: vec![vec![topic(7)]], ..all(2) };
    assert_eq!(index.logs(&one), Err(LogsError::Results { next }), "it says where to go on");
    for _ in 3..=LOG_HEIGHTS_MAX + 1 {
        index.add(&ContractReceipts::default());
    }
    assert_eq!(index.logs(&all(u64::MAX)), Err(LogsError::Heights(LOG_HEIGHTS_MAX + 1)));
    let named = LogFilter { addresses: vec![address(1); LOG_ALTERNATIVES_MAX + 1], ..all(1) };
    assert_eq!(index.logs(&named), Err(LogsError::Alternatives(LOG_ALTERNATIVES_MAX + 1)));
    assert_eq!(index.logs(&LogFilter { topics: vec![Vec::new(); 5], ..all(1) }), Ok(Vec::new()));
}
