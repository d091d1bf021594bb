//! The history of accounts in a real PostgreSQL answers as a plain list of the same rows does.

use std::cell::Cell;

use borsh::BorshSerialize;
use ledger::{EndReason, Fill, FillReason, Outcome, Pair, Place, Traded};
use postgres::{Client, NoTls};
use primitives::{Address, AssetId, ClientId, Life, Price, Reference, ReferenceKind, TransactionId};
use proptest::prelude::*;
use readers::history::{
    BalanceRow, FillRow, HeldUnits, HistoryPart, HistoryPlace, HistoryRange, HistoryRow, OfferChange, OrderRow,
    TransferKind, TransferRow, balance_row,
};
use relational::{RelationalError, RelationalHistory, RelationalSettings, TestServer};
fn history_in(server: &TestServer, schema: &str, tag: u8) -> RelationalHistory {
    let address = server.address();
    let settings = RelationalSettings { address: &address, password: None, issuers: None, schema };
    RelationalHistory::new(settings, [tag; 32]).expect("settings")
}

/// The span, once the server has noticed that a connection of before has ended.
fn reached(history: &RelationalHistory) -> Result<(u64, u64), RelationalError> {
    loop {
        match history.connect() {
            Err(RelationalError::Taken(_)) => {}
            reached => return reached,
        }
    }
}

const ACCOUNT: Address = Address([7; 20]);
const OTHER: Address = Address([8; 20]);
const PAIR: Pair = Pair { sell: AssetId(3), buy: AssetId(u32::MAX) };

/// A row at a place of the range that names its topic.
fn row(range: &HistoryRange, place: HistoryPlace, value: &impl BorshSerialize) -> HistoryRow {
    (range.key_at(place), borsh::to_vec(value).expect("in memory"))
}

/// One with all that SQL and `COPY` read as something else.
fn reference() -> Reference {
    Reference::read(ReferenceKind::Text, r"O'Neill \\N \t -- %s $1").expect("a text")
}

/// The rows of a block: orders under a number and a name, fills, changes, transfers, balances; numbers at their ends.
fn block(height: u64, orders: u32) -> Vec<HistoryRow> {
    let whole = HistoryPart::WHOLE;
    let mut rows = Vec::new();
    for position in 0..orders {
        let account = if position % 3 == 2 { OTHER } else { ACCOUNT };
        let at = HistoryPlace { height, position };
        let number = if position == 0 { u64::MAX } else { height * 10 + u64::from(position) };
        let client = if position % 2 == 0 { ClientId([height as u8; 16]) } else { ClientId::NONE };
        let met = Traded { sold: 5, bought: 7, left: u64::MAX - 5, returned: 0, why: FillReason::Part };
        let order = OrderRow {
            time_ms: u64::MAX,
            id: TransactionId::default(),
            sequence: number,
            until: u64::MAX,
            pair: PAIR,
            limit: if position % 2 == 0 { Price::MAX } else { Price::MIN },
            amount: u64::MAX,
            life: Life::Rests,
            client,
            replaces: (position == 1).then_some(9),
            exact: None,
            outcome: Outcome::Offered(met),
            sealed_by: (position == 1).then_some(TransactionId::default()),
        };
        rows.push(row(&HistoryRange::orders(&account, whole), at, &order));
        rows.push(row(&HistoryRange::with_number(&account, number), at, &()));
        if client != ClientId::NONE {
            rows.push(row(&HistoryRange::with_client(&account, &client), at, &()));
        }
        let place = Place { account, id: number, limit: Price::MIN };
        let fill = Fill { place, pair: PAIR, sold: 5, bought: 7, left: 1, returned: 0 };
        let filled = FillRow { time_ms: 1_700_000_000_123, fill };
        rows.push(row(&HistoryRange::fills(&account, whole), at, &filled));
        let changes = HistoryRange::changes(&account, number, whole);
        rows.push(row(&changes, at, &OfferChange::Filled(filled)));
        let later = HistoryPlace { height, position: u32::MAX - position };
        let ended = OfferChange::Ended { time_ms: 0, returned: 1, why: EndReason::Cancelled };
        rows.push(row(&changes, later, &ended));
        let moved = TransferRow {
            time_ms: 0,
            id: TransactionId::default(),
            asset: AssetId(2),
            amount: 1,
            received: position % 2 == 0,
            with: (position % 2 == 0).then_some(OTHER),
            kind: TransferKind::Payment,
            reference: (position % 2 == 0).then(reference),
        };
        if let Some(reference) = &moved.reference {
            rows.push(row(&HistoryRange::with_reference(&account, reference, whole), at, &()));
        }
        rows.push(row(&HistoryRange::transfers(&account, whole), at, &moved));
    }
    let held = [(AssetId(0), None), (AssetId(2), Some(u64::MAX))];
    let held = held.map(|(asset, locked)| HeldUnits { asset, available: 4, locked });
    rows.push(balance_row(&ACCOUNT, height, &BalanceRow { time_ms: 77, state: height, held: held.to_vec() }));
    rows
}

