//! `walras match`: files of order flow through the matching engine.

use std::path::Path;
use std::process::{Command, Output};

use kernel::Dice;
use protocols::frames::put_frame;
use protocols::itch::{Add, Cancelled, Delete, Executed, ItchBody, ItchHeader, ItchMessage, Replaced, SystemEvent};
use serde_json::Value;

const STOCK: [u8; 8] = *b"WALRUS  ";

fn run(file: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_walras"));
    command.args(["match", "--json", "--orders", "4096", "--file"]).arg(file).args(more).output().expect("runs")
}

fn replayed(file: &Path) -> Value {
    let output = run(file, &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// A plain book of a feed: the orders of each side in the order of arrival.
#[derive(Default)]
struct NaiveFeed {
    /// Number, size, price; buys, then sells.
    sides: [Vec<(u64, u32, u32)>; 2],
    next: u64,
    file: Vec<u8>,
    trades: u64,
}

impl NaiveFeed {
    fn tell(&mut self, body: ItchBody) {
        let header = ItchHeader { locate: 3, tracking: 0, nanoseconds: self.next };
        let mut bytes = Vec::new();
        ItchMessage { header, body }.encode(&mut bytes).expect("in time");
        assert!(put_frame(&bytes, &mut self.file));
    }

    /// The position of the first order by price and time.
    fn best(&self, side: usize) -> Option<usize> {
        let by = |at: &usize| (if side == 0 { u32::MAX - self.sides[0][*at].2 } else { self.sides[1][*at].2 }, *at);
        (0..self.sides[side].len()).min_by_key(by)
    }

    /// An order arrives; what it meets trades, and what is left rests.
    fn arrive(&mut self, side: usize, mut shares: u32, price: u32) {
        while let Some(at) = self.best(1 - side).filter(|_| shares > 0) {
            let (order, left, at_price) = self.sides[1 - side][at];
            if (side == 0 && at_price > price) || (side == 1 && at_price < price) {
                break;
            }
            let traded = shares.min(left);
            (shares, self.trades) = (shares - traded, self.trades + 1);
            self.tell(ItchBody::Executed(Executed { order, shares: traded, matched: self.trades }));
            self.sides[1 - side][at].1 -= traded;
            self.sides[1 - side].retain(|(_, left, _)| *left > 0);
        }
        if shares > 0 {
            self.next += 1;
            let letter = [b'B', b'S'][side];
            self.tell(ItchBody::Add(Add { order: self.next, side: letter, shares, stock: STOCK, price }));
            self.sides[side].push((self.next, shares, price));
        }
    }

    /// An order is cancelled in part or whole, or moved away from the market under a new number.
    fn change(&mut self, side: usize, random: &mut Dice) {
        let orders = self.sides[side].len() as u64;
        if orders == 0 {
            return;
        }
        let at = random.below(orders) as usize;
        let (order, left, price) = self.sides[side][at];
        match random.below(3) {
            0 if left > 1 => {
                self.tell(ItchBody::Cancelled(Cancelled { order, shares: left / 2 }));
                self.sides[side][at].1 -= left / 2;
            }
            1 => {
                self.next += 1;
                let price = if side == 0 { price - 1 } else { price + 1 };
                self.tell(ItchBody::Replaced(Replaced { before: order, order: self.next, shares: left, price }));
                self.sides[side].remove(at);
                self.sides[side].push((self.next, left, price));
            }
            _ => {
                self.tell(ItchBody::Delete(Delete { order }));
                self.sides[side].remove(at);
            }
        }
    }

    /// A feed of so many arrivals and changes.
    fn of(events: u32, seed: u64) -> NaiveFeed {
        let (mut feed, mut random) = (NaiveFeed::default(), Dice::new(seed));
        for _ in 0..events {
            let side = random.below(2) as usize;
            match random.below(3) {
                0 => feed.change(side, &mut random),
                _ => feed.arrive(side, 1 + random.below(100) as u32, 10_000 + random.below(40) as u32),
            }
        }
        feed
    }
}

#[test]
fn a_feed_by_price_and_time_is_matched_in_priority_and_twice_to_one_digest() {
    let directory = tempfile::tempdir().expect("a folder");
    let file = directory.path().join("day.itch");
    let feed = NaiveFeed::of(4_000, 7);
    std::fs::write(&file, &feed.file).expect("written");
    let (first, second) = (replayed(&file), replayed(&file));
    let market = &first["markets"][0];
    assert!(feed.trades > 500, "{}", feed.trades);
    assert_eq!((&market["trades_in_priority"], &market["symbol"]), (&Value::from(feed.trades), &Value::from("WALRUS")));
    for none in ["trades_out_of_priority", "crossing", "refused"] {
        assert_eq!(market[none], 0, "{none}");
    }
    let resting = feed.sides.iter().map(Vec::len).sum::<usize>();
    assert_eq!((&market["resting"], &first["unknown"]), (&Value::from(resting), &Value::from(0)));
    for (side, name) in ["bid", "ask"].into_iter().enumerate() {
        let best = feed.best(side).map(|at| feed.sides[side][at].2);
        let lots = feed.sides[side].iter().filter(|order| Some(order.2) == best).map(|order| order.1).sum::<u32>();
        assert_eq!(market[name], serde_json::json!({ "tick": best, "lots": lots }), "{name}");
    }
    assert_eq!(first["digest"], second["digest"]);
    let other = NaiveFeed::of(4_000, 8);
    std::fs::write(&file, &other.file).expect("written");
    assert_ne!(replayed(&file)["digest"], first["digest"]);
}

#[test]
fn a_feed_that_breaks_priority_is_counted_and_followed() {
    let directory = tempfile::tempdir().expect("a folder");
    let file = directory.path().join("messages.csv");
    // The second buy at one price trades before the first; a hidden trade, a halt and an order from before the file.
    let lines = "34200.0,1,11,100,1000000,1\n34200.1,1,12,50,1000000,1\n34200.2,4,12,20,1000000,1\n\
                 34200.3,5,0,5,1000100,1\n34200.4,7,0,0,-1,-1\n34200.5,3,99,10,1000000,1\n\
                 34200.6,4,11,100,1000000,1\n34200.7,2,12,10,1000000,1\n";
    std::fs::write(&file, lines).expect("written");
    let report = replayed(&file);
    let market = &report["markets"][0];
    assert_eq!((&market["trades_in_priority"], &market["trades_out_of_priority"]), (&Value::from(1), &Value::from(1)));
    assert_eq!((&report["unknown"], &report["messages"]), (&Value::from(1), &Value::from(8)));
    assert_eq!(market["bid"], serde_json::json!({ "tick": 1_000_000, "lots": 20 }));
}

#[test]
fn an_order_file_that_is_none_is_refused_with_its_place() {
    let directory = tempfile::tempdir().expect("a folder");
    let itch = directory.path().join("day.itch");
    let feed = NaiveFeed::of(10, 1);
    for (bytes, wanted) in [
        (&feed.file[..feed.file.len() - 1], "the file ends within a message"),
        (&[0, 1, b'z'], "message 0 at byte 0: no ITCH 5.0 message is of kind 0x7a"),
    ] {
        std::fs::write(&itch, bytes).expect("written");
        let output = run(&itch, &[]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(wanted), "{text}");
    }
    let csv = directory.path().join("messages.csv");
    std::fs::write(&csv, "34200.0,1,11,100,0,1\n").expect("written");
    let text = String::from_utf8_lossy(&run(&csv, &[]).stderr).to_string();
    assert!(text.contains("line 1: price: 0 is not 1 to 2000000000"), "{text}");
}

/// A day of a feed, with the message that begins it and the length that ends its session.
fn day(feed: &NaiveFeed, begins: bool, ends: bool) -> Vec<u8> {
    let mut whole = NaiveFeed::default();
    if begins {
        whole.tell(ItchBody::SystemEvent(SystemEvent { event: b'O' }));
    }
    [&whole.file[..], &feed.file, if ends { &[0, 0] } else { &[] }].concat()
}

/// Orders of one day are not open on the next one, where other orders may have their numbers.
#[test]
fn days_of_one_file_are_all_read_and_told_apart() {
    let directory = tempfile::tempdir().expect("a folder");
    let file = directory.path().join("days.itch");
    let (one, other) = (NaiveFeed::of(400, 1), NaiveFeed::of(400, 2));
    let mut digests = std::collections::BTreeSet::new();
    for (begins, ends) in [(false, true), (true, true), (true, false)] {
        std::fs::write(&file, [day(&one, begins, ends), day(&other, begins, ends)].concat()).expect("written");
        let report = replayed(&file);
        assert_eq!((&report["unknown"], report["days_before"].as_array().map(Vec::len)), (&Value::from(0), Some(1)));
        let trades = [&report["days_before"][0], &report["markets"]].map(|day| day[0]["trades_in_priority"].clone());
        assert_eq!(trades, [one.trades, other.trades].map(Value::from));
        digests.insert(report["digest"].to_string());
    }
    assert_eq!(digests.len(), 1, "how days are parted is not in the digest");
    std::fs::write(&file, day(&one, true, true)).expect("written");
    let single = replayed(&file);
    std::fs::write(&file, &one.file).expect("written");
    assert_eq!(single["digest"], replayed(&file)["digest"]);
}

/// A length of zero ends a session. Bytes that follow and begin no other are named, and never an empty day.
#[test]
fn a_length_of_zero_before_other_bytes_is_refused_with_what_is_wrong() {
    let directory = tempfile::tempdir().expect("a folder");
    let file = directory.path().join("day.itch");
    let feed = NaiveFeed::of(10, 1);
    let mut zeros = feed.file.clone();
    zeros[..2].fill(0);
    for bytes in [&zeros[..], &[&feed.file[..], &[0, 0, 7]].concat(), &[&feed.file[..], &[0; 4]].concat(), &[0; 64]] {
        std::fs::write(&file, bytes).expect("written");
        let output = run(&file, &[]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("is zero, which ends a session, but what follows"), "{text}");
    }
    std::fs::write(&file, [0, 0]).expect("written");
    assert_eq!(replayed(&file)["messages"], 0, "an empty session");
}

#[test]
fn a_compressed_file_is_named_with_what_unpacks_it() {
    let directory = tempfile::tempdir().expect("a folder");
    let file = directory.path().join("day.itch.gz");
    for (begin, wanted) in
        [(&b"\x1f\x8b\x08\0"[..], "gzip -dc"), (b"PK\x03\x04", "unzip -p"), (b"7z\xbc\xaf\x27\x1c", "7z x -so")]
    {
        std::fs::write(&file, [begin, &[0; 100]].concat()).expect("written");
        let output = run(&file, &[]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(wanted), "{text}");
    }
}

#[test]
fn lobster_files_are_read_with_a_header_and_a_blank_last_line() {
    let directory = tempfile::tempdir().expect("a folder");
    let file = directory.path().join("messages.csv");
    let lines = "34200.0,1,11,100,1000000,1\n35821.088778456004,4,11,100,1000000,1\n";
    for text in
        [lines.to_string(), format!("time,type,order,size,price,direction\n{lines}"), format!("\u{feff}{lines}\r\n\n")]
    {
        std::fs::write(&file, &text).expect("written");
        let report = replayed(&file);
        assert_eq!(
            (&report["messages"], &report["markets"][0]["trades_in_priority"]),
            (&2.into(), &1.into()),
            "{text}"
        );
    }
    std::fs::write(&file, format!("\n{lines}")).expect("written");
    let text = String::from_utf8_lossy(&run(&file, &[]).stderr).to_string();
    assert!(text.contains("line 1: it is blank, and lines follow"), "{text}");
}