/// What the index is compared with.
#[derive(Default)]
struct List {
    span: (u64, u64),
    rows: Vec<HistoryRow>,
}

fn height_of(row: &HistoryRow) -> u64 {
    let place = &row.0[row.0.len() - 12..];
    u64::from_be_bytes(place[..8].try_into().expect("eight"))
}

impl List {
    fn last_rows(&self, range: &HistoryRange, count: usize) -> Vec<HistoryRow> {
        let mut rows: Vec<_> =
            self.rows.iter().filter(|row| row.0 >= range.from && row.0 < range.to).cloned().collect();
        rows.sort_by(|a, b| b.0.cmp(&a.0));
        rows.truncate(count);
        rows
    }

    fn keep(&mut self, condition: impl Fn(u64) -> bool) {
        self.rows.retain(|row| condition(height_of(row)));
    }
}

fn agree(history: &RelationalHistory, list: &List) {
    assert_eq!(history.connect().expect("it is there"), list.span);
    let (first, last) = list.span;
    let part = HistoryPart { below: Some(HistoryPlace { height: last, position: 2 }), since: first + 1 };
    for account in [ACCOUNT, OTHER] {
        let mut ranges = vec![
            HistoryRange::with_number(&account, u64::MAX),
            HistoryRange::with_number(&account, last * 10 + 1),
            HistoryRange::with_client(&account, &ClientId([last as u8; 16])),
            HistoryRange::order_at(&account, HistoryPlace { height: last, position: 1 }),
            HistoryRange::transfer_at(&account, HistoryPlace { height: last, position: 1 }),
            HistoryRange::with_reference(&account, &reference(), HistoryPart::WHOLE),
        ];
        for part in [part, HistoryPart::WHOLE] {
            ranges.extend([
                HistoryRange::orders(&account, part),
                HistoryRange::fills(&account, part),
                HistoryRange::changes(&account, u64::MAX, part),
                HistoryRange::transfers(&account, part),
                HistoryRange::with_reference(&account, &reference(), part),
                HistoryRange::balances(&account, part),
            ]);
        }
        for range in ranges {
            for count in [0, 1, 3, 1_000] {
                let found = history.last_rows(&range, count).expect("an answer");
                assert_eq!(found, list.last_rows(&range, count), "{:?} {count}", range.question());
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(u32),
    CutAbove(u64),
    ForgetBelow(u64),
    BeginAfter(u64),
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u32..5).prop_map(Step::Add),
        1 => (0u64..6).prop_map(Step::CutAbove),
        1 => (0u64..8).prop_map(Step::ForgetBelow),
        1 => (0u64..9).prop_map(Step::BeginAfter),
        1 => Just(Step::Reopen),
    ]
}

/// One server for all cases: each has a schema of its own.
#[test]
fn history_in_postgres_answers_as_a_list_of_its_rows() {
    let Some(server) = TestServer::start() else { return };
    let number = Cell::new(0);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(24));
    let steps = prop::collection::vec(step(), 1..14);
    let ran = runner.run(&steps, |steps| {
        number.set(number.get() + 1);
        let schema = format!("case_{}", number.get());
        let mut history = history_in(&server, &schema, 1);
        let mut list = List { span: (1, 0), rows: Vec::new() };
        for step in steps {
            match step {
                Step::Add(orders) => {
                    let height = list.span.1 + 1;
                    let rows = block(height, orders);
                    history.add(height, &rows).expect("added");
                    list.rows.extend(rows);
                    list.span.1 = height;
                }
                Step::CutAbove(back) => {
                    let height = list.span.1.saturating_sub(back);
                    history.cut_above(height).expect("cut");
                    list.keep(|row| row <= height);
                    list.span = (list.span.0.min(height + 1), height);
                }
                Step::ForgetBelow(height) => {
                    history.forget_below(height).expect("forgot");
                    let first = height.min(list.span.1 + 1).max(list.span.0);
                    list.keep(|row| row >= first);
                    list.span.0 = first;
                }
                Step::BeginAfter(height) => {
                    history.begin_after(height).expect("begun");
                    list = List { span: (height + 1, height), rows: Vec::new() };
                }
                Step::Reopen => {
                    drop(history);
                    history = history_in(&server, &schema, 1);
                    drop(reached(&history));
                }
            }
            agree(&history, &list);
        }
        Ok(())
    });
    ran.expect("every case agrees");
}

#[test]
fn a_database_that_is_not_ours_or_not_there_changes_nothing() {
    let Some(mut server) = TestServer::start() else { return };
    let history = history_in(&server, "ours", 1);
    history.add(1, &block(1, 3)).expect("added");
    // A second writer, another chain, a gap, and bytes that are no row.
    assert!(matches!(history_in(&server, "ours", 1).connect(), Err(RelationalError::Taken(_))));
    assert!(matches!(history.add(3, &[]), Err(RelationalError::OutOfOrder { last: 1, found: 3 })));
    let malformed = [(block(2, 1)[0].0.clone(), vec![1, 2, 3])];
    assert!(matches!(history.add(2, &malformed), Err(RelationalError::Malformed(_))));
    let twice = [block(2, 1), block(2, 1)].concat();
    assert!(matches!(history.add(2, &twice), Err(RelationalError::Database(_))));
    assert_eq!(history.connect().expect("it is there"), (1, 1));
    drop(history);
    assert!(matches!(reached(&history_in(&server, "ours", 2)), Err(RelationalError::Another(_))));

    // The server ends connections that nobody uses, as `idle_session_timeout` and a failover do.
    let history = history_in(&server, "ours", 1);
    drop(reached(&history));
    let everything = HistoryRange::orders(&ACCOUNT, HistoryPart::WHOLE);
    let found = history.last_rows(&everything, 10).expect("an answer");
    let mut operator = Client::connect(&server.address(), NoTls).expect("a connection");
    let others = "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE application_name = 'walras'";
    assert!(operator.query(others, &[]).expect("an operator").len() >= 2);
    assert_eq!(history.last_rows(&everything, 10).expect("an answer"), found);
    drop(history);

    // A crash of the database: the next call fails or connects anew, and nothing is half there.
    let history = history_in(&server, "ours", 1);
    drop(reached(&history));
    history.add(2, &block(2, 2)).expect("added");
    server.crash();
    let (first, last) = reached(&history).expect("it is there again");
    assert!(first == 1 && last <= 2);
    // What the crash took is added again.
    let mut list = List { span: (1, 2), rows: Vec::new() };
    for (height, orders) in [(1, 3), (2, 2)] {
        if height > last {
            history.add(height, &block(height, orders)).expect("added again");
        }
        list.rows.extend(block(height, orders));
    }
    agree(&history, &list);

    // People ask in SQL.
    let mut client = Client::connect(&server.address(), NoTls).expect("a connection");
    let asked = client.query_one("SELECT count(*), max(amount)::text, max(time)::text FROM ours.orders", &[]);
    let asked = asked.expect("an answer");
    assert_eq!(asked.get::<_, i64>(0), 5);
    assert_eq!(asked.get::<_, String>(1), u64::MAX.to_string());
    assert!(asked.get::<_, String>(2).starts_with("9999-12-31"));
    let held = client.query_one("SELECT locked::text FROM ours.balances WHERE asset = 2 AND height = 1", &[]);
    assert_eq!(held.expect("an answer").get::<_, String>(0), u64::MAX.to_string());
}

#[test]
fn settings_that_would_leak_or_leave_the_machine_are_refused() {
    let refused = |address: &str, schema: &str| {
        let settings = RelationalSettings { address, password: None, issuers: None, schema };
        match RelationalHistory::new(settings, [0; 32]) {
            Err(RelationalError::Settings(why)) => why,
            Err(other) => panic!("{other}"),
            Ok(_) => String::new(),
        }
    };
    assert!(refused("postgresql://walras:secret@localhost/walras", "walras").contains("postgres_password_file"));
    assert!(!refused("host=localhost password='secret", "walras").contains("secret"));
    assert!(refused("host=10.0.0.7 dbname=walras", "walras").contains("postgres_ca"));
    assert!(refused("host=localhost,db.example dbname=walras", "walras").contains("postgres_ca"));
    assert!(refused("host=127.0.0.1", "walras; DROP TABLE x").contains("postgres_schema"));
    assert_eq!(refused("host=127.0.0.1,/run/postgresql dbname=walras", "walras_1"), "");
}
